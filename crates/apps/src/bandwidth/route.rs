//! The way of a reservation from host to host, and what its lines carry.

use std::time::Duration;

use bellrock_api::{
    Action, Dpid, Flow, Host, HostId, Match, Network, Port, SwitchPort, Switches, Version,
};
use bellrock_services::paths::{Path, Paths};

use super::{BandwidthSettings, Kbps, Line, NotReserved};

/// What a route makes of one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) dpid: Dpid,
    version: Version,
    /// When the switch came up. If it has come up again since, its flows are gone.
    up_since: Duration,
    in_port: Port,
    out_port: Port,
}

/// A way from a host to another, switch by switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    from: HostId,
    to: HostId,
    pub(super) steps: Vec<Step>,
}

impl Route {
    /// The route over a path between the switches of two hosts. `None` if one of them went down just now.
    pub(super) fn over(path: &Path, [from, to]: [&Host; 2], switches: &Switches) -> Option<Self> {
        let ins = path.hops.iter().map(|hop| hop.to.port);
        let outs = path.hops.iter().map(|hop| hop.from.port);
        let (ins, outs) =
            (std::iter::once(from.at.port).chain(ins), outs.chain(std::iter::once(to.at.port)));
        let steps = path.switches().zip(ins.zip(outs)).map(|(dpid, (in_port, out_port))| {
            let info = switches.get(dpid)?;
            let (version, up_since) = (info.version, info.since);
            Some(Step { dpid, version, up_since, in_port, out_port })
        });
        Some(Route { from: from.id, to: to.id, steps: steps.collect::<Option<_>>()? })
    }

    /// The lines that it takes, that of the sending host included.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> {
        let outs =
            self.steps.iter().map(|step| Line::From(SwitchPort::new(step.dpid, step.out_port)));
        let first =
            self.steps.first().map(|step| Line::To(SwitchPort::new(step.dpid, step.in_port)));
        first.into_iter().chain(outs)
    }

    /// The ports that it leaves switches by.
    pub(super) fn ports(&self) -> impl Iterator<Item = SwitchPort> {
        self.steps.iter().map(|step| SwitchPort::new(step.dpid, step.out_port))
    }

    /// Whether it is still one, and its flows can be there: the hosts are where they were, the lines are up,
    /// and no switch has come up again.
    pub(super) fn is_intact(&self, network: &Network, paths: &Paths) -> bool {
        let (switches, hosts) = (network.switches(), network.hosts().load());
        let joined = |pair: &[Step]| {
            let [step, next] = pair else { return false };
            let hop = paths.hop_at(SwitchPort::new(step.dpid, step.out_port));
            hop.is_some_and(|hop| hop.to == SwitchPort::new(next.dpid, next.in_port))
        };
        let at = |id: HostId| hosts.get(id.mac, id.vlan).map(|host| host.at);
        let first = self.steps.first().map(|step| SwitchPort::new(step.dpid, step.in_port));
        let last = self.steps.last().map(|step| SwitchPort::new(step.dpid, step.out_port));
        self.steps.iter().all(|step| step.is_up(&switches))
            && self.steps.windows(2).all(joined)
            && (at(self.from), at(self.to)) == (first, last)
    }

    /// Its flows, from the last switch to the first: who sends by a new one finds all that follow it.
    pub(super) fn flows(&self, id: u32, queue: Option<u32>) -> Vec<(Dpid, Flow)> {
        let flow = |(index, step): (usize, &Step)| {
            let matching =
                Match::any().in_port(step.in_port).eth_src(self.from.mac).eth_dst(self.to.mac);
            let matching = match self.from.vlan {
                Some(vlan) => matching.vlan_id(vlan),
                None => matching.untagged(),
            };
            let flow = Flow::new(matching).number(id);
            let flow = match (queue, step.version) {
                // The rate is kept where the packets come in.
                (None, _) if index == 0 => flow.meter(id).output(step.out_port),
                (None, _) => flow.output(step.out_port),
                (Some(queue), Version::V1_0) => {
                    flow.actions(&[Action::Enqueue { port: step.out_port, queue }])
                }
                (Some(queue), Version::V1_3) => {
                    flow.actions(&[Action::SetQueue(queue), Action::output(step.out_port)])
                }
            };
            (step.dpid, flow)
        };
        self.steps.iter().enumerate().rev().map(flow).collect()
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
    /// Whether the switch has not gone since, and its flows with it.
    pub(super) fn is_up(&self, switches: &Switches) -> bool {
        switches.get(self.dpid).is_some_and(|info| info.since == self.up_since)
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
