//! The example `raw_learning` on emulated switches, over real sockets.
#![cfg(feature = "lab")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

#[path = "../../../examples/raw_learning.rs"]
#[allow(dead_code, reason = "its main is not called")]
mod raw_learning;

use std::time::Duration;

use bellrock::{Controller, Version};
use bellrock_emulator::check::Reachability;
use bellrock_emulator::host::PingSettings;
use bellrock_emulator::live::{LiveNetwork, LiveSettings};
use bellrock_emulator::on_both_versions;
use bellrock_emulator::topology::tree;
use bellrock_engine::session::Versions;

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(120);

/// Silence of the controller after which the switches count as set up.
const QUIET: Duration = Duration::from_millis(200);

on_both_versions!(hosts_reach_each_other_by_the_flows_of_the_owner);

fn hosts_reach_each_other_by_the_flows_of_the_owner(version: Version) {
    let (builder, owner) = Controller::builder().listen(([127, 0, 0, 1], 0)).raw_owner();
    let controller = builder.start().unwrap();
    let serving = std::thread::spawn(move || raw_learning::serve(&owner));
    let mut settings = LiveSettings::new(controller.addresses()[0]);
    settings.network.versions = Versions::only(version);
    let topology = tree(2, 2).build().unwrap();
    let all = topology.switches().len();
    let mut net = LiveNetwork::new(&topology, settings).unwrap();
    let connected = |live: &LiveNetwork| live.connected() == all && live.quiet_for() >= QUIET;
    assert!(net.run_until(PATIENCE, connected).unwrap(), "all switches connect");
    let pings = Reachability::begin_all(net.network_mut(), PingSettings::default());
    assert!(net.run_until(PATIENCE, |live| pings.is_over(live.network())).unwrap());
    let matrix = pings.finish(net.network_mut());
    assert!(matrix.is_complete(), "{:?}", matrix.lost);
    assert_eq!(controller.network().switches().iter().count(), all, "operators see them");
    controller.stop();
    serving.join().unwrap();
}
