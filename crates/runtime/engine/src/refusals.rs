//! Events of connections that are refused at once: one event a minute with their number, so that
//! connecting cannot flood the events.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bellrock_api::{ConnectionEnd, EndReason, Event};

#[cfg(feature = "tls")]
use crate::tls::handshake::HandshakeError;

/// Minimum time between two such events.
const REPORTED_EVERY: Duration = Duration::from_secs(60);

/// Why a connection is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RefusalReason {
    #[error(
        "there are {0} connections, the maximum; set max_connections higher, or find out what connects"
    )]
    Connections(usize),
    #[error(
        "each worker has {0} connections, its maximum; set max_switches_per_worker higher, \
         or use more workers"
    )]
    Workers(usize),
    #[error("its worker cannot take new connections this fast; use more workers")]
    Busy,
    #[error("its socket failed: {0}")]
    Socket(#[from] io::Error),
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Handshake(HandshakeError),
}

impl RefusalReason {
    /// Whether a TLS handshake failed for a reason of its own.
    pub(crate) fn is_of_handshake(&self) -> bool {
        match self {
            #[cfg(feature = "tls")]
            RefusalReason::Handshake(HandshakeError::TooMany | HandshakeError::Displaced) => false,
            #[cfg(feature = "tls")]
            RefusalReason::Handshake(_) => true,
            _ => false,
        }
    }

    fn ended(&self) -> ConnectionEnd {
        let reason = match self {
            RefusalReason::Connections(_) | RefusalReason::Workers(_) | RefusalReason::Busy => {
                EndReason::Limit
            }
            RefusalReason::Socket(_) => EndReason::ClosedByPeer,
            #[cfg(feature = "tls")]
            RefusalReason::Handshake(error) => match error {
                HandshakeError::Plain => EndReason::Malformed,
                HandshakeError::TooMany | HandshakeError::Displaced => EndReason::Limit,
                HandshakeError::Late => EndReason::HandshakeTimeout,
                HandshakeError::Closed | HandshakeError::Socket(_) => EndReason::ClosedByPeer,
                HandshakeError::Tls(_) | HandshakeError::Unreadable => EndReason::Refused,
            },
        };
        ConnectionEnd { reason, text: self.to_string().into() }
    }
}

/// Decides which refusals are published.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Time of the last event.
    published: Option<Duration>,
    /// Number of refusals since then, with the last one.
    since: Option<(u64, IpAddr, RefusalReason)>,
}

impl Refusals {
    /// Notes a refusal. [`Refusals::due`] returns the event.
    pub(crate) fn refused(&mut self, from: IpAddr, why: RefusalReason) {
        let before = self.since.as_ref().map_or(0, |(times, ..)| *times);
        self.since = Some((before.saturating_add(1), from, why));
    }

    /// Time of the next event; `None` if no connection was refused.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.since.as_ref()?;
        Some(self.published.map_or(Duration::ZERO, |at| at.saturating_add(REPORTED_EVERY)))
    }

    /// Takes the event that is due, if any.
    pub(crate) fn due(&mut self, now: Duration) -> Option<Event> {
        if self.next()? > now {
            return None;
        }
        let (times, from, why) = self.since.take()?;
        self.published = Some(now);
        Some(Event::ConnectionsRefused { from, why: why.ended(), times })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use super::*;

    #[test]
    fn whoever_connects_all_the_time_is_one_event_a_minute_with_the_number() {
        const MINUTES: u64 = 10;
        const PER_SECOND: u64 = 1000;
        let mut refusals = Refusals::default();
        assert_eq!(refusals.next(), None);
        let mut events = Vec::new();
        for second in 100..100 + 60 * MINUTES {
            for n in 0..PER_SECOND {
                refusals.refused(IpAddr::from([10, 0, 0, n as u8]), RefusalReason::Connections(5));
                events.extend(refusals.due(Duration::from_secs(second)));
            }
        }
        assert_eq!(events.len() as u64, MINUTES);
        // What came after the last event is published when its minute is over.
        let at = refusals.next().unwrap();
        assert_eq!(at, Duration::from_secs(100 + 60 * MINUTES));
        events.extend(refusals.due(at));
        assert_eq!((refusals.next(), refusals.due(at * 2)), (None, None));
        let times = |event: &Event| match event {
            Event::ConnectionsRefused { times, .. } => *times,
            other => unreachable!("{other}"),
        };
        assert_eq!(events.iter().map(times).sum::<u64>(), 60 * MINUTES * PER_SECOND);
        assert_eq!(
            events[1].to_string(),
            "a connection from 10.0.0.0 was refused: there are 5 connections, the maximum; set \
             max_connections higher, or find out what connects (the last of 60000)"
        );
        assert!(events[1].is_alarming() && events[1].is_about_connection());
    }
}
