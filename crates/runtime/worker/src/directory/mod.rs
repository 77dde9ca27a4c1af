//! The state that all workers share: the connected switches, and the worker of each.
//!
//! A lock protects it. It is taken when a switch comes, goes or changes a port, and when an app
//! sends to a switch; never for a packet, and not when an app looks a switch up, since the switches
//! are published too. Senders share the lock, and hold it until their message is in a mailbox: see
//! `hand_over`.

mod apps;
mod claims;

pub(crate) use apps::ChainApp;
pub use apps::{AppState, MessagesSeen};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::task::Waker;
use std::time::Duration;

use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::runtime::{Chain, NetworkState, NewTask, Program, Runtime, TimerId, promise};
use bellrock_api::{
    AppId, ChangeOutcome, ControllerRole, Cookie, Counter, Dpid, Error, Event, Network, Port,
    ProgramFuture, Publisher, RequestFuture, Result, RoleOrder, RoleOrderFuture, SwitchInfo,
    Switches, TaskHandle, ToSwitch,
};

use crossbeam_utils::CachePadded;
use tracing::{error, warn};

use crate::activity::Activity;
use crate::admission::Admission;
use crate::apps::{PostedOrder, STAND_BY, post_program, post_request};
use crate::balance::WorkerLoads;
use crate::connection::ConnectionCounts;
use crate::counters::{TaskCounters, WorkerCounters};
use crate::draft::draft;
use crate::guard::guarded;
use crate::health::Health;
use crate::mailbox::{ConnectionId, Mail, Mailbox, Wake, WorkerQuery};
use crate::port_counts::PortPacketIns;
use crate::settings::{KEPT_ORDERS, MAIL_BACKLOG_BYTES};
use crate::switch_counters::{SwitchCounters, SwitchHistory};
use crate::tasks::{ClockFn, TaskInfo, TaskWorker, Tasks};

/// The parts of a controller that all workers need.
pub struct SharedParts {
    /// The chain of apps, and what its services publish.
    pub chain: Chain,
    /// The mailboxes, one for each worker.
    pub mailboxes: Vec<Mailbox>,
    /// Time since the controller started, the same for all workers.
    pub clock: ClockFn,
    /// Wakes the thread that runs the tasks ([`SharedState::task_worker`]).
    pub wake_tasks: Box<dyn Wake>,
    /// Decides for which datapath ids a connection may speak. `None`: for any.
    pub admission: Option<Arc<dyn Admission>>,
}

/// The state that all workers share.
pub struct SharedState {
    apps: Vec<ChainApp>,
    /// Whether any app wants packets that match no flow.
    wants_packet_ins: bool,
    /// Health of each app.
    health: Vec<Arc<Health>>,
    admission: Option<Arc<dyn Admission>>,
    posts: Arc<Posts>,
    counters: Vec<Arc<WorkerCounters>>,
    /// What each worker does now.
    activities: Vec<Arc<CachePadded<Activity>>>,
    /// Messages that handlers have written: of each worker, those of each app.
    messages: Vec<Vec<Arc<CachePadded<Counter>>>>,
    loads: WorkerLoads,
}

/// The part that apps reach by [`Network`].
struct Posts {
    mailboxes: Vec<Mailbox>,
    directory: RwLock<Entries>,
    /// The switches that are up.
    switches: Publisher<Switches>,
    /// The switches that stand by.
    standbys: Publisher<Switches>,
    /// The switches whose datapath id is claimed.
    connected: Publisher<Switches>,
    state: NetworkState,
    tasks: Arc<Tasks>,
}

#[derive(Default)]
struct Entries {
    switches: BTreeMap<Dpid, DirectoryEntry>,
    /// Counters of earlier connections.
    history: SwitchHistory,
    /// Stopped workers, which take no more switches.
    stopped: BTreeSet<usize>,
    /// The last order for a role at each switch, for its next connection.
    orders: BTreeMap<Dpid, RoleOrder>,
}

struct DirectoryEntry {
    id: ConnectionId,
    info: Arc<SwitchInfo>,
    counts: Arc<ConnectionCounts>,
    shown: Shown,
}

/// Where a claimed switch is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Nowhere,
    /// Among those that stand by.
    Standby,
    /// Among those that are up: it takes messages, from just before its apps get it until just
    /// before they lose it.
    Up,
    /// Among those that are up, though it takes no messages: it is its raw owner's.
    Raw,
}

impl SharedState {
    /// Makes the shared state, and starts the apps.
    #[must_use]
    pub fn new(parts: SharedParts) -> Arc<Self> {
        Self::start(parts, None)
    }

    /// The same for a repeatable run, with a seed for the apps ([`Network::seed`]).
    #[must_use]
    pub fn seeded(parts: SharedParts, seed: u64) -> Arc<Self> {
        Self::start(parts, Some(seed))
    }

    fn start(parts: SharedParts, seed: Option<u64>) -> Arc<Self> {
        let counters = parts.mailboxes.iter().map(|_| Arc::default()).collect();
        let activities: Vec<_> = parts.mailboxes.iter().map(|_| Arc::default()).collect();
        let loads = WorkerLoads::of(parts.mailboxes.len());
        let Chain { apps, topology, hosts } = parts.chain;
        let wants_packet_ins = apps.iter().any(|app| app.wants_packet_ins());
        let apps: Vec<_> = apps.into_iter().map(ChainApp::new).collect();
        let names = apps.iter().map(|app| (app.name, Cookie::of_app(app.name)));
        let switches = Publisher::<Switches>::default();
        let standbys = Publisher::<Switches>::default();
        let connected = Publisher::<Switches>::default();
        let state = NetworkState {
            switches: switches.watch().clone(),
            standbys: standbys.watch().clone(),
            connected: connected.watch().clone(),
            topology,
            hosts,
            apps: names.collect(),
            seed,
            ..NetworkState::default()
        };
        let posts = Arc::new(Posts {
            mailboxes: parts.mailboxes,
            directory: RwLock::default(),
            switches,
            standbys,
            connected,
            state,
            tasks: Tasks::new(parts.clock, parts.wake_tasks),
        });
        let health = apps.iter().map(|_| Arc::default()).collect();
        let of_apps = || apps.iter().map(|_| Arc::default()).collect();
        let messages = activities.iter().map(|_| of_apps()).collect();
        let admission = parts.admission;
        let shared = SharedState {
            apps,
            wants_packet_ins,
            health,
            admission,
            posts,
            counters,
            activities,
            messages,
            loads,
        };
        let shared = Arc::new(shared);
        for (place, app) in shared.apps.iter().enumerate() {
            app.app.start(&shared.network_of(place, app.name));
        }
        shared
    }

    /// The network, for the controller itself.
    #[must_use]
    pub fn network(&self) -> Network {
        Network::new(Arc::clone(&self.posts) as Arc<dyn Runtime>)
    }

    /// Makes the worker that runs the tasks of the apps. There must be only one; dropping it ends
    /// the tasks.
    #[must_use]
    pub fn task_worker(&self) -> TaskWorker {
        TaskWorker::new(Arc::clone(&self.posts.tasks))
    }

    /// Tasks that have not ended, in the order of their start, and the last ones that panicked.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskInfo> {
        self.posts.tasks.list()
    }

    /// Counters of the tasks.
    #[must_use]
    pub fn task_counters(&self) -> &TaskCounters {
        &self.posts.tasks.counters
    }

    /// The mailbox of a worker.
    #[must_use]
    pub fn mailbox(&self, worker: usize) -> Option<&Mailbox> {
        self.posts.mailboxes.get(worker)
    }

    /// The counters of each worker.
    #[must_use]
    pub fn counters(&self) -> &[Arc<WorkerCounters>] {
        &self.counters
    }

    /// Sends one question to each worker at once. A switch that moves meanwhile is in exactly one
    /// of the answers. A worker whose mailbox is full is left out.
    pub fn query(&self, make_query: impl Fn() -> WorkerQuery) {
        let _guard = self.posts.read();
        for mailbox in &self.posts.mailboxes {
            let _ = mailbox.query(make_query());
        }
    }

    /// Replaces the limit of packet_ins of a switch at all workers. `false`: the mailbox of a
    /// worker is full, and it has not heard of it.
    #[must_use]
    pub fn limit_packet_ins(&self, limit: Option<u32>) -> bool {
        let _guard = self.posts.read();
        let mailboxes = self.posts.mailboxes.iter();
        // All of them are told, even after one that is full.
        let told = mailboxes.map(|it| it.query(WorkerQuery::LimitPacketIns(limit)));
        told.fold(true, |all, told| all & told)
    }

    /// Requests that a switch be handed over to another worker. `false` if there is no such switch
    /// or worker, or the mailbox of the switch's worker is full.
    #[must_use]
    pub fn hand_over(&self, dpid: Dpid, to: usize) -> bool {
        let directory = self.posts.read();
        let Some(entry) = directory.up(dpid) else {
            return false;
        };
        let id = entry.id;
        to < self.posts.mailboxes.len() && self.post(id.worker, Mail::HandOver { id, to })
    }

    /// Number of packet_ins of a switch that reached the apps since it connected. 0: it is not
    /// connected.
    #[must_use]
    pub fn packet_ins_of(&self, dpid: Dpid) -> u64 {
        self.posts.read().switches.get(&dpid).map_or(0, |entry| entry.counts.packet_ins.get())
    }

    /// Number of packet_ins of a switch that a budget dropped since it connected. 0: it is not
    /// connected.
    #[must_use]
    pub fn drops_of(&self, dpid: Dpid) -> u64 {
        let entries = self.posts.read();
        entries.switches.get(&dpid).map_or(0, |entry| entry.counts.by_port().dropped())
    }

    /// Packet_ins of a switch by ingress port, over all of its connections. Ports beyond
    /// [`crate::MAX_PORTS_COUNTED`] are counted together, for `Port::ANY`.
    #[must_use]
    pub fn packet_ins_by_port(&self, dpid: Dpid) -> BTreeMap<Port, PortPacketIns> {
        let entries = self.posts.read();
        let mut ports = entries.history.ports_of(dpid);
        if let Some(entry) = entries.switches.get(&dpid) {
            ports.add_all(&entry.counts.by_port());
        }
        ports.into_ports()
    }

    /// The counters of the switches that are connected, and of the last ones that were.
    #[must_use]
    pub fn switch_counters(&self) -> Vec<(Dpid, SwitchCounters)> {
        let entries = self.posts.read();
        let present = |(dpid, counters): (Dpid, SwitchCounters)| {
            let entry = entries.switches.get(&dpid);
            (dpid, entry.map_or(counters, |entry| counters.with(&entry.counts)))
        };
        entries.history.iter().map(present).collect()
    }

    /// The worker that owns a switch.
    #[must_use]
    pub fn worker_of(&self, dpid: Dpid) -> Option<usize> {
        self.posts.read().switches.get(&dpid).map(|entry| entry.id.worker)
    }

    pub(crate) fn loads(&self) -> &WorkerLoads {
        &self.loads
    }

    /// Locks the directory exclusively: no mail is posted to any switch meanwhile.
    pub(crate) fn lock(&self) -> LockedDirectory<'_> {
        LockedDirectory(self.posts.write())
    }

    /// Puts mail into a mailbox, or returns it.
    pub(crate) fn try_post(&self, worker: usize, mail: Mail) -> std::result::Result<(), Mail> {
        self.posts.try_post(worker, mail)
    }

    pub(crate) fn activity(&self, worker: usize) -> Arc<CachePadded<Activity>> {
        self.activities.get(worker).cloned().unwrap_or_default()
    }

    pub(crate) fn wants_packet_ins(&self) -> bool {
        self.wants_packet_ins
    }

    /// Keeps an order for a role, with which the next connection of the switch begins.
    pub(crate) fn store_order(&self, dpid: Dpid, order: RoleOrder) {
        self.posts.write().store_order(dpid, order);
    }

    /// The last order for a role at a switch.
    pub(crate) fn stored_order(&self, dpid: Dpid) -> Option<RoleOrder> {
        self.posts.read().orders.get(&dpid).copied()
    }

    /// Whether there is an order for any switch.
    pub(crate) fn has_orders(&self) -> bool {
        !self.posts.read().orders.is_empty()
    }

    /// Notes that the switch has made this controller a slave: an earlier order to write is over.
    /// Returns whether there was any order.
    pub(crate) fn record_demotion(&self, dpid: Dpid) -> bool {
        self.posts.write().orders.get_mut(&dpid).map(|order| *order = STAND_BY).is_some()
    }

    /// Publishes a switch that comes up, or a change of one.
    pub(crate) fn update(&self, id: ConnectionId, info: &Arc<SwitchInfo>) {
        // Published under the lock, so that all readers see the same order.
        let switches = &mut self.posts.write().switches;
        if let Some(entry) =
            switches.get_mut(&info.dpid).filter(|entry| entry.has_serial(id.serial))
        {
            entry.info = Arc::clone(info);
            entry.shown = Shown::Up;
            self.posts.switches.update(|switches| switches.with(Arc::clone(info)));
        }
    }

    /// Publishes a switch that stands by, or a change of one. It was hidden before.
    pub(crate) fn publish_standby(&self, id: ConnectionId, info: &Arc<SwitchInfo>) {
        let switches = &mut self.posts.write().switches;
        if let Some(entry) =
            switches.get_mut(&info.dpid).filter(|entry| entry.has_serial(id.serial))
        {
            entry.id.term = id.term;
            entry.info = Arc::clone(info);
            entry.shown = Shown::Standby;
            self.posts.standbys.update(|standbys| standbys.with(Arc::clone(info)));
        }
    }

    /// Hides a switch that is neither up nor stands by any more. Its datapath id stays claimed
    /// until [`SharedState::release`]: a new connection comes up only after the apps were notified
    /// of the end of the old one.
    pub(crate) fn hide(&self, id: ConnectionId, dpid: Dpid) {
        let switches = &mut self.posts.write().switches;
        let Some(entry) = switches.get_mut(&dpid).filter(|entry| entry.has_serial(id.serial))
        else {
            return;
        };
        match std::mem::replace(&mut entry.shown, Shown::Nowhere) {
            Shown::Nowhere => {}
            Shown::Standby => self.posts.standbys.update(|standbys| standbys.without(dpid)),
            Shown::Up | Shown::Raw => {
                self.posts.switches.update(|switches| switches.without(dpid));
            }
        }
    }

    /// Publishes an event.
    pub(crate) fn publish(&self, at: Duration, event: Event) {
        self.posts.state.events.publish(at, event);
    }

    /// Whether an alarm is open that this event would end.
    pub(crate) fn would_end_alarm(&self, event: &Event) -> bool {
        self.posts.state.events.would_end(event)
    }

    pub(crate) fn post(&self, worker: usize, mail: Mail) -> bool {
        self.mailbox(worker).is_some_and(|mailbox| mailbox.push(mail))
    }
}

/// Drops what apps own, after the controller has stopped.
impl Drop for SharedState {
    fn drop(&mut self) {
        for ChainApp { name, app, .. } in self.apps.drain(..) {
            if guarded(|| drop(app)).is_none() {
                error!(app = name, "an app panicked when it was dropped");
            }
        }
    }
}

impl Entries {
    /// A switch that is up.
    fn up(&self, dpid: Dpid) -> Option<&DirectoryEntry> {
        self.switches.get(&dpid).filter(|entry| entry.shown == Shown::Up)
    }

    /// Why a switch that is not up takes no messages.
    fn not_up(&self, dpid: Dpid) -> Error {
        match self.switches.get(&dpid) {
            Some(entry) if entry.shown == Shown::Standby => Error::NoMaster(dpid),
            _ => Error::UnknownSwitch(dpid),
        }
    }
}

impl Entries {
    /// Keeps an order. At the limit, forgets one for a switch that is not connected.
    fn store_order(&mut self, dpid: Dpid, order: RoleOrder) {
        if self.orders.len() >= KEPT_ORDERS && !self.orders.contains_key(&dpid) {
            let dropped =
                self.orders.keys().find(|dpid| !self.switches.contains_key(dpid)).copied();
            let Some(dropped) = dropped else {
                warn!(%dpid, "an order for a role is not kept: there are {KEPT_ORDERS} already");
                return;
            };
            self.orders.remove(&dropped);
            warn!(dpid = %dropped, "an order for a role is forgotten: there are {KEPT_ORDERS} others");
        }
        self.orders.insert(dpid, order);
    }
}

impl DirectoryEntry {
    fn has_serial(&self, serial: u64) -> bool {
        self.id.serial == serial
    }
}

/// The exclusively locked directory.
pub(crate) struct LockedDirectory<'a>(RwLockWriteGuard<'a, Entries>);

impl LockedDirectory<'_> {
    /// Whether a worker takes switches.
    pub(crate) fn accepts_switches(&self, worker: usize) -> bool {
        !self.0.stopped.contains(&worker)
    }

    /// Marks a worker as stopped: it reads its mailbox once more, and never again.
    pub(crate) fn mark_stopped(&mut self, worker: usize) {
        self.0.stopped.insert(worker);
    }

    /// Notes that a switch now belongs to another worker.
    pub(crate) fn set_worker(&mut self, dpid: Dpid, serial: u64, to: usize) {
        if let Some(entry) = self.0.switches.get_mut(&dpid).filter(|entry| entry.has_serial(serial))
        {
            entry.id.worker = to;
        }
    }
}

impl Posts {
    fn try_post(&self, worker: usize, mail: Mail) -> std::result::Result<(), Mail> {
        match self.mailboxes.get(worker) {
            Some(mailbox) => mailbox.try_push(mail),
            None => Err(mail),
        }
    }

    /// A panic under this lock leaves the map consistent: each change is one call.
    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.directory.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runtime for Posts {
    fn state(&self) -> &NetworkState {
        &self.state
    }

    fn now(&self) -> Duration {
        self.tasks.now()
    }

    fn send(&self, from: Option<AppId>, to: Dpid, message: &ToSwitch<'_>) -> Result<(), Error> {
        // Held until the message is in the mailbox. If the switch moved to another worker
        // meanwhile, the next message could overtake this one.
        let directory = self.read();
        let entry = directory.up(to).ok_or_else(|| directory.not_up(to))?;
        if entry.counts.backlog.load(Ordering::Relaxed) > MAIL_BACKLOG_BYTES {
            return Err(Error::Full(to));
        }
        let version = entry.info.version;
        let bytes = draft(|out| -> Result<Box<[u8]>, Error> {
            // No app owns this id: the answer is discarded.
            match (from, message) {
                (Some(app), ToSwitch::FlowMod(flow)) => {
                    ToSwitch::FlowMod(app.owned_flow_mod(version, flow)?)
                        .encode(version, 0, out)?;
                }
                _ => message.encode(version, 0, out)?,
            }
            Ok(out.as_slice().into())
        })?;
        let mail = Mail::Send { to: entry.id, bytes };
        match self.mailboxes.get(entry.id.worker).is_some_and(|mailbox| mailbox.push(mail)) {
            true => Ok(()),
            false => Err(Error::Full(to)),
        }
    }

    fn resume(&self, app: AppId, dpid: Dpid) -> Result<(), Error> {
        let directory = self.read();
        let entry = directory.up(dpid).ok_or_else(|| directory.not_up(dpid))?;
        let mail = Mail::Resume { at: entry.id, place: usize::from(app.owner()).saturating_sub(1) };
        match self.try_post(entry.id.worker, mail) {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::Full(dpid)),
        }
    }

    fn program(&self, program: Program) -> ProgramFuture {
        // Held until all is in the mailbox, as above.
        let directory = self.read();
        let Some(entry) = directory.up(program.dpid) else {
            let error = directory.not_up(program.dpid);
            return ProgramFuture::ready(vec![
                ChangeOutcome::NotSent(error);
                program.changes.len()
            ]);
        };
        post_program(&program, entry.info.version, |posted| {
            let mail = Mail::Program { to: entry.id, posted };
            match self.try_post(entry.id.worker, mail) {
                Err(Mail::Program { posted, .. }) => Err(posted),
                _ => Ok(()),
            }
        })
    }

    fn request(&self, to: Dpid, request: &ToSwitch<'_>) -> RequestFuture {
        let directory = self.read();
        let Some(entry) = directory.up(to) else {
            return RequestFuture::not_sent(directory.not_up(to));
        };
        post_request(to, request, entry.info.version, |request| {
            let mail = Mail::Question { to: entry.id, request };
            match self.try_post(entry.id.worker, mail) {
                Err(Mail::Question { request, .. }) => Err(request),
                _ => Ok(()),
            }
        })
    }

    fn set_role(&self, to: Dpid, order: RoleOrder) -> RoleOrderFuture {
        let directory = self.read();
        let is_ours = |entry: &&DirectoryEntry| entry.shown != Shown::Raw;
        let Some(entry) = directory.switches.get(&to).filter(is_ours) else {
            drop(directory);
            if order.role() == ControllerRole::Slave
                && let Some(order) = self.write().orders.get_mut(&to)
            {
                // It must not come back as a master.
                *order = STAND_BY;
            }
            return RoleOrderFuture::not_sent(Error::UnknownSwitch(to));
        };
        let (promise, answer) = promise();
        let order = PostedOrder { dpid: to, order, promise };
        match self.try_post(entry.id.worker, Mail::Role { to: entry.id, order }) {
            Ok(()) => RoleOrderFuture::sent(answer),
            Err(_) => RoleOrderFuture::not_sent(Error::Full(to)),
        }
    }

    fn spawn(&self, task: NewTask) -> TaskHandle {
        self.tasks.spawn(task)
    }

    fn set_timer(&self, at: Duration, waker: &Waker) -> TimerId {
        self.tasks.set_timer(at, waker)
    }

    fn clear_timer(&self, timer: TimerId) {
        self.tasks.clear_timer(timer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_of_orders_is_kept() {
        let mut entries = Entries::default();
        for dpid in 0..=KEPT_ORDERS as u64 {
            entries.store_order(Dpid(dpid), RoleOrder::Equal);
        }
        assert_eq!(entries.orders.len(), KEPT_ORDERS);
        // The last one replaced one of a switch that is not connected.
        assert!(entries.orders.contains_key(&Dpid(KEPT_ORDERS as u64)));
        assert!(!entries.orders.contains_key(&Dpid(0)));
    }
}
