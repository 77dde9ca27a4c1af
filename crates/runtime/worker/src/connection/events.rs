//! Events of connections: switches come up, go down, or fail to come up. Their number is bounded,
//! since any peer can connect and disconnect all day long.

use std::net::IpAddr;
use std::time::Duration;

use bellrock_api::{ConnectionEnd, EndReason, Event, RateLimit, Repeats};
use bellrock_session::CloseReason;

use super::EndCause;

/// Maximum number of such events that a worker may publish at once: as many as are kept.
const BURST_EVENTS: u32 = 1024;

/// Number of events that it may publish per minute, continuously.
const EVENTS_PER_MINUTE: u32 = 60;

/// Minimum time between two events for the same address and reason of connections that end before
/// their switch is up.
const REPEATED_EVERY: Duration = Duration::from_secs(60);

/// Maximum number of pairs of address and reason that are reported separately. All others are
/// reported together.
const MAX_REPEATED: usize = 64;

/// Decides which events of connections a worker publishes.
#[derive(Debug)]
pub(super) struct ConnectionEvents {
    switches: RateLimit,
    /// Ends by address and reason. `None`: of further addresses.
    ended: Repeats<(Option<IpAddr>, EndReason)>,
}

impl Default for ConnectionEvents {
    fn default() -> Self {
        let ended = Repeats::new(REPEATED_EVERY, MAX_REPEATED);
        let every = Duration::from_secs(60) / EVENTS_PER_MINUTE;
        ConnectionEvents { switches: RateLimit::new(BURST_EVENTS, every), ended }
    }
}

impl ConnectionEvents {
    /// Whether one more event of a switch may be published.
    pub(super) fn allows(&mut self, now: Duration) -> bool {
        self.switches.pass(now)
    }

    /// Counts a connection that ended before its switch was up. Returns the event to publish, if
    /// one is due.
    pub(super) fn record_end(
        &mut self,
        from: IpAddr,
        why: ConnectionEnd,
        now: Duration,
    ) -> Option<Event> {
        let (key, others) = ((Some(from), why.reason), (None, why.reason));
        let ((from, _), times) = self.ended.note(key, others, now)?;
        Some(Event::ConnectionEnded { from, why, times })
    }
}

impl From<&EndCause> for ConnectionEnd {
    fn from(end: &EndCause) -> Self {
        let reason = match end {
            EndCause::Session(CloseReason::HandshakeTimeout { .. }) => EndReason::HandshakeTimeout,
            EndCause::Session(CloseReason::Dead) => EndReason::Dead,
            EndCause::Session(
                CloseReason::NoCommonVersion { .. }
                | CloseReason::HelloRefused { .. }
                | CloseReason::FeaturesRefused(_),
            ) => EndReason::Refused,
            EndCause::Session(_) | EndCause::Corrupt => EndReason::Malformed,
            EndCause::Peer => EndReason::ClosedByPeer,
            EndCause::Auxiliary(_) => EndReason::Auxiliary,
            EndCause::Duplicate(_) => EndReason::Duplicate,
            EndCause::Identity(..) => EndReason::Identity,
            EndCause::Ordered(_) => EndReason::Refused,
            EndCause::Replaced => EndReason::Replaced,
            EndCause::Stalled => EndReason::Stalled,
            EndCause::UnfinishedReplies | EndCause::EarlyMessages => EndReason::Limit,
            EndCause::Stop => EndReason::Stopped,
        };
        ConnectionEnd { reason, text: end.to_string().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn why(reason: EndReason) -> ConnectionEnd {
        ConnectionEnd { reason, text: "why".into() }
    }

    fn times(event: Option<Event>) -> Option<(Option<IpAddr>, u64)> {
        match event? {
            Event::ConnectionEnded { from, times, .. } => Some((from, times)),
            other => unreachable!("{other}"),
        }
    }

    #[test]
    fn all_switches_may_come_at_once_and_one_that_comes_and_goes_all_day_is_seen_once_a_second() {
        let mut comings = ConnectionEvents::default();
        let published =
            |comings: &mut ConnectionEvents, at| (0..5000).filter(|_| comings.allows(at)).count();
        assert_eq!(published(&mut comings, s(100)), BURST_EVENTS as usize);
        assert_eq!(published(&mut comings, s(100)), 0);
        assert_eq!(published(&mut comings, s(101)), 1);
        assert_eq!(published(&mut comings, s(111)), 10);
        assert_eq!(published(&mut comings, s(86_400)), BURST_EVENTS as usize);
    }

    #[test]
    fn repeated_failed_connections_are_published_once_a_minute() {
        let mut comings = ConnectionEvents::default();
        let [one, two] = [1, 2].map(|n| IpAddr::from([192, 0, 2, n]));
        let mut ended = |ip, reason, at| times(comings.record_end(ip, why(reason), s(at)));
        assert_eq!(ended(one, EndReason::Malformed, 100), Some((Some(one), 1)));
        assert!((100..160).all(|at| ended(one, EndReason::Malformed, at).is_none()));
        assert_eq!(ended(one, EndReason::HandshakeTimeout, 159), Some((Some(one), 1)));
        assert_eq!(ended(two, EndReason::Malformed, 159), Some((Some(two), 1)));
        assert_eq!(ended(one, EndReason::Malformed, 160), Some((Some(one), 61)));
    }

    #[test]
    fn so_many_addresses_are_told_apart() {
        let mut comings = ConnectionEvents::default();
        let mut ended = |n: u16, at| {
            let [a, b] = n.to_be_bytes();
            times(comings.record_end(IpAddr::from([10, 0, a, b]), why(EndReason::Dead), s(at)))
        };
        let published = (0..1000).filter_map(|n| ended(n, 1)).collect::<Vec<_>>();
        assert_eq!(published.len(), MAX_REPEATED + 1);
        assert_eq!(published.last(), Some(&(None, 1)));
        // The first ones expire after a minute.
        assert!(ended(2000, 61).is_some_and(|(from, _)| from.is_some()));
    }
}
