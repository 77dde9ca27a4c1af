//! The controller's own flows that every switch needs: the table-miss entry, and those of services.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellrock_openflow::ErrorMessage;

use crate::{Dpid, Event, Network, Refusal};

/// Delay after the first refusal of a flow of the controller's own, until it is sent again. Each
/// further refusal doubles it.
pub const OWN_FLOW_AGAIN: Duration = Duration::from_secs(1);

/// Maximum delay between two attempts.
pub const OWN_FLOW_AGAIN_MAX: Duration = Duration::from_secs(60);

/// A flow of the controller's own in one switch, for the worker and for services. If the switch
/// refuses it (full table, unsupported match), it is sent again. A refusal is an alarm
/// ([`Event::OwnFlowRefused`]), published once until the flow is installed.
#[derive(Debug)]
pub struct OwnFlow {
    name: &'static str,
    /// Transaction id of the last flow_mod.
    sent: Option<u32>,
    /// Transaction id of the barrier behind it. Its reply means that the flow is installed.
    barrier: Option<u32>,
    /// Number of refusals since the flow was last installed.
    refusals: u32,
    /// Time to send it again.
    again: Option<Duration>,
}

impl OwnFlow {
    /// A flow with this name in events, such as `table-miss entry`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        OwnFlow { name, sent: None, barrier: None, refusals: 0, again: None }
    }

    /// Notes that the flow was sent with this transaction id.
    pub fn sent(&mut self, xid: u32, now: Duration) {
        (self.sent, self.barrier) = (Some(xid), None);
        // For the case that neither an error nor the barrier reply comes.
        self.again = (self.refusals > 0).then_some(now + OWN_FLOW_AGAIN_MAX);
    }

    /// Notes that a barrier was sent behind it.
    pub fn followed(&mut self, barrier: u32) {
        self.barrier = Some(barrier);
    }

    /// Whether to send it again, with a barrier behind it.
    #[must_use]
    pub fn is_due(&self, now: Duration) -> bool {
        self.again.is_some_and(|again| again <= now)
    }

    /// Handles an error message. Returns whether it is about this flow.
    pub fn refused(
        &mut self,
        (network, dpid): (&Network, Dpid),
        xid: u32,
        error: &ErrorMessage<'_>,
        now: Duration,
    ) -> bool {
        if self.sent != Some(xid) {
            return false;
        }
        let longer = OWN_FLOW_AGAIN * 2_u32.saturating_pow(self.refusals.min(16));
        self.again = Some(now + longer.min(OWN_FLOW_AGAIN_MAX));
        self.barrier = None;
        let why = Refusal::from(error);
        network.extension::<RefusedFlows>().note(dpid, self.name, Some(why));
        if self.refusals == 0 {
            network.events().publish(now, Event::OwnFlowRefused { dpid, flow: self.name, why });
        }
        self.refusals = self.refusals.saturating_add(1);
        true
    }

    /// Handles a barrier reply. Returns whether it belongs to this flow, which is then installed.
    pub fn confirmed(
        &mut self,
        (network, dpid): (&Network, Dpid),
        barrier: u32,
        now: Duration,
    ) -> bool {
        if self.barrier != Some(barrier) {
            return false;
        }
        (self.barrier, self.again) = (None, None);
        if std::mem::take(&mut self.refusals) > 0 {
            network.extension::<RefusedFlows>().note(dpid, self.name, None);
            network.events().publish(now, Event::OwnFlowInstalled { dpid, flow: self.name });
        }
        true
    }

    /// Cleans up after the switch is gone.
    pub fn forget(&self, network: &Network, dpid: Dpid) {
        if self.refusals > 0 {
            network.extension::<RefusedFlows>().note(dpid, self.name, None);
        }
    }
}

/// The controller's own flows that switches refuse. All apps share it: [`Network::extension`].
#[derive(Debug, Default)]
pub struct RefusedFlows(Mutex<BTreeMap<Dpid, BTreeMap<&'static str, Refusal>>>);

impl RefusedFlows {
    /// Names of the flows that a switch refuses now, and why.
    #[must_use]
    pub fn of(&self, dpid: Dpid) -> Vec<(&'static str, Refusal)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&dpid).into_iter().flatten().map(|(name, why)| (*name, *why)).collect()
    }

    fn note(&self, dpid: Dpid, name: &'static str, why: Option<Refusal>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_switch = all.entry(dpid).or_default();
        match why {
            Some(why) => of_switch.insert(name, why),
            None => of_switch.remove(name),
        };
        if of_switch.is_empty() {
            all.remove(&dpid);
        }
    }
}

#[cfg(test)]
mod tests {
    use bellrock_openflow::{Bytes, ErrorCode};

    use super::*;
    use crate::Nowhere;

    const DPID: Dpid = Dpid(7);

    #[test]
    fn a_refused_flow_is_tried_again_with_back_off_and_is_one_alarm() {
        let network = Nowhere::network();
        let error = ErrorMessage::Standard { code: ErrorCode::FlowModTableFull, data: Bytes(&[]) };
        let mut flow = OwnFlow::new("table-miss entry");
        let (mut now, mut waits) = (Duration::ZERO, Vec::new());
        flow.sent(1, now);
        for xid in 1..10 {
            assert!(!flow.refused((&network, DPID), 99, &error, now), "of another message");
            assert!(flow.refused((&network, DPID), xid, &error, now));
            assert!(!flow.is_due(now));
            let before = now;
            while !flow.is_due(now) {
                now += Duration::from_secs(1);
            }
            waits.push((now - before).as_secs());
            flow.sent(xid + 1, now);
            flow.followed(100 + xid);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let refused = network.extension::<RefusedFlows>();
        assert_eq!(refused.of(DPID).len(), 1);
        assert_eq!(refused.of(Dpid(8)), []);
        // Neither an error nor a reply: it is sent again later.
        assert!(flow.is_due(now + OWN_FLOW_AGAIN_MAX));
        assert!(!flow.confirmed((&network, DPID), 108, now), "the one before");
        assert!(flow.confirmed((&network, DPID), 109, now));
        assert!(!flow.is_due(now + OWN_FLOW_AGAIN_MAX));
        assert_eq!(refused.of(DPID), []);
        let events: Vec<&str> =
            network.events().latest(10).iter().map(|it| it.event.name()).collect();
        assert_eq!(events, ["own_flow_refused", "own_flow_installed"]);
    }
}
