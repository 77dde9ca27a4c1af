//! The shape of a right answer: its bytes, and where in them the parts are that change from packet
//! to packet.
//!
//! It is made of a message that was read whole and found right ([`super::full`]). Another message
//! that differs from it only in `xid` and cookie, and in the fields that name the packet, where it
//! has what its packet has, means the same for its packet. So [`Shape::fits`] compares those fields
//! with the packet, and all other bytes with the right answer's. A message that needs more than that
//! to be understood has no shape, and is read whole each time.

use bellrock_openflow::Version;

use super::number_in;
use crate::packet::{DST_AT, FRAME_LEN, Mac, NO_BUFFER, NUMBER_AT, Packet, SRC_AT, XID_AT};

/// Where the `buffer_id` of a flow_mod is.
pub(super) const fn flow_mod_buffer_at(version: Version) -> usize {
    match version {
        // Header, match, cookie, command, idle_timeout, hard_timeout, priority.
        Version::V1_0 => 8 + 40 + 8 + 8,
        // Header, cookie, its mask, table, command, idle_timeout, hard_timeout, priority.
        Version::V1_3 => 8 + 16 + 8,
    }
}

/// A port field: where its last byte is. Its upper bytes are zero in a right answer.
type PortAt = usize;

/// Whether a message of a shape has a `buffer_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Buffer {
    /// As it likes.
    Either,
    /// It names the packet by it.
    Always,
    /// It has the frame.
    Never,
}

/// A right answer, to compare others with.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    bytes: Vec<u8>,
    /// All ones where a byte has to be as in `bytes`, zero where it is looked at by itself, or may
    /// be anything.
    fixed: Vec<u8>,
    cookie_at: Option<usize>,
    buffer_at: usize,
    buffer: Buffer,
    in_port_at: Option<PortAt>,
    src_at: Option<usize>,
    dst_at: Option<usize>,
    out_port_at: Option<PortAt>,
    frame_at: Option<usize>,
}

impl Shape {
    /// That of a flow_mod that was found right for `packet`. `None` if it is of a kind that has to
    /// be read whole: with masks, or with more than one instruction and one action.
    pub(super) fn of_flow_mod(message: &[u8], version: Version, packet: &Packet) -> Option<Self> {
        let shape = match version {
            Version::V1_0 => Shape::of_flow_mod_10(message)?,
            Version::V1_3 => Shape::of_flow_mod_13(message)?,
        };
        shape.holds(message, packet)
    }

    /// That of a packet_out that was found right for `packet`. `None` if it has more than one
    /// action.
    pub(super) fn of_packet_out(message: &[u8], version: Version, packet: &Packet) -> Option<Self> {
        // Header, buffer_id, in_port, length of the actions, and in 1.3 padding; then the actions.
        let (in_port_at, head, action) = match version {
            Version::V1_0 => (13, 16, 8),
            Version::V1_3 => (15, 24, 16),
        };
        let frame_at = head + action;
        let has_frame = message.len() == frame_at + FRAME_LEN;
        if !has_frame && message.len() != frame_at {
            return None;
        }
        // The in_port may be a reserved one; then it is like all other bytes.
        let in_port = message.get(in_port_at - 1..=in_port_at)?;
        let names_port = u16::from_be_bytes([in_port[0], in_port[1]]) == packet.in_port as u16;
        let out_port_at = head + if version == Version::V1_0 { 5 } else { 7 };
        let through_flows = message.get(out_port_at) != Some(&(packet.out_port as u8));
        Shape {
            bytes: message.to_vec(),
            fixed: vec![0xff; message.len()],
            cookie_at: None,
            buffer_at: 8,
            buffer: if has_frame { Buffer::Never } else { Buffer::Always },
            in_port_at: names_port.then_some(in_port_at),
            src_at: None,
            dst_at: None,
            out_port_at: (!through_flows).then_some(out_port_at),
            frame_at: has_frame.then_some(frame_at),
        }
        .holds(message, packet)
    }

    fn of_flow_mod_10(message: &[u8]) -> Option<Self> {
        const LEN: usize = 80;
        const IN_PORT: u32 = 1;
        const DL_SRC: u32 = 1 << 2;
        const DL_DST: u32 = 1 << 3;
        if message.len() != LEN {
            return None;
        }
        let wildcards = u32::from_be_bytes(*message.get(8..)?.first_chunk()?);
        let counts = |bit: u32, at: usize| (wildcards & bit == 0).then_some(at);
        Some(Shape {
            bytes: message.to_vec(),
            fixed: vec![0xff; message.len()],
            cookie_at: Some(48),
            buffer_at: flow_mod_buffer_at(Version::V1_0),
            buffer: Buffer::Either,
            in_port_at: counts(IN_PORT, 13),
            src_at: counts(DL_SRC, 14),
            dst_at: counts(DL_DST, 20),
            out_port_at: Some(77),
            frame_at: None,
        })
    }

    /// Walks through the match; then one `apply_actions` with one `output` has to follow.
    fn of_flow_mod_13(message: &[u8]) -> Option<Self> {
        const MATCH_AT: usize = 48;
        const IN_PORT: [u8; 4] = [0x80, 0, 0, 4];
        const ETH_DST: [u8; 4] = [0x80, 0, 3 << 1, 6];
        const ETH_SRC: [u8; 4] = [0x80, 0, 4 << 1, 6];
        const METADATA: u8 = 2;
        const INSTRUCTION: [u8; 4] = [0, 4, 0, 24];
        const ACTION: [u8; 4] = [0, 0, 0, 16];
        let mut shape = Shape {
            bytes: message.to_vec(),
            fixed: vec![0xff; message.len()],
            cookie_at: Some(8),
            buffer_at: flow_mod_buffer_at(Version::V1_3),
            buffer: Buffer::Either,
            in_port_at: None,
            src_at: None,
            dst_at: None,
            out_port_at: None,
            frame_at: None,
        };
        let length = message.get(MATCH_AT + 2..)?.first_chunk()?;
        let length = usize::from(u16::from_be_bytes(*length));
        let end = MATCH_AT + length;
        let mut at = MATCH_AT + 4;
        while at < end {
            let header: [u8; 4] = *message.get(at..)?.first_chunk()?;
            at += 4;
            match header {
                IN_PORT => shape.in_port_at = Some(at + 3),
                ETH_DST => shape.dst_at = Some(at),
                ETH_SRC => shape.src_at = Some(at),
                // What else is said of ports and addresses, with masks, may fit one packet and not
                // the next.
                [0x80, 0, field, _] if field >> 1 <= ETH_SRC[2] >> 1 && field >> 1 != METADATA => {
                    return None;
                }
                _ => {}
            }
            at += usize::from(header[3]);
        }
        let instruction = MATCH_AT + length.next_multiple_of(8);
        let action = instruction + 8;
        let one = message.get(instruction..)?.starts_with(&INSTRUCTION)
            && message.get(action..)?.starts_with(&ACTION)
            && message.len() == instruction + 24;
        shape.out_port_at = Some(action + 7);
        one.then_some(shape)
    }

    /// The shape, if it has its places right: the message that it was made of has to fit.
    fn holds(mut self, message: &[u8], packet: &Packet) -> Option<Self> {
        let frame_places = |at: usize| [(at + DST_AT, 6), (at + SRC_AT, 6), (at + NUMBER_AT, 4)];
        let free = [
            Some((XID_AT, 4)),
            self.cookie_at.map(|at| (at, 8)),
            Some((self.buffer_at, 4)),
            self.in_port_at.map(|at| (at, 1)),
            self.src_at.map(|at| (at, 6)),
            self.dst_at.map(|at| (at, 6)),
            self.out_port_at.map(|at| (at, 1)),
        ];
        let in_frame = self.frame_at.map(frame_places).into_iter().flatten();
        for (at, len) in free.into_iter().flatten().chain(in_frame) {
            self.fixed.get_mut(at..at + len)?.fill(0);
        }
        self.fits(message, packet).then_some(self)
    }

    /// Whether a message is, but for `xid` and cookie, what it should be for this packet.
    #[inline]
    pub(super) fn fits(&self, message: &[u8], packet: &Packet) -> bool {
        if message.len() != self.bytes.len() {
            return false;
        }
        let buffer_id = match self.buffer {
            Buffer::Either if !self.is_buffered(message) => NO_BUFFER,
            Buffer::Either | Buffer::Always => packet.id(),
            Buffer::Never => NO_BUFFER,
        };
        let byte = |at: Option<usize>, value: u32| {
            at.is_none_or(|at| message.get(at) == Some(&(value as u8)))
        };
        number_at(message, self.buffer_at) == Some(buffer_id)
            && byte(self.in_port_at, packet.in_port)
            && byte(self.out_port_at, packet.out_port)
            && is_address(message, self.src_at, packet.src)
            && is_address(message, self.dst_at, packet.dst)
            && self.frame_at.is_none_or(|at| {
                is_address(message, Some(at + DST_AT), packet.dst)
                    && is_address(message, Some(at + SRC_AT), packet.src)
                    && number_at(message, at + NUMBER_AT) == Some(packet.id())
            })
            && same(message, &self.bytes, &self.fixed)
    }

    /// Whether a message has a `buffer_id`.
    #[inline]
    pub(super) fn is_buffered(&self, message: &[u8]) -> bool {
        number_at(message, self.buffer_at) != Some(NO_BUFFER)
    }

    /// The number of the packet that a packet_out is about, by its `buffer_id` or its frame.
    #[inline]
    pub(super) fn packet_id(&self, message: &[u8]) -> Option<u32> {
        match self.frame_at {
            Some(at) => <&[u8; FRAME_LEN]>::try_from(message.get(at..)?).ok().map(number_in),
            None => number_at(message, self.buffer_at),
        }
    }
}

/// Whether there is this address at a place, if it is one.
#[inline(always)]
fn is_address(message: &[u8], at: Option<usize>, mac: Mac) -> bool {
    at.is_none_or(|at| message.get(at..).and_then(Mac::read) == Some(mac))
}

/// The 32 bits at a place.
#[inline(always)]
fn number_at(message: &[u8], at: usize) -> Option<u32> {
    message.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// Whether two messages of the same length are the same where `fixed` has ones. Word by word without
/// a branch, which compilers make vector instructions of.
#[inline(always)]
fn same(message: &[u8], bytes: &[u8], fixed: &[u8]) -> bool {
    let (message, message_end) = message.as_chunks::<8>();
    let (bytes, bytes_end) = bytes.as_chunks::<8>();
    let (fixed, fixed_end) = fixed.as_chunks::<8>();
    let words = message.iter().zip(bytes).zip(fixed);
    let differ = words.fold(0, |differ, ((message, bytes), fixed)| {
        let (message, bytes) = (u64::from_ne_bytes(*message), u64::from_ne_bytes(*bytes));
        differ | (message ^ bytes) & u64::from_ne_bytes(*fixed)
    });
    let ends = message_end.iter().zip(bytes_end).zip(fixed_end);
    let end_differs = ends.fold(0, |differ, ((m, b), fixed)| differ | (m ^ b) & fixed);
    differ == 0 && end_differs == 0
}
