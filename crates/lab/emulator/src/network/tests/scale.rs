//! Networks of the size that users need.

use super::*;

#[test]
fn a_thousand_switches_and_a_thousand_hosts_talk() {
    let settings = NetworkSettings { table_capacity: 5000, ..NetworkSettings::default() };
    let mut driven = Driven::new("tree:10,2", settings, Version::V1_3);
    let (switches, hosts) = (driven.said.len(), driven.network.topology().hosts().len());
    assert_eq!((switches, hosts), (1023, 1024));
    driven.flood_broadcasts();
    let mut random = fastrand::Rng::with_seed(7);
    let pairs: Vec<_> = (0..20).map(|_| (random.usize(0..512), random.usize(512..1024))).collect();
    for (a, b) in &pairs {
        driven.route_to(HostIndex::of(*a));
        driven.route_to(HostIndex::of(*b));
    }
    let pairs: Vec<_> = pairs.iter().map(|(a, b)| (HostIndex::of(*a), HostIndex::of(*b))).collect();
    let pings = PingSettings::default();
    let reach = crate::check::Reachability::begin_pairs(&mut driven.network, &pairs, pings);
    driven.network.advance(Duration::from_secs(10));
    let matrix = reach.finish(&mut driven.network);
    assert!(matrix.is_complete(), "{}", matrix.display(driven.network.topology()));
    // The ARP request reached all hosts, each once.
    let heard = driven.network.counters().delivered;
    assert!(heard >= 20 * 1023, "{heard}");
}

/// Number of allocations for a thousand datagrams over a line of switches, after others of the same
/// kind.
fn allocations(line: &str) -> u64 {
    let mut driven = Driven::new(line, settings(), Version::V1_3);
    driven.route_all();
    let last = HostIndex::of(driven.said.len() - 1);
    let to = driven.network.host(last).ip();
    driven.network.with(last, |host, _, _| host.udp_sink(9));
    let stream = StreamSettings {
        to,
        from_port: 8,
        to_port: 9,
        data_len: 100,
        interval: Duration::from_micros(1),
        count: 3000,
    };
    driven.network.udp_stream(HostIndex::of(0), stream).unwrap();
    let start = driven.network.now();
    driven.network.advance(start + Duration::from_micros(1000));
    let counted =
        allocation_counter::measure(|| driven.network.advance(start + Duration::from_micros(2000)));
    let come = driven.network.host(last).udp_counters(9).unwrap().datagrams;
    assert!((1900..2000).contains(&come), "{come}");
    counted.count_total
}

#[test]
fn a_hop_costs_no_allocation() {
    assert_eq!(allocations("linear:2"), allocations("linear:9"));
}

#[test]
fn timed_events_stay_in_order_under_constant_traffic() {
    // All hosts send all the time over the same links: the queue does not grow.
    let mut driven = Driven::new("single:20", settings(), Version::V1_3);
    driven.route_all();
    for index in 0..20 {
        let to = driven.network.host(HostIndex::of((index + 1) % 20)).ip();
        let interval = Duration::from_micros(10);
        let (from_port, to_port, data_len, count) = (1, 9, 1000, 5000);
        let stream = StreamSettings { to, from_port, to_port, data_len, interval, count };
        driven.network.with(HostIndex::of(index), |host, _, _| host.udp_sink(9));
        driven.network.udp_stream(HostIndex::of(index), stream).unwrap();
    }
    driven.network.advance(Duration::from_secs(1));
    for index in 0..20 {
        let host = driven.network.host(HostIndex::of(index));
        assert_eq!(host.udp_counters(9).unwrap().datagrams, 5000);
        assert_eq!((host.counters().duplicates, host.counters().unexpected), (0, 0));
    }
    assert_eq!(driven.network.next_event(), None);
}
