//! One end of a flow like TCP's: enough to measure the throughput of a path.
//!
//! # What it is
//! The handshake; a byte stream in one direction (from the end that opened); cumulative
//! acknowledgements; windows with scaling (RFC 7323); a buffer for segments out of order;
//! retransmission by time (RFC 6298) and by three duplicate acknowledgements; slow start and
//! congestion avoidance (RFC 5681) with NewReno's recovery (RFC 6582); an end of slow start before
//! queues overflow (by the delay, RFC 9406 §4.2); and closing by FIN.
//!
//! # What it is not
//! The data is zeros only, in one direction. There are no selective acknowledgements, timestamps,
//! delayed acknowledgements, urgent data or zero windows (a receiver reads at once). There is no
//! waiting state after the end: a later segment is answered with a reset.
//!
//! Positions in the stream are 64-bit numbers: the SYN is 0, data begins at 1, then comes the FIN.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::wire::{ACK, FIN, RST, SYN, TcpSegment};
pub(in crate::host) use receiver::Receiver;
pub(in crate::host) use sender::Sender;

/// Bytes that a receiver accepts beyond the first missing byte.
const WINDOW_BYTES: u64 = 1 << 20;
/// Both ends scale their windows: units of 2^7 bytes.
const WINDOW_SHIFT: u8 = 7;
const WINDOW_UNITS: u16 = (WINDOW_BYTES >> WINDOW_SHIFT) as u16;
/// Time until the first retransmission while no round trip was measured (RFC 6298 §2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Maximum time until a retransmission.
const MAX_RTO: Duration = Duration::from_secs(60);
/// The flow fails after this many retransmissions of the same segment.
const MAX_RETRIES: u32 = 8;

/// State of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// Waits for the answer to its SYN.
    Opening,
    /// Sends data.
    Open,
    /// All data and the FIN were sent.
    Closing,
    /// All data was received.
    Done,
    /// The other end refused or reset the flow.
    Reset,
    /// The other end no longer answers.
    TimedOut,
}

impl FlowState {
    /// Whether the flow has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, FlowState::Done | FlowState::Reset | FlowState::TimedOut)
    }
}

/// When a flow ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowGoal {
    /// After this many bytes.
    Bytes(u64),
    /// At this time of the network's clock; until then it sends as much as it can.
    Until(Duration),
}

/// The progress of a flow, as one of its ends sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// The state.
    pub state: FlowState,
    /// Bytes acknowledged (at the sender), or received in order (at the receiver).
    pub bytes: u64,
    /// Number of segments that were sent again.
    pub retransmissions: u64,
    /// When the SYN was sent or received.
    pub began: Duration,
    /// When `bytes` last grew, or the flow ended.
    pub last: Duration,
}

impl FlowReport {
    /// Throughput of the stream in bits per second; 0 if no time passed.
    #[must_use]
    pub fn bits_per_second(&self) -> f64 {
        let seconds = self.last.saturating_sub(self.began).as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds } else { 0.0 }
    }
}

/// The reset that answers a segment of an unknown flow (RFC 9293 §3.5.2). `None` for a reset.
pub(in crate::host) fn reset(segment: &TcpSegment) -> Option<TcpSegment> {
    if segment.flags & RST != 0 {
        return None;
    }
    let acked = segment.flags & ACK != 0;
    let counted = u32::from(segment.flags & SYN != 0) + u32::from(segment.flags & FIN != 0);
    Some(TcpSegment {
        from: segment.to,
        to: segment.from,
        sequence: if acked { segment.acknowledgement } else { 0 },
        acknowledgement: segment.sequence.wrapping_add(segment.len as u32).wrapping_add(counted),
        flags: if acked { RST } else { RST | ACK },
        ..TcpSegment::default()
    })
}
