//! Nanoseconds of a hit, an insertion while the table grows, and an insertion at the bound, for
//! tables of 10^3 to 10^7 entries, with uniformly drawn keys. `cargo bench -p bellrock-tables`;
//! figures are those of the machine. "share" is the rate of batched hits relative to the smallest
//! table; "huge" is the share of the advised memory that is in huge pages.

use bellrock_tables::{Budget, FlatTable, Hashed, Seed};
use std::hint::black_box;
use std::time::{Duration, Instant};

const LOOKUPS: u64 = 4_000_000;
/// Keys that are hashed and prefetched before the first look-up.
const BATCH: usize = 32;

fn main() {
    // Cargo passes `--test` when it only tests that the program runs.
    let exponents =
        if std::env::args().any(|argument| argument == "--test") { 3..=3 } else { 3..=7 };
    println!(
        "{:>9} {:>8} {:>8} {:>6} {:>8} {:>8} {:>9} {:>8}  ns",
        "entries", "hit", "batch", "share", "update", "grow", "slowest", "evict"
    );
    let mut smallest = None;
    for exponent in exponents {
        measure(10u64.pow(exponent), &mut smallest);
    }
}

fn measure(entries: u64, smallest: &mut Option<Duration>) {
    let budget = Budget::unlimited();
    let seed = Seed::from_number(entries);
    let mut table = FlatTable::<u32>::with_seed(entries as usize, &budget, seed);
    let mut slowest = Duration::ZERO;
    let grow = Instant::now();
    for key in 0..entries {
        let one = Instant::now();
        let _ = black_box(table.insert(spread(key), key as u32, 0));
        slowest = slowest.max(one.elapsed());
    }
    let grow = grow.elapsed();

    let hit = Instant::now();
    for index in 0..LOOKUPS {
        black_box(table.lookup(spread(scatter(index, entries))));
    }
    let hit = hit.elapsed();

    let batch = Instant::now();
    for first in (0..LOOKUPS).step_by(BATCH) {
        let keys: [Hashed; BATCH] = std::array::from_fn(|offset| {
            let at = table.hash(spread(scatter(first + offset as u64, entries)));
            table.prefetch(at);
            at
        });
        for at in keys {
            black_box(table.lookup_hashed(at));
        }
    }
    let batch = batch.elapsed();

    let update = Instant::now();
    for index in 0..LOOKUPS {
        let _ = black_box(table.insert(spread(scatter(index, entries)), 1, 1));
    }
    let update = update.elapsed();

    let evictions = entries.min(1_000_000);
    let evict = Instant::now();
    for key in entries..entries + evictions {
        let _ = black_box(table.insert(spread(key), 1, 2));
    }
    let evict = evict.elapsed();

    println!(
        "{entries:>9} {:>8.1} {:>8.1} {:>6.2} {:>8.1} {:>8.1} {:>9} {:>8.1}  {:.1} B/entry, huge \
         {} of {} MiB, {:?}",
        each(hit, LOOKUPS),
        each(batch, LOOKUPS),
        smallest.get_or_insert(batch).as_secs_f64() / batch.as_secs_f64(),
        each(update, LOOKUPS),
        each(grow, entries),
        slowest.as_nanos(),
        each(evict, evictions),
        table.memory() as f64 / entries as f64,
        huge_kib().map_or("?".into(), |kib| (kib >> 10).to_string()),
        budget.huge_page_bytes() >> 20,
        table.stats(),
    );
}

/// KiB of this process in huge pages; `None` if the kernel does not report it.
fn huge_kib() -> Option<usize> {
    let usage = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = usage.lines().find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

fn each(time: Duration, count: u64) -> f64 {
    time.as_secs_f64() * 1e9 / count as f64
}

/// A key like those of hosts: a VLAN and a MAC of one vendor.
fn spread(host: u64) -> u64 {
    (host & 0xf) << 48 | 0x0200_5e00_0000 | host >> 4
}

/// A random-looking number below `entries` for each index, so that look-ups follow no pattern.
fn scatter(index: u64, entries: u64) -> u64 {
    let mixed = (index ^ (index >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((u128::from(mixed) * u128::from(entries)) >> 64) as u64
}
