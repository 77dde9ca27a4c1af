//! What the switches, networks and the runner of one controller share, and the results that
//! coroutines await.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellrock::Network;
use bellrock_detached::Feed;
use crossbeam_queue::SegQueue;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::writers::Writers;

/// What the switches, networks and the runner of one controller share.
pub(crate) struct Shared {
    pub(super) feed: Arc<Feed>,
    writers: Mutex<Writers>,
    /// Results of tasks in the controller, for the coroutines that await them.
    pub(super) results: SegQueue<(u64, TaskResult)>,
    /// Terms of apps that begin and end.
    pub(super) terms: SegQueue<TermEvent>,
    /// Futures of `asyncio` that wait for a result, by its number.
    awaited: Mutex<HashMap<u64, Py<PyAny>>>,
    tasks: AtomicU64,
}

/// Makes the Python value of a result.
type TaskResult = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

impl Shared {
    pub(crate) fn new(feed: Arc<Feed>) -> Arc<Self> {
        Arc::new(Shared {
            feed,
            writers: Mutex::default(),
            results: SegQueue::new(),
            terms: SegQueue::new(),
            awaited: Mutex::default(),
            tasks: AtomicU64::new(0),
        })
    }

    /// Adds the begin of a term of an app, or that an app starts once, on a controller that is
    /// alone. The end follows by itself.
    pub(super) fn begin_term(self: &Arc<Self>, place: usize, network: &Network) {
        self.terms.push(TermEvent { place, network: Some(network.clone()) });
        self.feed.wake();
        if network.term().is_some() {
            let end = TermEnd { shared: Arc::clone(self), place };
            network.spawn("term of an app in Python", async move {
                let _end = end;
                std::future::pending::<()>().await;
            });
        }
    }

    pub(crate) fn writers(&self) -> MutexGuard<'_, Writers> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn awaited(&self) -> MutexGuard<'_, HashMap<u64, Py<PyAny>>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a future as a task of the controller, and returns an awaitable for its result.
    ///
    /// # Errors
    /// `RuntimeError`: no event loop runs.
    pub(crate) fn awaitable<'py, T: Send + 'static>(
        self: &Arc<Self>,
        py: Python<'py>,
        (network, name): (&Network, &'static str),
        future: impl Future<Output = T> + Send + 'static,
        to_python: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Bound<'py, PyAny>> {
        static GET_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let event_loop = GET_LOOP.import(py, "asyncio", "get_running_loop")?.call0()?;
        let awaited = event_loop.call_method0(intern!(py, "create_future"))?;
        let number = self.tasks.fetch_add(1, Ordering::Relaxed);
        self.awaited().insert(number, awaited.clone().unbind());
        let answer = TaskAnswer { shared: Arc::clone(self), number, is_given: false };
        network.spawn(name, async move {
            let answer = answer;
            let result = future.await;
            answer.give(move |py| to_python(py, result));
        });
        Ok(awaited)
    }

    /// Sets the results that have come.
    pub(super) fn set_results(&self, py: Python<'_>) -> PyResult<()> {
        while let Some((number, result)) = self.results.pop() {
            let Some(awaited) = self.awaited().remove(&number) else { continue };
            let awaited = awaited.bind(py);
            if awaited.call_method0(intern!(py, "done"))?.is_truthy()? {
                continue;
            }
            match result(py) {
                Ok(value) => awaited.call_method1(intern!(py, "set_result"), (value,))?,
                Err(error) => awaited.call_method1(intern!(py, "set_exception"), (error,))?,
            };
        }
        Ok(())
    }
}

/// The answer that a program awaits. It gets one in any case: a task that is refused, because its
/// app has too many, panics, or is ended with the controller, is dropped without a result.
struct TaskAnswer {
    shared: Arc<Shared>,
    number: u64,
    is_given: bool,
}

impl TaskAnswer {
    fn give(mut self, result: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static) {
        self.is_given = true;
        self.push(Box::new(result));
    }

    fn push(&self, result: TaskResult) {
        self.shared.results.push((self.number, result));
        self.shared.feed.wake();
    }
}

impl Drop for TaskAnswer {
    fn drop(&mut self) {
        if !self.is_given {
            let why = "the controller has not finished this: the app has too many tasks (`allow`), or it ends";
            self.push(Box::new(move |_| Err(PyRuntimeError::new_err(why))));
        }
    }
}

/// A term of an app that runs once in a cluster begins, with its network, or ends.
pub(super) struct TermEvent {
    pub(super) place: usize,
    pub(super) network: Option<Network>,
}

/// Reports the end of a term when the tasks of the term are dropped.
struct TermEnd {
    shared: Arc<Shared>,
    place: usize,
}

impl Drop for TermEnd {
    fn drop(&mut self) {
        self.shared.terms.push(TermEvent { place: self.place, network: None });
        self.shared.feed.wake();
    }
}
