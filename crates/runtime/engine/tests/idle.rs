//! Cost of idle switches. Alone in its process, because it measures the process's CPU time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::time::Duration;

use bellrock_api::Version;
use peer::{Peer, start, until};
use rustix::time::{ClockId, clock_gettime};

const SWITCHES: u64 = 1000;
const WHILE: Duration = Duration::from_secs(5);

/// Maximum CPU time of all threads in that period. It takes some 20 ms; a spinning worker uses all
/// of it.
const MAX_PROCESSOR_TIME: Duration = Duration::from_millis(500);

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_thousand_idle_switches_cost_next_to_no_processor_time() {
    let engine = start(2, |_| {});
    let peers: Vec<Peer> =
        (1..=SWITCHES).map(|dpid| Peer::up(&engine, Version::V1_3, dpid)).collect();
    until("all are up", || engine.monitor().status().switches as u64 == SWITCHES);
    let before = processor_time();
    std::thread::sleep(WHILE);
    let used = processor_time() - before;
    eprintln!("{SWITCHES} idle switches took {used:?} in {WHILE:?}");
    assert!(used < MAX_PROCESSOR_TIME, "{used:?} of processor time in {WHILE:?}");
    assert_eq!(engine.monitor().status().switches as u64, SWITCHES);
    drop(peers);
}
