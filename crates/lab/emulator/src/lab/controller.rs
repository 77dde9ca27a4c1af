//! The controller of the lab: the engine's workers, without its threads.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bellrock_api::runtime::Chain;
use bellrock_api::{Dpid, Network};
use bellrock_worker::{
    AppCounter, ConnectionKey, Drive, Mailbox, SeenHost, SharedParts, SharedState, TaskInfo,
    TaskWorker, Wake, Worker, WorkerQuery, WorkerSettings,
};

use super::wires::{WireId, WorkerOutput, WorkerWires};

/// Maximum number of hosts that each worker reports.
const MAX_HOSTS_TOLD: usize = 1 << 20;

/// The switches' address for apps.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Maximum number of turns of the task worker at one moment, each of up to some hundred tasks. A
/// task that is always ready would stop the clock: it continues after [`TASK_PAUSE`].
const TASK_TURNS: usize = 16;

/// See [`TASK_TURNS`].
const TASK_PAUSE: Duration = Duration::from_micros(100);

/// The clock for apps, in nanoseconds.
#[derive(Clone, Default)]
struct LabClock(Arc<AtomicU64>);

impl LabClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, now: Duration) {
        self.0.store(now.as_nanos() as u64, Ordering::Relaxed);
    }
}

/// A waker that does nothing: the lab checks the mailboxes after every event.
struct NoopWake;

impl Wake for NoopWake {
    fn wake(&self) {}
}

/// Workers that take turns in one thread.
pub(super) struct LabController {
    shared: Arc<SharedState>,
    clock: LabClock,
    tasks: TaskWorker,
    /// When tasks that were ready for too long continue.
    tasks_go_on: Option<Duration>,
    workers: Vec<(Worker, WorkerWires)>,
    /// The worker of each connection, and the connection's key there.
    places: BTreeMap<WireId, (usize, ConnectionKey)>,
}

impl LabController {
    pub(super) fn new(
        seed: u64,
        workers: usize,
        settings: WorkerSettings,
        chain: Chain,
        now: Duration,
    ) -> Self {
        let mailboxes = (0..workers).map(|_| Mailbox::new(Box::new(NoopWake))).collect();
        let clock = LabClock::default();
        clock.set(now);
        let read = clock.clone();
        let (wake_tasks, read) = (Box::new(NoopWake), Box::new(move || read.now()));
        let parts = SharedParts { chain, mailboxes, clock: read, wake_tasks, admission: None };
        let shared = SharedState::seeded(parts, seed);
        let tasks = shared.task_worker();
        let make =
            |index| (Worker::new(index, settings, Arc::clone(&shared)), WorkerWires::default());
        let workers = (0..workers).map(make).collect();
        let places = BTreeMap::new();
        LabController { shared, clock, tasks, tasks_go_on: None, workers, places }
    }

    /// Opens a connection of a switch, at the worker with the fewest connections, as in the engine.
    pub(super) fn open(&mut self, id: WireId, now: Duration) {
        self.clock.set(now);
        let fewest = self.workers.iter().enumerate().min_by_key(|(_, (w, _))| w.connections());
        let Some(index) = fewest.map(|(index, _)| index) else { return };
        let Some((worker, wires)) = self.workers.get_mut(index) else { return };
        let key = worker.next_key();
        wires.insert(key, id);
        self.places.insert(id, (index, key));
        worker.open(PEER, now, wires);
        self.process_mail(now);
    }

    /// Handles bytes from a switch.
    pub(super) fn received(&mut self, id: WireId, bytes: &[u8], now: Duration) {
        self.clock.set(now);
        if let Some((worker, wires, key)) = self.at(id) {
            wires.arrived(key, bytes);
            while worker.read(key, now, wires) {}
            self.process_mail(now);
        }
    }

    /// Handles a connection that its switch has closed.
    pub(super) fn hung_up(&mut self, id: WireId, now: Duration) {
        self.clock.set(now);
        if let Some((worker, wires, key)) = self.at(id) {
            worker.closed(key, now, wires);
            self.process_mail(now);
        }
    }

    /// Time at which [`timers`](Self::timers) has work.
    pub(super) fn next_timer(&self) -> Option<Duration> {
        // Code outside the lab's time may have sent a message, or woken a task.
        if (0..self.workers.len()).any(|index| has_mail(&self.shared, index)) {
            return Some(Duration::ZERO);
        }
        let tasks = match self.tasks_go_on {
            None if self.tasks.is_ready() => Some(Duration::ZERO),
            go_on => [go_on, self.tasks.next_timer()].into_iter().flatten().min(),
        };
        let workers = self.workers.iter().filter_map(|(worker, _)| worker.next_timer());
        workers.chain(tasks).min()
    }

    pub(super) fn timers(&mut self, now: Duration) {
        self.clock.set(now);
        for (worker, wires) in &mut self.workers {
            worker.timers(now, wires);
        }
        self.process_mail(now);
    }

    /// Stops the controller: all connections close.
    pub(super) fn stop(&mut self, now: Duration) {
        self.clock.set(now);
        self.tasks.stop();
        for (worker, wires) in &mut self.workers {
            worker.stop(now, wires);
        }
        self.process_mail(now);
    }

    /// Hands a switch over to another worker. Returns false if either does not exist.
    pub(super) fn hand_over(&mut self, dpid: u64, to: usize, now: Duration) -> bool {
        self.clock.set(now);
        let begun = self.shared.hand_over(Dpid(dpid), to);
        self.process_mail(now);
        begun
    }

    pub(super) fn worker_of(&self, dpid: u64) -> Option<usize> {
        self.shared.worker_of(Dpid(dpid))
    }

    /// Whether the apps have this switch.
    pub(super) fn is_up(&self, dpid: u64) -> bool {
        self.shared.network().switch(Dpid(dpid)).is_some()
    }

    /// Passes the workers' output since the last call to `take`: worker by worker, each in its
    /// order.
    pub(super) fn take_sent(&mut self, mut take: impl FnMut(WireId, WorkerOutput)) {
        for (_, wires) in &mut self.workers {
            for (id, sent) in wires.sent.drain(..) {
                if matches!(sent, WorkerOutput::Closed) {
                    self.places.remove(&id);
                }
                take(id, sent);
            }
        }
    }

    /// The sum of a counter over all workers, or a counter of the tasks. Zero if unknown.
    pub(super) fn counter(&self, name: &str) -> u64 {
        let workers = self.shared.counters().iter().flat_map(|counters| counters.iter());
        let all = workers.chain(self.shared.task_counters().iter());
        all.filter(|(counter, _)| *counter == name).map(|(_, n)| n).sum()
    }

    /// Names of the apps that are disabled.
    pub(super) fn disabled_apps(&self) -> Vec<&'static str> {
        let states = self.shared.app_states().into_iter();
        states.filter(|app| app.disabled).map(|app| app.name).collect()
    }

    /// The tasks of the apps.
    pub(super) fn tasks(&self) -> Vec<TaskInfo> {
        self.shared.tasks()
    }

    /// The controller's view of the network.
    pub(super) fn network(&self) -> Network {
        self.shared.network()
    }

    /// The apps' counters, summed over the workers.
    pub(super) fn app_counters(&mut self, now: Duration) -> Vec<AppCounter> {
        let mut sums = BTreeMap::new();
        for (app, name, n) in
            self.query_workers(now, WorkerQuery::AppCounters).into_iter().flatten()
        {
            *sums.entry((app, name)).or_insert(0) += n;
        }
        sums.into_iter().map(|((app, name), n)| (app, name, n)).collect()
    }

    /// The hosts that the apps know.
    pub(super) fn hosts(&mut self, now: Duration) -> Vec<SeenHost> {
        let answers = self.query_workers(now, |reply| WorkerQuery::Hosts(MAX_HOSTS_TOLD, reply));
        let of_all_switches = self.shared.hosts_of_apps(MAX_HOSTS_TOLD);
        answers.into_iter().flatten().chain(of_all_switches).collect()
    }

    /// Sends a query to all workers, and returns their answers at once.
    fn query_workers<T>(
        &mut self,
        now: Duration,
        make_query: impl Fn(std::sync::mpsc::SyncSender<T>) -> WorkerQuery,
    ) -> Vec<T> {
        let (reply, answers) = sync_channel(self.workers.len().max(1));
        self.shared.query(|| make_query(reply.clone()));
        self.process_mail(now);
        answers.try_iter().collect()
    }

    /// Handles mail between workers and runs tasks; neither takes time.
    fn process_mail(&mut self, now: Duration) {
        self.clock.set(now);
        if self.tasks_go_on.is_some_and(|at| at <= now) {
            self.tasks_go_on = None;
        }
        let mut turns = 0;
        loop {
            let mut mail = false;
            for (index, (worker, wires)) in self.workers.iter_mut().enumerate() {
                if has_mail(&self.shared, index) {
                    mail = true;
                    while worker.mail(now, wires) {}
                }
                for (id, key) in wires.attached.drain(..) {
                    self.places.insert(id, (index, key));
                }
            }
            let due = self.tasks.is_ready() || self.tasks.next_timer().is_some_and(|at| at <= now);
            if due && self.tasks_go_on.is_none() {
                self.tasks.run();
                turns += 1;
                if turns == TASK_TURNS {
                    self.tasks_go_on = Some(now + TASK_PAUSE);
                }
            } else if !mail {
                return;
            }
        }
    }

    fn at(&mut self, id: WireId) -> Option<(&mut Worker, &mut WorkerWires, ConnectionKey)> {
        let (index, key) = *self.places.get(&id)?;
        let (worker, wires) = self.workers.get_mut(index)?;
        Some((worker, wires, key))
    }
}

fn has_mail(shared: &SharedState, worker: usize) -> bool {
    shared.mailbox(worker).is_some_and(|mailbox| !mailbox.is_empty())
}
