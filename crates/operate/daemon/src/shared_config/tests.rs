//! Tests of the shared configuration: two nodes, and stores that are away or of a newer release.
//! That an old snapshot is put right is tested with the book.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::future::ready;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use bellrock_api::runtime::EmptyNetwork;
use bellrock_book::{CommitFuture, MemoryStore, NotStored, StoreChange, StoreEvents, StoreLimits};
use bellrock_config::{Config, Sources};

use super::*;
use crate::builder::as_configured;
use crate::builder::builder;
use crate::start_log;

/// A store that can be away: then it takes nothing.
#[derive(Clone, Debug, Default)]
struct TestStore {
    entries: MemoryStore,
    is_away: Arc<AtomicBool>,
}

impl EntryStore for TestStore {
    fn limits(&self) -> StoreLimits {
        self.entries.limits()
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        if self.is_away.load(Ordering::Relaxed) {
            return Box::pin(ready(Err(NotStored::Unavailable("it is away".to_owned()))));
        }
        self.entries.commit(changes)
    }

    fn follow(&self) -> StoreEvents {
        self.entries.follow()
    }
}

impl TestStore {
    fn value(&self, name: &str) -> Option<String> {
        self.entries.with(|entries| {
            let mut found = entries.filter(|(entry, _)| *entry == name);
            found.next().map(|(_, value)| value.to_owned())
        })
    }

    /// Writes a value as somebody else does.
    fn write(&self, value: &str, expected: u64) {
        let (name, value) = (ENTRY.to_owned(), value.to_owned());
        drop(self.entries.commit(vec![StoreChange::Put { name, value, expected }]));
    }
}

/// A node, and the task of its book, which runs when the test says so.
struct TestNode {
    node: Arc<SharedConfigNode>,
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl TestNode {
    fn new(name: &str, store: &TestStore) -> Self {
        let config = Config::default();
        let (_, parts) = builder(&config, &as_configured, &mut |builder, _| Ok(builder)).unwrap();
        let log_level = start_log(&config);
        let reloader = Reloader::new((Sources::default(), false), config, log_level, parts);
        let node = SharedConfigNode::new(Arc::new(store.clone()), name.to_owned(), reloader);
        let task = Box::pin(node.book.clone().run(EmptyNetwork::network()));
        let mut node = TestNode { node, task };
        node.hear();
        node
    }

    /// Runs the task as long as it has something to do, and applies what is shared then.
    fn hear(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        assert!(self.task.as_mut().poll(&mut context).is_pending());
        drop(self.node.apply());
    }

    fn order(&mut self, text: &str) -> Result<ReloadAnswer, QueryError> {
        self.order_at(text, None)
    }

    /// Orders in a thread, as faces do, while the task runs here.
    fn order_at(
        &mut self,
        text: &str,
        generation: Option<u64>,
    ) -> Result<ReloadAnswer, QueryError> {
        let order = SetSharedConfig { text: text.to_owned(), generation, ..Default::default() };
        let node = Arc::clone(&self.node);
        let asked = thread::spawn(move || node.set(&order));
        let mut context = Context::from_waker(Waker::noop());
        while !asked.is_finished() {
            assert!(self.task.as_mut().poll(&mut context).is_pending());
            thread::yield_now();
        }
        asked.join().unwrap()
    }

    /// Stores a text as an order that was checked against this generation.
    fn store_after(&mut self, before: u64, text: &str) -> Result<Document, QueryError> {
        let (node, text) = (Arc::clone(&self.node), text.to_owned());
        let asked = thread::spawn(move || node.store(before, text));
        let mut context = Context::from_waker(Waker::noop());
        while !asked.is_finished() {
            assert!(self.task.as_mut().poll(&mut context).is_pending());
            thread::yield_now();
        }
        asked.join().unwrap()
    }

    fn knows(&self) -> (u64, String, Option<String>) {
        let SharedConfig { generation, text, trouble, .. } = self.node.get();
        (generation, text, trouble)
    }
}

#[test]
fn of_two_orders_one_is_carried_out_and_the_other_knows_that_it_was_not() {
    let store = TestStore::default();
    let (mut a, mut b) = (TestNode::new("a", &store), TestNode::new("b", &store));
    assert_eq!(a.knows(), (0, String::new(), None));
    let answer = a.order("log_level: debug").unwrap();
    assert!(answer.applied && answer.changes.len() == 1, "{answer:?}");
    // As if b had not heard it.
    let error = b.store_after(0, "log_level: warn").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(error.message.contains("another order was faster"), "{error}");
    b.hear();
    assert_eq!(b.knows(), (1, "log_level: debug".to_owned(), None));
    let error = b.order_at("log_level: warn", Some(0)).unwrap_err();
    assert!(error.message.contains("1 is the generation now, not 0"), "{error}");
    b.order("log_level: warn").unwrap();
    a.hear();
    // What b has ordered comes to b as well.
    b.hear();
    assert_eq!(a.knows(), (2, "log_level: warn".to_owned(), None));
    assert_eq!(b.knows(), a.knows());
}

#[test]
fn a_text_that_a_node_refuses_is_in_force_nowhere_and_the_next_one_is() {
    let store = TestStore::default();
    let mut a = TestNode::new("a", &store);
    store.write(r#"{"generation":1,"node":"b","changed_at":1,"text":"no_such_setting: 1"}"#, 0);
    a.hear();
    assert!(a.node.applied.lock().unwrap().as_ref().unwrap().outcome.is_err());
    let trouble = a.knows().2.unwrap();
    assert!(trouble.contains("no_such_setting"), "{trouble}");
    assert!(a.order("log_level: debug").unwrap().applied);
    assert_eq!(a.knows(), (2, "log_level: debug".to_owned(), None));
}

#[test]
fn a_form_of_a_newer_release_is_named_and_not_overwritten() {
    let store = TestStore::default();
    let mut a = TestNode::new("a", &store);
    store.write(r#"{"generation":7,"parts":[]}"#, 0);
    a.hear();
    let trouble = a.knows().2.unwrap();
    assert!(trouble.contains("configuration is of a newer release"), "{trouble}");
    let error = a.order("log_level: warn").unwrap_err();
    assert!(error.message.contains("of a newer release"), "{error}");
    assert!(store.value(ENTRY).unwrap().contains("parts"));
}

#[test]
fn an_order_while_the_store_is_away_changes_nothing() {
    let store = TestStore::default();
    let mut a = TestNode::new("a", &store);
    store.is_away.store(true, Ordering::Relaxed);
    let error = a.order("log_level: warn").unwrap_err();
    assert!(error.message.contains("nothing has changed: it is away"), "{error}");
    store.is_away.store(false, Ordering::Relaxed);
    assert!(a.order("log_level: warn").unwrap().applied);
}

#[test]
fn a_text_that_is_too_long_is_refused_before_it_is_stored() {
    let store = TestStore::default();
    let mut a = TestNode::new("a", &store);
    let text = format!("# {}", "x".repeat(bellrock_config::MAX_SHARED_BYTES));
    let error = a.order(&text).unwrap_err();
    assert!(error.message.contains("nodes share at most 256 KiB"), "{error}");
    assert_eq!(store.value(ENTRY), None);
}
