//! Ports that belong to one app, such as the ends of circuits: the frames of a VLAN, or those without a tag, that come
//! in there are its own, and no other app sends frames of that kind out of them.
//!
//! An app reserves ports in [`bellrock_api::App::start`], before any switch is up. Every app that floods, learns or
//! forwards asks its [`Fence`] what it has to leave alone.

use std::collections::BTreeSet;

use bellrock_api::openflow::PortConfig;
use bellrock_api::{
    Action, Dpid, Network, PacketIn, Port, PortDesc, Reader, Result, Switch, SwitchPort, Watch,
};

/// The ports that are reserved, each for the frames of a VLAN, or (`None`) for those without a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedPorts(BTreeSet<(SwitchPort, Option<u16>)>);

/// The reserved ports of this controller. All clones are the same.
#[must_use]
pub fn reserved_ports(network: &Network) -> Watch<ReservedPorts> {
    Watch::clone(&network.extension::<Watch<ReservedPorts>>())
}

/// Reserves ports, beside those that are reserved already.
pub fn reserve(network: &Network, ports: impl IntoIterator<Item = (SwitchPort, Option<u16>)>) {
    let more: Vec<_> = ports.into_iter().collect();
    reserved_ports(network).update(|before| {
        let mut all = before.clone();
        all.0.extend(more);
        all
    });
}

impl ReservedPorts {
    /// Whether frames of a VLAN at a port belong to one app.
    #[must_use]
    pub fn is_reserved(&self, at: SwitchPort, vlan: Option<u16>) -> bool {
        // Nearly always there are none.
        !self.0.is_empty() && self.0.contains(&(at, vlan))
    }

    /// Whether frames of a VLAN are reserved at any port of a switch.
    #[must_use]
    pub fn is_any_reserved(&self, dpid: Dpid, vlan: Option<u16>) -> bool {
        let first = (SwitchPort::new(dpid, Port(0)), None);
        let last = (SwitchPort::new(dpid, Port(u32::MAX)), Some(u16::MAX));
        !self.0.is_empty() && self.0.range(first..=last).any(|(_, its)| *its == vlan)
    }
}

/// What a handler leaves alone at its switch.
pub struct Fence {
    dpid: Dpid,
    reserved: Reader<ReservedPorts>,
    /// The actions of the last packet that could not be flooded, for their memory.
    actions: Vec<Action<'static>>,
}

impl Fence {
    /// The fence of the handler of this switch.
    #[must_use]
    pub fn new(network: &Network, dpid: Dpid) -> Self {
        Fence { dpid, reserved: reserved_ports(network).reader(), actions: Vec::new() }
    }

    /// Whether frames of a VLAN at a port of the switch belong to another app.
    #[inline]
    pub fn is_reserved(&mut self, port: Port, vlan: Option<u16>) -> bool {
        self.reserved.get().is_reserved(SwitchPort::new(self.dpid, port), vlan)
    }

    /// Whether a packet came in by a port where frames of its VLAN belong to another app.
    #[inline]
    pub fn is_reserved_for(&mut self, packet: &PacketIn<'_>) -> bool {
        let reserved = self.reserved.get();
        // The packet is not read where nothing is reserved.
        !reserved.0.is_empty()
            && reserved.is_reserved(SwitchPort::new(self.dpid, packet.in_port()), vlan_of(packet))
    }

    /// What sends a packet out of all ports but the one that it came in by, and those where frames of its VLAN are
    /// reserved: [`Port::FLOOD`] where there are none.
    pub fn flood(
        &mut self,
        switch: &Switch<'_>,
        in_port: Port,
        vlan: impl FnOnce() -> Option<u16>,
    ) -> &[Action<'static>] {
        const FLOOD: [Action<'static>; 1] = [Action::output(Port::FLOOD)];
        let reserved = self.reserved.get();
        if reserved.0.is_empty() {
            return const { &FLOOD };
        }
        let vlan = vlan();
        if !reserved.is_any_reserved(self.dpid, vlan) {
            return const { &FLOOD };
        }
        let is_open = |desc: &&PortDesc| {
            let is_flooded = desc.is_up() && !desc.config.contains(PortConfig::NO_FLOOD);
            let at = SwitchPort::new(self.dpid, desc.port);
            let is_other = desc.port.is_ingress() && desc.port != in_port;
            is_flooded && is_other && !reserved.is_reserved(at, vlan)
        };
        let ports = switch.info().ports.iter().filter(is_open);
        self.actions.clear();
        self.actions.extend(ports.map(|desc| Action::output(desc.port)));
        &self.actions
    }
}

/// The VLAN of a packet. `None` for one without a tag, or with a tag that has a priority only.
#[must_use]
pub fn vlan_of(packet: &PacketIn<'_>) -> Option<u16> {
    packet.vlan().map(|tag| tag.id).filter(|id| *id != 0)
}

/// Sends a packet out of all ports that it may leave by, as [`Fence::flood`] says.
///
/// # Errors
/// Those of [`Switch::packet_out_with`].
pub fn flood(fence: &mut Fence, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<()> {
    let actions = fence.flood(switch, packet.in_port(), || vlan_of(packet));
    switch.packet_out_with(packet, actions)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use bellrock_api::AppId;
    use bellrock_api::Nowhere;

    use super::*;
    use crate::testing::{ROOM_BYTES, event, info};

    #[test]
    fn reserved_ports_are_left_out_of_flooding_for_their_vlan_only() {
        let network = Nowhere::network_of("test", AppId::new(0, "test").unwrap());
        let (mut fence, mut info) = (Fence::new(&network, Dpid(1)), info(4));
        let at = |dpid, port| SwitchPort::new(Dpid(dpid), Port(port));
        let ports = |fence: &mut Fence, info: &_, vlan| {
            let flooded = |switch: &mut Switch<'_>| {
                let actions = fence.flood(switch, Port(3), || vlan).to_vec();
                actions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            };
            event(info, std::time::Duration::ZERO, ROOM_BYTES, flooded).0
        };
        assert_eq!(ports(&mut fence, &info, None), "output:FLOOD");
        reserve(&network, [(at(1, 1), None), (at(2, 2), None)]);
        reserve(&network, [(at(1, 2), Some(7))]);
        assert_eq!(ports(&mut fence, &info, None), "output:2 output:4");
        assert_eq!(ports(&mut fence, &info, Some(7)), "output:1 output:4");
        assert_eq!(ports(&mut fence, &info, Some(8)), "output:FLOOD");
        assert!(fence.is_reserved(Port(1), None) && !fence.is_reserved(Port(1), Some(7)));
        assert!(!fence.is_reserved(Port(2), None));
        info.ports[3].config = PortConfig::NO_FLOOD;
        assert_eq!(ports(&mut fence, &info, None), "output:2");
    }
}
