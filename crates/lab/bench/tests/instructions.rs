//! Limits the responder's user instructions per message: this makes it a yardstick.
//!
//! Valgrind counts them in a release build. Without valgrind the test prints this and passes; under
//! CI it fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use bellrock_bench::callgrind::{CallgrindError, benchmark, per_unit};

/// Maximum user instructions for a packet_in and its answer.
const MOST: f64 = 60.0;

/// Packet_ins per round of the benchmark.
const PACKETS_OF_A_ROUND: f64 = 600.0;

const ROUNDS: u64 = 500;

#[test]
fn the_responder_takes_at_most_60_instructions_a_message() {
    let program = benchmark("bellrock-bench", "responder").unwrap();
    for version in ["1.0", "1.3"] {
        for kind in ["buffered", "unbuffered"] {
            let each = match per_unit(&program, &[version, kind], ROUNDS) {
                Ok(each) => each / PACKETS_OF_A_ROUND,
                Err(CallgrindError::NoValgrind) => {
                    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs valgrind");
                    eprintln!("NOT TESTED: instructions cannot be counted without valgrind");
                    return;
                }
                Err(error) => panic!("{error}"),
            };
            println!("{version} {kind}: {each:.1} user instructions a message");
            assert!(each > 1.0 && each <= MOST, "{version} {kind}: {each:.1}, more than {MOST}");
        }
    }
}
