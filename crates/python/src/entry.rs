//! Groups and meters.

use bellrock::openflow::{GroupType, MeterFlags};
use bellrock::services::desired::DesiredEntry;
use bellrock::{BucketEntry, GroupEntry, MeterEntry, Port};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::action::{PyAction, actions_in, own_actions};
use crate::argument::{Arg, wrong_value};
use crate::flow::PyFlow;

/// A bucket of a group: `Bucket(Action.output(3), weight=1)`.
///
/// `weight` is for select groups. With `watch_port`, the bucket is live only while this port is up,
/// for fast-failover groups.
#[pyclass(name = "Bucket", module = "bellrock", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyBucket(BucketEntry);

#[pymethods]
impl PyBucket {
    #[new]
    #[pyo3(signature = (*actions, weight=0, watch_port=None))]
    fn new(
        actions: &Bound<'_, PyTuple>,
        weight: u16,
        watch_port: Option<Arg<u32>>,
    ) -> PyResult<Self> {
        let bucket = BucketEntry::of(&actions_in(actions)?).weight(weight);
        Ok(PyBucket(bucket.watch_port(watch_port.map_or(Port::ANY, |port| Port(port.0)))))
    }

    /// Its actions, in order.
    #[getter]
    fn actions(&self) -> Vec<PyAction> {
        own_actions(&self.0.actions)
    }

    /// Its weight, for select groups.
    #[getter]
    fn weight(&self) -> u16 {
        self.0.weight
    }

    /// The port that must be up for it to be live. `None`: it watches no port.
    #[getter]
    fn watch_port(&self) -> Option<u32> {
        Some(self.0.watch_port.0).filter(|port| *port != Port::ANY.0)
    }

    fn __str__(&self) -> String {
        let mut text = String::new();
        if self.0.weight != 0 {
            text += &format!("weight={} ", self.0.weight);
        }
        if let Some(port) = self.watch_port() {
            text += &format!("watch_port={port} ");
        }
        let actions: Vec<_> = self.0.actions.iter().map(ToString::to_string).collect();
        text + &if actions.is_empty() { "drop".to_owned() } else { actions.join(",") }
    }

    fn __repr__(&self) -> String {
        format!("<Bucket {}>", self.__str__())
    }
}

/// A group (1.3): `Group(7, "select", Bucket(…), Bucket(…))`. Its type is "all", "select",
/// "indirect" or "fast_failover".
#[pyclass(name = "Group", module = "bellrock", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyGroup(pub(crate) GroupEntry);

#[pymethods]
impl PyGroup {
    #[new]
    #[pyo3(signature = (id, kind, /, *buckets))]
    fn new(id: Arg<u32>, kind: &str, buckets: Vec<PyBucket>) -> PyResult<Self> {
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
        Ok(PyGroup(GroupEntry { id: id.0, kind, buckets }))
    }

    /// Its number.
    #[getter]
    fn id(&self) -> u32 {
        self.0.id
    }

    /// Its type: "all", "select", "indirect" or "fast_failover".
    #[getter]
    fn kind(&self) -> String {
        kind_name(self.0.kind)
    }

    /// Its buckets, in order.
    #[getter]
    fn buckets(&self) -> Vec<PyBucket> {
        self.0.buckets.iter().cloned().map(PyBucket).collect()
    }

    fn __str__(&self) -> String {
        let buckets = self.0.buckets.iter();
        let texts: Vec<_> =
            buckets.map(|bucket| format!("[{}]", PyBucket(bucket.clone()).__str__())).collect();
        format!("{} {} {}", self.0.id, self.kind(), texts.join(" "))
    }

    fn __repr__(&self) -> String {
        format!("<Group {}>", self.__str__())
    }
}

/// The name of a type of groups, or its number.
pub(crate) fn kind_name(kind: GroupType) -> String {
    match kind {
        GroupType::All => "all".to_owned(),
        GroupType::Select => "select".to_owned(),
        GroupType::Indirect => "indirect".to_owned(),
        GroupType::FastFailover => "fast_failover".to_owned(),
        GroupType::Unknown(number) => number.to_string(),
    }
}

/// A meter (1.3) that drops packets above a rate: `Meter(1, kbps=10_000)`, or `Meter(1,
/// packets_per_second=500)`. `burst_kbits` or `burst_packets` is the size of a burst that may
/// exceed it.
#[pyclass(name = "Meter", module = "bellrock", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyMeter(pub(crate) MeterEntry);

impl PyMeter {
    fn is_in_packets(&self) -> bool {
        self.0.flags.contains(MeterFlags::PKTPS)
    }

    fn rate(&self) -> u32 {
        self.0.bands.first().map_or(0, |band| band.rate)
    }

    fn burst(&self) -> Option<u32> {
        let has_burst = self.0.flags.contains(MeterFlags::BURST);
        self.0.bands.first().filter(|_| has_burst).map(|band| band.burst_size)
    }
}

#[pymethods]
impl PyMeter {
    #[new]
    #[pyo3(signature = (id, /, *, kbps=None, burst_kbits=None, packets_per_second=None, burst_packets=None))]
    fn new(
        id: Arg<u32>,
        kbps: Option<Arg<u32>>,
        burst_kbits: Option<Arg<u32>>,
        packets_per_second: Option<Arg<u32>>,
        burst_packets: Option<Arg<u32>>,
    ) -> PyResult<Self> {
        let wrong = Err(wrong_value(
            "a meter has one rate: Meter(1, kbps=10_000), with burst_kbits or without, or \
             Meter(1, packets_per_second=500), with burst_packets or without",
        ));
        let (meter, burst) = match (kbps, packets_per_second) {
            (Some(rate), None) if burst_packets.is_none() => {
                (MeterEntry::drop_above_kbps(id.0, rate.0), burst_kbits)
            }
            (None, Some(rate)) if burst_kbits.is_none() => {
                (MeterEntry::drop_above_packets(id.0, rate.0), burst_packets)
            }
            _ => return wrong,
        };
        Ok(PyMeter(match burst {
            Some(size) => meter.burst_kbits(size.0),
            None => meter,
        }))
    }

    /// Its number.
    #[getter]
    fn id(&self) -> u32 {
        self.0.id
    }

    /// Its rate in kbit/s. `None`: its rate is in packets.
    #[getter]
    fn kbps(&self) -> Option<u32> {
        (!self.is_in_packets()).then(|| self.rate())
    }

    /// Its rate in packets per second. `None`: its rate is in kbit/s.
    #[getter]
    fn packets_per_second(&self) -> Option<u32> {
        self.is_in_packets().then(|| self.rate())
    }

    /// Size of a burst that may exceed the rate, in kbit. `None`: the switch chooses it, or the
    /// rate is in packets.
    #[getter]
    fn burst_kbits(&self) -> Option<u32> {
        self.burst().filter(|_| !self.is_in_packets())
    }

    /// Size of a burst that may exceed the rate, in packets. `None`: the switch chooses it, or the
    /// rate is in kbit/s.
    #[getter]
    fn burst_packets(&self) -> Option<u32> {
        self.burst().filter(|_| self.is_in_packets())
    }

    fn __str__(&self) -> String {
        let (rate_unit, burst_unit) = match self.is_in_packets() {
            true => ("packets_per_second", "burst_packets"),
            false => ("kbps", "burst_kbits"),
        };
        let burst = self.burst().map(|size| format!(" {burst_unit}={size}")).unwrap_or_default();
        format!("{} {rate_unit}={}{burst}", self.0.id, self.rate())
    }

    fn __repr__(&self) -> String {
        format!("<Meter {}>", self.__str__())
    }
}

/// What an app wants in a switch.
#[derive(Clone, FromPyObject, IntoPyObject)]
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

impl Entry {
    /// Its text, with what it is.
    pub(crate) fn text(&self) -> String {
        match self {
            Entry::Flow(flow) => format!("flow {}", flow.0),
            Entry::Group(group) => format!("group {}", group.__str__()),
            Entry::Meter(meter) => format!("meter {}", meter.__str__()),
        }
    }
}

impl From<PyFlow> for Entry {
    fn from(flow: PyFlow) -> Self {
        Entry::Flow(flow)
    }
}

impl From<PyGroup> for Entry {
    fn from(group: PyGroup) -> Self {
        Entry::Group(group)
    }
}

impl From<PyMeter> for Entry {
    fn from(meter: PyMeter) -> Self {
        Entry::Meter(meter)
    }
}
