//! The thread of the background tasks. It is not pinned: it gets the CPU time that workers leave.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bellrock_worker::{SharedState, TaskState, TaskWorker, Wake};
use crossbeam_utils::sync::{Parker, Unparker};
use tracing::error;

use crate::halt::Halt;

/// Maximum time for a task's turn to end when the controller stops.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// Time between two checks whether it has ended.
const STOP_CHECK: Duration = Duration::from_millis(5);

/// Wakes the thread.
#[derive(Clone)]
pub(crate) struct WakeTasks(pub(crate) Unparker);

impl Wake for WakeTasks {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// Body of the thread.
pub(crate) fn run(
    mut worker: TaskWorker,
    parker: &Parker,
    halt: &Arc<Halt>,
    epoch: Instant,
) -> io::Result<()> {
    while !halt.is_stopping() {
        if worker.run() {
            continue;
        }
        // A wake-up from here on takes effect at once.
        match worker.next_timer() {
            Some(at) => parker.park_timeout(at.saturating_sub(epoch.elapsed())),
            None => parker.park(),
        }
    }
    worker.stop();
    Ok(())
}

/// Waits for the end of the thread, but leaves behind a task that never reaches an `await`.
pub(crate) fn join(thread: JoinHandle<()>, shared: &SharedState) {
    let deadline = Instant::now() + STOP_WAIT;
    while !thread.is_finished() {
        if Instant::now() >= deadline {
            let tasks = shared.tasks();
            let running = tasks.iter().find(|task| task.state == TaskState::Running);
            let (app, task) = running.map_or(("", ""), |task| (task.app, &task.name));
            error!(app, task, "a task does not reach an await: the controller stops without it");
            return;
        }
        std::thread::sleep(STOP_CHECK);
    }
    if thread.join().is_err() {
        error!("the thread of the tasks had panicked");
    }
}
