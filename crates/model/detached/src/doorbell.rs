//! Wakes a task that takes the events of a feed, where a task does it: in the emulator's lab.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

/// One task waits for it, any thread rings it.
#[derive(Debug, Default)]
pub struct Doorbell {
    has_rung: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Doorbell {
    /// Wakes the task, now or when it waits next.
    pub fn ring(&self) {
        self.has_rung.store(true, Ordering::Release);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits until it has rung since the last wait.
    pub async fn rung(&self) {
        poll_fn(|context| {
            let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
            if self.has_rung.swap(false, Ordering::Acquire) {
                return Poll::Ready(());
            }
            *waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
