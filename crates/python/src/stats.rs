//! Counters of flows and ports.

use bellrock::Network;
use bellrock::openflow::{FlowStats, PortStats};
use pyo3::prelude::*;

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
    /// How long it has existed, in seconds.
    duration: f64,
    /// Number of packets that matched it.
    packets: u64,
    /// Number of bytes of those packets.
    bytes: u64,
    /// What it does with packets, as it prints.
    instructions: String,
}

impl PyFlowStats {
    pub(crate) fn new(network: &Network, flow: &FlowStats<'_>) -> Self {
        let own = network.app_id().filter(|app| app.cookie().owns_flow(flow));
        let lowered = own.and_then(|app| app.band().lower(flow.priority));
        PyFlowStats {
            app: network.app_of_flow(flow),
            is_own: own.is_some(),
            matching: PyMatch(flow.matching.to_match()),
            table: flow.table,
            priority: lowered.unwrap_or(flow.priority),
            number: flow.cookie as u32,
            duration: seconds(flow.duration_sec, flow.duration_nsec),
            packets: flow.packet_count,
            bytes: flow.byte_count,
            instructions: flow.instructions.to_string(),
        }
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
}

impl From<&PortStats> for PyPortStats {
    fn from(stats: &PortStats) -> Self {
        // A counter that a switch does not have is all ones (1.3.5 §7.3.5.6).
        let known = |counter: u64| (counter != u64::MAX).then_some(counter);
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
        }
    }
}

/// A duration of two parts, in seconds.
pub(crate) fn seconds(whole: u32, nanoseconds: u32) -> f64 {
    const NANOSECONDS: f64 = 1e9;
    f64::from(whole) + f64::from(nanoseconds) / NANOSECONDS
}
