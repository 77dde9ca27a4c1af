//! Several nodes, switches with roles, and a model of etcd, on a virtual clock, with faults by seed.
//!
//! What must hold at every moment:
//! - A switch that has obeyed one master never again obeys one with an older generation.
//! - No two nodes are obeyed with the same generation.
//!
//! What must hold some time after the last fault: each switch has one master, which all nodes know,
//! and no node has more switches than the others.
//!
//! `SEED=7 cargo test -p bellrock-cluster --test simulation` plays one seed, and prints what happens.

mod faults;
mod store;
mod switch;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use world::{Fence, World};

/// Number of seeds that are played.
const SEEDS: u64 = 1000;
/// Number of seeds within which a broken fence must show.
const SEEDS_FOR_BROKEN: u64 = 100;

/// Plays seeds from 1 up to `count` on all cores, and returns what failed.
fn play(count: u64, fence: Fence) -> Vec<String> {
    let next = AtomicU64::new(1);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let failures = std::thread::scope(|scope| {
        let play_some = || {
            let mut failures = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed > count {
                    return failures;
                }
                if let Err(failure) = World::new(seed, fence, false).play() {
                    failures.push(format!("seed {seed}: {failure}"));
                }
            }
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(play_some)).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    failures
}

#[test]
fn every_switch_obeys_one_master_through_all_faults() {
    if let Ok(seed) = std::env::var("SEED") {
        let seed = seed.parse().expect("SEED is a number");
        World::new(seed, Fence::Whole, true).play().unwrap();
        return;
    }
    let failures = play(SEEDS, Fence::Whole);
    assert!(failures.is_empty(), "{} of {SEEDS}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_cluster_without_generations_is_found() {
    let failures = play(SEEDS_FOR_BROKEN, Fence::None);
    assert!(failures.iter().any(|failure| failure.contains("older generation")), "{failures:?}");
}

#[test]
fn a_cluster_whose_nodes_share_a_generation_is_found() {
    let failures = play(SEEDS_FOR_BROKEN, Fence::WithoutRank);
    assert!(failures.iter().any(|failure| failure.contains("older generation")), "{failures:?}");
}
