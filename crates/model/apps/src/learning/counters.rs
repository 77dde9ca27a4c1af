//! Counters of a learning switch.

use bellrock_api::counters;

counters! {
    /// Events counted at one switch. Only its handler adds to them.
    #[derive(Clone, Copy)]
    pub(super) struct LearningCounters: u64 {
        /// Flows installed.
        flow_mods,
        /// Packets sent to the port of their destination by packet_out.
        packet_outs,
        /// Packets flooded.
        floods,
        /// Packets dropped: they end within their Ethernet header.
        malformed,
        /// Packets dropped: no station can have sent them (group or zero source).
        bad_source,
        /// Packets from a port that cannot have hosts; forwarded, their sources not learnt.
        bad_port,
        /// Packets dropped: their ingress port belongs to another app.
        reserved,
        /// Packets dropped: bridges do not forward them.
        link_local,
        /// Packets dropped: their destination is behind their ingress port.
        same_port,
        /// Packets not sent on: only a part of them came, and the switch kept no copy.
        truncated,
        /// Hosts seen at another port than before.
        moves,
        /// Times that a host began to move back and forth: a loop, or an address used twice.
        flaps,
        /// Hosts forgotten to make space for new ones.
        evicted,
        /// Hosts forgotten: not seen for the maximum age.
        aged_out,
        /// Times that a source was not learnt: its port is at its limit of hosts.
        over_port_limit,
        /// Times that a source was not learnt: the memory of all tables is used up.
        no_memory,
        /// Flows refused: the switch's table is full.
        table_full,
        /// Messages refused: the switch no longer has the packet in their buffer.
        buffer_unknown,
        /// Messages refused for other reasons.
        other_errors,
    }
}
