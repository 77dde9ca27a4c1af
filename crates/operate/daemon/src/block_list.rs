//! The file of the app `quarantine`: read at the start, and watched while the controller runs.
//!
//! The kernel reports when a file of the directory is written or replaced (inotify). So a new list
//! is read as soon as it is complete: when its writer has closed it or moved it there. Half a list
//! would let blocked hosts back. If the kernel reports nothing (the name is a link to another
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
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bellrock_apps::quarantine::BlockLists;
use bellrock_config::files::{BlockListError, read_block_list};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tracing::{info, warn};

/// Time between two checks of the file, for changes that the kernel does not report.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Time without a change after which such a file counts as complete.
const AT_REST: Duration = Duration::from_secs(2);

/// Bytes of inotify messages read at once. One message has less than 300.
const EVENTS_BYTES: usize = 4096;

/// Why a block list cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum BlockListFileError {
    /// It cannot be read, or is no block list.
    #[error(transparent)]
    Read(#[from] BlockListError),
    /// It is empty, and perhaps not complete.
    #[error(
        "{}: empty, and perhaps not written completely; to block nobody, write a comment, such as \
         `# nobody`",
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

/// A block list, watched until this is dropped.
#[derive(Debug)]
pub(super) struct BlockListFile {
    end: std::sync::Arc<OwnedFd>,
    watcher: Option<JoinHandle<()>>,
}

impl BlockListFile {
    /// Reads the list into `lists`, and every later list that replaces it. A wrong list is reported
    /// in the log and in `lists`, and changes nothing else.
    ///
    /// # Errors
    /// [`BlockListFileError`], also of the first list.
    pub(super) fn watch(path: &Path, lists: BlockLists) -> Result<Self, BlockListFileError> {
        let failed = |error: io::Error| BlockListFileError::Watch { path: path.into(), error };
        let mut watched = Watched::new(path, lists).map_err(failed)?;
        watched.lists.set_file(read_block_list(path)?);
        let end = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let end = std::sync::Arc::new(end);
        let ended = std::sync::Arc::clone(&end);
        let watcher = thread::Builder::new()
            .name("block-list".into())
            .spawn(move || watched.follow(&ended))
            .map_err(failed)?;
        Ok(BlockListFile { end, watcher: Some(watcher) })
    }
}

impl Drop for BlockListFile {
    fn drop(&mut self) {
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

struct Watched {
    path: PathBuf,
    lists: BlockLists,
    notices: OwnedFd,
    /// A writer has changed the file and not closed it yet.
    being_written: bool,
    /// State of the file that was read last.
    read: Option<Identity>,
    /// State at the last check, and the time since it has been the same.
    seen: (Option<Identity>, Instant),
}

impl Watched {
    fn new(path: &Path, lists: BlockLists) -> io::Result<Self> {
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
        Ok(Watched { path: path.into(), lists, notices, being_written: false, read, seen })
    }

    /// Reads each new list, until `end` becomes readable.
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
        let list = loop {
            let (now, found) = (Instant::now(), identity(&self.path));
            if self.seen.0 != found {
                self.seen = (found, now);
            }
            let is_new = self.read != found && !self.being_written;
            if !(is_complete || is_new && now >= self.seen.1 + AT_REST) {
                return;
            }
            let list = match found {
                Some(Identity { bytes: 0, .. }) if !is_complete => {
                    Err(BlockListFileError::Empty(self.path.clone()))
                }
                _ => read_block_list(&self.path).map_err(Into::into),
            };
            // A writer may have emptied the file before it was read.
            is_complete = self.take_notices();
            if self.being_written {
                return;
            }
            if !is_complete && identity(&self.path) == found {
                self.read = found;
                break list;
            }
        };
        match list {
            Ok(list) => {
                let blocked = list.len();
                self.lists.set_file(list);
                match self.lists.file_problem() {
                    None => {
                        info!("{}: blocked hosts and prefixes: {blocked}", self.path.display());
                    }
                    Some(problem) => warn!("{}: {problem}", self.path.display()),
                }
            }
            Err(error) => {
                for line in error.to_string().lines() {
                    warn!("{line}");
                }
                warn!("{}: the previous list stays in force", self.path.display());
                self.lists.reject_file(error.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn until(what: &str, mut done: impl FnMut() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < PATIENCE, "{what}: it does not happen");
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn blocked(lists: &BlockLists) -> Vec<String> {
        lists.entries().iter().map(|entry| entry.blocked.to_string()).collect()
    }

    #[test]
    fn a_list_is_followed_however_it_is_replaced_and_a_wrong_one_changes_nothing() {
        let place = crate::test_directory("block-list");
        let (path, lists) = (place.join("blocked"), BlockLists::default());
        let missing = BlockListFile::watch(&path, lists.clone()).unwrap_err().to_string();
        assert!(missing.contains("No such file") && missing.contains("empty file"), "{missing}");

        fs::write(&path, "10.0.0.1\n").unwrap();
        let watch = BlockListFile::watch(&path, lists.clone()).unwrap();
        assert_eq!(blocked(&lists), ["10.0.0.1"]);
        fs::write(&path, "10.0.0.2\n").unwrap();
        until("the list that was written", || blocked(&lists) == ["10.0.0.2"]);
        fs::write(place.join("new"), "10.0.0.3\n").unwrap();
        fs::rename(place.join("new"), &path).unwrap();
        until("the list that was moved there", || blocked(&lists) == ["10.0.0.3"]);

        fs::write(&path, "10.0.0.4\nnobody\n").unwrap();
        until("the problem", || lists.file_problem().is_some());
        let problem = lists.file_problem().unwrap();
        assert!(
            problem.starts_with(&format!("{}:2: \"nobody\" is no", path.display())),
            "{problem}"
        );
        assert_eq!(blocked(&lists), ["10.0.0.3"], "the list of before");
        fs::write(&path, "").unwrap();
        until("the empty list", || blocked(&lists).is_empty());
        assert_eq!(lists.file_problem(), None);
        drop(watch);
        fs::remove_dir_all(place).unwrap();
    }

    /// `slow-script > blocked`: the file is empty for several checks, and then half written.
    #[test]
    fn a_list_that_is_being_written_is_not_read_before_it_is_closed() {
        let place = crate::test_directory("block-list-slow");
        let (path, lists) = (place.join("blocked"), BlockLists::default());
        fs::write(&path, "10.0.0.1\n").unwrap();
        let _watch = BlockListFile::watch(&path, lists.clone()).unwrap();
        let mut slow = File::create(&path).unwrap();
        for part in ["10.0.0.2\n", "10.0.0.3\n"] {
            thread::sleep(AT_REST + Duration::from_millis(1500));
            assert_eq!(blocked(&lists), ["10.0.0.1"], "before {part:?}");
            slow.write_all(part.as_bytes()).unwrap();
        }
        drop(slow);
        until("the list that was closed", || blocked(&lists) == ["10.0.0.2", "10.0.0.3"]);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn an_empty_file_is_not_believed_where_nobody_tells_whether_it_is_written() {
        let place = crate::test_directory("block-list-empty");
        let (elsewhere, path) = (place.join("elsewhere"), place.join("blocked"));
        fs::create_dir(&elsewhere).unwrap();
        let target = elsewhere.join("list");
        fs::write(&target, "10.0.0.1\n").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let lists = BlockLists::default();
        let _watch = BlockListFile::watch(&path, lists.clone()).unwrap();
        fs::write(&target, "").unwrap();
        until("the problem", || lists.file_problem().is_some());
        assert!(lists.file_problem().unwrap().contains("such as `# nobody`"));
        assert_eq!(blocked(&lists), ["10.0.0.1"], "the list of before");
        fs::write(&target, "# nobody\n").unwrap();
        until("the list of nobody", || blocked(&lists).is_empty());
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_link_to_elsewhere_is_followed_too() {
        let place = crate::test_directory("block-list-link");
        let (elsewhere, path) = (place.join("elsewhere"), place.join("blocked"));
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("list"), "10.0.0.1\n").unwrap();
        std::os::unix::fs::symlink(elsewhere.join("list"), &path).unwrap();
        let lists = BlockLists::default();
        let _watch = BlockListFile::watch(&path, lists.clone()).unwrap();
        fs::write(elsewhere.join("list"), "10.0.0.22\n").unwrap();
        until("the list behind the link", || blocked(&lists) == ["10.0.0.22"]);
        fs::remove_dir_all(place).unwrap();
    }
}
