//! Monitoring of a running engine, from any thread, without disturbing it.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bellrock_api::{Dpid, LatencyCounts, LatencyHistogram, Network, Port, SwitchInfo};
pub use bellrock_worker::{AppCounter, SeenHost};
use bellrock_worker::{
    AppState, PortPacketIns, SharedState, SwitchCounters, TaskInfo, WorkerQuery,
};

use crate::acceptor::AcceptorCounters;
use crate::thread::ConnectionInbox;

/// Maximum time for a worker to answer a question. Slower workers are left out.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// The state of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineStatus {
    /// Time since its start.
    pub uptime: Duration,
    /// Number of workers.
    pub workers: usize,
    /// Number of TCP connections, with or without a finished handshake.
    pub connections: usize,
    /// Number of switches that are up.
    pub switches: usize,
    /// Number of connections accepted since the start.
    pub accepted: u64,
    /// Number of connections closed at once because of a limit.
    pub refused: u64,
    /// Number of the accepted connections that were closed because another connection has their
    /// datapath id.
    pub duplicates_refused: u64,
}

/// The counters of a worker, by name.
pub type NamedCounters = Vec<(&'static str, u64)>;

/// A handle to monitor an engine.
#[derive(Clone)]
pub struct Monitor {
    shared: Arc<SharedState>,
    inboxes: Vec<Arc<ConnectionInbox>>,
    accepted: Arc<AcceptorCounters>,
    epoch: Instant,
}

impl Monitor {
    pub(crate) fn new(
        shared: Arc<SharedState>,
        inboxes: Vec<Arc<ConnectionInbox>>,
        accepted: Arc<AcceptorCounters>,
        epoch: Instant,
    ) -> Self {
        Monitor { shared, inboxes, accepted, epoch }
    }

    /// The state of the engine.
    #[must_use]
    pub fn status(&self) -> EngineStatus {
        EngineStatus {
            uptime: self.epoch.elapsed(),
            workers: self.inboxes.len(),
            connections: self.inboxes.iter().map(|inbox| inbox.load()).sum(),
            switches: self.switches().len(),
            accepted: self.accepted.accepted.load(Ordering::Relaxed),
            refused: self.accepted.refused.load(Ordering::Relaxed),
            duplicates_refused: self.worker_counter("duplicates_refused"),
        }
    }

    /// The sum of a counter over all workers.
    fn worker_counter(&self, name: &str) -> u64 {
        let workers = self.shared.counters().iter().flat_map(|counters| counters.iter());
        workers.filter(|(its, _)| *its == name).map(|(_, count)| count).sum()
    }

    /// The network, for the controller itself: published state, and a way to send to switches.
    #[must_use]
    pub fn network(&self) -> Network {
        self.shared.network()
    }

    /// The switches that are up, by datapath id.
    #[must_use]
    pub fn switches(&self) -> Vec<Arc<SwitchInfo>> {
        self.shared.network().switches().iter().cloned().collect()
    }

    /// Time since the start. [`SwitchInfo::since`] uses the same clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// The counters of each worker.
    #[must_use]
    pub fn worker_counters(&self) -> Vec<NamedCounters> {
        self.shared.counters().iter().map(|counters| counters.iter().collect()).collect()
    }

    /// Lengths of the turns of all workers: from the readiness of switches until all of them were
    /// read, answered and written. An answer to a packet-in takes no longer inside the controller.
    #[must_use]
    pub fn turns(&self) -> LatencyCounts {
        self.sum_of(|inbox| &inbox.turns)
    }

    /// Times that bytes waited because their switch did not take them at once: from the first byte
    /// in the queue of the switch, until the kernel had taken all.
    #[must_use]
    pub fn queues(&self) -> LatencyCounts {
        self.sum_of(|inbox| &inbox.queues)
    }

    fn sum_of(&self, histogram: impl Fn(&ConnectionInbox) -> &LatencyHistogram) -> LatencyCounts {
        let mut sum = LatencyCounts::default();
        self.inboxes.iter().for_each(|inbox| sum.add(&histogram(inbox).counts()));
        sum
    }

    /// The counters of the switches that are connected, and of the last ones that were.
    #[must_use]
    pub fn switch_counters(&self) -> Vec<(Dpid, SwitchCounters)> {
        self.shared.switch_counters()
    }

    /// The apps of the chain and their states, in order.
    #[must_use]
    pub fn apps(&self) -> Vec<AppState> {
        self.shared.app_states()
    }

    /// Gives an app its events again after too many panics. `false`: there is no such app.
    #[must_use]
    pub fn enable_app(&self, name: &str) -> bool {
        self.shared.enable_app(name)
    }

    /// The tasks of the apps in the order of their start, and the last ones that panicked.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskInfo> {
        self.shared.tasks()
    }

    /// The counters of the tasks.
    #[must_use]
    pub fn task_counters(&self) -> NamedCounters {
        self.shared.task_counters().iter().collect()
    }

    /// The counters of the apps at all switches, also past ones: sums by app and name.
    #[must_use]
    pub fn app_counters(&self) -> Vec<AppCounter> {
        let mut sums = BTreeMap::new();
        for (app, name, n) in self.query_workers(WorkerQuery::AppCounters).into_iter().flatten() {
            *sums.entry((app, name)).or_default() += n;
        }
        sums.into_iter().map(|((app, name), n)| (app, name, n)).collect()
    }

    /// Whether every worker answers in time. A worker that does not is stuck in a handler.
    #[must_use]
    pub fn all_workers_answer(&self) -> bool {
        self.query_workers(WorkerQuery::AppCounters).len() == self.inboxes.len()
    }

    /// Hosts that apps report: at most `limit` of each worker, and at most `limit` that apps keep
    /// for all switches. Also whether these are all: a worker that does not answer in time is left
    /// out, and so is what is above a limit.
    #[must_use]
    pub fn hosts(&self, limit: usize) -> (Vec<SeenHost>, bool) {
        let of_workers = self.query_workers(|reply| WorkerQuery::Hosts(limit, reply));
        let of_apps = self.shared.hosts_of_apps(limit);
        let is_below = |hosts: &Vec<SeenHost>| hosts.len() < limit;
        let complete = of_workers.len() == self.inboxes.len()
            && of_workers.iter().chain([&of_apps]).all(is_below);
        (of_workers.into_iter().flatten().chain(of_apps).collect(), complete)
    }

    /// Requests that a switch be handed over to another worker, between two of its turns, with all
    /// waiting bytes. Overloaded workers do this automatically. `false` if there is no such switch
    /// or worker, or the mailbox of the switch's worker is full.
    #[must_use]
    pub fn hand_over(&self, dpid: Dpid, worker: usize) -> bool {
        self.shared.hand_over(dpid, worker)
    }

    /// The worker that owns a switch.
    #[must_use]
    pub fn worker_of(&self, dpid: Dpid) -> Option<usize> {
        self.shared.worker_of(dpid)
    }

    /// Number of packet_ins of a switch that reached the apps since it connected. 0: it is not
    /// connected.
    #[must_use]
    pub fn packet_ins_of(&self, dpid: Dpid) -> u64 {
        self.shared.packet_ins_of(dpid)
    }

    /// Number of packet_ins of a switch that were dropped since it connected, above its limit or
    /// its share. 0: it is not connected.
    #[must_use]
    pub fn drops_of(&self, dpid: Dpid) -> u64 {
        self.shared.drops_of(dpid)
    }

    /// Packet_ins of a switch by ingress port, over all of its connections, as counted until the
    /// last second. [`Port::ANY`] stands for ports beyond the first 256.
    #[must_use]
    pub fn packet_ins_by_port(&self, dpid: Dpid) -> BTreeMap<Port, PortPacketIns> {
        self.shared.packet_ins_by_port(dpid)
    }

    /// Replaces the limit of packet_ins of a switch per second, also for the switches that are
    /// connected. `false`: a worker has too much mail to hear of it.
    #[must_use]
    pub fn limit_packet_ins(&self, limit: Option<u32>) -> bool {
        self.shared.limit_packet_ins(limit)
    }

    /// Closes the connections of switches whose certificates `server` does not accept any more
    /// because they are revoked. Returns their number.
    #[cfg(feature = "tls")]
    pub fn close_revoked(&self, server: &crate::TlsServer) -> usize {
        self.shared.close_switches(|info| {
            let error = server.check_again(info.identity.as_deref()?).err()?;
            Some(error.into())
        })
    }

    /// Asks all workers at once, and returns their answers. Leaves out workers that do not answer
    /// in time.
    fn query_workers<R>(&self, make_query: impl Fn(SyncSender<R>) -> WorkerQuery) -> Vec<R> {
        let (reply, answers) = sync_channel(self.inboxes.len());
        self.shared.query(|| make_query(reply.clone()));
        drop(reply);
        let deadline = Instant::now() + ANSWER_WAIT;
        let next = || answers.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
        iter::from_fn(next).collect()
    }
}
