//! The route of a reservation from host to host, and the capacity of its lines.

use std::collections::BTreeSet;
use std::time::Duration;

use bellrock_api::{
    Action, Dpid, Flow, Host, HostId, Match, MeterEntry, Network, Port, SwitchPort, Version,
};
use bellrock_services::desired::DesiredEntry;
use bellrock_services::paths::{Path, Paths, paths};

use super::errors::NotReserved;
use super::ledger::LinkDirection;
use super::names::Kbps;
use super::reservation::BandwidthSettings;

/// Maximum number of paths that are tried, shortest first.
pub const ALTERNATIVES: usize = 8;

/// Time for discovery to find the links of a switch that has connected: two rounds.
pub const LINKS_WITHIN: Duration = Duration::from_secs(10);

/// Time in which the first round of discovery finds the links of a switch that has connected. They
/// come one after the other, so before that another path only looks like the only one.
pub const FIRST_LINKS_WITHIN: Duration = Duration::from_secs(1);

/// A route, and the capacity of each of its lines in kbit/s.
pub(super) type CandidateRoute = (HostRoute, Vec<(LinkDirection, u64)>);

/// State of a route in the present network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteState {
    /// The hosts have not moved, and the lines between them are up.
    Intact,
    /// This switch is not connected: packets may or may not pass it.
    Away(Dpid),
    /// This switch has connected at this time, less than [`LINKS_WITHIN`] ago: its ports or links
    /// may still be found.
    New(Dpid, Duration),
    Broken,
}

/// A route at one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RouteStep {
    dpid: Dpid,
    version: Version,
    in_port: Port,
    out_port: Port,
}

/// A route from host to host, switch by switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostRoute {
    from: HostId,
    to: HostId,
    steps: Vec<RouteStep>,
}

impl HostRoute {
    /// The route over a path between two hosts' switches. `None` if one has just disconnected.
    pub(super) fn of_path(path: &Path, [from, to]: [&Host; 2], network: &Network) -> Option<Self> {
        let in_ports = path.hops.iter().map(|hop| hop.to.port);
        let out_ports = path.hops.iter().map(|hop| hop.from.port);
        let (in_ports, out_ports) = (
            std::iter::once(from.at.port).chain(in_ports),
            out_ports.chain(std::iter::once(to.at.port)),
        );
        let steps =
            path.switches().zip(in_ports.zip(out_ports)).map(|(dpid, (in_port, out_port))| {
                let version = network.reachable(dpid)?.version;
                Some(RouteStep { dpid, version, in_port, out_port })
            });
        Some(HostRoute { from: from.id, to: to.id, steps: steps.collect::<Option<_>>()? })
    }

    /// The lines of the route, including the line of the sending host.
    pub(super) fn lines(&self) -> impl Iterator<Item = LinkDirection> {
        let out_ports = self.ports().map(LinkDirection::From);
        let first = self.steps.first().map(|step| LinkDirection::To(step.from()));
        first.into_iter().chain(out_ports)
    }

    /// The output ports of the route.
    pub(super) fn ports(&self) -> impl Iterator<Item = SwitchPort> {
        self.steps.iter().map(RouteStep::to)
    }

    /// The switches of the route.
    pub(super) fn switches(&self) -> impl Iterator<Item = Dpid> {
        self.steps.iter().map(|step| step.dpid)
    }

    /// The hosts, each with its port.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (HostId, SwitchPort)> {
        let first = self.steps.first().map(|step| (self.from, step.from()));
        let last = self.steps.last().map(|step| (self.to, step.to()));
        first.into_iter().chain(last)
    }

    /// Whether both hosts have been seen, wherever they are.
    pub(super) fn has_seen_hosts(&self, network: &Network) -> bool {
        let hosts = network.hosts().load();
        [self.from, self.to].iter().all(|id| hosts.get(id.mac, id.vlan).is_some())
    }

    /// Returns whether packets still get through. `assumes_hosts`: hosts that have not been seen
    /// count as being where they were.
    pub(super) fn state(&self, network: &Network, assumes_hosts: bool) -> RouteState {
        let hosts = network.hosts().load();
        let (topology, paths) = (network.topology().load(), paths(network).load());
        let is_there =
            |(id, at): (HostId, SwitchPort)| match hosts.get(id.mac, id.vlan).map(|host| host.at) {
                Some(now) => now == at,
                None => assumes_hosts,
            };
        let has_version = |step: &RouteStep| {
            let info = network.reachable(step.dpid);
            info.is_none_or(|info| info.version == step.version)
        };
        if !self.hosts().all(is_there) || !self.steps.iter().all(has_version) {
            return RouteState::Broken;
        }
        // A disconnected switch has neither ports nor links in the topology, and a newly connected
        // one gets them a little later.
        let is_down =
            |step: &&RouteStep| !topology.is_up(step.from()) || !topology.is_up(step.to());
        let is_parted = |pair: &&[RouteStep]| {
            let [step, next] = pair else { return false };
            paths.hop_at(step.to()).is_none_or(|hop| hop.to != next.from())
        };
        let down: Vec<Dpid> = self.steps.iter().filter(is_down).map(|step| step.dpid).collect();
        let cut = self.steps.windows(2).filter(is_parted).flatten().map(|step| step.dpid);
        let since = |dpid: Dpid| network.reachable(dpid).map(|info| info.since);
        let is_new =
            |dpid: &Dpid| since(*dpid).is_some_and(|since| network.now() < since + LINKS_WITHIN);
        let disconnected = self.switches().find(|dpid| network.reachable(*dpid).is_none());
        // A down port is certain at a switch that has been connected for long.
        let is_certain = |dpid: &&Dpid| network.reachable(**dpid).is_some() && !is_new(dpid);
        if down.iter().any(|dpid| is_certain(&dpid)) {
            return RouteState::Broken;
        }
        let doubtful: Vec<Dpid> = down.iter().copied().chain(cut).collect();
        match (disconnected, doubtful.iter().copied().find(is_new)) {
            (Some(away), _) => RouteState::Away(away),
            (None, Some(new)) => RouteState::New(new, since(new).unwrap_or_default()),
            (None, None) if doubtful.is_empty() => RouteState::Intact,
            (None, None) => RouteState::Broken,
        }
    }

    /// The entries of the route, from the last switch to the first: packets that enter by a new
    /// flow then find all following flows. Without a queue, a meter with this number limits the
    /// rate at the ingress switch.
    pub(super) fn entries(
        &self,
        meter: u32,
        rate: Kbps,
        queue: Option<u32>,
    ) -> Vec<(Dpid, DesiredEntry)> {
        // Rates are parsed as 32 bits.
        let kbps = u32::try_from(rate.0).unwrap_or(u32::MAX);
        let limit = MeterEntry::drop_above_kbps(meter, kbps);
        let first = self.steps.first().filter(|_| queue.is_none());
        let meters = first.map(|step| (step.dpid, limit.into()));
        let flow = |(index, step): (usize, &RouteStep)| {
            let matching =
                Match::any().in_port(step.in_port).eth_src(self.from.mac).eth_dst(self.to.mac);
            let flow = Flow::new(match self.from.vlan {
                Some(vlan) => matching.vlan_id(vlan),
                None => matching.untagged(),
            });
            let flow = match queue {
                None if index == 0 => flow.meter(meter).output(step.out_port),
                None => flow.output(step.out_port),
                Some(queue) if step.version.has_set_queue() => {
                    flow.actions(&[Action::SetQueue(queue), Action::output(step.out_port)])
                }
                Some(queue) => flow.actions(&[Action::Enqueue { port: step.out_port, queue }]),
            };
            (step.dpid, flow.into())
        };
        self.steps.iter().enumerate().rev().map(flow).chain(meters).collect()
    }

    /// Text form of the steps: `SWITCH/VERSION/IN/OUT`, with the wire version.
    pub(super) fn text(&self) -> String {
        let step = |step: &RouteStep| {
            let RouteStep { dpid, version, in_port, out_port } = step;
            format!("{dpid}/{}/{}/{}", version.wire(), in_port.0, out_port.0)
        };
        self.steps.iter().map(step).collect::<Vec<_>>().join(",")
    }

    /// The route between these hosts with the steps of a text.
    pub(super) fn parse([from, to]: [HostId; 2], text: &str) -> Option<Self> {
        let step = |text: &str| {
            let mut parts = text.split('/');
            let step = RouteStep {
                dpid: parts.next()?.parse().ok()?,
                version: Version::from_wire(parts.next()?.parse().ok()?)?,
                in_port: Port(parts.next()?.parse().ok()?),
                out_port: Port(parts.next()?.parse().ok()?),
            };
            parts.next().is_none().then_some(step)
        };
        let steps = text.split(',').map(step).collect::<Option<_>>()?;
        Some(HostRoute { from, to, steps })
    }

    /// Checks that the ingress switch has meters.
    pub(super) fn check_meters(&self) -> Result<(), NotReserved> {
        match self.steps.first() {
            Some(step) if !step.version.has_meters() => Err(NotReserved::NoMeters(step.dpid)),
            _ => Ok(()),
        }
    }
}

impl RouteStep {
    /// The ingress port.
    fn from(&self) -> SwitchPort {
        SwitchPort::new(self.dpid, self.in_port)
    }

    /// The output port.
    fn to(&self) -> SwitchPort {
        SwitchPort::new(self.dpid, self.out_port)
    }
}

/// Capacity of a line, in kbit/s: as configured for a port at one of its ends, else as configured
/// for all lines, else the speed of its port.
pub(super) fn capacity(
    line: LinkDirection,
    settings: &BandwidthSettings,
    network: &Network,
    paths: &Paths,
) -> Result<u64, NotReserved> {
    let (LinkDirection::From(at) | LinkDirection::To(at)) = line;
    let ends = [Some(at), paths.hop_at(at).map(|hop| hop.to)];
    let configured = ends.iter().flatten().filter_map(|end| settings.lines.get(end)).min();
    if let Some(&Kbps(set)) = configured.or(settings.rate.as_ref()) {
        return Ok(set);
    }
    let info = network.reachable(at.dpid);
    let rate = info.and_then(|info| info.port(at.port).and_then(|port| port.rate_kbps()));
    rate.ok_or(NotReserved::NoRate(line))
}

/// Returns the shortest paths between two hosts whose lines have the capacity and that avoid these
/// switches, with the capacity of each line.
pub(super) fn routes(
    network: &Network,
    settings: &BandwidthSettings,
    [from, to]: [HostId; 2],
    rate: Kbps,
    needs_meter: bool,
    excluded: &BTreeSet<Dpid>,
) -> Result<Vec<CandidateRoute>, NotReserved> {
    let (hosts, paths) = (network.hosts().load(), paths(network).load());
    let host = |id: HostId| hosts.get(id.mac, id.vlan).ok_or(NotReserved::Gone(id));
    let endpoints = [host(from)?, host(to)?];
    if endpoints[0].at == endpoints[1].at {
        return Err(NotReserved::SamePort(endpoints[0].at));
    }
    let is_away = |host: &&Host| network.reachable(host.at.dpid).is_none();
    if let Some(host) = endpoints.into_iter().find(is_away) {
        return Err(NotReserved::NotConnected(host.at.dpid));
    }
    let check_rate = |line: LinkDirection| match capacity(line, settings, network, &paths)? {
        kbps if kbps < rate.0 => Err(NotReserved::AboveRate { rate, line, capacity: Kbps(kbps) }),
        kbps => Ok((line, kbps)),
    };
    check_rate(LinkDirection::To(endpoints[0].at))?;
    check_rate(LinkDirection::From(endpoints[1].at))?;

    let [first, last] = endpoints.map(|host| host.at.dpid);
    let usable = |from: SwitchPort| {
        !excluded.contains(&from.dpid) && check_rate(LinkDirection::From(from)).is_ok()
    };
    let found = match first == last {
        true => vec![Path { from: first, to: last, hops: Vec::new() }],
        false => paths.k_shortest(first, last, ALTERNATIVES, |hop| usable(hop.from)),
    };
    let mut routes = Vec::new();
    for route in found.iter().filter_map(|path| HostRoute::of_path(path, endpoints, network)) {
        if needs_meter {
            route.check_meters()?;
        }
        let lines = route.lines().map(check_rate).collect::<Result<Vec<_>, _>>()?;
        routes.push((route, lines));
    }
    routes.retain(|(route, _)| !route.switches().any(|dpid| excluded.contains(&dpid)));
    if routes.is_empty() {
        // Decides whether the rate is too high or there is no path at all.
        let any = paths.k_shortest(first, last, 1, |_| true);
        for hop in any.iter().flat_map(|path| &path.hops) {
            check_rate(LinkDirection::From(hop.from))?;
        }
        return Err(NotReserved::NoPath { from, to });
    }
    Ok(routes)
}
