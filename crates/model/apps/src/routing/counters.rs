//! Counters of routing at one switch.

use bellrock_api::counters;

counters! {
    /// Events counted at one switch. Only its handler adds to them.
    #[derive(Clone, Copy)]
    pub(super) struct RoutingCounters: u64 {
        /// Packets sent to the host that they are for.
        delivered,
        /// Packets sent to all host ports.
        floods,
        /// Address requests that were answered for a host.
        answered,
        /// Packets for a host without a path to its place. All but `searches` are dropped.
        no_path,
        /// Packets sent to all host ports to find a host whose place is gone.
        searches,
        /// Packets dropped: their destination is behind their ingress port.
        same_port,
        /// Packets dropped: they end within their Ethernet header.
        malformed,
        /// Packets dropped: no host can have sent them, or bridges do not forward them.
        not_forwarded,
        /// Packets dropped: they came from, or were for, a port that belongs to another app.
        reserved,
        /// Packets not flooded: they came over a link, or by a port not yet known as a host port.
        not_from_host,
        /// Packets not flooded: copies of a frame that was flooded a short time ago, or from a port
        /// that is kept out.
        copies,
        /// Packets not flooded: too many came in that second.
        floods_over_limit,
        /// Packets not sent to another switch: its send queue is full, or it has disconnected.
        not_sent,
        /// Packets not flooded to other switches: only a part of them came.
        truncated,
        /// Packets for which no flow was requested: the task that installs flows is too busy.
        busy,
    }
}
