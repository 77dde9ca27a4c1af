//! The client.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellrock_query::{Page, Query, QueryError, Request, Rows};
use serde::de::DeserializeOwned;

use crate::message::{PROTOCOL, Reply, read_reply, request_line};
use crate::path::{OF_ROOT, OF_UNIT, default_path};

/// Time limit for each part of the controller's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of an answer, in bytes: a page of 10,000 switches with 50 ports each fits.
const MAX_ANSWER_BYTES: u64 = 256 << 20;

/// Why there is no answer, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nothing listens at this path.
    #[error(
        "no controller answers at {}; {}",
        .0.display(),
        other_socket(.0)
    )]
    NotRunning(PathBuf),
    /// The socket belongs to another user.
    #[error(
        "no permission to open {}: only the user who runs the controller (and root) may ask it; try as that user",
        .0.display()
    )]
    NotAllowed(PathBuf),
    /// The system refuses.
    #[error("{}: {error}", path.display())]
    Failed {
        /// Path of the socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The controller did not answer in time.
    #[error("the controller at {} did not answer within {} s; is it stopped?", .0.display(), TIMEOUT.as_secs())]
    Silent(PathBuf),
    /// Something else listens there.
    #[error("what answers at {} is no controller of this version", .0.display())]
    NotAController(PathBuf),
    /// The controller is of another release.
    #[error(
        "the controller at {} speaks {}, and this command version {PROTOCOL}; use the command of the controller's \
         release",
        path.display(),
        protocol.map_or("no version of the control protocol".to_owned(), |n| format!("version {n} of the control protocol"))
    )]
    OtherVersion {
        /// Path of the socket.
        path: PathBuf,
        /// Its version of the protocol.
        protocol: Option<u32>,
    },
    /// The connection was closed before the whole answer was there.
    #[error("the controller at {} closed the connection without an answer; its log says why", .0.display())]
    Closed(PathBuf),
    /// The answer cannot be read.
    #[error("the answer of the controller at {} cannot be read: {error}", path.display())]
    Unreadable {
        /// Path of the socket.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// The request cannot be sent.
    #[error("{0}")]
    Request(QueryError),
    /// The controller says why it does not answer.
    #[error("the controller says: {}", .0.located())]
    Refused(QueryError),
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

/// A client of the controller whose control socket is at a path. Each request has a connection of
/// its own.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
}

impl Client {
    /// A client of the controller at this path.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Client { path: path.into() }
    }

    /// Sends a request, and returns its answer.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn ask<Q: Query>(&self, query: Q) -> Result<Q::Answer, AskError> {
        self.ask_any(&query.into())
    }

    /// Sends any request, and reads its answer as an `A`.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn ask_any<A: DeserializeOwned>(&self, request: &Request) -> Result<A, AskError> {
        use io::ErrorKind::{
            ConnectionRefused, ConnectionReset, NotFound, PermissionDenied, TimedOut, WouldBlock,
        };
        let path = || self.path.clone();
        let request = request_line(request).map_err(AskError::Request)?;
        let line = self.exchange(&request).map_err(|error| match error.kind() {
            NotFound | ConnectionRefused => AskError::NotRunning(path()),
            PermissionDenied => AskError::NotAllowed(path()),
            WouldBlock | TimedOut => AskError::Silent(path()),
            ConnectionReset => AskError::Closed(path()),
            _ => AskError::Failed { path: path(), error },
        })?;
        if !line.ends_with('\n') {
            return Err(AskError::Closed(path()));
        }
        match read_reply(&line) {
            Reply::Answer(answer) => Ok(answer),
            Reply::Error(error) => Err(AskError::Refused(error)),
            Reply::OtherVersion(protocol) => Err(AskError::OtherVersion { path: path(), protocol }),
            Reply::Unreadable(error) => Err(AskError::Unreadable { path: path(), error }),
            Reply::NotAController => Err(AskError::NotAController(path())),
        }
    }

    /// Asks for all pages of a list, and returns all rows. A list that changes meanwhile may miss a
    /// row, or have one twice. `page` makes the request for a page.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn ask_all<Q, T>(&self, page: impl Fn(Page) -> Q) -> Result<Rows<T>, AskError>
    where
        Q: Query<Answer = Rows<T>>,
        T: DeserializeOwned,
    {
        self.ask_all_of(|at| Ok(page(at).into()))
    }

    /// The same for any request, whose rows are read as `T`.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn ask_all_of<T: DeserializeOwned>(
        &self,
        page: impl Fn(Page) -> Result<Request, QueryError>,
    ) -> Result<Rows<T>, AskError> {
        let ask = |skip| self.ask_any(&page(Page::largest(skip)).map_err(AskError::Request)?);
        let mut all: Rows<T> = ask(0)?;
        while all.rows.len() < all.total {
            let mut next = ask(all.rows.len())?;
            if next.rows.is_empty() {
                break;
            }
            all.rows.append(&mut next.rows);
            all.incomplete = all.incomplete.or(next.incomplete);
        }
        Ok(all)
    }

    fn exchange(&self, request: &str) -> io::Result<String> {
        let mut stream = UnixStream::connect(&self.path)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        // A server that refuses us closes without reading. Its answer counts, not our error.
        let _ = stream.write_all(request.as_bytes());
        let mut text = String::new();
        BufReader::new(stream.take(MAX_ANSWER_BYTES)).read_line(&mut text)?;
        Ok(text)
    }
}
