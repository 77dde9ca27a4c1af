//! The generator against the canned responder, over loopback: every mode, both versions, buffered
//! and unbuffered. No answer may be wrong, missing or extra.
#![allow(clippy::unwrap_used, reason = "a test fails so")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bellrock_bench::{
    BenchError, Comparison, Destinations, HostOrder, Load, LoadMode, MeasuredProcess, Report,
    Responder, ResponderIdle, ResponderSettings, Side, alternate, run,
};
use bellrock_openflow::Version;

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

fn responder() -> Responder {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let idle = ResponderIdle::Sleep;
    Responder::start(&ResponderSettings { listen, idle, core: None, echo_only: false }).unwrap()
}

/// Starts the loop that only answers echo requests.
fn echo_loop() -> Responder {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let idle = ResponderIdle::Sleep;
    Responder::start(&ResponderSettings { listen, idle, core: None, echo_only: true }).unwrap()
}

/// A short test with a few switches and hosts.
fn load(responder: &Responder) -> Load {
    Load {
        target: responder.address(),
        switches: 4,
        macs: 20,
        order: HostOrder::Random,
        destinations: Destinations::Uniform,
        warm_up: Duration::from_millis(20),
        duration: Duration::from_millis(150),
        runs: 2,
        // The machine may be busy. This test is about which answers come, not when.
        answer_timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(30),
        ..Load::default()
    }
}

/// Maximum length of a run. Within it, each switch must have its turn.
const MAX_DURATION: Duration = Duration::from_secs(20);

fn test(load: &Load) -> Report {
    let watch = MeasuredProcess { pid: Some(std::process::id()), tdp_watts: Some(10.0) };
    run(load, &watch, &mut |_| {}).unwrap()
}

/// Runs a test without wrong, missing or extra answers, in which each switch had its turn. On a
/// busy machine a short run may end before that: then it is repeated, each time longer.
fn test_clean(load: &Load) -> Report {
    let mut load = load.clone();
    loop {
        let report = test(&load);
        assert_clean(&report, &load);
        let mut rates = report.runs.iter().flat_map(|run| &run.per_switch);
        if rates.all(|rate| *rate > 0.0) {
            return report;
        }
        assert!(load.duration < MAX_DURATION, "a switch had no answer: {:?}", report.runs);
        load.duration *= 4;
    }
}

fn assert_clean(report: &Report, load: &Load) {
    let tally = report.summary.tally;
    let case = format!("{:?} {} buffered={}", load.mode, load.version, load.buffered);
    assert!(report.failure.is_none(), "{case}: {:?}", report.failure);
    assert!(tally.is_clean(), "{case}: {tally:?}");
    assert_eq!(tally.sent, tally.verified, "{case}: {tally:?}");
    assert_eq!(report.runs.len(), load.runs as usize);
    for run in &report.runs {
        assert!(run.complete && run.done > 0 && run.rate > 0.0, "{case}: {run:?}");
        assert_eq!(run.per_switch.len(), load.switches as usize);
        assert_eq!(run.latency.as_ref().unwrap().count, run.done, "{case}");
    }
}

#[test]
fn every_answer_is_verified_in_every_mode() {
    let responder = responder();
    for mode in
        [LoadMode::Throughput, LoadMode::Latency, LoadMode::Window(7), LoadMode::Rate(500.0)]
    {
        for (version, buffered) in VERSIONS.into_iter().flat_map(|v| [(v, true), (v, false)]) {
            let load = Load { mode, version, buffered, ..load(&responder) };
            let report = test_clean(&load);
            let window = matches!(mode, LoadMode::Latency | LoadMode::Window(_));
            assert!(report.runs.iter().all(|run| run.little.is_some() == window));
            let rate = matches!(mode, LoadMode::Rate(_));
            assert!(report.runs.iter().all(|run| run.lateness.is_some() == rate));
        }
    }
}

#[test]
fn every_answer_is_verified_for_every_draw_and_over_several_threads() {
    let responder = responder();
    for order in [HostOrder::InOrder, HostOrder::Random, HostOrder::Zipf] {
        for destinations in [Destinations::One, Destinations::Uniform, Destinations::Zipf] {
            let macs = if destinations == Destinations::One { 1 } else { 3000 };
            let load = Load {
                order,
                destinations,
                macs,
                threads: 3,
                switches: 10,
                first_dpid: 0xfff0,
                runs: 1,
                ramp_per_second: 200,
                ..load(&responder)
            };
            test_clean(&load);
        }
    }
}

#[test]
fn echo_requests_are_answered_in_place_of_packets() {
    for responder in [responder(), echo_loop()] {
        for version in VERSIONS {
            for mode in [LoadMode::Throughput, LoadMode::Latency, LoadMode::Rate(500.0)] {
                let load = Load { mode, version, echoes: true, ..load(&responder) };
                let report = test_clean(&load);
                assert!(report.to_string().contains("echoes/s"), "{report}");
            }
        }
    }
}

#[test]
fn the_echo_loop_keeps_switches_that_come_and_go_and_answers_nothing_else() {
    let responder = echo_loop();
    let storm = Load { mode: LoadMode::Storm, switches: 200, ..load(&responder) };
    let report = test(&storm);
    assert_eq!(report.runs.iter().map(|run| run.done).collect::<Vec<_>>(), [200, 200]);
    let timeout = Duration::from_millis(50);
    let packets = Load { mode: LoadMode::Latency, answer_timeout: timeout, ..load(&responder) };
    let tally = test(&packets).summary.tally;
    assert!(tally.missing > 0 && tally.verified == 0, "{tally:?}");
}

#[test]
fn a_rate_is_kept_as_long_as_the_controller_keeps_up() {
    let responder = responder();
    let load = Load { mode: LoadMode::Rate(100.0), runs: 1, ..load(&responder) };
    let report = test(&load);
    assert_clean(&report, &load);
    let sent = report.summary.tally.sent;
    // 170 ms, 4 switches, 100 per second each: 68. The time between two phases is not exact.
    assert!((64..400).contains(&sent), "{sent}");
}

#[test]
fn connections_are_made_and_made_again() {
    let responder = responder();
    for version in VERSIONS {
        let connect = Load { mode: LoadMode::Connect, version, ..load(&responder) };
        let report = test(&connect);
        assert!(report.failure.is_none(), "{:?}", report.failure);
        assert!(report.runs.iter().all(|run| run.done > 0), "{report:?}");
        let storm = Load { mode: LoadMode::Storm, switches: 100, threads: 2, version, ..connect };
        let report = test(&storm);
        assert!(report.failure.is_none(), "{:?}", report.failure);
        assert_eq!(report.runs.len(), 2);
        assert!(report.runs.iter().all(|run| run.done == 100), "{report:?}");
    }
}

#[test]
fn a_thousand_switches_fit_one_thread() {
    let responder = responder();
    let load = Load { switches: 1000, mode: LoadMode::Window(2), runs: 1, ..load(&responder) };
    test_clean(&load);
}

#[test]
fn the_costs_of_a_test_are_in_the_report() {
    let responder = responder();
    let load = Load { runs: 1, ..load(&responder) };
    let report = test(&load);
    let run = &report.runs[0];
    assert!(run.controller.as_ref().unwrap().resident_bytes > 1 << 20);
    assert!(run.controller_cpu_ns.is_some());
    let parts = run.controller_user_ns.unwrap() + run.controller_system_ns.unwrap();
    assert!((parts - run.controller_cpu_ns.unwrap()).abs() < 0.01, "{run:?}");
    assert!(run.generator_bytes_per_read > 80.0, "{run:?}");
    assert!(run.controller_bytes_per_read.unwrap() > 40.0, "the responder is in this process");
    assert!(run.energy.is_some());
    assert_eq!(run.generator_threads.len(), 1);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["load"]["mode"], "throughput");
    assert!(json["summary"]["rate"]["median"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_responder_compared_with_itself_is_measured_in_pairs() {
    let responder = responder();
    let load = Load { runs: 1, duration: Duration::from_millis(60), ..load(&responder) };
    let pid = std::process::id();
    let watch = MeasuredProcess { pid: Some(pid), tdp_watts: None };
    let side = Side { load, watch, settle: Duration::from_millis(20) };
    let mut told = Vec::new();
    let comparison =
        alternate(&side, &side, 3, &mut |turn, at| told.push((turn, at.step))).unwrap();
    assert!(told.iter().all(|(turn, _)| (1..=6).contains(turn)), "{told:?}");
    assert!(told.is_sorted_by_key(|(turn, _)| *turn), "{told:?}");
    assert!(comparison.is_clean());
    let Comparison { controller, reference, rate, p50, .. } = &comparison;
    assert_eq!((controller.runs.len(), reference.runs.len()), (3, 3));
    let runs = controller.runs.iter().chain(&reference.runs);
    assert!(runs.map(|run| run.latency.as_ref().unwrap().count).all(|count| count > 0));
    let counts = controller.runs.iter().map(|run| run.latency.as_ref().unwrap().count);
    assert_eq!(controller.summary.latency.as_ref().unwrap().count, counts.sum::<u64>());
    assert!(rate.least > 0.0 && rate.least <= rate.median && rate.median <= rate.most);
    assert!(p50.is_some());
    let text = comparison.to_string();
    assert!(text.contains("median of 3 pairs") && text.contains("an impression"), "{text}");
}

#[test]
fn it_says_that_nobody_listens() {
    let address = responder().address();
    let load = Load { target: address, ..Load::default() };
    let error = run(&load, &MeasuredProcess::default(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, BenchError::NobodyListens(at) if at == address), "{error}");
}

#[test]
fn it_says_that_there_is_no_such_process_or_core() {
    let watch = MeasuredProcess { pid: Some(u32::MAX), tdp_watts: None };
    let error = run(&Load::default(), &watch, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("give the controller's own pid"), "{error}");
    let cores = bellrock_bench::GeneratorCores::List(vec![100_000]);
    let load = Load { cores, ..Load::default() };
    let error = run(&load, &MeasuredProcess::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("core 100000"), "{error}");
}
