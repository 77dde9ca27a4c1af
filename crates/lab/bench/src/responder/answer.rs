//! Turns packet_ins into canned answers, in memory: the hot loop of the responder.
//!
//! Each kind of packet_in of the load (version, buffered or not) has a buffer full of prepared
//! answers. The fields that change are copied from the packet_in into the next answer: `xid`,
//! `buffer_id`, in_port, addresses, output port, and the frame if the packet was not buffered. All
//! offsets are constants of the kind, so a packet costs some dozens of instructions. The codec
//! builds the answers beforehand; the loop does not use it.

use bellrock_openflow::{
    Action, ByVersion, Bytes, EncodeError, Family, FlowMod, List, MacAddr, Match, MessageKind, Out,
    PacketOut, Port, ToSwitch, Version,
};

use crate::packet::{
    ETH_IPV4, FRAME_LEN, IP_DST, IP_SRC, NO_BUFFER, PROTO_UDP, UDP_DST, UDP_SRC, frame_at,
};

/// Length of a packet_in of each family, in bytes.
const IN_FIXED: usize = FRAME_FIXED + FRAME_LEN;
const IN_OXM: usize = FRAME_OXM + FRAME_LEN;

/// Length of the answers in bytes: a flow_mod, followed by a packet_out if the packet was not
/// buffered.
const FLOW_FIXED: usize = 80;
const FLOW_OXM: usize = 160;
const BOTH_FIXED: usize = FLOW_FIXED + 24 + FRAME_LEN;
const BOTH_OXM: usize = FLOW_OXM + 40 + FRAME_LEN;

/// Maximum number of packet_ins per call: those in 64 KiB, and one that began before.
const RUN: usize = 64 * 1024 / IN_FIXED + 2;

/// Idle timeout of the flows, in seconds.
const IDLE_TIMEOUT_S: u16 = 60;

/// Prepared answers, for each kind of packet_in.
#[derive(Debug)]
pub struct Answerer {
    /// Answers to buffered packets.
    flows: ByVersion<Vec<u8>>,
    /// Answers to whole packets.
    both: ByVersion<Vec<u8>>,
}

impl Answerer {
    /// Builds the answers.
    ///
    /// # Errors
    /// Passes on the codec's errors; none can occur.
    pub fn new() -> Result<Self, EncodeError> {
        let mut answerer = Answerer { flows: ByVersion::default(), both: ByVersion::default() };
        for version in Version::ALL {
            answerer.flows[version] = answers(version, true)?;
            answerer.both[version] = answers(version, false)?;
        }
        Ok(answerer)
    }

    /// Answers the packet_ins at the start of `input` that are of one kind. Returns their length in
    /// bytes, and the answers. The length is zero if `input` starts with another message, or with
    /// an incomplete packet_in.
    #[inline]
    pub fn answer(&mut self, input: &[u8]) -> (usize, &[u8]) {
        let Some(&[wire, _, _, _, _, _, _, _, ref id @ ..]) = input.first_chunk::<12>() else {
            return (0, &[]);
        };
        let Some(version) = Version::from_wire(wire) else { return (0, &[]) };
        let buffered = *id != NO_BUFFER.to_be_bytes();
        let ready = if buffered { &mut self.flows[version] } else { &mut self.both[version] };
        match (version.family(), buffered) {
            (Family::Fixed, true) => run(input, ready, version, true, fixed_flow::<FLOW_FIXED>),
            (Family::Fixed, false) => run(input, ready, version, false, fixed_both),
            (Family::Oxm, true) => run(input, ready, version, true, oxm_flow::<FLOW_OXM>),
            (Family::Oxm, false) => run(input, ready, version, false, oxm_both),
        }
    }
}

#[inline(always)]
fn run<'a, const IN: usize, const OUT: usize>(
    input: &[u8],
    answers: &'a mut [u8],
    version: Version,
    buffered: bool,
    patch: impl Fn(&[u8; IN], &mut [u8; OUT]),
) -> (usize, &'a [u8]) {
    // First bytes of a packet_in of the load: version, type, length.
    let kind = MessageKind::PacketIn.wire(version).unwrap_or_default();
    let head = [version.wire(), kind, 0, IN as u8];
    let (packet_ins, _) = input.as_chunks::<IN>();
    let (ready, _) = answers.as_chunks_mut::<OUT>();
    let mut answered = 0;
    for (packet_in, answer) in packet_ins.iter().zip(ready) {
        let id: [u8; 4] = part::<IN, 4>(packet_in, 8);
        if part(packet_in, 0) != head || (id != NO_BUFFER.to_be_bytes()) != buffered {
            break;
        }
        patch(packet_in, answer);
        answered += 1;
    }
    (answered * IN, answers.get(..answered * OUT).unwrap_or(&[]))
}

/// Returns `N` bytes at a constant offset.
#[inline(always)]
fn part<const LEN: usize, const N: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

/// Copies `N` bytes from one constant offset to another.
#[inline(always)]
fn copy<const IN: usize, const OUT: usize, const N: usize>(
    (from, from_at): (&[u8; IN], usize),
    (to, to_at): (&mut [u8; OUT], usize),
) {
    to[to_at..to_at + N].copy_from_slice(&from[from_at..from_at + N]);
}

/// Offsets of the frame and of the in_port in a packet_in.
const FRAME_FIXED: usize = frame_at(Family::Fixed);
const FRAME_OXM: usize = frame_at(Family::Oxm);
const PORT_FIXED: usize = 14;
const PORT_OXM: usize = 32;

#[inline(always)]
fn fixed_flow<const OUT: usize>(from: &[u8; IN_FIXED], to: &mut [u8; OUT]) {
    copy::<IN_FIXED, OUT, 4>((from, 4), (to, 4));
    copy::<IN_FIXED, OUT, 2>((from, PORT_FIXED), (to, 12));
    copy::<IN_FIXED, OUT, 6>((from, FRAME_FIXED + 6), (to, 14));
    copy::<IN_FIXED, OUT, 6>((from, FRAME_FIXED), (to, 20));
    copy::<IN_FIXED, OUT, 4>((from, 8), (to, 64));
    to[77] = from[FRAME_FIXED] >> 2;
}

#[inline(always)]
fn fixed_both(from: &[u8; IN_FIXED], to: &mut [u8; BOTH_FIXED]) {
    fixed_flow(from, to);
    copy::<IN_FIXED, BOTH_FIXED, 4>((from, 4), (to, FLOW_FIXED + 4));
    copy::<IN_FIXED, BOTH_FIXED, 2>((from, PORT_FIXED), (to, FLOW_FIXED + 12));
    to[FLOW_FIXED + 21] = from[FRAME_FIXED] >> 2;
    copy::<IN_FIXED, BOTH_FIXED, FRAME_LEN>((from, FRAME_FIXED), (to, FLOW_FIXED + 24));
}

#[inline(always)]
fn oxm_flow<const OUT: usize>(from: &[u8; IN_OXM], to: &mut [u8; OUT]) {
    copy::<IN_OXM, OUT, 4>((from, 4), (to, 4));
    copy::<IN_OXM, OUT, 4>((from, 8), (to, 32));
    copy::<IN_OXM, OUT, 4>((from, PORT_OXM), (to, 56));
    copy::<IN_OXM, OUT, 6>((from, FRAME_OXM), (to, 64));
    copy::<IN_OXM, OUT, 6>((from, FRAME_OXM + 6), (to, 74));
    to[151] = from[FRAME_OXM] >> 2;
}

#[inline(always)]
fn oxm_both(from: &[u8; IN_OXM], to: &mut [u8; BOTH_OXM]) {
    oxm_flow(from, to);
    copy::<IN_OXM, BOTH_OXM, 4>((from, 4), (to, FLOW_OXM + 4));
    copy::<IN_OXM, BOTH_OXM, 4>((from, PORT_OXM), (to, FLOW_OXM + 12));
    to[FLOW_OXM + 31] = from[FRAME_OXM] >> 2;
    copy::<IN_OXM, BOTH_OXM, FRAME_LEN>((from, FRAME_OXM), (to, FLOW_OXM + 40));
}

/// Fills a buffer with answers, still without the fields of a packet.
fn answers(version: Version, buffered: bool) -> Result<Vec<u8>, EncodeError> {
    let matching = Match::any()
        .in_port(Port(1))
        .eth_src(MacAddr::ZERO)
        .eth_dst(MacAddr::ZERO)
        .untagged()
        .eth_type(ETH_IPV4)
        .ip_dscp(0)
        .ip_proto(PROTO_UDP)
        .ipv4_src(IP_SRC.into())
        .ipv4_dst(IP_DST.into())
        .udp_src(UDP_SRC)
        .udp_dst(UDP_DST);
    let actions = [Action::output(Port(1))];
    let flow = FlowMod::add(&matching).idle_timeout(IDLE_TIMEOUT_S).actions(&actions);
    let mut out = Out::with_capacity(BOTH_OXM);
    ToSwitch::FlowMod(flow.buffer_id(buffered.then_some(0))).encode(version, 0, &mut out)?;
    if !buffered {
        let data = Bytes(&[0; FRAME_LEN]);
        let actions = List::of(&actions);
        let packet = PacketOut { buffer_id: None, in_port: Port(1), actions, data };
        ToSwitch::PacketOut(packet).encode(version, 0, &mut out)?;
    }
    Ok(out.as_slice().repeat(RUN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::TrafficPattern;
    use crate::load::{Destinations, HostOrder, Load};
    use crate::packet::PacketTemplate;
    use crate::verify::{AnswerKind, AnswerTally, Verifier};
    use crate::window::Window;

    #[test]
    fn the_answers_have_the_sizes_that_the_loop_goes_by() {
        for (version, buffered, len) in [
            (Version::V1_0, true, FLOW_FIXED),
            (Version::V1_0, false, BOTH_FIXED),
            (Version::V1_3, true, FLOW_OXM),
            (Version::V1_3, false, BOTH_OXM),
        ] {
            assert_eq!(answers(version, buffered).unwrap().len(), len * RUN);
        }
    }

    #[test]
    fn the_answers_pass_the_verification() {
        const PACKETS: u32 = 300;
        for (version, buffered) in Version::ALL.into_iter().flat_map(|v| [(v, true), (v, false)]) {
            for destinations in [Destinations::One, Destinations::Uniform] {
                let order = HostOrder::Random;
                let load = Load { destinations, order, macs: 50, ..Load::default() };
                let pattern = TrafficPattern::new(&load);
                let template = PacketTemplate::new(version, buffered).unwrap();
                let mut input = template.as_slice().repeat(PACKETS as usize);
                for (number, message) in input.chunks_mut(template.len()).enumerate() {
                    template.patch(message, &pattern.packet(3, number as u64));
                }
                input.extend([4, 2, 0, 8, 0, 0, 0, 0]);
                let mut answerer = Answerer::new().unwrap();
                let (used, mut answers) = answerer.answer(&input);
                assert_eq!(used, input.len() - 8);
                let mut window = Window::new(PACKETS);
                window.sent(PACKETS.into(), 1);
                let (mut verifier, mut tally) =
                    (Verifier::new(version, pattern), AnswerTally::default());
                while let Some(length) = answers.get(2..4) {
                    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
                    let (message, rest) = answers.split_at(length);
                    let answer = verifier.check(message, 3, &mut window, 2, &mut tally);
                    assert!(
                        matches!(answer, AnswerKind::SetUp { .. } | AnswerKind::Part),
                        "{answer:?}"
                    );
                    answers = rest;
                }
                assert_eq!(tally.verified, u64::from(PACKETS));
                assert_eq!(answerer.answer(&input[used..]).0, 0, "it is no packet_in");
            }
        }
    }

    #[test]
    fn a_change_of_kind_ends_the_run() {
        let template = |buffered| PacketTemplate::new(Version::V1_0, buffered).unwrap();
        let mut input = template(true).as_slice().repeat(2);
        input.extend_from_slice(template(false).as_slice());
        input.extend_from_slice(&template(false).as_slice()[..81]);
        let mut answerer = Answerer::new().unwrap();
        let (used, answers) = answerer.answer(&input);
        assert_eq!((used, answers.len()), (2 * IN_FIXED, 2 * FLOW_FIXED));
        let (used, answers) = answerer.answer(&input[2 * IN_FIXED..]);
        assert_eq!((used, answers.len()), (IN_FIXED, BOTH_FIXED));
        assert_eq!(answerer.answer(&input[3 * IN_FIXED..]).0, 0);
    }
}
