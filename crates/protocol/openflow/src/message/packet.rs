//! Packets: from a switch to the controller, and back.

use super::Body;
use crate::list::List;
use crate::reader::Reader;
use crate::wire::{U16, U32, U64, v10, v13};
use crate::wire_enum::wire_enum;
use crate::{
    Action, Bytes, DecodeError, EncodeError, ErrorCode, Family, MatchView, Out, Port, Reason,
    Version,
};

/// Wire value for no buffer (`OFP_NO_BUFFER`).
pub(crate) const NO_BUFFER: u32 = 0xffff_ffff;

#[inline]
pub(crate) fn buffer_from_wire(id: u32) -> Option<u32> {
    (id != NO_BUFFER).then_some(id)
}

wire_enum! {
    /// Why a packet came to the controller (`ofp_packet_in_reason`).
    PacketInReason: u8 {
        /// No flow matched it, or the table-miss entry did.
        NoMatch = 0,
        /// An action of a flow sent it.
        Action = 1,
        /// Its TTL expired (1.3).
        InvalidTtl = 2,
    }
}

/// A packet sent to the controller (1.0 §5.4.1; 1.3.5 §7.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PacketInMessage<'a> {
    /// Buffer of the packet at the switch, if it is buffered.
    pub buffer_id: Option<u32>,
    /// Length of the whole packet in bytes.
    pub total_len: u16,
    /// Why it was sent.
    pub reason: PacketInReason,
    /// The table whose flow sent it (0 in 1.0).
    pub table: u8,
    /// The cookie of the flow that sent it; all ones for none, and in 1.0.
    pub cookie: u64,
    /// Ingress port and other pipeline fields.
    pub matching: MatchView<'a>,
    /// The packet, from its Ethernet header on. It may be truncated if it is buffered.
    pub data: Bytes<'a>,
}

impl<'a> PacketInMessage<'a> {
    /// `cookie` for none.
    pub const NO_COOKIE: u64 = u64::MAX;

    /// Returns the ingress port; [`Port::ANY`] if the switch did not report it.
    #[must_use]
    #[inline]
    pub fn in_port(&self) -> Port {
        self.matching.in_port().unwrap_or(Port::ANY)
    }

    /// Returns whether `data` is the whole packet.
    #[must_use]
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.data.len() >= usize::from(self.total_len)
    }
}

impl<'a> Body<'a> for PacketInMessage<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version.family() {
            Family::Fixed => {
                let wire: &v10::PacketIn = reader.fixed("packet_in")?;
                Ok(PacketInMessage {
                    buffer_id: buffer_from_wire(wire.buffer_id.get()),
                    total_len: wire.total_len.get(),
                    reason: PacketInReason::from_wire(wire.reason),
                    table: 0,
                    cookie: Self::NO_COOKIE,
                    matching: MatchView::port(Port::from_v10(wire.in_port.get())),
                    data: Bytes(reader.take_rest()),
                })
            }
            Family::Oxm => {
                let wire: &v13::PacketIn = reader.fixed("packet_in")?;
                let matching = MatchView::decode(version, reader)?;
                // Two bytes align the packet's IP header to 32 bits.
                reader.take(2, "packet_in padding")?;
                Ok(PacketInMessage {
                    buffer_id: buffer_from_wire(wire.buffer_id.get()),
                    total_len: wire.total_len.get(),
                    reason: PacketInReason::from_wire(wire.reason),
                    table: wire.table_id,
                    cookie: wire.cookie.get(),
                    matching,
                    data: Bytes(reader.take_rest()),
                })
            }
        }
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let buffer_id = U32::new(self.buffer_id.unwrap_or(NO_BUFFER));
        match version.family() {
            Family::Fixed => {
                let unsupported = |what| Err(EncodeError::Unsupported { what, version });
                if self.table != 0 || self.cookie != Self::NO_COOKIE {
                    return unsupported("table or cookie of a packet_in");
                }
                let Some(port) = self.matching.in_port() else {
                    return unsupported("a packet_in without ingress port");
                };
                out.put(&v10::PacketIn {
                    buffer_id,
                    total_len: U16::new(self.total_len),
                    in_port: U16::new(port.to_v10()?),
                    reason: self.reason.wire(),
                    pad: 0,
                })?;
            }
            Family::Oxm => {
                out.put(&v13::PacketIn {
                    buffer_id,
                    total_len: U16::new(self.total_len),
                    reason: self.reason.wire(),
                    table_id: self.table,
                    cookie: U64::new(self.cookie),
                })?;
                self.matching.encode(version, out)?;
                out.zeros(2)?;
            }
        }
        out.append(&self.data)
    }
}

/// A packet to send (1.0 §5.3.6; 1.3.5 §7.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PacketOut<'a> {
    /// Buffer of the packet at the switch; `None` if the packet is in `data`.
    pub buffer_id: Option<u32>,
    /// Ingress port of the packet, for [`Port::FLOOD`], [`Port::ALL`] and [`Port::IN_PORT`]. For
    /// the controller's own packets: [`Port::ANY`] in 1.0 (`OFPP_NONE`), [`Port::CONTROLLER`] in
    /// 1.3.
    pub in_port: Port,
    /// Actions on the packet.
    pub actions: List<'a, Action<'a>>,
    /// The packet, if it is not buffered. With a buffer, a switch ignores it, and it is not
    /// written.
    pub data: Bytes<'a>,
}

impl<'a> Body<'a> for PacketOut<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (buffer_id, in_port, actions_len) = match version.family() {
            Family::Fixed => {
                let wire: &v10::PacketOut = reader.fixed("packet_out")?;
                let in_port = Port::from_v10(wire.in_port.get());
                (wire.buffer_id.get(), in_port, wire.actions_len.get())
            }
            Family::Oxm => {
                let wire: &v13::PacketOut = reader.fixed("packet_out")?;
                (wire.buffer_id.get(), Port(wire.in_port.get()), wire.actions_len.get())
            }
        };
        let actions = reader.sub(actions_len.into(), "packet_out actions")?;
        let actions = List::decode(version, actions.answering(ErrorCode::ActionBadLength))?;
        let buffer_id = buffer_from_wire(buffer_id);
        if buffer_id.is_some() && !reader.is_empty() && !reader.is_liberal() {
            let reason = Reason::Trailing(reader.len());
            return Err(reader.error("packet_out data", reason, ErrorCode::RequestBadLength));
        }
        Ok(PacketOut { buffer_id, in_port, actions, data: Bytes(reader.take_rest()) })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        if self.buffer_id.is_some() && !self.data.is_empty() {
            return Err(EncodeError::Range { what: "packet_out data beside a buffer" });
        }
        let buffer_id = U32::new(self.buffer_id.unwrap_or(NO_BUFFER));
        let start = out.len();
        let (head_len, length_at) = match version.family() {
            Family::Fixed => {
                let in_port = U16::new(self.in_port.to_v10()?);
                out.put(&v10::PacketOut { buffer_id, in_port, actions_len: U16::ZERO })?;
                (size_of::<v10::PacketOut>(), 6)
            }
            Family::Oxm => {
                out.put(&v13::PacketOut {
                    buffer_id,
                    in_port: U32::new(self.in_port.0),
                    ..Default::default()
                })?;
                (size_of::<v13::PacketOut>(), 8)
            }
        };
        self.actions.encode(version, out)?;
        out.patch_length_less(start, length_at, head_len, "packet_out actions")?;
        out.append(&self.data)
    }
}
