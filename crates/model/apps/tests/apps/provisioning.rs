//! The app `provisioning` in a lab: circuits from end to end, kept through failures.

use std::time::Duration;

use bellrock_api::{Dpid, Event, EventRecord, Version};
use bellrock_apps::Learning;
use bellrock_apps::provisioning::{CircuitState, Circuits, Provisioning, ProvisioningSettings};
use bellrock_emulator::lab::{FaultKind, Faults, Lab, Misreport};
use bellrock_emulator::network::NetworkSettings;
use bellrock_emulator::topology::{
    NamedTopology, fat_tree, leaf_spine, linear, ring, single, tree,
};
use bellrock_services::desired::wanted_flow_counts;

/// By then discovery has probed all ports.
const SETTLED: Duration = Duration::from_secs(12);
const EVERY: Duration = Duration::from_millis(5);

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

fn circuits(texts: &[&str]) -> Circuits {
    let circuits = texts.iter().map(|text| text.parse().unwrap()).collect();
    Circuits::new(ProvisioningSettings { circuits, ..Default::default() }).unwrap()
}

fn lab(topology: NamedTopology, version: Version, circuits: &Circuits) -> Lab {
    let lab = Lab::seeded(3).topology(topology).version(version);
    let mut lab = lab.run(Provisioning::new(circuits));
    lab.run_for(SETTLED);
    lab
}

fn states(circuits: &Circuits) -> Vec<CircuitState> {
    circuits.list().into_iter().map(|status| status.state).collect()
}

fn is_up(state: &CircuitState) -> bool {
    matches!(state, CircuitState::Up { .. })
}

fn down(state: &CircuitState) -> &str {
    let CircuitState::Down(why) = state else { panic!("{state:?}") };
    why
}

#[test]
fn two_ports_are_joined_and_nobody_else() {
    for version in VERSIONS {
        let all = circuits(&["blue 1:1 3:1"]);
        let mut lab = lab(ring(4, 1), version, &all);
        assert!(states(&all).iter().all(is_up), "{version} {:?}", all.list());
        assert!(lab.ping("h1", "h3") && lab.ping("h3", "h1"), "{version} {:#?}", lab.flows("s1"));
        assert!(!lab.ping("h1", "h2") && !lab.ping("h2", "h4"), "{version}");
        assert_eq!(lab.duplicates(), [], "{version}");
    }
}

#[test]
fn ports_of_one_switch_and_more_than_two_are_joined_too() {
    for version in VERSIONS {
        // h1 to h3 are at s2, h4 to h6 at s3, h7 to h9 at s4; port 4 of each leads to s1.
        let all = circuits(&["here 2:1 2:2", "three 2:3 3:1 3:2 4:1"]);
        let mut lab = lab(tree(2, 3), version, &all);
        assert!(states(&all).iter().all(is_up), "{version} {:?}", all.list());
        assert!(lab.ping("h1", "h2"), "{version}");
        for (from, to) in [("h3", "h4"), ("h3", "h7"), ("h5", "h4"), ("h7", "h5"), ("h4", "h3")] {
            assert!(lab.ping(from, to), "{version} {from} {to}");
        }
        assert!(
            !lab.ping("h1", "h3") && !lab.ping("h4", "h6") && !lab.ping("h8", "h7"),
            "{version}"
        );
        assert_eq!(lab.duplicates(), [], "{version}");
    }
}

#[test]
fn circuits_change_while_the_controller_runs() {
    for version in VERSIONS {
        let parsed = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        // The host at port 1 of s3 is h1s3.
        let all = circuits(&["blue 1:1 3:1", "red 2:1 4:1"]);
        let mut lab = lab(ring(4, 2), version, &all);
        assert!(lab.ping("h1s1", "h1s3") && lab.ping("h1s2", "h1s4"), "{version}");

        // Red goes, green takes its port, and no frame of blue is lost.
        let pings = lab.start_pings("h1s1", "h1s3", 400, EVERY);
        lab.run_for(Duration::from_millis(500));
        all.change(parsed(&["blue 1:1 3:1", "green 2:1 3:2", "black 1:2 4:2 2:2"])).unwrap();
        lab.run_for(Duration::from_secs(3));
        let statistics = lab.statistics(&pings);
        assert_eq!((statistics.sent, statistics.received), (400, 400), "{version}");
        assert!(states(&all).iter().all(is_up), "{version} {:?}", all.list());
        for (from, to) in [("h1s2", "h2s3"), ("h2s1", "h2s4"), ("h2s2", "h2s1"), ("h1s1", "h1s3")] {
            assert!(lab.ping(from, to) && lab.ping(to, from), "{version} {from} {to}");
        }
        assert!(!lab.ping("h1s2", "h1s4") && !lab.ping("h1s2", "h1s3"), "{version}: red is gone");

        // Other endpoints, and another number of them.
        all.change(parsed(&["blue 1:1 4:1", "green 2:1 3:2 3:1", "black 1:2 4:2"])).unwrap();
        lab.run_for(SETTLED);
        assert!(states(&all).iter().all(is_up), "{version} {:?}", all.list());
        for (from, to) in [("h1s1", "h1s4"), ("h1s2", "h2s3"), ("h1s3", "h1s2"), ("h2s1", "h2s4")] {
            assert!(lab.ping(from, to) && lab.ping(to, from), "{version} {from} {to}");
        }
        assert!(!lab.ping("h1s1", "h1s3") && !lab.ping("h2s1", "h2s2"), "{version}");

        // What cannot be together changes nothing.
        let names = |all: &Circuits| -> Vec<String> {
            all.list().into_iter().map(|status| status.circuit.name).collect()
        };
        let before = names(&all);
        all.change(parsed(&["blue 1:1 4:1", "red 1:1 2:1"])).unwrap_err();
        assert_eq!(names(&all), before);

        all.change(Vec::new()).unwrap();
        lab.run_for(SETTLED);
        assert_eq!(all.list(), []);
        let without = self::lab(ring(4, 2), version, &circuits(&[]));
        for switch in ["s1", "s2", "s3", "s4"] {
            let flows = (lab.flows(switch).len(), without.flows(switch).len());
            assert_eq!(flows.0, flows.1, "{version}: {:#?}", lab.flows(switch));
        }
    }
}

/// With two numbers, each new circuit gets the VLANs of one that was removed.
#[test]
fn a_circuit_can_have_the_vlans_of_a_removed_one() {
    for version in VERSIONS {
        let parsed =
            |texts: &[&str]| -> Vec<_> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        let vlans = 2000..=2015;
        let all = parsed(&["blue 1:1 3:1", "red 2:1 4:1"]);
        let all =
            Circuits::new(ProvisioningSettings { circuits: all, vlans, ..Default::default() })
                .unwrap();
        let mut lab = lab(ring(4, 2), version, &all);
        for (other, reached) in
            [("green 2:1 3:2", "h2s3"), ("grey 2:1 3:2 1:2", "h2s1"), ("red 2:1 4:1", "h1s4")]
        {
            all.change(parsed(&["blue 1:1 3:1", other])).unwrap();
            lab.run_for(SETTLED);
            assert!(states(&all).iter().all(is_up), "{version} {:?}", all.list());
            assert!(lab.ping("h1s2", reached) && lab.ping("h1s1", "h1s3"), "{version} {other}");
            assert!(!lab.ping("h1s2", "h2s2") && !lab.ping("h1s2", "h1s3"), "{version} {other}");
            assert_eq!(lab.duplicates(), [], "{version} {other}");
        }
        let error = all.change(parsed(&["a 1:1 2:1", "b 1:2 2:2", "c 3:1 4:1"])).unwrap_err();
        assert!(error.to_string().contains("need 24 VLANs"), "{error}");
    }
}

/// On 1.3 the switch before the link uses the detour; on 1.0 the controller moves the circuit.
#[test]
fn a_circuit_survives_each_link_of_its_path() {
    for version in VERSIONS {
        for (a, b) in [("s1", "s2"), ("s2", "s3"), ("s3", "s4"), ("s4", "s1")] {
            let all = circuits(&["blue 1:1 3:1"]);
            let mut lab = lab(ring(4, 1), version, &all);
            let bare_links = if version == Version::V1_3 { 0 } else { 4 };
            assert_eq!(states(&all), [CircuitState::Up { bare_links }], "{version}");
            assert!(lab.ping("h1", "h3"));
            let pings = lab.start_pings("h1", "h3", 400, EVERY);
            lab.run_for(Duration::from_millis(500));
            lab.link_down(a, b);
            lab.run_for(Duration::from_secs(3));
            let statistics = lab.statistics(&pings);
            let lost = statistics.sent - statistics.received;
            let most = if version == Version::V1_3 { 1 } else { 20 };
            assert!(statistics.sent == 400 && lost <= most, "{version} {a} {b}: {statistics:?}");
            assert!(states(&all).iter().all(is_up), "{version} {a} {b}: {:?}", all.list());
            lab.link_up(a, b);
            lab.run_for(SETTLED);
            assert!(lab.ping("h1", "h3") && lab.ping("h3", "h1"), "{version} {a} {b}");
            assert_eq!(states(&all), [CircuitState::Up { bare_links }], "{version} {a} {b}");
        }
    }
}

/// The fewer VLANs a circuit has, the more of its links have no detour. It survives all the same.
#[test]
fn a_circuit_with_fewer_vlans_has_fewer_detours() {
    for (vlans_per_circuit, bare) in [(8, 0), (4, 0), (2, 4)] {
        let settings = ProvisioningSettings {
            circuits: vec!["blue 1:1 3:1".parse().unwrap(), "tree 2:1 3:2 4:1".parse().unwrap()],
            vlans: 2000..=2000 + 2 * vlans_per_circuit - 1,
            vlans_per_circuit,
        };
        let all = Circuits::new(settings).unwrap();
        let mut lab = lab(ring(4, 2), Version::V1_3, &all);
        let [CircuitState::Up { bare_links }, tree] = &states(&all)[..] else {
            panic!("{vlans_per_circuit}: {:?}", all.list())
        };
        assert!(is_up(tree), "{vlans_per_circuit}: {tree:?}");
        assert_eq!(*bare_links, bare, "{vlans_per_circuit} VLANs");
        for (a, b) in [("s1", "s2"), ("s3", "s4"), ("s2", "s3")] {
            lab.link_down(a, b);
            lab.run_for(SETTLED);
            for (from, to) in [("h1s1", "h1s3"), ("h1s2", "h2s3"), ("h2s3", "h1s4")] {
                assert!(lab.ping(from, to), "{vlans_per_circuit} VLANs, {a} {b}: {:?}", all.list());
            }
            assert!(!lab.ping("h1s1", "h2s3"), "{vlans_per_circuit} VLANs, {a} {b}");
            lab.link_up(a, b);
            lab.run_for(SETTLED);
        }
        assert_eq!(lab.duplicates(), [], "{vlans_per_circuit} VLANs");
    }
}

/// Three tags for detours in each generation are enough in data centres: in and between pods.
#[test]
fn every_link_has_a_detour_in_leaf_spine_and_fat_trees() {
    for (topology, ends) in [
        (leaf_spine(4, 4, 1), ["1:1 4:1", "2:1 3:1"]),
        (fat_tree(4), ["7:1 8:1", "7:2 14:1"]),
        (fat_tree(6), ["d:1 e:1", "d:2 2d:1"]),
    ] {
        let all = circuits(&[&format!("one {}", ends[0]), &format!("other {}", ends[1])]);
        let lab = lab(topology, Version::V1_3, &all);
        let all_have = [CircuitState::Up { bare_links: 0 }, CircuitState::Up { bare_links: 0 }];
        assert_eq!(states(&all), all_have, "{} switches", lab.topology().switches().len());
    }
}

/// No frame is lost while the controller moves a circuit, even if each switch has its own delay.
/// (No frame is on the link when it fails.)
#[test]
fn no_frame_is_lost_by_moving_a_circuit() {
    const COUNT: u16 = 8000;
    // Two leaves, s1 and s2, under three spines.
    for (seed, spine) in (0..6).zip(["s3", "s4", "s5"].into_iter().cycle()) {
        let all = circuits(&["blue 1:1 2:1"]);
        let mut lab = lab(leaf_spine(2, 3, 1), Version::V1_3, &all);
        assert!(lab.ping("h1", "h2"));
        lab.inject(&Faults::of(seed, &[FaultKind::MessageDelay]).each(20).within(SETTLED));
        let pings = lab.start_pings("h1", "h2", COUNT, Duration::from_millis(1));
        lab.run_for(Duration::from_secs(1));
        lab.link_down("s1", spine);
        lab.run_for(Duration::from_secs(3));
        lab.link_up("s1", spine);
        lab.run_for(SETTLED);
        let statistics = lab.statistics(&pings);
        let all_answered = (u32::from(COUNT), u32::from(COUNT));
        assert_eq!((statistics.sent, statistics.received), all_answered, "{seed} {spine}");
        assert!(states(&all).iter().all(is_up), "{seed} {spine}: {:?}", all.list());
    }
}

/// No frame circles, whichever switches have their part of a new tree.
#[test]
fn no_frame_circles_while_a_tree_changes() {
    const STEP: Duration = Duration::from_millis(2);
    for version in VERSIONS {
        for (seed, (a, b)) in
            (0..8).zip([("s1", "s2"), ("s2", "s3"), ("s3", "s4"), ("s4", "s1")].into_iter().cycle())
        {
            let all = circuits(&["board 1:1 2:1 3:1 4:1"]);
            let mut lab = lab(ring(4, 1), version, &all);
            lab.inject(&Faults::of(seed, &[FaultKind::MessageDelay]).each(20).within(SETTLED));
            for comes_up in [false, true] {
                match comes_up {
                    false => lab.link_down(a, b),
                    true => lab.link_up(a, b),
                }
                for _ in 0..1000 {
                    lab.run_for(STEP);
                    assert_eq!(lab.loops(), [""; 0], "{version}, seed {seed}, {a} to {b}");
                }
                lab.run_for(SETTLED);
                for (from, to) in [("h1", "h2"), ("h2", "h3"), ("h3", "h4"), ("h4", "h1")] {
                    assert!(lab.ping(from, to), "{version}, seed {seed}: {:?}", all.list());
                }
            }
            assert!(states(&all).iter().all(is_up), "{version} {:?}", all.list());
            assert_eq!(lab.duplicates(), [], "{version}");
        }
    }
}

/// Without the controller the detours still work, whichever link fails.
#[test]
fn detours_need_no_controller() {
    for (a, b) in [("s1", "s2"), ("s2", "s3"), ("s3", "s4"), ("s4", "s1")] {
        let all = circuits(&["blue 1:1 3:1"]);
        let mut lab = lab(ring(4, 1), Version::V1_3, &all);
        assert!(lab.ping("h1", "h3"));
        lab.stop_controller();
        lab.link_down(a, b);
        lab.run_for(Duration::from_secs(1));
        assert!(lab.ping("h1", "h3") && lab.ping("h3", "h1"), "{a} {b}");
    }
}

#[test]
fn hosts_are_joined_where_they_are_once_they_are_seen() {
    for version in VERSIONS {
        let all = circuits(&["hosts 00:00:00:00:00:01 3:1"]);
        let mut lab = lab(ring(4, 1), version, &all);
        assert!(down(&states(&all)[0]).contains("host 00:00:00:00:00:01 has not been seen"));
        lab.announce("h1");
        lab.run_for(Duration::from_secs(1));
        assert!(is_up(&states(&all)[0]), "{version} {:?}", all.list());
        assert!(lab.ping("h1", "h3"), "{version}");
        lab.move_host("h1", "s2");
        lab.run_for(SETTLED);
        lab.announce("h1");
        lab.run_for(SETTLED);
        assert!(lab.ping("h1", "h3"), "{version} {:?}", all.list());
    }
}

#[test]
fn a_circuit_that_cannot_be_says_why_and_the_others_stay() {
    // In a ring ports 2 and 3 of a switch lead to its neighbours.
    let all = circuits(&[
        "good 1:1 2:1",
        "inside 3:2 4:1",
        "nowhere 9:1 3:1",
        "gone 4:77 3:1:5",
        "both 9:2 4:78",
    ]);
    let mut lab = lab(ring(4, 1), Version::V1_3, &all);
    let states = states(&all);
    assert!(is_up(&states[0]) && lab.ping("h1", "h2"));
    assert!(down(&states[1]).contains("leads to another switch"), "{states:?}");
    assert!(down(&states[2]).contains("switch 0000000000000009 is not up"), "{states:?}");
    assert!(down(&states[3]).contains("port 0000000000000004:77 is not up"), "{states:?}");
    assert_eq!(
        down(&states[4]),
        "switch 0000000000000009 is not up; port 0000000000000004:78 is not up"
    );
}

/// A new controller adopts the circuits, and no frame is affected; also when they use the tags of a
/// later layout than its first.
#[test]
fn a_restart_of_the_controller_is_not_noticed() {
    for (version, is_moved) in VERSIONS.into_iter().flat_map(|v| [(v, false), (v, true)]) {
        let all = circuits(&["blue 1:1 3:1"]);
        let mut lab = lab(ring(4, 1), version, &all);
        if is_moved {
            assert!(lab.ping("h1", "h3"));
            let by = lab.paths("h1", "h3")[0][2].clone();
            lab.link_down("s1", &by);
            lab.run_for(SETTLED);
        }
        assert!(lab.ping("h1", "h3"));
        let pings = lab.start_pings("h1", "h3", 8000, EVERY);
        lab.stop_controller();
        lab.run_for(Duration::from_secs(2));
        let again = circuits(&["blue 1:1 3:1"]);
        lab.start_controller(Provisioning::new(&again));
        lab.run_for(Duration::from_secs(35));
        assert!(is_up(&states(&again)[0]), "{version} {:?}", again.list());
        lab.run_for(Duration::from_secs(4));
        let statistics = lab.statistics(&pings);
        assert_eq!((statistics.sent, statistics.received), (8000, 8000), "{version} {is_moved}");
    }
}

/// A circuit that is added in front of the list, before a restart, costs only its own flows.
#[test]
fn a_circuit_in_front_and_a_restart_change_no_flow_of_the_others() {
    for version in VERSIONS {
        let old = ["blue 1:1 3:1", "red 2:1 4:1"];
        let mut lab = lab(linear(4, 2), version, &circuits(&old));
        let switches = ["s1", "s2", "s3", "s4"];
        let number_of_flows =
            |lab: &Lab| switches.iter().map(|switch| lab.flows(switch).len()).sum::<usize>() as u64;
        let mut restart = |texts: &[&str]| {
            let before = number_of_flows(&lab);
            lab.stop_controller();
            lab.run_for(Duration::from_secs(2));
            let again = circuits(texts);
            lab.start_controller(Provisioning::new(&again));
            lab.run_for(Duration::from_secs(90));
            assert!(states(&again).iter().all(is_up), "{version} {:?}", again.list());
            (lab.counter("changes_sent"), number_of_flows(&lab) - before)
        };
        let unchanged = restart(&old);
        assert_eq!(unchanged.1, 0, "{version}");
        let (sent, added) = restart(&["amber 1:2 2:2", old[0], old[1]]);
        assert!(added > 0, "{version}");
        // Beyond what a restart sends anyway.
        assert_eq!(sent - unchanged.0, added, "{version}");
    }
}

/// A host's frame with a circuit's tag does not leave the circuit, wherever it enters.
#[test]
fn a_circuit_cannot_be_entered_from_outside() {
    for version in VERSIONS {
        let vlans = 2000..=2007;
        let all = vec!["blue 1:1 3:1".parse().unwrap()];
        let settings =
            ProvisioningSettings { circuits: all, vlans: vlans.clone(), ..Default::default() };
        let all = Circuits::new(settings).unwrap();
        // Two hosts at each of four switches in a line; frames outside the circuit are flooded.
        let lab = Lab::seeded(3).topology(linear(4, 2)).version(version);
        let mut lab = lab.app(Provisioning::new(&all)).run(Learning::default());
        lab.run_for(SETTLED);
        assert!(states(&all).iter().all(is_up) && lab.ping("h1s1", "h1s3"), "{version}");
        assert!(lab.ping("h2s1", "h2s4"), "{version}");
        lab.capture("h1s3");
        for vlan in vlans {
            for from in ["h2s1", "h1s2", "h2s3", "h1s4"] {
                lab.send_frame(from, &tagged(vlan));
            }
        }
        lab.run_for(Duration::from_secs(1));
        let got = lab.capture("h1s3");
        let came_out = |frame: &&Vec<u8>| frame.ends_with(INTRUDER) && frame[12..14] == ETHER_TYPE;
        assert_eq!(got.iter().find(came_out), None, "{version}");
    }
}

const INTRUDER: &[u8] = b"let me in";
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];

/// A broadcast frame with a VLAN tag.
fn tagged(vlan: u16) -> Vec<u8> {
    let (to, from) = ([0xff; 6], [2, 0, 0, 0, 0, 0x66]);
    let [high, low] = vlan.to_be_bytes();
    let tag = [0x81, 0x00, high, low];
    [&to[..], &from, &tag, &ETHER_TYPE, &[0; 40], INTRUDER].concat()
}

/// If a host of one circuit is at a port of another, its frames belong to the host's circuit, in
/// any order of configuration.
#[test]
fn a_hosts_circuit_goes_before_its_ports() {
    for version in VERSIONS {
        let texts = ["host 00:00:00:00:00:01 3:1", "port 1:1 2:1"];
        for texts in [texts, [texts[1], texts[0]]] {
            let all = circuits(&texts);
            let lab = Lab::seeded(3).topology(ring(4, 1)).version(version);
            let mut lab = lab.run(Provisioning::new(&all));
            // If the port's circuit came first, the host's frames would not reach the controller.
            lab.link_down("h2", "s2");
            lab.run_for(SETTLED);
            lab.announce("h1");
            lab.run_for(SETTLED);
            lab.link_up("h2", "s2");
            lab.run_for(SETTLED);
            assert!(states(&all).iter().all(is_up), "{version} {:?}", all.list());
            assert!(lab.ping("h1", "h3"), "{version} {texts:?} {:#?}", lab.flows("s1"));
            assert!(!lab.ping("h1", "h2"), "{version} {texts:?}");
        }
    }
}

/// A refused flow of one circuit does not affect another.
#[test]
fn a_circuit_is_down_for_its_own_flows_only() {
    let one = circuits(&["one 1:1 1:2"]);
    let room = lab(single(4), Version::V1_3, &one).flows("s1").len();
    let both = circuits(&["one 1:1 1:2", "two 1:3 1:4"]);
    let settings = NetworkSettings { table_capacity: room as u32, ..Default::default() };
    let lab = Lab::seeded(3).topology(single(4)).network(settings);
    let mut lab = lab.run(Provisioning::new(&both));
    lab.run_for(SETTLED);
    let states = states(&both);
    assert!(is_up(&states[0]) && lab.ping("h1", "h2"), "{states:?}");
    assert!(down(&states[1]).contains("refuses"), "{states:?}");
}

/// Switches, links and control connections fail; afterwards the state is the same as before.
#[test]
fn circuits_come_back_whatever_goes_wrong() {
    // Three leaves, s1 to s3, with two hosts each, under three spines.
    let texts = ["blue 1:1 2:1", "board 1:2 2:2 3:1"];
    let switches = ["s1", "s2", "s3", "s4", "s5", "s6"];
    // Flows beside those that are wanted. A path that is as good as the first one stays.
    let flows = |lab: &Lab| {
        let network = lab.controller().unwrap();
        let wanted = (1..=6).flat_map(|dpid| wanted_flow_counts(&network, Dpid(dpid)));
        let wanted: usize = wanted.map(|(_, count)| count).sum();
        switches.map(|switch| lab.flows(switch).len()).iter().sum::<usize>() - wanted
    };
    for version in VERSIONS {
        let undisturbed = flows(&lab(leaf_spine(3, 3, 2), version, &circuits(&texts)));
        for seed in 0..8 {
            let all = circuits(&texts);
            let mut lab = lab(leaf_spine(3, 3, 2), version, &all);
            let plan = lab.inject(&Faults::random(seed));
            lab.run_for(plan.lasts() + lab.recovery_time(Duration::ZERO) + SETTLED * 3);
            assert!(states(&all).iter().all(is_up), "{version} {:?} {plan}", all.list());
            for (from, to) in [("h1", "h3"), ("h3", "h1"), ("h2", "h4"), ("h4", "h5"), ("h5", "h2")]
            {
                assert!(lab.ping(from, to), "{version} {from} {to} {plan}");
            }
            assert_eq!((lab.loops(), flows(&lab)), (vec![], undisturbed), "{version} {plan}");
        }
    }
}

/// Names of the circuits' events, in order.
fn circuit_events(lab: &Lab) -> Vec<String> {
    let events = lab.controller().unwrap().events().latest(usize::MAX);
    let name = |record: &EventRecord| match &record.event {
        Event::App { event, .. } => Some(event.name().to_owned()),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}

/// Number of open alarms of apps.
fn open_alarms(lab: &Lab) -> usize {
    let open = lab.controller().unwrap().events().open_alarms();
    open.iter().filter(|record| matches!(record.event, Event::App { .. })).count()
}

#[test]
fn a_circuit_that_goes_up_or_down_or_moves_is_an_event() {
    for version in VERSIONS {
        let all = circuits(&["blue 1:1 3:1", "gone 2:1 9:1"]);
        let mut lab = lab(ring(4, 1), version, &all);
        lab.run_for(SETTLED);
        let mut events = circuit_events(&lab);
        events.sort();
        assert_eq!(events, ["circuit_down", "circuit_up"], "{version}");
        assert_eq!(open_alarms(&lab), 1, "{version} {:?}", all.list());
        let path = all.list()[0].path.clone();
        for ends in [("s1", "s2"), ("s1", "s4")] {
            lab.link_down(ends.0, ends.1);
            lab.run_for(SETTLED);
        }
        assert!(matches!(&states(&all)[0], CircuitState::Down(_)), "{version} {path:?}");
        assert_eq!(circuit_events(&lab).last().unwrap(), "circuit_down", "{version}");
        assert_eq!(open_alarms(&lab), 2, "{version} {:?}", all.list());
        lab.link_up("s1", "s4");
        lab.run_for(SETTLED);
        assert_eq!(circuit_events(&lab).last().unwrap(), "circuit_up", "{version}");
        assert_eq!(open_alarms(&lab), 1, "{version} {:?}", all.list());
        lab.link_up("s1", "s2");
        lab.run_for(SETTLED);
        let before = circuit_events(&lab).len();
        lab.link_down("s1", second(&all));
        lab.run_for(SETTLED);
        assert_eq!(circuit_events(&lab)[before..], ["circuit_moved"], "{version}");
        all.change(vec!["blue 1:1 3:1".parse().unwrap()]).unwrap();
        lab.run_for(SETTLED);
        assert_eq!(circuit_events(&lab).last().unwrap(), "circuit_removed", "{version}");
        assert_eq!(open_alarms(&lab), 0, "{version} {:?}", all.list());
    }
}

/// The switch behind s1 on the first circuit's path.
fn second(circuits: &Circuits) -> &'static str {
    let path = &circuits.list()[0].path;
    if path.iter().any(|port| port.dpid.0 == 2) { "s2" } else { "s4" }
}

/// A report without the flows of a circuit shows that it is not up, and the next one that it is.
#[test]
fn a_circuit_is_not_up_while_a_switch_does_not_keep_its_flows() {
    const REPORTED: Duration = Duration::from_secs(62);
    const NOT_KEPT: Duration = Duration::from_secs(40);
    const KEPT: Duration = Duration::from_secs(600);
    for version in VERSIONS {
        let all = circuits(&["blue 1:1 3:1"]);
        let mut lab = lab(ring(4, 1), version, &all);
        assert!(states(&all).iter().all(is_up), "{version} {:?}", all.list());
        lab.misreports("s1", Some(Misreport::Cookies));
        let is_installing = |_: &Lab| states(&all) == [CircuitState::Installing];
        assert!(lab.run_until(REPORTED, is_installing), "{version} {:?}", all.list());
        let mut was_up = false;
        let is_down = |_: &Lab| {
            was_up |= is_up(&states(&all)[0]);
            matches!(states(&all)[..], [CircuitState::Down(_)])
        };
        assert!(lab.run_until(NOT_KEPT, is_down) && !was_up, "{version} {:?}", all.list());
        assert!(down(&states(&all)[0]).contains("does not keep it"), "{version} {:?}", all.list());
        let is_told = |lab: &Lab, event| circuit_events(lab).last().is_some_and(|it| it == event);
        let soon = Duration::from_secs(1);
        assert!(lab.run_until(soon, |lab| is_told(lab, "circuit_down")), "{version}");
        lab.misreports("s1", None);
        let is_up_again = |_: &Lab| is_up(&states(&all)[0]);
        assert!(lab.run_until(KEPT, is_up_again), "{version} {:?}", all.list());
        assert!(lab.run_until(soon, |lab| is_told(lab, "circuit_up")), "{version}");
    }
}
