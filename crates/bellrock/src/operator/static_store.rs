//! The file that keeps static entries over a restart of the controller.
//!
//! It is written as a whole, so it has all entries of before or all of after. Orders that come while
//! it is written share the next write.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellrock_apps::static_entries::{self as app, NotSet, StaticEntries, StaticOrder};
use bellrock_query::{QueryError, StaticEntry, SwitchRef};
use serde::{Deserialize, Serialize};

use super::static_forms::{self, Shown};
use crate::state_file;

/// Version of the form of the file.
const VERSION: u32 = 1;

/// Maximum size of the file, in bytes: more than all possible entries need.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// The file of the static entries.
#[derive(Debug)]
pub struct StaticStore {
    path: PathBuf,
    entries: StaticEntries,
    writing: Mutex<Writing>,
    /// Wakes who waits for a write.
    written: Condvar,
}

/// Which changes of the entries are in the file.
#[derive(Debug, Default)]
struct Writing {
    /// Number of changes that the file includes.
    saved: u64,
    is_writing: bool,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StaticStoreError {
    /// It cannot be read, or a file beside it cannot be written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It is too large.
    #[error("{}: larger than {} MiB, so hardly a file of static entries", path.display(), MAX_FILE_BYTES >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not what this program writes.
    #[error("{}: {error}; mend it, or move it away to begin without static entries", path.display())]
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
    /// An entry in it is wrong.
    #[error("{}: entry {name}: {error}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// The entry's name.
        name: String,
        /// What is wrong.
        error: QueryError,
    },
    /// Two entries in it contradict each other.
    #[error("{}: {error}", path.display())]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: NotSet,
    },
}

/// The content of the file.
#[derive(Deserialize, Serialize)]
struct Content {
    version: u32,
    entries: Vec<SavedEntry>,
}

/// Only the version, which decides how the rest is read.
#[derive(Deserialize)]
struct ContentVersion {
    version: u32,
}

#[derive(Deserialize, Serialize)]
struct SavedEntry {
    number: u32,
    owner: String,
    /// When it ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<u64>,
    /// Without its time to live.
    entry: StaticEntry,
}

impl StaticStore {
    /// Reads the entries of this file, and keeps the file equal to them. A missing file has no
    /// entries. Call it before the controller starts.
    ///
    /// # Errors
    /// [`StaticStoreError`]. Then there are no entries.
    pub fn open(
        path: impl Into<PathBuf>,
        entries: &StaticEntries,
    ) -> Result<Self, StaticStoreError> {
        let path = path.into();
        load(&path, entries)?;
        let store = StaticStore {
            path,
            entries: entries.clone(),
            writing: Mutex::default(),
            written: Condvar::new(),
        };
        // A directory that cannot be written is an error now, and not at the first order.
        let write = store.write(Duration::ZERO);
        write.map_err(|error| StaticStoreError::Io { path: store.path.clone(), error })?;
        Ok(store)
    }

    /// Reads the entries of this file into `entries` as [`open`](Self::open) does, and writes nothing.
    ///
    /// # Errors
    /// [`StaticStoreError`].
    pub fn check(path: &Path, entries: &StaticEntries) -> Result<(), StaticStoreError> {
        load(path, entries)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns when the file has all entries of now.
    ///
    /// # Errors
    /// The system's error. The file is as before.
    pub(super) fn save(&self, now: Duration) -> io::Result<()> {
        let wanted = self.entries.changes();
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        while writing.saved < wanted {
            if writing.is_writing {
                writing = self.written.wait(writing).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            writing.is_writing = true;
            drop(writing);
            let result = self.write(now);
            writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            writing.is_writing = false;
            self.written.notify_all();
            writing.saved = writing.saved.max(result?);
        }
        Ok(())
    }

    /// Writes all entries. Returns the number of changes that made them.
    fn write(&self, now: Duration) -> io::Result<u64> {
        let (entries, changes) = self.entries.snapshot();
        let unix = unix_seconds();
        let saved = entries.into_iter().map(|entry| SavedEntry::of(entry, now, unix)).collect();
        let mut bytes = serde_json::to_vec(&Content { version: VERSION, entries: saved })?;
        bytes.push(b'\n');
        state_file::replace(&self.path, &bytes)?;
        Ok(changes)
    }
}

impl SavedEntry {
    fn of(entry: app::StaticEntry, now: Duration, unix: u64) -> Self {
        let Shown { flow, group, meter } = static_forms::show(&entry.wanted);
        let switch = SwitchRef::Dpid(entry.dpid);
        SavedEntry {
            number: entry.number,
            owner: entry.owner,
            end: entry.end.map(|end| unix + end.saturating_sub(now).as_secs()),
            entry: StaticEntry { name: entry.name, switch, ttl_seconds: None, flow, group, meter },
        }
    }

    fn restore(self, unix: u64) -> Result<app::StaticEntry, QueryError> {
        let wanted = static_forms::read(&self.entry)?;
        let SwitchRef::Dpid(dpid) = self.entry.switch else {
            let why = "the switch is not a datapath id";
            return Err(QueryError::invalid("switch", why));
        };
        Ok(app::StaticEntry {
            name: self.entry.name,
            owner: self.owner,
            dpid,
            wanted,
            // The controller's time begins with its start.
            end: self.end.map(|end| Duration::from_secs(end.saturating_sub(unix))),
            number: self.number,
        })
    }
}

/// Puts the entries of a file into `entries`, except those that have ended and are in no use.
fn load(path: &Path, entries: &StaticEntries) -> Result<(), StaticStoreError> {
    let unix = unix_seconds();
    let mut by_owner = BTreeMap::<String, Vec<app::StaticEntry>>::new();
    for saved in read(path)? {
        let name = saved.entry.name.clone();
        let entry = saved.restore(unix).map_err(|error| StaticStoreError::Entry {
            path: path.to_owned(),
            name,
            error,
        })?;
        by_owner.entry(entry.owner.clone()).or_default().push(entry);
    }
    let orders = by_owner.into_iter();
    let orders = orders.map(|(owner, set)| StaticOrder { owner, set, ..StaticOrder::default() });
    entries
        .restore(orders)
        .map_err(|error| StaticStoreError::Contradiction { path: path.to_owned(), error })
}

fn read(path: &Path) -> Result<Vec<SavedEntry>, StaticStoreError> {
    let path_buf = || path.to_owned();
    let io = |error| StaticStoreError::Io { path: path_buf(), error };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(error)),
        Ok(metadata) if metadata.len() > MAX_FILE_BYTES => {
            return Err(StaticStoreError::TooLarge { path: path_buf() });
        }
        Ok(_) => {}
    }
    let bytes = fs::read(path).map_err(io)?;
    let form = |error| StaticStoreError::Form { path: path_buf(), error };
    let ContentVersion { version } = serde_json::from_slice(&bytes).map_err(form)?;
    if version != VERSION {
        return Err(StaticStoreError::Version { path: path_buf(), version });
    }
    let content: Content = serde_json::from_slice(&bytes).map_err(form)?;
    Ok(content.entries)
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn directory(name: &str) -> PathBuf {
        let name = format!("bellrock-static-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn entry(name: &str, port: u32, end: Option<u64>) -> app::StaticEntry {
        let flow = format!(
            r#"{{"name": "{name}", "switch": "a1", "flow": {{"match": "in_port={port}"}}}}"#
        );
        let saved = SavedEntry {
            number: 0,
            owner: "alice".to_owned(),
            end,
            entry: serde_json::from_str(&flow).unwrap(),
        };
        saved.restore(0).unwrap()
    }

    fn set(entries: &StaticEntries, entry: app::StaticEntry) {
        let owner = entry.owner.clone();
        let order = StaticOrder { owner, set: vec![entry], ..StaticOrder::default() };
        entries.change(order, Duration::ZERO).unwrap();
    }

    #[test]
    fn entries_come_back_with_their_numbers_and_ends() {
        let (place, entries) = (directory("back"), StaticEntries::default());
        let path = place.join("static.json");
        let store = StaticStore::open(&path, &entries).unwrap();
        for (name, port, end) in [("a", 1, None), ("b", 2, Some(1000)), ("c", 3, Some(1))] {
            set(&entries, entry(name, port, end));
        }
        // "c" ends as soon as it is saved.
        store.save(Duration::from_secs(1)).unwrap();
        let again = StaticEntries::default();
        StaticStore::open(&path, &again).unwrap();
        let (back, _) = again.snapshot();
        let names: Vec<_> = back.iter().map(|entry| (&*entry.name, entry.number)).collect();
        assert_eq!(names, [("a", 1), ("b", 2)]);
        let left = back[1].end.unwrap().as_secs();
        assert!((990..=1000).contains(&left), "{left}");
        // Later entries have other numbers.
        set(&again, entry("d", 4, None));
        assert_eq!(again.snapshot().0[2].number, 4);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn orders_at_the_same_time_are_all_in_the_file() {
        let (place, entries) = (directory("together"), StaticEntries::default());
        let path = place.join("static.json");
        let store = StaticStore::open(&path, &entries).unwrap();
        thread::scope(|scope| {
            for n in 0..8 {
                let (entries, store, path) = (&entries, &store, &path);
                scope.spawn(move || {
                    for i in 0..10 {
                        let name = format!("f{n}-{i}");
                        set(entries, entry(&name, n * 10 + i, None));
                        store.save(Duration::ZERO).unwrap();
                        let text = fs::read_to_string(path).unwrap();
                        assert!(text.contains(&format!("\"{name}\"")), "{name} is saved");
                    }
                });
            }
        });
        let again = StaticEntries::default();
        StaticStore::open(&path, &again).unwrap();
        assert_eq!(again.snapshot().0.len(), 80);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_wrong_file_is_an_error_that_says_so_and_stays_as_it_is() {
        let place = directory("wrong");
        let path = place.join("static.json");
        for (text, part) in [
            ("nonsense", "expected ident"),
            (r#"{"version": 2, "entries": []}"#, "a newer release has written it"),
            (
                r#"{"version": 1, "entries": [{"number": 1, "owner": "a",
                    "entry": {"name": "f", "switch": "a1", "flow": {"match": "x=1"}}}]}"#,
                "entry f: there is no field \"x\"",
            ),
        ] {
            fs::write(&path, text).unwrap();
            let entries = StaticEntries::default();
            let error = StaticStore::open(&path, &entries).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("static.json"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert!(entries.snapshot().0.is_empty());
        }
        let nowhere = place.join("missing/static.json");
        let error = StaticStore::open(nowhere, &StaticEntries::default()).unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
        fs::remove_dir_all(place).unwrap();
    }
}
