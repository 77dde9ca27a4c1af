//! The executor of background tasks.
//!
//! The [`TaskWorker`] polls all tasks in turn. It has no thread and no clock: the engine runs it in
//! a thread beside the workers, the emulator's lab on a virtual clock. Any thread can wake a task
//! without a lock: the task goes to the end of the ready queue, which holds it at most once. So
//! each ready task is polled once before any is polled again, timers are checked after every
//! [`POLLS_PER_TURN`] polls, and the queue is no longer than the bounded list of tasks.
//!
//! A panic ends only its task; a supervised task restarts after a delay. The task worker drops what
//! a task owns, in its own turn.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bellrock_api::TaskHandle;
use bellrock_api::runtime::{MakeTask, NewTask, RunningTask, TaskFuture, TaskWork, TimerId};
use crossbeam_queue::SegQueue;
use tracing::{debug, error};

use crate::counters::TaskCounters;
use crate::guard::{drop_payload, guarded};
use crate::health::{MAX_PANICS, PANIC_WINDOW};
use crate::mailbox::Wake;
use crate::settings::{MAX_TASKS, PANICKED_TASKS_KEPT, POLLS_PER_TURN, TASK_STARTED_AGAIN_AFTER};

/// Returns the time since the controller started. It never goes back.
pub type ClockFn = Box<dyn Fn() -> Duration + Send + Sync>;

/// The tasks of a controller.
pub(crate) struct Tasks {
    clock: ClockFn,
    /// Wakes the thread that runs them.
    wake: Box<dyn Wake>,
    /// Ready tasks, in order.
    ready: SegQueue<Arc<Task>>,
    table: Mutex<TaskTable>,
    pub(crate) counters: TaskCounters,
}

/// Tasks and timers.
#[derive(Default)]
struct TaskTable {
    /// Tasks that have not ended, by number.
    tasks: BTreeMap<u64, Arc<Task>>,
    timers: BTreeMap<TimerId, Waker>,
    /// The last tasks that panicked, for the operator.
    panicked: VecDeque<TaskInfo>,
    next_task: u64,
    next_timer: u64,
    /// Whether new tasks are refused.
    stopped: bool,
}

/// A task.
struct Task {
    number: u64,
    app: &'static str,
    name: String,
    since: Duration,
    tasks: Arc<Tasks>,
    /// Only the task worker locks it.
    work: Mutex<RemainingWork>,
    /// Whether it is in the queue.
    ready: AtomicBool,
    running: AtomicBool,
    cancelled: AtomicBool,
    over: AtomicBool,
    polls: AtomicU64,
    busy_nanos: AtomicU64,
}

/// The remaining work of a task.
#[derive(Default)]
struct RemainingWork {
    /// `None`: it has ended, or is to be started.
    future: Option<TaskFuture>,
    /// Only for a supervised task.
    restart: Option<RestartPolicy>,
}

/// How to restart a supervised task, and its panics.
struct RestartPolicy {
    make: MakeTask,
    /// Earliest time of the next start.
    earliest_start: Duration,
    /// Panics within the last [`PANIC_WINDOW`], oldest first.
    panics: VecDeque<Duration>,
}

/// A task, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// Number in the order of their start.
    pub number: u64,
    /// The app that it belongs to.
    pub app: &'static str,
    /// Name of the task.
    pub name: String,
    /// State of the task.
    pub state: TaskState,
    /// Time of its start, on the controller's clock.
    pub since: Duration,
    /// Number of its turns.
    pub polls: u64,
    /// Total time of its turns.
    pub busy: Duration,
}

/// The state of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It waits for a wake-up.
    Waiting,
    /// It waits for its turn.
    Ready,
    /// It is being polled.
    Running,
    /// It has panicked with this message.
    Panicked(String),
}

impl Tasks {
    pub(crate) fn new(clock: ClockFn, wake: Box<dyn Wake>) -> Arc<Self> {
        let (ready, table, counters) = Default::default();
        Arc::new(Tasks { clock, wake, ready, table, counters })
    }

    pub(crate) fn now(&self) -> Duration {
        (self.clock)()
    }

    pub(crate) fn spawn(self: &Arc<Self>, new: NewTask) -> TaskHandle {
        let mut table = self.table();
        let is_refused = table.stopped || table.tasks.len() >= MAX_TASKS;
        let work = if is_refused { RemainingWork::default() } else { RemainingWork::of(new.work) };
        let number = table.next_task;
        table.next_task += 1;
        let task = Arc::new(Task {
            number,
            app: new.app,
            name: new.name.into_owned(),
            since: self.now(),
            tasks: Arc::clone(self),
            work: Mutex::new(work),
            ready: AtomicBool::new(false),
            running: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            over: AtomicBool::new(is_refused),
            polls: AtomicU64::new(0),
            busy_nanos: AtomicU64::new(0),
        });
        if is_refused {
            self.counters.tasks_refused.add(1);
            if !table.stopped && self.counters.tasks_refused.get() == 1 {
                let (app, task) = (task.app, &task.name);
                error!(
                    app,
                    task,
                    most = MAX_TASKS,
                    "too many tasks: this one and further ones are not run"
                );
            }
        } else {
            self.counters.tasks_started.add(1);
            table.tasks.insert(number, Arc::clone(&task));
            drop(table);
            task.make_ready();
        }
        TaskHandle::new(task)
    }

    pub(crate) fn set_timer(&self, at: Duration, waker: &Waker) -> TimerId {
        let mut table = self.table();
        let timer = TimerId { at, number: table.next_timer };
        table.next_timer += 1;
        let is_first = table.timers.keys().next().is_none_or(|first| timer < *first);
        if !table.stopped {
            table.timers.insert(timer, waker.clone());
        }
        drop(table);
        if is_first {
            self.wake.wake();
        }
        timer
    }

    pub(crate) fn clear_timer(&self, timer: TimerId) {
        let cleared = self.table().timers.remove(&timer);
        // Dropped without the lock: a waker may be the last owner of a task.
        drop(cleared);
    }

    /// Tasks that have not ended, in the order of their start, and the last ones that panicked.
    pub(crate) fn list(&self) -> Vec<TaskInfo> {
        let table = self.table();
        let mut list: Vec<TaskInfo> = table.panicked.iter().cloned().collect();
        list.extend(table.tasks.values().map(|task| task.info()));
        list.sort_by_key(|info| info.number);
        list
    }

    fn next_timer(&self) -> Option<Duration> {
        self.table().timers.keys().next().map(|timer| timer.at)
    }

    /// Fires the timers that are due.
    fn fire_timers(&self) {
        let now = self.now();
        loop {
            let mut table = self.table();
            let Some(first) = table.timers.first_entry().filter(|first| first.key().at <= now)
            else {
                return;
            };
            let waker = first.remove();
            drop(table);
            // The waker may belong to an app.
            let _ = guarded(|| waker.wake());
        }
    }

    /// Polls a task once.
    fn poll(&self, task: &Arc<Task>) {
        // A wake-up from here on causes another poll.
        task.ready.store(false, Ordering::SeqCst);
        if task.over.load(Ordering::SeqCst) {
            return;
        }
        if task.cancelled.load(Ordering::SeqCst) {
            self.counters.tasks_cancelled.add(1);
            return self.end(task);
        }
        let mut work = task.work();
        let start = self.now();
        if !work.is_due(start) {
            return;
        }
        let waker = Waker::from(Arc::clone(task));
        task.running.store(true, Ordering::Relaxed);
        let poll = || work.poll(&mut Context::from_waker(&waker));
        let polled = catch_unwind(AssertUnwindSafe(poll));
        task.running.store(false, Ordering::Relaxed);
        drop(work);
        let busy = self.now().saturating_sub(start).as_nanos() as u64;
        task.polls.fetch_add(1, Ordering::Relaxed);
        task.busy_nanos.fetch_add(busy, Ordering::Relaxed);
        self.counters.task_polls.add(1);
        match polled {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(())) => {
                self.counters.tasks_finished.add(1);
                self.end(task);
            }
            Err(panic) => {
                let message = message(panic);
                let pause =
                    task.work().restart.as_mut().and_then(|again| again.next_pause(self.now()));
                match pause {
                    Some(pause) => self.start_again(task, pause, message),
                    None => {
                        self.panicked(task, message, "a task panicked: it is over");
                        self.end(task);
                    }
                }
            }
        }
    }

    /// Restarts a supervised task that panicked, after `pause`.
    fn start_again(&self, task: &Arc<Task>, pause: Duration, message: String) {
        self.panicked(task, message, "a task panicked: it starts again");
        self.counters.tasks_started_again.add(1);
        self.drop_future(task);
        self.set_timer(self.now() + pause, &Waker::from(Arc::clone(task)));
    }

    fn panicked(&self, task: &Task, message: String, what: &str) {
        self.counters.tasks_panicked.add(1);
        error!(app = task.app, task = task.name, panic = message, "{what}");
        let mut book = self.table();
        if book.panicked.len() == PANICKED_TASKS_KEPT {
            book.panicked.pop_front();
        }
        let info = TaskInfo { state: TaskState::Panicked(message), ..task.info() };
        book.panicked.push_back(info);
    }

    /// Drops what a task owns, and removes the task.
    fn end(&self, task: &Task) {
        self.drop_future(task);
        let restart = task.work().restart.take();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(restart))) {
            self.panicked(task, message(panic), "a task panicked when it was dropped");
        }
        task.over.store(true, Ordering::SeqCst);
        self.table().tasks.remove(&task.number);
        debug!(app = task.app, task = task.name, "a task is over");
    }

    fn drop_future(&self, task: &Task) {
        let future = task.work().future.take();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(future))) {
            self.panicked(task, message(panic), "a task panicked when it was dropped");
        }
    }

    /// A panic under this lock leaves the book consistent: each change is one call.
    fn table(&self) -> MutexGuard<'_, TaskTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Message of a panic.
fn message(panic: Box<dyn Any + Send>) -> String {
    let str = panic.downcast_ref::<&str>().map(|str| (*str).to_owned());
    let text = str.or_else(|| panic.downcast_ref::<String>().cloned());
    drop_payload(panic);
    text.unwrap_or_else(|| "no printable message".to_owned())
}

impl RemainingWork {
    fn of(work: TaskWork) -> Self {
        match work {
            TaskWork::Once(future) => RemainingWork { future: Some(future), restart: None },
            TaskWork::Again(make) => {
                let restart =
                    RestartPolicy { make, earliest_start: Duration::ZERO, panics: VecDeque::new() };
                RemainingWork { future: None, restart: Some(restart) }
            }
        }
    }

    /// Whether it has anything to do at `now`.
    fn is_due(&self, now: Duration) -> bool {
        self.future.is_some()
            || self.restart.as_ref().is_some_and(|again| again.earliest_start <= now)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let future = match (&mut self.future, &mut self.restart) {
            (Some(future), _) => future,
            (none, Some(again)) => none.insert((again.make)()),
            (None, None) => return Poll::Ready(()),
        };
        future.as_mut().poll(context)
    }
}

impl RestartPolicy {
    /// Delay after a panic; `None`: there were too many.
    fn next_pause(&mut self, now: Duration) -> Option<Duration> {
        self.panics.push_back(now);
        while self.panics.front().is_some_and(|first| now.saturating_sub(*first) > PANIC_WINDOW) {
            self.panics.pop_front();
        }
        let pause = TASK_STARTED_AGAIN_AFTER * (1 << (self.panics.len() - 1));
        self.earliest_start = now + pause;
        (self.panics.len() < MAX_PANICS).then_some(pause)
    }
}

impl Task {
    fn make_ready(self: &Arc<Self>) {
        if !self.over.load(Ordering::SeqCst) && !self.ready.swap(true, Ordering::SeqCst) {
            self.tasks.ready.push(Arc::clone(self));
            self.tasks.wake.wake();
        }
    }

    fn work(&self) -> MutexGuard<'_, RemainingWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn info(&self) -> TaskInfo {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let state = match (is(&self.running), is(&self.ready)) {
            (true, _) => TaskState::Running,
            (false, true) => TaskState::Ready,
            (false, false) => TaskState::Waiting,
        };
        TaskInfo {
            number: self.number,
            app: self.app,
            name: self.name.clone(),
            state,
            since: self.since,
            polls: self.polls.load(Ordering::Relaxed),
            busy: Duration::from_nanos(self.busy_nanos.load(Ordering::Relaxed)),
        }
    }
}

impl std::task::Wake for Task {
    fn wake(self: Arc<Self>) {
        self.make_ready();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.make_ready();
    }
}

/// Implements the apps' handle of a task.
impl RunningTask for Task {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn cancel(self: Arc<Self>) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.make_ready();
    }
}

/// Runs the tasks of a controller. There is only one.
pub struct TaskWorker(Arc<Tasks>);

impl TaskWorker {
    pub(crate) fn new(tasks: Arc<Tasks>) -> Self {
        TaskWorker(tasks)
    }

    /// Polls ready tasks, up to a bound. Returns whether more are ready.
    pub fn run(&mut self) -> bool {
        self.0.fire_timers();
        for _ in 0..POLLS_PER_TURN {
            let Some(task) = self.0.ready.pop() else { return false };
            self.0.poll(&task);
        }
        self.is_ready()
    }

    /// Whether a task is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.0.ready.is_empty()
    }

    /// Time of the next timer.
    #[must_use]
    pub fn next_timer(&self) -> Option<Duration> {
        self.0.next_timer()
    }

    /// Ends all tasks where they wait, in the order of their start. Tasks that are started later
    /// are not run.
    pub fn stop(&mut self) {
        let mut book = self.0.table();
        book.stopped = true;
        let (tasks, timers) = (std::mem::take(&mut book.tasks), std::mem::take(&mut book.timers));
        drop(book);
        for task in tasks.values() {
            self.0.counters.tasks_cancelled.add(1);
            self.0.end(task);
        }
        for waker in timers.into_values() {
            let _ = guarded(|| drop(waker));
        }
        while self.0.ready.pop().is_some() {}
    }
}

/// Tasks hold the network, which holds the tasks: this breaks the cycle.
impl Drop for TaskWorker {
    fn drop(&mut self) {
        self.stop();
    }
}
