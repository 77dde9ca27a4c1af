//! Packets, and the flows, groups and meters that a controller sets up for them.

use std::fmt::{self, Display, Formatter};

use super::action::{ActionList, GroupName, MeterName};
use super::{Duration, Hex, ITEM, dump, lines};
use crate::{
    Band, BandType, FlowCommand, FlowFlags, FlowMod, FlowRemoved, FlowRemovedReason, GroupCommand,
    GroupMod, GroupType, MatchView, MeterCommand, MeterMod, PacketInMessage, PacketInReason,
    PacketOut, Port,
};

impl Display for PacketInMessage<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // 1.0 has neither table nor cookie.
        if self.table != 0 || self.cookie != PacketInMessage::NO_COOKIE {
            write!(f, "table_id={} ", self.table)?;
        }
        if self.cookie != PacketInMessage::NO_COOKIE {
            write!(f, "cookie={:#x} ", self.cookie)?;
        }
        write!(f, "total_len={} {} (via {})", self.total_len, self.matching, self.reason)?;
        write!(f, " data_len={} ", self.data.len())?;
        match self.buffer_id {
            Some(id) => write!(f, "(buffer={id:#010x})")?,
            None if self.is_whole() => f.write_str("(unbuffered)")?,
            None => f.write_str("(unbuffered, truncated)")?,
        }
        dump(&self.data, f)
    }
}

impl Display for PacketInReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PacketInReason::NoMatch => f.write_str("no_match"),
            PacketInReason::Action => f.write_str("action"),
            PacketInReason::InvalidTtl => f.write_str("invalid_ttl"),
            PacketInReason::Unknown(reason) => write!(f, "reason {reason}"),
        }
    }
}

impl Display for PacketOut<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "in_port={} actions={} ", self.in_port, ActionList(self.actions))?;
        match self.buffer_id {
            Some(id) => write!(f, "buffer={id:#010x}")?,
            None => write!(f, "data_len={}", self.data.len())?,
        }
        if self.buffer_id.is_some() && !self.data.is_empty() {
            write!(f, " data_len={}", self.data.len())?;
        }
        dump(&self.data, f)
    }
}

/// Prints priority and match of a flow: `priority=100,in_port=1`.
pub(super) fn rule(priority: u16, matching: &MatchView<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "priority={priority}")?;
    if matching.to_match().is_any() { Ok(()) } else { write!(f, ",{matching}") }
}

/// Prints a table number; `ALL` for all.
pub(super) struct TableName(pub(super) u8);

impl Display for TableName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            FlowMod::ALL_TABLES => f.write_str("ALL"),
            number => write!(f, "{number}"),
        }
    }
}

/// Prints timeouts and flags that are set, each followed by a comma.
pub(super) fn ageing(
    idle_timeout: u16,
    hard_timeout: u16,
    flags: FlowFlags,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    if idle_timeout != 0 {
        write!(f, "idle_timeout={idle_timeout}, ")?;
    }
    if hard_timeout != 0 {
        write!(f, "hard_timeout={hard_timeout}, ")?;
    }
    if !flags.is_empty() {
        write!(f, "flags={flags}, ")?;
    }
    Ok(())
}

/// Prints a cookie and, if relevant, its mask, followed by a comma.
pub(super) fn cookie(cookie: u64, mask: u64, f: &mut Formatter<'_>) -> fmt::Result {
    match mask {
        0 => write!(f, "cookie={cookie:#x}, "),
        mask => write!(f, "cookie={cookie:#x}/{mask:#x}, "),
    }
}

/// Prints the filters on the output of flows that are set, each followed by a comma.
pub(super) fn towards(port: Port, group: u32, f: &mut Formatter<'_>) -> fmt::Result {
    if port != Port::ANY {
        write!(f, "out_port={port}, ")?;
    }
    if group != FlowMod::ANY_GROUP {
        write!(f, "out_group={}, ", GroupName(group))?;
    }
    Ok(())
}

impl Display for FlowMod<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} table={}, ", self.command, TableName(self.table))?;
        cookie(self.cookie, self.cookie_mask, f)?;
        ageing(self.idle_timeout, self.hard_timeout, self.flags, f)?;
        if let Some(id) = self.buffer_id {
            write!(f, "buffer={id:#010x}, ")?;
        }
        towards(self.out_port, self.out_group, f)?;
        rule(self.priority, &self.matching, f)?;
        if self.command.is_delete() && self.instructions.iter().next().is_none() {
            return Ok(());
        }
        write!(f, " actions={}", self.instructions)
    }
}

impl Display for FlowCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FlowCommand::Add => "ADD",
            FlowCommand::Modify => "MODIFY",
            FlowCommand::ModifyStrict => "MODIFY_STRICT",
            FlowCommand::Delete => "DELETE",
            FlowCommand::DeleteStrict => "DELETE_STRICT",
        })
    }
}

impl Display for FlowRemoved<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "reason={}, table={}, ", self.reason, TableName(self.table))?;
        write!(f, "cookie={:#x}, ", self.cookie)?;
        write!(f, "duration={}, ", Duration(self.duration_sec, self.duration_nsec))?;
        write!(f, "n_packets={}, n_bytes={}, ", self.packet_count, self.byte_count)?;
        ageing(self.idle_timeout, self.hard_timeout, FlowFlags::empty(), f)?;
        rule(self.priority, &self.matching, f)
    }
}

impl Display for FlowRemovedReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            FlowRemovedReason::IdleTimeout => f.write_str("idle_timeout"),
            FlowRemovedReason::HardTimeout => f.write_str("hard_timeout"),
            FlowRemovedReason::Delete => f.write_str("delete"),
            FlowRemovedReason::GroupDelete => f.write_str("group_delete"),
            FlowRemovedReason::Unknown(reason) => write!(f, "{reason}"),
        }
    }
}

impl Display for GroupMod<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let command = match self.command {
            GroupCommand::Add => "ADD",
            GroupCommand::Modify => "MODIFY",
            GroupCommand::Delete => "DELETE",
        };
        write!(f, "{command} group_id={}, type={}", GroupName(self.group), self.kind)?;
        lines(ITEM, self.buckets.iter(), f)
    }
}

impl Display for GroupType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            GroupType::All => f.write_str("all"),
            GroupType::Select => f.write_str("select"),
            GroupType::Indirect => f.write_str("indirect"),
            GroupType::FastFailover => f.write_str("ff"),
            GroupType::Unknown(kind) => write!(f, "{kind}"),
        }
    }
}

impl Display for MeterMod<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let command = match self.command {
            MeterCommand::Add => "ADD",
            MeterCommand::Modify => "MODIFY",
            MeterCommand::Delete => "DELETE",
        };
        write!(f, "{command} meter={}, flags={}", MeterName(self.meter), self.flags)?;
        lines(ITEM, self.bands.iter(), f)
    }
}

impl Display for Band<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("band=")?;
        match self.kind {
            BandType::Drop => f.write_str("drop")?,
            BandType::DscpRemark(level) => write!(f, "dscp_remark:{level}")?,
            BandType::Experimenter { experimenter, data } => {
                write!(f, "experimenter({experimenter:#010x},{})", Hex(&data))?;
            }
            BandType::Unknown { kind, argument, data } => {
                write!(f, "band({kind},{}{})", Hex(&argument), Hex(&data))?;
            }
        }
        write!(f, ", rate={}", self.rate)?;
        if self.burst_size != 0 {
            write!(f, ", burst_size={}", self.burst_size)?;
        }
        Ok(())
    }
}
