//! One node of three, by hand: what it claims, what it writes first, and the bounds of what it takes.
#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::time::Duration;

use bellrock_api::{Dpid, RoleOrder};
use bellrock_cluster::heartbeat::{Heartbeat, SwitchReport};
use bellrock_cluster::mastership::{
    HEARTBEAT, Input, KEEP_RECORDS, MAX_SWITCHES, Mastership, MemberSettings, NotMoved, Notice,
    ORDER_LIMIT, Output, WriteResult,
};
use bellrock_cluster::node::{NodeId, NodeSet};
use bellrock_cluster::record::{Generation, Record};

const SWITCH: Dpid = Dpid(0xa1);

fn node(place: usize) -> NodeId {
    NodeId::new(place).unwrap()
}

/// The first of three nodes, which hears both others.
struct Node {
    machine: Mastership,
    now: Duration,
}

impl Node {
    /// A node that serves, with this number of records in etcd, in which it is the second.
    fn serving(records: usize) -> Self {
        let record = |number: usize| {
            let masters = vec![node(1), node(0), node(2)];
            (
                Dpid(number as u64),
                Record { masters, floor: 0, placed: false, revision: number as u64 + 1 },
            )
        };
        Node::with((0..records).map(record).collect())
    }

    /// A node that serves, with these records in etcd.
    fn with(records: Vec<(Dpid, Record)>) -> Self {
        let settings =
            MemberSettings { me: node(0), nodes: 3, incarnation: 1, keep_records: KEEP_RECORDS };
        let machine = Mastership::new(settings, Duration::ZERO);
        let mut node_0 = Node { machine, now: Duration::ZERO };
        node_0.machine.handle(Duration::ZERO, Input::Read(records), &mut Vec::new());
        node_0.run(Duration::from_secs(1));
        assert!(node_0.machine.is_serving());
        node_0
    }

    /// Lets time pass, with heartbeats of the others, and returns what the node does.
    fn run(&mut self, time: Duration) -> Vec<Output> {
        let mut out = Vec::new();
        let end = self.now + time;
        while self.now < end {
            self.now += HEARTBEAT;
            for peer in [1, 2] {
                self.hears(peer, SwitchReport::Same { version: 0 }, &mut out);
            }
        }
        out
    }

    /// Gets a heartbeat of another node, which serves.
    fn hears(&mut self, peer: usize, switches: SwitchReport, out: &mut Vec<Output>) {
        self.hears_with(peer, NodeSet::EMPTY, switches, out);
    }

    /// The same of one that does not hear these others.
    fn hears_with(
        &mut self,
        peer: usize,
        suspects: NodeSet,
        switches: SwitchReport,
        out: &mut Vec<Output>,
    ) {
        let heartbeat = Heartbeat { suspects, ..heartbeat(peer, switches) };
        self.machine.handle(self.now, Input::Heard(node(peer), heartbeat), out);
    }
}

/// A heartbeat of a node that serves, and hears all others.
fn heartbeat(peer: usize, switches: SwitchReport) -> Heartbeat {
    Heartbeat {
        serving: true,
        draining: false,
        suspects: NodeSet::EMPTY,
        switches,
        known: None,
        offer: None,
        accept: None,
        incarnation: Some(peer as u64),
        hears: Some(1),
    }
}

fn writes(out: &[Output]) -> Vec<Dpid> {
    let written = out.iter().filter_map(|output| match output {
        Output::Write { dpid, .. } => Some(*dpid),
        _ => None,
    });
    written.collect()
}

/// Connects a switch whose record (epoch 7) has node 0 in front, and returns what node 0 does.
fn connect(newest: Option<Generation>) -> (Node, Vec<Output>) {
    let masters = vec![node(0), node(1), node(2)];
    let mut node_0 =
        Node::with(vec![(SWITCH, Record { masters, floor: 0, placed: false, revision: 7 })]);
    let mut out = Vec::new();
    node_0.machine.handle(node_0.now, Input::Connected(SWITCH, newest), &mut out);
    out.extend(node_0.run(Duration::from_millis(100)));
    (node_0, out)
}

fn claims(out: &[Output]) -> Vec<u64> {
    let claimed = out.iter().filter_map(|output| match output {
        Output::Order(_, RoleOrder::Master { generation_id }) => Some(*generation_id),
        _ => None,
    });
    claimed.collect()
}

#[test]
fn a_switch_that_has_seen_less_is_claimed_without_a_record() {
    for newest in [None, Some(Generation::new(6, 2, node(1)))] {
        let (_, out) = connect(newest);
        assert_eq!((claims(&out), writes(&out)), (vec![0x710], vec![]), "{newest:?}");
    }
}

#[test]
fn a_generation_that_this_process_did_not_claim_is_exceeded_first() {
    // The same one: of a process before, or of another node before etcd lost something.
    for newest in [Generation::new(7, 0, node(0)), Generation::new(9, 1, node(1))] {
        let (mut node_0, mut out) = connect(Some(newest));
        // The node that has claimed it has the time to come.
        out.extend(node_0.run(Duration::from_millis(600)));
        assert_eq!(claims(&out), [0; 0]);
        let floor = newest.epoch() + 1;
        let masters = vec![node(0), node(1), node(2)];
        let write = Output::Write {
            dpid: SWITCH,
            masters: masters.clone(),
            floor,
            placed: false,
            expected: 7,
        };
        assert!(out.contains(&write), "{out:?}");
        let written = WriteResult::Written(Record { masters, floor, placed: false, revision: 8 });
        let mut out = Vec::new();
        node_0.machine.handle(node_0.now, Input::Written(SWITCH, written), &mut out);
        assert_eq!(claims(&out), [floor.max(8) << 8 | 0x10]);
    }
}

#[test]
fn an_old_process_that_comes_back_claims_its_own_generation_again() {
    let (mut node_0, out) = connect(None);
    let [generation] = claims(&out)[..] else { unreachable!("{out:?}") };
    let generation = Generation(generation);
    let mut out = Vec::new();
    for input in [
        Input::Granted(SWITCH, generation),
        Input::Disconnected(SWITCH),
        Input::Connected(SWITCH, Some(generation)),
    ] {
        node_0.machine.handle(node_0.now, input, &mut out);
    }
    assert_eq!((claims(&out), writes(&out)), (vec![generation.0], vec![]));
}

#[test]
fn when_a_node_dies_a_master_claims_again_and_stands_by_where_another_one_was_obeyed() {
    let (mut node_0, out) = connect(None);
    let generation = Generation(claims(&out)[0]);
    let mut out = Vec::new();
    node_0.machine.handle(node_0.now, Input::Granted(SWITCH, generation), &mut out);
    assert_eq!(claims(&out), [0; 0]);
    // Node 2 is heard by nobody any more.
    let mut suspects = NodeSet::EMPTY;
    suspects.insert(node(2));
    let without_it = |node_0: &mut Node, out: &mut Vec<Output>, time: Duration| {
        let end = node_0.now + time;
        while node_0.now < end {
            node_0.now += HEARTBEAT;
            node_0.hears_with(1, suspects, SwitchReport::Same { version: 0 }, out);
        }
    };
    without_it(&mut node_0, &mut out, Duration::from_millis(500));
    assert!(out.contains(&Output::Notice(Notice::Dead(node(2)))), "{out:?}");
    assert_eq!(claims(&out), [generation.0]);
    node_0.machine.handle(node_0.now, Input::Granted(SWITCH, generation), &mut out);
    // Its last claim may have come after that.
    without_it(&mut node_0, &mut out, Duration::from_secs(5));
    assert_eq!(claims(&out), [generation.0; 2]);
    let mut out = Vec::new();
    let newer = Generation::new(7, 2, node(2));
    node_0.machine.handle(node_0.now, Input::Stale(SWITCH, Some(newer)), &mut out);
    let stands_by = Output::Order(SWITCH, RoleOrder::Slave { generation_id: None });
    assert!(out.contains(&stands_by), "{out:?}");
    assert!(out.contains(&Output::Notice(Notice::Fenced(SWITCH))), "{out:?}");
}

#[test]
fn after_a_stale_claim_the_record_of_the_newer_master_has_time_to_come() {
    let (mut node_0, _) = connect(None);
    let newer = Generation::new(7, 1, node(1));
    let mut out = Vec::new();
    node_0.machine.handle(node_0.now, Input::Stale(SWITCH, Some(newer)), &mut out);
    out.extend(node_0.run(Duration::from_millis(400)));
    assert_eq!((claims(&out), writes(&out)), (vec![], vec![]));
    // It comes, and the other node is master.
    let record =
        Record { masters: vec![node(1), node(0), node(2)], floor: 8, placed: false, revision: 8 };
    node_0.machine.handle(node_0.now, Input::Changed(SWITCH, Some(record)), &mut out);
    let generations = Some(vec![Some(Generation::new(8, 0, node(1)))]);
    let switches = SwitchReport::All { version: 1, switches: vec![SWITCH], generations };
    node_0.hears(1, switches, &mut out);
    out.extend(node_0.run(Duration::from_secs(2)));
    assert_eq!((claims(&out), writes(&out)), (vec![], vec![]));
}

/// Gets the answers to all records that the node writes, for some time, and returns when it wrote.
fn answer_writes(node_0: &mut Node, time: Duration, revision: &mut u64) -> Vec<(Duration, u64)> {
    let (end, mut written, mut seen) = (node_0.now + time, Vec::new(), None);
    while node_0.now < end {
        let mut todo = node_0.run(HEARTBEAT);
        while let Some(output) = todo.pop() {
            let input = match output {
                Output::Write { dpid, masters, floor, .. } => {
                    written.push((node_0.now, floor));
                    *revision += 1;
                    let record = Record { masters, floor, placed: false, revision: *revision };
                    Input::Written(dpid, WriteResult::Written(record))
                }
                Output::Order(dpid, RoleOrder::Master { generation_id }) => {
                    // It refuses whatever it is offered.
                    seen = Some(Generation(generation_id.wrapping_add(1 << 8)));
                    Input::Stale(dpid, seen)
                }
                Output::Ask(dpid) => Input::Asked(dpid, seen),
                _ => continue,
            };
            node_0.machine.handle(node_0.now, input, &mut todo);
        }
    }
    written
}

#[test]
fn a_switch_that_refuses_every_generation_does_not_keep_etcd_busy() {
    let (mut node_0, _) = connect(Some(Generation(u64::MAX - 1)));
    let written = answer_writes(&mut node_0, Duration::from_secs(60), &mut 100);
    assert!((2..12).contains(&written.len()), "{written:?}");
    let pauses = written.windows(2).map(|two| two[1].0 - two[0].0);
    assert!(pauses.min() >= Some(Duration::from_millis(500)), "{written:?}");
    assert!(written.iter().all(|&(_, floor)| floor < 1 << 56), "{written:?}");
}

#[test]
fn a_switch_near_the_end_of_the_space_of_generations_gets_a_master() {
    let newest = Generation(u64::MAX - 1);
    let (_, out) = connect(Some(newest));
    // Its next generations are those from 0 on.
    assert_eq!((claims(&out), writes(&out)), (vec![0x710], vec![]));
    assert!(Generation(0x710).is_newer_than(newest));
    // In the half before the record's generation, and not after it: it is exceeded.
    let newest = Generation::new((1 << 54) + 5, 0, node(2));
    let (mut node_0, mut out) = connect(Some(newest));
    out.extend(node_0.run(Duration::from_secs(1)));
    let floor = out.iter().find_map(|output| match output {
        Output::Write { floor, .. } => Some(*floor),
        _ => None,
    });
    assert_eq!(floor, Some((1 << 54) + 6));
}

#[test]
fn a_node_that_the_switch_has_left_asks_before_it_claims_again() {
    let (mut node_0, out) = connect(None);
    let [generation] = claims(&out)[..] else { unreachable!("{out:?}") };
    let mut out = Vec::new();
    let granted = Input::Granted(SWITCH, Generation(generation));
    for input in [granted, Input::Demoted(SWITCH)] {
        node_0.machine.handle(node_0.now, input, &mut out);
    }
    out.extend(node_0.run(Duration::from_secs(1)));
    assert!(out.contains(&Output::Ask(SWITCH)), "{out:?}");
    assert_eq!((claims(&out), writes(&out)), (vec![], vec![]));
    // The answer says above what the next record must be.
    let newest = Generation::new(40, 0, node(2));
    let mut out = Vec::new();
    node_0.machine.handle(node_0.now, Input::Asked(SWITCH, Some(newest)), &mut out);
    out.extend(node_0.run(Duration::from_secs(1)));
    let floors: Vec<u64> = out
        .iter()
        .filter_map(|output| match output {
            Output::Write { floor, .. } => Some(*floor),
            _ => None,
        })
        .collect();
    assert_eq!(floors, [41]);
}

#[test]
fn a_switch_that_nobody_claims_is_asked_and_reported_until_it_has_a_master() {
    let masters = vec![node(1), node(0), node(2)];
    let mut node_0 =
        Node::with(vec![(SWITCH, Record { masters, floor: 0, placed: false, revision: 7 })]);
    let mut out = Vec::new();
    // Node 1 has the switch, and does not claim it.
    let has = |version, generation| SwitchReport::All {
        version,
        switches: vec![SWITCH],
        generations: Some(vec![generation]),
    };
    node_0.hears(1, has(1, None), &mut out);
    node_0.machine.handle(node_0.now, Input::Connected(SWITCH, None), &mut out);
    out.extend(node_0.run(Duration::from_millis(900)));
    assert!(!out.contains(&Output::Ask(SWITCH)));
    let out = node_0.run(Duration::from_millis(5000));
    assert!(out.contains(&Output::Ask(SWITCH)));
    assert!(out.contains(&Output::Notice(Notice::Unclaimed(SWITCH))));
    let mut out = Vec::new();
    node_0.hears(1, has(2, Some(Generation::new(7, 0, node(1)))), &mut out);
    assert!(out.contains(&Output::Notice(Notice::Claimed(SWITCH))), "{out:?}");
    let out = node_0.run(Duration::from_secs(10));
    assert!(!out.contains(&Output::Ask(SWITCH)));
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

/// Node 0 as master of the switch, which node 1 has too.
fn master() -> Node {
    let (mut node_0, out) = connect(None);
    let granted = Input::Granted(SWITCH, Generation(claims(&out)[0]));
    node_0.machine.handle(node_0.now, granted, &mut Vec::new());
    node_0.hears(1, has_switch(1, None), &mut Vec::new());
    node_0
}

/// What node 1 reports: it has the switch, and is its master by this generation, if any.
fn has_switch(version: u64, generation: Option<Generation>) -> SwitchReport {
    let generations = Some(vec![generation]);
    SwitchReport::All { version, switches: vec![SWITCH], generations }
}

/// What became of moves.
fn moved(out: &[Output]) -> Vec<Result<(), NotMoved>> {
    let results = out.iter().filter_map(|output| match output {
        Output::Moved(_, result) => Some(*result),
        _ => None,
    });
    results.collect()
}

/// Orders a move to node 1, and lets node 1 accept it. Returns the record that node 0 writes.
fn accepted_move(node_0: &mut Node) -> Record {
    let mut out = Vec::new();
    node_0.machine.handle(node_0.now, Input::Move(SWITCH, node(1)), &mut out);
    let same = SwitchReport::Same { version: 1 };
    let accepts = Heartbeat { accept: Some(SWITCH), ..heartbeat(1, same) };
    node_0.machine.handle(node_0.now, Input::Heard(node(1), accepts), &mut out);
    let written = out.into_iter().find_map(|output| match output {
        Output::Write { masters, floor, placed, .. } => {
            Some(Record { masters, floor, placed, revision: 8 })
        }
        _ => None,
    });
    written.unwrap()
}

#[test]
fn a_move_is_done_when_the_other_node_is_master_by_its_record() {
    let mut node_0 = master();
    let record = accepted_move(&mut node_0);
    assert_eq!(record.placed_at(), Some(node(1)));
    let mut out = Vec::new();
    let generation = record.generation(node(1));
    let written = Input::Written(SWITCH, WriteResult::Written(record));
    node_0.machine.handle(node_0.now, written, &mut out);
    node_0.hears(1, has_switch(2, Some(Generation::new(3, 0, node(1)))), &mut out);
    assert_eq!(moved(&out), [], "that is an election before");
    node_0.hears(1, has_switch(3, generation), &mut out);
    assert_eq!(moved(&out), [Ok(())]);
}

#[test]
fn a_switch_that_obeys_the_other_node_before_etcd_answers_is_moved_and_no_alarm() {
    let mut node_0 = master();
    let record = accepted_move(&mut node_0);
    let mut out = Vec::new();
    node_0.machine.handle(node_0.now, Input::Demoted(SWITCH), &mut out);
    node_0.hears(1, has_switch(2, record.generation(node(1))), &mut out);
    assert_eq!(moved(&out), []);
    assert!(!out.contains(&Output::Notice(Notice::Fenced(SWITCH))), "{out:?}");
    let written = Input::Written(SWITCH, WriteResult::Written(record));
    node_0.machine.handle(node_0.now, written, &mut out);
    assert_eq!(moved(&out), [Ok(())]);
}

#[test]
fn a_move_that_is_not_done_in_time_is_given_up_with_its_reason() {
    let almost = ORDER_LIMIT - 2 * HEARTBEAT;
    let given_up = |node_0: &mut Node| {
        assert_eq!(moved(&node_0.run(almost)), []);
        moved(&node_0.run(3 * HEARTBEAT))
    };
    let mut node_0 = master();
    node_0.machine.handle(node_0.now, Input::Move(SWITCH, node(1)), &mut Vec::new());
    assert_eq!(given_up(&mut node_0), [Err(NotMoved::NotAccepted)]);

    let mut node_0 = master();
    accepted_move(&mut node_0);
    assert_eq!(given_up(&mut node_0), [Err(NotMoved::NotWritten)]);

    let mut node_0 = master();
    let record = accepted_move(&mut node_0);
    let written = Input::Written(SWITCH, WriteResult::Written(record));
    node_0.machine.handle(node_0.now, written, &mut Vec::new());
    assert_eq!(given_up(&mut node_0), [Err(NotMoved::NotObeyed)]);
}

#[test]
fn a_move_that_cannot_be_is_refused_at_once() {
    let mut out = Vec::new();
    let mut node_0 = master();
    // Node 2 does not have the switch.
    node_0.machine.handle(node_0.now, Input::Move(SWITCH, node(2)), &mut out);
    assert_eq!(moved(&out), [Err(NotMoved::CannotTake)]);
    let mut node_0 = Node::serving(1);
    out.clear();
    node_0.machine.handle(node_0.now, Input::Move(Dpid(0), node(2)), &mut out);
    assert_eq!(moved(&out), [Err(NotMoved::NotMaster(Some(node(1))))]);
}

#[test]
fn a_move_that_another_node_takes_over_is_no_success() {
    let mut node_0 = master();
    let record = accepted_move(&mut node_0);
    let mut out = Vec::new();
    node_0.machine.handle(node_0.now, Input::Changed(SWITCH, Some(record)), &mut out);
    let masters = vec![node(2), node(1), node(0)];
    let next = Record { masters, floor: 9, placed: false, revision: 9 };
    node_0.machine.handle(node_0.now, Input::Changed(SWITCH, Some(next)), &mut out);
    assert_eq!(moved(&out), [Err(NotMoved::TakenOver(Some(node(2))))]);
}

#[test]
fn an_order_to_balance_takes_all_marks_away_and_says_how_many_are_left() {
    let masters = vec![node(1), node(0), node(2)];
    let record = |number: u64| Record {
        masters: masters.clone(),
        floor: 0,
        placed: true,
        revision: number + 1,
    };
    let mut node_0 = Node::with((0..3).map(|number| (Dpid(number), record(number))).collect());
    let mut out = Vec::new();
    node_0.machine.handle(node_0.now, Input::Balance, &mut out);
    assert_eq!(writes(&out), [Dpid(0), Dpid(1), Dpid(2)]);
    for output in std::mem::take(&mut out) {
        let Output::Write { dpid, masters, floor, placed, .. } = output else { continue };
        assert!(!placed && masters[0] == node(1));
        // The last one is not answered.
        if dpid != Dpid(2) {
            let record = Record { masters, floor, placed, revision: 10 + dpid.0 };
            let written = Input::Written(dpid, WriteResult::Written(record));
            node_0.machine.handle(node_0.now, written, &mut out);
        }
    }
    out.extend(node_0.run(ORDER_LIMIT + HEARTBEAT));
    let left = out.iter().filter_map(|output| match output {
        Output::Balanced { left } => Some(*left),
        _ => None,
    });
    assert_eq!(Vec::from_iter(left), [1]);
}
