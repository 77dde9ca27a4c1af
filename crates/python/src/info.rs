//! Data about switches, ports, links and hosts.

use std::net::IpAddr;
use std::sync::Arc;

use bellrock::SwitchInfo;
use bellrock::network::{Host, Link, PortDesc};
use pyo3::prelude::*;

use crate::action::PyAction;
use crate::address::PyMacAddr;
use crate::argument::wrong_type;
use crate::entry::{PyGroup, PyMeter};
use crate::matching::PyMatch;

/// A switch that is up, as it was at one moment.
#[pyclass(name = "SwitchInfo", module = "bellrock", frozen)]
pub(crate) struct PySwitchInfo(pub(crate) Arc<SwitchInfo>);

#[pymethods]
impl PySwitchInfo {
    /// Its datapath id.
    #[getter]
    fn dpid(&self) -> u64 {
        self.0.dpid.0
    }

    /// OpenFlow version of the connection: "1.0" or "1.3".
    #[getter]
    fn version(&self) -> String {
        self.0.version.to_string()
    }

    /// Remote address of the connection, with its port.
    #[getter]
    fn address(&self) -> String {
        self.0.peer.to_string()
    }

    /// Number of flow tables.
    #[getter]
    fn n_tables(&self) -> u8 {
        self.0.n_tables
    }

    /// Maximum number of packets that it can buffer.
    #[getter]
    fn n_buffers(&self) -> u32 {
        self.0.n_buffers
    }

    /// Whether flows can send packets to groups: its version has them. A switch may still refuse
    /// some.
    #[getter]
    fn has_groups(&self) -> bool {
        self.0.version.has_groups()
    }

    /// Whether flows can send packets through meters: its version has them. A switch may still have
    /// room for none.
    #[getter]
    fn has_meters(&self) -> bool {
        self.0.version.has_meters()
    }

    /// Whether flows can name a table, and send packets to a later one: its version lets them.
    #[getter]
    fn has_tables(&self) -> bool {
        self.0.version.names_tables()
    }

    /// The family of its version: "fixed" (1.0), whose matches have twelve fields, or "oxm" (1.2
    /// and later), whose matches are lists of fields.
    #[getter]
    fn family(&self) -> &'static str {
        if self.0.version.has_oxm() { "oxm" } else { "fixed" }
    }

    /// Capabilities that it reports, with the specification's names in lower case, such as
    /// "flow_stats".
    #[getter]
    fn capabilities(&self) -> Vec<String> {
        self.0.capabilities.iter_names().map(|(name, _)| name.to_lowercase()).collect()
    }

    /// Returns whether its flows can have this action, match, group or meter: its version expresses
    /// it, and, with 1.0, it reports the action. A switch of 1.3 may still refuse one.
    #[pyo3(signature = (what, /))]
    fn supports(&self, what: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(action) = what.cast_exact::<PyAction>() {
            return Ok(action.get().is_supported(&self.0));
        }
        if let Ok(matching) = what.cast_exact::<PyMatch>() {
            return Ok(self.0.can_match(&matching.get().0));
        }
        if what.cast_exact::<PyGroup>().is_ok() {
            return Ok(self.has_groups());
        }
        match what.cast_exact::<PyMeter>() {
            Ok(_) => Ok(self.has_meters()),
            Err(_) => Err(wrong_type(what, "an Action, a Match, a Group or a Meter")),
        }
    }

    /// Its maker, in its own words.
    #[getter]
    fn manufacturer(&self) -> &str {
        &self.0.description.manufacturer
    }

    /// Its hardware, in its own words.
    #[getter]
    fn hardware(&self) -> &str {
        &self.0.description.hardware
    }

    /// Its software, in its own words.
    #[getter]
    fn software(&self) -> &str {
        &self.0.description.software
    }

    /// Its ports.
    #[getter]
    fn ports(&self) -> Vec<PyPortInfo> {
        self.0.ports.iter().copied().map(PyPortInfo).collect()
    }

    fn __repr__(&self) -> String {
        format!("<SwitchInfo {}, OpenFlow {}>", self.0.dpid, self.0.version)
    }
}

/// A port of a switch.
#[pyclass(name = "PortInfo", module = "bellrock", frozen)]
pub(crate) struct PyPortInfo(pub(crate) PortDesc);

#[pymethods]
impl PyPortInfo {
    /// Its number.
    #[getter]
    fn number(&self) -> u32 {
        self.0.port.0
    }

    /// Its name.
    #[getter]
    fn name(&self) -> String {
        self.0.name.to_string()
    }

    /// Its Ethernet address.
    #[getter]
    fn address(&self) -> PyMacAddr {
        PyMacAddr(self.0.address)
    }

    /// Whether it is neither taken down nor without a link.
    #[getter]
    fn is_up(&self) -> bool {
        self.0.is_up()
    }

    /// Its rate in kbit/s. `None` if it reports none.
    #[getter]
    fn rate_kbps(&self) -> Option<u64> {
        self.0.rate_kbps()
    }

    fn __repr__(&self) -> String {
        let state = if self.0.is_up() { "up" } else { "down" };
        format!("<PortInfo {} ({}), {state}>", self.0.port, self.0.name)
    }
}

/// One direction of a link between two switches.
#[pyclass(name = "Link", module = "bellrock", frozen, get_all)]
pub(crate) struct PyLink {
    /// Datapath id of the switch that sends.
    from_dpid: u64,
    /// Its port.
    from_port: u32,
    /// Datapath id of the switch that receives.
    to_dpid: u64,
    /// Its port.
    to_port: u32,
    /// Its rate in kbit/s. `None` if the sending port reports none.
    rate_kbps: Option<u64>,
}

impl From<&Link> for PyLink {
    fn from(link: &Link) -> Self {
        PyLink {
            from_dpid: link.from.dpid.0,
            from_port: link.from.port.0,
            to_dpid: link.to.dpid.0,
            to_port: link.to.port.0,
            rate_kbps: link.rate_kbps,
        }
    }
}

#[pymethods]
impl PyLink {
    fn __repr__(&self) -> String {
        let PyLink { from_dpid, from_port, to_dpid, to_port, .. } = self;
        format!("<Link {from_dpid:016x}:{from_port} -> {to_dpid:016x}:{to_port}>")
    }
}

/// A host.
#[pyclass(name = "Host", module = "bellrock", frozen, get_all)]
pub(crate) struct PyHost {
    /// Its Ethernet address.
    mac: PyMacAddr,
    /// VLAN of its packets, if they have a tag with one.
    vlan_id: Option<u16>,
    /// Datapath id of its switch.
    dpid: u64,
    /// Its port there.
    port: u32,
    /// Its IP addresses, in the order in which they were learnt.
    addresses: Vec<IpAddr>,
}

impl From<&Host> for PyHost {
    fn from(host: &Host) -> Self {
        PyHost {
            mac: PyMacAddr(host.id.mac),
            vlan_id: host.id.vlan,
            dpid: host.at.dpid.0,
            port: host.at.port.0,
            addresses: host.addresses.clone(),
        }
    }
}

#[pymethods]
impl PyHost {
    fn __repr__(&self) -> String {
        format!("<Host {} at {:016x}:{}>", self.mac.0, self.dpid, self.port)
    }
}
