//! The route of a circuit: the places of its ends, the links of its path or tree, and the detours.
//!
//! A route is chosen in the present network, by the controller that decides. All flows follow from
//! it and from the circuit's numbers ([`layout`](super::layout)), without a look at the network. So
//! every controller that knows the route wants the same flows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bellrock_api::openflow::Versions;
use bellrock_api::{Dpid, Hosts, MacAddr, Network, Port, SwitchPort, Topology, Version};
use bellrock_services::paths::{Hop, Path, Paths};

use super::circuit::{Circuit, Endpoint};
use super::endpoint_hosts::EndpointHosts;

/// Maximum number of links of a circuit's path.
pub const MAX_LINKS: usize = 64;

/// Reason why a circuit cannot be laid now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotLaid {
    #[error("host {0} has not been seen")]
    NoHost(MacAddr),
    #[error("host {0} is in several VLANs; name its port and VLAN instead")]
    SeveralHosts(MacAddr),
    #[error("switch {0} is not up")]
    NoSwitch(Dpid),
    #[error("port {0} is not up")]
    NoPort(SwitchPort),
    #[error("port {0} leads to another switch; an endpoint must be a host port")]
    Inside(SwitchPort),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Endpoints(Vec<NotLaid>),
    #[error("two of its endpoints are the same: {0}")]
    Same(SwitchPort),
    #[error("no path leads from switch {0} to switch {1}")]
    NoPath(Dpid, Dpid),
    #[error("the path from switch {0} to switch {1} has more than {MAX_LINKS} links")]
    TooLong(Dpid, Dpid),
}

/// The state of the network.
pub(super) struct NetworkView<'n> {
    pub(super) network: &'n Network,
    pub(super) topology: &'n Topology,
    pub(super) hosts: &'n Hosts,
    /// Last places of silent hosts.
    pub(super) places: &'n EndpointHosts,
    pub(super) paths: &'n Paths,
    /// Whether a link that is not there now counts as lost.
    pub(super) is_lost: &'n dyn Fn(Hop) -> bool,
}

impl NetworkView<'_> {
    /// The version of a switch, also of one that is up at another node of the cluster.
    fn version(&self, dpid: Dpid) -> Option<Version> {
        self.network.reachable(dpid).map(|info| info.version)
    }
}

/// The place of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndpointPlace {
    pub(super) at: SwitchPort,
    pub(super) vlan: Option<u16>,
    pub(super) host: Option<MacAddr>,
    /// Whether its switch sets a tag on untagged frames by a push, as from OpenFlow 1.1 on.
    pub(super) pushes_tags: bool,
}

/// A link of a path, and the way around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GuardedHop {
    pub(super) hop: Hop,
    pub(super) detour: Option<Detour>,
}

/// The way around a link, from the switch before it to the end of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Detour {
    pub(super) tag: u16,
    /// At least one.
    pub(super) hops: Vec<Hop>,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CircuitRoute {
    /// The places of the endpoints, in their order.
    pub(super) places: Vec<EndpointPlace>,
    /// Between two endpoints: the path from the first to the second, and back. Between several: the
    /// path from the first one to each of them, without detours.
    pub(super) paths: Vec<Vec<GuardedHop>>,
}

/// How good a route is: the smaller, the better. Links of its paths, links without detour, and
/// links of detours.
pub(super) type RouteCost = (usize, usize, usize);

impl CircuitRoute {
    /// Chooses a route in the present network. The first of these tags is that of its path, and the
    /// others are for detours.
    pub(super) fn choose(
        circuit: &Circuit,
        tags: Range<u16>,
        view: &NetworkView<'_>,
    ) -> Result<Self, NotLaid> {
        let places = places(circuit, view)?;
        for (index, one) in places.iter().enumerate() {
            let is_same = |other: &&EndpointPlace| {
                (other.at, other.vlan, other.host) == (one.at, one.vlan, one.host)
            };
            if places.iter().skip(index + 1).any(|other| is_same(&other)) {
                return Err(NotLaid::Same(one.at));
            }
        }
        let mut choosing = Choosing { view, tags, detours: BTreeMap::new() };
        let paths = match places[..] {
            [one, other] => {
                vec![choosing.guarded_path(one, other, 1)?, choosing.guarded_path(other, one, 0)?]
            }
            _ => choosing.tree(&places)?,
        };
        Ok(CircuitRoute { places, paths })
    }

    /// Whether it still carries frames, and its detours would.
    pub(super) fn is_intact(&self, view: &NetworkView<'_>) -> bool {
        let has_groups = |dpid| view.version(dpid).is_none_or(Version::has_groups);
        self.hops().all(|hop| view.paths.has_hop(hop) || !(view.is_lost)(hop))
            && self.guarded().all(|link| link.detour.is_none() || has_groups(link.hop.from.dpid))
    }

    pub(super) fn cost(&self) -> RouteCost {
        // Paths of a tree share links.
        let links: BTreeSet<Hop> = self.guarded().map(|link| link.hop).collect();
        let (mut bare, mut around) = (0, 0);
        for link in self.guarded() {
            match &link.detour {
                Some(detour) => around += detour.hops.len(),
                None => bare += 1,
            }
        }
        (links.len(), bare, around)
    }

    /// All links that it uses.
    pub(super) fn hops(&self) -> impl Iterator<Item = Hop> + '_ {
        self.guarded().flat_map(|link| {
            let around = link.detour.iter().flat_map(|detour| detour.hops.iter().copied());
            std::iter::once(link.hop).chain(around)
        })
    }

    fn guarded(&self) -> impl Iterator<Item = &GuardedHop> {
        self.paths.iter().flatten()
    }
}

/// The places of all endpoints, or all problems of endpoints without a place.
fn places(circuit: &Circuit, view: &NetworkView<'_>) -> Result<Vec<EndpointPlace>, NotLaid> {
    let (mut places, mut problems) = (Vec::new(), Vec::new());
    for endpoint in &circuit.endpoints {
        match place(*endpoint, view) {
            Ok(place) => places.push(place),
            // A disconnected switch is reported once, even if several of its ports are endpoints.
            Err(why) if problems.contains(&why) => {}
            Err(why) => problems.push(why),
        }
    }
    if problems.is_empty() { Ok(places) } else { Err(NotLaid::Endpoints(problems)) }
}

fn place(endpoint: Endpoint, view: &NetworkView<'_>) -> Result<EndpointPlace, NotLaid> {
    let (at, vlan, host) = match endpoint {
        Endpoint::Port(at, vlan) => (at, vlan, None),
        Endpoint::Host(mac) => {
            if view.hosts.of_mac(mac).nth(1).is_some() {
                return Err(NotLaid::SeveralHosts(mac));
            }
            let (at, vlan) = view.places.last_position(mac).ok_or(NotLaid::NoHost(mac))?;
            (at, vlan, Some(mac))
        }
    };
    let version = view.version(at.dpid).ok_or(NotLaid::NoSwitch(at.dpid))?;
    match () {
        () if view.topology.link(at).is_some() => Err(NotLaid::Inside(at)),
        () if !view.topology.is_up(at) => Err(NotLaid::NoPort(at)),
        () => Ok(EndpointPlace { at, vlan, host, pushes_tags: version.pushes_vlan_tags() }),
    }
}

/// What a switch of a detour does with frames: it sends them on by this port, or to the endpoint of
/// this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DetourStep {
    Forward(Port),
    Leave(usize),
}

struct Choosing<'l, 'n> {
    view: &'l NetworkView<'n>,
    tags: Range<u16>,
    /// What detours do, for each tag and ingress port.
    detours: BTreeMap<(u16, SwitchPort), DetourStep>,
}

impl Choosing<'_, '_> {
    /// The path of one direction, with a detour around each link where there is one. `to_index`:
    /// the index of the endpoint `to`.
    fn guarded_path(
        &mut self,
        from: EndpointPlace,
        to: EndpointPlace,
        to_index: usize,
    ) -> Result<Vec<GuardedHop>, NotLaid> {
        let path = self.path(from.at.dpid, to.at.dpid, |_| true)?;
        let guarded = |hop: Hop| {
            let version = self.view.version(hop.from.dpid);
            let has_groups = version.unwrap_or(Versions::ALL.lowest()).has_groups();
            let detour = if has_groups { self.detour(hop.from, to, to_index) } else { None };
            GuardedHop { hop, detour }
        };
        Ok(path.hops.into_iter().map(guarded).collect())
    }

    /// Chooses a way around a link to the end, and its tag. `None` if there is no way, or no tag
    /// left.
    fn detour(
        &mut self,
        avoided: SwitchPort,
        to: EndpointPlace,
        to_index: usize,
    ) -> Option<Detour> {
        let other_end = self.view.paths.hop_at(avoided)?.to;
        let usable = |from: SwitchPort| from != avoided && from != other_end;
        let hops = self.path(avoided.dpid, to.at.dpid, usable).ok()?.hops;
        let next = hops.iter().skip(1).map(|next| DetourStep::Forward(next.from.port));
        let next = next.chain([DetourStep::Leave(to_index)]);
        let steps: Vec<_> = hops.iter().map(|hop| hop.to).zip(next).collect();
        let mut tags = self.tags.clone().skip(1);
        let agrees = |tag: &u16| {
            steps.iter().all(|(at, step)| {
                self.detours.get(&(*tag, *at)).is_none_or(|present| present == step)
            })
        };
        let tag = tags.find(agrees)?;
        self.detours.extend(steps.into_iter().map(|(at, step)| ((tag, at), step)));
        (!hops.is_empty()).then_some(Detour { tag, hops })
    }

    /// The paths of a tree.
    fn tree(&self, places: &[EndpointPlace]) -> Result<Vec<Vec<GuardedHop>>, NotLaid> {
        let Some(root) = places.first().map(|place| place.at.dpid) else { return Ok(Vec::new()) };
        let bare = |hop| GuardedHop { hop, detour: None };
        let path = |place: &EndpointPlace| -> Result<Vec<GuardedHop>, NotLaid> {
            let path = self.path(root, place.at.dpid, |_| true)?;
            Ok(path.hops.into_iter().map(bare).collect())
        };
        places.iter().map(path).collect()
    }

    fn path(
        &self,
        from: Dpid,
        to: Dpid,
        usable: impl Fn(SwitchPort) -> bool,
    ) -> Result<Path, NotLaid> {
        if from == to {
            return Ok(Path { from, to, hops: Vec::new() });
        }
        let path = self.view.paths.shortest(from, to, |hop| usable(hop.from));
        let path = path.ok_or(NotLaid::NoPath(from, to))?;
        if path.hops.len() > MAX_LINKS { Err(NotLaid::TooLong(from, to)) } else { Ok(path) }
    }
}
