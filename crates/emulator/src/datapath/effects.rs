//! What comes of an event at a switch: frames to send, and news for controllers.

use std::time::Duration;

use bellrock_openflow::{FlowRemovedReason, Match, PacketInReason, Port, PortStatus};

use crate::packet::Frame;

/// Frames that are kept to be used again; more are freed.
const POOLED_FRAMES: usize = 256;

/// Frames that leave of one event at most; what is beyond does not fit into the queues of ports, which
/// count it as dropped. A 64 KiB request can have a frame copied some thousand times to every port.
pub const MAX_FRAMES: usize = 65_536;

/// What came of one event or several. The caller empties it and gives it to the next event, so that
/// frames and lists are allocated once.
#[derive(Debug, Default)]
pub struct Effects {
    /// Frames that leave, in order, with the port that each leaves by ([`Port::LOCAL`] among them).
    pub frames: Vec<(u32, Frame)>,
    /// News for controllers, in order.
    pub notices: Vec<Notice>,
    pool: Vec<Frame>,
}

impl Effects {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Effects::default()
    }

    /// An empty frame, used before where there is one.
    #[must_use]
    pub fn frame(&mut self) -> Frame {
        self.pool.pop().unwrap_or_default()
    }

    /// A frame of these bytes, used before where there is one.
    #[must_use]
    pub fn copy(&mut self, bytes: &[u8]) -> Frame {
        let mut frame = self.frame();
        frame.extend_from_slice(bytes);
        frame
    }

    /// Whether another frame may leave besides so many that will.
    #[inline]
    pub(super) fn has_room(&self, besides: usize) -> bool {
        self.frames.len() + besides < MAX_FRAMES
    }

    /// Takes a frame back that nobody needs.
    pub fn recycle(&mut self, mut frame: Frame) {
        if self.pool.len() < POOLED_FRAMES {
            frame.clear();
            self.pool.push(frame);
        }
    }
}

/// News for controllers, the same for all versions. Who gets it, and in which form, the switch says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A packet for the controller.
    PacketIn(PacketIn),
    /// A flow is gone that was to be told of (`SEND_FLOW_REM`).
    FlowRemoved(Box<FlowRemoved>),
    /// A port was changed, or lost or found its link.
    PortStatus(PortStatus),
}

/// A packet for the controller (1.0 §5.4.1; 1.3.5 §7.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketIn {
    /// Where the switch keeps the packet, if it does.
    pub buffer_id: Option<u32>,
    /// Why it came.
    pub reason: PacketInReason,
    /// The table whose flow sent it.
    pub table: u8,
    /// The cookie of that flow; all ones where there is none.
    pub cookie: u64,
    /// Where it came in.
    pub in_port: Port,
    /// Its metadata.
    pub metadata: u64,
    /// Its tunnel id.
    pub tunnel_id: u64,
    /// The packet, whole.
    pub frame: Frame,
    /// Bytes of it to send: all, or fewer of a packet that is buffered.
    pub data_len: usize,
}

impl PacketIn {
    /// The bytes to send.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.frame[..self.data_len.min(self.frame.len())]
    }
}

/// A flow is gone (1.0 §5.4.2; 1.3.5 §7.4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemoved {
    /// Its table.
    pub table: u8,
    /// Its cookie.
    pub cookie: u64,
    /// Its priority.
    pub priority: u16,
    /// Why it went.
    pub reason: FlowRemovedReason,
    /// How long it was there.
    pub duration: Duration,
    /// Its idle timeout in seconds.
    pub idle_timeout: u16,
    /// Its hard timeout in seconds.
    pub hard_timeout: u16,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes of those.
    pub byte_count: u64,
    /// Its match.
    pub matching: Match,
}
