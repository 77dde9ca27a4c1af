//! The file of the static entries of a controller that is alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellrock_apps::static_entries::{NotSet, StaticEntries, entry_name, read_stored};
use bellrock_book::file::{self, FileStore, FileStoreError, NamedValues};
use bellrock_book::{COMMITS, EntryStore, MemoryStore};

use super::static_upgrade::{read_first_file, upgraded_entry};

/// Why the file of static entries cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StaticFileError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] FileStoreError),
    /// An entry in it is wrong.
    #[error("{}: entry {name}: {error}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// The entry's name.
        name: String,
        /// What is wrong.
        error: String,
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

/// Reads the static entries of a file, and keeps the file equal to them. A missing file has no
/// entries. The meters from 1 to `reserved_meters` belong to another app.
///
/// # Errors
/// [`StaticFileError`]. The file stays as it is.
pub fn open_static_file(
    path: impl Into<PathBuf>,
    reserved_meters: u32,
) -> Result<StaticEntries, StaticFileError> {
    let path = path.into();
    let values = read(&path, reserved_meters)?;
    Ok(stored(Arc::new(FileStore::create(path, values)?), reserved_meters))
}

/// Reads a file as [`open_static_file`] does, and writes nothing.
///
/// # Errors
/// [`StaticFileError`].
pub fn check_static_file(path: &Path, reserved_meters: u32) -> Result<(), StaticFileError> {
    read(path, reserved_meters).map(drop)
}

/// Returns the time since 1970.
pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Reads the entries of a file, in the form of this release.
fn read(path: &Path, reserved_meters: u32) -> Result<NamedValues, StaticFileError> {
    let mut values = file::read(path, read_first_file)?;
    values.retain(|(stored, _)| stored == COMMITS || entry_name(stored).is_some());
    for (stored, value) in &mut values {
        let Some(name) = entry_name(stored) else { continue };
        let wrong = |error| {
            let (path, name) = (path.to_owned(), name.to_owned());
            StaticFileError::Entry { path, name, error }
        };
        *value = upgraded_entry(stored, value).map_err(wrong)?;
        read_stored(stored, value).map_err(wrong)?;
    }
    let entries = stored(Arc::new(MemoryStore::with_entries(values.clone())), reserved_meters);
    let contradiction = |error| StaticFileError::Contradiction { path: path.to_owned(), error };
    entries.check_all().map_err(contradiction)?;
    Ok(values)
}

fn stored(store: Arc<dyn EntryStore>, reserved_meters: u32) -> StaticEntries {
    let entries = StaticEntries::stored(store, unix_time);
    entries.reserve_meters(reserved_meters);
    entries
}

#[cfg(test)]
mod tests {
    use std::time::Instant;
    use std::{fs, thread};

    use bellrock_api::runtime::EmptyNetwork;
    use bellrock_api::{Dpid, Flow, Match, Port};
    use bellrock_apps::static_entries::{
        StaticChange, StaticEntry, StaticOrder, StaticRefusal, show_stored,
    };
    use bellrock_book::NotOrdered;

    use super::*;
    use crate::wait_until;

    /// What is waited for comes within this time, or never.
    const LIMIT: Duration = Duration::from_secs(60);

    fn directory(name: &str) -> PathBuf {
        let name = format!("bellrock-static-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    /// Opens a file. A thread carries out orders for it, until the time limit.
    fn open(path: &Path) -> StaticEntries {
        let entries = open_static_file(path, 0).unwrap();
        let running = entries.clone();
        thread::spawn(move || {
            wait_until(Instant::now() + LIMIT, running.run_store(EmptyNetwork::network()))
        });
        entries
    }

    fn entry(name: &str, port: u32, end: Option<Duration>) -> StaticEntry {
        StaticEntry {
            name: name.to_owned(),
            owner: "alice".to_owned(),
            dpid: Dpid(0xa1),
            wanted: Flow::new(Match::any().in_port(Port(port))).output(Port(2)).into(),
            end,
            number: 0,
        }
    }

    fn set(
        entries: &StaticEntries,
        set: Vec<StaticEntry>,
    ) -> Result<StaticChange, NotOrdered<StaticRefusal>> {
        let order = StaticOrder { owner: "alice".to_owned(), set, ..StaticOrder::default() };
        wait_until(Instant::now() + LIMIT, entries.order(order)).unwrap()
    }

    fn names(entries: &StaticEntries) -> Vec<(String, u32)> {
        entries.all().into_iter().map(|entry| (entry.name, entry.number)).collect()
    }

    #[test]
    fn entries_come_back_with_their_numbers_and_ends() {
        let place = directory("back");
        let path = place.join("static.json");
        let entries = open(&path);
        let in_an_hour = unix_time() + Duration::from_secs(3600);
        for (name, port, end) in
            [("a", 1, None), ("b", 2, Some(in_an_hour)), ("c", 3, Some(Duration::ZERO))]
        {
            set(&entries, vec![entry(name, port, end)]).unwrap();
        }
        // "c" has ended.
        let again = open(&path);
        assert_eq!(names(&again), [("a".into(), 1), ("b".into(), 2)]);
        let end = again.entry("b").unwrap().end.unwrap();
        assert!(end >= in_an_hour && end <= in_an_hour + Duration::from_secs(1), "{end:?}");
        // Later entries have other numbers.
        set(&again, vec![entry("d", 4, None)]).unwrap();
        assert_eq!(again.entry("d").unwrap().number, 4);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn orders_at_the_same_time_are_all_in_the_file() {
        let place = directory("together");
        let path = place.join("static.json");
        let entries = open(&path);
        thread::scope(|scope| {
            for n in 0..8 {
                let (entries, path) = (&entries, &path);
                scope.spawn(move || {
                    for i in 0..10 {
                        let name = format!("f{n}-{i}");
                        set(entries, vec![entry(&name, n * 10 + i, None)]).unwrap();
                        let text = fs::read_to_string(path).unwrap();
                        assert!(text.contains(&format!("\"entry/{name}\"")), "{name} is saved");
                    }
                });
            }
        });
        assert_eq!(open_static_file(&path, 0).unwrap().all().len(), 80);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_wrong_file_is_an_error_that_says_so_and_stays_as_it_is() {
        let place = directory("wrong");
        let path = place.join("static.json");
        let flow = "number=1 owner=a switch=a1 table=0 priority=1 match=in_port=1 actions=drop";
        let two = format!(
            r#"{{"version": 2, "entries": {{"entry/f": "{flow}", "entry/g": "{}"}}}}"#,
            flow.replace("number=1", "number=2")
        );
        for (text, part) in [
            ("nonsense", "expected ident"),
            (r#"{"version": 3, "entries": {}}"#, "a newer release has written it"),
            (
                r#"{"version": 1, "entries": [{"number": 1, "owner": "a",
                    "entry": {"name": "f", "switch": "a1", "flow": {"match": "x=1"}}}]}"#,
                "entry f: there is no field \"x\"",
            ),
            (
                r#"{"version": 2, "entries": {"entry/f": {"number": 1, "owner": "a",
                    "entry": {"name": "f", "switch": "a1", "flow": {"match": "x=1"}}}}}"#,
                "entry f: there is no field \"x\"",
            ),
            (r#"{"version": 2, "entries": {"entry/f": "number=1 owner=a"}}"#, "entry f: "),
            (&*two, "the entry f is the same flow"),
        ] {
            fs::write(&path, text).unwrap();
            let error = open_static_file(&path, 0).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("static.json"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let nowhere = place.join("missing/static.json");
        let error = open_static_file(nowhere, 0).unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn files_of_earlier_releases_are_read_and_upgraded() {
        let place = directory("earlier");
        let path = place.join("static.json");
        let saved = r#"{"number":7,"owner":"alice",
            "entry":{"name":"a","switch":"00000000000000a1","flow":{"match":"in_port=1","actions":"output:2"}}}"#;
        let first = format!(r#"{{"version":1,"entries":[{saved}]}}"#);
        let second =
            format!(r#"{{"version":2,"entries":{{"entry/a":{saved},"orders":{{"orders":9}}}}}}"#);
        for text in [first, second] {
            fs::write(&path, text).unwrap();
            let entries = open(&path);
            let kept = entries.entry("a").unwrap();
            let Ok(shown) = read_stored("entry/a", &show_stored(&kept)) else { panic!("{kept:?}") };
            assert_eq!((&shown, kept.number), (&kept, 7));
            set(&entries, vec![entry("b", 2, None)]).unwrap();
            let again = open_static_file(&path, 0).unwrap();
            assert_eq!(names(&again), [("a".into(), 7), ("b".into(), 8)]);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains("number=7 owner=alice") && !text.contains("orders"), "{text}");
        }
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn an_order_that_cannot_be_stored_changes_nothing() {
        let place = directory("unstored");
        let entries = open(&place.join("static.json"));
        set(&entries, vec![entry("a", 1, None)]).unwrap();
        let before = entries.all();
        // A directory in the place of the new file.
        fs::create_dir_all(place.join("static.json.new")).unwrap();
        let both = vec![entry("a", 7, None), entry("b", 2, None)];
        let error = set(&entries, both).unwrap_err();
        assert!(matches!(&error, NotOrdered::Unavailable(why) if why.contains("static.json")));
        assert!(error.to_string().starts_with("nothing has changed"), "{error}");
        assert_eq!(entries.all(), before);
        fs::remove_dir_all(place.join("static.json.new")).unwrap();
        set(&entries, vec![entry("b", 2, None)]).unwrap();
        assert_eq!(names(&entries).len(), 2);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_meter_of_another_app_in_a_file_is_an_error() {
        let place = directory("meters");
        let path = place.join("static.json");
        let meter = "number=1 owner=a switch=a1 meter=5 unit=kbps band=10/0/-";
        fs::write(&path, format!(r#"{{"version":2,"entries":{{"entry/m":"{meter}"}}}}"#)).unwrap();
        let error = open_static_file(&path, 100).unwrap_err().to_string();
        assert!(error.contains("give 101 to"), "{error}");
        open_static_file(&path, 4).unwrap();
        fs::remove_dir_all(place).unwrap();
    }
}
