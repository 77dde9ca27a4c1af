//! Memory of tables goes back to the kernel. The only test of this program, as it measures the
//! whole process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::{fs, thread};

use bellrock_tables::{Budget, FlatTable, Insert, preparer};

/// Number of tables, as of a worker with so many switches.
const TABLES: u64 = 12;

/// Number of entries of each: tables of some 22 MiB. What is freed of such sizes, glibc keeps.
const ENTRIES: u64 = 600_000;

/// Memory that a process may hold beside its tables, in bytes: for the allocator, and a slab.
const BESIDE_BYTES: usize = 32 << 20;

/// Resident memory of this process, in bytes.
fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib << 10
}

#[test]
fn memory_that_tables_have_grown_out_of_goes_back_to_the_kernel() {
    // As at a worker: a second thread allocates.
    let (prepared, preparer) = preparer();
    let preparer = thread::spawn(|| preparer.run());
    let worker = thread::spawn(move || {
        prepared.install();
        let budget = Budget::unlimited();
        let mut tables: Vec<FlatTable<u32>> =
            (0..TABLES).map(|_| FlatTable::new(1 << 22, &budget)).collect();
        // All grow together: their earlier sizes lie between each other.
        for key in 0..ENTRIES {
            for table in &mut tables {
                // On a busy machine, memory comes late, and a crowded line evicts.
                let inserted = table.insert(key, 1, 0);
                assert!(matches!(inserted, Insert::Inserted | Insert::Evicted { .. }));
            }
        }
        for table in &mut tables {
            while table.is_resizing() {
                table.continue_resize(table.lines());
            }
        }
        tables
    });
    let tables = worker.join().unwrap();
    // It has freed what it was given.
    preparer.join().unwrap();
    let used: usize = tables.iter().map(FlatTable::memory).sum();
    let resident = resident_bytes();
    assert!(resident < used + BESIDE_BYTES, "{resident} bytes resident for {used} of tables");
    drop(tables);
    let resident = resident_bytes();
    assert!(resident < BESIDE_BYTES, "{resident} bytes resident without tables");
}
