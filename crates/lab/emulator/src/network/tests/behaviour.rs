//! The behaviour of a network, one test for each rule.

use bellrock_openflow::FlowFlags;

use super::*;
use crate::check::{MessageDirection, Reachability, duplicates};
use crate::host::FlowState;
use crate::topology::{LinkShape, LossRate};

const V1_3: Version = Version::V1_3;

fn ping_all(driven: &mut Driven) -> crate::check::Matrix {
    let pings = Reachability::begin_all(&mut driven.network, PingSettings::default());
    while !pings.is_over(&driven.network) {
        let next = driven.network.next_event().expect("pings end");
        driven.network.advance(next);
    }
    pings.finish(&mut driven.network)
}

#[test]
fn all_hosts_of_a_tree_reach_each_other_by_flows_written_in_openflow() {
    for version in Version::ALL {
        let mut driven = Driven::new("tree:2,3", settings(), version);
        let before = ping_all(&mut driven);
        assert_eq!(before.lost.len(), 9 * 8, "without flows nobody reaches anybody");
        driven.route_all();
        let after = ping_all(&mut driven);
        assert!(after.is_complete(), "{}", after.display(driven.network.topology()));
        assert_eq!(duplicates(&driven.network), []);
        // At most three hops there and back, after the ARP request.
        assert!(after.slowest.unwrap() <= SHORTEST_HOP * 4 * 4, "{:?}", after.slowest);
        assert_eq!(driven.network.counters().overload, 0);
    }
}

/// A network with losses, queues and some traffic.
fn busy(seed: u64) -> EmulatedNetwork {
    let mut topology: TopologySpec = crate::topology::tree(2, 3).build().unwrap();
    let mut text = topology.to_string();
    text =
        text.replace("link s1:1 s2:4", "link s1:1 s2:4 loss=20% delay=1ms bandwidth=10M queue=5");
    topology = TopologySpec::parse(&text).unwrap();
    assert!(topology.links().iter().any(|link| link.shape.loss == LossRate::per_million(200_000)));
    let mut driven =
        Driven::new(&topology.to_string(), NetworkSettings { seed, ..settings() }, V1_3);
    driven.route_all();
    let (h1, h9) = (driven.host("h1"), driven.host("h9"));
    driven.network.open_flow(h1, h9, 5001, FlowGoal::Bytes(50_000)).unwrap();
    let pings = PingSettings { count: 20, ..PingSettings::default() };
    driven.network.ping(h9, h1, pings).unwrap();
    for second in 1..30 {
        driven.network.advance(Duration::from_secs(second));
        driven.hear();
    }
    driven.network
}

#[test]
fn a_run_repeats_from_its_seed() {
    let (one, same, other) = (busy(1), busy(1), busy(2));
    assert_eq!((one.digest(), one.counters()), (same.digest(), same.counters()));
    assert_ne!(one.digest(), other.digest(), "another seed loses other frames");
    let lost: u64 = one.link_counters(LinkIndex(3)).iter().map(|counters| counters.lost).sum();
    assert!(lost > 0);
}

#[test]
fn it_does_not_matter_in_which_steps_time_passes() {
    let digest = |steps: u64| {
        let mut driven = Driven::new("linear:3", settings(), V1_3);
        driven.route_all();
        let (h1, h3) = (driven.host("h1"), driven.host("h3"));
        driven.network.ping(h1, h3, PingSettings { count: 3, ..PingSettings::default() }).unwrap();
        for step in 1..=steps {
            driven.network.advance(Duration::from_secs(10) * step as u32 / steps as u32);
        }
        driven.network.digest()
    };
    assert_eq!(digest(1), digest(1000));
}

#[test]
fn both_switches_tell_of_a_link_that_goes_down_and_what_is_on_it_is_lost() {
    let mut driven = Driven::new("linear:2", settings(), V1_3);
    driven.route_all();
    assert!(driven.pings("h1", "h2"));
    let trunk = driven.trunk("s1", "s2");
    driven.news("s1");
    driven.news("s2");
    let (h1, h2) = (driven.host("h1"), driven.host("h2"));
    let ping = driven.network.ping(h1, h2, PingSettings::default()).unwrap();
    // The request is on the link: it left s1 after one hop.
    driven.network.advance(driven.network.now() + SHORTEST_HOP);
    driven.network.set_link(trunk, false);
    driven.network.advance(driven.network.now() + Duration::from_secs(6));
    assert_eq!(driven.network.end_ping(h1, ping).unwrap().lost, 1);
    let down: u64 = driven.network.link_counters(trunk).iter().map(|counters| counters.down).sum();
    assert_eq!(down, 1);
    for switch in ["s1", "s2"] {
        let news = driven.news(switch);
        assert!(news.len() == 1 && news[0].contains("PORT_STATUS"), "{news:?}");
        assert!(news[0].contains(&format!("{switch}-eth2")), "{news:?}");
    }
    assert!(!driven.pings("h1", "h2"));
    for _ in 0..2 {
        driven.network.set_link(trunk, true);
    }
    assert_eq!(driven.news("s1").len(), 1, "what is up does not come up");
    assert!(driven.pings("h1", "h2"));
}

#[test]
fn a_host_moves_and_is_where_it_went() {
    let mut driven = Driven::new("linear:3", settings(), V1_3);
    driven.route_all();
    assert!(driven.pings("h1", "h3"));
    let (h3, s1) = (driven.host("h3"), driven.id("s1"));
    assert_eq!(driven.network.place(h3), Some((driven.id("s3"), 1)));
    driven.news("s1");
    driven.news("s3");
    driven.network.move_host(h3, s1, None, true).unwrap();
    assert_eq!(driven.network.place(h3), Some((s1, 3)));
    for switch in ["s1", "s3"] {
        let news = driven.news(switch);
        assert!(news.len() == 1 && news[0].contains("PORT_STATUS"), "{switch}: {news:?}");
    }
    assert!(!driven.pings("h1", "h3"), "the flows still lead to where it was");
    driven.route_to(h3);
    assert!(driven.pings("h1", "h3") && driven.pings("h3", "h2"));
    let error = driven.network.move_host(h3, driven.id("s1"), Some(1), true).unwrap_err();
    assert!(error.to_string().starts_with("port 1 of s1 has a link"), "{error}");
    let error = driven.network.move_host(h3, driven.id("s1"), Some(9), true).unwrap_err();
    assert!(error.to_string().starts_with("s1 has no port 9"), "{error}");
    let (h1, s1) = (driven.host("h1"), driven.id("s1"));
    let error = driven.network.move_host(h1, s1, None, true).unwrap_err();
    assert!(error.to_string().starts_with("s1 has no port without a link"), "{error}");
}

#[test]
fn flows_end_when_their_time_is_over() {
    let mut driven = Driven::new("single:2", settings(), V1_3);
    let s1 = driven.id("s1");
    let any = Match::any();
    let mut flow = FlowMod::add(&any);
    (flow.hard_timeout, flow.flags) = (3, FlowFlags::SEND_FLOW_REM);
    driven.tell(s1, &ToSwitch::FlowMod(flow));
    driven.news("s1");
    driven.network.advance(Duration::from_millis(2999));
    assert_eq!(driven.news("s1"), Vec::<String>::new());
    assert_eq!(driven.network.next_event(), Some(Duration::from_secs(3)));
    assert!(driven.network.advance_to_control(Duration::from_secs(60)));
    assert_eq!(driven.network.now(), Duration::from_secs(3), "time stops where something is said");
    let news = driven.news("s1");
    assert!(news.len() == 1 && news[0].contains("FLOW_REMOVED"), "{news:?}");
    assert!(!driven.network.advance_to_control(Duration::from_secs(60)));
    assert_eq!(driven.network.now(), Duration::from_secs(60));
}

#[test]
fn a_flow_like_tcps_gets_what_a_link_carries() {
    let file = "switch s1\nhost h1\nhost h2\nlink s1:1 h1\nlink s1:2 h2 bandwidth=10M delay=2ms queue=50\n";
    let mut driven = Driven::new(file, settings(), V1_3);
    driven.route_all();
    let (h1, h2) = (driven.host("h1"), driven.host("h2"));
    let goal = FlowGoal::Until(Duration::from_secs(10));
    let flow = driven.network.open_flow(h1, h2, 5001, goal).unwrap();
    driven.network.advance(Duration::from_secs(20));
    let report = driven.network.host(h1).flow(flow).unwrap();
    assert_eq!(report.state, FlowState::Done);
    // 1,460 of 1,514 bytes are data; queues overflow during slow start.
    let megabits = report.bits_per_second() / 1e6;
    assert!((7.0..9.65).contains(&megabits), "{megabits} {report:?}");
    let overflows = driven.network.link_counters(LinkIndex(1))[0].overflows;
    assert!(overflows > 0 && report.retransmissions >= overflows, "{overflows} {report:?}");
}

#[test]
fn a_flood_in_a_circle_takes_time_and_ends_with_the_link() {
    let mut driven = Driven::new("ring:3", settings(), V1_3);
    driven.flood_broadcasts();
    let h1 = driven.host("h1");
    driven.network.with(h1, |host, _, out| host.announce(out));
    driven.network.advance(Duration::from_millis(1));
    let events = driven.network.counters().events;
    // Two copies circulate, one in each direction, and each hop takes a microsecond.
    assert!((1000..10_000).contains(&events), "{events}");
    let trunk = driven.trunk("s1", "s2");
    driven.network.set_link(trunk, false);
    driven.network.advance(Duration::from_millis(2));
    assert_eq!(driven.network.next_event(), None);
}

#[test]
fn a_restart_loses_connections_and_what_was_set_up() {
    for keep_tables in [true, false] {
        let mut driven = Driven::new("single:2", settings(), V1_3);
        driven.route_all();
        let s1 = driven.id("s1");
        driven.network.restart(s1, keep_tables);
        assert_eq!(driven.network.switch(s1).channels().count(), 0);
        assert_eq!(driven.pings("h1", "h2"), keep_tables);
        assert!(driven.network.connect(s1).is_ok());
    }
}

#[test]
fn messages_are_remembered_on_request() {
    let settings = NetworkSettings { messages: 3, ..settings() };
    let mut driven = Driven::new("single:2", settings, V1_3);
    driven.route_all();
    let s1 = driven.id("s1");
    let log = driven.network.messages();
    assert_eq!(log.count(s1, MessageDirection::ToSwitch), 1 + 3, "a hello and three flow_mods");
    assert_eq!(log.count(s1, MessageDirection::FromSwitch), 1, "a hello");
    let kept: Vec<_> = log.of(s1).collect();
    assert_eq!(kept.len(), 3);
    let text = kept[2].to_string();
    assert!(text.starts_with("OFPT_FLOW_MOD") && text.contains("00:00:00:00:00:02"), "{text}");
}

#[test]
fn switches_are_made_as_their_topology_says() {
    let file = "switch core dpid=0xab tables=3 capacity=17\nswitch s2\nlink core:7 s2:1\n";
    let driven = Driven::new(file, settings(), V1_3);
    let (core, s2) = (driven.id("core"), driven.id("s2"));
    let datapath = driven.network.switch(core).datapath();
    assert_eq!(driven.network.switch(core).dpid(), 0xab);
    assert_eq!(datapath.tables().len(), 3);
    assert_eq!(datapath.tables().table(0).map(|table| table.capacity()), Some(17));
    let ports: Vec<_> =
        datapath.ports().iter().map(|port| (port.number(), port.is_live())).collect();
    assert_eq!(ports, [(7, true), (8, false)], "the port with a link, and a spare one");
    assert_eq!(driven.network.peer(core, 7).map(|end| end.node), Some(Node::Switch(s2)));
    assert_eq!(driven.network.peer(core, 8), None);
    assert_eq!(LinkShape::default(), driven.network.topology().links()[0].shape);
}

#[test]
fn a_port_tells_what_its_link_carries() {
    let file = "switch s1\nswitch s2\nlink s1:1 s2:1 bandwidth=10M\nlink s1:2 s2:2 bandwidth=25M\n\
                link s1:3 s2:3\n";
    let driven = Driven::new(file, settings(), V1_3);
    let ports = driven.network.switch(driven.id("s1")).datapath().ports();
    let told: Vec<_> = ports.iter().take(3).map(|port| port.desc.rate_kbps()).collect();
    assert_eq!(told, [Some(10_000), Some(25_000), Some(10_000_000)]);
}
