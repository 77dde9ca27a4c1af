//! Groups and meters as a switch reports them: counters and configuration.

use bellrock::Port;
use bellrock::openflow::{
    Band, BandType, Bucket, Group, GroupDesc, GroupStats, MeterConfig, MeterFlags, MeterStats,
    PacketByteCount,
};
use pyo3::prelude::*;

use crate::action::{PyAction, reported_actions};
use crate::entry::kind_name;
use crate::stats::{known, seconds};

/// Packets and bytes. `None`: the switch does not count them.
type Counted = (Option<u64>, Option<u64>);

fn counted(count: PacketByteCount) -> Counted {
    (known(count.packet_count), known(count.byte_count))
}

/// The counters of a group. Those that the switch does not have are `None`.
#[pyclass(name = "GroupStats", module = "bellrock", frozen, get_all)]
pub(crate) struct PyGroupStats {
    /// Number of the group.
    group: u32,
    /// Number of flows and groups that use it.
    references: u32,
    /// Number of packets.
    packets: Option<u64>,
    /// Number of bytes of those packets.
    bytes: Option<u64>,
    /// How long it has existed, in seconds.
    duration: f64,
    /// Packets and bytes of each of its buckets, in order.
    buckets: Vec<Counted>,
}

impl From<&GroupStats<'_>> for PyGroupStats {
    fn from(stats: &GroupStats<'_>) -> Self {
        PyGroupStats {
            group: stats.group,
            references: stats.ref_count,
            packets: known(stats.packet_count),
            bytes: known(stats.byte_count),
            duration: seconds(stats.duration_sec, stats.duration_nsec),
            buckets: stats.buckets.iter().map(counted).collect(),
        }
    }
}

#[pymethods]
impl PyGroupStats {
    fn __repr__(&self) -> String {
        format!("<GroupStats {}, {} buckets>", self.group, self.buckets.len())
    }
}

/// A group as it is in a switch.
#[pyclass(name = "GroupDesc", module = "bellrock", frozen, get_all)]
pub(crate) struct PyGroupDesc {
    /// Number of the group.
    group: u32,
    /// Its type: "all", "select", "indirect", "fast_failover", or the number of another type.
    kind: String,
    /// Its buckets, in order.
    buckets: Vec<PyBucketDesc>,
}

impl From<&GroupDesc<'_>> for PyGroupDesc {
    fn from(desc: &GroupDesc<'_>) -> Self {
        PyGroupDesc {
            group: desc.group,
            kind: kind_name(desc.kind),
            buckets: desc.buckets.iter().map(|bucket| PyBucketDesc::from(&bucket)).collect(),
        }
    }
}

#[pymethods]
impl PyGroupDesc {
    fn __repr__(&self) -> String {
        let PyGroupDesc { group, kind, buckets } = self;
        format!("<GroupDesc {group}, {kind}, {} buckets>", buckets.len())
    }
}

/// A bucket of a group as it is in a switch.
#[pyclass(name = "BucketDesc", module = "bellrock", frozen, get_all)]
#[derive(Clone)]
pub(crate) struct PyBucketDesc {
    /// Its actions, in order. Those without a meaning here are kept as they are.
    actions: Vec<PyAction>,
    /// Its weight, for select groups.
    weight: u16,
    /// The port that must be up for it to be live. `None`: it watches no port.
    watch_port: Option<u32>,
    /// The group that must be live for it to be live. `None`: it watches no group.
    watch_group: Option<u32>,
}

impl From<&Bucket<'_>> for PyBucketDesc {
    fn from(bucket: &Bucket<'_>) -> Self {
        let watched = |number: u32, none: u32| (number != none).then_some(number);
        PyBucketDesc {
            actions: reported_actions(bucket.actions),
            weight: bucket.weight,
            watch_port: watched(bucket.watch_port.0, Port::ANY.0),
            watch_group: watched(bucket.watch_group, Group::ANY),
        }
    }
}

#[pymethods]
impl PyBucketDesc {
    fn __repr__(&self) -> String {
        let actions: Vec<_> = self.actions.iter().map(PyAction::text).collect();
        format!("<BucketDesc {}>", actions.join(","))
    }
}

/// The counters of a meter. Those that the switch does not have are `None`.
#[pyclass(name = "MeterStats", module = "bellrock", frozen, get_all)]
pub(crate) struct PyMeterStats {
    /// Number of the meter.
    meter: u32,
    /// Number of flows that use it.
    flows: u32,
    /// Number of packets that entered it.
    packets: Option<u64>,
    /// Number of bytes of those packets.
    bytes: Option<u64>,
    /// How long it has existed, in seconds.
    duration: f64,
    /// Packets and bytes above the rate of each of its bands, in order.
    bands: Vec<Counted>,
}

impl From<&MeterStats<'_>> for PyMeterStats {
    fn from(stats: &MeterStats<'_>) -> Self {
        PyMeterStats {
            meter: stats.meter,
            flows: stats.flow_count,
            packets: known(stats.packet_in_count),
            bytes: known(stats.byte_in_count),
            duration: seconds(stats.duration_sec, stats.duration_nsec),
            bands: stats.bands.iter().map(counted).collect(),
        }
    }
}

#[pymethods]
impl PyMeterStats {
    fn __repr__(&self) -> String {
        format!("<MeterStats {}, {} flows>", self.meter, self.flows)
    }
}

/// A meter as it is in a switch.
#[pyclass(name = "MeterConfig", module = "bellrock", frozen, get_all)]
pub(crate) struct PyMeterConfig {
    /// Number of the meter.
    meter: u32,
    /// The unit of its rates: "kbps" or "packets".
    unit: &'static str,
    /// Its bands, in order.
    bands: Vec<PyMeterBand>,
}

impl From<&MeterConfig<'_>> for PyMeterConfig {
    fn from(config: &MeterConfig<'_>) -> Self {
        // Without a flag, rates are in kbit/s (1.3.5 §7.3.4.4).
        let in_packets = config.flags.contains(MeterFlags::PKTPS);
        let has_burst = config.flags.contains(MeterFlags::BURST);
        PyMeterConfig {
            meter: config.meter,
            unit: if in_packets { "packets" } else { "kbps" },
            bands: config.bands.iter().map(|band| PyMeterBand::new(&band, has_burst)).collect(),
        }
    }
}

#[pymethods]
impl PyMeterConfig {
    fn __repr__(&self) -> String {
        let bands: Vec<_> =
            self.bands.iter().map(|it| format!("{} {}", it.kind, it.rate)).collect();
        format!("<MeterConfig {}, {} {}>", self.meter, bands.join(", "), self.unit)
    }
}

/// A band of a meter.
#[pyclass(name = "MeterBand", module = "bellrock", frozen, get_all)]
#[derive(Clone)]
pub(crate) struct PyMeterBand {
    /// What it does with packets above its rate: "drop", "dscp_remark", "experimenter", or the
    /// number of another type.
    kind: String,
    /// Its rate, in the unit of the meter.
    rate: u32,
    /// Size of a burst that may exceed the rate, in kbit or packets. `None`: the switch chooses it.
    burst: Option<u32>,
}

impl PyMeterBand {
    fn new(band: &Band<'_>, has_burst: bool) -> Self {
        let kind = match band.kind {
            BandType::Drop => "drop".to_owned(),
            BandType::DscpRemark { .. } => "dscp_remark".to_owned(),
            BandType::Experimenter { .. } => "experimenter".to_owned(),
            BandType::Unknown { kind, .. } => kind.to_string(),
        };
        PyMeterBand { kind, rate: band.rate, burst: has_burst.then_some(band.burst_size) }
    }
}

#[pymethods]
impl PyMeterBand {
    fn __repr__(&self) -> String {
        format!("<MeterBand {} above {}>", self.kind, self.rate)
    }
}
