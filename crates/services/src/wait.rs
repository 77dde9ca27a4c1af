//! Waits for the first of two futures, and yields to other tasks.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bellrock_api::Network;

/// The result of the future that completed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First<A, B> {
    /// The first future.
    A(A),
    /// The second future.
    B(B),
}

impl<A, B> First<A, B> {
    /// Returns the result of the first future, if it completed first.
    pub fn a(self) -> Option<A> {
        match self {
            First::A(a) => Some(a),
            First::B(_) => None,
        }
    }

    /// Returns the result of the second future, if it completed first.
    pub fn b(self) -> Option<B> {
        match self {
            First::A(_) => None,
            First::B(b) => Some(b),
        }
    }
}

/// Waits until one of two futures completes, and drops the other. It polls `b` only while `a` is
/// pending, so `b` takes nothing that would be lost. Both must be safe to drop while they wait,
/// such as receiving from a channel or waiting for a change.
pub async fn first<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> First<A, B> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|context| match a.as_mut().poll(context) {
        Poll::Ready(a) => Poll::Ready(First::A(a)),
        Poll::Pending => b.as_mut().poll(context).map(First::B),
    })
    .await
}

/// Waits until a time on the controller's clock; forever if there is none.
pub async fn until(network: &Network, at: Option<Duration>) {
    match at {
        Some(at) => network.sleep_until(at).await,
        None => pending().await,
    }
}

/// Yields to the other tasks once. An `await` of a ready future does not yield.
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
    use std::future::ready;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use super::*;

    #[test]
    fn what_both_could_take_is_taken_by_one() {
        let mut context = Context::from_waker(Waker::noop());
        let (sender, receiver) = async_channel::unbounded();
        sender.try_send(1).unwrap();
        let at_once = pin!(first(ready('a'), receiver.recv())).poll(&mut context);
        assert_eq!(at_once, Poll::Ready(First::A('a')));
        assert_eq!(receiver.len(), 1, "the second future has not taken it");
        let then = pin!(first(pending::<()>(), receiver.recv())).poll(&mut context);
        assert_eq!(then.map(First::b), Poll::Ready(Some(Ok(1))));
        assert!(pin!(first(pending::<()>(), receiver.recv())).poll(&mut context).is_pending());
        sender.try_send(2).unwrap();
        assert_eq!(receiver.try_recv(), Ok(2), "a dropped future takes nothing");
    }

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
        let mut yields = pin!(first(yield_now(), pending::<()>()));
        assert!(yields.as_mut().poll(&mut context).is_pending());
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(yields.as_mut().poll(&mut context).is_ready());
    }
}
