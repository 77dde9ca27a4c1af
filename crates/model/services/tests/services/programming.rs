//! Plans in a lab: all or nothing, and no packet loops or is lost meanwhile.

use std::time::Duration;

use crate::flows::{Hand, NAME, Tree, findings, flows_of, mesh};
use bellrock_api::{
    Change, Dpid, EncodeError, ErrorCode, Field, Flow, FlowFlags, Match, Port, Refusal, Version,
};
use bellrock_emulator::lab::{FaultKind, Faults, Lab};
use bellrock_emulator::topology::{HostIndex, Node, TopologySpec, ring};
use bellrock_services::programming::{
    CommitError, Committed, DRAIN, FlowProgramming, Plan, PlanOutcome,
};
use fastrand::Rng;

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

/// Longer than any plan takes in a lab.
const DONE_WITHIN: Duration = Duration::from_secs(60);

type Outcome = Result<Committed, CommitError>;

fn lab(
    version: Version,
    topology: impl TryInto<TopologySpec, Error: std::fmt::Debug>,
) -> (Lab, Hand) {
    let hand = Hand::default();
    let topology = topology.try_into().unwrap();
    let lab = Lab::seeded(1).version(version).topology(topology);
    // Long enough to see the network between two messages.
    let lab = lab.control_delay(Duration::from_millis(5)).run(hand.clone());
    (lab, hand)
}

/// Commits a plan, and calls `look` after every millisecond with an event, until it is over.
fn commit(lab: &mut Lab, hand: &Hand, plan: Plan, mut look: impl FnMut(&Lab)) -> Outcome {
    let network = hand.network();
    let result = hand.run(async move { network.commit(plan).await });
    let done = lab.run_until(DONE_WITHIN, |lab| {
        look(lab);
        result.lock().unwrap().is_some()
    });
    assert!(done, "the plan does not end");
    result.lock().unwrap().take().unwrap()
}

fn flow(number: u8, port: u32) -> Flow {
    Flow::new(Match::any().in_port(Port(number.into()))).priority(7).output(Port(port))
}

fn tree_plan(from: Option<&Tree>, to: &Tree, mac: bellrock_api::MacAddr) -> Plan {
    let old = from.map(|tree| tree.flows(mac)).unwrap_or_default();
    let mut plan = Plan::tree();
    for (distance, dpid, flow) in to.flows(mac) {
        plan = match old.iter().find(|(_, other, _)| *other == dpid) {
            Some((.., old)) => plan.replace_at(distance, dpid, old.clone(), flow),
            None => plan.add_at(distance, dpid, flow),
        };
    }
    plan
}

/// Delays messages at random, so that switches change in any order that a plan allows.
fn disturb(lab: &mut Lab, rng: &mut Rng) {
    let late = Faults::of(rng.u64(..), &[FaultKind::MessageDelay]).each(6);
    lab.inject(&late.within(Duration::from_millis(1)));
    lab.run_for(Duration::from_millis(2));
}

#[test]
fn while_a_tree_changes_into_another_no_packet_loops_or_falls() {
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let version = VERSIONS[seed as usize % 2];
        let (mut lab, hand) = lab(version, mesh(rng.u32(4..12), &mut rng));
        let to = HostIndex(0);
        let mac = lab.topology().hosts()[0].mac;
        let mut tree = Tree::random(lab.topology(), to, &mut rng);
        commit(&mut lab, &hand, tree_plan(None, &tree, mac), |_| {}).unwrap();
        assert_eq!(findings(&lab, to), [""; 0]);
        for _ in 0..4 {
            let next = Tree::random(lab.topology(), to, &mut rng);
            disturb(&mut lab, &mut rng);
            let outcome = commit(&mut lab, &hand, tree_plan(Some(&tree), &next, mac), |lab| {
                assert_eq!(findings(lab, to), [""; 0], "seed {seed} at {:?}", lab.now());
            });
            let changes = next.0.len();
            assert_eq!(outcome, Ok(Committed { changes }), "seed {seed}");
            tree = next;
        }
    }
}

/// Checks that the test above would find problems.
#[test]
fn without_an_order_packets_do_loop_or_fall() {
    let mut wrong = 0;
    for seed in 0..20 {
        let mut rng = Rng::with_seed(seed);
        let (mut lab, hand) = lab(Version::V1_3, mesh(8, &mut rng));
        let to = HostIndex(0);
        let mac = lab.topology().hosts()[0].mac;
        let old = Tree::random(lab.topology(), to, &mut rng);
        commit(&mut lab, &hand, tree_plan(None, &old, mac), |_| {}).unwrap();
        let mut plan = Plan::independent();
        for (_, dpid, flow) in Tree::random(lab.topology(), to, &mut rng).flows(mac) {
            plan = plan.add(dpid, flow);
        }
        disturb(&mut lab, &mut rng);
        commit(&mut lab, &hand, plan, |lab| wrong += findings(lab, to).len()).unwrap();
    }
    assert!(wrong > 0);
}

#[test]
fn a_refused_change_takes_the_whole_plan_back() {
    for version in VERSIONS {
        let (mut lab, hand) = lab(version, ring(4, 1));
        let old = flow(1, 2);
        commit(&mut lab, &hand, Plan::new().add(Dpid(1), old.clone()), |_| {}).unwrap();
        let before = flows_of(&lab, NAME);
        // The third switch has a flow that overlaps, and the new one has CHECK_OVERLAP.
        let overlaps = flow(1, 1).flags(FlowFlags::CHECK_OVERLAP);
        let there = Flow::new(Match::any()).priority(7).output(Port(1));
        commit(&mut lab, &hand, Plan::new().add(Dpid(3), there), |_| {}).unwrap();
        let plan = Plan::tree()
            .replace_at(0, Dpid(1), old, flow(1, 3))
            .add_at(1, Dpid(2), flow(1, 3))
            .add_at(1, Dpid(3), overlaps)
            .add_at(2, Dpid(4), flow(1, 3))
            .remove(Dpid(1), flow(9, 9));
        let error = commit(&mut lab, &hand, plan, |_| {}).unwrap_err();
        let CommitError::Failed(reports) = &error else { panic!("{error}") };
        let fates: Vec<PlanOutcome> = reports.iter().map(|report| report.outcome).collect();
        let refused = PlanOutcome::Refused(Refusal::Standard(ErrorCode::FlowModOverlap));
        let expected = [
            PlanOutcome::RolledBack,
            PlanOutcome::RolledBack,
            refused,
            PlanOutcome::NotReached,
            PlanOutcome::NotReached,
        ];
        assert_eq!(fates, expected);
        let text = error.to_string();
        assert!(text.contains("0000000000000003") && text.contains("2 were rolled back"), "{text}");
        let mut after = flows_of(&lab, NAME);
        after.retain(|(dpid, ..)| *dpid != Dpid(3));
        assert_eq!(after, before);
        assert_eq!(lab.flows("s1").iter().filter(|flow| flow.contains("output:2")).count(), 1);
    }
}

#[test]
fn an_unsupported_flow_is_not_sent_and_the_plan_is_rolled_back() {
    let (mut lab, hand) = lab(Version::V1_0, ring(3, 1));
    let plan = Plan::tree().add_at(0, Dpid(1), flow(1, 2)).add_at(1, Dpid(2), flow(1, 2).meter(1));
    let CommitError::Failed(reports) = commit(&mut lab, &hand, plan, |_| {}).unwrap_err() else {
        panic!("it is sent, and fails");
    };
    assert_eq!(reports[0].outcome, PlanOutcome::RolledBack);
    let PlanOutcome::NotSent(bellrock_api::Error::Encode(EncodeError::Unsupported { .. })) =
        reports[1].outcome
    else {
        panic!("{:?}", reports[1].outcome);
    };
    assert_eq!(flows_of(&lab, NAME), []);
}

#[test]
fn a_lost_switch_stops_the_plan_and_what_is_certain_stays() {
    let (mut lab, hand) = lab(Version::V1_3, ring(4, 1));
    // It receives nothing any more, and the controller has not noticed.
    lab.silence("s2");
    let plan = Plan::tree().add_at(0, Dpid(1), flow(1, 2)).add_at(1, Dpid(2), flow(1, 2)).add_at(
        2,
        Dpid(3),
        flow(1, 2),
    );
    let error = commit(&mut lab, &hand, plan, |_| {}).unwrap_err();
    let CommitError::Failed(reports) = &error else { panic!("{error}") };
    let fates: Vec<PlanOutcome> = reports.iter().map(|report| report.outcome).collect();
    assert!(
        matches!(
            fates[..],
            [PlanOutcome::Installed, PlanOutcome::Unknown(_), PlanOutcome::NotReached]
        ),
        "{fates:?}"
    );
    assert_eq!(flows_of(&lab, NAME).len(), 1, "what was confirmed stays");
    // There is no such switch.
    let gone = Plan::new().add(Dpid(99), flow(1, 1));
    let error = commit(&mut lab, &hand, gone, |_| {}).unwrap_err();
    assert!(error.to_string().contains("no switch with datapath id"), "{error}");
}

#[test]
fn removals_come_last_after_packets_have_left() {
    let (mut lab, hand) = lab(Version::V1_3, ring(3, 1));
    let old = flow(1, 2);
    commit(&mut lab, &hand, Plan::new().add(Dpid(1), old.clone()), |_| {}).unwrap();
    let plan = Plan::independent().remove(Dpid(1), old).add(Dpid(2), flow(1, 2));
    let (mut added, mut removed) = (None, None);
    commit(&mut lab, &hand, plan, |lab| {
        let flows = flows_of(lab, NAME);
        let is_at = |at| flows.iter().any(|(dpid, ..)| *dpid == at);
        if is_at(Dpid(2)) {
            added.get_or_insert(lab.now());
        }
        if !is_at(Dpid(1)) {
            removed.get_or_insert(lab.now());
        }
    })
    .unwrap();
    assert!(removed.unwrap() - added.unwrap() >= DRAIN);
}

#[test]
fn on_the_way_back_too_packets_leave_before_a_flow_goes_away() {
    let (mut lab, hand) = lab(Version::V1_3, ring(4, 1));
    let overlaps = flow(1, 1).flags(FlowFlags::CHECK_OVERLAP);
    let there = Flow::new(Match::any()).priority(7).output(Port(1));
    commit(&mut lab, &hand, Plan::new().add(Dpid(4), there), |_| {}).unwrap();
    let mut plan = Plan::tree().add_at(3, Dpid(4), overlaps);
    for distance in 0..3 {
        plan = plan.add_at(distance, Dpid(u64::from(distance) + 1), flow(1, 2));
    }
    // When the flow of each switch was last seen.
    let mut last = [Duration::ZERO; 3];
    commit(&mut lab, &hand, plan, |lab| {
        for (dpid, ..) in flows_of(lab, NAME) {
            if let Some(last) = last.get_mut(dpid.0 as usize - 1) {
                *last = lab.now();
            }
        }
    })
    .unwrap_err();
    assert_eq!(flows_of(&lab, NAME).len(), 1, "the plan is rolled back");
    assert!(last[0] >= last[1] + DRAIN && last[1] >= last[2] + DRAIN, "{last:?}");
}

#[test]
fn a_plan_that_does_not_say_its_order_is_refused_by_name() {
    let (mut lab, hand) = lab(Version::V1_3, ring(3, 1));
    let two = Plan::new().add(Dpid(1), flow(1, 2)).add(Dpid(2), flow(1, 2));
    let refused = commit(&mut lab, &hand, two, |_| {});
    assert_eq!(refused, Err(CommitError::NeedsOrder { switches: 2 }));
    let tagged = Flow::new(Match::any().vlan_id(3));
    let own_tags = Plan::two_phase(4000).transit(Dpid(1), tagged);
    let refused = commit(&mut lab, &hand, own_tags, |_| {});
    assert_eq!(refused, Err(CommitError::OwnTags { dpid: Dpid(1) }));
    let no_tag = Plan::two_phase(4095).egress(Dpid(1), flow(1, 2));
    assert_eq!(commit(&mut lab, &hand, no_tag, |_| {}), Err(CommitError::BadTag { tag: 4095 }));
    let stray = Plan::tree().transit(Dpid(1), flow(1, 2));
    assert_eq!(commit(&mut lab, &hand, stray, |_| {}), Err(CommitError::NoTag { dpid: Dpid(1) }));
    assert_eq!(flows_of(&lab, NAME), []);
}

#[test]
fn tags_of_packets_are_not_lost_where_a_switch_can_hold_one_only() {
    let plan = || Plan::two_phase(4000).ingress(Dpid(1), None, flow(1, 2));
    let (mut old, hand) = lab(Version::V1_0, ring(3, 1));
    let refused = commit(&mut old, &hand, plan(), |_| {}).unwrap_err();
    assert_eq!(refused, CommitError::LosesTags { dpid: Dpid(1) });
    assert!(refused.to_string().contains("untagged()"), "{refused}");
    let (mut new, hand) = lab(Version::V1_3, ring(3, 1));
    commit(&mut new, &hand, plan(), |_| {}).unwrap();
}

/// Returns the port of a ring switch to a neighbour or to its host.
fn port(lab: &Lab, from: &str, to: &str) -> Port {
    let topology = lab.topology();
    let (from, to) = (topology.node(from).unwrap(), topology.node(to).unwrap());
    let link = topology.links_between(from, to).next().unwrap();
    let ends = topology.links()[link.index()].ends;
    Port(if ends[0].node == from { ends[0].port } else { ends[1].port })
}

/// A two-phase plan for a path from h1 to h3, in one direction round the ring.
fn around(lab: &Lab, tag: u16, by: &str, old: Option<&Flow>) -> (Plan, Flow) {
    let mac = lab.topology().hosts()[2].mac;
    let to_h3 = |out| Flow::new(Match::any().eth_dst(mac)).priority(50).output(out);
    let untagged = Match::any().eth_dst(mac).untagged();
    let ingress = Flow::new(untagged).priority(50).output(port(lab, "s1", by));
    let dpid = |name: &str| {
        let Some(Node::Switch(id)) = lab.topology().node(name) else { panic!("{name}") };
        Dpid(lab.topology().switches()[id.index()].dpid)
    };
    let plan = Plan::two_phase(tag)
        .transit(dpid(by), to_h3(port(lab, by, "s3")))
        .egress(dpid("s3"), to_h3(port(lab, "s3", "h3")))
        .ingress(dpid("s1"), old.cloned(), ingress.clone());
    (plan, ingress)
}

#[test]
fn in_two_phases_each_packet_goes_by_the_old_flows_or_by_the_new() {
    for version in VERSIONS {
        let (mut lab, hand) = lab(version, ring(4, 1));
        let (h1, h3) = (HostIndex(0), HostIndex(2));
        let (plan, first) = around(&lab, 4001, "s2", None);
        commit(&mut lab, &hand, plan, |_| {}).unwrap();
        let way = |lab: &Lab| {
            let trace = bellrock_emulator::check::Analysis::new(lab.network()).ping(h1, h3);
            assert_eq!(trace.findings(h3), [], "{version}");
            trace.path_to(h3).unwrap()
        };
        let old = way(&lab);
        disturb(&mut lab, &mut Rng::with_seed(3));
        let (plan, _) = around(&lab, 4002, "s4", Some(&first));
        let mut seen = Vec::new();
        commit(&mut lab, &hand, plan, |lab| seen.push(way(lab))).unwrap();
        seen.dedup();
        assert_eq!(seen.len(), 2, "the old way and the new: {seen:?}");
        assert_eq!(seen[0], old);
        // At its end, a packet is as it was: without the tag.
        lab.capture("h3");
        let [to, from] = [2, 0].map(|host: usize| lab.topology().hosts()[host].mac.0);
        let packet = [&to[..], &from, &[0x88, 0xb5], &[7; 46]].concat();
        lab.send_frame("h1", &packet);
        lab.run_for(Duration::from_millis(100));
        assert_eq!(lab.capture("h3"), [packet]);
    }
}

#[test]
fn groups_and_meters_come_before_the_flows_that_use_them_and_go_after() {
    use bellrock_api::openflow::{Action, GroupType};
    use bellrock_api::{BucketEntry, GroupEntry, MeterEntry};

    let (mut lab, hand) = lab(Version::V1_3, ring(3, 1));
    let bucket = BucketEntry::of(&[Action::output(Port(2))]).watch_port(Port(2));
    let group = GroupEntry::new(5, GroupType::FastFailover).bucket(bucket);
    let meter = MeterEntry::drop_above_kbps(6, 1000).burst_kbits(10);
    let used = Flow::new(Match::any().with(Field::EthType, 0x0800)).meter(6).group(5);
    // Given in the wrong order.
    let plan = Plan::new()
        .add(Dpid(1), used.clone())
        .group(Dpid(1), group.clone())
        .meter(Dpid(1), meter.clone());
    commit(&mut lab, &hand, plan, |_| {}).unwrap();
    assert_eq!(flows_of(&lab, NAME).len(), 1);
    let plan = Plan::new()
        .remove_group(Dpid(1), group)
        .remove_meter(Dpid(1), meter)
        .remove(Dpid(1), used.clone());
    commit(&mut lab, &hand, plan, |_| {}).unwrap();
    assert_eq!(flows_of(&lab, NAME), []);
    let without = Plan::new().add(Dpid(1), used);
    let error = commit(&mut lab, &hand, without, |_| {}).unwrap_err();
    let CommitError::Failed(reports) = &error else { panic!("{error}") };
    assert!(matches!(reports[0].change, Change::Add(_)));
    assert!(matches!(reports[0].outcome, PlanOutcome::Refused(_)), "{error}");
}
