//! A line at the control socket is a request or an error, and what is read is written the same.
#![no_main]

use bellrock_control::message::{MAX_REQUEST_BYTES, read_request, reply_line, request_line};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(line) = std::str::from_utf8(input) else { return };
    match read_request(line) {
        Ok(request) => {
            let _ = (request.is_order(), request.waits_for_switches(), request.audit_text());
            let Ok(again) = request_line(&request) else {
                // Some values are longer in the form in which they are written.
                assert!(input.len() as u64 > MAX_REQUEST_BYTES / 8, "too long: {line}");
                return;
            };
            assert_eq!(read_request(&again).ok().as_ref(), Some(&request), "{line} became {again}");
        }
        Err(error) => assert!(reply_line(&Err(error)).ends_with("}\n")),
    }
});
