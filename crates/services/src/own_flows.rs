//! Flows that a service keeps in a switch for itself, above the flows of all apps.
//!
//! They are installed when the switch comes up. A flow that anyone deletes is installed again at
//! once. A flow that the switch refuses is sent again after [`REFUSED_AGAIN`].

use std::time::Duration;

use bellrock_api::{
    Flow, FlowFlags, FlowRemoved, FlowRemovedReason, PriorityBand, Result, Switch, Xid,
};

use crate::desired::REFUSED_AGAIN;

/// The highest priority of a service. Services are before all apps, so no flow of an app is above.
pub(crate) const TOP_PRIORITY: u16 = PriorityBand::PRIORITIES - 1;

/// The flows of a service in one switch.
pub(crate) struct OwnFlows {
    /// When the switch came up.
    since: Duration,
    flows: Vec<Flow>,
    /// Transaction ids of the messages that installed the flows.
    sent: Vec<Xid>,
    /// When to send the flows again.
    again: Option<Duration>,
}

impl OwnFlows {
    /// Creates the flows for a switch that came up at `since`.
    pub(crate) fn new(since: Duration, flows: impl IntoIterator<Item = Flow>) -> Self {
        let flows = flows.into_iter().map(|flow| flow.flags(FlowFlags::SEND_FLOW_REM)).collect();
        OwnFlows { since, flows, sent: Vec::new(), again: None }
    }

    /// Installs all flows.
    ///
    /// # Errors
    /// The messages do not fit. The next [`OwnFlows::tick`] tries again.
    pub(crate) fn install(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.again = Some(switch.now());
        self.sent.clear();
        for flow in &self.flows {
            let xid = flow.with_flow_mod(bellrock_api::openflow::FlowCommand::Add, |flow_mod| {
                switch.install(flow_mod)
            })?;
            self.sent.push(xid);
        }
        self.again = None;
        Ok(())
    }

    /// Installs the flows again if this was one of them and it was deleted.
    ///
    /// # Errors
    /// As [`OwnFlows::install`].
    pub(crate) fn removed(
        &mut self,
        switch: &mut Switch<'_>,
        flow: &FlowRemoved<'_>,
    ) -> Result<()> {
        let was_deleted = flow.reason == FlowRemovedReason::Delete;
        let age = Duration::new(flow.duration_sec.into(), flow.duration_nsec);
        // A flow of an earlier connection is meant to go: a new one has replaced it.
        let is_older = age > switch.now().saturating_sub(self.since);
        if was_deleted && !is_older && switch.cookie().owns(flow.cookie) {
            self.install(switch)?;
        }
        Ok(())
    }

    /// Notes that the switch refused a message. Returns whether it was for one of these flows.
    pub(crate) fn refused(&mut self, xid: Xid, now: Duration) -> bool {
        let is_own = self.sent.contains(&xid);
        if is_own {
            self.again = Some(now + REFUSED_AGAIN);
        }
        is_own
    }

    /// Sends refused flows again when they are due.
    ///
    /// # Errors
    /// As [`OwnFlows::install`].
    pub(crate) fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        match self.again {
            Some(again) if again <= switch.now() => self.install(switch),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::openflow::{MatchView, Out, frame};
    use bellrock_api::{Cookie, Match, Port};

    use super::*;
    use crate::testing::{ROOM_BYTES, event, info};

    fn flows() -> OwnFlows {
        let flow = || Flow::new(Match::any().eth_type(0x88cc)).output(Port::CONTROLLER);
        OwnFlows::new(Duration::from_secs(1), [flow(), flow().priority(7)])
    }

    /// Number of messages.
    fn count(out: &Out) -> usize {
        let (mut rest, mut count) = (out.as_slice(), 0);
        while let Ok(Some(message)) = frame(rest) {
            (rest, count) = (&rest[message.bytes.len()..], count + 1);
        }
        count
    }

    fn removed(cookie: u64, age_s: u32, reason: FlowRemovedReason) -> FlowRemoved<'static> {
        FlowRemoved {
            cookie,
            priority: 7,
            reason,
            table: 0,
            duration_sec: age_s,
            duration_nsec: 0,
            idle_timeout: 0,
            hard_timeout: 0,
            packet_count: 0,
            byte_count: 0,
            matching: MatchView::port(Port(1)),
        }
    }

    #[test]
    fn what_somebody_deletes_is_put_back() {
        let (mut flows, info, now) = (flows(), info(1), Duration::from_secs(100));
        let own = Cookie::of_app("service").with(0);
        for (cookie, age_s, reason, messages) in [
            (own, 50, FlowRemovedReason::Delete, 2),
            (own, 100, FlowRemovedReason::Delete, 0),
            (own, 50, FlowRemovedReason::HardTimeout, 0),
            (7, 50, FlowRemovedReason::Delete, 0),
        ] {
            let flow = removed(cookie, age_s, reason);
            let (done, out) = event(&info, now, ROOM_BYTES, |switch| flows.removed(switch, &flow));
            assert_eq!((done, count(&out)), (Ok(()), messages), "{cookie:x} {age_s} {reason:?}");
        }
    }

    #[test]
    fn what_the_switch_refuses_is_sent_again_later() {
        let (mut flows, info, now) = (flows(), info(1), Duration::from_secs(100));
        let tick = |flows: &mut OwnFlows, now| {
            let (done, out) = event(&info, now, ROOM_BYTES, |switch| flows.tick(switch));
            (done, count(&out))
        };
        let (done, _) = event(&info, now, ROOM_BYTES, |switch| flows.install(switch));
        assert_eq!(done, Ok(()));
        assert_eq!(tick(&mut flows, now + REFUSED_AGAIN), (Ok(()), 0), "nothing was refused");
        let xid = flows.sent[1];
        assert!(!flows.refused(Xid(!xid.0), now) && flows.refused(xid, now));
        assert_eq!(tick(&mut flows, now + REFUSED_AGAIN / 2), (Ok(()), 0));
        assert_eq!(tick(&mut flows, now + REFUSED_AGAIN), (Ok(()), 2));
        assert_eq!(tick(&mut flows, now + 2 * REFUSED_AGAIN), (Ok(()), 0));
    }

    #[test]
    fn what_found_no_room_is_sent_in_the_next_second() {
        let (mut flows, info, now) = (flows(), info(1), Duration::from_secs(100));
        assert!(event(&info, now, 8, |switch| flows.install(switch)).0.is_err());
        let (done, out) = event(&info, now, ROOM_BYTES, |switch| flows.tick(switch));
        assert_eq!((done, count(&out)), (Ok(()), 2));
    }
}
