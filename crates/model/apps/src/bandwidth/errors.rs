//! Why requests and releases fail.

use bellrock_api::{Dpid, HostId, SwitchPort};
use bellrock_book::NotOrdered;
use bellrock_services::desired::NotCommitted;

use super::ledger::LinkDirection;
use super::names::{Kbps, NotOneHost};
use super::reservation::MAX_RESERVATIONS;

/// Reason why nothing was reserved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReserved {
    /// No controller runs with this app.
    #[error("no controller runs with this app")]
    NotRunning,
    /// A name does not match exactly one host.
    #[error(transparent)]
    Host(#[from] NotOneHost),
    /// Source and destination are the same host.
    #[error("{0} is both ends; name two hosts")]
    SameHost(HostId),
    /// The hosts are in different VLANs, and nothing translates between them.
    #[error("{from} and {to} are in different VLANs; bandwidth is reserved within one")]
    OtherVlan {
        /// The host that sends.
        from: HostId,
        /// The host that receives.
        to: HostId,
    },
    /// The hosts are at the same port, so their packets do not pass the switch.
    #[error("both hosts are at port {0}, so their packets do not pass the switch")]
    SamePort(SwitchPort),
    /// There is already a reservation between these hosts.
    #[error("reservation {id} from {from} to {to} exists already; release it first")]
    Reserved {
        /// The host that sends.
        from: HostId,
        /// The host that receives.
        to: HostId,
        /// The number of that reservation.
        id: u32,
    },
    /// There are too many reservations.
    #[error("there are {MAX_RESERVATIONS} reservations already; release one first")]
    TooMany,
    /// There is no queue with this name.
    #[error("there is no queue {name:?}; {}", known_queues(queues))]
    UnknownQueue {
        /// The name.
        name: String,
        /// The existing queues.
        queues: Vec<String>,
    },
    /// The switch of a host is not connected.
    #[error("a host is at switch {0}, which is not connected")]
    NotConnected(Dpid),
    /// The ingress switch speaks 1.0.
    #[error(
        "unsupported: switch {0} speaks OpenFlow 1.0, which has no meters; name a queue that is set up in the \
         switches"
    )]
    NoMeters(Dpid),
    /// The capacity of a line is unknown.
    #[error("{0} does not report its speed; set `rate`, or `lines` for this line")]
    NoRate(LinkDirection),
    /// The whole capacity of a line is less than the requested rate.
    #[error(
        "{line} carries {capacity}, less than {rate}, and there is no path without such a line"
    )]
    AboveRate {
        /// Requested rate.
        rate: Kbps,
        /// The line.
        line: LinkDirection,
        /// Its capacity.
        capacity: Kbps,
    },
    /// There is no path.
    #[error("no path leads from {from} to {to}")]
    NoPath {
        /// The host that sends.
        from: HostId,
        /// The host that receives.
        to: HostId,
    },
    /// Other reservations use the missing bandwidth.
    #[error("{line} has {free} left of {capacity}, less than {rate}, and no other path has enough")]
    Taken {
        /// Requested rate.
        rate: Kbps,
        /// The line of the shortest path with the minimum left.
        line: LinkDirection,
        /// Free rate on this line.
        free: Kbps,
        /// Its capacity.
        capacity: Kbps,
    },
    /// A host has disappeared or moved meanwhile.
    #[error("host {0} has disappeared or moved")]
    Gone(HostId),
    /// For too long it was unknown whether packets get through.
    #[error("{0}, for too long")]
    Doubtful(String),
    /// The flows could not be installed, and the bandwidth was released.
    #[error("{0}")]
    NotInstalled(#[from] NotCommitted),
    /// A switch of another controller of the cluster refuses its part.
    #[error("switch {0}: {1}")]
    RefusedBy(Dpid, String),
    /// The reservation was released meanwhile, or another controller of the cluster decides now.
    #[error("reservation {0} was released meanwhile, or another controller decides about it now")]
    Released(u32),
    /// It could not be stored.
    #[error("{0}")]
    NotStored(String),
}

impl From<NotOrdered<NotReserved>> for NotReserved {
    fn from(error: NotOrdered<NotReserved>) -> Self {
        match error {
            NotOrdered::Refused(why) => why,
            NotOrdered::Unknown(why) => NotReserved::NotStored(format!(
                "whether it is reserved is not known, as the answer of the store was lost: \
                 `bellrock reservations` shows it when the store answers ({why})"
            )),
            error => NotReserved::NotStored(error.to_string()),
        }
    }
}

fn known_queues(known: &[String]) -> String {
    match known {
        [] => "none is configured; give some in the file, such as `queues: {gold: 1}`".to_owned(),
        known => format!("there are: {}", known.join(", ")),
    }
}

/// Reason why a reservation was not released completely.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReleased {
    /// There is no reservation with this number.
    #[error("there is no reservation {0}; `bellrock reservations` lists all")]
    Unknown(u32),
    /// It is released, but some of its flows may remain.
    #[error("it is released, but some of its flows may remain: {0}")]
    FlowsLeft(NotCommitted),
    /// It could not be stored.
    #[error("{0}")]
    NotStored(String),
}
