//! The effects of an event at a switch: frames to send, and notices for controllers.

use std::time::Duration;

use bellrock_openflow::{FlowRemovedReason, Match, PacketInReason, Port, PortStatus};

use crate::packet::EthernetFrame;

/// Maximum number of frames that are kept for reuse; more are freed.
const POOLED_FRAMES: usize = 256;

/// Maximum number of frames that one event sends; more do not fit into the queues of ports, which
/// count them as dropped. A 64 KiB request can copy a frame some thousand times to every port.
pub const MAX_FRAMES: usize = 65_536;

/// The effects of one event or several. The caller empties them and passes them to the next event,
/// so that frames and lists are allocated once.
#[derive(Debug, Default)]
pub struct Effects {
    /// Frames that leave, in order, with their output port ([`Port::LOCAL`] included).
    pub frames: Vec<(u32, EthernetFrame)>,
    /// Notices for controllers, in order.
    pub notices: Vec<Notice>,
    pool: Vec<EthernetFrame>,
}

impl Effects {
    /// No effects yet.
    #[must_use]
    pub fn new() -> Self {
        Effects::default()
    }

    /// An empty frame, reused if possible.
    #[must_use]
    pub fn frame(&mut self) -> EthernetFrame {
        self.pool.pop().unwrap_or_default()
    }

    /// A frame of these bytes, reused if possible.
    #[must_use]
    pub fn copy(&mut self, bytes: &[u8]) -> EthernetFrame {
        let mut frame = self.frame();
        frame.extend_from_slice(bytes);
        frame
    }

    /// Whether one more frame may leave, besides this many that wait.
    #[inline]
    pub(super) fn has_room(&self, besides: usize) -> bool {
        self.frames.len() + besides < MAX_FRAMES
    }

    /// Takes back a frame that is no longer needed.
    pub fn recycle(&mut self, mut frame: EthernetFrame) {
        if self.pool.len() < POOLED_FRAMES {
            frame.clear();
            self.pool.push(frame);
        }
    }
}

/// A notice for controllers, the same for all versions. The switch encodes and distributes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A packet for the controller.
    PacketIn(PacketInNotice),
    /// A flow with `SEND_FLOW_REM` was removed.
    FlowRemoved(Box<FlowRemovedNotice>),
    /// A port changed its configuration or its link state.
    PortStatus(PortStatus),
}

/// A packet for the controller (1.0 §5.4.1; 1.3.5 §7.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketInNotice {
    /// The buffer that holds the packet, if there is one.
    pub buffer_id: Option<u32>,
    /// The reason.
    pub reason: PacketInReason,
    /// The table whose flow sent it.
    pub table: u8,
    /// The cookie of that flow; all ones without a flow.
    pub cookie: u64,
    /// The port where it arrived.
    pub in_port: Port,
    /// Its metadata.
    pub metadata: u64,
    /// Its tunnel id.
    pub tunnel_id: u64,
    /// The packet, whole.
    pub frame: EthernetFrame,
    /// Number of bytes to send: all, or fewer if the packet is buffered.
    pub data_len: usize,
}

impl PacketInNotice {
    /// The bytes to send.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.frame[..self.data_len.min(self.frame.len())]
    }
}

/// A flow was removed (1.0 §5.4.2; 1.3.5 §7.4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemovedNotice {
    /// Its table.
    pub table: u8,
    /// Its cookie.
    pub cookie: u64,
    /// Its priority.
    pub priority: u16,
    /// Why it was removed.
    pub reason: FlowRemovedReason,
    /// How long it was in its table.
    pub duration: Duration,
    /// Its idle timeout in seconds.
    pub idle_timeout: u16,
    /// Its hard timeout in seconds.
    pub hard_timeout: u16,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes that it matched.
    pub byte_count: u64,
    /// Its match.
    pub matching: Match,
}
