//! What is counted.

use crate::counters::counters;

counters! {
    /// Packets given to the switch of the host that they are for.
    delivered;
    /// Packets given to all ports of hosts.
    floods;
    /// Questions for the address of a host that were answered.
    answered;
    /// Packets dropped since there is no path to their destination.
    no_path;
    /// Packets dropped since their destination is where they come from.
    same_port;
    /// Packets dropped since they end within their Ethernet header.
    malformed;
    /// Packets dropped since no host can have sent them, or bridges do not forward them.
    not_forwarded;
    /// Packets dropped since they came from, or were for, a port that belongs to another app.
    reserved;
    /// Packets that were not flooded since they came over a link, or by a port of which it is not known
    /// yet whether it is one of a host.
    not_from_host;
    /// Packets that were not flooded since too many were in that second.
    floods_over_limit;
    /// Packets that other switches were not given, since too much waits for them or they are gone.
    not_sent;
    /// Packets that were not sent on since only a part of them came, and the switch kept no copy.
    truncated;
    /// Times that no flow was asked for, since the task that installs flows is behind.
    busy;
}
