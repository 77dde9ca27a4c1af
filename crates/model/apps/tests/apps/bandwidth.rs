//! The app `bandwidth`: a request gets its rate on a whole path, or nothing; broken paths move.

use std::time::Duration;

use crate::known::SETTLED;
use crate::reserving::*;
use bellrock_api::{Dpid, Event, Port, SwitchPort, Version};
use bellrock_apps::bandwidth::{
    BandwidthSettings, LinkDirection, NotReleased, NotReserved, ReservationRequest,
    ReservationState,
};

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
    assert!(same.to_string().contains("reservation 1 from"), "{same}");

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
    // The hosts' lines have ten times the capacity of lines between switches.
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

    // A waiting request gets the released bandwidth.
    let patient = ReservationRequest { wait: PATIENCE, ..request("10.0.0.1", "10.0.0.4", "60M") };
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
    let ReservationState::Lost(why) = &book.list()[0].state else { panic!("{:?}", book.list()) };
    assert!(why.contains("no path leads from"), "{why}");
    assert_eq!(reserved(&book), []);
    let open_alarms = |lab: &bellrock_emulator::lab::Lab| {
        let open = lab.controller().unwrap().events().open_alarms();
        open.iter().filter(|it| matches!(it.event, Event::App { .. })).count()
    };
    assert_eq!(open_alarms(&lab), 1, "that it is lost");
    lab.link_up("s1", other);
    lab.run_for(SETTLED);
    assert_eq!(switches(&book.list()[0]).len(), 3);
    assert_eq!(open_alarms(&lab), 0);
    let events = lab.controller().unwrap().events().latest(usize::MAX);
    let names: Vec<_> = events
        .iter()
        .filter_map(|record| match &record.event {
            Event::App { event, .. } => Some(event.name()),
            _ => None,
        })
        .collect();
    let expected = ["reservation_up", "reservation_moved", "reservation_lost", "reservation_up"];
    assert_eq!(names, expected);

    // A switch that restarts has lost flows and meter, and gets them again.
    lab.restart("s1", false);
    lab.run_for(SETTLED * 2);
    assert_eq!(switches(&book.list()[0]).len(), 3, "{:?}", book.list());
    assert_eq!(flows_of(&lab, "meter:1"), 1);
}

#[test]
fn an_impossible_reservation_is_refused_and_leaves_nothing() {
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
        let request =
            ReservationRequest { queue: queue.map(str::to_owned), ..request(from, to, rate) };
        let error = reserve(&mut lab, &book, request).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    assert_eq!((reserved(&book), book.list()), (vec![], vec![]));
    assert_eq!(flows_of(&lab, "enqueue"), 0);
}

/// The switches of the path do not have the queue: the bandwidth is released.
#[test]
fn a_refused_flow_gives_everything_back() {
    let queues = [("gold".to_owned(), 7)].into();
    let (mut lab, book) = lab(Version::V1_0, BandwidthSettings { queues, ..Default::default() });
    let request =
        ReservationRequest { queue: Some("gold".into()), ..request("10.0.0.1", "10.0.0.3", "1M") };
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
        let (LinkDirection::From(at) | LinkDirection::To(at)) = line;
        let is_wide = at == SwitchPort::new(Dpid(1), Port(1));
        assert!(kbps <= if is_wide { 150_000 } else { 100_000 }, "{line}: {kbps}");
    }
    for reservation in book.list() {
        let released = book.release(reservation.id);
        assert_eq!(wait(&mut lab, released), Ok(()));
    }
    assert_eq!(reserved(&book), []);
}

/// A broadcast frame from this address, optionally with a VLAN tag.
fn frame(from: [u8; 6], vlan: Option<u16>) -> Vec<u8> {
    let tag = vlan.map(|vlan| [&[0x81, 0x00], &vlan.to_be_bytes()[..]].concat());
    [&[0xff; 6][..], &from, &tag.unwrap_or_default(), &[0x88, 0xb5], &[0; 46]].concat()
}

/// Flows match the sender's VLAN, and a switch sends no packet back by its ingress port.
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

/// Both releases have the same number; the second finds no reservation.
#[test]
fn a_second_release_of_a_reservation_is_an_error() {
    let settings = BandwidthSettings { rate: "1G".parse().ok(), ..Default::default() };
    let (mut lab, book) = lab(Version::V1_3, settings);
    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "600M")).unwrap();
    let (first, second) = (book.release(1), book.release(1));
    assert_eq!(wait(&mut lab, first), Ok(()));
    assert_eq!(wait(&mut lab, second), Err(NotReleased::Unknown(1)));

    reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.3", "600M")).unwrap();
    let patient = ReservationRequest {
        wait: Duration::from_secs(5),
        ..request("10.0.0.2", "10.0.0.3", "600M")
    };
    let (patient, release) = (book.reserve(patient), book.release(2));
    assert!(matches!(wait(&mut lab, patient), Err(NotReserved::Taken { .. })));
    assert_eq!(wait(&mut lab, release), Err(NotReleased::Unknown(2)));
}

/// No path changes, and no host moves: a release is enough.
#[test]
fn a_lost_reservation_is_tried_again_when_another_is_released() {
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
    assert!(matches!(book.list()[0].state, ReservationState::Lost(_)), "{:?}", book.list());
    let kbps: u64 = reserved(&book).iter().map(|(_, kbps)| kbps).sum();
    assert_eq!(kbps, 600_000 * 3, "only what the other has: {:?}", reserved(&book));
    let released = book.release(taken.id);
    assert_eq!(wait(&mut lab, released), Ok(()));
    lab.run_for(Duration::from_secs(1));
    assert_eq!(switches(&book.list()[0]), [1, other, 3]);
}

/// A setting names one end of a line, and applies to both directions.
/// Of all lines, and then of one that a reservation uses.
#[test]
fn rates_change_while_the_controller_runs() {
    let all = |rate: &str| BandwidthSettings { rate: rate.parse().ok(), ..Default::default() };
    let (mut lab, book) = lab(Version::V1_3, all("10M"));
    let above = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.2", "60M")).unwrap_err();
    assert!(above.to_string().contains("carries 10M, less than 60M"), "{above}");
    book.change(all("100M"));
    let direct = reserve(&mut lab, &book, request("10.0.0.1", "10.0.0.2", "60M")).unwrap();
    assert_eq!(switches(&direct), [1, 2]);

    // The line between the two carries less than that now.
    let ReservationState::Installed(ports) = direct.state else { panic!("{direct:?}") };
    let mut less = all("100M");
    less.lines.insert(ports[0], "50M".parse().unwrap());
    book.change(less);
    lab.run_for(SETTLED);
    assert_eq!(switches(&book.list()[0]), [1, 4, 3, 2]);
    book.change(all("50M"));
    lab.run_for(SETTLED);
    assert!(matches!(book.list()[0].state, ReservationState::Lost(_)), "{:?}", book.list());
    assert_eq!(reserved(&book), vec![]);
    book.change(all("60M"));
    lab.run_for(SETTLED);
    assert!(matches!(book.list()[0].state, ReservationState::Installed(_)), "{:?}", book.list());

    // Both fit no more, and stay; a third gets nothing.
    book.change(all("100M"));
    let other = reserve(&mut lab, &book, request("10.0.0.3", "10.0.0.2", "30M")).unwrap();
    book.change(all("70M"));
    lab.run_for(SETTLED);
    assert_eq!(book.list().len(), 2);
    let states: Vec<_> = book.list().into_iter().map(|it| it.state).collect();
    assert!(states.iter().all(|it| matches!(it, ReservationState::Installed(_))), "{states:?}");
    let third = reserve(&mut lab, &book, request("10.0.0.4", "10.0.0.2", "1M")).unwrap_err();
    assert!(third.to_string().contains("has 0k left of 70M"), "{third}");
    let released = book.release(other.id);
    assert_eq!(wait(&mut lab, released), Ok(()));
    reserve(&mut lab, &book, request("10.0.0.4", "10.0.0.2", "10M")).unwrap();
}

#[test]
fn the_rate_of_a_line_is_known_from_either_end() {
    let ends = [2, 3].map(|port| (SwitchPort::new(Dpid(3), Port(port)), "10M".parse().unwrap()));
    let settings = BandwidthSettings { lines: ends.into(), ..Default::default() };
    let (mut lab, book) = lab(Version::V1_3, settings);
    for (from, to) in [("10.0.0.1", "10.0.0.3"), ("10.0.0.3", "10.0.0.1")] {
        let error = reserve(&mut lab, &book, request(from, to, "20M")).unwrap_err();
        assert!(error.to_string().contains("carries 10M, less than 20M"), "{error}");
        reserve(&mut lab, &book, request(from, to, "10M")).unwrap();
    }
}
