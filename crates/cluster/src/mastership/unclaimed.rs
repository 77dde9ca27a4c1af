//! Switches that no node claims: the switch is asked again, and operators hear of it.

use std::time::Duration;

use bellrock_api::Dpid;

use super::switch::Role;
use super::{
    ASK_AFTER, ASK_PAUSE, MAX_SWITCHES, Mastership, NO_MASTER, Notice, Output, WAIT_FOR_NODE,
    WAIT_IN_VAIN,
};
use crate::node::NodeId;
use crate::record::Generation;

/// A switch that no node says to be master of.
#[derive(Debug)]
pub(super) struct Unclaimed {
    since: Duration,
    next_question: Duration,
    pause: Duration,
    is_reported: bool,
}

impl Mastership {
    /// Finds out whether a switch has a master. If no node says so, asks the switch, so that nodes
    /// that wait for each other learn whom it has obeyed.
    pub(super) fn look_for_master(&mut self, dpid: Dpid, now: Duration, out: &mut Vec<Output>) {
        let is_here = self.switches.get(&dpid).is_some_and(|entry| entry.here.is_some());
        let has_master = self.is_master(dpid) || self.names_master(dpid);
        if let Some(entry) = self.switches.get_mut(&dpid).filter(|_| has_master) {
            entry.writes = 0;
        }
        if !self.serving || !is_here || has_master {
            return self.end_unclaimed(dpid, out);
        }
        let may_be = self.master(dpid).is_some_and(|node| self.is_silent_about_masters(node));
        let is_invented = self.record(dpid).is_none() && self.records >= MAX_SWITCHES;
        let Some(entry) = self.switches.get_mut(&dpid) else { return };
        let is_standby = entry.here.as_ref().is_some_and(|it| matches!(it.role, Role::Standby));
        let unclaimed = entry.unclaimed.get_or_insert(Unclaimed {
            since: now,
            next_question: now + ASK_AFTER,
            pause: ASK_AFTER,
            is_reported: false,
        });
        let reported_at = unclaimed.since + NO_MASTER;
        let asks = is_standby && now >= unclaimed.next_question;
        if asks {
            unclaimed.pause = (unclaimed.pause * 2).min(ASK_PAUSE);
            unclaimed.next_question = now + unclaimed.pause;
        }
        let (since, next_question) = (unclaimed.since, unclaimed.next_question);
        let reports = !unclaimed.is_reported && !may_be && !is_invented;
        if reports && now >= reported_at {
            unclaimed.is_reported = true;
            out.push(Output::Notice(Notice::Unclaimed(dpid)));
        } else if reports {
            self.wake_at(dpid, reported_at);
        }
        if asks {
            self.ask(dpid, now, out);
        }
        for at in [next_question, since + self.patience()] {
            if at > now {
                self.wake_at(dpid, at);
            }
        }
    }

    /// Whether this node has waited long enough for the node that is to be master.
    pub(super) fn waits_in_vain(&self, dpid: Dpid, now: Duration) -> bool {
        let unclaimed = self.switches.get(&dpid).and_then(|entry| entry.unclaimed.as_ref());
        unclaimed.is_some_and(|unclaimed| now >= unclaimed.since + self.patience())
            && !self.master(dpid).is_some_and(|node| self.is_silent_about_masters(node))
    }

    fn patience(&self) -> Duration {
        let in_front = u32::try_from(self.me.index()).unwrap_or(u32::MAX);
        WAIT_IN_VAIN + WAIT_FOR_NODE.saturating_mul(in_front)
    }

    /// Notes that a switch has a master, or that this node has nothing to do with it.
    pub(super) fn end_unclaimed(&mut self, dpid: Dpid, out: &mut Vec<Output>) {
        let unclaimed = self.switches.get_mut(&dpid).and_then(|entry| entry.unclaimed.take());
        if unclaimed.is_some_and(|unclaimed| unclaimed.is_reported) {
            out.push(Output::Notice(Notice::Claimed(dpid)));
        }
    }

    /// Whether a node that is heard says that it is master of the switch.
    fn names_master(&self, dpid: Dpid) -> bool {
        let mut heard = self
            .peers
            .nodes()
            .filter(|&node| !self.view.dead.contains(node) && !self.view.suspects.contains(node));
        heard.any(|node| self.peers.generation(node, dpid).is_some())
    }

    /// Whether another node says that a switch has granted it a newer generation than this one.
    pub(super) fn is_named_newer(&self, dpid: Dpid, held: Generation) -> bool {
        let mut named = self.peers.nodes().filter_map(|node| self.peers.generation(node, dpid));
        named.any(|generation| generation.is_newer_than(held))
    }

    /// Whether a node may be master without saying so: it is of the first release, or was not heard
    /// yet.
    fn is_silent_about_masters(&self, node: NodeId) -> bool {
        node != self.me && !self.peers.has_generations(node)
    }
}
