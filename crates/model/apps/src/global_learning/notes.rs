//! Notes: what flows of an earlier run show about hosts that are not in the table.
//!
//! When the controller starts, the table is empty. A flow that was left shows by which port its
//! switch sends to a host, but not whether the host is attached there or to another switch behind
//! that port. So the flow stays, and it is noted for each of its two hosts. A switch forwards by
//! its notes as by the table. A packet from a host with notes:
//! - To a station, by the port of the note: the host is still there, or behind that switch. Its own
//!   switch need not see such a packet first, since it may have a flow for it.
//! - To a station, at a switch without a note: the same. The switch notes it.
//! - To a group, by the port of a flow's note: the host is attached here. No flow carries group
//!   packets, so the host's own switch sees them first. The other switches keep their flows if they
//!   lead towards this switch.
//! - Otherwise the host has moved. All its flows are removed, and then it is learnt like an unknown
//!   host. But for [`GOING_S`] packets to stations do not teach its place: another switch may see
//!   them first until its own switch has removed its flows.
//!
//! Notes and their flows are removed at the maximum age of a host.
//!
//! Packets between hosts in the table use no notes; for others a flag shows whether there are any.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::place::SwitchNumber;
use crate::learning::frame::{HostKey, HostPlace};

/// Maximum number of notes of all switches, some hundred bytes each. Further flows are refused.
const MAX_NOTES: usize = 1 << 18;

/// In seconds: after this time the switches have read their messages.
const GOING_S: u32 = 2;

/// Maximum number of remembered hosts whose flows are being removed. A further host may be learnt
/// by a switch that is not its own, until it is seen to move.
const MAX_GOING: usize = 4096;

#[derive(Default)]
pub(super) struct HostNotes {
    has_notes: AtomicBool,
    book: Mutex<NotesByHost>,
}

#[derive(Default)]
struct NotesByHost {
    notes: HashMap<u64, Vec<HostNote>>,
    count: usize,
    /// Hosts whose flows are being removed; until this time only group packets teach their place.
    leaving: HashMap<u64, u32>,
}

/// A switch that may have flows about a host, and the place of the host at this switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostNote {
    pub(super) switch: SwitchNumber,
    pub(super) place: HostPlace,
    /// Whether it comes from a flow of an earlier run, not from a packet.
    pub(super) is_of_flow: bool,
    /// In seconds.
    pub(super) since: u32,
}

/// Result of adding a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoteAdded {
    New,
    /// It agrees with another note.
    Known,
    /// It contradicts another note, or there are too many.
    Refused,
}

/// State of a host that is not in the table, when one of its packets comes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotedHost {
    /// There is no note.
    Nothing,
    /// The host is at the place in this switch's note, or behind it.
    AsNoted,
    /// The same, and the note is new: as old as the host's other notes, so that none renews
    /// another.
    Noted { since: u32 },
    /// The host is attached here; these other switches have flows about it.
    Attached(Vec<HostNote>),
    /// All these flows are wrong, also those of this switch.
    Elsewhere(Vec<HostNote>),
    /// Its flows are being removed.
    Going,
}

impl HostNotes {
    #[inline]
    pub(super) fn has_notes(&self) -> bool {
        self.has_notes.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, host: HostKey, note: HostNote) -> NoteAdded {
        let mut book = self.book();
        if let Some(present) = book.find(host, note.switch) {
            return if present.place == note.place { NoteAdded::Known } else { NoteAdded::Refused };
        }
        let added = book.add(host, note);
        self.update_has_notes(&book);
        if added { NoteAdded::New } else { NoteAdded::Refused }
    }

    /// The place of a host at a switch, from the switch's note.
    pub(super) fn place(&self, host: HostKey, switch: SwitchNumber) -> Option<HostPlace> {
        self.book().find(host, switch).map(|note| note.place)
    }

    /// Removes a switch's note of a place; returns whether it was still there.
    pub(super) fn withdraw(&self, host: HostKey, switch: SwitchNumber, place: HostPlace) -> bool {
        let mut book = self.book();
        let Some(notes) = book.notes.get_mut(&host.0) else { return false };
        let before = notes.len();
        notes.retain(|note| (note.switch, note.place) != (switch, place));
        let withdrawn = before - notes.len();
        if notes.is_empty() {
            book.notes.remove(&host.0);
        }
        book.count -= withdrawn;
        self.update_has_notes(&book);
        withdrawn > 0
    }

    /// Handles a packet of a host at a switch and place. Notes that are decided by it are removed.
    pub(super) fn packet_seen(
        &self,
        host: HostKey,
        seen: HostNote,
        to_group: bool,
        now: u32,
    ) -> NotedHost {
        let mut book = self.book();
        let own = book.find(host, seen.switch);
        match own {
            Some(own) if own.place == seen.place && !to_group => return NotedHost::AsNoted,
            None if !to_group && book.notes.contains_key(&host.0) => {
                let notes = book.notes.get(&host.0).into_iter().flatten();
                let since = notes.map(|note| note.since).min().unwrap_or(seen.since);
                let added = book.add(host, HostNote { since, ..seen });
                return if added { NotedHost::Noted { since } } else { NotedHost::Going };
            }
            _ => {}
        }
        let result = match book.notes.remove(&host.0) {
            None => {
                let is_leaving = book.leaving.get(&host.0).is_some_and(|until| *until > now);
                if is_leaving && !to_group {
                    return NotedHost::Going;
                }
                book.leaving.remove(&host.0);
                NotedHost::Nothing
            }
            Some(mut notes) => {
                book.count -= notes.len();
                // Until the host is in the table, or its flows are removed.
                book.mark_leaving(host, now);
                if own.is_some_and(|own| own.place == seen.place && own.is_of_flow) {
                    notes.retain(|note| note.switch != seen.switch);
                    NotedHost::Attached(notes)
                } else {
                    NotedHost::Elsewhere(notes)
                }
            }
        };
        self.update_has_notes(&book);
        result
    }

    /// Forgets the hosts whose flows are removed by now.
    pub(super) fn remove_old(&self, now: u32) {
        let mut book = self.book();
        book.leaving.retain(|_, until| *until > now);
        self.update_has_notes(&book);
    }

    fn update_has_notes(&self, book: &NotesByHost) {
        let has_notes = book.count > 0 || !book.leaving.is_empty();
        self.has_notes.store(has_notes, Ordering::Relaxed);
    }

    fn book(&self) -> MutexGuard<'_, NotesByHost> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NotesByHost {
    /// The note of a switch about a host.
    fn find(&self, host: HostKey, switch: SwitchNumber) -> Option<HostNote> {
        self.notes.get(&host.0)?.iter().find(|note| note.switch == switch).copied()
    }

    /// Adds a note, if there is space.
    fn add(&mut self, host: HostKey, note: HostNote) -> bool {
        let fits = self.count < MAX_NOTES;
        if fits {
            self.count += 1;
            self.notes.entry(host.0).or_default().push(note);
        }
        fits
    }

    fn mark_leaving(&mut self, host: HostKey, now: u32) {
        if self.leaving.len() >= MAX_GOING {
            self.leaving.retain(|_, until| *until > now);
        }
        if self.leaving.len() < MAX_GOING {
            self.leaving.insert(host.0, now.saturating_add(GOING_S));
        }
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::Port;

    use super::*;

    const A: HostKey = HostKey(7);

    fn note(switch: u32, port: u32) -> HostNote {
        let place = HostPlace::at(Port(port)).unwrap();
        HostNote { switch: SwitchNumber(switch), place, is_of_flow: true, since: 1 }
    }

    fn packet(switch: u32, port: u32) -> HostNote {
        HostNote { is_of_flow: false, ..note(switch, port) }
    }

    /// Three switches have flows about A.
    fn noted() -> HostNotes {
        let notes = HostNotes::default();
        for (switch, port) in [(1, 1), (2, 4), (3, 5)] {
            assert_eq!(notes.add(A, note(switch, port)), NoteAdded::New);
        }
        assert_eq!(notes.add(A, note(2, 4)), NoteAdded::Known);
        assert_eq!(notes.add(A, note(2, 5)), NoteAdded::Refused);
        notes
    }

    #[test]
    fn a_unicast_packet_at_the_noted_port_decides_nothing() {
        let notes = noted();
        assert_eq!(notes.packet_seen(A, packet(2, 4), false, 10), NotedHost::AsNoted);
        assert_eq!(notes.place(A, SwitchNumber(1)), Some(note(1, 1).place));
    }

    #[test]
    fn a_switch_without_a_note_notes_where_it_sees_a_host() {
        let notes = noted();
        assert_eq!(notes.packet_seen(A, packet(4, 6), false, 10), NotedHost::Noted { since: 1 });
        assert_eq!(notes.packet_seen(A, packet(4, 6), false, 10), NotedHost::AsNoted);
        let others = vec![note(2, 4), note(3, 5), packet(4, 6)];
        assert_eq!(notes.packet_seen(A, packet(1, 1), true, 10), NotedHost::Attached(others));
        // This alone does not show whether it has moved to that switch.
        let notes = noted();
        assert_eq!(notes.packet_seen(A, packet(4, 6), false, 10), NotedHost::Noted { since: 1 });
        let all = vec![note(1, 1), note(2, 4), note(3, 5), packet(4, 6)];
        assert_eq!(notes.packet_seen(A, packet(4, 6), true, 10), NotedHost::Elsewhere(all));
    }

    #[test]
    fn a_multicast_packet_shows_the_place_of_its_host() {
        let notes = noted();
        let others = vec![note(2, 4), note(3, 5)];
        assert_eq!(notes.packet_seen(A, note(1, 1), true, 10), NotedHost::Attached(others));
        assert_eq!(notes.place(A, SwitchNumber(1)), None);
        // No other switch learns it before it is in the table.
        assert_eq!(notes.packet_seen(A, note(2, 4), false, 11), NotedHost::Going);
        assert_eq!(notes.packet_seen(A, note(2, 4), false, 12), NotedHost::Nothing);
        assert!(!notes.has_notes());
    }

    #[test]
    fn a_host_that_is_heard_elsewhere_loses_its_flows_and_is_new_after_that() {
        let all = vec![note(1, 1), note(2, 4), note(3, 5)];
        for (by, to_group) in [(packet(1, 2), false), (packet(1, 2), true), (packet(4, 1), true)] {
            let notes = noted();
            assert_eq!(notes.packet_seen(A, by, to_group, 10), NotedHost::Elsewhere(all.clone()));
            assert_eq!(notes.packet_seen(A, by, false, 11), NotedHost::Going);
            assert_eq!(notes.packet_seen(A, by, true, 11), NotedHost::Nothing);
            assert_eq!(notes.packet_seen(A, by, false, 11), NotedHost::Nothing);
            assert!(!notes.has_notes());
        }
    }

    #[test]
    fn a_note_is_taken_back_once() {
        let notes = noted();
        assert!(!notes.withdraw(A, SwitchNumber(1), note(1, 9).place), "another place");
        for (switch, port) in [(1, 1), (2, 4), (3, 5)] {
            assert!(notes.has_notes());
            assert!(notes.withdraw(A, SwitchNumber(switch), note(switch, port).place));
            assert!(!notes.withdraw(A, SwitchNumber(switch), note(switch, port).place));
        }
        assert!(!notes.has_notes());
        assert_eq!(notes.packet_seen(A, note(1, 1), false, 10), NotedHost::Nothing);
    }
}
