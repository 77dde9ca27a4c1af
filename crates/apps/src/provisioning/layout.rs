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

/// Numbers of VLANs that a circuit can have. The first is the default.
pub const VLANS_PER_CIRCUIT: [u16; 3] = [8, 4, 2];

/// Generations of a circuit of two endpoints. The VLANs of each are one for its path, and the
/// others for detours.
const PATH_GENERATIONS: u16 = 2;

/// Maximum number of links of a circuit's path.
pub const MAX_LINKS: usize = 64;

/// The first number of the app's groups.
pub(crate) const FIRST_GROUP: u32 = 0x0c00_0000;

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
    /// Output ports of the path from the first endpoint to the second, or of the tree's links.
    pub(super) path: Vec<SwitchPort>,
    /// Links without a detour, by direction.
    pub(super) unprotected: Vec<SwitchPort>,
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

/// Number of generations of a circuit with these VLANs that can be in the switches at a time.
pub(super) fn generations(circuit: &Circuit, vlans: &Range<u16>) -> u16 {
    match circuit.endpoints.len() {
        2 => PATH_GENERATIONS,
        _ => vlans.end.saturating_sub(vlans.start),
    }
}

/// Numbers reserved for a circuit.
#[derive(Clone, Debug)]
pub(super) struct CircuitNumbers {
    /// Its number, from 0.
    pub(super) number: u32,
    /// Its VLANs.
    pub(super) vlans: Range<u16>,
    /// The generation to lay, from 0; see [`generations`].
    pub(super) generation: u16,
}

/// Computes the layout of a circuit.
pub(super) fn compute_layout(
    circuit: &Circuit,
    numbers: CircuitNumbers,
    view: &NetworkView<'_>,
) -> Result<CircuitLayout, NotLaid> {
    let places = places(circuit, view)?;
    for (index, one) in places.iter().enumerate() {
        let is_same = |other: &&EndpointPlace| {
            (other.at, other.vlan, other.host) == (one.at, one.vlan, one.host)
        };
        if places.iter().skip(index + 1).any(|other| is_same(&other)) {
            return Err(NotLaid::Same(one.at));
        }
    }
    let count = (numbers.vlans.end - numbers.vlans.start) / generations(circuit, &numbers.vlans);
    let first = numbers.vlans.start + numbers.generation * count;
    let tags = first..first + count;
    let mut builder = Laying {
        view,
        numbers,
        tags,
        layout: CircuitLayout::default(),
        tagged_switches: BTreeSet::new(),
        detours: BTreeMap::new(),
    };
    match places[..] {
        [one, other] => {
            builder.add_path(one, other, 0)?;
            builder.add_path(other, one, 1)?;
        }
        _ => builder.add_tree(&places)?,
    }
    builder.add_drops();
    Ok(builder.layout)
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
    let place = match endpoint {
        Endpoint::Port(at, vlan) => EndpointPlace { at, vlan, host: None },
        Endpoint::Host(mac) => {
            if view.hosts.of_mac(mac).nth(1).is_some() {
                return Err(NotLaid::SeveralHosts(mac));
            }
            let (at, vlan) = view.places.last_position(mac).ok_or(NotLaid::NoHost(mac))?;
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
    fn ingress_actions(&self, version: Version, tag: u16) -> Vec<Action<'static>> {
        let push = (self.vlan.is_none() && version.pushes_vlan_tags())
            .then_some(Action::PushVlan(VLAN_TAG));
        push.into_iter().chain([set_vlan(tag)]).collect()
    }

    /// Restores the endpoint's tag, and sends the frame out.
    fn egress_actions(&self, in_port: Port) -> [Action<'static>; 2] {
        let tag = match self.vlan {
            Some(vlan) => set_vlan(vlan),
            None => Action::PopVlan,
        };
        [tag, Action::output(output_port(self.at.port, in_port))]
    }
}

fn set_vlan(vlan: u16) -> Action<'static> {
    Action::SetField(Field::VlanVid, (Match::VLAN_PRESENT | vlan).into())
}

/// A switch sends a frame back by its ingress port only to the port `IN_PORT`.
fn output_port(port: Port, in_port: Port) -> Port {
    if port == in_port { Port::IN_PORT } else { port }
}

struct Laying<'l, 'n> {
    view: &'l NetworkView<'n>,
    numbers: CircuitNumbers,
    /// Tags of this generation. The first is that of the path.
    tags: Range<u16>,
    layout: CircuitLayout,
    /// Switches that send or receive frames with a tag.
    tagged_switches: BTreeSet<(Dpid, u16)>,
    /// Actions of detours for each tag and ingress port.
    detours: BTreeMap<(u16, SwitchPort), Vec<Action<'static>>>,
}

impl Laying<'_, '_> {
    /// Lays one direction of a circuit of two endpoints.
    fn add_path(
        &mut self,
        from: EndpointPlace,
        to: EndpointPlace,
        direction: u32,
    ) -> Result<(), NotLaid> {
        let path = self.path(from.at.dpid, to.at.dpid, |_| true)?;
        let length = path.hops.len() as u32;
        if direction == 0 {
            self.layout.path.extend(path.hops.iter().map(|hop| hop.from));
        }
        let mut ingress_port = from.at;
        for (index, hop) in (0..).zip(&path.hops) {
            let action = self.link_action(ingress_port, hop.from, to, self.group(direction, index));
            let order = AFTER_DETOURS + length - index;
            match index {
                0 => {
                    let mut actions =
                        from.ingress_actions(self.version(ingress_port.dpid), self.tags.start);
                    actions.push(action);
                    self.add_ingress(order, from, to.host, &actions);
                }
                _ => self.add_transit(order, ingress_port, self.tags.start, &[action]),
            }
            self.tagged_switches.insert((ingress_port.dpid, self.tags.start));
            ingress_port = hop.to;
        }
        let egress = to.egress_actions(ingress_port.port);
        match path.hops.is_empty() {
            true => {
                let mut actions =
                    from.ingress_actions(self.version(ingress_port.dpid), self.tags.start);
                actions.extend(egress);
                self.add_ingress(AFTER_DETOURS, from, to.host, &actions);
            }
            false => self.add_transit(AFTER_DETOURS, ingress_port, self.tags.start, &egress),
        }
        Ok(())
    }

    /// Returns the action that sends frames over the next link, or around it by `group`.
    fn link_action(
        &mut self,
        ingress_port: SwitchPort,
        link_port: SwitchPort,
        to: EndpointPlace,
        group: u32,
    ) -> Action<'static> {
        let direct_port = output_port(link_port.port, ingress_port.port);
        let detour = match self.version(ingress_port.dpid).has_groups() {
            true => self.add_detour(ingress_port, link_port, to),
            false => None,
        };
        let Some((tag, port)) = detour else {
            self.layout.unprotected.push(link_port);
            return Action::output(direct_port);
        };
        let detour_port = output_port(port, ingress_port.port);
        let buckets = GroupEntry::new(group, GroupType::FastFailover)
            .bucket(BucketEntry::of(&[Action::output(direct_port)]).watch_port(link_port.port))
            .bucket(
                BucketEntry::of(&[set_vlan(tag), Action::output(detour_port)]).watch_port(port),
            );
        self.layout.entries.push((0, ingress_port.dpid, DesiredEntry::Group(buckets)));
        Action::Group(group)
    }

    /// Lays a detour around a link to the end, for frames from an ingress port of the switch before
    /// it. Returns its tag and first port. `None` if there is no path, or no tag left.
    fn add_detour(
        &mut self,
        ingress_port: SwitchPort,
        avoided: SwitchPort,
        to: EndpointPlace,
    ) -> Option<(u16, Port)> {
        let other_end = self.view.paths.hop_at(avoided)?.to;
        let usable = |from: SwitchPort| from != avoided && from != other_end;
        let path = self.path(ingress_port.dpid, to.at.dpid, usable).ok()?;
        let first = path.hops.first()?;
        let mut steps = Vec::new();
        for pair in path.hops.windows(2) {
            let [hop, next] = pair else { continue };
            let port = output_port(next.from.port, hop.to.port);
            steps.push((hop.to, vec![Action::output(port)]));
        }
        let last = path.hops.last()?.to;
        steps.push((last, to.egress_actions(last.port).to_vec()));
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
                self.add_transit(length - index, at, tag, &actions);
            }
        }
        self.tagged_switches.insert((ingress_port.dpid, tag));
        Some((tag, first.from.port))
    }

    /// Lays a circuit of several endpoints: a frame from one goes to all others, along a tree.
    fn add_tree(&mut self, places: &[EndpointPlace]) -> Result<(), NotLaid> {
        let Some(root) = places.first().map(|place| place.at.dpid) else { return Ok(()) };
        // Ports of the tree, by switch.
        let mut ports: BTreeMap<Dpid, BTreeSet<Port>> = BTreeMap::new();
        for place in places {
            let path = self.path(root, place.at.dpid, |_| true)?;
            ports.entry(place.at.dpid).or_default();
            for hop in &path.hops {
                ports.entry(hop.from.dpid).or_default().insert(hop.from.port);
                ports.entry(hop.to.dpid).or_default().insert(hop.to.port);
                self.layout.path.push(hop.from);
                self.layout.unprotected.push(hop.from);
            }
        }
        let outputs = |dpid: Dpid, in_port: Port, except: Option<EndpointPlace>| {
            let tree = ports.get(&dpid).into_iter().flatten().filter(|port| **port != in_port);
            let mut actions: Vec<_> = tree.map(|port| Action::output(*port)).collect();
            // Tagged endpoints first: a tag cannot be set after it was removed.
            let mut local: Vec<_> = places
                .iter()
                .filter(|place| place.at.dpid == dpid && Some(**place) != except)
                .collect();
            local.sort_by_key(|place| (place.vlan.is_none(), place.at, place.vlan));
            let mut is_untagged = false;
            for place in local {
                let [tag, output] = place.egress_actions(in_port);
                if !(is_untagged && tag == Action::PopVlan) {
                    actions.push(tag);
                }
                is_untagged |= tag == Action::PopVlan;
                actions.push(output);
            }
            actions
        };
        // Inner flows first: frames from an endpoint then find all of them.
        for (dpid, tree) in &ports {
            for port in tree {
                let ingress_port = SwitchPort::new(*dpid, *port);
                self.add_transit(0, ingress_port, self.tags.start, &outputs(*dpid, *port, None));
            }
        }
        for place in places {
            let dpid = place.at.dpid;
            let mut actions = place.ingress_actions(self.version(dpid), self.tags.start);
            actions.extend(outputs(dpid, place.at.port, Some(*place)));
            self.add_ingress(1, *place, None, &actions);
        }
        Ok(())
    }

    /// The number of the group before a link of the path. Each generation has its own.
    fn group(&self, direction: u32, link: u32) -> u32 {
        let CircuitNumbers { number, generation, .. } = self.numbers;
        FIRST_GROUP | number << 8 | direction << 7 | u32::from(generation) << 6 | link
    }

    /// Adds the flow for frames of this circuit from another switch.
    fn add_transit(
        &mut self,
        order: u32,
        ingress_port: SwitchPort,
        tag: u16,
        actions: &[Action<'static>],
    ) {
        self.tagged_switches.insert((ingress_port.dpid, tag));
        let matching = Match::any().in_port(ingress_port.port).vlan_id(tag);
        self.add_entry(order, ingress_port.dpid, Flow::new(matching).actions(actions));
    }

    /// Drops frames with the circuit's tags from other ports, at the switches that use the tags.
    fn add_drops(&mut self) {
        for (dpid, tag) in std::mem::take(&mut self.tagged_switches) {
            let flow = Flow::new(Match::any().vlan_id(tag)).priority(FENCE_PRIORITY);
            self.add_entry(0, dpid, flow);
        }
    }

    /// Adds the flow of an endpoint.
    fn add_ingress(
        &mut self,
        order: u32,
        from: EndpointPlace,
        to: Option<MacAddr>,
        actions: &[Action<'static>],
    ) {
        let priority = from.host.map_or(PriorityBand::MIDDLE, |_| HOST_PRIORITY);
        let flow = Flow::new(from.matching(to)).priority(priority).actions(actions);
        self.add_entry(order, from.at.dpid, flow);
    }

    fn add_entry(&mut self, order: u32, dpid: Dpid, flow: Flow) {
        self.layout.entries.push((order, dpid, DesiredEntry::Flow(flow)));
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
