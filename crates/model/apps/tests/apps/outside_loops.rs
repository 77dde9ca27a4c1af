//! Apps beside ordinary switches: loops outside of the network.

use std::net::Ipv4Addr;
use std::time::Duration;

use bellrock_api::packet::arp_request;
use bellrock_api::{App, Dpid, Event, MacAddr, Port, StormSign, SwitchPort, Version};
use bellrock_apps::{GlobalLearning, Hub, Learning, Routing, RoutingMode, RoutingSettings};
use bellrock_emulator::lab::{Lab, LldpHandling, OrdinarySwitch, on_both_versions};
use bellrock_emulator::topology::TopologySpec;
use bellrock_tables::SharedTable;

const SECOND: Duration = Duration::from_secs(1);

/// A host behind the ordinary switch.
const OUTSIDE: MacAddr = MacAddr([2, 0xaa, 0, 0, 0, 77]);

/// Two switches. The places of u1 and u2 are for the cables of an ordinary switch.
fn network() -> TopologySpec {
    let text = "
        switch s1\nswitch s2
        host h1\nhost h2\nhost u1\nhost u2
        link s1:8 s2:8
        link s1:1 h1\nlink s2:1 h2\nlink s1:9 u1\nlink s2:9 u2";
    TopologySpec::parse(text).unwrap()
}

fn at(dpid: u64, port: u32) -> SwitchPort {
    SwitchPort::new(Dpid(dpid), Port(port))
}

fn mac(lab: &Lab, host: &str) -> MacAddr {
    lab.network().host(lab.topology().host(host).unwrap()).mac()
}

/// A question that nobody answers; each has another target.
fn question(from: MacAddr, nth: u8) -> Vec<u8> {
    arp_request(from, Ipv4Addr::new(10, 0, 0, 77), Ipv4Addr::new(10, 9, 9, nth))
}

fn loop_events(lab: &Lab) -> Vec<Event> {
    let all = lab.controller().unwrap().events().latest(usize::MAX).into_iter();
    let is_loop =
        |event: &Event| matches!(event, Event::OutsideLoop { .. } | Event::OutsideLoopOver { .. });
    all.map(|it| it.event).filter(is_loop).collect()
}

/// Broadcasts reach each host once although an ordinary switch brings them back. One alarm names
/// the two ports, and has an end.
#[test]
fn a_loop_outside_multiplies_nothing_and_is_reported_with_its_ports_and_its_end() {
    for (version, mode) in
        [(Version::V1_3, RoutingMode::Reactive), (Version::V1_0, RoutingMode::Proactive)]
    {
        let app = Routing::new(RoutingSettings { mode, ..RoutingSettings::default() });
        let mut lab = Lab::seeded(1).topology(network()).version(version).run(app);
        let mut outside = OrdinarySwitch::new(&mut lab, &["u1", "u2"], LldpHandling::ByType);
        outside.run_for(&mut lab, SECOND * 12);
        let h1 = mac(&lab, "h1");
        lab.capture("h2");
        for nth in 0..12 {
            outside.send(&mut lab, &question(OUTSIDE, nth));
            outside.run_for(&mut lab, SECOND / 4);
            lab.send_frame("h1", &question(h1, 100 + nth));
            outside.run_for(&mut lab, SECOND / 4);
        }
        let heard = lab.capture("h2");
        for nth in 0..12 {
            for frame in [question(OUTSIDE, nth), question(h1, 100 + nth)] {
                let copies = heard.iter().filter(|it| it.starts_with(&frame[..42])).count();
                assert_eq!(copies, 1, "{version} {mode:?} {nth}");
            }
        }
        let events = loop_events(&lab);
        let ports = [at(1, 9), at(2, 9)];
        let expected = Event::OutsideLoop { ports: ports.into(), kept_out: Some(at(2, 9)) };
        assert_eq!(events, [expected], "{version} {mode:?}");
        assert!(events[0].is_alarming(), "{}", events[0]);

        outside.unplug("u2");
        for nth in 0..40 {
            lab.send_frame("h1", &question(h1, 150 + nth));
            outside.run_for(&mut lab, SECOND);
        }
        let events = loop_events(&lab);
        assert!(
            matches!(events[1..], [Event::OutsideLoopOver { at: over, .. }] if over == at(2, 9)),
            "{version} {mode:?}: {events:?}"
        );
    }
}

mod of_apps_that_know_no_links {
    use super::*;

    on_both_versions!(learning, global_learning, hub);

    fn learning(version: Version) {
        let mut lab = multiplies_nothing(version, "learning", Learning::default());
        assert_eq!(lab.app_counter("learning", "moves"), Some(0), "hosts stay where they are");
    }

    fn global_learning(version: Version) {
        let app = GlobalLearning::<SharedTable>::default();
        let mut lab = multiplies_nothing(version, "global_learning", app);
        // The first frame of the host outside comes to two switches at once.
        assert!(
            lab.app_counter("global_learning", "moves") <= Some(1),
            "hosts stay where they are"
        );
    }

    fn hub(version: Version) {
        multiplies_nothing(version, "hub", Hub);
    }

    /// One broadcast every two seconds reaches each host once, and is no load. One alarm names two
    /// ports, and has an end.
    fn multiplies_nothing(version: Version, name: &'static str, app: impl App) -> Lab {
        let mut lab = Lab::seeded(1).topology(network()).version(version).run(app);
        let mut outside = OrdinarySwitch::new(&mut lab, &["u1", "u2"], LldpHandling::ByAddress);
        outside.run_for(&mut lab, SECOND);
        let h1 = mac(&lab, "h1");
        lab.capture("h2");
        let packet_ins = lab.counter("packet_ins");
        for nth in 0..12 {
            outside.send(&mut lab, &question(OUTSIDE, nth));
            outside.run_for(&mut lab, SECOND);
            lab.send_frame("h1", &question(h1, 100 + nth));
            outside.run_for(&mut lab, SECOND);
        }
        let heard = lab.capture("h2");
        for nth in 0..12 {
            for frame in [question(OUTSIDE, nth), question(h1, 100 + nth)] {
                let copies = heard.iter().filter(|it| it.starts_with(&frame[..42])).count();
                assert_eq!(copies, 1, "{name} {version} {nth}");
            }
        }
        let each = (lab.counter("packet_ins") - packet_ins).div_ceil(24);
        assert!(each <= 5, "{each} packet-ins for each broadcast: a few copies to two switches");
        let storms = |lab: &Lab| -> Vec<Event> {
            let events = lab.controller().unwrap().events().latest(usize::MAX).into_iter();
            let is_storm = |it: &Event| matches!(it, Event::Storm { .. } | Event::StormOver { .. });
            events.map(|it| it.event).filter(is_storm).collect()
        };
        let told = storms(&lab);
        let [event @ Event::Storm { app, at, sign: StormSign::Returns { from } }] = &told[..]
        else {
            panic!("{name} {version}: {told:?}")
        };
        assert!(*app == name && at.port != *from && event.is_alarming(), "{event}");
        assert!(lab.app_counter(name, "floods_held").unwrap() >= 24, "{name} {version}");

        outside.unplug("u2");
        outside.run_for(&mut lab, SECOND * 32);
        assert!(matches!(storms(&lab)[1..], [Event::StormOver { .. }]), "{name} {version}");
        lab
    }
}
