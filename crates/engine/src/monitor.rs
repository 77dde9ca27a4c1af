//! Watching a running engine: for operators, from any thread, without disturbing it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bellrock_api::{Dpid, Network, SwitchInfo};
pub use bellrock_worker::{AppCounter, SeenHost};
use bellrock_worker::{AppState, Query, Shared, TaskInfo};

use crate::acceptor::Accepted;
use crate::thread::Inbox;

/// How long a worker may take to answer a question; one that is too busy is left out.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// The state of an engine as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Since it started.
    pub uptime: Duration,
    /// Workers.
    pub workers: usize,
    /// TCP connections, with or without a finished handshake.
    pub connections: usize,
    /// Switches that are up.
    pub switches: usize,
    /// Connections that were accepted since the start.
    pub accepted: u64,
    /// Connections that were closed at once because a limit was reached.
    pub refused: u64,
}

/// The counters of a worker, by name.
pub type WorkerCounters = Vec<(&'static str, u64)>;

/// A handle for watching an engine.
#[derive(Clone)]
pub struct Monitor {
    shared: Arc<Shared>,
    inboxes: Vec<Arc<Inbox>>,
    accepted: Arc<Accepted>,
    epoch: Instant,
}

impl Monitor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        inboxes: Vec<Arc<Inbox>>,
        accepted: Arc<Accepted>,
        epoch: Instant,
    ) -> Self {
        Monitor { shared, inboxes, accepted, epoch }
    }

    /// The state of the engine as a whole.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            uptime: self.epoch.elapsed(),
            workers: self.inboxes.len(),
            connections: self.inboxes.iter().map(|inbox| inbox.load()).sum(),
            switches: self.switches().len(),
            accepted: self.accepted.accepted.load(Ordering::Relaxed),
            refused: self.accepted.refused.load(Ordering::Relaxed),
        }
    }

    /// The network as the controller itself sees it: what is published, and a way to send to switches.
    #[must_use]
    pub fn network(&self) -> Network {
        self.shared.network()
    }

    /// The switches that are up, by datapath id.
    #[must_use]
    pub fn switches(&self) -> Vec<Arc<SwitchInfo>> {
        self.shared.network().switches().iter().cloned().collect()
    }

    /// Time since the start: what [`SwitchInfo::since`] counts from.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// What each worker has counted.
    #[must_use]
    pub fn worker_counters(&self) -> Vec<WorkerCounters> {
        self.shared.counters().iter().map(|counters| counters.read()).collect()
    }

    /// The apps of the chain and how they are, in order.
    #[must_use]
    pub fn apps(&self) -> Vec<AppState> {
        self.shared.app_states()
    }

    /// The tasks of the apps, in the order in which they were started, and the latest that panicked.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskInfo> {
        self.shared.tasks()
    }

    /// What the tasks have come to.
    #[must_use]
    pub fn task_counters(&self) -> WorkerCounters {
        self.shared.task_counters().read()
    }

    /// What the apps have counted at all switches, those that are gone too: sums by app and name.
    #[must_use]
    pub fn app_counters(&self) -> Vec<AppCounter> {
        let mut sums = std::collections::BTreeMap::new();
        for (app, name, n) in self.ask(Query::AppCounters) {
            *sums.entry((app, name)).or_default() += n;
        }
        sums.into_iter().map(|((app, name), n)| (app, name, n)).collect()
    }

    /// Hosts that apps know, at most `limit` of each worker, and as many that apps keep for all switches at once.
    #[must_use]
    pub fn hosts(&self, limit: usize) -> Vec<SeenHost> {
        let mut hosts = self.ask(|reply| Query::Hosts(limit, reply));
        hosts.extend(self.shared.hosts_of_apps(limit));
        hosts
    }

    /// Has a switch handed over to another worker, soon: between two of its turns, with all that
    /// waits for it. Workers that are overloaded do this by themselves. `false` if there is no
    /// such switch or worker, or the mailbox of the switch's is full.
    #[must_use]
    pub fn hand_over(&self, dpid: Dpid, worker: usize) -> bool {
        self.shared.hand_over(dpid, worker)
    }

    /// Which worker has a switch.
    #[must_use]
    pub fn worker_of(&self, dpid: Dpid) -> Option<usize> {
        self.shared.worker_of(dpid)
    }

    /// Asks all workers at once, and puts their answers together. Workers that do not answer in
    /// time are left out.
    fn ask<R>(&self, question: impl Fn(SyncSender<Vec<R>>) -> Query) -> Vec<R> {
        let (reply, answers) = sync_channel(self.inboxes.len());
        self.shared.ask(|| question(reply.clone()));
        drop(reply);
        let deadline = Instant::now() + ANSWER_WAIT;
        let mut all = Vec::new();
        while let Ok(answer) =
            answers.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            all.extend(answer);
        }
        all
    }
}
