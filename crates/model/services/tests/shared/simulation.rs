//! What simulations share: seeds that are played on all cores, and what happens in the order of a
//! virtual clock.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(dead_code, reason = "not every simulation needs all of it")]

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Plays seeds on all cores, and returns what came of each one, in their order.
pub(crate) fn play_seeds<R: Send>(
    seeds: RangeInclusive<u64>,
    play: impl Fn(u64) -> R + Sync,
) -> Vec<(u64, R)> {
    let next = AtomicU64::new(*seeds.start());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let play_some = || {
        let mut played = Vec::new();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed > *seeds.end() {
                return played;
            }
            played.push((seed, play(seed)));
        }
    };
    let mut played: Vec<(u64, R)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(play_some)).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    played.sort_by_key(|&(seed, _)| seed);
    played
}

/// Plays seeds, and returns what failed, a line for each seed.
pub(crate) fn failures(
    seeds: RangeInclusive<u64>,
    play: impl Fn(u64) -> Result<(), String> + Sync,
) -> Vec<String> {
    let played = play_seeds(seeds, play).into_iter();
    played.filter_map(|(seed, it)| Some(format!("seed {seed}: {}", it.err()?))).collect()
}

/// What is to happen, in the order of its time, and then in the order in which it was added.
pub(crate) struct Queue<E> {
    last_number: u64,
    waiting: BinaryHeap<Reverse<Waiting<E>>>,
}

struct Waiting<E> {
    at: Duration,
    number: u64,
    event: E,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Queue { last_number: 0, waiting: BinaryHeap::new() }
    }
}

impl<E> Queue<E> {
    /// A number that neither an event nor anything else has.
    pub(crate) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(crate) fn push(&mut self, at: Duration, event: E) {
        let number = self.number();
        self.waiting.push(Reverse(Waiting { at, number, event }));
    }

    pub(crate) fn pop(&mut self) -> Option<(Duration, E)> {
        let Reverse(Waiting { at, event, .. }) = self.waiting.pop()?;
        Some((at, event))
    }

    /// Takes the next event, if it happens up to this time.
    pub(crate) fn pop_until(&mut self, end: Duration) -> Option<(Duration, E)> {
        self.waiting.peek().filter(|Reverse(next)| next.at <= end)?;
        self.pop()
    }
}

impl<E> Waiting<E> {
    fn place(&self) -> (Duration, u64) {
        (self.at, self.number)
    }
}

impl<E> PartialEq for Waiting<E> {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}
impl<E> Eq for Waiting<E> {}
impl<E> PartialOrd for Waiting<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Waiting<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}
