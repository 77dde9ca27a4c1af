//! Orders of several controllers on one store, on a virtual clock, with faults by seed.
//!
//! The controllers are the real [`EntryBook`]s. The store is a model of etcd: revisions, commits on
//! condition, watches that come late, leases, and a snapshot that is restored.
//!
//! What must hold at every moment:
//! - No line carries more than it can: no capacity is given away twice.
//! - What only the leader may store, the leader has stored.
//! - An order that was refused is never in the store.
//!
//! What must hold some time after the last fault: each order that was confirmed is in the store, as
//! long as nobody has given it up; all books have what the store has; one controller leads; and
//! each one takes orders.
//!
//! [`terms`] plays apps that run once on the same model, and [`static_entries`] the app `static`.
//!
//! `SEED=7 cargo test -p bellrock-book --test orders` plays one seed, and prints what happens.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic fails the test")]

mod clock;
mod model;
#[path = "../../../services/tests/shared/simulation.rs"]
mod shared;
mod static_entries;
mod terms;
mod world;

use model::Checks;
use shared::play_seeds;
use world::{Played, World};

/// Number of seeds that are played.
const SEEDS: u64 = 1000;
/// Number of seeds within which a broken store must show.
const SEEDS_FOR_BROKEN: u64 = 50;

/// Plays seeds from 1 up to `count` on all cores. Returns what happened in all of them, and what
/// failed.
fn play(count: u64, checks: Checks) -> (Played, Vec<String>) {
    let (mut played, mut failures) = (Played::default(), Vec::new());
    for (seed, one) in play_seeds(1..=count, |seed| World::new(seed, checks, false).play()) {
        match one {
            Ok(one) => played.add(&one),
            Err(failure) => failures.push(format!("seed {seed}: {failure}")),
        }
    }
    (played, failures)
}

#[test]
fn no_capacity_is_given_away_twice_and_nothing_is_lost_through_all_faults() {
    if let Ok(seed) = std::env::var("SEED") {
        println!("{:?}", World::new(seed.parse().unwrap(), Checks::All, true).play().unwrap());
        return;
    }
    let (played, failures) = play(SEEDS, Checks::All);
    assert!(failures.is_empty(), "{} of {SEEDS}:\n{}", failures.len(), failures.join("\n"));
    // All of it happened, so all of it was tested.
    let Played { confirmed, refused, unknown, led, elections, restores } = played;
    assert!(confirmed > 20 * SEEDS && refused > SEEDS && unknown > SEEDS / 2, "{played:?}");
    assert!(led > SEEDS && elections > SEEDS && restores > SEEDS / 10, "{played:?}");
}

#[test]
fn a_store_that_does_not_compare_is_found() {
    let (_, failures) = play(SEEDS_FOR_BROKEN, Checks::None);
    assert!(failures.iter().any(|failure| failure.contains("carries")), "{failures:?}");
}

#[test]
fn a_store_that_compares_only_the_changed_entries_is_found() {
    let (_, failures) = play(SEEDS_FOR_BROKEN, Checks::ChangedEntries);
    assert!(failures.iter().any(|failure| failure.contains("carries")), "{failures:?}");
}
