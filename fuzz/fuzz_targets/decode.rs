//! All decoders of network input accept any bytes: they return an error and end.
#![no_main]

use bellrock_openflow::{
    FromSwitch, Hello, MultipartKind, MultipartReply, ReplyBody, ToSwitch, Version, frame,
};
use libfuzzer_sys::fuzz_target;

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

fuzz_target!(|bytes: &[u8]| {
    let mut stream = bytes;
    while let Ok(Some(frame)) = frame(stream) {
        message(frame.bytes);
        stream = &stream[frame.bytes.len()..];
    }
    // With the right length, so that the rest is checked too.
    let mut whole = bytes.to_vec();
    if let (Ok(length), Some(field)) = (u16::try_from(whole.len()), whole.get_mut(2..4)) {
        field.copy_from_slice(&length.to_be_bytes());
        message(&whole);
    }
    for version in VERSIONS {
        for kind in MultipartKind::ALL {
            let _ = ReplyBody::decode_parts(version, *kind, bytes);
        }
    }
});

fn message(bytes: &[u8]) {
    let from = FromSwitch::decode(bytes);
    let to = ToSwitch::decode(bytes);
    for error in [from.err(), to.err()].into_iter().flatten() {
        assert!(error.offset <= bytes.len(), "{error} of {} bytes", bytes.len());
        for version in VERSIONS {
            assert!(error.answer.nearest(version).wire(version).is_some());
        }
    }
    if let Ok((header, hello)) = Hello::decode_any(bytes) {
        let named =
            (0..=u8::MAX).filter(|version| hello.names(header.version, *version) == Some(true));
        assert!(named.count() <= 256);
    }
    for version in VERSIONS {
        if let Ok((kind, _, body)) = MultipartReply::split(version, bytes) {
            let _ = ReplyBody::decode_parts(version, kind, body);
        }
    }
}
