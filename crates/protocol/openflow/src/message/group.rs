//! Groups (1.3.5 §5.6, §7.3.4.2). 1.0 has none.

use super::Body;
use crate::list::{Element, List};
use crate::reader::Reader;
use crate::wire::{U16, U32, v13};
use crate::wire_enum::wire_enum;
use crate::{Action, DecodeError, EncodeError, ErrorCode, Out, Port, Reason, Version};

/// Special group numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group;

impl Group {
    /// The maximum number of a group (`OFPG_MAX`).
    pub const MAX: u32 = 0xffff_ff00;
    /// All groups, in removals and requests (`OFPG_ALL`).
    pub const ALL: u32 = 0xffff_fffc;
    /// No particular group (`OFPG_ANY`).
    pub const ANY: u32 = 0xffff_ffff;
}

/// Command of a group_mod (`ofp_group_mod_command`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum GroupCommand {
    /// Add the group.
    Add,
    /// Change the group.
    Modify,
    /// Remove the group, and the flows that use it.
    Delete,
}

wire_enum! {
    /// Type of a group, which selects its buckets (`ofp_group_type`).
    GroupType: u8 {
        /// All buckets: multicast.
        All = 0,
        /// One bucket, by a hash and the weights.
        Select = 1,
        /// Its only bucket.
        Indirect = 2,
        /// The first live bucket.
        FastFailover = 3,
    }
}

/// A bucket of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Bucket<'a> {
    /// Its weight, in select groups.
    pub weight: u16,
    /// The port that has to be up for the bucket to be live; [`Port::ANY`] for none.
    pub watch_port: Port,
    /// The group that has to be live for the bucket to be live; [`Group::ANY`] for none.
    pub watch_group: u32,
    /// Its action set.
    pub actions: List<'a, Action<'a>>,
}

impl<'a> Bucket<'a> {
    /// Makes a bucket that watches nothing.
    #[must_use]
    pub fn of(actions: &'a [Action<'a>]) -> Self {
        Bucket {
            weight: 0,
            watch_port: Port::ANY,
            watch_group: Group::ANY,
            actions: List::of(actions),
        }
    }
}

impl<'a> Element<'a> for Bucket<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let wire: &v13::Bucket = reader.fixed("bucket")?;
        let length = usize::from(wire.length.get());
        let body_len = length
            .checked_sub(size_of::<v13::Bucket>())
            .ok_or_else(|| start.bad_length("bucket.length", length))?;
        let actions = reader.sub(body_len, "bucket actions")?;
        Ok(Bucket {
            weight: wire.weight.get(),
            watch_port: Port(wire.watch_port.get()),
            watch_group: wire.watch_group.get(),
            actions: List::decode_within(version, actions.answering(ErrorCode::ActionBadLength))?,
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let start = out.len();
        out.put(&v13::Bucket {
            length: U16::ZERO,
            weight: U16::new(self.weight),
            watch_port: U32::new(self.watch_port.0),
            watch_group: U32::new(self.watch_group),
            pad: [0; 4],
        })?;
        self.actions.encode(version, out)?;
        out.patch_length(start, 0, "bucket")
    }
}

/// Adds, changes or removes a group (1.3.5 §7.3.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GroupMod<'a> {
    /// The command.
    pub command: GroupCommand,
    /// Its type.
    pub kind: GroupType,
    /// The group.
    pub group: u32,
    /// Its buckets.
    pub buckets: List<'a, Bucket<'a>>,
}

impl<'a> Body<'a> for GroupMod<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let wire: &v13::GroupMod = reader.fixed("group_mod")?;
        let command = match wire.command.get() {
            0 => GroupCommand::Add,
            1 => GroupCommand::Modify,
            2 => GroupCommand::Delete,
            other => {
                let reason = Reason::Value(other.into());
                let answer = ErrorCode::GroupModBadCommand;
                return Err(start.error("group_mod.command", reason, answer));
            }
        };
        let buckets = List::decode(version, reader.answering(ErrorCode::GroupModBadBucket))?;
        reader.take_rest();
        let kind = GroupType::from_wire(wire.kind);
        Ok(GroupMod { command, kind, group: wire.group_id.get(), buckets })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        out.put(&v13::GroupMod {
            command: U16::new(self.command as u16),
            kind: self.kind.wire(),
            pad: 0,
            group_id: U32::new(self.group),
        })?;
        self.buckets.encode(version, out)
    }
}
