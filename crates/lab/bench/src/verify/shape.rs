//! The shape of a right answer: its bytes, and the offsets of the parts that change with the
//! packet.
//!
//! It is made from a message that was decoded fully and found right ([`super::full`]). Another
//! message may differ in `xid`, cookie, and the fields that name the packet. If these fields have
//! the values of its packet, it means the same for that packet. So [`AnswerShape::fits`] compares
//! these fields with the packet, and all other bytes with the right answer. A message for which
//! this is not enough has no shape, and is decoded fully each time.

use bellrock_openflow::{Family, Version};

use super::number_in;
use crate::packet::{DST_AT, FRAME_LEN, LoadPacket, NO_BUFFER, NUMBER_AT, SRC_AT, XID_AT};

pub(super) const fn flow_mod_buffer_at(family: Family) -> usize {
    match family {
        // Header, match, cookie, command, idle_timeout, hard_timeout, priority.
        Family::Fixed => 8 + 40 + 8 + 8,
        // Header, cookie, its mask, table, command, idle_timeout, hard_timeout, priority.
        Family::Oxm => 8 + 16 + 8,
    }
}

/// Offset of the last byte of a port field. Its upper bytes are zero in a right answer.
type PortAt = usize;

/// Place of a field: the offset of the eight bytes that end with it, and a mask of its bits. It is
/// compared as one number: one load and no branch per field.
#[derive(Clone, Copy, Debug, Default)]
struct FieldPlace {
    at: u16,
    mask: u64,
}

impl FieldPlace {
    /// The place of a field of at most eight bytes. Fields end after the header, so eight bytes
    /// exist.
    fn of(at: usize, len: usize, message_len: usize) -> Option<Self> {
        let start = (at + len).checked_sub(8).filter(|start| start + 8 <= message_len)?;
        let mask = u64::MAX.checked_shr(64 - 8 * len as u32)?;
        Some(FieldPlace { at: start.try_into().ok()?, mask })
    }

    /// The place of an optional field. If it is missing, any value is right.
    fn of_option(at: Option<usize>, len: usize, message_len: usize) -> Option<Self> {
        at.map_or(Some(FieldPlace::default()), |at| FieldPlace::of(at, len, message_len))
    }

    #[inline(always)]
    fn read(self, message: &[u8]) -> Option<u64> {
        let at = usize::from(self.at);
        let bytes = message.get(at..at + 8)?.first_chunk()?;
        Some(u64::from_be_bytes(*bytes) & self.mask)
    }

    /// Returns zero if the field has this value.
    #[inline(always)]
    fn differs(self, message: &[u8], value: u64) -> u64 {
        self.read(message).map_or(u64::MAX, |read| read ^ value & self.mask)
    }
}

/// Whether messages of a shape have a `buffer_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BufferField {
    /// With or without.
    Either,
    /// The `buffer_id` names the packet.
    Always,
    /// No `buffer_id`: the message carries the frame.
    Never,
}

/// A right answer that others are compared with.
#[derive(Clone, Debug)]
pub(crate) struct AnswerShape {
    bytes: Vec<u8>,
    /// Mask of the bytes that have to equal `bytes`. It is zero for bytes that are checked
    /// separately or may be anything.
    fixed: Vec<u8>,
    buffer_id: FieldPlace,
    buffer: BufferField,
    in_port: FieldPlace,
    out_port: FieldPlace,
    src: FieldPlace,
    dst: FieldPlace,
    frame: Option<FramePlaces>,
    frame_at: Option<usize>,
}

/// Places of the parts of a frame that change.
#[derive(Clone, Copy, Debug)]
struct FramePlaces {
    dst: FieldPlace,
    src: FieldPlace,
    number: FieldPlace,
}

/// Offsets of the parts of a message that change from packet to packet.
struct MessagePlaces {
    cookie_at: Option<usize>,
    buffer_at: usize,
    buffer: BufferField,
    in_port_at: Option<PortAt>,
    src_at: Option<usize>,
    dst_at: Option<usize>,
    out_port_at: Option<PortAt>,
    frame_at: Option<usize>,
}

impl AnswerShape {
    /// Makes the shape of a flow_mod that is right for `packet`. `None` for kinds that have to be
    /// decoded fully: with masks, or with more than one instruction and one action.
    pub(super) fn of_flow_mod(
        message: &[u8],
        version: Version,
        packet: &LoadPacket,
    ) -> Option<Self> {
        let places = match version.family() {
            Family::Fixed => MessagePlaces::of_fixed_flow_mod(message)?,
            Family::Oxm => MessagePlaces::of_oxm_flow_mod(message)?,
        };
        AnswerShape::with(&places, message, packet)
    }

    /// Makes the shape of a packet_out that is right for `packet`. `None` if it has more than one
    /// action.
    pub(super) fn of_packet_out(
        message: &[u8],
        version: Version,
        packet: &LoadPacket,
    ) -> Option<Self> {
        // Header, buffer_id, in_port, length of the actions, padding; then the actions.
        let (in_port_at, head, action, out_port) = match version.family() {
            Family::Fixed => (13, 16, 8, 5),
            Family::Oxm => (15, 24, 16, 7),
        };
        let frame_at = head + action;
        let has_frame = message.len() == frame_at + FRAME_LEN;
        if !has_frame && message.len() != frame_at {
            return None;
        }
        // A reserved in_port does not change with the packet.
        let in_port = message.get(in_port_at - 1..=in_port_at)?;
        let names_port = u16::from_be_bytes([in_port[0], in_port[1]]) == packet.in_port as u16;
        let out_port_at = head + out_port;
        let through_flows = message.get(out_port_at) != Some(&(packet.out_port as u8));
        let places = MessagePlaces {
            cookie_at: None,
            buffer_at: 8,
            buffer: if has_frame { BufferField::Never } else { BufferField::Always },
            in_port_at: names_port.then_some(in_port_at),
            src_at: None,
            dst_at: None,
            out_port_at: (!through_flows).then_some(out_port_at),
            frame_at: has_frame.then_some(frame_at),
        };
        AnswerShape::with(&places, message, packet)
    }
    /// Makes the shape of a message, if the message itself fits it.
    fn with(places: &MessagePlaces, message: &[u8], packet: &LoadPacket) -> Option<Self> {
        let len = message.len();
        let frame = match places.frame_at {
            None => None,
            Some(at) => Some(FramePlaces {
                dst: FieldPlace::of(at + DST_AT, 6, len)?,
                src: FieldPlace::of(at + SRC_AT, 6, len)?,
                number: FieldPlace::of(at + NUMBER_AT, 4, len)?,
            }),
        };
        let mut fixed = vec![0xff; len];
        for (at, len) in places.changing() {
            fixed.get_mut(at..at + len)?.fill(0);
        }
        let shape = AnswerShape {
            bytes: message.to_vec(),
            fixed,
            buffer_id: FieldPlace::of(places.buffer_at, 4, len)?,
            buffer: places.buffer,
            in_port: FieldPlace::of_option(places.in_port_at, 1, len)?,
            out_port: FieldPlace::of_option(places.out_port_at, 1, len)?,
            src: FieldPlace::of_option(places.src_at, 6, len)?,
            dst: FieldPlace::of_option(places.dst_at, 6, len)?,
            frame,
            frame_at: places.frame_at,
        };
        shape.fits(message, packet).map(|_| shape)
    }

    /// Length of a message of this shape, in bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Compares a message with the right answer for this packet, except `xid` and cookie. If it
    /// fits, returns whether it has the packet's `buffer_id`.
    #[inline(always)]
    pub(super) fn fits(&self, message: &[u8], packet: &LoadPacket) -> Option<bool> {
        let buffered = self.buffer_id.differs(message, packet.id().into()) == 0;
        let right = match self.buffer {
            BufferField::Always => buffered,
            BufferField::Either if buffered => true,
            BufferField::Either => self.buffer_id.differs(message, NO_BUFFER.into()) == 0,
            BufferField::Never => self.buffer_id.differs(message, NO_BUFFER.into()) == 0,
        };
        if !right {
            return None;
        }
        let mut differ = self.in_port.differs(message, packet.in_port.into())
            | self.out_port.differs(message, packet.out_port.into())
            | self.src.differs(message, packet.src.number())
            | self.dst.differs(message, packet.dst.number());
        if let Some(frame) = self.frame {
            differ |= frame.dst.differs(message, packet.dst.number())
                | frame.src.differs(message, packet.src.number())
                | frame.number.differs(message, packet.id().into());
        }
        (differ == 0 && same(message, &self.bytes, &self.fixed)).then_some(buffered)
    }

    /// Returns the number of the packet of a packet_out, from its `buffer_id` or its frame.
    #[inline]
    pub(super) fn packet_id(&self, message: &[u8]) -> Option<u32> {
        match self.frame_at {
            Some(at) => <&[u8; FRAME_LEN]>::try_from(message.get(at..)?).ok().map(number_in),
            None => self.buffer_id.read(message).map(|id| id as u32),
        }
    }
}

impl MessagePlaces {
    fn of_fixed_flow_mod(message: &[u8]) -> Option<Self> {
        const LEN: usize = 80;
        const IN_PORT: u32 = 1;
        const DL_SRC: u32 = 1 << 2;
        const DL_DST: u32 = 1 << 3;
        if message.len() != LEN {
            return None;
        }
        let wildcards = u32::from_be_bytes(*message.get(8..)?.first_chunk()?);
        let counts = |bit: u32, at: usize| (wildcards & bit == 0).then_some(at);
        Some(MessagePlaces {
            cookie_at: Some(48),
            buffer_at: flow_mod_buffer_at(Family::Fixed),
            buffer: BufferField::Either,
            in_port_at: counts(IN_PORT, 13),
            src_at: counts(DL_SRC, 14),
            dst_at: counts(DL_DST, 20),
            out_port_at: Some(77),
            frame_at: None,
        })
    }

    /// Walks through the match. One `apply_actions` with one `output` has to follow.
    fn of_oxm_flow_mod(message: &[u8]) -> Option<Self> {
        const MATCH_AT: usize = 48;
        const IN_PORT: [u8; 4] = [0x80, 0, 0, 4];
        const ETH_DST: [u8; 4] = [0x80, 0, 3 << 1, 6];
        const ETH_SRC: [u8; 4] = [0x80, 0, 4 << 1, 6];
        const METADATA: u8 = 2;
        const INSTRUCTION: [u8; 4] = [0, 4, 0, 24];
        const ACTION: [u8; 4] = [0, 0, 0, 16];
        let mut places = MessagePlaces {
            cookie_at: Some(8),
            buffer_at: flow_mod_buffer_at(Family::Oxm),
            buffer: BufferField::Either,
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
                IN_PORT => places.in_port_at = Some(at + 3),
                ETH_DST => places.dst_at = Some(at),
                ETH_SRC => places.src_at = Some(at),
                // Other conditions on ports and addresses have masks. They may fit one packet and
                // not the next.
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
        places.out_port_at = Some(action + 7);
        one.then_some(places)
    }

    /// Returns the offsets and lengths of all parts that change.
    fn changing(&self) -> impl Iterator<Item = (usize, usize)> {
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
        free.into_iter().flatten().chain(in_frame)
    }
}

/// Returns whether a message has the same length, and the same bits where `fixed` has ones.
/// Frequent lengths are constants, so that the compiler vectorizes the comparison.
#[inline(always)]
fn same(message: &[u8], bytes: &[u8], fixed: &[u8]) -> bool {
    match message.len() {
        // flow_mod of 1.0; of 1.3 with all fields, and with ports and addresses only; packet_out
        // with a frame, of 1.0 and 1.3.
        80 => same_of::<80>(message, bytes, fixed),
        160 => same_of::<160>(message, bytes, fixed),
        104 => same_of::<104>(message, bytes, fixed),
        88 => same_of::<88>(message, bytes, fixed),
        128 => same_of::<128>(message, bytes, fixed),
        _ => message.len() == bytes.len() && differences(message, bytes, fixed) == 0,
    }
}

#[inline(always)]
fn same_of<const N: usize>(message: &[u8], bytes: &[u8], fixed: &[u8]) -> bool {
    let chunk = <&[u8; N]>::try_from;
    match (chunk(message), chunk(bytes), chunk(fixed)) {
        (Ok(message), Ok(bytes), Ok(fixed)) => differences(message, bytes, fixed) == 0,
        _ => false,
    }
}

/// Returns the union of the bits that differ where `fixed` has ones. The messages have equal
/// lengths. Works word by word without branches.
#[inline(always)]
fn differences(message: &[u8], bytes: &[u8], fixed: &[u8]) -> u64 {
    let (message, message_end) = message.as_chunks::<8>();
    let (bytes, bytes_end) = bytes.as_chunks::<8>();
    let (fixed, fixed_end) = fixed.as_chunks::<8>();
    let words = message.iter().zip(bytes).zip(fixed);
    let differ = words.fold(0, |differ, ((message, bytes), fixed)| {
        let (message, bytes) = (u64::from_ne_bytes(*message), u64::from_ne_bytes(*bytes));
        differ | (message ^ bytes) & u64::from_ne_bytes(*fixed)
    });
    let ends = message_end.iter().zip(bytes_end).zip(fixed_end);
    ends.fold(differ, |differ, ((m, b), fixed)| differ | u64::from((m ^ b) & fixed))
}
