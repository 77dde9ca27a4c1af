//! From a request to the operator's answer.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bellrock_query::{
    Answer, Operator, Page, Query, QueryError, Request as OperatorRequest, Rows, by_name,
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_path_to_error::Track;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::access::{Caller, Rates};
use crate::layout::Layouts;
use crate::limits::{
    BODY_TIMEOUT, MAX_ASKING, MAX_BODY_BYTES, MAX_BYTES_PARSED_AT_ONCE, MAX_ORDERS, MAX_PARSING,
    MAX_STREAMS, MAX_WAITING_FOR_SWITCHES, TURN_TIMEOUT,
};
use crate::metrics::Statistics;
use crate::problem::Problem;
use crate::tokens::TokenBook;
use crate::wrong_input::{no_body, wrong_body, wrong_params, wrong_path};
use crate::{Certificate, HttpCounters};

/// What all requests share.
pub(crate) struct Shared {
    operator: Arc<dyn Operator>,
    /// Turns of requests that the controller answers from its memory.
    turns: Arc<Semaphore>,
    /// Turns of requests that wait for switches.
    switch_turns: Arc<Semaphore>,
    /// Turns of orders. Who may only ask cannot delay them.
    order_turns: Arc<Semaphore>,
    /// Turns of large bodies that are being parsed.
    parse_turns: Arc<Semaphore>,
    pub(crate) counters: HttpCounters,
    pub(crate) rates: Rates,
    pub(crate) tokens: TokenBook,
    /// Places of streams.
    pub(crate) streams: Arc<Semaphore>,
    /// Changes when there are events.
    pub(crate) news: watch::Receiver<()>,
    /// What switches have counted, if they are asked for it.
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) certificate: Option<Certificate>,
    /// The latest layout of the network.
    pub(crate) layouts: Arc<Mutex<Layouts>>,
}

impl Shared {
    pub(crate) fn new(
        operator: Arc<dyn Operator>,
        counters: &HttpCounters,
        tokens: TokenBook,
        certificate: Option<Certificate>,
        news: watch::Receiver<()>,
    ) -> Self {
        Shared {
            operator,
            turns: Arc::new(Semaphore::new(MAX_ASKING)),
            switch_turns: Arc::new(Semaphore::new(MAX_WAITING_FOR_SWITCHES)),
            order_turns: Arc::new(Semaphore::new(MAX_ORDERS)),
            parse_turns: Arc::new(Semaphore::new(MAX_PARSING)),
            counters: counters.clone(),
            rates: Rates::default(),
            tokens,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            news,
            statistics: Arc::default(),
            certificate,
            layouts: Arc::default(),
        }
    }

    /// Asks the operator, in a thread that may wait.
    pub(crate) async fn ask<Q>(&self, query: Q) -> Result<Q::Answer, Problem>
    where
        Q: Query + Send + 'static,
        Q::Answer: Send,
    {
        let answer = self.ask_any(query.into()).await?;
        Q::from_answer(answer).ok_or_else(other_answer)
    }

    /// The same for any request.
    pub(crate) async fn ask_any(&self, query: OperatorRequest) -> Result<Answer, Problem> {
        let name = query.name();
        let (turns, places) = match (query.is_order(), query.waits_for_switches()) {
            (true, _) => (&self.order_turns, MAX_ORDERS),
            (false, true) => (&self.switch_turns, MAX_WAITING_FOR_SWITCHES),
            (false, false) => (&self.turns, MAX_ASKING),
        };
        let ask = move |operator: &dyn Operator| operator.answer(query);
        self.in_turn(turns, places, name, ask).await
    }

    /// The same for several requests, whose answers `ask` puts together. `name`: for messages.
    pub(crate) async fn ask_more<T: Send + 'static>(
        &self,
        name: &'static str,
        ask: impl FnOnce(&dyn Operator) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.in_turn(&self.turns, MAX_ASKING, name, ask).await
    }

    /// The same for requests to a switch.
    pub(crate) async fn ask_switch<T: Send + 'static>(
        &self,
        name: &'static str,
        ask: impl FnOnce(&dyn Operator) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.in_turn(&self.switch_turns, MAX_WAITING_FOR_SWITCHES, name, ask).await
    }

    /// Reads a body. A large one takes long, so that happens in a thread of its own, of which there
    /// are few: the one thread that serves all connections must not wait.
    pub(crate) async fn parse<T: Send + 'static>(
        &self,
        body: Bytes,
        read: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        if body.len() <= MAX_BYTES_PARSED_AT_ONCE {
            return Ok(read(&body));
        }
        let turn = self.turn(&self.parse_turns, MAX_PARSING).await?;
        answered("the body", move || {
            let _turn = turn;
            Ok(read(&body))
        })
        .await
    }

    /// The same for a part of an order.
    pub(crate) async fn ask_for_order<T: Send + 'static>(
        &self,
        name: &'static str,
        ask: impl FnOnce(&dyn Operator) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.in_turn(&self.order_turns, MAX_ORDERS, name, ask).await
    }

    /// Waits for one of so many `places`.
    async fn turn(
        &self,
        turns: &Arc<Semaphore>,
        places: usize,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        let turns = Arc::clone(turns).acquire_owned();
        let Ok(Ok(turn)) = tokio::time::timeout(TURN_TIMEOUT, turns).await else {
            self.counters.requests_timed_out();
            let limit = TURN_TIMEOUT.as_secs();
            let why = format!("{places} other requests were not answered within {limit} s");
            return Err(Problem::busy(why));
        };
        Ok(turn)
    }

    /// Waits for one of so many `places`, and asks.
    async fn in_turn<T: Send + 'static>(
        &self,
        turns: &Arc<Semaphore>,
        places: usize,
        name: &'static str,
        ask: impl FnOnce(&dyn Operator) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = self.turn(turns, places).await?;
        let operator = Arc::clone(&self.operator);
        answered(name, move || {
            let _turn = turn;
            ask(&*operator)
        })
        .await
    }

    /// The same without waiting for a turn, for the one task that waits for events.
    pub(crate) async fn ask_alone<Q>(&self, query: Q) -> Result<Q::Answer, Problem>
    where
        Q: Query + Send + 'static,
        Q::Answer: Send,
    {
        let operator = Arc::clone(&self.operator);
        answered(Q::NAME, move || operator.ask(query)).await
    }

    /// Gives an order, and logs who gave it. Both happen even if the client does not wait.
    pub(crate) async fn order<Q: Query>(
        self: &Arc<Self>,
        caller: Caller,
        order: Q,
    ) -> Result<Q::Answer, Problem> {
        let answer = self.order_any(caller, order.into()).await?;
        Q::from_answer(answer).ok_or_else(other_answer)
    }

    /// The same for any order.
    pub(crate) async fn order_any(
        self: &Arc<Self>,
        caller: Caller,
        order: OperatorRequest,
    ) -> Result<Answer, Problem> {
        let shared = Arc::clone(self);
        let carried_out = tokio::spawn(async move { shared.carry_out(&caller, order).await });
        carried_out.await.unwrap_or_else(|_| Err(Problem::busy("the controller stops")))
    }

    async fn carry_out(&self, caller: &Caller, order: OperatorRequest) -> Result<Answer, Problem> {
        let text = order.audit_text();
        let who = caller.who();
        let answer = self.ask_any(order).await;
        let outcome = match &answer {
            Ok(_) => {
                self.counters.changes();
                "done"
            }
            Err(problem) => problem.kind(),
        };
        tracing::info!(target: "audit", "{who} ordered {text}: {outcome}");
        answer
    }
}

fn other_answer() -> Problem {
    Problem::internal("the answer is of another request")
}

/// JSON of a body. Errors name the field.
pub(crate) struct Fields<T>(pub(crate) T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<Shared>> for Fields<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Problem> {
        let bytes = body_bytes(request, shared).await?;
        shared.parse(bytes, read_fields).await?.map(Fields)
    }
}

/// Like [`Fields`], of a body that may be left out. Then all fields have their defaults.
pub(crate) struct OptionalFields<T>(pub(crate) T);

impl<T: DeserializeOwned + Default + Send + 'static> FromRequest<Arc<Shared>>
    for OptionalFields<T>
{
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Problem> {
        let bytes = body_bytes(request, shared).await?;
        if bytes.is_empty() {
            return Ok(OptionalFields(T::default()));
        }
        shared.parse(bytes, read_fields).await?.map(OptionalFields)
    }
}

fn read_fields<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    read_body(bytes, PhantomData)
}

/// Reads a body of JSON.
pub(crate) fn read_body<T>(
    bytes: &[u8],
    read: impl for<'de> DeserializeSeed<'de, Value = T>,
) -> Result<T, Problem> {
    if bytes.trim_ascii().is_empty() {
        return Err(no_body());
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let mut track = Track::new();
    let from = by_name(serde_path_to_error::Deserializer::new(&mut reader, &mut track));
    let value = read.deserialize(from);
    let value =
        value.map_err(|error| wrong_body(&serde_path_to_error::Error::new(track.path(), error)))?;
    reader.end().map_err(|error| Problem::invalid(format!("the body is not JSON: {error}")))?;
    Ok(value)
}

/// The bytes of a body, within the limits of size and time.
pub(crate) async fn body_bytes(request: Request, shared: &Shared) -> Result<Bytes, Problem> {
    let too_large = || {
        shared.counters.bodies_too_large();
        Problem::too_large(MAX_BODY_BYTES)
    };
    let body = request.into_body();
    // What a client announces need not come first.
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(too_large());
    }
    let body = Limited::new(body, MAX_BODY_BYTES).collect();
    let Ok(body) = tokio::time::timeout(BODY_TIMEOUT, body).await else {
        shared.counters.requests_timed_out();
        return Err(Problem::too_slow(BODY_TIMEOUT));
    };
    let bytes = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => too_large(),
        false => Problem::invalid("the body ended early"),
    })?;
    Ok(bytes.to_bytes())
}

/// The parameters behind the `?` of a path.
pub(crate) struct Params<T>(pub(crate) T);

/// The parameters of a path that has none: all are refused.
pub(crate) type NoParams = Params<NoParam>;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParam {}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = form_urlencoded::parse(query.as_bytes());
        let params = serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(pairs));
        params.map(Params).map_err(|error| wrong_params(&error))
    }
}

/// A part of the path, such as the name of a switch.
pub(crate) struct Part<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Part<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let problem = match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(part)) => return Ok(Part(part)),
            Err(error) => wrong_path(error),
        };
        // The paths that are more than text have one part.
        let names = RawPathParams::from_request_parts(parts, state).await;
        let name = names.as_ref().ok().and_then(|names| names.iter().next());
        Err(match name {
            Some((name, _)) => problem.at(name),
            None => problem,
        })
    }
}

/// The operator's answer as JSON, with a tag of its content. A client that has the same content
/// already gets status 304 (RFC 9110 §13.1.2).
pub(crate) struct Tagged<T> {
    pub(crate) answer: T,
    /// `If-None-Match` of the request.
    pub(crate) known: Known,
}

/// The tags that a client has.
pub(crate) struct Known(Option<HeaderValue>);

impl<S: Send + Sync> FromRequestParts<S> for Known {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Known(parts.headers.get(header::IF_NONE_MATCH).cloned()))
    }
}

impl Known {
    /// Whether the client has the content with this tag.
    pub(crate) fn has(&self, tag: &str) -> bool {
        let known = self.0.as_ref().and_then(|known| known.to_str().ok()).unwrap_or_default();
        known.split(',').map(str::trim).any(|known| known == tag || known == "*")
    }
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        let Ok(bytes) = serde_json::to_vec(&self.answer) else {
            return Problem::internal("the answer is no JSON").into_response();
        };
        let tag = tag(&bytes);
        let (status, body) = match self.known.has(&tag) {
            true => (StatusCode::NOT_MODIFIED, Body::empty()),
            false => (StatusCode::OK, Body::from(bytes)),
        };
        let headers = [
            (header::CONTENT_TYPE, "application/json"),
            (header::CACHE_CONTROL, "no-cache"),
            (header::ETAG, tag.as_str()),
        ];
        (status, headers, body).into_response()
    }
}

/// The tag of some content (RFC 9110 §8.8.3).
pub(crate) fn tag(content: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(content).into();
    let short = u64::from_be_bytes(digest[..8].try_into().unwrap_or_default());
    format!("\"{short:016x}\"")
}

/// Answers in a thread that may wait. `name`: of the request, for messages.
async fn answered<T: Send + 'static>(
    name: &'static str,
    answer: impl FnOnce() -> Result<T, QueryError> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(answer).await {
        Ok(answer) => Ok(answer?),
        Err(error) if error.is_panic() => {
            let why = format!("{name} has panicked; the controller's log has the place");
            Err(Problem::internal(why))
        }
        Err(_) => Err(Problem::busy("the controller stops")),
    }
}

/// The rows of all pages.
///
/// # Errors
/// Those of `ask`.
pub fn all_pages<T>(
    ask: impl Fn(Page) -> Result<Rows<T>, QueryError>,
) -> Result<Vec<T>, QueryError> {
    let mut all = Vec::new();
    loop {
        let Rows { total, rows, .. } = ask(Page::largest(all.len()))?;
        let is_last = rows.is_empty();
        all.extend(rows);
        if is_last || all.len() >= total {
            return Ok(all);
        }
    }
}

/// A row of a list that has at most one.
pub(crate) fn only<T>(rows: Vec<T>, missing: impl FnOnce() -> String) -> Result<T, Problem> {
    rows.into_iter().next().ok_or_else(|| Problem::not_found(missing()))
}
