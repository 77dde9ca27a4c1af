//! Waiting for one of two things.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// The future that was ready first, with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first one.
    First(A),
    /// The second one.
    Second(B),
}

/// Waits until one of two futures is ready, and drops the other one. If both are, the first counts.
///
/// ```
/// # use bellrock_api::{Network, Either, either};
/// async fn follow(network: Network) {
///     let (mut switches, mut links) = (network.switches(), network.topology().load());
///     loop {
///         let more_switches = network.watch_switches().changed(switches.version());
///         match either(more_switches, network.topology().changed(links.version())).await {
///             Either::First(now) => switches = now,
///             Either::Second(now) => links = now,
///         }
///     }
/// }
/// ```
pub async fn either<A: Future, B: Future>(a: A, b: B) -> Either<A::Output, B::Output> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|context| {
        if let Poll::Ready(result) = a.as_mut().poll(context) {
            return Poll::Ready(Either::First(result));
        }
        b.as_mut().poll(context).map(Either::Second)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Waker};

    use super::*;

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_future_that_is_ready_counts_and_the_first_of_two() {
        assert_eq!(poll(either(ready(1), pending::<u8>())), Poll::Ready(Either::First(1)));
        assert_eq!(poll(either(pending::<u8>(), ready(2))), Poll::Ready(Either::Second(2)));
        assert_eq!(poll(either(ready(1), ready(2))), Poll::Ready(Either::First(1)));
        assert_eq!(poll(either(pending::<u8>(), pending::<u8>())), Poll::Pending);
    }
}
