//! Errors as problems (RFC 9457).

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bellrock_query::{ErrorKind, QueryError};
use serde::Serialize;
use utoipa::ToSchema;

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// The kind of the problem: `urn:bellrock:` and one word.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The kind as a phrase.
    title: &'static str,
    /// The status code of the response.
    status: u16,
    /// What is wrong, and what would be right.
    detail: String,
    /// The parameter, or the field of the body, that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip)]
    advice: Advice,
}

/// What a header field says besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advice {
    None,
    /// A token has to be sent (RFC 6750 §3).
    SendToken,
    /// The request may be sent again soon.
    TryAgain,
}

/// Content type of a problem.
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Seconds after which a client may try again, if the server was busy.
const RETRY_AFTER_S: &str = "1";

impl Problem {
    fn new(
        status: StatusCode,
        kind: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Problem {
            kind,
            title,
            status: status.as_u16(),
            detail: detail.into(),
            field: None,
            advice: Advice::None,
        }
    }

    /// The same problem, in this parameter or field.
    pub(crate) fn at(self, field: &str) -> Self {
        Problem { field: Some(field.to_owned()), ..self }
    }

    /// The same problem. If its field is called `from`, it is `to`.
    pub(crate) fn renamed(self, from: &str, to: &str) -> Self {
        if self.field.as_deref() == Some(from) { self.at(to) } else { self }
    }

    /// The same problem, in a body that is this part of the request. Its field has no such prefix.
    pub(crate) fn within(self, part: &str) -> Self {
        let field = self.field.map(|field| {
            let inner = field.strip_prefix(part).map(|rest| rest.trim_start_matches('.'));
            inner.map_or_else(|| field.clone(), str::to_owned)
        });
        Problem { field: field.filter(|field| !field.is_empty()), ..self }
    }

    /// The request is malformed, or a value in it is not possible.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "urn:bellrock:invalid",
            "The request is wrong",
            detail,
        )
    }

    /// There is nothing at this path.
    pub(crate) fn no_such_path(path: &str) -> Self {
        let detail = format!("there is nothing at {path}; /v1/openapi.json lists all paths");
        Problem::new(
            StatusCode::NOT_FOUND,
            "urn:bellrock:not_found",
            "There is no such path",
            detail,
        )
    }

    /// What the path names does not exist.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, "urn:bellrock:not_found", "It does not exist", detail)
    }

    /// The path has no such method.
    pub(crate) fn wrong_method(method: &str, path: &str) -> Self {
        let detail = format!("{path} has no {method}; /v1/openapi.json lists the methods of it");
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Problem::new(status, "urn:bellrock:wrong_method", "The path has no such method", detail)
    }

    /// A token is missing or wrong.
    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        let title = "A valid token is needed";
        let problem =
            Problem::new(StatusCode::UNAUTHORIZED, "urn:bellrock:unauthorized", title, detail);
        Problem { advice: Advice::SendToken, ..problem }
    }

    /// The token does not allow it.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Problem::new(
            StatusCode::FORBIDDEN,
            "urn:bellrock:forbidden",
            "The token does not allow it",
            detail,
        )
    }

    /// The request is for another host.
    pub(crate) fn other_host(host: &str) -> Self {
        let detail = format!(
            "this address is of the loopback, and {host:?} is not; ask for localhost or 127.0.0.1 (a proxy in \
             front can set the Host header)"
        );
        let status = StatusCode::MISDIRECTED_REQUEST;
        Problem::new(status, "urn:bellrock:other_host", "The request is for another host", detail)
    }

    /// There are too many requests of this client.
    pub(crate) fn too_many(detail: impl Into<String>) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let problem = Problem::new(status, "urn:bellrock:too_many", "Too many requests", detail);
        Problem { advice: Advice::TryAgain, ..problem }
    }

    /// The body did not come in time.
    pub(crate) fn too_slow(limit: Duration) -> Self {
        let detail = format!("the body was not complete after {} s", limit.as_secs());
        let status = StatusCode::REQUEST_TIMEOUT;
        Problem::new(status, "urn:bellrock:too_slow", "The body came too slowly", detail)
    }

    /// The body is too large.
    pub(crate) fn too_large(limit: usize) -> Self {
        let detail = format!("a body has at most {limit} bytes; send several requests");
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        Problem::new(status, "urn:bellrock:too_large", "The body is too large", detail)
    }

    /// The controller is busy, or stops.
    pub(crate) fn busy(detail: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let problem = Problem::new(status, "urn:bellrock:busy", "The controller is busy", detail);
        Problem { advice: Advice::TryAgain, ..problem }
    }

    /// A fault of the controller.
    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Problem::new(status, "urn:bellrock:internal", "A fault of the controller", detail)
    }

    /// The kind in one word, such as `not_found`.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind.rsplit(':').next().unwrap_or_default()
    }
}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        let QueryError { kind, field, message } = error;
        let problem = match kind {
            ErrorKind::Invalid => Problem::invalid(message),
            ErrorKind::NotFound => Problem::not_found(message),
            ErrorKind::Refused => {
                let title = "The state of the network does not allow it";
                Problem::new(StatusCode::CONFLICT, "urn:bellrock:refused", title, message)
            }
            ErrorKind::AppNotRunning => {
                let title = "The app does not run";
                Problem::new(StatusCode::CONFLICT, "urn:bellrock:app_not_running", title, message)
            }
            ErrorKind::NoCluster => {
                let title = "The controller is alone";
                Problem::new(StatusCode::CONFLICT, "urn:bellrock:no_cluster", title, message)
            }
            ErrorKind::Timeout => {
                let title = "A switch or an app did not answer in time";
                Problem::new(StatusCode::GATEWAY_TIMEOUT, "urn:bellrock:timeout", title, message)
            }
            ErrorKind::Busy => Problem::busy(message),
            _ => Problem::internal(message),
        };
        // Pages are parameters of the path here.
        match field.as_deref().map(|field| field.strip_prefix("page.").unwrap_or(field)) {
            Some(field) => problem.at(field),
            None => problem,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let advice = match self.advice {
            Advice::None => None,
            Advice::SendToken => Some((header::WWW_AUTHENTICATE, "Bearer")),
            Advice::TryAgain => Some((header::RETRY_AFTER, RETRY_AFTER_S)),
        };
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        headers.extend(advice.map(|(name, value)| (name, HeaderValue::from_static(value))));
        response
    }
}
