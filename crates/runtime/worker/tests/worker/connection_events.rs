//! Events of switches that come up, go down, or fail to come up.

use std::time::Duration;

use crate::lab::{Lab, SwitchId};
use bellrock_api::runtime::DynApp;
use bellrock_api::{App, Dpid, EndReason, Event, Handler, Network, SwitchInfo, Version};
use bellrock_session::SwitchDescription;
use bellrock_worker::{Drive, WorkerSettings};

struct Idle;
impl App for Idle {
    type Handler = Idle;
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Idle {
        Idle
    }
}
impl Handler for Idle {}

/// Published events of connections, with the reasons of their ends.
fn events(lab: &Lab) -> Vec<(&'static str, Option<&'static str>)> {
    let events = lab.shared.network().events().latest(usize::MAX);
    let about = events.iter().filter(|it| it.event.is_about_connection());
    about
        .map(|it| (it.event.name(), it.event.connection_end().map(|why| why.reason.name())))
        .collect()
}

fn last(lab: &Lab) -> Event {
    lab.shared.network().events().latest(1).pop().unwrap().event
}

fn named(dpid: u64, name: &str) -> SwitchDescription {
    let mut description = SwitchDescription::new(dpid);
    description.datapath = name.into();
    description
}

#[test]
fn a_switch_that_comes_and_goes_is_published_with_its_name_its_peer_and_the_reason() {
    let mut lab = Lab::with_app(Idle);
    let s = lab.connect(0, Version::V1_3, named(5, "rack 7"));
    lab.run();
    let text = "switch 0000000000000005 (rack 7) is up: OpenFlow 1.3, from 127.0.0.1:40000";
    assert_eq!(last(&lab).to_string(), text);
    assert!(!last(&lab).is_alarming());
    lab.hang_up(s);
    lab.run();
    let down = "switch 0000000000000005 (rack 7) at 127.0.0.1:40000 is down: the switch closed the connection";
    assert_eq!(last(&lab).to_string(), down);
    assert!(matches!(last(&lab), Event::SwitchDown { dpid: Dpid(5), .. }));
    assert_eq!(events(&lab), [("switch_up", None), ("switch_down", Some("closed_by_peer"))]);
}

/// Reason of the last end of a connection, and whether its switch was up.
fn reason(lab: &Lab) -> (bool, EndReason) {
    let events = lab.shared.network().events().latest(usize::MAX);
    let last =
        events.iter().rev().find_map(|it| Some((&it.event, it.event.connection_end()?.reason)));
    let (event, reason) = last.unwrap();
    (matches!(event, Event::SwitchDown { .. }), reason)
}

fn up(lab: &mut Lab) -> SwitchId {
    lab.up(Version::V1_3, 5)
}

#[test]
fn each_end_has_its_reason() {
    let minutes = Duration::from_secs(61);
    let mut lab = Lab::with_app(Idle);
    // Does not answer an echo.
    let s = up(&mut lab);
    lab.switches[s].silent = true;
    lab.advance(minutes);
    assert_eq!(reason(&lab), (true, EndReason::Dead));
    // Reads no bytes.
    let s = up(&mut lab);
    let key = lab.switches[s].key;
    let (worker, wires) = &mut lab.workers[0];
    worker.stalled(key, lab.now, wires);
    assert_eq!(reason(&lab), (true, EndReason::Stalled));
    // Is replaced.
    let s = up(&mut lab);
    lab.switches[s].silent = true;
    up(&mut lab);
    lab.advance(Duration::from_secs(2));
    assert_eq!(reason(&lab), (true, EndReason::Replaced));
    // Another connection with its datapath id is refused.
    lab.connect(0, Version::V1_3, SwitchDescription::new(5));
    lab.run();
    assert_eq!(reason(&lab), (false, EndReason::Duplicate));
    // An auxiliary connection.
    let mut auxiliary = SwitchDescription::new(6);
    auxiliary.auxiliary_id = 1;
    lab.connect(0, Version::V1_3, auxiliary);
    lab.run();
    assert_eq!(reason(&lab), (false, EndReason::Auxiliary));
    // Not OpenFlow, and a broken stream.
    let s = lab.connect(0, Version::V1_3, SwitchDescription::new(7));
    lab.send_bytes(s, b"GET / HTTP/1.1\r\n\r\n");
    lab.run();
    assert_eq!(reason(&lab), (false, EndReason::Malformed));
    let s = lab.up(Version::V1_3, 8);
    lab.send_bytes(s, &[4, 0, 0, 3, 0, 0, 0, 0]);
    lab.run();
    assert_eq!(reason(&lab), (true, EndReason::Malformed));
    // The handshake never ends.
    let s = lab.connect(0, Version::V1_3, SwitchDescription::new(9));
    lab.switches[s].silent = true;
    lab.advance(Duration::from_secs(10));
    assert_eq!(reason(&lab), (false, EndReason::HandshakeTimeout));
}

#[test]
fn a_peer_that_connects_all_the_time_is_published_now_and_then() {
    let apps: Vec<Box<dyn DynApp>> = vec![Box::new(Idle)];
    let mut lab = Lab::new(1, WorkerSettings::default(), apps);
    for _ in 0..100 {
        let s = lab.connect(0, Version::V1_3, SwitchDescription::new(7));
        lab.send_bytes(s, b"GET / HTTP/1.1\r\n\r\n");
        lab.run();
    }
    assert_eq!(events(&lab), [("connection_ended", Some("malformed"))]);
    lab.advance(Duration::from_secs(60));
    let s = lab.connect(0, Version::V1_3, SwitchDescription::new(7));
    lab.send_bytes(s, b"GET / HTTP/1.1\r\n\r\n");
    lab.run();
    assert!(matches!(last(&lab), Event::ConnectionEnded { times: 100, .. }));
    assert_eq!(events(&lab).len(), 2);
}
