//! Forwarding of one switch: ports, flow tables, groups, meters and buffers, without a connection
//! and without a clock.
//!
//! # What it is
//! - [`Datapath::receive`] takes a frame through the switch, and fills in its [`Effects`].
//! - [`Datapath::packet_out`], [`Datapath::flow_mod`] and so on carry out requests, and return an
//!   OpenFlow error if they cannot.
//! - Statistics read its parts: [`Datapath::ports`], [`Datapath::tables`], [`Datapath::groups`],
//!   [`Datapath::meters`].
//!
//! # What it is not
//! It knows no controllers: the switch has the roles, masks and encodings, and decides which
//! controller gets a [`Notice`]. It knows no links: frames leave by port number.
//!
//! # Versions
//! A request says its version. Where versions treat a packet differently, one version rules the
//! whole switch ([`Datapath::set_rules`]): a table miss (1.0: to the controller; 1.3: dropped
//! without a table-miss flow), the fields of fragments, and the ports of `FLOOD`.

mod action_set;
mod actions;
mod buffers;
mod effects;
pub mod flows;
mod forwarding;
mod groups;
mod meters;
mod paths;
mod pipeline;
mod ports;
mod program;
mod requests;

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_openflow::{ConfigFlags, Port, PortDesc, SwitchConfig, Version};

pub use actions::{CheckedActions, Checker, MAX_ACTIONS};
pub use buffers::{BUFFER_KEPT, MAX_BUFFERS};
pub use effects::{Effects, FlowRemovedNotice, MAX_FRAMES, Notice, PacketInNotice};
use flows::{FlowTables, Removed};
use forwarding::Forwarding;
pub use groups::{DatapathBucket, DatapathGroup, Groups, MAX_BUCKETS, MAX_GROUPS};
pub use meters::{BandEffect, BandEntry, DatapathMeter, MAX_BANDS, MAX_METERS, Meters};
use paths::PathCache;
pub use ports::{DatapathPorts, MAX_FRAME_BYTES, PortEntry, QueueEntry};
pub use program::FlowProgram;

/// The parts of a switch.
#[derive(Clone, Debug)]
pub struct DatapathSettings {
    /// Its ports, with [`Port::LOCAL`] if it has that one.
    pub ports: Vec<PortDesc>,
    /// The queues of its ports.
    pub queues: Vec<(Port, u32)>,
    /// Number of flow tables.
    pub tables: u8,
    /// Maximum number of flows in each table.
    pub table_capacity: u32,
    /// Maximum number of buffered packets; rounded up to a power of two, at most [`MAX_BUFFERS`].
    pub buffers: u32,
    /// The version whose rules apply where versions differ.
    pub rules: Version,
}

/// The forwarding of one switch.
#[derive(Clone, Debug)]
pub struct Datapath {
    tables: FlowTables,
    forwarding: Forwarding,
    paths: PathCache,
    /// Flows that were just removed, on their way to [`Effects`].
    removed: Vec<Removed>,
}

impl Datapath {
    /// A switch with empty tables.
    #[must_use]
    pub fn new(settings: DatapathSettings, now: Duration) -> Self {
        let tables = FlowTables::new(settings.tables, settings.table_capacity);
        let forwarding = Forwarding::new(settings, now);
        Datapath { tables, forwarding, paths: PathCache::default(), removed: Vec::new() }
    }

    /// The version whose rules apply where versions differ.
    #[must_use]
    pub fn rules(&self) -> Version {
        self.forwarding.rules
    }

    /// Applies the rules of this version from now on.
    pub fn set_rules(&mut self, rules: Version) {
        self.forwarding.rules = rules;
    }

    /// Its ports.
    #[must_use]
    pub fn ports(&self) -> &DatapathPorts {
        &self.forwarding.ports
    }

    /// Its flow tables.
    #[must_use]
    pub fn tables(&self) -> &FlowTables {
        &self.tables
    }

    /// Its groups.
    #[must_use]
    pub fn groups(&self) -> &Groups {
        &self.forwarding.groups
    }

    /// Number of flows and buckets that send to each group (1.3.5 §7.3.5.9, `ref_count`), without
    /// unused groups. It reads all flows.
    #[must_use]
    pub fn group_references(&self) -> BTreeMap<u32, u32> {
        let mut references = BTreeMap::new();
        let mut of_one: Vec<u32> = Vec::new();
        for (_, flow) in self.tables.iter().flat_map(|(_, table)| table.flows()) {
            of_one.extend(flow.program.groups());
            of_one.sort_unstable();
            of_one.dedup();
            of_one.drain(..).for_each(|group| *references.entry(group).or_default() += 1);
        }
        for group in self.forwarding.groups.references() {
            *references.entry(group).or_default() += 1;
        }
        references
    }

    /// Its meters.
    #[must_use]
    pub fn meters(&self) -> &Meters {
        &self.forwarding.meters
    }

    /// Number of flows that use each meter (1.3.5 §7.3.5.12, `flow_count`), without unused meters.
    /// It reads all flows.
    #[must_use]
    pub fn meter_flows(&self) -> BTreeMap<u32, u32> {
        let mut users = BTreeMap::new();
        let flows = self.tables.iter().flat_map(|(_, table)| table.flows());
        for meter in flows.filter_map(|(_, flow)| flow.program.meter) {
            *users.entry(meter).or_default() += 1;
        }
        users
    }

    /// Maximum number of buffered packets.
    #[must_use]
    pub fn buffers(&self) -> u32 {
        self.forwarding.buffers.capacity()
    }

    /// Treatment of fragments, and number of bytes for the controller when no action sends the
    /// packet there.
    #[must_use]
    pub fn config(&self) -> SwitchConfig {
        self.forwarding.config
    }
}

/// Configuration of a switch before a controller changes it (1.0 §5.3.2; 1.3.5 §7.3.2).
pub(crate) const DEFAULT_CONFIG: SwitchConfig =
    SwitchConfig { flags: ConfigFlags::empty(), miss_send_len: DEFAULT_MISS_SEND_LEN };

/// `OFP_DEFAULT_MISS_SEND_LEN`, bytes.
const DEFAULT_MISS_SEND_LEN: u16 = 128;

#[cfg(test)]
mod tests;
