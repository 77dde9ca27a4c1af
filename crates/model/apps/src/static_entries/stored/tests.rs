//! Orders to the store, alone and with other nodes.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bellrock_api::openflow::GroupType;
use bellrock_api::runtime::EmptyNetwork;
use bellrock_api::{BucketEntry, Dpid, Flow, GroupEntry, Match, Port};
use bellrock_book::{
    COMMITS, CommitFuture, EntryStore, MemoryStore, NotStored, StoreChange, StoreEvents,
    StoreLimits,
};
use bellrock_services::desired::DesiredEntry;
use futures_lite::{StreamExt as _, future, stream};

use super::super::index::Place;
use super::super::order::{NotSet, NotSetReason};
use super::*;

/// Maximum number of polls until there is an answer: nothing waits for time here.
const MAX_POLLS: usize = 1000;

type Ordered = Result<StaticChange, NotOrdered<StaticRefusal>>;
type NamedValues = Vec<(String, String)>;

/// The clock of all tests, in seconds since 1970.
static NOW: AtomicU64 = AtomicU64::new(1_767_225_600);

fn now() -> Duration {
    Duration::from_secs(NOW.load(Ordering::Relaxed))
}

fn poll<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn entry(name: &str, wanted: impl Into<DesiredEntry>) -> StaticEntry {
    StaticEntry {
        name: name.to_owned(),
        owner: "alice".to_owned(),
        dpid: Dpid(0xa1),
        wanted: wanted.into(),
        end: None,
        number: 0,
    }
}

fn flow(name: &str, port: u32) -> StaticEntry {
    entry(name, Flow::new(Match::any().in_port(Port(port))).output(Port(9)))
}

fn order(set: Vec<StaticEntry>, remove: &[&str]) -> StaticOrder {
    let remove = remove.iter().map(|name| (*name).to_owned()).collect();
    StaticOrder { owner: "alice".to_owned(), set, remove, replace: false }
}

fn names(entries: &StaticEntries) -> Vec<(String, u32)> {
    entries.all().into_iter().map(|entry| (entry.name, entry.number)).collect()
}

/// A controller: its entries, and the task of their book. Clones are the same.
#[derive(Clone)]
struct Node {
    entries: StaticEntries,
    task: Arc<Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

impl Node {
    fn new(entries: StaticEntries) -> Self {
        let task = Box::pin(entries.clone().run_store(EmptyNetwork::network()));
        Node { entries, task: Arc::new(Mutex::new(task)) }
    }

    fn step(&self) {
        assert_eq!(poll(self.task.lock().unwrap().as_mut()), None, "it runs with the controller");
    }

    fn order(&self, order: StaticOrder) -> Ordered {
        let mut ordered = Box::pin(self.entries.order(order));
        for _ in 0..MAX_POLLS {
            if let Some(answer) = poll(ordered.as_mut()) {
                return answer;
            }
            self.step();
        }
        panic!("no answer")
    }

    fn set(&self, name: &str, port: u32) -> Ordered {
        self.order(order(vec![flow(name, port)], &[]))
    }
}

/// Lets nodes follow the store.
fn follow(nodes: &[&Node]) {
    (0..20).for_each(|_| nodes.iter().for_each(|node| node.step()));
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
    fn of_limit(limit: usize) -> Self {
        FarStore(Arc::new(Far { limit, ..Far::default() }))
    }

    fn inner(&self) -> MemoryStore {
        self.0.store.lock().unwrap().clone()
    }

    /// The entries, without those that the book keeps for itself.
    fn values(&self) -> NamedValues {
        let is_entry = |(name, _): &(&str, &str)| entry_name(name).is_some();
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        self.inner().with(|all| all.filter(is_entry).map(owned).collect())
    }

    fn snapshot(&self) -> NamedValues {
        self.inner().with(|all| all.map(|(name, value)| (name.into(), value.into())).collect())
    }

    fn restore(&self, snapshot: NamedValues) {
        *self.0.store.lock().unwrap() = MemoryStore::with_entries(snapshot);
    }

    fn before_next(&self, before: impl FnOnce() + Send + 'static) {
        *self.0.before.lock().unwrap() = Some(Box::new(before));
    }

    /// A node of its own.
    fn node(&self, name: &str) -> Node {
        let store = Arc::new(self.clone());
        let node = Node::new(StaticEntries::shared(store, name.to_owned(), now));
        node.step();
        node
    }
}

impl EntryStore for FarStore {
    fn limits(&self) -> StoreLimits {
        let changes = if self.0.limit == 0 { usize::MAX } else { self.0.limit };
        StoreLimits { changes, bytes: usize::MAX }
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        let before = self.0.before.lock().unwrap().take();
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
fn nodes_see_each_others_orders_and_never_give_a_number_twice() {
    let far = FarStore::default();
    let nodes = ["a", "b", "c"].map(|name| far.node(name));
    for i in 0..20 {
        for (n, node) in (0..).zip(&nodes) {
            node.set(&format!("f{n}-{i}"), n * 20 + i).unwrap();
            if i % 4 == 3 {
                node.order(order(vec![], &[&format!("f{n}-{i}")])).unwrap();
            }
        }
    }
    follow(&nodes.each_ref());
    let all = nodes[0].entries.all();
    assert_eq!(all.len(), 45);
    assert!(nodes.iter().all(|node| node.entries.all() == all));
    let numbers: BTreeSet<u32> = all.iter().map(|entry| entry.number).collect();
    assert_eq!(numbers.len(), all.len(), "{all:?}");
}

#[test]
fn orders_that_wait_are_checked_against_each_other_and_stored_together() {
    let far = FarStore::default();
    let node = far.node("a");
    let orders = [("a", 1), ("b", 2), ("c", 2), ("a", 3)];
    let place = |(name, port)| Box::pin(node.entries.order(order(vec![flow(name, port)], &[])));
    let mut waiting: Vec<_> = orders.map(place).into();
    waiting.iter_mut().for_each(|order| assert_eq!(poll(order.as_mut()), None));
    node.step();
    let answers: Vec<_> = waiting.iter_mut().map(|order| poll(order.as_mut()).unwrap()).collect();
    let refused = answers[2].as_ref().unwrap_err().to_string();
    assert!(refused.contains("the entry b is the same flow"), "{refused}");
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 3);
    assert_eq!(names(&node.entries), [("a".into(), 1), ("b".into(), 2)]);
    assert_eq!(node.entries.entry("a").unwrap().wanted, flow("a", 3).wanted);
    let commits = far.snapshot().into_iter().find(|(name, _)| name == COMMITS).unwrap();
    assert_eq!(commits.1, "\"count=1\"");
}

#[test]
fn of_two_orders_of_one_name_at_the_same_moment_one_wins() {
    let far = FarStore::default();
    let (one, two) = (far.node("a"), far.node("b"));
    for (round, (name, before)) in [("new", false), ("known", true)].into_iter().enumerate() {
        let port = 10 * u32::try_from(round).unwrap();
        if before {
            one.set(name, port).unwrap();
            follow(&[&two]);
        }
        let winner = one.clone();
        far.before_next(move || drop(winner.set(name, port + 1).unwrap()));
        let lost = two.set(name, port + 2).unwrap_err();
        assert_eq!(lost, NotOrdered::Refused(StaticRefusal::Conflict(name.to_owned())));
        assert_eq!(one.entries.entry(name).unwrap().wanted, flow(name, port + 1).wanted);
        assert_eq!(two.entries.entry(name), one.entries.entry(name));
        // Now the other one knows what it replaces.
        two.set(name, port + 2).unwrap();
        follow(&[&one]);
    }
}

#[test]
fn an_order_is_checked_again_after_another_one_at_another_node() {
    let far = FarStore::default();
    let (one, two) = (far.node("a"), far.node("b"));
    // Another name: nobody has to order again.
    let first = one.clone();
    far.before_next(move || drop(first.set("a", 1).unwrap()));
    two.set("b", 2).unwrap();
    follow(&[&one, &two]);
    assert_eq!(names(&one.entries), [("a".into(), 1), ("b".into(), 2)]);
    assert_eq!(two.entries.all(), one.entries.all());
    // The same flow of the same switch under another name.
    let first = one.clone();
    far.before_next(move || drop(first.set("c", 3).unwrap()));
    match two.set("d", 3).unwrap_err() {
        NotOrdered::Refused(StaticRefusal::NotSet(error)) => {
            assert!(error.to_string().contains("the entry c"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(two.entries.entry("d"), None);
}

#[test]
fn a_lost_answer_is_reported_and_the_truth_is_followed() {
    let far = FarStore::default();
    let node = far.node("a");
    far.0.loses_answer.store(true, Ordering::Relaxed);
    let error = node.set("a", 1).unwrap_err();
    assert!(matches!(error, NotOrdered::Unknown(_)), "{error:?}");
    follow(&[&node]);
    assert!(node.entries.entry("a").is_some(), "it was stored after all");
    node.set("b", 2).unwrap();
    assert_eq!(names(&node.entries), [("a".into(), 1), ("b".into(), 2)]);
}

#[test]
fn a_large_order_is_stored_in_parts_with_groups_first() {
    let far = FarStore::of_limit(8);
    let (one, two) = (far.node("a"), far.node("b"));
    let group = |name: &str, id| {
        entry(name, GroupEntry::new(id, GroupType::All).bucket(BucketEntry::of(&[])))
    };
    let mut many: Vec<_> = (0..28).map(|n| flow(&format!("f{n}"), n)).collect();
    many.extend([group("g1", 1), group("g2", 2)]);
    let (seen, looked) = (Arc::<Mutex<Vec<usize>>>::default(), far.clone());
    let (kept, after) = (Arc::clone(&seen), far.clone());
    far.before_next(move || {
        after.before_next(move || {
            let values = looked.values();
            let groups = values.iter().filter(|(_, value)| value.contains(" group="));
            kept.lock().unwrap().extend([values.len(), groups.count()]);
        });
    });
    assert_eq!(one.order(order(many, &[])).unwrap().set, 30);
    assert_eq!(*seen.lock().unwrap(), [7, 2], "the first part has both groups");
    follow(&[&two]);
    assert_eq!((two.entries.all().len(), two.entries.all()), (30, one.entries.all()));
    let remove: Vec<String> = (0..28).map(|n| format!("f{n}")).collect();
    let remove: Vec<&str> = remove.iter().map(String::as_str).collect();
    assert_eq!(two.order(order(vec![], &remove)).unwrap().removed, 28);
}

/// Calls `look` with what is stored before each commit.
fn look_before_commits(far: &FarStore, look: impl Fn(NamedValues) + Clone + Send + 'static) {
    let again = far.clone();
    far.before_next(move || {
        look(again.values());
        look_before_commits(&again, look);
    });
}

#[test]
fn no_part_of_a_large_order_has_two_entries_at_the_same_place() {
    let far = FarStore::of_limit(8);
    let (one, two) = (far.node("a"), far.node("b"));
    let group = |name: &str, id| {
        entry(name, GroupEntry::new(id, GroupType::All).bucket(BucketEntry::of(&[])))
    };
    let row = |range: std::ops::Range<u32>, first| -> Vec<StaticEntry> {
        range.map(|n| flow(&format!("f{n:02}"), n + first)).collect()
    };
    let mut all = row(0..20, 1);
    all.extend([group("g1", 1), flow("x", 30), flow("y", 31)]);
    all.extend((40..50).map(|n| flow(&format!("a{n}"), n)));
    one.order(order(all, &[])).unwrap();
    let parts = Arc::<AtomicU64>::default();
    let count = Arc::clone(&parts);
    look_before_commits(&far, move |values| {
        let read = |(name, value): &(String, String)| read_stored(name, value).unwrap();
        let entries: Vec<StaticEntry> = values.iter().map(read).collect();
        let places: HashSet<Place> = entries.iter().map(|it| Place::of(&it.wanted)).collect();
        assert_eq!(places.len(), entries.len(), "{entries:?}");
        assert!(places.contains(&Place::Group(1)), "flows may use it");
        count.fetch_add(1, Ordering::Relaxed);
    });
    // Each flow of the row takes the place of the next one, x and y exchange theirs, and the group
    // and ten flows get other names.
    let mut moved = row(0..20, 2);
    moved.extend([group("h1", 1), flow("x", 31), flow("y", 30)]);
    moved.extend((40..50).map(|n| flow(&format!("z{n}"), n)));
    let removed: Vec<String> = (40..50).map(|n| format!("a{n}")).collect();
    let mut remove: Vec<&str> = removed.iter().map(String::as_str).collect();
    remove.push("g1");
    let change = one.order(order(moved, &remove)).unwrap();
    assert_eq!((change.set, change.removed), (33, 11));
    assert!(parts.load(Ordering::Relaxed) >= 7, "it was stored in parts");
    follow(&[&two]);
    assert_eq!(two.entries.all(), one.entries.all());

    // Eight flows that exchange their places do not fit into a commit.
    let circle = (0..8).map(|n| flow(&format!("f{n:02}"), 2 + (n + 1) % 8)).collect();
    let before = far.values();
    let error = two.order(order(circle, &[])).unwrap_err();
    assert!(matches!(error, NotOrdered::Unavailable(_)), "{error:?}");
    assert_eq!(far.values(), before, "nothing has changed: {error}");
}

/// Another node orders between two parts of a large order.
#[test]
fn a_large_order_goes_on_after_another_one_in_between() {
    let far = FarStore::of_limit(8);
    let (one, two) = (far.node("a"), far.node("b"));
    one.set("old", 99).unwrap();
    follow(&[&two]);
    let between = |name: &'static str, port| {
        let (far, two) = (far.clone(), two.clone());
        let after = far.clone();
        far.before_next(move || after.before_next(move || drop(two.set(name, port).unwrap())));
    };
    between("other", 50);
    let many = (0..14).map(|n| flow(&format!("f{n:02}"), n)).collect();
    let change = one.order(order(many, &["old"])).unwrap();
    assert_eq!((change.set, change.unchanged, change.removed), (14, 0, 1));
    follow(&[&one, &two]);
    assert_eq!(one.entries.all().len(), 15);
    assert_eq!(one.entries.all(), two.entries.all());

    // Now that one changes an entry of it that is not stored yet.
    between("g13", 60);
    let more = || (0..14).map(|n| flow(&format!("g{n:02}"), 100 + n)).collect();
    match one.order(order(more(), &[])).unwrap_err() {
        NotOrdered::Partly { stored: 7, of: 14, why } => {
            let conflict = StaticRefusal::Conflict("g13".to_owned());
            assert_eq!(*why, NotOrdered::Refused(conflict));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(one.entries.all().len(), 15 + 7 + 1);
    // The same order again carries out the rest.
    let change = one.order(order(more(), &[])).unwrap();
    assert_eq!((change.set, change.unchanged), (7, 7));
    follow(&[&two]);
    assert_eq!(one.entries.all(), two.entries.all());
}

/// Nothing can be checked against an entry that nobody can read.
#[test]
fn an_entry_that_cannot_be_read_refuses_orders_and_stays() {
    let strange = "\"number=1 owner=alice newer=form\"".to_owned();
    let far = FarStore::default();
    far.restore(vec![(stored_name("a"), strange.clone())]);
    let node = far.node("a");
    let error = node.set("b", 1).unwrap_err().to_string();
    assert!(
        error.contains("nothing has changed: the entry entry/a is of a newer release"),
        "{error}"
    );
    assert_eq!(far.values(), [(stored_name("a"), strange)]);
}

#[test]
fn an_entry_of_an_earlier_release_that_counts_orders_is_left_alone() {
    let far = FarStore::default();
    far.restore(vec![("orders".to_owned(), "{\"orders\":7}".to_owned())]);
    let node = far.node("a");
    node.set("a", 1).unwrap();
    assert!(far.snapshot().contains(&("orders".to_owned(), "{\"orders\":7}".to_owned())));
    assert_eq!(names(&node.entries), [("a".into(), 1)]);
}

#[test]
fn entries_that_have_ended_leave_the_store_with_the_next_order() {
    let far = FarStore::default();
    let node = far.node("a");
    let short = StaticEntry { end: Some(now()), ..flow("a", 1) };
    node.order(order(vec![short], &[])).unwrap();
    assert_eq!(far.values().len(), 1);
    assert_eq!(node.entries.all(), []);
    // An order without a change stores nothing.
    node.order(order(vec![], &[])).unwrap();
    assert_eq!(far.values().len(), 1);
    // Another name has the same place now.
    node.set("b", 1).unwrap();
    let left: Vec<String> = far.values().into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, [stored_name("b")]);
    // A new end of the same name counts, too.
    let short = StaticEntry { end: Some(now()), ..flow("b", 1) };
    node.order(order(vec![short], &[])).unwrap();
    assert_eq!(node.entries.entry("b"), None);
    node.set("b", 1).unwrap();
    assert!(node.entries.entry("b").is_some());
}

#[test]
fn an_old_snapshot_wipes_nothing_and_brings_nothing_back() {
    let far = FarStore::of_limit(4);
    let (one, two) = (far.node("a"), far.node("b"));
    one.set("kept", 1).unwrap();
    one.set("removed", 2).unwrap();
    one.set("moved", 3).unwrap();
    let snapshot = far.snapshot();
    one.set("moved", 4).unwrap();
    one.order(order(vec![], &["removed"])).unwrap();
    (5..10).for_each(|port| drop(one.set(&format!("new{port}"), port).unwrap()));
    follow(&[&two]);
    let known = one.entries.all();
    assert_eq!((known.len(), two.entries.all()), (7, known.clone()));

    far.restore(snapshot);
    follow(&[&one, &two]);
    assert_eq!((one.entries.all(), two.entries.all()), (known.clone(), known.clone()));
    assert_eq!(far.values().len(), known.len(), "the store has all of it again");
    // A node that comes then has the same, and orders go on.
    let three = far.node("c");
    assert_eq!(three.entries.all(), known);
    three.set("later", 11).unwrap();
    follow(&[&one, &two]);
    assert!(one.entries.entry("later").is_some() && two.entries.entry("later").is_some());
}

#[test]
fn entries_that_contradict_each_other_are_found() {
    let values = [flow("a", 1), flow("b", 1)].map(|entry| {
        let number = u32::from(entry.name.as_bytes()[0]);
        let value = show_stored(&StaticEntry { number, ..entry.clone() });
        (stored_name(&entry.name), value)
    });
    let store = MemoryStore::with_entries(values);
    let entries = StaticEntries::stored(Arc::new(store), now);
    let NotSet { why, .. } = entries.check_all().unwrap_err();
    assert!(matches!(why, NotSetReason::Taken { what: "flow", .. }), "{why}");
}
