//! Packets through the tables, in the emulated switch: where floods and known hosts' packets go.
//!
//! The expected ports come from a model of a VLAN that is written here a second time, without
//! tables.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{BucketEntry, Change, FlowCommand, GroupEntry, MeterEntry};
use bellrock_emulator::datapath::{Datapath, DatapathSettings, Effects};
use bellrock_emulator::packet::build::Eth;
use bellrock_fabric::compile::{Capabilities, Compiler, Fact, Facts, HostKey, Tables};
use bellrock_fabric::diff::Step;
use bellrock_fabric::intent::SwitchId;
use bellrock_fabric::{Plan, diff};
use bellrock_openflow::{
    Bucket, FixedStr, FlowMod, GroupCommand, GroupMod, List, MacAddr, MeterCommand, MeterMod, Port,
    PortConfig, PortDesc, PortFeatures, PortState, Version,
};
use proptest::prelude::*;

use super::intent;

pub(super) const PORTS: u32 = 5;
pub(super) const VLANS: [u16; 3] = [100, 200, 300];
const ARP: u16 = 0x0806;
pub(super) const OTHER: u16 = 0x88b5;
const NOW: Duration = Duration::from_secs(1_000);

/// A port of a random network.
#[derive(Clone, Debug, Default)]
pub(super) struct RandomPort {
    native: Option<u16>,
    tagged: Vec<u16>,
    unicast_flood: bool,
    hairpin: bool,
    external: bool,
    restricted: bool,
    pub(super) enabled: bool,
    has_acl: bool,
}

/// A random network of one switch.
#[derive(Clone, Debug)]
pub(super) struct RandomNetwork {
    pub(super) ports: Vec<RandomPort>,
    mirrored: Option<u32>,
    settings: &'static str,
    acl: &'static str,
    vlan_keys: &'static str,
}

impl RandomNetwork {
    /// The port that gets copies.
    pub(super) const MIRROR: u32 = PORTS + 1;

    pub(super) fn text(&self) -> String {
        let vlans: Vec<String> =
            VLANS.iter().map(|vid| format!("v{vid}: {{vid: {vid}{}}}", self.vlan_keys)).collect();
        let mut ports: Vec<String> = (1..).zip(&self.ports).map(|(n, it)| it.text(n)).collect();
        ports.extend(self.mirrored.map(|port| format!("{}: {{mirror: {port}}}", Self::MIRROR)));
        format!(
            "vlans: {{{}}}\nacls:\n  x: [{}]\ndps:\n  sw1:\n    dp_id: 1\n    interfaces: {{{}}}\n{}",
            vlans.join(", "),
            self.acl,
            ports.join(", "),
            self.settings
        )
    }

    fn members(&self, vid: u16) -> impl Iterator<Item = (u32, &RandomPort)> {
        let is_in = move |it: &RandomPort| it.native == Some(vid) || it.tagged.contains(&vid);
        (1..).zip(&self.ports).filter(move |(_, it)| it.enabled && is_in(it))
    }

    /// Where a flood of a port goes, with the tag that it has there.
    fn flood(
        &self,
        from: u32,
        vid: u16,
        is_unicast: bool,
        is_arp: bool,
    ) -> Vec<(u32, Option<u16>)> {
        let source = &self.ports[from as usize - 1];
        let first_external = self.members(vid).find(|(_, it)| it.external).map(|(n, _)| n);
        let mut out: Vec<(u32, Option<u16>)> = self
            .members(vid)
            .filter(|(n, it)| {
                let is_asked = it.unicast_flood || !is_unicast;
                let is_back = *n == from;
                let is_external = it.external && (source.external || first_external != Some(*n));
                let is_restricted = it.restricted && source.restricted && !is_arp;
                match is_back {
                    true => it.hairpin && is_asked,
                    false => is_asked && !is_external && !is_restricted,
                }
            })
            .map(|(n, it)| (n, (it.native != Some(vid)).then_some(vid)))
            .collect();
        out.sort_unstable();
        out
    }
}

impl RandomPort {
    fn text(&self, number: u32) -> String {
        let mut keys = Vec::new();
        keys.extend(self.native.map(|vid| format!("native_vlan: v{vid}")));
        if !self.tagged.is_empty() {
            let names: Vec<String> = self.tagged.iter().map(|vid| format!("v{vid}")).collect();
            keys.push(format!("tagged_vlans: [{}]", names.join(", ")));
        }
        for (is, key) in [
            (!self.unicast_flood, "unicast_flood: false"),
            (self.hairpin, "hairpin: true"),
            (self.external, "loop_protect_external: true"),
            (self.restricted, "restricted_bcast_arpnd: true"),
            (!self.enabled, "enabled: false"),
            (self.has_acl, "acls_in: [x]"),
        ] {
            keys.extend(is.then(|| key.to_owned()));
        }
        format!("{number}: {{{}}}", keys.join(", "))
    }
}

fn random_port() -> impl Strategy<Value = RandomPort> {
    let rarely = || prop::bool::weighted(0.2);
    let vlans = (prop::option::of(0..VLANS.len()), prop::collection::vec(any::<bool>(), 3));
    (vlans, rarely(), rarely(), rarely(), rarely(), rarely()).prop_map(
        |((native, tagged), silent, hairpin, external, restricted, disabled)| {
            let native = native.map(|at| VLANS[at]);
            let is_tagged =
                |(at, vid): (usize, &u16)| (tagged[at] && native != Some(*vid)).then_some(*vid);
            let mut tagged: Vec<u16> = VLANS.iter().enumerate().filter_map(is_tagged).collect();
            if native.is_none() && tagged.is_empty() {
                tagged.push(VLANS[0]);
            }
            RandomPort {
                native,
                tagged,
                unicast_flood: !silent,
                hairpin,
                external,
                restricted,
                enabled: !disabled,
                has_acl: false,
            }
        },
    )
}

const SETTINGS: [&str; 4] = [
    "",
    "    group_table: true\n",
    "    combinatorial_port_flood: true\n",
    "    use_classification: true\n",
];

pub(super) fn random_network() -> impl Strategy<Value = RandomNetwork> {
    (
        prop::collection::vec(random_port(), PORTS as usize),
        prop::option::weighted(0.3, 1..=PORTS),
        prop::sample::select(&SETTINGS[..]),
    )
        .prop_map(|(ports, mirrored, settings)| RandomNetwork {
            ports,
            mirrored,
            settings,
            acl: "{actions: {allow: 1}}",
            vlan_keys: "",
        })
}

const ACLS: [&str; 5] = [
    "{eth_type: 0x800, actions: {allow: 0}}, {actions: {allow: 1}}",
    "{vlan_vid: 100, actions: {allow: 1, output: [{swap_vid: 200}, {port: 1}]}}",
    "{actions: {output: {failover: {group_id: 9000, ports: [1, 2]}}}}, {eth_type: 0x806, actions: {allow: 1}}",
    "{actions: {mirror: 5, force_port_vlan: 1, allow: 1}}",
    "{vlan_vid: 100, eth_type: 0x800, actions: {allow: 1, output: {pop_vlans: 1, vlan_vid: 300, ports: [1, 2]}}}",
];
const VLAN_KEYS: [&str; 4] =
    ["", ", acls_in: [x]", ", acls_out: [x]", ", acls_in: [x], unicast_flood: false"];

/// The same with ACLs, for what does not look at packets.
pub(super) fn random_network_with_acls() -> impl Strategy<Value = RandomNetwork> {
    (
        random_network(),
        prop::sample::select(&ACLS[..]),
        prop::sample::select(&VLAN_KEYS[..]),
        prop::collection::vec(any::<bool>(), PORTS as usize),
    )
        .prop_map(|(mut network, acl, vlan_keys, has_acl)| {
            network.ports.iter_mut().zip(has_acl).for_each(|(port, has)| port.has_acl = has);
            RandomNetwork { acl, vlan_keys, ..network }
        })
}

/// An emulated switch, which refuses what a switch would refuse.
pub(super) struct EmulatedSwitch {
    datapath: Datapath,
    effects: Effects,
}

impl EmulatedSwitch {
    pub(super) fn new() -> Self {
        let settings = DatapathSettings {
            ports: (1..=PORTS + 1).map(port).collect(),
            queues: Vec::new(),
            tables: 254,
            table_capacity: 10_000,
            buffers: 0,
            rules: Version::V1_3,
        };
        EmulatedSwitch { datapath: Datapath::new(settings, NOW), effects: Effects::new() }
    }

    pub(super) fn carry_out(&mut self, plan: &Plan) {
        for step in plan.steps() {
            self.step(step);
        }
    }

    pub(super) fn step(&mut self, step: &Step) {
        let Step::Change { change, .. } = step else { return };
        match change {
            Change::Add(flow) => {
                let added = flow.with_flow_mod(FlowCommand::Add, |flow| self.flow(flow));
                added.unwrap_or_else(|error| panic!("{error:?}: {flow}"));
            }
            Change::Remove(flow) => {
                let flow_mod = FlowMod::delete(&flow.matching).strict();
                let flow_mod = flow_mod.table(flow.table).priority(flow.priority);
                self.flow(&flow_mod).unwrap();
            }
            Change::AddGroup(group) => self.group(GroupCommand::Add, group),
            Change::ModifyGroup(group) => self.group(GroupCommand::Modify, group),
            Change::RemoveGroup(id) => {
                let group = GroupEntry::new(*id, bellrock_openflow::GroupType::All);
                self.group(GroupCommand::Delete, &group);
            }
            Change::AddMeter(meter) => self.meter(MeterCommand::Add, meter),
            other => panic!("{other}"),
        }
    }

    /// Carries out a change of a flow. Returns whether the switch takes it.
    pub(super) fn takes(&mut self, change: &Change) -> bool {
        match change {
            Change::Add(flow) => {
                flow.with_flow_mod(FlowCommand::Add, |flow| self.flow(flow)).is_ok()
            }
            change => {
                self.step(&Step::Change { change: change.clone(), cookie: 0 });
                true
            }
        }
    }

    fn flow(&mut self, flow: &FlowMod<'_>) -> Result<(), bellrock_openflow::ErrorCode> {
        self.datapath.flow_mod(Version::V1_3, flow, NOW, &mut self.effects)
    }

    fn group(&mut self, command: GroupCommand, entry: &GroupEntry) {
        let bucket =
            |it: &BucketEntry| -> (u16, Port, u32, Vec<bellrock_openflow::Action<'static>>) {
                (it.weight, it.watch_port, it.watch_group, it.actions.clone())
            };
        let owned: Vec<_> = entry.buckets.iter().map(bucket).collect();
        let buckets: Vec<Bucket<'_>> = owned
            .iter()
            .map(|(weight, watch_port, watch_group, actions)| Bucket {
                weight: *weight,
                watch_port: *watch_port,
                watch_group: *watch_group,
                actions: List::of(actions),
            })
            .collect();
        let request =
            GroupMod { command, kind: entry.kind, group: entry.id, buckets: List::of(&buckets) };
        self.datapath.group_mod(Version::V1_3, &request, NOW, &mut self.effects).unwrap();
    }

    fn meter(&mut self, command: MeterCommand, entry: &MeterEntry) {
        let (flags, meter, bands) = (entry.flags, entry.id, List::of(&entry.bands));
        let request = MeterMod { command, flags, meter, bands };
        self.datapath.meter_mod(&request, NOW, &mut self.effects).unwrap();
    }

    /// Receives a frame by a port. Returns where copies leave, with their tags.
    pub(super) fn receive(
        &mut self,
        port: u32,
        tag: Option<u16>,
        (src, dst): (MacAddr, MacAddr),
        eth_type: u16,
    ) -> Vec<(u32, Option<u16>)> {
        let eth = Eth::new(src, dst);
        let eth = match tag {
            Some(vid) => eth.vlan(vid, 0),
            None => eth,
        };
        let payload = [0; 46];
        self.datapath.receive(port, eth.payload(eth_type, &payload), NOW, &mut self.effects);
        let mut left: Vec<(u32, Option<u16>)> = self
            .effects
            .frames
            .drain(..)
            .map(|(port, frame)| {
                let is_tagged = frame[12..14] == [0x81, 0];
                let vid = u16::from_be_bytes([frame[14], frame[15]]) & 0x0fff;
                (port, is_tagged.then_some(vid))
            })
            .collect();
        self.effects.notices.clear();
        left.sort_unstable();
        left
    }
}

fn port(number: u32) -> PortDesc {
    PortDesc {
        port: Port(number),
        address: MacAddr::from_u64(0x0a00_0000_0000 + u64::from(number)),
        name: FixedStr::new("port"),
        config: PortConfig::empty(),
        state: PortState::empty(),
        current: PortFeatures::RATE_1GB_FD,
        advertised: PortFeatures::empty(),
        supported: PortFeatures::empty(),
        peer: PortFeatures::empty(),
        current_speed: 1_000_000,
        max_speed: 1_000_000,
    }
}

pub(super) fn compiler(network: &RandomNetwork) -> Compiler {
    let intent = Arc::new(intent(&network.text()));
    Compiler::new(intent, SwitchId(0), Capabilities::default()).unwrap()
}

pub(super) fn all_up() -> Facts {
    Facts::with_ports(1..=PORTS + 1)
}

/// A switch with these tables, installed in the order of a plan.
pub(super) fn installed(tables: &Tables) -> EmulatedSwitch {
    let mut switch = EmulatedSwitch::new();
    let entries: Vec<_> = tables.owners().map(|(_, entries)| entries.clone()).collect();
    switch.carry_out(&Plan::between(&[], &entries));
    switch
}

/// The address of a host at a port.
pub(super) fn host(port: u32) -> MacAddr {
    MacAddr::from_u64(0x0200_0000_0000 + u64::from(port))
}

const UNKNOWN: MacAddr = MacAddr([2, 0, 0, 0, 1, 0]);
const MULTICAST: MacAddr = MacAddr([0x01, 0x00, 0x5e, 1, 2, 3]);
const LLDP: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e]);

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_flood_reaches_each_port_of_the_vlan_once_and_no_other(network in random_network()) {
        let mut switch = installed(&compiler(&network).tables(&all_up()));
        for from in 1..=PORTS {
            let port = &network.ports[from as usize - 1];
            for vid in VLANS {
                let is_native = port.native == Some(vid);
                let tag = (!is_native).then_some(vid);
                let is_member = port.enabled && (is_native || port.tagged.contains(&vid));
                for (dst, eth_type) in [
                    (UNKNOWN, OTHER), (MacAddr::BROADCAST, OTHER), (MacAddr::BROADCAST, ARP), (MULTICAST, OTHER),
                ] {
                    let mut left = switch.receive(from, tag, (host(from), dst), eth_type);
                    left.retain(|(port, _)| *port != RandomNetwork::MIRROR);
                    let expected = match is_member {
                        true => network.flood(from, vid, dst == UNKNOWN, eth_type == ARP),
                        false => Vec::new(),
                    };
                    prop_assert_eq!(left, expected, "from {} in {} to {}", from, vid, dst);
                }
                let reserved = switch.receive(from, tag, (host(from), LLDP), OTHER);
                prop_assert!(reserved.iter().all(|(port, _)| *port == RandomNetwork::MIRROR));
            }
        }
    }

    #[test]
    fn a_mirror_gets_copies_of_its_port_only(network in random_network(), to in 1..=PORTS) {
        let mut switch = installed(&compiler(&network).tables(&all_up()));
        for from in 1..=PORTS {
            let port = &network.ports[from as usize - 1];
            let Some(vid) = port.native.filter(|_| port.enabled) else { continue };
            let left = switch.receive(from, None, (host(from), UNKNOWN), OTHER);
            let copies = left.iter().filter(|(port, _)| *port == RandomNetwork::MIRROR).count();
            let is_out = |port: u32| left.iter().any(|(out, _)| *out == port);
            let is_seen = network.mirrored.is_some_and(|seen| seen == from || is_out(seen));
            prop_assert_eq!(copies > 0, is_seen, "from {} in {}, port {}", from, vid, to);
        }
    }

    #[test]
    fn packets_to_a_known_host_leave_by_its_port(network in random_network(), at in 1..=PORTS) {
        let compiler = compiler(&network);
        let port = &network.ports[at as usize - 1];
        for vid in VLANS {
            let mut facts = all_up();
            facts.set(Fact::HostAt(HostKey { vid, mac: host(at) }, at));
            let mut switch = installed(&compiler.tables(&facts));
            let is_here = network.members(vid).any(|(number, _)| number == at);
            for (from, source) in network.members(vid).filter(|_| is_here) {
                let tag = (source.native != Some(vid)).then_some(vid);
                let mut left = switch.receive(from, tag, (host(from), host(at)), OTHER);
                left.retain(|(port, _)| *port != RandomNetwork::MIRROR);
                let expected = if port.external && source.external && !(from == at && port.hairpin) {
                    // Between external networks nothing passes: as if the host were unknown.
                    network.flood(from, vid, true, false)
                } else if from == at && !port.hairpin {
                    Vec::new()
                } else {
                    vec![(at, (port.native != Some(vid)).then_some(vid))]
                };
                prop_assert_eq!(left, expected, "from {} in {} to {}", from, vid, at);
            }
        }
    }

    #[test]
    fn switches_take_all_that_is_compiled_and_each_match_has_one_owner(
        network in random_network_with_acls(),
    ) {
        let tables = compiler(&network).tables(&all_up());
        installed(&tables);
        let mut owners = BTreeMap::new();
        for (owner, it) in tables.flows() {
            let key = (it.flow.table, it.flow.priority, it.flow.matching.to_string());
            let other = owners.insert(key.clone(), owner);
            prop_assert!(other.is_none(), "{:?} of {} and of {:?}", key, owner, other);
        }
    }

    #[test]
    fn changed_facts_and_files_lead_to_what_is_compiled_anew(
        one in random_network_with_acls(),
        other in random_network_with_acls(),
        facts in prop::collection::vec((1..=PORTS, 0..6_u8, any::<bool>()), 0..12),
    ) {
        let compiler = compiler(&one);
        let mut now = all_up();
        let mut switch = installed(&compiler.tables(&now));
        for (port, kind, is_on) in facts {
            let key = HostKey { vid: VLANS[kind as usize % 3], mac: host(u32::from(kind)) };
            let fact = match (kind, is_on) {
                (0, true) => Fact::PortUp(port),
                (0, false) => Fact::PortDown(port),
                (1, true) => Fact::PortBanned(port),
                (1, false) => Fact::PortAllowed(port),
                (2, true) => Fact::Stray(host(9), port),
                (2, false) => Fact::StrayGone(host(9), port),
                (_, true) => Fact::HostAt(key, port),
                (_, false) => Fact::HostGone(key),
            };
            let plan = compiler.change(&mut now, fact);
            switch.carry_out(&plan);
            prop_assert_eq!(shown(&switch), shown(&installed(&compiler.tables(&now))));
        }
        let (old, new) = (compiler.tables(&now), self::compiler(&other).tables(&now));
        switch.carry_out(&diff(&old, &new));
        prop_assert_eq!(shown(&switch), shown(&installed(&new)));
    }

    #[test]
    fn packets_of_others_pass_while_a_port_changes(
        network in random_network(),
        changed in random_port(),
        is_group in any::<bool>(),
    ) {
        let mut network = RandomNetwork { mirrored: None, ..network };
        network.settings = if is_group { SETTINGS[1] } else { SETTINGS[0] };
        for port in &mut network.ports[1..3] {
            *port = RandomPort { native: Some(100), unicast_flood: true, enabled: true, ..RandomPort::default() };
        }
        let mut facts = all_up();
        for at in [2, 3] {
            facts.set(Fact::HostAt(HostKey { vid: 100, mac: host(at) }, at));
        }
        let old = compiler(&network).tables(&facts);
        network.ports[0] = changed;
        let new = compiler(&network).tables(&facts);
        let mut switch = installed(&old);
        for step in diff(&old, &new).steps() {
            switch.step(step);
            let left = switch.receive(2, None, (host(2), host(3)), OTHER);
            prop_assert_eq!(left, vec![(3, None)], "{:?}", step);
            let flooded = switch.receive(2, None, (host(2), MacAddr::BROADCAST), OTHER);
            prop_assert_eq!(flooded.iter().filter(|(port, _)| *port == 3).count(), 1, "{:?}", step);
        }
    }
}

/// The flows and groups of a switch, as text.
fn shown(switch: &EmulatedSwitch) -> Vec<String> {
    let mut lines = Vec::new();
    for (table, flows) in switch.datapath.tables().iter() {
        for (_, flow) in flows.flows() {
            let (priority, matching) = (flow.priority, flow.matching());
            let instructions = flow.program.instructions();
            lines.push(format!("{table} {priority} {matching} {instructions:?}"));
        }
    }
    for (id, group) in switch.datapath.groups().iter() {
        let buckets: Vec<String> = group.buckets.iter().map(|it| it.bucket().to_string()).collect();
        lines.push(format!("{id} {}", buckets.join(" ")));
    }
    lines.sort();
    lines
}
