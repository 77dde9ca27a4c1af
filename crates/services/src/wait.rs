//! Waiting for the first of several things, and letting others have their turn.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Waits until one of two is done. What the other was about to come to is lost; both have to be such
/// that nothing is.
pub async fn first(a: impl Future, b: impl Future) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|context| {
        if a.as_mut().poll(context).is_ready() || b.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
}

/// Lets the other tasks have their turn. An `await` of what is there already does not.
pub(crate) async fn yield_now() {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use super::*;

    #[test]
    fn who_yields_is_woken_and_goes_on_in_the_next_turn() {
        #[derive(Default)]
        struct Woken(AtomicUsize);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut yields = pin!(first(yield_now(), std::future::pending::<()>()));
        assert!(yields.as_mut().poll(&mut context).is_pending());
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(yields.as_mut().poll(&mut context).is_ready());
    }
}
