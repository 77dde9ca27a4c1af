//! Frames between controllers: order, loss, bounds.

use bellrock_api::Host;
use bellrock_api::runtime::EmptyNetwork;

use super::outbox::Outbox;
use super::*;
use std::collections::BTreeSet;

const A: Peer = Peer(0);
const B: Peer = Peer(1);
const SECOND: Duration = Duration::from_secs(1);

/// An exchange of the node `me` of two, with discovery and host tracking.
fn exchange(me: Peer) -> (Network, Arc<Exchange>) {
    let network = EmptyNetwork::network();
    let exchange = Exchange::of(&network);
    let instance = u64::from(me.0) + 100;
    exchange.begin_links(instance, DiscoveryKey::of(&[me.0; 32]));
    exchange.begin_hosts();
    exchange.open(me, [if me == A { B } else { A }], u64::from(me.0) << 32);
    while exchange.link_inputs().try_recv().is_ok() {}
    while exchange.host_inputs().try_recv().is_ok() {}
    (network, exchange)
}

fn facts(dpid: u64) -> Arc<SwitchFacts> {
    let port = |n| PortFact {
        port: Port(n),
        since: SECOND,
        came_up: SECOND,
        is_known: true,
        is_lost: false,
    };
    let ports = (1..=2).map(port).collect();
    Arc::new(SwitchFacts { dpid: Dpid(dpid), ports, links: Vec::new() })
}

fn switches(dpids: &[u64]) -> BTreeMap<Dpid, Arc<SwitchFacts>> {
    dpids.iter().map(|dpid| (Dpid(*dpid), facts(*dpid))).collect()
}

fn host(n: u64, dpid: u64) -> Host {
    let id = HostId::new(MacAddr::from_u64(n), None);
    Host { id, at: SwitchPort::new(Dpid(dpid), Port(1)), addresses: Vec::new(), since: SECOND }
}

fn name(frame: &PeerFrame) -> &'static str {
    match frame {
        PeerFrame::Key { .. } => "key",
        PeerFrame::Begin { .. } => "begin",
        PeerFrame::Switch { .. } => "switch",
        PeerFrame::Left(_) => "left",
        PeerFrame::Hosts { .. } => "hosts",
        PeerFrame::End => "end",
        PeerFrame::Announcement(_) => "announcement",
        PeerFrame::Claim(_) => "claim",
        PeerFrame::Moved(_) => "moved",
        PeerFrame::Digest { .. } => "digest",
        PeerFrame::Differs { .. } => "differs",
    }
}

const BEGIN: PeerFrame = PeerFrame::Begin { switches: Buckets::ALL, hosts: Buckets::ALL };

fn own(dpids: &[u64]) -> OwnSwitches {
    let mut own = OwnSwitches::default();
    own.set(switches(dpids));
    own
}

fn sent(exchange: &Exchange, network: &Network, to: Peer) -> Vec<NumberedFrame> {
    std::iter::from_fn(|| exchange.next(to, network)).collect()
}

fn names(frames: &[NumberedFrame]) -> Vec<&'static str> {
    frames.iter().map(|numbered| name(&numbered.frame)).collect()
}

fn claim() -> PeerFrame {
    let SwitchPort { dpid, port } = host(1, 1).at;
    let at = SwitchPort::new(dpid, port);
    PeerFrame::Claim(HostClaim::Place { host: host(1, 1).id, at, ip: None })
}

/// What discovery gets.
fn links(exchange: &Exchange) -> Vec<LinkInput> {
    let inputs = exchange.link_inputs();
    std::iter::from_fn(|| inputs.try_recv().ok()).map(|input| input.body).collect()
}

#[test]
fn a_new_connection_gets_everything_and_then_what_changes() {
    let (network, a) = exchange(A);
    a.set_switches(switches(&[1, 2]), &Hosts::default());
    assert!(sent(&a, &network, B).is_empty(), "it is not connected");
    assert!(!a.post(B, claim()));
    a.connected(B);
    let frames = sent(&a, &network, B);
    assert_eq!(names(&frames), ["key", "begin", "switch", "switch", "end"]);
    assert_eq!(frames.iter().map(|it| it.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    a.peer_applied(B, frames[0].stream, 5);
    // The same facts again are none.
    a.set_switches(switches(&[1, 2]), &Hosts::default());
    assert!(sent(&a, &network, B).is_empty());
    a.set_switches(switches(&[2, 3]), &Hosts::default());
    assert!(a.post(B, claim()));
    let frames = sent(&a, &network, B);
    assert_eq!(names(&frames), ["switch", "claim", "left"]);
    assert_eq!(frames[2].frame, PeerFrame::Left(vec![Dpid(1)]));
    // After the next connection everything comes again, in a new stream.
    a.disconnected(B);
    assert!(sent(&a, &network, B).is_empty());
    a.connected(B);
    let again = sent(&a, &network, B);
    assert_eq!(names(&again), ["key", "begin", "switch", "switch", "end"]);
    assert!(again[0].stream > frames[0].stream && again[0].number == 1);
}

#[test]
fn a_peer_that_does_not_apply_frames_gets_the_newest_state_later() {
    let (network, a) = exchange(A);
    a.connected(B);
    let frames = sent(&a, &network, B);
    let stream = frames[0].stream;
    for _ in 0..100 {
        a.set_switches(switches(&[1]), &Hosts::default());
        a.set_switches(switches(&[2]), &Hosts::default());
    }
    let on_way = frames.len() + sent(&a, &network, B).len();
    assert!(on_way <= WINDOW, "{on_way}");
    for n in 0..2 * MAX_POSTED {
        assert_eq!(a.post(B, claim()), n < MAX_POSTED, "{n}");
    }
    let more = sent(&a, &network, B).len();
    assert_eq!(on_way + more, WINDOW);
    assert!(a.next(B, &network).is_none());
    // An answer for an earlier stream, or for frames that were not sent, changes nothing.
    a.peer_applied(B, stream - 1, 99);
    assert!(a.next(B, &network).is_none());
    a.peer_applied(B, stream, 99);
    assert_eq!(sent(&a, &network, B).len(), WINDOW);
}

#[test]
fn frames_are_taken_in_order_only_and_counted_when_they_are_applied() {
    let (network, a) = exchange(A);
    let (_, b) = exchange(B);
    a.set_switches(switches(&[1]), &Hosts::default());
    a.connected(B);
    let frames = sent(&a, &network, B);
    let stream = frames[0].stream;
    let at = |number, frame| NumberedFrame { stream, number, frame };
    let early = b.receive(A, at(2, BEGIN), SECOND);
    assert_eq!(early, Err(NotTaken::OutOfOrder { number: 2, expected: 1 }));
    for frame in frames {
        assert_eq!(b.receive(A, frame, SECOND), Ok(()));
    }
    let twice = b.receive(A, at(4, BEGIN), SECOND);
    assert!(matches!(twice, Err(NotTaken::OutOfOrder { .. })));
    // The key needs nobody.
    assert_eq!(b.applied(A), Some((stream, 1)));
    let got = links(&b);
    let [LinkInput::Switch(0, facts), LinkInput::Complete(all, Buckets::ALL)] = &got[..] else {
        panic!("{got:?}")
    };
    assert_eq!((facts.dpid, all.len()), (Dpid(1), 1));
    // Only host tracking has not applied the beginning and the end.
    assert_eq!(b.applied(A), Some((stream, 2)));
    assert_eq!(b.applied(A), None);
    while b.host_inputs().try_recv().is_ok() {}
    assert_eq!(b.applied(A), Some((stream, 4)));
    // When this node can send again, it repeats the last number.
    b.connected(A);
    assert_eq!(b.applied(A), Some((stream, 4)));
    // The next stream begins at its first frame only.
    let next = |number| NumberedFrame { stream: stream + 1, number, frame: BEGIN };
    assert!(b.receive(A, next(2), SECOND).is_err());
    assert_eq!(b.receive(A, next(1), SECOND), Ok(()));
    assert_eq!(b.applied(A), None, "those of the stream before do not count");
}

#[test]
fn times_are_those_of_the_own_clock() {
    let (_, b) = exchange(B);
    let frame = PeerFrame::Switch { sent_at: SECOND * 100, term: 3, facts: (*facts(1)).clone() };
    for (now, since) in [(1000, 901), (50, 0)] {
        let frame = NumberedFrame { stream: now, number: 1, frame: frame.clone() };
        b.receive(A, frame, SECOND * now as u32).unwrap();
        let got = links(&b);
        let [LinkInput::Switch(3, facts)] = &got[..] else { panic!("{got:?}") };
        assert_eq!(facts.ports[0].since, SECOND * since);
    }
}

#[test]
fn hostile_frames_are_refused_and_take_no_memory() {
    let (_, b) = exchange(B);
    let SwitchFacts { dpid, ports, .. } = (*facts(1)).clone();
    let ports = vec![ports[0]; MAX_PORTS_OF_SWITCH + 1];
    let facts = SwitchFacts { dpid, ports, links: Vec::new() };
    let gone = vec![host(1, 1).id; HOSTS_PER_FRAME + 1];
    let addresses = vec![std::net::IpAddr::from([10, 0, 0, 1]); 17];
    let moved = HostFact { id: host(1, 1).id, at: host(1, 1).at, addresses, since: SECOND };
    let hostile = [
        PeerFrame::Switch { sent_at: SECOND, term: 1, facts },
        PeerFrame::Hosts { sent_at: SECOND, facts: HostFacts { present: Vec::new(), gone } },
        PeerFrame::Left(vec![Dpid(1); MAX_LEFT + 1]),
        PeerFrame::Key { instance: 1, key: vec![1; 8] },
        PeerFrame::Key { instance: 1, key: vec![1; 1 << 20] },
        PeerFrame::Moved(moved),
    ];
    for (stream, frame) in (10..).zip(hostile) {
        let refused = b.receive(A, NumberedFrame { stream, number: 1, frame }, SECOND);
        assert!(matches!(refused, Err(NotTaken::Invalid(_))), "{refused:?}");
    }
    assert!(links(&b).is_empty() && b.host_inputs().is_empty());
    // A peer that ignores the window.
    for number in 1.. {
        let frame = NumberedFrame { stream: 99, number, frame: claim() };
        if let Err(error) = b.receive(A, frame, SECOND) {
            assert_eq!((error, number), (NotTaken::TooMany, MAX_WAITING as u64 + 1));
            break;
        }
    }
    // Nothing comes from a node that is none.
    let stranger = NumberedFrame { stream: 1, number: 1, frame: BEGIN };
    assert_eq!(b.receive(Peer(9), stranger, SECOND), Ok(()));
    assert_eq!(b.host_inputs().len(), MAX_WAITING);
}

#[test]
fn without_discovery_what_comes_counts_as_applied() {
    let network = EmptyNetwork::network();
    let b = Exchange::of(&network);
    b.open(B, [A], 1);
    for (number, frame) in (1..).zip([BEGIN, PeerFrame::End, claim()]) {
        assert_eq!(b.receive(A, NumberedFrame { stream: 7, number, frame }, SECOND), Ok(()));
    }
    assert_eq!(b.applied(A), Some((7, 3)));
    b.connected(A);
    assert!(b.next(A, &network).is_none(), "it has nothing to say");
}

#[test]
fn all_hosts_of_own_switches_are_reported_in_frames_and_changes_come_after_them() {
    let mut outbox = Outbox::default();
    let key = (1, DiscoveryKey::of(&[1; 32]));
    let mut own = own(&[1]);
    let mut hosts = Hosts::default();
    let count = 3 * HOSTS_PER_FRAME as u64;
    (0..count).for_each(|n| hosts.insert(host(n, 1)));
    (count..2 * count).for_each(|n| hosts.insert(host(n, 2)));
    outbox.connected();
    let mut reported = BTreeSet::new();
    let mut order = Vec::new();
    let mut has_changed = false;
    while let Some(NumberedFrame { stream, number, frame }) =
        outbox.next(&key, &mut own, &hosts, SECOND)
    {
        outbox.applied(stream, number);
        order.push(name(&frame));
        let PeerFrame::Hosts { facts, .. } = frame else { continue };
        assert!(facts.present.len() + facts.gone.len() <= HOSTS_PER_FRAME);
        facts.gone.iter().for_each(|id| assert!(reported.remove(id), "{id}"));
        reported.extend(facts.present.into_iter().map(|fact| fact.id));
        if !std::mem::replace(&mut has_changed, true) {
            // The first one goes, and another one comes, while the others are reported.
            hosts.remove(host(0, 1).id);
            hosts.insert(host(count * 3, 1));
            outbox.hosts_changed(&[host(0, 1).id, host(count * 3, 1).id, host(count, 2).id]);
        }
    }
    assert_eq!(order[..3], ["key", "begin", "switch"]);
    assert!(order.contains(&"end"));
    let of_own = hosts.iter().filter(|host| host.at.dpid == Dpid(1)).map(|host| host.id);
    assert_eq!(reported, of_own.collect());
}

/// Host tracking may know before discovery that this controller has a switch now.
#[test]
fn the_hosts_of_a_new_switch_are_reported_with_it() {
    let (network, a) = exchange(A);
    a.connected(B);
    let frames = sent(&a, &network, B);
    a.peer_applied(B, frames[0].stream, frames.len() as u64);
    let mut hosts = Hosts::default();
    [(1, 1), (2, 2), (3, 2), (4, 3)].into_iter().for_each(|(n, dpid)| hosts.insert(host(n, dpid)));
    a.hosts_changed(hosts.iter().map(|host| host.id));
    let mut state = a.lock();
    let ExchangeState { key, own, peers, .. } = &mut *state;
    let outbox = &mut peers.get_mut(&B).unwrap().outbox;
    assert_eq!(outbox.next(key.as_ref().unwrap(), own, &hosts, SECOND), None);
    drop(state);
    a.set_switches(switches(&[2]), &hosts);
    let mut state = a.lock();
    let ExchangeState { key, own, peers, .. } = &mut *state;
    let outbox = &mut peers.get_mut(&B).unwrap().outbox;
    let mut next = || outbox.next(key.as_ref().unwrap(), own, &hosts, SECOND).unwrap().frame;
    assert_eq!(name(&next()), "switch");
    let PeerFrame::Hosts { facts, .. } = next() else { panic!("hosts") };
    assert_eq!(
        facts.present.iter().map(|fact| fact.id).collect::<Vec<_>>(),
        [host(2, 2).id, host(3, 2).id]
    );
}

#[test]
fn too_many_changed_hosts_are_a_report_of_everything() {
    let mut outbox = Outbox::default();
    outbox.connected();
    let (key, mut own, hosts) = ((1, DiscoveryKey::of(&[1; 32])), own(&[]), Hosts::default());
    let mut stream = 0;
    while let Some(numbered) = outbox.next(&key, &mut own, &hosts, SECOND) {
        stream = numbered.stream;
        outbox.applied(stream, numbered.number);
    }
    let ids: Vec<HostId> = (0..=MAX_CHANGED_HOSTS as u64).map(|n| host(n, 1).id).collect();
    outbox.hosts_changed(&ids[1..]);
    outbox.hosts_changed(&ids[1..]);
    assert_eq!(outbox.next(&key, &mut own, &hosts, SECOND).map(|it| it.stream), Some(stream));
    outbox.hosts_changed(&ids);
    let first = outbox.next(&key, &mut own, &hosts, SECOND).unwrap();
    assert_eq!((first.number, name(&first.frame)), (1, "key"));
    assert!(first.stream > stream);
}

#[test]
fn keys_are_those_of_the_connection_that_stands() {
    let keys = PeerKeys::new([A, B]);
    let key = |n: u8| DiscoveryKey::of(&[n; 32]);
    assert!(matches!(keys.signer(1), Signer::Unknown));
    let keys = keys.learn(A, 1, key(1));
    assert!(matches!(keys.signer(1), Signer::Peer(A, _)));
    assert!(matches!(keys.signer(2), Signer::Unknown), "it may be that of the other one");
    let keys = keys.learn(B, 2, key(2));
    assert!(matches!(keys.signer(3), Signer::Nobody));
    // A peer starts again, with another key.
    let keys = keys.lost(A);
    assert!(matches!(keys.signer(3), Signer::Unknown));
    assert!(matches!(keys.signer(1), Signer::Peer(A, _)));
    let keys = keys.learn(A, 3, key(3));
    assert!(matches!(keys.signer(3), Signer::Peer(A, _)));
    assert!(matches!(keys.signer(1), Signer::Former(_)));
    assert!(matches!(keys.signer(4), Signer::Nobody));
    // The same one connects again.
    let keys = keys.lost(A).learn(A, 3, key(3));
    assert!(matches!(keys.signer(1), Signer::Former(_)));
    // A controller that is alone has no peers.
    assert!(matches!(PeerKeys::default().signer(1), Signer::Nobody));
}

/// Delivers what one has to say to the other one, which applies it, until there is nothing.
fn deliver(
    (from, network, peer): (&Exchange, &Network, Peer),
    to: (&Arc<Exchange>, Peer),
    now: Duration,
) -> Result<Vec<&'static str>, NotTaken> {
    let hosts = network.hosts().load();
    let mut names = Vec::new();
    while let Some(numbered) = from.next_at(to.1, &hosts, now) {
        names.push(name(&numbered.frame));
        to.0.receive(peer, numbered, now)?;
        while to.0.host_inputs().try_recv().is_ok() {}
        while to.0.link_inputs().try_recv().is_ok() {}
        if let Some((stream, count)) = to.0.applied(peer) {
            from.peer_applied(to.1, stream, count);
        }
    }
    Ok(names)
}

#[test]
fn a_controller_that_has_started_again_is_heard_from_its_first_frame() {
    let (_, b) = exchange(B);
    let mut last = 0;
    for incarnation in [7 << 32, 3 << 32, u64::MAX] {
        let (network, a) = exchange(A);
        a.open(A, [B], incarnation);
        a.set_switches(switches(&[1, 2]), &Hosts::default());
        a.connected(B);
        let frames = sent(&a, &network, B);
        assert_ne!(std::mem::replace(&mut last, frames[0].stream), frames[0].stream);
        for frame in frames {
            assert_eq!(b.receive(A, frame, SECOND), Ok(()));
        }
        links(&b);
        while b.host_inputs().try_recv().is_ok() {}
    }
}

#[test]
fn a_controller_that_has_started_again_has_another_clock() {
    let (_, b) = exchange(B);
    let has_restarted = |stream, instance| {
        let key = PeerFrame::Key { instance, key: vec![1; 32] };
        b.receive(A, NumberedFrame { stream, number: 1, frame: key }, SECOND).unwrap();
        links(&b).iter().any(|input| matches!(input, LinkInput::Restarted))
    };
    assert!(!has_restarted(1, 10), "it was not known");
    assert!(!has_restarted(2, 10), "its connection was lost");
    assert!(has_restarted(3, 11));
}

#[test]
fn a_digest_comes_when_nothing_else_is_left_and_what_differs_is_reported_again() {
    let (network, a) = exchange(A);
    let (_, b) = exchange(B);
    let all: Vec<u64> = (1..=100).collect();
    a.set_switches(switches(&all), &Hosts::default());
    a.elected(Dpid(1), 5);
    a.connected(B);
    let (from, to) = ((&*a, &network, A), (&b, B));
    let first = deliver(from, to, SECOND).unwrap();
    assert_eq!((first.len(), first.last()), (103, Some(&"end")));
    assert!(deliver(from, to, SECOND * 2).unwrap().is_empty());
    let due = SECOND + DIGEST_EVERY;
    assert_eq!(deliver(from, to, due).unwrap(), ["digest"]);
    assert!(deliver(from, to, due).unwrap().is_empty());
    // Changes go first.
    a.set_switches(switches(&all[1..]), &Hosts::default());
    assert_eq!(deliver(from, to, due * 2).unwrap(), ["left", "digest"]);
    let bucket = (0..32).map(|bit| Buckets(1 << bit)).find(|it| it.has_switch(Dpid(7))).unwrap();
    let some = all[1..].iter().filter(|dpid| bucket.has_switch(Dpid(**dpid))).count();
    assert!((1..20).contains(&some), "{some}");
    b.connected(A);
    assert!(b.post(A, PeerFrame::Differs { switches: bucket, hosts: Buckets::NONE }));
    deliver((&b, &network, B), (&a, A), due).unwrap();
    let again = deliver(from, to, due * 2).unwrap();
    assert_eq!(again.iter().filter(|name| **name == "switch").count(), some);
    assert_eq!((again.first(), again.last()), (Some(&"begin"), Some(&"end")));
    // A new election is reported, if the switch is.
    a.elected(Dpid(1), 6);
    assert!(deliver(from, to, due * 2).unwrap().is_empty());
    a.elected(Dpid(2), 6);
    assert_eq!(deliver(from, to, due * 2).unwrap(), ["switch"]);
}

#[test]
fn a_repeated_part_says_which_switches_are_left_in_it() {
    let (_, b) = exchange(B);
    let part = (0..32).map(|bit| Buckets(1 << bit)).find(|it| it.has_switch(Dpid(7))).unwrap();
    let switch =
        |dpid| PeerFrame::Switch { sent_at: SECOND, term: 0, facts: (*facts(dpid)).clone() };
    let begin = PeerFrame::Begin { switches: part, hosts: Buckets::NONE };
    let frames = [BEGIN, switch(1), switch(7), PeerFrame::End, begin, PeerFrame::End];
    for (number, frame) in (1..).zip(frames) {
        b.receive(A, NumberedFrame { stream: 1, number, frame }, SECOND).unwrap();
    }
    let inputs = b.host_inputs();
    let got: Vec<_> = std::iter::from_fn(|| inputs.try_recv().ok()).map(|it| it.body).collect();
    let [
        HostInput::Begin,
        HostInput::Complete(all, _),
        HostInput::Begin,
        HostInput::Complete(left, of),
    ] = &got[..]
    else {
        panic!("{got:?}")
    };
    assert_eq!((all.len(), left.iter().collect::<Vec<_>>()), (2, vec![&Dpid(1)]));
    assert_eq!(*of, Buckets::NONE);
    let got = links(&b);
    let Some(LinkInput::Complete(reported, of)) = got.last() else { panic!("{got:?}") };
    assert_eq!((reported.len(), *of), (0, part));
}
