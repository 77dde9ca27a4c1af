//! What a handler decides about a packet.

use pyo3::prelude::*;

/// Whether the next app of the chain sees a packet. A handler that returns nothing has handled it.
#[pyclass(name = "Verdict", module = "bellrock", frozen, eq)]
#[derive(Clone, Copy, PartialEq, Eq)]
#[expect(clippy::upper_case_acronyms, reason = "members of enumerations in Python")]
pub(crate) enum PyVerdict {
    /// The packet is handled. No later app sees it.
    CONSUME,
    /// The next app in the chain sees the packet too.
    PASS,
}
