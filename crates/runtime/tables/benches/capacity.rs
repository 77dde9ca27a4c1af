//! Bytes an entry of a full table: by the table's own count, and by the growth of this process's
//! resident memory. `cargo bench -p bellrock-tables --bench capacity`.
//!
//! Tables are filled with one and a half times their bound, so that they reach their maximum size
//! and evict. Bounds are powers of ten, and numbers just above powers of two, where a table might
//! allocate more than it may hold. Many small tables are filled together, since the kernel counts
//! in pages. The last line is the maximum of all.

use std::error::Error;
use std::hint::black_box;
use std::process::{Command, Stdio};

use bellrock_tables::{Budget, FlatTable, Insert, Seed};

/// Minimum number of entries that the tables of a bound hold together: enough to make pages and the
/// allocator's own memory negligible.
const TOGETHER: usize = 4_000_000;

/// Powers of ten, and numbers just above powers of two.
const BOUNDS: [usize; 7] = [1_000, 10_000, 70_001, 100_000, 1_000_000, 1_100_000, 10_000_000];

/// Bounds for Cargo's test that the program runs.
const TEST_BOUNDS: [usize; 2] = [1_000, 70_001];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    if let (Some("--bound"), Some(bound)) = (arguments.next().as_deref(), arguments.next()) {
        let (own, resident) = measure(bound.parse()?)?;
        println!("{own} {resident}");
        return Ok(());
    }
    let test = std::env::args().any(|argument| argument == "--test");
    let bounds = if test { &TEST_BOUNDS[..] } else { &BOUNDS };
    println!(
        "{:>10} {:>7} {:>10} {:>10}  bytes an entry",
        "bound", "tables", "own count", "resident"
    );
    let mut dearest = 0.0_f64;
    for &bound in bounds {
        let (own, resident) = apart(bound)?;
        println!("{bound:>10} {:>7} {own:>10.2} {resident:>10.2}", tables(bound));
        dearest = dearest.max(own).max(resident);
    }
    let (least, most) = (bounds[0], bounds[bounds.len() - 1]);
    println!("{dearest:.1} bytes for each entry at most, in full tables of {least} to {most}");
    Ok(())
}

/// Measures a bound in a process of its own: memory freed before would be resident already.
fn apart(bound: usize) -> Result<(f64, f64), Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["--bound", &bound.to_string()]).stderr(Stdio::inherit()).output()?;
    let said = String::from_utf8(output.stdout)?;
    let (own, resident) = said.trim().split_once(' ').ok_or("it has said nothing")?;
    Ok((own.parse()?, resident.parse()?))
}

/// Number of tables of a bound that are filled together.
fn tables(bound: usize) -> usize {
    TOGETHER.div_ceil(bound)
}

/// Bytes for each entry in full tables: by the table's own count, and resident.
fn measure(bound: usize) -> Result<(f64, f64), Box<dyn Error>> {
    let budget = Budget::unlimited();
    let before = resident_bytes()?;
    let mut tables: Vec<FlatTable<u32>> = (0..tables(bound))
        .map(|number| FlatTable::with_seed(bound, &budget, Seed::from_number(number as u64)))
        .collect();
    for table in &mut tables {
        for host in 0..(bound + bound / 2) as u64 {
            if table.insert(host << 8, host as u32 % 48, 0) == Insert::Refused {
                return Err(format!("a table of {bound} refused an entry").into());
            }
        }
        if table.len() != bound {
            return Err(format!("a table of {bound} is full with {}", table.len()).into());
        }
    }
    let resident = resident_bytes()?.saturating_sub(before);
    let own: usize = black_box(&tables).iter().map(FlatTable::memory).sum();
    let entries = (bound * tables.len()) as f64;
    Ok((own as f64 / entries, resident as f64 / entries))
}

/// Resident bytes of this process, as the kernel counts them.
fn resident_bytes() -> Result<usize, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: usize = line.ok_or("no VmRSS")?.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib << 10)
}
