//! Exceptions.

use bellrock::Error as CommandError;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    bellrock,
    Error,
    PyException,
    "A message that cannot be sent to a switch, a controller that cannot start, or a network that \
     refuses a change."
);

/// The exception for a command to a switch that failed.
pub(crate) fn command_error(error: CommandError) -> PyErr {
    Error::new_err(error.to_string())
}
