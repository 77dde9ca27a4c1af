//! What is counted.

use crate::counters::counters;

counters! {
    /// Flows installed.
    flow_mods;
    /// Packets sent to the port of their destination by packet_out.
    packet_outs;
    /// Packets flooded.
    floods;
    /// Packets dropped since they end within their Ethernet header.
    malformed;
    /// Packets dropped since no station can have sent them: group or zero source.
    bad_source;
    /// Packets from a port that no host can be behind; forwarded, their sources not learnt.
    bad_port;
    /// Packets dropped since they came in by a port that belongs to another app.
    reserved;
    /// Packets dropped since bridges do not forward them.
    link_local;
    /// Packets dropped since their destination is where they come from.
    same_port;
    /// Packets that were not sent on since only a part of them came, and the switch kept no copy.
    truncated;
    /// Hosts seen at another port than before.
    moves;
    /// Times that a host began to move to and fro: a loop, or an address used twice.
    flaps;
    /// Hosts forgotten to make room for others.
    evicted;
    /// Hosts forgotten since they were not seen for the greatest age.
    aged_out;
    /// Times that a source was not learnt since its port has as many hosts as it may.
    over_port_limit;
    /// Times that a source was not learnt since the memory of all tables is used up.
    no_memory;
    /// Flows refused since the switch's table is full.
    table_full;
    /// Messages refused since the switch does not have the packet that they are about.
    buffer_unknown;
    /// Messages refused for other reasons.
    other_errors;
}
