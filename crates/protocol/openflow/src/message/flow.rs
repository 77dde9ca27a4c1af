//! Flows: adding, changing and removing them, and the message that a flow was removed.

use super::Body;
use super::packet::{NO_BUFFER, buffer_from_wire};
use crate::flags::flags;
use crate::reader::Reader;
use crate::wire::{U16, U32, U64, v10, v13};
use crate::wire_enum::wire_enum;
use crate::{
    Action, DecodeError, EncodeError, ErrorCode, Family, Instructions, MatchView, Out, Port,
    Reason, Version,
};

/// Command of a flow_mod (`ofp_flow_mod_command`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum FlowCommand {
    /// Add a flow. It replaces a flow with the same match and priority.
    Add,
    /// Change the instructions of all matching flows; in 1.0, add a flow if there is none.
    Modify,
    /// Change the instructions of the flow with the same match and priority.
    ModifyStrict,
    /// Remove all matching flows.
    Delete,
    /// Remove the flow with the same match and priority.
    DeleteStrict,
}

impl FlowCommand {
    pub(super) fn from_wire(number: u16) -> Option<Self> {
        Some(match number {
            0 => FlowCommand::Add,
            1 => FlowCommand::Modify,
            2 => FlowCommand::ModifyStrict,
            3 => FlowCommand::Delete,
            4 => FlowCommand::DeleteStrict,
            _ => return None,
        })
    }

    /// Returns whether it removes flows.
    #[must_use]
    pub const fn is_delete(self) -> bool {
        matches!(self, FlowCommand::Delete | FlowCommand::DeleteStrict)
    }
}

flags! {
    /// Flags of a flow (`ofp_flow_mod_flags`). 1.0's `EMERG` has its own bit here, because 1.3 uses
    /// its bit for `RESET_COUNTS`.
    FlowFlags: u32 {
        SEND_FLOW_REM = 1 << 0;
        CHECK_OVERLAP = 1 << 1;
        RESET_COUNTS = 1 << 2;
        NO_PKT_COUNTS = 1 << 3;
        NO_BYT_COUNTS = 1 << 4;
        EMERG = 1 << 16;
    }
}

impl FlowFlags {
    pub(super) fn from_wire(version: Version, bits: u16) -> Self {
        let bits = u32::from(bits);
        FlowFlags::from_bits_retain(match version.family() {
            Family::Fixed => bits & !(1 << 2) | (bits >> 2 & 1) << 16,
            Family::Oxm => bits,
        })
    }

    pub(super) fn wire(self, version: Version) -> Result<u16, EncodeError> {
        let unsupported = |what| EncodeError::Unsupported { what, version };
        match version.family() {
            Family::Fixed if self.contains(FlowFlags::RESET_COUNTS) => {
                Err(unsupported("the flow flag RESET_COUNTS"))
            }
            Family::Fixed => Ok(self.bits() as u16 | (((self.bits() >> 16) & 1) << 2) as u16),
            Family::Oxm => {
                u16::try_from(self.bits()).map_err(|_| unsupported("the flow flag EMERG"))
            }
        }
    }
}

/// Adds, changes or removes flows (1.0 §5.3.3; 1.3.5 §7.3.4.1).
///
/// ```
/// use bellrock_openflow::{Action, FlowMod, Match, Port};
/// let to_two = [Action::output(Port(2))];
/// let matching = Match::any().in_port(Port(1));
/// let flow = FlowMod::add(&matching).priority(100).idle_timeout(60).actions(&to_two);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FlowMod<'a> {
    /// The command.
    pub command: FlowCommand,
    /// The table; [`FlowMod::ALL_TABLES`] to remove from all. 1.0 has only table 0, and removes
    /// from "all".
    pub table: u8,
    /// A number chosen by the controller. Messages about the flow contain it.
    pub cookie: u64,
    /// To change or remove: the bits of the cookie that have to be equal (1.3).
    pub cookie_mask: u64,
    /// Seconds without a packet until the flow is removed; 0 for never.
    pub idle_timeout: u16,
    /// Seconds until the flow is removed; 0 for never.
    pub hard_timeout: u16,
    /// Priority. The matching flow with the highest priority applies.
    pub priority: u16,
    /// A buffered packet to process with the new flow.
    pub buffer_id: Option<u32>,
    /// To remove: only flows that send to this port; [`Port::ANY`] for all.
    pub out_port: Port,
    /// To remove: only flows that send to this group; [`FlowMod::ANY_GROUP`] for all (1.3).
    pub out_group: u32,
    /// Flags of the flow.
    pub flags: FlowFlags,
    /// The match.
    pub matching: MatchView<'a>,
    /// The instructions.
    pub instructions: Instructions<'a>,
}

impl<'a> FlowMod<'a> {
    /// `table` for all tables (`OFPTT_ALL`).
    pub const ALL_TABLES: u8 = 0xff;
    /// `out_group` for all groups (`OFPG_ANY`).
    pub const ANY_GROUP: u32 = 0xffff_ffff;
    /// The middle of the priorities (`OFP_DEFAULT_PRIORITY`).
    pub const DEFAULT_PRIORITY: u16 = 0x8000;

    /// Adds a flow that drops its packets, in table 0, with the default priority, without timeouts.
    #[must_use]
    pub fn add(matching: impl Into<MatchView<'a>>) -> Self {
        FlowMod {
            command: FlowCommand::Add,
            table: 0,
            cookie: 0,
            cookie_mask: 0,
            idle_timeout: 0,
            hard_timeout: 0,
            priority: Self::DEFAULT_PRIORITY,
            buffer_id: None,
            out_port: Port::ANY,
            out_group: Self::ANY_GROUP,
            flags: FlowFlags::empty(),
            matching: matching.into(),
            instructions: Instructions::none(),
        }
    }

    /// Changes the instructions of the matching flows in table 0.
    #[must_use]
    pub fn modify(matching: impl Into<MatchView<'a>>) -> Self {
        FlowMod { command: FlowCommand::Modify, ..Self::add(matching) }
    }

    /// Removes the matching flows of all tables.
    #[must_use]
    pub fn delete(matching: impl Into<MatchView<'a>>) -> Self {
        FlowMod { command: FlowCommand::Delete, table: Self::ALL_TABLES, ..Self::add(matching) }
    }

    /// Sets the actions to apply to matching packets.
    #[must_use]
    pub fn actions(self, actions: &'a [Action<'a>]) -> Self {
        FlowMod { instructions: Instructions::apply(actions), ..self }
    }

    /// Sets the instructions of the flow (1.3).
    #[must_use]
    pub fn instructions(self, instructions: &'a [crate::Instruction<'a>]) -> Self {
        FlowMod { instructions: Instructions::of(instructions), ..self }
    }

    /// Changes or removes only the flow with the same match and priority.
    #[must_use]
    pub fn strict(self) -> Self {
        let command = match self.command {
            FlowCommand::Modify => FlowCommand::ModifyStrict,
            FlowCommand::Delete => FlowCommand::DeleteStrict,
            other => other,
        };
        FlowMod { command, ..self }
    }

    /// Sets the table (1.3).
    #[must_use]
    pub fn table(self, table: u8) -> Self {
        FlowMod { table, ..self }
    }

    /// Sets the priority.
    #[must_use]
    pub fn priority(self, priority: u16) -> Self {
        FlowMod { priority, ..self }
    }

    /// Sets the cookie.
    #[must_use]
    pub fn cookie(self, cookie: u64) -> Self {
        FlowMod { cookie, ..self }
    }

    /// Selects only flows whose cookie equals `cookie` in the bits of `mask` (1.3).
    #[must_use]
    pub fn cookie_mask(self, cookie: u64, mask: u64) -> Self {
        FlowMod { cookie, cookie_mask: mask, ..self }
    }

    /// Sets the seconds without a packet until the flow is removed.
    #[must_use]
    pub fn idle_timeout(self, seconds: u16) -> Self {
        FlowMod { idle_timeout: seconds, ..self }
    }

    /// Sets the seconds until the flow is removed.
    #[must_use]
    pub fn hard_timeout(self, seconds: u16) -> Self {
        FlowMod { hard_timeout: seconds, ..self }
    }

    /// Sets the buffered packet to process with the new flow.
    #[must_use]
    pub fn buffer_id(self, buffer_id: Option<u32>) -> Self {
        FlowMod { buffer_id, ..self }
    }

    /// Removes only flows that send to this port.
    #[must_use]
    pub fn out_port(self, port: Port) -> Self {
        FlowMod { out_port: port, ..self }
    }

    /// Sets the flags.
    #[must_use]
    pub fn flags(self, flags: FlowFlags) -> Self {
        FlowMod { flags, ..self }
    }

    fn check_v10(&self) -> Result<(), EncodeError> {
        let all_of_them = self.command.is_delete() && self.table == Self::ALL_TABLES;
        let what = match self {
            FlowMod { table, .. } if *table != 0 && !all_of_them => "a table other than 0",
            FlowMod { cookie_mask, .. } if *cookie_mask != 0 => "a cookie mask",
            FlowMod { out_group, .. } if *out_group != Self::ANY_GROUP => "groups",
            _ => return Ok(()),
        };
        Err(EncodeError::Unsupported { what, version: Version::V1_0 })
    }
}

impl<'a> Body<'a> for FlowMod<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version.family() {
            Family::Fixed => {
                let matching = MatchView::decode(version, reader)?;
                let start = *reader;
                let wire: &v10::FlowMod = reader.fixed("flow_mod")?;
                let command = command_from_wire(wire.command.get(), &start)?;
                Ok(FlowMod {
                    command,
                    table: if command.is_delete() { Self::ALL_TABLES } else { 0 },
                    cookie: wire.cookie.get(),
                    cookie_mask: 0,
                    idle_timeout: wire.idle_timeout.get(),
                    hard_timeout: wire.hard_timeout.get(),
                    priority: wire.priority.get(),
                    buffer_id: buffer_from_wire(wire.buffer_id.get()),
                    out_port: Port::from_v10(wire.out_port.get()),
                    out_group: Self::ANY_GROUP,
                    flags: FlowFlags::from_wire(version, wire.flags.get()),
                    matching,
                    instructions: Instructions::decode(version, reader)?,
                })
            }
            Family::Oxm => {
                let start = *reader;
                let wire: &v13::FlowMod = reader.fixed("flow_mod")?;
                Ok(FlowMod {
                    command: command_from_wire(wire.command.into(), &start)?,
                    table: wire.table_id,
                    cookie: wire.cookie.get(),
                    cookie_mask: wire.cookie_mask.get(),
                    idle_timeout: wire.idle_timeout.get(),
                    hard_timeout: wire.hard_timeout.get(),
                    priority: wire.priority.get(),
                    buffer_id: buffer_from_wire(wire.buffer_id.get()),
                    out_port: Port(wire.out_port.get()),
                    out_group: wire.out_group.get(),
                    flags: FlowFlags::from_wire(version, wire.flags.get()),
                    matching: MatchView::decode(version, reader)?,
                    instructions: Instructions::decode(version, reader)?,
                })
            }
        }
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let buffer_id = U32::new(self.buffer_id.unwrap_or(NO_BUFFER));
        self.matching.check()?;
        match version.family() {
            Family::Fixed => {
                self.check_v10()?;
                self.matching.encode(version, out)?;
                out.put(&v10::FlowMod {
                    cookie: U64::new(self.cookie),
                    command: U16::new(self.command as u16),
                    idle_timeout: U16::new(self.idle_timeout),
                    hard_timeout: U16::new(self.hard_timeout),
                    priority: U16::new(self.priority),
                    buffer_id,
                    out_port: U16::new(self.out_port.to_v10()?),
                    flags: U16::new(self.flags.wire(version)?),
                })?;
            }
            Family::Oxm => {
                out.put(&v13::FlowMod {
                    cookie: U64::new(self.cookie),
                    cookie_mask: U64::new(self.cookie_mask),
                    table_id: self.table,
                    command: self.command as u8,
                    idle_timeout: U16::new(self.idle_timeout),
                    hard_timeout: U16::new(self.hard_timeout),
                    priority: U16::new(self.priority),
                    buffer_id,
                    out_port: U32::new(self.out_port.0),
                    out_group: U32::new(self.out_group),
                    flags: U16::new(self.flags.wire(version)?),
                    pad: [0; 2],
                })?;
                self.matching.encode(version, out)?;
            }
        }
        self.instructions.encode(version, out)
    }
}

fn command_from_wire(number: u16, at: &Reader<'_>) -> Result<FlowCommand, DecodeError> {
    FlowCommand::from_wire(number).ok_or_else(|| {
        at.error("flow_mod.command", Reason::Value(number.into()), ErrorCode::FlowModBadCommand)
    })
}

wire_enum! {
    /// Why a flow was removed (`ofp_flow_removed_reason`).
    FlowRemovedReason: u8 {
        /// No packet matched during its idle timeout.
        IdleTimeout = 0,
        /// Its hard timeout expired.
        HardTimeout = 1,
        /// A flow_mod removed it.
        Delete = 2,
        /// Its group was removed (1.3).
        GroupDelete = 3,
    }
}

/// Reports that a flow was removed (1.0 §5.4.2; 1.3.5 §7.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FlowRemoved<'a> {
    /// Its cookie.
    pub cookie: u64,
    /// Its priority.
    pub priority: u16,
    /// Why it was removed.
    pub reason: FlowRemovedReason,
    /// Its table (0 in 1.0).
    pub table: u8,
    /// How long it existed, in whole seconds.
    pub duration_sec: u32,
    /// Additional nanoseconds.
    pub duration_nsec: u32,
    /// Its idle timeout in seconds.
    pub idle_timeout: u16,
    /// Its hard timeout in seconds (0 in 1.0, which does not report it).
    pub hard_timeout: u16,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes that it matched.
    pub byte_count: u64,
    /// Its match.
    pub matching: MatchView<'a>,
}

impl<'a> FlowRemoved<'a> {
    /// Returns whether its match has a meaning here; see [`crate::FlowStats::is_well_formed`].
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        self.matching.to_match().is_well_formed()
    }
}

impl<'a> Body<'a> for FlowRemoved<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version.family() {
            Family::Fixed => {
                let matching = MatchView::decode(version, reader)?;
                let wire: &v10::FlowRemoved = reader.fixed("flow_removed")?;
                Ok(FlowRemoved {
                    cookie: wire.cookie.get(),
                    priority: wire.priority.get(),
                    reason: FlowRemovedReason::from_wire(wire.reason),
                    table: 0,
                    duration_sec: wire.duration_sec.get(),
                    duration_nsec: wire.duration_nsec.get(),
                    idle_timeout: wire.idle_timeout.get(),
                    hard_timeout: 0,
                    packet_count: wire.packet_count.get(),
                    byte_count: wire.byte_count.get(),
                    matching,
                })
            }
            Family::Oxm => {
                let wire: &v13::FlowRemoved = reader.fixed("flow_removed")?;
                Ok(FlowRemoved {
                    cookie: wire.cookie.get(),
                    priority: wire.priority.get(),
                    reason: FlowRemovedReason::from_wire(wire.reason),
                    table: wire.table_id,
                    duration_sec: wire.duration_sec.get(),
                    duration_nsec: wire.duration_nsec.get(),
                    idle_timeout: wire.idle_timeout.get(),
                    hard_timeout: wire.hard_timeout.get(),
                    packet_count: wire.packet_count.get(),
                    byte_count: wire.byte_count.get(),
                    matching: MatchView::decode(version, reader)?,
                })
            }
        }
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        match version.family() {
            Family::Fixed => {
                if self.table != 0 || self.hard_timeout != 0 {
                    let what = "table or hard timeout of a flow_removed";
                    return Err(EncodeError::Unsupported { what, version });
                }
                self.matching.encode(version, out)?;
                out.put(&v10::FlowRemoved {
                    cookie: U64::new(self.cookie),
                    priority: U16::new(self.priority),
                    reason: self.reason.wire(),
                    pad: 0,
                    duration_sec: U32::new(self.duration_sec),
                    duration_nsec: U32::new(self.duration_nsec),
                    idle_timeout: U16::new(self.idle_timeout),
                    pad2: [0; 2],
                    packet_count: U64::new(self.packet_count),
                    byte_count: U64::new(self.byte_count),
                })
            }
            Family::Oxm => {
                out.put(&v13::FlowRemoved {
                    cookie: U64::new(self.cookie),
                    priority: U16::new(self.priority),
                    reason: self.reason.wire(),
                    table_id: self.table,
                    duration_sec: U32::new(self.duration_sec),
                    duration_nsec: U32::new(self.duration_nsec),
                    idle_timeout: U16::new(self.idle_timeout),
                    hard_timeout: U16::new(self.hard_timeout),
                    packet_count: U64::new(self.packet_count),
                    byte_count: U64::new(self.byte_count),
                })?;
                self.matching.encode(version, out)
            }
        }
    }
}
