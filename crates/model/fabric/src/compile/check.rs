//! Makes a compiler, if the intent can be compiled for the switch.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellrock_openflow::Meter;

use super::{Capabilities, Compiler, Refusal, Refused, Table, TableIds, members, port, priority};
use crate::Place;
use crate::intent::{AclUse, Failover, Intent, MeterId, Output, Rule, Switch, SwitchId, Vlan};

pub(super) fn compiler(
    intent: Arc<Intent>,
    id: SwitchId,
    capabilities: Capabilities,
) -> Result<Compiler, Refused> {
    let Some(switch) = intent.switch(id) else { return Err(Refusal::NoSwitch(id).into()) };
    let mut refusals: Vec<Refusal> =
        intent.unsupported().into_iter().map(Refusal::Unsupported).collect();
    let vlans = members::vlans(&intent, switch);
    let all: Vec<&Vlan> = vlans.values().filter_map(|vlan| intent.vlan(vlan.id)).collect();
    let used = used_tables(switch, &all);
    let uses = Uses::of(&intent, switch, &all, &mut refusals);
    let Uses { failovers, meters, groups_at, meters_at } = uses;
    if !capabilities.has_groups {
        refusals.extend(groups_at.map(Refusal::NoGroups));
    }
    if !capabilities.has_meters {
        refusals.extend(meters_at.map(Refusal::NoMeters));
    }
    if used.contains(&Table::Egress) {
        let too_high = switch.ports.iter().filter(|port| port.number > port::MAX_EGRESS_PORT);
        refusals.extend(too_high.map(|port| Refusal::PortTooHigh {
            place: port.place.clone(),
            most: port::MAX_EGRESS_PORT,
        }));
    }
    let Some(ids) = TableIds::new(&used, capabilities.tables) else {
        let needed = used.len() as u8;
        let place = switch.place.clone();
        refusals.push(Refusal::TooFewTables { place, has: capabilities.tables, needed });
        return Err(Refused(refusals));
    };
    if !refusals.is_empty() {
        return Err(Refused(refusals));
    }
    let has_port_acls =
        !switch.acls.is_empty() || switch.ports.iter().any(|port| !port.acls.is_empty());
    let has_externals = switch.ports.iter().any(|port| port.settings.loop_protect_external);
    let has_restricted = switch.ports.iter().any(|port| port.settings.restricted_bcast_arpnd);
    let position = id.0 as usize;
    Ok(Compiler {
        position,
        ids,
        vlans,
        failovers,
        meters,
        has_port_acls,
        has_externals,
        has_restricted,
        intent,
    })
}

/// The tables that hold flows, in order.
fn used_tables(switch: &Switch, vlans: &[&Vlan]) -> Vec<Table> {
    let settings = &switch.settings;
    let has_out = vlans.iter().any(|vlan| !vlan.acls_out.is_empty());
    let is_hairpin =
        |port: &crate::intent::Port| port.settings.hairpin || port.settings.hairpin_unicast;
    let is_used = |table: &Table| match table {
        Table::VlanAcl => vlans.iter().any(|vlan| !vlan.acls_in.is_empty()),
        Table::Classification => settings.use_classification,
        Table::EthDstHairpin => switch.ports.iter().any(is_hairpin),
        Table::EgressAcl => has_out,
        Table::Egress => has_out || settings.egress_pipeline,
        Table::PortAcl | Table::Vlan | Table::EthSrc | Table::EthDst | Table::Flood => true,
        Table::Copro | Table::Ipv4Fib | Table::Ipv6Fib | Table::Vip => false,
    };
    Table::ALL.into_iter().filter(is_used).collect()
}

/// Groups and meters that the rules of a switch use, and the first place that needs them.
#[derive(Default)]
struct Uses {
    failovers: BTreeMap<u32, Vec<u32>>,
    meters: BTreeMap<u32, MeterId>,
    groups_at: Option<Place>,
    meters_at: Option<Place>,
}

impl Uses {
    fn of(intent: &Intent, switch: &Switch, vlans: &[&Vlan], refusals: &mut Vec<Refusal>) -> Self {
        let mut uses = Uses::default();
        let settings = &switch.settings;
        if settings.group_table {
            uses.groups_at = Some(switch.place.clone());
        }
        if settings.packetin_pps.is_some() || settings.slowpath_pps.is_some() {
            uses.meters_at = Some(switch.place.clone());
        }
        let mut lists: Vec<&[AclUse]> = vec![&switch.acls];
        let with_input = switch.ports.iter().filter(|port| !port.output_only);
        lists.extend(with_input.map(|port| &port.acls[..]));
        for vlan in vlans.iter().filter(|vlan| !vlan.settings.reserved_internal_vlan) {
            lists.extend([&vlan.acls_in[..], &vlan.acls_out]);
        }
        for list in lists {
            let acls = || list.iter().filter_map(|used| intent.acl(used.acl));
            let rules: usize = acls().map(|acl| acl.rules.len()).sum();
            let lowest = settings.lowest_priority.unwrap_or(0);
            let most = usize::from(priority::FILTER.saturating_sub(lowest));
            if let Some(first) = list.first().filter(|_| rules > most) {
                refusals.push(Refusal::TooManyRules { place: first.place.clone(), rules, most });
            }
            for rule in acls().flat_map(|acl| &acl.rules) {
                uses.rule(intent, switch, rule, refusals);
            }
        }
        if settings.group_table {
            uses.check_floods(vlans, switch, refusals);
        }
        uses
    }

    fn rule(&mut self, intent: &Intent, switch: &Switch, rule: &Rule, refusals: &mut Vec<Refusal>) {
        if let Some(id) = rule.actions.meter
            && let Some(meter) = intent.meter(id)
        {
            let known = *self.meters.entry(meter.number).or_insert(id);
            if known != id {
                let (place, number) = (meter.place.clone(), meter.number);
                refusals.push(Refusal::MeterTwice { place, number });
            }
            self.meters_at.get_or_insert_with(|| rule.place.clone());
        }
        for step in &rule.actions.output {
            let Output::Failover(Failover { place, group_id, ports }) = step else { continue };
            self.groups_at.get_or_insert_with(|| place.clone());
            let ports: Vec<u32> = ports
                .iter()
                .filter_map(|port| switch.port(&port.name).map(|port| port.number))
                .collect();
            let known = self.failovers.entry(*group_id).or_insert_with(|| ports.clone());
            if *known != ports {
                let (place, group) = (place.clone(), *group_id);
                refusals.push(Refusal::GroupTwice { place, group });
            }
        }
    }

    /// Floods have the groups of the VLANs' ids.
    fn check_floods(&self, vlans: &[&Vlan], switch: &Switch, refusals: &mut Vec<Refusal>) {
        let vids = vlans.iter().map(|vlan| u32::from(vlan.vid));
        for group in vids.flat_map(|vid| [vid, vid + super::flood::UNICAST_GROUP]) {
            if self.failovers.contains_key(&group) {
                refusals.push(Refusal::GroupTwice { place: switch.place.clone(), group });
            }
        }
    }
}

impl Compiler {
    /// The numbers of all meters: of rules, and of the way to the controller.
    pub(super) fn all_meters(&self) -> impl Iterator<Item = u32> + '_ {
        let settings = &self.switch().settings;
        let controller = settings.packetin_pps.map(|_| Meter::CONTROLLER);
        let slow_path = settings.slowpath_pps.map(|_| Meter::SLOWPATH);
        self.meters.keys().copied().chain(controller).chain(slow_path)
    }
}
