//! Flows.

use bellrock::flow::{FlowFlags, PriorityBand};
use bellrock::{Flow, FlowMod};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::action::{PyAction, actions_in, actions_of, own_actions};
use crate::argument::{Arg, wrong_value};
use crate::matching::PyMatch;

/// A flow of an app: `Flow(Match(eth_dst=mac), Action.output(3), idle_timeout=10)`. Without actions
/// it drops its packets. Compares by value. The switch and the OpenFlow version are not part of it.
///
/// `priority` is among the app's own flows, 0 to 4095. `number` is the app's own: the lower half of
/// the cookie. Timeouts are in seconds; 0 is none.
#[pyclass(name = "Flow", module = "bellrock", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyFlow(pub(crate) Flow);

#[pymethods]
impl PyFlow {
    #[new]
    #[pyo3(
        signature = (
            matching=None, /, *actions, table=Arg(0), priority=Arg(PriorityBand::MIDDLE), number=Arg(0),
            idle_timeout=Arg(0), hard_timeout=Arg(0), meter=None, write_actions=None,
            write_metadata=None, goto_table=None, send_flow_removed=false, check_overlap=false, **others
        ),
        text_signature = "(matching, /, *actions, table=0, priority=2048, number=0, idle_timeout=0, \
                          hard_timeout=0, meter=None, write_actions=None, write_metadata=None, \
                          goto_table=None, send_flow_removed=False, check_overlap=False)"
    )]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn new(
        matching: Option<&Bound<'_, PyMatch>>,
        actions: &Bound<'_, PyTuple>,
        table: Arg<u8>,
        priority: Arg<u16>,
        number: Arg<u32>,
        idle_timeout: Arg<u16>,
        hard_timeout: Arg<u16>,
        meter: Option<Arg<u32>>,
        write_actions: Option<Vec<PyAction>>,
        write_metadata: Option<(u64, u64)>,
        goto_table: Option<Arg<u8>>,
        send_flow_removed: bool,
        check_overlap: bool,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        if let Some(name) = others.and_then(|others| others.keys().iter().next()) {
            return Err(PyTypeError::new_err(format!(
                "a flow has no argument {name}; write Flow(Match(...), Action.output(3), priority=100): the match, then the \
                 actions, without names"
            )));
        }
        let Some(matching) = matching else {
            return Err(PyTypeError::new_err(
                "a flow needs a match: Flow(Match(in_port=1), Action.output(3)); Match() is every packet",
            ));
        };
        if !(..PriorityBand::PRIORITIES).contains(&priority.0)
            && priority.0 != FlowMod::DEFAULT_PRIORITY
        {
            return Err(wrong_value(format_args!(
                "priority is among the app's own flows, 0 to {}, not {}",
                PriorityBand::PRIORITIES - 1,
                priority.0
            )));
        }
        let mut flags = FlowFlags::empty();
        flags.set(FlowFlags::SEND_FLOW_REM, send_flow_removed);
        flags.set(FlowFlags::CHECK_OVERLAP, check_overlap);
        let mut flow = Flow::new(matching.get().0.clone())
            .table(table.0)
            .priority(priority.0)
            .number(number.0)
            .idle(idle_timeout.0)
            .hard(hard_timeout.0)
            .flags(flags)
            .actions(&actions_in(actions)?);
        if let Some(meter) = meter {
            flow = flow.meter(meter.0);
        }
        if let Some(actions) = write_actions {
            flow = flow.write_actions(&actions_of(&actions)?);
        }
        if let Some((metadata, mask)) = write_metadata {
            flow = flow.write_metadata(metadata, mask);
        }
        if let Some(table) = goto_table {
            flow = flow.goto_table(table.0);
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
        own_actions(&self.0.applied())
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
