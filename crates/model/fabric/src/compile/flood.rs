//! Floods: packets to nobody that is known, and to groups of hosts.
//!
//! A VLAN has a flow for each class of destinations, and one more for an ingress port whose packets
//! go elsewhere: a port that sends back (hairpin), a mirrored port, one to an external network, or
//! one with restricted broadcasts. Ports whose list is that of the VLAN need none, since a switch
//! never outputs to the ingress port.

use std::collections::BTreeSet;

use bellrock_api::{BucketEntry, GroupEntry};
use bellrock_openflow::{Action, Field, GroupType, Match, Port};

use super::members::SwitchVlan;
use super::port::{FOR_EXTERNAL, set_external};
use super::{Compiler, Entries, Facts, Table, members, priority};
use crate::intent::{self, Vlan};

/// Destinations that are flooded alike.
struct FloodClass {
    /// Hosts that are not known, of ports and VLANs with `unicast_flood`.
    is_unicast: bool,
    eth_type: Option<u16>,
    address: u64,
    /// Number of bits of the address that count.
    bits: u8,
}

const fn class(eth_type: Option<u16>, address: u64, bits: u8) -> FloodClass {
    FloodClass { is_unicast: false, eth_type, address, bits }
}

const BROADCAST: u64 = 0xffff_ffff_ffff;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;

const CLASSES: [FloodClass; 5] = [
    FloodClass { is_unicast: true, eth_type: None, address: 0, bits: 0 },
    // IEEE 802.1 and others.
    class(None, 0x0180_c200_0000, 24),
    // IPv4 multicast.
    class(None, 0x0100_5e00_0000, 24),
    // IPv6 multicast.
    class(None, 0x3333_0000_0000, 16),
    class(None, BROADCAST, 48),
];

/// What still goes to ports with `restricted_bcast_arpnd`.
const RESTRICTED: [FloodClass; 4] = [
    class(Some(ARP), BROADCAST, 48),
    // Neighbour solicitations.
    class(Some(IPV6), 0x3333_ff00_0000, 24),
    // All routers, and all nodes.
    class(Some(IPV6), 0x3333_0000_0002, 48),
    class(Some(IPV6), 0x3333_0000_0001, 48),
];

/// Added to a VLAN id: the group of its unknown hosts, if it is not the group of all its floods.
pub(super) const UNICAST_GROUP: u32 = 4096;

/// The mask of the highest bits of an Ethernet address.
pub(super) fn mask(bits: u32) -> u128 {
    let all = u128::from(BROADCAST);
    all & !(all.checked_shr(bits).unwrap_or(0))
}

/// Which ports a class of destinations excludes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FloodKind {
    is_unicast: bool,
    /// It has no Ethernet type, so that it is not for restricted ports.
    is_general: bool,
}

/// Output lists of a flood.
struct Outputs {
    mark: Option<u8>,
    tagged: Vec<u32>,
    untagged: Vec<u32>,
}

impl Outputs {
    fn ports(&self) -> BTreeSet<u32> {
        self.tagged.iter().chain(&self.untagged).copied().collect()
    }

    fn actions(&self) -> Vec<Action<'static>> {
        let mut actions = Vec::with_capacity(self.tagged.len() + self.untagged.len() + 2);
        if self.tagged.is_empty() && self.untagged.is_empty() {
            return actions;
        }
        let output = |port: &u32| Action::output(Port(*port));
        actions.extend(self.mark.map(set_external));
        actions.extend(self.tagged.iter().map(output));
        if !self.untagged.is_empty() {
            actions.push(Action::PopVlan);
            actions.extend(self.untagged.iter().map(output));
        }
        actions
    }

    /// A port gets one copy. Only a mirror occurs twice.
    fn once(mut self) -> Self {
        self.untagged.retain(|port| !self.tagged.contains(port));
        self
    }

    fn buckets(&self) -> Vec<BucketEntry> {
        let tagged = self.tagged.iter().map(|port| {
            let output = Action::output(Port(*port));
            match self.mark {
                Some(pcp) => BucketEntry::of(&[set_external(pcp), output]),
                None => BucketEntry::of(&[output]),
            }
        });
        let untagged = self
            .untagged
            .iter()
            .map(|port| BucketEntry::of(&[Action::PopVlan, Action::output(Port(*port))]));
        tagged.chain(untagged).collect()
    }
}

/// A VLAN with what its floods depend on.
struct FloodView<'c> {
    compiler: &'c Compiler,
    vlan: &'c Vlan,
    members: &'c SwitchVlan,
    facts: &'c Facts,
    /// The port that stands for all those to the external network: the lowest that is up.
    external: Option<u32>,
    has_external: bool,
    has_restricted: bool,
    /// Ports that get copies of others.
    mirrors: BTreeSet<u32>,
}

impl Compiler {
    pub(super) fn compile_flood(&self, vid: u16, facts: &Facts, entries: &mut Entries) {
        let (Some(vlan), Some(members)) = (self.vlan(vid), self.vlans.get(&vid)) else { return };
        let switch = self.switch();
        let ports = || members.ports(switch);
        let externals = || ports().filter(|port| port.settings.loop_protect_external);
        let up = externals().filter(|port| members::is_running(port, facts));
        let view = FloodView {
            compiler: self,
            vlan,
            members,
            facts,
            external: up.map(|port| port.number).min(),
            has_external: externals().next().is_some(),
            has_restricted: ports().any(|port| port.settings.restricted_bcast_arpnd),
            mirrors: ports().flat_map(|port| port.mirrored_to.iter().copied()).collect(),
        };
        let groups = if switch.settings.group_table { view.groups(entries) } else { Vec::new() };
        let restricted: &[FloodClass] = if self.has_restricted { &RESTRICTED } else { &[] };
        let classes = || CLASSES.iter().chain(restricted);
        for (is_unicast, is_general) in [(true, true), (false, true), (false, false)] {
            let kind = FloodKind { is_unicast, is_general };
            let mut classes = classes()
                .filter(|it| it.kind() == kind && (vlan.settings.unicast_flood || !is_unicast))
                .peekable();
            if classes.peek().is_none() {
                continue;
            }
            let mut rows = view.rows(kind);
            if let Some(group) = groups.iter().find(|(unicast, _)| *unicast == is_unicast) {
                rows.retain(|(port, _)| port.is_some());
                rows.push((None, vec![Action::Group(group.1)]));
            }
            for class in classes {
                for (port, actions) in &rows {
                    self.flood_row(vid, class, *port, actions, entries);
                }
            }
        }
    }

    fn flood_row(
        &self,
        vid: u16,
        class: &FloodClass,
        port: Option<u32>,
        actions: &[Action<'static>],
        entries: &mut Entries,
    ) {
        let address = u128::from(class.address);
        let mut matching =
            Match::any().vlan_id(vid).with_masked(Field::EthDst, address, mask(class.bits.into()));
        let mut priority = priority::MATCH + u16::from(class.bits);
        if let Some(eth_type) = class.eth_type {
            matching = matching.eth_type(eth_type);
            priority += eth_type;
        }
        if let Some(port) = port {
            matching = matching.in_port(Port(port));
            priority += 1;
        }
        entries.push(self.cookie(), self.flow(Table::Flood, priority, matching).actions(actions));
    }
}

impl FloodClass {
    fn kind(&self) -> FloodKind {
        FloodKind { is_unicast: self.is_unicast, is_general: self.eth_type.is_none() }
    }
}

impl<'c> FloodView<'c> {
    /// The lists: of the VLAN, and of ports that have their own.
    fn rows(&self, kind: FloodKind) -> Vec<(Option<u32>, Vec<Action<'static>>)> {
        let mut rows = Vec::new();
        let is_combinatorial = self.compiler.switch().settings.combinatorial_port_flood;
        let of_all = self.outputs(kind.is_unicast, None, self.has_restricted);
        let ports_of_all = of_all.ports();
        if !is_combinatorial {
            rows.push((None, of_all.actions()));
        }
        // Also those without `unicast_flood`: it is about what leaves by a port.
        for port in self.members.ports(self.compiler.switch()) {
            let is_up = members::is_running(port, self.facts);
            let settings = &port.settings;
            let is_like_others = !is_combinatorial && !self.has_restricted && !self.is_own(port);
            if !is_up || is_like_others {
                continue;
            }
            let is_restricted = kind.is_general && settings.restricted_bcast_arpnd;
            let own = self.outputs(kind.is_unicast, Some(port), is_restricted).once();
            let ports = own.ports();
            let is_same = || {
                let others = ports_of_all.iter().filter(|other| **other != port.number);
                others.eq(&ports)
            };
            let is_needed = match is_combinatorial {
                true => !ports.is_empty(),
                false => !is_same(),
            };
            if is_needed {
                rows.push((Some(port.number), own.actions()));
            }
        }
        rows
    }

    /// Whether a port may have a list of its own.
    fn is_own(&self, port: &intent::Port) -> bool {
        port.settings.hairpin
            || port.settings.loop_protect_external
            || !port.mirrored_to.is_empty()
            || self.mirrors.contains(&port.number)
    }

    fn outputs(&self, is_unicast: bool, from: Option<&intent::Port>, restricts: bool) -> Outputs {
        let is_from_external = from.is_some_and(|port| port.settings.loop_protect_external);
        let list = |places: &[usize]| {
            let mut list = Vec::with_capacity(places.len());
            let ports = places.iter().filter_map(|it| self.compiler.switch().ports.get(*it));
            for port in ports.filter(|port| floods(port, is_unicast)) {
                if from.is_some_and(|from| from.number == port.number) {
                    list.extend(port.settings.hairpin.then_some(Port::IN_PORT.0));
                    continue;
                }
                let is_external = port.settings.loop_protect_external
                    && (is_from_external || self.external != Some(port.number));
                let is_restricted = restricts && port.settings.restricted_bcast_arpnd;
                if is_external || is_restricted {
                    continue;
                }
                list.push(port.number);
                // A packet of a mirrored port was copied when it came in.
                if !from.is_some_and(|from| is_same_set(&from.mirrored_to, &port.mirrored_to)) {
                    list.extend(&port.mirrored_to);
                }
            }
            list.sort_unstable();
            list.dedup();
            list
        };
        let tagged = &self.members.tagged;
        let mut flooded =
            tagged.iter().filter_map(|place| self.compiler.switch().ports.get(*place));
        let has_tagged = flooded.any(|port| floods(port, is_unicast));
        Outputs {
            mark: (self.has_external && has_tagged).then_some(FOR_EXTERNAL),
            tagged: list(tagged),
            untagged: list(&self.members.untagged),
        }
    }

    /// Adds the groups, and returns them: whether of unknown hosts, and the number.
    fn groups(&self, entries: &mut Entries) -> Vec<(bool, u32)> {
        let vid = u32::from(self.vlan.vid);
        let mut add = |id: u32, outputs: &Outputs| {
            let buckets = outputs.buckets();
            entries.groups.push(GroupEntry { id, kind: GroupType::All, buckets });
        };
        let all = self.outputs(false, None, self.has_restricted);
        add(vid, &all);
        let unicast = self.outputs(true, None, self.has_restricted).once();
        if !self.vlan.settings.unicast_flood || unicast.ports() == all.ports() {
            return vec![(false, vid), (true, vid)];
        }
        add(vid + UNICAST_GROUP, &unicast);
        vec![(false, vid), (true, vid + UNICAST_GROUP)]
    }
}

/// Whether floods leave by a port.
fn floods(port: &intent::Port, is_unicast: bool) -> bool {
    !is_unicast || port.settings.unicast_flood
}

fn is_same_set(one: &[u32], other: &[u32]) -> bool {
    one.len() == other.len() && one.iter().all(|it| other.contains(it))
}
