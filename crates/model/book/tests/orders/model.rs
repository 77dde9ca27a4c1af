//! A model of etcd: entries with revisions, watches, leases, and what a client makes of lost
//! messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_channel::Sender;
use bellrock_api::runtime::{Promise, promise};
use bellrock_book::{
    CommitFuture, EntryStore, Life, NotStored, StoreChange, StoreEvent, StoreEvents, StoreLimits,
    StoredChange, StoredEntry, Words,
};
use fastrand::Rng;

use crate::clock::Clock;
use crate::world::{CAPACITY, LINES, NODES, ms};

/// Names of the entries that a book keeps for itself.
pub(crate) const COMMITS: &str = "commits";
pub(crate) const LEADER: &str = "leader";
pub(crate) const NODE: &str = "node/";
/// The entry that only the leader writes.
pub(crate) const ROUTE: &str = "route";

/// Maximum number of changes of a commit. So few that a book that puts entries back needs several.
const MAX_CHANGES: usize = 6;
/// Time after which a client gives an answer up.
const ANSWER_LIMIT: Duration = ms(1000);
/// Time after which a client reads again.
const READ_AGAIN: Duration = ms(500);
/// Time between two signs of life, and time after which a controller without one is dead.
const LIFE_EVERY: Duration = ms(500);
const LIFE: Duration = ms(3000);
/// Time before the end of its lease from which on a controller does not count on it any more.
const LIFE_MARGIN: Duration = ms(500);

/// What the store compares. With less than all it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    All,
    /// Not the number of commits.
    ChangedEntries,
    None,
}

/// Etcd, and its connections. Clones share it.
#[derive(Clone)]
pub(crate) struct Etcd(Arc<Mutex<State>>);

struct State {
    clock: Clock,
    checks: Checks,
    random: Rng,
    next: u64,
    queue: BTreeMap<(Duration, u64), Event>,
    store: Store,
    snapshot: Option<Store>,
    followers: Vec<Follower>,
    links: [Link; NODES],
    /// Orders that were stored, and those that must not be.
    stored: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    /// The largest number of commits so far: with fewer, a snapshot was restored, and is being
    /// mended.
    most_commits: u64,
    elections: u64,
    led: u64,
    violation: Option<String>,
}

#[derive(Clone, Default)]
struct Store {
    entries: BTreeMap<String, (u64, String)>,
    revision: u64,
    /// All commits since the start, or since the snapshot was restored.
    history: Vec<(u64, Vec<StoredChange>)>,
}

/// The connection of a controller.
#[derive(Default)]
struct Link {
    cuts: u32,
    /// Messages take so many times as long.
    slowness: u64,
    /// The process that shows its life, with the name of its entry.
    life: Option<(u64, String)>,
    lives_until: Duration,
    /// Number of times that its entry was written.
    lease: u64,
}

struct Follower {
    node: usize,
    /// Grows when the watch ends. What was under way to it is lost.
    session: u64,
    is_watching: bool,
    /// It has all changes up to this revision. `None`: it must read.
    revision: Option<u64>,
    /// Time when the last report arrives.
    last: Duration,
    reports: Sender<StoreEvent>,
}

enum Event {
    Arrive { node: usize, changes: Vec<StoreChange>, answer: Promise<Result<u64, NotStored>> },
    Answer { node: usize, result: Result<u64, NotStored>, answer: Promise<Result<u64, NotStored>> },
    GiveUp { answer: Promise<Result<u64, NotStored>>, error: NotStored },
    Report { follower: usize, session: u64, event: StoreEvent, revision: u64 },
    Read { follower: usize, session: u64 },
    Lives,
}

/// What one process of a controller has of it.
pub(crate) struct Client {
    etcd: Etcd,
    node: usize,
    process: u64,
}

impl Etcd {
    pub(crate) fn new(clock: Clock, checks: Checks, random: Rng) -> Self {
        let mut state = State {
            clock,
            checks,
            random,
            next: 0,
            queue: BTreeMap::new(),
            store: Store::default(),
            snapshot: None,
            followers: Vec::new(),
            links: Default::default(),
            stored: BTreeSet::new(),
            refused: BTreeSet::new(),
            most_commits: 0,
            elections: 0,
            led: 0,
            violation: None,
        };
        state.after(LIFE_EVERY, Event::Lives);
        Etcd(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn client(&self, node: usize, process: u64) -> Client {
        Client { etcd: self.clone(), node, process }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Time of the next event.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.state().queue.first_key_value().map(|((at, _), _)| *at)
    }

    /// Does what is due.
    pub(crate) fn run(&self) {
        loop {
            let mut state = self.state();
            let now = state.clock.now();
            match state.queue.first_entry() {
                Some(event) if event.key().0 <= now => {
                    let event = event.remove();
                    state.take(event);
                }
                _ => return,
            }
        }
    }

    /// Ends the process of a controller. Its connection to etcd is lost.
    pub(crate) fn end(&self, node: usize) {
        let mut state = self.state();
        state.links[node].life = None;
        state.disconnect(node);
        for follower in state.followers.iter().filter(|it| it.node == node) {
            follower.reports.close();
        }
    }

    /// Ends or restores the connection of a controller.
    pub(crate) fn set_cut(&self, node: usize, is_cut: bool) {
        let mut state = self.state();
        if is_cut {
            state.links[node].cuts += 1;
            state.disconnect(node);
        } else {
            state.links[node].cuts -= 1;
        }
    }

    /// A process that is stopped shows no life.
    pub(crate) fn stop_life(&self, node: usize) -> Option<(u64, String)> {
        self.state().links[node].life.take()
    }

    pub(crate) fn resume_life(&self, node: usize, life: Option<(u64, String)>) {
        let mut state = self.state();
        state.links[node].life = state.links[node].life.take().or(life);
    }

    pub(crate) fn set_slowness(&self, node: usize, slowness: u64) {
        self.state().links[node].slowness = slowness;
    }

    pub(crate) fn make_snapshot(&self) {
        let mut state = self.state();
        state.snapshot = Some(state.store.clone());
    }

    /// Restores the snapshot. Returns false if there is none.
    pub(crate) fn restore(&self) -> bool {
        let mut state = self.state();
        let Some(snapshot) = state.snapshot.take() else { return false };
        state.store = Store { history: Vec::new(), ..snapshot };
        let now = state.clock.now();
        for node in 0..NODES {
            state.links[node].lives_until = now + LIFE;
            state.disconnect(node);
        }
        state.followers.iter_mut().for_each(|follower| follower.revision = None);
        true
    }

    /// Notes that an order has changed nothing, and must not.
    pub(crate) fn refuse(&self, order: u64) {
        let mut state = self.state();
        if state.stored.contains(&order) {
            state.violation = Some(format!("order {order} was refused, and stored before"));
        }
        state.refused.insert(order);
    }

    /// Whether the store has all commits: no snapshot was restored that is not mended yet.
    pub(crate) fn is_whole(&self) -> bool {
        let state = self.state();
        let commits = state.store.entries.get(COMMITS);
        let count = commits.and_then(|(_, value)| Words::parse(value).unwrap().read("count").ok());
        count.unwrap_or(0_u64) >= state.most_commits
    }

    /// What was wrong first.
    pub(crate) fn violation(&self) -> Option<String> {
        self.state().violation.clone()
    }

    /// All entries of orders, and the leader.
    pub(crate) fn entries(&self) -> BTreeMap<String, String> {
        let state = self.state();
        let entries = state.store.entries.iter().map(|(name, (_, value))| (name, value));
        let of_orders = entries.filter(|(name, _)| *name != COMMITS && !name.starts_with(NODE));
        of_orders.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// What is taken: names, and their orders.
    pub(crate) fn taken(&self) -> Vec<(String, u64)> {
        let entries = self.entries().into_iter().filter(|(name, _)| name.starts_with("take/"));
        let order = |value: &str| Words::parse(value).unwrap().read("order").unwrap();
        entries.map(|(name, value)| (name, order(&value))).collect()
    }

    /// Number of elections, and of what leaders have stored.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let state = self.state();
        (state.elections, state.led)
    }
}

impl State {
    fn at(&mut self, at: Duration, event: Event) {
        self.next += 1;
        self.queue.insert((at, self.next), event);
    }

    fn after(&mut self, delay: Duration, event: Event) {
        self.at(self.clock.now() + delay, event);
    }

    /// Time that a message takes: few milliseconds, and seldom far more.
    fn delay(&mut self, node: usize) -> Duration {
        let slowness = self.links[node].slowness.max(1);
        let rare = if self.random.u8(..20) == 0 { 20 } else { 1 };
        Duration::from_micros(self.random.u64(200..4000) * rare * slowness)
    }

    fn is_cut(&self, node: usize) -> bool {
        self.links[node].cuts > 0
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Arrive { node, answer, .. } if self.is_cut(node) => {
                let error = NotStored::Unknown("the request or its answer is lost".into());
                self.after(ANSWER_LIMIT, Event::GiveUp { answer, error });
            }
            Event::Arrive { node, changes, answer } => {
                let result = self.commit(&changes);
                let delay = self.delay(node);
                self.after(delay, Event::Answer { node, result, answer });
            }
            Event::Answer { node, answer, .. } if self.is_cut(node) => {
                let error = NotStored::Unknown("the answer is lost".into());
                self.after(ANSWER_LIMIT, Event::GiveUp { answer, error });
            }
            Event::Answer { result, answer, .. } => answer.resolve(result),
            Event::GiveUp { answer, error } => answer.resolve(Err(error)),
            Event::Report { follower, session, event, revision } => {
                let follower = &mut self.followers[follower];
                if follower.session == session {
                    follower.revision = Some(revision);
                    // The process may have ended.
                    let _ = follower.reports.try_send(event);
                }
            }
            Event::Read { follower, session } => self.read(follower, session),
            Event::Lives => self.lives(),
        }
    }

    /// Sends a report to a follower, behind those that are under way. With it, the follower has all
    /// changes up to `revision`.
    fn report(&mut self, follower: usize, event: StoreEvent, revision: u64) {
        let delay = self.delay(self.followers[follower].node);
        let it = &mut self.followers[follower];
        it.last = it.last.max(self.clock.now() + delay);
        let (at, session) = (it.last, it.session);
        self.at(at, Event::Report { follower, session, event, revision });
    }

    /// Ends the watches of a controller. They begin again after a while.
    fn disconnect(&mut self, node: usize) {
        for index in 0..self.followers.len() {
            let follower = &mut self.followers[index];
            if follower.node != node || follower.reports.is_closed() {
                continue;
            }
            follower.session += 1;
            // What was under way is lost. Either the watch goes on behind what has arrived, or it
            // begins anew.
            if self.random.bool() {
                follower.revision = None;
            }
            follower.is_watching = false;
            let session = follower.session;
            let _ = follower.reports.try_send(StoreEvent::Unreachable("cut".into()));
            let again = READ_AGAIN + ms(self.random.u64(..400));
            self.after(again, Event::Read { follower: index, session });
        }
    }

    /// Begins a watch: with all entries, or with the changes since the last one.
    fn read(&mut self, index: usize, session: u64) {
        let follower = &self.followers[index];
        if follower.session != session || follower.reports.is_closed() {
            return;
        }
        if self.is_cut(follower.node) {
            return self.after(READ_AGAIN, Event::Read { follower: index, session });
        }
        match follower.revision {
            Some(known) => {
                let missed = self.store.history.iter().filter(|(revision, _)| *revision > known);
                let missed: Vec<_> = missed.cloned().collect();
                self.report(index, StoreEvent::Reachable, known);
                for (revision, changes) in missed {
                    self.report(index, StoreEvent::Changed(changes), revision);
                }
            }
            None => {
                let entry = |(name, (revision, value)): (&String, &(u64, String))| StoredEntry {
                    name: name.clone(),
                    value: value.clone(),
                    revision: *revision,
                };
                let entries = self.store.entries.iter().map(entry).collect();
                let revision = self.store.revision;
                self.report(index, StoreEvent::Read { revision, entries }, revision);
            }
        }
        self.followers[index].is_watching = true;
    }

    fn lives(&mut self) {
        let now = self.clock.now();
        for node in 0..NODES {
            let is_cut = self.is_cut(node);
            let name = entry_of(node);
            let link = &mut self.links[node];
            let is_there = self.store.entries.contains_key(&name);
            match &link.life {
                Some((process, _)) if !is_cut => {
                    link.lives_until = now + LIFE;
                    if !is_there {
                        link.lease += 1;
                        let value = Words::default().with("process", process).show();
                        self.apply(vec![StoreChange::Put { name, value, expected: 0 }]);
                    }
                }
                _ if is_there && link.lives_until < now => {
                    self.apply(vec![StoreChange::Remove { name, expected: 0 }]);
                }
                _ => {}
            }
        }
        self.after(LIFE_EVERY, Event::Lives);
    }

    /// Returns the number of the lease of a process, as it knows it. One that is stopped looks when
    /// it goes on.
    fn lease(&self, node: usize, process: u64) -> Option<u64> {
        let link = &self.links[node];
        let is_own = link.life.as_ref().is_some_and(|(shown, _)| *shown == process);
        let is_there = self.store.entries.contains_key(&entry_of(node));
        let lasts = self.clock.now() + LIFE_MARGIN < link.lives_until;
        (is_own && is_there && lasts).then_some(link.lease)
    }

    fn commit(&mut self, changes: &[StoreChange]) -> Result<u64, NotStored> {
        for change in changes {
            let found = self.store.entries.get(change.name()).map_or(0, |(revision, _)| *revision);
            let is_compared = match self.checks {
                Checks::All => true,
                Checks::ChangedEntries => change.name() != COMMITS,
                Checks::None => false,
            };
            if is_compared && found != change.expected() {
                return Err(NotStored::Conflict { name: change.name().to_owned() });
            }
        }
        Ok(self.apply(changes.to_vec()))
    }

    fn apply(&mut self, changes: Vec<StoreChange>) -> u64 {
        self.store.revision += 1;
        let revision = self.store.revision;
        let mut done = Vec::new();
        for change in changes {
            done.push(match change {
                StoreChange::Put { name, value, .. } => {
                    self.elections += u64::from(name == LEADER);
                    self.store.entries.insert(name.clone(), (revision, value.clone()));
                    StoredChange::Put(StoredEntry { name, value, revision })
                }
                StoreChange::Remove { name, .. } => {
                    self.store.entries.remove(&name);
                    StoredChange::Removed { name, revision }
                }
            });
        }
        self.check(&done);
        self.store.history.push((revision, done.clone()));
        for follower in 0..self.followers.len() {
            if self.followers[follower].is_watching {
                self.report(follower, StoreEvent::Changed(done.clone()), revision);
            }
        }
        revision
    }

    /// Checks what must always hold.
    fn check(&mut self, done: &[StoredChange]) {
        let number = |words: &Words, key: &str| words.read::<u64>(key).unwrap();
        let words = |name: &str| {
            let entry = self.store.entries.get(name);
            entry.map(|(_, value)| Words::parse(value).unwrap())
        };
        let commits = words(COMMITS).map_or(0, |words| number(&words, "count"));
        let is_whole = commits >= self.most_commits;
        self.most_commits = self.most_commits.max(commits);
        let leader = words(LEADER);
        let leader = leader.as_ref().and_then(|words| words.text("node"));
        let mut wrong = Vec::new();
        for change in done {
            let StoredChange::Put(StoredEntry { name, value, .. }) = change else { continue };
            let words = Words::parse(value).unwrap();
            let Some(order) = words.read_some::<u64>("order").unwrap() else { continue };
            let is_new = self.stored.insert(order);
            if self.refused.contains(&order) {
                wrong.push(format!("order {order} is stored, and was refused before"));
            }
            if name == ROUTE && is_new {
                self.led += 1;
                if words.text("node") != leader {
                    wrong.push(format!("{value} is stored, and {leader:?} leads"));
                }
            }
        }
        let mut loads = [0; LINES];
        let lines = self.store.entries.iter().filter(|(name, _)| name.starts_with("take/"));
        for (_, (_, value)) in lines {
            let words = Words::parse(value).unwrap();
            loads[words.read::<usize>("line").unwrap()] += number(&words, "amount");
        }
        if is_whole && loads.iter().any(|load| *load > CAPACITY) {
            wrong.push(format!("a line carries more than {CAPACITY}: {loads:?}"));
        }
        if self.violation.is_none() {
            self.violation = wrong.into_iter().next();
        }
    }
}

/// Name of a controller.
pub(crate) fn name_of(node: usize) -> String {
    ["a", "b", "c"][node].to_owned()
}

fn entry_of(node: usize) -> String {
    format!("{NODE}{}", name_of(node))
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.node)
    }
}

impl EntryStore for Client {
    fn limits(&self) -> StoreLimits {
        StoreLimits { changes: MAX_CHANGES, bytes: 1 << 16 }
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        let (answer, answered) = promise();
        let mut state = self.etcd.state();
        let node = self.node;
        if let Err(error) = self.limits().check(&changes) {
            answer.resolve(Err(error));
        } else if state.is_cut(node) && state.random.bool() {
            let error = NotStored::Unavailable("no connection".into());
            state.after(ms(200), Event::GiveUp { answer, error });
        } else {
            let delay = state.delay(node);
            state.after(delay, Event::Arrive { node, changes, answer });
        }
        Box::pin(async move {
            answered.await.unwrap_or_else(|| Err(NotStored::Unknown("the process ends".into())))
        })
    }

    fn follow(&self) -> StoreEvents {
        let (reports, receiver) = async_channel::unbounded();
        let mut state = self.etcd.state();
        let follower = state.followers.len();
        state.followers.push(Follower {
            node: self.node,
            session: 0,
            is_watching: false,
            revision: None,
            last: Duration::ZERO,
            reports,
        });
        let delay = state.delay(self.node);
        state.after(delay, Event::Read { follower, session: 0 });
        Box::pin(receiver)
    }

    /// An answer to a sign of life takes no time here, and an entry of an earlier process is taken
    /// over.
    fn show_life(&self, name: &str) -> Life {
        self.etcd.state().links[self.node].life = Some((self.process, name.to_owned()));
        let (etcd, node, process) = (self.etcd.clone(), self.node, self.process);
        Life::new(move || etcd.state().lease(node, process))
    }
}
