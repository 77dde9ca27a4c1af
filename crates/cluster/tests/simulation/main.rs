//! Several nodes, switches with roles, and a model of etcd, on a virtual clock, with faults by
//! seed.
//!
//! What must hold at every moment:
//! - A switch that has obeyed one master never again obeys one with an older generation.
//! - No two nodes are obeyed with the same generation.
//! - No node gives a switch away that an operator has moved to it, unless it drains.
//!
//! What must hold some time after the last fault: each switch has one master, which all nodes know,
//! and no node has more switches than the others, except those that were moved to it. An order to
//! balance spreads these too. In three of four seeds a minority of the nodes stays away then, and
//! in one of four etcd too: the switches have masters all the same.
//!
//! `SEED=7 cargo test -p bellrock-cluster --test simulation` plays one seed, and prints what
//! happens.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic fails the test")]

mod faults;
#[path = "../../../model/services/tests/shared/simulation.rs"]
mod shared;
mod store;
mod switch;
mod world;

use std::ops::RangeInclusive;
use std::time::Duration;

use bellrock_cluster::mastership::{Input, NotMoved, ORDER_LIMIT};
use bellrock_cluster::node::NodeId;

use shared::failures;
use world::{Fence, World};

/// Number of seeds that are played.
const SEEDS: u64 = 1000;
/// Number of seeds that are played with records that are soon removed.
const SEEDS_WITHOUT_RECORDS: u64 = 200;
/// Number of seeds within which a broken fence must show. Nodes that wait for each other for ever
/// show in one of 80 seeds, and any change of what is played makes them other ones.
const SEEDS_FOR_BROKEN: u64 = SEEDS;
/// Number of seeds that are played at once until one shows it.
const SEEDS_AT_ONCE: u64 = 100;

/// Plays seeds, and returns what failed.
fn play(seeds: RangeInclusive<u64>, fence: Fence) -> Vec<String> {
    failures(seeds, |seed| World::new(seed, fence, false).play())
}

/// Plays seeds with a broken fence until one fails with this text.
fn assert_found(fence: Fence, text: &str) {
    let mut all = Vec::new();
    for round in 0..SEEDS_FOR_BROKEN / SEEDS_AT_ONCE {
        all.extend(play(round * SEEDS_AT_ONCE + 1..=(round + 1) * SEEDS_AT_ONCE, fence));
        if all.iter().any(|failure| failure.contains(text)) {
            return;
        }
    }
    panic!("no seed up to {SEEDS_FOR_BROKEN} fails with {text:?}: {all:?}");
}

#[test]
fn every_switch_obeys_one_master_through_all_faults() {
    if let Ok(seed) = std::env::var("SEED") {
        let seed = seed.parse().unwrap();
        World::new(seed, Fence::Whole, true).play().unwrap();
        return;
    }
    let failures = play(1..=SEEDS, Fence::Whole);
    assert!(failures.is_empty(), "{} of {SEEDS}:\n{}", failures.len(), failures.join("\n"));
}

/// Seeds that failed at some time: of nodes that wait for each other for ever, of equal
/// generations, of a restore that was not noticed, and of nodes that had lost a switch to one that
/// died.
const KNOWN_SEEDS: [u64; 19] = [
    67, 75, 151, 259, 286, 363, 446, 519, 595, 862, 883, 902, 966, 975, 983, 1150, 2559, 10015,
    16731,
];

#[test]
fn every_seed_that_failed_once_holds() {
    for seed in KNOWN_SEEDS {
        let played = World::new(seed, Fence::Whole, false).play();
        assert!(played.is_ok(), "seed {seed}: {played:?}");
    }
}

#[test]
fn records_of_switches_that_are_gone_are_removed_and_made_again() {
    let mut removed = 0;
    for seed in 1..=SEEDS_WITHOUT_RECORDS {
        let mut world = World::forgetful(seed);
        let played = world.play_on();
        assert!(played.is_ok(), "seed {seed}: {played:?}");
        removed += world.removed;
    }
    assert!(removed > 100, "{removed} records were removed");
}

#[test]
fn a_record_is_removed_some_time_after_its_switch_was_seen_last() {
    let mut world = World::calm(3, 2);
    world.keep_records = Duration::from_secs(20);
    world.run_until(Duration::from_secs(3));
    let before = world.store.record(World::dpid(0)).cloned().unwrap();
    for node in 0..3 {
        world.disconnect(node, 0);
    }
    world.run_until(Duration::from_secs(20));
    assert_eq!(world.store.record(World::dpid(0)), Some(&before), "it may come back");
    world.run_until(Duration::from_secs(45));
    assert_eq!(world.store.record(World::dpid(0)), None);
    assert!(world.store.record(World::dpid(1)).is_some(), "this one is there");
    for node in 0..3 {
        world.connect(node, 0);
    }
    world.run_until(Duration::from_secs(50));
    let after = world.store.record(World::dpid(0)).unwrap();
    assert!(after.epoch() > before.epoch(), "{before:?} {after:?}");
    assert!(world.switches[0].master().is_some());
}

#[test]
fn nodes_that_wait_for_each_other_for_ever_are_found() {
    assert_found(Fence::Silent, "has no master");
}

/// Seeds in which two nodes get the same generation, if it does not have the number of the node:
/// etcd was restored between their claims. They are rare, 10 of 20,000: `search` finds others when
/// what is played changes.
const SEEDS_OF_EQUAL_GENERATIONS: [u64; 6] = [4886, 5163, 6017, 6275, 6322, 8383];

#[test]
fn nodes_that_get_the_same_generation_are_found() {
    let failures = SEEDS_OF_EQUAL_GENERATIONS
        .into_iter()
        .filter_map(|seed| World::new(seed, Fence::WithoutNode, false).play().err());
    let failures: Vec<String> = failures.collect();
    assert!(failures.iter().any(|text| text.contains("older generation")), "{failures:?}");
}

#[test]
fn a_restore_of_etcd_that_is_not_noticed_is_found() {
    assert_found(Fence::RestoreUnnoticed, "does not know Record");
}

/// A stopped process is noticed by its silence; then the others must agree, and claim.
const TAKEN_OVER_AFTER_SILENCE: Duration = Duration::from_millis(400);
/// The connections of a process that ends are reset.
const TAKEN_OVER_AFTER_RESET: Duration = Duration::from_millis(20);

#[test]
fn a_lost_node_is_replaced_at_once_and_without_etcd() {
    for (is_killed, limit) in [(true, TAKEN_OVER_AFTER_RESET), (false, TAKEN_OVER_AFTER_SILENCE)] {
        let mut world = World::calm(3, 1000);
        let begin = Duration::from_secs(3);
        world.run_until(begin);
        let lost = world.switches_of(0);
        assert!(lost.len() > 200, "{} of 1000", lost.len());
        for node in 1..3 {
            world.nodes[node].store_cuts = 1;
        }
        if is_killed {
            world.kill(0);
        } else {
            world.nodes[0].is_stopped = true;
        }
        world.run_until(begin + limit);
        let masters: Vec<_> = lost.iter().map(|&lost| world.switches[lost].master()).collect();
        let of = |node| masters.iter().filter(|&&master| master == Some(node)).count();
        // The orders differ in their second node, so that both take some.
        let left = lost.iter().zip(&masters).filter(|(_, master)| master.is_none());
        let left: Vec<_> = left.map(|(&lost, _)| world.store.record(World::dpid(lost))).collect();
        assert!(left.is_empty(), "killed {is_killed}: {left:?}");
        assert!(of(1).min(of(2)) > lost.len() / 4, "killed {is_killed}: {} and {}", of(1), of(2));
    }
}

#[test]
fn a_node_that_drains_gives_its_switches_away_and_gets_them_back() {
    let mut world = World::calm(3, 30);
    world.run_until(Duration::from_secs(15));
    world.give(0, Input::Drain(true));
    world.run_until(Duration::from_secs(20));
    let loads = [0, 1, 2].map(|node| world.switches_of(node).len());
    assert!(loads[0] == 0 && loads[1].abs_diff(loads[2]) <= 1, "{loads:?}");
    world.give(0, Input::Drain(false));
    world.run_until(Duration::from_secs(35));
    let loads = [0, 1, 2].map(|node| world.switches_of(node).len());
    assert!(loads.iter().all(|load| (9..=11).contains(load)), "{loads:?}");
}

#[test]
fn an_operator_moves_a_switch() {
    let mut world = World::calm(3, 1);
    world.run_until(Duration::from_secs(3));
    let before = world.switches[0].master().unwrap();
    let to = (before + 1) % 3;
    // Only its master moves it.
    for node in 0..3 {
        world.give(node, Input::Move(World::dpid(0), NodeId::new(to).unwrap()));
    }
    world.run_until(Duration::from_secs(4));
    assert_eq!(world.switches[0].master(), Some(to));
    let of_the_master = world.moved.iter().filter(|(_, result)| result.is_ok()).count();
    assert_eq!((of_the_master, world.moved.len()), (1, 3), "{:?}", world.moved);
}

/// Three nodes with nine switches, which are all moved to node 1.
fn with_moved_switches() -> World {
    let mut world = World::calm(3, 9);
    world.run_until(Duration::from_secs(15));
    move_all(&mut world, 1);
    world.run_until(Duration::from_secs(17));
    assert_eq!(world.moved.iter().filter(|(_, result)| result.is_ok()).count(), 9);
    world
}

/// Moves all switches to a node, also those that it has.
fn move_all(world: &mut World, to: usize) {
    for node in 0..3 {
        for switch in world.switches_of(node) {
            world.give(node, Input::Move(World::dpid(switch), NodeId::new(to).unwrap()));
        }
    }
}

fn loads(world: &World) -> [usize; 3] {
    [0, 1, 2].map(|node| world.switches_of(node).len())
}

fn is_even(loads: [usize; 3]) -> bool {
    loads.iter().all(|load| (2..=4).contains(load))
}

#[test]
fn moves_hold_until_an_operator_balances_at_any_node() {
    let mut world = with_moved_switches();
    // Longer than balancing takes.
    world.run_until(Duration::from_secs(40));
    assert_eq!(loads(&world), [0, 9, 0]);
    assert!(world.placed().eq([1; 9]), "{:?}", Vec::from_iter(world.placed()));
    world.give(2, Input::Balance);
    world.run_until(Duration::from_secs(45));
    assert_eq!((world.balanced.as_slice(), world.placed().count()), (&[0][..], 0));
    assert!(is_even(loads(&world)), "{:?}", loads(&world));
}

#[test]
fn switches_moved_to_a_lost_node_are_spread_when_it_is_back() {
    let mut world = with_moved_switches();
    world.kill(1);
    world.run_until(Duration::from_secs(20));
    assert_eq!((loads(&world)[1], world.placed().count()), (0, 0));
    world.start(1);
    world.run_until(Duration::from_secs(40));
    assert!(is_even(loads(&world)), "{:?}", loads(&world));
}

#[test]
fn a_node_that_drains_gives_away_what_it_was_given() {
    let mut world = with_moved_switches();
    world.give(1, Input::Drain(true));
    world.run_until(Duration::from_secs(25));
    assert_eq!((loads(&world)[1], world.placed().count()), (0, 0));
}

#[test]
fn switches_that_were_moved_are_moved_again() {
    let mut world = with_moved_switches();
    move_all(&mut world, 2);
    world.run_until(Duration::from_secs(22));
    assert_eq!(loads(&world), [0, 0, 9]);
    assert!(world.placed().eq([2; 9]), "{:?}", Vec::from_iter(world.placed()));
}

#[test]
fn an_operator_keeps_switches_where_they_are() {
    let mut world = World::calm(3, 9);
    world.run_until(Duration::from_secs(1));
    world.kill(2);
    world.run_until(Duration::from_secs(15));
    for switch in world.switches_of(0) {
        world.give(0, Input::Move(World::dpid(switch), NodeId::new(0).unwrap()));
    }
    world.run_until(Duration::from_secs(16));
    let kept = world.switches_of(0);
    assert_eq!(world.placed().filter(|&node| node == 0).count(), kept.len());
    assert!(!world.moved.is_empty() && world.moved.iter().all(|(_, result)| result.is_ok()));
    // The new node gets switches of the other one only.
    world.start(2);
    world.run_until(Duration::from_secs(35));
    assert_eq!(world.switches_of(0), kept);
    assert!(!world.switches_of(2).is_empty());
}

#[test]
fn a_move_without_etcd_is_given_up_with_that_reason() {
    let mut world = World::calm(3, 1);
    world.run_until(Duration::from_secs(3));
    let before = world.switches[0].master().unwrap();
    for node in &mut world.nodes {
        node.store_cuts = 1;
    }
    let to = NodeId::new((before + 1) % 3).unwrap();
    world.give(before, Input::Move(World::dpid(0), to));
    world.run_until(Duration::from_millis(2900) + ORDER_LIMIT);
    assert_eq!(world.moved, []);
    world.run_until(Duration::from_secs(4) + ORDER_LIMIT);
    assert_eq!(world.moved, [(World::dpid(0), Err(NotMoved::NotWritten))]);
    assert_eq!(world.switches[0].master(), Some(before));
}

/// Plays many seeds, with any part taken out: `SEEDS=1-20000 FENCE=Silent`.
#[test]
#[ignore = "for a search by hand"]
fn search() {
    let seeds = std::env::var("SEEDS").unwrap_or_default();
    let (first, last) = seeds.split_once('-').unwrap();
    let fence = match std::env::var("FENCE").as_deref() {
        Ok("None") => Fence::None,
        Ok("WithoutRank") => Fence::WithoutRank,
        Ok("WithoutNode") => Fence::WithoutNode,
        Ok("RestoreUnnoticed") => Fence::RestoreUnnoticed,
        Ok("Silent") => Fence::Silent,
        _ => Fence::Whole,
    };
    let seeds = first.parse().unwrap()..=last.parse().unwrap();
    let failures = play(seeds, fence);
    println!("{} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_cluster_without_generations_is_found() {
    assert_found(Fence::None, "older generation");
}

#[test]
fn a_cluster_whose_nodes_share_a_generation_is_found() {
    assert_found(Fence::WithoutRank, "older generation");
}
