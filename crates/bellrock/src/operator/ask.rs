//! Asks switches for what they report, from a thread that may wait.

use std::time::{Duration, Instant};

use bellrock_api::{ReplyBody, RequestFuture};
use bellrock_query::ErrorKind;

use super::wait::wait_until;

/// Time limit for all switches of a request together. The client waits a little longer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(8);

/// Switches asked at a time. Their replies are in memory together.
pub(super) const AT_A_TIME: usize = 8;

/// Applies `make` to the reply of a switch, or returns why there is none. `make` returns `None` for
/// a reply of another kind. `what` completes "it did not report its ...".
pub(super) fn read<T>(
    asked: RequestFuture,
    until: Instant,
    what: &str,
    make: impl FnOnce(ReplyBody<'_>) -> Option<T>,
) -> Result<T, (ErrorKind, String)> {
    let silent = || {
        let limit = TIMEOUT.as_secs();
        (ErrorKind::Timeout, format!("it did not report its {what} within {limit} s"))
    };
    let reply = wait_until(until, asked).ok_or_else(silent)?;
    let reply = reply.map_err(|error| (ErrorKind::Refused, error.to_string()))?;
    let other = || (ErrorKind::Refused, "it answered something else".to_owned());
    reply.body().ok().and_then(make).ok_or_else(other)
}
