//! Errors name the fault of a message: field, offset, reason, and the OpenFlow error to answer
//! with.

use crate::common::Direction::{self, FromSwitch as From, ToSwitch as To};
use crate::common::{Any, from_hex};
use bellrock_openflow::ErrorCode::*;
use bellrock_openflow::Reason::*;
use bellrock_openflow::{ErrorCode, Reason, frame};

/// Makes a message from version and type, and the bytes after the header. Sets its length.
fn message(head: &str, rest: &str) -> Vec<u8> {
    let rest = rest.replace(' ', "");
    let length = 8 + rest.len() / 2;
    from_hex(&format!("{head}{length:04x}00000007{rest}"))
}

/// Head and rest of a message, and its fault.
type Case = (Direction, &'static str, String, &'static str, usize, Reason, ErrorCode);

fn refused(cases: Vec<Case>) {
    for (direction, head, rest, what, offset, reason, answer) in cases {
        let error = Any::decode(direction, &message(head, &rest)).unwrap_err();
        let found = (error.what, error.offset, error.reason, error.answer);
        assert_eq!(found, (what, offset, reason, answer), "{head} {rest}");
    }
}

/// A flow_mod of 1.3 before its match: 40 bytes, command ADD.
const FLOW_MOD: &str =
    "0000000000000000 0000000000000000 00 00 0000 0000 0000 ffffffff ffffffff ffffffff 0000 0000";
/// A flow_mod of 1.0: match and all fields before the actions, 64 bytes.
const FLOW_MOD_10: &str = "003fffff 0000 000000000000 000000000000 0000 00 00 0000 00 00 0000 00000000 00000000 0000 0000 \
    0000000000000000 0000 0000 0000 0000 ffffffff ffff 0000";

/// The rest of a flow_mod of 1.3 with these OXM fields.
fn matching(fields: &str) -> String {
    let fields = fields.replace(' ', "");
    let length = 4 + fields.len() / 2;
    let padding = "00".repeat(length.next_multiple_of(8) - length);
    format!("{FLOW_MOD}0001{length:04x}{fields}{padding}")
}

/// The rest of a flow_mod of 1.3 that matches all, with these instructions.
fn instructions(instructions: &str) -> String {
    format!("{FLOW_MOD}0001000400000000{instructions}")
}

/// The rest of a flow_mod of 1.3 that applies these actions.
fn actions(actions: &str) -> String {
    let actions = actions.replace(' ', "");
    let length = 8 + actions.len() / 2;
    instructions(&format!("0004{length:04x}00000000{actions}"))
}

#[test]
fn headers() {
    let decode = |digits: &str| Any::decode(To, &from_hex(digits)).unwrap_err();
    let error = decode("04050008000000");
    assert_eq!((error.what, error.reason), ("header", Truncated { need: 8, have: 7 }));
    for (digits, length) in [("0405000900000001", 9), ("0405000700000001", 7)] {
        let error = decode(digits);
        let found = (error.what, error.offset, error.reason, error.answer);
        assert_eq!(found, ("header.length", 2, Length(length), RequestBadLength));
    }
    let error = decode("0205000800000001");
    let found = (error.what, error.offset, error.reason, error.answer);
    assert_eq!(found, ("header.version", 0, Version(2), RequestBadVersion));
    assert_eq!(frame(&from_hex("0405000000000001")).unwrap_err().reason, Length(0));
}

#[test]
fn types_that_an_end_does_not_receive() {
    let unexpected = |direction, head, kind| {
        (direction, head, String::new(), "header.type", 1, Unexpected(kind), RequestBadType)
    };
    refused(vec![
        unexpected(To, "0406", 6),
        unexpected(From, "0405", 5),
        unexpected(To, "041e", 30),
        unexpected(From, "04ff", 255),
        // 1.0 has no groups: 15 is port_mod, and 22 is unused.
        unexpected(From, "010f", 15),
        unexpected(To, "0116", 22),
    ]);
}

#[test]
#[rustfmt::skip]
fn bytes_left_over_and_bytes_missing() {
    refused(vec![
        (To, "0405", "00".into(), "message", 8, Trailing(1), RequestBadLength),
        (From, "0415", "0000".into(), "message", 8, Trailing(2), RequestBadLength),
        (To, "0109", "00000000ff".into(), "message", 12, Trailing(1), RequestBadLength),
        (To, "0409", "0000".into(), "switch config", 8, Truncated { need: 4, have: 2 }, RequestBadLength),
        (From, "0401", "0001".into(), "error", 8, Truncated { need: 4, have: 2 }, RequestBadLength),
        (From, "0401", "ffff0001".into(), "error.experimenter", 12, Truncated { need: 4, have: 0 }, RequestBadLength),
        (From, "0404", "00002320".into(), "experimenter type", 12, Truncated { need: 4, have: 0 }, RequestBadLength),
        (From, "010a", "ffffffff 0001 0001".into(), "packet_in", 8, Truncated { need: 10, have: 8 }, RequestBadLength),
        (From, "040a", "ffffffff 0001 00 00 0000000000000000 0001 0004 00000000 00".into(), "packet_in padding", 32, Truncated { need: 2, have: 1 }, RequestBadLength),
        (To, "040d", "ffffffff 00000001 0008 000000000000".into(), "packet_out actions", 24, Truncated { need: 8, have: 0 }, RequestBadLength),
        // Data in addition to a buffer.
        (To, "040d", "00000100 00000001 0000 000000000000 aa".into(), "packet_out data", 24, Trailing(1), RequestBadLength),
    ]);
}

#[test]
#[rustfmt::skip]
fn hello_elements() {
    refused(vec![
        (From, "0400", "0001000000000000".into(), "hello element", 8, Length(0), RequestBadLength),
        (From, "0400", "0001000300000000".into(), "hello element", 8, Length(3), RequestBadLength),
        (To, "0400", "0001000c00000012".into(), "hello element", 12, Truncated { need: 8, have: 4 }, RequestBadLength),
        (To, "0400", "0001".into(), "hello element", 8, Truncated { need: 4, have: 2 }, RequestBadLength),
    ]);
}

#[test]
#[rustfmt::skip]
fn matches() {
    refused(vec![
        (To, "040e", format!("{FLOW_MOD}0000000400000000"), "match.type", 48, Value(0), MatchBadType),
        (To, "040e", format!("{FLOW_MOD}0001000300000000"), "match.length", 48, Length(3), MatchBadLength),
        (To, "040e", format!("{FLOW_MOD}0001001000000000"), "match fields", 52, Truncated { need: 12, have: 4 }, MatchBadLength),
        (To, "040e", matching("80000004 00000001 80000004 00000002"), "in_port", 60, Duplicate, MatchDuplicateField),
        // ipv4_src without eth_type; tcp_dst with UDP; vlan_pcp of an untagged packet.
        (To, "040e", matching("80001604 0a000001"), "ipv4_src", 52, Prerequisite, MatchBadPrerequisite),
        (To, "040e", matching("80000a02 0800 80001401 11 80001c02 0050"), "tcp_dst", 63, Prerequisite, MatchBadPrerequisite),
        (To, "040e", matching("80000c02 0000 80000e01 03"), "vlan_pcp", 58, Prerequisite, MatchBadPrerequisite),
        // A prerequisite after the field that needs it.
        (To, "040e", matching("80001604 0a000001 80000a02 0800"), "ipv4_src", 52, Prerequisite, MatchBadPrerequisite),
        (To, "040e", matching("8000070c 020000000001 010000000000"), "eth_dst", 52, Mask, MatchBadWildcards),
        (To, "040e", matching("80000002 0001"), "in_port", 52, Length(2), MatchBadLength),
        (To, "040e", matching("80000706 010000000000"), "eth_dst", 52, Length(6), MatchBadLength),
        (To, "040e", matching("80000c02 2001"), "vlan_vid", 52, Value(0x2001), MatchBadValue),
        (To, "040e", matching("80000a02 0800 80001001 40"), "ip_dscp", 58, Value(0x40), MatchBadValue),
        (To, "040e", matching("80000004 0000"), "oxm value", 56, Truncated { need: 4, have: 2 }, MatchBadLength),
        (To, "040e", matching("8000"), "oxm header", 52, Truncated { need: 4, have: 2 }, MatchBadLength),
    ]);
}

#[test]
#[rustfmt::skip]
fn instructions_and_actions() {
    let output = "0000 0010 00000001 0000 000000000000";
    refused(vec![
        (To, "040e", instructions("0001000000000000"), "instruction.length", 56, Length(0), InstructionBadLength),
        (To, "040e", instructions("0001000c0000000000000000"), "instruction.length", 56, Length(12), InstructionBadLength),
        (To, "040e", instructions("0001001000000000"), "instruction", 60, Truncated { need: 12, have: 4 }, InstructionBadLength),
        (To, "040e", instructions("00010010 00000000 0000000000000000"), "instruction", 64, Trailing(8), InstructionBadLength),
        (To, "040e", instructions("0002000800000000"), "write_metadata", 60, Truncated { need: 20, have: 4 }, InstructionBadLength),
        (To, "040e", actions("0000000000000000"), "action.length", 64, Length(0), ActionBadLength),
        (To, "040e", actions("0000000400000000"), "action.length", 64, Length(4), ActionBadLength),
        (To, "040e", actions("0000001800000000"), "action", 68, Truncated { need: 20, have: 4 }, ActionBadLength),
        (To, "040e", actions("0000000800000001"), "output", 68, Truncated { need: 12, have: 4 }, ActionBadLength),
        (To, "040e", actions(&format!("{output} 0012001000000000 0000000000000000")), "action", 88, Trailing(8), ActionBadLength),
        (To, "010e", format!("{FLOW_MOD_10}0000000000000000"), "action.length", 72, Length(0), ActionBadLength),
        (To, "010e", format!("{FLOW_MOD_10}0000000c000100000000"), "action.length", 72, Length(12), ActionBadLength),
        // set_field: a mask, a value out of range, the length of another field, too much padding.
        (To, "040e", actions("0019 0010 80000f02 0101 000000000000"), "vlan_pcp", 68, Mask, ActionBadSetType),
        (To, "040e", actions("0019 0010 80000e01 08 00000000000000"), "vlan_pcp", 68, Value(8), ActionBadSetArgument),
        (To, "040e", actions("0019 0010 80000e02 0001 000000000000"), "vlan_pcp", 68, Length(2), ActionBadSetLength),
        (To, "040e", actions("0019 0018 80000e01 01 00000000000000 0000000000000000"), "set_field", 73, Length(20), ActionBadSetLength),
    ]);
}

#[test]
#[rustfmt::skip]
fn commands() {
    let command = |digits: &str| FLOW_MOD.replacen(" 00 00 0000", &format!(" 00 {digits} 0000"), 1);
    refused(vec![
        (To, "040e", format!("{}0001000400000000", command("05")), "flow_mod.command", 8, Value(5), FlowModBadCommand),
        (To, "010e", FLOW_MOD_10.replacen("0000000000000000 0000", "0000000000000000 0007", 1), "flow_mod.command", 48, Value(7), FlowModBadCommand),
        (To, "040f", "0003 00 00 00000001".into(), "group_mod.command", 8, Value(3), GroupModBadCommand),
        (To, "041d", "0003 0000 00000001".into(), "meter_mod.command", 8, Value(3), MeterModBadCommand),
    ]);
}

#[test]
#[rustfmt::skip]
fn groups_meters_and_queues() {
    let group = |bucket: &str| format!("0000 00 00 00000001 {bucket}");
    let meter = |band: &str| format!("0000 0000 00000001 {band}");
    refused(vec![
        (To, "040f", group("0000 0000 ffffffff ffffffff 00000000"), "bucket.length", 16, Length(0), GroupModBadBucket),
        (To, "040f", group("0018 0000 ffffffff ffffffff 00000000"), "bucket actions", 32, Truncated { need: 8, have: 0 }, GroupModBadBucket),
        (To, "040f", group("0018 0000 ffffffff ffffffff 00000000 0000000000000000"), "action.length", 32, Length(0), ActionBadLength),
        (To, "041d", meter("0001 0000 00000001 00000000 00000000"), "meter band length", 16, Length(0), RequestBadLength),
        (To, "041d", meter("0001 0014 00000001 00000000 00000000 00000000"), "meter band length", 16, Length(20), RequestBadLength),
        (From, "0417", "00000001 00000000 00000000 00000001 0000 000000000000".into(), "queue length", 16, Length(0), RequestBadLength),
        (From, "0417", "00000001 00000000 00000000 00000001 0018 000000000000 0001 0000 00000000".into(), "queue property", 32, Length(0), RequestBadLength),
        (From, "0115", "0001 000000000000 00000000 0010 0000 0001 0008 00000000".into(), "queue rate", 32, Truncated { need: 8, have: 0 }, RequestBadLength),
    ]);
}

#[test]
#[rustfmt::skip]
fn multipart() {
    let table = |length: &str, rest: &str| {
        format!(
            "000c 0000 00000000 {length} 00 0000000000 {} {} {rest}",
            "00".repeat(32),
            "00".repeat(24)
        )
    };
    refused(vec![
        (To, "0412", "1234 0000 00000000".into(), "multipart.type", 8, Value(0x1234), RequestBadMultipart),
        // 1.0 has no groups here either.
        (From, "0111", "0006 0000".into(), "multipart.type", 8, Value(6), RequestBadMultipart),
        (From, "0413", "0000 0000".into(), "multipart padding", 12, Truncated { need: 4, have: 0 }, RequestBadLength),
        (To, "0412", "0000 0000 00000000 ff".into(), "message", 16, Trailing(1), RequestBadLength),
        (From, "0413", format!("0001 0000 00000000 {}", "00".repeat(56)), "entry length", 16, Length(0), RequestBadLength),
        (From, "0111", format!("0001 0000 {}", "00".repeat(88)), "entry length", 12, Length(0), RequestBadLength),
        (From, "0413", format!("0006 0000 00000000 0027 {}", "00".repeat(38)), "entry length", 16, Length(39), RequestBadLength),
        (From, "0413", "ffff 0000 00000000 00002320".into(), "experimenter type", 20, Truncated { need: 4, have: 0 }, RequestBadLength),
        (From, "0413", table("0000", ""), "entry length", 16, Length(0), RequestBadLength),
        (From, "0413", table("0048", "0000000000000000"), "table property", 80, Length(0), TableFeaturesBadLength),
        (From, "0413", table("0048", "0008000600000000"), "oxm id", 84, Truncated { need: 4, have: 2 }, TableFeaturesBadLength),
        (From, "0413", table("0048", "00080008ffff0206"), "oxm experimenter", 88, Truncated { need: 4, have: 0 }, TableFeaturesBadLength),
        (From, "0413", table("0048", "0000000800010000"), "instruction id", 84, Length(0), TableFeaturesBadLength),
    ]);
}
