//! Packet-ins by ingress port.
//!
//! Packet-ins that a budget drops are counted one by one. Those that reach the apps are too many
//! for that: one packet of each batch stands for all of the batch. While packets come one by one,
//! or from one port, this is exact; in a flood there are thousands of batches each second. The
//! worker keeps the counts of a connection for itself, and publishes them once a second.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bellrock_api::{Batch, Port};

use crate::connection::ConnectionCounts;

/// Maximum number of ports of a switch whose packet-ins are counted apart. A switch can name any
/// port.
pub const MAX_PORTS_COUNTED: usize = 256;

/// Packet-ins of one port of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortPacketIns {
    /// Those that reached the apps, counted by one packet of each batch.
    pub passed: u64,
    /// Those that a budget dropped.
    pub dropped: u64,
}

/// Packet-ins of a switch by port. [`Port::ANY`] has those of all ports beyond
/// [`MAX_PORTS_COUNTED`].
#[derive(Clone, Debug, Default)]
pub(crate) struct PortCounts(BTreeMap<Port, PortPacketIns>);

impl PortCounts {
    fn add(&mut self, port: Port, packets: PortPacketIns) {
        let port = key_of(&self.0, port);
        let counts = self.0.entry(port).or_default();
        counts.passed += packets.passed;
        counts.dropped += packets.dropped;
    }

    /// Adds all counts of others.
    pub(crate) fn add_all(&mut self, others: &PortCounts) {
        others.0.iter().for_each(|(port, packets)| self.add(*port, *packets));
    }

    /// Number of packet-ins that budgets dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.values().map(|packets| packets.dropped).sum()
    }

    pub(crate) fn into_ports(self) -> BTreeMap<Port, PortPacketIns> {
        self.0
    }
}

/// The key of a port in a map with at most [`MAX_PORTS_COUNTED`] ports: itself, or [`Port::ANY`].
pub(crate) fn key_of<T>(ports: &BTreeMap<Port, T>, port: Port) -> Port {
    let has_place = ports.len() < MAX_PORTS_COUNTED || ports.contains_key(&port);
    if has_place { port } else { Port::ANY }
}

/// The published counts of a connection.
#[derive(Debug, Default)]
pub(crate) struct PublishedPortCounts(Mutex<PortCounts>);

impl PublishedPortCounts {
    fn update(&self, update: impl FnOnce(&mut PortCounts)) {
        // A panic here would leave a valid map.
        update(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl ConnectionCounts {
    /// Counts packet-ins that a budget dropped.
    pub(crate) fn add_dropped(&self, port: Port, dropped: u64) {
        let packets = PortPacketIns { passed: 0, dropped };
        self.ports.get_or_init(Box::default).update(|ports| ports.add(port, packets));
    }

    /// The packet-ins of the connection by port, as they were published last.
    pub(crate) fn by_port(&self) -> PortCounts {
        let mut all = PortCounts::default();
        if let Some(published) = self.ports.get() {
            published.update(|ports| all = ports.clone());
        }
        all
    }
}

/// What a worker has counted of a connection since it was published last.
#[derive(Debug)]
pub(crate) struct PortTally {
    /// The port of the last batch, and the packets of its batches since there was another.
    last: Port,
    packets: u64,
    /// The packets of other ports, in the order of the ports.
    others: Vec<(Port, u64)>,
}

impl Default for PortTally {
    fn default() -> Self {
        PortTally { last: Port::ANY, packets: 0, others: Vec::new() }
    }
}

impl PortTally {
    /// Counts a batch by one of its packets. `earlier`: number of packet-ins before it.
    #[inline]
    pub(crate) fn count(&mut self, batch: &Batch<'_>, earlier: u64) {
        let port = batch.in_port(pick(earlier, batch.len())).unwrap_or(Port::ANY);
        if port != self.last {
            self.turn_to(port);
        }
        self.packets += batch.len() as u64;
    }

    #[inline(never)]
    fn turn_to(&mut self, port: Port) {
        let (mut last, packets) = (std::mem::replace(&mut self.last, port), self.packets);
        self.packets = 0;
        if packets == 0 {
            return;
        }
        let has_place = self.others.len() < MAX_PORTS_COUNTED;
        if !has_place && self.others.binary_search_by_key(&last, |(port, _)| *port).is_err() {
            last = Port::ANY;
        }
        match self.others.binary_search_by_key(&last, |(port, _)| *port) {
            Ok(place) => {
                if let Some((_, sum)) = self.others.get_mut(place) {
                    *sum += packets;
                }
            }
            Err(place) => self.others.insert(place, (last, packets)),
        }
    }

    /// Adds the counts to those that other threads read, and begins again.
    pub(crate) fn publish(&mut self, counts: &ConnectionCounts) {
        self.turn_to(Port::ANY);
        if self.others.is_empty() {
            return;
        }
        // The memory is returned: most switches are idle most of the time.
        let others = std::mem::take(&mut self.others);
        counts.ports.get_or_init(Box::default).update(|ports| {
            for (port, passed) in others {
                ports.add(port, PortPacketIns { passed, dropped: 0 });
            }
        });
    }
}

/// Picks a packet of a batch: another place each time, without a pattern that a sender could have
/// too.
#[inline]
fn pick(earlier: u64, len: usize) -> usize {
    let mixed = (earlier as u32).wrapping_mul(0x9e37_79b9);
    ((u64::from(mixed) * len as u64) >> u32::BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(dropped: u64) -> PortPacketIns {
        PortPacketIns { passed: 0, dropped }
    }

    #[test]
    fn ports_beyond_the_maximum_are_counted_together() {
        let counts = ConnectionCounts::default();
        (0..1000).for_each(|port| counts.add_dropped(Port(port), 2));
        let mut all = counts.by_port();
        assert_eq!(all.dropped(), 2000);
        all.add_all(&counts.by_port());
        let all = all.into_ports();
        assert_eq!(all.len(), MAX_PORTS_COUNTED + 1);
        assert_eq!(all.get(&Port(3)), Some(&dropped(4)));
        let others = 4 * (1000 - MAX_PORTS_COUNTED as u64);
        assert_eq!(all.get(&Port::ANY), Some(&dropped(others)));
    }

    #[test]
    fn a_tally_has_no_more_ports_than_it_publishes_and_loses_no_packet() {
        let (mut tally, counts) = (PortTally::default(), ConnectionCounts::default());
        for round in 0..3 {
            for port in 0..1000 {
                tally.turn_to(Port(port));
                tally.packets += 1;
                assert!(tally.others.len() <= MAX_PORTS_COUNTED + 1);
            }
            tally.publish(&counts);
            assert_eq!(tally.others.capacity(), 0);
            let all = counts.by_port().into_ports();
            assert_eq!(all.len(), MAX_PORTS_COUNTED + 1);
            assert_eq!(all.values().map(|packets| packets.passed).sum::<u64>(), 1000 * (round + 1));
            assert_eq!(all.get(&Port(7)).unwrap().passed, round + 1);
        }
    }

    #[test]
    fn each_packet_of_a_batch_is_picked_as_often_as_the_others() {
        for len in [1, 2, 3, 64] {
            let mut picked = vec![0_u32; len];
            (0..10_000_u64).for_each(|batch| picked[pick(batch * len as u64, len)] += 1);
            let expected = 10_000 / len as u32;
            let is_fair = |n: &u32| (expected * 8 / 10..=expected * 12 / 10 + 1).contains(n);
            assert!(picked.iter().all(is_fair), "{len}: {picked:?}");
        }
    }
}
