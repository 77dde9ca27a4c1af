//! Settings of the learning switch.

/// Which fields the flows of the learning switch match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchKind {
    /// Ingress port, VLAN, Ethernet source and destination: one flow for each pair of hosts.
    ///
    /// The default, since forwarding by address depends on nothing else. It needs fewer flows in
    /// the switch, and one packet-in for a conversation instead of one for each connection.
    #[default]
    L2,
    /// All fields of the packet that the version can match: one flow for each connection. In 1.0
    /// without VLAN priority, DSCP and ARP operation, which do not affect forwarding: a flow of 1.0
    /// without wildcards is above all priorities. Learning switches in published measurements
    /// install such flows, and the operator can see connections in the switch's flow table.
    Exact,
}

/// The settings of the learning switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearningSettings {
    /// Fields that its flows match.
    pub matching: MatchKind,
    /// Seconds without a packet after which a switch removes a flow; 0 for never.
    pub idle_timeout_s: u16,
    /// Seconds after which a switch removes a flow in any case; 0 for never. It limits how long a
    /// flow can lead to the old port of a host that has moved without sending a packet.
    pub hard_timeout_s: u16,
    /// Priority of its flows.
    pub priority: u16,
    /// Maximum number of hosts per switch. Beyond it, a new host replaces an old one (`evicted`).
    pub max_entries: usize,
    /// Maximum number of hosts remembered behind one port, 0 for no limit. Further addresses are
    /// not learnt (`over_port_limit`), so that one port cannot crowd out the hosts of other ports.
    /// Their packets are still forwarded.
    pub max_macs_per_port: u32,
    /// Seconds without a packet to the controller after which a host is forgotten and its flows are
    /// removed; 0 for never. The controller does not see packets that match flows: a host that is
    /// always busy is then learnt again, at the cost of a few packet-ins.
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
