//! The app `bandwidth` where switches, connections and controllers fail and return, or refuse.

use std::sync::Arc;
use std::time::Duration;

use crate::known::{SETTLED, known};
use crate::reserving::*;
use bellrock_api::{Cookie, Dpid, FlowMod, Match, Port, ToSwitch, Version};
use bellrock_apps::Routing;
use bellrock_apps::bandwidth::{
    AWAY_FOR, Bandwidth, BandwidthSettings, CLEAR_WITHIN, KEEP_EARLIER_FLOWS, NotReleased,
    NotReserved, RETRY_LOST, ReservationRequest, ReservationState, Reservations,
};
use bellrock_book::MemoryStore;
use bellrock_emulator::lab::Lab;
use bellrock_emulator::network::NetworkSettings;
use bellrock_emulator::topology::{linear, ring};
use bellrock_services::desired::{AUDIT_EVERY, NotCommitted};

/// Number of orders of events that a test tries.
const SEEDS: u64 = 8;

#[test]
fn a_switch_that_is_away_for_a_moment_keeps_its_flows_and_the_reservation_its_path() {
    let (mut lab, book) = line_lab();
    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "600M")).unwrap();
    assert!(lab.ping("h1", "h4"));
    let before = flow_of_first(&lab, "s2").unwrap();
    assert!(before.1 > 0, "{before:?}");

    lab.disconnect("s2");
    lab.run_for(Duration::from_secs(3));
    let away = ReservationState::Unknown("switch 0000000000000002 is not connected".into());
    assert_eq!(book.list()[0].state, away);
    assert!(lab.ping("h1", "h4"), "its packets go on");
    lab.reconnect("s2");
    assert!(lab.run_until(Duration::from_secs(20), |_| {
        matches!(book.list()[0].state, ReservationState::Installed(_))
    }));
    assert_eq!(switches(&book.list()[0]), [1, 2, 3, 4]);
    let after = flow_of_first(&lab, "s2").unwrap();
    assert!(after.0 == before.0 && after.1 > before.1, "it is the same flow: {before:?} {after:?}");

    // A switch that returns without its flows gets them again.
    lab.restart("s2", false);
    lab.run_for(SETTLED * 2);
    assert_eq!(switches(&book.list()[0]), [1, 2, 3, 4]);
    assert!(flow_of_first(&lab, "s2").is_some());

    // A switch that stays away loses the reservation.
    lab.disconnect("s2");
    lab.run_for(AWAY_FOR - Duration::from_secs(5));
    assert_eq!(book.list()[0].state, away);
    assert!(!reserved(&book).is_empty());
    lab.run_for(Duration::from_secs(15));
    assert!(matches!(book.list()[0].state, ReservationState::Lost(_)), "{:?}", book.list());
    assert_eq!(reserved(&book), []);
    assert_eq!(flow_of_first(&lab, "s1"), None);
    lab.disconnect("s1");
    lab.run_for(Duration::from_secs(1));
    let other = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "1M")).unwrap_err();
    assert_eq!(other.to_string(), "a host is at switch 0000000000000001, which is not connected");
}

/// The links of a switch that reconnects are found one after the other. A longer path over the one
/// that is found first is no reason to move.
#[test]
fn a_host_whose_switch_reconnects_keeps_its_path() {
    for seed in 1..=SEEDS {
        let book = Reservations::new(BandwidthSettings::default());
        let lab = Lab::seeded(seed).topology(ring(4, 1)).version(Version::V1_3);
        let mut lab = known(lab.app(Bandwidth::new(&book)).run(Routing::default()));
        let there = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "1G")).unwrap();
        let back = reserve(&mut lab, &book, request("10.0.0.4", "10.0.0.1", "1G")).unwrap();
        assert_eq!((switches(&there), switches(&back)), (vec![1, 4], vec![4, 1]));
        lab.disconnect("s1");
        lab.run_for(Duration::from_secs(2));
        lab.reconnect("s1");
        let mut moved = Vec::new();
        lab.run_until(PATIENCE, |_| {
            let is_other = |state: &ReservationState| {
                matches!(state, ReservationState::Installed(ports) if ports.len() > 2)
            };
            moved.extend(book.list().into_iter().map(|one| one.state).filter(is_other));
            false
        });
        assert_eq!(moved, [], "seed {seed}");
        assert_eq!(book.list(), [there, back], "seed {seed}");
    }
}

#[test]
fn flows_removed_by_others_are_put_back() {
    let (mut lab, book) = line_lab();
    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "600M")).unwrap();
    let any = Match::any();
    let all = FlowMod::delete(&any).cookie_mask(Cookie::of_app("bandwidth").with(0), Cookie::MASK);
    lab.controller().unwrap().send(Dpid(2), &ToSwitch::FlowMod(all)).unwrap();
    assert!(lab.run_until(PATIENCE, |lab| flow_of_first(lab, "s2").is_none()));
    assert!(lab.run_until(2 * AUDIT_EVERY, |lab| flow_of_first(lab, "s2").is_some()));
    assert!(matches!(book.list()[0].state, ReservationState::Installed(_)));
}

/// The next run does not continue the reservations of this one.
#[test]
fn reservations_end_with_the_controller_and_their_flows_go_without_a_gap() {
    let (mut lab, book) = line_lab();
    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "600M")).unwrap();
    assert!(lab.ping("h1", "h4") && flow_of_first(&lab, "s2").is_some());
    lab.stop_controller();
    lab.run_for(Duration::from_secs(2));
    assert!(lab.ping("h1", "h4"), "while no controller runs");
    let next = Reservations::new(BandwidthSettings::default());
    lab.start_chain(vec![Box::new(Bandwidth::new(&next)), Box::new(Routing::default())]);
    let is_there = |lab: &Lab| flow_of_first(lab, "s2").is_some();
    let mut kept_s = 0;
    while is_there(&lab) && kept_s < 120 {
        assert!(lab.ping("h1", "h4"), "after {kept_s} s");
        lab.run_for(Duration::from_secs(1));
        kept_s += 1;
    }
    assert!(kept_s >= KEEP_EARLIER_FLOWS.as_secs(), "{kept_s} s");
    for switch in ["s1", "s2", "s3", "s4"] {
        lab.run_for(Duration::from_secs(1));
        assert!(lab.ping("h1", "h4"), "they are gone");
        assert_eq!(flow_of_first(&lab, switch), None);
    }
    let first = reserve(&mut lab, &next, request("10.0.0.1", "10.0.0.4", "300M")).unwrap();
    assert_eq!((first.id, switches(&first)), (1, vec![1, 2, 3, 4]));
}

/// Another program fills the table of a switch with its flows, replacing those of the reservation.
#[test]
fn a_switch_that_has_no_room_any_more_loses_the_reservation_and_is_asked_now_and_then() {
    const CAPACITY: u32 = 50;
    let book = Reservations::new(BandwidthSettings::default());
    let network = NetworkSettings { table_capacity: CAPACITY, ..NetworkSettings::default() };
    let lab = Lab::seeded(7).topology(linear(4, 1)).version(Version::V1_3).network(network);
    let mut lab = known(lab.app(Bandwidth::new(&book)).run(Routing::default()));
    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "600M")).unwrap();

    let any = Match::any();
    let ours = FlowMod::delete(&any).cookie_mask(Cookie::of_app("bandwidth").with(0), Cookie::MASK);
    let send = |lab: &Lab, flow: FlowMod<'_>| {
        lab.controller().unwrap().send(Dpid(2), &ToSwitch::FlowMod(flow)).unwrap();
    };
    send(&lab, ours);
    for port in 0..CAPACITY {
        let matching = Match::any().in_port(Port(1000 + port));
        send(&lab, FlowMod::add(&matching).cookie(0xbad).priority(1));
    }
    let lost = |_: &Lab| matches!(&book.list()[0].state, ReservationState::Lost(why) if why.contains("refuses"));
    assert!(lab.run_until(2 * AUDIT_EVERY, lost), "{:?}", book.list());
    lab.run_for(Duration::from_secs(5));
    assert_eq!(reserved(&book), []);
    assert_eq!(flow_of_first(&lab, "s1"), None, "nothing leads to the switch that has no room");

    let sent = lab.counter("changes_sent");
    lab.run_for(4 * RETRY_LOST);
    let tried = lab.counter("changes_sent") - sent;
    assert!((4..100).contains(&tried), "{tried} changes in two minutes");
    let theirs = FlowMod::delete(&any).cookie_mask(0xbad, u64::MAX);
    send(&lab, theirs);
    assert!(lab.run_until(2 * RETRY_LOST, |_| matches!(
        book.list()[0].state,
        ReservationState::Installed(_)
    )));
    assert_eq!(switches(&book.list()[0]), [1, 2, 3, 4]);
}

/// All switches reconnect together; their ports and links are found a little later.
#[test]
fn many_switches_that_come_back_together_lose_no_reservation() {
    const SWITCHES: u32 = 40;
    let settings = BandwidthSettings { rate: "1G".parse().ok(), ..Default::default() };
    let book = Reservations::new(settings);
    let lab = Lab::seeded(7).topology(linear(SWITCHES, 1)).version(Version::V1_3);
    let mut lab = known(lab.app(Bandwidth::new(&book)).run(Routing::default()));
    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.40", "600M")).unwrap();
    let other =
        ReservationRequest { wait: 10 * PATIENCE, ..request("10.0.0.2", "10.0.0.3", "600M") };
    let mut other = book.reserve(other);
    let all: Vec<String> = (1..=SWITCHES).map(|number| format!("s{number}")).collect();
    all.iter().for_each(|switch| lab.disconnect(switch));
    lab.run_for(Duration::from_secs(1));
    all.iter().for_each(|switch| lab.reconnect(switch));
    let mut lost = Vec::new();
    lab.run_until(PATIENCE, |_| {
        let state = &book.list()[0].state;
        lost.extend(matches!(state, ReservationState::Lost(_)).then(|| state.clone()));
        false
    });
    assert_eq!(lost, []);
    assert_eq!(switches(&book.list()[0]).len(), SWITCHES as usize);
    assert_eq!(ask(&mut other), None, "who waits has got what it had");
}

/// Fills the table of a switch with flows of another program.
fn fill(lab: &Lab, dpid: u64) {
    for port in 0..CAPACITY {
        let matching = Match::any().in_port(Port(1000 + port));
        let flow = FlowMod::add(&matching).cookie(0xbad).priority(1);
        lab.controller().unwrap().send(Dpid(dpid), &ToSwitch::FlowMod(flow)).unwrap();
    }
}

const CAPACITY: u32 = 50;

fn ring_lab() -> (Lab, Reservations) {
    let book = Reservations::new(BandwidthSettings::default());
    let network = NetworkSettings { table_capacity: CAPACITY, ..NetworkSettings::default() };
    let lab = Lab::seeded(7).topology(ring(4, 1)).version(Version::V1_3).network(network);
    let lab = known(lab.app(Bandwidth::new(&book)).run(Routing::default()));
    (lab, book)
}

#[test]
fn where_a_switch_refuses_a_path_without_it_is_taken() {
    let (mut lab, book) = ring_lab();
    fill(&lab, 2);
    lab.run_for(Duration::from_secs(1));
    let around = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "600M")).unwrap();
    assert_eq!(switches(&around), [1, 4, 3]);
    assert_eq!(reserved(&book).len(), 4, "of the path that it has: {:?}", reserved(&book));
    fill(&lab, 4);
    lab.run_for(Duration::from_secs(1));
    let error = reserve(&mut lab, &book, request("10.0.0.3", "10.0.0.1", "600M")).unwrap_err();
    assert!(error.to_string().contains(": the switch refuses it"), "{error}");
    assert_eq!((book.list().len(), reserved(&book).len()), (1, 4));
}

/// A switch of the path is disconnected, but packets get through, and the other path is refused.
#[test]
fn a_path_that_may_work_is_not_given_up_for_one_that_is_refused() {
    let (mut lab, book) = ring_lab();
    let first = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "600M")).unwrap();
    let [_, by, _] = switches(&first)[..] else { panic!("{first:?}") };
    let had = reserved(&book);
    fill(&lab, if by == 2 { 4 } else { 2 });
    lab.run_for(Duration::from_secs(1));
    lab.disconnect(&format!("s{by}"));
    lab.run_for(Duration::from_secs(10));
    assert!(matches!(book.list()[0].state, ReservationState::Unknown(_)), "{:?}", book.list());
    for switch in ["s1", "s3"] {
        assert!(flow_of_first(&lab, switch).is_some(), "{switch}");
    }
    // Bandwidth taken on the other path is released when its flows are gone.
    lab.run_for(2 * CLEAR_WITHIN);
    assert_eq!(reserved(&book), had);
    lab.reconnect(&format!("s{by}"));
    lab.run_for(PATIENCE);
    assert_eq!(switches(&book.list()[0]), [1, by, 3]);
    assert_eq!(reserved(&book), had);
}

#[test]
fn a_release_reports_flows_left_on_a_disconnected_switch() {
    let (mut lab, book) = line_lab();
    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "600M")).unwrap();
    lab.disconnect("s1");
    lab.run_for(Duration::from_secs(3));
    let released = book.release(1);
    let left = NotReleased::FlowsLeft(NotCommitted::Away(Dpid(1)));
    assert_eq!(wait(&mut lab, released), Err(left));
    assert!(flow_of_first(&lab, "s1").is_some() && flow_of_first(&lab, "s2").is_none());
    assert_eq!((book.list(), reserved(&book)), (vec![], vec![]));
    lab.reconnect("s1");
    assert!(lab.run_until(PATIENCE, |lab| flow_of_first(lab, "s1").is_none()));

    // A reservation that is lost meanwhile has left its flows there too.
    lab.run_for(SETTLED);
    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "600M")).unwrap();
    lab.disconnect("s1");
    lab.run_for(2 * AWAY_FOR);
    assert!(matches!(book.list()[0].state, ReservationState::Lost(_)), "{:?}", book.list());
    let released = book.release(1);
    assert_eq!(wait(&mut lab, released), Err(NotReleased::FlowsLeft(NotCommitted::Away(Dpid(1)))));
}

/// A store outlasts the controller: the next run has the reservations, and leaves their flows.
#[test]
fn stored_reservations_come_back_and_their_flows_are_left_as_they_are() {
    let store = Arc::new(MemoryStore::default());
    let stored = || Reservations::stored(BandwidthSettings::default(), store.clone());
    let book = stored();
    let lab = Lab::seeded(7).topology(linear(4, 1)).version(Version::V1_3);
    let mut lab = known(lab.app(Bandwidth::new(&book)).run(Routing::default()));
    let first = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "600M")).unwrap();
    let second = reserve(&mut lab, &book, request("10.0.0.4", "10.0.0.1", "100M")).unwrap();
    assert!(lab.ping("h1", "h4"));
    let (before, had) = (flow_of_first(&lab, "s2").unwrap(), reserved(&book));
    lab.stop_controller();
    lab.run_for(Duration::from_secs(2));

    let next = stored();
    assert_eq!(next.list().len(), 2, "they are known before a switch connects");
    assert_eq!(reserved(&next), had, "and their bandwidth is taken");
    lab.start_chain(vec![Box::new(Bandwidth::new(&next)), Box::new(Routing::default())]);
    assert!(
        matches!(&next.list()[0].state, ReservationState::Unknown(why) if why.contains("restarted"))
    );
    assert!(
        lab.run_until(PATIENCE, |_| next.list() == [first.clone(), second.clone()]),
        "{:?}",
        next.list()
    );
    assert_eq!(lab.counter("changes_sent"), 0, "nothing is laid anew");
    lab.run_for(2 * KEEP_EARLIER_FLOWS);
    assert_eq!(next.list(), [first, second]);
    let after = flow_of_first(&lab, "s2").unwrap();
    assert!(
        after.0 == before.0 && after.1 >= before.1,
        "it is the same flow: {before:?} {after:?}"
    );

    // It goes on as before: a full line, a release, another number.
    assert!(lab.ping("h2", "h4"), "it is seen again");
    let error = reserve(&mut lab, &next, request("10.0.0.2", "10.0.0.4", "9500M")).unwrap_err();
    assert!(matches!(error, NotReserved::Taken { .. }), "{error}");
    let released = next.release(1);
    assert_eq!(wait(&mut lab, released), Ok(()));
    assert!(lab.run_until(PATIENCE, |lab| {
        flow_of_first(lab, "s1")
            .is_some_and(|(text, _)| !text.contains("eth_src=02:00:00:00:00:01"))
    }));
    assert_eq!(Reservations::stored(BandwidthSettings::default(), store).list().len(), 1);
}

/// Nobody sends a packet, and no flow shows where the hosts are.
#[test]
fn hosts_that_are_unknown_after_a_restart_are_asked_for() {
    let (mut lab, _) = line_lab();
    lab.stop_controller();
    lab.run_for(Duration::from_secs(2));
    let next = Reservations::new(BandwidthSettings::default());
    lab.start_chain(vec![Box::new(Bandwidth::new(&next)), Box::new(Routing::default())]);
    assert!(lab.run_until(PATIENCE * 10, Lab::is_all_up));
    lab.run_for(Duration::from_secs(5));
    assert!(lab.controller().unwrap().hosts().load().is_empty());
    let first = reserve(&mut lab, &next, request("10.0.0.1", "10.0.0.4", "300M")).unwrap();
    assert_eq!(switches(&first), [1, 2, 3, 4]);
    let error = reserve(&mut lab, &next, request("10.0.0.1", "10.0.0.99", "1M")).unwrap_err();
    assert!(error.to_string().starts_with("no host 10.0.0.99 has been seen"), "{error}");
}
