//! Actions without a meaning here: those of experimenters, and those that a specification does not
//! name. They are kept as they are, so that programs can show, compare and send them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bellrock::Action;
use bellrock::openflow::Bytes;
use pyo3::prelude::*;

use crate::argument::wrong_value;

/// Maximum number of bytes that a program's actions of experimenters have together, each counted
/// once however often it is used: they stay as long as the process.
const MAX_PERMANENT_BYTES: usize = 16 << 20;

/// An action that a switch has reported.
#[derive(Clone)]
pub(crate) struct KeptAction {
    what: What,
    bytes: Arc<[u8]>,
}

/// What the bytes are.
#[derive(Clone, Copy)]
enum What {
    /// Those of an action, behind the id of this experimenter.
    Experimenter(u32),
    /// The value of a field with this OXM header.
    Field(u32),
    /// The body of an action with this number.
    Unknown(u16),
    /// The end of a list, which has no whole action.
    Unread,
    /// The text of an action that has no other form.
    Text,
}

impl KeptAction {
    pub(crate) fn of(action: &Action<'_>) -> Self {
        let (what, bytes) = match action {
            Action::Experimenter { experimenter, data } => {
                (What::Experimenter(*experimenter), Arc::from(data.0))
            }
            Action::SetUnknownField { header, value } => (What::Field(*header), Arc::from(value.0)),
            Action::Unknown { kind, body } => (What::Unknown(*kind), Arc::from(body.0)),
            other => (What::Text, other.to_string().into_bytes().into()),
        };
        KeptAction { what, bytes }
    }

    /// The end of a list that cannot be read.
    pub(crate) fn unread(bytes: &[u8]) -> Option<Self> {
        (!bytes.is_empty()).then(|| KeptAction { what: What::Unread, bytes: bytes.into() })
    }

    /// Whether it is a whole action, which can be sent.
    pub(crate) fn is_whole(&self) -> bool {
        !matches!(self.what, What::Unread | What::Text)
    }

    pub(crate) fn action(&self) -> Action<'_> {
        self.with(Bytes(&self.bytes))
    }

    /// The action, as flows take it.
    ///
    /// # Errors
    /// `ValueError`: it is no whole action, or there are too many others.
    pub(crate) fn to_permanent(&self) -> PyResult<Action<'static>> {
        if !self.is_whole() {
            let text = format_args!("{self} is no action that can be sent to a switch");
            return Err(wrong_value(text));
        }
        Ok(self.with(Bytes(permanent(&self.bytes)?)))
    }

    fn with<'a>(&self, bytes: Bytes<'a>) -> Action<'a> {
        match self.what {
            What::Experimenter(experimenter) => Action::Experimenter { experimenter, data: bytes },
            What::Field(header) => Action::SetUnknownField { header, value: bytes },
            What::Unknown(kind) => Action::Unknown { kind, body: bytes },
            What::Unread | What::Text => Action::Unknown { kind: u16::MAX, body: bytes },
        }
    }
}

impl fmt::Display for KeptAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Unread => write!(f, "unread({})", Bytes(&self.bytes)),
            What::Text => f.write_str(&String::from_utf8_lossy(&self.bytes)),
            _ => self.action().fmt(f),
        }
    }
}

/// Returns these bytes as long as the process lives: flows are copied freely.
///
/// # Errors
/// `ValueError`: there are too many others.
pub(crate) fn permanent(bytes: &[u8]) -> PyResult<&'static [u8]> {
    static KEPT: Mutex<(BTreeSet<&'static [u8]>, usize)> = Mutex::new((BTreeSet::new(), 0));
    let (known, length) = &mut *KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(bytes) {
        return Ok(known);
    }
    if *length + bytes.len() > MAX_PERMANENT_BYTES {
        return Err(wrong_value(format_args!(
            "the program has made {MAX_PERMANENT_BYTES} bytes of different actions of experimenters, the most that are kept; use \
             the same ones again"
        )));
    }
    let kept: &'static [u8] = Box::leak(bytes.into());
    known.insert(kept);
    *length += kept.len();
    Ok(kept)
}
