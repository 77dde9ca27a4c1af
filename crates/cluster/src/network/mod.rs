//! Links and hosts of other nodes: what [`Exchange`](bellrock_services::exchange::Exchange) sends
//! and receives, on the links.

mod wire;

use bellrock_services::exchange::{NumberedFrame, Peer};

use crate::node::NodeId;
pub(crate) use wire::WireNetwork;

/// A message about links and hosts.
#[derive(Debug, PartialEq, Eq)]
pub enum NetworkFrame {
    /// Something that the sender knows.
    Facts(NumberedFrame),
    /// Number of the frames of a stream that the sender has applied.
    Applied {
        /// The stream.
        stream: u64,
        /// The number.
        count: u64,
    },
    /// The sender has missed something: everything must come again.
    Again,
}

/// The node as the exchange names it.
pub(crate) fn peer_of(node: NodeId) -> Peer {
    // There are nine nodes at most.
    Peer(u8::try_from(node.index()).unwrap_or(u8::MAX))
}
