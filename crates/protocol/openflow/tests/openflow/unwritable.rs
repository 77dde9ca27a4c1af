//! Errors name what cannot be written, and the buffer stays empty.

use bellrock_openflow::{
    Action, Bytes, EncodeError, Field, FlowMod, FromSwitch, GroupCommand, GroupMod, GroupType,
    List, Match, Out, PacketInMessage, PacketInReason, PacketOut, Port, ToSwitch, Version,
};

/// Returns the error of writing this message in this version.
fn unwritable(message: &ToSwitch<'_>, version: Version) -> EncodeError {
    let mut out = Out::with_capacity(1 << 17);
    let error = message.encode(version, 1, &mut out).unwrap_err();
    assert!(out.is_empty(), "{error} left {} bytes", out.len());
    error
}

#[test]
fn the_error_names_the_part_that_the_version_lacks() {
    let v10 = Version::V1_0;
    let any = Match::any();
    let ipv6 = Match::any().eth_type(0x86dd).with(Field::Ipv6Flabel, 7);
    let group = [Action::Group(1)];
    let enqueue = [Action::Enqueue { port: Port(1), queue: 2 }];
    for (flow, version, what) in [
        (FlowMod::add(&any).table(1), v10, "a table other than 0"),
        (FlowMod::delete(&any).cookie_mask(1, 1), v10, "a cookie mask"),
        (FlowMod::add(&ipv6), v10, "ipv6_flabel"),
        (FlowMod::add(&any).actions(&group), v10, "groups"),
        (FlowMod::add(&any).out_port(Port(0x1_0000)), v10, "this port number"),
        (FlowMod::add(&any).actions(&enqueue), Version::V1_3, "enqueue (use set_queue and output)"),
    ] {
        let error = unwritable(&ToSwitch::FlowMod(flow), version);
        assert_eq!(error, EncodeError::Unsupported { what, version });
    }
    let (command, kind) = (GroupCommand::Add, GroupType::All);
    let group = ToSwitch::GroupMod(GroupMod { command, kind, group: 1, buckets: List::empty() });
    let what = "OFPT_GROUP_MOD";
    assert_eq!(unwritable(&group, v10), EncodeError::Unsupported { what, version: v10 });
    let packet = FromSwitch::PacketIn(PacketInMessage {
        buffer_id: None,
        total_len: 0,
        reason: PacketInReason::NoMatch,
        table: 1,
        cookie: PacketInMessage::NO_COOKIE,
        matching: (&any).into(),
        data: Bytes(&[]),
    });
    let mut out = Out::with_capacity(100);
    assert!(packet.encode(v10, 1, &mut out).is_err() && out.is_empty());
}

#[test]
fn values_that_do_not_fit_are_named() {
    let any = Match::any();
    for version in Version::ALL {
        let action = [Action::SetField(Field::IpDscp, 64)];
        let flow = ToSwitch::FlowMod(FlowMod::add(&any).actions(&action));
        assert_eq!(unwritable(&flow, version), EncodeError::Range { what: "ip_dscp" });
    }
    let value = Bytes(&[1, 2]);
    let action = [Action::SetUnknownField { header: 0x0002_0004, value }];
    let flow = ToSwitch::FlowMod(FlowMod::add(&any).actions(&action));
    assert!(matches!(unwritable(&flow, Version::V1_3), EncodeError::Range { .. }));
    let packet = |data: &'static [u8], buffer_id| {
        ToSwitch::PacketOut(PacketOut {
            buffer_id,
            in_port: Port::ANY,
            actions: List::empty(),
            data: Bytes(data),
        })
    };
    assert!(matches!(unwritable(&packet(&[1], Some(1)), Version::V1_3), EncodeError::Range { .. }));
    let long = unwritable(&packet(&[0; 65_520], None), Version::V1_3);
    assert_eq!(long, EncodeError::TooLong { what: "message" });
}
