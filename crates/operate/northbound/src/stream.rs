//! Events as they happen: a stream of server-sent events (HTML standard §9.2), which a client
//! resumes where it has stopped.
//!
//! One task waits for events in a thread of its own, and wakes the streams. Each stream then asks
//! for the events after its own last one. So a slow client holds up no other, and needs no queue.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bellrock_query::{EventRow, EventsAfter, FollowEvents, MAX_EVENTS_AT_ONCE};
use futures_lite::stream;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout_at};

use crate::access::Caller;
use crate::answer::Shared;
use crate::limits::{MAX_STREAM_TIME, MAX_STREAMS, STREAM_KEEPALIVE, TOKEN_FILE_LOOK};
use crate::problem::Problem;
use crate::tokens::TokenEntry;

/// Time for which one request waits for events. When the server stops, its thread ends within it.
const WAIT_MS: u64 = 1000;

/// Time until the task asks again after the controller did not answer.
const RETRY: Duration = Duration::from_secs(1);

/// The media type of a stream.
const EVENT_STREAM: &str = "text/event-stream";

/// Whether a client asks for a stream.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let kinds = accept.unwrap_or_default().split(',');
    kinds.filter_map(|kind| kind.split(';').next()).any(|kind| kind.trim() == EVENT_STREAM)
}

/// Waits for events for all streams. When it is aborted, they end.
pub(crate) async fn watch_events(shared: Arc<Shared>, latest: watch::Sender<()>) {
    let mut after = None;
    loop {
        let query = FollowEvents { after: after.clone(), wait_ms: WAIT_MS };
        match shared.ask_alone(query).await {
            Ok(answer) => {
                if !answer.events.is_empty() || answer.missed > 0 {
                    latest.send_replace(());
                }
                after = Some(answer.last);
            }
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

/// The events after `after`, and then all later ones as they happen, for as long as the caller's
/// token is valid.
pub(crate) async fn respond(
    shared: Arc<Shared>,
    caller: Caller,
    after: Option<String>,
) -> Result<Response, Problem> {
    respond_for(shared, caller, after, MAX_STREAM_TIME, STREAM_KEEPALIVE).await
}

/// The same with these limits.
pub(crate) async fn respond_for(
    shared: Arc<Shared>,
    caller: Caller,
    after: Option<String>,
    limit: Duration,
    keepalive: Duration,
) -> Result<Response, Problem> {
    let Ok(place) = Arc::clone(&shared.streams).try_acquire_owned() else {
        shared.counters.streams_refused();
        return Err(Problem::busy(format!("there are {MAX_STREAMS} streams already")));
    };
    let mut news = shared.news.clone();
    // A wrong id is a problem, not a stream.
    let first = shared.ask(FollowEvents { after, wait_ms: 0 }).await?;
    mark_if_full(&first, &mut news);
    let sent = Instant::now();
    let (last, end, token) = (first.last.clone(), sent + limit, caller.token);
    let state = Stream { shared, token, news, last, sent, end, keepalive, _place: place };
    let first = Bytes::from(format!(": events\n\n{}", text(&first)));
    let chunks = stream::unfold((state, Some(first)), |(mut state, first)| async move {
        let chunk = match first {
            Some(first) => first,
            None => state.next().await?,
        };
        Some((Ok::<_, Infallible>(chunk), (state, None)))
    });
    let headers = [(header::CONTENT_TYPE, EVENT_STREAM), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(chunks)).into_response())
}

struct Stream {
    shared: Arc<Shared>,
    /// The token of the client. `None`: it needs none.
    token: Option<TokenEntry>,
    /// Changes when there are events.
    news: watch::Receiver<()>,
    /// The place of the last event that was sent.
    last: String,
    /// When the last bytes were sent.
    sent: Instant,
    end: Instant,
    /// Maximum time without a byte.
    keepalive: Duration,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    /// The next bytes to send. `None` ends the stream: the client then resumes it, and shows its
    /// token again.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let now = Instant::now();
            if now >= self.end || !self.may_go_on() {
                return None;
            }
            let quiet_until = self.sent + self.keepalive;
            if now >= quiet_until {
                self.sent = now;
                // A comment, which shows that the connection is alive.
                return Some(Bytes::from_static(b": \n\n"));
            }
            let look = self.token.as_ref().map_or(self.end, |_| now + TOKEN_FILE_LOOK);
            let wake = self.end.min(quiet_until).min(look);
            match timeout_at(wake, self.news.changed()).await {
                Err(_) => continue,
                Ok(Err(_)) => return None,
                Ok(Ok(())) => {}
            }
            if !self.may_go_on() {
                return None;
            }
            let query = FollowEvents { after: Some(self.last.clone()), wait_ms: 0 };
            let answer = self.shared.ask(query).await.ok()?;
            let text = text(&answer);
            mark_if_full(&answer, &mut self.news);
            self.last = answer.last;
            if !text.is_empty() {
                self.sent = Instant::now();
                return Some(text.into());
            }
        }
    }

    /// Whether the client's token, if it needs one, has not been taken away.
    fn may_go_on(&self) -> bool {
        let Some(token) = &self.token else { return true };
        self.shared.tokens.still_has(token)
    }
}

/// After a full answer there may be more events already.
fn mark_if_full(answer: &EventsAfter, news: &mut watch::Receiver<()>) {
    if answer.events.len() >= MAX_EVENTS_AT_ONCE {
        news.mark_changed();
    }
}

/// Events as text. What was missed comes first, as an event of its own.
fn text(answer: &EventsAfter) -> String {
    let mut text = String::new();
    if answer.restarted {
        push(&mut text, "restarted", None, &json!({}));
    }
    if answer.missed > 0 {
        push(&mut text, "missed", None, &json!({"events": answer.missed}));
    }
    for row in &answer.events {
        push_event(&mut text, row);
    }
    text
}

fn push_event(text: &mut String, row: &EventRow) {
    push(text, "event", Some(&row.id), &json!(row));
}

/// JSON has no line break outside of its escapes, so it is one line.
fn push(text: &mut String, kind: &str, id: Option<&str>, data: &serde_json::Value) {
    if let Some(id) = id {
        text.extend(["id: ", id, "\n"]);
    }
    text.extend(["event: ", kind, "\ndata: ", &data.to_string(), "\n\n"]);
}
