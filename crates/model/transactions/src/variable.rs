//! Variables, and the tasks that wait for them.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use fast_stm as stm;

/// Any value. Each write makes a new one, so values at the same address are the same.
pub(crate) type Value = Arc<dyn Any + Send + Sync>;

/// A variable that transactions read and write. Cheap to clone: all clones are one variable.
pub struct TVar<T> {
    slot: Arc<AnyTVar>,
    of: PhantomData<fn(T) -> T>,
}

/// A variable without its type.
pub(crate) struct AnyTVar {
    /// Its number in the order of creation. It makes the order in which tasks are woken independent
    /// of addresses.
    pub(crate) number: u64,
    pub(crate) value: stm::TVar<Value>,
    /// Tasks that wait for a change, with the number of each one's [`crate::log::WaitSet`].
    waiting: Mutex<Vec<(u64, Waker)>>,
}

impl<T: Send + Sync + 'static> TVar<T> {
    /// Makes a variable with this value.
    #[must_use]
    pub fn new(value: T) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let value: Value = Arc::new(value);
        let slot = AnyTVar { number, value: stm::TVar::new(value), waiting: Mutex::default() };
        TVar { slot: Arc::new(slot), of: PhantomData }
    }

    /// Reads the current value, outside of any transaction.
    #[must_use]
    pub fn load(&self) -> T
    where
        T: Clone,
    {
        T::clone(&*Self::typed(self.slot.value.read_atomic()))
    }

    pub(crate) fn stm(&self) -> &stm::TVar<Value> {
        &self.slot.value
    }

    pub(crate) fn slot(&self) -> &Arc<AnyTVar> {
        &self.slot
    }

    /// Converts a value of this variable back to its type.
    pub(crate) fn typed(value: Value) -> Arc<T> {
        match value.downcast() {
            Ok(value) => value,
            Err(_) => unreachable!("only values of this type are ever written to this variable"),
        }
    }
}

impl<T> Clone for TVar<T> {
    fn clone(&self) -> Self {
        TVar { slot: Arc::clone(&self.slot), of: PhantomData }
    }
}

impl<T: Default + Send + Sync + 'static> Default for TVar<T> {
    fn default() -> Self {
        TVar::new(T::default())
    }
}

impl<T: Clone + fmt::Debug + Send + Sync + 'static> fmt::Debug for TVar<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TVar").field(&self.load()).finish()
    }
}

impl AnyTVar {
    /// Whether this is the current value.
    pub(crate) fn has(&self, value: &Value) -> bool {
        Arc::ptr_eq(&self.value.read_atomic(), value)
    }

    /// Wakes `waker` at the next change.
    pub(crate) fn wait(&self, who: u64, waker: &Waker) {
        self.waiting().push((who, waker.clone()));
    }

    /// Ends the wait of `who`.
    pub(crate) fn forget(&self, who: u64) {
        self.waiting().retain(|(waits, _)| *waits != who);
    }

    /// Wakes the waiting tasks after a change.
    pub(crate) fn wake(&self) {
        let woken = std::mem::take(&mut *self.waiting());
        woken.into_iter().for_each(|(_, waker)| wake(waker));
    }

    /// A panic under this lock leaves the list consistent: each change is one call.
    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Waker)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes a task. A panic of its waker, which may be code of an app, does not reach the writer,
/// which may be a worker's thread.
fn wake(waker: Waker) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // Its `Drop` is code of the app too.
        std::mem::forget(panic);
    }
}
