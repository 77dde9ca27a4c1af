//! The network over real TCP, against any controller.
//!
//! # What it is
//! A [`LiveNetwork`] is an [`EmulatedNetwork`] whose clock follows real time, and whose switches
//! have TCP connections. Each switch connects to each controller, and again after it loses a
//! connection, as real switches do. All this runs in one thread, the one that calls
//! [`turn`](LiveNetwork::turn). Sockets never block it, and frames between switches and hosts stay
//! inside the process.
//!
//! Between two turns the caller may use the [`network`](LiveNetwork::network_mut).
//!
//! # What it is not
//! It does not print, knows no commands, and starts no thread. If the machine is too slow, the
//! network slows down ([`slipped`](LiveNetwork::slipped)); its switches still answer their
//! controllers.

mod clock;
mod connection;
mod connections;
#[cfg(feature = "tls")]
mod tls;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll, Token};

use clock::LiveClock;
pub use connection::ConnectionState;
use connections::SwitchConnections;

#[cfg(feature = "tls")]
pub use bellrock_tls::TlsFileError;
#[cfg(feature = "tls")]
pub use tls::SwitchTls;

pub use crate::backoff::ReconnectBackoff;
use crate::network::{EmulatedNetwork, NetworkSettings};
use crate::topology::{SwitchIndex, TopologySpec};

/// Maximum number of events that are taken from the poller at once.
const EVENTS: usize = 1024;

/// Maximum time between two checks of a caller's condition: there may be no event for a while.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// The waker's token; a line's token is its index.
const WAKER: Token = Token(usize::MAX);

/// Maximum wait of the poller; the value does not matter.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Settings of a live network.
#[derive(Clone, Debug)]
pub struct LiveSettings {
    /// Addresses of the controllers. Every switch connects to each.
    pub controllers: Vec<SocketAddr>,
    /// The switches' end of TLS. `None`: they connect without it.
    #[cfg(feature = "tls")]
    pub tls: Option<SwitchTls>,
    /// How switches wait before they connect again.
    pub backoff: ReconnectBackoff,
    /// Silence of a controller after which a switch sends an echo request. After the same time
    /// without an answer, it closes the connection.
    pub probe_after: Duration,
    /// Settings of the network itself.
    pub network: NetworkSettings,
}

impl LiveSettings {
    /// 5 s, as in Open vSwitch.
    pub const PROBE_AFTER: Duration = Duration::from_secs(5);

    /// Settings with this controller.
    #[must_use]
    pub fn new(controller: SocketAddr) -> Self {
        LiveSettings {
            controllers: vec![controller],
            #[cfg(feature = "tls")]
            tls: None,
            backoff: ReconnectBackoff::default(),
            probe_after: Self::PROBE_AFTER,
            network: NetworkSettings::default(),
        }
    }
}

/// The operating system refuses what a live network needs.
#[derive(Debug, thiserror::Error)]
#[error("the emulator cannot watch its connections: {0}")]
pub struct LiveError(#[from] io::Error);

/// Wakes a waiting [`LiveNetwork`] from another thread.
#[derive(Clone, Debug)]
pub struct LiveWaker(Arc<mio::Waker>);

impl LiveWaker {
    /// Makes [`LiveNetwork::turn`] return at once: the present call, or the next one.
    pub fn wake(&self) {
        // It fails only after the poller is gone, and then no call waits.
        let _ = self.0.wake();
    }
}

/// A network on real connections. See the [module](self).
pub struct LiveNetwork {
    network: EmulatedNetwork,
    clock: LiveClock,
    lines: SwitchConnections,
    poll: Poll,
    events: Events,
    waker: LiveWaker,
}

impl LiveNetwork {
    /// Builds the network. Its switches start to connect in the first turn.
    ///
    /// # Errors
    /// The operating system has no poller.
    pub fn new(topology: &TopologySpec, settings: LiveSettings) -> Result<LiveNetwork, LiveError> {
        let LiveSettings { controllers, backoff, probe_after, network, .. } = settings;
        let poll = Poll::new()?;
        let waker = LiveWaker(Arc::new(mio::Waker::new(poll.registry(), WAKER)?));
        let registry = poll.registry().try_clone()?;
        let switches = topology.switches().len();
        let lines = SwitchConnections::new(switches, controllers, backoff, probe_after, registry);
        #[cfg(feature = "tls")]
        let lines = {
            let mut lines = lines;
            lines.set_tls(settings.tls);
            lines
        };
        Ok(LiveNetwork {
            network: EmulatedNetwork::new(topology, network),
            clock: LiveClock::start(),
            lines,
            poll,
            events: Events::with_capacity(EVENTS),
            waker,
        })
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &EmulatedNetwork {
        &self.network
    }

    /// The network, for changes. It is advanced to the present time first, so that a change happens
    /// now. Its effects happen in the next turns.
    pub fn network_mut(&mut self) -> &mut EmulatedNetwork {
        self.advance();
        &mut self.network
    }

    /// Restarts a switch, with or without its flows, groups and meters. Its connections are lost,
    /// and it connects again.
    pub fn restart(&mut self, switch: SwitchIndex, keep_tables: bool) {
        self.lines.restarted(switch, self.clock.real(), &mut self.network);
        self.network.restart(switch, keep_tables);
    }

    /// Real time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.clock.real()
    }

    /// The real time that the network has skipped because the machine was too slow.
    #[must_use]
    pub fn slipped(&self) -> Duration {
        self.clock.slipped()
    }

    /// Time since a controller was last heard.
    #[must_use]
    pub fn quiet_for(&self) -> Duration {
        self.clock.real().saturating_sub(self.lines.last_heard())
    }

    /// State of a switch's connection to each controller, in the order of the settings.
    pub fn lines(
        &self,
        switch: SwitchIndex,
    ) -> impl Iterator<Item = (SocketAddr, ConnectionState)> + '_ {
        self.lines.of(switch, &self.network)
    }

    /// Number of switches that have agreed on a version with every controller.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.lines.connected()
    }

    /// Makes a waker for another thread.
    #[must_use]
    pub fn waker(&self) -> LiveWaker {
        self.waker.clone()
    }

    /// Runs for this time.
    ///
    /// # Errors
    /// The poller fails.
    pub fn run_for(&mut self, time: Duration) -> Result<(), LiveError> {
        self.run_until(time, |_| false).map(|_| ())
    }

    /// Runs until `done` returns true, but at most for `limit`. Returns whether it did. Calls
    /// `done` after every turn, and every 20 ms.
    ///
    /// # Errors
    /// The poller fails.
    pub fn run_until(
        &mut self,
        limit: Duration,
        mut is_done: impl FnMut(&LiveNetwork) -> bool,
    ) -> Result<bool, LiveError> {
        let end = self.clock.real() + limit;
        loop {
            if is_done(self) {
                return Ok(true);
            }
            match end.saturating_sub(self.clock.real()) {
                Duration::ZERO => return Ok(false),
                left => self.turn(left.min(ASK_EVERY))?,
            }
        }
    }

    /// Does the work that is due, or waits for work, at most for `maximum`.
    ///
    /// # Errors
    /// The poller fails.
    pub fn turn(&mut self, maximum: Duration) -> Result<(), LiveError> {
        let before = self.network.counters().events;
        let current = self.advance();
        // After events in the network, the caller's condition is checked first.
        let still = self.network.counters().events == before;
        self.lines.timers(self.clock.real(), &mut self.network);
        let LiveNetwork { network, lines, .. } = self;
        network.take_dirty(|switch| lines.enqueue_switch(switch));
        let idle = current && still && self.lines.is_idle();
        self.poll(if idle { self.wait(maximum) } else { Duration::ZERO })?;
        if idle {
            // Arrived bytes take effect now, not when the wait began.
            self.advance();
        }
        self.lines.serve(self.clock.real(), &mut self.network);
        Ok(())
    }

    /// Advances the network towards the present time. Returns false if it is still behind.
    fn advance(&mut self) -> bool {
        let now = self.clock.now();
        // Until its next event a network has no work, so it is not behind.
        let next = self.network.next_event().map_or(now, |next| next.min(now));
        let (until, current) = self.clock.step(next.max(self.network.now()));
        self.network.advance(until);
        current
    }

    /// Time until the next work, at most `maximum`.
    fn wait(&self, maximum: Duration) -> Duration {
        let event = self.network.next_event();
        let event = event.map_or(MAX_WAIT, |next| next.saturating_sub(self.clock.now()));
        let timer = self.lines.next_timer().saturating_sub(self.clock.real());
        maximum.min(MAX_WAIT).min(event).min(timer)
    }

    fn poll(&mut self, wait: Duration) -> Result<(), LiveError> {
        match self.poll.poll(&mut self.events, Some(wait)) {
            Ok(()) => {}
            // A signal: the caller handles it first.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let events = self.events.iter().filter(|event| event.token() != WAKER);
        events.for_each(|event| self.lines.ready(event));
        Ok(())
    }
}
