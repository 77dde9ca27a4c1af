//! `acls`: rules and what they match.
//!
//! Faucet looks at values and references of an ACL only if something uses it. So these problems are
//! kept with the ACL ([`Pending`]); for one that nothing uses they are warnings.

use bellrock_openflow::Match;

use super::packet::FieldName;
use super::values::name;
use super::{Reading, Section, section};
use crate::intent::{Acl, AclId, Actions, Conntrack, Intent, NiciraMatch, PortRef, Rule};
use crate::keys::{ACL, ACTIONS, CT, NAT, OLD_FIELDS, RULE};
use crate::yaml::{Entry, Node, Value};
use crate::{Place, Problem};

/// Problems of an ACL that count if it is used.
#[derive(Debug, Default)]
pub(super) struct Pending(Vec<Problem>);

impl Pending {
    pub(super) fn add(&mut self, place: &Place, message: impl Into<String>) {
        self.0.push(Problem { place: place.clone(), message: message.into() });
    }
}

impl Reading {
    pub(super) fn acls(&mut self, entries: &[Entry], intent: &mut Intent) {
        for entry in entries {
            let mut pending = Pending::default();
            let Some(acl) = self.acl(entry, &mut pending) else { continue };
            let id = AclId(u32::try_from(intent.acls.len()).unwrap_or(u32::MAX));
            self.acls.insert(acl.name.clone(), id);
            self.acl_problems.push(pending.0);
            intent.acls.push(acl);
        }
    }

    fn acl(&mut self, entry: &Entry, pending: &mut Pending) -> Option<Acl> {
        let name = self.key_name(entry, "ACL")?;
        let node = &entry.value;
        let (section, rules) = match &node.value {
            Value::List(rules) => (Section::nothing(&node.place, ACL), &rules[..]),
            _ => {
                let section = Section::of_node(node, ACL, "key of an ACL", self)?;
                let rules = section.node("rules").and_then(|node| node.list());
                (section, rules.unwrap_or_default())
            }
        };
        if rules.is_empty() {
            let message = format!("ACL `{name}` has no rules; give a list with one rule at least");
            self.problem(&entry.place, message);
        }
        let rules = rules.iter().filter_map(|node| self.rule(node, pending)).collect();
        Some(Acl {
            place: entry.place.clone(),
            name,
            exact_match: section.value("exact_match"),
            dot1x_assigned: section.value("dot1x_assigned"),
            rules,
        })
    }

    /// A rule, with or without the wrapper `rule:`.
    fn rule(&mut self, node: &Node, pending: &mut Pending) -> Option<Rule> {
        let Some(mut entries) = node.map().map(<[Entry]>::to_vec) else {
            let message = format!("{node} is no rule; give a map with fields and `actions`");
            self.problem(&node.place, message);
            return None;
        };
        if let Some(wrapper) = node.get("rule") {
            if wrapper.value.is_null() {
                // `rule:` with the parts beside it, not in it.
                entries.retain(|entry| !entry.value.is_null());
            } else if let Some(inner) = wrapper.value.map() {
                for entry in entries.iter().filter(|entry| entry.key.text() != Some("rule")) {
                    let message = format!(
                        "`{}` stands beside `rule:` and is ignored; indent it more, into the rule",
                        entry.key
                    );
                    self.warning(&entry.place, message);
                }
                entries = inner.to_vec();
            } else {
                let message = format!("{} is no rule; give a map", wrapper.value);
                self.problem(&wrapper.value.place, message);
                return None;
            }
        }
        let (own, fields): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| {
            entry.key.text().is_some_and(|key| RULE.iter().any(|row| row.name == key))
        });
        for entry in own.iter().filter(|entry| entry.value.is_null()) {
            if entry.key.text() != Some("description") {
                let message = format!("`{}` is empty; give it a value, or remove it", entry.key);
                self.problem(&entry.value.place, message);
            }
        }
        let section = Section::of(&own, &node.place, RULE, "key of a rule", self);
        let actions = match section.node("actions") {
            Some(node) => self.actions(node, pending).unwrap_or_default(),
            None => Actions::default(),
        };
        let mut rule = Rule {
            place: node.place.clone(),
            description: section.value("description"),
            cookie: section.value("cookie"),
            matches: Match::any(),
            nicira: Vec::new(),
            actions,
        };
        for entry in &fields {
            self.field(entry, &mut rule, pending);
        }
        Some(rule)
    }

    fn field(&mut self, entry: &Entry, rule: &mut Rule, pending: &mut Pending) {
        let Some(field) = entry.key.text().and_then(|name| FieldName::of(name, true)) else {
            let mut names: Vec<&str> = vec!["rule"];
            names.extend(RULE.iter().map(|row| row.name));
            names.extend(FieldName::names());
            names.extend(OLD_FIELDS.iter().map(|(old, _)| *old));
            let message = section::unknown(&entry.key, "field of packets or key of a rule", &names);
            self.problem(&entry.place, message);
            return;
        };
        let (key, node) = (&entry.key, &entry.value);
        match field.matched(node) {
            Ok((value, mask)) => match (field, mask) {
                (FieldName::Basic(field), None) => rule.matches.set(field, value),
                (FieldName::Basic(field), Some(mask)) => {
                    rule.matches.set_masked(field, value, mask);
                }
                (FieldName::Nicira(field, ..), mask) => {
                    rule.nicira.push(NiciraMatch { field, value, mask });
                }
            },
            Err(expected) => {
                let message = format!("`{key}` cannot be {node}; give {expected}");
                // Values of the wrong type are never right.
                let is_name = name(node).is_some() || node.is_null();
                if is_name {
                    pending.add(&node.place, message);
                } else {
                    self.problem(&node.place, message);
                }
            }
        }
    }

    fn actions(&mut self, node: &Node, pending: &mut Pending) -> Option<Actions> {
        let section = Section::of_node(node, ACTIONS, "action", self)?;
        if node.map().is_some_and(<[Entry]>::is_empty) {
            let message = "`actions` is empty; give `allow: 0` to drop, or remove the key";
            self.problem(&node.place, message);
        }
        for entry in node.map().unwrap_or_default() {
            if !entry.value.is_null() {
                continue;
            }
            let message = format!("`{}` is empty; give it a value, or remove it", entry.key);
            match entry.key.text() {
                Some("output" | "ct") => self.problem(&entry.value.place, message),
                // Anything but 1 is no.
                Some("allow" | "force_port_vlan") => self.warning(&entry.value.place, message),
                _ => pending.add(&entry.value.place, message),
            }
        }
        let is_one = |key| section.node(key).map(|_| section.value::<u64>(key) == 1);
        let meter = section.node("meter").and_then(|node| {
            let meter = name(node).and_then(|name| self.meters.get(&name).copied());
            if meter.is_none() {
                let message = format!("there is no meter {node}; add it to `meters:`");
                pending.add(&node.place, message);
            }
            meter
        });
        let mirror = section.node("mirror").and_then(|node| port_ref(node));
        let output = match section.node("output") {
            Some(node) => self.output(node, pending),
            None => Vec::new(),
        };
        Some(Actions {
            allow: is_one("allow").or_else(|| node.get("allow").map(|_| false)),
            force_port_vlan: is_one("force_port_vlan").unwrap_or(false),
            meter,
            mirror,
            output,
            conntrack: section.node("ct").and_then(|node| self.conntrack(node)),
        })
    }

    fn conntrack(&mut self, node: &Node) -> Option<Conntrack> {
        let section = Section::of_node(node, CT, "key of `ct`", self)?;
        let clear = section.value("clear");
        let entries = node.map().unwrap_or_default();
        if clear && entries.len() != 1 {
            self.problem(
                section.place_of("clear"),
                "`clear` stands alone in `ct`; remove the others",
            );
        }
        for key in ["table", "zone"] {
            if !clear && !entries.iter().any(|entry| entry.key.text() == Some(key)) {
                self.problem(&node.place, format!("`ct` needs `{key}`, or `clear: true` alone"));
            }
        }
        if let Some(node) = section.node("nat") {
            Section::of_node(node, NAT, "key of `nat`", self);
        }
        let (table, zone) = (section.value("table"), section.value("zone"));
        Some(Conntrack { place: node.place.clone(), clear, table, zone })
    }
}

/// A port that a rule names.
pub(super) fn port_ref(node: &Node) -> Option<PortRef> {
    name(node).map(|name| PortRef { place: node.place.clone(), name })
}
