//! Circuits in a store: over a restart of the controller, and of several controllers that share it.
//! Each of these has a network of its own here, so what it decides by itself would show.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bellrock_api::{Dpid, Event, Version};
use bellrock_apps::provisioning::{
    CircuitState, CircuitStatus, Circuits, Provisioning, ProvisioningSettings,
};
use bellrock_book::{
    CommitFuture, EntryStore, MemoryStore, NotStored, StoreChange, StoreEvents, StoreLimits,
};
use bellrock_emulator::lab::{Faults, Lab};
use bellrock_emulator::topology::{NamedTopology, leaf_spine, ring};
use bellrock_services::desired::wanted_flow_counts;

/// By then discovery has probed all ports.
const SETTLED: Duration = Duration::from_secs(12);
const SECOND: Duration = Duration::from_secs(1);

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

fn settings(texts: &[&str]) -> ProvisioningSettings {
    let circuits = texts.iter().map(|text| text.parse().unwrap()).collect();
    ProvisioningSettings { circuits, ..Default::default() }
}

fn stored(texts: &[&str], store: &MemoryStore) -> Circuits {
    Circuits::stored(settings(texts), Arc::new(store.clone())).unwrap()
}

fn shared(texts: &[&str], store: &MemoryStore, node: &str) -> Circuits {
    Circuits::shared(settings(texts), Arc::new(store.clone()), node.to_owned()).unwrap()
}

/// Two nodes that live. The first one leads.
fn store_of_two() -> MemoryStore {
    let alive = |node: &str| (format!("node/{node}"), "\"\"".to_owned());
    MemoryStore::with_entries([alive("a"), alive("b")])
}

fn lab(topology: NamedTopology, version: Version, circuits: &Circuits) -> Lab {
    let lab = Lab::seeded(3).topology(topology).version(version);
    let mut lab = lab.run(Provisioning::new(circuits));
    lab.run_for(SETTLED);
    lab
}

fn is_up(status: &CircuitStatus) -> bool {
    matches!(status.state, CircuitState::Up { .. })
}

/// The switches that send frames of a circuit over a link, by its name.
fn path(circuits: &Circuits, name: &str) -> Vec<u64> {
    let all = circuits.list();
    let status = all.iter().find(|status| status.circuit.name == name).unwrap();
    status.path.iter().map(|port| port.dpid.0).collect()
}

const SWITCHES: [&str; 5] = ["s1", "s2", "s3", "s4", "s5"];

/// All flows with their cookies, without ages and counts.
fn flows(lab: &Lab) -> Vec<Vec<String>> {
    let flow = |line: String| {
        let changes =
            |word: &&str| ["duration=", "packets=", "bytes="].iter().any(|it| word.starts_with(it));
        line.split(' ').filter(|word| !changes(word)).collect::<Vec<_>>().join(" ")
    };
    let of = |switch: &&str| {
        let mut flows: Vec<_> = lab.flows(switch).into_iter().map(flow).collect();
        flows.sort();
        flows
    };
    SWITCHES.iter().map(of).collect()
}

/// The age of the youngest flow of a circuit, in seconds.
fn youngest(lab: &Lab) -> f64 {
    let flows = SWITCHES.iter().flat_map(|switch| lab.flows(switch));
    let ages = flows.filter(|flow| flow.contains("vlan")).map(|flow| {
        let age = flow.split("duration=").nth(1).unwrap().split('s').next().unwrap();
        age.parse::<f64>().unwrap()
    });
    ages.fold(f64::MAX, f64::min)
}

/// Names and texts of the circuits' events about differences, in order.
fn differences(lab: &Lab) -> Vec<String> {
    let events = lab.controller().unwrap().events().latest(usize::MAX);
    let text = |event: &Event| match event {
        Event::App { event, .. }
            if ["circuit_differs", "circuit_agrees"].contains(&event.name()) =>
        {
            Some(format!("{} {}", event.name(), event.text()))
        }
        _ => None,
    };
    events.iter().filter_map(|record| text(&record.event)).collect()
}

/// Moves blue from its first path, by s3, to the one by s4, and brings the link back.
fn move_to_s4(lab: &mut Lab, circuits: &Circuits) {
    assert_eq!(path(circuits, "blue"), [1, 3]);
    lab.link_down("s1", "s3");
    lab.run_for(SETTLED);
    lab.link_up("s1", "s3");
    lab.run_for(SETTLED);
    // A path that is as good as another one stays.
    assert_eq!(path(circuits, "blue"), [1, 4], "{:?}", circuits.list());
}

#[test]
fn a_restart_changes_no_flow_of_a_circuit_that_has_moved() {
    for version in VERSIONS {
        let store = MemoryStore::default();
        let all = stored(&["blue 1:1 2:1"], &store);
        let mut lab = lab(leaf_spine(2, 3, 1), version, &all);
        move_to_s4(&mut lab, &all);
        assert!(lab.ping("h1", "h2"), "{version}");
        let before = flows(&lab);
        let pings = lab.start_pings("h1", "h2", 5000, Duration::from_millis(10));
        lab.stop_controller();
        lab.run_for(SECOND);
        let again = stored(&["blue 1:1 2:1"], &store);
        lab.start_controller(Provisioning::new(&again));
        for second in 1..=90 {
            lab.run_for(SECOND);
            // Other flows, those by which discovery works, come back one by one.
            for (now, before) in flows(&lab).iter().zip(&before) {
                let mut tagged = before.iter().filter(|flow| flow.contains("vlan"));
                assert_eq!(
                    tagged.find(|it| !now.contains(it)),
                    None,
                    "{version}, after {second} s"
                );
            }
        }
        assert_eq!(flows(&lab), before, "{version}");
        let age = youngest(&lab);
        assert!((91.0..f64::MAX).contains(&age), "{version}: a flow is {age} s old");
        assert_eq!(path(&again, "blue"), [1, 4], "{version}");
        assert!(again.list().iter().all(is_up), "{version} {:?}", again.list());
        let statistics = lab.statistics(&pings);
        assert_eq!((statistics.sent, statistics.received), (5000, 5000), "{version}");
        // The numbers are free again when the circuit is not configured any more.
        again.change(Vec::new()).unwrap();
        lab.run_for(SETTLED);
        let is_circuit = |(name, _): &(&str, &str)| name.starts_with("circuit/");
        assert_eq!(store.with(|entries| entries.filter(is_circuit).count()), 0, "{version}");
    }
}

/// A link that went down while no controller ran is lost.
#[test]
fn a_path_that_broke_during_a_restart_is_replaced() {
    for version in VERSIONS {
        let store = MemoryStore::default();
        let all = stored(&["blue 1:1 2:1"], &store);
        let mut lab = lab(leaf_spine(2, 3, 1), version, &all);
        lab.stop_controller();
        lab.link_down("s1", "s3");
        lab.run_for(SECOND);
        let again = stored(&["blue 1:1 2:1"], &store);
        lab.start_controller(Provisioning::new(&again));
        lab.run_for(SETTLED);
        assert!(lab.ping("h1", "h2") && lab.ping("h2", "h1"), "{version}");
        assert_ne!(path(&again, "blue"), [1, 3], "{version}");
        assert!(again.list().iter().all(is_up), "{version} {:?}", again.list());
    }
}

/// The other controller sees the first path, and would take it by itself.
#[test]
fn each_controller_lays_what_the_leader_has_chosen_and_the_next_leader_nothing_anew() {
    for version in VERSIONS {
        let store = store_of_two();
        let [a, b] = ["a", "b"].map(|node| shared(&["blue 1:1 2:1"], &store, node));
        let mut lab_a = lab(leaf_spine(2, 3, 1), version, &a);
        move_to_s4(&mut lab_a, &a);
        let mut lab_b = lab(leaf_spine(2, 3, 1), version, &b);
        lab_b.run_for(SETTLED);
        assert!(b.list().iter().all(is_up), "{version} {:?}", b.list());
        assert_eq!(path(&b, "blue"), [1, 4], "{version}");
        assert_eq!(flows(&lab_b), flows(&lab_a), "{version}");
        assert!(lab_b.ping("h1", "h2") && lab_b.ping("h2", "h1"), "{version}");
        // What is lost in the network of one that does not lead, the leader decides.
        let before = flows(&lab_b);
        lab_b.link_down("s1", "s4");
        lab_b.run_for(SETTLED);
        lab_b.link_up("s1", "s4");
        lab_b.run_for(SETTLED);
        assert_eq!((path(&b, "blue"), flows(&lab_b)), (vec![1, 4], before.clone()), "{version}");

        // The leader ends, without notice of it.
        let remove = StoreChange::Remove { name: "node/a".into(), expected: 1 };
        drop(store.commit(vec![remove]));
        lab_b.run_for(SETTLED * 2);
        assert_eq!((path(&b, "blue"), flows(&lab_b)), (vec![1, 4], before), "{version}");
        lab_b.link_down("s1", "s4");
        lab_b.run_for(SETTLED);
        let moved = path(&b, "blue");
        assert_ne!(moved, [1, 4], "{version}");
        // The earlier leader has another reason to move the circuit, and may not.
        lab_a.link_down("s2", "s4");
        lab_a.run_for(SETTLED);
        assert_eq!((path(&a, "blue"), path(&b, "blue")), (moved.clone(), moved), "{version}");
        assert_eq!(flows(&lab_a), flows(&lab_b), "{version}");
    }
}

#[test]
fn the_circuits_of_the_leader_count_and_a_difference_is_an_alarm() {
    let store = store_of_two();
    let a = shared(&["blue 1:1 2:1", "green 1:1:5 2:1:5"], &store, "a");
    let b = shared(&["blue 1:1:7 2:1", "red 1:1 2:1:9"], &store, "b");
    let _lab_a = lab(leaf_spine(2, 3, 1), Version::V1_3, &a);
    let mut lab_b = lab(leaf_spine(2, 3, 1), Version::V1_3, &b);
    lab_b.run_for(SETTLED);
    let all = b.list();
    let [blue, red, green] = &all[..] else { panic!("{all:?}") };
    assert!(is_up(blue) && is_up(green), "{all:?}");
    assert_eq!(blue.circuit, a.list()[0].circuit);
    let of = |status: &CircuitStatus| status.difference.clone().unwrap();
    assert!(
        of(blue).starts_with("node a leads and has other endpoints for it; here it has"),
        "{all:?}"
    );
    assert_eq!(of(red), "node a leads and does not have it");
    assert_eq!(of(green), "node a leads and has it; here it is not configured");
    assert!(
        matches!(&red.state, CircuitState::Down(why) if why.starts_with("node a leads")),
        "{all:?}"
    );
    assert!(lab_b.ping("h1", "h2"), "the circuit of the leader");
    assert!(a.list().iter().all(|status| status.difference.is_none()));
    let events = differences(&lab_b);
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(events.iter().all(|event| event.starts_with("circuit_differs circuit ")), "{events:?}");
    b.change(settings(&["blue 1:1 2:1", "green 1:1:5 2:1:5"]).circuits).unwrap();
    lab_b.run_for(SETTLED);
    let events = differences(&lab_b);
    assert_eq!(events.len(), 6, "{events:?}");
    assert!(
        events[3..].iter().all(|event| event.starts_with("circuit_agrees circuit ")),
        "{events:?}"
    );
    assert!(b.list().iter().all(|status| status.difference.is_none() && is_up(status)));
}

#[test]
fn a_leader_that_does_not_know_all_settings_yet_removes_no_circuit() {
    let store = store_of_two();
    let before = shared(&["blue 1:1 2:1"], &store, "a");
    let mut lab = lab(leaf_spine(2, 3, 1), Version::V1_3, &before);
    assert!(lab.ping("h1", "h2") && before.list().iter().all(is_up));
    let laid = flows(&lab);
    lab.stop_controller();
    // Its file has none, and what nodes share is not known.
    let again = shared(&[], &store, "a");
    again.hold();
    lab.start_controller(Provisioning::new(&again));
    lab.run_for(SETTLED * 5);
    let [blue] = &again.list()[..] else { panic!("{:?}", again.list()) };
    assert!(is_up(blue), "{blue:?}");
    assert_eq!(flows(&lab), laid);
    again.change(settings(&["blue 1:1 2:1", "red 1:1:5 2:1:5"]).circuits).unwrap();
    lab.run_for(SETTLED);
    let [_, red] = &again.list()[..] else { panic!("{:?}", again.list()) };
    let CircuitState::Down(why) = &red.state else { panic!("{red:?}") };
    assert_eq!(why, "the configuration that the nodes share is not known yet");
    again.release();
    lab.run_for(SETTLED);
    assert!(again.list().len() == 2 && again.list().iter().all(is_up), "{:?}", again.list());
    again.change(Vec::new()).unwrap();
    lab.run_for(SETTLED);
    assert_eq!(again.list(), [], "now it decides");
}

#[test]
fn other_vlans_than_those_of_the_leader_are_a_difference() {
    let store = store_of_two();
    let a = shared(&["blue 1:1 2:1"], &store, "a");
    let other = ProvisioningSettings { vlans: 3000..=3999, ..settings(&["blue 1:1 2:1"]) };
    let b = Circuits::shared(other, Arc::new(store.clone()), "b".to_owned()).unwrap();
    let lab_a = lab(leaf_spine(2, 3, 1), Version::V1_3, &a);
    let mut lab_b = lab(leaf_spine(2, 3, 1), Version::V1_3, &b);
    lab_b.run_for(SETTLED);
    let [blue] = &b.list()[..] else { panic!("{:?}", b.list()) };
    assert!(is_up(blue), "{blue:?}");
    let difference = blue.difference.as_deref().unwrap();
    assert!(difference.starts_with("node a leads and has the VLANs 2"), "{difference}");
    assert!(
        difference.ends_with("`vlans` and `vlans_per_circuit` are others here"),
        "{difference}"
    );
    assert_eq!(flows(&lab_a), flows(&lab_b), "the flows are those of the leader");
}

/// A store that refuses some commits, and loses the answers of some.
#[derive(Clone, Debug)]
struct UnreliableStore {
    entries: MemoryStore,
    random: Arc<AtomicU64>,
    is_reliable: Arc<AtomicBool>,
}

impl EntryStore for UnreliableStore {
    fn limits(&self) -> StoreLimits {
        self.entries.limits()
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        if self.is_reliable.load(Ordering::Relaxed) {
            return self.entries.commit(changes);
        }
        let fault = |error| -> CommitFuture { Box::pin(std::future::ready(Err(error))) };
        // A step of a linear congruential generator; its high bits are good.
        let step = |seed: u64| Some(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        let random = self.random.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).unwrap();
        match random >> 61 {
            0 | 1 => fault(NotStored::Unavailable("the store is away".into())),
            2 => fault(NotStored::Unknown("the question was lost".into())),
            3 => {
                drop(self.entries.commit(changes));
                fault(NotStored::Unknown("the answer was lost".into()))
            }
            _ => self.entries.commit(changes),
        }
    }

    fn follow(&self) -> StoreEvents {
        self.entries.follow()
    }
}

/// Switches, links and control connections fail, and the store too. Afterwards the switches have
/// what is stored, and nothing else; a restart changes nothing about it.
#[test]
fn the_switches_have_what_is_stored_whatever_goes_wrong() {
    let texts = ["blue 1:1 2:1", "board 1:2 2:2 3:1"];
    // Flows beside those that are wanted.
    let others = |lab: &Lab| {
        let network = lab.controller().unwrap();
        let wanted = |dpid: u64| {
            let counts = wanted_flow_counts(&network, Dpid(dpid));
            counts.iter().map(|(_, count)| *count).sum::<usize>()
        };
        let flows = |dpid: u64| lab.flows(&format!("s{dpid}")).len();
        (1..=6).map(|dpid| flows(dpid) - wanted(dpid)).collect::<Vec<_>>()
    };
    for version in VERSIONS {
        let calm = lab(leaf_spine(3, 3, 2), version, &stored(&texts, &MemoryStore::default()));
        for seed in 0..6 {
            let store = UnreliableStore {
                entries: MemoryStore::default(),
                random: Arc::new(AtomicU64::new(seed)),
                is_reliable: Arc::default(),
            };
            let all = Circuits::stored(settings(&texts), Arc::new(store.clone())).unwrap();
            let mut lab = lab(leaf_spine(3, 3, 2), version, &all);
            let plan = lab.inject(&Faults::random(seed));
            lab.run_for(plan.lasts() + lab.recovery_time(Duration::ZERO));
            store.is_reliable.store(true, Ordering::Relaxed);
            lab.run_for(SETTLED * 3);
            assert!(all.list().iter().all(is_up), "{version} {:?} {plan}", all.list());
            for (from, to) in [("h1", "h3"), ("h3", "h1"), ("h2", "h4"), ("h4", "h5")] {
                assert!(lab.ping(from, to), "{version} {from} {to} {plan}");
            }
            assert_eq!(others(&lab), others(&calm), "{version} {plan}");
            let (before, paths) = (flows(&lab), [path(&all, "blue"), path(&all, "board")]);
            lab.stop_controller();
            lab.run_for(SECOND);
            let again = stored(&texts, &store.entries);
            lab.start_controller(Provisioning::new(&again));
            lab.run_for(SECOND * 90);
            assert_eq!(flows(&lab), before, "{version} {plan}");
            assert_eq!([path(&again, "blue"), path(&again, "board")], paths, "{version} {plan}");
        }
    }
}

/// A circuit keeps what it has when another one is added in front and the controller starts anew.
#[test]
fn stored_numbers_stay_when_others_want_them() {
    let store = MemoryStore::default();
    let vlans = 2000..=2015;
    let settings =
        |texts: &[&str]| ProvisioningSettings { vlans: vlans.clone(), ..settings(texts) };
    let new = |texts: &[&str]| Circuits::stored(settings(texts), Arc::new(store.clone())).unwrap();
    let names = || {
        store.with(|entries| {
            let circuits = entries.filter_map(|(name, value)| {
                let number: u32 = name.strip_prefix("circuit/")?.parse().ok()?;
                let text = value.strip_prefix("\"name=")?.split(' ').next()?;
                Some((text.to_owned(), number))
            });
            circuits.collect::<Vec<_>>()
        })
    };
    // With two numbers, any other name wants that of blue half of the time.
    let all = new(&["blue 1:1 3:1"]);
    let mut lab = lab(ring(4, 2), Version::V1_3, &all);
    let [(_, blue)] = names()[..] else { panic!("{:?}", names()) };
    for other in ["a", "b", "c", "d", "e", "f"] {
        lab.stop_controller();
        let again = new(&[&format!("{other} 2:1 4:1"), "blue 1:1 3:1"]);
        lab.start_controller(Provisioning::new(&again));
        lab.run_for(SETTLED * 2);
        assert!(again.list().iter().all(is_up), "{other} {:?}", again.list());
        assert!(names().contains(&("blue".to_owned(), blue)), "{other} {:?}", names());
        assert!(names().contains(&(other.to_owned(), 1 - blue)), "{other} {:?}", names());
    }
}
