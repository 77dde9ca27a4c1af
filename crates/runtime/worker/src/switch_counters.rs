//! Counters by switch, over all of its connections.
//!
//! A connection counts for itself ([`ConnectionCounts`]), since only its worker may add. Its counts
//! are added to those of its datapath id when it ends, so a packet costs nothing more for this.

use std::collections::BTreeMap;

use bellrock_api::{Dpid, counters};

use crate::connection::ConnectionCounts;
use crate::port_counts::PortCounts;

/// Maximum number of switches that are not connected and whose counters are kept. A peer can name
/// any datapath id.
pub const MAX_PAST_SWITCHES: usize = 4096;

/// Name and meaning of each counter of a switch.
pub const SWITCH_COUNTERS: &[(&str, &str)] = SwitchCounters::ALL;

counters! {
    /// Counters of a switch since the start of the controller.
    #[derive(Clone, Copy)]
    pub struct SwitchCounters: u64 {
        /// Connections of the switch.
        dp_connections,
        /// Connections of the switch that ended.
        dp_disconnections,
        /// Packet-ins of the switch that reached the apps.
        packet_ins,
        /// Packet-ins of the switch that were dropped before the apps: above its limit a second,
        /// above its share of an overloaded worker, too early, or while the controller stands by.
        ignored_packet_ins,
        /// OpenFlow errors that the switch sent.
        errors,
        /// OpenFlow messages that were sent to the switch, without echoes; counted once a second.
        flowmsgs_sent,
    }
}

impl SwitchCounters {
    fn add(&mut self, counts: &ConnectionCounts) {
        self.packet_ins += counts.packet_ins.get();
        self.ignored_packet_ins += counts.packet_ins_ignored.get();
        self.errors += counts.errors.get();
        self.flowmsgs_sent += counts.messages_sent.get();
    }

    /// These counters, with those of the present connection.
    pub(crate) fn with(mut self, counts: &ConnectionCounts) -> Self {
        self.add(counts);
        self
    }
}

/// The counters of switches, without those of the present connections.
#[derive(Debug, Default)]
pub(crate) struct SwitchHistory(BTreeMap<Dpid, PastCounts>);

/// The counters of a switch and of its ports.
#[derive(Debug, Default)]
struct PastCounts {
    counters: SwitchCounters,
    ports: PortCounts,
}

impl SwitchHistory {
    /// Counts a connection of a switch. `is_connected` is about other switches: of those that are
    /// not connected, at most [`MAX_PAST_SWITCHES`] are kept.
    pub(crate) fn connected(
        &mut self,
        dpid: Dpid,
        connected: usize,
        is_connected: impl Fn(&Dpid) -> bool,
    ) {
        if self.0.len() >= connected + MAX_PAST_SWITCHES && !self.0.contains_key(&dpid) {
            let past = self.0.keys().find(|dpid| !is_connected(dpid)).copied();
            past.and_then(|dpid| self.0.remove(&dpid));
        }
        self.0.entry(dpid).or_default().counters.dp_connections += 1;
    }

    /// Adds the counts of a connection that ends.
    pub(crate) fn ended(&mut self, dpid: Dpid, counts: &ConnectionCounts) {
        if let Some(past) = self.0.get_mut(&dpid) {
            past.counters.dp_disconnections += 1;
            past.counters.add(counts);
            past.ports.add_all(&counts.by_port());
        }
    }

    /// Packet-ins of a switch by port.
    pub(crate) fn ports_of(&self, dpid: Dpid) -> PortCounts {
        self.0.get(&dpid).map(|past| past.ports.clone()).unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Dpid, SwitchCounters)> + '_ {
        self.0.iter().map(|(dpid, past)| (*dpid, past.counters))
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::Port;

    use super::*;

    #[test]
    fn switches_that_are_gone_are_kept_up_to_a_limit_and_connected_ones_always() {
        let mut history = SwitchHistory::default();
        let first = Dpid(0);
        for dpid in 0..2 * MAX_PAST_SWITCHES as u64 {
            history.connected(Dpid(dpid), 1, |dpid| *dpid == first);
            let counts = ConnectionCounts::default();
            counts.errors.add(dpid);
            if Dpid(dpid) != first {
                history.ended(Dpid(dpid), &counts);
            }
        }
        assert_eq!(history.iter().count(), MAX_PAST_SWITCHES + 1);
        let (dpid, counters) = history.iter().next().unwrap();
        assert_eq!((dpid, counters.dp_connections, counters.dp_disconnections), (first, 1, 0));
        let (dpid, counters) = history.iter().last().unwrap();
        assert_eq!((counters.dp_disconnections, counters.errors), (1, dpid.0));
    }

    #[test]
    fn the_counts_of_all_connections_are_added() {
        let mut history = SwitchHistory::default();
        let dpid = Dpid(7);
        for _ in 0..3 {
            history.connected(dpid, 0, |_| false);
            let counts = ConnectionCounts::default();
            counts.packet_ins.add(5);
            counts.add_dropped(Port(2), 3);
            history.ended(dpid, &counts);
        }
        let present = ConnectionCounts::default();
        present.packet_ins.add(1);
        history.connected(dpid, 0, |_| false);
        let (_, counters) = history.iter().next().unwrap();
        let counters = counters.with(&present);
        assert_eq!((counters.dp_connections, counters.dp_disconnections), (4, 3));
        assert_eq!(counters.packet_ins, 16);
        let ports = history.ports_of(dpid).into_ports();
        assert_eq!((ports.len(), ports.get(&Port(2)).unwrap().dropped), (1, 9));
        assert!(history.ports_of(Dpid(8)).into_ports().is_empty());
    }
}
