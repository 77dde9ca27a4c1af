//! Wakes a worker that sleeps in its poller. A worker that is awake costs no system call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use bellrock_worker::Wake;

/// Shared by the sleeping thread and those that wake it.
#[derive(Clone)]
pub(crate) struct Sleeper(Arc<SleepState>);

struct SleepState {
    asleep: AtomicBool,
    waker: mio::Waker,
}

impl Sleeper {
    pub(crate) fn new(waker: mio::Waker) -> Self {
        Sleeper(Arc::new(SleepState { asleep: AtomicBool::new(true), waker }))
    }

    /// Announces that the thread is about to sleep. It must check for work once more after this:
    /// work added before did not wake it.
    pub(crate) fn falls_asleep(&self) {
        self.0.asleep.store(true, Ordering::Relaxed);
        // Orders the store before the following check for work; see `wake`.
        fence(Ordering::SeqCst);
    }

    /// Notes that the thread is awake and will check for work.
    pub(crate) fn is_awake(&self) {
        self.0.asleep.store(false, Ordering::Relaxed);
    }
}

impl Wake for Sleeper {
    fn wake(&self) {
        // Orders the new work before this check of the sleeper: at least one of both threads sees
        // what the other did.
        fence(Ordering::SeqCst);
        if self.0.asleep.load(Ordering::Relaxed)
            && self.0.asleep.swap(false, Ordering::Relaxed)
            && let Err(error) = self.0.waker.wake()
        {
            tracing::error!(%error, "a worker could not be woken");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use mio::event::Events;
    use mio::{Poll, Token};

    use super::*;

    /// No sleep is this long unless a wake-up was lost.
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn no_wake_up_is_lost() {
        const ROUNDS: usize = 50_000;
        let mut poll = Poll::new().unwrap();
        let sleeper = Sleeper::new(mio::Waker::new(poll.registry(), Token(0)).unwrap());
        let (left, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    left.fetch_add(1, Ordering::Relaxed);
                    sleeper.wake();
                    // The next one comes just when the other thread is about to sleep again.
                    while left.load(Ordering::Relaxed) > 0 && !over.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                }
            });
            let mut events = Events::with_capacity(4);
            let mut done = 0;
            let mut lost = false;
            while done < ROUNDS && !lost {
                sleeper.falls_asleep();
                let timeout = if left.load(Ordering::Relaxed) > 0 { Duration::ZERO } else { LONG };
                poll.poll(&mut events, Some(timeout)).unwrap();
                sleeper.is_awake();
                lost = !timeout.is_zero() && events.is_empty();
                done += left.swap(0, Ordering::Relaxed);
            }
            over.store(true, Ordering::Relaxed);
            assert!(!lost, "{done} messages came, then nobody woke it");
        });
    }
}
