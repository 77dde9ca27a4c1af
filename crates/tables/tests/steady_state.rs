//! Hits, updates and insertions at the bound allocate nothing.
//!
//! One test only, in a process of its own: the allocator counts for all threads.
#![allow(unsafe_code)] // An allocator cannot be written without.

use bellrock_tables::{Budget, FlatTable, Insert};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_steady_state_allocates_nothing() {
    const BOUND: u64 = if cfg!(miri) { 200 } else { 50_000 };
    let mut table = FlatTable::<u32>::new(BOUND as usize, &Budget::unlimited());
    for key in 0..BOUND {
        assert_eq!(table.insert(key, 1, 0), Insert::Inserted);
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    assert!(before > 0, "the counter counts");
    let mut sum = 0;
    for key in 0..4 * BOUND {
        sum += table.lookup(key).unwrap_or(0);
        let _ = table.insert(key, 2, (key / 100) as u32);
        table.touch(key / 2, (key / 100) as u32);
        table.age((key / 100) as u32, u32::MAX, 1, |_, _| ());
    }
    assert!(sum > 0);
    assert!(table.stats().evicted >= 3 * BOUND);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);
}
