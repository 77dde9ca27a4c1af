//! Tests of cached hosts, noted hosts, and the disconnect of a switch.

use bellrock_api::runtime::EmptyNetwork;
use bellrock_api::{App, PacketInView};
use bellrock_tables::{Budget, SharedTable};

use super::*;
use crate::global_learning::GlobalLearning;
use crate::learning::LearningSettings;
use crate::learning::prepared::tests::packet_in;

const A: u8 = 1;
const B: u8 = 2;

fn key(host: u8) -> HostKey {
    HostKey(u64::from_le_bytes([2, 0, 0, 0, 0, host, 0, 0]))
}

fn at(port: u32) -> HostPlace {
    HostPlace::at(Port(port)).unwrap()
}

/// The output port of a packet from one host to another on the fast path.
fn goes(
    hosts: &mut GlobalHosts<SharedTable>,
    [from, to]: [u8; 2],
    by: u32,
    now: u32,
) -> Option<Port> {
    let data = [&[2, 0, 0, 0, 0, to][..], &[2, 0, 0, 0, 0, from], &[8, 0]].concat();
    let message = packet_in(Port(by), &data);
    let packet = PacketIn::new(PacketInView::of_any_form(&message).unwrap());
    let frame = FrameHeader::read(&packet).unwrap();
    hosts.with_flows(&packet, &frame, Stamp::at(now)).map(HostPlace::port)
}

#[test]
fn a_cached_host_is_dropped_when_another_switch_changes_it() {
    let app = GlobalLearning::<SharedTable>::new(LearningSettings::default(), &Budget::unlimited());
    let [mut one, mut two] = [1, 2].map(|n| GlobalHosts::new(app.shared_state(Some(1)), Dpid(n)));
    for (host, port) in [(A, 1), (B, 2)] {
        let host = one.hash(key(host));
        assert_eq!(one.learn(host, at(port), false, 10), Learnt::New(at(port), None));
        assert_eq!(goes(&mut one, [A, B], 1, 10), None, "without flows");
        assert!(one.note_flows(host, at(port)));
    }
    // The table has the entry; afterwards the cache has it.
    for _ in 0..2 {
        assert_eq!(goes(&mut one, [A, B], 1, 13), Some(Port(2)));
    }
    assert_eq!(goes(&mut one, [A, B], 3, 13), None, "not where it was");
    // No switch has seen B for three seconds.
    let b = two.hash(key(B));
    assert_eq!(
        two.learn(b, at(5), false, 13),
        Learnt::Moved { from: HostPlace::default(), to: at(5) }
    );
    assert!(one.has_changes());
    assert!(matches!(one.next_change(), Some(HostChange::Gone(host, _)) if host == key(B)));
    assert_eq!(goes(&mut one, [A, B], 1, 13), None);
    assert!(one.next_change().is_none() && !one.has_changes());
}

#[test]
fn hosts_are_reported_once_by_the_app_each_with_its_own_switch_while_that_is_up() {
    let app = GlobalLearning::<SharedTable>::new(LearningSettings::default(), &Budget::unlimited());
    let hosts = |enough: usize| {
        let mut seen = Vec::new();
        App::hosts(&app, &EmptyNetwork::network(), &mut |dpid, host| {
            seen.push((dpid.0, host.mac.0[5], host.port.0, host.flapping));
            if seen.len() < enough { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        seen.sort_unstable();
        seen
    };
    assert_eq!(hosts(9), [], "no switch has come up");
    let [mut one, mut two] = [10, 20].map(|n| GlobalHosts::new(app.shared_state(Some(1)), Dpid(n)));
    let _ = one.learn(one.hash(key(A)), at(1), false, 0);
    let _ = two.learn(two.hash(key(B)), at(2), false, 0);
    two.note_flapping([key(A), key(B)].into_iter());
    assert_eq!(hosts(9), [(10, A, 1, false), (20, B, 2, true)]);
    assert_eq!(hosts(1).len(), 1);
    // No handler reads the table for this.
    one.for_each(0, &mut |_, _, _| unreachable!());
    two.note_flapping(std::iter::empty());
    assert_eq!(hosts(9), [(10, A, 1, false), (20, B, 2, false)]);
    drop(two);
    assert_eq!(hosts(9), [(10, A, 1, false)]);
    let _back = GlobalHosts::new(app.shared_state(Some(1)), Dpid(20));
    assert_eq!(hosts(9).len(), 2);
}

#[test]
fn a_cached_host_is_dropped_when_its_own_switch_changes_it() {
    let app = GlobalLearning::<SharedTable>::new(LearningSettings::default(), &Budget::unlimited());
    let mut one = GlobalHosts::new(app.shared_state(Some(1)), Dpid(1));
    let known = |one: &mut GlobalHosts<SharedTable>| {
        for (host, port) in [(A, 1), (B, 2)] {
            let host = one.hash(key(host));
            let _ = one.learn(host, at(port), false, 10);
            assert!(one.note_flows(host, at(port)));
        }
        assert_eq!(goes(one, [A, B], 1, 10), Some(Port(2)));
    };
    known(&mut one);
    let b = one.hash(key(B));
    one.forget(b);
    assert_eq!(goes(&mut one, [A, B], 1, 10), None);
    known(&mut one);
    assert!(matches!(one.learn(b, at(3), false, 10), Learnt::Moved { .. }));
    assert_eq!(goes(&mut one, [A, B], 1, 10), None);
    known(&mut one);
    one.forget_port(Port(2));
    assert_eq!(goes(&mut one, [A, B], 1, 10), None);
}

/// A flow from A to B that an earlier run has left, with these ports.
fn left(from: u32, to: u32) -> FlowEnds {
    FlowEnds { from: (key(A), at(from)), to: (key(B), at(to)) }
}

#[test]
fn flows_stay_that_lead_towards_the_switch_of_their_host() {
    let app = GlobalLearning::<SharedTable>::new(LearningSettings::default(), &Budget::unlimited());
    let [mut home, mut ahead, mut astray, mut new] =
        [1, 2, 3, 4].map(|n| GlobalHosts::new(app.shared_state(Some(1)), Dpid(n)));
    astray.ports_to_switches.set(home.own_number, Port(9));
    ahead.ports_to_switches.set(home.own_number, Port(7));
    assert!(home.adopt(&left(1, 2), 10));
    assert!([&mut ahead, &mut astray, &mut new].iter_mut().all(|its| its.adopt(&left(7, 8), 10)));
    assert!(!new.adopt(&left(5, 8), 10), "it contradicts the other");
    let a = home.hash(key(A));
    let as_noted = Learnt::Known(at(7).with_flows());
    assert_eq!(ahead.learn(a, at(7), true, 10), as_noted, "the port leads to switches");
    assert_eq!(home.learn(a, at(1), true, 11), Learnt::New(at(1).with_flows(), None));
    assert!(ahead.next_change().is_none() && new.next_change().is_none());
    assert!(matches!(astray.next_change(), Some(HostChange::Gone(host, place))
        if host == key(A) && place == at(7).with_flows()));
    assert_eq!(
        new.ports_to_switches.to(home.own_number),
        Some(Port(7)),
        "the flow has told the way"
    );
    // Switches that have kept flows get a letter when it moves.
    assert!(matches!(astray.learn(a, at(3), true, 20), Learnt::Moved { .. }));
    for its in [&mut home, &mut ahead, &mut new] {
        assert!(matches!(its.next_change(), Some(HostChange::Gone(host, _)) if host == key(A)));
    }
    // B remains noted.
    assert_eq!(home.find(home.hash(key(B)), 20), Destination::At(at(2).with_flows()));
}

#[test]
fn a_switch_that_leaves_takes_its_notes_along_and_so_does_time() {
    let settings = LearningSettings { max_age_s: 30, ..LearningSettings::default() };
    let app = GlobalLearning::<SharedTable>::new(settings, &Budget::unlimited());
    let [mut one, mut two] = [1, 2].map(|n| GlobalHosts::new(app.shared_state(Some(1)), Dpid(n)));
    assert!(one.adopt(&left(1, 2), 10) && two.adopt(&left(7, 8), 10));
    drop(two);
    one.forget_port(Port(3));
    let mut gone = Vec::new();
    one.age(40, |host, place| gone.push((host, place)));
    assert!(gone.is_empty() && one.shared.notes.has_notes());
    one.age(41, |host, place| gone.push((host, place)));
    assert_eq!(gone, [(key(A), at(1).with_flows()), (key(B), at(2).with_flows())]);
    assert!(!one.shared.notes.has_notes());
    assert_eq!(one.find(one.hash(key(A)), 41), Destination::Nowhere);
    // A host noted behind a port that goes down is forgotten too.
    assert!(one.adopt(&left(1, 2), 50));
    one.forget_port(Port(2));
    assert_eq!(one.find(one.hash(key(B)), 50), Destination::Nowhere);
    assert_eq!(one.find(one.hash(key(A)), 50), Destination::At(at(1).with_flows()));
}
