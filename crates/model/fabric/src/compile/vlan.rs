//! Flows of VLANs, whichever their ports: learning, and the way out.

use bellrock_openflow::{Action, Match, Port};

use super::{Compiler, Entries, Table, priority};

/// Bytes of a packet for the controller, to learn from.
const LEARN_BYTES: u16 = 96;

impl Compiler {
    pub(super) fn compile_vlan(&self, vid: u16, entries: &mut Entries) {
        let Some(vlan) = self.vlan(vid) else { return };
        let here = || Match::any().vlan_id(vid);
        // The controller learns from a copy, while the packet goes on.
        let action = Action::Output { port: Port::CONTROLLER, max_len: LEARN_BYTES };
        let learn = self.flow(Table::EthSrc, priority::LOW, here()).actions(&[action]);
        entries.push(self.cookie(), self.goto(learn, self.output_table()));
        if self.ids.is_used(Table::EgressAcl) && vlan.acls_out.is_empty() {
            let pass = self.flow(Table::EgressAcl, priority::FILTER, here());
            entries.push(self.cookie(), self.goto(pass, Table::Egress));
        }
    }
}
