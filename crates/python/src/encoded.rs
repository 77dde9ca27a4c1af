//! Messages of OpenFlow as bytes, for what has no method.

use bellrock::encoded::EncodedError;
use bellrock::flow::{ChangeOutcome, Reply};
use bellrock::openflow::FromSwitch;
use pyo3::prelude::*;

use crate::argument::wrong_value;
use crate::error::Error;

/// The reply of a switch to a request that was given as bytes.
#[pyclass(name = "Reply", module = "bellrock", frozen)]
pub(crate) struct PyReply(pub(crate) Reply);

#[pymethods]
impl PyReply {
    /// OpenFlow version of the switch: "1.0" or "1.3".
    #[getter]
    fn version(&self) -> String {
        self.0.version().to_string()
    }

    /// The message, from its header on. Of a multipart reply: the bodies of all its parts, joined.
    #[getter]
    fn data(&self) -> &[u8] {
        self.0.bytes()
    }

    /// What it says, as it prints.
    #[getter]
    fn text(&self) -> String {
        match (self.0.body(), self.0.message()) {
            (Ok(body), _) => body.to_string(),
            // It has no content.
            (_, Ok(FromSwitch::BarrierReply)) => "OFPT_BARRIER_REPLY".to_owned(),
            (_, Ok(message)) => message.to_string(),
            (_, Err(error)) => error.to_string(),
        }
    }

    fn __bytes__(&self) -> &[u8] {
        self.0.bytes()
    }

    fn __repr__(&self) -> String {
        format!("<Reply {}>", self.text())
    }
}

/// The exception for a message that is not sent.
pub(crate) fn not_sent(error: EncodedError) -> PyErr {
    match error {
        EncodedError::NoSwitch(error) => Error::new_err(error.to_string()),
        error => wrong_value(format!("message: {error}")),
    }
}

/// The outcome of a change, as an exception unless the switch has taken it.
pub(crate) fn confirmed(outcomes: &[ChangeOutcome]) -> PyResult<()> {
    match outcomes.first() {
        None | Some(ChangeOutcome::Installed) => Ok(()),
        Some(ChangeOutcome::Refused(why)) => {
            Err(Error::new_err(format!("the switch refused the message: {why}")))
        }
        Some(ChangeOutcome::NotSent(why)) => Err(Error::new_err(why.to_string())),
        Some(ChangeOutcome::Unknown(why)) => Err(Error::new_err(why.to_string())),
        Some(ChangeOutcome::Withheld) => Err(Error::new_err("the message was not sent")),
    }
}
