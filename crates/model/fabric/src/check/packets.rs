//! Which packets are looked at: few for each port and VLAN, yet one for each class of packets that
//! the intent or a flow tells apart.
//!
//! Two ports are alike for packets with a tag, if the intent treats them alike, and all flows that
//! match one of them treat them alike. Of ports that are alike two are looked at, since a packet
//! never leaves by its own port. Flows for one host say nothing about other packets, so they make
//! no ports differ, and are looked at where they are.

use std::collections::{BTreeSet, HashSet};

use bellrock_api::Flow;
use bellrock_openflow::{Field, MacAddr, Match};

use super::packet::is_outside;
use super::state::{Held, Scope};
use super::wanted::Kind;
use super::{Packet, State, Wanted};

/// Headers that networks of Faucet's kind tell apart: broadcasts, groups of the three kinds,
/// addresses that bridges keep, a flood for the resolution of addresses, tests for loops.
fn classes() -> Vec<Match> {
    let to = |address: u64| Match::any().eth_dst(MacAddr::from_u64(address));
    let broadcast = MacAddr::BROADCAST.to_u64();
    vec![
        Match::any(),
        to(broadcast),
        to(broadcast).eth_type(0x0806),
        to(0x0180_c25a_5a5a),
        to(0x0100_5e5a_5a5a),
        to(0x3333_5a5a_5a5a),
        to(0x3333_ff5a_5a5a).eth_type(0x86dd),
        to(0x3333_0000_0001).eth_type(0x86dd),
        to(0x3333_0000_0002).eth_type(0x86dd),
        to(0x0180_c200_000e).eth_type(0x88cc),
        to(0x0180_c200_0000),
        to(0x0100_0ccc_cccc),
        to(0x0100_0ccc_cccd),
        Match::any().eth_type(0x9000),
        Match::any().eth_src(MacAddr::BROADCAST),
    ]
}

/// Which packets are looked at.
pub(super) enum Which<'w> {
    /// All.
    All,
    /// Those that may meet these flows, and all of these ports.
    Meeting(&'w [&'w Flow], &'w BTreeSet<u32>),
}

/// Chooses packets for a state of a switch.
pub(super) struct Chooser<'c, 'n, 't> {
    wanted: &'c [Wanted<'n>],
    state: &'c State<'t>,
    which: Which<'c>,
    /// Rules give fields new values: a flow may meet other packets than it seems.
    rewrites: bool,
    classes: Vec<Match>,
}

/// Ports that are alike.
struct Alike<'c, 'n, 't> {
    kinds: Vec<Option<Kind<'n>>>,
    flows: Vec<&'c Held<'t>>,
    ports: Vec<u32>,
}

impl<'c, 'n, 't> Chooser<'c, 'n, 't> {
    pub(super) fn new(wanted: &'c [Wanted<'n>], state: &'c State<'t>, which: Which<'c>) -> Self {
        let rewrites = wanted.iter().any(Wanted::rewrites);
        Chooser { wanted, state, which, rewrites, classes: classes() }
    }

    /// Calls `visit` with each packet, until it returns `false`.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(&Packet) -> bool) {
        let (ports, tags) = (self.ports(), self.tags());
        for tag in tags.iter().map(|vid| (*vid != 0).then_some(*vid)) {
            if !self.is_tag_asked(tag) {
                continue;
            }
            for alike in self.alike(&ports, tag) {
                let last = alike.ports.len() - 1;
                for (place, port) in alike.ports.iter().enumerate() {
                    let is_full = place == 0 || place == last || self.is_changed(*port);
                    if !self.visit_port(*port, tag, is_full, visit) {
                        return;
                    }
                }
            }
        }
    }

    /// All ports that are declared or matched, and one that is neither.
    fn ports(&self) -> BTreeSet<u32> {
        let declared = self.wanted.iter().flat_map(|wanted| &wanted.switch.ports);
        let mut ports: BTreeSet<u32> = declared.map(|port| port.number).collect();
        ports.extend(self.state.scopes().filter_map(|(port, _)| port));
        ports.extend((1..u32::MAX).find(|port| !ports.contains(port)));
        ports
    }

    /// All VLAN ids that are declared or matched, and one that is neither; 0 for no tag.
    fn tags(&self) -> BTreeSet<u16> {
        let mut tags: BTreeSet<u16> = self.wanted.iter().flat_map(Wanted::vids).collect();
        let matched = self.state.scopes().filter_map(|(_, vid)| vid);
        tags.extend(matched.map(|vid| vid & !Match::VLAN_PRESENT));
        tags.extend((1..0x0fff).rev().find(|vid| !tags.contains(vid)));
        tags.insert(0);
        tags
    }

    /// The values of `vlan_vid` that packets of a port with this tag may have on their way.
    fn values(&self, port: u32, tag: Option<u16>) -> Vec<u16> {
        let present = |vid: u16| Match::VLAN_PRESENT | vid;
        let mut values = vec![tag.map_or(0, present)];
        for vid in self.wanted.iter().filter_map(|wanted| wanted.vid_at(port, tag)) {
            if !values.contains(&present(vid)) {
                values.push(present(vid));
            }
        }
        values
    }

    /// The flows for packets of a port with a tag: those of the port only, or those of all ports.
    fn flows(&self, of: Option<u32>, port: u32, tag: Option<u16>) -> Vec<&'c Held<'t>> {
        let mut scopes: Vec<Scope> = vec![(of, None)];
        scopes.extend(self.values(port, tag).into_iter().map(|value| (of, Some(value))));
        scopes.into_iter().flat_map(|scope| self.state.flows_of(scope)).collect()
    }

    fn alike(&self, ports: &BTreeSet<u32>, tag: Option<u16>) -> Vec<Alike<'c, 'n, 't>> {
        let mut all: Vec<Alike<'c, 'n, 't>> = Vec::new();
        for port in ports {
            let kinds: Vec<Option<Kind<'n>>> =
                self.wanted.iter().map(|wanted| wanted.kind(*port, tag)).collect();
            let mut flows = self.flows(Some(*port), *port, tag);
            flows.retain(|held| !is_of_host(held.flow));
            flows.sort_by_key(|held| (held.flow.table, held.flow.priority));
            let is_alike = |other: &&mut Alike<'c, 'n, 't>| {
                other.kinds == kinds
                    && other.flows.len() == flows.len()
                    && other.flows.iter().zip(&flows).all(|(one, other)| one.is_alike(other))
                    && self.values(other.ports[0], tag) == self.values(*port, tag)
            };
            match all.iter_mut().find(is_alike) {
                Some(alike) => alike.ports.push(*port),
                None => all.push(Alike { kinds, flows, ports: vec![*port] }),
            }
        }
        all
    }

    /// Visits the packets of a port: all, or only those for flows of single hosts.
    fn visit_port(
        &self,
        port: u32,
        tag: Option<u16>,
        is_full: bool,
        visit: &mut dyn FnMut(&Packet) -> bool,
    ) -> bool {
        if !self.is_port_asked(port, tag) {
            return true;
        }
        let mut seen: HashSet<Packet> = HashSet::new();
        let known: Vec<MacAddr> =
            self.wanted.iter().filter_map(|it| it.host_in(it.vid_at(port, tag)?, port)).collect();
        let mut one = |header: &Match| -> bool {
            let is_masked = header.fields().any(|field| header.is_masked(field));
            let inside = Packet::inside(port, tag, header);
            let first = is_masked.then(|| Packet::new(port, tag, header));
            [Some(inside), first].into_iter().flatten().all(|packet| {
                if !self.is_asked(&packet) || !seen.insert(packet.clone()) {
                    return true;
                }
                visit(&packet)
            })
        };
        // Without a destination: to an unknown host, to all, and to a known host; and one that a
        // filter drops.
        let mut each = |header: &Match| -> bool {
            let mut to = known.iter().copied().chain([MacAddr::BROADCAST]);
            one(header)
                && (header.has(Field::EthDst)
                    || to.all(|address| one(&header.clone().eth_dst(address)))
                        && (header.has(Field::EthSrc) || one(&spoofed(header))))
        };
        let own = self.flows(Some(port), port, tag);
        let mut of_flows = own.iter().filter(|held| is_full || is_of_host(held.flow));
        if !of_flows.all(|held| each(&held.flow.matching)) {
            return false;
        }
        if !is_full {
            return true;
        }
        let shared = self.flows(None, port, tag);
        self.classes.iter().all(&mut each)
            && shared.iter().all(|held| each(&held.flow.matching))
            && self.headers(port, tag).iter().all(each)
    }

    /// Headers for what a port's packets meet by the intent: rules, and hosts.
    fn headers(&self, port: u32, tag: Option<u16>) -> Vec<Match> {
        let mut headers = Vec::new();
        for wanted in self.wanted {
            let vid = wanted.vid_at(port, tag);
            headers.extend(wanted.headers(port, vid));
            headers.extend(wanted.rules_at(port, vid).map(|rule| rule.matches.clone()));
        }
        headers
    }

    fn is_changed(&self, port: u32) -> bool {
        matches!(self.which, Which::Meeting(_, ports) if ports.contains(&port))
    }

    fn is_tag_asked(&self, tag: Option<u16>) -> bool {
        let Which::Meeting(flows, ports) = self.which else { return true };
        let value = tag.map(|vid| Match::VLAN_PRESENT | vid);
        self.rewrites
            || tag.is_none()
            || !ports.is_empty()
            || flows.iter().any(|flow| {
                let vid = super::state::scope(&flow.matching).1;
                vid.is_none() || vid == value
            })
    }

    fn is_port_asked(&self, port: u32, tag: Option<u16>) -> bool {
        let Which::Meeting(flows, ports) = self.which else { return true };
        self.rewrites
            || ports.contains(&port)
            || flows.iter().any(|flow| {
                let (in_port, vid) = super::state::scope(&flow.matching);
                in_port.is_none_or(|it| it == port)
                    && vid.is_none_or(|vid| self.values(port, tag).contains(&vid))
            })
    }

    fn is_asked(&self, packet: &Packet) -> bool {
        let Which::Meeting(flows, ports) = self.which else { return true };
        self.rewrites
            || ports.contains(&packet.in_port())
            || flows.iter().any(|flow| {
                let mut fields = flow.matching.fields().filter(|field| !is_outside(*field));
                fields.all(|field| {
                    let (value, mask) = (flow.matching.value(field), flow.matching.mask(field));
                    value == mask.map(|mask| packet.value(field) & mask)
                })
            })
    }
}

/// The header with the broadcast address as source and as destination.
fn spoofed(header: &Match) -> Match {
    header.clone().eth_dst(MacAddr::BROADCAST).eth_src(MacAddr::BROADCAST)
}

/// Whether a flow is for packets from or to one host only.
fn is_of_host(flow: &Flow) -> bool {
    /// The bit of an address that makes it one of a group.
    const GROUP: u128 = 1 << 40;
    let is_exact = |field| flow.matching.has(field) && !flow.matching.is_masked(field);
    let address = |field| flow.matching.value(field).unwrap_or(0);
    is_exact(Field::EthSrc) || (is_exact(Field::EthDst) && address(Field::EthDst) & GROUP == 0)
}
