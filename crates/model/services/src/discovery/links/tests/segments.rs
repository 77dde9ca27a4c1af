//! Ports that ordinary switches join.

use super::*;

fn segment(scene: &mut Scene, at: SwitchPort) -> Vec<SwitchPort> {
    scene.topology().segment(at).map(|ports| ports.to_vec()).unwrap_or_default()
}

#[test]
fn two_ports_that_hear_each_other_by_way_of_an_ordinary_switch_are_a_segment_until_it_is_silent() {
    let mut scene = Scene::new(3);
    scene.both(at(1, 1), at(2, 1));
    let [one, other] = [at(1, 4), at(3, 4)];
    for round in 0..4 {
        scene.to(s(1) + INTERVAL * round);
        scene.both(at(1, 1), at(2, 1));
        scene.forwarded(one, other);
        scene.forwarded(other, one);
    }
    assert_eq!(segment(&mut scene, other), [one, other]);
    let topology = scene.topology();
    assert!(topology.is_trunk(one) && !topology.is_edge(other));
    assert!(topology.is_host_place(one) && !topology.is_host_place(other));
    assert_eq!(topology.link(one).map(|link| link.to), Some(other));
    assert_eq!(topology.bidirectional_links().count(), 4);
    let events = scene.links.take_events();
    let expected = Event::Segment { ports: [one, other].into(), is_loop: false };
    assert!(events.contains(&expected) && !expected.is_alarming(), "{events:?}");

    scene.to(s(1) + INTERVAL * 8);
    assert!(segment(&mut scene, one).is_empty());
    assert!(scene.topology().is_edge(one));
    assert!(scene.events().contains(&"segment_over"));
    scene.forwarded(one, other);
    scene.to(scene.now + SEGMENT_AFTER * 2);
    assert_eq!(segment(&mut scene, one), [one, other], "it is back");
    scene.links.port_down(other, scene.now);
    assert!(segment(&mut scene, one).is_empty());
}

/// Announcements of both kinds pass a cable.
#[test]
fn the_ends_of_a_cable_are_no_segment() {
    let mut scene = Scene::new(2);
    let [one, other] = [at(1, 1), at(2, 1)];
    for _ in 0..3 {
        for (from, to) in [(one, other), (other, one)] {
            scene.forwarded(from, to);
            scene.way(from, to);
        }
        scene.to(scene.now + INTERVAL);
    }
    let topology = scene.topology();
    assert!(topology.segments.is_empty());
    assert_eq!(topology.links.len(), 2);
    assert!(!scene.events().contains(&"segment"));
}

/// A cheap switch forwards LLDP: each announcement is heard at two ports.
#[test]
fn three_ports_that_hear_each_other_directly_are_a_segment_and_no_attack() {
    let mut scene = Scene::new(3);
    let ports = [at(1, 4), at(2, 4), at(3, 4)];
    for _ in 0..4 {
        for from in ports {
            let direct = scene.announcement(from, from, MS);
            let others = ports.into_iter().filter(|to| *to != from);
            for to in others.clone() {
                scene.nonce += 1;
                let nonce = scene.nonce | 1 << 63;
                scene.hears(ReceivedAnnouncement { to, nonce, ..direct });
                scene.hears(ReceivedAnnouncement { to, ..direct });
            }
        }
        scene.to(scene.now + INTERVAL);
    }
    assert_eq!(segment(&mut scene, ports[1]), ports);
    let topology = scene.topology();
    assert!(topology.links.is_empty() && ports.iter().all(|at| topology.is_trunk(*at)));
    let events = scene.events();
    let wrong = ["replayed_announcement", "miswired", "one_way", "relay_suspected"];
    assert!(!events.iter().any(|name| wrong.contains(name)), "{events:?}");
    assert_eq!(events.iter().filter(|name| **name == "segment").count(), 1, "{events:?}");
}

#[test]
fn a_segment_beside_a_link_is_a_loop_and_an_alarm() {
    let mut scene = Scene::new(2);
    for _ in 0..3 {
        scene.both(at(1, 1), at(2, 1));
        scene.forwarded(at(1, 4), at(2, 4));
        scene.forwarded(at(2, 3), at(2, 2));
        scene.to(scene.now + INTERVAL);
        scene.topology();
    }
    let events = scene.links.take_events();
    for ports in [[at(1, 4), at(2, 4)], [at(2, 2), at(2, 3)]] {
        let event = Event::Segment { ports: ports.into(), is_loop: true };
        assert!(events.contains(&event) && event.is_alarming(), "{events:?}");
    }
}

#[test]
fn ports_where_hosts_have_long_been_make_no_segment() {
    let mut scene = Scene::new(2);
    scene.to(s(60));
    scene.host(1, at(1, 4));
    assert_eq!(scene.forwarded(at(1, 4), at(2, 4)), AnnouncementOutcome::Suspected);
    assert_eq!(scene.forwarded(at(2, 4), at(1, 4)), AnnouncementOutcome::Suspected);
    scene.to(s(70));
    assert!(scene.topology().segments.is_empty());
    assert!(scene.events().contains(&"relay_suspected"));
}

#[test]
fn a_port_is_joined_with_a_bounded_number_of_others() {
    let mut scene = Scene::new(MAX_HEARD as u64 + 10);
    for n in 2..MAX_HEARD as u64 + 10 {
        scene.forwarded(at(n, 1), at(1, 1));
    }
    assert_eq!(segment(&mut scene, at(1, 1)).len(), MAX_HEARD + 1);
}
