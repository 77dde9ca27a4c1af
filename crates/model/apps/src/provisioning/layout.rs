//! The flows and groups of a circuit: of its route, with its numbers.
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

use bellrock_api::openflow::GroupType;
use bellrock_api::packet::eth_type;
use bellrock_api::{
    Action, BucketEntry, Dpid, Field, Flow, GroupEntry, MacAddr, Match, Port, PriorityBand,
    SwitchPort,
};
use bellrock_services::desired::DesiredEntry;

use super::circuit::Circuit;
use super::route::{CircuitRoute, Detour, EndpointPlace, GuardedHop, MAX_LINKS};

/// Numbers of VLANs that a circuit can have. The first is the default.
pub const VLANS_PER_CIRCUIT: [u16; 3] = [8, 4, 2];

/// Generations of a circuit of two endpoints. The VLANs of each are one for its path, and the
/// others for detours.
const PATH_GENERATIONS: u16 = 2;

/// The first number of the app's groups.
pub(crate) const FIRST_GROUP: u32 = 0x0c00_0000;

/// Priority of an endpoint that is a host. Another circuit may use the host's present port.
const HOST_PRIORITY: u16 = PriorityBand::MIDDLE + 1;

/// Priority of a drop of frames with a circuit's tag from elsewhere.
const FENCE_PRIORITY: u16 = PriorityBand::MIDDLE - 1;

/// Position behind all flows of detours in the order of changes.
const AFTER_DETOURS: u32 = MAX_LINKS as u32 * 2;

/// The entries of a circuit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CircuitLayout {
    /// Wanted entries, with their position in the order of changes.
    pub(super) entries: Vec<(u32, Dpid, DesiredEntry)>,
    /// Output ports of the path from the first endpoint to the second, or of the tree's links.
    pub(super) path: Vec<SwitchPort>,
    /// Links without a detour, by direction.
    pub(super) unprotected: Vec<SwitchPort>,
}

/// Number of generations of a circuit with these VLANs that can be in the switches at a time.
pub(super) fn generations(circuit: &Circuit, vlans: &Range<u16>) -> u16 {
    match circuit.endpoints.len() {
        2 => PATH_GENERATIONS,
        _ => vlans.end.saturating_sub(vlans.start).max(1),
    }
}

/// The tags of a generation, from 0.
pub(super) fn generation_tags(
    circuit: &Circuit,
    vlans: &Range<u16>,
    generation: u16,
) -> Range<u16> {
    let count = vlans.end.saturating_sub(vlans.start) / generations(circuit, vlans);
    let first = vlans.start + generation * count;
    first..first + count
}

/// Numbers of a circuit's layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayoutNumbers {
    /// The circuit's number, from 0.
    pub(super) number: u32,
    /// The generation, from 0; see [`generations`].
    pub(super) generation: u16,
    /// The tag of the path.
    pub(super) tag: u16,
}

/// Returns the layout of a route.
pub(super) fn layout(route: &CircuitRoute, numbers: LayoutNumbers) -> CircuitLayout {
    let mut laying = Laying {
        numbers,
        layout: CircuitLayout::default(),
        tagged_switches: BTreeSet::new(),
        detours: BTreeSet::new(),
    };
    match (&route.places[..], &route.paths[..]) {
        ([one, other], [there, back]) => {
            laying.layout.path.extend(there.iter().map(|link| link.hop.from));
            laying.add_path(*one, *other, there, 0);
            laying.add_path(*other, *one, back, 1);
        }
        (places, paths) => laying.add_tree(places, paths),
    }
    laying.add_drops();
    laying.layout
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
    fn ingress_actions(&self, tag: u16) -> Vec<Action<'static>> {
        let push =
            (self.vlan.is_none() && self.pushes_tags).then_some(Action::PushVlan(eth_type::VLAN));
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

struct Laying {
    numbers: LayoutNumbers,
    layout: CircuitLayout,
    /// Switches that send or receive frames with a tag.
    tagged_switches: BTreeSet<(Dpid, u16)>,
    /// Tags and ingress ports of flows of detours. Detours share them.
    detours: BTreeSet<(u16, SwitchPort)>,
}

impl Laying {
    /// Lays one direction of a circuit of two endpoints.
    fn add_path(
        &mut self,
        from: EndpointPlace,
        to: EndpointPlace,
        path: &[GuardedHop],
        direction: u32,
    ) {
        let (length, tag) = (path.len() as u32, self.numbers.tag);
        let mut ingress_port = from.at;
        for (index, link) in (0..).zip(path) {
            let action = self.link_action(ingress_port, link, to, self.group(direction, index));
            let order = AFTER_DETOURS + length - index;
            match index {
                0 => {
                    let mut actions = from.ingress_actions(tag);
                    actions.push(action);
                    self.add_ingress(order, from, to.host, &actions);
                }
                _ => self.add_transit(order, ingress_port, tag, &[action]),
            }
            self.tagged_switches.insert((ingress_port.dpid, tag));
            ingress_port = link.hop.to;
        }
        let egress = to.egress_actions(ingress_port.port);
        if path.is_empty() {
            let mut actions = from.ingress_actions(tag);
            actions.extend(egress);
            self.add_ingress(AFTER_DETOURS, from, to.host, &actions);
        } else {
            self.add_transit(AFTER_DETOURS, ingress_port, tag, &egress);
        }
    }

    /// Returns the action that sends frames over the next link, or around it by `group`.
    fn link_action(
        &mut self,
        ingress_port: SwitchPort,
        link: &GuardedHop,
        to: EndpointPlace,
        group: u32,
    ) -> Action<'static> {
        let link_port = link.hop.from;
        let direct_port = output_port(link_port.port, ingress_port.port);
        let first = link.detour.as_ref().and_then(|detour| Some((detour, detour.hops.first()?)));
        let Some((detour, first)) = first else {
            self.layout.unprotected.push(link_port);
            return Action::output(direct_port);
        };
        self.add_detour(ingress_port.dpid, detour, to);
        let port = first.from.port;
        let detour_port = output_port(port, ingress_port.port);
        let around = [set_vlan(detour.tag), Action::output(detour_port)];
        let buckets = GroupEntry::new(group, GroupType::FastFailover)
            .bucket(BucketEntry::of(&[Action::output(direct_port)]).watch_port(link_port.port))
            .bucket(BucketEntry::of(&around).watch_port(port));
        self.layout.entries.push((0, ingress_port.dpid, DesiredEntry::Group(buckets)));
        Action::Group(group)
    }

    /// Lays a detour to the end, for frames that leave this switch.
    fn add_detour(&mut self, dpid: Dpid, detour: &Detour, to: EndpointPlace) {
        let Detour { tag, hops } = detour;
        let length = hops.len() as u32;
        for (index, hop) in (0_u32..).zip(hops) {
            let at = hop.to;
            let actions = match hops.get(index as usize + 1) {
                Some(next) => vec![Action::output(output_port(next.from.port, at.port))],
                None => to.egress_actions(at.port).to_vec(),
            };
            if self.detours.insert((*tag, at)) {
                self.add_transit(length - index - 1, at, *tag, &actions);
            }
        }
        self.tagged_switches.insert((dpid, *tag));
    }

    /// Lays a circuit of several endpoints: a frame from one goes to all others, along a tree.
    fn add_tree(&mut self, places: &[EndpointPlace], paths: &[Vec<GuardedHop>]) {
        let tag = self.numbers.tag;
        // Ports of the tree, by switch.
        let mut ports: BTreeMap<Dpid, BTreeSet<Port>> = BTreeMap::new();
        for place in places {
            ports.entry(place.at.dpid).or_default();
        }
        for GuardedHop { hop, .. } in paths.iter().flatten() {
            ports.entry(hop.from.dpid).or_default().insert(hop.from.port);
            ports.entry(hop.to.dpid).or_default().insert(hop.to.port);
            self.layout.path.push(hop.from);
            self.layout.unprotected.push(hop.from);
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
                self.add_transit(0, ingress_port, tag, &outputs(*dpid, *port, None));
            }
        }
        for place in places {
            let dpid = place.at.dpid;
            let mut actions = place.ingress_actions(tag);
            actions.extend(outputs(dpid, place.at.port, Some(*place)));
            self.add_ingress(1, *place, None, &actions);
        }
    }

    /// The number of the group before a link of the path. Each generation has its own.
    fn group(&self, direction: u32, link: u32) -> u32 {
        let LayoutNumbers { number, generation, .. } = self.numbers;
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
}
