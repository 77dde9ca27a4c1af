//! The controllers, their orders, and the faults.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bellrock_book::{BookModel, Draft, EntryBook, NotOrdered, Words};
use fastrand::Rng;

use crate::clock::Clock;
use crate::model::{Checks, Etcd, LEADER, ROUTE, name_of};

/// Number of controllers.
pub(crate) const NODES: usize = 3;
/// Number of lines, and what each carries.
pub(crate) const LINES: usize = 3;
pub(crate) const CAPACITY: u64 = 100;

/// Number of names of what is taken.
const NAMES: u64 = 40;
/// Faults happen until then. Then a snapshot may be restored, and orders go on.
const FAULTS_UNTIL: Duration = ms(15_000);
const RESTORE_AT: Duration = ms(24_000);
/// No order comes for so long before a snapshot is restored: etcd is down then.
const QUIET_BEFORE_RESTORE: Duration = ms(1500);
/// By then all is well again, and each controller takes orders.
const WELL_AT: Duration = ms(30_000);
const ORDERS_UNTIL: Duration = ms(34_000);
const END: Duration = ms(44_000);

pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// What an order has taken of a line, or where the leader leads.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Taken { line: usize, amount: u64, order: u64 },
    Route { node: String, order: u64 },
}

/// What each line carries.
#[derive(Default)]
struct Loads([u64; LINES]);

impl BookModel for Loads {
    type Value = Value;

    fn read(name: &str, value: &str) -> Result<Value, String> {
        let words = Words::parse(value)?;
        let order = words.read("order")?;
        Ok(match name {
            ROUTE => Value::Route { node: words.read("node")?, order },
            _ => Value::Taken { line: words.read("line")?, amount: words.read("amount")?, order },
        })
    }

    fn show(value: &Value) -> String {
        let words = Words::default();
        match value {
            Value::Taken { line, amount, order } => {
                words.with("line", line).with("amount", amount).with("order", order)
            }
            Value::Route { node, order } => words.with("node", node).with("order", order),
        }
        .show()
    }

    fn change(&mut self, _: &str, before: Option<&Value>, after: Option<&Value>) {
        if let Some(Value::Taken { line, amount, .. }) = after {
            self.0[*line] += amount;
        }
        if let Some(Value::Taken { line, amount, .. }) = before {
            self.0[*line] -= amount;
        }
    }
}

/// Why an order is refused.
type Refusal = &'static str;
type Answer = Pin<Box<dyn Future<Output = Result<(), NotOrdered<Refusal>>>>>;

/// An order without answer.
struct Waiting {
    order: u64,
    what: Order,
    answer: Answer,
}

#[derive(Clone, Debug)]
enum Order {
    Take { name: String },
    Release { name: String, of: u64 },
    Lead,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A process of a controller.
struct Process {
    book: EntryBook<Loads>,
    task: Pin<Box<dyn Future<Output = ()>>>,
    waiting: Vec<Waiting>,
    is_awake: Arc<Flag>,
    waker: Waker,
    is_stopped: bool,
    /// Its sign of life, while it is stopped.
    life: Option<(u64, String)>,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Played {
    pub(crate) confirmed: u64,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
    pub(crate) led: u64,
    pub(crate) elections: u64,
    pub(crate) restores: u64,
}

impl Played {
    pub(crate) fn add(&mut self, other: &Played) {
        self.confirmed += other.confirmed;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.led += other.led;
        self.elections += other.elections;
        self.restores += other.restores;
    }
}

/// The end of a fault.
#[derive(Clone, Copy, Debug)]
enum End {
    Start(usize),
    Continue(usize),
    Heal(usize),
    Fast(usize),
}

pub(crate) struct World {
    clock: Clock,
    random: Rng,
    etcd: Etcd,
    nodes: Vec<Option<Process>>,
    processes: u64,
    next_order: u64,
    next_fault: Duration,
    next_order_at: Duration,
    ends: BTreeMap<(Duration, u64), End>,
    /// Orders that were confirmed, by name, until somebody gives them up.
    confirmed: BTreeMap<String, u64>,
    /// Orders that somebody gives up, and those of them for which that was confirmed.
    given_up: BTreeSet<u64>,
    released: BTreeMap<u64, String>,
    restores: bool,
    /// An order that was not carried out when all was well again.
    late: Option<String>,
    played: Played,
    is_shown: bool,
}

impl World {
    pub(crate) fn new(seed: u64, checks: Checks, is_shown: bool) -> Self {
        let mut random = Rng::with_seed(seed);
        let clock = Clock::default();
        let etcd = Etcd::new(clock.clone(), checks, random.fork());
        let restores = random.u8(..4) == 0;
        let mut world = World {
            clock,
            random,
            etcd,
            nodes: Vec::new(),
            processes: 0,
            next_order: 0,
            next_fault: ms(2000),
            next_order_at: ms(100),
            ends: BTreeMap::new(),
            confirmed: BTreeMap::new(),
            given_up: BTreeSet::new(),
            released: BTreeMap::new(),
            restores,
            late: None,
            played: Played::default(),
            is_shown,
        };
        for node in 0..NODES {
            world.nodes.push(None);
            world.start(node);
        }
        world
    }

    fn log(&self, text: impl FnOnce() -> String) {
        if self.is_shown {
            println!("{:>9.3} {}", self.clock.now().as_secs_f64(), text());
        }
    }

    fn start(&mut self, node: usize) {
        self.processes += 1;
        let client = self.etcd.client(node, self.processes);
        let book = EntryBook::shared(Arc::new(client), name_of(node));
        let is_awake = Arc::new(Flag(AtomicBool::new(true)));
        self.nodes[node] = Some(Process {
            task: Box::pin(book.clone().run(self.clock.network())),
            book,
            waiting: Vec::new(),
            waker: Arc::clone(&is_awake).into(),
            is_awake,
            is_stopped: false,
            life: None,
        });
    }

    /// Plays to the end.
    pub(crate) fn play(mut self) -> Result<Played, String> {
        let mut is_restored = false;
        while self.clock.now() < END {
            self.poll_all();
            if let Some(violation) = self.etcd.violation() {
                return Err(format!("at {:?}: {violation}", self.clock.now()));
            }
            let now = self.clock.now();
            let timers = [self.clock.next(), self.etcd.next()];
            let ends = self.ends.first_key_value().map(|((at, _), _)| *at);
            let restore = (!is_restored).then_some(RESTORE_AT);
            let own = [Some(self.next_fault), Some(self.next_order_at), ends, restore, Some(END)];
            let next = timers.into_iter().chain(own).flatten().min().unwrap_or(END).max(now);
            self.clock.advance(next);
            self.etcd.run();
            self.end_faults();
            if next >= self.next_fault {
                self.fault();
            }
            if next >= self.next_order_at {
                self.order();
            }
            if !is_restored && next >= RESTORE_AT {
                is_restored = true;
                if self.restores && self.etcd.restore() {
                    self.log(|| "the snapshot is restored".into());
                    self.played.restores += 1;
                }
            }
        }
        self.poll_all();
        self.check_end()?;
        (self.played.elections, self.played.led) = self.etcd.counts();
        Ok(self.played)
    }

    fn poll_all(&mut self) {
        loop {
            let mut is_idle = true;
            for node in 0..NODES {
                let Some(process) = &mut self.nodes[node] else { continue };
                if process.is_stopped || !process.is_awake.0.swap(false, Ordering::Relaxed) {
                    continue;
                }
                is_idle = false;
                let mut context = Context::from_waker(&process.waker);
                assert!(process.task.as_mut().poll(&mut context).is_pending(), "it ended");
                let mut answers = Vec::new();
                process.waiting.retain_mut(|waiting| {
                    match waiting.answer.as_mut().poll(&mut context) {
                        Poll::Ready(answer) => {
                            answers.push((waiting.order, waiting.what.clone(), answer));
                            false
                        }
                        Poll::Pending => true,
                    }
                });
                for (order, what, answer) in answers {
                    self.log(|| format!("{}: {order} {what:?}: {answer:?}", name_of(node)));
                    self.answer(order, what, answer);
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn answer(&mut self, order: u64, what: Order, answer: Result<(), NotOrdered<Refusal>>) {
        let has_failed = matches!(answer, Err(NotOrdered::Unknown(_) | NotOrdered::Unavailable(_)));
        if has_failed && self.clock.now() >= WELL_AT {
            self.late = Some(format!("order {order} {what:?} at the end: {answer:?}"));
        }
        let is_stored = match answer {
            Ok(()) => true,
            Err(NotOrdered::Unknown(_) | NotOrdered::Partly { .. }) => {
                self.played.unknown += 1;
                return;
            }
            Err(_) => false,
        };
        self.played.confirmed += u64::from(is_stored);
        self.played.refused += u64::from(!is_stored);
        match what {
            Order::Take { name } if is_stored && !self.given_up.contains(&order) => {
                self.confirmed.insert(name, order);
            }
            Order::Take { .. } | Order::Lead if !is_stored => self.etcd.refuse(order),
            Order::Release { name, of } if is_stored => drop(self.released.insert(of, name)),
            _ => {}
        }
    }

    /// Gives an order to a controller.
    fn order(&mut self) {
        let now = self.clock.now();
        self.next_order_at = now + ms(self.random.u64(1..60));
        let is_quiet = self.restores && now + QUIET_BEFORE_RESTORE > RESTORE_AT && now < RESTORE_AT;
        if now >= ORDERS_UNTIL || is_quiet {
            return;
        }
        let node = self.random.usize(..NODES);
        if self.nodes[node].is_none() {
            return;
        }
        self.next_order += 1;
        let order = self.next_order;
        let what = match self.random.u8(..10) {
            0 => Order::Lead,
            1..=4 => {
                let taken = self.etcd.taken();
                if taken.is_empty() {
                    return;
                }
                // Also what was taken without an answer, or has none yet.
                let (name, of) = taken[self.random.usize(..taken.len())].clone();
                self.given_up.insert(of);
                self.confirmed.retain(|_, order| *order != of);
                Order::Release { name, of }
            }
            _ => Order::Take { name: format!("take/{}", self.random.u64(..NAMES)) },
        };
        let (line, amount) = (self.random.usize(..LINES), self.random.u64(10..40));
        let process = self.nodes[node].as_mut().unwrap();
        let book = process.book.clone();
        let answer: Answer = match what.clone() {
            Order::Take { name } => Box::pin(async move {
                book.order(move |draft| take(draft, &name, line, amount, order)).await
            }),
            Order::Release { name, of } => {
                Box::pin(async move { book.order(move |draft| release(draft, &name, of)).await })
            }
            Order::Lead => Box::pin(async move {
                let node = book.node().to_owned();
                book.order(move |draft| lead(draft, &node, order)).await
            }),
        };
        process.waiting.push(Waiting { order, what, answer });
        process.is_awake.0.store(true, Ordering::Relaxed);
    }

    fn end_at(&mut self, lasts: Duration, end: End) {
        let number = self.ends.len() as u64 + (self.random.u64(..1 << 40) << 8);
        self.ends.insert((self.clock.now() + lasts, number), end);
    }

    fn end_faults(&mut self) {
        while let Some(entry) = self.ends.first_entry() {
            if entry.key().0 > self.clock.now() {
                return;
            }
            let end = entry.remove();
            self.log(|| format!("{end:?}"));
            match end {
                End::Start(node) => self.start(node),
                End::Continue(node) => {
                    if let Some(process) = &mut self.nodes[node] {
                        process.is_stopped = false;
                        let life = process.life.take();
                        self.etcd.resume_life(node, life);
                    }
                }
                End::Heal(node) => self.etcd.set_cut(node, false),
                End::Fast(node) => self.etcd.set_slowness(node, 1),
            }
        }
    }

    /// Does something bad, and plans its end.
    fn fault(&mut self) {
        let now = self.clock.now();
        self.next_fault =
            if now < FAULTS_UNTIL { now + ms(self.random.u64(50..1500)) } else { Duration::MAX };
        let node = self.random.usize(..NODES);
        let lasts = ms(self.random.u64(20..5000));
        match self.random.u8(..10) {
            0 | 1 => {
                // What waits for an answer never gets one.
                let Some(ended) = self.nodes[node].take() else { return };
                self.log(|| format!("{} ends for {lasts:?}", name_of(node)));
                self.played.unknown += ended.waiting.len() as u64;
                self.etcd.end(node);
                self.end_at(lasts, End::Start(node));
            }
            2 | 3 => {
                let Some(process) = &mut self.nodes[node] else { return };
                if process.is_stopped {
                    return;
                }
                process.is_stopped = true;
                process.life = self.etcd.stop_life(node);
                self.log(|| format!("{} is stopped for {lasts:?}", name_of(node)));
                self.end_at(lasts, End::Continue(node));
            }
            4..=6 => {
                self.log(|| format!("{} is cut for {lasts:?}", name_of(node)));
                self.etcd.set_cut(node, true);
                self.end_at(lasts, End::Heal(node));
            }
            7 => {
                self.log(|| format!("etcd is cut for {lasts:?}"));
                for node in 0..NODES {
                    self.etcd.set_cut(node, true);
                    self.end_at(lasts, End::Heal(node));
                }
            }
            8 => {
                self.log(|| format!("{} is slow for {lasts:?}", name_of(node)));
                self.etcd.set_slowness(node, 30);
                self.end_at(lasts, End::Fast(node));
            }
            _ => {
                self.log(|| "a snapshot is made".into());
                self.etcd.make_snapshot();
            }
        }
    }

    /// Checks what must hold long after the last fault.
    fn check_end(&self) -> Result<(), String> {
        if let Some(late) = &self.late {
            return Err(late.clone());
        }
        let mut stored = self.etcd.entries();
        let leader = stored.remove(LEADER).unwrap_or_default();
        for (name, order) in &self.confirmed {
            let value = stored.get(name);
            let is_there = value.is_some_and(|it| it.contains(&format!("order={order}\"")));
            if !is_there {
                return Err(format!("{name} of order {order} is lost: {value:?} is stored"));
            }
        }
        for (order, name) in &self.released {
            let value = stored.get(name);
            if value.is_some_and(|it| it.contains(&format!("order={order}\""))) {
                return Err(format!("{name} of order {order} was given up, and is stored"));
            }
        }
        let mut leaders = Vec::new();
        for process in self.nodes.iter().flatten() {
            let book = &process.book;
            let known: BTreeMap<String, String> =
                book.values().into_iter().map(|(name, it)| (name, Loads::show(&it))).collect();
            if known != stored {
                return Err(format!("{} knows {known:?}, stored is {stored:?}", book.node()));
            }
            if !process.waiting.is_empty() {
                let waiting = process.waiting.iter().map(|it| &it.what).collect::<Vec<_>>();
                return Err(format!("{} has not answered {waiting:?}", book.node()));
            }
            if book.is_leader() {
                leaders.push(book.node().to_owned());
            }
        }
        let [one] = &leaders[..] else { return Err(format!("{leaders:?} lead: {leader}")) };
        if !leader.contains(&format!("node={one}")) {
            return Err(format!("{one} leads, and stored is {leader}"));
        }
        Ok(())
    }
}

/// What each line carries with the changes of a draft.
fn loads(draft: &Draft<'_, Loads>) -> [u64; LINES] {
    let mut loads = Loads(draft.model().0);
    for (name, before, after) in draft.changes() {
        // Those that a draft adds come first, so that no sum is negative.
        loads.change(name, None, after);
        loads.change(name, before, None);
    }
    loads.0
}

fn take(
    draft: &mut Draft<'_, Loads>,
    name: &str,
    line: usize,
    amount: u64,
    order: u64,
) -> Result<(), Refusal> {
    if draft.value(name).is_some() {
        return Err("the name is taken");
    }
    if loads(draft)[line] + amount > CAPACITY {
        return Err("so much is not free");
    }
    draft.put(name, Value::Taken { line, amount, order });
    Ok(())
}

fn release(draft: &mut Draft<'_, Loads>, name: &str, of: u64) -> Result<(), Refusal> {
    match draft.value(name) {
        Some(Value::Taken { order, .. }) if *order == of => {
            draft.remove(name);
            Ok(())
        }
        _ => Err("it is not there"),
    }
}

fn lead(draft: &mut Draft<'_, Loads>, node: &str, order: u64) -> Result<(), Refusal> {
    if !draft.is_leader() {
        return Err("another one leads");
    }
    draft.put(ROUTE, Value::Route { node: node.to_owned(), order });
    Ok(())
}
