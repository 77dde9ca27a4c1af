//! Static entries of three controllers, through the book that all apps' orders have, with faults by
//! seed. Orders of up to twelve entries are larger than a commit here, so they are stored in parts.
//!
//! What must hold at every moment, unless a snapshot is being mended: no two entries have the same
//! number, or are the same flow of a switch. An order that was refused has stored nothing.
//!
//! What must hold some time after the last fault: no entry is older than an order that was
//! confirmed; all controllers have what is stored; and each one takes orders.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bellrock_api::{Dpid, Flow, Match, Port};
use bellrock_apps::static_entries::{
    StaticChange, StaticEntries, StaticEntry, StaticOrder, StaticRefusal, read_stored, show_stored,
    stored_name,
};
use bellrock_book::NotOrdered;
use bellrock_services::desired::DesiredEntry;
use fastrand::Rng;

use crate::clock::Clock;
use crate::model::{Checks, Etcd, name_of};
use crate::shared::play_seeds;
use crate::world::{NODES, ms};

/// Number of seeds that are played.
const SEEDS: u64 = 300;
/// Number of names, and of the flows that entries can be: so few that orders contradict each other.
const NAMES: u64 = 24;
const PLACES: u32 = 32;
/// Maximum number of entries of an order.
const MAX_ENTRIES: usize = 12;
/// Faults happen until then. Then a snapshot may be restored, and orders go on.
const FAULTS_UNTIL: Duration = ms(12_000);
const RESTORE_AT: Duration = ms(20_000);
/// No order comes for so long before a snapshot is restored: etcd is down then.
const QUIET_BEFORE_RESTORE: Duration = ms(1500);
/// Controllers lose their connections while they put back what a restored snapshot lacks: so long
/// after it was restored, until so long after it.
const CUTS_AFTER: Duration = ms(400);
const CUTS_UNTIL: Duration = ms(2000);
/// By then all is well again, and each controller takes orders.
const WELL_AT: Duration = ms(26_000);
const ORDERS_UNTIL: Duration = ms(29_000);
const END: Duration = ms(38_000);

type Ordered = Result<StaticChange, NotOrdered<StaticRefusal>>;
type Task<T> = Pin<Box<dyn Future<Output = T>>>;

/// What happened in all seeds.
#[derive(Clone, Copy, Debug, Default)]
struct Played {
    confirmed: u64,
    refused: u64,
    /// Orders of which a part is stored.
    partly: u64,
    restores: u64,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A process of a controller, and its orders without answers.
struct Process {
    entries: StaticEntries,
    task: Task<()>,
    waiting: Vec<(u32, Task<Ordered>)>,
    is_awake: Arc<Flag>,
    waker: Waker,
}

/// An order, and when it was given and answered.
struct Given {
    names: BTreeSet<String>,
    is_removal: bool,
    at: Duration,
    answered: Option<Duration>,
    is_confirmed: bool,
}

impl Given {
    /// Whether this removal may have removed what the other order has set.
    fn may_remove(&self, name: &str, other: &Given) -> bool {
        self.names.contains(name) && !self.precedes(other)
    }

    /// Whether this order was over before the other one was given.
    fn precedes(&self, other: &Given) -> bool {
        self.answered.is_some_and(|answered| answered < other.at)
    }
}

struct World {
    clock: Clock,
    random: Rng,
    etcd: Etcd,
    nodes: Vec<Option<Process>>,
    processes: u64,
    /// By number. An entry has the number of its order as the port that its flow sends to.
    orders: BTreeMap<u32, Given>,
    refused: BTreeSet<u32>,
    /// Ends of faults.
    ends: BTreeMap<(Duration, u64), End>,
    faults: u64,
    played: Played,
}

/// The end of a fault of a controller.
enum End {
    Start(usize),
    Heal(usize),
    Fast(usize),
}

fn flow(place: u32, order: u32) -> Flow {
    Flow::new(Match::any().in_port(Port(place))).output(Port(order))
}

/// The flow that an entry is, and the order that has set it.
fn place_and_order(entry: &StaticEntry) -> (String, u32) {
    let DesiredEntry::Flow(flow) = &entry.wanted else { panic!("{entry:?}") };
    let order = show_stored(entry).rsplit_once("output:").map(|(_, rest)| rest.to_owned());
    let order = order.unwrap().trim_end_matches('"').parse().unwrap();
    (flow.matching.to_string(), order)
}

/// The port that the flow of an entry matches.
fn port_of(entry: &StaticEntry) -> u32 {
    let (place, _) = place_and_order(entry);
    place.strip_prefix("in_port=").unwrap().parse().unwrap()
}

impl World {
    fn new(seed: u64) -> Self {
        let (mut random, clock) = (Rng::with_seed(seed), Clock::default());
        let etcd = Etcd::new(clock.clone(), Checks::All, random.fork());
        let mut world = World {
            clock,
            random,
            etcd,
            nodes: Vec::new(),
            processes: 0,
            orders: BTreeMap::new(),
            refused: BTreeSet::new(),
            ends: BTreeMap::new(),
            faults: 0,
            played: Played::default(),
        };
        world.nodes = (0..NODES).map(|node| Some(world.start(node))).collect();
        world
    }

    fn start(&mut self, node: usize) -> Process {
        self.processes += 1;
        let store = Arc::new(self.etcd.client(node, self.processes));
        let entries = StaticEntries::shared(store, name_of(node), || Duration::ZERO);
        let is_awake = Arc::new(Flag(AtomicBool::new(true)));
        Process {
            task: Box::pin(entries.clone().run_store(self.clock.network())),
            entries,
            waiting: Vec::new(),
            waker: Arc::clone(&is_awake).into(),
            is_awake,
        }
    }

    fn play(mut self) -> Result<Played, String> {
        let restores = self.random.u8(..3) == 0;
        let (mut next_order, mut next_fault) = (ms(100), ms(1500));
        let (mut restore_at, mut next_cut) = (Some(RESTORE_AT), Duration::MAX);
        while self.clock.now() < END {
            self.poll_all()?;
            self.check_stored()?;
            let ends = self.ends.first_key_value().map(|((at, _), _)| *at);
            let timers = [self.clock.next(), self.etcd.next(), ends, restore_at];
            let own = [Some(next_order), Some(next_fault), Some(next_cut), Some(END)];
            let next = timers.into_iter().chain(own).flatten().min().unwrap_or(END);
            let now = next.max(self.clock.now());
            self.clock.advance(now);
            self.etcd.run();
            self.end_faults();
            if now >= next_fault {
                let pause = ms(self.random.u64(50..1500));
                next_fault = if now < FAULTS_UNTIL { now + pause } else { Duration::MAX };
                self.fault();
            }
            if now >= next_order {
                next_order = now + ms(self.random.u64(1..150));
                let is_quiet = now + QUIET_BEFORE_RESTORE > RESTORE_AT && now < RESTORE_AT;
                if now < ORDERS_UNTIL && !is_quiet {
                    self.order();
                }
            }
            let is_time = restore_at.take_if(|at| now >= *at).is_some();
            if is_time && restores && self.etcd.restore() {
                self.played.restores += 1;
                next_cut = now + CUTS_AFTER;
            }
            if now >= next_cut {
                let is_over = now >= RESTORE_AT + CUTS_UNTIL;
                next_cut = if is_over { Duration::MAX } else { now + ms(self.random.u64(5..60)) };
                let (node, lasts) = (self.random.usize(..NODES), ms(self.random.u64(10..200)));
                self.cut(node, lasts);
            }
        }
        self.poll_all()?;
        self.check_end()?;
        Ok(self.played)
    }

    fn poll_all(&mut self) -> Result<(), String> {
        let mut answers = Vec::new();
        let is_awake = |process: &&mut Process| process.is_awake.0.swap(false, Ordering::Relaxed);
        while let Some(process) = self.nodes.iter_mut().flatten().find(is_awake) {
            let mut context = Context::from_waker(&process.waker);
            assert!(process.task.as_mut().poll(&mut context).is_pending(), "it ended");
            process.waiting.retain_mut(|(number, order)| match order.as_mut().poll(&mut context) {
                Poll::Ready(answer) => {
                    answers.push((*number, answer));
                    false
                }
                Poll::Pending => true,
            });
        }
        answers.into_iter().try_for_each(|(number, answer)| self.answer(number, answer))
    }

    fn answer(&mut self, number: u32, answer: Ordered) -> Result<(), String> {
        let now = self.clock.now();
        let given = self.orders.get_mut(&number).unwrap();
        match answer {
            Ok(_) => {
                given.is_confirmed = true;
                self.played.confirmed += 1;
            }
            Err(NotOrdered::Refused(_)) => {
                self.refused.insert(number);
                self.played.refused += 1;
            }
            // A part of it may be stored, and another order may be what it lost to.
            Err(NotOrdered::Partly { why, .. }) => {
                self.played.partly += 1;
                if now >= WELL_AT && !matches!(*why, NotOrdered::Refused(_)) {
                    return Err(format!("order {number} at the end: {why}"));
                }
                if matches!(*why, NotOrdered::Unknown(_)) {
                    return Ok(());
                }
            }
            Err(error) if now >= WELL_AT => {
                return Err(format!("order {number} at the end: {error}"));
            }
            Err(NotOrdered::Unavailable(_)) => drop(self.refused.insert(number)),
            // It may be carried out later.
            Err(NotOrdered::Unknown(_)) => return Ok(()),
        }
        given.answered = Some(now);
        Ok(())
    }

    /// Gives an order to a controller.
    fn order(&mut self) {
        let (node, at) = (self.random.usize(..NODES), self.clock.now());
        let Some(process) = &mut self.nodes[node] else { return };
        let number = u32::try_from(self.orders.len() + 1).unwrap();
        let count = if self.random.bool() { 1 } else { self.random.usize(1..=MAX_ENTRIES) };
        let random = &mut self.random;
        let names: BTreeSet<String> =
            (0..count).map(|_| format!("n{}", random.u64(..NAMES))).collect();
        let is_removal = random.u8(..3) == 0;
        let mut order = StaticOrder { owner: "alice".to_owned(), ..StaticOrder::default() };
        let mut places: BTreeMap<&str, u32> =
            names.iter().map(|name| (&**name, random.u32(1..=PLACES))).collect();
        if random.u8(..4) == 0 {
            // Two entries exchange their places.
            let there: Vec<(&str, u32)> = names
                .iter()
                .filter_map(|name| Some((&**name, port_of(&process.entries.entry(name)?))))
                .collect();
            for pair in there.chunks_exact(2) {
                places.extend([(pair[0].0, pair[1].1), (pair[1].0, pair[0].1)]);
            }
        }
        for name in &names {
            if !is_removal {
                order.set.push(StaticEntry {
                    name: name.clone(),
                    owner: "alice".to_owned(),
                    dpid: Dpid(1),
                    wanted: flow(places[&**name], number).into(),
                    end: None,
                    number: 0,
                });
            } else if process.entries.entry(name).is_some() {
                order.remove.push(name.clone());
            }
        }
        let removed = order.remove.iter().cloned().collect();
        let names = if is_removal { removed } else { names };
        let entries = process.entries.clone();
        process.waiting.push((number, Box::pin(async move { entries.order(order).await })));
        process.is_awake.0.store(true, Ordering::Relaxed);
        let given = Given { names, is_removal, at, answered: None, is_confirmed: false };
        self.orders.insert(number, given);
    }

    fn fault(&mut self) {
        let (node, lasts) = (self.random.usize(..NODES), ms(self.random.u64(20..4000)));
        let end = match self.random.u8(..6) {
            0 | 1 if self.nodes[node].is_some() => {
                // Its orders never get an answer.
                self.nodes[node] = None;
                self.etcd.end(node);
                End::Start(node)
            }
            2 => {
                self.etcd.set_slowness(node, 30);
                End::Fast(node)
            }
            3 => return self.etcd.make_snapshot(),
            _ => return self.cut(node, lasts),
        };
        self.end_at(lasts, end);
    }

    fn cut(&mut self, node: usize, lasts: Duration) {
        self.etcd.set_cut(node, true);
        self.end_at(lasts, End::Heal(node));
    }

    fn end_at(&mut self, lasts: Duration, end: End) {
        self.faults += 1;
        self.ends.insert((self.clock.now() + lasts, self.faults), end);
    }

    fn end_faults(&mut self) {
        let now = self.clock.now();
        while self.ends.first_key_value().is_some_and(|((at, _), _)| *at <= now) {
            match self.ends.pop_first() {
                Some((_, End::Start(node))) => self.nodes[node] = Some(self.start(node)),
                Some((_, End::Heal(node))) => self.etcd.set_cut(node, false),
                Some((_, End::Fast(node))) => self.etcd.set_slowness(node, 1),
                None => {}
            }
        }
    }

    fn stored(&self) -> Vec<StaticEntry> {
        let entries = self.etcd.entries().into_iter();
        let entries = entries.filter(|(name, _)| name.starts_with(&stored_name("")));
        entries.map(|(name, value)| read_stored(&name, &value).unwrap()).collect()
    }

    /// Checks what must always hold.
    fn check_stored(&self) -> Result<(), String> {
        let (mut numbers, mut places) = (BTreeMap::new(), BTreeMap::new());
        let is_whole = self.etcd.is_whole();
        for entry in self.stored() {
            let (place, order) = place_and_order(&entry);
            let number_of = numbers.insert(entry.number, entry.name.clone());
            let place_of = places.insert(place, entry.name.clone());
            if let Some(other) = number_of.or(place_of).filter(|_| is_whole) {
                let now = self.clock.now();
                return Err(format!("at {now:?}: twice: {other}, and {}", show_stored(&entry)));
            }
            if self.refused.contains(&order) {
                return Err(format!("order {order} was refused, and has stored {entry:?}"));
            }
        }
        Ok(())
    }

    /// Checks what must hold long after the last fault.
    fn check_end(&self) -> Result<(), String> {
        let stored = self.stored();
        for (node, process) in self.nodes.iter().enumerate() {
            let Some(process) = process else { return Err(format!("node {node} is down")) };
            let all = process.entries.all();
            if all != stored {
                return Err(format!("node {node} has {all:?}, stored is {stored:?}"));
            }
            if let Some((number, _)) = process.waiting.first() {
                return Err(format!("node {node} has not answered order {number}"));
            }
        }
        let setters: BTreeMap<&str, u32> =
            stored.iter().map(|it| (&*it.name, place_and_order(it).1)).collect();
        let confirmed = self.orders.values().filter(|given| given.is_confirmed);
        for (given, name) in confirmed.flat_map(|it| it.names.iter().map(move |name| (it, name))) {
            let removals = || self.orders.values().filter(|it| it.is_removal);
            let is_right = match setters.get(&**name) {
                Some(setter) => !self.orders[setter].precedes(given),
                None => given.is_removal || removals().any(|it| it.may_remove(name, given)),
            };
            if !is_right {
                let setter = setters.get(&**name);
                return Err(format!("{name} of an order at {:?} is lost: {setter:?}", given.at));
            }
        }
        Ok(())
    }
}

#[test]
fn static_entries_survive_all_faults_and_never_contradict_each_other() {
    if let Ok(seed) = std::env::var("SEED") {
        println!("{:?}", World::new(seed.parse().unwrap()).play().unwrap());
        return;
    }
    let mut all = Played::default();
    for (seed, played) in play_seeds(1..=SEEDS, |seed| World::new(seed).play()) {
        let Played { confirmed, refused, partly, restores } =
            played.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        all.confirmed += confirmed;
        all.refused += refused;
        all.partly += partly;
        all.restores += restores;
    }
    // All of it happened, so all of it was tested.
    assert!(all.confirmed > 20 * SEEDS && all.refused > SEEDS, "{all:?}");
    assert!(all.partly > SEEDS / 20 && all.restores > SEEDS / 10, "{all:?}");
}
