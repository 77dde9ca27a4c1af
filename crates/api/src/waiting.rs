//! Tasks that wait for the next of something that is published under a lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes a task. The waker may be of an app, or of a crate that it uses: a panic in it is not the publisher's, which
/// may be a worker's thread.
pub(crate) fn wake(waker: Waker) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // Its `Drop` is code of the app too.
        std::mem::forget(panic);
    }
}

/// Tasks that wait, each with a number of its own, in the order in which they came.
///
/// Who no longer waits, takes his number off: a task that is dropped before its time leaves nothing behind.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    last: u64,
    tasks: Vec<(u64, Waker)>,
}

impl Waiting {
    /// Has a task woken by the next publication, under the number that it got the first time.
    pub(crate) fn wait(&mut self, number: &mut Option<u64>, waker: &Waker) {
        let number = *number.get_or_insert_with(|| {
            self.last += 1;
            self.last
        });
        match self.tasks.iter_mut().find(|(task, _)| *task == number) {
            Some((_, set)) => set.clone_from(waker),
            None => self.tasks.push((number, waker.clone())),
        }
    }

    /// Takes a task off that may wait.
    pub(crate) fn forget(&mut self, number: u64) {
        self.tasks.retain(|(task, _)| *task != number);
    }

    /// Those to wake, once the lock is given back.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.tasks).into_iter().map(|(_, waker)| waker)
    }
}
