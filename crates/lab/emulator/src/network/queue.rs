//! A queue of events by time. Events of the same time keep the order in which they were inserted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Events by time. The heap moves small entries; the events stay in their slots.
pub(super) struct EventQueue<T> {
    heap: BinaryHeap<Reverse<(Duration, u64, u32)>>,
    /// Number of events inserted so far: it orders events of the same time.
    sequence: u64,
    events: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        EventQueue { heap: BinaryHeap::new(), sequence: 0, events: Vec::new(), free: Vec::new() }
    }
}

impl<T> EventQueue<T> {
    /// Inserts an event. Returns it as an error if the queue has 2^32 events.
    pub(super) fn push(&mut self, at: Duration, event: T) -> Result<(), T> {
        let place = match self.free.pop() {
            Some(place) => {
                self.events[place as usize] = Some(event);
                place
            }
            None => {
                let Ok(place) = u32::try_from(self.events.len()) else { return Err(event) };
                self.events.push(Some(event));
                place
            }
        };
        self.heap.push(Reverse((at, self.sequence, place)));
        self.sequence += 1;
        Ok(())
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Removes and returns the next event, if it is due by `until`.
    pub(super) fn pop(&mut self, until: Duration) -> Option<(Duration, T)> {
        let Reverse((at, _, place)) = *self.heap.peek()?;
        if at > until {
            return None;
        }
        self.heap.pop();
        self.free.push(place);
        self.events[place as usize].take().map(|event| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_come_by_time_and_then_in_the_order_in_which_they_were_put_in(
            steps in prop::collection::vec((0..50_u64, 0..60_u64), 0..200)
        ) {
            let (mut queue, mut slow) = (EventQueue::default(), Vec::new());
            for (number, (at, until)) in steps.into_iter().enumerate() {
                queue.push(Duration::from_nanos(at), number).unwrap();
                slow.push((Duration::from_nanos(at), number));
                slow.sort();
                let until = Duration::from_nanos(until);
                prop_assert_eq!(queue.next(), slow.first().map(|(at, _)| *at));
                let due = slow.first().filter(|(at, _)| *at <= until).copied();
                prop_assert_eq!(queue.pop(until), due);
                if due.is_some() {
                    slow.remove(0);
                }
            }
        }
    }
}
