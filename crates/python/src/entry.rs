//! Groups and meters.

use bellrock::openflow::GroupType;
use bellrock::services::desired::DesiredEntry;
use bellrock::{BucketEntry, GroupEntry, MeterEntry, Port};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::action::{PyAction, actions_of};
use crate::flow::PyFlow;

/// A bucket of a group: `Bucket(Action.output(3), weight=1)`.
///
/// `weight` is for select groups. With `watch_port`, the bucket is live only while this port is up, for
/// fast-failover groups.
#[pyclass(name = "Bucket", module = "bellrock", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyBucket(BucketEntry);

#[pymethods]
impl PyBucket {
    #[new]
    #[pyo3(signature = (*actions, weight=0, watch_port=None))]
    fn new(actions: Vec<PyAction>, weight: u16, watch_port: Option<u32>) -> Self {
        let bucket = BucketEntry::of(&actions_of(&actions)).weight(weight);
        PyBucket(bucket.watch_port(watch_port.map_or(Port::ANY, Port)))
    }
}

/// A group (1.3): `Group(7, "select", Bucket(…), Bucket(…))`. Its type is "all", "select", "indirect" or
/// "fast_failover".
#[pyclass(name = "Group", module = "bellrock", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyGroup(pub(crate) GroupEntry);

#[pymethods]
impl PyGroup {
    #[new]
    #[pyo3(signature = (id, kind, /, *buckets))]
    fn new(id: u32, kind: &str, buckets: Vec<PyBucket>) -> PyResult<Self> {
        let kind = match kind {
            "all" => GroupType::All,
            "select" => GroupType::Select,
            "indirect" => GroupType::Indirect,
            "fast_failover" => GroupType::FastFailover,
            other => {
                return Err(PyValueError::new_err(format!(
                    "the type of a group is \"all\", \"select\", \"indirect\" or \"fast_failover\", not {other:?}"
                )));
            }
        };
        let buckets = buckets.into_iter().map(|bucket| bucket.0).collect();
        Ok(PyGroup(GroupEntry { id, kind, buckets }))
    }

    /// Its number.
    #[getter]
    fn id(&self) -> u32 {
        self.0.id
    }
}

/// A meter (1.3) that drops packets above a rate: `Meter(1, kbps=10_000)`. `burst_kbits` is the size of
/// a burst that may exceed it, in kbit.
#[pyclass(name = "Meter", module = "bellrock", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyMeter(pub(crate) MeterEntry);

#[pymethods]
impl PyMeter {
    #[new]
    #[pyo3(signature = (id, /, *, kbps, burst_kbits=None))]
    fn new(id: u32, kbps: u32, burst_kbits: Option<u32>) -> Self {
        let meter = MeterEntry::drop_above_kbps(id, kbps);
        PyMeter(match burst_kbits {
            Some(size) => meter.burst_kbits(size),
            None => meter,
        })
    }

    /// Its number.
    #[getter]
    fn id(&self) -> u32 {
        self.0.id
    }
}

/// What an app wants in a switch.
#[derive(FromPyObject)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are flows")]
pub(crate) enum Entry {
    Flow(PyFlow),
    Group(PyGroup),
    Meter(PyMeter),
}

impl From<Entry> for DesiredEntry {
    fn from(entry: Entry) -> Self {
        match entry {
            Entry::Flow(flow) => flow.0.into(),
            Entry::Group(group) => group.0.into(),
            Entry::Meter(meter) => meter.0.into(),
        }
    }
}
