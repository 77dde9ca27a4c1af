//! The whole command: its output for captures and lines of hex, and its result.

use std::io::Write as _;

use clap::Parser;

use super::super::command::{DecodeArgs, DecodeOutcome, decode};
use super::*;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    decode: DecodeArgs,
}

/// Output and result of the command for this input.
pub(super) fn run(flags: &[&str], input: &[u8]) -> (String, DecodeOutcome) {
    let cli = Cli::parse_from([&["decode"], flags].concat());
    let mut printed = Vec::new();
    let outcome = decode(&cli.decode, input, &mut printed, false).unwrap();
    (String::from_utf8(printed).unwrap(), outcome)
}

/// The failure of the command for this input, which prints nothing.
fn fail(flags: &[&str], input: &[u8]) -> String {
    let cli = Cli::parse_from([&["decode"], flags].concat());
    let mut printed = Vec::new();
    let failure = decode(&cli.decode, input, &mut printed, false).unwrap_err();
    assert_eq!(String::from_utf8(printed).unwrap(), "");
    failure.to_string()
}

const HELLO: &str = "04000010 00000001 00010008 00000012";
const BARRIER_REPLY: &str = "04150008 00000007";
/// A bucket of length zero.
const BAD_GROUP_MOD: &str =
    "040f0020 00000077 00000000 00000063 00000000 00000000 00000000 00000000";
/// An ARP request of 42 bytes, from port 1.
const PACKET_IN: &str = "040a0054 00000000 ffffffff 002a0000 0000000000000000 \
    0001000c 80000004 00000001 00000000 0000 \
    ffffffffffff 020000000001 0806 0001080006040001 0200000000010a000001 0000000000000a000002";

fn bytes(digits: &str) -> Vec<u8> {
    hex::messages(digits.as_bytes()).next().unwrap().unwrap().bytes
}

/// A capture of one switch that sends these messages in one segment.
fn capture(messages: &[&str]) -> Vec<u8> {
    let payload: Vec<u8> = messages.iter().flat_map(|digits| bytes(digits)).collect();
    const ETHERNET: u32 = 1;
    pcap(ETHERNET, [syn(99).ethernet(), seg(100, &payload).ethernet()])
}

#[test]
fn a_capture_prints_time_stream_and_message() {
    let (printed, outcome) = run(&[], &capture(&[HELLO, PACKET_IN]));
    assert_eq!(
        printed,
        "1.000000 10.0.0.1:40000 -> 10.0.0.2:6653: OFPT_HELLO (OF1.3) (xid=0x1): versions=1.0,1.3\n\
         1.000000 10.0.0.1:40000 -> 10.0.0.2:6653: OFPT_PACKET_IN (OF1.3) (xid=0x0): \
         table_id=0 cookie=0x0 total_len=42 in_port=1 (via no_match) data_len=42 (unbuffered)\n  \
         02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff, ARP, who has 10.0.0.2, tell 10.0.0.1\n"
    );
    assert_eq!(outcome, DecodeOutcome { messages: 2, faults: 0 });
}

#[test]
fn only_the_given_ports_are_read() {
    let file = capture(&[HELLO]);
    let error = fail(&["--port", "6633"], &file);
    assert!(error.starts_with("no OpenFlow on this port in 2 packets; TCP ports"), "{error}");
    assert!(error.contains("6653 (2)"), "{error}");
    assert_eq!(run(&["--port", "6633", "--port", "6653"], &file).1.messages, 1);
}

#[test]
fn the_direction_follows_from_the_port_or_the_flag() {
    // A switch sends no group_mod, whether well formed or not.
    let (printed, outcome) = run(&[], &capture(&[BAD_GROUP_MOD, BARRIER_REPLY]));
    assert_eq!(outcome, DecodeOutcome { messages: 1, faults: 1 });
    let (error, rest) = printed.split_once('\n').unwrap();
    assert_eq!(
        error,
        "error: 1.000000 10.0.0.1:40000 -> 10.0.0.2:6653: message at offset 0: header.type at byte 1: \
         message type 15 is not received by this end (OFPBRC_BAD_TYPE): \
         04 0f 00 20 00 00 00 77 00 00 00 00 00 00 00 63 ... (32 bytes)"
    );
    assert!(rest.contains("OFPT_BARRIER_REPLY (OF1.3) (xid=0x7)\n"), "{rest}");
    let (printed, _) = run(&["--direction", "to-switch"], &capture(&[BAD_GROUP_MOD]));
    assert!(printed.contains("bucket.length at byte 16: length 0"), "{printed}");
}

#[test]
fn lines_of_hex_go_by_the_type_and_bad_ones_name_their_line() {
    let input = format!("# a comment\n{HELLO}\n{BAD_GROUP_MOD}\nxy\n{BARRIER_REPLY}\n");
    let (printed, outcome) = run(&[], input.as_bytes());
    assert_eq!(
        printed,
        "OFPT_HELLO (OF1.3) (xid=0x1): versions=1.0,1.3\n\
         error: line 3: bucket.length at byte 16: length 0 is not possible here \
         (OFPGMFC_BAD_BUCKET): 04 0f 00 20 00 00 00 77 00 00 00 00 00 00 00 63 ... (32 bytes)\n\
         error: line 4, column 1: 'x' is not a hexadecimal digit, a blank, a colon or the start of a \
         comment\n\
         OFPT_BARRIER_REPLY (OF1.3) (xid=0x7)\n"
    );
    assert_eq!(outcome, DecodeOutcome { messages: 2, faults: 2 });
}

#[test]
fn a_hello_of_any_version_is_read() {
    let (printed, outcome) = run(&[], b"06000010 00000001 00010008 00000052\n0300000800000002\n");
    assert_eq!(
        printed,
        "OFPT_HELLO (OF1.5) (xid=0x1): versions=1.0,1.3,1.5\n\
         OFPT_HELLO (OF1.2) (xid=0x2): version=1.2\n"
    );
    assert_eq!(outcome.faults, 0);
    let (printed, outcome) = run(&[], b"0602000800000001\n");
    assert!(printed.contains("header.version at byte 0: version 0x06 is not spoken"), "{printed}");
    assert_eq!(outcome.faults, 1);
}

#[test]
fn json_is_an_object_a_line() {
    let (printed, _) = run(&["--json"], &capture(&[PACKET_IN, BAD_GROUP_MOD]));
    let lines: Vec<serde_json::Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [packet_in, error] = lines.as_slice() else { panic!("{printed}") };
    assert_eq!(packet_in["time"], "1.000000");
    assert!(packet_in["packet"].as_str().unwrap().contains("who has 10.0.0.2"), "{printed}");
    assert_eq!(packet_in["src"], "10.0.0.1:40000");
    assert_eq!(packet_in["type"], "packet_in");
    assert_eq!(packet_in["body"]["matching"]["in_port"], 1);
    assert_eq!(packet_in["body"]["data"].as_str().unwrap().len(), 84);
    assert_eq!((&error["offset"], &error["at"]), (&84.into(), &1.into()));
    assert_eq!(error["answer"], "OFPBRC_BAD_TYPE");
    let (printed, _) = run(&["--json"], b"05000008 00000009\nx\n");
    let mut lines = printed.lines();
    assert_eq!(
        lines.next(),
        Some(r#"{"body":{"elements":[]},"line":1,"type":"hello","version":"1.4","xid":9}"#)
    );
    assert!(lines.next().unwrap().starts_with(r#"{"error":"line 2, column 1: "#));
}

#[test]
fn data_is_printed_when_it_is_asked_for() {
    let (printed, _) = run(&["--data"], PACKET_IN.as_bytes());
    assert!(printed.contains("(unbuffered)\n  \
        02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff, ARP, who has 10.0.0.2, tell 10.0.0.1\n  0000  ff ff ff ff ff ff 02 00"), "{printed}");
    assert!(printed.ends_with("\n  0020  00 00 00 00 00 00 0a 00 00 02\n"), "{printed}");
}

#[test]
fn a_capture_that_ends_too_early_prints_what_it_has() {
    let file = capture(&[HELLO, PACKET_IN]);
    let (printed, outcome) = run(&[], &file[..file.len() - 1]);
    assert!(outcome.faults > 0 && outcome.messages == 0, "{printed}");
    assert!(printed.contains("the file is cut off"), "{printed}");
}

#[test]
fn output_that_fails_ends_the_command() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let cli = Cli::parse_from(["decode"]);
    let failure = decode(&cli.decode, BARRIER_REPLY.as_bytes(), Full, false).unwrap_err();
    assert!(failure.to_string().starts_with("cannot write"), "{failure}");
}

#[test]
fn a_compressed_capture_is_read_too() {
    use flate2::{Compression, write::GzEncoder};
    let pack = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let file = capture(&[HELLO, PACKET_IN]);
    assert_eq!(run(&[], &pack(&file)), run(&[], &file));
    assert_eq!(run(&[], &pack(HELLO.as_bytes())), run(&[], HELLO.as_bytes()));
    let packed = pack(&file);
    let cli = Cli::parse_from(["decode"]);
    let failure = decode(&cli.decode, &packed[..packed.len() / 2], Vec::new(), false).unwrap_err();
    assert!(failure.to_string().starts_with("cannot read"), "{failure}");
}

#[test]
fn times_count_from_what_the_flag_says() {
    let file = capture(&[BARRIER_REPLY]);
    for (flag, time) in [
        ("relative", "1.000000 "),
        ("absolute", "1970-01-01T00:00:02.250000Z "),
        ("epoch", "2.250000 "),
    ] {
        let (printed, _) = run(&["--time", flag], &file);
        assert!(printed.starts_with(time), "{printed}");
    }
}

const FEATURES_REPLY: &str =
    "04060020 00000003 00000000000000a1 00000000 fe000000 00000047 00000000";

#[test]
fn messages_are_filtered_by_type_switch_and_connection() {
    let file = capture(&[HELLO, FEATURES_REPLY, PACKET_IN]);
    let types = |flags: &[&str]| -> Vec<String> {
        let (printed, _) = run(flags, &file);
        let heads = printed.lines().filter_map(|line| line.split("OFPT_").nth(1));
        heads.map(|head| head.split(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(types(&["--type", "packet_in,hello"]), ["HELLO", "PACKET_IN"]);
    // The hello comes before the switch is known.
    for name in ["a1", "0xa1", "10.0.0.1", "10.0.0.1:40000"] {
        assert_eq!(types(&["--switch", name]), ["HELLO", "FEATURES_REPLY", "PACKET_IN"], "{name}");
    }
    assert_eq!(types(&["--connection", "10.0.0.1:40000", "--type", "hello"]), ["HELLO"]);
    for flags in [
        &["--switch", "a2"][..],
        &["--switch", "10.0.0.2"],
        &["--connection", "10.0.0.1:40001"],
        &["--type", "flow_mod"],
    ] {
        let error = fail(flags, &file);
        assert!(error.starts_with("none of the 3 messages matches"), "{flags:?}: {error}");
    }
}

#[test]
fn messages_whose_switch_never_is_known_are_counted() {
    let file = capture(&[HELLO, PACKET_IN]);
    let cli = Cli::parse_from(["decode", "--switch", "a1"]);
    let mut printed = Vec::new();
    let failure = decode(&cli.decode, &file[..], &mut printed, false).unwrap_err();
    assert!(failure.to_string().starts_with("none of the 2 messages"), "{failure}");
    let printed = String::from_utf8(printed).unwrap();
    assert!(printed.starts_with("note: 2 messages left out: "), "{printed}");
}

#[test]
fn nothing_is_never_a_success() {
    assert!(fail(&[], b"").starts_with("no message: neither a capture nor"));
    assert!(fail(&[], b"# only a comment\n").starts_with("no message"));
    assert!(fail(&["--type", "hello"], BARRIER_REPLY.as_bytes()).starts_with("none of the 1 "));
    assert!(fail(&[], b"\x7fELF and more").starts_with("this is neither a capture"));
    let log = "2026-11-22 INFO switch up\n".repeat(33);
    assert!(fail(&[], log.as_bytes()).starts_with("this is neither a capture"));
    // A single line, as by a slip of the keyboard, is named.
    let (printed, outcome) = run(&[], b"no message\n");
    assert!(printed.contains("line 1, column 1: 'n' is not a hexadecimal digit"), "{printed}");
    assert_eq!((outcome.messages, outcome.faults), (0, 1));
    assert!(fail(&["--switch", "a1"], BARRIER_REPLY.as_bytes()).contains("need a capture"));
    assert_eq!(fail(&[], &pcap(1, [])), "the capture has no packets");
    let web = pcap(
        1,
        [port(443, syn(9)), port(443, seg(10, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03"))],
    );
    let error = fail(&[], &web);
    assert!(error.starts_with("no OpenFlow in 2 packets; TCP ports and their packets: 443 (2)"));
    assert!(error.contains("--port PORT reads"), "{error}");
    let (printed, outcome) = run(&["--port", "443"], &web);
    assert!(printed.contains("(this is TLS: tshark decrypts it"), "{printed}");
    assert_eq!(outcome.messages, 0);
}

#[test]
fn a_message_that_says_something_odd_is_printed_with_a_remark() {
    let packet_out = "040d0036 00000005 00000100 00000001 0010 000000000000 \
        00000010 fffffffb 0000 000000000000 ffffffffffff0200000000010806";
    let (printed, outcome) = run(&[], packet_out.as_bytes());
    assert_eq!(
        printed,
        "OFPT_PACKET_OUT (OF1.3) (xid=0x5): in_port=1 actions=FLOOD buffer=0x00000100 data_len=14\n  \
         02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff, ARP, cut off or broken behind this\n  \
         remark: packet_out data at byte 40: 14 bytes left over (OFPBRC_BAD_LEN)\n"
    );
    assert_eq!(outcome, DecodeOutcome { messages: 1, faults: 0 });
    // A match that a switch may report, but a controller may not send.
    let removed = "040b0040 00000000 0000000000000055 000a 02 00 0000003c 00000000 0000 0000 \
        0000000000000001 0000000000000040 0001000c 80001604 0a000001 00000000";
    let (printed, outcome) = run(&["--json"], removed.as_bytes());
    let object: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(object["body"]["matching"]["ipv4_src"], "10.0.0.1");
    let remark = object["remark"].as_str().unwrap();
    assert!(remark.contains("ipv4_src at byte 52") && remark.contains("OFPBMC_BAD_PREREQ"));
    assert_eq!(outcome, DecodeOutcome { messages: 1, faults: 0 });
    // A message that cannot be framed is still an error.
    let (printed, outcome) = run(&[], b"04150009 00000007 00");
    assert!(printed.starts_with("error: line 1: "), "{printed}");
    assert_eq!(outcome, DecodeOutcome { messages: 0, faults: 1 });
}
