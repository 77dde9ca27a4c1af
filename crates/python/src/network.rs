//! The network, as apps see it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use bellrock::app::Term;
use bellrock::encoded;
use bellrock::openflow::{
    Element, FlowStatsRequest, Group, List, Meter, QueueStatsRequest, ReplyBody, RequestBody,
};
use bellrock::services::paths::{Hop, paths};
use bellrock::services::programming::FlowProgramming;
use bellrock::{AppEvent, Dpid, MacAddr, Match, Needs, Network, Port};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::argument::{Arg, wrong_value};
use crate::changes::Changes;
use crate::desired::PyDesired;
use crate::encoded::{PyReply, confirmed, not_sent};
use crate::entry_stats::{PyGroupDesc, PyGroupStats, PyMeterConfig, PyMeterStats};
use crate::error::Error;
use crate::events::EventStream;
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

    /// The number of the term in which this node leads, for an app of scope "once" in a cluster:
    /// larger than those before. `None`: the controller is alone, or the app is of another scope.
    #[getter]
    fn term(&self) -> Option<u64> {
        self.network.term().map(Term::number)
    }

    /// Whether another node may lead now.
    #[getter]
    fn is_term_over(&self) -> bool {
        self.network.term().is_some_and(Term::is_over)
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
        Ok(path.map(|path| path.hops.into_iter().map(sender).collect()))
    }

    /// Returns the number of hops between two switches; `None` if there is no path. For apps that
    /// need "paths".
    fn distance(&self, from_dpid: u64, to_dpid: u64) -> PyResult<Option<u16>> {
        self.check_needs("distance", Needs::PATHS, "paths")?;
        Ok(paths(&self.network).load().distance(Dpid(from_dpid), Dpid(to_dpid)))
    }

    /// Returns the ports that shortest paths between two switches begin with, each as the datapath
    /// id and the port: several where paths are equally long, none if there is no path. For apps
    /// that need "paths".
    fn next_hops(&self, from_dpid: u64, to_dpid: u64) -> PyResult<Vec<(u64, u32)>> {
        self.check_needs("next_hops", Needs::PATHS, "paths")?;
        let paths = paths(&self.network).load();
        Ok(paths.next_hops(Dpid(from_dpid), Dpid(to_dpid)).map(sender).collect())
    }

    /// Returns the `k` shortest paths between two switches that pass no switch twice, the shortest
    /// first, each as `path` returns it. Links whose sending port is in `avoid`, as a datapath id
    /// and a port, are left out. For apps that need "paths".
    #[pyo3(signature = (from_dpid, to_dpid, k, avoid=Vec::new()))]
    fn k_shortest(
        &self,
        from_dpid: u64,
        to_dpid: u64,
        k: usize,
        avoid: Vec<(u64, u32)>,
    ) -> PyResult<Vec<Vec<(u64, u32)>>> {
        self.check_needs("k_shortest", Needs::PATHS, "paths")?;
        if !(1..=MAX_PATHS).contains(&k) {
            return Err(wrong_value(format_args!("k is 1 to {MAX_PATHS}, not {k}")));
        }
        let avoid: BTreeSet<_> = avoid.into_iter().collect();
        let usable = |hop: Hop| !avoid.contains(&sender(hop));
        let found =
            paths(&self.network).load().k_shortest(Dpid(from_dpid), Dpid(to_dpid), k, usable);
        Ok(found.into_iter().map(|path| path.hops.into_iter().map(sender).collect()).collect())
    }

    /// Returns the ports of a switch that hosts can be at: up, and no end of a link. Empty while
    /// the network is not known yet. For apps that need "topology".
    fn edge_ports(&self, dpid: u64) -> PyResult<Vec<u32>> {
        self.check_needs("edge_ports", Needs::all(), "topology")?;
        let topology = self.network.topology().load();
        let ports = topology.edge_of(Dpid(dpid)).map(|port| port.0);
        Ok(if topology.settled { ports.collect() } else { Vec::new() })
    }

    /// Returns the ports of a switch that a flooded packet goes out of, except its `in_port`, so
    /// that it reaches each host once. For apps that need "paths".
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

    /// Sends a request of any kind as bytes, and waits for the reply: a whole message of the
    /// switch's OpenFlow version, such as that of an experimenter. Its transaction id is replaced.
    /// Raises `Error` if the switch refuses or does not answer it, and `ValueError` for a message
    /// that is no request.
    #[pyo3(name = "request")]
    fn request_encoded<'py>(
        &self,
        py: Python<'py>,
        dpid: u64,
        message: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let reply = encoded::request(&self.network, Dpid(dpid), message).map_err(not_sent)?;
        self.shared.awaitable(py, (&self.network, "request"), reply, |py, reply| match reply {
            Ok(reply) => PyReply(reply).into_py_any(py),
            Err(error) => Err(Error::new_err(error.to_string())),
        })
    }

    /// Sends a message as bytes that no switch answers, and waits until the switch has processed
    /// it: a whole message of the switch's OpenFlow version. Its transaction id is replaced. Raises
    /// `Error` if the switch refuses it, and `ValueError` for a message that the controller sends
    /// itself, or that installs flows.
    fn send<'py>(&self, py: Python<'py>, dpid: u64, message: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let sent = encoded::send(&self.network, Dpid(dpid), message).map_err(not_sent)?;
        self.shared.awaitable(py, (&self.network, "send"), sent, |py, outcomes| {
            confirmed(&outcomes).map(|()| py.None())
        })
    }

    /// Publishes an event of the app's own. Operators see it in the log and by `bellrock events`.
    /// With `alarming=True` it is an alarm. With `about`, such as a port, the alarm lasts: it is
    /// open until the app publishes an event with `ends`, the name of the alarm, and the same
    /// `about`.
    #[pyo3(signature = (name, text, *, alarming=false, about=None, ends=None))]
    fn publish(
        &self,
        name: &str,
        text: &str,
        alarming: bool,
        about: Option<&str>,
        ends: Option<&str>,
    ) -> PyResult<()> {
        let event = AppEvent::new(name, text);
        let event = match (alarming, about, ends) {
            (false, None, None) => event,
            (true, None, None) => event.alarming(),
            (true, Some(about), None) => event.alarming_until_ended(about),
            (false, Some(about), Some(ends)) => event.ending(ends, about),
            _ => {
                let why = "`about` needs alarming=True, or `ends` with the name of an alarm; `ends` needs `about`, and is no \
                           alarm itself";
                return Err(PyValueError::new_err(why));
            }
        };
        self.network.publish(event);
        Ok(())
    }

    /// Subscribes to later events of the network, to all or to those with these names: `async for
    /// event in network.events("link_up", "link_down")`. `Event.NAMES` has all names.
    #[pyo3(signature = (*names))]
    fn events(&self, names: &Bound<'_, PyTuple>) -> PyResult<EventStream> {
        EventStream::new(&self.network, &self.shared, names)
    }

    /// Waits for changes of the switches, links, hosts and paths, as far as the app needs them:
    /// `await network.changed()` for the next one, `async for parts in network.changed()` for each.
    /// The result has what changed, of "topology", "hosts" and "paths". Changes in quick succession
    /// come as one.
    fn changed(&self) -> PyResult<Changes> {
        self.check_needs("changed", Needs::all(), "topology")?;
        Ok(Changes::new(&self.network, self.needs, &self.shared))
    }

    /// Makes a graph of `networkx`, which must be installed: switches by their datapath ids, hosts
    /// by their addresses if the app needs "hosts", and an edge for each direction of a link, with
    /// `port`, `to_port` and `rate_kbps`. Of parallel links, a `DiGraph` has the one with the
    /// lowest port; with `multi=True`, a `MultiDiGraph` has all.
    #[pyo3(signature = (*, multi=false))]
    fn to_networkx<'py>(slf: Bound<'py, Self>, multi: bool) -> PyResult<Bound<'py, PyAny>> {
        slf.get().check_needs("to_networkx", Needs::all(), "topology")?;
        let has_hosts = slf.get().needs.intersects(Needs::HOSTS);
        let graph = slf.py().import("bellrock._graph")?;
        graph.call_method1("to_networkx", (slf, multi, has_hosts))
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

/// Maximum number of paths that are searched in one call.
const MAX_PATHS: usize = 64;

/// The datapath id and the port that a hop sends by.
fn sender(hop: Hop) -> (u64, u32) {
    (hop.from.dpid.0, hop.from.port.0)
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
