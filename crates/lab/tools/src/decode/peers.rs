//! Learns which end of a connection is the controller, and which switch is at the other end.

use std::collections::HashMap;
use std::net::SocketAddr;

use bellrock_openflow::{Header, MessageKind, Version};

use super::{HEADER_BYTES, StreamId};

/// Connections remembered. Above this limit, all are forgotten and learnt again.
pub(crate) const MAX_CONNECTIONS: usize = 16 * 1024;

/// Sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Switch,
    Controller,
}

/// What is known of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The controller's end, known from the first message that only one side sends.
    pub(crate) controller: Option<SocketAddr>,
    /// The switch's datapath id, known from its features_reply.
    pub(crate) dpid: Option<u64>,
}

impl Peer {
    /// The sender of a stream of this connection, if it is known.
    pub(crate) fn sender(&self, stream: StreamId) -> Option<Sender> {
        self.controller.map(|controller| match controller == stream.src {
            true => Sender::Controller,
            false => Sender::Switch,
        })
    }

    /// The switch's end of a stream of this connection, if it is known.
    pub(crate) fn switch(&self, stream: StreamId) -> Option<SocketAddr> {
        match self.controller? {
            controller if controller == stream.src => Some(stream.dst),
            _ => Some(stream.src),
        }
    }
}

/// All connections of a capture.
#[derive(Debug, Default)]
pub(crate) struct Peers(HashMap<(SocketAddr, SocketAddr), Peer>);

impl Peers {
    /// What is known of the connection of a stream.
    pub(crate) fn get(&self, stream: StreamId) -> Option<&Peer> {
        self.0.get(&name(stream))
    }

    /// Learns from a message of `stream`, with its `sender` if known. Returns the sender, if known.
    pub(crate) fn hear(
        &mut self,
        stream: StreamId,
        sender: Option<Sender>,
        bytes: &[u8],
    ) -> Option<Sender> {
        if self.0.len() >= MAX_CONNECTIONS && !self.0.contains_key(&name(stream)) {
            self.0.clear();
        }
        let peer = self.0.entry(name(stream)).or_default();
        match sender.or_else(|| only_sender(bytes)) {
            Some(Sender::Controller) => _ = peer.controller.get_or_insert(stream.src),
            Some(Sender::Switch) => _ = peer.controller.get_or_insert(stream.dst),
            None => {}
        }
        if let Some(dpid) = dpid(bytes) {
            peer.dpid = Some(dpid);
        }
        peer.sender(stream)
    }
}

/// The name of a connection, the same for both directions.
fn name(stream: StreamId) -> (SocketAddr, SocketAddr) {
    (stream.src.min(stream.dst), stream.src.max(stream.dst))
}

/// The type of a message in 1.0 or 1.3.
pub(crate) fn kind(bytes: &[u8]) -> Option<MessageKind> {
    let header = Header::read(bytes)?;
    MessageKind::from_wire(Version::from_wire(header.version)?, header.kind)
}

/// The sender of messages of this type, if only one side sends them.
pub(crate) fn only_sender(bytes: &[u8]) -> Option<Sender> {
    match kind(bytes)? {
        MessageKind::Hello
        | MessageKind::Error
        | MessageKind::EchoRequest
        | MessageKind::EchoReply
        | MessageKind::Experimenter => None,
        MessageKind::FeaturesReply
        | MessageKind::GetConfigReply
        | MessageKind::PacketIn
        | MessageKind::FlowRemoved
        | MessageKind::PortStatus
        | MessageKind::MultipartReply
        | MessageKind::BarrierReply
        | MessageKind::QueueGetConfigReply
        | MessageKind::RoleReply
        | MessageKind::GetAsyncReply => Some(Sender::Switch),
        _ => Some(Sender::Controller),
    }
}

/// The datapath id in a features_reply; it follows the header in both versions.
fn dpid(bytes: &[u8]) -> Option<u64> {
    (kind(bytes)? == MessageKind::FeaturesReply)
        .then(|| bytes.get(HEADER_BYTES..)?.first_chunk().copied().map(u64::from_be_bytes))
        .flatten()
}
