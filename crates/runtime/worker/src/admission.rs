//! Decides for which datapath ids a connection may speak.

use bellrock_api::{Dpid, SwitchIdentity};

/// The rules by which connections may speak for datapath ids. Workers ask before a datapath id is
/// claimed: a connection without the right to it neither learns whether the switch is connected,
/// nor disturbs it.
///
/// It is called on a worker's thread, so it must not block.
pub trait Admission: Send + Sync + 'static {
    /// Checks a connection, with what it has proved by TLS. `None`: it is plain.
    ///
    /// # Errors
    /// Why it may not speak for this datapath id, and what the operator can do.
    fn check(&self, dpid: Dpid, identity: Option<&SwitchIdentity>) -> Result<(), AdmissionError>;

    /// The same for a connection that owns the datapath id now, and notes for whom it speaks.
    ///
    /// # Errors
    /// As [`check`](Self::check): another connection may have come between.
    fn admit(&self, dpid: Dpid, identity: Option<&SwitchIdentity>) -> Result<(), AdmissionError>;
}

/// Why a connection may not speak for a datapath id, as a sentence for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AdmissionError(pub Box<str>);
