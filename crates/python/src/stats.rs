//! Counters of flows, tables, ports and queues, and the description of a switch.

use bellrock::Network;
use bellrock::app::AppId;
use bellrock::openflow::{
    Aggregate, Desc, FlowStats, Instruction, PortStats, QueueStats, TableStats,
};
use pyo3::prelude::*;

use crate::action::{PyAction, reported_actions};
use crate::matching::PyMatch;

/// A flow in a switch, with its counters.
#[pyclass(name = "FlowStats", module = "bellrock", frozen, get_all)]
pub(crate) struct PyFlowStats {
    /// The app that installed it. `None` for flows of others.
    app: Option<&'static str>,
    /// Whether it is a flow of the app that asked.
    is_own: bool,
    /// The packets that it matches.
    matching: PyMatch,
    /// Number of its table.
    table: u8,
    /// Its priority: among the app's flows if it is one of them, else as in the switch.
    priority: u16,
    /// The lower half of its cookie.
    number: u32,
    /// Seconds without a packet until it expires; 0 for never.
    idle_timeout: u16,
    /// Seconds until it expires; 0 for never.
    hard_timeout: u16,
    /// How long it has existed, in seconds.
    duration: f64,
    /// Number of packets that matched it.
    packets: u64,
    /// Number of bytes of those packets.
    bytes: u64,
    /// Actions that are applied at once, in order. Those without a meaning here, of an experimenter
    /// for example, are kept as they are.
    actions: Vec<PyAction>,
    /// Number of the table that follows (1.3).
    goto_table: Option<u8>,
    /// Number of the meter that packets go through first (1.3).
    meter: Option<u32>,
    /// What it does with packets, as it prints.
    instructions: String,
}

impl PyFlowStats {
    /// A flow as the switch reports it.
    pub(crate) fn new(network: &Network, flow: &FlowStats<'_>) -> Self {
        let own = network.app_id().filter(|app| app.cookie().owns_flow(flow));
        let lowered = own.and_then(|app| app.band().lower(flow.priority));
        let priority = lowered.unwrap_or(flow.priority);
        PyFlowStats::with_priority(network, own, &FlowStats { priority, ..*flow })
    }

    /// A flow of the app, with the priority that the app gave.
    pub(crate) fn own(network: &Network, flow: &FlowStats<'_>) -> Self {
        PyFlowStats::with_priority(network, network.app_id(), flow)
    }

    fn with_priority(network: &Network, own: Option<AppId>, flow: &FlowStats<'_>) -> Self {
        let (mut actions, mut goto_table, mut meter) = (Vec::new(), None, None);
        for instruction in flow.instructions.iter() {
            match instruction {
                Instruction::ApplyActions(applied) => actions = reported_actions(applied),
                Instruction::GotoTable(table) => goto_table = Some(table),
                Instruction::Meter(number) => meter = Some(number),
                _ => {}
            }
        }
        PyFlowStats {
            app: network.app_of_flow(flow),
            is_own: own.is_some(),
            matching: PyMatch(flow.matching.to_match()),
            table: flow.table,
            priority: flow.priority,
            number: flow.cookie as u32,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            duration: seconds(flow.duration_sec, flow.duration_nsec),
            packets: flow.packet_count,
            bytes: flow.byte_count,
            actions,
            goto_table,
            meter,
            instructions: flow.instructions.to_string(),
        }
    }
}

#[pymethods]
impl PyFlowStats {
    fn __repr__(&self) -> String {
        let PyFlowStats { matching, table, priority, instructions, packets, .. } = self;
        format!(
            "<FlowStats table={table} priority={priority} {} {instructions}: {packets} packets>",
            matching.0
        )
    }
}

/// Sums over the flows of a switch.
#[pyclass(name = "AggregateStats", module = "bellrock", frozen, get_all)]
pub(crate) struct PyAggregateStats {
    /// Number of flows.
    flows: u32,
    /// Number of packets that matched them.
    packets: u64,
    /// Number of bytes of those packets.
    bytes: u64,
}

impl From<Aggregate> for PyAggregateStats {
    fn from(sums: Aggregate) -> Self {
        PyAggregateStats {
            flows: sums.flow_count,
            packets: sums.packet_count,
            bytes: sums.byte_count,
        }
    }
}

#[pymethods]
impl PyAggregateStats {
    fn __repr__(&self) -> String {
        let PyAggregateStats { flows, packets, bytes } = self;
        format!("<AggregateStats {flows} flows, {packets} packets, {bytes} bytes>")
    }
}

/// The counters of a table.
#[pyclass(name = "TableStats", module = "bellrock", frozen, get_all)]
pub(crate) struct PyTableStats {
    /// Its number.
    table: u8,
    /// Number of its flows.
    flows: u32,
    /// Number of packets looked up in it.
    lookups: u64,
    /// Number of packets that matched a flow.
    matched: u64,
    /// Its name, which only 1.0 reports here.
    name: Option<String>,
    /// Maximum number of its flows, which only 1.0 reports here.
    max_flows: Option<u32>,
}

impl From<&TableStats> for PyTableStats {
    fn from(stats: &TableStats) -> Self {
        PyTableStats {
            table: stats.table,
            flows: stats.active_count,
            lookups: stats.lookup_count,
            matched: stats.matched_count,
            name: stats.v1_0.map(|details| details.name.to_string()),
            max_flows: stats.v1_0.map(|details| details.max_entries),
        }
    }
}

#[pymethods]
impl PyTableStats {
    fn __repr__(&self) -> String {
        let PyTableStats { table, flows, lookups, matched, .. } = self;
        format!("<TableStats {table}: {flows} flows, {matched} of {lookups} packets matched>")
    }
}

/// The counters of a port. Those that the switch does not have are `None`.
#[pyclass(name = "PortStats", module = "bellrock", frozen, get_all)]
pub(crate) struct PyPortStats {
    /// Number of the port.
    port: u32,
    /// How long it has existed, in seconds; 0 in OpenFlow 1.0.
    duration: f64,
    /// Packets received.
    rx_packets: Option<u64>,
    /// Packets sent.
    tx_packets: Option<u64>,
    /// Bytes received.
    rx_bytes: Option<u64>,
    /// Bytes sent.
    tx_bytes: Option<u64>,
    /// Packets dropped on receipt.
    rx_dropped: Option<u64>,
    /// Packets dropped on sending.
    tx_dropped: Option<u64>,
    /// Errors on receipt.
    rx_errors: Option<u64>,
    /// Errors on sending.
    tx_errors: Option<u64>,
    /// Frames received that were not aligned.
    rx_frame_errors: Option<u64>,
    /// Packets received that found no space.
    rx_overruns: Option<u64>,
    /// Packets received with a wrong checksum.
    rx_crc_errors: Option<u64>,
    /// Collisions.
    collisions: Option<u64>,
}

impl From<&PortStats> for PyPortStats {
    fn from(stats: &PortStats) -> Self {
        let counters = &stats.counters;
        PyPortStats {
            port: stats.port.0,
            duration: seconds(stats.duration_sec, stats.duration_nsec),
            rx_packets: known(counters.rx_packets),
            tx_packets: known(counters.tx_packets),
            rx_bytes: known(counters.rx_bytes),
            tx_bytes: known(counters.tx_bytes),
            rx_dropped: known(counters.rx_dropped),
            tx_dropped: known(counters.tx_dropped),
            rx_errors: known(counters.rx_errors),
            tx_errors: known(counters.tx_errors),
            rx_frame_errors: known(counters.rx_frame_err),
            rx_overruns: known(counters.rx_over_err),
            rx_crc_errors: known(counters.rx_crc_err),
            collisions: known(counters.collisions),
        }
    }
}

/// The counters of a queue of a port. Those that the switch does not have are `None`.
#[pyclass(name = "QueueStats", module = "bellrock", frozen, get_all)]
pub(crate) struct PyQueueStats {
    /// Number of the port.
    port: u32,
    /// Number of the queue at the port.
    queue: u32,
    /// How long it has existed, in seconds; 0 in OpenFlow 1.0.
    duration: f64,
    /// Packets sent.
    tx_packets: Option<u64>,
    /// Bytes sent.
    tx_bytes: Option<u64>,
    /// Packets dropped because the queue was full.
    tx_errors: Option<u64>,
}

impl From<&QueueStats> for PyQueueStats {
    fn from(stats: &QueueStats) -> Self {
        PyQueueStats {
            port: stats.port.0,
            queue: stats.queue,
            duration: seconds(stats.duration_sec, stats.duration_nsec),
            tx_packets: known(stats.tx_packets),
            tx_bytes: known(stats.tx_bytes),
            tx_errors: known(stats.tx_errors),
        }
    }
}

#[pymethods]
impl PyQueueStats {
    fn __repr__(&self) -> String {
        format!("<QueueStats {} of port {}>", self.queue, self.port)
    }
}

/// What a switch says of itself.
#[pyclass(name = "Description", module = "bellrock", frozen, get_all)]
pub(crate) struct PyDescription {
    /// Its manufacturer.
    manufacturer: String,
    /// Its hardware.
    hardware: String,
    /// Its software.
    software: String,
    /// Its serial number.
    serial_number: String,
    /// The name that its operator has given it.
    datapath: String,
}

impl From<&Desc<'_>> for PyDescription {
    fn from(desc: &Desc<'_>) -> Self {
        PyDescription {
            manufacturer: desc.manufacturer().to_string(),
            hardware: desc.hardware().to_string(),
            software: desc.software().to_string(),
            serial_number: desc.serial_number().to_string(),
            datapath: desc.datapath().to_string(),
        }
    }
}

#[pymethods]
impl PyDescription {
    fn __repr__(&self) -> String {
        let PyDescription { manufacturer, hardware, software, .. } = self;
        format!("<Description {manufacturer}, {hardware}, {software}>")
    }
}

/// A counter that a switch does not have is all ones (1.3.5 §7.3.5.6).
pub(crate) fn known(counter: u64) -> Option<u64> {
    (counter != u64::MAX).then_some(counter)
}

/// A duration of two parts, in seconds.
pub(crate) fn seconds(whole: u32, nanoseconds: u32) -> f64 {
    const NANOSECONDS: f64 = 1e9;
    f64::from(whole) + f64::from(nanoseconds) / NANOSECONDS
}
