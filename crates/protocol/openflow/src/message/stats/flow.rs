//! Flows and their counters (1.0 §5.3.5; 1.3.5 §7.3.5.2, §7.3.5.3).

use crate::list::Element;
use crate::message::FlowFlags;
use crate::reader::Reader;
use crate::wire::{self, U16, U32, U64, v10, v13};
use crate::{
    DecodeError, EncodeError, Family, FlowMod, Instructions, MatchView, Out, Port, Version,
};

/// Selects the flows to report, individually or as a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FlowStatsRequest<'a> {
    /// The table; [`FlowMod::ALL_TABLES`] for all.
    pub table: u8,
    /// Only flows that send to this port; [`Port::ANY`] for all.
    pub out_port: Port,
    /// Only flows that send to this group; [`FlowMod::ANY_GROUP`] for all (1.3).
    pub out_group: u32,
    /// Only flows whose cookie equals this in the bits of the mask (1.3).
    pub cookie: u64,
    /// The bits of the cookie to compare (1.3).
    pub cookie_mask: u64,
    /// Only flows that this match covers.
    pub matching: MatchView<'a>,
}

impl<'a> FlowStatsRequest<'a> {
    /// Selects all flows that `matching` covers.
    #[must_use]
    pub fn all(matching: impl Into<MatchView<'a>>) -> Self {
        FlowStatsRequest {
            table: FlowMod::ALL_TABLES,
            out_port: Port::ANY,
            out_group: FlowMod::ANY_GROUP,
            cookie: 0,
            cookie_mask: 0,
            matching: matching.into(),
        }
    }

    pub(crate) fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version.family() {
            Family::Fixed => {
                let matching = MatchView::decode(version, reader)?;
                let wire: &v10::FlowStatsRequest = reader.fixed("flow stats request")?;
                Ok(FlowStatsRequest {
                    table: wire.table_id,
                    out_port: Port::from_v10(wire.out_port.get()),
                    ..Self::all(matching)
                })
            }
            Family::Oxm => {
                let wire: &v13::FlowStatsRequest = reader.fixed("flow stats request")?;
                Ok(FlowStatsRequest {
                    table: wire.table_id,
                    out_port: Port(wire.out_port.get()),
                    out_group: wire.out_group.get(),
                    cookie: wire.cookie.get(),
                    cookie_mask: wire.cookie_mask.get(),
                    matching: MatchView::decode(version, reader)?,
                })
            }
        }
    }

    pub(crate) fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        self.matching.check()?;
        match version.family() {
            Family::Fixed => {
                if self.out_group != FlowMod::ANY_GROUP || self.cookie != 0 || self.cookie_mask != 0
                {
                    let what = "group or cookie of a flow stats request";
                    return Err(EncodeError::Unsupported { what, version });
                }
                self.matching.encode(version, out)?;
                out.put(&v10::FlowStatsRequest {
                    table_id: self.table,
                    pad: 0,
                    out_port: U16::new(self.out_port.to_v10()?),
                })
            }
            Family::Oxm => {
                out.put(&v13::FlowStatsRequest {
                    table_id: self.table,
                    out_port: U32::new(self.out_port.0),
                    out_group: U32::new(self.out_group),
                    cookie: U64::new(self.cookie),
                    cookie_mask: U64::new(self.cookie_mask),
                    ..Default::default()
                })?;
                self.matching.encode(version, out)
            }
        }
    }
}

/// A flow with its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FlowStats<'a> {
    /// Its table.
    pub table: u8,
    /// How long it has existed, in whole seconds.
    pub duration_sec: u32,
    /// Additional nanoseconds.
    pub duration_nsec: u32,
    /// Its priority.
    pub priority: u16,
    /// Its idle timeout in seconds; 0 for none.
    pub idle_timeout: u16,
    /// Its hard timeout in seconds; 0 for none.
    pub hard_timeout: u16,
    /// Its flags (empty in 1.0, which does not report them).
    pub flags: FlowFlags,
    /// Its cookie.
    pub cookie: u64,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes that it matched.
    pub byte_count: u64,
    /// Its match.
    pub matching: MatchView<'a>,
    /// Its instructions.
    pub instructions: Instructions<'a>,
}

impl<'a> FlowStats<'a> {
    /// Returns whether its match and instructions have a meaning here. This is true for every flow
    /// of this controller, but not always for other flows ([`crate::Strictness::Liberal`]).
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        self.matching.to_match().is_well_formed() && self.instructions.is_well_formed()
    }

    fn decode_fixed(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let head: &v10::FlowStatsHead = reader.fixed("flow stats")?;
        let mut body = entry(&start, reader, head.length.get(), size_of::<v10::FlowStatsHead>())?;
        let matching = MatchView::decode(version, &mut body)?;
        let tail: &v10::FlowStatsTail = body.fixed("flow stats")?;
        Ok(FlowStats {
            table: head.table_id,
            duration_sec: tail.duration_sec.get(),
            duration_nsec: tail.duration_nsec.get(),
            priority: tail.priority.get(),
            idle_timeout: tail.idle_timeout.get(),
            hard_timeout: tail.hard_timeout.get(),
            flags: FlowFlags::empty(),
            cookie: tail.cookie.get(),
            packet_count: tail.packet_count.get(),
            byte_count: tail.byte_count.get(),
            matching,
            instructions: Instructions::decode(version, &mut body)?,
        })
    }

    fn decode_oxm(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let wire: &v13::FlowStats = reader.fixed("flow stats")?;
        let mut body = entry(&start, reader, wire.length.get(), size_of::<v13::FlowStats>())?;
        Ok(FlowStats {
            table: wire.table_id,
            duration_sec: wire.duration_sec.get(),
            duration_nsec: wire.duration_nsec.get(),
            priority: wire.priority.get(),
            idle_timeout: wire.idle_timeout.get(),
            hard_timeout: wire.hard_timeout.get(),
            flags: FlowFlags::from_wire(version, wire.flags.get()),
            cookie: wire.cookie.get(),
            packet_count: wire.packet_count.get(),
            byte_count: wire.byte_count.get(),
            matching: MatchView::decode_within(version, &mut body)?,
            instructions: Instructions::decode(version, &mut body)?,
        })
    }
}

/// Returns the rest of an entry with a length field, of which `head` bytes are already read.
pub(super) fn entry<'a>(
    start: &Reader<'a>,
    reader: &mut Reader<'a>,
    length: u16,
    head: usize,
) -> Result<Reader<'a>, DecodeError> {
    let length = usize::from(length);
    let body = length.checked_sub(head).ok_or_else(|| start.bad_length("entry length", length))?;
    reader.sub(body, "entry")
}

impl<'a> Element<'a> for FlowStats<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version.family() {
            Family::Fixed => FlowStats::decode_fixed(version, reader),
            Family::Oxm => FlowStats::decode_oxm(version, reader),
        }
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let start = out.len();
        match version.family() {
            Family::Fixed => {
                if !self.flags.is_empty() {
                    let what = "flags of flow stats";
                    return Err(EncodeError::Unsupported { what, version });
                }
                let (length, table_id) = (U16::ZERO, self.table);
                out.put(&v10::FlowStatsHead { length, table_id, pad: 0 })?;
                self.matching.encode(version, out)?;
                out.put(&v10::FlowStatsTail {
                    duration_sec: U32::new(self.duration_sec),
                    duration_nsec: U32::new(self.duration_nsec),
                    priority: U16::new(self.priority),
                    idle_timeout: U16::new(self.idle_timeout),
                    hard_timeout: U16::new(self.hard_timeout),
                    pad: [0; 6],
                    cookie: U64::new(self.cookie),
                    packet_count: U64::new(self.packet_count),
                    byte_count: U64::new(self.byte_count),
                })?;
            }
            Family::Oxm => {
                out.put(&v13::FlowStats {
                    length: U16::ZERO,
                    table_id: self.table,
                    pad: 0,
                    duration_sec: U32::new(self.duration_sec),
                    duration_nsec: U32::new(self.duration_nsec),
                    priority: U16::new(self.priority),
                    idle_timeout: U16::new(self.idle_timeout),
                    hard_timeout: U16::new(self.hard_timeout),
                    flags: U16::new(self.flags.wire(version)?),
                    pad2: [0; 4],
                    cookie: U64::new(self.cookie),
                    packet_count: U64::new(self.packet_count),
                    byte_count: U64::new(self.byte_count),
                })?;
                self.matching.encode(version, out)?;
            }
        }
        self.instructions.encode(version, out)?;
        out.patch_length(start, 0, "flow stats")
    }
}

/// Sums over flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Aggregate {
    /// Packets.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
    /// Flows.
    pub flow_count: u32,
}

impl Aggregate {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let wire: &wire::Aggregate = reader.fixed("aggregate")?;
        Ok(Aggregate {
            packet_count: wire.packet_count.get(),
            byte_count: wire.byte_count.get(),
            flow_count: wire.flow_count.get(),
        })
    }

    pub(crate) fn encode(&self, out: &mut Out) -> Result<(), EncodeError> {
        out.put(&wire::Aggregate {
            packet_count: U64::new(self.packet_count),
            byte_count: U64::new(self.byte_count),
            flow_count: U32::new(self.flow_count),
            pad: [0; 4],
        })
    }
}
