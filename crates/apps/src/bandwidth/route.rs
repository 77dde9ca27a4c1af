//! The way of a reservation from host to host, and what its lines carry.

use std::time::Duration;

use bellrock_api::{
    Action, Dpid, Flow, Host, HostId, Match, MeterEntry, Network, Port, SwitchPort, Switches,
    Version,
};
use bellrock_services::desired::Wanted;
use bellrock_services::paths::{Path, Paths, paths};

use super::{BandwidthSettings, Kbps, Line, NotReserved};

/// How long the links of a switch that has come up may take to be found: two rounds of discovery.
pub const LINKS_WITHIN: Duration = Duration::from_secs(10);

/// How a route is in the network as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The hosts are where they were, and the lines between are up.
    Intact,
    /// This switch is not connected: packets may or may not pass it.
    Away(Dpid),
    /// This switch has come up just now, and its ports or its links are not found yet. Until this time they may be.
    New(Dpid, Duration),
    Broken,
}

/// What a route makes of one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    dpid: Dpid,
    version: Version,
    in_port: Port,
    out_port: Port,
}

/// A way from a host to another, switch by switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    from: HostId,
    to: HostId,
    steps: Vec<Step>,
}

impl Route {
    /// The route over a path between the switches of two hosts. `None` if one of them went down just now.
    pub(super) fn over(path: &Path, [from, to]: [&Host; 2], switches: &Switches) -> Option<Self> {
        let ins = path.hops.iter().map(|hop| hop.to.port);
        let outs = path.hops.iter().map(|hop| hop.from.port);
        let (ins, outs) =
            (std::iter::once(from.at.port).chain(ins), outs.chain(std::iter::once(to.at.port)));
        let steps = path.switches().zip(ins.zip(outs)).map(|(dpid, (in_port, out_port))| {
            Some(Step { dpid, version: switches.get(dpid)?.version, in_port, out_port })
        });
        Some(Route { from: from.id, to: to.id, steps: steps.collect::<Option<_>>()? })
    }

    /// The lines that it takes, that of the sending host included.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> {
        let outs = self.ports().map(Line::From);
        let first = self.steps.first().map(|step| Line::To(step.from()));
        first.into_iter().chain(outs)
    }

    /// The ports that it leaves switches by.
    pub(super) fn ports(&self) -> impl Iterator<Item = SwitchPort> {
        self.steps.iter().map(Step::to)
    }

    /// The switches that it passes.
    pub(super) fn switches(&self) -> impl Iterator<Item = Dpid> {
        self.steps.iter().map(|step| step.dpid)
    }

    /// Whether packets still get through by it.
    pub(super) fn standing(&self, network: &Network) -> Standing {
        let (switches, hosts) = (network.switches(), network.hosts().load());
        let (topology, paths) = (network.topology().load(), paths(network).load());
        let at = |id: HostId| hosts.get(id.mac, id.vlan).map(|host| host.at);
        let first = self.steps.first().map(Step::from);
        let last = self.steps.last().map(Step::to);
        let speaks = |step: &Step| {
            let info = switches.get(step.dpid);
            info.is_none_or(|info| info.version == step.version)
        };
        if (at(self.from), at(self.to)) != (first, last) || !self.steps.iter().all(speaks) {
            return Standing::Broken;
        }
        // A switch that is not up has neither ports nor links in the topology, and one that has come up just now
        // has them a little later.
        let is_down = |step: &&Step| !topology.is_up(step.from()) || !topology.is_up(step.to());
        let is_parted = |pair: &&[Step]| {
            let [step, next] = pair else { return false };
            paths.hop_at(step.to()).is_none_or(|hop| hop.to != next.from())
        };
        let down: Vec<Dpid> = self.steps.iter().filter(is_down).map(|step| step.dpid).collect();
        let parted = self.steps.windows(2).filter(is_parted).flatten().map(|step| step.dpid);
        let since = |dpid: Dpid| switches.get(dpid).map(|info| info.since + LINKS_WITHIN);
        let is_new = |dpid: &Dpid| since(*dpid).is_some_and(|until| network.now() < until);
        let away = self.switches().find(|dpid| switches.get(*dpid).is_none());
        // A port that is down at a switch that has been up for long is no doubt.
        let is_certain = |dpid: &&Dpid| switches.get(**dpid).is_some() && !is_new(dpid);
        if down.iter().any(|dpid| is_certain(&dpid)) {
            return Standing::Broken;
        }
        let doubtful: Vec<Dpid> = down.iter().copied().chain(parted).collect();
        match (away, doubtful.iter().copied().find(is_new)) {
            (Some(away), _) => Standing::Away(away),
            (None, Some(new)) => Standing::New(new, since(new).unwrap_or_default()),
            (None, None) if doubtful.is_empty() => Standing::Intact,
            (None, None) => Standing::Broken,
        }
    }

    /// What it needs in the switches, from the last to the first: who sends by a new flow finds all that follow it.
    /// Without a queue the rate is kept where packets come in, by a meter with this number.
    pub(super) fn entries(
        &self,
        meter: u32,
        rate: Kbps,
        queue: Option<u32>,
    ) -> Vec<(Dpid, Wanted)> {
        // Rates have been read as 32 bits.
        let kbps = u32::try_from(rate.0).unwrap_or(u32::MAX);
        let limit = MeterEntry::drop_above_kbps(meter, kbps);
        let first = self.steps.first().filter(|_| queue.is_none());
        let meters = first.map(|step| (step.dpid, limit.into()));
        let flow = |(index, step): (usize, &Step)| {
            let matching =
                Match::any().in_port(step.in_port).eth_src(self.from.mac).eth_dst(self.to.mac);
            let flow = Flow::new(match self.from.vlan {
                Some(vlan) => matching.vlan_id(vlan),
                None => matching.untagged(),
            });
            let flow = match (queue, step.version) {
                (None, _) if index == 0 => flow.meter(meter).output(step.out_port),
                (None, _) => flow.output(step.out_port),
                (Some(queue), Version::V1_0) => {
                    flow.actions(&[Action::Enqueue { port: step.out_port, queue }])
                }
                (Some(queue), Version::V1_3) => {
                    flow.actions(&[Action::SetQueue(queue), Action::output(step.out_port)])
                }
            };
            (step.dpid, flow.into())
        };
        self.steps.iter().enumerate().rev().map(flow).chain(meters).collect()
    }

    /// Whether the switch where packets come in has meters.
    pub(super) fn check_meters(&self) -> Result<(), NotReserved> {
        match self.steps.first() {
            Some(step) if step.version == Version::V1_0 => Err(NotReserved::NoMeters(step.dpid)),
            _ => Ok(()),
        }
    }
}

impl Step {
    /// The port by which packets come in.
    fn from(&self) -> SwitchPort {
        SwitchPort::new(self.dpid, self.in_port)
    }

    /// The port by which they leave.
    fn to(&self) -> SwitchPort {
        SwitchPort::new(self.dpid, self.out_port)
    }
}

/// What a line carries, in kbit/s: as it is set for a port at one of its ends, or for all lines, or else as its
/// port says.
pub(super) fn carries(
    line: Line,
    settings: &BandwidthSettings,
    switches: &Switches,
    paths: &Paths,
) -> Result<u64, NotReserved> {
    let (Line::From(at) | Line::To(at)) = line;
    let ends = [Some(at), paths.hop_at(at).map(|hop| hop.to)];
    let set = ends.iter().flatten().filter_map(|end| settings.lines.get(end)).min();
    if let Some(&Kbps(set)) = set.or(settings.rate.as_ref()) {
        return Ok(set);
    }
    let said = switches.get(at.dpid).and_then(|info| info.port(at.port));
    said.and_then(|port| port.rate_kbps()).ok_or(NotReserved::NoRate(line))
}
