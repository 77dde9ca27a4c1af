//! The file of tokens, and when it is read again.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use super::{TokenEntry, TokenError, read};
use crate::limits::TOKEN_FILE_LOOK;

/// A file that has changed so many seconds ago or less is read again.
const SETTLED_SECONDS: u64 = 2;

/// The tokens of a file, which is read again when it has changed.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    state: Mutex<FileState>,
}

#[derive(Debug)]
struct FileState {
    entries: Arc<[TokenEntry]>,
    version: Option<FileVersion>,
    looked_at: Instant,
    /// See [`Given::rereads`](super::Given).
    rereads: u64,
    /// What is wrong in the file, as it was logged.
    wrong: Option<String>,
}

/// Identifies one state of a file: its place, its size, and the time of its last change, which
/// nobody can set (as `cp -p`, rsync and archives set the time of its last modification).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion {
    inode: (u64, u64),
    bytes: u64,
    changed: (i64, i64),
}

impl TokenFile {
    pub(super) fn open(path: &Path, rereads: u64) -> Result<Self, TokenError> {
        let version = settled(path);
        let entries = read(path)?.into();
        let state = FileState { entries, version, looked_at: Instant::now(), rereads, wrong: None };
        Ok(TokenFile { path: path.into(), state: Mutex::new(state) })
    }

    /// The present entries. A file that has become wrong changes nothing; without a file nobody has
    /// a token any more. Both are logged.
    pub(super) fn entries(&self, rereads: u64) -> Arc<[TokenEntry]> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_demanded = state.rereads != rereads;
        if is_demanded || state.looked_at.elapsed() >= TOKEN_FILE_LOOK {
            state.looked_at = Instant::now();
            state.rereads = rereads;
            let version = version(&self.path);
            if is_demanded || version.is_none() || version != state.version {
                state.version = settled(&self.path);
                state.read(&self.path);
            }
        }
        Arc::clone(&state.entries)
    }
}

impl FileState {
    fn read(&mut self, path: &Path) {
        let shown = path.display();
        match read(path) {
            Ok(entries) if *entries == *self.entries => {}
            Ok(entries) => {
                tracing::info!("{shown}: {} tokens", entries.len());
                self.entries = entries.into();
            }
            Err(TokenError::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                if !self.entries.is_empty() {
                    tracing::error!("{shown} is gone; no token is valid until it is there");
                }
                self.entries = Arc::default();
            }
            Err(error) => {
                let error = error.to_string();
                if self.wrong.as_ref() != Some(&error) {
                    tracing::error!("{error}; the earlier tokens stay in force");
                }
                self.wrong = Some(error);
                return;
            }
        }
        self.wrong = None;
    }
}

/// The state of a file, unless it has just changed: times of files are coarse, so it could change
/// again and show the same state.
fn settled(path: &Path) -> Option<FileVersion> {
    let version = version(path)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    let changed = u64::try_from(version.changed.0).ok()?;
    (changed.saturating_add(SETTLED_SECONDS) < now).then_some(version)
}

/// The state of a file. `None`: it does not exist.
fn version(path: &Path) -> Option<FileVersion> {
    let found = fs::metadata(path).ok()?;
    Some(FileVersion {
        inode: (found.dev(), found.ino()),
        bytes: found.len(),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::sync::MutexGuard;
    use std::time::Duration;

    use super::super::{GivenTokens, Scope, TokenBook};
    use super::*;

    fn book(path: &Path) -> TokenBook {
        TokenBook::open(Some(path), GivenTokens::default()).unwrap()
    }

    fn state(book: &TokenBook) -> MutexGuard<'_, FileState> {
        book.file.as_ref().unwrap().state.lock().unwrap()
    }

    #[test]
    fn a_new_token_is_in_force_without_a_restart_and_a_broken_file_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        let (first, token) = TokenEntry::make("first", Scope::Read, None).unwrap();
        first.add_to(&path).unwrap();
        let book = book(&path);
        let again = |changed_at| {
            let file = OpenOptions::new().append(true).open(&path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + changed_at).unwrap();
            let mut state = state(&book);
            state.looked_at = Instant::now().checked_sub(TOKEN_FILE_LOOK).unwrap();
        };
        let (second, other) = TokenEntry::make("second", Scope::Write, None).unwrap();
        second.add_to(&path).unwrap();
        again(Duration::from_secs(1));
        assert_eq!(book.find(&other), Some(second));
        fs::write(&path, "second write\n").unwrap();
        again(Duration::from_secs(2));
        assert!(book.find(&token).is_some() && book.find(&other).is_some());
    }

    #[test]
    fn another_file_of_the_same_time_and_size_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let (path, new) = (directory.path().join("tokens"), directory.path().join("new"));
        let (old, token) = TokenEntry::make("a", Scope::Write, None).unwrap();
        let (other, _) = TokenEntry::make("b", Scope::Write, None).unwrap();
        let time = SystemTime::UNIX_EPOCH;
        let write = |path: &Path, entry: &TokenEntry| {
            fs::write(path, format!("{entry}\n")).unwrap();
            OpenOptions::new().append(true).open(path).unwrap().set_modified(time).unwrap();
        };
        write(&path, &old);
        let (given, in_place) = (GivenTokens::default(), |entry| write(&path, entry));
        let book = TokenBook::open(Some(&path), given.clone()).unwrap();
        let look_again = || {
            let mut state = state(&book);
            state.looked_at = Instant::now().checked_sub(TOKEN_FILE_LOOK).unwrap();
        };
        assert!(book.find(&token).is_some());
        write(&new, &other);
        fs::rename(&new, &path).unwrap();
        look_again();
        assert!(book.find(&token).is_none());
        // In the same place.
        in_place(&old);
        look_again();
        assert!(book.find(&token).is_some());
        // A reload does not wait, and does not look at times.
        in_place(&other);
        state(&book).version = version(&path);
        given.reread_file();
        assert!(book.find(&token).is_none());
    }

    #[test]
    fn a_changed_file_is_read_before_anybody_asks() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        let (first, _) = TokenEntry::make("first", Scope::Read, None).unwrap();
        let (second, _) = TokenEntry::make("second", Scope::Write, None).unwrap();
        first.add_to(&path).unwrap();
        let book = book(&path);
        second.add_to(&path).unwrap();
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let read = async {
            while state(&book).entries.len() < 2 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let limit = Duration::from_secs(60);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let is_read = runtime.block_on(async {
            tokio::time::timeout(limit, futures_lite::future::or(read, book.watch())).await.is_ok()
        });
        assert!(is_read, "it was not read within {limit:?}");
    }

    #[test]
    fn a_file_that_is_removed_ends_all_tokens_until_it_is_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        let (entry, token) = TokenEntry::make("first", Scope::Write, None).unwrap();
        entry.add_to(&path).unwrap();
        let book = book(&path);
        let look_again = || {
            let mut state = state(&book);
            state.looked_at = Instant::now().checked_sub(TOKEN_FILE_LOOK).unwrap();
        };
        assert_eq!(book.find(&token), Some(entry.clone()));
        assert!(book.still_has(&entry));
        fs::remove_file(&path).unwrap();
        look_again();
        assert_eq!(book.find(&token), None);
        assert!(!book.still_has(&entry));
        entry.add_to(&path).unwrap();
        look_again();
        assert!(book.still_has(&entry));
        assert_eq!(book.find(&token), Some(entry));
    }
}
