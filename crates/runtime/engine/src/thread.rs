//! The loop of a worker's thread: wait, read each ready switch once, mail, timers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bellrock_api::LatencyHistogram;
use bellrock_api::runtime::RawPort;
use bellrock_session::Versions;
use bellrock_tables::PreparedTables;
use bellrock_worker::{
    ConnectionKey, Drive, LOAD_WINDOW, RawWorker, SharedState, Worker, WorkerSettings,
};
use crossbeam_queue::ArrayQueue;
use mio::event::Events;
use mio::{Poll, Token};
use tracing::{debug, warn};

use crate::channel::Channel;
use crate::halt::Halt;
use crate::idle::{IdleMode, WaitStatistics};
use crate::listener::VersionsAt;
use crate::ready::{TurnLength, round_time};
use crate::sockets::{ReadTurn, Sockets};
use crate::waker::Sleeper;

/// Token of the wake-up. No connection has so large a key.
pub(crate) const WAKE: Token = Token(usize::MAX);

/// Maximum number of events taken from the poller at once.
const EVENTS: usize = 1024;

/// Number of checks of a connection with waiting bytes, within the time after which it has stalled.
const LOOKS_PER_STALL: u32 = 4;

/// Maximum time between two such checks.
const MAX_STALL_CHECK: Duration = Duration::from_secs(1);

/// Maximum number of new connections before switches are read again.
const ACCEPTS_PER_TURN: usize = 128;

/// Maximum time for connections to take their last bytes when the controller stops.
const STOP_DRAIN: Duration = Duration::from_secs(2);

/// Time between two checks whether they have.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// Maximum number of connections that wait for their worker. More are closed at once.
const INBOX: usize = 4096;

/// Connections that the acceptor passes to a worker.
pub(crate) struct ConnectionInbox {
    /// New connections.
    pub(crate) channels: ArrayQueue<Channel>,
    /// Number of connections passed so far. Only the acceptor writes it.
    pub(crate) passed: AtomicUsize,
    /// Number of them that have ended, minus the connections handed over by other workers. It may
    /// wrap below zero. Only the worker writes it.
    ended: AtomicUsize,
    pub(crate) sleeper: Sleeper,
    /// Lengths of turns: from the readiness of switches until all of them were read, answered and
    /// written.
    pub(crate) turns: LatencyHistogram,
    /// Times that bytes waited at the controller because a switch did not take them at once.
    pub(crate) queues: LatencyHistogram,
}

impl ConnectionInbox {
    pub(crate) fn new(sleeper: Sleeper) -> Self {
        let (passed, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (turns, queues) = (LatencyHistogram::default(), LatencyHistogram::default());
        let channels = ArrayQueue::new(INBOX);
        ConnectionInbox { channels, passed, ended, sleeper, turns, queues }
    }

    /// Number of connections that the worker has or is about to get.
    pub(crate) fn load(&self) -> usize {
        let ended = self.ended.load(Ordering::Relaxed);
        let load = self.passed.load(Ordering::Relaxed).wrapping_sub(ended);
        // Briefly below zero: the end of a connection is visible before the acceptor's count of it.
        if load > usize::MAX / 2 { 0 } else { load }
    }

    /// Closes the remaining connections. Only after both threads have ended.
    pub(crate) fn clear(&self) {
        while self.channels.pop().is_some() {
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The parts for the start of a thread.
pub(crate) struct ThreadStart {
    pub(crate) versions: VersionsAt,
    pub(crate) index: usize,
    pub(crate) core: Option<core_affinity::CoreId>,
    /// Connects the worker's tables with the thread that prepares their memory.
    pub(crate) tables: PreparedTables,
    pub(crate) settings: WorkerSettings,
    pub(crate) idle: IdleMode,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) poll: Poll,
    pub(crate) inbox: Arc<ConnectionInbox>,
    pub(crate) halt: Arc<Halt>,
    /// Start time of the controller, the same for all workers.
    pub(crate) epoch: Instant,
    /// The owner of raw connections, instead of a chain of apps.
    pub(crate) owner: Option<RawPort>,
}

/// Maximum busy time in a window at which a worker counts as idle: it need not wake up just to
/// publish that it is idle.
const QUIET: Duration = Duration::from_millis(10);

/// Idle time in the present window.
#[derive(Default)]
struct IdleMeter {
    since: Duration,
    idle: Duration,
    /// Whether the window before was busier than [`QUIET`].
    was_busy: bool,
}

impl IdleMeter {
    fn until(&self) -> Duration {
        self.since + LOAD_WINDOW
    }
}

/// A worker, its sockets and its thread's state.
pub(crate) struct WorkerThread<W> {
    versions: VersionsAt,
    worker: W,
    sockets: Sockets,
    poll: Poll,
    waits: WaitStatistics,
    /// Maximum bytes of a read.
    turn: TurnLength,
    /// Number of reads of the last turn, if each switch was read once.
    fresh_only: u32,
    inbox: Arc<ConnectionInbox>,
    /// Number of connections taken from the inbox.
    taken: usize,
    shared: Arc<SharedState>,
    index: usize,
    halt: Arc<Halt>,
    epoch: Instant,
    settings: WorkerSettings,
    /// Time between two checks of connections with waiting bytes.
    stall_check: Duration,
    next_stall_check: Duration,
    /// Measures how busy the worker is.
    meter: IdleMeter,
    /// Whether the last turn left mail.
    mail_left: bool,
}

/// Body of a worker's thread. It first pins itself, so that its buffers are in the memory nearest
/// to its core.
pub(crate) fn run(mut start: ThreadStart) -> io::Result<()> {
    if let Some(core) = start.core
        && !core_affinity::set_for_current(core)
    {
        warn!(worker = start.index, core = core.id, "the worker could not be pinned to its core");
    }
    let (index, settings, shared) = (start.index, start.settings, Arc::clone(&start.shared));
    match start.owner.take() {
        None => work(start, || Worker::new(index, settings, shared)),
        Some(owner) => work(start, || RawWorker::new(index, settings, shared, owner)),
    }
}

/// Makes the worker, and runs it until the engine stops.
fn work<W: Drive>(start: ThreadStart, make: impl FnOnce() -> W) -> io::Result<()> {
    start.tables.install();
    let registry = start.poll.registry().try_clone()?;
    let stall_check = (start.settings.limits.stalled / LOOKS_PER_STALL).min(MAX_STALL_CHECK);
    let thread = WorkerThread {
        worker: make(),
        sockets: Sockets::new(registry, &start.settings.limits),
        poll: start.poll,
        waits: WaitStatistics::new(start.idle),
        turn: TurnLength::new(start.settings.limits.bytes_per_turn),
        fresh_only: 0,
        versions: start.versions,
        inbox: start.inbox,
        taken: 0,
        shared: start.shared,
        index: start.index,
        halt: start.halt,
        epoch: start.epoch,
        settings: start.settings,
        stall_check,
        next_stall_check: stall_check,
        meter: IdleMeter::default(),
        mail_left: false,
    };
    thread.work()
}

impl<W: Drive> WorkerThread<W> {
    fn work(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        while !self.halt.is_stopping() {
            self.wait(&mut events)?;
            self.handle_events(&events);
            self.accept();
            self.read_ready();
            self.mail_left = self.worker.mail(self.sockets.now, &mut self.sockets);
            self.worker.timers(self.sockets.now, &mut self.sockets);
            self.check_sockets();
            self.tell_how_busy();
        }
        self.shut_down();
        Ok(())
    }

    /// Waits for work: polls if that pays, then sleeps.
    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        if self.has_work() {
            self.poll(events, Some(Duration::ZERO))?;
            let now = self.epoch.elapsed();
            self.end_turn(now);
            self.sockets.now = now;
            return Ok(());
        }
        let began = self.epoch.elapsed();
        self.end_turn(began);
        if !self.poll_events(events, began)? {
            self.sleep(events, began)?;
        }
        self.sockets.now = self.epoch.elapsed();
        self.meter.idle += self.sockets.now.saturating_sub(began);
        Ok(())
    }

    /// Records the length of the turn that ends now.
    fn end_turn(&mut self, now: Duration) {
        let length = now.saturating_sub(self.sockets.now);
        self.inbox.turns.record(length);
        self.turn.record(std::mem::take(&mut self.fresh_only), length);
    }

    /// Polls repeatedly, for as long as that pays. `true`: there is work.
    fn poll_events(&mut self, events: &mut Events, began: Duration) -> io::Result<bool> {
        let spin = self.waits.spin();
        if spin == Some(Duration::ZERO) {
            return Ok(false);
        }
        let until = match (self.sleep_time(began), spin) {
            (Some(sleep), None) => Some(sleep),
            (Some(sleep), Some(spin)) => Some(sleep.min(spin)),
            (None, spin) => spin,
        };
        loop {
            self.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() || self.has_work() {
                self.waits.record_poll(true);
                return Ok(true);
            }
            if until.is_some_and(|until| self.epoch.elapsed().saturating_sub(began) >= until) {
                self.waits.record_poll(false);
                return Ok(spin.is_none());
            }
        }
    }

    /// Sleeps until an event, a wake-up, or the next timer.
    fn sleep(&mut self, events: &mut Events, began: Duration) -> io::Result<()> {
        self.inbox.sleeper.falls_asleep();
        let now = self.epoch.elapsed();
        let timeout = if self.has_work() { Some(Duration::ZERO) } else { self.sleep_time(now) };
        let outcome = self.poll(events, timeout);
        self.inbox.sleeper.is_awake();
        if !events.is_empty() {
            self.waits.slept(self.epoch.elapsed().saturating_sub(began));
        }
        outcome
    }

    fn poll(&mut self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    fn has_work(&self) -> bool {
        let mailbox = self.shared.mailbox(self.index);
        !self.sockets.ready.is_empty()
            || self.mail_left
            || !self.inbox.channels.is_empty()
            || mailbox.is_some_and(|mailbox| !mailbox.is_empty())
            || self.halt.is_stopping()
    }

    /// Time until the next timer; `None` to sleep until an event. Connections that linger or may
    /// have stalled have no events.
    fn sleep_time(&self, now: Duration) -> Option<Duration> {
        let timer = self.worker.next_timer().map(|at| at.saturating_sub(now));
        let linger = self.sockets.lingering.wait(now);
        let connected = self.worker.connections() > 0;
        let stall = connected.then(|| self.next_stall_check.saturating_sub(now));
        // Other workers must see that it is no longer busy.
        let meter = self.meter.was_busy.then(|| self.meter.until().saturating_sub(now));
        [timer, linger, stall, meter].into_iter().flatten().min()
    }

    fn handle_events(&mut self, events: &Events) {
        for event in events {
            if event.token() == WAKE {
                continue;
            }
            let Token(key) = event.token();
            if event.is_writable() {
                self.drain(key);
            }
            if event.is_read_closed() || event.is_error() {
                self.sockets.hung_up(key);
            }
            if event.is_readable() || event.is_read_closed() || event.is_error() {
                self.sockets.make_ready(key);
            }
        }
    }

    fn drain(&mut self, key: ConnectionKey) {
        let Some(drained) = self.sockets.drain(key) else { return };
        if drained.took {
            self.worker.drained(key, drained.queued, self.sockets.now);
        }
        if drained.resume {
            self.sockets.make_ready(key);
        }
        if let Some(waited) = drained.emptied {
            self.inbox.queues.record(waited);
        }
    }

    /// Returns the versions of the address that a connection came to, if it has its own.
    fn versions_of(&self, channel: &Channel) -> io::Result<Option<Versions>> {
        if self.versions.is_empty() {
            return Ok(None);
        }
        let local = channel.local()?;
        let is_at = |address: &SocketAddr| {
            let is_any = address.ip().is_unspecified() && address.is_ipv4() == local.is_ipv4();
            address.port() == local.port() && (is_any || address.ip() == local.ip())
        };
        let own = self.versions.iter().find(|(address, _)| is_at(address));
        Ok(own.map(|(_, versions)| *versions))
    }

    /// Opens the connections that the acceptor has passed.
    fn accept(&mut self) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(channel) = self.inbox.channels.pop() else { return };
            self.taken += 1;
            let result = channel.peer().and_then(|peer| {
                let versions = self.versions_of(&channel)?;
                let key = self.worker.next_key();
                self.sockets.insert(key, channel)?;
                Ok((peer, versions))
            });
            match result {
                Ok((peer, versions)) => {
                    self.worker.open_in(peer, versions, self.sockets.now, &mut self.sockets);
                }
                // It was closed before its turn.
                Err(error) => debug!(%error, "a new connection was gone already"),
            }
        }
    }

    /// Gives one turn to each switch whose bytes have just come, then to those that had more bytes
    /// than a read takes, for [`round_time`] and at least as long as the first took.
    fn read_ready(&mut self) {
        let (fresh, all) = self.sockets.ready.lens();
        self.sockets.begin_round(all);
        self.worker.set_turn_bytes(self.turn.bytes());
        for _ in 0..fresh {
            let Some(key) = self.sockets.ready.pop_fresh() else { break };
            self.read_one(key);
        }
        match all - fresh {
            0 => self.fresh_only = fresh as u32,
            backlogged => self.read_backlogged(fresh, backlogged),
        }
        self.sockets.end_round();
    }

    /// The second part of a round, after turns of `fresh` switches.
    fn read_backlogged(&mut self, fresh: usize, switches: usize) {
        let mut last = self.epoch.elapsed();
        let first_part = last.saturating_sub(self.sockets.now);
        self.turn.record(fresh as u32, first_part);
        let end = last + first_part.max(round_time(fresh + switches));
        for _ in 0..switches {
            let Some(key) = self.sockets.ready.pop_backlogged() else { return };
            self.worker.set_turn_bytes(self.turn.bytes());
            self.read_one(key);
            let now = self.epoch.elapsed();
            self.turn.record(1, now.saturating_sub(last));
            last = now;
            if now >= end {
                return;
            }
        }
    }

    fn read_one(&mut self, key: ConnectionKey) {
        let turn = self.sockets.take_turn(key);
        let has_more = match turn {
            ReadTurn::Gone => false,
            ReadTurn::Paused => {
                self.worker.counters().pauses.add(1);
                false
            }
            ReadTurn::Later => return self.sockets.ready.push_backlogged(key),
            ReadTurn::Read => self.worker.read(key, self.sockets.now, &mut self.sockets),
            ReadTurn::Shed => self.worker.read_share(key, self.sockets.now, &mut self.sockets),
        };
        if has_more {
            self.sockets.make_ready_again(key);
        }
    }

    /// Handles connections that failed, stalled, or linger.
    fn check_sockets(&mut self) {
        for key in self.sockets.take_failed() {
            self.worker.closed(key, self.sockets.now, &mut self.sockets);
        }
        if self.sockets.now >= self.next_stall_check {
            self.next_stall_check = self.sockets.now + self.stall_check;
            let limit = self.settings.limits.stalled;
            let blocked = self.sockets.look_at_blocked(self.stall_check, limit);
            // Taken bytes count as a sign of life: the echo request may be behind all of them.
            for (key, queued) in blocked.slow {
                self.worker.drained(key, queued, self.sockets.now);
            }
            for key in blocked.stalled {
                self.worker.stalled(key, self.sockets.now, &mut self.sockets);
            }
        }
        self.sockets.lingering.check(self.sockets.now);
        self.tell_load();
    }

    /// Ends the present window of the load, if it is over.
    fn tell_how_busy(&mut self) {
        let now = self.sockets.now;
        if now < self.meter.until() {
            return;
        }
        let window = now.saturating_sub(self.meter.since);
        let busy = window.saturating_sub(self.meter.idle);
        self.worker.window(busy, window, now, &mut self.sockets);
        self.meter = IdleMeter { since: now, idle: Duration::ZERO, was_busy: busy > QUIET };
    }

    fn tell_load(&self) {
        let ended = self.taken.wrapping_sub(self.worker.connections());
        self.inbox.ended.store(ended, Ordering::Relaxed);
    }

    /// Closes all connections, with time to send their last bytes.
    fn shut_down(&mut self) {
        self.sockets.now = self.epoch.elapsed();
        let deadline = self.sockets.now + STOP_DRAIN;
        self.sockets.lingering.stop_at(deadline);
        self.sockets.lingering.take_lost();
        self.worker.stop(self.sockets.now, &mut self.sockets);
        self.tell_load();
        while !self.sockets.lingering.is_empty() {
            std::thread::sleep(STOP_CHECK);
            self.sockets.now = self.epoch.elapsed();
            self.sockets.lingering.check(self.sockets.now);
        }
        let lost = self.sockets.lingering.take_lost();
        if lost.connections > 0 {
            warn!(
                worker = self.index,
                switches = lost.connections,
                bytes = lost.bytes,
                "some switches did not read their last messages"
            );
        }
    }
}
