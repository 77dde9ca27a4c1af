//! A thread of the generator. Its switches take turns, and it follows the lead's phases.
//!
//! A turn is one read and one write of one switch. A switch has a turn when the poller reports it,
//! when its last turn left work, or when one of its packets is due. Otherwise the thread sleeps. It
//! never spins: a closed loop waits for answers, an open loop for the time.

mod connection;
mod desk;
mod reply;
mod transport;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::control::{RunControl, RunPhase, ThreadMeasurement, ThreadReport};
use crate::error::BenchError;
use crate::load::{Load, LoadMode};
use crate::poller::{Poller, Ready};
use crate::usage::{ReadCounter, thread_cpu};
use crate::verify::AnswerTally;
use connection::{ConnectionTrouble, DriverConnection, DriverStage, DriverTurn};
use desk::{Desk, Schedule};

/// Interval of checks of phases, timeouts and connections to start.
const TICK: Duration = Duration::from_millis(5);

/// Interval of checks for packets without an answer.
const GIVE_UP_EVERY: Duration = Duration::from_millis(50);

/// Maximum number of switches per thread that connect at the same time before a test.
const CONNECTING: usize = 64;

/// Silence after which the controller is taken to be done with new switches.
const QUIET: Duration = Duration::from_millis(100);

/// Maximum wait for such silence; some controllers never stop asking.
const QUIET_WAIT: Duration = Duration::from_secs(3);

/// Maximum wait for answers after a run, while they come.
const DRAIN_WAIT: Duration = Duration::from_secs(10);

/// The part of a test that one thread runs.
pub(crate) struct Driver {
    thread: usize,
    load: Arc<Load>,
    control: Arc<RunControl>,
    notes: Sender<ThreadReport>,
    poller: Poller,
    connections: Vec<DriverConnection>,
    queue: VecDeque<usize>,
    desk: Desk,
    /// Number of the current phase.
    seen: u64,
    entered_ns: u64,
    ticked_ns: u64,
    gave_up_ns: u64,
    /// CPU time when the measurement began.
    cpu: Duration,
    failed_connections: u64,
    /// Whether the lead knows that the phase is done.
    notified: bool,
}

impl Driver {
    /// Creates one of `threads` threads, with every `threads`-th switch of the load.
    pub(crate) fn new(
        load: Arc<Load>,
        control: Arc<RunControl>,
        notes: Sender<ThreadReport>,
        thread: usize,
        threads: usize,
    ) -> Result<Self, BenchError> {
        let indexes = (0..load.switches).skip(thread).step_by(threads);
        let connection = |(place, index)| {
            let dpid = load.first_dpid + index;
            DriverConnection::new(dpid, place, load.version, load.buffered, load.in_flight())
        };
        Ok(Driver {
            thread,
            connections: indexes.enumerate().map(connection).collect(),
            desk: Desk::new(&load)?,
            poller: Poller::new().map_err(BenchError::system("create a poller"))?,
            load,
            control,
            notes,
            queue: VecDeque::new(),
            seen: 0,
            entered_ns: 0,
            ticked_ns: 0,
            gave_up_ns: 0,
            cpu: Duration::ZERO,
            failed_connections: 0,
            notified: false,
        })
    }

    /// Runs all phases to the last. Reports errors to the lead.
    pub(crate) fn run(mut self) {
        // Without it, short sleeps end up to 50 µs late.
        let slack = std::num::NonZeroU64::MIN;
        let _ = rustix::thread::set_current_timer_slack(Some(slack));
        if let Err(error) = self.go() {
            let measuring = self.desk.phase == RunPhase::Measure;
            let measured = measuring.then(|| Box::new(self.measured()));
            // If this fails, the lead has ended already.
            let _ = self.notes.send(ThreadReport::Failed {
                error,
                measured,
                tally: self.desk.counted(),
            });
        }
    }

    fn go(&mut self) -> Result<(), BenchError> {
        let mut ready: Vec<Ready> = Vec::new();
        loop {
            let (number, phase) = self.control.phase();
            if number != self.seen {
                self.seen = number;
                if phase == RunPhase::Close {
                    return Ok(());
                }
                self.enter(phase);
            }
            let wait = self.wait();
            self.poller.wait(wait, &mut ready).map_err(BenchError::system("wait"))?;
            for event in &ready {
                if let Some(connection) = self.connections.get_mut(event.token) {
                    connection.ready(event.readable, event.writable);
                }
                self.enqueue(event.token);
            }
            self.enqueue_due();
            for _ in 0..self.queue.len() {
                if let Some(place) = self.queue.pop_front() {
                    self.turn(place)?;
                }
            }
            let now_ns = self.control.now_ns();
            if now_ns - self.ticked_ns >= TICK.as_nanos() as u64 {
                self.ticked_ns = now_ns;
                self.tick(now_ns)?;
            }
        }
    }

    /// Returns how long to wait for the poller.
    fn wait(&self) -> Duration {
        if !self.queue.is_empty() {
            return Duration::ZERO;
        }
        match self.desk.mode {
            LoadMode::Rate(_) if self.desk.is_loaded() => {
                let next_ns = self.desk.schedule.next_ns();
                Duration::from_nanos(next_ns.saturating_sub(self.control.now_ns())).min(TICK)
            }
            _ => TICK,
        }
    }

    fn enqueue(&mut self, place: usize) {
        if let Some(connection) = self.connections.get_mut(place)
            && !std::mem::replace(&mut connection.queued, true)
        {
            self.queue.push_back(place);
        }
    }

    /// Gives a turn to each switch with a packet that is due.
    fn enqueue_due(&mut self) {
        if !matches!(self.desk.mode, LoadMode::Rate(_)) || !self.desk.is_loaded() {
            return;
        }
        let now_ns = self.control.now_ns();
        while let Some(place) = self.desk.schedule.next_due(now_ns) {
            if let Some(connection) = self.connections.get_mut(place) {
                connection.due += 1;
            }
            self.enqueue(place);
        }
    }

    fn turn(&mut self, place: usize) -> Result<(), BenchError> {
        let now_ns = self.control.now_ns();
        let Some(connection) = self.connections.get_mut(place) else { return Ok(()) };
        connection.queued = false;
        let (before, done) = (connection.stage, connection.done);
        let state = connection.turn(&mut self.desk, now_ns);
        let (after, done) = (connection.stage, connection.done - done);
        if done > 0 {
            self.control.done.fetch_add(done, Ordering::Relaxed);
        }
        match state {
            Ok(DriverTurn::More) => self.enqueue(place),
            Ok(DriverTurn::Idle) => {}
            Err(trouble) => return self.trouble(place, trouble),
        }
        if before < DriverStage::Up && after >= DriverStage::Up {
            self.control.up.fetch_add(1, Ordering::Relaxed);
            if self.load.mode.is_connecting() {
                self.known(place, now_ns)?;
            }
        }
        Ok(())
    }

    /// Handles the end of a connection. If the test counts connections, the switch connects again.
    fn trouble(&mut self, place: usize, trouble: ConnectionTrouble) -> Result<(), BenchError> {
        let Some(connection) = self.connections.get_mut(place) else { return Ok(()) };
        let dpid = connection.dpid;
        match trouble {
            ConnectionTrouble::Encode(error) => Err(error.into()),
            ConnectionTrouble::Protocol(close) => Err(BenchError::Protocol { dpid, close }),
            ConnectionTrouble::Connect(error)
                if error.kind() == io::ErrorKind::ConnectionRefused =>
            {
                Err(BenchError::NobodyListens(self.load.target))
            }
            _ if self.load.mode.is_connecting() => {
                connection.reset();
                self.failed_connections += 1;
                Ok(())
            }
            ConnectionTrouble::Connect(error) => {
                Err(BenchError::Connect { address: self.load.target, error })
            }
            ConnectionTrouble::Closed(reason) => {
                let when = match self.desk.phase {
                    RunPhase::Load | RunPhase::Measure => "in the middle of a run",
                    RunPhase::Drain => "after a run",
                    _ if connection.stage < DriverStage::Up => "during the handshake",
                    _ => "before the first run",
                };
                Err(BenchError::Closed { dpid, when, reason })
            }
        }
    }

    /// Counts a switch that is up, in the modes that measure connections.
    fn known(&mut self, place: usize, now_ns: u64) -> Result<(), BenchError> {
        let Some(connection) = self.connections.get_mut(place) else { return Ok(()) };
        self.desk.latency.add(now_ns.saturating_sub(connection.since_ns));
        connection.done += 1;
        self.control.done.fetch_add(1, Ordering::Relaxed);
        if self.load.mode == LoadMode::Connect {
            connection.reset();
            self.connect(place, now_ns)?;
        }
        Ok(())
    }

    fn connect(&mut self, place: usize, now_ns: u64) -> Result<(), BenchError> {
        let Some(connection) = self.connections.get_mut(place) else { return Ok(()) };
        let address = self.load.target;
        let socket = connection
            .connect(address, self.load.tls.as_ref(), now_ns)
            .map_err(|error| BenchError::Connect { address, error })?;
        self.poller.add(socket, place).map_err(BenchError::system("watch a connection"))
    }

    fn enter(&mut self, phase: RunPhase) {
        let now_ns = self.control.now_ns();
        if self.desk.phase == RunPhase::Measure {
            let measured = Box::new(self.measured());
            self.notify(ThreadReport::Measured(measured));
        }
        match phase {
            RunPhase::Load => {
                self.desk.tally = AnswerTally::default();
                if let LoadMode::Rate(rate) = self.load.mode {
                    self.desk.schedule = Schedule::new(rate, self.connections.len(), now_ns);
                    self.connections.iter_mut().for_each(DriverConnection::reschedule);
                }
            }
            RunPhase::Measure => {
                self.connections.iter_mut().for_each(|connection| connection.done = 0);
                self.desk.latency.take();
                self.desk.lateness.take();
                self.desk.reads = ReadCounter::default();
                self.failed_connections = 0;
                self.cpu = thread_cpu();
            }
            RunPhase::Drain if self.load.mode.is_connecting() => {
                self.connections.iter_mut().for_each(DriverConnection::reset);
            }
            _ => {}
        }
        self.desk.phase = phase;
        self.entered_ns = now_ns;
        self.notified = false;
        (0..self.connections.len()).for_each(|place| self.enqueue(place));
        if matches!(phase, RunPhase::Load | RunPhase::Measure) {
            self.notify(ThreadReport::Entered);
        }
    }

    fn measured(&mut self) -> ThreadMeasurement {
        ThreadMeasurement {
            thread: self.thread,
            elapsed: self.in_phase(self.control.now_ns()),
            cpu: thread_cpu().saturating_sub(self.cpu),
            done: self.connections.iter().map(|connection| connection.done).collect(),
            latency: self.desk.latency.take(),
            lateness: self.desk.lateness.take(),
            failed_connections: self.failed_connections,
            reads: self.desk.reads,
        }
    }

    fn in_phase(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(self.entered_ns))
    }

    fn notify(&mut self, note: ThreadReport) {
        // If this fails, the lead has ended already, and this thread will end too.
        let _ = self.notes.send(note);
    }

    fn notify_once(&mut self, note: ThreadReport) {
        if !std::mem::replace(&mut self.notified, true) {
            self.notify(note);
        }
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), BenchError> {
        match self.desk.phase {
            RunPhase::Idle | RunPhase::Close => Ok(()),
            RunPhase::Connect => self.tick_connect(now_ns),
            RunPhase::Learn => {
                let learnt = self.count(DriverStage::Learnt);
                if learnt == self.connections.len() {
                    self.notify_once(ThreadReport::Ready);
                    return Ok(());
                }
                self.check_learnt(now_ns, learnt)
            }
            RunPhase::Load | RunPhase::Measure if self.load.mode.is_connecting() => {
                self.tick_connecting(now_ns)
            }
            RunPhase::Load | RunPhase::Measure => {
                self.give_up(now_ns);
                Ok(())
            }
            RunPhase::Drain => {
                self.tick_drain(now_ns);
                Ok(())
            }
        }
    }

    fn count(&self, stage: DriverStage) -> usize {
        self.connections.iter().filter(|connection| connection.stage >= stage).count()
    }

    fn check_timeout(
        &self,
        now_ns: u64,
        since_ns: u64,
        what: &'static str,
        ready: usize,
    ) -> Result<(), BenchError> {
        let waited = self.load.connect_timeout;
        if now_ns.saturating_sub(since_ns) < waited.as_nanos() as u64 {
            return Ok(());
        }
        Err(BenchError::NeverAnswers {
            what,
            waited,
            ready: ready as u32,
            switches: self.connections.len() as u32,
            hint: "see its log, or allow more time with --connect-timeout",
        })
    }

    /// Returns an error if the controller takes too long to learn. Other messages do not extend the
    /// time: a controller that floods each ARP sends all the time.
    fn check_learnt(&self, now_ns: u64, learnt: usize) -> Result<(), BenchError> {
        let waited = self.load.learn_timeout;
        if self.in_phase(now_ns) < waited {
            return Ok(());
        }
        Err(BenchError::LearnsTooSlowly {
            destinations: self.load.destinations_of_all(),
            waited,
            ready: learnt as u32,
            switches: self.connections.len() as u32,
        })
    }

    /// Connects the next switches. Waits until all are up and the controller is quiet.
    fn tick_connect(&mut self, now_ns: u64) -> Result<(), BenchError> {
        let started = self.count(DriverStage::Connecting);
        let up = self.count(DriverStage::Up);
        let wanted = match self.load.ramp_per_second {
            0 => usize::MAX,
            rate => {
                let share = self.connections.len() as f64 / f64::from(self.load.switches);
                (self.in_phase(now_ns).as_secs_f64() * f64::from(rate) * share) as usize + 1
            }
        };
        let most = self.connections.len().min(wanted).min(up + CONNECTING);
        for place in started..most {
            self.connect(place, now_ns)?;
        }
        let late = self.connections.iter().filter(|connection| connection.stage < DriverStage::Up);
        let oldest = late.filter(|connection| connection.stage > DriverStage::Closed);
        if let Some((since_ns, stage)) =
            oldest.map(|connection| (connection.since_ns, connection.stage)).min()
        {
            let what = match stage {
                DriverStage::Connecting => "accept a connection",
                DriverStage::Securing => "finish the handshake of TLS",
                DriverStage::Greeting => "ask for the features of a switch",
                _ => "answer an echo",
            };
            return self.check_timeout(now_ns, since_ns, what, up);
        }
        if up < self.connections.len() {
            return Ok(());
        }
        let silent_ns = now_ns.saturating_sub(self.desk.heard_ns);
        let last_up = self.connections.iter().map(|connection| connection.since_ns).max();
        let since_up_ns = now_ns.saturating_sub(last_up.unwrap_or(0));
        if silent_ns >= QUIET.as_nanos() as u64 || since_up_ns >= QUIET_WAIT.as_nanos() as u64 {
            self.notify_once(ThreadReport::Ready);
        }
        Ok(())
    }

    /// Connects switches that are not connected, in the modes that measure connections.
    fn tick_connecting(&mut self, now_ns: u64) -> Result<(), BenchError> {
        let late_ns = now_ns.saturating_sub(self.load.connect_timeout.as_nanos() as u64);
        let mut up = 0;
        for place in 0..self.connections.len() {
            let Some(connection) = self.connections.get_mut(place) else { break };
            match connection.stage {
                DriverStage::Closed => self.connect(place, now_ns)?,
                DriverStage::Up | DriverStage::Learnt => up += 1,
                _ if connection.since_ns < late_ns => {
                    connection.reset();
                    self.failed_connections += 1;
                    self.connect(place, now_ns)?;
                }
                _ => {}
            }
        }
        if self.load.mode == LoadMode::Storm && up == self.connections.len() {
            self.notify_once(ThreadReport::Ready);
        }
        Ok(())
    }

    /// Gives up packets whose answers will not come, and counts them.
    fn give_up(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.gave_up_ns) < GIVE_UP_EVERY.as_nanos() as u64 {
            return;
        }
        self.gave_up_ns = now_ns;
        let timeout_ns = self.load.answer_timeout.as_nanos() as u64;
        for place in 0..self.connections.len() {
            let Some(connection) = self.connections.get_mut(place) else { break };
            let before = connection.window.room();
            let gone = connection.window.give_up(now_ns, timeout_ns);
            let tally = &mut self.desk.tally;
            tally.missing += gone.missing;
            tally.without_flow += gone.without_flow;
            tally.without_packet += gone.without_packet;
            if connection.window.room() > before {
                self.enqueue(place);
            }
        }
    }

    fn tick_drain(&mut self, now_ns: u64) {
        if self.notified {
            return;
        }
        self.give_up(now_ns);
        let in_flight = self.connections.iter().map(|connection| connection.window.in_flight());
        let in_flight: u64 = in_flight.sum();
        if in_flight > 0 && self.in_phase(now_ns) < DRAIN_WAIT {
            return;
        }
        self.desk.tally.unfinished += in_flight;
        let tally = self.desk.counted();
        self.notify_once(ThreadReport::Drained(tally));
    }
}
