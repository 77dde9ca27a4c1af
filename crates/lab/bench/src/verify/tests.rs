//! Right and wrong answers; quick comparison and full decoding agree.

use bellrock_openflow::{
    Action, Bytes, Field, FlowMod, List, Match, Out, PacketOut, Port, ToSwitch, Version,
};
use proptest::prelude::*;

use super::*;
use crate::load::{Destinations, HostOrder, Load};
use crate::packet::{LoadPacket, MacNumber, UPLINK_PORT};

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;
const DPID: u32 = 7;
const IN_FLIGHT: u32 = 16;

fn pattern() -> TrafficPattern {
    TrafficPattern::new(&Load {
        macs: 100,
        order: HostOrder::Random,
        destinations: Destinations::Uniform,
        ..Load::default()
    })
}

/// A switch that has sent its packets, with the counts of the answers.
#[derive(Clone)]
struct Bench {
    window: Window,
    tally: AnswerTally,
}

impl Bench {
    fn new() -> Self {
        let mut window = Window::new(IN_FLIGHT);
        window.sent(IN_FLIGHT.into(), 1);
        Bench { window, tally: AnswerTally::default() }
    }

    fn empty() -> Self {
        Bench { window: Window::new(IN_FLIGHT), tally: AnswerTally::default() }
    }

    fn check(&mut self, verifier: &mut Verifier, message: &[u8]) -> AnswerKind {
        verifier.check(message, DPID, &mut self.window, 2, &mut self.tally)
    }

    /// Checks messages with a new verifier.
    fn all(version: Version, messages: &[Vec<u8>]) -> AnswerTally {
        let mut verifier = Verifier::new(version, pattern());
        let mut bench = Bench::new();
        messages.iter().for_each(|message| {
            bench.check(&mut verifier, message);
        });
        bench.tally
    }
}

fn encode(version: Version, message: &ToSwitch<'_>) -> Vec<u8> {
    let mut out = Out::with_capacity(1024);
    message.encode(version, 99, &mut out).unwrap();
    out.as_slice().to_vec()
}

fn exact(packet: &LoadPacket) -> Match {
    l2(packet)
        .untagged()
        .eth_type(0x0800)
        .ip_dscp(0)
        .ip_proto(17)
        .ipv4_src([192, 168, 0, 40].into())
        .ipv4_dst([192, 168, 1, 40].into())
        .udp_src(31_256)
        .udp_dst(22_635)
}

fn l2(packet: &LoadPacket) -> Match {
    let mac = |mac: MacNumber| bellrock_openflow::MacAddr(mac.bytes());
    Match::any().in_port(Port(packet.in_port)).eth_src(mac(packet.src)).eth_dst(mac(packet.dst))
}

fn flow(version: Version, matching: &Match, id: Option<u32>, port: u32) -> Vec<u8> {
    let actions = [Action::output(Port(port))];
    let flow = FlowMod::add(matching).buffer_id(id).idle_timeout(60).actions(&actions);
    encode(version, &ToSwitch::FlowMod(flow))
}

fn right(version: Version, number: u64) -> Vec<u8> {
    let packet = pattern().packet(DPID, number);
    flow(version, &exact(&packet), Some(packet.id()), packet.out_port)
}

fn packet_out(version: Version, packet: &LoadPacket, buffered: bool, port: Port) -> Vec<u8> {
    let (actions, frame) = ([Action::output(port)], packet.frame());
    let out = PacketOut {
        buffer_id: buffered.then_some(packet.id()),
        in_port: Port(packet.in_port),
        actions: List::of(&actions),
        data: Bytes(if buffered { &[] } else { &frame }),
    };
    encode(version, &ToSwitch::PacketOut(out))
}

fn unbuffered(version: Version, number: u64) -> [Vec<u8>; 2] {
    let packet = pattern().packet(DPID, number);
    [
        flow(version, &l2(&packet), None, packet.out_port),
        packet_out(version, &packet, false, Port(packet.out_port)),
    ]
}

#[test]
fn right_answers_are_flow_set_ups() {
    for version in VERSIONS {
        let verified = |messages: &[Vec<u8>]| {
            let tally = Bench::all(version, messages);
            assert!(tally.is_clean(), "{tally:?}");
            (tally.verified, tally.other)
        };
        let buffered: Vec<_> = (0..16).map(|number| right(version, number)).collect();
        assert_eq!(verified(&buffered), (16, 0));
        let mut turned = buffered.clone();
        turned.reverse();
        assert_eq!(verified(&turned), (16, 0));
        let whole: Vec<_> = (0..16).flat_map(|number| unbuffered(version, number)).collect();
        assert_eq!(verified(&whole), (16, 0));
        turned = whole.clone();
        turned.reverse();
        assert_eq!(verified(&turned), (16, 0));
        // A flow_mod without the buffer_id, and a packet_out that releases the buffer.
        let released = |number| {
            let packet = pattern().packet(DPID, number);
            let flow = flow(version, &l2(&packet), None, packet.out_port);
            [flow, packet_out(version, &packet, true, Port::TABLE)]
        };
        let released: Vec<_> = (0..16).flat_map(released).collect();
        assert_eq!(verified(&released), (16, 0));
        assert_eq!(verified(&released[..31]), (15, 0), "half an answer is none");
    }
}

#[test]
fn each_fault_has_its_counter() {
    for version in VERSIONS {
        let packet = pattern().packet(DPID, 0);
        let one = |message: Vec<u8>| Bench::all(version, &[message]);
        let spoilt = AnswerTally { spoilt: 1, ..AnswerTally::default() };
        let other_port = packet.out_port % 4 + 1;
        let wrong_port = flow(version, &exact(&packet), Some(0), other_port);
        assert_eq!(one(wrong_port), AnswerTally { wrong_output: 1, ..spoilt });
        let other = pattern().packet(DPID, 1);
        let wrong_match = flow(version, &exact(&other), Some(0), packet.out_port);
        assert_eq!(one(wrong_match), AnswerTally { wrong_match: 1, ..spoilt });
        let to_all = Match::any().in_port(Port(packet.in_port));
        let too_wide = flow(version, &to_all, Some(0), packet.out_port);
        assert_eq!(one(too_wide), AnswerTally { wrong_match: 1, ..spoilt });
        let wrong_buffer = flow(version, &exact(&packet), Some(77), packet.out_port);
        assert_eq!(one(wrong_buffer), AnswerTally { wrong_buffer: 1, ..AnswerTally::default() });
        let mut broken = right(version, 0);
        let last = broken.len() - 5;
        broken[last] = 3;
        broken.truncate(last);
        assert_eq!(one(broken), AnswerTally { unreadable: 1, ..AnswerTally::default() });
        let flood = packet_out(version, &packet, false, Port::FLOOD);
        assert_eq!(one(flood), AnswerTally { wrong_output: 1, ..AnswerTally::default() });
        let mut frame = packet_out(version, &packet, false, Port(packet.out_port));
        *frame.last_mut().unwrap() ^= 1;
        assert_eq!(one(frame), AnswerTally { wrong_frame: 1, ..AnswerTally::default() });
    }
}

#[test]
fn a_second_answer_is_extra() {
    for version in VERSIONS {
        let twice = [right(version, 0), right(version, 0), right(version, 1)];
        let tally = Bench::all(version, &twice);
        assert_eq!(tally, AnswerTally { verified: 2, extra: 1, ..AnswerTally::default() });
        let [flow, packet] = unbuffered(version, 0);
        let tally = Bench::all(version, &[flow.clone(), packet.clone(), flow, packet]);
        assert_eq!(tally, AnswerTally { verified: 1, extra: 2, ..AnswerTally::default() });
    }
}

#[test]
fn other_messages_are_not_judged_as_answers() {
    for version in VERSIONS {
        let packet = pattern().packet(DPID, 0);
        let miss = flow(version, &Match::any(), None, Port::CONTROLLER.0);
        let delete = encode(version, &ToSwitch::FlowMod(FlowMod::delete(&exact(&packet))));
        let (lldp, uplink) = ([0x88; 60], [Action::output(Port(UPLINK_PORT))]);
        let out = PacketOut {
            buffer_id: None,
            in_port: Port::CONTROLLER,
            actions: List::of(&uplink),
            data: Bytes(&lldp),
        };
        let lldp = encode(version, &ToSwitch::PacketOut(out));
        let tally = Bench::all(version, &[miss, delete, lldp]);
        assert_eq!(tally, AnswerTally { other: 3, ..AnswerTally::default() });
    }
}

#[test]
fn a_mask_that_fits_one_packet_is_not_taken_for_one_that_fits_the_next() {
    let packet = pattern().packet(DPID, 0);
    let bits = u128::from(packet.src.bytes()[5]);
    let masked = |packet: &LoadPacket| {
        let dst = Match::any().eth_dst(bellrock_openflow::MacAddr(packet.dst.bytes()));
        let matching = dst.with_masked(Field::EthSrc, bits, 0xff);
        flow(Version::V1_3, &matching, Some(packet.id()), packet.out_port)
    };
    let next = (1..).map(|number| pattern().packet(DPID, number));
    let next = next.take(15).find(|next| next.src.bytes()[5] != packet.src.bytes()[5]).unwrap();
    let tally = Bench::all(Version::V1_3, &[masked(&packet), masked(&next)]);
    assert_eq!((tally.verified, tally.wrong_match), (1, 1), "{tally:?}");
}

/// Changes to a message: offsets and new bytes.
fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3)
}

/// One of the kinds of answers to a packet.
fn answers(version: Version, number: u64, kind: u8) -> Vec<u8> {
    let packet = pattern().packet(DPID, number);
    let [flow_alone, with_frame] = unbuffered(version, number);
    match kind {
        0 => right(version, number),
        1 => flow_alone,
        2 => with_frame,
        3 => packet_out(version, &packet, true, Port(packet.out_port)),
        _ => flow(version, &l2(&packet).untagged(), Some(packet.id()), packet.out_port),
    }
}

proptest! {
    /// A verifier that knows shapes agrees with one that decodes each message fully, whatever came
    /// before and whatever is changed.
    #[test]
    fn the_quick_way_says_what_the_full_reading_says(
        v13: bool,
        messages in prop::collection::vec((0..20_u64, 0..5_u8, changes()), 1..40),
    ) {
        let version = VERSIONS[usize::from(v13)];
        let mut quick = Verifier::new(version, pattern());
        let (mut by_shape, mut whole) = (Bench::new(), Bench::new());
        for (number, kind, changes) in messages {
            let mut message = answers(version, number, kind);
            for (place, byte) in changes {
                // Type and length stay: they frame the message.
                let at = 4 + place.index(message.len() - 4);
                message[at] = byte;
            }
            let mut slow = Verifier::new(version, pattern());
            prop_assert_eq!(
                by_shape.check(&mut quick, &message),
                whole.check(&mut slow, &message),
                "{:02x?}", message
            );
            prop_assert_eq!(by_shape.tally, whole.tally);
        }
    }

    /// A stream of mostly right answers in order gives the same result in runs as message by
    /// message, fully decoded: the same counts, waiting packets and latencies.
    #[test]
    fn runs_of_answers_say_what_the_full_reading_says(
        v13: bool,
        buffered: bool,
        bursts in prop::collection::vec(1..6_u64, 1..4),
        faults in prop::collection::vec((any::<prop::sample::Index>(), 0..6_u8, changes()), 0..4),
    ) {
        let version = VERSIONS[usize::from(v13)];
        let (mut quick, mut whole) = (Bench::empty(), Bench::empty());
        for (at_ns, packets) in (1..).zip(&bursts) {
            quick.window.sent(*packets, at_ns);
            whole.window.sent(*packets, at_ns);
        }
        let mut messages: Vec<Vec<u8>> = (0..bursts.iter().sum())
            .flat_map(|number| match buffered {
                true => vec![right(version, number)],
                false => unbuffered(version, number).to_vec(),
            })
            .collect();
        for (place, fault, changes) in faults {
            let at = place.index(messages.len());
            match fault {
                0 => drop(messages.remove(at)),
                1 => messages.insert(at, messages[at].clone()),
                2 => messages.swap(0, at),
                _ => {
                    let len = messages[at].len();
                    for (place, byte) in changes {
                        messages[at][4 + place.index(len - 4)] = byte;
                    }
                }
            }
            if messages.is_empty() {
                break;
            }
        }
        let mut of_whole = Vec::new();
        for message in &messages {
            let mut slow = Verifier::new(version, pattern());
            if let AnswerKind::SetUp { sent_ns } = whole.check(&mut slow, message) {
                of_whole.push(sent_ns);
            }
        }
        let (mut verifier, mut of_quick) = (Verifier::new(version, pattern()), Vec::new());
        let stream = messages.concat();
        let mut rest = stream.as_slice();
        while let Some(length) = rest.get(2..4) {
            let (packets, used) = verifier.run(rest, DPID, &quick.window);
            quick.window.answered(packets, 2, |sent_ns, packets| {
                of_quick.extend(std::iter::repeat_n(sent_ns, packets as usize));
            });
            quick.tally.verified += packets;
            if used > 0 {
                rest = &rest[used..];
                continue;
            }
            let (message, behind) = rest.split_at(usize::from(u16::from_be_bytes([length[0], length[1]])));
            if let AnswerKind::SetUp { sent_ns } = quick.check(&mut verifier, message) {
                of_quick.push(sent_ns);
            }
            rest = behind;
        }
        prop_assert_eq!(quick.tally, whole.tally);
        prop_assert_eq!(of_quick, of_whole);
        let end = |bench: &mut Bench| {
            let missing: Vec<u64> = bench.window.without_flow().collect();
            (missing, bench.window.in_flight(), bench.window.give_up(u64::MAX, 0))
        };
        prop_assert_eq!(end(&mut quick), end(&mut whole));
    }
}
