//! The load generator against this controller, both run as commands. Every answer of the learning
//! switch is verified, in every mode.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

const BELLROCK: &str = env!("CARGO_BIN_EXE_bellrock");

/// Short runs with long time limits: the tests check results, not times.
const SHORT: [&str; 12] = [
    "--runs",
    "2",
    "--duration",
    "0.15",
    "--warm-up",
    "0.02",
    "--answer-timeout",
    "20",
    "--connect-timeout",
    "30",
    "--switches",
    "4",
];

fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

/// Exit status, standard output and standard error of `bellrock bench`.
fn bench(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(BELLROCK);
    command.arg("bench").args(arguments).args(SHORT).stdin(Stdio::null());
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// A configuration of the learning switch, removed at the end.
struct Config(PathBuf);

impl Config {
    fn with_match(kind: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = format!("bellrock-bench-{process}-{next}.yaml");
        let path = std::env::temp_dir().join(name);
        fs::write(&path, format!("apps:\n  - learning:\n      match: {kind}\n")).unwrap();
        Config(path)
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs the generator against a controller that the generator starts and ends.
fn against_bellrock(config: &Config, arguments: &[&str]) -> Value {
    let address = free_address().to_string();
    let controller = format!(
        "{BELLROCK} run --config {} --listen {address} --control none --log-level warn",
        config.0.display()
    );
    let all = [&["--controller", &controller, "--connect", &address, "--json"], arguments].concat();
    let (status, out, error) = bench(&all);
    assert_eq!(status, 0, "{arguments:?}: {out}\n{error}");
    serde_json::from_str(&out).unwrap_or_else(|wrong| panic!("{wrong}: {out}"))
}

/// cbench's switches do not report flows, and announce destinations before they are set up.
#[test]
fn the_switches_of_cbench_get_their_flows() {
    let address = free_address().to_string();
    for mode in ["throughput", "latency"] {
        let controller = format!(
            "{BELLROCK} run --app learning --workers 1 --listen {address} --control none --log-level error"
        );
        let cbench = ["--cbench", "--mode", mode];
        let all = [&["--controller", &controller, "--connect", &address], &cbench[..]].concat();
        let (status, out, error) = bench(&all);
        assert_eq!(status, 0, "{mode}: {out}\n{error}");
        let figures = out.split(" = ").nth(1).unwrap_or_else(|| panic!("{out}"));
        let min: f64 = figures.split('/').next().unwrap().parse().unwrap();
        assert!(min > 0.0, "{mode}: {out}");
    }
}

#[test]
fn every_answer_of_the_learning_switch_is_right() {
    let modes: [&[&str]; 4] = [
        &["--mode", "throughput"],
        &["--mode", "latency"],
        &["--mode", "window", "--in-flight", "5"],
        &["--mode", "rate", "--rate", "300"],
    ];
    let kinds: [&[&str]; 4] = [
        &["--of", "1.0"],
        &["--of", "1.0", "--unbuffered"],
        &["--of", "1.3"],
        &["--of", "1.3", "--unbuffered"],
    ];
    let hosts: [&[&str]; 2] =
        [&["--macs", "50"], &["--macs", "500", "--order", "random", "--dst", "uniform"]];
    for (kind, config) in ["exact", "l2"].map(|kind| (kind, Config::with_match(kind))) {
        for (index, (mode, version)) in
            modes.iter().flat_map(|mode| kinds.map(|kind| (mode, kind))).enumerate()
        {
            let arguments = [mode, version, hosts[index % 2]].concat();
            let report = against_bellrock(&config, &arguments);
            let tally = &report["summary"]["tally"];
            assert!(tally["verified"].as_u64() > Some(50), "{kind} {arguments:?}: {tally}");
            assert_eq!(tally["verified"], tally["sent"], "{kind} {arguments:?}: {tally}");
            assert!(report["runs"][0]["controller"]["resident_bytes"].as_u64() > Some(1 << 20));
        }
    }
}

#[test]
fn switches_connect_again_and_again() {
    let config = Config::with_match("l2");
    for mode in ["connect", "storm"] {
        for version in ["1.0", "1.3"] {
            let report = against_bellrock(&config, &["--mode", mode, "--of", version]);
            let done = report["runs"][0]["done"].as_u64();
            assert!(done >= Some(if mode == "storm" { 4 } else { 1 }), "{report}");
        }
    }
}

/// A started responder, which ends with the test.
struct Running(Child, String);

impl Running {
    fn responder(flags: &[&str]) -> Self {
        let mut command = Command::new(BELLROCK);
        command.args(["bench", "responder", "--listen", "127.0.0.1:0"]).args(flags);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        Running(child, address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_responder_answers_the_load_and_the_report_reads_well() {
    let responder = Running::responder(&[]);
    let pid = responder.0.id().to_string();
    let (status, out, error) = bench(&["--connect", &responder.1, "--pid", &pid]);
    assert_eq!(status, 0, "{out}{error}");
    for part in
        ["4 switches, OpenFlow 1.0", "flow set-ups/s", "0 wrong", "0 extra", "of the controller"]
    {
        assert!(out.contains(part), "no {part:?} in\n{out}");
    }
    let (status, out, _) = bench(&["--connect", &responder.1, "--cbench"]);
    assert_eq!(status, 0);
    assert!(out.starts_with("RESULT: 4 switches 2 tests min/max/avg/stdev = "), "{out}");
    assert_eq!(out.lines().count(), 1);
}

#[test]
fn a_controller_is_compared_with_the_responder() {
    let config = Config::with_match("exact");
    let report = against_bellrock(&config, &["--pairs", "2"]);
    for of in ["controller", "reference"] {
        let tally = &report[of]["summary"]["tally"];
        assert!(tally["verified"].as_u64() > Some(50), "{tally}");
        assert_eq!(tally["verified"], tally["sent"], "{tally}");
    }
    assert!(report["rate"]["median"].as_f64() > Some(0.0), "{report}");
    assert!(report["controller"]["load"]["target"] != report["reference"]["load"]["target"]);
}

#[test]
fn a_controller_is_compared_with_a_peer_that_is_started_for_it() {
    let config = Config::with_match("exact");
    let peer = format!("second={BELLROCK} bench responder --listen 127.0.0.1:{{port}}");
    let report = against_bellrock(&config, &["--peer", &peer, "--pairs", "2"]);
    assert_eq!((&report["name"], &report["pairs"]), (&"second".into(), &2.into()));
    for of in ["controller", "reference"] {
        let tally = &report[of]["summary"]["tally"];
        assert!(tally["verified"].as_u64() > Some(50), "{tally}");
        assert_eq!(tally["verified"], tally["sent"], "{tally}");
    }

    let responder = Running::responder(&[]);
    let pairs = ["--connect", &responder.1, "--peer", &peer];
    let (status, out, error) = bench(&pairs);
    assert_eq!(status, 0, "{out}{error}");
    assert!(out.contains("REFERENCE: second") && out.contains("median of 9 pairs"), "{out}");
}

#[test]
fn sides_that_have_not_enough_files_for_both_connect_for_each_run() {
    let responder = Running::responder(&[]);
    let short = SHORT[..10].join(" ");
    // 64 files are for other purposes, so 36 switches can connect at a time.
    let line = format!(
        "ulimit -n 100; exec {BELLROCK} bench --connect {} --pairs 3 {short} --switches 30",
        responder.1
    );
    let output = Command::new("sh").args(["-c", &line]).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, error) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{error}");
    assert!(out.contains("median of 3 pairs"), "{out}");
}

#[test]
fn idle_switches_are_answered_by_a_bare_loop() {
    let responder = Running::responder(&["--echo-only"]);
    let flags = ["--mode", "rate", "--rate", "200", "--json"];
    let all = [&["--connect", &responder.1, "--echoes"], &flags[..]].concat();
    let (status, out, error) = bench(&all);
    assert_eq!(status, 0, "{out}{error}");
    let (status, _, error) = bench(&["--connect", &responder.1, "--learn-timeout", "0"]);
    assert_eq!(status, 2, "{error}");
    assert!(error.contains("the learn timeout is zero"), "{error}");
}

#[test]
fn a_controller_that_takes_too_long_to_learn_is_told_of() {
    let responder = Running::responder(&[]);
    // Too many to be learnt between two checks of the time.
    let many = ["--macs", "10000000", "--dst", "uniform", "--learn-timeout", "0.001"];
    let (status, out, error) = bench(&[&["--connect", &responder.1], &many[..]].concat());
    assert_eq!((status, out.as_str()), (1, ""), "{error}");
    assert!(error.contains("did not learn 40000000 destinations within 1ms"), "{error}");
    assert!(error.contains("--learn-timeout"), "{error}");
}

#[test]
fn bad_use_is_told() {
    let address = free_address().to_string();
    let cases: [(&[&str], i32, &str); 11] = [
        (&["--connect", &address], 1, "nothing listens on"),
        (&["--connect", "x"], 2, "give HOST:PORT"),
        (&["--macs", "0"], 2, "macs cannot be 0; give 1 to 10000000"),
        (&["--dst", "uniform", "--macs", "1"], 2, "give 2 to 10000000"),
        (&["--mode", "window"], 2, "needs --in-flight"),
        (&["--cores", "100000"], 2, "core 100000 cannot be pinned to"),
        (&["--controller", "false", "--connect", &address], 1, "before it listened"),
        (&["--peer", "nox"], 2, "built-in peer: ovs-testcontroller, os-ken"),
        (&["--peer", "nox=nox_core -i ptcp:6633"], 2, "put {port} or {address} into its command"),
        (&["--peer", "dead=false {port}"], 1, "the controller `false"),
        (&["--pid", "4294967295"], 1, "process 4294967295 cannot be measured"),
    ];
    for (arguments, expected, text) in cases {
        let (status, out, error) = bench(arguments);
        assert_eq!(status, expected, "{arguments:?}: {error}");
        assert!(error.contains(text), "{arguments:?}: {error}");
        assert_eq!(out, "", "{arguments:?}");
    }
}

#[test]
fn more_switches_than_files_are_told_with_the_limit() {
    let line = format!("ulimit -n 100; exec {BELLROCK} bench --switches 90");
    let output = Command::new("sh").args(["-c", &line]).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("90 switches need 154 open files, and this process may have 100"),
        "{error}"
    );
    assert!(error.contains("ulimit -Hn"), "{error}");
}
