//! Conversations of a standby, and requests for roles, in both versions.

use crate::common::{Alone, Pair, VERSIONS, bytes, description, last_xid, to_switch};
use bellrock_openflow::{
    Bytes, EncodeError, ErrorCode, ErrorMessage, FromSwitch, MessageKind, Out, RequestKind,
    RoleExtension, RoleKind, RoleMessage, RoleReason, RoleStatus, ToSwitch, Version,
};
use bellrock_session::{FirstRole, SessionEvent, SessionSettings, Versions};

/// Owner of the requests.
const OWNER: u8 = 9;

fn standby() -> SessionSettings {
    SessionSettings { first_role: FirstRole::Standby, ..SessionSettings::default() }
}

fn role(role: RoleKind, generation_id: u64) -> RoleMessage {
    RoleMessage { role, generation_id }
}

/// The bytes of an extension's message.
fn extension(version: Version, xid: u32, message: RoleExtension) -> Vec<u8> {
    let mut out = Out::with_capacity(64);
    message.write(version, xid, &mut out).unwrap();
    out.as_slice().to_vec()
}

/// What the controller's end sends in its handshake.
fn handshake(version: Version, settings: &SessionSettings) -> Vec<MessageKind> {
    let mut pair = Pair::new(settings, description(version, 2), Versions::only(version));
    let mut sent = Vec::new();
    while !pair.controller.is_ready() {
        sent.extend(to_switch(pair.down.as_slice(), |_, _, body| body.kind()));
        let mut bytes = pair.down.as_slice();
        while let Some((used, _)) = pair.switch.next(bytes, &mut pair.up).unwrap() {
            bytes = &bytes[used..];
        }
        pair.down.clear();
        let mut bytes = pair.up.as_slice();
        while let Some((used, _)) = pair.controller.next(bytes, pair.now, &mut pair.down).unwrap() {
            bytes = &bytes[used..];
        }
        pair.up.clear();
    }
    assert_eq!(pair.controller.take_switch(), Some(description(version, 2)));
    sent
}

#[test]
fn the_handshake_of_a_standby_only_reads() {
    use MessageKind::{BarrierRequest, FeaturesRequest, Hello, MultipartRequest, SetConfig};
    for version in VERSIONS {
        let requests = if version == Version::V1_0 { 1 } else { 2 };
        let read = [vec![MultipartRequest; requests], vec![BarrierRequest]].concat();
        let begin = [Hello, FeaturesRequest];
        assert_eq!(handshake(version, &standby()), [&begin[..], &read].concat());
        let equal = handshake(version, &SessionSettings::default());
        assert_eq!(equal, [&begin[..], &[SetConfig], &read].concat());
    }
}

#[test]
fn a_standby_configures_the_switch_when_it_takes_over() {
    for version in VERSIONS {
        let settings = SessionSettings { miss_send_len: 77, ..standby() };
        let mut pair = Pair::new(&settings, description(version, 2), Versions::only(version));
        pair.run().unwrap();
        assert_eq!(pair.switch.config().miss_send_len, 128);
        pair.controller.configure(&mut pair.down).unwrap();
        pair.run().unwrap();
        assert_eq!(pair.switch.config().miss_send_len, 77);
    }
}

#[test]
fn a_role_is_requested_in_the_form_of_the_version_and_answered_by_one_event() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &standby());
        let wanted = role(RoleKind::Master, 7);
        let xid = end.controller.request_role(OWNER, wanted, end.now, &mut end.out).unwrap();
        let request = match version {
            Version::V1_0 => extension(version, xid, RoleExtension::Request(RoleKind::Master)),
            Version::V1_3 => {
                let mut out = Out::with_capacity(64);
                ToSwitch::RoleRequest(wanted).encode(version, xid, &mut out).unwrap();
                out.as_slice().to_vec()
            }
        };
        assert!(end.out.as_slice().starts_with(&request));
        let kinds = to_switch(end.out.as_slice(), |_, _, body| body.kind());
        assert_eq!(kinds.last(), Some(&MessageKind::BarrierRequest));
        let (answer, expected) = match version {
            Version::V1_0 => {
                let reply = RoleExtension::Reply(RoleKind::Master);
                (extension(version, xid, reply), role(RoleKind::Master, RoleMessage::NO_GENERATION))
            }
            Version::V1_3 => (bytes(version, xid, &FromSwitch::RoleReply(wanted)), wanted),
        };
        // An answer to no request is none.
        let other = match version {
            Version::V1_0 => extension(version, 99, RoleExtension::Reply(RoleKind::Master)),
            Version::V1_3 => bytes(version, 99, &FromSwitch::RoleReply(wanted)),
        };
        let event = end.give(&other);
        assert!(!matches!(event, Ok(SessionEvent::Role { .. })), "{event:?}");
        let event = end.give(&answer);
        assert!(
            matches!(event, Ok(SessionEvent::Role { xid: its, role })
            if its == xid && role == expected),
            "{event:?}"
        );
        assert_eq!(end.controller.unanswered().count(), 0);
        assert_eq!(expected.generation(), (version == Version::V1_3).then_some(7));
    }
}

#[test]
fn a_switch_without_roles_refuses_or_is_silent() {
    for version in VERSIONS {
        let kind = match version {
            Version::V1_0 => RequestKind::Experimenter,
            Version::V1_3 => RequestKind::Role,
        };
        let mut end = Alone::ready(version, &standby());
        let wanted = role(RoleKind::Slave, 7);
        let asked = end.controller.request_role(OWNER, wanted, end.now, &mut end.out).unwrap();
        let (code, data) = (ErrorCode::RequestBadExperimenter, Bytes(&[]));
        let error = FromSwitch::Error(ErrorMessage::Standard { code, data });
        let error = bytes(version, asked, &error);
        let event = end.give(&error);
        assert!(
            matches!(event, Ok(SessionEvent::Error { xid, request: Some(its), .. })
            if xid == asked && its == kind),
            "{event:?}"
        );
        end.out.clear();
        let asked = end.controller.request_role(OWNER, wanted, end.now, &mut end.out).unwrap();
        let barrier = bytes(version, last_xid(&end.out), &FromSwitch::BarrierReply);
        let event = end.give(&barrier);
        assert!(
            matches!(event, Ok(SessionEvent::Silent { xid, kind: its })
            if xid == asked && its == kind),
            "{event:?}"
        );
    }
}

#[test]
fn the_version_without_a_question_for_the_role_says_so() {
    let mut end = Alone::ready(Version::V1_0, &standby());
    let asked =
        end.controller.request_role(OWNER, role(RoleKind::NoChange, 0), end.now, &mut end.out);
    assert!(matches!(asked, Err(EncodeError::Unsupported { .. })), "{asked:?}");
    assert!(end.out.is_empty());
    assert_eq!(end.controller.unanswered().count(), 0);
}

#[test]
fn a_change_of_role_is_an_event_and_a_cut_one_is_not() {
    let status = RoleStatus { role: role(RoleKind::Slave, 9), reason: RoleReason::MasterRequest };
    let message = extension(Version::V1_3, 0, RoleExtension::Status(status));
    let mut end = Alone::ready(Version::V1_3, &SessionSettings::default());
    let event = end.give(&message);
    assert!(matches!(event, Ok(SessionEvent::RoleStatus(its)) if its == status), "{event:?}");
    let mut cut = message[..message.len() - 8].to_vec();
    cut[3] -= 8;
    let event = end.give(&cut);
    assert!(matches!(event, Ok(SessionEvent::Experimenter { requested: false, .. })), "{event:?}");
}
