//! Groups: types, liveness, chains.

use bellrock_openflow::{Field, FlowFlags, FlowRemovedReason, Group, MacAddr};

use super::*;

fn to_group(lab: &mut Lab, group: u32) {
    lab.apply(&[Action::Group(group)]);
}

fn weighted(weight: u16, actions: &'static [Action<'static>]) -> Bucket<'static> {
    Bucket { weight, ..Bucket::of(actions) }
}

fn watching(port: u32, actions: &'static [Action<'static>]) -> Bucket<'static> {
    Bucket { watch_port: Port(port), ..Bucket::of(actions) }
}

const TWO: &[Action<'static>] = &[Action::output(Port(2))];
const THREE: &[Action<'static>] = &[Action::output(Port(3))];
const FOUR: &[Action<'static>] = &[Action::output(Port(4))];

#[test]
fn a_group_of_type_all_gives_a_copy_to_each_bucket_and_leaves_the_packet_as_it_was() {
    let mut lab = Lab::new(V13);
    let tag = [out(2), Action::PushVlan(0x8100)];
    lab.group(GroupType::All, 5, &[Bucket::of(&tag), Bucket::of(THREE), Bucket::of(&[])]).unwrap();
    lab.apply(&[Action::Group(5), out(4)]);
    lab.send(&frame());
    let tagged = eth().vlan(0, 0).ip(&ip().udp(1_000, 53, b"a question"));
    assert_eq!(lab.frames(), [(2, &tagged[..]), (3, &frame()[..]), (4, &frame()[..])]);
    let group = lab.datapath.groups().get(5).unwrap();
    let counts: Vec<_> = group.buckets.iter().map(|b| b.counter.packet_count).collect();
    assert_eq!((group.counter.packet_count, counts), (1, vec![1, 1, 1]));
    assert_eq!(lab.datapath.group_references().get(&5), Some(&1));
}

#[test]
fn a_bucket_does_not_send_back_by_the_ingress_port() {
    let mut lab = Lab::new(V13);
    let one = [out(1)];
    lab.group(GroupType::All, 5, &[Bucket::of(&one), Bucket::of(TWO)]).unwrap();
    to_group(&mut lab, 5);
    assert_eq!(lab.send(&frame()), [2]);
}

fn flow(number: u16) -> EthernetFrame {
    eth().ip(&ip().udp(number, 53, b""))
}

#[test]
fn a_group_of_type_select_keeps_a_flow_to_a_bucket_and_shares_flows_by_weight() {
    let mut lab = Lab::new(V13);
    let buckets = [weighted(1, TWO), weighted(3, THREE), weighted(0, FOUR)];
    lab.group(GroupType::Select, 5, &buckets).unwrap();
    to_group(&mut lab, 5);
    let mut to_three = 0;
    for number in 0..1_000 {
        let left = lab.send(&flow(number));
        assert_eq!(lab.send(&flow(number)), left);
        assert!(left == [2] || left == [3], "weight 0 is no share");
        to_three += usize::from(left == [3]);
    }
    assert!((650..850).contains(&to_three), "{to_three} of 1,000");
}

/// The Ethernet addresses are always the same, as behind a router.
#[test]
fn a_group_of_type_select_shares_arp_by_its_internet_addresses() {
    let mut lab = Lab::new(V13);
    lab.group(GroupType::Select, 5, &[weighted(1, TWO), weighted(1, THREE)]).unwrap();
    to_group(&mut lab, 5);
    let mac = MacAddr([2, 0, 0, 0, 0, 1]);
    let to_two = |lab: &mut Lab, sender: Ipv4Addr, target: Ipv4Addr| {
        usize::from(lab.send(&eth().arp(1, (mac, sender), (MacAddr([0; 6]), target))) == [2])
    };
    let (one, others) = (Ipv4Addr::new(10, 0, 0, 1), (0..=255).map(|n| Ipv4Addr::new(10, 0, 1, n)));
    let senders: usize = others.clone().map(|other| to_two(&mut lab, other, one)).sum();
    let targets: usize = others.map(|other| to_two(&mut lab, one, other)).sum();
    assert!((90..166).contains(&senders) && (90..166).contains(&targets), "{senders}, {targets}");
}

#[test]
fn when_a_selected_bucket_dies_only_its_flows_move() {
    let mut lab = Lab::new(V13);
    let watched = |port, actions| Bucket { weight: 1, ..watching(port, actions) };
    lab.group(GroupType::Select, 5, &[watched(2, TWO), watched(3, THREE), watched(4, FOUR)])
        .unwrap();
    to_group(&mut lab, 5);
    let before: Vec<_> = (0..100).map(|number| lab.send(&flow(number))).collect();
    lab.datapath.link(3, false, &mut lab.effects);
    for (number, before) in (0..100).zip(before) {
        let after = lab.send(&flow(number));
        assert!(after == before || before == [3]);
        assert!(after == [2] || after == [4]);
    }
}

#[test]
fn fragments_of_a_packet_stay_together() {
    let mut lab = Lab::new(V13);
    lab.group(GroupType::Select, 5, &[weighted(1, TWO), weighted(1, THREE)]).unwrap();
    to_group(&mut lab, 5);
    for number in 0..50 {
        let datagram = ip().udp(number, 53, &[0; 16]).bytes()[20..].to_vec();
        let first = lab.send(&eth().ip(&ip().fragment(0, true).payload(17, &datagram)));
        let later = lab.send(&eth().ip(&ip().fragment(3, false).payload(17, &[9; 8])));
        assert_eq!(first, later);
    }
}

#[test]
fn a_fast_failover_group_takes_the_first_bucket_that_is_live() {
    let mut lab = Lab::new(V13);
    let buckets = [watching(2, TWO), watching(3, THREE)];
    lab.group(GroupType::FastFailover, 5, &buckets).unwrap();
    to_group(&mut lab, 5);
    assert_eq!(lab.send(&frame()), [2]);
    lab.datapath.link(2, false, &mut lab.effects);
    assert_eq!(lab.send(&frame()), [3]);
    lab.datapath.link(3, false, &mut lab.effects);
    assert!(lab.send(&frame()).is_empty());
    lab.datapath.link(2, true, &mut lab.effects);
    assert_eq!(lab.send(&frame()), [2]);
}

#[test]
fn a_bucket_is_live_while_the_group_that_it_watches_is() {
    let mut lab = Lab::new(V13);
    lab.group(GroupType::FastFailover, 1, &[watching(2, TWO)]).unwrap();
    let by_group = [Action::Group(1)];
    let first = Bucket { watch_group: 1, ..Bucket::of(&by_group) };
    lab.group(GroupType::FastFailover, 2, &[first, watching(3, THREE)]).unwrap();
    to_group(&mut lab, 2);
    assert_eq!(lab.send(&frame()), [2]);
    lab.datapath.link(2, false, &mut lab.effects);
    assert_eq!(lab.send(&frame()), [3]);
}

#[test]
fn an_indirect_group_has_one_bucket() {
    let mut lab = Lab::new(V13);
    let refused = Err(ErrorCode::GroupModInvalid);
    assert_eq!(lab.group(GroupType::Indirect, 1, &[]), refused);
    assert_eq!(lab.group(GroupType::Indirect, 1, &[Bucket::of(TWO), Bucket::of(TWO)]), refused);
    lab.group(GroupType::Indirect, 1, &[Bucket::of(TWO)]).unwrap();
    to_group(&mut lab, 1);
    assert_eq!(lab.send(&frame()), [2]);
    lab.group_mod(GroupCommand::Modify, GroupType::All, 1, &[Bucket::of(THREE)]).unwrap();
    assert_eq!(lab.send(&frame()), [3]);
    assert_eq!(lab.datapath.groups().get(1).unwrap().counter.packet_count, 2);
}

#[test]
fn groups_are_chained_but_never_in_a_circle() {
    let mut lab = Lab::new(V13);
    lab.group(GroupType::All, 1, &[Bucket::of(TWO), Bucket::of(THREE)]).unwrap();
    let (one, two) = ([Action::Group(1)], [Action::Group(2)]);
    lab.group(GroupType::All, 2, &[Bucket::of(&one)]).unwrap();
    to_group(&mut lab, 2);
    assert_eq!(lab.send(&frame()), [2, 3]);
    let loops = Err(ErrorCode::GroupModLoop);
    let modify = GroupCommand::Modify;
    assert_eq!(lab.group_mod(modify, GroupType::All, 1, &[Bucket::of(&two)]), loops);
    assert_eq!(lab.group_mod(modify, GroupType::All, 1, &[Bucket::of(&one)]), loops);
    let three = [Action::Group(3)];
    assert_eq!(lab.group(GroupType::All, 3, &[Bucket::of(&three)]), loops);
    let watch = Bucket { watch_group: 2, ..Bucket::of(TWO) };
    assert_eq!(lab.group_mod(modify, GroupType::FastFailover, 1, &[watch]), loops);
    assert_eq!(lab.send(&frame()), [2, 3]);
    let chained = lab.group_mod(GroupCommand::Delete, GroupType::All, 1, &[]);
    assert_eq!(chained, Err(ErrorCode::GroupModChained));
}

#[test]
fn chained_groups_do_not_multiply_a_packet_without_end() {
    let mut lab = Lab::new(V13);
    lab.group(GroupType::All, 0, &[Bucket::of(TWO), Bucket::of(TWO)]).unwrap();
    for group in 1..40 {
        let below = [Action::Group(group - 1)];
        lab.group(GroupType::All, group, &[Bucket::of(&below), Bucket::of(&below)]).unwrap();
    }
    to_group(&mut lab, 39);
    assert!(lab.send(&frame()).len() < 4_096);
}

#[test]
fn a_group_that_goes_takes_its_flows_with_it() {
    let mut lab = Lab::new(V13);
    lab.group(GroupType::All, 1, &[Bucket::of(TWO)]).unwrap();
    let any = Match::any();
    let actions = [Action::Group(1)];
    let flow = FlowMod::add(&any).flags(FlowFlags::SEND_FLOW_REM).actions(&actions);
    lab.ask(&flow).unwrap();
    lab.group_mod(GroupCommand::Delete, GroupType::All, Group::ALL, &[]).unwrap();
    let [Notice::FlowRemoved(gone)] = &lab.effects.notices[..] else { panic!("one is gone") };
    assert_eq!(gone.reason, FlowRemovedReason::GroupDelete);
    assert!(lab.send(&frame()).is_empty());
    // A group that does not exist is no error.
    assert_eq!(lab.group_mod(GroupCommand::Delete, GroupType::All, 1, &[]), Ok(()));
}

#[test]
fn group_mods_that_cannot_be_done_are_refused_by_name() {
    use GroupCommand::{Add, Delete, Modify};
    use GroupType::{All, FastFailover, Unknown};
    let mut lab = Lab::new(V13);
    lab.group(All, 1, &[]).unwrap();
    let nowhere = [out(9)];
    let watch_group = Bucket { watch_group: 9, ..Bucket::of(TWO) };
    let many = vec![Bucket::of(&[]); 1_025];
    for (command, kind, group, buckets, error) in [
        (Add, All, 1, &[][..], ErrorCode::GroupModExists),
        (Modify, All, 2, &[], ErrorCode::GroupModUnknownGroup),
        (Add, All, Group::MAX + 1, &[], ErrorCode::GroupModInvalid),
        (Delete, All, Group::ANY, &[], ErrorCode::GroupModInvalid),
        (Add, Unknown(9), 2, &[], ErrorCode::GroupModBadType),
        (Add, FastFailover, 2, &[Bucket::of(TWO)], ErrorCode::GroupModInvalid),
        (Add, All, 2, &[weighted(1, TWO)], ErrorCode::GroupModInvalid),
        (Add, FastFailover, 2, &[watching(9, TWO)], ErrorCode::GroupModBadWatch),
        (Add, FastFailover, 2, &[watch_group], ErrorCode::GroupModBadWatch),
        (Add, All, 2, &[Bucket::of(&nowhere)], ErrorCode::ActionBadOutPort),
        (Add, All, 2, &many, ErrorCode::GroupModOutOfBuckets),
    ] {
        assert_eq!(lab.group_mod(command, kind, group, buckets), Err(error), "{error}");
    }
    assert_eq!(lab.datapath.groups().iter().count(), 1);
}

#[test]
fn a_ttl_that_runs_out_in_a_bucket_ends_that_copy_only() {
    let mut lab = Lab::new(V13);
    let hop = [Action::DecNwTtl, out(2), Action::SetField(Field::EthDst, 1)];
    lab.group(GroupType::All, 1, &[Bucket::of(&hop), Bucket::of(THREE)]).unwrap();
    to_group(&mut lab, 1);
    assert_eq!(lab.send(&eth().ip(&ip().ttl(1).udp(1, 2, b""))), [3]);
    assert_eq!(lab.packet_ins().len(), 1);
}

#[test]
fn groups_that_are_watched_by_many_ways_are_looked_at_once_each() {
    let mut lab = Lab::new(V13);
    lab.group(GroupType::FastFailover, 0, &[watching(2, TWO)]).unwrap();
    for group in 1..64 {
        let below = Bucket { watch_group: group - 1, ..Bucket::of(THREE) };
        lab.group(GroupType::FastFailover, group, &[below, below]).unwrap();
    }
    to_group(&mut lab, 63);
    assert_eq!(lab.send(&frame()), [3]);
    // 2^63 paths lead to the port that is down.
    lab.datapath.link(2, false, &mut lab.effects);
    assert!(lab.send(&frame()).is_empty());
}

#[test]
fn a_chain_of_groups_ends_a_packet_before_it_ends_the_stack() {
    let mut lab = Lab::new(V13);
    lab.group(GroupType::Indirect, 0, &[Bucket::of(TWO)]).unwrap();
    for group in 1..2_000 {
        let below = [Action::Group(group - 1)];
        let bucket = Bucket { watch_group: group - 1, ..Bucket::of(&below) };
        lab.group(GroupType::Indirect, group, &[bucket]).unwrap();
    }
    to_group(&mut lab, 63);
    assert_eq!(lab.send(&frame()), [2]);
    for group in [64, 1_999] {
        to_group(&mut lab, group);
        assert!(lab.send(&frame()).is_empty());
    }
    let watching = Bucket { watch_group: 1_999, ..Bucket::of(THREE) };
    lab.group(GroupType::FastFailover, 2_000, &[watching]).unwrap();
    to_group(&mut lab, 2_000);
    assert!(lab.send(&frame()).is_empty(), "no port is watched");
}

#[test]
fn a_packet_that_is_sent_to_the_tables_many_times_runs_through_no_more_buckets() {
    let mut lab = Lab::new(V13);
    lab.group(GroupType::All, 1, &vec![Bucket::of(TWO); 1_000]).unwrap();
    to_group(&mut lab, 1);
    let tables = vec![Action::output(Port::TABLE); 10];
    lab.packet_out(Port::CONTROLLER, &tables, &frame()).unwrap();
    assert_eq!(lab.left().len(), 4_096);
}
