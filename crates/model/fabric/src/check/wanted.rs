//! What a network declares about a packet, from the intent and the facts alone: no table and no
//! function of the compiler is used here.

use std::collections::BTreeMap;

use bellrock_openflow::{Field, MacAddr, Match};

use super::Packet;
use crate::compile::{Facts, HostKey};
use crate::intent::{AclUse, Intent, Output, Port, Rule, Switch, SwitchId, Vlan};

/// The maximum number of a port. The switch's own ports have higher ones.
const MAX_PORT: u32 = 0xf000_0000;
/// VLAN priorities of packets that may, and may not, go to an external network.
const FOR_EXTERNAL: u8 = 2;
const NOT_FOR_EXTERNAL: u8 = 0;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
/// Ethernet type of the Ethernet Configuration Testing Protocol.
const ECTP: u16 = 0x9000;

/// A declared switch, with what is so at it now.
#[derive(Clone, Debug)]
pub struct Wanted<'n> {
    intent: &'n Intent,
    pub(super) switch: &'n Switch,
    pub(super) facts: &'n Facts,
    vlans: BTreeMap<u16, Members<'n>>,
    has_externals: bool,
}

#[derive(Clone, Debug)]
struct Members<'n> {
    vlan: &'n Vlan,
    /// Its ports that are used, and whether they send without tags.
    ports: Vec<(&'n Port, bool)>,
}

/// Where copies of a packet may leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowed<'n> {
    /// Copies that rules name.
    pub(super) named: Vec<(u32, Packet)>,
    /// Ports that may get any number of copies.
    pub(super) mirrors: Vec<u32>,
    /// One copy each.
    pub(super) exits: Vec<Exit>,
    /// Why no more.
    pub(super) ends: Vec<End<'n>>,
}

/// A port that a packet may leave by, and the tags that it has then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) port: u32,
    pub(super) tags: usize,
    pub(super) vid: Option<u16>,
    /// It has to.
    pub(super) is_due: bool,
}

/// Why a packet goes no further.
#[derive(Clone, Debug)]
pub(super) enum End<'n> {
    /// Nothing comes in by this port.
    Closed(&'static str),
    /// The port is not in the packet's VLAN, or there is none.
    NoVlan(Option<u16>),
    /// A rule drops it; or `None` is for it.
    Acl(Option<&'n Rule>),
    Filter(&'static str),
    Reserved,
    /// It was forwarded in this VLAN, which has these ports.
    Forwarded {
        vid: u16,
        ports: Vec<u32>,
    },
}

/// A packet on its way.
#[derive(Clone, Debug)]
struct At<'n> {
    stage: Stage,
    packet: Packet,
    /// Which ports are up.
    live: &'n Facts,
    /// In the middle of a change: a group that floods share is changed at once, so
    /// unknown hosts may be looked for at all ports of the VLAN.
    is_changing: bool,
    /// The VLAN and the port of its destination, if that is known.
    known: Option<(u16, u32)>,
    named: Vec<(u32, Packet)>,
    mirrors: Vec<u32>,
    exits: Vec<Exit>,
    end: Option<End<'n>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Input,
    EnterVlan,
    VlanAcl,
    Filters,
    Output,
    Exit,
    End,
}

/// What of a packet's port matters in a VLAN: ports with equal kinds are treated alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind<'n> {
    is_running: bool,
    is_native: Option<bool>,
    /// Output only, hairpin, hairpin for known hosts, external, restricted.
    flags: [bool; 5],
    mirrored_to: &'n [u32],
    acls: Vec<u32>,
    is_banned: bool,
}

/// Where a packet that the network declares something about may leave. `wanted` are the states
/// that it may be in: at each step the packet is treated as one of them says.
pub(super) fn allowed<'n>(wanted: &[Wanted<'n>], packet: &Packet) -> Allowed<'n> {
    let mut allowed = Allowed::default();
    let Some(last) = wanted.last() else { return allowed };
    let mut open = vec![At {
        stage: Stage::Input,
        packet: packet.clone(),
        live: last.facts,
        is_changing: wanted.len() > 1,
        known: None,
        named: Vec::new(),
        mirrors: Vec::new(),
        exits: Vec::new(),
        end: None,
    }];
    while let Some(at) = open.pop() {
        if at.stage == Stage::End {
            allowed.take(at);
            continue;
        }
        let mut next: Vec<At<'n>> = Vec::new();
        // A host that is not known all the time may be unknown at any stage.
        let is_partial = at.stage == Stage::Output
            && wanted.len() > 1
            && wanted.iter().any(|wanted| wanted.known(&at.packet).is_none());
        for wanted in wanted {
            let mut ways = wanted.advance(at.clone());
            if is_partial {
                let unknown = ways.iter().map(|way| At { known: None, ..way.clone() });
                ways.extend(unknown.collect::<Vec<_>>());
            }
            for after in ways {
                let is_same = |other: &At<'n>| {
                    other.stage == after.stage
                        && other.packet == after.packet
                        && other.known == after.known
                        && other.named == after.named
                        && other.mirrors == after.mirrors
                        && other.exits == after.exits
                };
                if !next.iter().any(is_same) {
                    next.push(after);
                }
            }
        }
        open.append(&mut next);
    }
    allowed
}

impl<'n> Allowed<'n> {
    fn take(&mut self, at: At<'n>) {
        // Of several ways a packet takes one: copies of one way do not add to those of another.
        for (place, copy) in at.named.iter().enumerate() {
            let count = at.named[..=place].iter().filter(|other| *other == copy).count();
            if self.named.iter().filter(|other| *other == copy).count() < count {
                self.named.push(copy.clone());
            }
        }
        self.mirrors.extend(at.mirrors);
        let is_first = self.ends.is_empty();
        for exit in &mut self.exits {
            exit.is_due &= at.exits.iter().any(|other| other == exit);
        }
        for exit in at.exits {
            let has = |other: &Exit| {
                (other.port, other.tags, other.vid) == (exit.port, exit.tags, exit.vid)
            };
            if !self.exits.iter().any(has) {
                self.exits.push(Exit { is_due: exit.is_due && is_first, ..exit });
            }
        }
        self.ends.extend(at.end);
    }
}

impl<'n> At<'n> {
    fn to(mut self, stage: Stage) -> Vec<At<'n>> {
        self.stage = stage;
        vec![self]
    }

    fn end(mut self, why: End<'n>) -> Vec<At<'n>> {
        self.end = Some(why);
        self.to(Stage::End)
    }

    fn name(&mut self, port: u32) {
        if port != self.packet.in_port() {
            self.named.push((port, self.packet.clone()));
        }
    }
}

impl<'n> Wanted<'n> {
    /// A switch of an intent, with what is so at it. `None`: the intent has no such switch.
    #[must_use]
    pub fn new(intent: &'n Intent, switch: SwitchId, facts: &'n Facts) -> Option<Self> {
        let switch = intent.switch(switch)?;
        let mut vlans: BTreeMap<u16, Members<'n>> = BTreeMap::new();
        for port in switch.ports.iter().filter(|port| is_used(port)) {
            let tagged = port.tagged_vlans.iter().map(|id| (id, false));
            for (id, is_native) in tagged.chain(port.native_vlan.iter().map(|id| (id, true))) {
                let Some(vlan) = intent.vlan(*id) else { continue };
                let nobody = Members { vlan, ports: Vec::new() };
                vlans.entry(vlan.vid).or_insert(nobody).ports.push((port, is_native));
            }
        }
        let has_externals = switch.ports.iter().any(|port| port.settings.loop_protect_external);
        Some(Wanted { intent, switch, facts, vlans, has_externals })
    }

    /// The ids of its VLANs.
    pub(super) fn vids(&self) -> impl Iterator<Item = u16> + '_ {
        self.vlans.keys().copied()
    }

    /// The VLAN of packets with this tag that come in by a port.
    pub(super) fn vid_at(&self, port: u32, vid: Option<u16>) -> Option<u16> {
        let native = || self.switch.port_numbered(port)?.native_vlan;
        vid.or_else(|| self.intent.vlan(native()?).map(|vlan| vlan.vid))
    }

    fn is_running(&self, port: &Port) -> bool {
        is_used(port) && (self.facts.is_up(port.number) || !port.settings.opstatus_reconf)
    }

    /// Whether a port is in a VLAN; if so, whether its packets have no tag.
    fn membership(&self, port: u32, vid: u16) -> Option<(&'n Port, bool)> {
        let members = self.vlans.get(&vid)?;
        members.ports.iter().copied().find(|(member, _)| member.number == port)
    }

    /// What matters of a port for packets with this tag.
    pub(super) fn kind(&self, port: u32, vid: Option<u16>) -> Option<Kind<'n>> {
        let it = self.switch.port_numbered(port)?;
        let settings = &it.settings;
        let vlan = self.vid_at(port, vid);
        Some(Kind {
            is_running: self.is_running(it),
            is_native: vlan.and_then(|vid| self.membership(port, vid)).map(|(_, native)| native),
            flags: [
                it.output_only,
                settings.hairpin,
                settings.hairpin_unicast,
                settings.loop_protect_external,
                settings.restricted_bcast_arpnd,
            ],
            mirrored_to: &it.mirrored_to,
            acls: it.acls.iter().map(|it| it.acl.0).collect(),
            is_banned: self.facts.is_port_banned(port),
        })
    }

    /// Number of tables that the switch has.
    pub(super) fn tables(&self) -> u8 {
        self.facts.capabilities.tables
    }

    /// A host in a VLAN that is not at this port, if one is known.
    pub(super) fn host_in(&self, vid: u16, except: u32) -> Option<MacAddr> {
        let first = HostKey { vid, mac: MacAddr::ZERO };
        let mut hosts = self.facts.hosts_from(first).take_while(|(host, _)| host.vid == vid);
        hosts.find(|(_, port)| *port != except).map(|(host, _)| host.mac)
    }

    /// Whether a rule of the switch's gives fields new values.
    pub(super) fn rewrites(&self) -> bool {
        let mut rules = self.intent.acls.iter().flat_map(|acl| &acl.rules);
        rules.any(|rule| {
            let mut steps = rule.actions.output.iter();
            steps.any(|step| !matches!(step, Output::Port(_) | Output::Failover(_)))
        })
    }

    /// Headers of packets of a port in a VLAN that facts and addresses make differ.
    pub(super) fn headers(&self, port: u32, vid: Option<u16>) -> Vec<Match> {
        let from = |mac| Match::any().eth_src(mac);
        let mut headers: Vec<Match> = self.vlans.values().map(|it| from(it.vlan.mac)).collect();
        headers.dedup();
        let strays = self.facts.strays().filter(|(_, at)| *at == port);
        headers.extend(strays.map(|(mac, _)| from(mac)));
        if let Some(vid) = vid {
            let first = HostKey { vid, mac: MacAddr::ZERO };
            let hosts = self.facts.hosts_from(first).take_while(|(host, _)| host.vid == vid);
            for (host, at) in hosts {
                headers.push(Match::any().eth_dst(host.mac));
                headers.extend((at == port).then(|| from(host.mac)));
            }
        }
        headers
    }

    /// The rules that packets of a port and a VLAN meet.
    pub(super) fn rules_at(
        &self,
        port: u32,
        vid: Option<u16>,
    ) -> impl Iterator<Item = &'n Rule> + use<'n> {
        let mut uses: Vec<&'n AclUse> = self.switch.acls.iter().collect();
        uses.extend(self.switch.port_numbered(port).iter().flat_map(|port| &port.acls));
        if let Some(members) = vid.and_then(|vid| self.vlans.get(&vid)) {
            uses.extend(members.vlan.acls_in.iter().chain(&members.vlan.acls_out));
        }
        let intent = self.intent;
        uses.into_iter().filter_map(|it| intent.acl(it.acl)).flat_map(|acl| &acl.rules)
    }

    /// What becomes of a packet in one stage: of several ways, any.
    fn advance(&self, at: At<'n>) -> Vec<At<'n>> {
        match at.stage {
            Stage::Input => self.input(at),
            Stage::EnterVlan => self.enter_vlan(at),
            Stage::VlanAcl => match self.vlan_of(&at.packet) {
                Some(vlan) if !vlan.acls_in.is_empty() => {
                    let except = Some(Field::VlanVid);
                    self.acl(at, (&vlan.acls_in, except), Stage::Filters, Stage::Output)
                }
                _ => at.to(Stage::Filters),
            },
            Stage::Filters => self.filters(at),
            Stage::Output => self.output(at),
            Stage::Exit => self.exit(at),
            Stage::End => vec![at],
        }
    }

    fn input(&self, at: At<'n>) -> Vec<At<'n>> {
        if !self.switch.acls.is_empty() {
            return self.acl(at, (&self.switch.acls, None), Stage::EnterVlan, Stage::Output);
        }
        match self.closed(&at.packet) {
            Err(why) => at.end(End::Closed(why)),
            Ok(port) if port.acls.is_empty() => at.to(Stage::EnterVlan),
            Ok(port) => {
                self.acl(at, (&port.acls, Some(Field::InPort)), Stage::EnterVlan, Stage::Output)
            }
        }
    }

    /// The port of a packet, or why nothing comes in by it.
    fn closed(&self, packet: &Packet) -> Result<&'n Port, &'static str> {
        match self.switch.port_numbered(packet.in_port()) {
            None => Err("is not in the file"),
            Some(port) if !is_used(port) => Err("is disabled"),
            Some(port) if !self.is_running(port) => Err("is down"),
            Some(port) if port.output_only => Err("is for output only"),
            Some(port) => Ok(port),
        }
    }

    fn enter_vlan(&self, mut at: At<'n>) -> Vec<At<'n>> {
        let port = match self.closed(&at.packet) {
            Err(why) => return at.end(End::Closed(why)),
            Ok(port) => port,
        };
        let tag = at.packet.vid();
        let vid = self.vid_at(port.number, tag);
        let member = vid.and_then(|vid| self.membership(port.number, vid));
        let (Some(vid), Some((_, is_native))) = (vid, member) else {
            return at.end(End::NoVlan(tag));
        };
        if is_native == tag.is_some() {
            return at.end(End::NoVlan(tag));
        }
        at.mirrors.extend(&port.mirrored_to);
        if is_native {
            at.packet.push(0x8100);
            at.packet.set(Field::VlanVid, vid.into());
        }
        if self.has_externals {
            let is_external = port.settings.loop_protect_external;
            let pcp = if is_external { NOT_FOR_EXTERNAL } else { FOR_EXTERNAL };
            at.packet.set(Field::VlanPcp, pcp.into());
        }
        at.to(Stage::VlanAcl)
    }

    fn filters(&self, at: At<'n>) -> Vec<At<'n>> {
        let packet = &at.packet;
        let (port, source) = (packet.in_port(), packet.mac(Field::EthSrc));
        let settings = &self.switch.settings;
        let mut vlans = self.vlans.values().map(|members| members.vlan);
        let is_spoofed = vlans.any(|it| !it.settings.reserved_internal_vlan && it.mac == source);
        let vid = packet.vid().unwrap_or(0);
        let is_known = self.host_port(HostKey { vid, mac: source }) == Some(port);
        if packet.eth_type() == ECTP {
            return at.end(End::Filter("it is a test for loops"));
        }
        if settings.drop_broadcast_source_address && source == MacAddr::BROADCAST {
            return at.end(End::Filter("its source is the broadcast address"));
        }
        if settings.drop_spoofed_faucet_mac && is_spoofed {
            return at.end(End::Filter("its source is the controller's address"));
        }
        if self.facts.is_stray(source, port) {
            return at.end(End::Filter("its source belongs to another port"));
        }
        let is_banned = self.facts.is_port_banned(port) || self.facts.is_vlan_banned(vid);
        if is_banned && !is_known {
            return at.end(End::Filter("learning is off"));
        }
        at.to(Stage::Output)
    }

    /// The port of a host, if it is known, and reached there.
    fn host_port(&self, host: HostKey) -> Option<u32> {
        let number = self.facts.port_of(host)?;
        let (port, _) = self.membership(number, host.vid)?;
        let vlan = self.vlans.get(&host.vid)?.vlan;
        (self.is_running(port) && !vlan.settings.reserved_internal_vlan).then_some(number)
    }

    /// The VLAN of a packet, if packets are forwarded in it.
    fn vlan_of(&self, packet: &Packet) -> Option<&'n Vlan> {
        let vlan = self.vlans.get(&packet.vid()?)?.vlan;
        (!vlan.settings.reserved_internal_vlan).then_some(vlan)
    }

    fn output(&self, mut at: At<'n>) -> Vec<At<'n>> {
        let Some(vlan) = self.vlan_of(&at.packet) else {
            let vid = at.packet.vid();
            return at.end(End::NoVlan(vid));
        };
        at.known = self.known(&at.packet);
        if vlan.acls_out.is_empty() {
            return at.to(Stage::Exit);
        }
        self.acl(at, (&vlan.acls_out, Some(Field::VlanVid)), Stage::Exit, Stage::Exit)
    }

    /// The VLAN and the port of a packet's destination, if it is known and may get the packet.
    fn known(&self, packet: &Packet) -> Option<(u16, u32)> {
        let vid = self.vlan_of(packet)?.vid;
        let number = self.host_port(HostKey { vid, mac: packet.mac(Field::EthDst) })?;
        let port = self.switch.port_numbered(number)?;
        self.is_open(port, packet).then_some((vid, number))
    }

    /// Whether a packet may go to hosts at a port: nothing passes between external networks.
    fn is_open(&self, port: &Port, packet: &Packet) -> bool {
        let settings = &port.settings;
        let is_back = port.number == packet.in_port();
        !self.has_externals
            || (is_back && (settings.hairpin || settings.hairpin_unicast))
            || packet.pcp() == FOR_EXTERNAL
            || (packet.pcp() == NOT_FOR_EXTERNAL && !settings.loop_protect_external)
    }

    fn exit(&self, mut at: At<'n>) -> Vec<At<'n>> {
        let Some(vlan) = self.vlan_of(&at.packet) else {
            let vid = at.packet.vid();
            return at.end(End::NoVlan(vid));
        };
        let known = at.known.filter(|(vid, _)| *vid == vlan.vid);
        let member = known.and_then(|(vid, port)| self.membership(port, vid));
        let Some((port, is_native)) = member else { return self.flood(at, vlan) };
        let is_back = port.number == at.packet.in_port();
        let is_hairpin = port.settings.hairpin || port.settings.hairpin_unicast;
        at.mirrors.extend(&port.mirrored_to);
        if !is_back || is_hairpin {
            // Whether the switch sends back by the egress tables is not asked.
            let is_due = !is_back && self.is_running(port);
            let exit = exit(port, is_native, is_due, &at.packet);
            at.exits.push(exit);
        }
        at.end(self.forwarded(vlan))
    }

    fn flood(&self, mut at: At<'n>, vlan: &'n Vlan) -> Vec<At<'n>> {
        let Some(members) = self.vlans.get(&vlan.vid) else { return at.end(End::Reserved) };
        let Some(class) = FloodClass::of(&at.packet) else { return at.end(End::Reserved) };
        let from = self
            .membership(at.packet.in_port(), vlan.vid)
            .map(|(port, _)| port)
            .filter(|port| self.is_running(port));
        let is_external = |port: &Port| port.settings.loop_protect_external;
        let running = members.ports.iter().filter(|(port, _)| self.is_running(port));
        let first = running.map(|(port, _)| port).filter(|port| is_external(port));
        let first = first.map(|port| port.number).min();
        let is_mirror =
            |number: u32| self.switch.ports.iter().any(|port| port.mirrored_to.contains(&number));
        for (port, is_native) in &members.ports {
            let is_back = port.number == at.packet.in_port();
            let floods = !class.is_unicast
                || at.is_changing
                || (vlan.settings.unicast_flood && port.settings.unicast_flood);
            let is_outside =
                is_external(port) && (from.is_some_and(is_external) || first != Some(port.number));
            let is_restricted = |port: &Port| port.settings.restricted_bcast_arpnd;
            // Packets of ports that are not in the VLAN come here by rules only.
            let is_between = is_restricted(port)
                && from.is_none_or(|from| !class.is_resolution && is_restricted(from));
            let is_pruned = match is_back {
                true => !port.settings.hairpin,
                false => is_outside || is_between,
            };
            if !floods || is_pruned {
                continue;
            }
            let is_settled = from.is_some() || !self.switch.settings.combinatorial_port_flood;
            let is_due = is_settled && self.is_running(port) && !is_mirror(port.number);
            at.exits.push(exit(port, *is_native, is_due, &at.packet));
            at.mirrors.extend(&port.mirrored_to);
        }
        at.end(self.forwarded(vlan))
    }

    fn forwarded(&self, vlan: &Vlan) -> End<'n> {
        let members = self.vlans.get(&vlan.vid).into_iter().flat_map(|it| &it.ports);
        let ports = members.map(|(port, _)| port.number).collect();
        End::Forwarded { vid: vlan.vid, ports }
    }

    /// The first rule that matches decides; of an ACL with `exact_match`, any.
    fn acl(
        &self,
        at: At<'n>,
        (uses, except): (&'n [AclUse], Option<Field>),
        next: Stage,
        forced: Stage,
    ) -> Vec<At<'n>> {
        let acls = || uses.iter().filter_map(|used| self.intent.acl(used.acl));
        let is_exact = except.is_some() && acls().next().is_some_and(|acl| acl.exact_match);
        let rules = acls().flat_map(|acl| &acl.rules);
        let matching = rules.filter(|rule| at.packet.is_matched(&rule.matches, except));
        let number = if is_exact { usize::MAX } else { 1 };
        let ways: Vec<At<'n>> = matching
            .take(number)
            .flat_map(|rule| self.rule(at.clone(), rule, next, forced))
            .collect();
        if ways.is_empty() { at.end(End::Acl(None)) } else { ways }
    }

    fn rule(&self, mut at: At<'n>, rule: &'n Rule, next: Stage, forced: Stage) -> Vec<At<'n>> {
        let number =
            |port: &crate::intent::PortRef| self.switch.port(&port.name).map(|port| port.number);
        if let Some(port) = rule.actions.mirror.as_ref().and_then(number) {
            at.name(port);
        }
        for step in &rule.actions.output {
            match step {
                Output::Port(port) => number(port).into_iter().for_each(|port| at.name(port)),
                Output::SetField(field, value) => at.packet.set(*field, *value),
                Output::PopVlan => at.packet.pop(),
                Output::PushVlan { vid, eth_type } => {
                    at.packet.push(*eth_type);
                    at.packet.set(Field::VlanVid, (*vid).into());
                }
                Output::SwapVlan(vid) => at.packet.set(Field::VlanVid, (*vid).into()),
                Output::Failover(failover) => {
                    let up = failover.ports.iter().filter_map(number);
                    let first = up.into_iter().find(|port| at.live.is_up(*port));
                    first.into_iter().for_each(|port| at.name(port));
                }
                // An intent with these is not compiled.
                Output::SetNicira(_) | Output::Tunnel(_) => {}
            }
        }
        match rule.actions.goes_on() {
            false => at.end(End::Acl(Some(rule))),
            true if rule.actions.force_port_vlan => at.to(forced),
            true => at.to(next),
        }
    }
}

/// How a packet without a known destination is flooded.
struct FloodClass {
    /// To one host.
    is_unicast: bool,
    /// It asks for the address of a neighbour, or for neighbours.
    is_resolution: bool,
}

impl FloodClass {
    /// `None`: addresses that bridges keep (CDP, spanning tree of PVST, and IEEE 802.1Q §8.6.3).
    fn of(packet: &Packet) -> Option<FloodClass> {
        let address = packet.mac(Field::EthDst).to_u64();
        if matches!(address, 0x0100_0ccc_cccc | 0x0100_0ccc_cccd)
            || address >> 4 == 0x0018_0c20_0000
        {
            return None;
        }
        let is_broadcast = address == MacAddr::BROADCAST.to_u64();
        let is_multicast =
            matches!(address >> 24, 0x01_80c2 | 0x01_005e) || address >> 32 == 0x3333;
        let is_solicitation = address >> 24 == 0x33_33ff;
        let is_neighbours = matches!(address, 0x3333_0000_0001 | 0x3333_0000_0002);
        let is_resolution = match packet.eth_type() {
            ARP => is_broadcast,
            IPV6 => is_solicitation || is_neighbours,
            _ => false,
        };
        Some(FloodClass { is_unicast: !is_broadcast && !is_multicast, is_resolution })
    }
}

fn is_used(port: &Port) -> bool {
    let is_own = port.number == bellrock_openflow::Port::LOCAL.0;
    port.settings.enabled && (port.number <= MAX_PORT || is_own)
}

fn exit(port: &Port, is_native: bool, is_due: bool, packet: &Packet) -> Exit {
    let (tags, vid) = match is_native {
        true => (packet.tags().saturating_sub(1), packet.inner_vid()),
        false => (packet.tags(), packet.vid()),
    };
    Exit { port: port.number, tags, vid, is_due }
}
