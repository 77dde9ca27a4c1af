//! Links between two ports.

use std::collections::VecDeque;
use std::time::Duration;

use crate::topology::{LinkEnd, LinkShape};

/// Minimum time of a frame from one port to the next: a link without a delay is a short cable. So
/// time passes for a frame in a loop.
pub const SHORTEST_HOP: Duration = Duration::from_micros(1);

/// Counters of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames that were sent and will arrive, if the link stays up.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames lost by chance.
    pub lost: u64,
    /// Frames dropped because the queue was full.
    pub overflows: u64,
    /// Frames dropped because the link was down, or went down during their delay.
    pub down: u64,
}

/// One direction of a link.
pub(super) struct OneWayLink {
    pub(super) counters: LinkCounters,
    /// Time at which each waiting frame will have left; after the last one, the link is free.
    departures: VecDeque<Duration>,
    chance: fastrand::Rng,
}

/// A link.
pub(super) struct EmulatedLink {
    pub(super) ends: [LinkEnd; 2],
    pub(super) shape: LinkShape,
    pub(super) up: bool,
    /// How often it went down: frames that were on it then do not arrive.
    pub(super) cuts: u32,
    /// From the first end, and from the second.
    pub(super) directions: [OneWayLink; 2],
}

impl EmulatedLink {
    pub(super) fn new(ends: [LinkEnd; 2], shape: LinkShape, seed: u64) -> Self {
        let direction = |side: u64| OneWayLink {
            counters: LinkCounters::default(),
            departures: VecDeque::new(),
            chance: fastrand::Rng::with_seed(seed.wrapping_mul(2).wrapping_add(side)),
        };
        EmulatedLink { ends, shape, up: true, cuts: 0, directions: [direction(0), direction(1)] }
    }

    /// Sends a frame of this length. Returns its time of arrival; `None` if it does not arrive.
    pub(super) fn send(&mut self, from: usize, bytes: usize, now: Duration) -> Option<Duration> {
        let LinkShape { delay, loss, bandwidth, queue } = self.shape;
        let direction = &mut self.directions[from];
        if !self.up {
            direction.counters.down += 1;
            return None;
        }
        let mut departure = now;
        if let Some(bandwidth) = bandwidth {
            while direction.departures.front().is_some_and(|leaves| *leaves <= now) {
                direction.departures.pop_front();
            }
            if direction.departures.len() >= queue as usize {
                direction.counters.overflows += 1;
                return None;
            }
            departure =
                direction.departures.back().copied().unwrap_or(now) + bandwidth.time_of(bytes);
            direction.departures.push_back(departure);
        }
        // A lost frame takes its time on the link all the same.
        if loss.millionths() > 0 && direction.chance.u32(0..1_000_000) < loss.millionths() {
            direction.counters.lost += 1;
            return None;
        }
        direction.counters.frames += 1;
        direction.counters.bytes += bytes as u64;
        Some(departure + delay.max(SHORTEST_HOP))
    }

    /// Takes the link down or up. Waiting frames, and frames on it, are lost.
    pub(super) fn set(&mut self, up: bool) {
        if self.up && !up {
            self.cuts = self.cuts.wrapping_add(1);
            for direction in &mut self.directions {
                direction.departures.clear();
            }
        }
        self.up = up;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{HostIndex, LinkRate, LossRate, Node, SwitchIndex};

    fn link(shape: LinkShape) -> EmulatedLink {
        let ends = [
            LinkEnd { node: Node::Switch(SwitchIndex(0)), port: 1 },
            LinkEnd { node: Node::Host(HostIndex(0)), port: 0 },
        ];
        EmulatedLink::new(ends, shape, 7)
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_delay_holds_for_each_frame() {
        let mut link = link(LinkShape { delay: MS, ..LinkShape::default() });
        assert_eq!(link.send(0, 1500, MS), Some(MS * 2));
        assert_eq!(link.send(0, 1500, MS), Some(MS * 2), "without a bandwidth none waits");
    }

    #[test]
    fn a_frame_waits_until_those_before_it_are_sent() {
        let bandwidth = Some(LinkRate::bits_per_second(10_000_000));
        let mut link = link(LinkShape { delay: MS, bandwidth, queue: 3, ..LinkShape::default() });
        // 1,250 bytes take 1 ms at 10 Mb/s.
        let arrivals: Vec<_> = (0..5).map(|_| link.send(0, 1250, Duration::ZERO)).collect();
        assert_eq!(arrivals, [Some(MS * 2), Some(MS * 3), Some(MS * 4), None, None]);
        assert_eq!(link.directions[0].counters.overflows, 2);
        assert_eq!(link.send(1, 1250, Duration::ZERO), Some(MS * 2), "the other direction is free");
        assert_eq!(link.send(0, 1250, MS), Some(MS * 5), "one was sent, so one has room");
        assert_eq!(link.send(0, 1250, MS * 50), Some(MS * 52));
    }

    #[test]
    fn the_share_that_is_lost_is_what_was_said() {
        let loss = LossRate::per_million(250_000);
        let mut link = link(LinkShape { loss, ..LinkShape::default() });
        let arrived = (0..10_000).filter(|_| link.send(0, 60, MS).is_some()).count();
        assert!((7300..7700).contains(&arrived), "{arrived}");
        assert_eq!(link.directions[0].counters.lost as usize, 10_000 - arrived);
    }

    #[test]
    fn a_link_that_is_down_carries_nothing() {
        let mut link = link(LinkShape::default());
        link.set(false);
        link.set(false);
        assert_eq!((link.send(0, 60, MS), link.cuts), (None, 1));
        link.set(true);
        assert_eq!(link.send(0, 60, MS), Some(MS + SHORTEST_HOP));
    }
}
