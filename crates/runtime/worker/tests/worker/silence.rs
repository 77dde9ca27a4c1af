//! Switches that do not answer the requests before they come up.

use std::time::Duration;

use crate::lab::{Lab, Notes, SwitchId, told};
use bellrock_api::openflow::{Bytes, PortStatus};
use bellrock_api::openflow::{
    ErrorCode, ErrorMessage, FixedStr, FromSwitch, List, MacAddr, MultipartKind, MultipartReply,
    Out, PortDesc, PortReason, ReplyBody,
};
use bellrock_api::{
    App, Cookie, EarlierFlows, FlowStats, Handler, Network, PacketIn, Port, Result, Switch,
    SwitchInfo, Verdict, Version,
};
use bellrock_session::SwitchDescription;

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

/// Maximum time that packets wait for a missing answer.
const LONGEST: Duration = Duration::from_millis(200);

/// Requests to a switch before it is up, except for its features.
const QUESTIONS: [MultipartKind; 3] =
    [MultipartKind::Desc, MultipartKind::PortDesc, MultipartKind::Flow];

#[derive(Clone, Default)]
struct Learns(Notes);

impl App for Learns {
    type Handler = Learns;
    fn name(&self) -> &'static str {
        "learns"
    }
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Adopt
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Learns {
        self.clone()
    }
}

impl Handler for Learns {
    fn adopt(&mut self, _: &mut Switch<'_>, flow: &FlowStats<'_>) -> Result<bool> {
        self.0.note(format!("asked {}", flow.priority));
        Ok(true)
    }

    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.0.note(format!("up with {} ports", switch.info().ports.len()));
        Ok(())
    }

    fn packet_in(&mut self, _: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        self.0.note(format!("packet {}", packet.data()[0]));
        Ok(Verdict::Consume)
    }

    fn port_status(&mut self, switch: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        let description = &switch.info().description.datapath;
        self.0.note(format!("port {} {:?} of {description:?}", status.desc.port, status.reason));
        Ok(())
    }
}

fn lab() -> (Lab, Notes) {
    let app = Learns::default();
    let notes = app.0.clone();
    (Lab::with_app(app), notes)
}

/// A switch with a port. It sends these packets as soon as it has answered the features request,
/// before it answers anything else.
fn connect(lab: &mut Lab, version: Version, packets: u8) -> SwitchId {
    let port = PortDesc::new(Port(1), MacAddr([2, 0, 0, 0, 0, 1]), FixedStr::new("eth1"));
    let description = SwitchDescription { ports: vec![port], ..SwitchDescription::new(5) };
    let s = lab.connect(0, version, description);
    for number in 0..packets {
        lab.early_packet_in(s, 1, &[number; 60]);
    }
    s
}

fn packets(numbers: std::ops::Range<u8>) -> impl Iterator<Item = String> {
    numbers.map(|number| format!("packet {number}"))
}

/// cbench answers features, description, barriers and echoes, and ignores all other requests. It
/// sends packets right after its features; the first one is needed to learn where all others go.
#[test]
fn a_switch_that_answers_what_cbench_answers_is_up_at_once_and_loses_no_packet() {
    for version in VERSIONS {
        let (mut lab, notes) = lab();
        let s = connect(&mut lab, version, 200);
        lab.switches[s].ignored = vec![MultipartKind::Flow, MultipartKind::PortDesc];
        // No time passes.
        lab.run();
        let ports = if version == Version::V1_0 { 1 } else { 0 };
        let mut expected = vec![format!("up with {ports} ports")];
        expected.extend(packets(0..200));
        assert_eq!(notes.take(), expected, "{version}");
        assert_eq!(lab.counters("packet_ins_early"), [0]);
    }
}

/// Each request alone unanswered, with its barrier answered.
#[test]
fn no_question_keeps_a_switch_from_coming_up() {
    for version in VERSIONS {
        for ignored in QUESTIONS {
            let (mut lab, notes) = lab();
            let s = connect(&mut lab, version, 1);
            lab.switches[s].ignored = vec![ignored];
            lab.run();
            let has_none = version == Version::V1_3 && ignored == MultipartKind::PortDesc;
            let up = format!("up with {} ports", u8::from(!has_none));
            assert_eq!(notes.take(), [up.as_str(), "packet 0"], "{version} {ignored:?}");
        }
    }
}

/// The same without barriers: waiting packets shorten the total wait.
#[test]
fn without_barriers_packets_wait_200_ms_at_the_most() {
    for version in VERSIONS {
        let (mut lab, notes) = lab();
        let s = connect(&mut lab, version, 100);
        lab.switches[s].ignored = QUESTIONS.to_vec();
        lab.switches[s].ignored_barriers = Some(Vec::new());
        lab.run();
        assert_eq!(notes.take(), Vec::<String>::new());
        lab.advance(LONGEST);
        assert!(!lab.is_closed(s));
        let seen = notes.take();
        assert!(seen[0].starts_with("up"), "{version} {seen:?}");
        assert_eq!(seen[1..], packets(0..100).collect::<Vec<_>>());
        assert_eq!(lab.counters("packet_ins_early"), [0]);
    }
}

/// Without packets, only the switch waits.
#[test]
fn without_barriers_and_packets_a_switch_has_its_time() {
    for version in VERSIONS {
        let (mut lab, notes) = lab();
        let s = connect(&mut lab, version, 0);
        lab.switches[s].ignored = QUESTIONS.to_vec();
        lab.switches[s].ignored_barriers = Some(Vec::new());
        lab.advance(Duration::from_secs(4));
        assert_eq!(notes.take(), Vec::<String>::new());
        lab.advance(Duration::from_secs(7));
        assert!(notes.take()[0].starts_with("up"));
    }
}

/// A slow switch with packets comes up first. Its flows of an earlier run are adopted when it
/// reports them; flows younger than the connection belong to this run.
#[test]
fn flows_that_are_reported_after_the_switch_is_up_are_adopted_then() {
    for version in VERSIONS {
        let (mut lab, notes) = lab();
        let s = connect(&mut lab, version, 1);
        lab.switches[s].flows = None;
        lab.advance(LONGEST);
        assert_eq!(notes.take(), ["up with 1 ports", "packet 0"]);
        let mine = Cookie::of_app("learns").with(1);
        // They are 1 s old.
        report(&mut lab, version, s, &[(mine, 0xf010, Port(2)), (0xdead, 0xf011, Port(2))]);
        assert_eq!(notes.take(), ["asked 16"]);
        assert_eq!(lab.counters("flows_adopted"), [1]);

        // Later, a flow of the same age belongs to this run.
        let s = connect_again(&mut lab, version);
        lab.switches[s].flows = None;
        lab.packet_in(s, 1, None, &[9; 60]);
        lab.advance(Duration::from_secs(3));
        notes.take();
        lab.flow_mods(s);
        report(&mut lab, version, s, &[(mine, 0xf010, Port(2))]);
        assert_eq!(notes.take(), Vec::<String>::new());
        assert_eq!(lab.flow_mods(s), []);
    }
}

fn connect_again(lab: &mut Lab, version: Version) -> SwitchId {
    let s = lab.connect(0, version, SwitchDescription::new(6));
    lab.switches[s].flows = None;
    lab.run();
    s
}

fn report(lab: &mut Lab, version: Version, s: SwitchId, flows: &[(u64, u16, Port)]) {
    let flows = told(version, flows);
    lab.report(s, version, &flows);
    lab.run();
}

/// A refusal, or an answer that cannot be decoded, ends the wait too.
#[test]
fn a_refusal_and_an_answer_that_cannot_be_read_let_the_switch_come_up() {
    for version in VERSIONS {
        for is_refused in [true, false] {
            let (mut lab, notes) = lab();
            let s = connect(&mut lab, version, 1);
            lab.switches[s].flows = None;
            lab.run();
            let xid = lab.switches[s].asked_for_flows.unwrap();
            let mut out = Out::with_capacity(1 << 10);
            if is_refused {
                let (code, data) = (ErrorCode::RequestBadMultipart, Bytes(&[]));
                let error = FromSwitch::Error(ErrorMessage::Standard { code, data });
                error.encode(version, xid, &mut out).unwrap();
            } else {
                let flows = told(version, &[(1, 2, Port(3))]);
                let body = ReplyBody::decode_parts(version, MultipartKind::Flow, &flows).unwrap();
                let reply = FromSwitch::MultipartReply(MultipartReply::of(body));
                reply.encode(version, xid, &mut out).unwrap();
            }
            let mut bytes = out.as_slice().to_vec();
            if !is_refused {
                // Half a flow.
                bytes.truncate(bytes.len() - 8);
                let length = u16::try_from(bytes.len()).unwrap();
                bytes[2..4].copy_from_slice(&length.to_be_bytes());
            }
            lab.send_bytes(s, &bytes);
            lab.run();
            assert_eq!(notes.take(), ["up with 1 ports", "packet 0"], "{version} {is_refused}");
        }
    }
}

/// Ports and texts that come after the switch is up are used from then on.
#[test]
fn a_description_that_comes_late_is_taken() {
    let version = Version::V1_3;
    let (mut lab, notes) = lab();
    let s = connect(&mut lab, version, 1);
    lab.switches[s].ignored = QUESTIONS.to_vec();
    lab.switches[s].ignored_barriers = Some(Vec::new());
    lab.advance(LONGEST);
    assert_eq!(notes.take(), ["up with 0 ports", "packet 0"]);
    let asked = lab.switches[s].ignored_xids.clone();
    let texts = bellrock_api::openflow::DescBuf::new("", "", "", "", "late");
    let port = |number| PortDesc::new(Port(number), MacAddr([2; 6]), FixedStr::new("eth"));
    let ports = [port(1), port(2)];
    let answers = [ReplyBody::Desc(texts.view()), ReplyBody::PortDesc(List::of(&ports))];
    for (xid, body) in asked.into_iter().zip(answers) {
        let mut out = Out::with_capacity(1 << 12);
        let reply = FromSwitch::MultipartReply(MultipartReply::of(body));
        reply.encode(version, xid, &mut out).unwrap();
        lab.send_bytes(s, out.as_slice());
        lab.run();
    }
    assert_eq!(notes.take(), ["port 1 Add of \"late\"", "port 2 Add of \"late\""]);
    let switches = lab.shared.network().switches();
    let info = switches.iter().next().unwrap();
    assert_eq!((info.ports.len(), &*info.description.datapath), (2, "late"));
}

fn status(reason: PortReason) -> FromSwitch<'static> {
    let desc = PortDesc::new(Port(1), MacAddr([2, 0, 0, 0, 0, 1]), FixedStr::new("eth1"));
    FromSwitch::PortStatus(PortStatus { reason, desc })
}

/// An app learns a host from the first packet. The port change behind it means that the host is
/// gone.
#[test]
fn the_status_of_a_port_keeps_its_place_between_early_packets() {
    let in_order = ["packet 0", "port 1 Delete of \"\"", "packet 1"];
    for version in VERSIONS {
        // In the handshake.
        let (mut lab, notes) = lab();
        let s = connect(&mut lab, version, 1);
        lab.early_message(s, &status(PortReason::Delete));
        lab.early_packet_in(s, 2, &[1; 60]);
        lab.run();
        let seen = notes.take();
        assert_eq!(
            (seen[0].as_str(), &seen[1..]),
            ("up with 0 ports", &in_order.map(String::from)[..])
        );
        // While its flows are awaited.
        let (mut lab, notes) = self::lab();
        let s = connect(&mut lab, version, 0);
        lab.switches[s].flows = None;
        lab.run();
        lab.packet_in(s, 1, None, &[0; 60]);
        lab.send(s, &status(PortReason::Delete));
        lab.packet_in(s, 2, None, &[1; 60]);
        lab.advance(LONGEST);
        let seen = notes.take();
        assert_eq!(
            (seen[0].as_str(), &seen[1..]),
            ("up with 0 ports", &in_order.map(String::from)[..])
        );
        // Before the first packet no app needs it: the list of ports has the change.
        let (mut lab, notes) = self::lab();
        let s = connect(&mut lab, version, 0);
        lab.early_message(s, &status(PortReason::Delete));
        lab.early_packet_in(s, 2, &[1; 60]);
        lab.run();
        assert_eq!(notes.take(), ["up with 0 ports", "packet 1"], "{version}");
    }
}

/// Apps do not get packets without the changes of ports behind them.
#[test]
fn early_packets_are_dropped_if_too_many_ports_change() {
    const MAX_STATUSES: usize = 64;
    let last = "port 1 Delete of \"\"";
    for (modified, packets, last, dropped) in [
        (MAX_STATUSES - 1, &["packet 0", "packet 1", "packet 2"][..], last, 0),
        // The status behind the third packet is one too many.
        (MAX_STATUSES, &[], "up with 0 ports", 3),
        // The status before the third packet is one too many.
        (MAX_STATUSES + 1, &["packet 2"], last, 2),
    ] {
        let (mut lab, notes) = lab();
        let s = connect(&mut lab, Version::V1_3, 2);
        (0..modified).for_each(|_| lab.early_message(s, &status(PortReason::Modify)));
        lab.early_packet_in(s, 1, &[2; 60]);
        lab.early_message(s, &status(PortReason::Delete));
        lab.run();
        let seen = notes.take();
        let given: Vec<_> = seen.iter().filter(|it| it.starts_with("packet")).collect();
        assert_eq!(given, packets, "{modified}");
        assert_eq!((seen[0].as_str(), seen.last().unwrap().as_str()), ("up with 0 ports", last));
        assert_eq!(lab.counters("packet_ins_early"), [dropped]);
    }
}

/// Early packets of all switches together are bounded.
#[test]
fn early_packets_of_all_switches_have_a_bound() {
    const OF_ONE: usize = 64 * 1024;
    const OF_ALL: usize = 64 * 1024 * 1024;
    let (mut lab, _) = lab();
    let packet = [7; 64_000];
    assert!(packet.len() + 42 <= OF_ONE);
    let fits = (OF_ALL / (packet.len() + 42)) as u64;
    let switches = fits as usize + 8;
    let all: Vec<SwitchId> = (0..switches)
        .map(|n| {
            let s = lab.connect(0, Version::V1_3, SwitchDescription::new(n as u64 + 1));
            lab.switches[s].ignored = vec![MultipartKind::Desc];
            lab.switches[s].ignored_barriers = Some(Vec::new());
            s
        })
        .collect();
    lab.run();
    for s in &all {
        lab.packet_in(*s, 1, None, &packet);
    }
    lab.run();
    let dropped = lab.counters("packet_ins_early")[0];
    let kept = switches as u64 - dropped;
    assert_eq!(kept, fits, "{dropped} were dropped");
    // The end of a connection frees its share.
    for s in &all {
        lab.hang_up(*s);
    }
    lab.run();
    let s = lab.connect(0, Version::V1_3, SwitchDescription::new(1));
    lab.switches[s].ignored = vec![MultipartKind::Desc];
    lab.switches[s].ignored_barriers = Some(Vec::new());
    lab.run();
    lab.packet_in(s, 1, None, &packet);
    lab.run();
    assert_eq!(lab.counters("packet_ins_early")[0], dropped);
}
