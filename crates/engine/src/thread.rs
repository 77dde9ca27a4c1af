//! A worker's thread: wait, read the ready ones once each, mail, timers, and again.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bellrock_worker::{Key, LOAD_WINDOW, Settings, Shared, Worker};
use crossbeam_queue::ArrayQueue;
use mio::event::Events;
use mio::net::TcpStream;
use mio::{Poll, Token};
use tracing::{debug, warn};

use crate::halt::Halt;
use crate::idle::{Idle, Waits};
use crate::sockets::{Sockets, Turn};
use crate::waker::Sleeper;

/// The token of the wake-up; no connection has so large a key.
pub(crate) const WAKE: Token = Token(usize::MAX);

/// Events taken from the poller at a time.
const EVENTS: usize = 1024;

/// Looks at a connection with waiting bytes within the time after which it counts as stalled.
const LOOKS_PER_STALL: u32 = 4;

/// Maximum time between two such looks.
const MAX_STALL_CHECK: Duration = Duration::from_secs(1);

/// New connections taken in before switches are read again.
const ACCEPTS_PER_TURN: usize = 128;

/// How long connections may take to fetch their last bytes when the controller stops.
const STOP_DRAIN: Duration = Duration::from_secs(2);

/// How often it is looked whether they have.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// Connections that wait for their worker to take them in; more are closed at once.
const INBOX: usize = 4096;

/// Where the acceptor leaves connections for a worker.
pub(crate) struct Inbox {
    /// New connections.
    pub(crate) streams: ArrayQueue<std::net::TcpStream>,
    /// Connections that the acceptor has left here; it alone writes this.
    pub(crate) given: AtomicUsize,
    /// Those of them that are gone, less those that other workers have handed over to this one, so
    /// it may wrap around below zero; the worker alone writes this.
    gone: AtomicUsize,
    pub(crate) sleeper: Sleeper,
}

impl Inbox {
    pub(crate) fn new(sleeper: Sleeper) -> Self {
        let (given, gone) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Inbox { streams: ArrayQueue::new(INBOX), given, gone, sleeper }
    }

    /// Connections that the worker has or is about to get.
    pub(crate) fn load(&self) -> usize {
        let gone = self.gone.load(Ordering::Relaxed);
        let load = self.given.load(Ordering::Relaxed).wrapping_sub(gone);
        // Below zero for a moment: it has told that one is gone, and the acceptor's word that it
        // was given is not seen yet.
        if load > usize::MAX / 2 { 0 } else { load }
    }

    /// Closes what the acceptor has left. Only when both have ended.
    pub(crate) fn clear(&self) {
        while self.streams.pop().is_some() {
            self.gone.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Everything that a thread is started with.
pub(crate) struct Start {
    pub(crate) index: usize,
    pub(crate) core: Option<core_affinity::CoreId>,
    pub(crate) settings: Settings,
    pub(crate) idle: Idle,
    pub(crate) shared: Arc<Shared>,
    pub(crate) poll: Poll,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) halt: Arc<Halt>,
    /// The start of time for all workers.
    pub(crate) epoch: Instant,
}

/// How busy a worker may be in a window to be taken for as good as idle: it need not wake up only
/// to tell that it is idle now.
const QUIET: Duration = Duration::from_millis(10);

/// What of the present window of time was spent on waiting.
#[derive(Default)]
struct Meter {
    since: Duration,
    idle: Duration,
    /// In the window before there was more to do than [`QUIET`].
    was_busy: bool,
}

impl Meter {
    fn until(&self) -> Duration {
        self.since + LOAD_WINDOW
    }
}

/// A worker and its world.
pub(crate) struct Thread {
    worker: Worker,
    sockets: Sockets,
    poll: Poll,
    waits: Waits,
    /// Sockets to be read, each once, in this order.
    ready: VecDeque<Key>,
    inbox: Arc<Inbox>,
    /// Connections that were taken out of it.
    taken: usize,
    shared: Arc<Shared>,
    index: usize,
    halt: Arc<Halt>,
    epoch: Instant,
    settings: Settings,
    /// Time between two looks at connections with waiting bytes.
    stall_check: Duration,
    next_stall_check: Duration,
    /// How busy the worker is.
    meter: Meter,
    /// Mail was left from the last turn.
    mail_left: bool,
}

/// The body of a worker's thread. It pins itself first, so that the buffers that it allocates then
/// lie in the memory nearest to its core.
pub(crate) fn run(start: Start) -> io::Result<()> {
    if let Some(core) = start.core
        && !core_affinity::set_for_current(core)
    {
        warn!(worker = start.index, core = core.id, "the worker could not be pinned to its core");
    }
    let registry = start.poll.registry().try_clone()?;
    let stall_check = (start.settings.limits.stalled / LOOKS_PER_STALL).min(MAX_STALL_CHECK);
    let thread = Thread {
        worker: Worker::new(start.index, start.settings, Arc::clone(&start.shared)),
        sockets: Sockets::new(registry, &start.settings.limits),
        poll: start.poll,
        waits: Waits::new(start.idle),
        ready: VecDeque::new(),
        inbox: start.inbox,
        taken: 0,
        shared: start.shared,
        index: start.index,
        halt: start.halt,
        epoch: start.epoch,
        settings: start.settings,
        stall_check,
        next_stall_check: stall_check,
        meter: Meter::default(),
        mail_left: false,
    };
    thread.work()
}

impl Thread {
    fn work(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        while !self.halt.is_stopping() {
            self.wait(&mut events)?;
            self.look_at(&events);
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

    /// Waits until something is to be done: asks first where that pays, then sleeps.
    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        if self.has_work() {
            self.poll(events, Some(Duration::ZERO))?;
            self.sockets.now = self.epoch.elapsed();
            return Ok(());
        }
        let began = self.epoch.elapsed();
        if !self.ask(events, began)? {
            self.sleep(events, began)?;
        }
        self.sockets.now = self.epoch.elapsed();
        self.meter.idle += self.sockets.now.saturating_sub(began);
        Ok(())
    }

    /// Asks again and again, for as long as that pays. `true`: there is something to do.
    fn ask(&mut self, events: &mut Events, began: Duration) -> io::Result<bool> {
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
                self.waits.asked(true);
                return Ok(true);
            }
            if until.is_some_and(|until| self.epoch.elapsed().saturating_sub(began) >= until) {
                self.waits.asked(false);
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
        !self.ready.is_empty()
            || self.mail_left
            || !self.inbox.streams.is_empty()
            || mailbox.is_some_and(|mailbox| !mailbox.is_empty())
            || self.halt.is_stopping()
    }

    /// Time to the next timer; `None` to sleep until an event. Connections that are being closed,
    /// or may have stalled, have no events of their own.
    fn sleep_time(&self, now: Duration) -> Option<Duration> {
        let timer = self.worker.next_timer().map(|at| at.saturating_sub(now));
        let linger = self.sockets.lingering.wait(now);
        let connected = self.worker.connections() > 0;
        let stall = connected.then(|| self.next_stall_check.saturating_sub(now));
        // The others have to hear that it is not busy any more.
        let meter = self.meter.was_busy.then(|| self.meter.until().saturating_sub(now));
        [timer, linger, stall, meter].into_iter().flatten().min()
    }

    fn look_at(&mut self, events: &Events) {
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
                self.make_ready(key);
            }
        }
    }

    fn make_ready(&mut self, key: Key) {
        if self.sockets.mark_ready(key) {
            self.ready.push_back(key);
        }
    }

    fn drain(&mut self, key: Key) {
        let Some(drained) = self.sockets.drain(key) else { return };
        if drained.took {
            self.worker.drained(key, drained.left, self.sockets.now);
        }
        if drained.resume {
            self.make_ready(key);
        }
    }

    /// Takes in what the acceptor has left.
    fn accept(&mut self) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(stream) = self.inbox.streams.pop() else { return };
            self.taken += 1;
            let taken = stream.peer_addr().and_then(|peer| {
                let key = self.worker.next_key();
                self.sockets.insert(key, TcpStream::from_std(stream))?;
                Ok(peer)
            });
            match taken {
                Ok(peer) => self.worker.open(peer, self.sockets.now, &mut self.sockets),
                // It was closed before its turn came.
                Err(error) => debug!(%error, "a new connection was gone already"),
            }
        }
    }

    /// One turn for each switch that was ready when the round began.
    fn read_ready(&mut self) {
        let switches = self.ready.len();
        self.sockets.begin_round(switches);
        for _ in 0..switches {
            let Some(key) = self.ready.pop_front() else { break };
            match self.sockets.take_turn(key) {
                Turn::Gone => {}
                Turn::Paused => self.worker.counters().pauses.add(1),
                Turn::Later => self.ready.push_back(key),
                Turn::Read => {
                    if self.worker.read(key, self.sockets.now, &mut self.sockets) {
                        self.make_ready(key);
                    }
                }
            }
        }
        self.sockets.end_round();
    }

    /// Connections that failed, stalled, or are being closed.
    fn check_sockets(&mut self) {
        for key in self.sockets.take_failed() {
            self.worker.closed(key, self.sockets.now, &mut self.sockets);
        }
        if self.sockets.now >= self.next_stall_check {
            self.next_stall_check = self.sockets.now + self.stall_check;
            let limit = self.settings.limits.stalled;
            let blocked = self.sockets.look_at_blocked(self.stall_check, limit);
            // Bytes taken count as a sign of life: the answer to an echo may stand behind all of them.
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

    /// Ends the window in which it was counted how busy the worker is, when that is over.
    fn tell_how_busy(&mut self) {
        let now = self.sockets.now;
        if now < self.meter.until() {
            return;
        }
        let window = now.saturating_sub(self.meter.since);
        let busy = window.saturating_sub(self.meter.idle);
        self.worker.window(busy, window, now, &mut self.sockets);
        self.meter = Meter { since: now, idle: Duration::ZERO, was_busy: busy > QUIET };
    }

    fn tell_load(&self) {
        let gone = self.taken.wrapping_sub(self.worker.connections());
        self.inbox.gone.store(gone, Ordering::Relaxed);
    }

    /// Lets every connection fetch its last bytes.
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
                "some switches did not fetch their last messages"
            );
        }
    }
}
