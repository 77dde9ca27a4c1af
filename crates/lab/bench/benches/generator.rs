//! Runs the whole generator against the canned responder in a separate process. Prints the cost of
//! each verified flow set-up; callgrind can count its instructions.
//!
//! ```sh
//! cargo bench -p bellrock-bench --bench generator -- 1.0 buffered 2
//! # User instructions of the generator alone: valgrind does not follow into the responder.
//! valgrind --tool=callgrind target/release/deps/generator-* 1.0 buffered 2
//! valgrind --tool=callgrind target/release/deps/generator-* 1.0 buffered 4
//! ```
//!
//! The number is the seconds measured. The cost of a flow set-up is the difference between both
//! instruction counts, divided by the difference between both printed counts of flow set-ups.

#![allow(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use bellrock_bench::{Load, MeasuredProcess, Responder, ResponderIdle, ResponderSettings, run};
use bellrock_openflow::Version;

/// Argument that makes this program the responder. It ends when its standard input closes.
const RESPOND: &str = "respond";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &str| arguments.iter().any(|argument| argument == name);
    if named(RESPOND) {
        respond();
        return;
    }
    let program = std::env::current_exe().expect("it has a name");
    let mut responder = Command::new(program)
        .arg(RESPOND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be started again");
    let mut line = String::new();
    let output = responder.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut line).expect("it prints its address");
    // Cargo passes `--test` only to check that the program runs.
    let given = arguments.iter().filter(|text| !text.contains('.')).find_map(|n| n.parse().ok());
    let seconds: u32 = if named("--test") { 1 } else { given.unwrap_or(3) };
    let load = Load {
        target: line.trim().parse().expect("an address"),
        version: if named("1.3") { Version::V1_3 } else { Version::V1_0 },
        buffered: !named("unbuffered"),
        runs: 1,
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(seconds.into()),
        ..Load::default()
    };
    let report = run(&load, &MeasuredProcess::default(), &mut |_| {}).expect("it runs");
    drop(responder.stdin.take());
    responder.wait().expect("it ends");
    let tally = report.summary.tally;
    assert!(report.failure.is_none() && tally.is_clean(), "{:?} {tally:?}", report.failure);
    let ns: f64 = report.runs.iter().map(|run| run.generator_cpu_s * 1e9 / run.done as f64).sum();
    println!("{} flow set-ups, {ns:.1} ns of CPU time for each measured one", tally.verified);
}

fn respond() {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let settings =
        ResponderSettings { listen, idle: ResponderIdle::Sleep, core: None, echo_only: false };
    let responder = Responder::start(&settings).expect("it starts");
    println!("{}", responder.address());
    let mut rest = String::new();
    let _ = std::io::stdin().read_line(&mut rest);
}
