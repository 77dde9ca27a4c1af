//! Runs the responder's hot loop in memory. Prints nanoseconds per packet_in; callgrind can count
//! its instructions.
//!
//! ```sh
//! cargo bench -p bellrock-bench --bench responder
//! # Instructions: the difference between two counts of rounds, by 10,000 rounds of 600 packet_ins.
//! valgrind --tool=callgrind target/release/deps/responder-* 10000 1.0 buffered
//! valgrind --tool=callgrind target/release/deps/responder-* 20000 1.0 buffered
//! ```

#![allow(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]

use std::hint::black_box;
use std::time::Instant;

use bellrock_bench::Load;
use bellrock_bench::draw::TrafficPattern;
use bellrock_bench::packet::PacketTemplate;
use bellrock_bench::responder::answer::Answerer;
use bellrock_openflow::Version;

/// Approximate number of packet_ins in a read of 64 KiB.
const PACKETS: usize = 600;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = arguments.iter().find_map(|argument| argument.parse::<u32>().ok());
    // Cargo passes `--test` only to check that the program runs.
    let test = arguments.iter().any(|argument| argument == "--test");
    let rounds = rounds.unwrap_or(if test { 1 } else { 10_000 });
    let wanted = |name: &str| {
        let named = ["1.0", "1.3", "buffered", "unbuffered"];
        let group = if name.starts_with('1') { &named[..2] } else { &named[2..] };
        let asked = |name: &&str| arguments.iter().any(|argument| argument == name);
        !group.iter().any(asked) || asked(&name)
    };
    for (version, version_name) in [(Version::V1_0, "1.0"), (Version::V1_3, "1.3")] {
        for (buffered, name) in [(true, "buffered"), (false, "unbuffered")] {
            if wanted(version_name) && wanted(name) {
                measure(version, buffered, rounds);
            }
        }
    }
}

fn measure(version: Version, buffered: bool, rounds: u32) {
    let pattern = TrafficPattern::new(&Load::default());
    let template = PacketTemplate::new(version, buffered).expect("it fits");
    let mut input = template.as_slice().repeat(PACKETS);
    for (number, message) in input.chunks_exact_mut(template.len()).enumerate() {
        template.patch(message, &pattern.packet(1, number as u64));
    }
    let mut answerer = Answerer::new().expect("it fits");
    let start = Instant::now();
    for _ in 0..rounds {
        let (used, answers) = answerer.answer(black_box(&input));
        assert_eq!(used, input.len());
        black_box(answers);
    }
    let each = start.elapsed().as_nanos() as f64 / f64::from(rounds) / PACKETS as f64;
    println!("{version} buffered={buffered}: {each:.1} ns for each packet_in");
}
