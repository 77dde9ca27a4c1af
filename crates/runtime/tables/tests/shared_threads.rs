//! Many threads use one shared table.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use bellrock_tables::{Budget, MAX_AGE_TICKS, Seed, SharedInsert, SharedTable};

/// Rounds of each writer: few under Miri, which is a thousand times slower.
const MANY: u64 = if cfg!(miri) { 300 } else { 100_000 };

fn table(bound: usize) -> SharedTable {
    SharedTable::with_seed(bound, &Budget::unlimited(), Seed::from_number(1))
}

/// A value that identifies its key and its number among the values of this key.
fn value_of(key: u64, nth: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15) << 32 | nth
}

/// Threads insert, replace, remove, evict and age the same few keys. Each look-up must find a value
/// of its own key, never an older one than before.
#[test]
fn threads_never_see_another_keys_value_nor_time_run_backwards() {
    const KEYS: u64 = 40;
    const WRITERS: u64 = 3;
    // Fewer than the keys, so that entries are evicted and moved all the time.
    let (table, done) = (table(24), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let table = &table;
                scope.spawn(move || {
                    for nth in 1..=MANY {
                        // Each key has one writer, so that its values only grow.
                        let key = (nth.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) % KEYS;
                        let key = key - key % WRITERS + writer;
                        let (at, now) = (table.hash(key), nth as u32 / 64);
                        match table.insert(at, value_of(key, nth), now) {
                            SharedInsert::There { value } => {
                                assert_eq!(value >> 32, value_of(key, 0) >> 32);
                                if nth % 5 == 0 {
                                    let _ = table.remove(at, value);
                                } else {
                                    let _ = table.replace(at, value, value_of(key, nth), now);
                                }
                            }
                            SharedInsert::Evicted { key, value } => {
                                assert_eq!(value >> 32, value_of(key, 0) >> 32);
                            }
                            SharedInsert::Inserted | SharedInsert::Busy => {}
                        }
                        if nth % 97 == 0 {
                            table.age(now, 3, 2, |key, value| {
                                assert_eq!(value >> 32, value_of(key, 0) >> 32);
                            });
                        }
                    }
                })
            })
            .collect();
        let (table, done) = (&table, &done);
        for _ in 0..2 {
            scope.spawn(move || {
                let mut newest = HashMap::<u64, u64>::new();
                let mut found = 0_u64;
                while !done.load(Relaxed) || found == 0 {
                    for key in 0..KEYS + WRITERS {
                        let at = table.hash(key);
                        let values = [
                            table.lookup(at),
                            table.lookup_fresh(at, 0, MAX_AGE_TICKS),
                            table.touch_if(at, 1, |value| value >> 32 == value_of(key, 0) >> 32),
                        ];
                        for value in values.into_iter().flatten() {
                            assert_eq!(
                                value >> 32,
                                value_of(key, 0) >> 32,
                                "a value of another key"
                            );
                            let seen = newest.entry(key).or_default();
                            assert!(*seen <= value, "an older value after a newer one");
                            (*seen, found) = (value, found + 1);
                        }
                    }
                    std::thread::yield_now();
                    if done.load(Relaxed) && table.is_empty() {
                        break;
                    }
                }
            });
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Relaxed);
    });
    assert_eq!(table.iter_ages(0).count(), table.len());
    assert!(table.len() <= table.bound());
    let keys: Vec<_> = table.iter_ages(0).map(|(key, ..)| key).collect();
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len(), "no key is there twice");
}
