//! What Python programs may give where a value is expected.

use std::fmt::Display;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use bellrock::{MacAddr, Port};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::address::PyMacAddr;

/// An argument of a method: its type reads whatever a Python program may give for it.
pub(crate) struct Arg<T>(pub(crate) T);

/// A type that arguments are read to.
pub(crate) trait Argument: Sized {
    /// Reads a value.
    ///
    /// # Errors
    /// `TypeError`, `ValueError` or `OverflowError`, with a text that says what would be right.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self>;
}

impl<'py, T: Argument> FromPyObject<'_, 'py> for Arg<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        T::read(&value).map(Arg)
    }
}

/// Makes the error for a value of a wrong type.
pub(crate) fn wrong_type(value: &Bound<'_, PyAny>, expected: impl Display) -> PyErr {
    let name = value.get_type().name().map_or_else(|_| String::from("?"), |name| name.to_string());
    PyTypeError::new_err(format!("expected {expected}, not {name}"))
}

/// Makes the error for a value that is not possible.
pub(crate) fn wrong_value(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Says in the text of an error what it is about.
pub(crate) fn about(py: Python<'_>, what: &str, error: PyErr) -> PyErr {
    let text = format!("{what}: {}", error.value(py));
    match error.is_instance_of::<PyTypeError>(py) {
        true => PyTypeError::new_err(text),
        false => PyValueError::new_err(text),
    }
}

/// Hashes a value for Python. The keys are secret: hosts choose addresses, and must not be able to
/// choose colliding ones.
pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one(value)
}

/// An instance of `MacAddr`, or text.
impl Argument for MacAddr {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(address) = value.cast_exact::<PyMacAddr>() {
            return Ok(address.get().0);
        }
        match value.cast::<PyString>() {
            Ok(text) => text.to_str()?.parse().map_err(wrong_value),
            Err(_) => Err(wrong_type(value, "a MacAddr or text such as \"00:1b:21:3c:9d:f8\"")),
        }
    }
}

/// Text, or an instance of `ipaddress`.
impl Argument for IpAddr {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            let text = text.to_str()?;
            let wrong = |_| wrong_value(format_args!("{text:?} is not an IP address"));
            return text.parse().map_err(wrong);
        }
        value.extract().map_err(|_| wrong_type(value, "an address of ipaddress, or text"))
    }
}

impl Argument for Ipv4Addr {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        match IpAddr::read(value)? {
            IpAddr::V4(address) => Ok(address),
            IpAddr::V6(address) => {
                Err(wrong_value(format_args!("expected an IPv4 address, not {address}")))
            }
        }
    }
}

impl Argument for Ipv6Addr {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        match IpAddr::read(value)? {
            IpAddr::V6(address) => Ok(address),
            IpAddr::V4(address) => {
                Err(wrong_value(format_args!("expected an IPv6 address, not {address}")))
            }
        }
    }
}

/// A number, as in 1.3: `Port` has those of reserved ports.
impl Argument for Port {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        u32::read(value).map(Port)
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Argument for $type {
            fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                value.extract().map_err(|error: PyErr| {
                    let max = <$type>::MAX;
                    match error.is_instance_of::<PyOverflowError>(value.py()) {
                        true => wrong_value(format_args!(
                            "expected a number from 0 to {max}, not {value}"
                        )),
                        false => wrong_type(value, format_args!("a number from 0 to {max}")),
                    }
                })
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64);
