//! A port: its keys and which of them go together.

use std::sync::Arc;

use super::check::MirrorRef;
use super::ports::PortDraft;
use super::stack::EndRef;
use super::values::name;
use super::{Reading, Section};
use crate::intent::{Intent, Port, SwitchId, VlanId};
use crate::keys::{
    COPROCESSOR, CoprocessorSettings, ORG_TLV, OrgTlv, PORT, PORT_LLDP, PORT_STACK, PortLldp,
    PortSettings,
};
use crate::yaml::{Node, Scalar};

/// Ports above it are no physical ones (OpenFlow 1.3.5 §7.2.1, `OFPP_MAX` and beyond).
const MAX_PHYSICAL: i128 = 0xf000_0000;

/// Reserved ports that may be configured: `OFPP_IN_PORT` and `OFPP_LOCAL`.
const RESERVED: [i128; 2] = [0xffff_fff8, 0xffff_fffe];

/// Maximum port with 802.1X, as the port is in an address.
const MAX_DOT1X: u32 = 65535;

/// Keys of which a port has one at most, and then no VLAN.
const NON_VLAN: [&str; 4] = ["stack", "mirror", "coprocessor", "output_only"];

/// Keys that any port may have.
const FOR_ALL: [&str; 5] = ["enabled", "number", "name", "description", "max_lldp_lost"];

impl Reading {
    pub(super) fn port(
        &mut self,
        draft: &PortDraft,
        switch: SwitchId,
        intent: &mut Intent,
    ) -> Option<Port> {
        let key = &draft.key;
        let section = Section::of(&draft.entries, &draft.place, PORT, "key of a port", self);
        let given = section.node("number").and_then(|node| node.scalar());
        let number = given.map_or(key.int(), Scalar::int);
        let number = number
            .filter(|number| (1..=MAX_PHYSICAL).contains(number) || RESERVED.contains(number));
        let Some(number) = number.and_then(|number| u32::try_from(number).ok()) else {
            let place = match section.entry("number") {
                Some(entry) => entry.value.place.clone(),
                None => draft.place.clone(),
            };
            let message =
                format!("port `{key}` needs `number`, a whole number from 1 to {MAX_PHYSICAL}");
            self.problem(&place, message);
            return None;
        };
        let name: Option<Arc<str>> = section.value("name");
        let name = name.unwrap_or_else(|| key.to_string().into());
        if key.to_string() != number.to_string() && key.to_string() != *name {
            let message = format!(
                "the key `{key}` must be the port's `name` (`{name}`) or `number` ({number}); change one"
            );
            self.problem(&draft.place, message);
        }
        let description: Option<Arc<str>> = section.value("description");
        self.check_kind(&section, number);
        let mut settings = PortSettings::read(&section);
        self.check_settings(&section, &settings, number);
        self.mirror(&section, switch, number);
        let is_stack = self.stack_end(&section, switch, number);
        let (native_vlan, tagged_vlans) = self.port_vlans(&section, intent);
        let (mut lldp, org_tlvs) = self.port_lldp(&section);
        if is_stack {
            settings.receive_lldp = true;
            lldp.get_or_insert_with(|| {
                PortLldp::read(&Section::nothing(&section.place, PORT_LLDP))
            })
            .enable = true;
        }
        Some(Port {
            place: draft.place.clone(),
            number,
            description: description.unwrap_or_else(|| Arc::clone(&name)),
            name,
            settings,
            native_vlan,
            tagged_vlans,
            output_only: section.value("output_only"),
            mirrored_to: Vec::new(),
            acls: self.acl_uses(&section, "acl_in", "acls_in"),
            lldp,
            org_tlvs,
            lldp_peer: self.mac(&section, "lldp_peer_mac"),
            stack: None,
            lacp_passthrough: names(section.node("lacp_passthrough").map(|node| &**node)),
            coprocessor: self.coprocessor(&section),
        })
    }

    /// Checks which keys go together: a port is for VLANs, or one of [`NON_VLAN`].
    fn check_kind(&mut self, section: &Section<'_>, number: u32) {
        let has = |key: &str| section.node(key).is_some_and(|node| node.is_truthy());
        let kinds: Vec<&str> = NON_VLAN.into_iter().filter(|key| has(key)).collect();
        let Some(kind) = kinds.last().copied() else { return };
        for key in ["native_vlan", "tagged_vlans"] {
            if has(key) {
                let message = format!(
                    "port {number} has `{kind}`, so it cannot have VLANs; remove `{key}` or `{kind}`"
                );
                self.problem(section.place_of(key), message);
            }
        }
        let together: &[&str] = match has("output_only") {
            true => &["mirror", "output_only"],
            false if has("mirror") => &["mirror", "coprocessor"],
            false => &[],
        };
        let are_right = kinds.len() == 1 || kinds.iter().all(|kind| together.contains(kind));
        if !are_right {
            let message =
                format!("port {number} cannot have {} together; keep one", kinds.join(" and "));
            self.problem(section.place_of(kind), message);
        }
        for key in PORT {
            let is_acl = key.name.starts_with("acl") && (has("stack") || has("coprocessor"));
            let is_vlan = ["native_vlan", "tagged_vlans"].contains(&key.name);
            if FOR_ALL.contains(&key.name) || kinds.contains(&key.name) || is_acl || is_vlan {
                continue;
            }
            if section.is_changed(key) {
                let message = format!(
                    "port {number} has `{kind}`, so `{}` has no meaning; remove one of them",
                    key.name
                );
                self.problem(section.place_of(key.name), message);
            }
        }
    }

    fn check_settings(&mut self, section: &Section<'_>, settings: &PortSettings, number: u32) {
        if settings.hairpin && settings.hairpin_unicast {
            let message = "`hairpin` and `hairpin_unicast` exclude each other; remove one";
            self.problem(section.place_of("hairpin_unicast"), message);
        }
        if settings.dot1x {
            if number > MAX_DOT1X {
                let message = format!("802.1X is for ports up to {MAX_DOT1X}; this is {number}");
                self.problem(section.place_of("dot1x"), message);
            }
            if settings.dot1x_mab && settings.dot1x_dyn_acl {
                let message = "`dot1x_mab` and `dot1x_dyn_acl` exclude each other; remove one";
                self.problem(section.place_of("dot1x_mab"), message);
            }
            if settings.dot1x_dyn_acl && settings.dot1x_acl {
                let message = "`dot1x_dyn_acl` and `dot1x_acl` exclude each other; remove one";
                self.problem(section.place_of("dot1x_acl"), message);
            }
        }
        let forced = [settings.lacp_selected, settings.lacp_unselected, settings.lacp_standby];
        if forced.iter().filter(|is| **is).count() > 1 {
            let message =
                "only one of `lacp_selected`, `lacp_unselected` and `lacp_standby` can be true";
            self.problem(&section.place, message);
        }
    }

    fn port_vlans(
        &mut self,
        section: &Section<'_>,
        intent: &mut Intent,
    ) -> (Option<VlanId>, Vec<VlanId>) {
        let native = section.node("native_vlan");
        let native_vlan = native.and_then(|node| self.vlan_of(node, intent));
        let mut tagged_vlans = Vec::new();
        for node in section.node("tagged_vlans").and_then(|it| it.list()).unwrap_or_default() {
            let Some(vlan) = self.vlan_of(node, intent) else { continue };
            if Some(vlan) == native_vlan {
                let message = format!(
                    "VLAN {node} is the port's `native_vlan` too; remove it from one of them"
                );
                self.problem(&node.place, message);
            }
            if !tagged_vlans.contains(&vlan) {
                tagged_vlans.push(vlan);
            }
        }
        (native_vlan, tagged_vlans)
    }

    fn mirror(&mut self, section: &Section<'_>, switch: SwitchId, to: u32) {
        let Some(node) = section.node("mirror").filter(|node| node.is_truthy()) else { return };
        let one = std::slice::from_ref(node);
        let is_coprocessor = section.node("coprocessor").is_some_and(|node| node.is_truthy());
        for node in node.list().unwrap_or(one) {
            match name(node) {
                Some(from) => {
                    let place = node.place.clone();
                    self.mirrors.push(MirrorRef { place, switch, to, from, is_coprocessor });
                }
                None => {
                    let message = format!("{node} is no port to mirror; give its number or name");
                    self.problem(&node.place, message);
                }
            }
        }
    }

    /// Keeps the other end, which may not be read yet. Returns whether it is a stack port.
    fn stack_end(&mut self, section: &Section<'_>, switch: SwitchId, port: u32) -> bool {
        let Some(node) = section.node("stack").filter(|node| node.is_truthy()) else {
            return false;
        };
        let Some(stack) = Section::of_node(node, PORT_STACK, "key of a stack port", self) else {
            return false;
        };
        let (dp, peer) = (stack.node("dp"), stack.node("port"));
        for (key, value) in [("dp", dp), ("port", peer)] {
            if value.is_none() {
                let message = format!("`stack` needs `{key}`; give the switch and its port");
                self.problem(&node.place, message);
            }
        }
        let (Some(dp), Some(peer)) = (dp, peer) else { return true };
        let text = dp.scalar().and_then(Scalar::text);
        if let (Some(text), Some(name)) = (text, name(peer)) {
            self.stack_ends.push(EndRef {
                switch,
                port,
                peer: (dp.place.clone(), Arc::from(text)),
                peer_port: (peer.place.clone(), name),
            });
        }
        true
    }

    fn port_lldp(&mut self, section: &Section<'_>) -> (Option<PortLldp>, Vec<OrgTlv>) {
        let Some(node) = section.node("lldp_beacon").filter(|node| node.is_truthy()) else {
            return (None, Vec::new());
        };
        let Some(lldp) = Section::of_node(node, PORT_LLDP, "key of a port's LLDP", self) else {
            return (None, Vec::new());
        };
        let settings = PortLldp::read(&lldp);
        let mut tlvs = Vec::new();
        if settings.enable {
            if let Some(entry) = node.get("org_tlvs").filter(|entry| entry.value.is_null()) {
                self.problem(&entry.value.place, "`org_tlvs` is empty; give a list, or remove it");
            }
            for node in lldp.node("org_tlvs").and_then(|node| node.list()).unwrap_or_default() {
                let Some(tlv) = Section::of_node(node, ORG_TLV, "key of a TLV", self) else {
                    continue;
                };
                for key in ORG_TLV.iter().filter(|key| tlv.entry(key.name).is_none()) {
                    let message =
                        format!("the TLV needs `{}`; give `{{oui, subtype, info}}`", key.name);
                    self.problem(&node.place, message);
                }
                tlvs.push(OrgTlv::read(&tlv));
            }
        }
        (Some(settings), tlvs)
    }

    fn coprocessor(&mut self, section: &Section<'_>) -> Option<CoprocessorSettings> {
        let node = section.node("coprocessor").filter(|node| node.is_truthy())?;
        let section = Section::of_node(node, COPROCESSOR, "key of a coprocessor", self)?;
        let strategy: Option<Arc<str>> = section.value("strategy");
        if strategy.as_deref() != Some("vlan_vid") {
            let place = section.place_of("strategy").clone();
            self.problem(&place, "`strategy` of a coprocessor must be `vlan_vid`");
        }
        Some(CoprocessorSettings::read(&section))
    }
}

fn names(node: Option<&Node>) -> Vec<crate::intent::Name> {
    let nodes = node.and_then(|node| node.list()).unwrap_or_default();
    nodes.iter().filter_map(|node| name(node)).collect()
}
