//! Requests to switches of other nodes, between its thread and the links.

use std::time::Duration;

use bellrock_api::Dpid;
use tokio::sync::mpsc;

use crate::link::Links;
use crate::mastership::{Mastership, NodeState};
use crate::node::NodeId;
use crate::remote::{Answered, Frames, Posted, RemoteEvent, RemoteRequests, RequestCounters};

/// Events that are taken before their frames are sent.
const EVENTS_PER_TURN: usize = 256;

/// The master of a switch, if it can be asked. A node without a majority does not know who is
/// master now, and one that is not heard does not answer, although its connection stands.
fn reachable_master(machine: &Mastership, dpid: Dpid) -> Option<NodeId> {
    let node = machine.master(dpid)?;
    let is_heard = matches!(machine.node_state(node), NodeState::Serving | NodeState::Draining);
    (machine.is_serving() && is_heard).then_some(node)
}

/// The requests, and what comes to them beside the links.
pub(super) struct MemberRemote {
    remote: RemoteRequests,
    /// What apps send.
    posted: mpsc::Receiver<Posted>,
    /// What switches answer.
    answers: mpsc::Receiver<Answered>,
    frames: Frames,
}

impl MemberRemote {
    pub(super) fn new(
        remote: RemoteRequests,
        posted: mpsc::Receiver<Posted>,
        answers: mpsc::Receiver<Answered>,
    ) -> Self {
        MemberRemote { remote, posted, answers, frames: Vec::new() }
    }

    /// Waits for what apps send and switches answer. Safe to drop.
    pub(super) async fn next(&mut self) -> RemoteEvent {
        tokio::select! {
            Some(answered) = self.answers.recv() => RemoteEvent::Answered(answered),
            Some(posted) = self.posted.recv() => RemoteEvent::Posted(posted),
            // Both ends live as long as the network.
            else => std::future::pending().await,
        }
    }

    /// Takes an event. Its frames are sent by [`Self::advance`].
    pub(super) fn handle(&mut self, now: Duration, event: RemoteEvent, machine: &Mastership) {
        self.remote.handle(now, event, &|dpid| reachable_master(machine, dpid), &mut self.frames);
    }

    /// Takes what has come meanwhile.
    pub(super) fn take_waiting(&mut self, now: Duration, machine: &Mastership) {
        for _ in 0..EVENTS_PER_TURN {
            let event = match (self.answers.try_recv(), self.posted.try_recv()) {
                (Ok(answered), Ok(posted)) => {
                    self.handle(now, RemoteEvent::Answered(answered), machine);
                    RemoteEvent::Posted(posted)
                }
                (Ok(answered), Err(_)) => RemoteEvent::Answered(answered),
                (Err(_), Ok(posted)) => RemoteEvent::Posted(posted),
                (Err(_), Err(_)) => return,
            };
            self.handle(now, event, machine);
        }
    }

    /// Carries out what is due, and sends all frames.
    pub(super) fn advance(&mut self, now: Duration, machine: &Mastership, links: &Links) {
        self.remote.advance(now, &|dpid| reachable_master(machine, dpid), &mut self.frames);
        for (node, frame) in self.frames.drain(..) {
            // Without it, the other node gives the request up when its time is over.
            let _ = links.send_remote(node, frame);
        }
    }

    /// Number of requests since the start.
    pub(super) fn counters(&self) -> RequestCounters {
        self.remote.counters()
    }

    /// When something is due.
    pub(super) fn next_wake(&self) -> Option<Duration> {
        self.remote.next_wake()
    }
}
