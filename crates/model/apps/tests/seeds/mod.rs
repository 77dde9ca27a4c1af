//! Runs many seeds, on as many threads as the machine has cores.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Variable that selects a single seed.
pub(crate) const ONE_SEED: &str = "LAB_SEED";

/// Reads a number from a variable, if it is set.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// Runs `seeds` seeds from 0 on. Returns their results in order.
pub(crate) fn play_all<R: Send>(seeds: u64, play: impl Fn(u64) -> R + Sync) -> Vec<R> {
    let (next, results) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        return;
                    }
                    let result = play(seed);
                    results.lock().unwrap().insert(seed, result);
                }
            });
        }
    });
    let results: Vec<R> = results.into_inner().unwrap().into_values().collect();
    assert_eq!(results.len() as u64, seeds, "seeds that were played");
    results
}
