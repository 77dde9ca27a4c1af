//! The app `static` in a lab: what operators name is in the switches, and stays there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellrock_api::openflow::{GroupType, MessageKind};
use bellrock_api::{
    Action, BucketEntry, Dpid, Flow, FlowMod, GroupEntry, Match, MeterEntry, Port, ToSwitch,
    Version,
};
use bellrock_apps::static_entries::{
    Static, StaticChange, StaticEntries, StaticEntry, StaticOrder, stored_name,
};
use bellrock_book::MemoryStore;
use bellrock_emulator::lab::{Lab, on_both_versions};
use bellrock_emulator::network::LoggedMessage;
use bellrock_emulator::topology::ring;
use bellrock_services::desired::{
    AUDIT_EVERY, DesiredEntry, IntentState, MissingReason, OperatorChange,
};

const SEED: u64 = 7;
/// Time of the clock by which entries of a store end.
const NOW: Duration = Duration::from_secs(1_767_225_600);
const WITHIN: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_millis(50);

/// Switches retry their controller every 8 seconds.
const BACK_WITHIN: Duration = Duration::from_secs(20);

on_both_versions!(
    entries_are_confirmed_and_removed,
    entries_survive_restarts_without_a_gap,
    flows_deleted_by_others_are_put_back,
    flows_deleted_by_an_operator_are_put_back_at_once,
    an_entry_ends_at_its_time,
    refused_and_waiting_entries_are_reported,
    exact_flows_of_one_match_are_refused_where_they_are_one_flow
);

fn lab(version: Version, entries: &StaticEntries) -> Lab {
    Lab::seeded(SEED).topology(ring(3, 1)).version(version).run(Static::new(entries))
}

fn entry(name: &str, dpid: u64, wanted: impl Into<DesiredEntry>) -> StaticEntry {
    StaticEntry {
        name: name.to_owned(),
        owner: "operator".to_owned(),
        dpid: Dpid(dpid),
        wanted: wanted.into(),
        end: None,
        number: 0,
    }
}

/// A flow for packets of an Ethernet type that nobody sends.
fn flow(port: u32) -> Flow {
    Flow::new(Match::any().in_port(Port(port)).eth_type(0x88b5)).priority(7).output(Port(1))
}

/// Gives an order. Returns the entries that are not confirmed when all is decided.
fn change(
    lab: &mut Lab,
    entries: &StaticEntries,
    set: Vec<StaticEntry>,
    remove: &[&str],
) -> (StaticChange, BTreeMap<u32, IntentState>) {
    let remove = remove.iter().map(|name| (*name).to_owned()).collect();
    let order = StaticOrder { owner: "operator".to_owned(), set, remove, replace: false };
    let ordering = entries.clone();
    let change = output(lab, async move { ordering.order(order).await.unwrap() });
    let decided = decided(lab, entries, change.numbers.clone());
    (change, decided)
}

fn decided(
    lab: &mut Lab,
    entries: &StaticEntries,
    numbers: BTreeSet<u32>,
) -> BTreeMap<u32, IntentState> {
    let entries = entries.clone();
    output(lab, async move { entries.decided(&numbers).await })
}

/// Runs a task of the controller to its end.
fn output<T: Send + 'static>(lab: &mut Lab, task: impl Future<Output = T> + Send + 'static) -> T {
    let answer = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&answer);
    lab.controller().unwrap().spawn("test", async move {
        let output = task.await;
        *kept.lock().unwrap() = Some(output);
    });
    assert!(lab.run_until(WITHIN, |_| answer.lock().unwrap().is_some()));
    let output = answer.lock().unwrap().take();
    output.unwrap()
}

fn static_flows(lab: &Lab, switch: &str) -> usize {
    lab.flows(switch).iter().filter(|flow| flow.contains("0x88b5")).count()
}

fn entries_are_confirmed_and_removed(version: Version) {
    let entries = StaticEntries::default();
    let mut lab = lab(version, &entries);
    let set = (1..=3).map(|n| entry(&format!("f{n}"), n, flow(1))).collect();
    let (change_1, open) = change(&mut lab, &entries, set, &[]);
    assert_eq!((change_1.set, open), (3, BTreeMap::new()));
    assert_eq!(["s1", "s2", "s3"].map(|switch| static_flows(&lab, switch)), [1; 3]);
    // One moves to another switch, and one goes.
    let (_, open) = change(&mut lab, &entries, vec![entry("f2", 3, flow(2))], &["f1"]);
    assert_eq!(open, BTreeMap::new());
    assert_eq!(["s1", "s2", "s3"].map(|switch| static_flows(&lab, switch)), [0, 0, 2]);
}

fn exact_flows_of_one_match_are_refused_where_they_are_one_flow(version: Version) {
    let entries = StaticEntries::default();
    let mut lab = lab(version, &entries);
    let text =
        "in_port=1,eth_src=02:00:00:00:00:01,eth_dst=02:00:00:00:00:02,eth_type=0x88b5,vlan_vid=0";
    let flow = |priority| Flow::new(text.parse().unwrap()).priority(priority).output(Port(1));
    assert!(flow(7).matching.is_exact());
    change(&mut lab, &entries, vec![entry("a", 1, flow(7))], &[]);
    let order = |set| StaticOrder { owner: "operator".to_owned(), set, ..StaticOrder::default() };
    for set in [vec![entry("b", 1, flow(8))], vec![entry("c", 2, flow(8)), entry("d", 2, flow(9))]]
    {
        let (ordering, order) = (entries.clone(), order(set));
        let ordered = output(&mut lab, async move { ordering.order(order).await });
        match (version, ordered) {
            (Version::V1_0, Err(error)) => {
                assert!(error.to_string().contains("is the same flow of this switch: in Open"));
            }
            (Version::V1_3, Ok(_)) => {}
            (_, ordered) => panic!("{version} {ordered:?}"),
        }
    }
    // The entry itself may change, also in its priority, and go.
    let (_, open) = change(&mut lab, &entries, vec![entry("a", 1, flow(9))], &[]);
    assert_eq!(open, BTreeMap::new());
    let (_, open) = change(&mut lab, &entries, vec![entry("e", 1, flow(10))], &["a"]);
    assert_eq!(open, BTreeMap::new());
}

fn entries_survive_restarts_without_a_gap(version: Version) {
    let store = MemoryStore::default();
    let entries = StaticEntries::stored(Arc::new(store.clone()), || NOW);
    let mut lab = lab(version, &entries);
    let set = (1..=3).map(|n| entry(&format!("f{n}"), n, flow(1))).collect();
    change(&mut lab, &entries, set, &[]);
    // A switch loses its tables.
    lab.restart("s2", false);
    assert_eq!(static_flows(&lab, "s2"), 0);
    assert!(lab.run_until(BACK_WITHIN, |lab| static_flows(lab, "s2") == 1));

    // The controller comes back with what was kept, of which one entry has gone meanwhile.
    lab.stop_controller();
    lab.run_for(Duration::from_secs(1));
    assert_eq!(static_flows(&lab, "s1"), 1, "flows stay without a controller");
    let kept = store.with(|all| {
        let kept = all.filter(|(name, _)| *name != stored_name("f3"));
        kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>()
    });
    let next = StaticEntries::stored(Arc::new(MemoryStore::with_entries(kept)), || NOW);
    lab.start_controller(Static::new(&next));
    let never_missing = |lab: &Lab| static_flows(lab, "s1") == 1 && static_flows(lab, "s2") == 1;
    for _ in 0..100 {
        lab.run_for(BACK_WITHIN / 100);
        assert!(never_missing(&lab));
    }
    assert_eq!(static_flows(&lab, "s3"), 0, "what is not wanted any more goes");
    assert_eq!(decided(&mut lab, &next, BTreeSet::from([1, 2])), BTreeMap::new());
}

fn flows_deleted_by_others_are_put_back(version: Version) {
    let entries = StaticEntries::default();
    let mut lab = lab(version, &entries);
    change(&mut lab, &entries, vec![entry("f1", 1, flow(1))], &[]);
    let any = Match::any();
    let all = ToSwitch::FlowMod(FlowMod::delete(&any));
    lab.controller().unwrap().send(Dpid(1), &all).unwrap();
    assert!(lab.run_until(WITHIN, |lab| static_flows(lab, "s1") == 0));
    assert!(lab.run_until(2 * AUDIT_EVERY, |lab| static_flows(lab, "s1") == 1));
}

/// An operator deletes all flows of a switch by an order to the controller.
fn flows_deleted_by_an_operator_are_put_back_at_once(version: Version) {
    let entries = StaticEntries::default();
    let mut lab = lab(version, &entries);
    let set = (1..=2).map(|n| entry(&format!("f{n}"), n, flow(1))).collect();
    change(&mut lab, &entries, set, &[]);
    // The tables have just been read, and are read once a second at most.
    lab.run_for(WITHIN);
    let network = lab.controller().unwrap();
    let order = OperatorChange::begin(&network, Dpid(1));
    let any = Match::any();
    network.send(Dpid(1), &ToSwitch::FlowMod(FlowMod::delete(&any))).unwrap();
    lab.run_for(SOON);
    assert_eq!(static_flows(&lab, "s1"), 0, "nothing is read before the order has ended");
    assert_eq!(unsettled(&mut lab, &entries), BTreeMap::from([(1, IntentState::Due)]));
    drop(order);
    lab.run_for(SOON);
    assert_eq!(static_flows(&lab, "s1"), 1);
    assert_eq!(unsettled(&mut lab, &entries), BTreeMap::new());
    // One order after the other: the tables are read once a second.
    for _ in 0..20 {
        drop(OperatorChange::begin(&network, Dpid(1)));
        lab.run_for(SOON);
    }
    lab.run_for(WITHIN);
    assert_eq!(unsettled(&mut lab, &entries), BTreeMap::new());
    let is_read = |message: &&LoggedMessage| message.kind() == Some(MessageKind::MultipartRequest);
    let reads = |lab: &Lab| lab.messages("s1").filter(is_read).count();
    let before = reads(&lab);
    for _ in 0..100 {
        drop(OperatorChange::begin(&network, Dpid(1)));
        lab.run_for(SOON);
    }
    let seconds = 100 * SOON.as_millis() as usize / 1000;
    assert!(reads(&lab) - before <= seconds + 1, "{} in {seconds} s", reads(&lab) - before);
}

/// The states of all entries that are not confirmed.
fn unsettled(lab: &mut Lab, entries: &StaticEntries) -> BTreeMap<u32, IntentState> {
    let entries = entries.clone();
    output(lab, async move { entries.unsettled().await })
}

fn an_entry_ends_at_its_time(version: Version) {
    let entries = StaticEntries::default();
    let mut lab = lab(version, &entries);
    let end = lab.controller().unwrap().now() + Duration::from_secs(10);
    let short = StaticEntry { end: Some(end), ..entry("short", 1, flow(1)) };
    change(&mut lab, &entries, vec![short, entry("long", 1, flow(2))], &[]);
    lab.run_for(Duration::from_secs(5));
    assert_eq!(static_flows(&lab, "s1"), 2);
    // Ends are whole seconds: up to one later.
    lab.run_for(Duration::from_secs(7));
    assert_eq!(static_flows(&lab, "s1"), 1);
    let left = entries.all();
    assert_eq!(left.iter().map(|entry| &*entry.name).collect::<Vec<_>>(), ["long"]);
}

fn refused_and_waiting_entries_are_reported(version: Version) {
    let entries = StaticEntries::default();
    let mut lab = lab(version, &entries);
    // A meter that does not exist, and a switch that does not.
    let set = vec![
        entry("metered", 1, flow(1).meter(9)),
        entry("away", 99, flow(1)),
        entry("good", 2, flow(1)),
    ];
    let (_, open) = change(&mut lab, &entries, set, &[]);
    assert_eq!(open.keys().copied().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(open[&2], IntentState::Away(Dpid(99)));
    match version {
        Version::V1_0 => {
            assert!(matches!(open[&1], IntentState::Refused(Dpid(1), MissingReason::Unsayable(_))));
        }
        Version::V1_3 => {
            assert!(matches!(open[&1], IntentState::Refused(Dpid(1), MissingReason::Refused(_))));
        }
    }
}

#[test]
fn groups_and_meters_come_before_the_flows_that_use_them() {
    let entries = StaticEntries::default();
    let mut lab = lab(Version::V1_3, &entries);
    let bucket = |port| {
        let actions = [Action::output(Port(port))];
        BucketEntry::of(&actions).weight(1)
    };
    let group = GroupEntry::new(7, GroupType::Select).bucket(bucket(1)).bucket(bucket(2));
    let set = vec![
        entry("a-flow", 1, Flow::new(Match::any().in_port(Port(3))).meter(5).group(7)),
        entry("group", 1, group),
        entry("meter", 1, MeterEntry::drop_above_kbps(5, 1000)),
    ];
    let (_, open) = change(&mut lab, &entries, set, &[]);
    assert_eq!(open, BTreeMap::new());
    let is_there = |lab: &Lab| lab.flows("s1").iter().any(|flow| flow.contains("group:7"));
    assert!(is_there(&lab));
    let (_, open) = change(&mut lab, &entries, vec![], &["a-flow", "group", "meter"]);
    assert_eq!(open, BTreeMap::new());
    assert!(!is_there(&lab));
}
