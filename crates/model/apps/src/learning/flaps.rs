//! Addresses that move between ports in quick succession.
//!
//! A host moves now and then. An address that keeps moving is seen through a loop, or two hosts
//! share it. Meanwhile no flows from or to it are installed: they would soon be wrong, and hide its
//! packets' ingress ports from the controller.

use arrayvec::ArrayVec;

use super::frame::HostKey;

/// Seconds at one port after which an address is calm.
const CALM_S: u32 = 10;

/// Moves without calm that make an address flap. Carrying a host to a port and back takes fewer.
const MOVES_TO_FLAP: u32 = 4;

/// Maximum number of watched addresses. Further moving addresses are not watched until one of these
/// is calm: their moves are followed like those of any host.
const MAX_WATCHED: usize = 64;

#[derive(Default)]
pub(super) struct Flaps {
    entries: Vec<FlapEntry>,
}

struct FlapEntry {
    host: HostKey,
    moves: u32,
    last_move_s: u32,
}

impl Flaps {
    /// Records a move of a host. Returns true if it begins to flap with this move.
    pub(super) fn record_move(&mut self, host: HostKey, now_s: u32) -> bool {
        if let Some(entry) = self.entries.iter_mut().find(|watched| watched.host == host) {
            entry.moves = entry.moves.saturating_add(1);
            entry.last_move_s = now_s;
            return entry.moves == MOVES_TO_FLAP;
        }
        if self.entries.len() < MAX_WATCHED {
            // Once, with full capacity: handlers do not allocate while packets come.
            self.entries.reserve_exact(MAX_WATCHED - self.entries.len());
            self.entries.push(FlapEntry { host, moves: 1, last_move_s: now_s });
        }
        false
    }

    pub(super) fn is_flapping(&self, host: HostKey) -> bool {
        let is_flapping = |entry: &FlapEntry| entry.host == host && entry.moves >= MOVES_TO_FLAP;
        self.entries.iter().any(is_flapping)
    }

    /// The flapping hosts.
    pub(super) fn flapping(&self) -> impl Iterator<Item = HostKey> {
        let is_flapping = |entry: &&FlapEntry| entry.moves >= MOVES_TO_FLAP;
        self.entries.iter().filter(is_flapping).map(|entry| entry.host)
    }

    /// Returns whether any host has moved recently: if not, none is flapping.
    #[inline(always)]
    pub(super) fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }

    /// The hosts that have moved recently, at most [`MAX_WATCHED`].
    pub(super) fn hosts(&self) -> ArrayVec<HostKey, MAX_WATCHED> {
        self.entries.iter().map(|entry| entry.host).take(MAX_WATCHED).collect()
    }

    /// Stops watching addresses that are calm.
    pub(super) fn remove_calm(&mut self, now_s: u32) {
        self.entries.retain(|entry| now_s.wrapping_sub(entry.last_move_s) < CALM_S);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_move_without_calm_is_a_flap_and_calm_ends_it() {
        let (mut flaps, host) = (Flaps::default(), HostKey(7));
        assert!(![0, 9, 18].map(|now| flaps.record_move(host, now)).contains(&true));
        assert!(!flaps.is_flapping(host));
        assert!(flaps.record_move(host, 27) && flaps.is_flapping(host));
        assert!(!flaps.record_move(host, 28), "it began already");
        flaps.remove_calm(37);
        assert!(flaps.is_flapping(host));
        flaps.remove_calm(38);
        assert!(!flaps.is_flapping(host));
    }

    #[test]
    fn no_more_are_watched_than_there_is_room_for() {
        let mut flaps = Flaps::default();
        for _ in 0..MOVES_TO_FLAP {
            for host in 0..2 * MAX_WATCHED as u64 {
                flaps.record_move(HostKey(host), 1);
            }
        }
        let flapping = (0..2 * MAX_WATCHED as u64).filter(|host| flaps.is_flapping(HostKey(*host)));
        assert_eq!(flapping.count(), MAX_WATCHED);
        assert_eq!(flaps.entries.capacity(), MAX_WATCHED);
    }
}
