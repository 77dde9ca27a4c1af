//! The timers of a host.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HostTimer {
    /// An address has not been answered yet.
    Neighbour(Ipv4Addr),
    /// A ping's next request, or the timeout of an answer.
    Ping(u16),
    /// The next datagram of a stream.
    Stream(u32),
    /// A retransmission of a flow that this host opened.
    Sender(u16),
    /// A retransmission of a flow from another host: its address, its port, and this host's port.
    Receiver(Ipv4Addr, u16, u16),
}

/// All timers of a host, by time.
#[derive(Default)]
pub(super) struct HostTimers {
    due: BTreeSet<(Duration, HostTimer)>,
}

impl HostTimers {
    /// Moves a timer from one time to another; `None` is never.
    pub(super) fn set(&mut self, timer: HostTimer, from: Option<Duration>, to: Option<Duration>) {
        if from == to {
            return;
        }
        if let Some(at) = from {
            self.due.remove(&(at, timer));
        }
        if let Some(at) = to {
            self.due.insert((at, timer));
        }
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Removes and returns a timer that is due.
    pub(super) fn pop(&mut self, now: Duration) -> Option<HostTimer> {
        let (at, timer) = *self.due.first()?;
        if at > now {
            return None;
        }
        self.due.pop_first();
        Some(timer)
    }
}
