//! The version that both ends agree on, and the error if there is none (1.3.5 §6.3.1).

use crate::common::{Alone, OUT_BYTES, VERSIONS, raw};
use bellrock_openflow::{ErrorCode, Version};
use bellrock_session::{
    CloseReason, ControllerSession, MAX_FIRST_MESSAGE_BYTES, PeerVersions, SessionEvent,
    SessionSettings, SwitchDescription, SwitchSession, Versions,
};

const OURS: [Versions; 3] =
    [Versions::ALL, Versions::only(Version::V1_0), Versions::only(Version::V1_3)];

fn hello(header: u8, bitmap: Option<u32>) -> Vec<u8> {
    match bitmap {
        None => raw(header, 0, 1, &[]),
        Some(bits) => raw(header, 0, 1, &[&[0, 1, 0, 8][..], &bits.to_be_bytes()].concat()),
    }
}

/// With a bitmap under any header: the highest version in both. Otherwise the highest of ours that
/// is at most the peer's.
fn expected(ours: Versions, header: u8, bitmap: Option<u32>) -> Option<Version> {
    let common = ours.iter().filter(|version| match bitmap {
        Some(bits) => bits >> version.wire() & 1 != 0,
        None => version.wire() <= header,
    });
    common.max_by_key(|version| version.wire())
}

#[test]
fn every_combination_of_header_and_bitmap() {
    let mut agreed = 0;
    for ours in OURS {
        for header in (0..=8).chain([0x7f, 0x84, 0xff]) {
            let bitmaps = (0..=0x7f).map(Some).chain([None, Some(u32::MAX)]);
            for bitmap in bitmaps {
                let settings = SessionSettings { versions: ours, ..SessionSettings::default() };
                let mut end = Alone::new(&settings);
                let message = hello(header, bitmap);
                let result = end.give(&message).map(|_| end.version());
                match expected(ours, header, bitmap) {
                    Some(version) => {
                        assert_eq!(result, Ok(version), "{ours:?} {header} {bitmap:?}");
                        assert_eq!(end.sent(), ["FeaturesRequest"]);
                        agreed += 1;
                    }
                    None => {
                        let close = result.unwrap_err();
                        let CloseReason::NoCommonVersion { theirs, ours: told } = &close else {
                            panic!("{close:?} for {ours:?} {header} {bitmap:?}");
                        };
                        assert_eq!((theirs.header, *told), (header, ours));
                        let sent = end.sent();
                        assert_eq!(sent.len(), 1);
                        assert!(sent[0].contains("HelloIncompatible"), "{sent:?}");
                    }
                }
            }
        }
    }
    assert!(agreed > 1000);
}

#[test]
fn both_ends_arrive_at_the_same_version_or_both_refuse() {
    for ours in OURS {
        for theirs in OURS {
            let (mut up, mut down) = (out(), out());
            let settings = SessionSettings { versions: ours, ..SessionSettings::default() };
            let mut controller =
                ControllerSession::new(&settings, crate::common::ms(0), &mut down).unwrap();
            let mut switch =
                SwitchSession::new(SwitchDescription::new(1), theirs, &mut up).unwrap();
            let (hello_down, hello_up) = (down.as_slice().to_vec(), up.as_slice().to_vec());
            let at_switch = switch.next(&hello_down, &mut up).map(|_| ());
            let at_controller =
                controller.next(&hello_up, crate::common::ms(0), &mut down).map(|_| ());
            let common = ours.iter().rev().find(|v| theirs.contains(*v));
            match common {
                Some(version) => {
                    assert_eq!((at_switch, at_controller), (Ok(()), Ok(())));
                    assert_eq!((switch.version(), controller.version()), (version, version));
                }
                None => assert!(
                    matches!(
                        (&at_switch, &at_controller),
                        (
                            Err(CloseReason::NoCommonVersion { .. }),
                            Err(CloseReason::NoCommonVersion { .. })
                        )
                    ),
                    "{at_switch:?} {at_controller:?}"
                ),
            }
        }
    }
}

#[test]
fn our_hello_has_a_bitmap_when_we_speak_1_3() {
    for (ours, expected) in [
        (Versions::ALL, &[4, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x12][..]),
        (Versions::only(Version::V1_3), &[4, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x10]),
        (Versions::only(Version::V1_0), &[1, 0, 0, 8, 0, 0, 0, 1]),
    ] {
        let mut out = out();
        let settings = SessionSettings { versions: ours, ..SessionSettings::default() };
        ControllerSession::new(&settings, crate::common::ms(0), &mut out).unwrap();
        assert_eq!(out.as_slice(), expected);
    }
}

#[test]
fn elements_of_a_hello_that_cannot_be_read_are_skipped() {
    const BITMAP: [u8; 8] = [0, 1, 0, 8, 0, 0, 0, 0x12];
    const LENGTH_ZERO: [u8; 8] = [0, 1, 0, 0, 0, 0, 0, 0];
    const PAST_END: [u8; 8] = [0, 7, 0, 64, 1, 2, 3, 4];
    const UNPADDED: [u8; 7] = [0, 7, 0, 7, 1, 2, 3];
    const UNKNOWN: [u8; 8] = [0, 9, 0, 6, 1, 2, 0, 0];
    for body in [
        LENGTH_ZERO.to_vec(),
        PAST_END.to_vec(),
        [&BITMAP[..], &LENGTH_ZERO].concat(),
        [&BITMAP[..], &PAST_END].concat(),
        [&UNPADDED[..], &BITMAP].concat(),
        [&UNKNOWN[..], &BITMAP].concat(),
        [&BITMAP[..], &UNPADDED].concat(),
    ] {
        let mut end = Alone::new(&SessionSettings::default());
        let message = raw(4, 0, 9, &body);
        assert!(matches!(end.give(&message), Ok(SessionEvent::Nothing)), "{body:?}");
        assert_eq!(end.controller.version(), Version::V1_3, "{body:?}");
        assert!(end.sent().iter().any(|sent| sent.contains("FeaturesRequest")), "{body:?}");
    }
}

#[test]
fn a_refusal_is_told_with_the_peers_text_whatever_its_version() {
    for version in [1, 4, 6] {
        let refusal = raw(version, 1, 1, b"\0\0\0\x01go\x1b[2J away");
        let mut fresh = Alone::new(&SessionSettings::default());
        let mut later = Alone::new(&SessionSettings::default());
        later.give(&hello(4, None)).unwrap();
        later.out.clear();
        for end in [&mut fresh, &mut later] {
            let Err(CloseReason::HelloRefused { code, text }) = end.give(&refusal) else {
                panic!("not refused");
            };
            assert_eq!(code, ErrorCode::HelloPermission);
            assert_eq!(&*text, "go\\u{1b}[2J away");
            assert!(end.sent().is_empty());
        }
    }
}

#[test]
fn a_first_message_other_than_hello_is_refused_at_its_header() {
    for (start, says) in [
        (&b"GET / HTTP/1.1\r\n"[..], "does not speak OpenFlow"),
        (&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01], "but TLS"),
        (&[0xff; 64], "does not speak OpenFlow"),
        (&[1, 5, 0, 8, 0, 0, 0, 1], "does not speak OpenFlow"),
        (&[4, 1, 0, 12, 0, 0, 0, 1, 0, 1, 0, 0], "does not speak OpenFlow"),
        (&[4, 0, 0xff, 0xff, 0, 0, 0, 1], "does not speak OpenFlow"),
    ] {
        let mut end = Alone::new(&SessionSettings::default());
        let close = end.controller.next(start, end.now, &mut end.out).unwrap_err();
        assert!(matches!(close, CloseReason::NotOpenFlow { .. }), "{close:?}");
        assert!(close.to_string().contains(says), "{close}");
        assert!(end.out.is_empty(), "nothing is said to a peer of another protocol");
    }
    let longest = raw(4, 0, 1, &hello_padding(usize::from(MAX_FIRST_MESSAGE_BYTES) - 8));
    assert!(Alone::new(&SessionSettings::default()).give(&longest).is_ok());
}

#[test]
fn the_versions_of_both_ends_are_reported() {
    for (theirs, text) in [
        (PeerVersions { header: 5, bitmap: Some(0x2c) }, "1.1, 1.2, 1.4"),
        (PeerVersions { header: 3, bitmap: None }, "up to 1.2"),
        (PeerVersions { header: 0x99, bitmap: None }, "up to wire version 0x99"),
        (PeerVersions { header: 4, bitmap: Some(0) }, "none"),
    ] {
        assert_eq!(theirs.to_string(), text);
        let close = CloseReason::NoCommonVersion { theirs, ours: Versions::ALL }.to_string();
        assert!(
            close.contains(&format!("the peer speaks {text}, this end 1.0 and 1.3;")),
            "{close}"
        );
    }
}

#[test]
fn a_second_hello_changes_nothing() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let again = raw(version.wire(), 0, 1, &[]);
        assert!(matches!(end.give(&again), Ok(SessionEvent::Nothing)));
        assert_eq!((end.version(), end.sent().len()), (version, 0));
        assert_eq!(end.controller.take_counters().unexpected, 1);
    }
}

/// An unknown element that fills a hello.
fn hello_padding(len: usize) -> Vec<u8> {
    let mut element = vec![0; len];
    element[..4].copy_from_slice(&[0, 9, (len >> 8) as u8, len as u8]);
    element
}

fn out() -> bellrock_openflow::Out {
    bellrock_openflow::Out::with_capacity(OUT_BYTES)
}
