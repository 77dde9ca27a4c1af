//! Waking a worker that sleeps in its poller, and only then: a system call for a message to a
//! worker that is awake would be wasted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use bellrock_worker::Wake;

/// One end for the thread that sleeps, clones for those that wake it.
#[derive(Clone)]
pub(crate) struct Sleeper(Arc<Inner>);

struct Inner {
    asleep: AtomicBool,
    waker: mio::Waker,
}

impl Sleeper {
    pub(crate) fn new(waker: mio::Waker) -> Self {
        Sleeper(Arc::new(Inner { asleep: AtomicBool::new(true), waker }))
    }

    /// The thread is about to sleep. It has to look for work once more after this: whoever left
    /// work before did not wake it.
    pub(crate) fn falls_asleep(&self) {
        self.0.asleep.store(true, Ordering::Relaxed);
        // Orders the store before the look for work that follows; see `wake`.
        fence(Ordering::SeqCst);
    }

    /// The thread is awake and will look for work.
    pub(crate) fn is_awake(&self) {
        self.0.asleep.store(false, Ordering::Relaxed);
    }
}

impl Wake for Sleeper {
    fn wake(&self) {
        // Orders the work that was left before this look at the sleeper: of the two ends, at least
        // one sees what the other did.
        fence(Ordering::SeqCst);
        if self.0.asleep.load(Ordering::Relaxed)
            && self.0.asleep.swap(false, Ordering::Relaxed)
            && let Err(error) = self.0.waker.wake()
        {
            tracing::error!(%error, "a worker could not be woken");
        }
    }
}
