//! Flows of ports: which VLAN a packet is in, LLDP, and output by metadata.

use bellrock_api::Flow;
use bellrock_openflow::{Action, Field, MacAddr, Match, Port};

use super::{Compiler, Entries, Facts, Table, priority};
use crate::intent::{self, Vlan};

/// The nearest bridge, to which LLDP goes. The lowest four bits do not count (IEEE 802.1AB §7.1).
const LLDP: (MacAddr, u32) = (MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]), 44);
const LLDP_TYPE: u16 = 0x88cc;
/// Bytes of LLDP for the controller.
const LLDP_BYTES: u16 = 128;
/// Ethernet type of a VLAN tag (IEEE 802.1Q).
const TAG: u16 = 0x8100;

/// VLAN priority of packets that may go to a port with `loop_protect_external`.
pub(super) const FOR_EXTERNAL: u8 = 2;
/// VLAN priority of packets that came from such a port, and may not.
pub(super) const NOT_FOR_EXTERNAL: u8 = 0;

/// Bits of the metadata for a port's number. Those for a VLAN id are above.
const PORT_BITS: u32 = 12;
/// The bits of both.
const EGRESS_MASK: u64 = 0x00ff_ffff;
/// The maximum number of a port that the metadata has room for.
pub(super) const MAX_EGRESS_PORT: u32 = (1 << PORT_BITS) - 1;

/// The metadata of a packet that is to leave by a port in a VLAN, and the bits that count.
pub(super) fn egress_metadata(port: u32, vid: u16) -> (u64, u64) {
    (u64::from(vid) << PORT_BITS | u64::from(port & MAX_EGRESS_PORT), EGRESS_MASK)
}

pub(super) fn set_external(pcp: u8) -> Action<'static> {
    Action::SetField(Field::VlanPcp, pcp.into())
}

/// The actions that send copies of a port's packets to the ports that mirror it.
pub(super) fn mirrors(port: &intent::Port) -> impl Iterator<Item = Action<'static>> + '_ {
    port.mirrored_to.iter().map(|number| Action::output(Port(*number)))
}

impl Compiler {
    pub(super) fn compile_port(&self, number: u32, facts: &Facts, entries: &mut Entries) {
        let Some(port) = self.running(number, facts) else { return };
        let settings = &self.switch().settings;
        let highest = settings.highest_priority.unwrap_or(0);
        let here = || Match::any().in_port(Port(number));
        if port.settings.receive_lldp {
            let (address, bits) = LLDP;
            let lldp = here().eth_type(LLDP_TYPE).with_masked(
                Field::EthDst,
                address.to_u64().into(),
                super::flood::mask(bits),
            );
            let action = Action::Output { port: Port::CONTROLLER, max_len: LLDP_BYTES };
            entries.push(self.cookie(), self.flow(Table::Vlan, highest, lldp).actions(&[action]));
        }
        if port.output_only {
            entries.push(self.cookie(), self.flow(Table::Vlan, highest, here()));
        }
        if port.settings.count_untag_vlan_miss
            && port.native_vlan.is_none()
            && !port.tagged_vlans.is_empty()
        {
            let untagged = self.flow(Table::Vlan, priority::LOW, here().untagged());
            entries.push(self.cookie(), untagged);
        }
        if self.has_port_acls
            && self.switch().acls.is_empty()
            && !port.output_only
            && port.acls.is_empty()
        {
            let pass = self.flow(Table::PortAcl, priority::FILTER, here());
            entries.push(self.cookie(), self.goto(pass, Table::Vlan));
        }
    }

    pub(super) fn compile_port_vlan(
        &self,
        number: u32,
        vid: u16,
        facts: &Facts,
        entries: &mut Entries,
    ) {
        let Some(port) = self.running(number, facts) else { return };
        let Some((vlan, is_native)) = self.membership(number, vid) else { return };
        entries.push(self.cookie(), self.input(port, vlan, is_native));
        if self.ids.is_used(Table::Egress) {
            entries.push(self.cookie(), self.egress(port, vid, is_native));
        }
    }

    /// Takes packets of a port into a VLAN.
    fn input(&self, port: &intent::Port, vlan: &Vlan, is_native: bool) -> Flow {
        let here = Match::any().in_port(Port(port.number));
        let matching = if is_native { here.untagged() } else { here.vlan_id(vlan.vid) };
        let mut actions: Vec<Action<'static>> = mirrors(port).collect();
        if is_native {
            actions.extend(push_vlan(vlan.vid, TAG));
        }
        if self.has_externals {
            let is_external = port.settings.loop_protect_external;
            actions.push(set_external(if is_external { NOT_FOR_EXTERNAL } else { FOR_EXTERNAL }));
        }
        let next = if vlan.acls_in.is_empty() { self.filters() } else { Table::VlanAcl };
        self.goto(self.flow(Table::Vlan, priority::LOW, matching).actions(&actions), next)
    }

    /// Sends packets out of a port that carry its metadata.
    fn egress(&self, port: &intent::Port, vid: u16, is_native: bool) -> Flow {
        let high = self.switch().settings.high_priority.unwrap_or(0);
        let (metadata, mask) = egress_metadata(port.number, vid);
        let matching =
            Match::any().vlan_id(vid).with_masked(Field::Metadata, metadata.into(), mask.into());
        let mut actions: Vec<Action<'static>> = mirrors(port).collect();
        if is_native {
            actions.push(Action::PopVlan);
        }
        actions.push(Action::output(Port(port.number)));
        self.flow(Table::Egress, high, matching).actions(&actions)
    }
}

/// The actions that add a VLAN tag.
pub(super) fn push_vlan(vid: u16, eth_type: u16) -> [Action<'static>; 2] {
    let tagged = Match::VLAN_PRESENT | vid;
    [Action::PushVlan(eth_type), Action::SetField(Field::VlanVid, tagged.into())]
}
