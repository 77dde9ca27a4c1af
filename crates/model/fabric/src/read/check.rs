//! Checks over the whole file: what refers to ports and ACLs, and what excludes what.

use std::collections::{BTreeMap, BTreeSet};

use super::{Reading, name_hint};
use crate::Place;
use crate::intent::{AclId, AclUse, Intent, Name, Output, PortRef, SwitchId, Tunnel, Vlan};

/// A port that gets copies of another one.
#[derive(Debug)]
pub(super) struct MirrorRef {
    pub(super) place: Place,
    pub(super) switch: SwitchId,
    /// The number of the port that gets copies.
    pub(super) to: u32,
    /// The port whose packets are copied.
    pub(super) from: Name,
    pub(super) is_coprocessor: bool,
}

impl Reading {
    pub(super) fn check(&mut self, intent: &mut Intent) {
        self.check_switches(intent);
        self.check_stack(intent);
        self.check_mirrors(intent);
        self.check_acls(intent);
        self.warn_unused_acls(intent);
    }

    fn check_switches(&mut self, intent: &Intent) {
        let mut by_dpid = BTreeMap::new();
        for switch in &intent.switches {
            if let Some(other) = by_dpid.insert(switch.dpid, &switch.name) {
                let message = format!(
                    "`{other}` has the `dp_id` {:#x} too; give each switch its own",
                    switch.dpid.0
                );
                self.problem(&switch.place, message);
            }
            let is_without_vlan = |port: &crate::intent::Port| {
                port.output_only || port.stack.is_some() || port.coprocessor.is_some()
            };
            let has_stack = self
                .stack_ends
                .iter()
                .any(|end| intent.switch(end.switch).is_some_and(|it| it.name == switch.name));
            let has_other = has_stack || switch.ports.iter().any(is_without_vlan);
            if intent.vlans.is_empty() && !has_other {
                let message =
                    format!("no port of `{}` has a VLAN; give one `native_vlan`", switch.name);
                self.problem(&switch.place, message);
            }
            let vlan = switch.settings.global_vlan;
            if vlan != 0 && intent.vlans.iter().any(|it| it.vid == vlan) {
                let message = format!("`global_vlan` {vlan} is a VLAN's id; give a free one");
                self.problem(&switch.place, message);
            }
            self.check_dot1x(switch);
        }
    }

    fn check_dot1x(&mut self, switch: &crate::intent::Switch) {
        let Some(dot1x) = &switch.dot1x else { return };
        if !switch.acls.is_empty() {
            let message = format!("`{}` has `dp_acls` and `dot1x`; remove one", switch.name);
            self.problem(&switch.place, message);
            return;
        }
        let Some(number) = dot1x.nfv_sw_port else {
            let message = format!("`dot1x` of `{}` needs `nfv_sw_port`", switch.name);
            self.problem(&switch.place, message);
            return;
        };
        if let Some(port) = switch.port_numbered(number).filter(|port| !port.output_only) {
            let message = "the port of `nfv_sw_port` must have `output_only: true`";
            self.problem(&port.place, message);
        }
    }

    fn check_mirrors(&mut self, intent: &mut Intent) {
        for mirror in std::mem::take(&mut self.mirrors) {
            let Some(switch) = intent.switches.get_mut(mirror.switch.0 as usize) else { continue };
            let Some(from) = switch.port(&mirror.from).map(|port| port.number) else {
                let ports = name_hint(&mirror.from);
                let message = format!("switch `{}` has no port {ports} to mirror", switch.name);
                self.problem(&mirror.place, message);
                continue;
            };
            for port in &mut switch.ports {
                if port.number == from && !port.mirrored_to.contains(&mirror.to) {
                    port.mirrored_to.push(mirror.to);
                }
                if port.number == mirror.to && !mirror.is_coprocessor {
                    port.output_only = true;
                }
            }
        }
    }

    fn check_acls(&mut self, intent: &mut Intent) {
        let mut seen = BTreeSet::new();
        let mut mirrors = Vec::new();
        let ids = (0..intent.switches.len()).filter_map(|id| u32::try_from(id).ok());
        for id in ids.map(SwitchId) {
            let Some(switch) = intent.switch(id) else { continue };
            // All VLANs are on all switches.
            let vlans = intent.vlans.iter();
            let of_vlans = vlans.flat_map(|vlan| vlan.acls_in.iter().chain(&vlan.acls_out));
            for of_vlan in of_vlans {
                self.check_use(of_vlan, id, true, intent, &mut seen, &mut mirrors);
            }
            for port in &switch.ports {
                if !switch.acls.is_empty() && !port.acls.is_empty() {
                    let message =
                        "the switch has `dp_acls`, so its ports cannot have ACLs; remove one";
                    self.problem(&port.place, message);
                }
                if port.settings.dot1x && !port.acls.is_empty() && switch.acls.is_empty() {
                    let message = "a port with `dot1x` cannot have ACLs of its own; remove one";
                    self.problem(&port.place, message);
                }
                for of_port in &port.acls {
                    self.check_use(of_port, id, false, intent, &mut seen, &mut mirrors);
                }
                self.check_same_exactness(&port.acls, intent);
            }
            for of_switch in &switch.acls {
                self.check_use(of_switch, id, false, intent, &mut seen, &mut mirrors);
            }
            for acl in self.used_without_name(switch, intent) {
                self.check_use(&acl, id, false, intent, &mut seen, &mut mirrors);
            }
        }
        for Vlan { acls_in, acls_out, .. } in &intent.vlans {
            self.check_same_exactness(acls_in, intent);
            self.check_same_exactness(acls_out, intent);
        }
        for (switch, number) in mirrors {
            let switch = intent.switches.get_mut(switch.0 as usize);
            let ports = switch.map(|switch| &mut switch.ports);
            for port in ports.into_iter().flatten().filter(|port| port.number == number) {
                port.output_only = true;
            }
        }
    }

    /// ACLs that 802.1X may put on a port, and those with tunnels, which concern all switches.
    fn used_without_name(&self, switch: &crate::intent::Switch, intent: &Intent) -> Vec<AclUse> {
        let has_dynamic = switch.ports.iter().any(|port| port.settings.dot1x_dyn_acl);
        let mut names: Vec<Name> = Vec::new();
        if let Some(dot1x) = &switch.dot1x
            && switch.ports.iter().any(|port| port.settings.dot1x_acl)
        {
            let given = [&dot1x.auth_acl, &dot1x.noauth_acl];
            names.extend(given.into_iter().flatten().map(|name| Name::Text(name.clone())));
        }
        let used = |acl: &crate::intent::Acl| {
            let has_tunnel = acl
                .rules
                .iter()
                .any(|rule| rule.actions.output.iter().any(|it| matches!(it, Output::Tunnel(_))));
            has_tunnel || has_dynamic && acl.dot1x_assigned || names.contains(&acl.name)
        };
        let ids = (0..).map(AclId).zip(&intent.acls);
        ids.filter(|(_, acl)| used(acl))
            .map(|(id, acl)| AclUse { place: acl.place.clone(), acl: id })
            .collect()
    }

    /// An ACL counts as soon as something uses it.
    fn check_use(
        &mut self,
        acl_use: &AclUse,
        id: SwitchId,
        is_vlan: bool,
        intent: &Intent,
        seen: &mut BTreeSet<(SwitchId, AclId, bool)>,
        mirrors: &mut Vec<(SwitchId, u32)>,
    ) {
        if !seen.insert((id, acl_use.acl, is_vlan)) {
            return;
        }
        let (Some(acl), Some(switch)) = (intent.acl(acl_use.acl), intent.switch(id)) else {
            return;
        };
        let pending = self.acl_problems.get_mut(acl_use.acl.0 as usize);
        for problem in pending.map(std::mem::take).unwrap_or_default() {
            self.problem(&problem.place, problem.message);
        }
        let has_port = |reading: &mut Reading, port: &PortRef| {
            let found = switch.port(&port.name).map(|port| port.number);
            if found.is_none() {
                let ports = name_hint(&port.name);
                let message = format!(
                    "switch `{}` uses ACL `{}` ({}), but has no port {ports}",
                    switch.name, acl.name, acl_use.place
                );
                reading.problem(&port.place, message);
            }
            found
        };
        for rule in &acl.rules {
            if let Some(mirror) = &rule.actions.mirror {
                mirrors.extend(has_port(self, mirror).map(|number| (id, number)));
            }
            for step in &rule.actions.output {
                match step {
                    Output::Port(port) => {
                        has_port(self, port);
                    }
                    Output::Failover(failover) => {
                        for port in &failover.ports {
                            has_port(self, port);
                        }
                    }
                    Output::Tunnel(tunnel) if is_vlan => {
                        let message = "an ACL of a VLAN cannot have a tunnel; use it at a port";
                        self.problem(&tunnel.place, message);
                    }
                    Output::Tunnel(tunnel) => self.check_tunnel(tunnel, intent),
                    _ => {}
                }
            }
        }
    }

    fn check_tunnel(&mut self, tunnel: &Tunnel, intent: &Intent) {
        let peer = intent.switches.iter().find(|switch| switch.name == tunnel.switch);
        let Some(peer) = peer else {
            let message =
                format!("there is no switch `{}` for the tunnel to end at", tunnel.switch);
            self.problem(&tunnel.place, message);
            return;
        };
        if let Some(port) = tunnel.port.as_ref().filter(|port| peer.port(port).is_none()) {
            let message =
                format!("switch `{}` has no port `{port}` for the tunnel to end at", peer.name);
            self.problem(&tunnel.place, message);
        }
        let Some(name) = &tunnel.vlan else { return };
        let vlan = intent.vlans.iter().find(|vlan| {
            let is_vid = matches!(name, Name::Number(vid) if *vid == i64::from(vlan.vid));
            is_vid || matches!(name, Name::Text(text) if *text == vlan.name)
        });
        let message = match (vlan, name) {
            (Some(vlan), _) if !vlan.settings.reserved_internal_vlan => format!(
                "VLAN `{}` cannot be a tunnel's; give it `reserved_internal_vlan: true`, or another id",
                vlan.name
            ),
            (Some(_), _) => return,
            (None, Name::Number(vid)) if (1..=4095).contains(vid) => return,
            (None, name) => {
                format!("there is no VLAN `{name}` for the tunnel; give its id or its name")
            }
        };
        self.problem(&tunnel.place, message);
    }

    fn check_same_exactness(&mut self, uses: &[AclUse], intent: &Intent) {
        let exactness = |acl_use: &AclUse| intent.acl(acl_use.acl).map(|acl| acl.exact_match);
        let Some((first, others)) = uses.split_first() else { return };
        for other in others.iter().filter(|other| exactness(other) != exactness(first)) {
            let message = "ACLs that are used together must all have `exact_match`, or none";
            self.problem(&other.place, message);
        }
    }

    fn warn_unused_acls(&mut self, intent: &Intent) {
        for (acl, problems) in intent.acls.iter().zip(std::mem::take(&mut self.acl_problems)) {
            for problem in problems {
                let message = format!("{}; nothing uses ACL `{}` yet", problem.message, acl.name);
                self.warning(&problem.place, message);
            }
        }
    }
}
