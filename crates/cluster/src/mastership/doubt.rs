//! Masters in doubt: after the death of a node, the others claim their own switches again.
//!
//! A switch need not say that it has obeyed another node. If that one dies before it has said so in
//! a heartbeat, the master before it would take itself for the master for ever.

use std::time::Duration;

use bellrock_api::Dpid;

use super::switch::{Here, Role, claim_of};
use super::{CLAIMS_END, Mastership, Output, UNANSWERED};

impl Mastership {
    /// A node has died: claims the switches of this node again, now and a little later. The dead
    /// node may have been master of some of them, without a word of the switch or of the node.
    pub(super) fn doubt_all(&mut self, now: Duration) {
        for entry in self.switches.values_mut() {
            if let Some(Here { role: Role::Master { confirm_at, .. }, .. }) = &mut entry.here {
                *confirm_at = Some(now);
            }
        }
        self.doubt_again = Some(now + CLAIMS_END);
    }

    /// Claims a switch of this node again, if that is due. One that has obeyed another node refuses
    /// it.
    pub(super) fn confirm(&mut self, dpid: Dpid, now: Duration, out: &mut Vec<Output>) {
        let Some(here) = self.here(dpid) else { return };
        let Role::Master { generation, claim, confirm_at, .. } = &mut here.role else { return };
        let Some(at) = *confirm_at else { return };
        let at = claim.map_or(at, |until| until.max(at));
        if now < at {
            return self.wake_at(dpid, at);
        }
        *confirm_at = None;
        *claim = Some(now + UNANSWERED);
        let order = claim_of(*generation);
        out.push(Output::Order(dpid, order));
        self.wake_at(dpid, now + UNANSWERED);
    }
}
