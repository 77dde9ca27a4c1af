//! A second thread that allocates and touches memory for the tables of a first one, and frees it.
//!
//! The kernel clears memory when it is first touched. A huge page takes 0.1 ms, and 22 ms were
//! measured in a virtual machine whose host had not backed the memory yet. A thread that answers
//! packets should not wait for that. So a table that grows orders its memory, and goes on with what
//! it has until the memory is there. To give megabytes back to the kernel takes as long.

use std::alloc::Layout;
use std::cell::RefCell;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use crate::memory::{Allocation, Memory};
use crate::slab::touch_next_page;

/// Maximum number of orders that wait for the second thread. A table whose order is refused
/// allocates by itself, in small pages.
const MAX_ORDERS: usize = 256;

thread_local! {
    static ORDERS: RefCell<Option<SyncSender<Order>>> = const { RefCell::new(None) };
}

/// An order.
enum Order {
    /// Allocates, and returns the memory. The allocator may refuse: `None`.
    Allocate { layout: Layout, answer: SyncSender<Option<Memory>> },
    /// Frees.
    Free(Allocation),
}

/// The end of the thread that owns tables. [`install`](Self::install) it there.
#[derive(Debug)]
pub struct PreparedTables(SyncSender<Order>);

/// The end of the thread that prepares memory. [`run`](Self::run) it there.
#[derive(Debug)]
pub struct Preparer(Receiver<Order>);

/// Connects a thread that owns tables with a thread that prepares memory for them.
///
/// Without one, tables allocate by themselves, and the first touch of each page is part of an
/// insertion. The second thread should have a lower priority and, so that the memory is near, the
/// same core.
pub fn preparer() -> (PreparedTables, Preparer) {
    let (sender, receiver) = sync_channel(MAX_ORDERS);
    (PreparedTables(sender), Preparer(receiver))
}

impl PreparedTables {
    /// Makes the tables that grow on this thread order their memory, until the thread ends.
    pub fn install(self) {
        ORDERS.set(Some(self.0));
    }
}

impl Preparer {
    /// Prepares memory until the other thread ends. It sleeps while there is no order.
    pub fn run(self) {
        for order in self.0 {
            let (layout, answer) = match order {
                Order::Allocate { layout, answer } => (layout, answer),
                Order::Free(allocation) => {
                    drop(allocation);
                    continue;
                }
            };
            let mut memory = Memory::allocate(layout);
            if let Some(memory) = &mut memory {
                memory.touch();
            }
            // An error returns the memory, which is dropped: the table is gone.
            let _ = answer.send(memory);
            touch_next_page();
        }
    }
}

/// Frees an allocation, if possible on the second thread.
pub(crate) fn free(allocation: Allocation) {
    let mut allocation = Some(allocation);
    let _ = ORDERS.try_with(|orders| {
        let orders = orders.try_borrow().ok()?;
        // What does not fit is dropped here.
        let _ = orders.as_ref()?.try_send(Order::Free(allocation.take()?));
        Some(())
    });
}

/// Memory that a second thread prepares.
pub(crate) struct Ordered(Receiver<Option<Memory>>);

/// What has become of an order.
pub(crate) enum OrderState {
    Waiting,
    /// `None`: the allocator refused.
    Done(Option<Memory>),
    /// The second thread has ended, or has too many orders.
    Lost,
}

impl Ordered {
    /// Orders memory. `None` if this thread has nobody to prepare it.
    pub(crate) fn place(layout: Layout) -> Option<Self> {
        let place = |orders: &RefCell<Option<SyncSender<Order>>>| {
            let orders = orders.borrow();
            let orders = orders.as_ref()?;
            let (answer, memory) = sync_channel(1);
            // An order that does not fit is dropped, and so found to be lost.
            let _ = orders.try_send(Order::Allocate { layout, answer });
            Some(Ordered(memory))
        };
        ORDERS.try_with(place).ok()?
    }

    pub(crate) fn state(&self) -> OrderState {
        match self.0.try_recv() {
            Ok(memory) => OrderState::Done(memory),
            Err(TryRecvError::Empty) => OrderState::Waiting,
            Err(TryRecvError::Disconnected) => OrderState::Lost,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test panics")]
mod tests {
    use std::thread;

    use super::*;
    use crate::lines::MAX_WAIT_STEPS;
    use crate::{Budget, FlatTable, Insert};

    /// Inserts keys until the table has `count`. Returns false if one was not inserted.
    fn fill(table: &mut FlatTable<u32>, count: u64) -> bool {
        (table.len() as u64..count).all(|key| table.insert(key, 1, 0) == Insert::Inserted)
    }

    fn holds(table: &FlatTable<u32>, count: u64) -> bool {
        (0..count).all(|key| table.lookup(key) == Some(1))
    }

    fn table() -> FlatTable<u32> {
        FlatTable::new(1 << 20, &Budget::unlimited())
    }

    #[test]
    fn a_table_grows_into_memory_that_another_thread_prepares() {
        let (tables, preparer) = preparer();
        let thread = thread::spawn(|| preparer.run());
        let grown = thread::spawn(|| {
            tables.install();
            let mut table = table();
            let count = 300_000;
            assert!(fill(&mut table, count));
            assert!(holds(&table, count));
            assert_eq!(table.stats().evicted, 0);
            table
        });
        // The memory stays when the threads have ended.
        let table = grown.join().unwrap();
        thread.join().unwrap();
        assert!(holds(&table, 300_000));
    }

    #[test]
    fn a_table_waits_for_its_memory_only_until_it_is_crowded() {
        // The preparer never runs.
        let (tables, preparer) = preparer();
        thread::spawn(move || {
            tables.install();
            let mut table = table();
            assert!(fill(&mut table, 200_000) && holds(&table, 200_000));
            assert_eq!(table.stats().evicted, 0);
            assert_eq!(table.budget().huge_page_bytes(), 0, "no huge page is touched here");
        })
        .join()
        .unwrap();
        let waiting = preparer.0.try_iter().count();
        assert!(waiting > 3, "{waiting} orders");
    }

    /// Inserts keys until a resize waits for its memory; returns their number.
    fn fill_until_it_waits(table: &mut FlatTable<u32>) -> u64 {
        let from = if cfg!(miri) { 200 } else { 20_000 };
        (from..).find(|&count| fill(table, count) && table.is_resizing()).unwrap()
    }

    #[test]
    fn a_resize_whose_memory_comes_after_the_last_insertion_ends() {
        let (tables, preparer) = preparer();
        thread::spawn(move || {
            tables.install();
            let mut table = table();
            let count = fill_until_it_waits(&mut table);
            let before = table.memory();
            table.continue_resize(100);
            assert!(table.is_resizing() && table.memory() == before, "the memory is not there");
            // What the other thread does, until it has no order.
            for order in preparer.0.try_iter() {
                if let Order::Allocate { layout, answer } = order {
                    let _ = answer.send(Memory::allocate(layout));
                }
            }
            // All is there: as many steps as the lines take.
            table.continue_resize(table.lines());
            assert!(!table.is_resizing() && table.memory() < before);
            assert!(holds(&table, count));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_resize_whose_memory_never_comes_ends() {
        // The preparer never runs.
        let (tables, _preparer) = preparer();
        thread::spawn(move || {
            tables.install();
            let mut table = table();
            let count = fill_until_it_waits(&mut table);
            table.continue_resize(MAX_WAIT_STEPS as usize + table.lines());
            assert!(!table.is_resizing());
            assert!(holds(&table, count));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_table_allocates_by_itself_when_the_other_thread_is_gone_or_behind() {
        let (tables, preparer) = preparer();
        drop(preparer);
        thread::spawn(move || {
            tables.install();
            let mut table = table();
            assert!(fill(&mut table, 100_000) && holds(&table, 100_000));
        })
        .join()
        .unwrap();
        let (tables, preparer) = super::preparer();
        thread::spawn(move || {
            tables.install();
            let layout = Layout::from_size_align(1 << 16, 64).unwrap();
            let orders: Vec<_> = (0..MAX_ORDERS).map(|_| Ordered::place(layout).unwrap()).collect();
            let refused = Ordered::place(layout).unwrap();
            assert!(matches!(refused.state(), OrderState::Lost), "the queue is full");
            assert!(matches!(orders[0].state(), OrderState::Waiting));
            let mut table = table();
            assert!(fill(&mut table, 100_000) && holds(&table, 100_000));
            drop(orders);
        })
        .join()
        .unwrap();
        // Nobody waits for this memory any more.
        preparer.run();
    }
}
