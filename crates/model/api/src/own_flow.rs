//! The controller's own flows that every switch needs: the table-miss entry, and those of services.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_openflow::ErrorMessage;

use crate::{Backoff, Dpid, Event, Network, Refusal, Repeats};

/// Minimum time between two events about the same refused flow of a switch, over all connections of
/// the switch.
pub const OWN_FLOW_REPORTED_EVERY: Duration = Duration::from_secs(60);

/// Maximum number of refused flows with events of their own. Further flows share one such event.
const FLOWS_REPORTED_APART: usize = 1024;

/// A flow of the controller's own in one switch, for the worker and for services. If the switch
/// refuses it (full table, unsupported match), it is sent again. A refusal is an alarm
/// ([`Event::OwnFlowRefused`]), published once until the flow is installed, and at most once every
/// [`OWN_FLOW_REPORTED_EVERY`] over all connections of the switch.
#[derive(Debug)]
pub struct OwnFlow {
    name: &'static str,
    /// Transaction id of the last flow_mod.
    xid: Option<u32>,
    /// Transaction id of the barrier behind it. Its reply means that the flow is installed.
    barrier: Option<u32>,
    /// The pauses after refusals; `None` if it was not refused since it was last installed.
    backoff: Option<Backoff>,
    /// Whether one of these refusals was published.
    is_reported: bool,
    /// Time to send it again.
    retry_at: Option<Duration>,
}

impl OwnFlow {
    /// A flow with this name in events, such as `table-miss entry`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        OwnFlow {
            name,
            xid: None,
            barrier: None,
            backoff: None,
            is_reported: false,
            retry_at: None,
        }
    }

    /// Notes that the flow was sent with this transaction id.
    pub fn record_sent(&mut self, xid: u32, now: Duration) {
        (self.xid, self.barrier) = (Some(xid), None);
        // For the case that neither an error nor the barrier reply comes.
        self.retry_at = self.backoff.map(|_| now + Backoff::LONGEST);
    }

    /// Notes that a barrier was sent behind it.
    pub fn record_barrier(&mut self, barrier: u32) {
        self.barrier = Some(barrier);
    }

    /// Whether the switch has refused it since it was last installed.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.backoff.is_some()
    }

    /// Whether to send it again, with a barrier behind it.
    #[must_use]
    pub fn is_due(&self, now: Duration) -> bool {
        self.retry_at.is_some_and(|time| time <= now)
    }

    /// Handles an error message. Returns whether it is about this flow.
    pub fn handle_error(
        &mut self,
        (network, dpid): (&Network, Dpid),
        xid: u32,
        error: &ErrorMessage<'_>,
        now: Duration,
    ) -> bool {
        if self.xid != Some(xid) {
            return false;
        }
        let pause = self.backoff.get_or_insert_default();
        pause.failed(now);
        self.retry_at = Some(pause.until());
        self.barrier = None;
        let why = Refusal::from(error);
        let refused = network.extension::<RefusedFlows>();
        refused.record(dpid, self.name, Some(why));
        if !self.is_reported
            && let Some(times) = refused.is_to_report(dpid, self.name, now)
        {
            self.is_reported = true;
            let event = Event::OwnFlowRefused { dpid, flow: self.name, why, times };
            network.events().record(now, event);
        }
        true
    }

    /// Handles a barrier reply. Returns whether it belongs to this flow, which is then installed.
    pub fn handle_barrier_reply(
        &mut self,
        (network, dpid): (&Network, Dpid),
        barrier: u32,
        now: Duration,
    ) -> bool {
        if self.barrier != Some(barrier) {
            return false;
        }
        (self.barrier, self.retry_at) = (None, None);
        if self.backoff.take().is_some() {
            let refused = network.extension::<RefusedFlows>();
            refused.record(dpid, self.name, None);
            if refused.was_reported(dpid, self.name) || self.is_reported {
                network.events().record(now, Event::OwnFlowInstalled { dpid, flow: self.name });
            }
            self.is_reported = false;
        }
        true
    }

    /// Cleans up after the switch is gone.
    pub fn forget(&self, network: &Network, dpid: Dpid) {
        if self.backoff.is_some() {
            network.extension::<RefusedFlows>().record(dpid, self.name, None);
        }
    }
}

/// The controller's own flows that switches refuse. All apps share it: [`Network::extension`].
#[derive(Debug)]
pub struct RefusedFlows(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    /// Flows that switches refuse now.
    refused: BTreeMap<Dpid, BTreeMap<&'static str, Refusal>>,
    /// Limits the events about refusals. `None` stands for further switches.
    reports: Repeats<(Option<Dpid>, &'static str)>,
    /// Flows whose last event is a refusal; at most [`FLOWS_REPORTED_APART`].
    reported: BTreeSet<(Dpid, &'static str)>,
}

impl Default for RefusedFlows {
    fn default() -> Self {
        RefusedFlows(Mutex::new(Inner {
            refused: BTreeMap::new(),
            reports: Repeats::new(OWN_FLOW_REPORTED_EVERY, FLOWS_REPORTED_APART),
            reported: BTreeSet::new(),
        }))
    }
}

impl RefusedFlows {
    /// Names of the flows that a switch refuses now, and why.
    #[must_use]
    pub fn of_switch(&self, dpid: Dpid) -> Vec<(&'static str, Refusal)> {
        let inner = self.inner();
        inner.refused.get(&dpid).into_iter().flatten().map(|(name, why)| (*name, *why)).collect()
    }

    fn record(&self, dpid: Dpid, name: &'static str, why: Option<Refusal>) {
        let all = &mut self.inner().refused;
        let of_switch = all.entry(dpid).or_default();
        match why {
            Some(why) => of_switch.insert(name, why),
            None => of_switch.remove(name),
        };
        if of_switch.is_empty() {
            all.remove(&dpid);
        }
    }

    /// Notes an unpublished refusal. Returns the number of these, if it is time to publish them.
    fn is_to_report(&self, dpid: Dpid, name: &'static str, now: Duration) -> Option<u64> {
        let mut inner = self.inner();
        let (_, times) = inner.reports.note((Some(dpid), name), (None, name), now)?;
        if inner.reported.len() < FLOWS_REPORTED_APART {
            inner.reported.insert((dpid, name));
        }
        Some(times)
    }

    /// Whether the last event about a flow is a refusal. Called before the opposite is published.
    fn was_reported(&self, dpid: Dpid, name: &'static str) -> bool {
        self.inner().reported.remove(&(dpid, name))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bellrock_openflow::{Bytes, ErrorCode};

    use super::*;
    use crate::runtime::EmptyNetwork;

    const DPID: Dpid = Dpid(7);

    #[test]
    fn a_refused_flow_is_tried_again_with_back_off_and_is_one_alarm() {
        let network = EmptyNetwork::network();
        let error = ErrorMessage::Standard { code: ErrorCode::FlowModTableFull, data: Bytes(&[]) };
        let mut flow = OwnFlow::new("table-miss entry");
        let (mut now, mut waits) = (Duration::ZERO, Vec::new());
        flow.record_sent(1, now);
        for xid in 1..10 {
            assert!(!flow.handle_error((&network, DPID), 99, &error, now), "of another message");
            assert!(flow.handle_error((&network, DPID), xid, &error, now));
            assert!(!flow.is_due(now));
            let before = now;
            while !flow.is_due(now) {
                now += Duration::from_secs(1);
            }
            waits.push((now - before).as_secs());
            flow.record_sent(xid + 1, now);
            flow.record_barrier(100 + xid);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let refused = network.extension::<RefusedFlows>();
        assert_eq!(refused.of_switch(DPID).len(), 1);
        assert_eq!(refused.of_switch(Dpid(8)), []);
        // Neither an error nor a reply: it is sent again later.
        assert!(flow.is_due(now + Backoff::LONGEST));
        assert!(!flow.handle_barrier_reply((&network, DPID), 108, now), "the one before");
        assert!(flow.handle_barrier_reply((&network, DPID), 109, now));
        assert!(!flow.is_due(now + Backoff::LONGEST));
        assert_eq!(refused.of_switch(DPID), []);
        let events: Vec<&str> =
            network.events().latest(10).iter().map(|it| it.event.name()).collect();
        assert_eq!(events, ["own_flow_refused", "own_flow_installed"]);
    }

    /// A switch reconnects all the time, and refuses the flow each time.
    #[test]
    fn a_refusal_over_many_connections_is_published_once_a_minute_with_its_number() {
        const MINUTES: usize = 10;
        let network = EmptyNetwork::network();
        let error = ErrorMessage::Standard { code: ErrorCode::FlowModTableFull, data: Bytes(&[]) };
        let mut now = Duration::ZERO;
        for _ in 0..60 * MINUTES {
            let mut flow = OwnFlow::new("table-miss entry");
            flow.record_sent(1, now);
            assert!(flow.handle_error((&network, DPID), 1, &error, now));
            flow.forget(&network, DPID);
            now += Duration::from_secs(1);
        }
        let events = network.events().latest(usize::MAX);
        assert_eq!(events.len(), MINUTES);
        let last = events.last().map(|it| it.event.to_string()).unwrap_or_default();
        assert!(last.ends_with("(60 times)"), "{last}");
        // The last event about the flow is true; a further refusal in the same minute has no event.
        for xid in [1, 3] {
            let mut flow = OwnFlow::new("table-miss entry");
            flow.record_sent(xid, now);
            assert!(flow.handle_error((&network, DPID), xid, &error, now));
            flow.record_sent(xid + 1, now);
            flow.record_barrier(100);
            assert!(flow.handle_barrier_reply((&network, DPID), 100, now));
        }
        let names: Vec<_> = network.events().latest(2).iter().map(|it| it.event.name()).collect();
        assert_eq!(names, ["own_flow_refused", "own_flow_installed"]);
    }

    #[test]
    fn many_switches_that_refuse_are_reported_together_beyond_a_bound() {
        let network = EmptyNetwork::network();
        let error = ErrorMessage::Standard { code: ErrorCode::FlowModTableFull, data: Bytes(&[]) };
        let now = Duration::ZERO;
        for dpid in 0..2 * FLOWS_REPORTED_APART as u64 {
            let mut flow = OwnFlow::new("table-miss entry");
            flow.record_sent(1, now);
            assert!(flow.handle_error((&network, Dpid(dpid)), 1, &error, now));
            flow.forget(&network, Dpid(dpid));
        }
        assert_eq!(network.events().count(), FLOWS_REPORTED_APART as u64 + 1);
        let refused = network.extension::<RefusedFlows>();
        assert!(refused.inner().reported.len() <= FLOWS_REPORTED_APART);
    }
}
