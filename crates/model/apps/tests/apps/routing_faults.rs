//! Routing under faults, in networks with cycles: after a period of faults, everything works again.
//!
//! Each seed selects a network, a version of OpenFlow, a mode, traffic and faults. After the last
//! fault the hosts get the recovery time that the constants promise. Then
//! - every host reaches every other host,
//! - no packet would circle or be lost,
//! - no ping was answered twice, at any time.
//!
//! A failing seed is printed with what happened; `LAB_SEED=N` runs it alone.

use std::time::Duration;

use crate::seeds::{ONE_SEED, number, play_all};
use bellrock_api::Version;
use bellrock_apps::{Routing, RoutingMode, RoutingSettings};
use bellrock_emulator::lab::{FaultPlan, Faults, Lab, Pings};
use bellrock_emulator::topology::{NamedTopology, fat_tree, leaf_spine, ring, waxman};
use fastrand::Rng;

/// Number of seeds.
const SEEDS: u64 = 300;

/// Interval between datagrams or pings of hosts during the faults.
const TALK_EVERY: Duration = Duration::from_millis(150);

/// Time to notice a silent link failure, or to find a link that is up: four rounds of discovery.
const DISCOVERY: Duration = Duration::from_secs(20);

/// Settings that a seed selects, beside its faults.
#[derive(Clone, Debug)]
struct Drawn {
    topology: NamedTopology,
    /// `None`: each switch has its own.
    version: Option<Version>,
    workers: usize,
    mode: RoutingMode,
}

impl Drawn {
    fn draw(rng: &mut Rng) -> Self {
        let topologies = [
            ring(3, 2),
            ring(6, 1),
            leaf_spine(3, 2, 1),
            leaf_spine(2, 4, 2),
            fat_tree(4),
            waxman(8, rng.u64(..)),
        ];
        Drawn {
            topology: topologies[rng.usize(..topologies.len())],
            version: [Some(Version::V1_0), Some(Version::V1_3), None][rng.usize(..3)],
            workers: rng.usize(1..=2),
            mode: [RoutingMode::Reactive, RoutingMode::Proactive][rng.usize(..2)],
        }
    }

    fn lab(&self, seed: u64, rng: &mut Rng) -> Lab {
        let mut lab = Lab::seeded(seed).topology(self.topology).workers(self.workers);
        match self.version {
            Some(version) => lab = lab.version(version),
            None => {
                for switch in self.topology.build().unwrap().switches() {
                    let version = Version::ALL[rng.usize(..2)];
                    lab = lab.switch_version(&switch.name, version);
                }
            }
        }
        lab.run(Routing::new(RoutingSettings { mode: self.mode, ..RoutingSettings::default() }))
    }
}

/// Runs a seed; returns an error that describes what is wrong.
fn play(seed: u64) -> Result<u64, String> {
    let mut rng = Rng::with_seed(seed);
    let drawn = Drawn::draw(&mut rng);
    let mut lab = drawn.lab(seed, &mut rng);
    let plan = lab.inject(&Faults::random(seed));
    let within = lab.recovery_time(Duration::ZERO) + DISCOVERY;
    let pings = talk(&mut lab, plan.lasts() + within, &mut rng);
    let failed = |what: String, plan: &FaultPlan| {
        Err(format!("seed {seed}: {what}\n{drawn:?}\n{plan}recovers within {within:?}"))
    };
    let pinged = lab.ping_all();
    if !pinged.is_complete() {
        return failed(format!("unreachable {:?}", pinged.lost()), &plan);
    }
    if !lab.findings().is_empty() {
        return failed(format!("{:?}", lab.findings()), &plan);
    }
    // A late answer counts like a second answer.
    let is_twice = |ping: &&Pings| {
        let statistics = lab.statistics(ping);
        statistics.received + statistics.duplicates > statistics.sent
    };
    let twice = pings.iter().filter(is_twice).count();
    if twice > 0 {
        return failed(format!("{twice} pings were answered twice"), &plan);
    }
    Ok(lab.digest())
}

/// Lets hosts talk for this time: some send datagrams, which no host answers, and some ping.
fn talk(lab: &mut Lab, time: Duration, rng: &mut Rng) -> Vec<Pings> {
    let mut pings = Vec::new();
    let hosts: Vec<String> = lab.topology().hosts().iter().map(|host| host.name.clone()).collect();
    let end = lab.now() + time;
    while lab.now() < end {
        let (from, to) = (rng.usize(..hosts.len()), rng.usize(..hosts.len()));
        if from != to && rng.bool() {
            lab.send_datagram(&hosts[from], &hosts[to]);
        } else if from != to {
            pings.push(lab.start_pings(&hosts[from], &hosts[to], 1, Duration::ZERO));
        }
        lab.run_for(TALK_EVERY.min(end - lab.now()));
    }
    pings
}

#[test]
fn after_any_faults_hosts_reach_each_other_and_nothing_runs_in_circles() {
    if let Some(seed) = number(ONE_SEED) {
        play(seed).unwrap_or_else(|failure| panic!("{failure}"));
        return;
    }
    let results = play_all(SEEDS, play);
    let failures: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    for failure in &failures {
        println!("{}", failure.lines().next().unwrap_or_default());
    }
    assert!(failures.is_empty(), "{} seeds fail; the first: {}", failures.len(), failures[0]);
}

#[test]
fn a_seed_repeats_to_the_last_byte() {
    for seed in 0..6 {
        assert_eq!(play(seed), play(seed), "seed {seed}");
    }
}
