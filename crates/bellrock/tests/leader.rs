//! Apps that run once in a cluster: the listings of the guide, and tests of them.
#![cfg(feature = "lab")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

// ANCHOR: once
use std::time::Duration;

use bellrock::prelude::*;

/// Time between two counts.
const EVERY: Duration = Duration::from_secs(60);

/// Reports the number of hosts of the whole network, once in the cluster.
struct Census;

impl App for Census {
    type Handler = ();

    fn name(&self) -> &'static str {
        "census"
    }

    fn scope(&self) -> Scope {
        Scope::Once
    }

    fn needs(&self) -> Needs {
        Needs::HOSTS
    }

    fn start(&self, network: &Network) {
        network.spawn("count hosts", count_hosts(network.clone()));
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}

async fn count_hosts(network: Network) {
    loop {
        network.sleep(EVERY).await;
        let hosts = network.hosts().load().iter().count();
        network.publish(AppEvent::new("hosts_counted", &format!("{hosts} hosts")));
    }
}
// ANCHOR_END: once

// ANCHOR: stored
use bellrock::book::{BookModel, EntryBook};

/// What is stored: the largest number of hosts so far.
#[derive(Default)]
struct Record;

impl BookModel for Record {
    type Value = usize;

    fn read(_: &str, value: &str) -> std::result::Result<usize, String> {
        value.parse().map_err(|_| format!("{value} is no number"))
    }

    fn show(value: &usize) -> String {
        value.to_string()
    }

    fn change(&mut self, _: &str, _: Option<&usize>, _: Option<&usize>) {}
}

/// Stores the number of hosts, if it is a record. The task of the app calls it.
async fn is_record(book: &EntryBook<Record>, hosts: usize) -> bool {
    let order = book.order(move |draft| {
        if draft.value("record").is_some_and(|record| hosts <= *record) {
            return Err("no record");
        }
        draft.put("record", hosts);
        Ok(())
    });
    order.await.is_ok()
}
// ANCHOR_END: stored

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bellrock::book::leadership::Leadership;
use bellrock::book::{
    CommitFuture, EntryStore, Life, MemoryStore, StoreChange, StoreEvents, StoreLimits,
};
use bellrock::lab::{Lab, single};

/// Names of the nodes.
const NODES: [&str; 2] = ["a", "b"];

/// More than a node takes to notice that it leads, or does so no more.
const NOTICED: Duration = Duration::from_secs(1);

/// What a node has of the store: the entries, and a lease that can be lost.
#[derive(Clone, Debug)]
struct NodeStore {
    store: MemoryStore,
    has_lease: Arc<AtomicBool>,
}

impl EntryStore for NodeStore {
    fn limits(&self) -> StoreLimits {
        self.store.limits()
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        self.store.commit(changes)
    }

    fn follow(&self) -> StoreEvents {
        self.store.follow()
    }

    fn show_life(&self, _: &str) -> Life {
        let has_lease = Arc::clone(&self.has_lease);
        Life::new(move || has_lease.load(Ordering::Relaxed).then_some(1))
    }
}

/// A store in which both nodes live.
fn store() -> MemoryStore {
    MemoryStore::with_entries(NODES.map(|node| (format!("node/{node}"), "\"\"".to_owned())))
}

/// Removes the entry of a node, as etcd does when its lease is over.
fn end_lease(store: &MemoryStore, node: &str) {
    drop(store.commit(vec![StoreChange::Remove { name: format!("node/{node}"), expected: 1 }]));
}

/// A lab for each node.
fn cluster<A: App>(
    store: &MemoryStore,
    mut app: impl FnMut(&str) -> A,
) -> [(Lab, Arc<AtomicBool>); 2] {
    NODES.map(|node| {
        let has_lease = Arc::new(AtomicBool::new(true));
        let shared = NodeStore { store: store.clone(), has_lease: Arc::clone(&has_lease) };
        let leadership = Leadership::shared(Arc::new(shared), node.to_owned());
        let lab = Lab::seeded(1).topology(single(3)).leadership(leadership).run(app(node));
        (lab, has_lease)
    })
}

/// Runs both labs for this time, a little of it each in turn.
fn run(labs: &mut [(Lab, Arc<AtomicBool>); 2], time: Duration) {
    const STEP: Duration = Duration::from_millis(50);
    for _ in 0..time.as_millis() / STEP.as_millis() {
        labs.iter_mut().for_each(|(lab, _)| lab.run_for(STEP));
    }
}

/// Hosts of both labs say where they are.
fn announce(labs: &mut [(Lab, Arc<AtomicBool>); 2], hosts: &[&str]) {
    for (lab, _) in labs {
        hosts.iter().for_each(|host| lab.announce(host));
    }
}

/// The texts of the events of this name that a controller has reported.
fn reported(lab: &Lab, name: &str) -> Vec<String> {
    let events = lab.controller().unwrap().events().latest(usize::MAX);
    let text = |event: &Event| match event {
        Event::App { event, .. } if event.name() == name => Some(event.text().to_owned()),
        _ => None,
    };
    events.iter().filter_map(|record| text(&record.event)).collect()
}

#[test]
fn hosts_are_counted_once_by_the_node_that_leads_and_then_by_the_next() {
    let store = store();
    let mut labs = cluster(&store, |_| Census);
    let counts =
        |labs: &[(Lab, _); 2]| labs.each_ref().map(|(lab, _)| reported(lab, "hosts_counted"));
    // By then it is known which ports lead to hosts.
    run(&mut labs, EVERY / 2);
    announce(&mut labs, &["h1", "h2"]);
    run(&mut labs, EVERY);
    assert_eq!(counts(&labs), [vec!["2 hosts".to_owned()], vec![]]);
    labs[0].1.store(false, Ordering::Relaxed);
    end_lease(&store, "a");
    run(&mut labs, EVERY * 3 / 2);
    assert_eq!(counts(&labs), [vec!["2 hosts".to_owned()], vec!["2 hosts".to_owned()]]);
    let terms = |lab: &Lab| (reported(lab, "term_began"), reported(lab, "term_ended"));
    let began = |node: &str, term: u64| vec![format!("the app census runs at {node}, term {term}")];
    let ended = vec!["the app census ran at a, term 1".to_owned()];
    assert_eq!(terms(&labs[0].0), (began("a", 1), ended));
    assert_eq!(terms(&labs[1].0), (began("b", 2), vec![]));
}

/// Counts the tasks of it that have not been dropped.
struct Waits {
    tasks: Arc<AtomicUsize>,
    starts: Arc<AtomicUsize>,
}

struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(tasks: &Arc<AtomicUsize>) -> Self {
        tasks.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(tasks))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl App for Waits {
    type Handler = ();

    fn scope(&self) -> Scope {
        Scope::Once
    }

    fn start(&self, network: &Network) {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let (network, tasks) = (network.clone(), Arc::clone(&self.tasks));
        network.clone().supervise("waits", move || {
            let (network, tasks) = (network.clone(), Arc::clone(&tasks));
            async move {
                let _counted = Counted::new(&tasks);
                let another = Counted::new(&tasks);
                network.spawn("begun by a task", async move {
                    let _another = another;
                    pending::<()>().await;
                });
                pending::<()>().await;
            }
        });
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}

#[test]
fn all_tasks_end_with_the_lease_before_the_next_node_begins() {
    let store = store();
    let (tasks, starts) = (<[Arc<AtomicUsize>; 2]>::default(), <[Arc<AtomicUsize>; 2]>::default());
    let mut labs = cluster(&store, |node| {
        let place = usize::from(node == "b");
        Waits { tasks: Arc::clone(&tasks[place]), starts: Arc::clone(&starts[place]) }
    });
    let numbers = |of: &[Arc<AtomicUsize>; 2]| of.each_ref().map(|it| it.load(Ordering::Relaxed));
    run(&mut labs, NOTICED);
    assert_eq!((numbers(&tasks), numbers(&starts)), ([2, 0], [1, 0]));
    // a cannot reach the store for as long as its lease lasts; the store has its entry all the
    // time.
    labs[0].1.store(false, Ordering::Relaxed);
    run(&mut labs, NOTICED);
    assert_eq!((numbers(&tasks), numbers(&starts)), ([0, 0], [1, 0]), "a ends them by itself");
    labs[0].1.store(true, Ordering::Relaxed);
    run(&mut labs, NOTICED);
    assert_eq!((numbers(&tasks), numbers(&starts)), ([2, 0], [2, 0]), "a begins anew");
    labs[0].1.store(false, Ordering::Relaxed);
    end_lease(&store, "a");
    run(&mut labs, NOTICED);
    assert_eq!((numbers(&tasks), numbers(&starts)), ([0, 2], [2, 1]));
    // a lives again, and does not lead.
    let alive = StoreChange::Put { name: "node/a".into(), value: "\"\"".into(), expected: 0 };
    drop(store.commit(vec![alive]));
    labs[0].1.store(true, Ordering::Relaxed);
    run(&mut labs, NOTICED);
    assert_eq!((numbers(&tasks), numbers(&starts)), ([0, 2], [2, 1]));
}

#[test]
fn a_controller_that_is_alone_starts_at_once() {
    let (tasks, starts) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let app = Waits { tasks: Arc::clone(&tasks), starts: Arc::clone(&starts) };
    let mut lab = Lab::seeded(1).topology(single(3)).without_controller();
    lab.start_controller(app);
    assert_eq!(starts.load(Ordering::Relaxed), 1, "before any time has passed");
    lab.run_for(NOTICED);
    assert_eq!(tasks.load(Ordering::Relaxed), 2);
    assert_eq!(reported(&lab, "term_began"), Vec::<String>::new());
}

/// Reports each record, once in the cluster.
struct Records(EntryBook<Record>);

impl App for Records {
    type Handler = ();

    fn scope(&self) -> Scope {
        Scope::Once
    }

    fn needs(&self) -> Needs {
        Needs::HOSTS
    }

    fn start(&self, network: &Network) {
        let (network, book) = (network.clone(), self.0.clone());
        network.spawn("store of records", book.clone().run(network.clone()));
        network.clone().spawn("records", async move {
            loop {
                network.sleep(EVERY).await;
                let hosts = network.hosts().load().iter().count();
                if is_record(&book, hosts).await {
                    network.publish(AppEvent::new("host_record", &format!("{hosts} hosts")));
                }
            }
        });
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}

#[test]
fn a_record_is_reported_once_by_all_leaders() {
    let (leaders, records) = (store(), MemoryStore::default());
    let mut labs = cluster(&leaders, |node| {
        Records(EntryBook::shared(Arc::new(records.clone()), node.to_owned()))
    });
    run(&mut labs, EVERY / 2);
    let say = |labs: &mut [(Lab, Arc<AtomicBool>); 2], hosts: &[&str]| {
        announce(labs, hosts);
        run(labs, EVERY * 2);
        labs.each_ref().map(|(lab, _)| reported(lab, "host_record"))
    };
    let two = vec!["2 hosts".to_owned()];
    assert_eq!(say(&mut labs, &["h1", "h2"]), [two.clone(), vec![]]);
    labs[0].1.store(false, Ordering::Relaxed);
    end_lease(&leaders, "a");
    assert_eq!(say(&mut labs, &["h1", "h2"]), [two.clone(), vec![]], "b knows the record");
    let three = vec!["3 hosts".to_owned()];
    assert_eq!(say(&mut labs, &["h1", "h2", "h3"]), [two, three]);
}
