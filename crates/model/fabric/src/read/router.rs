//! `routers`, and whether their VLANs go together.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use super::values::name;
use super::{Reading, Section};
use crate::Place;
use crate::intent::{Bgp, Intent, Name, Router, Vip, VlanId};
use crate::keys::{BGP, ROUTER};
use crate::yaml::{Entry, Node, Scalar};

/// A router before VLANs are known that only ports refer to.
pub(super) struct RouterDraft {
    place: Place,
    name: Name,
    vlans: Vec<Arc<Node>>,
    bgp: Option<(Bgp, Option<Arc<Node>>)>,
}

impl Reading {
    pub(super) fn routers(&mut self, entries: &[Entry]) -> Vec<RouterDraft> {
        entries.iter().filter_map(|entry| self.router(entry)).collect()
    }

    fn router(&mut self, entry: &Entry) -> Option<RouterDraft> {
        let name = self.key_name(entry, "router")?;
        let empty = [];
        let section = match entry.value.is_null() {
            true => Section::of(&empty, &entry.place, ROUTER, "key of a router", self),
            false => Section::of_node(&entry.value, ROUTER, "key of a router", self)?,
        };
        let key = crate::keys::TOP.iter().find(|key| key.name == "routers");
        if let Some(key) = key {
            self.noted.push(crate::intent::Unsupported {
                place: entry.place.clone(),
                key: key.name,
                part: key.part,
            });
        }
        let nodes = section.node("vlans").and_then(|node| node.list()).unwrap_or_default();
        let bgp = section.node("bgp").filter(|node| node.is_truthy());
        if bgp.is_none() && nodes.is_empty() {
            let message = format!("router `{name}` has no VLANs; give `vlans: [...]`");
            self.problem(&entry.place, message);
        }
        let bgp = bgp.and_then(|node| self.bgp(node, nodes));
        Some(RouterDraft { place: entry.place.clone(), name, vlans: nodes.to_vec(), bgp })
    }

    fn bgp(&mut self, node: &Node, vlans: &[Arc<Node>]) -> Option<(Bgp, Option<Arc<Node>>)> {
        let section = Section::of_node(node, BGP, "key of `bgp`", self)?;
        for key in BGP.iter().filter(|key| !["vlan", "connect_mode"].contains(&key.name)) {
            if !section.node(key.name).is_some_and(|node| node.is_truthy()) {
                let message = format!("`bgp` needs `{}`; give it a value", key.name);
                self.problem(section.place_of(key.name), message);
            }
        }
        let mode: Arc<str> = section.value("connect_mode");
        if !["", "passive"].contains(&&*mode) {
            let message = "`connect_mode` must be `passive`; peers connect to the controller";
            self.problem(section.place_of("connect_mode"), message);
        }
        let servers = self.addresses(&section, "server_addresses");
        for is_v4 in [true, false] {
            let of_version: BTreeSet<_> =
                servers.iter().filter(|address| address.is_ipv4() == is_v4).collect();
            if of_version.len() > 1 {
                let message = "`server_addresses` can have one address of each version of IP";
                self.problem(section.place_of("server_addresses"), message);
            }
        }
        let vlan = section.node("vlan").filter(|node| node.is_truthy());
        if vlan.is_none() && vlans.len() != 1 {
            let message = "`bgp` needs `vlan`, as the router does not have exactly one VLAN";
            self.problem(&node.place, message);
        }
        let bgp = Bgp {
            place: node.place.clone(),
            local_as: section.value("as"),
            port: section.value("port"),
            router_id: section.value("routerid"),
            server_addresses: servers,
            neighbor_addresses: self.addresses(&section, "neighbor_addresses"),
            neighbor_as: section.value("neighbor_as"),
            vlan: None,
        };
        Some((bgp, vlan.or(vlans.first()).cloned()))
    }

    fn addresses(&mut self, section: &Section<'_>, key: &str) -> Vec<IpAddr> {
        let nodes = section.node(key).and_then(|node| node.list()).unwrap_or_default();
        let mut addresses = Vec::new();
        for node in nodes {
            match node.scalar().and_then(Scalar::text).and_then(|text| text.parse().ok()) {
                Some(address) => addresses.push(address),
                None => {
                    let message =
                        format!("{node} in `{key}` is no address; give one such as 127.0.0.1");
                    self.problem(&node.place, message);
                }
            }
        }
        addresses
    }

    /// Finds the VLANs of routers and checks them together.
    pub(super) fn resolve_routers(&mut self, drafts: Vec<RouterDraft>, intent: &mut Intent) {
        for draft in drafts {
            let mut vlans = Vec::new();
            for node in &draft.vlans {
                match node.scalar().and_then(|scalar| self.routed_vlan(scalar)) {
                    Some(vlan) => vlans.push(vlan),
                    None if name(node).is_none() => {
                        let message = format!("a VLAN cannot be {node}; give its name or its id");
                        self.problem(&node.place, message);
                    }
                    None => {
                        let message =
                            format!("there is no VLAN {node}; it is ignored, as in Faucet");
                        self.warning(&node.place, message);
                    }
                }
            }
            let bgp = draft.bgp.map(|(mut bgp, node)| {
                let scalar = node.as_ref().and_then(|node| node.scalar());
                bgp.vlan = scalar.and_then(|scalar| self.routed_vlan(scalar));
                if let (None, Some(node)) = (bgp.vlan, &node) {
                    let message = format!("there is no VLAN {node}, and so no BGP, as in Faucet");
                    self.warning(&node.place, message);
                }
                bgp
            });
            if vlans.is_empty() && bgp.as_ref().is_none_or(|bgp| bgp.vlan.is_none()) {
                let message = format!("router `{}` has no VLAN that there is", draft.name);
                self.problem(&draft.place, message);
            }
            intent.routers.push(Router { place: draft.place, name: draft.name, vlans, bgp });
        }
        self.check_routers(intent);
    }

    fn check_routers(&mut self, intent: &Intent) {
        let mut earlier: BTreeSet<VlanId> = BTreeSet::new();
        for router in &intent.routers {
            if let [lone] = router.vlans[..]
                && earlier.contains(&lone)
            {
                let message = format!(
                    "the only VLAN of router `{}` is in another router too; put them together",
                    router.name
                );
                self.problem(&router.place, message);
            }
            earlier.extend(&router.vlans);
            self.check_vips(router, intent);
        }
        let bgp: Vec<&Bgp> = intent
            .routers
            .iter()
            .filter_map(|router| router.bgp.as_ref().filter(|bgp| bgp.vlan.is_some()))
            .collect();
        let Some((first, others)) = bgp.split_first() else { return };
        if intent.switches.len() != 1 {
            let message = format!(
                "BGP works with one switch in the file, since all switches have its VLAN; here are {}",
                intent.switches.len()
            );
            self.problem(&first.place, message);
        }
        let set = |addresses: &[IpAddr]| addresses.iter().copied().collect::<BTreeSet<_>>();
        for other in others {
            let is_same = set(&other.server_addresses) == set(&first.server_addresses)
                && other.router_id == first.router_id
                && other.port == first.port;
            if !is_same {
                let message = "`server_addresses`, `routerid` and `port` of all BGP speakers must be \
                    the same";
                self.problem(&other.place, message);
            }
        }
    }

    fn check_vips(&mut self, router: &Router, intent: &Intent) {
        let mut vips: Vec<&Vip> = Vec::new();
        for vlan in router.vlans.iter().filter_map(|id| intent.vlan(*id)) {
            for vip in vlan.vips.iter().filter(|vip| !vip.prefix.is_link_local()) {
                if !vips.iter().any(|other| other.prefix == vip.prefix) {
                    vips.push(vip);
                }
            }
        }
        for vip in &vips {
            let overlapping = vips.iter().find(|other| {
                other.prefix != vip.prefix && other.prefix.contains(vip.prefix.address)
            });
            if let Some(other) = overlapping {
                let message = format!(
                    "{} is in the network of {}, both in router `{}`; give them different networks",
                    vip.prefix, other.prefix, router.name
                );
                self.problem(&vip.place, message);
            }
        }
    }
}
