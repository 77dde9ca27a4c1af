//! Attributes of os-ken's objects, read as the types that they usually have.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyString};

/// Returns an attribute. `None`: there is none, or reading it fails.
pub(super) fn attribute<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    object.getattr(name).ok()
}

/// Returns a list, but not one of a subclass.
pub(super) fn list<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyList>> {
    attribute(object, name)?.cast_into_exact().ok()
}

/// Returns a number that is not negative and has at most so many bits.
pub(super) fn number(
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    bits: u32,
) -> Option<u64> {
    int(&attribute(object, name)?, bits)
}

/// Returns the number if it is not negative and has at most so many bits. `True`, and numbers of
/// subclasses such as those of enumerations, are not usual.
pub(super) fn int(value: &Bound<'_, PyAny>, bits: u32) -> Option<u64> {
    let number: u64 = value.cast_exact::<PyInt>().ok()?.extract().ok()?;
    (bits == u64::BITS || number >> bits == 0).then_some(number)
}

/// Returns whether it is `False`.
pub(super) fn is_false(value: &Bound<'_, PyAny>) -> bool {
    value.cast_exact::<PyBool>().is_ok_and(|it| !it.is_true())
}

/// Appends numbers, the most significant byte first.
pub(super) trait Put {
    fn put8(&mut self, value: u64);
    fn put16(&mut self, value: u64);
    fn put32(&mut self, value: u64);
    fn put64(&mut self, value: u64);
    fn zeros(&mut self, count: usize);
}

impl Put for Vec<u8> {
    fn put8(&mut self, value: u64) {
        self.push(value as u8);
    }

    fn put16(&mut self, value: u64) {
        self.extend_from_slice(&(value as u16).to_be_bytes());
    }

    fn put32(&mut self, value: u64) {
        self.extend_from_slice(&(value as u32).to_be_bytes());
    }

    fn put64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }
}
