//! Flat, bounded, ageing hash tables for the hot path.
//!
//! [`FlatTable`] maps a `u64` to a small value (a port number) and records when each entry was last
//! seen. It has a single owner and takes no lock. Learning switches keep one per switch, keyed by
//! VLAN and MAC address. All threads read and write a [`SharedTable`]. The text below describes the
//! first; the documentation of the second lists the differences.
//!
//! Properties:
//! - **A look-up reads at most two cache lines**, four while the table is being resized.
//! - **Every operation on one key does a bounded amount of work** ([`MAX_LINES_PER_INSERT`]). A
//!   resize is spread over the operations that follow it, and a second thread can prepare its
//!   memory ([`preparer`]). The owner sees to its end when no key is inserted any more
//!   ([`FlatTable::continue_resize`]). There are no collision chains, because an entry has only
//!   [`MAX_PROBE_SLOTS`] possible slots.
//! - **Memory is bounded** by the table's bound on entries and by a [`Budget`] that all tables of
//!   the process share. At its bound a table of more than 64 entries uses under 22 bytes an entry.
//!   Before its first insertion a table allocates nothing.
//! - **Hits, updates and insertions at the bound allocate nothing.**
//! - **An attacker may choose the keys.** The hash is keyed with a secret of the table ([`Seed`]).
//!
//! Limits: a table is no general map (values are at most four bytes). It is not shared between
//! threads (use [`SharedTable`]). It reads no clock (the caller passes the time, in ticks of its
//! choice). It keeps no order. `docs/adr/0003-flat-tables.md` explains the design.
//!
//! ```
//! use bellrock_tables::{Budget, FlatTable, Insert};
//!
//! let mut hosts = FlatTable::<u32>::new(1 << 20, &Budget::new(256 << 20));
//! assert_eq!(hosts.insert(0x0001_0200_0000_0001, 7, 100), Insert::Inserted);
//! assert_eq!(hosts.insert(0x0001_0200_0000_0001, 8, 101), Insert::Updated { old: 7 });
//! assert_eq!(hosts.lookup(0x0001_0200_0000_0001), Some(8));
//! assert_eq!(hosts.lookup_fresh(0x0001_0200_0000_0001, 500, 300), None);
//! ```

mod budget;
mod chunk;
mod four;
mod line;
mod lines;
mod memory;
mod prefetch;
mod preparer;
mod seed;
mod shared;
mod slab;
mod stamp;
mod table;
#[cfg(test)]
mod work;

pub use budget::Budget;
pub use line::Entry;
pub use lines::MAX_PROBE_SLOTS;
pub use preparer::{PreparedTables, Preparer, preparer};
pub use seed::{Hashed, Seed};
pub use shared::{MAX_TRIES, NotReplaced, SharedInsert, SharedStats, SharedTable};
pub use stamp::{MAX_AGE_TICKS, Stamp};
pub use table::{FlatTable, Insert, MAX_BOUND_ENTRIES, MAX_LINES_PER_INSERT, Stats};
