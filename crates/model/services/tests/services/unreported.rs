//! Desired state and discovery work with switches that do not report one kind of entries.

use std::time::Duration;

use crate::flows::{Hand, NAME, flows_of};
use bellrock_api::openflow::{
    Action, GroupType, List, MeterCommand, MeterFlags, MeterMod, MultipartKind,
};
use bellrock_api::{
    BucketEntry, Dpid, Event, Flow, FlowMod, GroupEntry, Match, MeterEntry, Port, ToSwitch, Version,
};
use bellrock_emulator::check::MessageDirection;
use bellrock_emulator::lab::{Lab, Unanswered};
use bellrock_emulator::topology::ring;
use bellrock_services::desired::{
    AUDIT_EVERY, Desired, DesiredEntry, DesiredFlows, OperatorChange,
};

/// Longer than settling takes without a wait, and shorter than the timeout of a request.
const SETTLED_WITHIN: Duration = Duration::from_secs(3);

const HOW: [Unanswered; 3] = [Unanswered::Silent, Unanswered::Refused, Unanswered::Garbled];

fn lab(version: Version) -> (Lab, Hand) {
    let hand = Hand::default();
    let lab = Lab::seeded(1).version(version).topology(ring(3, 1)).run(hand.clone());
    (lab, hand)
}

fn settle(lab: &mut Lab, hand: &Hand, desired: &Desired) {
    let desired = desired.clone();
    let settled = hand.run(async move { desired.settled().await });
    let done = lab.run_until(SETTLED_WITHIN, |_| settled.lock().unwrap().is_some());
    assert!(done, "{:?}", hand.network().desired().state().load());
}

fn flow() -> Flow {
    Flow::new(Match::any().in_port(Port(1))).priority(7).output(Port(2))
}

fn group() -> GroupEntry {
    let bucket = BucketEntry::of(&[Action::output(Port(2))]);
    GroupEntry::new(5, GroupType::Indirect).bucket(bucket)
}

fn meter() -> MeterEntry {
    MeterEntry::drop_above_kbps(6, 1000)
}

/// Returns the names of these kinds of events so far.
fn events(hand: &Hand) -> Vec<&'static str> {
    let events = hand.network().events().latest(usize::MAX);
    let is_ours = |event: &Event| {
        matches!(
            event,
            Event::TablesUntold { .. } | Event::WantedAltered { .. } | Event::WantedRefused { .. }
        )
    };
    events.iter().filter(|it| is_ours(&it.event)).map(|it| it.event.name()).collect()
}

/// Returns how often a switch was asked this question since the lab began.
fn asked(lab: &Lab, switch: &str, kind: MultipartKind) -> usize {
    let to_switch =
        lab.messages(switch).filter(|message| message.direction == MessageDirection::ToSwitch);
    let is_asked = |bytes: &[u8]| match ToSwitch::decode(bytes).unwrap().body {
        ToSwitch::MultipartRequest(request) => request.body.kind() == kind,
        _ => false,
    };
    to_switch.filter(|message| is_asked(&message.bytes)).count()
}

/// Every cell of the manual's table about these questions.
#[test]
fn wanted_entries_are_installed_without_reports_of_the_switch() {
    let kinds = [
        (Version::V1_0, MultipartKind::Flow),
        (Version::V1_3, MultipartKind::Flow),
        (Version::V1_3, MultipartKind::GroupDesc),
        (Version::V1_3, MultipartKind::MeterConfig),
    ];
    for (version, kind) in kinds {
        for how in HOW {
            let (mut lab, hand) = lab(version);
            lab.unanswered("s1", kind, Some(how));
            let desired = hand.network().desired();
            let mut wanted = vec![DesiredEntry::Flow(flow())];
            if version == Version::V1_3 {
                wanted.extend([DesiredEntry::Group(group()), DesiredEntry::Meter(meter())]);
            }
            let things = wanted.len();
            desired.set(1, wanted.into_iter().map(|wanted| (Dpid(1), wanted)));
            settle(&mut lab, &hand, &desired);
            assert_eq!(flows_of(&lab, NAME).len(), 1, "{version} {kind:?} {how:?}");
            let datapath = lab.switch("s1").datapath();
            assert_eq!(1 + datapath.meters().iter().count() + datapath.groups().iter().count(), {
                things
            });
            // An operator learns of unknown flows, but not of unknown groups and meters.
            let alarms: &[&str] =
                if kind == MultipartKind::Flow { &["tables_untold"] } else { &[] };
            assert_eq!(events(&hand), alarms, "{version} {kind:?} {how:?}");
            // Audits ask again, and change nothing.
            lab.run_for(3 * AUDIT_EVERY);
            assert!(asked(&lab, "s1", kind) >= 3, "{version} {kind:?} {how:?}");
            assert_eq!(desired.state().load().changes_sent, things as u64);
            assert_eq!(events(&hand), alarms, "{version} {kind:?} {how:?}");
            // They are compared as soon as the switch reports them.
            lab.unanswered("s1", kind, None);
            lab.run_for(2 * AUDIT_EVERY);
            assert_eq!(desired.state().load().changes_sent, things as u64);
            assert_eq!(events(&hand), alarms, "{version} {kind:?} {how:?}");
        }
    }
}

/// Nothing shows which flows an operator's order has left there.
#[test]
fn after_an_order_of_an_operator_flows_are_sent_again_to_a_switch_that_does_not_report_them() {
    for version in Version::ALL {
        for how in HOW {
            let (mut lab, hand) = lab(version);
            lab.unanswered("s1", MultipartKind::Flow, Some(how));
            let desired = hand.network().desired();
            desired.set(1, [(Dpid(1), flow())]);
            settle(&mut lab, &hand, &desired);
            let order = OperatorChange::begin(&hand.network(), Dpid(1));
            let any = Match::any();
            let all = ToSwitch::FlowMod(FlowMod::delete(&any));
            lab.controller().unwrap().send(Dpid(1), &all).unwrap();
            lab.run_for(Duration::from_secs(1));
            assert_eq!(flows_of(&lab, NAME).len(), 0, "{version} {how:?}");
            assert!(!desired.state().load().is_settled(), "{version} {how:?}");
            drop(order);
            settle(&mut lab, &hand, &desired);
            assert_eq!(flows_of(&lab, NAME).len(), 1, "{version} {how:?}");
            assert_eq!(desired.state().load().changes_sent, 2, "{version} {how:?}");
        }
    }
}

/// A switch is not asked for groups and meters that no app wants. When an app first wants one, the
/// switch is asked before anything is sent: an earlier run may have left one with its id.
#[test]
fn groups_and_meters_are_asked_for_where_they_are_wanted() {
    let (mut lab, hand) = lab(Version::V1_3);
    let desired = hand.network().desired();
    desired.set(1, [(Dpid(1), flow())]);
    settle(&mut lab, &hand, &desired);
    lab.run_for(2 * AUDIT_EVERY);
    for switch in ["s1", "s2", "s3"] {
        assert_eq!(asked(&lab, switch, MultipartKind::MeterConfig), 0);
        assert_eq!(asked(&lab, switch, MultipartKind::GroupDesc), 0);
    }
    let other = MeterEntry::drop_above_kbps(6, 77);
    let bands = [other.bands[0]];
    let left = ToSwitch::MeterMod(MeterMod {
        command: MeterCommand::Add,
        flags: MeterFlags::KBPS,
        meter: 6,
        bands: List::of(&bands),
    });
    lab.controller().unwrap().send(Dpid(1), &left).unwrap();
    lab.run_for(Duration::from_secs(1));
    desired.set(2, [(Dpid(1), meter())]);
    settle(&mut lab, &hand, &desired);
    assert_eq!(events(&hand), [""; 0]);
    let rates: Vec<u32> = lab
        .switch("s1")
        .datapath()
        .meters()
        .iter()
        .flat_map(|(_, meter)| meter.bands.iter().map(|band| band.rate))
        .collect();
    assert_eq!(rates, [1000]);
    let once = asked(&lab, "s1", MultipartKind::MeterConfig);
    assert!(once > 0);
    assert_eq!(asked(&lab, "s2", MultipartKind::MeterConfig), 0);
    assert_eq!(asked(&lab, "s1", MultipartKind::GroupDesc), 0);
    // It was wanted once, so audits ask for it from now on, even after it is removed.
    desired.withdraw(2);
    lab.run_for(2 * AUDIT_EVERY);
    assert!(asked(&lab, "s1", MultipartKind::MeterConfig) > once);
    assert_eq!(lab.switch("s1").datapath().meters().iter().count(), 0);
}
