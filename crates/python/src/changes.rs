//! Changes of what is known of the network, as programs wait for them.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use bellrock::services::paths::paths;
use bellrock::{Needs, Network};
use futures_lite::future::{or, pending};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::runner::Shared;

/// Changes of the switches, links, hosts and paths since `Network.changed` was called.
#[pyclass(module = "bellrock", frozen)]
pub(crate) struct Changes {
    network: Network,
    needs: Needs,
    shared: Arc<Shared>,
    /// What the program has seen. `None`: somebody waits for the next change.
    seen: Arc<Mutex<Option<Seen>>>,
}

/// Versions of what is known; 0 of what the app does not need.
#[derive(Clone, Copy)]
struct Seen {
    topology: u64,
    hosts: u64,
    paths: u64,
}

impl Seen {
    fn now(network: &Network, needs: Needs) -> Self {
        let hosts = || network.hosts().load().version();
        let paths = || paths(network).load().version();
        Seen {
            topology: network.topology().load().version(),
            hosts: needs.contains(Needs::HOSTS).then(hosts).unwrap_or_default(),
            paths: needs.contains(Needs::PATHS).then(paths).unwrap_or_default(),
        }
    }

    /// Waits for a change of what an app needs. Returns the names of what changed.
    async fn next(&mut self, network: &Network, needs: Needs) -> Vec<&'static str> {
        let old = *self;
        let topology = async { network.topology().newer(old.topology).await };
        let hosts = async {
            match needs.intersects(Needs::HOSTS) {
                true => network.hosts().newer(old.hosts).await,
                false => pending().await,
            }
        };
        let paths = async {
            match needs.intersects(Needs::PATHS) {
                true => paths(network).newer(old.paths).await,
                false => pending().await,
            }
        };
        or(or(pin!(topology), pin!(hosts)), pin!(paths)).await;
        *self = Seen::now(network, needs);
        let parts = [
            ("topology", self.topology != old.topology),
            ("hosts", self.hosts != old.hosts),
            ("paths", self.paths != old.paths),
        ];
        parts.into_iter().filter(|(_, is_new)| *is_new).map(|(name, _)| name).collect()
    }
}

impl Changes {
    pub(crate) fn new(network: &Network, needs: Needs, shared: &Arc<Shared>) -> Self {
        let seen = Arc::new(Mutex::new(Some(Seen::now(network, needs))));
        Changes { network: network.clone(), needs, shared: Arc::clone(shared), seen }
    }
}

#[pymethods]
impl Changes {
    fn __aiter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let taken = self.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut seen) = taken else {
            return Err(PyRuntimeError::new_err("another coroutine waits for the next change"));
        };
        let (back, network, needs) = (Arc::clone(&self.seen), self.network.clone(), self.needs);
        let next = async move {
            let parts = seen.next(&network, needs).await;
            *back.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
            parts
        };
        self.shared
            .awaitable(py, (&self.network, "changed"), next, |py, parts| parts.into_py_any(py))
    }

    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.__anext__(py)?.call_method0("__await__")
    }
}
