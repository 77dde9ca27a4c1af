//! The REST interface of Ryu 4.34 (`ofctl_rest` and `rest_topology`), for scripts and courses.
//!
//! It is a [guest](bellrock_northbound::guest) of the HTTP server: it has a listener of its own,
//! only on the loopback, and asks for no token, since Ryu's scripts have none. It is a client of
//! the operator like all others: requests and messages go to the switches as they are, so that
//! flows have the cookies and priorities of the script.
//!
//! Paths, fields and answers are those of Ryu 4.34, recorded in `vectors/ryu`. Fields that nobody
//! reads are ignored, as Ryu does. Where Ryu guesses, this refuses: slips of the pen, unknown
//! fields of matches, unknown actions, and values that are not possible. Errors have the status
//! that Ryu gives, and a text that says what is wrong.
//!
//! # What it is not
//! A second way to program flows: no app keeps what is sent here (docs/adr/0024-ryu-rest.md).

mod actions;
mod body;
mod entries;
mod groups;
mod matching;
mod numbers;
mod stats;
mod switch;
mod tables;
mod topology;

use std::net::SocketAddr;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use bellrock_northbound::guest::{Guest, GuestState};
use bellrock_query::{ErrorKind, QueryError};

pub use body::MAX_LITERAL_NODES;

/// The interface, for the HTTP server of a controller.
#[must_use]
pub fn interface(listen: Vec<SocketAddr>) -> Guest {
    Guest { name: "the interface of Ryu", listen, routes: router }
}

/// Its routes.
fn router() -> Router<GuestState> {
    Router::new()
        .merge(stats::router())
        .merge(entries::router())
        .merge(topology::router())
        .route("/", get(async || "The REST interface of Ryu: /stats and /v1.0/topology.\n"))
        .fallback(any(async || Failure::new(StatusCode::NOT_FOUND, "there is nothing here")))
        // Ryu answers so to a wrong method, too.
        .method_not_allowed_fallback(async || {
            Failure::new(StatusCode::NOT_FOUND, "this path has no such method")
        })
}

/// Why there is no answer: a status and a text.
#[derive(Debug)]
struct Failure {
    status: StatusCode,
    text: String,
    /// Whether the switch refuses a request, such as one for a queue that it does not have.
    is_refusal: bool,
}

impl Failure {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Failure { status, text: text.into(), is_refusal: false }
    }

    /// A field of the request is wrong.
    fn wrong(field: &str, why: impl std::fmt::Display) -> Self {
        Failure::new(StatusCode::BAD_REQUEST, format!("{field}: {why}"))
    }

    /// The version of the switch does not have it.
    fn unsupported(what: &str) -> Self {
        let text = format!("the OpenFlow version of the switch has no {what}");
        Failure::new(StatusCode::NOT_IMPLEMENTED, text)
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        let status = match error.kind {
            ErrorKind::Invalid | ErrorKind::Refused => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
            ErrorKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let is_refusal = error.kind == ErrorKind::Refused;
        Failure { is_refusal, ..Failure::new(status, error.message) }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, self.text + "\n").into_response()
    }
}
