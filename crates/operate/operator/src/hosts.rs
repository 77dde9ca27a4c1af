//! The place of each host, from all sources that know it.
//!
//! Several apps may know a host, and a learning app knows it at each switch that its packets pass.
//! One row is made of that: the host at its edge port. Host tracking knows the edge port.
//! Without host tracking, the links of discovery exclude ports that lead to switches. Without both,
//! the port with the fewest hosts is chosen: a port to another switch has all hosts behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bellrock_api::{
    Dpid, HostEntry, HostId, Hosts, MacAddr, Names, Network, Port, SwitchPort, Topology,
};
use bellrock_engine::{Monitor, SeenHost};
use bellrock_query::{HostRow, Page, Rows};
use bellrock_services::hosts::LastSeen;

use super::name_of;

/// Maximum number of hosts that are read, from each worker and from each app that keeps hosts for
/// all switches.
const MAX_HOSTS: usize = 65_536;

/// Maximum number of sightings compared to find ports between switches, and of those of one host.
/// With more, only the numbers of hosts are compared.
const SIGHTINGS_COMPARED: usize = 8192;
const PLACES_COMPARED: usize = 64;

/// The hosts of a running controller, by switch and port: those at one switch, or all. The
/// switches' own addresses are left out.
pub(super) fn list(
    monitor: &Monitor,
    network: &Network,
    switch: Option<Dpid>,
    page: Page,
) -> Rows<HostRow> {
    let (seen, complete) = monitor.hosts(MAX_HOSTS);
    let ports = monitor.switches();
    let own = ports.iter().flat_map(|info| info.ports.iter().map(|port| port.address)).collect();
    let mut rows = all(&seen, &network.hosts().load(), &network.topology().load(), &own);
    rows.retain(|row| switch.is_none_or(|switch| row.dpid == switch));
    let (tracked, now) = (network.extension::<LastSeen>(), network.now());
    let rows = Rows::of(rows, page).map(|row| {
        let seen = tracked.of(HostId::new(row.mac, row.vlan));
        let age = seen.map(|at| now.saturating_sub(at).as_secs());
        HostRow { age_seconds: row.age_seconds.into_iter().chain(age).min(), ..row }
    });
    let why =
        || format!("an app knows more than {MAX_HOSTS} hosts, or a worker did not answer in time");
    Rows { incomplete: (!complete).then(why), ..rows }
}

/// The row with the names of the host and of its switch.
pub(super) fn with_names(row: HostRow, names: &Names) -> HostRow {
    let name = names.name_of_host(row.mac).map(str::to_owned);
    HostRow { name, switch_name: name_of(names, row.dpid), ..row }
}

/// What is known of one host.
#[derive(Default)]
struct Known<'s> {
    /// Its port by host tracking, and its IP addresses.
    tracked: Option<(SwitchPort, Vec<IpAddr>)>,
    /// Ports where apps have seen it.
    seen: Vec<(SwitchPort, &'static str, &'s HostEntry)>,
}

fn all(
    seen: &[SeenHost],
    tracked: &Hosts,
    topology: &Topology,
    own: &BTreeSet<MacAddr>,
) -> Vec<HostRow> {
    let mut hosts: BTreeMap<HostId, Known<'_>> = BTreeMap::new();
    for host in tracked.iter().filter(|host| !own.contains(&host.id.mac)) {
        hosts.entry(host.id).or_default().tracked = Some((host.at, host.addresses.clone()));
    }
    let mut behind: BTreeMap<SwitchPort, BTreeSet<HostId>> = BTreeMap::new();
    for (dpid, app, host) in seen.iter().filter(|(.., host)| !own.contains(&host.mac)) {
        let (id, at) = (HostId::new(host.mac, host.vlan), SwitchPort::new(*dpid, host.port));
        hosts.entry(id).or_default().seen.push((at, *app, host));
        behind.entry(at).or_default().insert(id);
    }
    let inner =
        if topology.switches.is_empty() { between_switches(&hosts) } else { BTreeSet::new() };
    let is_inner = |at: SwitchPort| topology.is_trunk(at) || inner.contains(&at);
    let crowd = |at: SwitchPort| behind.get(&at).map_or(0, BTreeSet::len);
    let row = |(id, known): (&HostId, &Known<'_>)| row(*id, known, is_inner, crowd);
    let mut rows: Vec<_> = hosts.iter().map(row).collect();
    rows.sort_by_key(|row| (row.dpid, row.port, row.vlan, row.mac));
    rows
}

/// Finds ports that lead to other switches, from the hosts seen behind them.
///
/// If hosts behind one port of switch A are at several ports of switch B, they are at B or beyond
/// it. So that port of A leads to B. B sees the hosts behind other ports of A at the port that
/// leads back to A.
fn between_switches(hosts: &BTreeMap<HostId, Known<'_>>) -> BTreeSet<SwitchPort> {
    let places = |known: &Known<'_>| -> BTreeMap<Dpid, Port> {
        let places = known.seen.iter().map(|(at, ..)| (at.dpid, at.port));
        places.take(PLACES_COMPARED).collect()
    };
    let all: Vec<BTreeMap<Dpid, Port>> = hosts.values().map(places).collect();
    // Each host at two switches.
    let pairs = || {
        all.iter().flat_map(|places| {
            let others = move |a| places.iter().map(move |b| (a, b));
            places.iter().flat_map(others).filter(|(a, b)| a.0 != b.0)
        })
    };
    if all.iter().map(BTreeMap::len).sum::<usize>() > SIGHTINGS_COMPARED {
        return BTreeSet::new();
    }
    // The port of one switch that leads to another.
    let mut leads_to: BTreeMap<(Dpid, Dpid), Port> = BTreeMap::new();
    let mut first: BTreeMap<(Dpid, Port, Dpid), Port> = BTreeMap::new();
    for ((a, at_a), (b, at_b)) in pairs() {
        if first.entry((*a, *at_a, *b)).or_insert(*at_b) != at_b {
            leads_to.insert((*a, *b), *at_a);
        }
    }
    let mut inner: BTreeSet<SwitchPort> =
        leads_to.iter().map(|((a, _), port)| SwitchPort::new(*a, *port)).collect();
    for ((a, at_a), (b, at_b)) in pairs() {
        if leads_to.get(&(*a, *b)).is_some_and(|port| port != at_a) {
            inner.insert(SwitchPort::new(*b, *at_b));
        }
    }
    inner
}

/// Makes the row of a host. `is_inner`: whether a port leads to a switch; `crowd`: its hosts.
fn row(
    id: HostId,
    known: &Known<'_>,
    is_inner: impl Fn(SwitchPort) -> bool,
    crowd: impl Fn(SwitchPort) -> usize,
) -> HostRow {
    let Known { tracked, seen } = known;
    let places: BTreeSet<SwitchPort> = seen.iter().map(|(at, ..)| *at).collect();
    let outside: BTreeSet<SwitchPort> =
        places.iter().copied().filter(|at| !is_inner(*at)).collect();
    // If a host is seen at links only, no app has seen it at its own switch.
    let candidates = if outside.is_empty() { &places } else { &outside };
    let age = |at: SwitchPort| seen.iter().filter(|(its, ..)| *its == at).map(|it| it.2.age).min();
    let likeliest = candidates.iter().copied().min_by_key(|at| (crowd(*at), age(*at), *at));
    let place = tracked.as_ref().map(|(at, _)| *at).or(likeliest);
    // There is always a place, because host tracking or an app has seen the host.
    let at = place.unwrap_or(SwitchPort::new(Dpid(0), Port(0)));
    let apps: BTreeSet<&str> = seen.iter().map(|(_, app, _)| *app).collect();
    let tracking = tracked.as_ref().map(|_| "hosts");
    let youngest = age(at).or_else(|| seen.iter().map(|(.., host)| host.age).min());
    HostRow {
        dpid: at.dpid,
        switch_name: None,
        port: at.port,
        mac: id.mac,
        name: None,
        vlan: id.vlan,
        addresses: tracked.as_ref().map(|(_, addresses)| addresses.clone()).unwrap_or_default(),
        age_seconds: youngest.map(|age| age.as_secs()),
        flapping: seen.iter().any(|(.., host)| host.flapping),
        guessed: tracked.is_none() && (candidates.len() > 1 || outside.is_empty()),
        apps: tracking.into_iter().chain(apps).map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellrock_api::{Host, Link};

    use super::*;

    fn at(dpid: u64, port: u32) -> SwitchPort {
        SwitchPort::new(Dpid(dpid), Port(port))
    }

    fn mac(n: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, n])
    }

    fn seen(n: u8, at: SwitchPort, age_s: u64) -> SeenHost {
        let age = Duration::from_secs(age_s);
        let entry = HostEntry { mac: mac(n), vlan: None, port: at.port, age, flapping: false };
        (at.dpid, "learning", entry)
    }

    /// Address, switch and port of each row, and whether that is a guess.
    fn places(rows: &[HostRow]) -> Vec<(String, String, bool)> {
        let place = |row: &HostRow| {
            let place = format!("{:x}:{}", row.dpid.0, row.port);
            (row.mac.to_string()[15..].to_owned(), place, row.guessed)
        };
        rows.iter().map(place).collect()
    }

    /// Two switches, linked at their ports 9. Hosts 1 and 2 are at the first, host 3 at the second.
    fn learnt() -> Vec<SeenHost> {
        let mut all = vec![seen(1, at(1, 1), 5), seen(2, at(1, 2), 5), seen(3, at(2, 1), 5)];
        all.extend([seen(1, at(2, 9), 1), seen(2, at(2, 9), 1), seen(3, at(1, 9), 1)]);
        all
    }

    #[test]
    fn a_host_that_is_seen_at_each_switch_has_one_row_at_its_edge() {
        let link = |from, to| Link { from, to, rate_kbps: None, since: Duration::ZERO };
        let links = [link(at(1, 9), at(2, 9)), link(at(2, 9), at(1, 9))];
        let ports = || [1, 2, 9].map(Port).to_vec();
        let topology = Topology::of([(Dpid(1), ports()), (Dpid(2), ports())], links);
        let rows = all(&learnt(), &Hosts::default(), &topology, &BTreeSet::new());
        let row = |mac: &str, place: &str, guessed| (mac.to_owned(), place.to_owned(), guessed);
        let expected = [row("01", "1:1", false), row("02", "1:2", false), row("03", "2:1", false)];
        assert_eq!(places(&rows), expected);
        assert_eq!((rows[0].age_seconds, &*rows[0].apps), (Some(5), &["learning".to_owned()][..]));
        // Without known links: 1 and 2 share a port of the second switch, but not of the first.
        let rows = all(&learnt(), &Hosts::default(), &Topology::default(), &BTreeSet::new());
        assert_eq!(places(&rows), expected);
        // With one host at each of two switches, each host may be at either switch.
        let two: Vec<_> = learnt().into_iter().filter(|(.., host)| host.mac != mac(2)).collect();
        let rows = all(&two, &Hosts::default(), &Topology::default(), &BTreeSet::new());
        assert!(rows.len() == 2 && rows.iter().all(|row| row.guessed), "{rows:?}");
    }

    #[test]
    fn in_a_line_of_switches_with_a_host_each_all_are_found() {
        let sees = |switch: u64, host: u64| match host.cmp(&switch) {
            std::cmp::Ordering::Less => at(switch, 2),
            std::cmp::Ordering::Equal => at(switch, 1),
            std::cmp::Ordering::Greater => at(switch, 3),
        };
        let all_see = (1..=5).flat_map(|switch| (1..=5).map(move |host| (switch, host)));
        let learnt: Vec<_> =
            all_see.map(|(switch, host)| seen(host as u8, sees(switch, host), 0)).collect();
        let rows = all(&learnt, &Hosts::default(), &Topology::default(), &BTreeSet::new());
        let expected: Vec<_> =
            (1..=5).map(|n| (format!("0{n}"), format!("{n}:1"), false)).collect();
        assert_eq!(places(&rows), expected);
    }

    #[test]
    fn host_tracking_knows_where_a_host_is_and_its_addresses() {
        let mut tracked = Hosts::default();
        for (n, at) in [(1, at(1, 1)), (4, at(2, 2))] {
            let (id, since) = (HostId::new(mac(n), None), Duration::ZERO);
            let addresses = vec![format!("10.0.0.{n}").parse().unwrap()];
            tracked.insert(Host { id, at, addresses, since });
        }
        let own = BTreeSet::from([mac(2), mac(4)]);
        let rows = all(&learnt(), &tracked, &Topology::default(), &own);
        let [first, other] = &rows[..] else { panic!("ports of switches are no hosts: {rows:?}") };
        assert_eq!((first.mac, first.port, first.guessed), (mac(1), Port(1), false));
        let address: IpAddr = "10.0.0.1".parse().unwrap();
        assert_eq!((&*first.addresses, first.age_seconds), (&[address][..], Some(5)));
        assert_eq!(first.apps, ["hosts", "learning"]);
        assert_eq!(other.mac, mac(3));
    }
}
