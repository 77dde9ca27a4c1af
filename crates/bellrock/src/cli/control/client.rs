//! The client of the control socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::Question;
use super::path::{OF_ROOT, OF_UNIT, default_path};
use crate::cli::show::printable;

/// Time limit for each part of the controller's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of an answer, in bytes: a million hosts, at some 130 bytes each, fit.
const MAX_ANSWER_BYTES: u64 = 256 << 20;

/// Why there is no answer, and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error(
        "no controller answers at {}; {}",
        .0.display(),
        other_socket(.0)
    )]
    NotRunning(PathBuf),
    #[error(
        "no permission to open {}: only the user who runs the controller (and root) may ask it; try as that user",
        .0.display()
    )]
    NotAllowed(PathBuf),
    #[error("{}: {error}", path.display())]
    Failed { path: PathBuf, error: io::Error },
    #[error("the controller at {} did not answer within {} s; is it stopped?", .0.display(), TIMEOUT.as_secs())]
    Silent(PathBuf),
    #[error("what answers at {} is no controller of this version", .0.display())]
    NotAController(PathBuf),
    #[error("the controller says: {0}")]
    Refused(String),
}

/// What to do if nothing answers at `asked`.
fn other_socket(asked: &Path) -> String {
    let is_default = default_path().is_ok_and(|default| default == asked);
    let mut places = [OF_ROOT, OF_UNIT].map(Path::new).into_iter();
    match places.find(|place| is_default && *place != asked && place.exists()) {
        Some(place) => format!("there is a socket at {0}: try --control {0}", place.display()),
        None => "start one with `bellrock run`, or name its socket with --control".into(),
    }
}

/// Sends a question to the controller whose control socket is at `path`, and returns the answer.
pub(crate) fn ask(path: &Path, question: &Question) -> Result<Value, AskError> {
    use io::ErrorKind::{
        ConnectionRefused, ConnectionReset, NotFound, PermissionDenied, TimedOut, WouldBlock,
    };
    let text = exchange(path, question).map_err(|error| match error.kind() {
        NotFound | ConnectionRefused => AskError::NotRunning(path.into()),
        PermissionDenied => AskError::NotAllowed(path.into()),
        WouldBlock | TimedOut => AskError::Silent(path.into()),
        // It closed the connection without an answer.
        ConnectionReset => AskError::NotAController(path.into()),
        _ => AskError::Failed { path: path.into(), error },
    })?;
    let mut reply: Value =
        serde_json::from_str(&text).map_err(|_| AskError::NotAController(path.into()))?;
    if let Some(error) = reply.get("error").and_then(Value::as_str) {
        return Err(AskError::Refused(printable(error)));
    }
    reply.get_mut("answer").map(Value::take).ok_or_else(|| AskError::NotAController(path.into()))
}

fn exchange(path: &Path, question: &Question) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    // A server that refuses us closes without reading. Its answer counts, not our error.
    let _ = stream.write_all(question.line().as_bytes());
    let mut text = String::new();
    BufReader::new(stream.take(MAX_ANSWER_BYTES)).read_line(&mut text)?;
    Ok(text)
}
