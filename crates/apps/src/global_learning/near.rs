//! What a switch keeps at hand of the table: where those hosts are that it has flows from or to, as it read it
//! within this second.
//!
//! In a table for all hosts of a network each of them has a cache line to itself, while there are few; and what other switches'
//! packets bring along drives it out of the cache before the next turn of this one. Here its hosts lie close together, as in the table
//! of a switch that shares nothing.
//!
//! Why it may be believed:
//! - An entry counts in the second in which it was read, and no longer. In the next one the table is asked again, which then knows that
//!   the host was seen. So ages are what they were without it.
//! - It has only hosts that this switch has flows from or to. Whoever changes where such a host is writes this switch a letter
//!   after that; what this switch changes it forgets here. So it is wrong for no longer than flows in the switch are, which the same letter
//!   removes.
//!
//! It is for what fits a core's own cache. With more hosts than that it is given up for some time, and the table is asked for each
//! packet: its lines can be fetched ahead.

use bellrock_api::Port;
use bellrock_tables::{Budget, FlatTable, Hashed, Insert, Seed};

use crate::learning::frame::{Frame, HostKey, Place};
use crate::learning::hosts::CACHED_BYTES;

/// Bytes that all switches of an app have for it together.
pub(super) const NEAR_BYTES: usize = CACHED_BYTES;

/// Hosts of one switch at most: as many as those bytes are enough for.
const MAX_HOSTS: usize = NEAR_BYTES / 32;

/// An entry counts in the second in which it was read only.
const MAX_AGE_S: u32 = 0;

/// Entries that were not read again for so many seconds are swept.
const SWEPT_AFTER_S: u32 = 2;

/// Seconds without it, after there were more hosts than it has room for.
const PAUSE_S: u32 = 10;

/// Hosts with flows at one switch, at the places where that one sees them.
pub(super) struct Near {
    hosts: FlatTable<Place>,
    /// When it was given up.
    off_since: Option<u32>,
}

impl Near {
    pub(super) fn new(budget: &Budget, seed: Seed) -> Self {
        Near { hosts: FlatTable::with_seed(MAX_HOSTS, budget, seed), off_since: None }
    }

    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        self.off_since.is_none()
    }

    /// Where a packet that came in at a port goes to, if both of its hosts are here, and the one is where it was. `None`
    /// says nothing.
    #[inline(always)]
    pub(super) fn with_flows(&self, in_port: Port, frame: &Frame, now: u32) -> Option<Place> {
        let find = |host: HostKey| {
            self.hosts.lookup_fresh_hashed(self.hosts.hash(host.0), now, &MAX_AGE_S)
        };
        let to = find(frame.to())?;
        let from = find(frame.from())?;
        (from == Place::with_flows_at(in_port) && to != from).then_some(to)
    }

    /// The table has a host with flows at this place now.
    pub(super) fn note(&mut self, host: Hashed, at: Place, now: u32) {
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

    /// A host is not where it was.
    pub(super) fn forget(&mut self, host: HostKey) {
        self.hosts.remove(host.0);
    }

    /// Hosts are not behind this port any more.
    pub(super) fn forget_port(&mut self, port: Port) {
        self.hosts.remove_where(|_, place| place.port() == port, |_, _| ());
    }

    /// Which hosts were there is not known any more.
    pub(super) fn forget_all(&mut self) {
        self.hosts.clear();
    }

    /// Sweeps the next line; and takes it into use again when its pause is over.
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

    fn frame(from: u8, to: u8) -> Frame {
        let message = packet_in(Port(1), &[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0]);
        Frame::read(&PacketIn::new(PacketInView::of_any_form(&message).unwrap())).unwrap()
    }

    fn place(port: u32) -> Place {
        Place::at(Port(port)).unwrap().with_flows()
    }

    fn near(budget: &Budget) -> (Near, Seed) {
        let seed = Seed::from_number(1);
        (Near::new(budget, seed.clone()), seed)
    }

    #[test]
    fn what_was_read_in_this_second_counts() {
        let (mut near, seed) = near(&Budget::unlimited());
        let frame = frame(1, 2);
        let [from, to] = [frame.from(), frame.to()].map(|host| seed.hash(host.0));
        near.note(from, place(1), 7);
        assert_eq!(near.with_flows(Port(1), &frame, 7), None);
        near.note(to, place(2), 7);
        assert_eq!(near.with_flows(Port(1), &frame, 7), Some(place(2)));
        // Somewhere else, or later.
        assert_eq!(near.with_flows(Port(3), &frame, 7), None);
        assert_eq!(near.with_flows(Port(1), &frame, 8), None);
        near.note(to, place(1), 7);
        assert_eq!(near.with_flows(Port(1), &frame, 7), None, "back where it came from");
        near.note(to, place(2), 7);
        near.forget(frame.to());
        assert_eq!(near.with_flows(Port(1), &frame, 7), None);
        // Without flows it is nothing to be remembered.
        near.note(to, Place::at(Port(2)).unwrap(), 7);
        assert_eq!(near.with_flows(Port(1), &frame, 7), None);
        near.note(to, place(2), 7);
        near.forget_port(Port(1));
        assert_eq!(near.with_flows(Port(1), &frame, 7), None);
    }

    #[test]
    fn with_too_many_hosts_it_is_given_up_for_a_while() {
        let (mut near, seed) = near(&Budget::new(4096));
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
