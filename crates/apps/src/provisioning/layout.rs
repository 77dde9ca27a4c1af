//! The flows and groups of a circuit in the present network.
//!
//! Between switches the frames of a circuit carry a VLAN tag of the circuit; at the output port the
//! tag becomes that of the endpoint. A circuit of two endpoints has a detour around each link of
//! its path. When a link is down, a fast-failover group (1.3.5 §5.6.1) at the switch before it
//! sends frames to the detour, with another tag, so that switches on both ways distinguish the two.
//!
//! Each new layout of a circuit gets tags and groups that the previous one does not use: its
//! *generation*. So no flow changes while frames use it. The new flows are installed beside the old
//! ones. When all are confirmed, the flows of the endpoints are changed, each atomically.
//!
//! Where a tag is used, frames with it from other ports are dropped: no other traffic can enter.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bellrock_api::openflow::{GroupType, Versions};
use bellrock_api::{
    Action, BucketEntry, Dpid, Field, Flow, GroupEntry, Hosts, MacAddr, Match, Port, PriorityBand,
    SwitchPort, Switches, Topology, Version,
};
use bellrock_services::desired::DesiredEntry;
use bellrock_services::paths::{Path, Paths};

use super::circuit::{Circuit, Endpoint};
use super::endpoint_hosts::EndpointHosts;

/// Number of VLANs of each circuit.
pub const VLANS_PER_CIRCUIT: u16 = 8;

/// VLANs of each generation of a circuit of two endpoints: one for its path, others for detours.
const VLANS_PER_PATH: u16 = 4;

/// Maximum number of links of a circuit's path.
pub const MAX_LINKS: usize = 64;

/// The first number of the app's groups.
const FIRST_GROUP: u32 = 0x0c00_0000;

/// Priority of an endpoint that is a host. Another circuit may use the host's present port.
const HOST_PRIORITY: u16 = PriorityBand::MIDDLE + 1;

/// Priority of a drop of frames with a circuit's tag from elsewhere.
const FENCE_PRIORITY: u16 = PriorityBand::MIDDLE - 1;

/// The Ethernet type of a VLAN tag.
const VLAN_TAG: u16 = 0x8100;

/// Position behind all flows of detours in the order of changes.
const AFTER_DETOURS: u32 = MAX_LINKS as u32 * 2;

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

/// The entries of a circuit in the present network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CircuitLayout {
    /// Wanted entries, with their position in the order of changes.
    pub(super) entries: Vec<(u32, Dpid, DesiredEntry)>,
    /// Links without a detour, by direction.
    pub(super) bare: Vec<SwitchPort>,
}

/// The state of the network.
pub(super) struct NetworkView<'n> {
    pub(super) topology: &'n Topology,
    pub(super) hosts: &'n Hosts,
    /// Last places of silent hosts.
    pub(super) places: &'n EndpointHosts,
    pub(super) switches: &'n Switches,
    pub(super) paths: &'n Paths,
}

/// The present place of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EndpointPlace {
    at: SwitchPort,
    vlan: Option<u16>,
    host: Option<MacAddr>,
}

/// Number of generations of a circuit that can be in the switches at a time.
pub(super) fn generations(circuit: &Circuit) -> u16 {
    match circuit.endpoints.len() {
        2 => VLANS_PER_CIRCUIT / VLANS_PER_PATH,
        _ => VLANS_PER_CIRCUIT,
    }
}

/// Numbers reserved for a circuit.
#[derive(Clone, Copy, Debug)]
pub(super) struct CircuitNumbers {
    /// Its number, from 0.
    pub(super) number: u32,
    /// The first of its VLANs.
    pub(super) first_vlan: u16,
    /// The generation to lay, from 0; see [`generations`].
    pub(super) generation: u16,
}

/// Computes the layout of a circuit.
pub(super) fn lay(
    circuit: &Circuit,
    own: CircuitNumbers,
    view: &NetworkView<'_>,
) -> Result<CircuitLayout, NotLaid> {
    let places = places(circuit, view)?;
    for (index, one) in places.iter().enumerate() {
        let same = |other: &&EndpointPlace| {
            (other.at, other.vlan, other.host) == (one.at, one.vlan, one.host)
        };
        if places.iter().skip(index + 1).any(|other| same(&other)) {
            return Err(NotLaid::Same(one.at));
        }
    }
    let vlans = VLANS_PER_CIRCUIT / generations(circuit);
    let first = own.first_vlan + own.generation * vlans;
    let tags = first..first + vlans;
    let mut laying = Laying {
        view,
        own,
        tags,
        laid: CircuitLayout::default(),
        tagged: BTreeSet::new(),
        detours: BTreeMap::new(),
    };
    match places[..] {
        [one, other] => {
            laying.way(one, other, 0)?;
            laying.way(other, one, 1)?;
        }
        _ => laying.tree(&places)?,
    }
    laying.fence();
    Ok(laying.laid)
}

/// The places of all endpoints, or all problems of endpoints without a place.
fn places(circuit: &Circuit, view: &NetworkView<'_>) -> Result<Vec<EndpointPlace>, NotLaid> {
    let (mut places, mut wrong) = (Vec::new(), Vec::new());
    for endpoint in &circuit.endpoints {
        match place(*endpoint, view) {
            Ok(place) => places.push(place),
            // A disconnected switch is reported once, even if several of its ports are endpoints.
            Err(why) if wrong.contains(&why) => {}
            Err(why) => wrong.push(why),
        }
    }
    if wrong.is_empty() { Ok(places) } else { Err(NotLaid::Endpoints(wrong)) }
}

fn place(endpoint: Endpoint, view: &NetworkView<'_>) -> Result<EndpointPlace, NotLaid> {
    let place = match endpoint {
        Endpoint::Port(at, vlan) => EndpointPlace { at, vlan, host: None },
        Endpoint::Host(mac) => {
            if view.hosts.of_mac(mac).nth(1).is_some() {
                return Err(NotLaid::SeveralHosts(mac));
            }
            let (at, vlan) = view.places.last(mac).ok_or(NotLaid::NoHost(mac))?;
            EndpointPlace { at, vlan, host: Some(mac) }
        }
    };
    let at = place.at;
    match () {
        () if view.switches.get(at.dpid).is_none() => Err(NotLaid::NoSwitch(at.dpid)),
        () if view.topology.link(at).is_some() => Err(NotLaid::Inside(at)),
        () if !view.topology.is_up(at) => Err(NotLaid::NoPort(at)),
        () => Ok(place),
    }
}

impl EndpointPlace {
    /// Matches the frames that enter here, for these other ends.
    fn matching(&self, to: Option<MacAddr>) -> Match {
        let matching = Match::any().in_port(self.at.port);
        let matching = match self.vlan {
            Some(vlan) => matching.vlan_id(vlan),
            None => matching.untagged(),
        };
        match (self.host, to) {
            (Some(from), Some(to)) => matching.eth_src(from).eth_dst(to),
            (Some(from), None) => matching.eth_src(from),
            (None, _) => matching,
        }
    }

    /// Sets the circuit's tag on frames of the endpoint.
    fn tagged(&self, version: Version, tag: u16) -> Vec<Action<'static>> {
        let push = (self.vlan.is_none() && version.pushes_vlan_tags())
            .then_some(Action::PushVlan(VLAN_TAG));
        push.into_iter().chain([set_vlan(tag)]).collect()
    }

    /// Restores the endpoint's tag, and sends the frame out.
    fn out(&self, in_port: Port) -> [Action<'static>; 2] {
        let own = match self.vlan {
            Some(vlan) => set_vlan(vlan),
            None => Action::PopVlan,
        };
        [own, Action::output(leave(self.at.port, in_port))]
    }
}

fn set_vlan(vlan: u16) -> Action<'static> {
    Action::SetField(Field::VlanVid, (Match::VLAN_PRESENT | vlan).into())
}

/// A switch sends a frame back by its ingress port only to the port `IN_PORT`.
fn leave(port: Port, in_port: Port) -> Port {
    if port == in_port { Port::IN_PORT } else { port }
}

struct Laying<'l, 'n> {
    view: &'l NetworkView<'n>,
    own: CircuitNumbers,
    /// Tags of this generation. The first is that of the path.
    tags: Range<u16>,
    laid: CircuitLayout,
    /// Switches that send or receive frames with a tag.
    tagged: BTreeSet<(Dpid, u16)>,
    /// Actions of detours for each tag and ingress port.
    detours: BTreeMap<(u16, SwitchPort), Vec<Action<'static>>>,
}

impl Laying<'_, '_> {
    /// Lays one direction of a circuit of two endpoints.
    fn way(
        &mut self,
        from: EndpointPlace,
        to: EndpointPlace,
        direction: u32,
    ) -> Result<(), NotLaid> {
        let path = self.path(from.at.dpid, to.at.dpid, |_| true)?;
        let length = path.hops.len() as u32;
        let mut came_in = from.at;
        for (index, hop) in (0..).zip(&path.hops) {
            let on = self.onward(came_in, hop.from, to, self.group(direction, index));
            let order = AFTER_DETOURS + length - index;
            match index {
                0 => {
                    let mut actions = from.tagged(self.version(came_in.dpid), self.tags.start);
                    actions.push(on);
                    self.ingress(order, from, to.host, &actions);
                }
                _ => self.inside(order, came_in, self.tags.start, &[on]),
            }
            self.tagged.insert((came_in.dpid, self.tags.start));
            came_in = hop.to;
        }
        let out = to.out(came_in.port);
        match path.hops.is_empty() {
            true => {
                let mut actions = from.tagged(self.version(came_in.dpid), self.tags.start);
                actions.extend(out);
                self.ingress(AFTER_DETOURS, from, to.host, &actions);
            }
            false => self.inside(AFTER_DETOURS, came_in, self.tags.start, &out),
        }
        Ok(())
    }

    /// Returns the action that sends frames over the next link, or around it by `group`.
    fn onward(
        &mut self,
        came_in: SwitchPort,
        by: SwitchPort,
        to: EndpointPlace,
        group: u32,
    ) -> Action<'static> {
        let out = leave(by.port, came_in.port);
        let detour = match self.version(came_in.dpid).has_groups() {
            true => self.detour(came_in, by, to),
            false => None,
        };
        let Some((tag, port)) = detour else {
            self.laid.bare.push(by);
            return Action::output(out);
        };
        let around = leave(port, came_in.port);
        let buckets = GroupEntry::new(group, GroupType::FastFailover)
            .bucket(BucketEntry::of(&[Action::output(out)]).watch_port(by.port))
            .bucket(BucketEntry::of(&[set_vlan(tag), Action::output(around)]).watch_port(port));
        self.laid.entries.push((0, came_in.dpid, DesiredEntry::Group(buckets)));
        Action::Group(group)
    }

    /// Lays a detour around a link to the end, for frames from an ingress port of the switch before
    /// it. Returns its tag and first port. `None` if there is no way, or no tag left.
    fn detour(
        &mut self,
        came_in: SwitchPort,
        around: SwitchPort,
        to: EndpointPlace,
    ) -> Option<(u16, Port)> {
        let other_end = self.view.paths.hop_at(around)?.to;
        let usable = |from: SwitchPort| from != around && from != other_end;
        let path = self.path(came_in.dpid, to.at.dpid, usable).ok()?;
        let first = path.hops.first()?;
        let mut steps = Vec::new();
        for pair in path.hops.windows(2) {
            let [hop, next] = pair else { continue };
            let out = leave(next.from.port, hop.to.port);
            steps.push((hop.to, vec![Action::output(out)]));
        }
        let last = path.hops.last()?.to;
        steps.push((last, to.out(last.port).to_vec()));
        let mut tags = self.tags.clone().skip(1);
        let agrees = |tag: &u16| {
            steps.iter().all(|(at, actions)| {
                self.detours.get(&(*tag, *at)).is_none_or(|present| present == actions)
            })
        };
        let tag = tags.find(agrees)?;
        let length = steps.len() as u32;
        for (index, (at, actions)) in (1..).zip(steps) {
            if self.detours.insert((tag, at), actions.clone()).is_none() {
                self.inside(length - index, at, tag, &actions);
            }
        }
        self.tagged.insert((came_in.dpid, tag));
        Some((tag, first.from.port))
    }

    /// Lays a circuit of several endpoints: a frame from one goes to all others, along a tree.
    fn tree(&mut self, places: &[EndpointPlace]) -> Result<(), NotLaid> {
        let Some(root) = places.first().map(|place| place.at.dpid) else { return Ok(()) };
        // Ports of the tree, by switch.
        let mut ports: BTreeMap<Dpid, BTreeSet<Port>> = BTreeMap::new();
        for place in places {
            let path = self.path(root, place.at.dpid, |_| true)?;
            ports.entry(place.at.dpid).or_default();
            for hop in &path.hops {
                ports.entry(hop.from.dpid).or_default().insert(hop.from.port);
                ports.entry(hop.to.dpid).or_default().insert(hop.to.port);
                self.laid.bare.push(hop.from);
            }
        }
        let others = |dpid: Dpid, in_port: Port, but: Option<EndpointPlace>| {
            let tree = ports.get(&dpid).into_iter().flatten().filter(|port| **port != in_port);
            let mut actions: Vec<_> = tree.map(|port| Action::output(*port)).collect();
            // Tagged endpoints first: a tag cannot be set after it was removed.
            let mut here: Vec<_> = places
                .iter()
                .filter(|place| place.at.dpid == dpid && Some(**place) != but)
                .collect();
            here.sort_by_key(|place| (place.vlan.is_none(), place.at, place.vlan));
            let mut is_bare = false;
            for place in here {
                let [own, out] = place.out(in_port);
                if !(is_bare && own == Action::PopVlan) {
                    actions.push(own);
                }
                is_bare |= own == Action::PopVlan;
                actions.push(out);
            }
            actions
        };
        // Inner flows first: frames from an endpoint then find all of them.
        for (dpid, tree) in &ports {
            for port in tree {
                let came_in = SwitchPort::new(*dpid, *port);
                self.inside(0, came_in, self.tags.start, &others(*dpid, *port, None));
            }
        }
        for place in places {
            let dpid = place.at.dpid;
            let mut actions = place.tagged(self.version(dpid), self.tags.start);
            actions.extend(others(dpid, place.at.port, Some(*place)));
            self.ingress(1, *place, None, &actions);
        }
        Ok(())
    }

    /// The number of the group before a link of the path. Each generation has its own.
    fn group(&self, direction: u32, link: u32) -> u32 {
        let CircuitNumbers { number, generation, .. } = self.own;
        FIRST_GROUP | number << 8 | direction << 7 | u32::from(generation) << 6 | link
    }

    /// Adds the flow for frames of this circuit from another switch.
    fn inside(&mut self, order: u32, came_in: SwitchPort, tag: u16, actions: &[Action<'static>]) {
        self.tagged.insert((came_in.dpid, tag));
        let matching = Match::any().in_port(came_in.port).vlan_id(tag);
        self.entry(order, came_in.dpid, Flow::new(matching).actions(actions));
    }

    /// Drops frames with the circuit's tags from other ports, at the switches that use the tags.
    fn fence(&mut self) {
        for (dpid, tag) in std::mem::take(&mut self.tagged) {
            let flow = Flow::new(Match::any().vlan_id(tag)).priority(FENCE_PRIORITY);
            self.entry(0, dpid, flow);
        }
    }

    /// Adds the flow of an endpoint.
    fn ingress(
        &mut self,
        order: u32,
        from: EndpointPlace,
        to: Option<MacAddr>,
        actions: &[Action<'static>],
    ) {
        let priority = from.host.map_or(PriorityBand::MIDDLE, |_| HOST_PRIORITY);
        let flow = Flow::new(from.matching(to)).priority(priority).actions(actions);
        self.entry(order, from.at.dpid, flow);
    }

    fn entry(&mut self, order: u32, dpid: Dpid, flow: Flow) {
        self.laid.entries.push((order, dpid, DesiredEntry::Flow(flow)));
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

    fn version(&self, dpid: Dpid) -> Version {
        self.view.switches.get(dpid).map_or(Versions::ALL.lowest(), |info| info.version)
    }
}
