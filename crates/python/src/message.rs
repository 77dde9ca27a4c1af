//! Messages of switches, other than packet_ins.

use bellrock::app::AppId;
use bellrock::flow::FlowRemovedReason;
use bellrock::network::PortReason;
use bellrock::openflow::FromSwitch;
use bellrock::{ErrorMessage, FlowRemoved, PortStatus};
use pyo3::prelude::*;

use crate::argument::wrong_value;
use crate::info::PyPortInfo;
use crate::matching::PyMatch;
use crate::stats::seconds;

/// A port was added, removed or changed.
#[pyclass(name = "PortStatus", module = "bellrock", frozen)]
pub(crate) struct PyPortStatus(pub(crate) PortStatus);

#[pymethods]
impl PyPortStatus {
    /// "add", "delete" or "modify".
    #[getter]
    fn reason(&self) -> String {
        match self.0.reason {
            PortReason::Add => "add".to_owned(),
            PortReason::Delete => "delete".to_owned(),
            PortReason::Modify => "modify".to_owned(),
            PortReason::Unknown(number) => number.to_string(),
        }
    }

    /// The port, as it is now.
    #[getter]
    fn port(&self) -> PyPortInfo {
        PyPortInfo(self.0.desc)
    }

    fn __repr__(&self) -> String {
        format!("<PortStatus {} {}>", self.reason(), self.0.desc.port)
    }
}

/// A flow was removed.
#[pyclass(name = "FlowRemoved", module = "bellrock", frozen, get_all)]
pub(crate) struct PyFlowRemoved {
    /// The packets that it matched.
    matching: PyMatch,
    /// Its priority: among the app's flows if it is one of them, else as in the switch.
    priority: u16,
    /// Number of its table.
    table: u8,
    /// Whether it was a flow of this app.
    is_own: bool,
    /// The lower half of its cookie.
    number: u32,
    /// "idle_timeout", "hard_timeout", "delete", "group_delete", or a number.
    reason: String,
    /// How long it was there, in seconds.
    duration: f64,
    /// Number of packets that matched it.
    packets: u64,
    /// Number of bytes of those packets.
    bytes: u64,
}

impl PyFlowRemoved {
    pub(crate) fn new(app: AppId, flow: &FlowRemoved<'_>) -> Self {
        PyFlowRemoved {
            matching: PyMatch(flow.matching.to_match()),
            priority: flow.priority,
            table: flow.table,
            is_own: app.cookie().owns(flow.cookie),
            number: flow.cookie as u32,
            reason: match flow.reason {
                FlowRemovedReason::IdleTimeout => "idle_timeout".to_owned(),
                FlowRemovedReason::HardTimeout => "hard_timeout".to_owned(),
                FlowRemovedReason::Delete => "delete".to_owned(),
                FlowRemovedReason::GroupDelete => "group_delete".to_owned(),
                FlowRemovedReason::Unknown(number) => number.to_string(),
            },
            duration: seconds(flow.duration_sec, flow.duration_nsec),
            packets: flow.packet_count,
            bytes: flow.byte_count,
        }
    }
}

/// A switch refused a message of the app.
#[pyclass(name = "ErrorMessage", module = "bellrock", frozen, get_all)]
pub(crate) struct PyErrorMessage {
    /// What is wrong, in the words of the specification.
    text: String,
    /// The experimenter that defines the error. `None`: the specification does.
    experimenter: Option<u32>,
    /// The beginning of the refused message, or the experimenter's data.
    data: Vec<u8>,
}

impl From<ErrorMessage<'_>> for PyErrorMessage {
    fn from(error: ErrorMessage<'_>) -> Self {
        match error {
            ErrorMessage::Standard { code, data } => {
                PyErrorMessage { text: code.to_string(), experimenter: None, data: data.0.to_vec() }
            }
            ErrorMessage::Experimenter { experimenter, kind, data } => PyErrorMessage {
                text: format!("error {kind} of experimenter {experimenter:#x}"),
                experimenter: Some(experimenter),
                data: data.0.to_vec(),
            },
        }
    }
}

#[pymethods]
impl PyErrorMessage {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<ErrorMessage {}>", self.text)
    }
}

/// Decodes a message that a worker has checked.
pub(crate) fn decode(bytes: &[u8]) -> PyResult<FromSwitch<'_>> {
    FromSwitch::decode(bytes).map(|message| message.body).map_err(wrong_value)
}
