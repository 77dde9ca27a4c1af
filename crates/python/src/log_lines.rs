//! Lines of the native half's log, for a program whose own log, that of Python's `logging`, has
//! them.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use tracing::Level;

use crate::bell::Bell;
use crate::log::level_of;

/// Bytes of lines that wait for the program. Above it new ones are left out, and counted.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// Lines that wait. Threads of the engine add to them, and never wait for the program.
#[pyclass(module = "bellrock._native", frozen)]
pub(crate) struct LogLines {
    waiting: Arc<Mutex<Waiting>>,
    /// Readable while lines wait.
    bell: Arc<Bell>,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<(Level, String)>,
    bytes: usize,
    left_out: u64,
}

#[pymethods]
impl LogLines {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(LogLines { waiting: Arc::default(), bell: Arc::new(Bell::new()?) })
    }

    /// The file descriptor that is readable while lines wait.
    fn fileno(&self) -> RawFd {
        self.bell.fileno()
    }

    /// Takes the lines that wait, at most so many, without waiting. Each is a level of Python's
    /// `logging`, and a text.
    fn take(&self, max_lines: usize) -> PyResult<Vec<(u32, String)>> {
        self.bell.clear()?;
        let mut waiting = lock(&self.waiting);
        let count = waiting.lines.len().min(max_lines);
        let lines: Vec<_> = waiting.lines.drain(..count).collect();
        waiting.bytes -= lines.iter().map(|(_, text)| text.len()).sum::<usize>();
        if !waiting.lines.is_empty() {
            self.bell.ring();
        }
        Ok(lines.into_iter().map(|(level, text)| (level_of(level), text)).collect())
    }

    /// Takes the number of lines that were left out since the last call: they came faster than the
    /// program has taken them.
    fn take_left_out(&self) -> u64 {
        std::mem::take(&mut lock(&self.waiting).left_out)
    }

    /// Waits for a line, at most so long. Other threads of the program have the interpreter
    /// meanwhile. Returns whether there may be one.
    fn wait(&self, py: Python<'_>, milliseconds: u32) -> PyResult<bool> {
        Ok(py.detach(|| self.bell.wait(milliseconds))?)
    }
}

impl LogLines {
    /// What adds a line. Any thread may call it; it does not wait.
    pub(crate) fn sink(&self) -> impl Fn(Level, &str) + Send + Sync + use<> {
        let (waiting, bell) = (Arc::clone(&self.waiting), Arc::clone(&self.bell));
        move |level, text| {
            let mut waiting = lock(&waiting);
            if waiting.bytes + text.len() > MAX_WAITING_BYTES {
                waiting.left_out += 1;
                return;
            }
            waiting.bytes += text.len();
            waiting.lines.push_back((level, text.to_owned()));
            if waiting.lines.len() == 1 {
                bell.ring();
            }
        }
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
