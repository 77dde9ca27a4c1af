//! An app that acts once in a cluster: the listing of the guide, and a test of it.
#![cfg(feature = "lab")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

// ANCHOR: leader
use std::time::Duration;

use bellrock::prelude::*;
use bellrock::services::store::{BookModel, EntryBook};
use bellrock::{AppEvent, Needs};

/// Time between two counts.
const EVERY: Duration = Duration::from_secs(60);

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

/// Reports each record of the number of hosts, once in the cluster.
struct Census(EntryBook<Record>);

impl App for Census {
    type Handler = ();

    fn name(&self) -> &'static str {
        "census"
    }

    fn needs(&self) -> Needs {
        Needs::HOSTS
    }

    fn start(&self, network: &Network) {
        let Census(book) = self;
        network.spawn("store of the census", book.clone().run(network.clone()));
        network.spawn("census", count_hosts(network.clone(), book.clone()));
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}

async fn count_hosts(network: Network, book: EntryBook<Record>) {
    loop {
        network.sleep(EVERY).await;
        let hosts = network.hosts().load().iter().count();
        let order = book.order(move |draft| {
            let record = draft.value("record").copied().unwrap_or_default();
            if !draft.is_leader() || hosts <= record {
                return Err("not this time");
            }
            draft.put("record", hosts);
            Ok(())
        });
        if order.await.is_ok() {
            network.publish(AppEvent::new("host_record", &format!("{hosts} hosts")));
        }
    }
}
// ANCHOR_END: leader

use std::sync::Arc;

use bellrock::Event;
use bellrock::lab::{Lab, single};
use bellrock::services::store::{EntryStore, MemoryStore, StoreChange};

/// The records that a controller has reported.
fn records(lab: &Lab) -> Vec<String> {
    let events = lab.controller().unwrap().events().latest(usize::MAX);
    let text = |event: &Event| match event {
        Event::App { event, .. } if event.name() == "host_record" => Some(event.text().to_owned()),
        _ => None,
    };
    events.iter().filter_map(|record| text(&record.event)).collect()
}

#[test]
fn a_record_is_reported_once_by_the_node_that_leads() {
    let alive = |node: &str| (format!("node/{node}"), "\"\"".to_owned());
    let store = MemoryStore::with_entries([alive("a"), alive("b")]);
    let mut labs = ["a", "b"].map(|node| {
        let book = EntryBook::shared(Arc::new(store.clone()), node.to_owned());
        let mut lab = Lab::seeded(1).topology(single(3)).run(Census(book));
        // By then it is known which ports lead to hosts.
        lab.run_for(EVERY / 2);
        lab
    });
    let mut say = |hosts: &[&str]| {
        for lab in &mut labs {
            hosts.iter().for_each(|host| lab.announce(host));
            lab.run_for(EVERY * 2);
        }
        labs.each_ref().map(records)
    };
    assert_eq!(say(&["h1", "h2"]), [vec!["2 hosts".to_owned()], vec![]]);
    drop(store.commit(vec![StoreChange::Remove { name: "node/a".into(), expected: 1 }]));
    let [a, b] = say(&["h1", "h2", "h3"]);
    assert_eq!((a.len(), b), (1, vec!["3 hosts".to_owned()]), "{a:?}");
}
