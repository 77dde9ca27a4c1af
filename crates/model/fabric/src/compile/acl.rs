//! Flows of ACLs: of the switch, of ports, of VLANs.

use std::collections::HashMap;

use bellrock_openflow::{Action, Field, Match, Port};

use super::port::push_vlan;
use super::{CompiledFlow, Compiler, Entries, Facts, RuleId, Table, priority};
use crate::intent::{AclUse, Output, Rule};

/// Where ACLs stand, and where their packets go on.
struct AclPlace {
    table: Table,
    /// Where an allowed packet goes on.
    next: Table,
    /// The same, with `force_port_vlan`.
    forced: Table,
    /// All rules match this too.
    base: Option<(Field, u128)>,
}

impl Compiler {
    pub(super) fn compile_switch_acl(&self, entries: &mut Entries) {
        let place = AclPlace {
            table: Table::PortAcl,
            next: Table::Vlan,
            forced: self.output_table(),
            base: None,
        };
        self.rules(&self.switch().acls, &place, false, entries);
    }

    pub(super) fn compile_port_acl(&self, number: u32, facts: &Facts, entries: &mut Entries) {
        let Some(port) = self.running(number, facts) else { return };
        if port.output_only || !self.switch().acls.is_empty() {
            return;
        }
        let place = AclPlace {
            table: Table::PortAcl,
            next: Table::Vlan,
            forced: self.output_table(),
            base: Some((Field::InPort, number.into())),
        };
        self.rules(&port.acls, &place, self.is_exact(&port.acls), entries);
    }

    pub(super) fn compile_vlan_acl_in(&self, vid: u16, entries: &mut Entries) {
        let Some(vlan) = self.vlan(vid) else { return };
        let place = AclPlace {
            table: Table::VlanAcl,
            next: self.filters(),
            forced: self.output_table(),
            base: Some((Field::VlanVid, (Match::VLAN_PRESENT | vid).into())),
        };
        self.rules(&vlan.acls_in, &place, self.is_exact(&vlan.acls_in), entries);
    }

    pub(super) fn compile_vlan_acl_out(&self, vid: u16, entries: &mut Entries) {
        let Some(vlan) = self.vlan(vid) else { return };
        let place = AclPlace {
            table: Table::EgressAcl,
            next: Table::Egress,
            forced: Table::Egress,
            base: Some((Field::VlanVid, (Match::VLAN_PRESENT | vid).into())),
        };
        self.rules(&vlan.acls_out, &place, self.is_exact(&vlan.acls_out), entries);
    }

    /// Whether the rules of ACLs all have one priority. The reader has checked that they agree.
    fn is_exact(&self, uses: &[AclUse]) -> bool {
        let first = uses.first().and_then(|first| self.intent.acl(first.acl));
        first.is_some_and(|acl| acl.exact_match)
    }

    fn rules(&self, uses: &[AclUse], place: &AclPlace, is_exact: bool, entries: &mut Entries) {
        let mut priority = priority::FILTER;
        // Of exact rules with the same match the last one counts, as in the switch.
        let mut places: HashMap<Match, usize> = HashMap::new();
        for (id, acl) in uses.iter().filter_map(|used| Some((used.acl, self.intent.acl(used.acl)?)))
        {
            for (position, rule) in (0..).zip(&acl.rules) {
                let mut compiled = self.rule(rule, place, priority);
                compiled.rule = Some(RuleId { acl: id, position });
                if is_exact {
                    let next = entries.flows.len();
                    let at = *places.entry(compiled.flow.matching.clone()).or_insert(next);
                    if at < next {
                        entries.flows[at] = compiled;
                        continue;
                    }
                } else {
                    priority -= 1;
                }
                entries.flows.push(compiled);
            }
        }
    }

    fn rule(&self, rule: &Rule, place: &AclPlace, priority: u16) -> CompiledFlow {
        let mut matching = rule.matches.clone();
        if let Some((field, value)) = place.base {
            matching.set(field, value);
        }
        let goes_on = rule.actions.goes_on();
        let mut actions = Vec::new();
        let mirror = rule.actions.mirror.as_ref().and_then(|port| self.switch().port(&port.name));
        actions.extend(mirror.map(|port| Action::output(Port(port.number))));
        rule.actions.output.iter().for_each(|step| self.step(step, &mut actions));
        if !goes_on {
            // What is changed behind the last output is seen by nobody.
            let is_output =
                |it: &Action<'_>| matches!(it, Action::Output { .. } | Action::Group(_));
            let end = actions.iter().rposition(is_output).map_or(0, |last| last + 1);
            actions.truncate(end);
        }
        let mut flow = self.flow(place.table, priority, matching).actions(&actions);
        if let Some(meter) = rule.actions.meter.and_then(|id| self.intent.meter(id)) {
            flow = flow.meter(meter.number);
        }
        if goes_on {
            let is_forced = rule.actions.force_port_vlan;
            flow = self.goto(flow, if is_forced { place.forced } else { place.next });
        }
        let cookie = rule.cookie.map_or(self.cookie(), u64::from);
        CompiledFlow { flow: flow.number(cookie as u32), cookie, rule: None }
    }

    fn step(&self, step: &Output, actions: &mut Vec<Action<'static>>) {
        match step {
            Output::Port(port) => {
                let port = self.switch().port(&port.name);
                actions.extend(port.map(|port| Action::output(Port(port.number))));
            }
            Output::SetField(field, value) => actions.push(Action::SetField(*field, *value)),
            Output::PopVlan => actions.push(Action::PopVlan),
            Output::PushVlan { vid, eth_type } => actions.extend(push_vlan(*vid, *eth_type)),
            Output::SwapVlan(vid) => {
                let tagged = Match::VLAN_PRESENT | *vid;
                actions.push(Action::SetField(Field::VlanVid, tagged.into()));
            }
            Output::Failover(failover) => actions.push(Action::Group(failover.group_id)),
            // An intent with these is refused.
            Output::SetNicira(_) | Output::Tunnel(_) => {}
        }
    }
}
