//! The stack: links between ports of switches, and who may be the root.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Reading, Section};
use crate::Place;
use crate::intent::{Intent, Name, Stack, StackEnd, StackLink, SwitchId};
use crate::keys::{DP_LLDP, DP_STACK, StackSettings, SwitchLldp};

/// A stack port, whose other end is not found yet.
#[derive(Debug)]
pub(super) struct EndRef {
    pub(super) switch: SwitchId,
    pub(super) port: u32,
    pub(super) peer: (Place, Arc<str>),
    pub(super) peer_port: (Place, Name),
}

impl Reading {
    pub(super) fn check_stack(&mut self, intent: &mut Intent) {
        let refs = std::mem::take(&mut self.stack_ends);
        let by_name: BTreeMap<Arc<str>, SwitchId> = (0..)
            .map(SwitchId)
            .zip(&intent.switches)
            .map(|(id, switch)| (Arc::clone(&switch.name), id))
            .collect();
        let mut ends: BTreeMap<(SwitchId, u32), StackEnd> = BTreeMap::new();
        for end in refs {
            if let Some(found) = self.find_end(&end, &by_name, intent) {
                ends.insert((end.switch, end.port), found);
            }
        }
        for ((switch, port), end) in &ends {
            let switch = intent.switches.get_mut(switch.0 as usize);
            let ports = switch.map(|switch| &mut switch.ports);
            let port = ports.and_then(|ports| ports.iter_mut().find(|it| it.number == *port));
            if let Some(port) = port {
                port.stack = Some(end.clone());
            }
        }
        self.settle_members(intent);
        if ends.is_empty() {
            return;
        }
        let mut links = BTreeSet::new();
        for (here, end) in &ends {
            let there = (end.switch, end.port);
            if ends.get(&there).is_none_or(|back| (back.switch, back.port) != *here) {
                self.problem(&end.place, self.one_way(there, intent));
            }
            links.insert(StackLink { a: *here.min(&there), z: *here.max(&there) });
        }
        let members: BTreeSet<SwitchId> = ends.keys().map(|(switch, _)| *switch).collect();
        let roots = roots(&members, intent);
        let Some(root) = roots.first() else {
            let place = ends.values().map(|end| &end.place).min();
            if let Some(place) = place {
                let message =
                    "no switch of the stack may be its root; give one `stack: {priority: 1}`";
                self.problem(place, message);
            }
            return;
        };
        let reached = reached(*root, &links);
        for member in members.iter().filter(|member| !reached.contains(member)) {
            if let Some(switch) = intent.switch(*member) {
                let message =
                    format!("no links lead from `{}` to the root of the stack", switch.name);
                self.problem(&switch.place, message);
            }
        }
        let has_externals = members
            .iter()
            .filter_map(|id| intent.switch(*id))
            .any(|switch| switch.ports.iter().any(|port| port.settings.loop_protect_external));
        intent.stack = Some(Stack { roots, links: links.into_iter().collect(), has_externals });
    }

    fn find_end(
        &mut self,
        end: &EndRef,
        by_name: &BTreeMap<Arc<str>, SwitchId>,
        intent: &Intent,
    ) -> Option<StackEnd> {
        let (place, name) = &end.peer;
        let id = by_name.get(name).copied();
        let Some((id, peer)) = id.and_then(|id| Some((id, intent.switch(id)?))) else {
            let message =
                format!("there is no switch `{name}`; correct the name, or add it to `dps:`");
            self.problem(place, message);
            return None;
        };
        let (port_place, port) = &end.peer_port;
        let Some(port) = peer.port(port) else {
            let message =
                format!("switch `{name}` has no port `{port}`; correct it, or add the port");
            self.problem(port_place, message);
            return None;
        };
        Some(StackEnd { place: place.clone(), switch: id, port: port.number })
    }

    fn one_way(&self, there: (SwitchId, u32), intent: &Intent) -> String {
        let name = intent.switch(there.0).map(|switch| &*switch.name).unwrap_or_default();
        format!(
            "port {} of `{name}` does not lead back here; give it a `stack:` to this port",
            there.1
        )
    }

    /// Members have defaults and LLDP; switches without stack ports are none.
    fn settle_members(&mut self, intent: &mut Intent) {
        let vlans_route = intent.vlans.iter().any(|vlan| !vlan.vips.is_empty());
        for switch in &mut intent.switches {
            if !switch.ports.iter().any(|port| port.stack.is_some()) {
                switch.stack = None;
                continue;
            }
            let nothing = |keys| Section::nothing(&switch.place, keys);
            let stack = switch.stack.get_or_insert_with(|| StackSettings::read(&nothing(DP_STACK)));
            stack.route_learning |= vlans_route;
            switch.lldp.get_or_insert_with(|| SwitchLldp::read(&nothing(DP_LLDP)));
        }
    }
}

/// Candidates for the root, the preferred one first.
fn roots(members: &BTreeSet<SwitchId>, intent: &Intent) -> Vec<SwitchId> {
    let candidates = members.iter().filter_map(|id| {
        let switch = intent.switch(*id)?;
        let priority = switch.stack.as_ref()?.priority.filter(|priority| *priority > 0)?;
        Some((priority, switch.dpid, *id))
    });
    let mut candidates: Vec<_> = candidates.collect();
    candidates.sort();
    candidates.into_iter().map(|(_, _, id)| id).collect()
}

/// The switches that links connect with one.
fn reached(root: SwitchId, links: &BTreeSet<StackLink>) -> BTreeSet<SwitchId> {
    let mut neighbours: BTreeMap<SwitchId, Vec<SwitchId>> = BTreeMap::new();
    for link in links {
        neighbours.entry(link.a.0).or_default().push(link.z.0);
        neighbours.entry(link.z.0).or_default().push(link.a.0);
    }
    let (mut reached, mut next) = (BTreeSet::from([root]), vec![root]);
    while let Some(switch) = next.pop() {
        for neighbour in neighbours.get(&switch).into_iter().flatten() {
            if reached.insert(*neighbour) {
                next.push(*neighbour);
            }
        }
    }
    reached
}
