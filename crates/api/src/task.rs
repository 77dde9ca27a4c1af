//! Background tasks: what takes time, beside the handlers.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::Runtime;

/// What a task does, as a runtime gets it.
pub type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes what a task does, each time that it is started.
pub type MakeTask = Box<dyn FnMut() -> TaskFuture + Send>;

/// A task that somebody asks to have run.
pub struct NewTask {
    /// The app that it belongs to.
    pub app: &'static str,
    /// What the app calls it.
    pub name: Cow<'static, str>,
    /// What it does.
    pub work: TaskWork,
}

/// What a task does, and whether it is started again when it panics.
pub enum TaskWork {
    /// Once: [`crate::Network::spawn`].
    Once(TaskFuture),
    /// Again after a panic: [`crate::Network::supervise`].
    Again(MakeTask),
}

/// What a runtime keeps of a task.
pub trait RunningTask: Send + Sync + 'static {
    /// See [`TaskHandle::is_over`].
    fn is_over(&self) -> bool;
    /// See [`TaskHandle::cancel`].
    fn cancel(self: Arc<Self>);
}

/// A task that was started by [`crate::Network::spawn`]. Who drops it leaves the task running.
#[derive(Clone)]
pub struct TaskHandle(Arc<dyn RunningTask>);

impl TaskHandle {
    /// For runtimes: the handle of this task.
    #[must_use]
    pub fn new(task: Arc<dyn RunningTask>) -> Self {
        TaskHandle(task)
    }

    /// Whether it has ended: by itself, by a panic, cancelled, or with the controller.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Ends it soon, where it waits; what it owns is dropped by the task worker. Nothing happens if it
    /// has ended.
    pub fn cancel(&self) {
        Arc::clone(&self.0).cancel();
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskHandle({})", if self.is_over() { "over" } else { "running" })
    }
}

/// A timer of a runtime: its time, and what tells it from others of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    /// When it fires.
    pub at: Duration,
    /// Later ones have higher numbers.
    pub number: u64,
}

/// Waits until a time. What [`crate::Network::sleep`] returns.
#[must_use = "nothing waits unless it is awaited"]
pub struct Sleep {
    runtime: Arc<dyn Runtime>,
    until: Duration,
    /// The timer that is set, and who it wakes.
    timer: Option<(TimerId, Waker)>,
}

impl Sleep {
    pub(crate) fn new(runtime: Arc<dyn Runtime>, until: Duration) -> Self {
        Sleep { runtime, until, timer: None }
    }

    fn clear(&mut self) {
        if let Some((timer, _)) = self.timer.take() {
            self.runtime.clear_timer(timer);
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.runtime.now() >= self.until {
            self.clear();
            return Poll::Ready(());
        }
        let waker = context.waker();
        if !self.timer.as_ref().is_some_and(|(_, set)| set.will_wake(waker)) {
            self.clear();
            let timer = self.runtime.set_timer(self.until, waker);
            self.timer = Some((timer, waker.clone()));
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clear();
    }
}
