//! A file that an app follows: read at the start, and watched while the controller runs.
//!
//! The kernel reports when a file of the directory is written or replaced (inotify). So new content
//! is read as soon as it is complete: when its writer has closed it or moved it there. Half a block
//! list would let blocked hosts back. If the kernel reports nothing (the name is a link to another
//! directory, or the file system is remote), the file is checked once a second, and read when it
//! has changed and then stays the same. In that case an empty file is refused, since most programs
//! empty a file before they write it.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tracing::{info, warn};

/// Time between two checks of the file, for changes that the kernel does not report.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Time without a change after which such a file counts as complete.
const AT_REST: Duration = Duration::from_secs(2);

/// Time without a change after which a file counts as closed, although nobody has reported it.
const LEFT_OPEN: Duration = Duration::from_secs(300);

/// Bytes of inotify messages read at once. One message has less than 300.
const EVENTS_BYTES: usize = 4096;

/// Who follows a file.
pub(super) trait Follower: Clone + Send + 'static {
    /// What the file has.
    type Content: Send + 'static;

    /// Reads the file, and changes nothing.
    ///
    /// # Errors
    /// What is wrong with it, in one line or more.
    fn read(&self, path: &Path) -> Result<Self::Content, String>;

    /// Checks whether it can be put in force, and changes nothing.
    ///
    /// # Errors
    /// Why it cannot.
    fn check(&self, content: &Self::Content) -> Result<(), String>;

    /// Puts what it has in force. Returns what to log.
    ///
    /// # Errors
    /// Why it is not in force.
    fn put(&self, content: Self::Content) -> Result<String, String>;

    /// Hears why the file is wrong. What was in force before stays.
    fn reject(&self, why: String);
}

/// Why a file cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowedFileError {
    /// It cannot be read, or is wrong.
    #[error("{0}")]
    Read(String),
    /// It is empty, and perhaps not complete.
    #[error(
        "{}: empty, and perhaps not written completely; to leave it empty, write a comment, such \
         as `# nobody`",
        .0.display()
    )]
    Empty(PathBuf),
    /// It cannot be watched.
    #[error("{}: it cannot be watched: {error}", path.display())]
    Watch {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// A file, followed until this is dropped.
pub(super) struct FollowedFile<F: Follower> {
    end: Arc<OwnedFd>,
    watcher: Option<JoinHandle<()>>,
    /// Its first content, until that is put in force: the watcher waits for it.
    first: Option<First<F>>,
}

struct First<F: Follower> {
    content: F::Content,
    follower: F,
    in_force: mpsc::Sender<()>,
}

impl<F: Follower> FollowedFile<F> {
    /// Reads the file, and changes nothing yet.
    ///
    /// # Errors
    /// [`FollowedFileError`].
    pub(super) fn open(path: &Path, follower: F) -> Result<Self, FollowedFileError> {
        let failed = |error: io::Error| FollowedFileError::Watch { path: path.into(), error };
        let mut watched = Watched::new(path, follower.clone()).map_err(failed)?;
        let content = follower.read(path).map_err(FollowedFileError::Read)?;
        let wrong = |why| FollowedFileError::Read(format!("{}: {why}", path.display()));
        follower.check(&content).map_err(wrong)?;
        let end = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let end = Arc::new(end);
        let ended = Arc::clone(&end);
        let (in_force, is_in_force) = mpsc::channel();
        let follow = move || {
            if is_in_force.recv().is_ok() {
                watched.follow(&ended);
            }
        };
        let watcher =
            thread::Builder::new().name("followed-file".into()).spawn(follow).map_err(failed)?;
        Ok(FollowedFile {
            end,
            watcher: Some(watcher),
            first: Some(First { content, follower, in_force }),
        })
    }

    /// Puts its content in force, and every later content that replaces it. What is wrong is
    /// reported in the log and to the follower, and changes nothing else.
    pub(super) fn follow(mut self) -> Self {
        if let Some(First { content, follower, in_force }) = self.first.take() {
            if let Err(problem) = follower.put(content) {
                warn!("{problem}");
            }
            // The watcher waits for it.
            let _ = in_force.send(());
        }
        self
    }
}

impl<F: Follower> Drop for FollowedFile<F> {
    fn drop(&mut self) {
        self.first = None;
        if rustix::io::write(&*self.end, &1_u64.to_ne_bytes()).is_ok()
            && let Some(watcher) = self.watcher.take()
        {
            let _ = watcher.join();
        }
    }
}

/// Identifies one state of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    inode: (u64, u64),
    modified: (i64, i64),
    bytes: u64,
}

/// The state of a file. `None`: it does not exist.
fn identity(path: &Path) -> Option<Identity> {
    let found = fs::metadata(path).ok()?;
    Some(Identity {
        inode: (found.dev(), found.ino()),
        modified: (found.mtime(), found.mtime_nsec()),
        bytes: found.len(),
    })
}

struct Watched<F> {
    path: PathBuf,
    follower: F,
    notices: OwnedFd,
    /// A writer has changed the file and not closed it yet.
    being_written: bool,
    /// State of the file that was read last.
    read: Option<Identity>,
    /// State at the last check, and the time since it has been the same.
    seen: (Option<Identity>, Instant),
}

impl<F: Follower> Watched<F> {
    fn new(path: &Path, follower: F) -> io::Result<Self> {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let notices = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let what = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
        inotify::add_watch(&notices, directory, what)?;
        // Before the file is read, so that a change meanwhile causes another read.
        let read = identity(path);
        let seen = (read, Instant::now());
        Ok(Watched { path: path.into(), follower, notices, being_written: false, read, seen })
    }

    /// Reads each new content, until `end` becomes readable.
    fn follow(&mut self, end: &OwnedFd) {
        loop {
            let mut both =
                [PollFd::new(&self.notices, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
            match poll(&mut both, Some(&LOOK_EVERY)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return warn!("{}: watched no more: {error}", self.path.display()),
            }
            if both[1].revents().contains(PollFlags::IN) {
                return;
            }
            let is_complete = self.take_notices();
            self.reload(is_complete);
        }
    }

    /// Whether the kernel has reported since the last call that the file was closed or replaced.
    fn take_notices(&mut self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); EVENTS_BYTES];
        let mut events = inotify::Reader::new(&self.notices, &mut buffer);
        let name = self.path.file_name().map(OsStrExt::as_bytes);
        let mut is_complete = false;
        while let Ok(event) = events.next() {
            let what = event.events();
            if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                // The lost messages may include the close, so the state counts as unknown.
                (self.being_written, is_complete) = (false, false);
            } else if event.file_name().map(|its| its.to_bytes()) == name {
                self.being_written = what.contains(ReadFlags::MODIFY);
                is_complete = !self.being_written;
            }
        }
        is_complete
    }

    fn reload(&mut self, mut is_complete: bool) {
        let content = loop {
            let (now, found) = (Instant::now(), identity(&self.path));
            if self.seen.0 != found {
                self.seen = (found, now);
            }
            // Some writers never report that they have closed it, such as `truncate`.
            self.being_written &= now < self.seen.1 + LEFT_OPEN;
            let is_new = self.read != found && !self.being_written;
            if !(is_complete || is_new && now >= self.seen.1 + AT_REST) {
                return;
            }
            let content = match found {
                Some(Identity { bytes: 0, .. }) if !is_complete => {
                    Err(FollowedFileError::Empty(self.path.clone()))
                }
                _ => self.follower.read(&self.path).map_err(FollowedFileError::Read),
            };
            // A writer may have emptied the file before it was read.
            is_complete = self.take_notices();
            if self.being_written {
                return;
            }
            if !is_complete && identity(&self.path) == found {
                self.read = found;
                break content;
            }
        };
        let name = self.path.display();
        match content.map(|content| self.follower.put(content)) {
            Ok(Ok(done)) => info!("{name}: {done}"),
            Ok(Err(problem)) => warn!("{name}: {problem}"),
            Err(error) => {
                for line in error.to_string().lines() {
                    warn!("{line}");
                }
                warn!("{name}: what was in force before stays");
                self.follower.reject(error.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests;
