//! From an intent to the tables of a switch: `compile(intent, facts)`, a pure function.
//!
//! # What it is
//! A [`Compiler`] stands for one switch of an [`Intent`]. Everything in the switch has an
//! [`Owner`]: a port, a VLAN, a port in a VLAN, an ACL, a host. [`Compiler::compile_owner`] makes
//! what one owner has, from the intent and the [`Facts`], and from nothing else.
//! [`Compiler::tables`] does so for all owners. A changed fact concerns a few owners
//! ([`Compiler::owners_of`]), and [`Compiler::change`] compiles these only, before and after, and
//! returns what differs.
//!
//! # What it is not
//! It sends nothing, and decides nothing about time: who learns hosts, and when they are forgotten,
//! is the app's affair. It keeps no flows: they follow from the facts.
//!
//! # The pipeline
//! Tables, matches and priorities are Faucet's, so that its tests and tools find what they look
//! for. docs/book/src/internals/fabric.md has the tables and the differences.

mod acl;
mod check;
mod facts;
mod flood;
mod host;
mod members;
mod owner;
mod port;
mod priority;
mod refused;
mod switch;
mod table;
mod tables;
mod vlan;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellrock_api::Flow;
use bellrock_openflow::Match;

pub use facts::{Capabilities, Fact, Facts, HostKey};
use members::SwitchVlan;
pub use owner::Owner;
pub use refused::{Refusal, Refused};
pub use table::{Table, TableIds};
pub use tables::{CompiledFlow, Entries, RuleId, Tables};

use crate::diff::Plan;
use crate::intent::{Intent, MeterId, Port, Switch, SwitchId, Vlan};

/// Compiles all tables of a switch. Equal arguments give equal tables.
///
/// # Errors
/// [`Refused`], with all reasons.
pub fn compile(intent: &Arc<Intent>, switch: SwitchId, facts: &Facts) -> Result<Tables, Refused> {
    let compiler = Compiler::new(Arc::clone(intent), switch, facts.capabilities)?;
    Ok(compiler.tables(facts))
}

/// Compiles one switch of an intent.
#[derive(Clone, Debug)]
pub struct Compiler {
    intent: Arc<Intent>,
    /// Position of the switch, which there is.
    position: usize,
    ids: TableIds,
    /// The VLANs of its ports, by id.
    vlans: BTreeMap<u16, SwitchVlan>,
    /// Ports of the groups of its `failover`, by group.
    failovers: BTreeMap<u32, Vec<u32>>,
    /// Meters of its rules, by number.
    meters: BTreeMap<u32, MeterId>,
    /// Some packets are for ACLs of ports, or of the switch.
    has_port_acls: bool,
    /// Some port leads to an external network.
    has_externals: bool,
    /// Some port has restricted broadcasts.
    has_restricted: bool,
}

impl Compiler {
    /// A compiler for a switch of an intent, with the abilities that it has in this connection.
    /// Those in later facts do not matter.
    ///
    /// # Errors
    /// [`Refused`], with all reasons.
    pub fn new(
        intent: Arc<Intent>,
        switch: SwitchId,
        capabilities: Capabilities,
    ) -> Result<Self, Refused> {
        check::compiler(intent, switch, capabilities)
    }

    /// The numbers of its tables.
    #[must_use]
    pub fn table_ids(&self) -> TableIds {
        self.ids
    }

    /// Everything that has an owner, in order.
    #[must_use]
    pub fn owners(&self, facts: &Facts) -> Vec<Owner> {
        let switch = self.switch();
        let mut owners = vec![Owner::Switch, Owner::SwitchAcl];
        owners.extend(self.all_meters().map(Owner::Meter));
        owners.extend(self.failovers.keys().copied().map(Owner::Failover));
        for port in &switch.ports {
            self.owners_of_port(port, &mut owners);
        }
        for vid in self.vlans.keys().copied() {
            owners.extend([Owner::Vlan(vid), Owner::VlanAclIn(vid), Owner::VlanAclOut(vid)]);
            owners.push(Owner::Flood(vid));
        }
        owners.extend(facts.hosts().map(|(host, _)| Owner::Host(host)));
        owners.extend(facts.banned_ports().map(Owner::PortBan));
        owners.extend(facts.banned_vlans().map(Owner::VlanBan));
        owners.extend(facts.strays().map(|(mac, port)| Owner::Stray { mac, port }));
        owners.sort_unstable();
        owners
    }

    fn owners_of_port(&self, port: &Port, owners: &mut Vec<Owner>) {
        owners.extend([Owner::Port(port.number), Owner::PortAcl(port.number)]);
        let vlans = members::vlans_of(&self.intent, port);
        owners.extend(vlans.map(|vlan| Owner::PortVlan { port: port.number, vid: vlan.vid }));
    }

    /// The owners that a changed fact concerns.
    #[must_use]
    pub fn owners_of(&self, facts: &Facts, fact: Fact) -> Vec<Owner> {
        let number = match fact {
            Fact::PortUp(port) | Fact::PortDown(port) => port,
            Fact::HostAt(host, _) | Fact::HostGone(host) => return vec![Owner::Host(host)],
            Fact::PortBanned(port) | Fact::PortAllowed(port) => return vec![Owner::PortBan(port)],
            Fact::VlanBanned(vid) | Fact::VlanAllowed(vid) => return vec![Owner::VlanBan(vid)],
            Fact::Stray(mac, port) | Fact::StrayGone(mac, port) => {
                return vec![Owner::Stray { mac, port }];
            }
        };
        let mut owners = Vec::new();
        let Some(port) = self.switch().port_numbered(number) else { return owners };
        self.owners_of_port(port, &mut owners);
        let vlans = members::vlans_of(&self.intent, port);
        owners.extend(vlans.map(|vlan| Owner::Flood(vlan.vid)));
        owners.extend(facts.hosts_at(number).map(Owner::Host));
        owners.push(Owner::PortBan(number));
        let strays = facts.strays().filter(|(_, at)| *at == number);
        owners.extend(strays.map(|(mac, port)| Owner::Stray { mac, port }));
        owners.sort_unstable();
        owners
    }

    /// Takes a fact in, and returns what changes in the switch by it.
    pub fn change(&self, facts: &mut Facts, fact: Fact) -> Plan {
        let owners = self.owners_of(facts, fact);
        let compile = |facts: &Facts| -> Vec<Entries> {
            owners.iter().map(|owner| self.compile_owner(*owner, facts)).collect()
        };
        let before = compile(facts);
        if !facts.set(fact) {
            return Plan::default();
        }
        Plan::between(&before, &compile(facts))
    }

    /// Compiles all tables.
    #[must_use]
    pub fn tables(&self, facts: &Facts) -> Tables {
        let mut tables = Tables::new(self.ids);
        for owner in self.owners(facts) {
            tables.set(owner, self.compile_owner(owner, facts));
        }
        tables
    }

    /// Compiles what one owner has: nothing, if the intent or the facts do not have it.
    #[must_use]
    pub fn compile_owner(&self, owner: Owner, facts: &Facts) -> Entries {
        let mut entries = Entries::default();
        let into = &mut entries;
        match owner {
            Owner::Switch => self.compile_switch(into),
            Owner::Meter(number) => self.compile_meter(number, into),
            Owner::Failover(number) => self.compile_failover(number, into),
            Owner::SwitchAcl => self.compile_switch_acl(into),
            Owner::Port(number) => self.compile_port(number, facts, into),
            Owner::PortAcl(number) => self.compile_port_acl(number, facts, into),
            Owner::PortVlan { port, vid } => self.compile_port_vlan(port, vid, facts, into),
            Owner::Vlan(vid) => self.compile_vlan(vid, into),
            Owner::VlanAclIn(vid) => self.compile_vlan_acl_in(vid, into),
            Owner::VlanAclOut(vid) => self.compile_vlan_acl_out(vid, into),
            Owner::Flood(vid) => self.compile_flood(vid, facts, into),
            Owner::Host(host) => self.compile_host(host, facts, into),
            Owner::PortBan(port) => self.compile_port_ban(port, facts, into),
            Owner::VlanBan(vid) => self.compile_vlan_ban(vid, facts, into),
            Owner::Stray { mac, port } => self.compile_stray(mac, port, facts, into),
        }
        entries
    }

    fn switch(&self) -> &Switch {
        &self.intent.switches[self.position]
    }

    /// A VLAN of the switch whose packets are forwarded: not one for tunnels only.
    fn vlan(&self, vid: u16) -> Option<&Vlan> {
        let vlan = self.vlans.get(&vid).and_then(|members| self.intent.vlan(members.id))?;
        (!vlan.settings.reserved_internal_vlan).then_some(vlan)
    }

    /// The VLAN with this id, if the port is in it, and whether it is the port's native one.
    fn membership(&self, port: u32, vid: u16) -> Option<(&Vlan, bool)> {
        let members = self.vlans.get(&vid)?;
        let ports = &self.switch().ports;
        let place = ports.binary_search_by_key(&port, |port| port.number).ok()?;
        let is_native = members.untagged.binary_search(&place).is_ok();
        let is_member = is_native || members.tagged.binary_search(&place).is_ok();
        self.intent.vlan(members.id).filter(|_| is_member).map(|vlan| (vlan, is_native))
    }

    /// The port with this number, if packets may pass it now.
    fn running(&self, number: u32, facts: &Facts) -> Option<&Port> {
        self.switch().port_numbered(number).filter(|port| members::is_running(port, facts))
    }

    fn cookie(&self) -> u64 {
        self.switch().settings.cookie
    }

    /// The table with filters.
    fn filters(&self) -> Table {
        if self.ids.is_used(Table::Classification) { Table::Classification } else { Table::EthSrc }
    }

    /// The first table that looks for the destination.
    fn output_table(&self) -> Table {
        if self.ids.is_used(Table::EthDstHairpin) { Table::EthDstHairpin } else { Table::EthDst }
    }

    fn flow(&self, table: Table, priority: u16, matching: Match) -> Flow {
        Flow::new(matching).table(self.ids.id(table)).priority(priority)
    }

    fn goto(&self, flow: Flow, table: Table) -> Flow {
        flow.goto_table(self.ids.id(table))
    }
}
