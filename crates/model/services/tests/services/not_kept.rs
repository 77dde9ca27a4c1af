//! Desired state comes to rest at switches that report flows otherwise than they confirm them.

use std::time::Duration;

use crate::flows::{Hand, NAME};
use bellrock_api::openflow::{Action, FlowFlags};
use bellrock_api::{Deviation, Dpid, Event, Flow, Match, Port, ToSwitch, Version};
use bellrock_emulator::check::MessageDirection;
use bellrock_emulator::lab::{Lab, Misreport};
use bellrock_emulator::topology::ring;
use bellrock_services::desired::{
    AUDIT_EVERY, Desired, DesiredFlows, IntentState, KEPT_AFTER, MissingReason, NOT_KEPT_AFTER,
    NOT_KEPT_AGAIN, VERIFY_AFTER, faults_of_switch,
};

/// Time between the audit that finds a deviation and the one that finds that its correction has no
/// effect, and time for what follows.
const VERIFIED: Duration = Duration::from_secs(VERIFY_AFTER.as_secs() + 1);

/// An audit, and time for what follows.
const ROUND: Duration = Duration::from_secs(AUDIT_EVERY.as_secs() + 1);

fn lab(version: Version) -> (Lab, Hand) {
    let hand = Hand::default();
    let lab = Lab::seeded(1).version(version).topology(ring(3, 1)).run(hand.clone());
    (lab, hand)
}

/// Lets the network run for some rounds, and returns the number of flow_mods that the switch gets.
fn flow_mods_in(lab: &mut Lab, rounds: u32) -> usize {
    // The lab keeps the latest messages only.
    let count = |_| {
        let since = lab.now();
        lab.run_for(ROUND);
        flow_mods_since(lab, since)
    };
    (0..rounds).map(count).sum()
}

fn flow_mods_since(lab: &Lab, since: Duration) -> usize {
    let messages = lab.messages("s1").filter(|message| message.at > since);
    let sent = messages.filter(|message| message.direction == MessageDirection::ToSwitch);
    let is_flow_mod =
        |bytes: &[u8]| matches!(ToSwitch::decode(bytes).unwrap().body, ToSwitch::FlowMod(_));
    sent.filter(|message| is_flow_mod(&message.bytes)).count()
}

/// Returns the events of desired state so far.
fn events(hand: &Hand) -> Vec<Event> {
    let is_ours = |event: &Event| {
        matches!(
            event,
            Event::WantedAltered { .. } | Event::WantedNotKept { .. } | Event::WantedKept { .. }
        )
    };
    let events = hand.network().events().latest(usize::MAX);
    events.into_iter().map(|it| it.event).filter(is_ours).collect()
}

fn names(hand: &Hand) -> Vec<&'static str> {
    events(hand).iter().map(Event::name).collect()
}

/// Returns the states of the intents that are not settled.
fn unsettled(lab: &mut Lab, hand: &Hand, desired: &Desired) -> Vec<(u32, IntentState)> {
    let desired = desired.clone();
    let states = hand.run(async move { desired.unsettled().await });
    assert!(lab.run_until(Duration::from_secs(3), |_| states.lock().unwrap().is_some()));
    states.lock().unwrap().take().unwrap().into_iter().collect()
}

fn not_kept(intent: u32, why: Deviation) -> (u32, IntentState) {
    (intent, IntentState::Refused(Dpid(1), MissingReason::NotKept(why)))
}

/// A flow that each of the switches misreports.
fn wanted() -> Flow {
    Flow::new(Match::any().eth_type(0x0800).ipv4_dst_prefix([10, 0, 0, 0].into(), 24))
        .priority(7)
        .flags(FlowFlags::SEND_FLOW_REM)
        .actions(&[Action::Output { port: Port::CONTROLLER, max_len: 9000 }])
}

fn kept() -> Flow {
    Flow::new(Match::any().in_port(Port(1))).priority(7).output(Port(2))
}

#[test]
fn a_flow_that_is_not_kept_is_named_once_and_sent_at_growing_intervals() {
    use Misreport::{ClearActions, Cookies, Flags, Lengths, MaskedAddresses, WrittenActions};
    let both = Version::ALL;
    let ways: [(Misreport, &[Version], Deviation, &str); 6] = [
        (ClearActions, &both[1..], Deviation::Contents, "instead of"),
        (Cookies, &both, Deviation::Cookie, "cookie 0x0 instead of 0x"),
        (Flags, &both[1..], Deviation::Contents, "flags 0x0 instead of 0x1"),
        (
            Lengths(1500),
            &both,
            Deviation::Contents,
            "actions CONTROLLER:1500 instead of CONTROLLER:9000",
        ),
        (WrittenActions, &both[1..], Deviation::Contents, "instead of"),
        (MaskedAddresses, &both, Deviation::Missing, "it does not report it"),
    ];
    for (how, versions, why, text) in ways {
        for version in versions {
            let (mut lab, hand) = lab(*version);
            lab.misreports("s1", Some(how));
            let desired = hand.network().desired();
            let commit = desired.commit(1, [(Dpid(1), wanted())]);
            // Until it is read back the switch's word counts.
            lab.run_for(Duration::from_secs(1));
            assert_eq!(commit.state(), IntentState::Settled, "{how:?} {version}");
            lab.run_for(VERIFIED);
            for round in 1..=NOT_KEPT_AFTER {
                assert_eq!(
                    names(&hand),
                    vec!["wanted_altered"; round as usize],
                    "{how:?} {version}"
                );
                let restored = [(1, IntentState::Restored(Dpid(1)))];
                assert_eq!(unsettled(&mut lab, &hand, &desired), restored, "{how:?} {version}");
                assert_eq!(commit.state(), IntentState::Restored(Dpid(1)), "{how:?} {version}");
                assert!(faults_of_switch(&hand.network(), Dpid(1)).is_empty(), "not yet");
                lab.run_for(VERIFIED);
            }
            let told = events(&hand);
            let Some(
                event @ Event::WantedNotKept { app: NAME, dpid: Dpid(1), entries: 1, example },
            ) = told.last()
            else {
                panic!("{how:?} {version}: {told:?}")
            };
            assert!(
                example.contains(text) && example.contains("10.0.0.0/24"),
                "{how:?}: {example}"
            );
            assert!(event.is_alarming());
            let fault = (NAME, MissingReason::NotKept(why));
            assert_eq!(faults_of_switch(&hand.network(), Dpid(1)), [fault]);
            assert_eq!(unsettled(&mut lab, &hand, &desired), [not_kept(1, why)]);
            let sent = flow_mods_in(&mut lab, 60);
            // After 2, 4, 8 and 16 minutes, and after 30.
            assert!((4..=6).contains(&sent), "{sent} of {how:?}");
            assert_eq!(names(&hand).len(), told.len(), "nothing more is reported");
            assert_eq!(unsettled(&mut lab, &hand, &desired), [not_kept(1, why)]);

            // It counts again when several reports in a row have it.
            lab.misreports("s1", None);
            desired.set(1, [(Dpid(1), wanted())]);
            lab.run_for(31 * ROUND + KEPT_AFTER * ROUND);
            assert_eq!(names(&hand).last(), Some(&"wanted_kept"), "{how:?} {version}");
            assert!(unsettled(&mut lab, &hand, &desired).is_empty());
            assert!(faults_of_switch(&hand.network(), Dpid(1)).is_empty());
        }
    }
}

#[test]
fn entries_altered_once_by_others_are_restored_and_kept() {
    let (mut lab, hand) = lab(Version::V1_3);
    let desired = hand.network().desired();
    desired.set(1, [(Dpid(1), kept())]);
    lab.run_for(Duration::from_secs(1));
    for round in 1..=4 {
        lab.misreports("s1", Some(Misreport::Cookies));
        assert!(lab.run_until(ROUND, |_| names(&hand).len() == round));
        lab.misreports("s1", None);
        assert_eq!(names(&hand), vec!["wanted_altered"; round]);
        lab.run_for(KEPT_AFTER * ROUND);
        assert!(unsettled(&mut lab, &hand, &desired).is_empty());
    }
}

#[test]
fn a_new_order_sends_a_flow_that_is_not_kept_again_at_once() {
    let (mut lab, hand) = lab(Version::V1_3);
    lab.misreports("s1", Some(Misreport::Cookies));
    let desired = hand.network().desired();
    desired.set(1, [(Dpid(1), kept())]);
    lab.run_for(Duration::from_secs(1) + (NOT_KEPT_AFTER + 1) * ROUND);
    assert_eq!(unsettled(&mut lab, &hand, &desired), [not_kept(1, Deviation::Cookie)]);
    let since = lab.now();
    assert!(Duration::from_secs(2) < NOT_KEPT_AGAIN);
    // The same order again.
    desired.set_each([(1, Some((Dpid(1), kept())))]);
    lab.run_for(Duration::from_secs(1));
    assert_eq!(flow_mods_since(&lab, since), 1);
    // Another flow begins anew.
    let other = kept().priority(8);
    desired.set_each([(1, Some((Dpid(1), other)))]);
    lab.run_for(Duration::from_secs(1));
    assert!(
        unsettled(&mut lab, &hand, &desired)
            .iter()
            .all(|(_, state)| !matches!(state, IntentState::Refused(..)))
    );
}
