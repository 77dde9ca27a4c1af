//! Background tasks: long work beside the handlers.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::runtime::Runtime;

/// The future of a task.
pub type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes the future of a task, for each start.
pub type MakeTask = Box<dyn FnMut() -> TaskFuture + Send>;

/// A task to start.
pub struct NewTask {
    /// Name of its app.
    pub app: &'static str,
    /// Name of the task.
    pub name: Cow<'static, str>,
    /// Its work.
    pub work: TaskWork,
}

/// The work of a task, and whether it restarts after a panic.
pub enum TaskWork {
    /// Runs once: [`crate::Network::spawn`].
    Once(TaskFuture),
    /// Restarts after a panic: [`crate::Network::supervise`].
    Again(MakeTask),
}

/// A runtime's view of a started task.
pub trait RunningTask: Send + Sync + 'static {
    /// See [`TaskHandle::is_over`].
    fn is_over(&self) -> bool;
    /// See [`TaskHandle::cancel`].
    fn cancel(self: Arc<Self>);
}

/// A task started by [`crate::Network::spawn`]. Dropping the handle does not end the task.
#[derive(Clone)]
pub struct TaskHandle(Arc<dyn RunningTask>);

impl TaskHandle {
    /// For runtimes: the handle of this task.
    #[must_use]
    pub fn new(task: Arc<dyn RunningTask>) -> Self {
        TaskHandle(task)
    }

    /// Whether it has ended: finished, panicked, cancelled, or stopped with the controller.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Ends the task soon, at its next wait. The task worker drops what it owns. No effect on a
    /// task that has ended.
    pub fn cancel(&self) {
        Arc::clone(&self.0).cancel();
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskHandle({})", if self.is_over() { "over" } else { "running" })
    }
}

/// A timer of a runtime: its time, and a number for timers of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    /// Time when it fires.
    pub at: Duration,
    /// Later timers have higher numbers.
    pub number: u64,
}

/// Waits until a time. [`crate::Network::sleep`] returns it.
#[must_use = "nothing waits unless it is awaited"]
pub struct Sleep {
    runtime: Arc<dyn Runtime>,
    deadline: Duration,
    /// The current timer, and the task that it wakes.
    timer: Option<(TimerId, Waker)>,
}

impl Sleep {
    pub(crate) fn new(runtime: Arc<dyn Runtime>, deadline: Duration) -> Self {
        Sleep { runtime, deadline, timer: None }
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
        if self.runtime.now() >= self.deadline {
            self.clear();
            return Poll::Ready(());
        }
        let waker = context.waker();
        if !self.timer.as_ref().is_some_and(|(_, registered)| registered.will_wake(waker)) {
            self.clear();
            let timer = self.runtime.set_timer(self.deadline, waker);
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
