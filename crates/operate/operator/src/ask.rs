//! Asks switches for what they report, from a thread that may wait.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bellrock_api::{Reply, ReplyBody, RequestError, RequestFuture};
use bellrock_query::{ErrorKind, QueryError, SwitchRef};

use super::wait::wait_until;

/// Limits of a question to switches.
struct Limits {
    /// Time for each switch.
    switch: Duration,
    /// Time for all switches together. The client waits a little longer.
    all: Duration,
    /// Switches asked at a time. Their replies are in memory together, and each request takes one
    /// of the places for unanswered requests that all tasks share.
    at_a_time: usize,
}

const LIMITS: Limits =
    Limits { switch: Duration::from_secs(4), all: Duration::from_secs(8), at_a_time: 8 };

/// What a switch reported, or why it did not.
pub(super) type Reported<T> = Result<T, (ErrorKind, String)>;

/// A counter that the switch keeps. All ones stand for one that it does not keep (1.3.5 §7.3.5.2,
/// §7.3.5.6).
pub(super) fn kept(counter: u64) -> Option<u64> {
    (counter != u64::MAX).then_some(counter)
}

/// Names the switch in an error.
pub(super) fn of_switch<T>(switch: &SwitchRef, reported: Reported<T>) -> Result<T, QueryError> {
    reported.map_err(|(kind, why)| {
        QueryError::new(kind, format!("switch {switch}: {why}")).at("switch")
    })
}

/// Asks a switch, and applies `make` to its reply. `make` returns `None` for a reply of another
/// kind. `what` completes "it did not report its ...".
pub(super) fn ask_one<T>(
    what: &str,
    mut ask: impl FnMut() -> RequestFuture,
    mut make: impl FnMut(ReplyBody<'_>) -> Option<T>,
) -> Reported<T> {
    let mut reported = ask_each(&[()], what, |()| ask(), |(), reply| make(reply));
    reported.pop().unwrap_or_else(|| Err(not_asked(&LIMITS)))
}

/// Asks the switches of `items`, some at a time, and applies `make` to each reply, as [`ask_one`]
/// does. The results are in the order of `items`. A silent switch costs the others nothing but its
/// place.
pub(super) fn ask_each<I, T>(
    items: &[I],
    what: &str,
    ask: impl FnMut(&I) -> RequestFuture,
    make: impl FnMut(&I, ReplyBody<'_>) -> Option<T>,
) -> Vec<Reported<T>> {
    ask_within(&LIMITS, items, what, ask, make)
}

fn ask_within<I, T>(
    limits: &Limits,
    items: &[I],
    what: &str,
    mut ask: impl FnMut(&I) -> RequestFuture,
    mut make: impl FnMut(&I, ReplyBody<'_>) -> Option<T>,
) -> Vec<Reported<T>> {
    let end = Instant::now() + limits.all;
    let mut results: Vec<Option<Reported<T>>> = items.iter().map(|_| None).collect();
    let mut unasked = items.iter().enumerate();
    let mut asked: Vec<Asked> = Vec::new();
    loop {
        let places = limits.at_a_time - asked.len();
        if Instant::now() < end {
            asked.extend(unasked.by_ref().take(places).map(|(index, item)| {
                let until = (Instant::now() + limits.switch).min(end);
                Asked { index, until, request: ask(item) }
            }));
        }
        let Some(until) = asked.iter().map(|asked| asked.until).min() else { break };
        match wait_until(until, poll_fn(|context| first_reply(&mut asked, context))) {
            Some((place, reply)) => {
                let index = asked.swap_remove(place).index;
                results[index] = Some(reported(reply, |body| make(&items[index], body)));
            }
            None => {
                let now = Instant::now();
                for late in asked.extract_if(.., |asked| asked.until <= now) {
                    let why = format!("it did not report its {what} in time");
                    results[late.index] = Some(Err((ErrorKind::Timeout, why)));
                }
            }
        }
    }
    results.into_iter().map(|it| it.unwrap_or_else(|| Err(not_asked(limits)))).collect()
}

/// A switch that has not answered yet.
struct Asked {
    index: usize,
    until: Instant,
    request: RequestFuture,
}

/// Resolves to the first reply, with its place among the asked ones.
fn first_reply(
    asked: &mut [Asked],
    context: &mut Context<'_>,
) -> Poll<(usize, Result<Reply, RequestError>)> {
    for (place, asked) in asked.iter_mut().enumerate() {
        if let Poll::Ready(reply) = Pin::new(&mut asked.request).poll(context) {
            return Poll::Ready((place, reply));
        }
    }
    Poll::Pending
}

fn reported<T>(
    reply: Result<Reply, RequestError>,
    make: impl FnOnce(ReplyBody<'_>) -> Option<T>,
) -> Reported<T> {
    let reply = reply.map_err(|error| (ErrorKind::Refused, error.to_string()))?;
    let other = || (ErrorKind::Refused, "it answered something else".to_owned());
    reply.body().ok().and_then(make).ok_or_else(other)
}

fn not_asked(limits: &Limits) -> (ErrorKind, String) {
    let why = format!(
        "it was not asked: the switches before it took {} s; ask for it alone",
        limits.all.as_secs()
    );
    (ErrorKind::Timeout, why)
}

#[cfg(test)]
mod tests {
    use bellrock_api::Error;
    use bellrock_api::runtime::{Promise, promise};

    use super::*;

    type Answer = Promise<Result<Reply, RequestError>>;

    /// Asks 10 switches, two at a time. The first two stay silent, and all others refuse.
    fn ask_ten(limits: &Limits, silent: &mut Vec<Answer>) -> Vec<Reported<()>> {
        let numbers: Vec<usize> = (0..10).collect();
        let ask = |number: &usize| match number {
            0 | 1 => {
                let (keep, answer) = promise();
                silent.push(keep);
                RequestFuture::sent(answer)
            }
            _ => RequestFuture::not_sent(Error::UnknownSwitch(bellrock_api::Dpid(7))),
        };
        ask_within(limits, &numbers, "flows", ask, |_, _| Some(()))
    }

    #[test]
    fn silent_switches_do_not_take_the_time_of_the_others() {
        let (limits, mut silent) =
            (limits(Duration::from_millis(20), Duration::from_secs(600)), vec![]);
        let results = ask_ten(&limits, &mut silent);
        assert_eq!(silent.len(), 2);
        for (number, result) in results.into_iter().enumerate() {
            let (kind, why) = result.unwrap_err();
            let expected = if number < 2 { ErrorKind::Timeout } else { ErrorKind::Refused };
            assert_eq!(kind, expected, "{number}: {why}");
        }
    }

    #[test]
    fn after_the_end_nothing_more_is_sent() {
        let (limits, mut silent) =
            (limits(Duration::from_secs(600), Duration::from_millis(20)), vec![]);
        let results = ask_ten(&limits, &mut silent);
        let whys: Vec<String> = results.into_iter().map(|it| it.unwrap_err().1).collect();
        assert!(whys[..2].iter().all(|why| why.contains("did not report its flows")), "{whys:?}");
        assert!(whys[2..].iter().all(|why| why.contains("it was not asked")), "{whys:?}");
    }

    fn limits(switch: Duration, all: Duration) -> Limits {
        Limits { switch, all, at_a_time: 2 }
    }
}
