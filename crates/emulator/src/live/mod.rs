//! The network over real TCP, against any controller.
//!
//! # What it is
//! A [`Live`] is a [`Network`] whose clock follows the real one, and whose switches have connections:
//! each connects to each of the controllers, and again when it loses one, as real switches do. All
//! of it is one thread, that of whoever calls [`turn`](Live::turn): sockets never make it wait, and
//! frames between switches and hosts never leave the process.
//!
//! Between two turns the caller may do with the [`network`](Live::network_mut) what it likes.
//!
//! # What it is not
//! It does not print, knows no commands, and starts no thread. A network that is more than the machine
//! can carry is slowed down ([`slipped`](Live::slipped)); its switches still answer their controllers.

mod clock;
mod line;
mod lines;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll, Token};

use clock::Clock;
pub use line::LineState;
use lines::Lines;

pub use crate::backoff::Backoff;
use crate::network::{Network, NetworkSettings};
use crate::topology::{SwitchId, Topology};

/// News of the poller that are taken at a time.
const EVENTS: usize = 1024;

/// How often somebody who waits for something is asked whether it is there: it may be that
/// nothing happens for a while.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// The token of the waker; those of the lines are their numbers.
const WAKER: Token = Token(usize::MAX);

/// The longest wait without a look at the clock; nothing depends on it.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// How a live network runs.
#[derive(Clone, Debug)]
pub struct LiveSettings {
    /// Where the controllers are. Every switch connects to each.
    pub controllers: Vec<SocketAddr>,
    /// How switches try again.
    pub backoff: Backoff,
    /// A controller that is silent for so long is asked for an echo, and given up when it does not
    /// answer for as long again.
    pub probe_after: Duration,
    /// The network itself.
    pub network: NetworkSettings,
}

impl LiveSettings {
    /// Open vSwitch asks a silent controller after 5 s, too.
    pub const PROBE_AFTER: Duration = Duration::from_secs(5);

    /// With this controller.
    #[must_use]
    pub fn new(controller: SocketAddr) -> Self {
        LiveSettings {
            controllers: vec![controller],
            backoff: Backoff::default(),
            probe_after: Self::PROBE_AFTER,
            network: NetworkSettings::default(),
        }
    }
}

/// What the operating system does not let a live network do.
#[derive(Debug, thiserror::Error)]
#[error("the emulator cannot watch its connections: {0}")]
pub struct LiveError(#[from] io::Error);

/// Ends the wait of a [`Live`] from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<mio::Waker>);

impl Waker {
    /// [`Live::turn`] returns at once: the one that waits now, or the next.
    pub fn wake(&self) {
        // It fails only when the poller is gone, and then nobody waits.
        let _ = self.0.wake();
    }
}

/// A network on real connections. See the [module](self).
pub struct Live {
    network: Network,
    clock: Clock,
    lines: Lines,
    poll: Poll,
    events: Events,
    waker: Waker,
}

impl Live {
    /// Builds the network. Its switches begin to connect with the first turn.
    ///
    /// # Errors
    /// The operating system has no poller to give.
    pub fn new(topology: &Topology, settings: LiveSettings) -> Result<Live, LiveError> {
        let LiveSettings { controllers, backoff, probe_after, network } = settings;
        let poll = Poll::new()?;
        let waker = Waker(Arc::new(mio::Waker::new(poll.registry(), WAKER)?));
        let registry = poll.registry().try_clone()?;
        let switches = topology.switches().len();
        Ok(Live {
            network: Network::new(topology, network),
            clock: Clock::start(),
            lines: Lines::new(switches, controllers, backoff, probe_after, registry),
            poll,
            events: Events::with_capacity(EVENTS),
            waker,
        })
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The network, to do something with it. It is brought up to now before, so that what is done
    /// now happens now; what comes of it, happens in the turns that follow.
    pub fn network_mut(&mut self) -> &mut Network {
        self.advance();
        &mut self.network
    }

    /// Stops a switch and starts it again, with its flows, groups and meters or without. Its
    /// connections are lost, and it connects anew.
    pub fn restart(&mut self, switch: SwitchId, keep_tables: bool) {
        self.lines.restarted(switch, self.clock.real(), &mut self.network);
        self.network.restart(switch, keep_tables);
    }

    /// Real time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.clock.real()
    }

    /// How much of it the network has left out because the machine was too slow.
    #[must_use]
    pub fn slipped(&self) -> Duration {
        self.clock.slipped()
    }

    /// How long no controller has said anything.
    #[must_use]
    pub fn quiet_for(&self) -> Duration {
        self.clock.real().saturating_sub(self.lines.heard())
    }

    /// How a switch stands with each controller, in the order of the settings.
    pub fn lines(&self, switch: SwitchId) -> impl Iterator<Item = (SocketAddr, LineState)> + '_ {
        self.lines.of(switch, &self.network)
    }

    /// Switches that are connected to every controller, and have agreed on a version.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.lines.connected()
    }

    /// What ends a wait from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Runs for so long.
    ///
    /// # Errors
    /// The poller fails.
    pub fn run_for(&mut self, time: Duration) -> Result<(), LiveError> {
        self.run_until(time, |_| false).map(|_| ())
    }

    /// Runs until `done`, which is asked after every turn and every 20 ms, or for so long. Says
    /// whether it was done.
    ///
    /// # Errors
    /// The poller fails.
    pub fn run_until(
        &mut self,
        limit: Duration,
        mut done: impl FnMut(&Live) -> bool,
    ) -> Result<bool, LiveError> {
        let end = self.clock.real() + limit;
        loop {
            if done(self) {
                return Ok(true);
            }
            match end.saturating_sub(self.clock.real()) {
                Duration::ZERO => return Ok(false),
                left => self.turn(left.min(ASK_EVERY))?,
            }
        }
    }

    /// Does what is to be done, or waits for something, at most for so long.
    ///
    /// # Errors
    /// The poller fails.
    pub fn turn(&mut self, most: Duration) -> Result<(), LiveError> {
        let before = self.network.counters().events;
        let current = self.advance();
        // When something has happened in the network, whoever waits for it wants to look first.
        let still = self.network.counters().events == before;
        self.lines.timers(self.clock.real(), &mut self.network);
        let Live { network, lines, .. } = self;
        network.take_dirty(|switch| lines.speak(switch));
        let idle = current && still && self.lines.is_idle();
        self.poll(if idle { self.wait(most) } else { Duration::ZERO })?;
        if idle {
            // What comes of the bytes that have arrived happens now, not when the wait began.
            self.advance();
        }
        self.lines.serve(self.clock.real(), &mut self.network);
        Ok(())
    }

    /// Lets the network go on towards now; false if it has further to go.
    fn advance(&mut self) -> bool {
        let now = self.clock.now();
        // Until its next event a network has nothing to do, and so it is not behind.
        let next = self.network.next_event().map_or(now, |next| next.min(now));
        let (until, current) = self.clock.step(next.max(self.network.now()));
        self.network.advance(until);
        current
    }

    /// How long there is nothing to do, and at most so long.
    fn wait(&self, most: Duration) -> Duration {
        let event = self.network.next_event();
        let event = event.map_or(MAX_WAIT, |next| next.saturating_sub(self.clock.now()));
        let timer = self.lines.next_timer().saturating_sub(self.clock.real());
        most.min(MAX_WAIT).min(event).min(timer)
    }

    fn poll(&mut self, wait: Duration) -> Result<(), LiveError> {
        match self.poll.poll(&mut self.events, Some(wait)) {
            Ok(()) => {}
            // A signal: whoever handles it wants to look at once.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let news = self.events.iter().filter(|event| event.token() != WAKER);
        news.for_each(|event| self.lines.ready(event));
        Ok(())
    }
}
