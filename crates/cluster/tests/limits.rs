//! Bounds of what a node takes.
#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::time::Duration;

use bellrock_api::Dpid;
use bellrock_cluster::heartbeat::{Heartbeat, SwitchReport};
use bellrock_cluster::mastership::{
    HEARTBEAT, Input, MAX_SWITCHES, Mastership, MemberSettings, Notice, Output,
};
use bellrock_cluster::node::{NodeId, NodeSet};
use bellrock_cluster::record::Record;

fn node(place: usize) -> NodeId {
    NodeId::new(place).unwrap()
}

/// The first of three nodes, which hears both others.
struct Node {
    machine: Mastership,
    now: Duration,
}

impl Node {
    /// A node that serves, with this number of records in etcd.
    fn serving(records: usize) -> Self {
        let settings = MemberSettings { me: node(0), nodes: 3, incarnation: 1 };
        let machine = Mastership::new(settings, Duration::ZERO);
        let mut node_0 = Node { machine, now: Duration::ZERO };
        let record = |number: usize| {
            let masters = vec![node(1), node(0), node(2)];
            (Dpid(number as u64), Record { masters, floor: 0, revision: number as u64 + 1 })
        };
        let records = (0..records).map(record).collect();
        node_0.machine.handle(Duration::ZERO, Input::Read(records), &mut Vec::new());
        node_0.run(Duration::from_secs(1));
        assert!(node_0.machine.is_serving());
        node_0
    }

    /// Lets time pass, with heartbeats of the others, and returns what the node does.
    fn run(&mut self, time: Duration) -> Vec<Output> {
        let heartbeat = Heartbeat {
            serving: true,
            draining: false,
            suspects: NodeSet::EMPTY,
            switches: SwitchReport::Same { version: 0 },
            known: None,
            offer: None,
            accept: None,
        };
        let mut out = Vec::new();
        let end = self.now + time;
        while self.now < end {
            self.now += HEARTBEAT;
            for peer in [1, 2] {
                self.machine.handle(
                    self.now,
                    Input::Heard(node(peer), heartbeat.clone()),
                    &mut out,
                );
            }
        }
        out
    }
}

fn writes(out: &[Output]) -> Vec<Dpid> {
    let written = out.iter().filter_map(|output| match output {
        Output::Write { dpid, .. } => Some(*dpid),
        _ => None,
    });
    written.collect()
}

#[test]
fn invented_switches_do_not_fill_etcd() {
    let new = Dpid(u64::MAX);
    // With one record less, the new switch gets the last one.
    let mut node_0 = Node::serving(MAX_SWITCHES - 1);
    node_0.machine.handle(node_0.now, Input::Connected(new, None), &mut Vec::new());
    assert_eq!(writes(&node_0.run(Duration::from_secs(1))), [new]);

    let mut node_0 = Node::serving(MAX_SWITCHES);
    node_0.machine.handle(node_0.now, Input::Connected(new, None), &mut Vec::new());
    let out = node_0.run(Duration::from_secs(1));
    assert_eq!(writes(&out), []);
    assert!(out.contains(&Output::Notice(Notice::TooMany(new))));
    // A record that is removed makes a place.
    node_0.machine.handle(node_0.now, Input::Changed(Dpid(0), None), &mut Vec::new());
    assert_eq!(writes(&node_0.run(Duration::from_secs(61))).first(), Some(&new));
}

#[test]
fn switches_that_left_no_record_are_forgotten() {
    let mut node_0 = Node::serving(0);
    for number in 0..1000 {
        let mut out = Vec::new();
        node_0.machine.handle(node_0.now, Input::Connected(Dpid(number), None), &mut out);
        node_0.machine.handle(node_0.now, Input::Disconnected(Dpid(number)), &mut out);
        assert_eq!(writes(&out), []);
    }
    assert_eq!(node_0.machine.switches().count(), 0);
}
