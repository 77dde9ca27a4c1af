//! Flows.

use bellrock::{Flow, FlowFlags, PriorityBand};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::action::{PyAction, actions_in, actions_of};
use crate::matching::PyMatch;

/// A flow of an app: `Flow(Match(eth_dst=mac), Action.output(3), idle_timeout=10)`. Without actions it
/// drops its packets. Compares by value. The switch and the OpenFlow version are not part of it.
///
/// `priority` is among the app's own flows, 0 to 4095. `number` is the app's own: the lower half of
/// the cookie. Timeouts are in seconds; 0 is none.
#[pyclass(name = "Flow", module = "bellrock", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyFlow(pub(crate) Flow);

#[pymethods]
impl PyFlow {
    #[new]
    #[pyo3(signature = (
        matching, /, *actions, table=0, priority=PriorityBand::MIDDLE, number=0, idle_timeout=0,
        hard_timeout=0, meter=None, write_actions=None, write_metadata=None, goto_table=None,
        send_flow_removed=false, check_overlap=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn new(
        matching: &Bound<'_, PyMatch>,
        actions: &Bound<'_, PyTuple>,
        table: u8,
        priority: u16,
        number: u32,
        idle_timeout: u16,
        hard_timeout: u16,
        meter: Option<u32>,
        write_actions: Option<Vec<PyAction>>,
        write_metadata: Option<(u64, u64)>,
        goto_table: Option<u8>,
        send_flow_removed: bool,
        check_overlap: bool,
    ) -> PyResult<Self> {
        let mut flags = FlowFlags::empty();
        flags.set(FlowFlags::SEND_FLOW_REM, send_flow_removed);
        flags.set(FlowFlags::CHECK_OVERLAP, check_overlap);
        let mut flow = Flow::new(matching.get().0.clone())
            .table(table)
            .priority(priority)
            .number(number)
            .idle(idle_timeout)
            .hard(hard_timeout)
            .flags(flags)
            .actions(&actions_in(actions)?);
        if let Some(meter) = meter {
            flow = flow.meter(meter);
        }
        if let Some(actions) = write_actions {
            flow = flow.write_actions(&actions_of(&actions));
        }
        if let Some((metadata, mask)) = write_metadata {
            flow = flow.write_metadata(metadata, mask);
        }
        if let Some(table) = goto_table {
            flow = flow.goto_table(table);
        }
        Ok(PyFlow(flow))
    }

    /// The packets that it matches.
    #[getter]
    fn matching(&self) -> PyMatch {
        PyMatch(self.0.matching.clone())
    }

    /// Actions that are applied at once, in order.
    #[getter]
    fn actions(&self) -> Vec<PyAction> {
        self.0.applied().iter().map(|action| PyAction(*action)).collect()
    }

    /// Number of its table.
    #[getter]
    fn table(&self) -> u8 {
        self.0.table
    }

    /// Its priority among the app's flows.
    #[getter]
    fn priority(&self) -> u16 {
        self.0.priority
    }

    /// The app's own number.
    #[getter]
    fn number(&self) -> u32 {
        self.0.number
    }

    /// Seconds without a packet until it expires; 0 for never.
    #[getter]
    fn idle_timeout(&self) -> u16 {
        self.0.idle_timeout
    }

    /// Seconds until it expires; 0 for never.
    #[getter]
    fn hard_timeout(&self) -> u16 {
        self.0.hard_timeout
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Flow {}>", self.0)
    }
}
