//! Flows that a service keeps in a switch for itself, above the flows of all apps.
//!
//! They are installed when the switch comes up. A flow that anyone deletes is installed again at
//! once, or after its pause if the switch refuses it. A flow that the switch refuses is an alarm,
//! and is sent again after a pause ([`OwnFlow`]).

use std::time::Duration;

use bellrock_api::openflow::FlowCommand;
use bellrock_api::{
    Dpid, ErrorMessage, Flow, FlowFlags, FlowRemoved, FlowRemovedReason, Network, OwnFlow,
    PriorityBand, Result, Switch, SwitchInfo, Xid,
};

/// The highest priority of a service. Services are before all apps, so no flow of an app is above.
pub(crate) const TOP_PRIORITY: u16 = PriorityBand::PRIORITIES - 1;

/// The flows of a service in one switch.
pub(crate) struct OwnFlows {
    network: Network,
    dpid: Dpid,
    /// When the switch came up.
    since: Duration,
    flows: Vec<(Flow, OwnFlow)>,
    /// Whether some flows could not be written to the switch.
    is_incomplete: bool,
}

impl OwnFlows {
    /// Creates the flows for a switch that has come up. Each has a name for operators.
    pub(crate) fn new(
        network: &Network,
        info: &SwitchInfo,
        flows: impl IntoIterator<Item = (&'static str, Flow)>,
    ) -> Self {
        let named = |(name, flow): (&'static str, Flow)| {
            (flow.flags(FlowFlags::SEND_FLOW_REM), OwnFlow::new(name))
        };
        let flows = flows.into_iter().map(named).collect();
        let (network, dpid, since) = (network.clone(), info.dpid, info.since);
        OwnFlows { network, dpid, since, flows, is_incomplete: false }
    }

    /// Installs all flows.
    ///
    /// # Errors
    /// The messages do not fit. The next [`OwnFlows::tick`] tries again.
    pub(crate) fn install(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.is_incomplete = true;
        self.flows.iter_mut().try_for_each(|flow| send(flow, switch))?;
        self.is_incomplete = false;
        Ok(())
    }

    /// Installs a flow again if it was deleted, unless it waits after a refusal.
    ///
    /// # Errors
    /// As [`OwnFlows::install`].
    pub(crate) fn handle_flow_removed(
        &mut self,
        switch: &mut Switch<'_>,
        flow: &FlowRemoved<'_>,
    ) -> Result<()> {
        let was_deleted = flow.reason == FlowRemovedReason::Delete;
        let age = Duration::new(flow.duration_sec.into(), flow.duration_nsec);
        // A flow of an earlier connection is meant to go: a new one has replaced it.
        let is_older = age > switch.now().saturating_sub(self.since);
        if was_deleted && !is_older && switch.cookie().owns(flow.cookie) {
            let is_same = |wanted: &Flow| {
                wanted.priority == flow.priority && wanted.matching == flow.matching.to_match()
            };
            // A switch may report a match in another form than it was given.
            let is_known = self.flows.iter().any(|(wanted, _)| is_same(wanted));
            let deleted = self.flows.iter_mut().filter(|(wanted, own)| {
                // A tick sends one that waits.
                (is_same(wanted) || !is_known) && !own.is_refused()
            });
            for flow in deleted {
                if let Err(error) = send(flow, switch) {
                    self.is_incomplete = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Handles an error message. Returns whether it is about one of these flows.
    pub(crate) fn handle_error(
        &mut self,
        xid: Xid,
        error: &ErrorMessage<'_>,
        now: Duration,
    ) -> bool {
        let at = (&self.network, self.dpid);
        self.flows.iter_mut().any(|(_, own)| own.handle_error(at, xid.0, error, now))
    }

    /// Handles the reply to a barrier: the flows before it that were not refused are installed.
    pub(crate) fn handle_barrier_reply(&mut self, barrier: Xid, now: Duration) {
        for (_, own) in &mut self.flows {
            own.handle_barrier_reply((&self.network, self.dpid), barrier.0, now);
        }
    }

    /// Sends refused flows again when they are due, with a barrier behind them.
    ///
    /// # Errors
    /// As [`OwnFlows::install`].
    pub(crate) fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        if self.is_incomplete {
            return self.install(switch);
        }
        let now = switch.now();
        let mut due: Vec<_> = self.flows.iter_mut().filter(|(_, own)| own.is_due(now)).collect();
        due.iter_mut().try_for_each(|flow| send(flow, switch))?;
        if !due.is_empty()
            && let Ok(barrier) = switch.barrier()
        {
            due.iter_mut().for_each(|(_, own)| own.record_barrier(barrier.0));
        }
        Ok(())
    }

    /// Cleans up after the switch is gone.
    pub(crate) fn forget(&self) {
        self.flows.iter().for_each(|(_, own)| own.forget(&self.network, self.dpid));
    }
}

fn send((flow, own): &mut (Flow, OwnFlow), switch: &mut Switch<'_>) -> Result<()> {
    let xid = flow.with_flow_mod(FlowCommand::Add, |flow_mod| switch.install(flow_mod))?;
    own.record_sent(xid.0, switch.now());
    Ok(())
}

#[cfg(test)]
mod tests {
    use bellrock_api::openflow::{Bytes, Out, frame};
    use bellrock_api::runtime::EmptyNetwork;
    use bellrock_api::{Backoff, Cookie, ErrorCode, Match, Port, RefusedFlows, ToSwitch};

    use super::*;
    use crate::testing::{ROOM_BYTES, event, info};

    fn flows() -> OwnFlows {
        let flow = || Flow::new(Match::any().eth_type(0x88cc)).output(Port::CONTROLLER);
        let flows = [("one", flow()), ("other", flow().priority(7))];
        OwnFlows::new(&EmptyNetwork::network(), &info(1), flows)
    }

    /// Number of messages.
    fn count(out: &Out) -> usize {
        let (mut rest, mut count) = (out.as_slice(), 0);
        while let Ok(Some(message)) = frame(rest) {
            (rest, count) = (&rest[message.bytes.len()..], count + 1);
        }
        count
    }

    fn removed(
        matching: &Match,
        cookie: u64,
        age_s: u32,
        reason: FlowRemovedReason,
    ) -> FlowRemoved<'_> {
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
            matching: matching.into(),
        }
    }

    #[test]
    fn a_deleted_flow_is_put_back() {
        let (mut flows, info, now) = (flows(), info(1), Duration::from_secs(100));
        let (own, lldp) = (Cookie::of_app("service").with(0), Match::any().eth_type(0x88cc));
        for (cookie, age_s, reason, messages) in [
            (own, 50, FlowRemovedReason::Delete, 1),
            (own, 100, FlowRemovedReason::Delete, 0),
            (own, 50, FlowRemovedReason::HardTimeout, 0),
            (7, 50, FlowRemovedReason::Delete, 0),
        ] {
            let flow = removed(&lldp, cookie, age_s, reason);
            let (done, out) =
                event(&info, now, ROOM_BYTES, |switch| flows.handle_flow_removed(switch, &flow));
            assert_eq!((done, count(&out)), (Ok(()), messages), "{cookie:x} {age_s} {reason:?}");
        }
        // In a form of the switch's own, it may be any of them.
        let other = Match::any().in_port(Port(1));
        let flow = removed(&other, own, 50, FlowRemovedReason::Delete);
        let (_, out) =
            event(&info, now, ROOM_BYTES, |switch| flows.handle_flow_removed(switch, &flow));
        assert_eq!(count(&out), 2);
    }

    #[test]
    fn a_refused_flow_that_is_deleted_waits_for_the_end_of_its_pause() {
        let (mut flows, info, now) = (flows(), info(1), Duration::from_secs(100));
        let (_, out) = event(&info, now, ROOM_BYTES, |switch| flows.install(switch));
        let error = ErrorMessage::Standard { code: ErrorCode::FlowModTableFull, data: Bytes(&[]) };
        assert!(flows.handle_error(xids(&out).0[1], &error, now));
        let (lldp, own) = (Match::any().eth_type(0x88cc), Cookie::of_app("service").with(0));
        let flow = removed(&lldp, own, 50, FlowRemovedReason::Delete);
        let (_, out) =
            event(&info, now, ROOM_BYTES, |switch| flows.handle_flow_removed(switch, &flow));
        assert_eq!(count(&out), 0);
        let due = now + Backoff::FIRST;
        let (_, out) = event(&info, due, ROOM_BYTES, |switch| flows.tick(switch));
        assert_eq!(xids(&out).0.len(), 1);
    }

    /// The transaction ids of flow_mods, and those of barriers.
    fn xids(out: &Out) -> (Vec<Xid>, Vec<Xid>) {
        let (mut rest, mut flows, mut barriers) = (out.as_slice(), Vec::new(), Vec::new());
        while let Ok(Some(message)) = frame(rest) {
            rest = &rest[message.bytes.len()..];
            match ToSwitch::decode(message.bytes).unwrap().body {
                ToSwitch::FlowMod(_) => flows.push(Xid(message.header.xid)),
                ToSwitch::BarrierRequest => barriers.push(Xid(message.header.xid)),
                other => panic!("{other:?}"),
            }
        }
        (flows, barriers)
    }

    #[test]
    fn a_refused_flow_alone_is_sent_again_with_back_off_until_it_is_confirmed() {
        let (mut flows, info, mut now) = (flows(), info(1), Duration::from_secs(100));
        let error = ErrorMessage::Standard { code: ErrorCode::FlowModTableFull, data: Bytes(&[]) };
        let tick = |flows: &mut OwnFlows, now| {
            let (done, out) = event(&info, now, ROOM_BYTES, |switch| flows.tick(switch));
            done.unwrap();
            xids(&out)
        };
        let (done, out) = event(&info, now, ROOM_BYTES, |switch| flows.install(switch));
        assert_eq!(done, Ok(()));
        assert_eq!(tick(&mut flows, now + Backoff::LONGEST).0, [], "nothing was refused");
        let mut refused = xids(&out).0[0];
        assert!(!flows.handle_error(Xid(!refused.0), &error, now), "of another message");
        let mut barrier = Xid(0);
        for pause in [1, 2, 4].map(Duration::from_secs) {
            assert!(flows.handle_error(refused, &error, now));
            assert_eq!(tick(&mut flows, now + pause / 2).0, []);
            now += pause;
            let (sent, barriers) = tick(&mut flows, now);
            (refused, barrier) = (sent[0], barriers[0]);
            assert_eq!((sent.len(), barriers.len()), (1, 1));
        }
        let network = flows.network.clone();
        let of_switch = || network.extension::<RefusedFlows>().of_switch(info.dpid);
        assert_eq!(of_switch().iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["one"]);
        flows.handle_barrier_reply(barrier, now);
        assert_eq!(of_switch(), []);
        assert_eq!(tick(&mut flows, now + 2 * Backoff::LONGEST).0, []);
        let names: Vec<_> = network.events().latest(9).iter().map(|it| it.event.name()).collect();
        assert_eq!(names, ["own_flow_refused", "own_flow_installed"]);
    }

    #[test]
    fn flows_without_room_are_sent_in_the_next_second() {
        let (mut flows, info, now) = (flows(), info(1), Duration::from_secs(100));
        assert!(event(&info, now, 8, |switch| flows.install(switch)).0.is_err());
        let (done, out) = event(&info, now, ROOM_BYTES, |switch| flows.tick(switch));
        assert_eq!((done, count(&out)), (Ok(()), 2));
    }
}
