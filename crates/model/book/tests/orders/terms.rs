//! Apps that run once: three controllers with the real [`Leadership`], and faults by seed.
//!
//! What must hold at every moment: no task of a term has a turn after one of a later term had one.
//! What must hold some time after the last fault: one controller runs the app.
//!
//! A snapshot is not restored here: then two may lead until both have read it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};
use std::time::Duration;

use bellrock_api::runtime::{DynApp, NewTask, RunningTask, TaskFuture, TaskWork};
use bellrock_api::{App, Network, Scope, SwitchInfo, TaskHandle};
use bellrock_book::leadership::Leadership;
use fastrand::Rng;

use crate::clock::Clock;
use crate::model::{Checks, Etcd, name_of};
use crate::world::{NODES, ms};

/// Number of seeds that are played.
const SEEDS: u64 = 300;
/// Faults begin until then.
const FAULTS_UNTIL: Duration = ms(30_000);
const END: Duration = ms(45_000);
/// Time between two turns of the app's task.
const EVERY: Duration = ms(20);
/// Maximum time between its last turn and the end.
const RUNS_AT_THE_END: Duration = ms(100);

/// What all controllers' apps have done.
#[derive(Default)]
struct Record {
    latest_term: AtomicU64,
    turns: AtomicU64,
    starts: AtomicU64,
    /// Time of the last turn at each controller.
    last: Mutex<BTreeMap<usize, Duration>>,
    violation: Mutex<Option<String>>,
}

struct Once {
    node: usize,
    record: Arc<Record>,
}

impl App for Once {
    type Handler = ();

    fn scope(&self) -> Scope {
        Scope::Once
    }

    fn start(&self, network: &Network) {
        let (node, record, network) = (self.node, Arc::clone(&self.record), network.clone());
        record.starts.fetch_add(1, Ordering::Relaxed);
        network.clone().spawn("turns", async move {
            let number = network.term().unwrap().number();
            loop {
                record.turn(node, number, network.now());
                network.sleep(EVERY).await;
            }
        });
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}

impl Record {
    fn turn(&self, node: usize, number: u64, now: Duration) {
        let latest = self.latest_term.fetch_max(number, Ordering::Relaxed);
        if latest > number {
            let name = name_of(node);
            let wrong = format!("{name} has a turn of term {number} at {now:?}, after {latest}");
            self.violation.lock().unwrap().get_or_insert(wrong);
        }
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.last.lock().unwrap().insert(node, now);
    }
}

/// A task of a process.
struct Task {
    future: Mutex<Option<TaskFuture>>,
    is_awake: AtomicBool,
    is_over: AtomicBool,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.is_awake.store(true, Ordering::Relaxed);
    }
}

impl RunningTask for Task {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Ends the task at once. A task does not end itself here.
    fn cancel(self: Arc<Self>) {
        self.is_over.store(true, Ordering::Relaxed);
        drop(self.future.lock().unwrap().take());
    }
}

/// A process of a controller.
struct Process {
    tasks: Arc<Mutex<Vec<Arc<Task>>>>,
    is_stopped: bool,
    life: Option<(u64, String)>,
}

impl Process {
    fn start(clock: &Clock, etcd: &Etcd, node: usize, number: u64, record: &Arc<Record>) -> Self {
        let tasks: Arc<Mutex<Vec<Arc<Task>>>> = Arc::default();
        let added = Arc::clone(&tasks);
        let network = clock.network_with(Box::new(move |new: NewTask| {
            let future = match new.work {
                TaskWork::Once(future) => future,
                TaskWork::Again(mut make) => make(),
            };
            let task = Arc::new(Task {
                future: Mutex::new(Some(future)),
                is_awake: AtomicBool::new(true),
                is_over: AtomicBool::new(false),
            });
            added.lock().unwrap().push(Arc::clone(&task));
            TaskHandle::new(task)
        }));
        let store = Arc::new(etcd.client(node, number));
        let app = Once { node, record: Arc::clone(record) };
        let app: Box<dyn DynApp> = Box::new(app);
        Leadership::shared(store, name_of(node)).keep(app).start(&network);
        Process { tasks, is_stopped: false, life: None }
    }

    /// Polls each task that is awake once. Returns whether there was one.
    fn poll(&self) -> bool {
        let tasks = self.tasks.lock().unwrap().clone();
        let mut has_polled = false;
        for task in tasks {
            if !task.is_awake.swap(false, Ordering::Relaxed) {
                continue;
            }
            // A task may be cancelled by another one, so its lock is not held meanwhile.
            let Some(mut future) = task.future.lock().unwrap().take() else { continue };
            has_polled = true;
            let waker = Arc::clone(&task).into();
            if Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_ready() {
                task.is_over.store(true, Ordering::Relaxed);
            } else if !task.is_over() {
                *task.future.lock().unwrap() = Some(future);
            }
        }
        self.tasks.lock().unwrap().retain(|task| !task.is_over());
        has_polled
    }
}

/// The end of a fault.
enum End {
    Start(usize),
    Continue(usize),
    Heal(usize),
    Fast(usize),
}

/// Polls the tasks of all processes that are not stopped, until none is awake.
fn poll_all(nodes: &[Option<Process>]) {
    let poll =
        |has_polled: bool, process: &Process| (!process.is_stopped && process.poll()) || has_polled;
    while nodes.iter().flatten().fold(false, poll) {}
}

/// Plays a seed.
fn play(seed: u64) -> Result<Arc<Record>, String> {
    let mut random = Rng::with_seed(seed);
    let clock = Clock::default();
    let etcd = Etcd::new(clock.clone(), Checks::All, random.fork());
    let record = Arc::<Record>::default();
    let mut started = 0;
    let mut start = |node| {
        started += 1;
        Some(Process::start(&clock, &etcd, node, started, &record))
    };
    let mut nodes: Vec<Option<Process>> = (0..NODES).map(&mut start).collect();
    let (mut ends, mut faults) = (BTreeMap::new(), 0_u64);
    let mut next_fault = ms(1000);
    while clock.now() < END {
        poll_all(&nodes);
        if let Some(violation) = record.violation.lock().unwrap().take() {
            return Err(violation);
        }
        let now = clock.now();
        let end: Option<Duration> = ends.first_key_value().map(|((at, _), _)| *at);
        let timers = [clock.next(), etcd.next(), end, Some(next_fault), Some(END)];
        clock.advance(timers.into_iter().flatten().min().unwrap_or(END).max(now));
        etcd.run();
        let now = clock.now();
        while ends.first_key_value().is_some_and(|((at, _), _)| *at <= now) {
            match ends.pop_first() {
                Some((_, End::Start(node))) => nodes[node] = start(node),
                Some((_, End::Continue(node))) => {
                    if let Some(process) = &mut nodes[node] {
                        process.is_stopped = false;
                        etcd.resume_life(node, process.life.take());
                    }
                }
                Some((_, End::Heal(node))) => etcd.set_cut(node, false),
                Some((_, End::Fast(node))) => etcd.set_slowness(node, 1),
                None => {}
            }
        }
        if now < next_fault {
            continue;
        }
        let pause = ms(random.u64(50..2500));
        next_fault = if now < FAULTS_UNTIL { now + pause } else { Duration::MAX };
        let (node, lasts) = (random.usize(..NODES), ms(random.u64(20..6000)));
        faults += 1;
        let mut end_with = |end| _ = ends.insert((now + lasts, faults), end);
        match random.u8(..7) {
            0 | 1 if nodes[node].is_some() => {
                nodes[node] = None;
                etcd.end(node);
                end_with(End::Start(node));
            }
            2 | 3 => {
                if let Some(process) = nodes[node].as_mut().filter(|it| !it.is_stopped) {
                    process.is_stopped = true;
                    process.life = etcd.stop_life(node);
                    end_with(End::Continue(node));
                }
            }
            4 | 5 => {
                etcd.set_cut(node, true);
                end_with(End::Heal(node));
            }
            _ => {
                etcd.set_slowness(node, 30);
                end_with(End::Fast(node));
            }
        }
    }
    let since = END.saturating_sub(RUNS_AT_THE_END);
    let runs = record.last.lock().unwrap().values().filter(|last| **last >= since).count();
    if runs != 1 {
        return Err(format!("it runs at {runs} controllers at the end"));
    }
    Ok(record)
}

#[test]
fn no_task_has_a_turn_after_one_of_a_later_term() {
    let (mut turns, mut starts) = (0, 0);
    for seed in 1..=SEEDS {
        match play(seed) {
            Ok(record) => {
                turns += record.turns.load(Ordering::Relaxed);
                starts += record.starts.load(Ordering::Relaxed);
            }
            Err(failure) => panic!("seed {seed}: {failure}"),
        }
    }
    assert!(starts > 3 * SEEDS && turns > 500 * SEEDS, "{starts} starts, {turns} turns");
}
