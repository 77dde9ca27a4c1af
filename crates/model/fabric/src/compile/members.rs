//! The VLANs of a switch, with their ports.

use std::collections::BTreeMap;

use bellrock_openflow as openflow;

use super::Facts;
use crate::intent::{Intent, Port, Switch, Vlan, VlanId};

/// The maximum number of a port that Faucet takes: it ignores others, but the switch's own.
const MAX_PORT: u32 = 0xf000_0000;

/// A VLAN that ports of the switch are in.
#[derive(Clone, Debug)]
pub(super) struct SwitchVlan {
    pub(super) id: VlanId,
    /// Positions in [`Switch::ports`], by number. Ports that are not used are left out.
    pub(super) tagged: Vec<usize>,
    /// The same, of ports whose packets have no tag.
    pub(super) untagged: Vec<usize>,
}

impl SwitchVlan {
    /// All ports, those with tags first.
    pub(super) fn ports<'s>(&'s self, switch: &'s Switch) -> impl Iterator<Item = &'s Port> + 's {
        self.tagged.iter().chain(&self.untagged).filter_map(|place| switch.ports.get(*place))
    }
}

/// The VLANs that ports of a switch are in, by id.
pub(super) fn vlans(intent: &Intent, switch: &Switch) -> BTreeMap<u16, SwitchVlan> {
    let mut vlans = BTreeMap::new();
    for (place, port) in switch.ports.iter().enumerate().filter(|(_, port)| is_used(port)) {
        let mut add = |id: VlanId, is_tagged: bool| {
            let Some(vlan) = intent.vlan(id) else { return };
            let nobody = SwitchVlan { id, tagged: Vec::new(), untagged: Vec::new() };
            let members = vlans.entry(vlan.vid).or_insert(nobody);
            match is_tagged {
                true => members.tagged.push(place),
                false => members.untagged.push(place),
            }
        };
        port.tagged_vlans.iter().for_each(|id| add(*id, true));
        port.native_vlan.iter().for_each(|id| add(*id, false));
    }
    vlans
}

/// Whether packets may pass a port, if it is up.
fn is_used(port: &Port) -> bool {
    let is_numbered = port.number <= MAX_PORT || port.number == openflow::Port::LOCAL.0;
    port.settings.enabled && is_numbered
}

/// Whether packets may pass a port now.
pub(super) fn is_running(port: &Port, facts: &Facts) -> bool {
    is_used(port) && (facts.is_up(port.number) || !port.settings.opstatus_reconf)
}

/// The VLANs of a port: those with tags in the file's order, then the native one.
pub(super) fn vlans_of<'i>(
    intent: &'i Intent,
    port: &'i Port,
) -> impl Iterator<Item = &'i Vlan> + use<'i> {
    port.tagged_vlans.iter().chain(&port.native_vlan).filter_map(|id| intent.vlan(*id))
}
