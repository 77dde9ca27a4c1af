//! The lines on the socket.
//!
//! ```text
//! {"protocol": 1, "request": {"list_flows": {"switch": "s1"}}}
//! {"protocol": 1, "answer": {"dpid": "0000000000000001", ...}}
//! {"protocol": 1, "error": {"kind": "not_found", "field": "switch", "message": "..."}}
//! ```
//!
//! Releases before this protocol sent words (`status`) and read `{"error": "..."}`. They get such
//! an error, and are recognised by theirs.

use bellrock_query::{Answer, ErrorKind, QueryError, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Version of the protocol. It grows when an older end could misunderstand a message. New requests,
/// new fields of answers (with a default, if a newer command is to read an older controller) and
/// new values of states do not change it; new versions of OpenFlow do.
pub const PROTOCOL: u32 = 1;

/// Maximum size of a request, in bytes with its line end.
pub const MAX_REQUEST_BYTES: u64 = 1 << 20;

/// Returns the line of a request, with its line end.
///
/// # Errors
/// The request is too long.
pub fn request_line(request: &Request) -> Result<String, QueryError> {
    let line = format!("{}\n", json!({ "protocol": PROTOCOL, "request": request }));
    if line.len() as u64 > MAX_REQUEST_BYTES {
        return Err(QueryError::new(
            ErrorKind::Invalid,
            format!("a request has at most {MAX_REQUEST_BYTES} bytes; give shorter values"),
        ));
    }
    Ok(line)
}

/// Reads a request from its line.
///
/// # Errors
/// The line is no request, or of another version of the protocol.
pub fn read_request(line: &str) -> Result<Request, QueryError> {
    #[derive(Deserialize)]
    struct Line {
        protocol: u32,
        #[serde(default)]
        request: Value,
    }
    let invalid = |why: String| QueryError::new(ErrorKind::Invalid, why);
    let Line { protocol, request } = serde_json::from_str(line).map_err(|error| {
        let example = json!({ "protocol": PROTOCOL, "request": { "get_status": {} } });
        invalid(format!("this is no request: {error}; a request is a line such as {example}"))
    })?;
    if protocol != PROTOCOL {
        return Err(QueryError::new(
            ErrorKind::Version,
            format!(
                "the client speaks version {protocol} of the control protocol, and this controller version \
                 {PROTOCOL}; use the command of the controller's release, {}",
                env!("CARGO_PKG_VERSION")
            ),
        ));
    }
    let name = request.as_object().and_then(|fields| fields.keys().next()).cloned();
    if !name.as_ref().is_some_and(|name| Request::NAMES.contains(&&**name)) {
        let name =
            name.map_or_else(|| "a request without a name".to_owned(), |name| format!("{name:?}"));
        let known = Request::NAMES.join(", ");
        return Err(invalid(format!(
            "this controller does not know {name}; its requests are {known}"
        )));
    }
    Request::from_json(request)
}

/// Returns whether a line comes from a release that sent words.
pub(crate) fn is_older(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Returns the line for a client that sends words.
pub(crate) fn line_for_older() -> String {
    let why = concat!(
        "this controller is newer than the command; use the command of its release, ",
        env!("CARGO_PKG_VERSION")
    );
    format!("{}\n", json!({ "error": why }))
}

/// Returns the line of a reply, with its line end.
#[must_use]
pub fn reply_line(reply: &Result<Answer, QueryError>) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    struct Line<'r> {
        protocol: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<&'r Answer>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'r QueryError>,
    }
    let line =
        Line { protocol: PROTOCOL, answer: reply.as_ref().ok(), error: reply.as_ref().err() };
    match serde_json::to_string(&line) {
        Ok(text) => text + "\n",
        Err(error) => {
            let error = QueryError::new(
                ErrorKind::Internal,
                format!("the answer cannot be written: {error}"),
            );
            format!("{}\n", json!({ "protocol": PROTOCOL, "error": error }))
        }
    }
}

/// What a line from a controller says.
#[derive(Debug)]
pub enum Reply<A> {
    /// The answer.
    Answer(A),
    /// There is no answer.
    Error(QueryError),
    /// The controller speaks another version of the protocol. `None`: it is of a release that
    /// reads words.
    OtherVersion(Option<u32>),
    /// The controller speaks this version, but its answer cannot be read: why.
    Unreadable(String),
    /// The line comes from no controller.
    NotAController,
}

/// Reads a reply from its line.
#[must_use]
pub fn read_reply<A: DeserializeOwned>(line: &str) -> Reply<A> {
    #[derive(Deserialize)]
    struct Line<A> {
        protocol: u32,
        answer: Option<A>,
        error: Option<QueryError>,
    }
    match serde_json::from_str(line) {
        Ok(Line { protocol, .. }) if protocol != PROTOCOL => Reply::OtherVersion(Some(protocol)),
        Ok(Line { answer: Some(answer), .. }) => Reply::Answer(answer),
        Ok(Line { error: Some(error), .. }) => Reply::Error(error),
        Ok(_) => Reply::NotAController,
        // The version tells why: an answer of another version may have other fields.
        Err(error) => match serde_json::from_str::<Value>(line) {
            Ok(reply) => {
                match (reply.get("protocol").and_then(Value::as_u64), reply.get("error")) {
                    (Some(protocol), _) if protocol != u64::from(PROTOCOL) => {
                        Reply::OtherVersion(u32::try_from(protocol).ok())
                    }
                    (None, Some(Value::String(_))) => Reply::OtherVersion(None),
                    (Some(_), _) => Reply::Unreadable(error.to_string()),
                    _ => Reply::NotAController,
                }
            }
            Err(_) => Reply::NotAController,
        },
    }
}
