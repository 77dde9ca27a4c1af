//! A switch's cache of the table: the places of hosts with flows here, read in this second.
//!
//! In a table for all hosts of a network each entry has its own cache line, while there are few.
//! Packets of other switches evict these lines from the processor's cache before this switch's next
//! turn. Here the hosts of a switch are close together, as in a table of its own.
//!
//! Why the cache is valid:
//! - An entry is valid only in the second in which it was read. In the next second the switch reads
//!   the table again, which marks the host as seen. So ages are the same as without the cache.
//! - It contains only hosts with flows at this switch. A switch that moves such a host then writes
//!   a message to this switch; changes by this switch itself also update the cache. So it is wrong
//!   no longer than the switch's flows, which the same message removes.
//!
//! The cache is for tables that fit a core's own cache. With more hosts it is turned off for some
//! time, and each packet reads the table: its lines can be prefetched.

use bellrock_api::Port;
use bellrock_tables::{Budget, FlatTable, Hashed, Insert, Seed, Stamp};

use crate::learning::frame::{FrameHeader, HostKey, HostPlace};
use crate::learning::hosts::CACHED_BYTES;

/// Bytes for the caches of all switches of an app together.
pub(super) const HOST_CACHE_BYTES: usize = CACHED_BYTES;

/// Maximum number of hosts of one switch: as many as fit those bytes.
const MAX_HOSTS: usize = HOST_CACHE_BYTES / 32;

/// Maximum age: an entry is valid only in the second in which it was read.
const MAX_AGE_S: u32 = 0;

/// Age in seconds after which entries are swept.
const SWEPT_AFTER_S: u32 = 2;

/// Seconds for which a full cache is turned off.
const PAUSE_S: u32 = 10;

/// Hosts with flows at one switch, and their places at this switch.
pub(super) struct SwitchHostCache {
    hosts: FlatTable<HostPlace>,
    /// Time at which it was turned off.
    off_since: Option<u32>,
}

impl SwitchHostCache {
    pub(super) fn new(budget: &Budget, seed: Seed) -> Self {
        SwitchHostCache { hosts: FlatTable::with_seed(MAX_HOSTS, budget, seed), off_since: None }
    }

    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        self.off_since.is_none()
    }

    /// Returns the destination of a packet, if both its hosts are cached and its source is at
    /// `in_port`. `None` means nothing more.
    #[inline(always)]
    pub(super) fn with_flows(
        &self,
        in_port: Port,
        frame: &FrameHeader,
        now: Stamp,
    ) -> Option<HostPlace> {
        let find = |host: HostKey| {
            self.hosts.lookup_fresh_hashed(self.hosts.hash(host.0), now, &MAX_AGE_S)
        };
        let to = find(frame.to())?;
        let from = find(frame.from())?;
        (from == HostPlace::with_flows_at(in_port) && to != from).then_some(to)
    }

    /// Caches the place of a host with flows.
    pub(super) fn note(&mut self, host: Hashed, at: HostPlace, now: u32) {
        if !self.is_on() || !at.has_flows() {
            return;
        }
        match self.hosts.insert_hashed(host, at, now) {
            Insert::Inserted | Insert::Updated { .. } => {}
            Insert::Evicted { .. } | Insert::Refused => {
                self.hosts.clear();
                self.off_since = Some(now);
            }
        }
    }

    /// Removes a host that has left its place.
    pub(super) fn forget(&mut self, host: HostKey) {
        self.hosts.remove(host.0);
    }

    /// Removes the hosts behind a port.
    pub(super) fn forget_port(&mut self, port: Port) {
        self.hosts.remove_where(|_, place| place.port() == port, |_, _| ());
    }

    /// Removes all hosts, when it is unknown which have moved.
    pub(super) fn forget_all(&mut self) {
        self.hosts.clear();
    }

    /// Continues a resize by up to `steps` steps, if one is running.
    #[inline]
    pub(super) fn continue_resize(&mut self, steps: usize) {
        self.hosts.continue_resize(steps);
    }

    /// Sweeps the next line, and turns the cache on again after its pause.
    pub(super) fn age(&mut self, now: u32) {
        self.hosts.age(now, SWEPT_AFTER_S, 1, |_, _| ());
        self.off_since.take_if(|since| now.wrapping_sub(*since) >= PAUSE_S);
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::{PacketIn, PacketInView};

    use super::*;
    use crate::learning::prepared::tests::packet_in;

    fn frame(from: u8, to: u8) -> FrameHeader {
        let message = packet_in(Port(1), &[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0]);
        FrameHeader::read(&PacketIn::new(PacketInView::of_any_form(&message).unwrap())).unwrap()
    }

    fn place(port: u32) -> HostPlace {
        HostPlace::at(Port(port)).unwrap().with_flows()
    }

    fn cache(budget: &Budget) -> (SwitchHostCache, Seed) {
        let seed = Seed::from_number(1);
        (SwitchHostCache::new(budget, seed.clone()), seed)
    }

    #[test]
    fn cached_hosts_count_only_in_the_same_second() {
        let (mut cache, seed) = cache(&Budget::unlimited());
        let frame = frame(1, 2);
        let [from, to] = [frame.from(), frame.to()].map(|host| seed.hash(host.0));
        cache.note(from, place(1), 7);
        assert_eq!(cache.with_flows(Port(1), &frame, Stamp::at(7)), None);
        cache.note(to, place(2), 7);
        assert_eq!(cache.with_flows(Port(1), &frame, Stamp::at(7)), Some(place(2)));
        // At another port, or later.
        assert_eq!(cache.with_flows(Port(3), &frame, Stamp::at(7)), None);
        assert_eq!(cache.with_flows(Port(1), &frame, Stamp::at(8)), None);
        cache.note(to, place(1), 7);
        assert_eq!(
            cache.with_flows(Port(1), &frame, Stamp::at(7)),
            None,
            "back where it came from"
        );
        cache.note(to, place(2), 7);
        cache.forget(frame.to());
        assert_eq!(cache.with_flows(Port(1), &frame, Stamp::at(7)), None);
        // Hosts without flows are not cached.
        cache.note(to, HostPlace::at(Port(2)).unwrap(), 7);
        assert_eq!(cache.with_flows(Port(1), &frame, Stamp::at(7)), None);
        cache.note(to, place(2), 7);
        cache.forget_port(Port(1));
        assert_eq!(cache.with_flows(Port(1), &frame, Stamp::at(7)), None);
    }

    #[test]
    fn with_too_many_hosts_it_is_given_up_for_a_while() {
        let (mut near, seed) = cache(&Budget::new(4096));
        let mut hosts = 0;
        while near.is_on() {
            hosts += 1;
            near.note(seed.hash(hosts), place(1), 7);
        }
        assert!((60..200).contains(&hosts), "{hosts} hosts in 4 KiB");
        near.note(seed.hash(1), place(1), 8);
        near.age(7 + PAUSE_S - 1);
        assert!(!near.is_on() && near.hosts.is_empty());
        near.age(7 + PAUSE_S);
        assert!(near.is_on());
    }
}
