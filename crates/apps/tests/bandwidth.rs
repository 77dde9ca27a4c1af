//! The app `bandwidth` in a lab: what is asked for is reserved on a whole path, or nothing is; what breaks is
//! moved.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod known;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bellrock_api::{Answer, Cookie, Dpid, FlowMod, Match, Port, SwitchPort, ToSwitch, Version};
use bellrock_apps::Routing;
use bellrock_apps::bandwidth::{
    AWAY_FOR, Bandwidth, BandwidthSettings, KEEP_LEFT_FLOWS, Line, NotReleased, NotReserved,
    RETRY_LOST, Request, Reservation, Reservations, State,
};
use bellrock_emulator::lab::Lab;
use bellrock_emulator::network::NetworkSettings;
use bellrock_emulator::topology::{linear, ring};
use bellrock_services::desired::AUDIT_EVERY;
use known::{SETTLED, known};

const PATIENCE: Duration = Duration::from_secs(30);

/// Four switches in a ring with a host each, on ports that say 10 Gbit/s.
fn lab(version: Version, settings: BandwidthSettings) -> (Lab, Reservations) {
    let reservations = Reservations::new(settings);
    let lab = Lab::seeded(7).topology(ring(4, 1)).version(version);
    let lab = known(lab.app(Bandwidth::new(&reservations)).run(Routing::default()));
    (lab, reservations)
}

fn request(from: &str, to: &str, rate: &str) -> Request {
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    Request { from, to, rate: rate.parse().unwrap(), queue: None, wait: Duration::ZERO }
}

fn ask<T>(answer: &mut Answer<T>) -> Option<T> {
    match Pin::new(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer.unwrap()),
        Poll::Pending => None,
    }
}

/// Lets time pass until there is an answer.
fn wait<T>(lab: &mut Lab, mut answer: Answer<T>) -> T {
    let mut told = None;
    lab.run_until(PATIENCE, |_| {
        told = told.take().or_else(|| ask(&mut answer));
        told.is_some()
    });
    told.unwrap()
}

fn reserve(
    lab: &mut Lab,
    book: &Reservations,
    request: Request,
) -> Result<Reservation, NotReserved> {
    let answer = book.reserve(request);
    wait(lab, answer)
}

/// The switches that a reservation passes.
fn switches(reservation: &Reservation) -> Vec<u64> {
    let State::Installed(ports) = &reservation.state else { panic!("{reservation:?}") };
    ports.iter().map(|port| port.dpid.0).collect()
}

/// All lines of all switches.
fn reserved(book: &Reservations) -> Vec<(Line, u64)> {
    let ports = (1..=4).flat_map(|dpid| (1..=4).map(move |port| (Dpid(dpid), Port(port))));
    let lines = ports.flat_map(|(dpid, port)| {
        let at = SwitchPort::new(dpid, port);
        [Line::From(at), Line::To(at)]
    });
    let lines = lines.map(|line| (line, book.reserved(line).0));
    lines.filter(|(_, kbps)| *kbps > 0).collect()
}

fn flows_of(lab: &Lab, text: &str) -> usize {
    let all = ["s1", "s2", "s3", "s4"].map(|switch| lab.flows(switch));
    all.iter().flatten().filter(|flow| flow.contains(text)).count()
}

#[test]
fn the_first_path_that_has_so_much_is_taken_and_what_is_released_can_be_had_again() {
    let settings = BandwidthSettings { rate: "1G".parse().ok(), ..Default::default() };
    let (mut lab, book) = lab(Version::V1_3, settings);
    let first = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "600M")).unwrap();
    assert_eq!((switches(&first).len(), first.id), (3, 1), "{first:?}");
    assert_eq!(flows_of(&lab, "meter:1"), 1);
    assert!(lab.ping("h1", "h3") && lab.ping("h3", "h1"));

    // All paths to h3 end in its own line.
    let other = reserve(&mut lab, &book, request("10.0.0.2", "10.0.0.3", "600M")).unwrap_err();
    assert!(other.to_string().contains("has 400M left of 1G, less than 600M"), "{other}");
    let same = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "1M")).unwrap_err();
    assert!(same.to_string().contains("there is reservation 1 already"), "{same}");

    let released = book.release(1);
    assert_eq!(wait(&mut lab, released), Ok(()));
    assert_eq!((reserved(&book), book.list()), (vec![], vec![]));
    assert_eq!(flows_of(&lab, "meter:"), 0);
    let again = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "1G")).unwrap();
    assert_eq!(again.id, 1);
    let unknown = book.release(7);
    assert_eq!(wait(&mut lab, unknown), Err(NotReleased::Unknown(7)));
}

#[test]
fn another_path_is_taken_where_the_shortest_is_full() {
    // The hosts' own lines carry ten times what those between switches do.
    let mut settings = BandwidthSettings { rate: "100M".parse().ok(), ..Default::default() };
    let hosts = (1..=4).map(|dpid| (SwitchPort::new(Dpid(dpid), Port(1)), "1G".parse().unwrap()));
    settings.lines.extend(hosts);
    let (mut lab, book) = lab(Version::V1_3, settings);
    let direct = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.2", "60M")).unwrap();
    assert_eq!(switches(&direct), [1, 2]);
    let around = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "60M")).unwrap();
    assert_eq!(switches(&around), [1, 4, 3], "s1 to s2 has 40M left");
    let none = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "60M")).unwrap_err();
    assert!(matches!(none, NotReserved::Taken { .. }), "{none}");
    let text = none.to_string();
    assert!(text.contains("has 40M left of 100M, less than 60M"), "{text}");

    let above = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "101M")).unwrap_err();
    assert!(above.to_string().contains("carries 100M, less than 101M"), "{above}");
    let above = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "2G")).unwrap_err();
    assert!(
        above.to_string().starts_with("the line of the host at 0000000000000001:1 "),
        "{above}"
    );
    assert_eq!(book.list().len(), 2, "what was refused has left nothing behind");
    let kbps: u64 = reserved(&book).iter().map(|(_, kbps)| kbps).sum();
    assert_eq!(kbps, 60_000 * (3 + 4));

    // Who waits gets what is released.
    let patient = Request { wait: PATIENCE, ..request("10.0.0.1", "10.0.0.4", "60M") };
    let mut patient = book.reserve(patient);
    lab.run_for(Duration::from_secs(1));
    assert_eq!(ask(&mut patient), None, "nothing is free yet");
    let released = book.release(around.id);
    assert_eq!(wait(&mut lab, released), Ok(()));
    assert_eq!(switches(&wait(&mut lab, patient).unwrap()), [1, 4]);
}

#[test]
fn a_reservation_whose_path_breaks_is_moved_or_told_to_be_lost() {
    let (mut lab, book) = lab(Version::V1_3, BandwidthSettings::default());
    let first = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "600M")).unwrap();
    let [_, by, _] = switches(&first)[..] else { panic!("{first:?}") };
    let (by, other) = (format!("s{by}"), if by == 2 { "s4" } else { "s2" });
    lab.link_down("s1", &by);
    lab.run_for(Duration::from_secs(1));
    let moved = book.list()[0].clone();
    assert_eq!(format!("s{}", switches(&moved)[1]), other);
    assert_eq!(reserved(&book).len(), 4, "only what it takes now: {:?}", reserved(&book));
    assert_eq!(flows_of(&lab, "meter:1"), 1);
    assert!(lab.ping("h1", "h3"));

    lab.link_down("s1", other);
    lab.run_for(Duration::from_secs(1));
    let State::Lost(why) = &book.list()[0].state else { panic!("{:?}", book.list()) };
    assert!(why.contains("no path leads from"), "{why}");
    assert_eq!(reserved(&book), []);
    lab.link_up("s1", other);
    lab.run_for(SETTLED);
    assert_eq!(switches(&book.list()[0]).len(), 3);

    // A switch that starts anew has lost flows and meter, and gets them again.
    lab.restart("s1", false);
    lab.run_for(SETTLED * 2);
    assert_eq!(switches(&book.list()[0]).len(), 3, "{:?}", book.list());
    assert_eq!(flows_of(&lab, "meter:1"), 1);
}

#[test]
fn what_cannot_be_done_is_said_and_nothing_is_half_done() {
    let (mut lab, book) = lab(Version::V1_0, BandwidthSettings::default());
    for (from, to, rate, queue, said) in [
        (
            "10.0.0.1",
            "10.0.0.3",
            "1M",
            None,
            "unsupported: switch 0000000000000001 speaks OpenFlow 1.0",
        ),
        ("10.0.0.1", "10.0.0.9", "1M", None, "no host 10.0.0.9 has been seen"),
        ("10.0.0.1", "10.0.0.1", "1M", None, "is both ends"),
        (
            "10.0.0.1",
            "10.0.0.3",
            "1M",
            Some("gold"),
            "there is no queue \"gold\"; none is configured",
        ),
    ] {
        let request = Request { queue: queue.map(str::to_owned), ..request(from, to, rate) };
        let error = reserve(&mut lab, &book, request).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    assert_eq!((reserved(&book), book.list()), (vec![], vec![]));
    assert_eq!(flows_of(&lab, "enqueue"), 0);
}

/// The path's switches are asked for a queue that they do not have: what was reserved is given back.
#[test]
fn a_refused_flow_gives_everything_back() {
    let queues = [("gold".to_owned(), 7)].into();
    let (mut lab, book) = lab(Version::V1_0, BandwidthSettings { queues, ..Default::default() });
    let request = Request { queue: Some("gold".into()), ..request("10.0.0.1", "10.0.0.3", "1M") };
    let before = flows_of(&lab, "");
    let error = reserve(&mut lab, &book, request).unwrap_err();
    assert!(matches!(error, NotReserved::NotInstalled(_)), "{error}");
    assert_eq!((reserved(&book), book.list()), (vec![], vec![]));
    assert_eq!(flows_of(&lab, ""), before);
}

#[test]
fn requests_of_one_moment_share_what_there_is() {
    let mut settings = BandwidthSettings { rate: "100M".parse().ok(), ..Default::default() };
    settings.lines.insert(SwitchPort::new(Dpid(1), Port(1)), "150M".parse().unwrap());
    let (mut lab, book) = lab(Version::V1_3, settings);
    let hosts = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"];
    let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
    let answers: Vec<_> = pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| book.reserve(request(from, to, "45M")))
        .collect();
    let outcomes: Vec<_> = answers.into_iter().map(|answer| wait(&mut lab, answer)).collect();
    let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!((4..12).contains(&done), "{outcomes:#?}");
    for (line, kbps) in reserved(&book) {
        let (Line::From(at) | Line::To(at)) = line;
        let is_wide = at == SwitchPort::new(Dpid(1), Port(1));
        assert!(kbps <= if is_wide { 150_000 } else { 100_000 }, "{line}: {kbps}");
    }
    for reservation in book.list() {
        let released = book.release(reservation.id);
        assert_eq!(wait(&mut lab, released), Ok(()));
    }
    assert_eq!(reserved(&book), []);
}

/// A frame to everybody from this address, with a VLAN tag or without.
fn frame(from: [u8; 6], vlan: Option<u16>) -> Vec<u8> {
    let tag = vlan.map(|vlan| [&[0x81, 0x00], &vlan.to_be_bytes()[..]].concat());
    [&[0xff; 6][..], &from, &tag.unwrap_or_default(), &[0x88, 0xb5], &[0; 46]].concat()
}

/// Flows match the sender's VLAN, and a switch sends nothing back by the port that it came in by.
#[test]
fn hosts_that_no_flow_would_join_are_refused() {
    let (mut lab, book) = lab(Version::V1_3, BandwidthSettings::default());
    lab.send_frame("h2", &frame([2, 0, 0, 0, 0, 0x30], Some(30)));
    lab.send_frame("h2", &frame([2, 0, 0, 0, 0, 0x31], None));
    lab.run_for(Duration::from_secs(1));
    for (to, said) in [
        ("02:00:00:00:00:30", "are in different VLANs"),
        ("02:00:00:00:00:31", "both hosts are at port 0000000000000002:1"),
    ] {
        let error = reserve(&mut lab, &book, request("10.0.0.2", to, "1M")).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    assert_eq!((reserved(&book), book.list()), (vec![], vec![]));
}

/// Both have the same number, and what is released is gone for the second.
#[test]
fn who_releases_what_is_gone_meanwhile_is_told_so() {
    let settings = BandwidthSettings { rate: "1G".parse().ok(), ..Default::default() };
    let (mut lab, book) = lab(Version::V1_3, settings);
    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "600M")).unwrap();
    let (first, second) = (book.release(1), book.release(1));
    assert_eq!(wait(&mut lab, first), Ok(()));
    assert_eq!(wait(&mut lab, second), Err(NotReleased::Unknown(1)));

    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "600M")).unwrap();
    let patient =
        Request { wait: Duration::from_secs(5), ..request("10.0.0.2", "10.0.0.3", "600M") };
    let (patient, release) = (book.reserve(patient), book.release(2));
    assert!(matches!(wait(&mut lab, patient), Err(NotReserved::Taken { .. })));
    assert_eq!(wait(&mut lab, release), Err(NotReleased::Unknown(2)));
}

/// No path changes, and nobody moves: what another releases is enough.
#[test]
fn what_is_lost_is_tried_again_when_another_is_released() {
    let mut settings = BandwidthSettings { rate: "1G".parse().ok(), ..Default::default() };
    let hosts = (1..=4).map(|dpid| (SwitchPort::new(Dpid(dpid), Port(1)), "10G".parse().unwrap()));
    settings.lines.extend(hosts);
    let (mut lab, book) = lab(Version::V1_3, settings);
    let lost = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "600M")).unwrap();
    let [_, by, _] = switches(&lost)[..] else { panic!("{lost:?}") };
    let other = if by == 2 { 4 } else { 2 };
    let from = format!("10.0.0.{other}");
    let taken = reserve(&mut lab, &book, request(&from, "10.0.0.3", "600M")).unwrap();
    lab.link_down("s1", &format!("s{by}"));
    lab.run_for(Duration::from_secs(1));
    assert!(matches!(book.list()[0].state, State::Lost(_)), "{:?}", book.list());
    let kbps: u64 = reserved(&book).iter().map(|(_, kbps)| kbps).sum();
    assert_eq!(kbps, 600_000 * 3, "only what the other has: {:?}", reserved(&book));
    let released = book.release(taken.id);
    assert_eq!(wait(&mut lab, released), Ok(()));
    lab.run_for(Duration::from_secs(1));
    assert_eq!(switches(&book.list()[0]), [1, other, 3]);
}

/// Whoever sets what a line carries names one of its ends; packets go over it both ways.
#[test]
fn what_a_line_carries_is_known_from_either_end() {
    let ends = [2, 3].map(|port| (SwitchPort::new(Dpid(3), Port(port)), "10M".parse().unwrap()));
    let settings = BandwidthSettings { lines: ends.into(), ..Default::default() };
    let (mut lab, book) = lab(Version::V1_3, settings);
    for (from, to) in [("10.0.0.1", "10.0.0.3"), ("10.0.0.3", "10.0.0.1")] {
        let error = reserve(&mut lab, &book, request(from, to, "20M")).unwrap_err();
        assert!(error.to_string().contains("carries 10M, less than 20M"), "{error}");
        reserve(&mut lab, &book, request(from, to, "10M")).unwrap();
    }
}

/// Four switches in a line: there is no other path.
fn line_lab() -> (Lab, Reservations) {
    let reservations = Reservations::new(BandwidthSettings::default());
    let lab = Lab::seeded(7).topology(linear(4, 1)).version(Version::V1_3);
    let lab = known(lab.app(Bandwidth::new(&reservations)).run(Routing::default()));
    (lab, reservations)
}

/// The flow of the first reservation in a switch, as it is told, and how many packets it has seen.
fn flow_of_first(lab: &Lab, switch: &str) -> Option<(String, u64)> {
    let cookie = Cookie::of_app("bandwidth");
    let tables = lab.switch(switch).datapath().tables();
    let mut flows = tables.iter().flat_map(|(_, table)| table.flows().collect::<Vec<_>>());
    let (_, flow) = flows.find(|(_, flow)| cookie.owns(flow.cookie))?;
    Some((flow.matching().to_string(), flow.packet_count))
}

#[test]
fn a_switch_that_is_away_for_a_moment_keeps_its_flows_and_the_reservation_its_path() {
    let (mut lab, book) = line_lab();
    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "600M")).unwrap();
    assert!(lab.ping("h1", "h4"));
    let before = flow_of_first(&lab, "s2").unwrap();
    assert!(before.1 > 0, "{before:?}");

    lab.disconnect("s2");
    lab.run_for(Duration::from_secs(3));
    assert_eq!(book.list()[0].state, State::Unknown(Dpid(2)));
    assert!(lab.ping("h1", "h4"), "its packets go on");
    lab.reconnect("s2");
    assert!(lab.run_until(Duration::from_secs(20), |_| {
        matches!(book.list()[0].state, State::Installed(_))
    }));
    assert_eq!(switches(&book.list()[0]), [1, 2, 3, 4]);
    let after = flow_of_first(&lab, "s2").unwrap();
    assert!(after.0 == before.0 && after.1 > before.1, "it is the same flow: {before:?} {after:?}");

    // Who comes back without its flows gets them again.
    lab.restart("s2", false);
    lab.run_for(SETTLED * 2);
    assert_eq!(switches(&book.list()[0]), [1, 2, 3, 4]);
    assert!(flow_of_first(&lab, "s2").is_some());

    // Who stays away has had his time.
    lab.disconnect("s2");
    lab.run_for(AWAY_FOR - Duration::from_secs(5));
    assert_eq!(book.list()[0].state, State::Unknown(Dpid(2)));
    assert!(!reserved(&book).is_empty());
    lab.run_for(Duration::from_secs(15));
    assert!(matches!(book.list()[0].state, State::Lost(_)), "{:?}", book.list());
    assert_eq!(reserved(&book), []);
    assert_eq!(flow_of_first(&lab, "s1"), None);
    lab.disconnect("s1");
    lab.run_for(Duration::from_secs(1));
    let other = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "1M")).unwrap_err();
    assert_eq!(other.to_string(), "switch 0000000000000001 is not connected, and a host is there");
}

#[test]
fn what_somebody_else_removes_is_put_back() {
    let (mut lab, book) = line_lab();
    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.4", "600M")).unwrap();
    let any = Match::any();
    let all = FlowMod::delete(&any).cookie_mask(Cookie::of_app("bandwidth").with(0), Cookie::MASK);
    lab.controller().unwrap().send(Dpid(2), &ToSwitch::FlowMod(all)).unwrap();
    assert!(lab.run_until(PATIENCE, |lab| flow_of_first(lab, "s2").is_none()));
    assert!(lab.run_until(2 * AUDIT_EVERY, |lab| flow_of_first(lab, "s2").is_some()));
    assert!(matches!(book.list()[0].state, State::Installed(_)));
}

/// Nobody has promised the next run what this one has.
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
    assert!(kept_s >= KEEP_LEFT_FLOWS.as_secs(), "{kept_s} s");
    for switch in ["s1", "s2", "s3", "s4"] {
        lab.run_for(Duration::from_secs(1));
        assert!(lab.ping("h1", "h4"), "they are gone");
        assert_eq!(flow_of_first(&lab, switch), None);
    }
    let first = reserve(&mut lab, &next, request("10.0.0.1", "10.0.0.4", "300M")).unwrap();
    assert_eq!((first.id, switches(&first)), (1, vec![1, 2, 3, 4]));
}

/// Somebody fills the table of a switch with flows of his own, in the place of the reservation's.
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
    let lost =
        |_: &Lab| matches!(&book.list()[0].state, State::Lost(why) if why.contains("refuses"));
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
    assert!(lab.run_until(2 * RETRY_LOST, |_| matches!(book.list()[0].state, State::Installed(_))));
    assert_eq!(switches(&book.list()[0]), [1, 2, 3, 4]);
}
