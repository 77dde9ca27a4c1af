//! Plans of confirmed changes.

use std::mem;
use std::sync::{Mutex, PoisonError};

use bellrock::Dpid;
use bellrock::services::programming::Plan;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::entry::{PyGroup, PyMeter};
use crate::flow::PyFlow;

/// Changes of flows that are carried out together, in an order in which no packet loops or is lost.
///
/// `Plan()` is for one switch, `Plan.independent()` for changes of which no packet meets two,
/// `Plan.tree()` for flows that lead to a destination, and `Plan.two_phase(tag)` for any others. A
/// plan is carried out once.
#[pyclass(name = "Plan", module = "bellrock", frozen)]
pub(crate) struct PyPlan(Mutex<Option<Plan>>);

impl PyPlan {
    fn of(plan: Plan) -> Self {
        PyPlan(Mutex::new(Some(plan)))
    }

    /// Takes the plan, to carry it out.
    ///
    /// # Errors
    /// `ValueError`: it was carried out before.
    pub(crate) fn take(&self) -> PyResult<Plan> {
        let plan = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        plan.ok_or_else(|| PyValueError::new_err("a plan is carried out once; make a new one"))
    }

    fn change(&self, change: impl FnOnce(Plan) -> Plan) -> PyResult<()> {
        let mut plan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match mem::take(&mut *plan) {
            Some(old) => *plan = Some(change(old)),
            None => return Err(PyValueError::new_err("the plan was carried out; make a new one")),
        }
        Ok(())
    }
}

#[pymethods]
impl PyPlan {
    #[new]
    fn new() -> Self {
        PyPlan::of(Plan::new())
    }

    /// Changes of any switches of which no packet meets two.
    #[staticmethod]
    fn independent() -> Self {
        PyPlan::of(Plan::independent())
    }

    /// Flows that lead to destinations, each with its distance.
    #[staticmethod]
    fn tree() -> Self {
        PyPlan::of(Plan::tree())
    }

    /// Flows of which each packet meets all or none. Within the network they match the VLAN id
    /// `tag`, which no packet carries yet.
    #[staticmethod]
    fn two_phase(tag: u16) -> Self {
        PyPlan::of(Plan::two_phase(tag))
    }

    /// Adds a flow, `distance` hops from the destination.
    #[pyo3(signature = (dpid, flow, distance=0))]
    fn add(&self, dpid: u64, flow: PyFlow, distance: u32) -> PyResult<()> {
        self.change(|plan| plan.add_at(distance, Dpid(dpid), flow.0))
    }

    /// Adds a flow in place of another with the same match and priority, `distance` hops from the
    /// destination. The old flow comes back if the plan fails.
    #[pyo3(signature = (dpid, old, new, distance=0))]
    fn replace(&self, dpid: u64, old: PyFlow, new: PyFlow, distance: u32) -> PyResult<()> {
        self.change(|plan| plan.replace_at(distance, Dpid(dpid), old.0, new.0))
    }

    /// Removes a flow, after all added flows are confirmed.
    fn remove(&self, dpid: u64, flow: PyFlow) -> PyResult<()> {
        self.change(|plan| plan.remove(Dpid(dpid), flow.0))
    }

    /// Adds a group, before all flows (1.3).
    fn group(&self, dpid: u64, group: PyGroup) -> PyResult<()> {
        self.change(|plan| plan.group(Dpid(dpid), group.0))
    }

    /// Changes a group, before all flows (1.3).
    fn modify_group(&self, dpid: u64, old: PyGroup, new: PyGroup) -> PyResult<()> {
        self.change(|plan| plan.modify_group(Dpid(dpid), old.0, new.0))
    }

    /// Removes a group, after all flows (1.3).
    fn remove_group(&self, dpid: u64, group: PyGroup) -> PyResult<()> {
        self.change(|plan| plan.remove_group(Dpid(dpid), group.0))
    }

    /// Adds a meter, before all flows (1.3).
    fn meter(&self, dpid: u64, meter: PyMeter) -> PyResult<()> {
        self.change(|plan| plan.meter(Dpid(dpid), meter.0))
    }

    /// Changes a meter, before all flows (1.3).
    fn modify_meter(&self, dpid: u64, old: PyMeter, new: PyMeter) -> PyResult<()> {
        self.change(|plan| plan.modify_meter(Dpid(dpid), old.0, new.0))
    }

    /// Removes a meter, after all flows (1.3).
    fn remove_meter(&self, dpid: u64, meter: PyMeter) -> PyResult<()> {
        self.change(|plan| plan.remove_meter(Dpid(dpid), meter.0))
    }

    /// Adds a flow of a two-phase plan where packets come in, in place of `old` if there is one.
    #[pyo3(signature = (dpid, new, old=None))]
    fn ingress(&self, dpid: u64, new: PyFlow, old: Option<PyFlow>) -> PyResult<()> {
        self.change(|plan| plan.ingress(Dpid(dpid), old.map(|old| old.0), new.0))
    }

    /// Adds a flow of a two-phase plan that forwards packets with the tag.
    fn transit(&self, dpid: u64, flow: PyFlow) -> PyResult<()> {
        self.change(|plan| plan.transit(Dpid(dpid), flow.0))
    }

    /// Adds a flow of a two-phase plan where packets leave.
    fn egress(&self, dpid: u64, flow: PyFlow) -> PyResult<()> {
        self.change(|plan| plan.egress(Dpid(dpid), flow.0))
    }

    fn __len__(&self) -> usize {
        let plan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plan.as_ref().map_or(0, Plan::len)
    }

    fn __bool__(&self) -> bool {
        self.__len__() != 0
    }
}
