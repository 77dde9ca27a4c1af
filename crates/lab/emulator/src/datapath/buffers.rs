//! Packets that wait for a controller's decision (1.0 §5.4.1; 1.3.5 §6.1.2).

use std::time::Duration;

use bellrock_openflow::{ErrorCode, Port};

use crate::packet::EthernetFrame;

/// Minimum time that a packet stays in its buffer. Later it stays until its slot is needed.
pub const BUFFER_KEPT: Duration = Duration::from_secs(5);

/// Ids wrap at this number; the highest 32-bit id means "no buffer".
const IDS: u32 = 1 << 31;

/// A packet in its buffer.
#[derive(Clone, Debug)]
struct Buffered {
    id: u32,
    since: Duration,
    in_port: Port,
    frame: EthernetFrame,
}

/// The buffers of a switch.
///
/// Ids are assigned one after the other, and each id stands for one slot. So an old id cannot take
/// out a newer packet.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    places: Vec<Option<Buffered>>,
    capacity: u32,
    next: u32,
    /// Whether ids have wrapped: every id has been assigned once.
    gone_round: bool,
}

impl Buffers {
    pub(super) fn new(capacity: u32) -> Self {
        // The capacity divides the number of ids: an id has the same slot after each wrap.
        let capacity =
            if capacity == 0 { 0 } else { capacity.min(MAX_BUFFERS).next_power_of_two() };
        Buffers { places: Vec::new(), capacity, next: 0, gone_round: false }
    }

    /// Maximum number of packets.
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Keeps a copy of a packet. Returns `None` while the next slot has a packet younger than
    /// [`BUFFER_KEPT`]: the whole packet then goes to the controller.
    pub(super) fn store(&mut self, bytes: &[u8], in_port: Port, now: Duration) -> Option<u32> {
        if self.capacity == 0 {
            return None;
        }
        let id = self.next;
        let place = (id % self.capacity) as usize;
        if place >= self.places.len() {
            self.places.push(None);
        }
        let place = &mut self.places[place];
        if place.as_ref().is_some_and(|old| now < old.since + BUFFER_KEPT) {
            return None;
        }
        *place = Some(Buffered { id, since: now, in_port, frame: EthernetFrame::from(bytes) });
        self.next = (id + 1) % IDS;
        self.gone_round |= self.next == 0;
        Some(id)
    }

    /// Takes a packet out.
    ///
    /// # Errors
    /// `OFPBRC_BUFFER_EMPTY`: it was taken out before, or a newer packet has its slot;
    /// `OFPBRC_BUFFER_UNKNOWN`: the id was never assigned.
    pub(super) fn take(&mut self, id: u32) -> Result<(EthernetFrame, Port), ErrorCode> {
        if id >= IDS || (id >= self.next && !self.gone_round) {
            return Err(ErrorCode::RequestBufferUnknown);
        }
        let place = self.places.get_mut((id % self.capacity.max(1)) as usize);
        let found = place.and_then(|place| place.take_if(|buffered| buffered.id == id));
        found.map(|found| (found.frame, found.in_port)).ok_or(ErrorCode::RequestBufferEmpty)
    }

    /// Removes all packets.
    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.places.resize_with((self.next.min(self.capacity)) as usize, || None);
    }
}

/// Maximum number of packets that a switch buffers.
pub const MAX_BUFFERS: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn a_buffer_is_used_once_and_an_id_that_was_never_given_out_is_unknown() {
        let mut buffers = Buffers::new(4);
        let id = buffers.store(b"packet", Port(3), NOW).unwrap();
        assert_eq!(buffers.take(id + 1), Err(ErrorCode::RequestBufferUnknown));
        assert_eq!(buffers.take(id), Ok((EthernetFrame::from(&b"packet"[..]), Port(3))));
        assert_eq!(buffers.take(id), Err(ErrorCode::RequestBufferEmpty));
        assert_eq!(buffers.take(IDS), Err(ErrorCode::RequestBufferUnknown));
    }

    #[test]
    fn when_all_are_taken_nothing_is_buffered_until_the_oldest_is_old_enough() {
        let mut buffers = Buffers::new(2);
        let first = buffers.store(b"1", Port(1), NOW).unwrap();
        let second = buffers.store(b"2", Port(1), NOW).unwrap();
        assert_eq!(buffers.store(b"3", Port(1), NOW), None);
        let third = buffers.store(b"3", Port(1), NOW + BUFFER_KEPT).unwrap();
        assert_eq!(buffers.take(first), Err(ErrorCode::RequestBufferEmpty));
        assert!(buffers.take(second).is_ok() && buffers.take(third).is_ok());
    }

    #[test]
    fn a_place_is_free_again_once_its_packet_is_taken() {
        let mut buffers = Buffers::new(1);
        for round in 0..3 {
            let id = buffers.store(b"packet", Port(1), NOW).unwrap();
            assert_eq!(id, round);
            assert!(buffers.take(id).is_ok());
        }
        buffers.clear();
        assert_eq!(buffers.take(2), Err(ErrorCode::RequestBufferEmpty));
        assert_eq!(Buffers::new(0).store(b"packet", Port(1), NOW), None);
    }
}
