//! One end of a flow like TCP's: enough to measure what a path carries.
//!
//! # What it is
//! The handshake, a byte stream in one direction (from the end that opened), cumulative
//! acknowledgements, windows with scaling (RFC 7323), segments out of order kept, retransmission by
//! time (RFC 6298) and by three duplicate acknowledgements, slow start and congestion avoidance
//! (RFC 5681) with NewReno's recovery (RFC 6582), an end of slow start before queues overflow (by
//! the delay, RFC 9406 §4.2), and the closing by FIN.
//!
//! # What it is not
//! It carries no data but zeros, and none back. There are no selective acknowledgements, no
//! timestamps, no delayed acknowledgements, no urgent data, no zero window (a receiver reads at
//! once), and no waiting state after the end: a segment that comes later is answered with a reset.
//!
//! Positions in the stream are 64-bit numbers: the SYN is 0, data begins at 1, the FIN is behind it.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::wire::{ACK, FIN, RST, SYN, Segment};
pub(in crate::host) use receiver::Receiver;
pub(in crate::host) use sender::Sender;

/// What a receiver takes ahead of the first missing byte.
const WINDOW_BYTES: u64 = 1 << 20;
/// Both ends give their windows in units of 2^7 bytes.
const WINDOW_SHIFT: u8 = 7;
const WINDOW_UNITS: u16 = (WINDOW_BYTES >> WINDOW_SHIFT) as u16;
/// Time until the first retransmission before a round trip was measured (RFC 6298 §2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Longest time until a retransmission.
const MAX_RTO: Duration = Duration::from_secs(60);
/// So many retransmissions of the same segment, and the flow is given up.
const MAX_RETRIES: u32 = 8;

/// Where a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// It waits for the answer to its SYN.
    Opening,
    /// Data goes.
    Open,
    /// All data was sent, and the FIN.
    Closing,
    /// All data has come over.
    Done,
    /// The other end refused or broke it.
    Reset,
    /// The other end has not answered any more.
    TimedOut,
}

impl FlowState {
    /// Whether nothing more will come of it.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, FlowState::Done | FlowState::Reset | FlowState::TimedOut)
    }
}

/// How much a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowGoal {
    /// So many bytes.
    Bytes(u64),
    /// As much as it can until this time of the network's clock.
    Until(Duration),
}

/// What became of a flow, as one of its ends sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// Where it stands.
    pub state: FlowState,
    /// Bytes that were acknowledged (at the sender), or that came in order (at the receiver).
    pub bytes: u64,
    /// Segments that were sent again.
    pub retransmissions: u64,
    /// When it began: the SYN was sent or received.
    pub began: Duration,
    /// When its bytes grew last, or it ended.
    pub last: Duration,
}

impl FlowReport {
    /// Bytes of the stream carried in a second, in bits; 0 if no time passed.
    #[must_use]
    pub fn bits_per_second(&self) -> f64 {
        let seconds = self.last.saturating_sub(self.began).as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds } else { 0.0 }
    }
}

/// The answer to a segment of no flow (RFC 9293 §3.5.2). A reset is not answered.
pub(in crate::host) fn reset(segment: &Segment) -> Option<Segment> {
    if segment.flags & RST != 0 {
        return None;
    }
    let acked = segment.flags & ACK != 0;
    let counted = u32::from(segment.flags & SYN != 0) + u32::from(segment.flags & FIN != 0);
    Some(Segment {
        from: segment.to,
        to: segment.from,
        sequence: if acked { segment.acknowledgement } else { 0 },
        acknowledgement: segment.sequence.wrapping_add(segment.len as u32).wrapping_add(counted),
        flags: if acked { RST } else { RST | ACK },
        ..Segment::default()
    })
}
