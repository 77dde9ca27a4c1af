//! Tests of books: orders of several controllers at once, leaders, and stores that go back.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::sync::atomic::{AtomicU64, Ordering};

use bellrock_api::runtime::EmptyNetwork;

use super::super::{CommitFuture, MemoryStore, StoreLimits, StoredEntry};
use super::*;

/// What a line of the tests carries.
const CAPACITY: u64 = 100;

/// Amounts, and their sum.
#[derive(Default)]
struct Sum(u64);

impl BookModel for Sum {
    type Value = u64;

    fn read(_: &str, value: &str) -> Result<u64, String> {
        value.parse().map_err(|_| format!("{value} is not an amount"))
    }

    fn show(value: &u64) -> String {
        value.to_string()
    }

    fn change(&mut self, _: &str, before: Option<&u64>, after: Option<&u64>) {
        self.0 = self.0 + after.copied().unwrap_or_default() - before.copied().unwrap_or_default();
    }
}

type Future<T> = std::pin::Pin<Box<dyn std::future::Future<Output = T>>>;

/// Polls a future once.
fn poll<T>(future: &mut Future<T>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A book, and its task.
struct Controller {
    book: EntryBook<Sum>,
    task: Future<()>,
}

impl Controller {
    fn new(book: EntryBook<Sum>) -> Self {
        let task = Box::pin(book.clone().run(EmptyNetwork::network()));
        Controller { book, task }
    }

    fn step(&mut self) {
        assert_eq!(poll(&mut self.task), None, "it runs as long as the controller");
    }

    /// Takes an amount if so much is free. Returns what is left.
    fn take(&self, name: &str, amount: u64) -> Future<Result<u64, NotOrdered<&'static str>>> {
        let (book, name) = (self.book.clone(), name.to_owned());
        Box::pin(async move {
            let plan = move |draft: &mut Draft<'_, Sum>| {
                let of = |value: Option<&u64>| value.copied().unwrap_or_default();
                let changes = draft.changes();
                let (before, after) = changes.fold((0, 0), |(one, other), (_, before, after)| {
                    (one + of(before), other + of(after))
                });
                let taken = draft.model().0 + after - before;
                if draft.value(&name).is_some() {
                    return Err("the name is taken");
                }
                if taken + amount > CAPACITY {
                    return Err("so much is not free");
                }
                draft.put(&name, amount);
                Ok(CAPACITY - taken - amount)
            };
            book.order(plan).await
        })
    }

    /// Runs until there is an answer.
    fn answer<T>(&mut self, mut future: Future<T>) -> T {
        for _ in 0..100 {
            if let Some(answer) = poll(&mut future) {
                return answer;
            }
            self.step();
        }
        panic!("no answer");
    }
}

/// A store whose commits take a while, and whose answers are lost now and then.
#[derive(Debug)]
struct SlowStore {
    store: MemoryStore,
    random: Arc<Mutex<fastrand::Rng>>,
}

impl EntryStore for SlowStore {
    fn limits(&self) -> StoreLimits {
        StoreLimits { changes: 5, bytes: 4096 }
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        let (store, random) = (self.store.clone(), Arc::clone(&self.random));
        let mut changes = Some(changes);
        let mut result = None;
        Box::pin(std::future::poll_fn(move |_| {
            let mut random = random.lock().unwrap();
            if random.u8(..4) > 0 {
                return Poll::Pending;
            }
            if let Some(changes) = changes.take() {
                let mut context = Context::from_waker(Waker::noop());
                result = match store.commit(changes).as_mut().poll(&mut context) {
                    Poll::Ready(result) => Some(result),
                    Poll::Pending => None,
                };
                return Poll::Pending;
            }
            let lost = random.u8(..16) == 0;
            match result.take().unwrap() {
                Ok(_) if lost => Poll::Ready(Err(NotStored::Unknown("lost".into()))),
                result => Poll::Ready(result),
            }
        }))
    }

    fn follow(&self) -> StoreEvents {
        self.store.follow()
    }
}

/// Three controllers order at once, at a seeded pace. No order takes what another one has, each
/// order that was accepted is in the store, and in the end all know the same.
#[test]
fn no_interleaving_of_orders_takes_anything_twice() {
    let (mut accepted, mut conflicts) = (0, 0);
    for seed in 0..300 {
        let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
        let store = MemoryStore::default();
        let mut controllers: Vec<Controller> = ["a", "b", "c"]
            .map(|node| {
                let slow = SlowStore { store: store.clone(), random: Arc::clone(&random) };
                Controller::new(EntryBook::shared(Arc::new(slow), node.to_owned()))
            })
            .into();
        let mut orders = Vec::new();
        for _ in 0..24 {
            let (at, amount, name) = {
                let mut random = random.lock().unwrap();
                (random.usize(..3), random.u64(5..40), format!("n{}", random.u8(..16)))
            };
            orders.push((name.clone(), amount, controllers[at].take(&name, amount)));
        }
        let mut taken = Vec::new();
        for _ in 0..4000 {
            let next = random.lock().unwrap().usize(..3);
            controllers[next].step();
            orders.retain_mut(|(name, amount, order)| match poll(order) {
                None => true,
                Some(answer) => {
                    match answer {
                        Ok(_) => taken.push((name.clone(), *amount)),
                        Err(NotOrdered::Refused("the name is taken")) => conflicts += 1,
                        Err(_) => {}
                    }
                    false
                }
            });
            let sum: u64 = store.with(|entries| {
                let amounts = entries.filter(|(name, _)| *name != COMMITS && *name != LEADER);
                amounts.map(|(_, value)| value.parse::<u64>().unwrap()).sum()
            });
            assert!(sum <= CAPACITY, "seed {seed}: {sum} is taken");
        }
        assert!(orders.is_empty(), "seed {seed}: {} orders have no answer", orders.len());
        accepted += taken.len();
        for _ in 0..100 {
            controllers.iter_mut().for_each(Controller::step);
        }
        for (name, amount) in taken {
            for controller in &controllers {
                let value = controller.book.value(&name).map(|value| *value);
                assert_eq!(value, Some(amount), "seed {seed}: {name}");
            }
        }
        let sums: Vec<u64> =
            controllers.iter().map(|it| it.book.with_model(|model| model.0)).collect();
        assert!(sums.iter().all(|sum| *sum == sums[0]), "seed {seed}: {sums:?}");
    }
    assert!(accepted > 600 && conflicts > 50, "{accepted} accepted, {conflicts} conflicts");
}

/// Stores that a node lives, or has ended, as a lease does.
fn set_alive(store: &MemoryStore, node: &str, lives: bool) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let name = format!("{NODE}{node}");
    let mut events = store.follow();
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(Some(StoreEvent::Read { entries, .. })) =
        events.as_mut().poll_next(&mut context)
    else {
        panic!("it reads at once")
    };
    let found = entries.iter().find(|entry| entry.name == name);
    let expected = found.map_or(0, |entry| entry.revision);
    let value = LAST.fetch_add(1, Ordering::Relaxed).to_string();
    let change = match lives {
        true => StoreChange::Put { name, value, expected },
        false => StoreChange::Remove { name, expected },
    };
    assert!(matches!(store.commit(vec![change]).as_mut().poll(&mut context), Poll::Ready(Ok(_))));
}

fn lead_and_put(
    controller: &Controller,
    value: u64,
) -> Future<Result<(), NotOrdered<&'static str>>> {
    let book = controller.book.clone();
    Box::pin(async move {
        let plan = move |draft: &mut Draft<'_, Sum>| {
            if !draft.is_leader() {
                return Err("it does not lead");
            }
            draft.put("route", value);
            Ok(())
        };
        book.order(plan).await
    })
}

#[test]
fn a_leader_that_has_not_heard_of_the_next_one_changes_nothing() {
    let store = MemoryStore::default();
    let shared =
        |node: &str| Controller::new(EntryBook::shared(Arc::new(store.clone()), node.to_owned()));
    let (mut a, mut b) = (shared("a"), shared("b"));
    set_alive(&store, "a", true);
    set_alive(&store, "b", true);
    (0..5).for_each(|_| [&mut a, &mut b].into_iter().for_each(Controller::step));
    assert_eq!([a.book.is_leader(), b.book.is_leader()], [true, false]);
    let order = lead_and_put(&a, 1);
    assert_eq!(a.answer(order), Ok(()));
    let order = lead_and_put(&b, 2);
    assert_eq!(b.answer(order), Err(NotOrdered::Refused("it does not lead")));

    // a hears nothing, and takes an order as the leader that it was.
    set_alive(&store, "a", false);
    (0..5).for_each(|_| b.step());
    assert!(b.book.is_leader() && a.book.is_leader());
    let mut late = lead_and_put(&a, 3);
    assert_eq!(poll(&mut late), None);
    let order = lead_and_put(&b, 4);
    assert_eq!(b.answer(order), Ok(()));
    assert_eq!(a.answer(late), Err(NotOrdered::Refused("it does not lead")));
    (0..5).for_each(|_| a.step());
    assert_eq!(a.book.value("route").map(|value| *value), Some(4));
    assert!(!a.book.is_alive("z") && a.book.is_alive("a"), "it lives itself");

    // One that comes back does not take the lead from one that lives.
    set_alive(&store, "a", true);
    (0..5).for_each(|_| [&mut a, &mut b].into_iter().for_each(Controller::step));
    assert_eq!([a.book.is_leader(), b.book.is_leader()], [false, true]);
}

/// A store that can be replaced by an older one, as etcd by a snapshot.
#[derive(Debug, Default)]
struct RestoredStore {
    store: Mutex<MemoryStore>,
    followers: Mutex<Vec<Sender<StoreEvent>>>,
}

impl RestoredStore {
    fn read(&self) -> StoreEvent {
        let mut events = self.store.lock().unwrap().follow();
        match events.as_mut().poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(event)) => event,
            _ => panic!("it reads at once"),
        }
    }

    fn entries(&self) -> Vec<(String, String)> {
        let StoreEvent::Read { entries, .. } = self.read() else { panic!("it is read") };
        entries.into_iter().map(|StoredEntry { name, value, .. }| (name, value)).collect()
    }

    fn report(&self, event: &StoreEvent) {
        self.followers.lock().unwrap().retain(|it| it.try_send(event.clone()).is_ok());
    }

    fn restore(&self, entries: Vec<(String, String)>) {
        *self.store.lock().unwrap() = MemoryStore::with_entries(entries);
        self.report(&self.read());
    }
}

impl EntryStore for RestoredStore {
    fn limits(&self) -> StoreLimits {
        StoreLimits { changes: 4, bytes: 4096 }
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        let store = self.store.lock().unwrap().clone();
        let mut events = store.follow();
        let result = store.commit_if(changes, |_| Ok::<(), String>(()));
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(event)) = events.as_mut().poll_next(&mut context) {
            if matches!(event, StoreEvent::Changed(_)) {
                self.report(&event);
            }
        }
        Box::pin(std::future::ready(result))
    }

    fn follow(&self) -> StoreEvents {
        let (sender, receiver) = async_channel::bounded(64);
        sender.try_send(self.read()).unwrap();
        self.followers.lock().unwrap().push(sender);
        Box::pin(receiver)
    }
}

#[test]
fn nodes_bring_a_store_restored_from_an_old_snapshot_up_to_date() {
    let store = Arc::new(RestoredStore::default());
    let shared = |node: &str| {
        Controller::new(EntryBook::shared(Arc::<RestoredStore>::clone(&store), node.into()))
    };
    let (mut a, mut b) = (shared("a"), shared("b"));
    let order = a.take("old", 1);
    a.answer(order).unwrap();
    let snapshot = store.entries();
    for (name, amount) in (0..9).map(|number| (format!("n{number}"), 2 + number)) {
        let order = a.take(&name, amount);
        a.answer(order).unwrap();
    }
    let book = a.book.clone();
    let remove: Future<Result<(), NotOrdered<()>>> = Box::pin(async move {
        book.order(|draft: &mut Draft<'_, Sum>| {
            draft.remove("old");
            Ok(())
        })
        .await
    });
    a.answer(remove).unwrap();
    (0..20).for_each(|_| b.step());
    let known = a.book.values();
    assert_eq!((known.len(), b.book.values()), (9, known.clone()));

    store.restore(snapshot);
    (0..20).for_each(|_| [&mut a, &mut b].into_iter().for_each(Controller::step));
    assert_eq!((a.book.values(), b.book.values()), (known.clone(), known.clone()));
    let names: Vec<String> = store.entries().into_iter().map(|(name, _)| name).collect();
    let expected: Vec<String> = std::iter::once(COMMITS.to_owned())
        .chain(known.into_iter().map(|(name, _)| name))
        .collect();
    assert_eq!(names, expected);
    let order = b.take("new", 3);
    assert!(b.answer(order).is_ok(), "orders go on");
}

/// Writes entries of these amounts.
fn put_all(
    controller: &Controller,
    amounts: Vec<(String, u64)>,
) -> Future<Result<usize, NotOrdered<()>>> {
    let book = controller.book.clone();
    Box::pin(async move {
        book.order(move |draft: &mut Draft<'_, Sum>| {
            let stored = amounts.iter().filter(|(name, _)| draft.has_stored(name)).count();
            amounts.iter().for_each(|(name, amount)| draft.put(name, *amount));
            Ok(stored)
        })
        .await
    })
}

#[test]
fn an_order_that_is_larger_than_a_commit_is_stored_in_parts_in_the_order_of_its_writes() {
    let store = Arc::new(RestoredStore::default());
    let shared = |node: &str| {
        Controller::new(EntryBook::shared(Arc::<RestoredStore>::clone(&store), node.into()))
    };
    let (mut a, mut b) = (shared("a"), shared("b"));
    let amounts = |prefix: &str| -> Vec<(String, u64)> {
        (1..=8).rev().map(|amount| (format!("{prefix}{amount}"), amount)).collect()
    };
    let order = put_all(&a, amounts("a"));
    assert_eq!(a.answer(order), Ok(0));
    (0..20).for_each(|_| b.step());
    assert_eq!((a.book.values().len(), b.book.values()), (8, a.book.values()));
    let count = |store: &RestoredStore| {
        store.entries().into_iter().find(|(name, _)| name == COMMITS).unwrap().1
    };
    assert_eq!(count(&store), "\"count=3\"", "3 changes and the number are in a commit");

    // An entry that no commit can have ends the order. The first part stays.
    let mut large = amounts("b");
    large[6].0 = "x".repeat(5000);
    let order = put_all(&b, large);
    match b.answer(order) {
        Err(NotOrdered::Partly { stored: 6, of: 8, why }) => {
            assert!(matches!(*why, NotOrdered::Unavailable(_)), "{why:?}");
        }
        other => panic!("{other:?}"),
    }
    let names: Vec<String> = b.book.values().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[8..], ["b3", "b4", "b5", "b6", "b7", "b8"]);
}

#[test]
fn an_entry_of_a_newer_release_refuses_orders_and_stays() {
    let store =
        MemoryStore::with_entries([("x".into(), "\"new\"".into()), ("y".into(), "7".into())]);
    let mut alone = Controller::new(EntryBook::alone(Arc::new(store.clone())));
    assert!(alone.book.is_read() && alone.book.is_leader() && !alone.book.is_shared());
    assert_eq!(alone.book.value("y").map(|value| *value), Some(7));
    let order = alone.take("z", 1);
    let refused = alone.answer(order).unwrap_err().to_string();
    assert!(
        refused.starts_with("nothing has changed: the entry x is of a newer release"),
        "{refused}"
    );
    assert_eq!(store.with(|entries| entries.count()), 2);
}
