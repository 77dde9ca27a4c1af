//! A decoded message prints, and encodes to an equal message with a stable encoding.
#![no_main]

use std::fmt::{self, Write};

use bellrock_openflow::{FromSwitch, Message, Out, ToSwitch};
use libfuzzer_sys::fuzz_target;

/// Maximum bytes printed per byte of a message: names are escaped, and list items have lines of
/// their own.
const PRINTED_PER_BYTE: usize = 64;
/// Maximum bytes printed for a message without content.
const PRINTED_BARE: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let mut whole = bytes.to_vec();
    if let (Ok(length), Some(field)) = (u16::try_from(whole.len()), whole.get_mut(2..4)) {
        field.copy_from_slice(&length.to_be_bytes());
    }
    if let Ok(message) = FromSwitch::decode(&whole) {
        print(&message, whole.len());
        let again = write(|out| message.body.encode(message.version, message.xid, out));
        let read = FromSwitch::decode(&again).expect("what was written is read");
        assert_eq!(read, message);
        assert_eq!(again, write(|out| read.body.encode(read.version, read.xid, out)));
    }
    if let Ok(message) = ToSwitch::decode(&whole) {
        print(&message, whole.len());
        let again = write(|out| message.body.encode(message.version, message.xid, out));
        let read = ToSwitch::decode(&again).expect("what was written is read");
        assert_eq!(read, message);
        assert_eq!(again, write(|out| read.body.encode(read.version, read.xid, out)));
    }
});

fn write(encode: impl FnOnce(&mut Out) -> Result<(), bellrock_openflow::EncodeError>) -> Vec<u8> {
    let mut out = Out::with_capacity(2 * 65536);
    encode(&mut out).expect("what was read can be written");
    out.as_slice().to_vec()
}

/// Counts the printed bytes. Panics on characters that a terminal acts on.
struct Count(usize);

impl Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        self.0 += text.len();
        Ok(())
    }
}

fn print<T>(message: &Message<T>, len: usize)
where
    Message<T>: fmt::Display,
{
    let mut count = Count(0);
    write!(count, "{message}{message:#}").expect("counting does not fail");
    assert!(count.0 <= PRINTED_BARE + PRINTED_PER_BYTE * len, "{} of {len} bytes", count.0);
}
