//! Ordinary switches between the switches of the network: hosts reach each other with every app.

use std::net::Ipv4Addr;
use std::time::Duration;

use bellrock_api::packet::{Arp, arp_request};
use bellrock_api::{App, Dpid, Event, MacAddr, Needs, Port, SwitchPort, Version};
use bellrock_apps::{GlobalLearning, Learning, Routing, RoutingMode, RoutingSettings};
use bellrock_emulator::lab::{Lab, LldpHandling, OrdinarySwitch};
use bellrock_emulator::topology::TopologySpec;
use bellrock_services::chain::ServiceSettings;

const SECOND: Duration = Duration::from_secs(1);

/// A host on the segment.
const ON_SEGMENT: MacAddr = MacAddr([2, 0xaa, 0, 0, 0, 77]);
const ITS_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 177);

/// Three switches without links. The places of u1 to u3 are for the cables of an ordinary switch.
fn islands() -> TopologySpec {
    let text = "
        switch s1\nswitch s2\nswitch s3
        host h1\nhost h2\nhost h3\nhost u1\nhost u2\nhost u3
        link s1:1 h1\nlink s2:1 h2\nlink s3:1 h3
        link s1:9 u1\nlink s2:9 u2\nlink s3:9 u3";
    TopologySpec::parse(text).unwrap()
}

fn at(dpid: u64, port: u32) -> SwitchPort {
    SwitchPort::new(Dpid(dpid), Port(port))
}

/// A host on the segment asks for a host, and answers it. Returns the address that it got.
fn asks(lab: &mut Lab, ordinary: &mut OrdinarySwitch, target: &str) -> Option<MacAddr> {
    let host = lab.topology().host(target).unwrap();
    let ip = lab.network().host(host).ip();
    ordinary.received();
    ordinary.send(lab, &arp_request(ON_SEGMENT, ITS_IP, ip));
    ordinary.run_for(lab, SECOND / 2);
    let is_answer = |frame: &Vec<u8>| {
        let is_reply = Arp::read(frame).is_some_and(|arp| arp.operation == Arp::REPLY);
        is_reply && frame.starts_with(&ON_SEGMENT.0)
    };
    let answers: Vec<_> = ordinary.received().into_iter().filter(is_answer).collect();
    assert!(answers.len() <= 1, "{} answers of {target}", answers.len());
    let answer = answers.first()?;
    Some(MacAddr(*answer[6..].first_chunk()?))
}

/// Pings between hosts at several switches. Returns those without an answer.
fn failed_pings(lab: &mut Lab, ordinary: &mut OrdinarySwitch, hosts: &[&str]) -> Vec<String> {
    let mut failed = Vec::new();
    for from in hosts {
        for to in hosts.iter().filter(|to| *to != from) {
            let pings = lab.start_pings(from, to, 3, SECOND / 10);
            ordinary.run_for(lab, SECOND);
            let report = lab.statistics(&pings);
            if report.received < 3 {
                failed.push(format!("{from} {to}: {} of 3", report.received));
            }
        }
    }
    failed
}

fn check(app: impl App, version: Version, services: Needs, cables: &[&str], lldp: LldpHandling) {
    let what = format!("{} {version} {cables:?} {lldp:?}", app.name());
    let uses_hosts = app.needs().contains(Needs::HOSTS);
    let services = ServiceSettings { always: services, ..ServiceSettings::default() };
    let lab = Lab::seeded(5).topology(islands()).version(version).services(services);
    let mut lab = lab.run(app);
    let mut ordinary = OrdinarySwitch::new(&mut lab, cables, lldp);
    ordinary.run_for(&mut lab, SECOND * 12);
    let hosts: Vec<String> = cables.iter().map(|cable| cable.replace('u', "h")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    hosts.iter().for_each(|host| lab.announce(host));
    ordinary.run_for(&mut lab, SECOND);
    assert_eq!(failed_pings(&mut lab, &mut ordinary, &hosts), [""; 0], "{what}");
    for host in &hosts {
        assert!(asks(&mut lab, &mut ordinary, host).is_some(), "{what}: {host} answers");
    }
    ordinary.run_for(&mut lab, SECOND * 2);
    assert_eq!(failed_pings(&mut lab, &mut ordinary, &hosts), [""; 0], "{what}, again");
    // All copies that the segment gets of a broadcast, and that hosts get.
    let h1 = lab.network().host(lab.topology().host("h1").unwrap()).mac();
    let question = arp_request(h1, Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 9, 9, 9));
    lab.capture(hosts[hosts.len() - 1]);
    ordinary.received();
    lab.send_frame("h1", &question);
    ordinary.run_for(&mut lab, SECOND);
    let copies = |frames: Vec<Vec<u8>>| {
        frames.iter().filter(|frame| frame.starts_with(&question[..42])).count()
    };
    assert_eq!(copies(lab.capture(hosts[hosts.len() - 1])), 1, "{what}");
    assert_eq!(copies(ordinary.received()), 1, "{what}: on the segment");

    let controller = lab.controller().unwrap();
    let events = controller.events().latest(usize::MAX).into_iter().map(|it| it.event);
    let alarms: Vec<Event> = events.filter(Event::is_alarming).collect();
    assert_eq!(alarms, [], "{what}");
    if uses_hosts {
        let known = controller.hosts().load();
        let place = |mac| known.get(mac, None).map(|host| host.at);
        assert_eq!(place(ON_SEGMENT), Some(at(1, 9)), "{what}");
        assert_eq!(place(h1), Some(at(1, 1)), "{what}");
    }
}

fn routing(mode: RoutingMode) -> Routing {
    Routing::new(RoutingSettings { mode, ..RoutingSettings::default() })
}

#[test]
fn routing_reaches_hosts_beyond_and_on_a_segment() {
    for cables in [&["u1", "u2"][..], &["u1", "u2", "u3"]] {
        for version in Version::ALL {
            for mode in [RoutingMode::Reactive, RoutingMode::Proactive] {
                let lldp = LldpHandling::ByAddress;
                check(routing(mode), version, Needs::empty(), cables, lldp);
            }
        }
    }
}

/// Three switches hear each other directly: it is no attack.
#[test]
fn routing_reaches_hosts_where_a_cheap_switch_forwards_lldp_to_several_switches() {
    for mode in [RoutingMode::Reactive, RoutingMode::Proactive] {
        let cables = ["u1", "u2", "u3"];
        check(routing(mode), Version::V1_3, Needs::empty(), &cables, LldpHandling::Pass);
    }
}

/// Two switches hear each other directly, as by a cable. Hosts between them cannot be found, and
/// that is said once.
#[test]
fn hosts_at_a_cheap_switch_between_two_switches_are_reported() {
    for version in Version::ALL {
        for mode in [RoutingMode::Reactive, RoutingMode::Proactive] {
            let mut lab = Lab::seeded(5).topology(islands()).version(version).run(routing(mode));
            let mut ordinary = OrdinarySwitch::new(&mut lab, &["u1", "u2"], LldpHandling::Pass);
            ordinary.run_for(&mut lab, SECOND * 12);
            ["h1", "h2"].iter().for_each(|host| lab.announce(host));
            assert_eq!(failed_pings(&mut lab, &mut ordinary, &["h1", "h2"]), [""; 0]);
            for _ in 0..10 {
                let question = arp_request(ON_SEGMENT, ITS_IP, Ipv4Addr::new(10, 0, 0, 1));
                ordinary.send(&mut lab, &question);
                ordinary.run_for(&mut lab, SECOND);
            }
            // Nobody has answered for h1 from the wrong side, so the cheap switch knows its cable.
            assert_eq!(failed_pings(&mut lab, &mut ordinary, &["h2", "h1"]), [""; 0]);
            let controller = lab.controller().unwrap();
            let events = controller.events().latest(usize::MAX).into_iter().map(|it| it.event);
            let alarms: Vec<Event> = events.filter(Event::is_alarming).collect();
            let [Event::HostAtLink { host, ports }] = &alarms[..] else { panic!("{alarms:?}") };
            assert_eq!((host.mac, &ports[..]), (ON_SEGMENT, &[at(1, 9), at(2, 9)][..]));
        }
    }
}

#[test]
fn learning_apps_reach_them_too_whatever_services_run() {
    for services in [Needs::empty(), Needs::HOSTS] {
        let cables = ["u1", "u2"];
        let lldp = LldpHandling::ByAddress;
        check(Learning::default(), Version::V1_3, services, &cables, lldp);
        check(<GlobalLearning>::default(), Version::V1_3, services, &cables, lldp);
    }
}
