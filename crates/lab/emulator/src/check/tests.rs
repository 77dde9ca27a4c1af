//! The checks, on networks that are right and on networks that are wrong.

use bellrock_openflow::{
    Action, Bucket, Field, FlowMod, Group, GroupCommand, GroupMod, GroupType, List, Match, Port,
    ToSwitch, Version,
};

use super::*;
use crate::host::PingSettings;
use crate::network::tests::{Driven, settings};
use crate::network::{EmulatedNetwork, NetworkSettings};
use crate::topology::{HostIndex, Node, SwitchIndex};

fn to_host(driven: &Driven, host: &str) -> Match {
    let mac = driven.network.host(driven.host(host)).mac();
    Match::any().with(Field::EthDst, mac.to_u64().into())
}

fn found(driven: &Driven, from: &str, to: &str) -> Vec<String> {
    let (from, to) = (driven.host(from), driven.host(to));
    let findings = Analysis::new(&driven.network).ping(from, to).findings(to);
    let topology = driven.network.topology();
    findings.iter().map(|finding| finding.display(topology).to_string()).collect()
}

fn names(network: &EmulatedNetwork, nodes: &[Node]) -> Vec<String> {
    nodes.iter().map(|node| network.topology().name(*node).to_owned()).collect()
}

#[test]
fn a_network_that_is_right_has_no_findings_and_its_paths_are_known() {
    let mut driven = Driven::new("tree:3,2", settings(), Version::V1_3);
    driven.route_all();
    let hosts: Vec<HostIndex> = (0..8).map(HostIndex::of).collect();
    assert_eq!(Analysis::new(&driven.network).check(&hosts), []);
    let (h1, h8) = (driven.host("h1"), driven.host("h8"));
    let path = Analysis::new(&driven.network).ping(h1, h8).path_to(h8).unwrap();
    let path: Vec<_> = path.into_iter().map(Node::Switch).collect();
    assert_eq!(names(&driven.network, &path), ["s3", "s2", "s1", "s5", "s7"]);
    let counted = driven.network.switch(driven.id("s1")).datapath().tables().table(0).unwrap();
    assert!(counted.flows().all(|(_, flow)| flow.packet_count == 0), "nothing was sent");
}

#[test]
fn a_loop_is_named() {
    let mut driven = Driven::new("ring:3", settings(), Version::V1_3);
    driven.route_all();
    assert_eq!(found(&driven, "h1", "h3"), Vec::<String>::new());
    // Ring: s1:1 h1, s1:2 s2, s1:3 s3; s2:2 s1, s2:3 s3; s3:2 s2, s3:3 s1.
    let to_h3 = to_host(&driven, "h3");
    driven.flow("s1", &to_h3, &[Port(2)]);
    driven.flow("s2", &to_h3, &[Port(3)]);
    driven.flow("s3", &to_h3, &[Port(3)]);
    assert_eq!(found(&driven, "h1", "h3"), ["loop: s2 - s3 - s1 - s2"]);
}

#[test]
fn a_black_hole_is_named_and_what_the_controller_gets_is_none() {
    let mut driven = Driven::new("linear:3", settings(), Version::V1_3);
    driven.route_all();
    let to_h3 = to_host(&driven, "h3");
    driven.flow("s2", &to_h3, &[]);
    assert_eq!(found(&driven, "h1", "h3"), ["black hole: it ends at s2"]);
    driven.flow("s2", &to_h3, &[Port::CONTROLLER]);
    assert_eq!(found(&driven, "h1", "h3"), Vec::<String>::new());
    driven.flow("s2", &to_h3, &[Port(4)]);
    assert_eq!(found(&driven, "h1", "h3"), ["black hole: it ends at s2"], "a port without a link");
    assert_eq!(found(&driven, "h3", "h1"), Vec::<String>::new());
}

#[test]
fn a_double_delivery_is_found_in_tables_and_in_traffic() {
    let mut driven = Driven::new("ring:3", settings(), Version::V1_3);
    driven.route_all();
    // Both ways round the ring at once. Broadcasts must not loop.
    let to_h3 = to_host(&driven, "h3");
    driven.flow("s1", &to_h3, &[Port(2), Port(3)]);
    driven.flow("s2", &to_h3, &[Port(3)]);
    assert_eq!(found(&driven, "h1", "h3"), ["duplicate: it arrives 2 times"]);
    assert_eq!(duplicates(&driven.network), []);
    let (h1, h3) = (driven.host("h1"), driven.host("h3"));
    let broadcast = Match::any().with(Field::EthDst, 0xffff_ffff_ffff);
    driven.flow("s2", &broadcast, &[]);
    driven.network.ping(h1, h3, PingSettings::default()).unwrap();
    driven.network.advance(std::time::Duration::from_secs(1));
    let doubled = duplicates(&driven.network);
    assert!(doubled.contains(&(h3, 1)), "{doubled:?}");
}

#[test]
fn the_paths_that_packets_took_are_known() {
    let settings = NetworkSettings { hops: 1000, ..settings() };
    let mut driven = Driven::new("tree:2,2", settings, Version::V1_3);
    driven.route_all();
    assert!(driven.pings("h1", "h4"));
    let taken = paths(&driven.network, driven.host("h1"), driven.host("h4"));
    assert_eq!(taken.len(), 1);
    assert_eq!(names(&driven.network, &taken[0]), ["h1", "s2", "s1", "s3", "h4"]);
    assert_eq!(paths(&driven.network, driven.host("h1"), driven.host("h2")), Vec::<Vec<_>>::new());
    driven.network.forget_hops();
    assert_eq!(paths(&driven.network, driven.host("h1"), driven.host("h4")), Vec::<Vec<_>>::new());
}

#[test]
fn a_packet_that_the_controller_sends_on_keeps_its_path() {
    let settings = NetworkSettings { hops: 1000, ..settings() };
    let mut driven = Driven::new("linear:2", settings, Version::V1_3);
    driven.route_all();
    assert!(driven.pings("h1", "h2"));
    driven.network.forget_hops();
    // s1 sends the packet to the controller, which sends it on with a packet_out.
    let to_h2 = to_host(&driven, "h2");
    driven.flow("s1", &to_h2, &[Port::CONTROLLER]);
    driven.hear();
    driven.said[0].clear();
    let (h1, h2, s1) = (driven.host("h1"), driven.host("h2"), driven.id("s1"));
    driven.network.ping(h1, h2, PingSettings::default()).unwrap();
    driven.network.advance(driven.network.now() + std::time::Duration::from_millis(1));
    driven.hear();
    let said = std::mem::take(&mut driven.said[0]);
    let message = bellrock_openflow::FromSwitch::decode(&said).unwrap();
    let bellrock_openflow::FromSwitch::PacketIn(packet) = message.body else { panic!("{message}") };
    let actions = [Action::output(Port(2))];
    let out = bellrock_openflow::PacketOut {
        buffer_id: packet.buffer_id,
        in_port: packet.in_port(),
        actions: List::of(&actions),
        data: packet.data,
    };
    driven.tell(s1, &ToSwitch::PacketOut(out));
    driven.network.advance(driven.network.now() + std::time::Duration::from_millis(1));
    let taken = paths(&driven.network, h1, h2);
    assert_eq!(names(&driven.network, &taken[0]), ["h1", "s1", "s2", "h2"]);
}

#[test]
fn flows_are_shown_by_table_priority_and_match() {
    let mut driven = Driven::new("single:2", settings(), Version::V1_3);
    driven.route_all();
    let any = Match::any();
    driven.tell(SwitchIndex(0), &ToSwitch::FlowMod(FlowMod::add(&any).priority(0)));
    let text = dump_flows(driven.network.switch(SwitchIndex(0)), driven.network.now());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("table=0 priority=32768 ") && lines[0].contains(":01 "), "{text}");
    assert!(lines[3].starts_with("table=0 priority=0 "), "{text}");
}

#[test]
fn groups_are_shown_by_number_with_their_buckets() {
    let mut driven = Driven::new("single:2", settings(), Version::V1_3);
    let output = [Action::output(Port(1)), Action::DecNwTtl];
    let bucket = |weight, actions| Bucket {
        weight,
        watch_port: Port::ANY,
        watch_group: Group::ANY,
        actions: List::of(actions),
    };
    let select = [bucket(2, &output[..1]), bucket(1, &output)];
    for (group, kind, buckets) in [(9, GroupType::All, &[][..]), (7, GroupType::Select, &select)] {
        let command = GroupCommand::Add;
        let group = GroupMod { command, kind, group, buckets: List::of(buckets) };
        driven.tell(SwitchIndex(0), &ToSwitch::GroupMod(group));
    }
    assert_eq!(
        dump_groups(driven.network.switch(SwitchIndex(0))),
        "group_id=7,type=select,bucket=weight:2,actions=output:1,bucket=weight:1,actions=output:1,dec_nw_ttl\n\
         group_id=9,type=all\n"
    );
}

#[test]
fn a_matrix_says_who_did_not_reach_whom() {
    let mut driven = Driven::new("linear:3", settings(), Version::V1_3);
    driven.route_all();
    let to_h3 = to_host(&driven, "h3");
    driven.flow("s2", &to_h3, &[]);
    let pings = Reachability::begin_all(&mut driven.network, PingSettings::default());
    driven.network.advance(std::time::Duration::from_secs(10));
    assert!(pings.is_over(&driven.network));
    let matrix = pings.finish(&mut driven.network);
    let text = matrix.display(driven.network.topology()).to_string();
    // The pings of h3 reach the hosts, but the answers do not reach h3.
    assert_eq!(text, "h1 -> h2 X\nh2 -> h1 X\nh3 -> X X\n66.7% lost (2 of 6 answered)");
    assert!(!matrix.is_complete());
}
