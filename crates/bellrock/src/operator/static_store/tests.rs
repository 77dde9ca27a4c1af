//! Orders to the store, alone and with other nodes.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bellrock_services::store::{CommitFuture, StoreEvents, StoreLimits};
use futures_lite::stream;
use futures_lite::{StreamExt as _, future};

use super::*;

/// What is waited for comes within this time, or never.
const LIMIT: Duration = Duration::from_secs(60);

fn directory(name: &str) -> PathBuf {
    let name = format!("bellrock-static-{name}-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn entry(name: &str, port: u32, end: Option<u64>) -> app::StaticEntry {
    let end = end.map_or_else(String::new, |end| format!(r#""end": {end},"#));
    let saved = format!(
        r#"{{"number": 0, "owner": "alice", {end} "entry":
            {{"name": "{name}", "switch": "a1", "flow": {{"match": "in_port={port}"}}}}}}"#
    );
    saved::read(&saved, Duration::ZERO, 0).unwrap()
}

fn order(set: Vec<app::StaticEntry>, remove: &[&str]) -> StaticOrder {
    let remove = remove.iter().map(|name| (*name).to_owned()).collect();
    StaticOrder { owner: "alice".to_owned(), set, remove, replace: false }
}

fn set(store: &StaticStore, name: &str, port: u32) -> Result<StaticChange, NotOrdered> {
    store.order(order(vec![entry(name, port, None)], &[]))
}

fn names(entries: &StaticEntries) -> Vec<(String, u32)> {
    entries.snapshot().0.into_iter().map(|entry| (entry.name, entry.number)).collect()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "not within {} s: {what}", LIMIT.as_secs());
        thread::sleep(Duration::from_millis(5));
    }
}

/// A store of several nodes, in memory, with the faults of one far away.
#[derive(Clone, Debug, Default)]
struct FarStore(Arc<Far>);

#[derive(Default)]
struct Far {
    store: Mutex<MemoryStore>,
    /// Maximum number of changes of a commit; 0: none.
    limit: usize,
    /// Happens before the next commit.
    before: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// The answer to the next commit is lost.
    loses_answer: AtomicBool,
}

impl fmt::Debug for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Far")
    }
}

impl FarStore {
    fn inner(&self) -> MemoryStore {
        lock(&self.0.store).clone()
    }

    fn values(&self) -> NamedValues {
        self.inner().with(|all| all.map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// Restores a snapshot.
    fn restore(&self, snapshot: NamedValues) {
        *lock(&self.0.store) = MemoryStore::with_entries(snapshot);
    }

    fn before_next(&self, before: impl FnOnce() + Send + 'static) {
        *lock(&self.0.before) = Some(Box::new(before));
    }

    /// A node of its own.
    fn node(&self) -> (StaticEntries, Arc<StaticStore>) {
        let entries = StaticEntries::default();
        let store = Arc::new(StaticStore::shared(Arc::new(self.clone()), &entries));
        until("the node has read the store", || lock(&store.0.known).is_loaded);
        (entries, store)
    }
}

impl EntryStore for FarStore {
    fn limits(&self) -> StoreLimits {
        let changes = if self.0.limit == 0 { usize::MAX } else { self.0.limit };
        StoreLimits { changes, bytes: usize::MAX }
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        let before = lock(&self.0.before).take();
        if let Some(before) = before {
            before();
        }
        assert!(changes.len() <= self.limits().changes);
        let committed = self.inner().commit(changes);
        if self.0.loses_answer.swap(false, Ordering::Relaxed) {
            let lost = future::ready(Err(NotStored::Unknown("the answer was lost".into())));
            return Box::pin(lost);
        }
        committed
    }

    /// After a snapshot was restored, it is read again.
    fn follow(&self) -> StoreEvents {
        let follow = move |(far, mut events): (FarStore, StoreEvents)| async move {
            loop {
                match events.next().await {
                    Some(event) => return Some((event, (far, events))),
                    None => events = far.inner().follow(),
                }
            }
        };
        Box::pin(stream::unfold((self.clone(), self.inner().follow()), follow))
    }
}

#[test]
fn entries_come_back_with_their_numbers_and_ends() {
    let (place, entries) = (directory("back"), StaticEntries::default());
    let path = place.join("static.json");
    let store = StaticStore::open(&path, &entries).unwrap();
    let ends = unix_seconds();
    for (name, port, end) in [("a", 1, None), ("b", 2, Some(1000)), ("c", 3, Some(0))] {
        store.order(order(vec![entry(name, port, end)], &[])).unwrap();
    }
    // "c" has ended.
    let again = StaticEntries::default();
    let store = StaticStore::open(&path, &again).unwrap();
    assert_eq!(names(&again), [("a".into(), 1), ("b".into(), 2)]);
    let left = again.entry("b").unwrap().end.unwrap().as_secs();
    let passed = unix_seconds() - ends;
    assert!((999 - passed..=1000).contains(&left), "{left}");
    // Later entries have other numbers.
    set(&store, "d", 4).unwrap();
    assert_eq!(again.entry("d").unwrap().number, 4);
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn orders_at_the_same_time_are_all_in_the_file() {
    let (place, entries) = (directory("together"), StaticEntries::default());
    let path = place.join("static.json");
    let store = StaticStore::open(&path, &entries).unwrap();
    thread::scope(|scope| {
        for n in 0..8 {
            let (store, path) = (&store, &path);
            scope.spawn(move || {
                for i in 0..10 {
                    let name = format!("f{n}-{i}");
                    set(store, &name, n * 10 + i).unwrap();
                    let text = fs::read_to_string(path).unwrap();
                    assert!(text.contains(&format!("\"entry/{name}\"")), "{name} is saved");
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

#[test]
fn a_file_of_the_first_version_is_read() {
    let (place, entries) = (directory("first"), StaticEntries::default());
    let path = place.join("static.json");
    let text = r#"{"version":1,"entries":[{"number":7,"owner":"alice",
        "entry":{"name":"a","switch":"00000000000000a1","flow":{"match":"in_port=1","actions":"output:2"}}}]}"#;
    fs::write(&path, text).unwrap();
    let store = StaticStore::open(&path, &entries).unwrap();
    assert_eq!(names(&entries), [("a".into(), 7)]);
    set(&store, "b", 2).unwrap();
    let again = StaticEntries::default();
    StaticStore::open(&path, &again).unwrap();
    assert_eq!(names(&again), [("a".into(), 7), ("b".into(), 8)]);
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn an_order_that_cannot_be_stored_changes_nothing() {
    let (place, entries) = (directory("unstored"), StaticEntries::default());
    let store = StaticStore::open(place.join("static.json"), &entries).unwrap();
    set(&store, "a", 1).unwrap();
    let before = entries.snapshot().0;
    // A directory in the place of the new file.
    fs::create_dir_all(place.join("static.json.new")).unwrap();
    let both = order(vec![entry("a", 7, None), entry("b", 2, None)], &[]);
    let error = store.order(both).unwrap_err();
    assert!(matches!(&error, NotOrdered::Unavailable(why) if why.contains("static.json")));
    assert!(error.to_string().starts_with("nothing has changed"), "{error}");
    assert_eq!(entries.snapshot().0, before);
    fs::remove_dir_all(place.join("static.json.new")).unwrap();
    set(&store, "b", 2).unwrap();
    assert_eq!(names(&entries).len(), 2);
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn nodes_see_each_others_orders_and_never_give_a_number_twice() {
    let far = FarStore::default();
    let nodes = [far.node(), far.node(), far.node()];
    thread::scope(|scope| {
        for (n, (_, store)) in (0..).zip(&nodes) {
            scope.spawn(move || {
                for i in 0..20 {
                    set(store, &format!("f{n}-{i}"), n * 20 + i).unwrap();
                    if i % 4 == 3 {
                        store.order(order(vec![], &[&format!("f{n}-{i}")])).unwrap();
                    }
                }
            });
        }
    });
    // On the way, a node may have 45 entries that are not the last ones.
    until("all nodes have the same entries", || {
        let first = nodes[0].0.snapshot().0;
        first.len() == 45 && nodes.iter().all(|(entries, _)| entries.snapshot().0 == first)
    });
    let entries = names(&nodes[0].0);
    let numbers: BTreeSet<u32> = entries.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers.len(), entries.len(), "{entries:?}");
}

#[test]
fn of_two_orders_of_one_name_at_the_same_moment_one_wins() {
    let far = FarStore::default();
    let ((one, at_one), (two, at_two)) = (far.node(), far.node());
    for (round, (name, before)) in [("new", false), ("known", true)].into_iter().enumerate() {
        let port = 10 * u32::try_from(round).unwrap();
        if before {
            set(&at_one, name, port).unwrap();
            until("both nodes know it", || two.entry(name).is_some());
        }
        let winner = Arc::clone(&at_one);
        far.before_next(move || drop(set(&winner, name, port + 1).unwrap()));
        let lost = set(&at_two, name, port + 2).unwrap_err();
        assert_eq!(lost, NotOrdered::Conflict(name.to_owned()));
        until("both nodes have the winner's", || two.entry(name) == one.entry(name));
        assert_eq!(one.entry(name).unwrap().wanted, entry(name, port + 1, None).wanted);
        // Now the other one knows what it replaces.
        set(&at_two, name, port + 2).unwrap();
    }
}

#[test]
fn an_order_is_checked_again_after_another_one_at_another_node() {
    let far = FarStore::default();
    let ((one, at_one), (two, at_two)) = (far.node(), far.node());
    // Another name: nobody has to order again.
    let first = Arc::clone(&at_one);
    far.before_next(move || drop(set(&first, "a", 1).unwrap()));
    set(&at_two, "b", 2).unwrap();
    until("both have both", || one.snapshot().0.len() == 2 && two.snapshot().0.len() == 2);
    assert_eq!(one.snapshot().0, two.snapshot().0);
    // The same flow of the same switch under another name.
    let first = Arc::clone(&at_one);
    far.before_next(move || drop(set(&first, "c", 3).unwrap()));
    match set(&at_two, "d", 3).unwrap_err() {
        NotOrdered::NotSet(error) => assert!(error.to_string().contains("the entry c"), "{error}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(two.entry("d"), None);
}

#[test]
fn a_lost_answer_is_reported_and_the_truth_is_followed() {
    let far = FarStore::default();
    let (entries, store) = far.node();
    far.0.loses_answer.store(true, Ordering::Relaxed);
    let error = set(&store, "a", 1).unwrap_err();
    assert!(matches!(error, NotOrdered::Unknown(_)), "{error:?}");
    until("it was stored after all", || entries.entry("a").is_some());
    set(&store, "b", 2).unwrap();
    assert_eq!(names(&entries), [("a".into(), 1), ("b".into(), 2)]);
}

#[test]
fn a_large_order_is_stored_in_parts() {
    let far = FarStore(Arc::new(Far { limit: 8, ..Far::default() }));
    let ((entries, store), (others, _at_others)) = (far.node(), far.node());
    let many = |count: u32| (0..count).map(|n| entry(&format!("f{n}"), n, None)).collect();
    let change = store.order(order(many(30), &[])).unwrap();
    assert_eq!(change.set, 30);
    until("the other node has all", || others.snapshot().0.len() == 30);
    assert_eq!(lock(&store.0.known).orders, 5, "7 changes in a commit");
    // The second commit of an order fails: what the first one has stored is there.
    let more = (0..14).map(|n| entry(&format!("g{n:02}"), 100 + n, None)).collect();
    let (strangers, lost) = (far.inner(), far.clone());
    far.before_next(move || {
        lost.before_next(move || {
            let put =
                StoreChange::Put { name: stored_name("g13"), value: "{}".into(), expected: 0 };
            strangers.commit_if(vec![put], |_| Ok::<(), String>(())).unwrap();
        });
    });
    match store.order(order(more, &[])).unwrap_err() {
        NotOrdered::Partly { stored: 7, of: 14, why } => {
            assert_eq!(*why, NotOrdered::Conflict("g13".to_owned()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(entries.snapshot().0.len(), 37);
    until("the other node has them, too", || others.snapshot().0.len() == 37);
    assert_eq!(entries.snapshot().0, others.snapshot().0);
}

#[test]
fn an_entry_that_cannot_be_read_is_not_touched() {
    let strange = r#"{"number":1,"owner":"alice","newer":"form"}"#.to_owned();
    let far = FarStore::default();
    far.restore(vec![(stored_name("a"), strange.clone())]);
    let (entries, store) = far.node();
    assert_eq!(set(&store, "a", 1).unwrap_err(), NotOrdered::Unreadable("a".to_owned()));
    set(&store, "b", 2).unwrap();
    assert_eq!(names(&entries).len(), 1);
    assert!(far.values().contains(&(stored_name("a"), strange)));
}

#[test]
fn entries_that_have_ended_leave_the_store_with_the_next_order() {
    let far = FarStore::default();
    let (_, store) = far.node();
    store.order(order(vec![entry("a", 1, Some(0))], &[])).unwrap();
    assert!(far.values().iter().any(|(name, _)| *name == stored_name("a")));
    set(&store, "b", 2).unwrap();
    let left: Vec<String> = far.values().into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, [stored_name("b"), ORDERS.to_owned()]);
}

#[test]
fn an_old_snapshot_wipes_nothing() {
    let far = FarStore::default();
    let ((one, at_one), (two, _at_two)) = (far.node(), far.node());
    set(&at_one, "kept", 1).unwrap();
    set(&at_one, "removed", 2).unwrap();
    set(&at_one, "moved", 3).unwrap();
    let snapshot = far.values();
    set(&at_one, "moved", 4).unwrap();
    at_one.order(order(vec![], &["removed"])).unwrap();
    set(&at_one, "new", 5).unwrap();
    until("the other node has it", || two.entry("new").is_some());
    far.restore(snapshot);
    let all = ["kept", "moved", "new", "removed"];
    for entries in [&one, &two] {
        until("nothing is lost", || {
            names(entries).iter().map(|(name, _)| &**name).collect::<Vec<_>>() == all
        });
        assert_eq!(entries.entry("moved").unwrap().wanted, entry("moved", 4, None).wanted);
    }
    until("the store has all of it again", || far.values().len() == all.len() + 1);
    // A node that comes then has the same, and orders go on.
    let (three, at_three) = far.node();
    assert_eq!(three.snapshot().0, one.snapshot().0);
    set(&at_three, "later", 6).unwrap();
    until("orders go on", || one.entry("later").is_some() && two.entry("later").is_some());
}
