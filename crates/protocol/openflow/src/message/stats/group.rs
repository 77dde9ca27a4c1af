//! Groups: counters, configuration, and features of a switch (1.3.5 §7.3.5.9 to §7.3.5.11).

use super::flow::entry;
use crate::list::{Element, List};
use crate::message::{Bucket, GroupType};
use crate::reader::Reader;
use crate::wire::{U16, U32, U64, v13};
use crate::{DecodeError, EncodeError, Out, Version};

/// Packets and bytes of a bucket or of a band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PacketByteCount {
    /// Packets.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
}

impl<'a> Element<'a> for PacketByteCount {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let wire: &v13::Counter = reader.fixed("counter")?;
        Ok(PacketByteCount {
            packet_count: wire.packet_count.get(),
            byte_count: wire.byte_count.get(),
        })
    }

    fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
        out.put(&v13::Counter {
            packet_count: U64::new(self.packet_count),
            byte_count: U64::new(self.byte_count),
        })
    }
}

/// Counters of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GroupStats<'a> {
    /// The group.
    pub group: u32,
    /// Number of flows and groups that use it.
    pub ref_count: u32,
    /// Packets that it processed.
    pub packet_count: u64,
    /// Bytes that it processed.
    pub byte_count: u64,
    /// How long it has existed, in whole seconds.
    pub duration_sec: u32,
    /// Additional nanoseconds.
    pub duration_nsec: u32,
    /// Counters of each of its buckets.
    pub buckets: List<'a, PacketByteCount>,
}

impl<'a> Element<'a> for GroupStats<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let wire: &v13::GroupStats = reader.fixed("group stats")?;
        let buckets = entry(&start, reader, wire.length.get(), size_of::<v13::GroupStats>())?;
        Ok(GroupStats {
            group: wire.group_id.get(),
            ref_count: wire.ref_count.get(),
            packet_count: wire.packet_count.get(),
            byte_count: wire.byte_count.get(),
            duration_sec: wire.duration_sec.get(),
            duration_nsec: wire.duration_nsec.get(),
            buckets: List::decode_within(version, buckets)?,
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let start = out.len();
        out.put(&v13::GroupStats {
            group_id: U32::new(self.group),
            ref_count: U32::new(self.ref_count),
            packet_count: U64::new(self.packet_count),
            byte_count: U64::new(self.byte_count),
            duration_sec: U32::new(self.duration_sec),
            duration_nsec: U32::new(self.duration_nsec),
            ..Default::default()
        })?;
        self.buckets.encode(version, out)?;
        out.patch_length(start, 0, "group stats")
    }
}

/// Configuration of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GroupDesc<'a> {
    /// Its type.
    pub kind: GroupType,
    /// The group.
    pub group: u32,
    /// Its buckets.
    pub buckets: List<'a, Bucket<'a>>,
}

impl<'a> Element<'a> for GroupDesc<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let wire: &v13::GroupDesc = reader.fixed("group desc")?;
        let buckets = entry(&start, reader, wire.length.get(), size_of::<v13::GroupDesc>())?;
        Ok(GroupDesc {
            kind: GroupType::from_wire(wire.kind),
            group: wire.group_id.get(),
            buckets: List::decode_within(version, buckets)?,
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let start = out.len();
        let (length, kind) = (U16::ZERO, self.kind.wire());
        out.put(&v13::GroupDesc { length, kind, pad: 0, group_id: U32::new(self.group) })?;
        self.buckets.encode(version, out)?;
        out.patch_length(start, 0, "group desc")
    }
}

/// Group features of a switch. Arrays are indexed by the number of the group type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GroupFeatures {
    /// One bit per supported group type.
    pub types: u32,
    /// `ofp_group_capabilities`: select by weight, by liveness, chaining, checks of chaining.
    pub capabilities: u32,
    /// Maximum number of groups of each type.
    pub max_groups: [u32; 4],
    /// Supported actions of each group type, one bit per action type.
    pub actions: [u32; 4],
}

impl GroupFeatures {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let wire: &v13::GroupFeatures = reader.fixed("group features")?;
        Ok(GroupFeatures {
            types: wire.types.get(),
            capabilities: wire.capabilities.get(),
            max_groups: wire.max_groups.map(U32::get),
            actions: wire.actions.map(U32::get),
        })
    }

    pub(crate) fn encode(&self, out: &mut Out) -> Result<(), EncodeError> {
        out.put(&v13::GroupFeatures {
            types: U32::new(self.types),
            capabilities: U32::new(self.capabilities),
            max_groups: self.max_groups.map(U32::new),
            actions: self.actions.map(U32::new),
        })
    }
}
