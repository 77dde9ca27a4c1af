//! A store of named entries in a file, for a controller that is alone.
//!
//! ```text
//! {"version":2,"entries":{"entry/wall":{...},"orders":{...}}}
//! ```
//!
//! The file is written as a whole, so it has all entries of before or all of after. A thread of the
//! store writes it: for tasks, which run on workers, where nothing waits for a disk.

pub mod state_file;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use bellrock_api::runtime::{Promise, promise};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    CommitFuture, EntryStore, MemoryStore, NotStored, StoreChange, StoreEvents, StoreLimits,
};

/// Version of the form of the file.
const VERSION: u32 = 2;

/// Maximum size of the file, in bytes: more than all possible entries need.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Names and values of entries.
pub type NamedValues = Vec<(String, String)>;

/// Reads a file of version 1, whose form was that of its app.
pub type ReadFirstVersion = fn(&[u8]) -> Result<NamedValues, serde_json::Error>;

/// Why a file of entries cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileStoreError {
    /// It cannot be read, or a file beside it cannot be written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It is too large.
    #[error("{}: larger than {} MiB, so hardly a file of entries", path.display(), MAX_FILE_BYTES >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not what this program writes.
    #[error("{}: {error}; mend it, or move it away to begin without entries", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// A newer release has written it.
    #[error("{}: a newer release has written it, in the form {version}; this one reads {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its form.
        version: u32,
    },
}

/// A store in a file. Nothing else may write it meanwhile. Its thread ends with it.
#[derive(Debug)]
pub struct FileStore {
    entries: MemoryStore,
    jobs: Sender<WriteJob>,
}

/// Changes, and who waits for them.
type WriteJob = (Vec<StoreChange>, Promise<Result<u64, NotStored>>);

/// Only the version, which decides how the rest is read.
#[derive(Deserialize)]
struct FileVersion {
    version: u32,
}

#[derive(Deserialize)]
struct Content {
    entries: BTreeMap<String, Value>,
}

impl FileStore {
    /// Opens a file with these entries, which [`read`] has read, and brings it up to date. A
    /// directory that cannot be written is an error now, and not at the first commit; a full disk
    /// is none.
    ///
    /// # Errors
    /// [`FileStoreError::Io`].
    pub fn create(path: PathBuf, entries: NamedValues) -> Result<Self, FileStoreError> {
        let entries = MemoryStore::with_entries(entries);
        let text = entries.with(text).map_err(io::Error::from);
        let written = text.and_then(|text| state_file::bring_up_to_date(&path, text.as_bytes()));
        let started = written.and_then(|()| start_writer(entries.clone(), path.clone()));
        match started {
            Ok(jobs) => Ok(FileStore { entries, jobs }),
            Err(error) => Err(FileStoreError::Io { path, error }),
        }
    }
}

/// Starts the thread that commits. It ends with the sender that is returned.
fn start_writer(entries: MemoryStore, path: PathBuf) -> io::Result<Sender<WriteJob>> {
    let (jobs, waiting): (_, Receiver<WriteJob>) = mpsc::channel();
    let run = move || {
        for (changes, answer) in waiting {
            answer.resolve(commit(&entries, &path, changes));
        }
    };
    thread::Builder::new().name("file-store".into()).spawn(run)?;
    Ok(jobs)
}

/// Changes entries, and writes the file.
fn commit(entries: &MemoryStore, path: &Path, changes: Vec<StoreChange>) -> Result<u64, NotStored> {
    let save = |entries: &mut dyn Iterator<Item = (&str, &str)>| {
        write(path, entries).map_err(|error| {
            format!(
                "{} cannot be written: {error}; make its directory writable, and free space on its disk",
                path.display()
            )
        })
    };
    entries.commit_if(changes, save)
}

impl EntryStore for FileStore {
    fn limits(&self) -> StoreLimits {
        self.entries.limits()
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        let (answer, answered) = promise();
        let ended = || NotStored::Unavailable("the thread that writes the file has ended".into());
        if self.jobs.send((changes, answer)).is_err() {
            return Box::pin(std::future::ready(Err(ended())));
        }
        Box::pin(async move { answered.await.unwrap_or_else(|| Err(ended())) })
    }

    fn follow(&self) -> StoreEvents {
        self.entries.follow()
    }
}

/// Reads the entries of a file. A missing one has none. `first` reads a file of version 1.
///
/// # Errors
/// The file cannot be read, or is none of this program's.
pub fn read(path: &Path, first: ReadFirstVersion) -> Result<NamedValues, FileStoreError> {
    let path_buf = || path.to_owned();
    let io = |error| FileStoreError::Io { path: path_buf(), error };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(error)),
        Ok(metadata) if metadata.len() > MAX_FILE_BYTES => {
            return Err(FileStoreError::TooLarge { path: path_buf() });
        }
        Ok(_) => {}
    }
    let bytes = fs::read(path).map_err(io)?;
    let form = |error| FileStoreError::Form { path: path_buf(), error };
    match serde_json::from_slice(&bytes).map_err(form)? {
        FileVersion { version: 1 } => first(&bytes).map_err(form),
        FileVersion { version: VERSION } => {
            let Content { entries } = serde_json::from_slice(&bytes).map_err(form)?;
            Ok(entries.into_iter().map(|(name, value)| (name, value.to_string())).collect())
        }
        FileVersion { version } => Err(FileStoreError::Version { path: path_buf(), version }),
    }
}

fn write(path: &Path, entries: &mut dyn Iterator<Item = (&str, &str)>) -> io::Result<()> {
    state_file::replace(path, text(entries)?.as_bytes())
}

fn text(entries: &mut dyn Iterator<Item = (&str, &str)>) -> serde_json::Result<String> {
    let mut text = format!("{{\"version\":{VERSION},\"entries\":{{");
    for (number, (name, value)) in entries.enumerate() {
        if number > 0 {
            text.push(',');
        }
        text.push_str(&serde_json::to_string(name)?);
        text.push(':');
        text.push_str(value);
    }
    text.push_str("}}\n");
    Ok(text)
}
