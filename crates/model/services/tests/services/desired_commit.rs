//! Commits to desired state in a lab: they report when the entries are installed, or why not.

use std::time::Duration;

use crate::flows::{Hand, NAME, flows_of};
use bellrock_api::openflow::{BandType, MessageKind};
use bellrock_api::{Dpid, Event, Flow, FlowMod, Match, MeterEntry, Port, ToSwitch, Version};
use bellrock_emulator::check::MessageDirection;
use bellrock_emulator::lab::Lab;
use bellrock_emulator::topology::ring;
use bellrock_services::desired::{
    Commit, DesiredEntry, DesiredFlows, IntentState, MissingReason, NotCommitted, OperatorChange,
};
use bellrock_worker::WorkerSettings;

const WITHIN: Duration = Duration::from_secs(5);

/// Long enough to see messages under way.
const CONTROL_DELAY: Duration = Duration::from_millis(50);

fn lab(version: Version) -> (Lab, Hand) {
    let hand = Hand::default();
    let lab = Lab::seeded(1).version(version).topology(ring(3, 1)).control_delay(CONTROL_DELAY);
    (lab.run(hand.clone()), hand)
}

fn flow(number: u32, port: u32) -> Flow {
    Flow::new(Match::any().in_port(Port(number))).priority(7).output(Port(port))
}

fn commit(hand: &Hand, intent: u32, flows: impl IntoIterator<Item = (Dpid, Flow)>) -> Commit {
    hand.network().desired().commit(intent, flows)
}

/// Waits for the outcome of a commit.
fn outcome(lab: &mut Lab, hand: &Hand, commit: Commit) -> Result<(), NotCommitted> {
    let network = hand.network();
    let outcome = hand.run(async move { commit.confirmed(&network, WITHIN).await });
    assert!(lab.run_until(2 * WITHIN, |_| outcome.lock().unwrap().is_some()));
    outcome.lock().unwrap().unwrap()
}

/// Returns the number of barrier requests to a switch.
fn barriers(lab: &Lab, switch: &str) -> usize {
    let to_switch =
        lab.messages(switch).filter(|message| message.direction == MessageDirection::ToSwitch);
    to_switch.filter(|message| message.kind() == Some(MessageKind::BarrierRequest)).count()
}

#[test]
fn it_is_confirmed_when_every_switch_has_said_so() {
    for version in Version::ALL {
        let (mut lab, hand) = lab(version);
        let before = ["s1", "s2", "s3"].map(|switch| barriers(&lab, switch));
        let path = commit(&hand, 1, [3, 2, 1].map(|dpid| (Dpid(dpid), flow(1, 2))));
        assert_eq!(path.state(), IntentState::Due);
        assert_eq!(outcome(&mut lab, &hand, path), Ok(()));
        assert_eq!(flows_of(&lab, NAME).len(), 3);
        let after = ["s1", "s2", "s3"].map(|switch| barriers(&lab, switch));
        assert!(before.iter().zip(&after).all(|(before, after)| after > before));
        // Nothing is sent for entries that are installed.
        let again = commit(&hand, 1, [3, 2, 1].map(|dpid| (Dpid(dpid), flow(1, 2))));
        assert_eq!(outcome(&mut lab, &hand, again), Ok(()));
        assert_eq!(["s1", "s2", "s3"].map(|switch| barriers(&lab, switch)), after);
    }
}

/// A raw order may have removed what was confirmed.
#[test]
fn it_is_due_from_an_operators_order_until_the_tables_are_read() {
    for version in Version::ALL {
        let (mut lab, hand) = lab(version);
        let path = commit(&hand, 1, [3, 2, 1].map(|dpid| (Dpid(dpid), flow(1, 2))));
        let other = commit(&hand, 2, [(Dpid(3), flow(2, 1))]);
        lab.run_for(WITHIN);
        assert_eq!((path.state(), other.state()), (IntentState::Settled, IntentState::Settled));
        let order = OperatorChange::begin(&hand.network(), Dpid(2));
        lab.run_for(CONTROL_DELAY);
        assert_eq!((path.state(), other.state()), (IntentState::Due, IntentState::Settled));
        let any = Match::any();
        let all = ToSwitch::FlowMod(FlowMod::delete(&any));
        lab.controller().unwrap().send(Dpid(2), &all).unwrap();
        lab.run_for(WITHIN);
        assert_eq!(flows_of(&lab, NAME).len(), 3, "{version}");
        drop(order);
        assert_eq!(outcome(&mut lab, &hand, path), Ok(()), "{version}");
        assert_eq!(flows_of(&lab, NAME).len(), 4, "{version}");
        let altered = Event::WantedAltered { app: NAME, dpid: Dpid(2), flows: 1, by_order: true };
        assert!(!altered.is_alarming(), "the operator knows it");
        assert!(altered.to_string().contains("1 flow of "), "{altered}");
        let events = hand.network().events().latest(usize::MAX);
        assert!(events.iter().any(|record| record.event == altered), "{events:?}");
    }
}

#[test]
fn a_refused_commit_returns_the_reason_and_can_be_repeated() {
    let (mut lab, hand) = lab(Version::V1_3);
    // There is no such meter until the other intent adds it.
    let metered = || [(Dpid(3), flow(1, 2)), (Dpid(2), flow(1, 2).meter(9)), (Dpid(1), flow(1, 2))];
    let path = commit(&hand, 1, metered());
    let error = outcome(&mut lab, &hand, path).unwrap_err();
    assert!(matches!(error, NotCommitted::Refused(Dpid(2), MissingReason::Refused(_))), "{error}");
    assert!(
        error.to_string().starts_with("switch 0000000000000002: the switch refuses it"),
        "{error}"
    );
    let there: Vec<Dpid> = flows_of(&lab, NAME).into_iter().map(|(dpid, ..)| dpid).collect();
    assert_eq!(there, [Dpid(3)], "nothing leads to the switch that refuses");

    let meter = MeterEntry::drop_above_kbps(9, 1000);
    hand.network().desired().set(2, [(Dpid(2), DesiredEntry::Meter(meter))]);
    lab.run_for(Duration::from_secs(1));
    let again = commit(&hand, 1, metered());
    assert_eq!(outcome(&mut lab, &hand, again), Ok(()), "30 s are not over yet");
    assert_eq!(flows_of(&lab, NAME).len(), 3);

    let (mut lab, hand) = self::lab(Version::V1_0);
    let error = commit(&hand, 1, metered());
    let error = outcome(&mut lab, &hand, error).unwrap_err();
    assert!(
        matches!(error, NotCommitted::Refused(Dpid(2), MissingReason::Unsayable(_))),
        "{error}"
    );
}

#[test]
fn a_switch_that_is_away_or_silent_is_told() {
    let (mut lab, hand) = lab(Version::V1_3);
    lab.disconnect("s2");
    lab.run_for(Duration::from_secs(1));
    let path = commit(&hand, 1, [3, 2, 1].map(|dpid| (Dpid(dpid), flow(1, 2))));
    assert_eq!(outcome(&mut lab, &hand, path), Err(NotCommitted::Away(Dpid(2))));
    lab.reconnect("s2");
    assert!(lab.run_until(Duration::from_secs(20), Lab::is_all_up));
    let path = commit(&hand, 1, [3, 2, 1].map(|dpid| (Dpid(dpid), flow(1, 2))));
    assert_eq!(outcome(&mut lab, &hand, path), Ok(()));

    lab.silence("s3");
    let other = commit(&hand, 2, [(Dpid(3), flow(2, 1))]);
    let error = outcome(&mut lab, &hand, other).unwrap_err();
    assert_eq!(error, NotCommitted::Unconfirmed(WITHIN));
    assert_eq!(error.to_string(), "the switches have not confirmed it within 5 s");
}

/// The app stops waiting while a switch has the flow and its reply is under way.
#[test]
fn a_withdrawal_is_settled_when_the_switches_have_confirmed_it() {
    let (mut lab, hand) = lab(Version::V1_3);
    let path = commit(&hand, 1, [(Dpid(1), flow(1, 2))]);
    assert!(lab.run_until(WITHIN, |lab| !flows_of(lab, NAME).is_empty()));
    assert_eq!(path.state(), IntentState::Due);
    let (network, withdrawn) = (hand.network(), hand.network().desired().withdraw(1));
    let gone = hand.run(async move { withdrawn.settled(&network, WITHIN).await });
    assert!(lab.run_until(WITHIN, |_| gone.lock().unwrap().is_some()));
    assert_eq!(gone.lock().unwrap().unwrap(), Ok(()));
    assert_eq!(flows_of(&lab, NAME), []);
    drop(path);
    hand.network().desired().set(2, [(Dpid(1), flow(2, 1))]);
    lab.run_for(Duration::from_secs(1));
    let state = hand.network().desired().state().load();
    assert_eq!(state.intents.len(), 0, "nobody has a commit any more");
}

/// A switch has more foreign flows than fit in a reply.
#[test]
fn a_switch_with_too_many_flows_to_tell_of_gets_what_is_wanted_where_its_version_can_say_whose_it_means()
 {
    for version in Version::ALL {
        let hand = Hand::default();
        let mut settings = WorkerSettings::default();
        settings.session.max_multipart_bytes = 64 << 10;
        let lab = Lab::seeded(1).version(version).topology(ring(3, 1)).worker_settings(settings);
        let mut lab = lab.run(hand.clone());
        let desired = hand.network().desired();
        lab.run_for(Duration::from_secs(1));
        for port in 0..2000 {
            let matching = Match::any().in_port(Port(1000 + port));
            let theirs = ToSwitch::FlowMod(FlowMod::add(&matching).cookie(0xbad).priority(1));
            lab.controller().unwrap().send(Dpid(1), &theirs).unwrap();
        }
        lab.run_for(Duration::from_secs(1));
        lab.restart("s1", true);
        lab.run_for(Duration::from_secs(10));
        let path = commit(&hand, 1, [(Dpid(1), flow(1, 2))]);
        let told = hand.network().events().latest(usize::MAX);
        let untold = told.iter().filter(|told| matches!(told.event, Event::TablesUntold { .. }));
        let untold: Vec<String> = untold.map(|told| told.event.to_string()).collect();
        match version {
            Version::V1_3 => {
                assert_eq!((outcome(&mut lab, &hand, path), untold), (Ok(()), vec![]));
                assert_eq!(desired.state().load().unread_switches, 0);
            }
            Version::V1_0 => {
                assert_eq!(outcome(&mut lab, &hand, path), Err(NotCommitted::Unconfirmed(WITHIN)));
                assert_eq!(untold.len(), 1, "{untold:?}");
                assert!(untold[0].contains("set max_multipart_bytes higher"), "{untold:?}");
                assert_eq!(desired.state().load().unread_switches, 1);
            }
        }
    }
}

/// Waits until nothing is left of earlier entries.
fn settled(lab: &mut Lab, hand: &Hand, commit: Commit) -> Result<(), NotCommitted> {
    let network = hand.network();
    let outcome = hand.run(async move { commit.settled(&network, WITHIN).await });
    assert!(lab.run_until(2 * WITHIN, |_| outcome.lock().unwrap().is_some()));
    outcome.lock().unwrap().unwrap()
}

fn meters(lab: &Lab, switch: &str) -> usize {
    lab.switch(switch).datapath().meters().iter().count()
}

#[test]
fn meters_are_confirmed_refused_and_away_as_flows_are() {
    let (mut lab, hand) = lab(Version::V1_3);
    let desired = hand.network().desired();
    let meter = |number| MeterEntry::drop_above_kbps(number, 1000);
    let path = desired.commit(1, [(Dpid(1), meter(9))]);
    assert_eq!(path.state(), IntentState::Due);
    assert_eq!((outcome(&mut lab, &hand, path), meters(&lab, "s1")), (Ok(()), 1));
    let mut bad = meter(10);
    bad.bands[0].kind = BandType::DscpRemark(0);
    let refused = desired.commit(2, [(Dpid(1), bad)]);
    let error = outcome(&mut lab, &hand, refused).unwrap_err();
    assert!(matches!(error, NotCommitted::Refused(Dpid(1), MissingReason::Refused(_))), "{error}");
    lab.disconnect("s2");
    lab.run_for(Duration::from_secs(1));
    let away = desired.commit(3, [(Dpid(2), meter(9))]);
    assert_eq!(outcome(&mut lab, &hand, away), Err(NotCommitted::Away(Dpid(2))));
}

/// A flow is not gone while its switch is away, nor before the switch has reported its tables.
#[test]
fn a_withdrawal_is_not_settled_while_its_switch_is_away_or_just_back() {
    let (mut lab, hand) = lab(Version::V1_3);
    let desired = hand.network().desired();
    let path = commit(&hand, 1, [(Dpid(1), flow(1, 2))]);
    assert_eq!(outcome(&mut lab, &hand, path), Ok(()));
    lab.disconnect("s1");
    lab.run_for(Duration::from_secs(1));
    let withdrawn = desired.withdraw(1);
    assert_eq!(settled(&mut lab, &hand, withdrawn), Err(NotCommitted::Away(Dpid(1))));
    let again = commit(&hand, 1, [(Dpid(1), flow(1, 2))]);
    lab.reconnect("s1");
    let network = hand.network();
    assert!(lab.run_until(Duration::from_secs(20), |_| network.switch(Dpid(1)).is_some()));
    drop(again);
    let withdrawn = desired.withdraw(1);
    assert_eq!(settled(&mut lab, &hand, withdrawn), Ok(()));
    assert_eq!(flows_of(&lab, NAME), []);

    // A path that has moved away from a switch that is not up is confirmed.
    let path = commit(&hand, 1, [(Dpid(1), flow(1, 2))]);
    assert_eq!(outcome(&mut lab, &hand, path), Ok(()));
    lab.disconnect("s1");
    lab.run_for(Duration::from_secs(1));
    let moved = commit(&hand, 1, [(Dpid(2), flow(1, 2))]);
    lab.run_for(Duration::from_secs(1));
    assert_eq!(moved.state(), IntentState::Left(Dpid(1)));
    assert_eq!(outcome(&mut lab, &hand, moved), Ok(()));
}

#[test]
fn a_flow_whose_place_another_intent_has_is_not_told_to_be_there() {
    let (mut lab, hand) = lab(Version::V1_3);
    let first = commit(&hand, 2, [(Dpid(1), flow(1, 2))]);
    assert_eq!(outcome(&mut lab, &hand, first), Ok(()));
    let second = commit(&hand, 1, [(Dpid(1), flow(1, 1))]);
    let error = outcome(&mut lab, &hand, second);
    assert_eq!(error, Err(NotCommitted::Refused(Dpid(1), MissingReason::Shadowed)));
    hand.network().desired().withdraw(2);
    lab.run_for(Duration::from_secs(1));
    let second = commit(&hand, 1, [(Dpid(1), flow(1, 1))]);
    assert_eq!(outcome(&mut lab, &hand, second), Ok(()));
}

#[test]
fn two_intents_may_want_the_same_flow() {
    let (mut lab, hand) = lab(Version::V1_3);
    let first = commit(&hand, 2, [(Dpid(1), flow(1, 2))]);
    assert_eq!(outcome(&mut lab, &hand, first), Ok(()));
    let second = commit(&hand, 1, [(Dpid(1), flow(1, 2))]);
    assert_eq!(outcome(&mut lab, &hand, second), Ok(()));
    let with_both = flows_of(&lab, NAME);
    assert_eq!(with_both.len(), 1);
    // The flow stays until nobody wants it.
    let withdrawn = hand.network().desired().withdraw(2);
    assert_eq!(settled(&mut lab, &hand, withdrawn), Ok(()));
    assert_eq!(flows_of(&lab, NAME), with_both);
    let withdrawn = hand.network().desired().withdraw(1);
    assert_eq!(settled(&mut lab, &hand, withdrawn), Ok(()));
    assert_eq!(flows_of(&lab, NAME), []);
}

/// Even if the new run wants nothing at the switch that has it.
#[test]
fn a_number_that_becomes_an_intent_takes_what_an_earlier_run_left_under_it_everywhere() {
    let (mut lab, hand) = lab(Version::V1_3);
    let path = commit(&hand, 1, [(Dpid(2), flow(1, 2))]);
    assert_eq!(outcome(&mut lab, &hand, path), Ok(()));
    lab.stop_controller();
    lab.run_for(Duration::from_secs(1));
    let hand = Hand::default();
    lab.start_controller(hand.clone());
    hand.network().desired();
    assert!(lab.run_until(Duration::from_secs(20), Lab::is_all_up));
    lab.run_for(Duration::from_secs(1));
    assert_eq!(flows_of(&lab, NAME).len(), 1);
    let path = commit(&hand, 1, [(Dpid(1), flow(1, 1))]);
    lab.run_for(Duration::from_secs(1));
    assert_eq!(path.state(), IntentState::Settled);
    assert_eq!(
        flows_of(&lab, NAME).into_iter().map(|(dpid, ..)| dpid).collect::<Vec<_>>(),
        [Dpid(1)]
    );
}

/// Another intent waits for a switch that is away. The meter does not wait for that.
#[test]
fn a_meter_that_nobody_wants_goes_when_no_flow_uses_it() {
    let (mut lab, hand) = lab(Version::V1_3);
    let desired = hand.network().desired();
    let used: DesiredEntry = flow(1, 2).meter(9).into();
    let meter: DesiredEntry = MeterEntry::drop_above_kbps(9, 1000).into();
    let path = desired.commit(1, [(Dpid(2), used), (Dpid(2), meter)]);
    assert_eq!((outcome(&mut lab, &hand, path), meters(&lab, "s2")), (Ok(()), 1));
    lab.disconnect("s3");
    lab.run_for(Duration::from_secs(1));
    desired.set(2, [(Dpid(3), flow(2, 1)), (Dpid(2), flow(2, 1))]);
    lab.run_for(Duration::from_secs(1));
    desired.withdraw(1);
    lab.run_for(Duration::from_secs(2));
    assert_eq!((flows_of(&lab, NAME), meters(&lab, "s2")), (vec![], 0));
}

/// At one distance, one flow is refused and another is installed. Farther flows wait for both.
#[test]
fn farther_flows_wait_for_every_flow_at_a_nearer_distance() {
    let (mut lab, hand) = lab(Version::V1_3);
    let refused = flow(1, 2).meter(9);
    let nearer = [(Dpid(2), refused), (Dpid(2), flow(3, 2)), (Dpid(1), flow(1, 2))];
    let path = commit(&hand, 1, nearer);
    let error = outcome(&mut lab, &hand, path).unwrap_err();
    assert!(matches!(error, NotCommitted::Refused(Dpid(2), _)), "{error}");
    let desired = hand.network().desired();
    let both = [(Dpid(2), flow(1, 2).meter(9)), (Dpid(2), flow(4, 2)), (Dpid(1), flow(1, 2))];
    desired.set(1, both);
    lab.run_for(Duration::from_secs(2));
    let there: Vec<Dpid> = flows_of(&lab, NAME).into_iter().map(|(dpid, ..)| dpid).collect();
    assert!(
        there.contains(&Dpid(2)) && !there.contains(&Dpid(1)),
        "nothing leads to it: {there:?}"
    );
}

#[test]
fn many_intents_are_confirmed_together() {
    let (mut lab, hand) = lab(Version::V1_3);
    let desired = hand.network().desired();
    let good = (1..=50).map(|n| (n, Some((Dpid(1), flow(n, 2)))));
    // There is no such meter, and no such switch.
    let refused = (51, Some((Dpid(2), flow(51, 2).meter(9))));
    let away = (52, Some((Dpid(99), flow(52, 2))));
    desired.set_each(good.chain([refused, away]));
    let unsettled = |lab: &mut Lab| {
        let desired = hand.network().desired();
        let answer = hand.run(async move { desired.unsettled().await });
        assert!(lab.run_until(WITHIN, |_| answer.lock().unwrap().is_some()));
        answer.lock().unwrap().take().unwrap()
    };
    let at_once = unsettled(&mut lab);
    assert_eq!(at_once.len(), 52, "nothing is confirmed yet");
    assert_eq!((at_once[&1], at_once[&52]), (IntentState::Due, IntentState::Away(Dpid(99))));
    let (decided, of_hand) = (hand.network().desired(), (1..=52).collect());
    let decided = hand.run(async move { decided.decided(of_hand).await });
    assert!(lab.run_until(WITHIN, |_| decided.lock().unwrap().is_some()));
    let later = decided.lock().unwrap().take().unwrap();
    assert_eq!(later.keys().copied().collect::<Vec<_>>(), [51, 52]);
    assert!(matches!(later[&51], IntentState::Refused(Dpid(2), MissingReason::Refused(_))));
    assert_eq!(flows_of(&lab, NAME).len(), 50);

    desired.set_each((1..=52).map(|n| (n, None::<(Dpid, Flow)>)));
    assert_eq!(unsettled(&mut lab)[&1], IntentState::Leaving);
    lab.run_for(Duration::from_secs(5));
    assert!(unsettled(&mut lab).is_empty());
    assert!(flows_of(&lab, NAME).is_empty());
}
