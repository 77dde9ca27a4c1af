//! The network, as apps see it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bellrock::openflow::{
    Element, FlowStatsRequest, Group, List, Meter, QueueStatsRequest, ReplyBody, RequestBody,
};
use bellrock::services::paths::paths;
use bellrock::services::programming::FlowProgramming;
use bellrock::{
    AppEvent, Dpid, EventRecord, MacAddr, Match, Needs, Network, Port, Subscription,
    SubscriptionItem,
};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::argument::Arg;
use crate::desired::PyDesired;
use crate::entry_stats::{PyGroupDesc, PyGroupStats, PyMeterConfig, PyMeterStats};
use crate::error::Error;
use crate::info::{PyHost, PyLink, PySwitchInfo};
use crate::matching::PyMatch;
use crate::plan::PyPlan;
use crate::runner::Shared;
use crate::stats::{
    PyAggregateStats, PyDescription, PyFlowStats, PyPortStats, PyQueueStats, PyTableStats,
};

/// The network: what is known of it, and changes to it that are confirmed.
///
/// Methods that return an awaitable are for coroutines: `await network.commit(plan)`.
#[pyclass(name = "Network", module = "bellrock", frozen)]
pub(crate) struct PyNetwork {
    network: Network,
    /// Whether flows of an earlier run stay, as desired state needs it.
    keeps_flows: bool,
    /// The services that it may read.
    needs: Needs,
    shared: Arc<Shared>,
}

impl PyNetwork {
    pub(crate) fn new(
        network: &Network,
        keeps_flows: bool,
        needs: Needs,
        shared: &Arc<Shared>,
    ) -> Self {
        PyNetwork { network: network.clone(), keeps_flows, needs, shared: Arc::clone(shared) }
    }

    /// Refuses to read a service that the app does not need: it would be empty for ever.
    fn check_needs(&self, what: &str, any_of: Needs, name: &str) -> PyResult<()> {
        if self.needs.intersects(any_of) {
            return Ok(());
        }
        Err(Error::new_err(format!(
            "{what} needs {name:?}: write `needs = ({name:?},)` in the class of the app"
        )))
    }
}

#[pymethods]
impl PyNetwork {
    /// Returns the time since the controller started, in seconds.
    fn now(&self) -> f64 {
        self.network.now().as_secs_f64()
    }

    /// The switches that are up.
    #[getter]
    fn switches(&self) -> Vec<PySwitchInfo> {
        self.network.switches().iter().cloned().map(PySwitchInfo).collect()
    }

    /// Finds a switch that is up by its datapath id.
    fn switch(&self, dpid: u64) -> Option<PySwitchInfo> {
        self.network.switch(Dpid(dpid)).map(PySwitchInfo)
    }

    /// The links between switches, one for each direction, for apps that need "topology".
    #[getter]
    fn links(&self) -> PyResult<Vec<PyLink>> {
        // The other services build on discovery.
        self.check_needs("links", Needs::all(), "topology")?;
        Ok(self.network.topology().load().links.values().map(PyLink::from).collect())
    }

    /// The known hosts, sorted by their ports, for apps that need "hosts".
    #[getter]
    fn hosts(&self) -> PyResult<Vec<PyHost>> {
        self.check_needs("hosts", Needs::HOSTS, "hosts")?;
        Ok(self.network.hosts().load().iter().map(PyHost::from).collect())
    }

    /// Finds a host by its Ethernet address, in its VLAN.
    #[pyo3(signature = (mac, vlan_id=None))]
    fn host(&self, mac: Arg<MacAddr>, vlan_id: Option<u16>) -> PyResult<Option<PyHost>> {
        self.check_needs("host", Needs::HOSTS, "hosts")?;
        Ok(self.network.hosts().load().get(mac.0, vlan_id).map(PyHost::from))
    }

    /// Finds a host by its IP address, in its VLAN.
    #[pyo3(signature = (ip, vlan_id=None))]
    fn host_by_ip(&self, ip: Arg<IpAddr>, vlan_id: Option<u16>) -> PyResult<Option<PyHost>> {
        self.check_needs("host_by_ip", Needs::HOSTS, "hosts")?;
        Ok(self.network.hosts().load().by_ip(ip.0, vlan_id).map(PyHost::from))
    }

    /// Returns the hops of a shortest path between two switches, each as the datapath id and the
    /// port that packets leave by; `None` if there is no path. For apps that need "paths". Equal
    /// paths are chosen by `key`, such as a hash of addresses.
    #[pyo3(signature = (from_dpid, to_dpid, key=0))]
    fn path(&self, from_dpid: u64, to_dpid: u64, key: u64) -> PyResult<Option<Vec<(u64, u32)>>> {
        self.check_needs("path", Needs::PATHS, "paths")?;
        let paths = paths(&self.network).load();
        let path = paths.path(Dpid(from_dpid), Dpid(to_dpid), key);
        Ok(path
            .map(|path| path.hops.iter().map(|hop| (hop.from.dpid.0, hop.from.port.0)).collect()))
    }

    /// Returns the ports of a switch that a flooded packet goes out of, except its `in_port`, so that
    /// it reaches each host once. For apps that need "paths".
    fn flood_ports(&self, dpid: u64) -> PyResult<Vec<u32>> {
        self.check_needs("flood_ports", Needs::PATHS, "paths")?;
        let paths = paths(&self.network).load();
        Ok(paths.flood_ports(Dpid(dpid)).iter().map(|port| port.0).collect())
    }

    /// Carries out a plan, and waits until the switches have confirmed it. Raises `Error` if it
    /// cannot be carried out; then what was changed is rolled back where that is safe.
    fn commit<'py>(
        &self,
        py: Python<'py>,
        plan: &Bound<'py, PyPlan>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let plan = plan.get().take()?;
        let network = self.network.clone();
        let commit = async move { network.commit(plan).await };
        self.shared.awaitable(py, (&self.network, "commit"), commit, |py, result| match result {
            Ok(_) => Ok(py.None()),
            Err(error) => Err(Error::new_err(error.to_string())),
        })
    }

    /// The entries that this app wants in the switches. The class of the app must have
    /// `keeps_flows = True`.
    #[getter]
    fn desired(&self) -> PyResult<PyDesired> {
        match self.keeps_flows {
            true => Ok(PyDesired::new(&self.network, &self.shared)),
            false => Err(Error::new_err(
                "desired state compares the switches with what is wanted, so flows of an earlier run must stay: \
                 write `keeps_flows = True` in the class of the app",
            )),
        }
    }

    /// Requests the flows of a switch that `matching` covers, of all apps, with their counters.
    #[pyo3(signature = (dpid, matching=None))]
    fn flow_stats<'py>(
        &self,
        py: Python<'py>,
        dpid: u64,
        matching: Option<&Bound<'py, PyMatch>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let all = Match::any();
        let matching = matching.map_or(&all, |matching| &matching.get().0);
        let body = RequestBody::Flow(FlowStatsRequest::all(matching));
        self.request(py, dpid, body, |py, network, reply| match reply {
            ReplyBody::Flow(flows) => list(py, flows, |flow| PyFlowStats::new(network, &flow)),
            _ => Err(other_reply()),
        })
    }

    /// Requests the sums over the flows of a switch that `matching` covers, of all apps.
    #[pyo3(signature = (dpid, matching=None))]
    fn aggregate_stats<'py>(
        &self,
        py: Python<'py>,
        dpid: u64,
        matching: Option<&Bound<'py, PyMatch>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let all = Match::any();
        let matching = matching.map_or(&all, |matching| &matching.get().0);
        let body = RequestBody::Aggregate(FlowStatsRequest::all(matching));
        self.request(py, dpid, body, |py, _, reply| match reply {
            ReplyBody::Aggregate(sums) => PyAggregateStats::from(sums).into_py_any(py),
            _ => Err(other_reply()),
        })
    }

    /// Requests the counters of a switch's tables.
    fn table_stats<'py>(&self, py: Python<'py>, dpid: u64) -> PyResult<Bound<'py, PyAny>> {
        self.request(py, dpid, RequestBody::Table, |py, _, reply| match reply {
            ReplyBody::Table(tables) => list(py, tables, |item| PyTableStats::from(&item)),
            _ => Err(other_reply()),
        })
    }

    /// Requests the counters of a switch's ports, or of one.
    #[pyo3(signature = (dpid, port=None))]
    fn port_stats<'py>(
        &self,
        py: Python<'py>,
        dpid: u64,
        port: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let body = RequestBody::PortStats(port.map_or(Port::ANY, Port));
        self.request(py, dpid, body, |py, _, reply| match reply {
            ReplyBody::PortStats(ports) => list(py, ports, |item| PyPortStats::from(&item)),
            _ => Err(other_reply()),
        })
    }

    /// Requests the counters of queues: of all ports or one, all queues or one.
    #[pyo3(signature = (dpid, port=None, queue=None))]
    fn queue_stats<'py>(
        &self,
        py: Python<'py>,
        dpid: u64,
        port: Option<u32>,
        queue: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let switch = self.network.switch(Dpid(dpid));
        let has_any = switch.is_none_or(|switch| switch.version.has_any_port());
        let port = port.map_or(if has_any { Port::ANY } else { Port::ALL }, Port);
        let queue = queue.unwrap_or(QueueStatsRequest::ALL_QUEUES);
        let body = RequestBody::Queue(QueueStatsRequest { port, queue });
        self.request(py, dpid, body, |py, _, reply| match reply {
            ReplyBody::Queue(queues) => list(py, queues, |item| PyQueueStats::from(&item)),
            _ => Err(other_reply()),
        })
    }

    /// Requests the counters of a switch's groups, or of one (1.3).
    #[pyo3(signature = (dpid, group=None))]
    fn group_stats<'py>(
        &self,
        py: Python<'py>,
        dpid: u64,
        group: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let body = RequestBody::Group(group.unwrap_or(Group::ALL));
        self.request(py, dpid, body, |py, _, reply| match reply {
            ReplyBody::Group(groups) => list(py, groups, |item| PyGroupStats::from(&item)),
            _ => Err(other_reply()),
        })
    }

    /// Requests the groups of a switch as they are there, of all apps (1.3).
    fn group_descs<'py>(&self, py: Python<'py>, dpid: u64) -> PyResult<Bound<'py, PyAny>> {
        self.request(py, dpid, RequestBody::GroupDesc, |py, _, reply| match reply {
            ReplyBody::GroupDesc(groups) => list(py, groups, |item| PyGroupDesc::from(&item)),
            _ => Err(other_reply()),
        })
    }

    /// Requests the counters of a switch's meters, or of one (1.3).
    #[pyo3(signature = (dpid, meter=None))]
    fn meter_stats<'py>(
        &self,
        py: Python<'py>,
        dpid: u64,
        meter: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let body = RequestBody::Meter(meter.unwrap_or(Meter::ALL));
        self.request(py, dpid, body, |py, _, reply| match reply {
            ReplyBody::Meter(meters) => list(py, meters, |item| PyMeterStats::from(&item)),
            _ => Err(other_reply()),
        })
    }

    /// Requests the meters of a switch as they are there, or one of them, of all apps (1.3).
    #[pyo3(signature = (dpid, meter=None))]
    fn meter_configs<'py>(
        &self,
        py: Python<'py>,
        dpid: u64,
        meter: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let body = RequestBody::MeterConfig(meter.unwrap_or(Meter::ALL));
        self.request(py, dpid, body, |py, _, reply| match reply {
            ReplyBody::MeterConfig(meters) => list(py, meters, |item| PyMeterConfig::from(&item)),
            _ => Err(other_reply()),
        })
    }

    /// Requests what a switch says of itself.
    fn description<'py>(&self, py: Python<'py>, dpid: u64) -> PyResult<Bound<'py, PyAny>> {
        self.request(py, dpid, RequestBody::Desc, |py, _, reply| match reply {
            ReplyBody::Desc(desc) => PyDescription::from(&desc).into_py_any(py),
            _ => Err(other_reply()),
        })
    }

    /// Publishes an event of the app's own. Operators see it in the log and by `bellrock events`.
    #[pyo3(signature = (name, text, *, alarming=false))]
    fn publish(&self, name: &str, text: &str, alarming: bool) {
        let event = AppEvent::new(name, text);
        self.network.publish(if alarming { event.alarming() } else { event });
    }

    /// Subscribes to all later events of the network: `async for event in network.events()`.
    fn events(&self) -> EventStream {
        EventStream {
            network: self.network.clone(),
            shared: Arc::clone(&self.shared),
            subscription: Arc::new(Mutex::new(Some(self.network.events().subscribe()))),
        }
    }

    fn __repr__(&self) -> String {
        format!("<Network, {} switches>", self.network.switches().len())
    }
}

impl PyNetwork {
    fn request<'py>(
        &self,
        py: Python<'py>,
        dpid: u64,
        body: RequestBody<'_>,
        read: fn(Python<'_>, &Network, ReplyBody<'_>) -> PyResult<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let network = self.network.clone();
        let reply = self.network.request(Dpid(dpid), body);
        self.shared.awaitable(py, (&self.network, "request"), reply, move |py, reply| {
            let reply = reply.map_err(|error| Error::new_err(error.to_string()))?;
            let body = reply.body().map_err(|error| Error::new_err(error.to_string()))?;
            read(py, &network, body)
        })
    }
}

/// Makes a list in Python of the items of a reply.
fn list<'a, T: Element<'a> + Clone, P: for<'py> IntoPyObject<'py>>(
    py: Python<'_>,
    items: List<'a, T>,
    make: impl Fn(T) -> P,
) -> PyResult<Py<PyAny>> {
    items.iter().map(make).collect::<Vec<_>>().into_py_any(py)
}

fn other_reply() -> PyErr {
    Error::new_err("the switch answered with another reply")
}

/// The events of the network, for `async for`.
#[pyclass(module = "bellrock", frozen)]
pub(crate) struct EventStream {
    network: Network,
    shared: Arc<Shared>,
    /// `None`: somebody waits for the next event.
    subscription: Arc<Mutex<Option<Subscription>>>,
}

#[pymethods]
impl EventStream {
    fn __aiter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let taken = self.lock_take();
        let Some(mut subscription) = taken else {
            return Err(PyRuntimeError::new_err("another coroutine waits for the next event"));
        };
        let back = Arc::clone(&self.subscription);
        let next = async move {
            let item = subscription.next().await;
            *back.lock().unwrap_or_else(PoisonError::into_inner) = Some(subscription);
            item
        };
        self.shared.awaitable(py, (&self.network, "events"), next, |py, item| match item {
            SubscriptionItem::Event(record) => PyEvent(record).into_py_any(py),
            SubscriptionItem::Missed(missed) => MissedEvents { count: missed }.into_py_any(py),
        })
    }
}

impl EventStream {
    fn lock_take(&self) -> Option<Subscription> {
        self.subscription.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An event of the network.
#[pyclass(name = "Event", module = "bellrock", frozen)]
pub(crate) struct PyEvent(EventRecord);

#[pymethods]
impl PyEvent {
    /// Its name, such as "switch_up".
    #[getter]
    fn name(&self) -> &str {
        self.0.event.name()
    }

    /// Number of events published before it.
    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }

    /// Its time, in seconds since the controller started.
    #[getter]
    fn time(&self) -> f64 {
        self.0.time.as_secs_f64()
    }

    /// Whether an operator should see it.
    #[getter]
    fn is_alarming(&self) -> bool {
        self.0.event.is_alarming()
    }

    fn __str__(&self) -> String {
        self.0.event.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Event {}: {}>", self.0.event.name(), self.0.event)
    }
}

/// Stands in a stream of events for those that it missed, because its reader was too slow.
#[pyclass(module = "bellrock", frozen, get_all)]
pub(crate) struct MissedEvents {
    /// Number of events missed.
    count: u64,
}
