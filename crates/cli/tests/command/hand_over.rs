//! The load generator verifies every answer while the switches move between workers all the time.
//! No answer is wrong, missing or doubled, and the learning switch forgets nothing.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellrock_api::Version;
use bellrock_api::runtime::Chain;
use bellrock_apps::Learning;
use bellrock_bench::{Destinations, Load, LoadMode, MeasuredProcess, run};
use bellrock_engine::{Engine, EngineSettings, Pinning};
use bellrock_tables::Budget;

const WORKERS: usize = 3;
const SWITCHES: u32 = 8;

/// Time between two moves of all switches.
const EVERY: Duration = Duration::from_millis(2);

/// Far more than any answer takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(30);

fn nothing_is_lost(version: Version, mode: LoadMode, buffered: bool) {
    let settings = EngineSettings {
        listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        workers: WORKERS,
        pin: Pinning::None,
        ..EngineSettings::default()
    };
    let learning = Learning::new(Default::default(), &Budget::unlimited());
    let engine = Engine::start(&settings, Chain::of_app(learning)).unwrap();
    let (monitor, stop) = (engine.monitor(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let mover = std::thread::spawn(move || {
        for round in 0.. {
            for info in monitor.switches() {
                // Errors are ignored: the switch may be gone meanwhile.
                let to = (round + info.dpid.0 as usize) % WORKERS;
                let _ = monitor.hand_over(info.dpid, to);
            }
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(EVERY);
        }
    });
    let load = Load {
        target: engine.addresses()[0],
        version,
        switches: SWITCHES,
        mode,
        buffered,
        macs: 50,
        destinations: Destinations::Uniform,
        warm_up: Duration::from_millis(50),
        duration: Duration::from_millis(400),
        runs: 2,
        answer_timeout: PATIENCE,
        connect_timeout: PATIENCE,
        ..Load::default()
    };
    let report = run(&load, &MeasuredProcess::default(), &mut |_| {}).unwrap();
    let handed_over: u64 = engine
        .monitor()
        .worker_counters()
        .into_iter()
        .flatten()
        .filter_map(|(name, n)| (name == "switches_handed_over").then_some(n))
        .sum();
    stop.store(true, Ordering::Relaxed);
    mover.join().unwrap();
    engine.stop();
    assert_eq!(report.failure, None);
    let tally = report.summary.tally;
    assert!(tally.verified > 100, "{tally:?}");
    assert!(tally.is_clean(), "{tally:?}");
    assert!(handed_over > u64::from(SWITCHES), "they were handed over {handed_over} times");
}

#[test]
fn one_at_a_time_on_1_0() {
    nothing_is_lost(Version::V1_0, LoadMode::Latency, true);
}

#[test]
fn many_in_flight_on_1_3_unbuffered() {
    nothing_is_lost(Version::V1_3, LoadMode::Window(64), false);
}

#[test]
fn as_many_as_the_socket_takes_on_1_0() {
    nothing_is_lost(Version::V1_0, LoadMode::Throughput, true);
}
