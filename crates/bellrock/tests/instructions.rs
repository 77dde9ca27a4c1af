//! What a packet-in costs a worker with the learning switch, in user instructions: it may not become
//! more unnoticed. Instructions do not depend on what else the machine does, as times do.
//!
//! Valgrind counts them, in a build as releases have it. Where it is not installed this says so, and
//! under CI it is a failure. Who makes a packet-in cheaper, or has a reason to make it dearer, writes
//! the new numbers here.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use bellrock_bench::callgrind::{CallgrindError, benchmark, per_unit};

/// Version, kind of match, and user instructions for each packet-in: reading it, learning its source,
/// finding its destination, writing the flow_mod.
const KNOWN: [(&str, &str, f64); 6] = [
    ("1.0", "l2", 177.0),
    ("1.0", "exact", 194.0),
    ("1.3", "l2", 198.0),
    ("1.3", "exact", 232.0),
    // Global learning, with its one table for all switches, and what each keeps at hand of it.
    ("1.0", "exact@lock_free", 201.0),
    ("1.3", "exact@lock_free", 238.0),
];

/// So much more than that is let through: other compilers, other processors.
const SLACK: f64 = 1.05;

/// Packets that are counted, and then twice as many.
const PACKETS: u64 = 50_000;

#[test]
fn a_packet_in_costs_no_more_instructions_than_it_did() {
    let program = benchmark("bellrock-worker", "packet_in").unwrap();
    for (version, matching, known) in KNOWN {
        let each = match per_unit(&program, &[version, matching], PACKETS) {
            Ok(each) => each,
            Err(CallgrindError::NoValgrind) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs valgrind");
                eprintln!("NOT TESTED: instructions cannot be counted without valgrind");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        println!("{version} {matching}: {each:.0} user instructions for each packet-in");
        assert!(
            (1.0..=known * SLACK).contains(&each),
            "{version} {matching}: {each:.0} user instructions for each packet-in, {known} before"
        );
    }
}
