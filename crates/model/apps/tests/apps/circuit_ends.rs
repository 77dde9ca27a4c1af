//! The ends of circuits: who may take them over, and which frames enter and leave there.

use std::time::Duration;

use bellrock_api::{Event, MacAddr, Version};
use bellrock_apps::provisioning::{CircuitState, Circuits, Provisioning, ProvisioningSettings};
use bellrock_apps::routing::{Routing, RoutingMode, RoutingSettings};
use bellrock_apps::{Hub, Learning};
use bellrock_emulator::lab::{Lab, LabBuilder};
use bellrock_emulator::topology::{NamedTopology, ring, single};
use bellrock_services::chain::ServiceSettings;
use bellrock_services::hosts::{HostTrackingSettings, PROBE_SOURCE};

/// By then discovery has probed all ports.
const SETTLED: Duration = Duration::from_secs(12);
const SECOND: Duration = Duration::from_secs(1);
/// Time after which a silent host is probed.
const MAX_AGE: Duration = Duration::from_secs(30);

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

/// A host without an IP address, so that it answers no probe.
const SILENT: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x99]);
const OF_SILENT: &str = "silent 02:00:00:00:00:99 3:1";

fn circuits(texts: &[&str]) -> Circuits {
    let circuits = texts.iter().map(|text| text.parse().unwrap()).collect();
    Circuits::new(ProvisioningSettings { circuits, ..Default::default() }).unwrap()
}

fn builder(topology: NamedTopology, version: Version) -> LabBuilder {
    let hosts = HostTrackingSettings { max_age: MAX_AGE, ..HostTrackingSettings::default() };
    let services = ServiceSettings { hosts, ..ServiceSettings::default() };
    Lab::seeded(3).topology(topology).version(version).services(services)
}

fn is_up(all: &Circuits) -> bool {
    all.list().iter().all(|circuit| matches!(circuit.state, CircuitState::Up { .. }))
}

/// A frame with a text that identifies it.
fn frame(to: MacAddr, from: MacAddr, vlan: Option<u16>, text: &str) -> Vec<u8> {
    let tag = vlan.map(|vlan| [[0x81, 0], vlan.to_be_bytes()].concat()).unwrap_or_default();
    [&to.0[..], &from.0, &tag, &[0x88, 0xb5], &[0; 40], text.as_bytes()].concat()
}

/// Number of frames with a text that a host has received since the last capture.
fn received(lab: &mut Lab, host: &str, text: &str) -> usize {
    let frames = lab.capture(host);
    frames.iter().filter(|frame| frame.ends_with(text.as_bytes())).count()
}

fn of_host(n: u8) -> MacAddr {
    MacAddr([0, 0, 0, 0, 0, n])
}

/// The place of a host as the controller knows it: the number of its switch.
fn place(lab: &Lab, mac: MacAddr) -> Option<u64> {
    let hosts = lab.controller().unwrap().hosts().load();
    hosts.get(mac, None).map(|host| host.at.dpid.0)
}

#[test]
fn nobody_takes_over_a_circuit_by_frames_from_its_host() {
    for version in VERSIONS {
        let all = circuits(&["hosts 00:00:00:00:00:01 3:1"]);
        let mut lab = builder(ring(4, 1), version).run(Provisioning::new(&all));
        lab.run_for(SETTLED);
        lab.announce("h1");
        lab.run_for(SECOND);
        assert!(is_up(&all) && lab.ping("h1", "h3"), "{version} {:?}", all.list());
        lab.capture("h3");
        for _ in 0..20 {
            lab.send_frame("h2", &frame(MacAddr::BROADCAST, of_host(1), None, "spoofed"));
            lab.run_for(SECOND / 4);
        }
        assert_eq!(place(&lab, of_host(1)), Some(1), "{version}");
        let frames = lab.capture("h3");
        assert!(!frames.iter().any(|it| it.ends_with(b"spoofed")), "{version}");
        // The host's answers to probes do not enter its circuit: the controller gets them.
        assert!(!frames.iter().any(|it| it.starts_with(&PROBE_SOURCE.0)), "{version}");
        assert!(is_up(&all) && lab.ping("h1", "h3") && lab.ping("h3", "h1"), "{version}");
    }
}

/// The host's own flow in the circuit carries its packets. It is known as long as the flow is in
/// use. Its circuit stays in any case.
#[test]
fn a_circuit_is_kept_for_a_host_that_only_its_flows_hear() {
    for version in VERSIONS {
        let all = circuits(&[OF_SILENT]);
        let mut lab = builder(ring(4, 1), version).run(Provisioning::new(&all));
        lab.run_for(SETTLED);
        let says = |lab: &mut Lab, text: &str| {
            lab.send_frame("h1", &frame(of_host(3), SILENT, None, text));
            lab.run_for(SECOND);
        };
        says(&mut lab, "here I am");
        assert!(is_up(&all), "{version} {:?}", all.list());
        lab.capture("h3");
        for _ in 0..10 {
            says(&mut lab, "on my way");
            lab.run_for(MAX_AGE / 2);
        }
        assert_eq!((place(&lab, SILENT), received(&mut lab, "h3", "on my way")), (Some(1), 10));
        let asked = lab.app_counter("hosts", "packet_counts_asked").unwrap();
        assert!((1..=6).contains(&asked), "{version} {asked}");
        // Now it sends nothing at all. Then links fail, one after the other.
        lab.run_for(MAX_AGE * 4);
        assert_eq!((place(&lab, SILENT), is_up(&all)), (None, true), "{version}");
        for (a, b) in [("s1", "s2"), ("s1", "s4")] {
            lab.link_down(a, b);
            lab.run_for(SETTLED);
            assert!(is_up(&all), "{version} {:?}", all.list());
            says(&mut lab, "around");
            assert_eq!(received(&mut lab, "h3", "around"), 1, "{version} without {a} {b}");
            lab.link_up(a, b);
            lab.run_for(SETTLED);
        }
    }
}

/// The new controller sees no packet of the host, while attackers use its address at once.
#[test]
fn a_restart_leaves_a_circuit_to_a_host_that_only_its_flows_hear() {
    for version in VERSIONS {
        let all = circuits(&[OF_SILENT]);
        let mut lab = builder(ring(4, 1), version).run(Provisioning::new(&all));
        lab.run_for(SETTLED);
        let says = |lab: &mut Lab, text: &str| {
            lab.send_frame("h1", &frame(of_host(3), SILENT, None, text));
            lab.run_for(SECOND / 4);
        };
        says(&mut lab, "here I am");
        lab.run_for(SECOND);
        assert!(is_up(&all), "{version} {:?}", all.list());
        lab.stop_controller();
        lab.run_for(SECOND * 2);
        let again = circuits(&[OF_SILENT]);
        lab.start_controller(Provisioning::new(&again));
        lab.capture("h3");
        for _ in 0..400 {
            says(&mut lab, "still");
            lab.send_frame("h2", &frame(MacAddr::BROADCAST, SILENT, None, "spoofed"));
        }
        let frames = lab.capture("h3");
        let with = |text: &str| frames.iter().filter(|it| it.ends_with(text.as_bytes())).count();
        assert_eq!((with("still"), with("spoofed")), (400, 0), "{version}");
        assert_eq!((place(&lab, SILENT), is_up(&again)), (Some(1), true), "{version}");
        for (a, b) in [("s1", "s2"), ("s1", "s4")] {
            lab.link_down(a, b);
            lab.run_for(SETTLED);
            says(&mut lab, "around");
            assert_eq!(received(&mut lab, "h3", "around"), 1, "{version} without {a} {b}");
            lab.link_up(a, b);
            lab.run_for(SETTLED);
        }
    }
}

#[test]
fn flows_of_a_circuit_stay_until_it_is_configured_otherwise() {
    for version in VERSIONS {
        let all = circuits(&["blue 1:1 3:1"]);
        let mut lab = builder(ring(4, 1), version).run(Provisioning::new(&all));
        lab.run_for(SETTLED);
        assert!(is_up(&all));
        let before = lab.flows("s1").len();
        lab.stop_controller();
        lab.link_down("h3", "s3");
        let again = circuits(&["blue 1:1 3:1"]);
        lab.start_controller(Provisioning::new(&again));
        lab.run_for(SECOND * 120);
        assert!(!is_up(&again) && lab.flows("s1").len() == before, "{:#?}", lab.flows("s1"));
        lab.link_up("h3", "s3");
        lab.run_for(SETTLED);
        assert!(is_up(&again) && lab.ping("h1", "h3"), "{version} {:?}", again.list());
        lab.stop_controller();
        let other = circuits(&["red 2:1 9:1"]);
        lab.start_controller(Provisioning::new(&other));
        lab.run_for(SECOND * 120);
        assert!(!lab.ping("h1", "h3") && lab.flows("s1").len() < before, "{version}");
    }
}

/// h1 and h2 are the ends of a circuit at one switch, which also has h3 and h4.
fn ends_are_apart(all: &Circuits, mut lab: Lab, of: &str) {
    let vlan = if all.list()[0].circuit.to_string().ends_with(":100") { Some(100) } else { None };
    let to_all = |from: u8, text: &str| frame(MacAddr::BROADCAST, of_host(from), vlan, text);
    let hosts = ["h1", "h2", "h3", "h4"];
    hosts.iter().for_each(|host| drop(lab.capture(host)));
    // Before the circuit is installed.
    lab.send_frame("h1", &to_all(1, "early"));
    lab.run_for(SECOND);
    let got = hosts.map(|host| received(&mut lab, host, "early"));
    assert_eq!(got[2..], [0, 0], "{of}");
    lab.run_for(SETTLED);
    assert!(is_up(all), "{of} {:?}", all.list());
    lab.send_frame("h4", &to_all(4, "known"));
    lab.run_for(SECOND);
    for (from, own, text) in [(3, 4, "theirs"), (1, 2, "ours")] {
        let name = format!("h{from}");
        for to in 1..=4 {
            lab.send_frame(&name, &frame(of_host(to), of_host(from), vlan, text));
            lab.run_for(SECOND / 4);
        }
        lab.send_frame(&name, &to_all(from, text));
        lab.run_for(SECOND);
        let got = hosts.map(|host| received(&mut lab, host, text) > 0);
        let wanted = [1, 2, 3, 4].map(|host| host == own);
        assert_eq!(got, wanted, "{of}: what h{from} sends {:#?}", lab.flows("s1"));
    }
    // Other VLANs of the ports belong to no circuit.
    lab.send_frame("h3", &frame(MacAddr::BROADCAST, of_host(3), Some(7), "tagged"));
    lab.run_for(SECOND);
    let got = hosts.map(|host| received(&mut lab, host, "tagged"));
    assert_eq!(got, [1, 1, 0, 1], "{of}");
}

#[test]
fn other_apps_leave_the_ends_of_circuits_alone() {
    for version in VERSIONS {
        for text in ["blue 1:1 1:2", "voice 1:1:100 1:2:100"] {
            let lab = |all: &Circuits| builder(single(4), version).app(Provisioning::new(all));
            let all = circuits(&[text]);
            ends_are_apart(&all, lab(&all).run(Hub), &format!("{version} hub {text}"));
            let all = circuits(&[text]);
            let learning = lab(&all).run(Learning::default());
            ends_are_apart(&all, learning, &format!("{version} learning {text}"));
            for mode in [RoutingMode::Reactive, RoutingMode::Proactive] {
                let all = circuits(&[text]);
                let routing = Routing::new(RoutingSettings { mode, ..RoutingSettings::default() });
                ends_are_apart(&all, lab(&all).run(routing), &format!("{version} {mode:?} {text}"));
            }
        }
    }
}

/// Frames from the controller's own address are dropped and reported, and affect no circuit.
#[test]
fn the_address_of_probes_is_nobodys() {
    for version in VERSIONS {
        let all = circuits(&["hosts 00:00:00:00:00:01 3:1"]);
        let lab = builder(ring(4, 1), version).app(Provisioning::new(&all));
        let mut lab = lab.run(Learning::default());
        lab.run_for(SETTLED);
        lab.announce("h1");
        lab.run_for(SECOND);
        lab.capture("h4");
        lab.send_frame("h2", &frame(MacAddr::BROADCAST, PROBE_SOURCE, None, "as the controller"));
        lab.run_for(SECOND);
        assert_eq!(received(&mut lab, "h4", "as the controller"), 0);
        let events = lab.controller().unwrap().events().latest(usize::MAX);
        let used =
            |event: &Event| matches!(event, Event::ProbeAddressUsed { at } if at.dpid.0 == 2);
        assert!(events.iter().any(|it| used(&it.event)), "{version}");
        assert!(is_up(&all) && lab.ping("h1", "h3"), "{version}");
    }
}
