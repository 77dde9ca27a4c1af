//! Announcements that switches refuse to send, as at ports of tunnels and aggregated links.
//!
//! The port is announced again after a pause, which doubles up to a minute. A port that has refused
//! [`REFUSED_BEFORE_ALARM`] announcements in a row is an alarm of its switch
//! ([`Event::AnnouncementsRefused`]): a single refusal may be a port that is just going away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_api::{Backoff, Dpid, Event, Port, Refusal};

/// Number of announcements in a row that a port refuses before it is an alarm.
pub const REFUSED_BEFORE_ALARM: u32 = 2;

/// Maximum number of switches with an alarm.
const MAX_SWITCHES: usize = 1024;

/// A port whose last announcement was refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusedPort {
    why: Refusal,
    /// Refusals in a row.
    times: u32,
    backoff: Backoff,
    /// When it was announced since the last refusal.
    retried: Option<Duration>,
}

impl RefusedPort {
    /// Notes a refusal after those before.
    pub(super) fn after(before: Option<Self>, why: Refusal, now: Duration) -> Self {
        let (mut backoff, times) =
            before.map_or_else(Default::default, |it| (it.backoff, it.times));
        backoff.failed(now);
        RefusedPort { why, times: times.saturating_add(1), backoff, retried: None }
    }

    /// Whether to announce the port again.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.retried.is_none() && self.backoff.is_over(now)
    }

    /// Notes that the port was announced again.
    pub(super) fn retry(&mut self, now: Duration) {
        self.retried = Some(now);
    }

    /// When it was announced again. Nothing was refused if a barrier after that is answered.
    pub(super) fn retried(&self) -> Option<Duration> {
        self.retried
    }

    /// Returns why, if it is an alarm.
    pub(super) fn alarm(&self) -> Option<Refusal> {
        (self.times >= REFUSED_BEFORE_ALARM).then_some(self.why)
    }
}

/// Ports where switches refuse announcements, as was reported last. An
/// [extension](bellrock_api::Network::extension) of the network: it outlasts connections, so a
/// switch that connects again and again is reported once.
#[derive(Debug, Default)]
pub struct RefusedAnnouncements(Mutex<BTreeMap<Dpid, BTreeSet<Port>>>);

impl RefusedAnnouncements {
    /// Returns the ports of a switch, in order.
    #[must_use]
    pub fn of_switch(&self, dpid: Dpid) -> Vec<Port> {
        self.reported().get(&dpid).into_iter().flatten().copied().collect()
    }

    /// Records all such ports of a switch, and why at one of them. Until the switch `is_known`,
    /// some may be missing. Returns the event to publish.
    pub(super) fn record(
        &self,
        dpid: Dpid,
        ports: BTreeSet<Port>,
        why: Option<Refusal>,
        is_known: bool,
    ) -> Option<Event> {
        let mut reported = self.reported();
        let before = reported.get(&dpid);
        let Some(why) = why else {
            return reported.remove(&dpid).map(|_| Event::AnnouncementsTaken { dpid });
        };
        if before.is_none() && reported.len() >= MAX_SWITCHES {
            return None;
        }
        let is_new = before.is_none_or(|before| !ports.is_subset(before));
        let event = is_new.then(|| Event::AnnouncementsRefused {
            dpid,
            ports: ports.iter().copied().collect(),
            why,
        });
        if is_new || is_known {
            reported.insert(dpid, ports);
        }
        event
    }

    /// A panic under this lock leaves the map whole: each change is one call.
    fn reported(&self) -> MutexGuard<'_, BTreeMap<Dpid, BTreeSet<Port>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
