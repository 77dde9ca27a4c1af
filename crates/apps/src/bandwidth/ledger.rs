//! The reserved rate of each line. All bandwidth is reserved here.
//!
//! Each direction of a line has a variable, and a transaction changes those of a whole path, or
//! none (McNettle, Fig. 6). So concurrent requests never reserve more on a line than its capacity.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use bellrock_api::{Interrupt, SwitchPort, TVar, Transaction};

/// A direction of a line, named by the switch port at its start or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkDirection {
    /// From this port to the switch or host behind it.
    From(SwitchPort),
    /// From the host behind this port to the switch.
    To(SwitchPort),
}

impl fmt::Display for LinkDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkDirection::From(port) => write!(f, "the line from port {port}"),
            LinkDirection::To(port) => write!(f, "the line of the host at {port}"),
        }
    }
}

/// Reserved rate of each line, in kbit/s.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<BTreeMap<LinkDirection, TVar<u64>>>);

/// The lines of one path from host to host.
#[derive(Clone, Debug)]
pub(super) struct LedgerPath(Vec<LedgerEntry>);

/// A line of a path.
#[derive(Clone, Debug)]
struct LedgerEntry {
    line: LinkDirection,
    /// Reserved rate, in kbit/s.
    reserved: TVar<u64>,
    /// Capacity, in kbit/s.
    capacity: u64,
}

impl LedgerPath {
    /// The lines that another path does not have.
    pub(super) fn without(&self, other: &LedgerPath) -> LedgerPath {
        let is_other = |entry: &&LedgerEntry| !other.0.iter().any(|other| other.line == entry.line);
        LedgerPath(self.0.iter().filter(is_other).cloned().collect())
    }
}

impl Ledger {
    /// A path over these lines, each with its capacity.
    pub(super) fn path(&self, lines: impl IntoIterator<Item = (LinkDirection, u64)>) -> LedgerPath {
        let mut reserved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = |(line, capacity)| {
            let reserved = reserved.entry(line).or_default().clone();
            LedgerEntry { line, reserved, capacity }
        };
        LedgerPath(lines.into_iter().map(entry).collect())
    }

    /// Reserved rate of a line, in kbit/s.
    pub(super) fn reserved(&self, line: LinkDirection) -> u64 {
        let reserved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.get(&line).map_or(0, TVar::load)
    }
}

/// Reserves `kbps` on each line of a path, or waits until all lines have enough left.
pub(super) fn take(tx: &Transaction<'_>, path: &LedgerPath, kbps: u64) -> Result<(), Interrupt> {
    for LedgerEntry { reserved, capacity, .. } in &path.0 {
        let taken = tx.read(reserved)?.saturating_add(kbps);
        tx.require(taken <= *capacity)?;
        tx.write(reserved, taken)?;
    }
    Ok(())
}

/// Reserves `kbps` on the first path with enough left, or waits for one. Returns its index.
pub(super) fn take_one(
    tx: &mut Transaction<'_>,
    paths: &[LedgerPath],
    kbps: u64,
) -> Result<usize, Interrupt> {
    let [path, others @ ..] = paths else { return tx.retry() };
    tx.or_else(
        |tx| take(tx, path, kbps).map(|()| 0),
        |tx| take_one(tx, others, kbps).map(|index| index + 1),
    )
}

/// Releases a rate on all lines of a path.
pub(super) fn release(tx: &Transaction<'_>, path: &LedgerPath, kbps: u64) -> Result<(), Interrupt> {
    for LedgerEntry { reserved, .. } in &path.0 {
        tx.modify(reserved, |reserved| reserved.saturating_sub(kbps))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use bellrock_api::{Dpid, Port, atomically};
    use proptest::prelude::*;

    use super::*;

    const CARRIES: u64 = 100;

    fn line(number: u8) -> LinkDirection {
        LinkDirection::From(SwitchPort::new(Dpid(1), Port(number.into())))
    }

    /// An operation: reserves on one of two paths, and may release its previous reservation.
    #[derive(Clone, Debug)]
    struct Deed {
        paths: [Vec<u8>; 2],
        kbps: u64,
        releases: bool,
    }

    fn deed() -> impl Strategy<Value = Deed> {
        let path = || proptest::sample::subsequence((0..12_u8).collect::<Vec<_>>(), 1..6);
        let deed = |(one, other, kbps, releases)| Deed { paths: [one, other], kbps, releases };
        (path(), path(), 1..=40_u64, any::<bool>()).prop_map(deed)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// Four threads make 1,000 requests each. At any time, no line is reserved beyond its
        /// capacity, and each rate belongs to a reservation; in the end none is left.
        #[test]
        fn thousands_of_requests_at_a_time_never_oversubscribe_a_line(
            deeds in proptest::collection::vec(deed(), 50..100)
        ) {
            let ledger = Ledger::default();
            let lines = || (0..12).map(line);
            let held: Vec<_> = thread::scope(|scope| {
                let run = |thread: usize| {
                    let (ledger, deeds) = (&ledger, &deeds);
                    move || {
                        let mut held: Vec<(LedgerPath, u64, Vec<u8>)> = Vec::new();
                        for number in 0..1000 {
                            let deed = &deeds[(number * (thread + 1) + thread) % deeds.len()];
                            let way = |path: &Vec<u8>| {
                                ledger.path(path.iter().map(|number| (line(*number), CARRIES)))
                            };
                            let ways = [way(&deed.paths[0]), way(&deed.paths[1])];
                            let taken = atomically(|tx| take_one(tx, &ways, deed.kbps));
                            if let Ok(index) = taken {
                                held.push((ways[index].clone(), deed.kbps, deed.paths[index].clone()));
                            }
                            for line in lines() {
                                assert!(ledger.reserved(line) <= CARRIES);
                            }
                            if deed.releases && let Some((way, kbps, _)) = held.pop() {
                                atomically(|tx| release(tx, &way, kbps)).unwrap();
                            }
                        }
                        held
                    }
                };
                let threads: Vec<_> = (0..4).map(|thread| scope.spawn(run(thread))).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            for number in 0..12 {
                let of = held.iter().filter(|(.., path)| path.contains(&number));
                prop_assert_eq!(ledger.reserved(line(number)), of.map(|(_, kbps, _)| kbps).sum::<u64>());
            }
            for (way, kbps, _) in &held {
                atomically(|tx| release(tx, way, *kbps)).unwrap();
            }
            for line in lines() {
                prop_assert_eq!(ledger.reserved(line), 0);
            }
        }
    }
}
