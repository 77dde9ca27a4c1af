//! Vectors for the tests: messages in commented hexadecimal (see `vectors/README.md`).

#![allow(dead_code, unreachable_pub, reason = "each test takes what it needs of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail so")]

pub mod generate;
mod generate_stats;
pub mod matches;

use std::fs;
use std::path::{Path, PathBuf};

use bellrock_openflow::{
    DecodeError, EncodeError, FromSwitch, HEADER_LEN, Message, Out, Strictness, ToSwitch,
};

/// Twice the length of the longest message: space for any message that was read, and to detect
/// overruns.
pub const OUT_BYTES: usize = 2 * 65536;

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    FromSwitch,
    ToSwitch,
}

pub const BOTH: [Direction; 2] = [Direction::FromSwitch, Direction::ToSwitch];

/// A message of `vectors/`.
#[derive(Debug)]
pub struct Vector {
    pub path: PathBuf,
    pub direction: Direction,
    pub bytes: Vec<u8>,
}

impl Vector {
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// Reads all vectors of a folder below `vectors/`, by name. Fails if there are none.
pub fn vectors(folder: &str) -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../vectors").join(folder);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hex"))
        .collect();
    assert!(!paths.is_empty(), "no vectors in {}", folder.display());
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Vector {
    let text = fs::read_to_string(&path).unwrap();
    let to_switch = text.contains("# direction: to_switch\n");
    let from_switch = text.contains("# direction: from_switch\n");
    assert!(to_switch != from_switch, "{}: no direction, or two", path.display());
    let direction = if to_switch { Direction::ToSwitch } else { Direction::FromSwitch };
    let digits: String =
        text.lines().flat_map(|line| line.split('#').next()).collect::<String>().replace(' ', "");
    Vector { direction, bytes: from_hex(&digits), path }
}

pub fn from_hex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "half a byte in {digits}");
    (0..digits.len() / 2)
        .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
        .collect()
}

/// Returns the output of `write`, which has to succeed.
pub fn encode(write: impl FnOnce(&mut Out) -> Result<(), EncodeError>) -> Vec<u8> {
    let mut out = Out::with_capacity(OUT_BYTES);
    write(&mut out).unwrap();
    out.as_slice().to_vec()
}

/// A message of either direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Any<'a> {
    From(Message<FromSwitch<'a>>),
    To(Message<ToSwitch<'a>>),
}

impl<'a> Any<'a> {
    /// Reads strictly.
    pub fn decode(direction: Direction, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Any::decode_as(direction, bytes, Strictness::Strict)
    }

    pub fn decode_as(
        direction: Direction,
        bytes: &'a [u8],
        reading: Strictness,
    ) -> Result<Self, DecodeError> {
        match direction {
            Direction::FromSwitch => FromSwitch::decode_as(bytes, reading).map(Any::From),
            Direction::ToSwitch => ToSwitch::decode_as(bytes, reading).map(Any::To),
        }
    }

    /// Returns whether it is a packet_out with a buffer and data, whose data is never written.
    pub fn has_data_beside_a_buffer(&self) -> bool {
        matches!(self, Any::To(Message { body: ToSwitch::PacketOut(packet), .. })
            if packet.buffer_id.is_some() && !packet.data.is_empty())
    }

    /// Encodes the message. A message that was read can always be written.
    pub fn encode(&self) -> Vec<u8> {
        encode(|out| match self {
            Any::From(message) => message.body.encode(message.version, message.xid, out),
            Any::To(message) => message.body.encode(message.version, message.xid, out),
        })
    }
}

impl std::fmt::Display for Any<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Any::From(message) => message.fmt(f),
            Any::To(message) => message.fmt(f),
        }
    }
}

/// Decodes bytes as a message of either direction, strictly and liberally. A decoded message has to
/// print in both forms, and to encode to an equal message with a stable encoding. Returns whether
/// any decoding succeeded.
pub fn exercise(bytes: &[u8]) -> bool {
    let mut valid = false;
    for direction in BOTH {
        let strict = Any::decode(direction, bytes);
        let reading = if strict.is_ok() { Strictness::Strict } else { Strictness::Liberal };
        let Ok(message) = Any::decode_as(direction, bytes, Strictness::Liberal) else {
            assert!(strict.is_err(), "a liberal reading takes whatever a strict one does");
            continue;
        };
        assert!(strict.is_err() || strict == Ok(message), "{bytes:02x?}");
        valid = true;
        assert!(!format!("{message}").is_empty() && !format!("{message:#}").is_empty());
        if message.has_data_beside_a_buffer() {
            continue;
        }
        let again = message.encode();
        let read = Any::decode_as(direction, &again, reading)
            .unwrap_or_else(|error| panic!("{error}\n{message}\n{bytes:02x?}\n{again:02x?}"));
        assert_eq!(read, message);
        assert_eq!(read.encode(), again);
    }
    valid
}

/// Writes the number of bytes into the length field of the header, if present.
pub fn patch_length(bytes: &mut [u8]) {
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    if bytes.len() >= HEADER_LEN {
        bytes[2..4].copy_from_slice(&length);
    }
}
