//! Messages that are written read as the same, and vice versa. Random bytes do no harm.

use std::collections::HashSet;

use crate::common::generate::{action, encoded, from_switch, to_switch};
use crate::common::matches::matching;
use crate::common::{Any, encode, exercise, patch_length};
use bellrock_openflow::{Action, FromSwitch, MessageKind, MultipartKind, Port, ToSwitch, Version};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn messages_of_a_switch_round_trip(
        (version, message) in proptest::sample::select(&VERSIONS)
            .prop_flat_map(|version| (Just(version), from_switch(version))),
        xid: u32,
    ) {
        let bytes = encode(|out| message.encode(version, xid, out));
        let read = FromSwitch::decode(&bytes).unwrap();
        prop_assert_eq!((read.version, read.xid, read.body), (version, xid, message));
        prop_assert_eq!(Any::From(read).encode(), bytes);
    }

    #[test]
    fn messages_of_a_controller_round_trip(
        (version, message) in proptest::sample::select(&VERSIONS)
            .prop_flat_map(|version| (Just(version), to_switch(version))),
        xid: u32,
    ) {
        let bytes = encode(|out| message.encode(version, xid, out));
        let read = ToSwitch::decode(&bytes).unwrap();
        prop_assert_eq!((read.version, read.xid, read.body), (version, xid, message));
        prop_assert_eq!(Any::To(read).encode(), bytes);
    }

    #[test]
    fn matches_read_as_they_print(view in matching(Version::V1_3)) {
        let matching = view.to_match();
        prop_assert_eq!(matching.to_string().parse(), Ok(matching));
    }

    #[test]
    fn actions_read_as_they_print(action in action(Version::V1_3)) {
        let text = action.to_string();
        match action {
            // Bytes without a meaning here are not for operators to write.
            Action::Unknown { .. } | Action::Experimenter { .. } | Action::SetUnknownField { .. } => {}
            Action::Output { port: Port::ANY, .. } => {}
            Action::Output { port, .. } if port != Port::CONTROLLER => {
                prop_assert_eq!(text.parse(), Ok(Action::output(port)));
            }
            action => prop_assert_eq!(text.parse(), Ok(action)),
        }
    }

    #[test]
    fn messages_print(message in encoded()) {
        prop_assert!(exercise(&message.1));
    }

    #[test]
    fn any_bytes_do_no_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), v13: bool) {
        exercise(&bytes);
        patch_length(&mut bytes);
        if let Some(version) = bytes.first_mut() {
            *version = if v13 { 4 } else { 1 };
        }
        exercise(&bytes);
    }

    #[test]
    fn damaged_messages_do_no_harm(
        (_, mut bytes) in encoded(),
        damage in proptest::collection::vec(any::<(prop::sample::Index, u8)>(), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        exercise(&bytes);
        patch_length(&mut bytes);
        exercise(&bytes);
    }
}

/// The properties above do not test a kind that is never generated.
#[test]
fn every_kind_of_message_is_generated() {
    let mut runner = TestRunner::deterministic();
    for version in VERSIONS {
        let (mut kinds, mut parts) = (HashSet::new(), HashSet::new());
        for _ in 0..2000 {
            let from = from_switch(version).new_tree(&mut runner).unwrap().current();
            let to = to_switch(version).new_tree(&mut runner).unwrap().current();
            kinds.extend([from.kind(), to.kind()]);
            if let FromSwitch::MultipartReply(reply) = from {
                parts.insert((true, reply.body.kind()));
            }
            if let ToSwitch::MultipartRequest(request) = to {
                parts.insert((false, request.body.kind()));
            }
        }
        for kind in MessageKind::ALL {
            assert_eq!(kinds.contains(kind), kind.wire(version).is_some(), "{version} {kind:?}");
        }
        for kind in MultipartKind::ALL {
            for reply in [false, true] {
                let generated = parts.contains(&(reply, *kind));
                assert_eq!(generated, kind.wire(version).is_some(), "{version} {kind:?} {reply}");
            }
        }
    }
}
