//! What one run of a transaction has read and written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use fast_stm as stm;

use super::variable::{Slot, Value};

/// What a run has read and written, by the variables' numbers.
#[derive(Default)]
pub(super) struct Log {
    /// The values that others had published, also those that the given up half of an `or_else` read.
    read: BTreeMap<u64, (Arc<Slot>, Value)>,
    written: Written,
}

pub(super) type Written = BTreeMap<u64, Arc<Slot>>;

impl Log {
    /// This value was read.
    pub(super) fn read(&mut self, slot: &Arc<Slot>, value: &Value) {
        // What it wrote itself, it does not depend on.
        if !self.written.contains_key(&slot.number) {
            let read = || (Arc::clone(slot), Arc::clone(value));
            self.read.entry(slot.number).or_insert_with(read);
        }
    }

    /// A new value was written.
    pub(super) fn wrote(&mut self, slot: &Arc<Slot>) {
        self.written.entry(slot.number).or_insert_with(|| Arc::clone(slot));
    }

    /// What was written so far.
    pub(super) fn written(&self) -> Written {
        self.written.clone()
    }

    /// Only this was written.
    pub(super) fn take_back(&mut self, written: &Written) {
        self.written.clone_from(written);
    }

    /// Has the transaction commit only if all that was read so far is still so then.
    pub(super) fn depend(&self, stm: &mut stm::Transaction) -> Result<(), stm::StmError> {
        for (number, (slot, seen)) in &self.read {
            let own = self.written.contains_key(number);
            if !own && !Arc::ptr_eq(&stm.read(&slot.value)?, seen) {
                return Err(stm::StmError::Failure);
            }
        }
        Ok(())
    }

    /// Whether all that was read is still so. Then all of it was so at one moment: when the last of it
    /// had been read.
    pub(super) fn is_current(&self) -> bool {
        self.read.values().all(|(slot, seen)| slot.has(seen))
    }

    /// What was written is published: wakes who waits for it.
    pub(super) fn wake(&self) {
        self.written.values().for_each(|slot| slot.wake());
    }
}

/// The variables that a suspended transaction waits for.
pub(super) struct Waits {
    who: u64,
    slots: Vec<Arc<Slot>>,
}

impl Default for Waits {
    fn default() -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Waits { who: NUMBERS.fetch_add(1, Ordering::Relaxed), slots: Vec::new() }
    }
}

impl Waits {
    /// Waits for all that was read, and for nothing else.
    pub(super) fn wait_for(&mut self, log: &Log, waker: &Waker) {
        self.end();
        for (slot, _) in log.read.values() {
            slot.wait(self.who, waker);
            self.slots.push(Arc::clone(slot));
        }
    }

    fn end(&mut self) {
        self.slots.drain(..).for_each(|slot| slot.forget(self.who));
    }
}

/// A task that is dropped while it waits leaves nothing behind.
impl Drop for Waits {
    fn drop(&mut self) {
        self.end();
    }
}
