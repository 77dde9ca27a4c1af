//! Networks of the size that users ask for.

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
        driven.route_to(HostId::of(*a));
        driven.route_to(HostId::of(*b));
    }
    let pairs: Vec<_> = pairs.iter().map(|(a, b)| (HostId::of(*a), HostId::of(*b))).collect();
    let pings = PingSettings::default();
    let reach = crate::check::Reachability::begin_pairs(&mut driven.network, &pairs, pings);
    driven.network.advance(Duration::from_secs(10));
    let matrix = reach.finish(&mut driven.network);
    assert!(matrix.is_complete(), "{}", matrix.display(driven.network.topology()));
    // The request for an address went to all hosts, each once.
    let heard = driven.network.counters().delivered;
    assert!(heard >= 20 * 1023, "{heard}");
}
