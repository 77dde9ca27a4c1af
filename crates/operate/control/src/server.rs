//! The server: one thread accepts, and another serves each client.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bellrock_query::{Answer, ErrorKind, Operator, QueryError, Request};
use socket2::SockRef;

use crate::message::{MAX_REQUEST_BYTES, is_older, line_for_older, read_request, reply_line};

/// Maximum number of clients at a time. A further client is asked to try again.
pub const MAX_CLIENTS: usize = 8;

/// Time limit for a client's whole request, and for each read of the answer.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time until the acceptor tries again after the system ran out of sockets or threads.
const RETRY: Duration = Duration::from_millis(100);

/// Name of the socket in the directory where it is bound.
const BOUND_NAME: &str = "s";

/// Number of names tried for that directory.
pub(crate) const DIRECTORIES_TRIED: usize = 16;

/// Age at which such a directory counts as left behind by a killed controller.
const DIRECTORY_STALE: Duration = Duration::from_secs(10);

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A controller runs already.
    #[error("a controller runs already: it answers at {}; stop it, or choose another place with --control", .0.display())]
    Alive(PathBuf),
    /// Something else is at the path.
    #[error("{} exists and is not a socket; remove it, or choose another place with --control", .0.display())]
    NotASocket(PathBuf),
    /// The system refuses.
    #[error("no control socket at {}: {error}; choose another place with --control", path.display())]
    Bind {
        /// Path of the socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A control socket that answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    listener: Arc<UnixListener>,
    acceptor: Option<JoinHandle<()>>,
    path: PathBuf,
    /// Device and inode of our socket. Another process's file may be at `path` later.
    identity: Option<(u64, u64)>,
}

impl Server {
    /// Opens the socket at `path`. Only its owner has access, from the first moment on. A socket
    /// that a dead controller left behind is replaced.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn start(path: &Path, operator: Arc<dyn Operator>) -> Result<Self, ServerError> {
        refuse_if_in_use(path)?;
        let failed = |error| ServerError::Bind { path: path.into(), error };
        let listener = Arc::new(bind_privately(path).map_err(failed)?);
        let identity = identity(path);
        let for_acceptor = Arc::clone(&listener);
        let acceptor = thread::Builder::new()
            .name("control".into())
            .spawn(move || accept(&for_acceptor, &operator))
            .map_err(failed)?;
        Ok(Server { listener, acceptor: Some(acceptor), path: path.into(), identity })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Wakes the acceptor, whose accept then fails.
        let woken = SockRef::from(&*self.listener).shutdown(Shutdown::Both).is_ok();
        if let Some(acceptor) = self.acceptor.take()
            && woken
        {
            let _ = acceptor.join();
        }
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

fn refuse_if_in_use(path: &Path) -> Result<(), ServerError> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(found) if !found.file_type().is_socket() => Err(ServerError::NotASocket(path.into())),
        Ok(_) => match UnixStream::connect(path) {
            Ok(_) => Err(ServerError::Alive(path.into())),
            // Nothing listens: the socket was left behind. Any other error, such as a missing
            // permission, appears when binding fails.
            Err(_) => Ok(()),
        },
    }
}

/// Binds in a new directory that only we can enter, removes the access of other users, and then
/// moves the socket to its place. This also replaces a dead controller's socket.
fn bind_privately(path: &Path) -> io::Result<UnixListener> {
    // A socket can be moved to a path that is too long for clients to connect to.
    SocketAddr::from_pathname(path)?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = private_directory(parent)?;
    let bind = || {
        let bound_at = directory.join(BOUND_NAME);
        let listener = UnixListener::bind(&bound_at)?;
        fs::set_permissions(&bound_at, fs::Permissions::from_mode(0o600))?;
        fs::rename(&bound_at, path).inspect_err(|_| drop(fs::remove_file(&bound_at)))?;
        Ok(listener)
    };
    let bound = bind();
    fs::remove_dir(&directory).and(bound)
}

/// Makes a directory that only we can enter. A directory with that name may exist already: a
/// controller was killed before it removed it, and in a container each run has the same process id.
fn private_directory(parent: &Path) -> io::Result<PathBuf> {
    let pid = std::process::id();
    let names = (0..DIRECTORIES_TRIED).map(|n| match n {
        0 => format!(".bell{pid}"),
        n => format!(".bell{pid}-{n}"),
    });
    let make = |directory: &Path| fs::DirBuilder::new().mode(0o700).create(directory);
    let mut taken = io::ErrorKind::AlreadyExists.into();
    for directory in names.map(|name| parent.join(name)) {
        let made = make(&directory).or_else(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists && is_stale(&directory) {
                let _ = fs::remove_file(directory.join(BOUND_NAME));
                fs::remove_dir(&directory)?;
                return make(&directory);
            }
            Err(error)
        });
        match made {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

/// Whether a directory is one of ours that was not used for long.
fn is_stale(directory: &Path) -> bool {
    let Ok(found) = fs::symlink_metadata(directory) else { return false };
    let is_ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    let age = found.modified().ok().and_then(|at| at.elapsed().ok());
    is_ours && age.is_some_and(|age| age >= DIRECTORY_STALE)
}

fn accept(listener: &UnixListener, operator: &Arc<dyn Operator>) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // The listener was shut down.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            Err(_) => {
                thread::sleep(RETRY);
                continue;
            }
        };
        let Some(place) = Place::take(&clients) else {
            let why = format!("{MAX_CLIENTS} other clients are asking; try again");
            let _ = refuse(&stream, QueryError::new(ErrorKind::Busy, why));
            continue;
        };
        let operator = Arc::clone(operator);
        let serve = move || {
            let _place = place;
            // Errors of a client that is gone or slow do not matter.
            let _ = serve(&stream, &*operator);
        };
        if thread::Builder::new().name("control-client".into()).spawn(serve).is_err() {
            thread::sleep(RETRY);
        }
    }
}

/// One of the places for clients that are served at the same time. Dropping it frees the place.
struct Place(Arc<AtomicUsize>);

impl Place {
    /// Takes a place. `None`: all are taken.
    fn take(clients: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Place(Arc::clone(clients));
        (clients.fetch_add(1, Ordering::Relaxed) < MAX_CLIENTS).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads from a client until a deadline.
struct Until<'s> {
    stream: &'s UnixStream,
    deadline: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

fn serve(stream: &UnixStream, operator: &dyn Operator) -> io::Result<()> {
    let asking = Until { stream, deadline: Instant::now() + CLIENT_TIMEOUT };
    let mut line = String::new();
    BufReader::new(asking.take(MAX_REQUEST_BYTES)).read_line(&mut line)?;
    let Some(line) = line.strip_suffix('\n') else {
        let why = format!("a request is a line of at most {MAX_REQUEST_BYTES} bytes");
        return refuse(stream, QueryError::new(ErrorKind::Invalid, why));
    };
    if is_older(line) {
        return send(stream, &line_for_older());
    }
    let reply = read_request(line).and_then(|request| {
        let order = request.is_order().then(|| request.audit_text());
        let reply = answer(operator, request);
        if let Some(order) = order {
            let outcome = reply.as_ref().map_or_else(|error| error.kind.name(), |_| "done");
            tracing::info!(target: "audit", "{} ordered {order}: {outcome}", user(stream));
        }
        reply
    });
    send(stream, &reply_line(&reply))
}

/// Who has connected, for the audit log.
fn user(stream: &UnixStream) -> String {
    match rustix::net::sockopt::socket_peercred(stream) {
        Ok(peer) => format!("user {} (process {})", peer.uid.as_raw(), peer.pid.as_raw_pid()),
        Err(error) => format!("an unknown user ({error})"),
    }
}

/// Answers a request. A panic of the operator is an answer too.
fn answer(operator: &dyn Operator, request: Request) -> Result<Answer, QueryError> {
    let name = request.name();
    let answered = catch_unwind(AssertUnwindSafe(|| operator.answer(request)));
    answered.unwrap_or_else(|_| {
        let why = format!("a fault of the controller: {name} has panicked; its log has the place");
        Err(QueryError::new(ErrorKind::Internal, why))
    })
}

fn refuse(stream: &UnixStream, error: QueryError) -> io::Result<()> {
    send(stream, &reply_line(&Err(error)))
}

fn send(mut stream: &UnixStream, line: &str) -> io::Result<()> {
    stream.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    stream.write_all(line.as_bytes())
}
