//! The controller of the lab: workers as the engine has them, without its threads.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bellrock_api::{Dpid, DynApp};
use bellrock_worker::{
    AppCounter, Key, Mailbox, Query, SeenHost, Settings, Shared, SharedParts, Wake, Worker,
};

use super::wires::{Sent, WireId, Wires};

/// Hosts that each worker tells of when it is asked.
const MAX_HOSTS_TOLD: usize = 1 << 20;

/// Where switches come from, as apps see it.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Nobody sleeps here: the lab looks into the mailboxes after every event.
struct Awake;

impl Wake for Awake {
    fn wake(&self) {}
}

/// Workers that take turns in one thread.
pub(super) struct Controller {
    shared: Arc<Shared>,
    workers: Vec<(Worker, Wires)>,
    /// Whose each connection is, and its key there.
    places: BTreeMap<WireId, (usize, Key)>,
}

impl Controller {
    pub(super) fn new(
        seed: u64,
        workers: usize,
        settings: Settings,
        apps: Vec<Box<dyn DynApp>>,
    ) -> Self {
        let mailboxes = (0..workers).map(|_| Mailbox::new(Box::new(Awake))).collect();
        let shared = Shared::seeded(SharedParts { apps, mailboxes }, seed);
        let make = |index| (Worker::new(index, settings, Arc::clone(&shared)), Wires::default());
        let workers = (0..workers).map(make).collect();
        Controller { shared, workers, places: BTreeMap::new() }
    }

    /// A switch has connected. The worker with the fewest connections gets it, as in the engine.
    pub(super) fn open(&mut self, id: WireId, now: Duration) {
        let fewest = self.workers.iter().enumerate().min_by_key(|(_, (w, _))| w.connections());
        let Some(index) = fewest.map(|(index, _)| index) else { return };
        let Some((worker, wires)) = self.workers.get_mut(index) else { return };
        let key = worker.next_key();
        wires.insert(key, id);
        self.places.insert(id, (index, key));
        worker.open(PEER, now, wires);
        self.settle(now);
    }

    /// Bytes of a switch have arrived.
    pub(super) fn received(&mut self, id: WireId, bytes: &[u8], now: Duration) {
        if let Some((worker, wires, key)) = self.at(id) {
            wires.arrived(key, bytes);
            while worker.read(key, now, wires) {}
            self.settle(now);
        }
    }

    /// A switch has closed its connection.
    pub(super) fn hung_up(&mut self, id: WireId, now: Duration) {
        if let Some((worker, wires, key)) = self.at(id) {
            worker.closed(key, now, wires);
            self.settle(now);
        }
    }

    /// When [`timers`](Self::timers) has something to do.
    pub(super) fn next_timer(&self) -> Option<Duration> {
        self.workers.iter().filter_map(|(worker, _)| worker.next_timer()).min()
    }

    pub(super) fn timers(&mut self, now: Duration) {
        for (worker, wires) in &mut self.workers {
            worker.timers(now, wires);
        }
        self.settle(now);
    }

    /// The controller ends: all connections are closed.
    pub(super) fn stop(&mut self, now: Duration) {
        for (worker, wires) in &mut self.workers {
            worker.stop(now, wires);
        }
        self.settle(now);
    }

    /// Has a switch handed over to another worker. `false`: there is no such switch or worker.
    pub(super) fn hand_over(&mut self, dpid: u64, to: usize, now: Duration) -> bool {
        let begun = self.shared.hand_over(Dpid(dpid), to);
        self.settle(now);
        begun
    }

    pub(super) fn worker_of(&self, dpid: u64) -> Option<usize> {
        self.shared.worker_of(Dpid(dpid))
    }

    /// Whether the apps have a switch.
    pub(super) fn is_up(&self, dpid: u64) -> bool {
        self.shared.network().switch(Dpid(dpid)).is_some()
    }

    /// What the workers have sent since this was last called, in the order of workers and, of each,
    /// in its order.
    pub(super) fn take_sent(&mut self, mut take: impl FnMut(WireId, Sent)) {
        for (_, wires) in &mut self.workers {
            for (id, sent) in wires.sent.drain(..) {
                if matches!(sent, Sent::Closed) {
                    self.places.remove(&id);
                }
                take(id, sent);
            }
        }
    }

    /// A counter of the workers, added up. `None`: there is none of this name.
    pub(super) fn counter(&self, name: &str) -> Option<u64> {
        let mut sum = None;
        for counters in self.shared.counters() {
            let counters = counters.read();
            let (_, n) = counters.iter().find(|(its, _)| *its == name)?;
            sum = Some(sum.unwrap_or(0) + n);
        }
        sum
    }

    /// What the apps have counted, added up over the workers.
    pub(super) fn app_counters(&mut self, now: Duration) -> Vec<AppCounter> {
        let mut sums = BTreeMap::new();
        for (app, name, n) in self.ask(now, Query::AppCounters).into_iter().flatten() {
            *sums.entry((app, name)).or_insert(0) += n;
        }
        sums.into_iter().map(|((app, name), n)| (app, name, n)).collect()
    }

    /// The hosts that the apps know.
    pub(super) fn hosts(&mut self, now: Duration) -> Vec<SeenHost> {
        let answers = self.ask(now, |reply| Query::Hosts(MAX_HOSTS_TOLD, reply));
        answers.into_iter().flatten().collect()
    }

    /// Asks every worker, each of which has its turn at once, and answers.
    fn ask<T>(
        &mut self,
        now: Duration,
        question: impl Fn(std::sync::mpsc::SyncSender<T>) -> Query,
    ) -> Vec<T> {
        let (reply, answers) = sync_channel(self.workers.len().max(1));
        self.shared.ask(|| question(reply.clone()));
        self.settle(now);
        answers.try_iter().collect()
    }

    /// Mail between workers takes no time.
    fn settle(&mut self, now: Duration) {
        loop {
            let mut mail = false;
            for (index, (worker, wires)) in self.workers.iter_mut().enumerate() {
                if self.shared.mailbox(index).is_some_and(|mailbox| !mailbox.is_empty()) {
                    mail = true;
                    while worker.mail(now, wires) {}
                }
                for (id, key) in wires.attached.drain(..) {
                    self.places.insert(id, (index, key));
                }
            }
            if !mail {
                return;
            }
        }
    }

    fn at(&mut self, id: WireId) -> Option<(&mut Worker, &mut Wires, Key)> {
        let (index, key) = *self.places.get(&id)?;
        let (worker, wires) = self.workers.get_mut(index)?;
        Some((worker, wires, key))
    }
}
