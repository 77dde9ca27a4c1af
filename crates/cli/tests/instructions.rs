//! Counts the user instructions of a worker with the learning switch for each packet-in, so that an
//! increase is noticed. Unlike times, they do not depend on the load of the machine.
//!
//! Valgrind counts them in a build like a release. Without valgrind the test says so, and fails
//! under CI. A change with good reason for other numbers writes them here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use bellrock_bench::callgrind::{CallgrindError, benchmark, per_unit};

/// Version, kind of match, and user instructions per packet-in: reading it, learning its source,
/// finding its destination, writing the flow_mod.
const KNOWN: [(&str, &str, f64); 6] = [
    ("1.0", "l2", 186.0),
    ("1.0", "exact", 199.0),
    ("1.3", "l2", 206.0),
    ("1.3", "exact", 240.0),
    // Global learning, with one table for all switches and a cache at each switch.
    ("1.0", "exact@lock_free", 210.0),
    ("1.3", "exact@lock_free", 248.0),
];

/// Allowed factor above these numbers, for other compilers and processors.
const SLACK: f64 = 1.05;

/// Number of packets of the first count. The second has twice as many.
const PACKETS: u64 = 50_000;

/// Difference between two counts of the same work, in instructions a packet-in: each round begins
/// and ends a loop.
const SAME: f64 = 0.1;

/// Reading all metrics after each thousand packet-ins changes nothing in their path.
#[test]
fn a_packet_in_costs_no_instruction_more_while_metrics_are_scraped() {
    let program = benchmark("bellrock-worker", "packet_in").unwrap();
    for version in ["1.0", "1.3"] {
        let counts =
            ["exact", "exact+scraped"].map(|kind| per_unit(&program, &[version, kind], PACKETS));
        let [alone, scraped] = match counts {
            [Ok(alone), Ok(scraped)] => [alone, scraped],
            [Err(CallgrindError::NoValgrind), _] => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs valgrind");
                eprintln!("NOT TESTED: instructions cannot be counted without valgrind");
                return;
            }
            [Err(error), _] | [_, Err(error)] => panic!("{error}"),
        };
        println!(
            "{version}: {alone:.3} user instructions for each packet-in, {scraped:.3} while scraped"
        );
        assert!(
            alone >= 1.0 && scraped <= alone + SAME,
            "{version}: {alone:.3}, {scraped:.3} while scraped"
        );
    }
}

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
