//! Plans of confirmed changes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bellrock::Dpid;
use bellrock::services::programming::Plan;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::entry::{Entry, PyGroup, PyMeter};
use crate::flow::PyFlow;

/// Changes of flows that are carried out together, in an order in which no packet loops or is lost.
///
/// `Plan()` is for one switch, `Plan.independent()` for changes of which no packet meets two,
/// `Plan.tree()` for flows that lead to a destination, and `Plan.two_phase(tag)` for any others. A
/// plan is carried out once.
#[pyclass(name = "Plan", module = "bellrock", frozen)]
pub(crate) struct PyPlan(Mutex<State>);

struct State {
    /// `None`: it was carried out.
    plan: Option<Plan>,
    kind: &'static str,
    changes: Vec<PlannedChange>,
}

/// A change of a plan: what is done, the switch, and the entry.
type PlannedChange = (&'static str, u64, Entry);

impl PyPlan {
    fn of(kind: &'static str, plan: Plan) -> Self {
        PyPlan(Mutex::new(State { plan: Some(plan), kind, changes: Vec::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the plan, to carry it out.
    ///
    /// # Errors
    /// `ValueError`: it was carried out before.
    pub(crate) fn take(&self) -> PyResult<Plan> {
        let plan = self.state().plan.take();
        plan.ok_or_else(|| PyValueError::new_err("a plan is carried out once; make a new one"))
    }

    fn change(
        &self,
        (what, dpid, entry): (&'static str, u64, impl Into<Entry>),
        change: impl FnOnce(Plan, Dpid) -> Plan,
    ) -> PyResult<()> {
        let mut state = self.state();
        match state.plan.take() {
            Some(old) => state.plan = Some(change(old, Dpid(dpid))),
            None => return Err(PyValueError::new_err("the plan was carried out; make a new one")),
        }
        state.changes.push((what, dpid, entry.into()));
        Ok(())
    }
}

#[pymethods]
impl PyPlan {
    #[new]
    fn new() -> Self {
        PyPlan::of("one switch", Plan::new())
    }

    /// Changes of any switches of which no packet meets two.
    #[staticmethod]
    fn independent() -> Self {
        PyPlan::of("independent", Plan::independent())
    }

    /// Flows that lead to destinations, each with its distance.
    #[staticmethod]
    fn tree() -> Self {
        PyPlan::of("tree", Plan::tree())
    }

    /// Flows of which each packet meets all or none. Within the network they match the VLAN id
    /// `tag`, which no packet carries yet.
    #[staticmethod]
    fn two_phase(tag: u16) -> Self {
        PyPlan::of("two-phase", Plan::two_phase(tag))
    }

    /// Adds a flow, `distance` hops from the destination.
    #[pyo3(signature = (dpid, flow, distance=0))]
    fn add(&self, dpid: u64, flow: PyFlow, distance: u32) -> PyResult<()> {
        self.change(("add", dpid, flow.clone()), |plan, at| plan.add_at(distance, at, flow.0))
    }

    /// Adds a flow in place of another with the same match and priority, `distance` hops from the
    /// destination. The old flow comes back if the plan fails.
    #[pyo3(signature = (dpid, old, new, distance=0))]
    fn replace(&self, dpid: u64, old: PyFlow, new: PyFlow, distance: u32) -> PyResult<()> {
        let change = ("replace", dpid, new.clone());
        self.change(change, |plan, at| plan.replace_at(distance, at, old.0, new.0))
    }

    /// Removes a flow, after all added flows are confirmed.
    fn remove(&self, dpid: u64, flow: PyFlow) -> PyResult<()> {
        self.change(("remove", dpid, flow.clone()), |plan, at| plan.remove(at, flow.0))
    }

    /// Adds a group, before all flows (1.3).
    fn group(&self, dpid: u64, group: PyGroup) -> PyResult<()> {
        self.change(("add", dpid, group.clone()), |plan, at| plan.group(at, group.0))
    }

    /// Changes a group, before all flows (1.3).
    fn modify_group(&self, dpid: u64, old: PyGroup, new: PyGroup) -> PyResult<()> {
        self.change(("modify", dpid, new.clone()), |plan, at| plan.modify_group(at, old.0, new.0))
    }

    /// Removes a group, after all flows (1.3).
    fn remove_group(&self, dpid: u64, group: PyGroup) -> PyResult<()> {
        self.change(("remove", dpid, group.clone()), |plan, at| plan.remove_group(at, group.0))
    }

    /// Adds a meter, before all flows (1.3).
    fn meter(&self, dpid: u64, meter: PyMeter) -> PyResult<()> {
        self.change(("add", dpid, meter.clone()), |plan, at| plan.meter(at, meter.0))
    }

    /// Changes a meter, before all flows (1.3).
    fn modify_meter(&self, dpid: u64, old: PyMeter, new: PyMeter) -> PyResult<()> {
        self.change(("modify", dpid, new.clone()), |plan, at| plan.modify_meter(at, old.0, new.0))
    }

    /// Removes a meter, after all flows (1.3).
    fn remove_meter(&self, dpid: u64, meter: PyMeter) -> PyResult<()> {
        self.change(("remove", dpid, meter.clone()), |plan, at| plan.remove_meter(at, meter.0))
    }

    /// Adds a flow of a two-phase plan where packets come in, in place of `old` if there is one.
    #[pyo3(signature = (dpid, new, old=None))]
    fn ingress(&self, dpid: u64, new: PyFlow, old: Option<PyFlow>) -> PyResult<()> {
        let change = ("ingress", dpid, new.clone());
        self.change(change, |plan, at| plan.ingress(at, old.map(|old| old.0), new.0))
    }

    /// Adds a flow of a two-phase plan that forwards packets with the tag.
    fn transit(&self, dpid: u64, flow: PyFlow) -> PyResult<()> {
        self.change(("transit", dpid, flow.clone()), |plan, at| plan.transit(at, flow.0))
    }

    /// Adds a flow of a two-phase plan where packets leave.
    fn egress(&self, dpid: u64, flow: PyFlow) -> PyResult<()> {
        self.change(("egress", dpid, flow.clone()), |plan, at| plan.egress(at, flow.0))
    }

    /// Its changes, in the order in which they were given: what is done ("add", "replace",
    /// "modify", "remove", "ingress", "transit" or "egress"), the datapath id, and the flow, group
    /// or meter.
    #[getter]
    fn changes(&self) -> Vec<PlannedChange> {
        self.state().changes.clone()
    }

    /// Whether it was carried out, or is being carried out.
    #[getter]
    fn is_carried_out(&self) -> bool {
        self.state().plan.is_none()
    }

    fn __len__(&self) -> usize {
        self.state().plan.as_ref().map_or(0, Plan::len)
    }

    fn __bool__(&self) -> bool {
        self.__len__() != 0
    }

    fn __str__(&self) -> String {
        let state = self.state();
        let changes = state.changes.iter();
        let line = |(what, dpid, entry): &PlannedChange| {
            format!("switch {}: {what} {}", Dpid(*dpid), entry.text())
        };
        changes.map(line).collect::<Vec<_>>().join("\n")
    }

    fn __repr__(&self) -> String {
        let state = self.state();
        let over = if state.plan.is_none() { ", carried out" } else { "" };
        format!("<Plan ({}), {} changes{over}>", state.kind, state.changes.len())
    }
}
