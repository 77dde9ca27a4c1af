//! Why there is no answer.

use serde::{Deserialize, Serialize};

/// Why a request has no answer. It prints as a sentence that says what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[error("{message}")]
pub struct QueryError {
    /// What kind of error it is.
    pub kind: ErrorKind,
    /// The field of the request that is wrong, such as `switch` or `page.limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl QueryError {
    /// The message, behind the place of what is wrong if that is inside of something longer, such
    /// as `entries[1].flow.match`.
    #[must_use]
    pub fn located(&self) -> String {
        match &self.field {
            Some(field) if field.contains(['.', '[']) => format!("{field}: {}", self.message),
            _ => self.message.clone(),
        }
    }
}

/// Kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is malformed, or a value in it is not possible.
    Invalid,
    /// What the request names does not exist.
    NotFound,
    /// The present state of the network does not allow it.
    Refused,
    /// The controller does not run the app that answers this request.
    AppNotRunning,
    /// The controller is not a node of a cluster.
    NoCluster,
    /// A switch or an app did not answer in time.
    Timeout,
    /// Too many clients ask at the same time.
    Busy,
    /// The two ends speak different versions of the protocol.
    Version,
    /// A fault of the controller.
    Internal,
    /// A newer controller has sent it.
    #[serde(other)]
    Unknown,
}

impl ErrorKind {
    /// Its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Invalid => "invalid",
            ErrorKind::NotFound => "not_found",
            ErrorKind::Refused => "refused",
            ErrorKind::AppNotRunning => "app_not_running",
            ErrorKind::NoCluster => "no_cluster",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Busy => "busy",
            ErrorKind::Version => "version",
            ErrorKind::Internal => "internal",
            ErrorKind::Unknown => "unknown",
        }
    }
}

impl QueryError {
    /// An error about the request as a whole.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        QueryError { kind, field: None, message: message.into() }
    }

    /// A value of the request is not possible.
    #[must_use]
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        QueryError::new(ErrorKind::Invalid, message).at(field)
    }

    /// What a field names does not exist.
    #[must_use]
    pub fn not_found(field: &str, message: impl Into<String>) -> Self {
        QueryError::new(ErrorKind::NotFound, message).at(field)
    }

    /// The same error, about this field.
    #[must_use]
    pub fn at(self, field: &str) -> Self {
        QueryError { field: Some(field.to_owned()), ..self }
    }
}
