//! Storms are detected, reported once and slowed down; their end too. Nothing else is a storm.

use std::time::Duration;

use crate::lab::{A, B, Lab, Packet, VERSIONS, udp};
use bellrock_api::{App, Event, Handler, MacAddr, StormSign, Version};
use bellrock_apps::{GlobalLearning, Hub, Learning, LearningSettings};
use bellrock_emulator::lab::{FaultKind, Faults, Lab as Network, on_both_versions};
use bellrock_emulator::network::NetworkSettings;
use bellrock_emulator::topology::{ring, tree};
use bellrock_tables::SharedTable;

const SEED: u64 = 42;

/// Time from the last sign of a storm to its end.
const CALM: Duration = Duration::from_secs(30);

/// The events about storms, in order.
fn reports(network: &Network) -> Vec<Event> {
    let events = network.controller().unwrap().events().latest(usize::MAX);
    let of_storms = events.into_iter().map(|happened| happened.event);
    of_storms
        .filter(|event| matches!(event, Event::Storm { .. } | Event::StormOver { .. }))
        .collect()
}

mod on_a_ring {
    use super::*;

    /// Broadcasts, one a second, after which the storm is known: 16 that return would do.
    const BROADCASTS_TO_NOTICE: u64 = 30;

    /// Maximum number of packet-ins of four switches for each broadcast: two at each switch.
    /// Without a memory of floods, one broadcast causes 9,000 a second.
    const MAX_PACKET_INS: u64 = 8;

    on_both_versions!(learning, global_learning, hub);

    fn learning(version: Version) {
        hosts_settle_again(slowed_down(version, "learning", Learning::default()));
    }

    fn global_learning(version: Version) {
        slowed_down(version, "global_learning", GlobalLearning::<SharedTable>::default());
    }

    fn hub(version: Version) {
        slowed_down(version, "hub", Hub);
    }

    fn slowed_down(version: Version, name: &str, app: impl App) -> Network {
        let mut network = Network::seeded(SEED).version(version).topology(ring(4, 1)).run(app);
        // Broadcasts arrive before the storm is known and afterwards, each only once.
        for (host, broadcasts) in [("h1", BROADCASTS_TO_NOTICE), ("h3", 10)] {
            let before = network.counter("packet_ins");
            for _ in 0..broadcasts {
                network.announce(host);
                network.run_for(Duration::from_secs(1));
            }
            let each = (network.counter("packet_ins") - before).div_ceil(broadcasts);
            assert!(each <= MAX_PACKET_INS, "{each} packet-ins for each broadcast of {host}");
        }

        let said = reports(&network);
        let [Event::Storm { app, sign: StormSign::Returns { .. }, .. }] = said[..] else {
            panic!("one report: {said:?}");
        };
        assert_eq!(app, name);
        assert!(said[0].is_alarming() && said[0].to_string().contains("--app routing"));
        assert_eq!(network.app_counter(name, "storms"), Some(1));
        assert!(network.app_counter(name, "floods_held").unwrap() >= 10);

        network.link_down("s1", "s2");
        network.run_for(CALM + Duration::from_secs(2));
        let said = reports(&network);
        let [_, Event::StormOver { duration: lasted, .. }] = said[..] else { panic!("{said:?}") };
        assert!((20..=30).contains(&lasted.as_secs()), "{lasted:?}");

        // The loop is gone: the network works like a tree.
        assert!(network.ping_all().is_complete());
        network.run_for(Duration::from_secs(60));
        assert_eq!(reports(&network).len(), 2);
        network
    }

    /// Another loop is another storm, and is reported again.
    fn hosts_settle_again(mut network: Network) {
        let mut pings = network.start_pings("h1", "h3", u16::MAX, Duration::from_millis(100));
        network.run_for(Duration::from_secs(2));
        network.link_up("s1", "s2");
        // A frame of another host; the two pinging hosts have flows.
        for _ in 0..20 {
            network.announce("h2");
            network.run_for(Duration::from_secs(1));
        }
        assert_eq!(reports(&network).len(), 3, "{:?}", reports(&network));
        let before = network.statistics(&pings).received;
        network.run_for(Duration::from_secs(10));
        let answered = network.statistics(&pings).received - before;
        assert!(answered >= 99, "{answered} of 100 pings between settled hosts");
        // Hosts that have never talked find each other despite the loop.
        pings = network.start_pings("h4", "h2", u16::MAX, Duration::from_millis(100));
        network.run_for(Duration::from_secs(20));
        let received = network.statistics(&pings).received;
        assert!(received >= 150, "{received} of 200 pings");
    }
}

mod no_alarm {
    use super::*;

    on_both_versions!(on_a_tree_with_many_hosts, on_hosts_that_move, on_a_link_that_flaps);

    fn assert_no_alarm(network: &Network) {
        assert_eq!(reports(network), []);
    }

    fn on_a_tree_with_many_hosts(version: Version) {
        for app in 0..2 {
            let network = Network::seeded(SEED).version(version).topology(tree(3, 5));
            let (mut network, name) = match app {
                0 => (network.run(Learning::default()), "learning"),
                _ => (network.run(Hub), "hub"),
            };
            // All 125 at once, repeated with the same frames.
            for _ in 0..20 {
                network.announce_all();
                network.run_for(Duration::from_millis(100));
            }
            assert_no_alarm(&network);
            assert_eq!(network.app_counter(name, "floods_held"), Some(0));
        }
    }

    fn on_hosts_that_move(version: Version) {
        let network = Network::seeded(SEED).version(version).topology(tree(2, 3));
        let spare = NetworkSettings { spare_ports: 12, ..NetworkSettings::default() };
        let mut network = network.network(spare).run(Learning::default());
        assert!(network.ping_all().is_complete());
        for round in 0..6 {
            for host in ["h1", "h4", "h7"] {
                network.move_host(host, if round % 2 == 0 { "s3" } else { "s2" });
            }
            for _ in 0..20 {
                network.announce_all();
                network.run_for(Duration::from_millis(20));
            }
        }
        assert_no_alarm(&network);
    }

    fn on_a_link_that_flaps(version: Version) {
        let mut network =
            Network::seeded(SEED).version(version).topology(tree(2, 3)).run(Learning::default());
        let plan = network.inject(&Faults::of(SEED, &[FaultKind::LinkFlap]).each(20));
        let pings = network.start_pings("h1", "h9", u16::MAX, Duration::from_millis(5));
        let end = network.now() + plan.lasts();
        while network.now() < end {
            network.announce_all();
            network.run_for(Duration::from_millis(50));
        }
        assert!(network.statistics(&pings).received > 0);
        assert_no_alarm(&network);
    }
}

/// Like a benchmark: a few frames of known hosts to an unknown destination, at maximum rate.
fn a_benchmark_is_no_storm<H: Handler>(app: &impl App<Handler = H>) {
    const FRAMES: u32 = 50_000;
    for version in VERSIONS {
        let mut lab = Lab::with_app(version, app);
        let mut floods = 0;
        for n in 0..FRAMES {
            let port = 1 + n % 4;
            let source = MacAddr([2, 0, 0, 0, 1, port as u8]);
            floods += lab.see(port, source, MacAddr([2, 0, 0, 0, 2, (n % 100) as u8])).len();
            lab.now += Duration::from_micros(10);
        }
        assert_eq!(floods, FRAMES as usize, "all of them are flooded");
        assert_eq!((lab.counter("storms"), lab.counter("floods_held")), (0, 0));
    }
}

#[test]
fn a_benchmark_is_no_storm_for_a_learning_switch_or_a_hub() {
    a_benchmark_is_no_storm(&Learning::default());
    a_benchmark_is_no_storm(&Hub);
}

/// A loop in switches without a controller, behind one port.
#[test]
fn one_broadcast_over_and_over_is_a_storm_and_its_copies_free_their_buffers() {
    for version in VERSIONS {
        let mut lab = Lab::with_app(version, &Hub);
        let frame = || Packet::new(2, udp(A, MacAddr::BROADCAST));
        let copies = (0..2_000).take_while(|_| {
            lab.now += Duration::from_micros(100);
            lab.packet_in(&frame());
            lab.counter("storms") == 0
        });
        let copies = copies.count();
        assert_eq!(copies, 999, "the thousandth shows it");
        assert_eq!(lab.packet_in(&frame().buffered(7)), ["packet buffer 7 from 2 to nowhere"]);
        assert!(lab.packet_in(&frame()).is_empty());
        // Another frame passes.
        assert_eq!(lab.see(2, B, MacAddr::BROADCAST).len(), 1);
        lab.wait(31);
        assert_eq!(lab.packet_in(&frame()).len(), 1, "it is over");
    }
}

/// Nothing remembers the frames themselves here: their destination is known.
#[test]
fn hosts_that_move_to_and_fro_at_a_high_rate_are_a_storm() {
    for version in VERSIONS {
        let mut lab = Lab::new(version, LearningSettings::default());
        lab.see(3, B, A);
        for n in 0..60 {
            lab.see(1 + n % 2, A, B);
        }
        assert_eq!(lab.counter("storms"), 0, "a few moves are none");
        for n in 0..20 {
            lab.see(1 + n % 2, A, B);
        }
        assert_eq!(lab.counter("storms"), 1);
        // Traffic between known hosts continues.
        assert_eq!(lab.see(1, A, B).len(), 1);
    }
}

/// In a storm of a thousand different frames, only a limited number are flooded.
#[test]
fn a_switch_in_a_storm_floods_a_bounded_number_of_frames() {
    const WITHIN_800_MS: usize = 100;
    for version in VERSIONS {
        let mut lab = Lab::with_app(version, &Hub);
        for n in 0..200 {
            lab.packet_in(&Packet::new(1 + n % 2, udp(A, MacAddr::BROADCAST)));
        }
        assert_eq!(lab.counter("storms"), 1);
        lab.now += Duration::from_secs(1);
        let host = |n: u32| MacAddr([2, 0, 0, 3, (n >> 8) as u8, n as u8]);
        let floods: usize = (0..1_000).map(|n| lab.see(1, host(n), MacAddr::BROADCAST).len()).sum();
        assert_eq!(floods, WITHIN_800_MS);
        lab.now += Duration::from_millis(800);
        assert_eq!(lab.see(1, host(0), MacAddr::BROADCAST).len(), 1);
    }
}
