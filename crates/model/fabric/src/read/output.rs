//! `actions.output` of rules: outputs and changes, in order.

use std::sync::Arc;

use super::acl::{Pending, port_ref};
use super::packet::FieldName;
use super::values::name;
use super::{Reading, Section, section};
use crate::intent::{Failover, NiciraMatch, Output, PortRef, Tunnel};
use crate::keys::{FAILOVER, OUTPUT, TUNNEL, Types, VLAN_VID};
use crate::yaml::{Entry, Node, Scalar, Value};

/// Ethernet type of a VLAN tag (IEEE 802.1Q).
const TAG: u16 = 0x8100;

/// The order of steps in a map. Of keys that exclude each other, the first one counts.
const ORDER: [&str; 9] = [
    "pop_vlans",
    "vlan_vid",
    "swap_vid",
    "vlan_vids",
    "set_fields",
    "port",
    "ports",
    "failover",
    "tunnel",
];

/// Maximum number of tags that a rule removes.
const MAX_POPS: i128 = 16;

impl Reading {
    pub(super) fn output(&mut self, node: &Node, pending: &mut Pending) -> Vec<Output> {
        let mut steps = Vec::new();
        let Value::List(items) = &node.value else {
            self.unordered(node, pending, &mut steps);
            return steps;
        };
        for item in items {
            if item.map().is_some_and(|entries| entries.len() > 1) {
                let message = "a step of an ordered `output` has one key; begin another with `-`";
                self.problem(&item.place, message);
            }
            let Some(section) = Section::of_node(item, OUTPUT, "step of `output`", self) else {
                continue;
            };
            empty_values(item, pending);
            for entry in section.entries() {
                self.step(entry, pending, &mut steps);
            }
        }
        steps
    }

    fn unordered(&mut self, node: &Node, pending: &mut Pending, steps: &mut Vec<Output>) {
        let Some(section) = Section::of_node(node, OUTPUT, "key of `output`", self) else { return };
        empty_values(node, pending);
        for (one, other) in [("vlan_vid", "vlan_vids"), ("port", "ports")] {
            if section.entry(one).is_some() && section.entry(other).is_some() {
                let message =
                    format!("`{one}` and `{other}` exclude each other; use `{other}` only");
                pending.add(section.place_of(one), message);
            }
        }
        let first_vlan = ["vlan_vid", "swap_vid", "vlan_vids"]
            .into_iter()
            .find(|key| section.entry(key).is_some());
        for entry in ORDER.iter().filter_map(|key| section.entry(key)) {
            let is_vlan = matches!(entry.key.text(), Some("vlan_vid" | "swap_vid" | "vlan_vids"));
            if is_vlan && entry.key.text() != first_vlan {
                let first = first_vlan.unwrap_or_default();
                let message = format!(
                    "`{}` is ignored beside `{first}`; use a list of steps for both",
                    entry.key
                );
                self.warning(&entry.place, message);
                continue;
            }
            self.step(entry, pending, steps);
        }
    }

    fn step(&mut self, entry: &Entry, pending: &mut Pending, steps: &mut Vec<Output>) {
        let node = &*entry.value;
        let items = node.list().unwrap_or_default();
        match entry.key.text().unwrap_or_default() {
            "port" => steps.extend(port_ref(node).map(Output::Port)),
            "ports" => {
                steps.extend(ports(items, pending).into_iter().map(Output::Port));
            }
            "pop_vlans" => {
                let count = node.scalar().and_then(Scalar::int).unwrap_or_default();
                if count > MAX_POPS {
                    let message =
                        format!("`pop_vlans` cannot be {count}; give a number up to {MAX_POPS}");
                    pending.add(&node.place, message);
                }
                steps.extend((0..count.min(MAX_POPS)).map(|_| Output::PopVlan));
            }
            "vlan_vid" => {
                if let Some(vid) = vid(node, pending) {
                    steps.push(Output::PushVlan { vid, eth_type: TAG });
                }
            }
            "swap_vid" => steps.extend(vid(node, pending).map(Output::SwapVlan)),
            "vlan_vids" => {
                for item in items {
                    steps.extend(self.tag(item, pending));
                }
            }
            "set_fields" => {
                for item in items {
                    steps.extend(set_field(item, pending));
                }
            }
            "failover" => steps.extend(self.failover(node, pending).map(Output::Failover)),
            "tunnel" => steps.extend(self.tunnel(node, pending)),
            _ => {}
        }
    }

    /// A tag to add: an id, or `{vid, eth_type}`.
    fn tag(&mut self, node: &Node, pending: &mut Pending) -> Option<Output> {
        let Some(entries) = node.map() else {
            return vid(node, pending).map(|vid| Output::PushVlan { vid, eth_type: TAG });
        };
        self.warn_unused(entries, VLAN_VID, "key of a tag");
        let Some(entry) = node.get("vid") else {
            pending.add(&node.place, "a tag needs `vid`, its VLAN id");
            return None;
        };
        let vid = vid(&entry.value, pending)?;
        let eth_type = match node.get("eth_type") {
            Some(entry) if !entry.value.is_null() => {
                let number = entry.value.scalar().and_then(Scalar::int);
                number.and_then(|number| u16::try_from(number).ok()).or_else(|| {
                    let message =
                        format!("`eth_type` cannot be {}; give 0x8100 or 0x88a8", entry.value);
                    pending.add(&entry.value.place, message);
                    None
                })?
            }
            _ => TAG,
        };
        Some(Output::PushVlan { vid, eth_type })
    }

    fn failover(&mut self, node: &Node, pending: &mut Pending) -> Option<Failover> {
        let entries = node.map().unwrap_or_default();
        self.warn_unused(entries, FAILOVER, "key of `failover`");
        let number = node.get("group_id").and_then(|it| it.value.scalar()).and_then(Scalar::int);
        let group_id = number.and_then(|number| u32::try_from(number).ok());
        let group_id = group_id.filter(|id| *id <= bellrock_openflow::Group::MAX);
        let members = node.get("ports").and_then(|entry| entry.value.list());
        if group_id.is_none() {
            pending.add(&node.place, "`failover` needs `group_id`, the number of its group");
        }
        if members.is_none() {
            pending.add(&node.place, "`failover` needs `ports`, a list, the best one first");
        }
        let ports = ports(members?, pending);
        Some(Failover { place: node.place.clone(), group_id: group_id?, ports })
    }

    fn tunnel(&mut self, node: &Node, pending: &mut Pending) -> Option<Output> {
        let entries = node.map().unwrap_or_default();
        self.warn_unused(entries, TUNNEL, "key of a tunnel");
        let value = |key: &str| node.get(key).map(|entry| &*entry.value);
        let given = |key: &str| value(key).filter(|node| node.is_truthy());
        let is = |key: &str| given(key).is_some();
        if is("reverse") && is("bi_directional") {
            let message = "a tunnel has `reverse` or `bi_directional`, not both; remove one";
            pending.add(&node.place, message);
        }
        for (key, types) in
            [("port", Types::NAME), ("tunnel_id", Types::NAME), ("exit_instructions", Types::LIST)]
        {
            if let Some(node) = given(key).filter(|node| !types.has(section::types_of(node))) {
                pending.add(&node.place, format!("`{key}` cannot be {node}; give {types}"));
            }
        }
        let Some(switch) = value("dp").and_then(|node| node.scalar()).and_then(Scalar::text) else {
            pending.add(&node.place, "a tunnel needs `dp`, the name of the switch where it ends");
            return None;
        };
        let mut exit = Vec::new();
        let instructions = given("exit_instructions").and_then(|node| node.list());
        for item in instructions.unwrap_or_default() {
            let known = item.map().unwrap_or_default().iter().filter(|entry| {
                entry.key.text().is_some_and(|key| OUTPUT.iter().any(|row| row.name == key))
            });
            for entry in known {
                self.step(entry, pending, &mut exit);
            }
        }
        Some(Output::Tunnel(Box::new(Tunnel {
            place: node.place.clone(),
            switch: Arc::from(switch),
            port: given("port").and_then(name),
            vlan: given("tunnel_id").and_then(name),
            exit,
            maintain_encapsulation: is("maintain_encapsulation"),
            bi_directional: is("bi_directional"),
            reverse: is("reverse"),
        })))
    }
}

fn empty_values(node: &Node, pending: &mut Pending) {
    for entry in node.map().unwrap_or_default().iter().filter(|entry| entry.value.is_null()) {
        let message = format!("`{}` is empty; give it a value, or remove it", entry.key);
        pending.add(&entry.value.place, message);
    }
}

fn ports(nodes: &[Arc<Node>], pending: &mut Pending) -> Vec<PortRef> {
    let mut ports = Vec::with_capacity(nodes.len());
    for node in nodes {
        match port_ref(node) {
            Some(port) => ports.push(port),
            None => pending.add(&node.place, format!("{node} is no port; give its number or name")),
        }
    }
    ports
}

/// A VLAN id of 12 bits.
fn vid(node: &Node, pending: &mut Pending) -> Option<u16> {
    let number = node.scalar().and_then(Scalar::int).filter(|number| (0..=4095).contains(number));
    if number.is_none() {
        pending.add(&node.place, format!("a VLAN id cannot be {node}; give a number up to 4095"));
    }
    number.and_then(|number| u16::try_from(number).ok())
}

fn set_field(node: &Node, pending: &mut Pending) -> Option<Output> {
    let [entry] = node.map().unwrap_or_default() else {
        pending.add(&node.place, "an item of `set_fields` has one field: `- eth_dst: ADDRESS`");
        return None;
    };
    let Some(field) = entry.key.text().and_then(|name| FieldName::of(name, false)) else {
        let names: Vec<&str> = FieldName::names().collect();
        pending.add(&entry.place, section::unknown(&entry.key, "field of packets", &names));
        return None;
    };
    match field.set(&entry.value) {
        Ok(value) => Some(match field {
            FieldName::Basic(field) => Output::SetField(field, value),
            FieldName::Nicira(field, ..) => {
                Output::SetNicira(NiciraMatch { field, value, mask: None })
            }
        }),
        Err(expected) => {
            let message = format!("`{}` cannot be {}; give {expected}", entry.key, entry.value);
            pending.add(&entry.value.place, message);
            None
        }
    }
}
