//! The atomics of the shared table, which the tests of interleavings (`--cfg loom`) replace by their own.

#[cfg(not(loom))]
pub(super) use std::hint::spin_loop;
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(loom)]
pub(super) use loom::hint::spin_loop;
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
