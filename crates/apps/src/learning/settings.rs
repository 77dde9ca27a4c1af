//! What can be set.

/// Which fields the flows of the learning switch match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchKind {
    /// Ingress port, VLAN, Ethernet source and destination: one flow for each pair of hosts.
    ///
    /// The default, since it is all that forwarding by address depends on: fewer flows in the
    /// switch, and one packet-in for a conversation instead of one for each connection.
    #[default]
    L2,
    /// All that the packet has of what the version can match, without what says nothing of where it goes in 1.0 (VLAN
    /// priority, DSCP, ARP operation: a flow of 1.0 that leaves nothing open is above all priorities): one
    /// flow for each connection. It is what the learning switches of published measurements do, and
    /// it lets the operator see connections in the switch's flow table.
    Exact,
}

/// The settings of the learning switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearningSettings {
    /// Which fields its flows match.
    pub matching: MatchKind,
    /// Seconds without a packet after which a switch removes a flow; 0 for never.
    pub idle_timeout_s: u16,
    /// Seconds after which a switch removes a flow in any case; 0 for never. It bounds how long
    /// a flow can lead to a place that a host has left, where no packet of the host tells of the
    /// move.
    pub hard_timeout_s: u16,
    /// The priority of its flows.
    pub priority: u16,
    /// Most hosts that are remembered per switch. When there are more, an old one is forgotten for
    /// each new one (`evicted`).
    pub max_entries: usize,
    /// Most hosts that are remembered behind one port, 0 for no limit. An address above it is not
    /// learnt (`over_port_limit`), so that one port cannot crowd out the hosts of the others.
    /// Packets are forwarded all the same.
    pub max_macs_per_port: u32,
    /// Seconds after which a host of whom the controller saw no packet is forgotten, and its flows
    /// removed; 0 for never. Packets that pass over flows are not seen: a host that is busy all
    /// the time is learnt anew then, at the cost of a few packet-ins.
    pub max_age_s: u32,
}

impl Default for LearningSettings {
    fn default() -> Self {
        LearningSettings {
            matching: MatchKind::L2,
            idle_timeout_s: 60,
            hard_timeout_s: 0,
            // Above the table-miss entry, below what other apps and operators install.
            priority: 100,
            max_entries: 1 << 20,
            // A quarter of the table.
            max_macs_per_port: 1 << 18,
            max_age_s: 300,
        }
    }
}
