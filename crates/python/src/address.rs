//! Ethernet addresses.

use bellrock::MacAddr;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::argument::{hash_of, wrong_type, wrong_value};

/// An Ethernet address. Compares, sorts and hashes by value.
#[pyclass(name = "MacAddr", module = "bellrock", frozen, eq, ord)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PyMacAddr(pub(crate) MacAddr);

/// Number of bits of an address.
const BITS: u32 = 48;

#[pymethods]
impl PyMacAddr {
    /// Makes an address from text such as `"00:1b:21:3c:9d:f8"`, from its 6 bytes, or from a
    /// number.
    #[new]
    fn new(address: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(address) = address.cast::<PyMacAddr>() {
            return Ok(*address.get());
        }
        if let Ok(text) = address.cast::<PyString>() {
            return text.to_str()?.parse().map(PyMacAddr).map_err(wrong_value);
        }
        if let Ok(bytes) = address.cast::<PyBytes>() {
            let bytes = bytes.as_bytes().try_into();
            return match bytes {
                Ok(bytes) => Ok(PyMacAddr(MacAddr(bytes))),
                Err(_) => Err(wrong_value("an Ethernet address has 6 bytes")),
            };
        }
        match address.extract::<u64>() {
            Ok(number) if number >> BITS == 0 => Ok(PyMacAddr(MacAddr::from_u64(number))),
            Ok(_) => Err(wrong_value("an Ethernet address has 48 bits")),
            Err(_) => Err(wrong_type(address, "text, 6 bytes or a number")),
        }
    }

    /// ff:ff:ff:ff:ff:ff.
    #[classattr]
    const BROADCAST: PyMacAddr = PyMacAddr(MacAddr::BROADCAST);

    /// Whether it is a multicast or the broadcast address.
    #[getter]
    fn is_group(&self) -> bool {
        self.0.is_group()
    }

    /// Whether a station can own it: it is neither a group address nor zero.
    #[getter]
    fn is_station(&self) -> bool {
        self.0.is_station()
    }

    /// Whether bridges do not forward it: 01:80:c2:00:00:00 to :0f, such as LLDP and spanning tree.
    #[getter]
    fn is_link_local(&self) -> bool {
        self.0.is_link_local()
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.0)
    }

    fn __int__(&self) -> u64 {
        self.0.to_u64()
    }

    fn __bytes__(&self) -> [u8; 6] {
        self.0.0
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("MacAddr('{}')", self.0)
    }
}
