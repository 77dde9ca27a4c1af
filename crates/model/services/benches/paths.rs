//! Measures how long paths over a thousand switches take: all next hops, and after one change.
//!
//! `cargo bench -p bellrock-services --bench paths`. One core. Each round takes a random link down
//! and up again; every tenth round also takes a switch down. Prints the median, the 99th percentile
//! and the worst, including publication: a round is all that the task does for a new topology.

#[path = "../tests/services/networks/mod.rs"]
mod networks;

use std::time::{Duration, Instant};

use bellrock_api::{SwitchPort, Topology};
use bellrock_services::paths::PathTracker;
use fastrand::Rng;
use networks::{fat_tree, random_regular, snapshot, unlink};

/// Number of measured full computations, and of link changes.
const FULL: usize = 9;
const CHANGES: usize = 200;

fn main() {
    println!("{:<36}{:>10}{:>10}{:>10}", "ms", "median", "p99", "worst");
    for (name, topology) in [
        ("fat-tree of 30 ports", fat_tree(30)),
        ("1,000 switches, 4 links each", random_regular(1000, 4, 1)),
        ("1,000 switches, 8 links each", random_regular(1000, 8, 1)),
        ("1,000 switches, 24 links each", random_regular(1000, 24, 1)),
    ] {
        println!(
            "{name}: {} switches, {} links",
            topology.switches.len(),
            topology.links.len() / 2
        );
        measure(&topology);
    }
}

fn measure(topology: &Topology) {
    let whole = snapshot(topology);
    let full = (0..FULL).map(|_| timed(|| PathTracker::default().update(&whole)));
    tell("  all next hops", full.collect());
    let mut tracker = PathTracker::default();
    let mut published = tracker.update(&whole);
    let mut rng = Rng::with_seed(1);
    let ends: Vec<SwitchPort> = topology.links.keys().copied().collect();
    let (mut downs, mut ups, mut switches) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..CHANGES {
        let end = ends[rng.usize(..ends.len())];
        let mut changed = topology.clone();
        unlink(&mut changed, end);
        let changed = snapshot(&changed);
        downs.push(timed(|| published = tracker.update(&changed)));
        ups.push(timed(|| published = tracker.update(&whole)));
        if round % 10 == 0 {
            let mut changed = topology.clone();
            changed.switches.remove(&end.dpid);
            changed.links.retain(|from, link| from.dpid != end.dpid && link.to.dpid != end.dpid);
            let changed = snapshot(&changed);
            switches.push(timed(|| published = tracker.update(&changed)));
            published = tracker.update(&whole);
        }
    }
    tell("  a link goes", downs);
    tell("  a link comes", ups);
    tell("  a switch goes", switches);
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let begin = Instant::now();
    let made = work();
    let took = begin.elapsed();
    drop(made);
    took
}

fn tell(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let ms = |at: usize| times[at.min(times.len() - 1)].as_secs_f64() * 1e3;
    let (median, p99) = (ms(times.len() / 2), ms(times.len() * 99 / 100));
    println!("{what:<36}{median:>10.3}{p99:>10.3}{:>10.3}", ms(times.len()));
}
