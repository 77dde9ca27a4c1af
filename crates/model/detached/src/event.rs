//! Events on their way to the thread of the app.

use std::sync::Arc;

use bellrock_api::openflow::{FromSwitch, Out};
use bellrock_api::{EncodeError, PortStatus, SwitchInfo, Version};

use crate::link::SwitchLink;

/// Bytes that an event counts at least, for its place in the queue and its allocations.
pub(crate) const EVENT_BYTES: usize = 256;

/// An event of a switch, for the thread of the app.
#[derive(Debug)]
pub struct Delivery {
    /// The switch, for this app and connection.
    pub link: Arc<SwitchLink>,
    /// What happened.
    pub event: DetachedEvent,
}

/// What happened. Messages are as [`Handler`](bellrock_api::Handler) gets them, encoded in the
/// version of the switch: flows of the app have the priorities that it gave.
#[derive(Debug)]
pub enum DetachedEvent {
    /// The switch is up. All its later events have the same link. With the flows to adopt, as in
    /// [`Adopt`](Self::Adopt), one message after the other.
    SwitchUp(Arc<SwitchInfo>, Vec<u8>),
    /// A flow that an earlier run of the app left in the switch, and that the switch reported late:
    /// the app may have written already. A multipart reply with this one flow.
    Adopt(Vec<u8>),
    /// Packet_ins that arrived together, whole messages one after the other.
    PacketIns(Vec<u8>),
    /// A port was added, removed or changed. With the switch as it is now.
    PortStatus(Box<PortStatus>, Arc<SwitchInfo>),
    /// A flow_removed.
    FlowRemoved(Vec<u8>),
    /// An error, with the transaction id of the message that was refused.
    Error(Vec<u8>),
    /// A request with this transaction id has no answer.
    Unanswered(u32),
    /// All earlier messages of the app are processed.
    Barrier(u32),
    /// A second has passed.
    Tick,
    /// Nothing can be sent any more. It is the last event of the link.
    SwitchDown,
}

impl DetachedEvent {
    /// Number of bytes that it counts.
    pub(crate) fn bytes(&self) -> usize {
        EVENT_BYTES
            + match self {
                DetachedEvent::SwitchUp(_, bytes)
                | DetachedEvent::Adopt(bytes)
                | DetachedEvent::PacketIns(bytes)
                | DetachedEvent::FlowRemoved(bytes)
                | DetachedEvent::Error(bytes) => bytes.capacity(),
                _ => 0,
            }
    }
}

/// Encodes a message of a switch again.
///
/// # Errors
/// [`EncodeError`]: a value that no message of the version can have. No switch sent it.
pub(crate) fn encoded(
    message: &FromSwitch<'_>,
    version: Version,
    xid: u32,
    out: &mut Out,
) -> Result<Vec<u8>, EncodeError> {
    out.clear();
    message.encode(version, xid, out)?;
    Ok(out.as_slice().to_vec())
}
