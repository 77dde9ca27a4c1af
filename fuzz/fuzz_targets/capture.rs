//! A capture file, pcap or pcapng, is read to its end or to the first error, whatever is in it.
//! Lines of hexadecimal digits likewise.
#![no_main]

#[allow(dead_code, unused_imports, reason = "the command uses the rest")]
#[path = "../../crates/lab/tools/src/decode/mod.rs"]
mod decode;

use decode::{CaptureProblem, Sink, StreamMessage, read_capture};
use libfuzzer_sys::fuzz_target;

/// Maximum number of messages of one input; a small capture has no more.
const MAX_MESSAGES: usize = 1 << 20;

#[derive(Default)]
struct Counts {
    messages: usize,
    problems: usize,
}

impl Sink for Counts {
    fn message(&mut self, message: StreamMessage<'_>) {
        assert!(message.bytes.len() >= decode::HEADER_BYTES);
        self.messages += 1;
    }

    fn problem(&mut self, _: CaptureProblem) {
        self.problems += 1;
    }
}

fuzz_target!(|input: &[u8]| {
    let mut counts = Counts::default();
    if let Ok(summary) = read_capture(input, &[], &mut counts) {
        assert_eq!(summary.messages as usize, counts.messages);
    }
    assert!(counts.messages <= MAX_MESSAGES && counts.messages <= input.len());
    decode::hex::messages(input).for_each(drop);
});
