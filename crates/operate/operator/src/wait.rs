//! Waits in a thread for answers of tasks, switches and stores.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::Instant;

/// Waits for a future until the time `until`, and returns its output. A later future is dropped.
pub fn wait_until<F: Future>(until: Instant, future: F) -> Option<F::Output> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        thread::park_timeout(left);
    }
}
