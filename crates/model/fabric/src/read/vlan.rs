//! `vlans`, and VLANs that are only referred to.

use std::net::IpAddr;
use std::sync::Arc;

use bellrock_openflow::MacAddr;

use super::values::{self, name_of, prefix};
use super::{Reading, Section};
use crate::Place;
use crate::intent::{AclUse, Intent, Name, Prefix, Route, Vip, Vlan, VlanId};
use crate::keys::{ROUTE, VLAN, VlanSettings};
use crate::yaml::{Entry, Node, Scalar};

/// VLAN ids that Faucet takes.
const VIDS: std::ops::RangeInclusive<i128> = 1..=4095;

/// Ethernet address of the controller, unless a file has another one.
pub(super) const CONTROLLER_MAC: MacAddr = MacAddr([0x0e, 0, 0, 0, 0, 1]);

impl Reading {
    pub(super) fn vlans(&mut self, entries: &[Entry], intent: &mut Intent) {
        for entry in entries {
            if let Some((key, vlan)) = self.vlan(entry) {
                self.add_vlan(key, vlan, intent);
            }
        }
    }

    fn add_vlan(&mut self, key: Name, vlan: Vlan, intent: &mut Intent) -> VlanId {
        let id = VlanId(u32::try_from(intent.vlans.len()).unwrap_or(u32::MAX));
        self.vlans.by_key.insert(key, id);
        self.vlans.by_vid.insert(vlan.vid, id);
        self.vlans.by_name.insert(Name::Text(Arc::clone(&vlan.name)), id);
        intent.vlans.push(vlan);
        id
    }

    fn vlan(&mut self, entry: &Entry) -> Option<(Name, Vlan)> {
        let key = self.key_name(entry, "VLAN")?;
        let empty = [];
        let section = match entry.value.is_null() {
            true => Section::of(&empty, &entry.place, VLAN, "key of a VLAN", self),
            false => Section::of_node(&entry.value, VLAN, "key of a VLAN", self)?,
        };
        let number = match section.node("vid") {
            Some(node) => node.scalar().and_then(Scalar::int),
            None => entry.key.int(),
        };
        let vid = number.filter(|vid| VIDS.contains(vid)).and_then(|vid| u16::try_from(vid).ok());
        let Some(vid) = vid else {
            let place = section.place_of("vid").clone();
            let message = format!("VLAN `{key}` needs `vid`, a whole number from 1 to 4095");
            self.problem(
                if section.entry("vid").is_some() { &place } else { &entry.place },
                message,
            );
            return None;
        };
        if self.vlans.by_vid.contains_key(&vid) {
            let place = section.place_of("vid").clone();
            let place = if section.entry("vid").is_some() { place } else { entry.place.clone() };
            self.problem(
                &place,
                format!("VLAN id {vid} is that of another VLAN too; give a free one"),
            );
            return None;
        }
        let name: Option<Arc<str>> = section.value("name");
        let name = name.unwrap_or_else(|| key.to_string().into());
        if key.to_string() != vid.to_string() && key.to_string() != *name {
            let message = format!(
                "the key `{key}` must be the VLAN's `name` (`{name}`) or its `vid` ({vid}); change one"
            );
            self.problem(&entry.place, message);
        }
        let acls_in = self.acl_uses(&section, "acl_in", "acls_in");
        let acls_out = self.acl_uses(&section, "acl_out", "acls_out");
        let vlan = Vlan {
            place: entry.place.clone(),
            vid,
            name,
            description: section.value("description"),
            settings: limits(VlanSettings::read(&section)),
            acls_in,
            acls_out,
            vips: self.vips(&section),
            mac: self.mac(&section, "faucet_mac").unwrap_or(CONTROLLER_MAC),
            routes: self.routes(&section),
        };
        Some((key, vlan))
    }

    /// An Ethernet address, if one is there.
    pub(super) fn mac(&mut self, section: &Section<'_>, key: &str) -> Option<MacAddr> {
        let node = section.node(key)?;
        let mac = node.scalar().and_then(Scalar::text).and_then(values::mac);
        if mac.is_none() {
            let message = format!("`{key}` cannot be {node}; give {}", values::MAC);
            self.problem(&node.place, message);
        }
        mac
    }

    /// The ACLs of the old key for one, or of the new key for a list.
    pub(super) fn acl_uses(&mut self, section: &Section<'_>, old: &str, new: &str) -> Vec<AclUse> {
        let truthy = |key: &str| section.node(key).filter(|node| node.is_truthy());
        match (truthy(old), truthy(new)) {
            (Some(_), Some(_)) => {
                let place = section.place_of(old).clone();
                self.problem(
                    &place,
                    format!("`{old}` and `{new}` are both there; use `{new}` only"),
                );
                Vec::new()
            }
            (Some(node), None) => self.acl_use(node).into_iter().collect(),
            (None, Some(node)) => {
                let nodes = node.list().unwrap_or_default();
                nodes.iter().filter_map(|node| self.acl_use(node)).collect()
            }
            (None, None) => Vec::new(),
        }
    }

    /// An ACL that is referred to.
    pub(super) fn acl_use(&mut self, node: &Node) -> Option<AclUse> {
        let Some(name) = values::name(node) else {
            self.problem(&node.place, format!("{node} is no name of an ACL"));
            return None;
        };
        match self.acls.get(&name) {
            Some(acl) => Some(AclUse { place: node.place.clone(), acl: *acl }),
            None => {
                let message =
                    format!("there is no ACL `{name}`; add it to `acls:`, or correct the name");
                self.problem(&node.place, message);
                None
            }
        }
    }

    fn vips(&mut self, section: &Section<'_>) -> Vec<Vip> {
        let nodes = section.node("faucet_vips").and_then(|node| node.list()).unwrap_or_default();
        let mut vips = Vec::new();
        for node in nodes {
            let read = node.scalar().and_then(Scalar::text).and_then(prefix);
            match read.filter(|prefix| prefix.len < prefix.max_len()) {
                Some(prefix) => vips.push(Vip { place: node.place.clone(), prefix }),
                None => {
                    let message = format!(
                        "an address of the controller cannot be {node}; give it with the length of \
                         its network, such as 10.0.0.254/24"
                    );
                    self.problem(&node.place, message);
                }
            }
        }
        vips
    }

    fn routes(&mut self, section: &Section<'_>) -> Vec<Route> {
        let nodes = section.node("routes").and_then(|node| node.list()).unwrap_or_default();
        // The wrapper `route:` is on all of them or on none.
        let is_wrapped = !nodes.is_empty() && nodes.iter().all(|node| node.get("route").is_some());
        let mut routes = Vec::new();
        for node in nodes {
            let inner = node.get("route").filter(|_| is_wrapped).map_or(node, |entry| &entry.value);
            routes.extend(self.route(inner));
        }
        routes
    }

    fn route(&mut self, node: &Node) -> Option<Route> {
        let Some(entries) = node.map() else {
            self.problem(&node.place, format!("{node} is no route; give `{{ip_dst, ip_gw}}`"));
            return None;
        };
        self.warn_unused(entries, ROUTE, "key of a route");
        let text = |key: &str| {
            let node = &node.get(key)?.value;
            node.scalar().and_then(Scalar::text)
        };
        let destination = text("ip_dst").and_then(prefix).filter(|it| is_network(*it));
        let gateway: Option<IpAddr> = text("ip_gw").and_then(|text| text.parse().ok());
        let place_of =
            |key: &str| node.get(key).map_or(node.place.clone(), |entry| entry.value.place.clone());
        if destination.is_none() {
            let message = "a route needs `ip_dst`, a network with its length, such as 10.1.0.0/16";
            self.problem(&place_of("ip_dst"), message);
        }
        if gateway.is_none() {
            let message = "a route needs `ip_gw`, an address, such as 10.0.0.1";
            self.problem(&place_of("ip_gw"), message);
        }
        let (destination, gateway) = (destination?, gateway?);
        if destination.address.is_ipv4() != gateway.is_ipv4() {
            let message =
                format!("`ip_gw` {gateway} and `ip_dst` {destination} are of two versions of IP");
            self.problem(&place_of("ip_gw"), message);
        }
        Some(Route { place: node.place.clone(), destination, gateway })
    }

    /// Warns of keys that Faucet ignores in silence.
    pub(super) fn warn_unused(&mut self, entries: &[Entry], keys: &[crate::keys::Key], what: &str) {
        for entry in entries {
            if !keys.iter().any(|key| Some(key.name) == entry.key.text()) {
                let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
                let message = super::section::unknown(&entry.key, what, &names);
                self.warning(&entry.place, format!("{message}; it is ignored"));
            }
        }
    }

    /// The VLAN that a port refers to: by the key in `vlans:`, or by its id. An id without a VLAN
    /// makes one.
    pub(super) fn vlan_of(&mut self, node: &Node, intent: &mut Intent) -> Option<VlanId> {
        let name = values::name(node);
        if let Some(id) = name.as_ref().and_then(|name| self.vlans.by_key.get(name)) {
            return Some(*id);
        }
        let vid = node.scalar().and_then(Scalar::int).filter(|vid| VIDS.contains(vid));
        match (vid.and_then(|vid| u16::try_from(vid).ok()), name) {
            (Some(vid), _) if self.vlans.by_vid.contains_key(&vid) => {
                self.vlans.by_vid.get(&vid).copied()
            }
            (Some(vid), Some(name)) => {
                Some(self.add_vlan(name, implicit(vid, &node.place), intent))
            }
            (None, Some(name @ Name::Text(_))) => {
                let message = format!(
                    "there is no VLAN `{name}`; add it to `vlans:`, use its key there, or its id"
                );
                self.problem(&node.place, message);
                None
            }
            _ => {
                let message =
                    format!("a VLAN cannot be {node}; give its name or its id, 1 to 4095");
                self.problem(&node.place, message);
                None
            }
        }
    }

    /// The VLAN that a router refers to: by its name, or by its id.
    pub(super) fn routed_vlan(&self, scalar: &Scalar) -> Option<VlanId> {
        let name = name_of(scalar)?;
        let by_name = self.vlans.by_name.get(&name).copied();
        by_name.or_else(|| {
            let vid = scalar.int().and_then(|vid| u16::try_from(vid).ok())?;
            self.vlans.by_vid.get(&vid).copied()
        })
    }
}

fn is_network(prefix: Prefix) -> bool {
    let behind = match prefix.address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    behind.checked_shl(prefix.len.into()).unwrap_or(0) == 0
}

/// A VLAN that is only referred to.
pub(super) fn implicit(vid: u16, place: &Place) -> Vlan {
    let nothing = Section::nothing(place, VLAN);
    Vlan {
        place: place.clone(),
        vid,
        name: vid.to_string().into(),
        description: None,
        settings: limits(VlanSettings::read(&nothing)),
        acls_in: Vec::new(),
        acls_out: Vec::new(),
        vips: Vec::new(),
        mac: CONTROLLER_MAC,
        routes: Vec::new(),
    }
}

/// Limits that follow from others.
fn limits(mut settings: VlanSettings) -> VlanSettings {
    let twice = settings.max_hosts.saturating_mul(2);
    for limit in [&mut settings.proactive_arp_limit, &mut settings.proactive_nd_limit] {
        if *limit == 0 {
            *limit = twice;
        }
    }
    settings
}
