//! Turns packet_ins into canned answers, in memory: the hot loop of the responder.
//!
//! Each kind of packet_in of the load (version, buffered or not) has a buffer full of prepared
//! answers. The fields that change are copied from the packet_in into the next answer: `xid`,
//! `buffer_id`, in_port, addresses, output port, and the frame if the packet was not buffered. All
//! offsets are constants of the kind, so a packet costs some dozens of instructions. The codec
//! builds the answers beforehand; the loop does not use it.

use bellrock_openflow::{
    Action, Bytes, EncodeError, FlowMod, List, MacAddr, Match, Out, PacketOut, Port, ToSwitch,
    Version,
};

use crate::packet::{
    ETH_IPV4, FRAME_LEN, IP_DST, IP_SRC, MAX_PACKET_IN_LEN, NO_BUFFER, PACKET_IN_10_LEN, PROTO_UDP,
    UDP_DST, UDP_SRC,
};

/// Length of a packet_in of 1.0 and of 1.3, in bytes.
const IN_10: usize = PACKET_IN_10_LEN;
const IN_13: usize = MAX_PACKET_IN_LEN;

/// Length of the answers in bytes: a flow_mod, followed by a packet_out if the packet was not
/// buffered.
const FLOW_10: usize = 80;
const FLOW_13: usize = 160;
const BOTH_10: usize = FLOW_10 + 24 + FRAME_LEN;
const BOTH_13: usize = FLOW_13 + 40 + FRAME_LEN;

/// First bytes of a packet_in of the load: version, type, length.
const HEAD_10: [u8; 4] = [1, 10, 0, IN_10 as u8];
const HEAD_13: [u8; 4] = [4, 10, 0, IN_13 as u8];

/// Maximum number of packet_ins per call: those in 64 KiB, and one that began before.
const RUN: usize = 64 * 1024 / IN_10 + 2;

/// Idle timeout of the flows, in seconds.
const IDLE_TIMEOUT_S: u16 = 60;

/// Prepared answers, for each kind of packet_in.
#[derive(Debug)]
pub struct Answerer {
    flows_10: Vec<u8>,
    flows_13: Vec<u8>,
    both_10: Vec<u8>,
    both_13: Vec<u8>,
}

impl Answerer {
    /// Builds the answers.
    ///
    /// # Errors
    /// Passes on the codec's errors; none can occur.
    pub fn new() -> Result<Self, EncodeError> {
        let flow = |version, buffered| answers(version, buffered);
        Ok(Answerer {
            flows_10: flow(Version::V1_0, true)?,
            flows_13: flow(Version::V1_3, true)?,
            both_10: flow(Version::V1_0, false)?,
            both_13: flow(Version::V1_3, false)?,
        })
    }

    /// Answers the packet_ins at the start of `input` that are of one kind. Returns their length in
    /// bytes, and the answers. The length is zero if `input` starts with another message, or with
    /// an incomplete packet_in.
    #[inline]
    pub fn answer(&mut self, input: &[u8]) -> (usize, &[u8]) {
        let head: Option<&[u8; 12]> = input.first_chunk();
        let Some([head @ .., _, _, _, _, b3, b2, b1, b0]) = head else { return (0, &[]) };
        let buffered = [*b3, *b2, *b1, *b0] != NO_BUFFER.to_be_bytes();
        match (*head, buffered) {
            (HEAD_10, true) => run(input, &mut self.flows_10, HEAD_10, true, flow_10::<FLOW_10>),
            (HEAD_10, false) => run(input, &mut self.both_10, HEAD_10, false, both_10),
            (HEAD_13, true) => run(input, &mut self.flows_13, HEAD_13, true, flow_13::<FLOW_13>),
            (HEAD_13, false) => run(input, &mut self.both_13, HEAD_13, false, both_13),
            _ => (0, &[]),
        }
    }
}

#[inline(always)]
fn run<'a, const IN: usize, const OUT: usize>(
    input: &[u8],
    answers: &'a mut [u8],
    head: [u8; 4],
    buffered: bool,
    patch: impl Fn(&[u8; IN], &mut [u8; OUT]),
) -> (usize, &'a [u8]) {
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
const FRAME_10: usize = 18;
const FRAME_13: usize = 42;
const PORT_10: usize = 14;
const PORT_13: usize = 32;

#[inline(always)]
fn flow_10<const OUT: usize>(from: &[u8; IN_10], to: &mut [u8; OUT]) {
    copy::<IN_10, OUT, 4>((from, 4), (to, 4));
    copy::<IN_10, OUT, 2>((from, PORT_10), (to, 12));
    copy::<IN_10, OUT, 6>((from, FRAME_10 + 6), (to, 14));
    copy::<IN_10, OUT, 6>((from, FRAME_10), (to, 20));
    copy::<IN_10, OUT, 4>((from, 8), (to, 64));
    to[77] = from[FRAME_10] >> 2;
}

#[inline(always)]
fn both_10(from: &[u8; IN_10], to: &mut [u8; BOTH_10]) {
    flow_10(from, to);
    copy::<IN_10, BOTH_10, 4>((from, 4), (to, FLOW_10 + 4));
    copy::<IN_10, BOTH_10, 2>((from, PORT_10), (to, FLOW_10 + 12));
    to[FLOW_10 + 21] = from[FRAME_10] >> 2;
    copy::<IN_10, BOTH_10, FRAME_LEN>((from, FRAME_10), (to, FLOW_10 + 24));
}

#[inline(always)]
fn flow_13<const OUT: usize>(from: &[u8; IN_13], to: &mut [u8; OUT]) {
    copy::<IN_13, OUT, 4>((from, 4), (to, 4));
    copy::<IN_13, OUT, 4>((from, 8), (to, 32));
    copy::<IN_13, OUT, 4>((from, PORT_13), (to, 56));
    copy::<IN_13, OUT, 6>((from, FRAME_13), (to, 64));
    copy::<IN_13, OUT, 6>((from, FRAME_13 + 6), (to, 74));
    to[151] = from[FRAME_13] >> 2;
}

#[inline(always)]
fn both_13(from: &[u8; IN_13], to: &mut [u8; BOTH_13]) {
    flow_13(from, to);
    copy::<IN_13, BOTH_13, 4>((from, 4), (to, FLOW_13 + 4));
    copy::<IN_13, BOTH_13, 4>((from, PORT_13), (to, FLOW_13 + 12));
    to[FLOW_13 + 31] = from[FRAME_13] >> 2;
    copy::<IN_13, BOTH_13, FRAME_LEN>((from, FRAME_13), (to, FLOW_13 + 40));
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
    let mut out = Out::with_capacity(BOTH_13);
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
            (Version::V1_0, true, FLOW_10),
            (Version::V1_0, false, BOTH_10),
            (Version::V1_3, true, FLOW_13),
            (Version::V1_3, false, BOTH_13),
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
        assert_eq!((used, answers.len()), (2 * IN_10, 2 * FLOW_10));
        let (used, answers) = answerer.answer(&input[2 * IN_10..]);
        assert_eq!((used, answers.len()), (IN_10, BOTH_10));
        assert_eq!(answerer.answer(&input[3 * IN_10..]).0, 0);
    }
}
