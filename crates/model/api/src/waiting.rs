//! Tasks that wait for the next publication under a lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes a task.
pub(crate) fn wake(waker: Waker) {
    contain(|| waker.wake());
}

/// Runs code that wakes a task. The waker may belong to an app, or to a crate that it uses. A panic
/// in it must not reach the caller, which may be a worker's thread.
pub(crate) fn contain(wake: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(wake)) {
        // Its `Drop` is code of the app too.
        std::mem::forget(panic);
    }
}

/// Waiting tasks, each with its own number, in the order in which they came.
///
/// A task that is dropped early removes its number.
#[derive(Debug, Default)]
pub(crate) struct WakerList {
    last_number: u64,
    tasks: Vec<(u64, Waker)>,
}

impl WakerList {
    /// Wakes the task at the next publication. `number` is set the first time.
    pub(crate) fn wait(&mut self, number: &mut Option<u64>, waker: &Waker) {
        let number = *number.get_or_insert_with(|| {
            self.last_number += 1;
            self.last_number
        });
        match self.tasks.iter_mut().find(|(task, _)| *task == number) {
            Some((_, registered)) => registered.clone_from(waker),
            None => self.tasks.push((number, waker.clone())),
        }
    }

    /// Removes a task, if it waits.
    pub(crate) fn forget(&mut self, number: u64) {
        self.tasks.retain(|(task, _)| *task != number);
    }

    /// Takes the wakers, to call after the lock is released.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.tasks).into_iter().map(|(_, waker)| waker)
    }
}
