//! Desired state.

use std::sync::Arc;
use std::time::Duration;

use bellrock::flow::CONFIRM_WITHIN;
use bellrock::services::desired::{Desired, DesiredFlows};
use bellrock::{Dpid, Network};
use pyo3::prelude::*;

use crate::argument::wrong_value;
use crate::entry::Entry;
use crate::error::Error;
use crate::runner::Shared;

/// The entries that an app wants in the switches. They are confirmed, and put back after a restart
/// of a switch, a refusal, or a change by others.
///
/// Each intent has a number, which the app chooses. Its entries are tuples of a datapath id and a
/// flow, group or meter.
#[pyclass(name = "Desired", module = "bellrock", frozen)]
pub(crate) struct PyDesired {
    desired: Desired,
    network: Network,
    shared: Arc<Shared>,
}

impl PyDesired {
    pub(crate) fn new(network: &Network, shared: &Arc<Shared>) -> Self {
        let (desired, network) = (network.desired(), network.clone());
        PyDesired { desired, network, shared: Arc::clone(shared) }
    }
}

#[pymethods]
impl PyDesired {
    /// Replaces an intent with these entries, ordered from the destination: those nearer to it are
    /// changed and confirmed first.
    fn set(&self, intent: u32, entries: Vec<(u64, Entry)>) {
        self.desired.set(intent, with_dpids(entries));
    }

    /// Replaces an intent with these entries, none of which waits for another.
    fn set_independent(&self, intent: u32, entries: Vec<(u64, Entry)>) {
        self.desired.set_independent(intent, with_dpids(entries));
    }

    /// Like `set`, and waits until all switches have the entries. Raises `Error` if one refuses, or
    /// if it takes longer than `within` seconds.
    #[pyo3(signature = (intent, entries, within=CONFIRM_WITHIN.as_secs_f64()))]
    fn commit<'py>(
        &self,
        py: Python<'py>,
        intent: u32,
        entries: Vec<(u64, Entry)>,
        within: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let within = Duration::try_from_secs_f64(within).map_err(wrong_value)?;
        let (commit, network) =
            (self.desired.commit(intent, with_dpids(entries)), self.network.clone());
        let commit = async move { commit.confirmed(&network, within).await };
        self.shared.awaitable(py, (&self.network, "commit"), commit, |py, result| match result {
            Ok(()) => Ok(py.None()),
            Err(error) => Err(Error::new_err(error.to_string())),
        })
    }

    /// Removes all entries of an intent.
    fn withdraw(&self, intent: u32) {
        drop(self.desired.withdraw(intent));
    }

    /// Declares that all intents have been set: unwanted flows of an earlier run are removed.
    fn complete(&self) {
        self.desired.complete();
    }

    /// Waits until all switches that are up have their wanted entries.
    fn settled<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let desired = self.desired.clone();
        let settled = async move { desired.settled().await };
        self.shared.awaitable(py, (&self.network, "settled"), settled, |py, ()| Ok(py.None()))
    }
}

fn with_dpids(entries: Vec<(u64, Entry)>) -> impl Iterator<Item = (Dpid, Entry)> {
    entries.into_iter().map(|(dpid, entry)| (Dpid(dpid), entry))
}
