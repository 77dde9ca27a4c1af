//! Waiting for the first of several things.

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
