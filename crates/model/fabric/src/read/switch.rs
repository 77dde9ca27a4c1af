//! `dps`: switches.

use std::sync::Arc;

use bellrock_api::Dpid;

use super::vlan::CONTROLLER_MAC;
use super::{Reading, Section, section};
use crate::intent::{AclUse, Hardware, Intent, Switch, SwitchId};
use crate::keys::{
    DOT1X, DP, DP_LLDP, DP_STACK, Dot1xSettings, StackSettings, SwitchLldp, SwitchSettings,
    TABLE_SIZES, TableSizes,
};
use crate::yaml::{Entry, Scalar};

/// Priorities above `priority_offset`.
const LOW_PRIORITY: u16 = 9000;
/// From `high_priority` to `highest_priority`.
const HIGHEST_STEP: u16 = 98;

impl Reading {
    pub(super) fn switches(&mut self, entries: &[Entry], intent: &mut Intent) {
        for entry in entries {
            let id = SwitchId(u32::try_from(intent.switches.len()).unwrap_or(u32::MAX));
            if let Some(switch) = self.switch(entry, id, intent) {
                intent.switches.push(switch);
            }
        }
    }

    fn switch(&mut self, entry: &Entry, id: SwitchId, intent: &mut Intent) -> Option<Switch> {
        let Some(key) = entry.key.text() else {
            let message =
                format!("`{}` cannot name a switch; put it in quotes, or give a word", entry.key);
            self.problem(&entry.place, message);
            return None;
        };
        let section = Section::of_node(&entry.value, DP, "key of a switch", self)?;
        let name: Option<Arc<str>> = section.value("name");
        if name.as_deref().is_some_and(|name| name != key) {
            let message = format!("`name` must be the key, `{key}`; remove it");
            self.problem(section.place_of("name"), message);
        }
        let name: Arc<str> = key.into();
        let description: Option<Arc<str>> = section.value("description");
        let dpid = self.dpid(&section, entry);
        let settings = self.switch_settings(&section);
        // What is there but empty is wrong, unlike other empty values.
        let interfaces = entry.value.get("interfaces").map(|entry| &*entry.value);
        let ranges = entry.value.get("interface_ranges").map(|entry| &*entry.value);
        if !interfaces.is_some_and(|it| it.is_truthy()) && !ranges.is_some_and(|it| it.is_truthy())
        {
            let message =
                format!("switch `{key}` has no ports; give `interfaces:` with one at least");
            self.problem(&entry.place, message);
        }
        let interfaces = self.port_section(interfaces, "interfaces");
        let ranges = self.port_section(ranges, "interface_ranges");
        let mut ports = Vec::new();
        for draft in self.port_drafts(interfaces, ranges) {
            ports.extend(self.port(&draft, id, intent));
        }
        ports.sort_by_key(|port| port.number);
        let part = |key| section.node(key).filter(|node| node.is_truthy());
        let lldp = part("lldp_beacon").and_then(|node| {
            let section = Section::of_node(node, DP_LLDP, "key of a switch's LLDP", self)?;
            Some(SwitchLldp::read(&section))
        });
        let stack = section.node("stack").and_then(|node| {
            let section = Section::of_node(node, DP_STACK, "key of a stack", self)?;
            Some(StackSettings::read(&section))
        });
        let dot1x = part("dot1x").and_then(|node| {
            let section = Section::of_node(node, DOT1X, "key of `dot1x`", self)?;
            Some(Dot1xSettings::read(&section))
        });
        let table_sizes = section.node("table_sizes").and_then(|node| {
            let section = Section::of_node(node, TABLE_SIZES, "name of a table", self)?;
            Some(TableSizes::read(&section))
        });
        let nothing = || TableSizes::read(&Section::nothing(&entry.place, TABLE_SIZES));
        Some(Switch {
            place: entry.place.clone(),
            description: description.unwrap_or_else(|| Arc::clone(&name)),
            name,
            dpid: dpid?,
            hardware: self.hardware(&section),
            settings,
            mac: self.mac(&section, "faucet_dp_mac").unwrap_or(CONTROLLER_MAC),
            ports,
            acls: self.dp_acls(&section),
            lldp,
            stack,
            dot1x,
            table_sizes: table_sizes.unwrap_or_else(nothing),
        })
    }

    fn dpid(&mut self, section: &Section<'_>, entry: &Entry) -> Option<Dpid> {
        let number = section.node("dp_id").and_then(|node| node.scalar()).and_then(Scalar::int);
        let dpid = number.and_then(|number| u64::try_from(number).ok()).map(Dpid);
        if dpid.is_none() {
            let place = section.entry("dp_id").map_or(&entry.place, |entry| &entry.value.place);
            let message = format!(
                "switch `{}` needs `dp_id`, a number of up to 64 bits, such as 0x1",
                entry.key
            );
            // A value of a wrong type was reported.
            let is_reported = section.entry("dp_id").is_none()
                && entry.value.get("dp_id").is_some_and(|it| !it.value.is_null());
            if !is_reported {
                self.problem(&place.clone(), message);
            }
        }
        dpid
    }

    fn hardware(&mut self, section: &Section<'_>) -> Hardware {
        let name: Arc<str> = section.value("hardware");
        match Hardware::ALL.iter().find(|(known, _)| **known == *name) {
            Some((_, hardware)) => *hardware,
            None => {
                let names: Vec<&str> = Hardware::ALL.iter().map(|(name, _)| *name).collect();
                let key = Scalar::Text(name);
                let message = section::unknown(&key, "kind of switch", &names);
                self.problem(section.place_of("hardware"), message);
                Hardware::OpenVSwitch
            }
        }
    }

    fn dp_acls(&mut self, section: &Section<'_>) -> Vec<AclUse> {
        let nodes = section.node("dp_acls").and_then(|node| node.list()).unwrap_or_default();
        nodes.iter().filter_map(|node| self.acl_use(node)).collect()
    }

    /// The plain settings, with those that follow from others.
    fn switch_settings(&mut self, section: &Section<'_>) -> SwitchSettings {
        let mut settings = SwitchSettings::read(section);
        let timeout = settings.timeout;
        for (key, value) in [
            ("arp_neighbor_timeout", settings.arp_neighbor_timeout),
            ("nd_neighbor_timeout", settings.nd_neighbor_timeout),
        ] {
            if u32::from(value) * 2 >= timeout.into() {
                let message = format!(
                    "`{key}` ({value}) must be less than half of `timeout` ({timeout}); change one"
                );
                let key = if section.entry(key).is_some() { key } else { "timeout" };
                self.problem(section.place_of(key), message);
            }
        }
        if settings.combinatorial_port_flood && settings.group_table {
            let message =
                "`combinatorial_port_flood` and `group_table` exclude each other; remove one";
            self.problem(section.place_of("combinatorial_port_flood"), message);
        }
        if settings.learn_jitter == 0 {
            settings.learn_jitter = (f64::from(timeout).sqrt() * 3.0).max(1.0) as u32;
        }
        if settings.learn_ban_timeout == 0 {
            settings.learn_ban_timeout = settings.learn_jitter;
        }
        if settings.cache_update_guard_time == 0 {
            settings.cache_update_guard_time = u32::from(timeout) / 2;
        }
        let lowest = settings.priority_offset;
        let low = settings.low_priority.unwrap_or(lowest.saturating_add(LOW_PRIORITY));
        let high = settings.high_priority.unwrap_or(low.saturating_add(1));
        settings.lowest_priority.get_or_insert(lowest);
        settings.low_priority = Some(low);
        settings.high_priority = Some(high);
        settings.highest_priority.get_or_insert(high.saturating_add(HIGHEST_STEP));
        settings
    }
}
