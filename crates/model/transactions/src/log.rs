//! The reads and writes of one run of a transaction.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use fast_stm as stm;

use crate::variable::{AnyTVar, Value};

/// The reads and writes of a run, by the numbers of the variables.
#[derive(Default)]
pub(crate) struct TransactionLog {
    /// Values that other transactions published, with those that an abandoned branch of `or_else`
    /// read.
    read: BTreeMap<u64, (Arc<AnyTVar>, Value)>,
    written: Written,
}

pub(crate) type Written = BTreeMap<u64, Arc<AnyTVar>>;

impl TransactionLog {
    /// Notes a read.
    pub(crate) fn read(&mut self, slot: &Arc<AnyTVar>, value: &Value) {
        // A run does not depend on its own writes.
        if !self.written.contains_key(&slot.number) {
            let read = || (Arc::clone(slot), Arc::clone(value));
            self.read.entry(slot.number).or_insert_with(read);
        }
    }

    /// Notes a write.
    pub(crate) fn wrote(&mut self, slot: &Arc<AnyTVar>) {
        self.written.entry(slot.number).or_insert_with(|| Arc::clone(slot));
    }

    /// The writes so far.
    pub(crate) fn written(&self) -> Written {
        self.written.clone()
    }

    /// Restores an earlier set of writes.
    pub(crate) fn take_back(&mut self, written: &Written) {
        self.written.clone_from(written);
    }

    /// Makes the commit depend on all reads so far: it fails if one of their values has changed.
    pub(crate) fn depend(&self, stm: &mut stm::Transaction) -> Result<(), stm::StmError> {
        for (number, (slot, seen)) in &self.read {
            let own = self.written.contains_key(number);
            if !own && !Arc::ptr_eq(&stm.read(&slot.value)?, seen) {
                return Err(stm::StmError::Failure);
            }
        }
        Ok(())
    }

    /// Whether all values that were read are still current. Then they all were current at one
    /// moment: right after the last read.
    pub(crate) fn is_current(&self) -> bool {
        self.read.values().all(|(slot, seen)| slot.has(seen))
    }

    /// Wakes the tasks that wait for the written variables, after the commit.
    pub(crate) fn wake(&self) {
        self.written.values().for_each(|slot| slot.wake());
    }
}

/// The variables that a suspended transaction waits for.
pub(crate) struct WaitSet {
    who: u64,
    slots: Vec<Arc<AnyTVar>>,
}

impl Default for WaitSet {
    fn default() -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        WaitSet { who: NUMBERS.fetch_add(1, Ordering::Relaxed), slots: Vec::new() }
    }
}

impl WaitSet {
    /// Waits for a change of any variable that was read, and for nothing else.
    pub(crate) fn wait_for(&mut self, log: &TransactionLog, waker: &Waker) {
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

/// A task that is dropped while it waits removes its wakers.
impl Drop for WaitSet {
    fn drop(&mut self) {
        self.end();
    }
}
