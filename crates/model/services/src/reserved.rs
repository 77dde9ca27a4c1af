//! Ports reserved by one app, such as the ends of circuits.
//!
//! A reservation is for the frames of one VLAN, or for untagged frames. Such frames that come in at
//! the port belong to the app, and no other app sends such frames out of the port.
//!
//! An app reserves its first ports in [`bellrock_api::App::start`], before any switch is up. Every
//! app that floods, learns or forwards asks its [`ReservedFrames`] which frames to leave alone.

use std::collections::BTreeSet;

use bellrock_api::openflow::PortConfig;
use bellrock_api::{
    Action, Dpid, Network, PacketIn, Port, PortDesc, Publisher, Result, Switch, SwitchPort,
    VlanTag, Watch, WatchReader,
};

/// The reserved ports, each with its VLAN. `None` stands for untagged frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedPorts(BTreeSet<(SwitchPort, Option<u16>)>);

/// Shared by all apps.
#[derive(Default)]
struct Reserved(Publisher<ReservedPorts>);

/// Returns the reserved ports of this controller.
#[must_use]
pub fn reserved_ports(network: &Network) -> Watch<ReservedPorts> {
    network.extension::<Reserved>().0.watch().clone()
}

/// Reserves ports, in addition to those already reserved.
pub fn reserve(network: &Network, ports: impl IntoIterator<Item = (SwitchPort, Option<u16>)>) {
    let added: Vec<_> = ports.into_iter().collect();
    network.extension::<Reserved>().0.update(|before| {
        let mut all = before.clone();
        all.0.extend(added);
        all
    });
}

/// Ends the reservation of these ports, whichever app reserved them.
pub fn release(network: &Network, ports: impl IntoIterator<Item = (SwitchPort, Option<u16>)>) {
    let removed: Vec<_> = ports.into_iter().collect();
    network.extension::<Reserved>().0.update(|before| {
        let mut all = before.clone();
        removed.iter().for_each(|port| _ = all.0.remove(port));
        all
    });
}

impl ReservedPorts {
    /// Whether frames of a VLAN are reserved at a port.
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
        !self.0.is_empty() && self.0.range(first..=last).any(|(_, reserved)| *reserved == vlan)
    }
}

/// Knows which frames a handler leaves alone at its switch.
pub struct ReservedFrames {
    dpid: Dpid,
    reserved: WatchReader<ReservedPorts>,
    /// The last list of output actions, kept to reuse its memory.
    actions: Vec<Action<'static>>,
}

impl ReservedFrames {
    /// Creates the fence for the handler of this switch.
    #[must_use]
    pub fn new(network: &Network, dpid: Dpid) -> Self {
        ReservedFrames { dpid, reserved: reserved_ports(network).reader(), actions: Vec::new() }
    }

    /// Whether another app has reserved frames of a VLAN at a port of the switch.
    #[inline]
    pub fn is_reserved(&mut self, port: Port, vlan: Option<u16>) -> bool {
        self.reserved.get().is_reserved(SwitchPort::new(self.dpid, port), vlan)
    }

    /// Whether another app has reserved the packet's VLAN at the port where the packet came in.
    #[inline]
    pub fn is_reserved_for(&mut self, packet: &PacketIn<'_>) -> bool {
        let reserved = self.reserved.get();
        // Skips reading the packet if nothing is reserved.
        !reserved.0.is_empty()
            && reserved.is_reserved(SwitchPort::new(self.dpid, packet.in_port()), vlan_of(packet))
    }

    /// Returns the actions that flood a packet: to all ports except its `in_port` and the ports
    /// where its VLAN is reserved. [`Port::FLOOD`] if the VLAN is reserved nowhere on the switch.
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

/// Returns the VLAN of a packet. `None` for an untagged packet, or a tag with only a priority.
#[must_use]
pub fn vlan_of(packet: &PacketIn<'_>) -> Option<u16> {
    packet.vlan().and_then(VlanTag::vlan)
}

/// Floods a packet, with the actions that [`ReservedFrames::flood`] returns.
///
/// # Errors
/// Those of [`Switch::packet_out_with`].
pub fn flood(
    frames: &mut ReservedFrames,
    switch: &mut Switch<'_>,
    packet: &PacketIn<'_>,
) -> Result<()> {
    let actions = frames.flood(switch, packet.in_port(), || vlan_of(packet));
    switch.packet_out_with(packet, actions)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use bellrock_api::AppId;
    use bellrock_api::runtime::EmptyNetwork;

    use super::*;
    use crate::testing::{ROOM_BYTES, event, info};

    #[test]
    fn reserved_ports_are_left_out_of_flooding_for_their_vlan_only() {
        let network = EmptyNetwork::network_of("test", AppId::new(0, "test").unwrap());
        let (mut fence, mut info) = (ReservedFrames::new(&network, Dpid(1)), info(4));
        let at = |dpid, port| SwitchPort::new(Dpid(dpid), Port(port));
        let ports = |fence: &mut ReservedFrames, info: &_, vlan| {
            let flooded = |switch: &mut Switch<'_>| {
                let actions = fence.flood(switch, Port(3), || vlan).to_vec();
                actions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            };
            event(info, std::time::Duration::ZERO, ROOM_BYTES, flooded).0
        };
        assert_eq!(ports(&mut fence, &info, None), "FLOOD");
        reserve(&network, [(at(1, 1), None), (at(2, 2), None)]);
        reserve(&network, [(at(1, 2), Some(7))]);
        assert_eq!(ports(&mut fence, &info, None), "output:2 output:4");
        assert_eq!(ports(&mut fence, &info, Some(7)), "output:1 output:4");
        assert_eq!(ports(&mut fence, &info, Some(8)), "FLOOD");
        assert!(fence.is_reserved(Port(1), None) && !fence.is_reserved(Port(1), Some(7)));
        assert!(!fence.is_reserved(Port(2), None));
        info.ports[3].config = PortConfig::NO_FLOOD;
        assert_eq!(ports(&mut fence, &info, None), "output:2");
    }
}
