//! Events of the network, as programs follow them.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bellrock::event::{EventRecord, Subscription, SubscriptionItem};
use bellrock::{Event, Network, SwitchPort};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::address::PyMacAddr;
use crate::argument::wrong_type;
use crate::info::PyLink;
use crate::runner::Shared;

/// The events of the network, for `async for`.
#[pyclass(module = "bellrock", frozen)]
pub(crate) struct EventStream {
    network: Network,
    shared: Arc<Shared>,
    /// `None`: somebody waits for the next event.
    subscription: Arc<Mutex<Option<Subscription>>>,
    /// Names of the events that are wanted. Empty for all.
    names: Arc<[&'static str]>,
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
        let (back, names) = (Arc::clone(&self.subscription), Arc::clone(&self.names));
        let next = async move {
            let item = loop {
                match subscription.next().await {
                    SubscriptionItem::Event(record)
                        if !names.is_empty() && !names.contains(&record.event.name()) => {}
                    item => break item,
                }
            };
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
    /// Subscribes to events with these names, or to all.
    ///
    /// # Errors
    /// `ValueError`: no event has a name.
    pub(crate) fn new(
        network: &Network,
        shared: &Arc<Shared>,
        names: &Bound<'_, PyTuple>,
    ) -> PyResult<Self> {
        let names = names.iter_borrowed().map(|name| {
            let wanted: &str = name.extract().map_err(|_| wrong_type(&name, "a name of events"))?;
            Event::NAMES
                .iter()
                .copied()
                .find(|name| *name == wanted)
                .ok_or_else(|| no_event(wanted))
        });
        Ok(EventStream {
            network: network.clone(),
            shared: Arc::clone(shared),
            subscription: Arc::new(Mutex::new(Some(network.events().subscribe()))),
            names: names.collect::<PyResult<Vec<_>>>()?.into(),
        })
    }

    fn lock_take(&self) -> Option<Subscription> {
        self.subscription.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The error for a name that no event has. It names those that begin alike.
fn no_event(wanted: &str) -> PyErr {
    let stem = wanted.split('_').next().unwrap_or_default();
    let near: Vec<_> = Event::NAMES.iter().copied().filter(|name| name.starts_with(stem)).collect();
    let hint = match near.as_slice() {
        [] => "Event.NAMES has all names".to_owned(),
        near => format!("there are {}", near.join(", ")),
    };
    PyValueError::new_err(format!("no event is called {wanted:?}; {hint}"))
}

/// A host, as events name it.
#[pyclass(name = "HostId", module = "bellrock", frozen, get_all, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PyHostId {
    /// Its Ethernet address.
    mac: PyMacAddr,
    /// VLAN of its packets, if they have a tag with one.
    vlan_id: Option<u16>,
}

#[pymethods]
impl PyHostId {
    fn __repr__(&self) -> String {
        match self.vlan_id {
            Some(vlan) => format!("<HostId {} in VLAN {vlan}>", self.mac.0),
            None => format!("<HostId {}>", self.mac.0),
        }
    }
}

/// An event of the network. What it is about is in its attributes; those that do not fit it are
/// `None`.
#[pyclass(name = "Event", module = "bellrock", frozen)]
pub(crate) struct PyEvent(EventRecord);

/// A port of a switch: the datapath id and the number.
fn place(at: SwitchPort) -> (u64, u32) {
    (at.dpid.0, at.port.0)
}

#[pymethods]
impl PyEvent {
    /// The names of all events.
    #[classattr]
    #[pyo3(name = "NAMES")]
    fn names() -> Vec<&'static str> {
        Event::NAMES.to_vec()
    }

    /// Datapath id of the switch.
    #[getter]
    fn dpid(&self) -> Option<u64> {
        self.0.event.subject().dpid.map(|dpid| dpid.0)
    }

    /// Number of the port at that switch: where it happened; for a link, the sending port.
    #[getter]
    fn port(&self) -> Option<u32> {
        self.0.event.subject().at.map(|at| at.port.0)
    }

    /// A second port, as datapath id and number: where a host was before it moved, or where its
    /// address was claimed; the sender of an announcement; the receiving port of a link.
    #[getter]
    fn other_port(&self) -> Option<(u64, u32)> {
        self.0.event.subject().other.map(place)
    }

    /// The host.
    #[getter]
    fn host(&self) -> Option<PyHostId> {
        let host = self.0.event.subject().host?;
        Some(PyHostId { mac: PyMacAddr(host.mac), vlan_id: host.vlan })
    }

    /// The IP address: of a host, or of a peer that could not connect.
    #[getter]
    fn ip(&self) -> Option<IpAddr> {
        self.0.event.subject().ip
    }

    /// The link, in one direction.
    #[getter]
    fn link(&self) -> Option<PyLink> {
        self.0.event.subject().link.as_ref().map(PyLink::from)
    }

    /// Name of the app.
    #[getter]
    fn app(&self) -> Option<&str> {
        self.0.event.subject().app
    }

    /// Name of the node of the cluster.
    #[getter]
    fn node(&self) -> Option<&str> {
        self.0.event.subject().node
    }

    /// For an event of an app's own, "app_event": the name and the text that the app gave.
    #[getter]
    fn published(&self) -> Option<(&str, &str)> {
        match &self.0.event {
            Event::App { event, .. } => Some((event.name(), event.text())),
            _ => None,
        }
    }

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
