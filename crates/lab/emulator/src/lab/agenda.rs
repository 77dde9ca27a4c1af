//! A queue of items by time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Items in order of time. Items of the same time keep the order in which they were inserted, so a
/// run never depends on the layout of a heap.
pub(super) struct Agenda<T> {
    heap: BinaryHeap<AgendaItem<T>>,
    next_sequence: u64,
}

struct AgendaItem<T> {
    at: Duration,
    sequence: u64,
    item: T,
}

impl<T> Agenda<T> {
    pub(super) fn new() -> Self {
        Agenda { heap: BinaryHeap::new(), next_sequence: 0 }
    }

    pub(super) fn put(&mut self, at: Duration, item: T) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.heap.push(AgendaItem { at, sequence, item });
    }

    /// Time of the first item.
    pub(super) fn next(&self) -> Option<Duration> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Removes and returns the first item, if it is due at `now`.
    pub(super) fn due(&mut self, now: Duration) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|entry| entry.item)
    }
}

impl<T> Ord for AgendaItem<T> {
    /// The heap returns its greatest entry first: the earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl<T> PartialOrd for AgendaItem<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for AgendaItem<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for AgendaItem<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_order_of_time_and_then_as_they_were_put_down() {
        let mut agenda = Agenda::new();
        let ms = Duration::from_millis;
        for (at, item) in [(5, "c"), (1, "a"), (5, "d"), (3, "b")] {
            agenda.put(ms(at), item);
        }
        assert_eq!(agenda.next(), Some(ms(1)));
        assert_eq!(agenda.due(Duration::ZERO), None);
        let order: Vec<&str> = std::iter::from_fn(|| agenda.due(ms(5))).collect();
        assert_eq!(order, ["a", "b", "c", "d"]);
        assert_eq!(agenda.next(), None);
    }
}
