//! Requests of other nodes, to switches that this node is master of.

use std::any::Any;
use std::collections::BTreeMap;

use bellrock_api::openflow::{Strictness, frame};
use bellrock_api::runtime::RemoteControl;
use bellrock_api::{Dpid, Error, Network, ProgramFuture, RequestFuture, ToSwitch, Version};
use tokio::sync::mpsc;

use super::frame::{Answer, AnswerBody, Job, RemoteFrame, Request};
use super::{BeginOrder, Frames, MAX_REQUESTS, PART_BYTES};
use crate::mastership::MAX_SWITCHES;
use crate::node::NodeId;

/// Takes requests of other nodes.
pub(super) struct Incoming {
    network: Network,
    peers: Vec<Peer>,
    answered: mpsc::Sender<Answered>,
    begin_order: BeginOrder,
    /// Number of requests, and of those that were refused.
    taken: u64,
    refused: u64,
}

/// A node that asks.
#[derive(Default)]
struct Peer {
    /// Number of its connection. Answers to requests of an earlier one are dropped.
    connection: u64,
    /// Number of requests without an answer.
    unanswered: usize,
    /// The last stream of each switch in which a request was refused.
    refused: BTreeMap<Dpid, u64>,
}

/// The answer of a switch to a request of another node.
#[derive(Debug)]
pub struct Answered {
    node: NodeId,
    connection: u64,
    number: u64,
    bodies: Vec<AnswerBody>,
}

impl Incoming {
    pub(super) fn new(
        network: Network,
        nodes: usize,
        answered: mpsc::Sender<Answered>,
        begin_order: BeginOrder,
    ) -> Self {
        let peers = (0..nodes).map(|_| Peer::default()).collect();
        Incoming { network, peers, answered, begin_order, taken: 0, refused: 0 }
    }

    /// Takes a request.
    pub(super) fn request(&mut self, node: NodeId, request: Request, out: &mut Frames) {
        let Some(peer) = self.peers.get_mut(node.index()) else { return };
        self.taken += 1;
        let Request { number, stream, dpid, job } = request;
        let mut answer = |body| out.push((node, RemoteFrame::Answer(Answer { number, body })));
        let is_refused = peer.refused.get(&dpid).is_some_and(|&refused| stream <= refused);
        let info = self.network.switch(dpid).filter(|_| !is_refused);
        let Some(info) = info else {
            self.refused += 1;
            if peer.refused.len() < MAX_SWITCHES {
                let refused = peer.refused.entry(dpid).or_default();
                *refused = stream.max(*refused);
            }
            return answer(AnswerBody::NotMaster);
        };
        if peer.unanswered >= MAX_REQUESTS {
            return answer(AnswerBody::NotSent(Error::Full(dpid).into()));
        }
        let began = match job {
            Job::Send { message } => {
                return answer(match decode(&message, info.version) {
                    Some(decoded) => match self.network.send_here(dpid, &decoded) {
                        Ok(()) => AnswerBody::Taken,
                        Err(error) => AnswerBody::NotSent(error.into()),
                    },
                    None => other_version(dpid),
                });
            }
            Job::Program { messages, within, is_order } => match split(&messages, info.version) {
                Some(messages) => {
                    let order = is_order.then(|| (self.begin_order)(dpid));
                    Began::Program(self.network.program_here(dpid, messages, within), order)
                }
                None => return answer(other_version(dpid)),
            },
            Job::Ask { message } => match decode(&message, info.version) {
                Some(decoded) => Began::Request(self.network.request_here(dpid, &decoded)),
                None => return answer(other_version(dpid)),
            },
        };
        peer.unanswered += 1;
        let (connection, answered) = (peer.connection, self.answered.clone());
        tokio::task::spawn_local(async move {
            let bodies = began.bodies().await;
            // If nobody takes it, the node is ending.
            let _ = answered.send(Answered { node, connection, number, bodies }).await;
        });
    }

    /// Number of requests, and of those that were refused.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.taken, self.refused)
    }

    /// A switch has answered.
    pub(super) fn answered(&mut self, answered: Answered, out: &mut Frames) {
        let Answered { node, connection, number, bodies } = answered;
        let Some(peer) = self.peers.get_mut(node.index()) else { return };
        if peer.connection != connection {
            return;
        }
        peer.unanswered = peer.unanswered.saturating_sub(1);
        let frames = bodies.into_iter().map(|body| RemoteFrame::Answer(Answer { number, body }));
        out.extend(frames.map(|frame| (node, frame)));
    }

    /// The connection of a node has ended: it does not wait any more.
    pub(super) fn lost(&mut self, node: NodeId) {
        if let Some(peer) = self.peers.get_mut(node.index()) {
            *peer = Peer { connection: peer.connection + 1, ..Peer::default() };
        }
    }
}

/// A request that is on its way to the switch.
enum Began {
    /// With what ends when an order of an operator is over.
    Program(ProgramFuture, Option<Box<dyn Any + Send>>),
    Request(RequestFuture),
}

impl Began {
    async fn bodies(self) -> Vec<AnswerBody> {
        match self {
            Began::Program(outcomes, order) => {
                let outcomes = outcomes.await;
                drop(order);
                vec![AnswerBody::outcomes(&outcomes)]
            }
            Began::Request(reply) => match reply.await {
                Ok(reply) => parts(reply.bytes()),
                Err(error) => vec![AnswerBody::NoReply(error.into())],
            },
        }
    }
}

/// A reply, in parts that fit into frames.
fn parts(bytes: &[u8]) -> Vec<AnswerBody> {
    let mut parts: Vec<AnswerBody> =
        bytes.chunks(PART_BYTES).map(|part| AnswerBody::Part(part.to_vec())).collect();
    let last = match parts.pop() {
        Some(AnswerBody::Part(last)) => last,
        _ => Vec::new(),
    };
    parts.push(AnswerBody::Reply(last));
    parts
}

/// A message of this version.
fn decode(message: &[u8], version: Version) -> Option<ToSwitch<'_>> {
    // The switch judges what this node need not understand.
    let decoded = ToSwitch::decode_as(message, Strictness::Liberal).ok()?;
    (decoded.version == version).then_some(decoded.body)
}

/// Cuts messages of this version apart. `None`: one of them is of another version, or broken.
fn split(mut messages: &[u8], version: Version) -> Option<Vec<Box<[u8]>>> {
    let mut all = Vec::new();
    while !messages.is_empty() {
        let message = frame(messages).ok()??.bytes;
        decode(message, version)?;
        all.push(message.into());
        messages = messages.get(message.len()..)?;
    }
    Some(all)
}

/// The two nodes speak different versions with the switch, or disagree about a message.
fn other_version(dpid: Dpid) -> AnswerBody {
    tracing::debug!(%dpid, "another node has sent a message that this one cannot send to the switch");
    AnswerBody::NotSent(Error::UnknownSwitch(dpid).into())
}

#[cfg(test)]
mod tests {
    use bellrock_api::openflow::Out;

    use super::*;

    fn barrier(version: Version) -> Vec<u8> {
        let mut out = Out::with_capacity(64);
        ToSwitch::BarrierRequest.encode(version, 0, &mut out).unwrap();
        out.as_slice().to_vec()
    }

    #[test]
    fn messages_are_cut_apart_and_broken_ones_are_refused() {
        let one = barrier(Version::V1_3);
        let two = [one.clone(), one.clone()].concat();
        let cut = split(&two, Version::V1_3).unwrap();
        assert_eq!(cut, [one.clone().into(), one.into()] as [Box<[u8]>; 2]);
        assert_eq!(split(&two, Version::V1_0), None);
        for end in 1..two.len() {
            let is_whole = end == two.len() / 2;
            assert_eq!(split(&two[..end], Version::V1_3).is_some(), is_whole, "{end}");
        }
        assert_eq!(split(&[], Version::V1_3), Some(vec![]));
    }

    #[test]
    fn a_long_reply_goes_in_parts_and_an_empty_one_in_one() {
        assert_eq!(parts(&[]), [AnswerBody::Reply(vec![])]);
        let parts = parts(&vec![7; 2 * PART_BYTES]);
        let whole = vec![7; PART_BYTES];
        assert_eq!(parts, [AnswerBody::Part(whole.clone()), AnswerBody::Reply(whole)]);
    }
}
