//! A reservation and the request for it, as operators see them, and the settings.

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_api::{HostId, SwitchPort};

use super::names::{HostName, Kbps};

/// Maximum number of reservations at a time. Their numbers, 1 to this, also name their meters.
pub const MAX_RESERVATIONS: u32 = 10_000;

/// Settings of the app.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BandwidthSettings {
    /// Capacity of every line; `None`: the speed of its port.
    pub rate: Option<Kbps>,
    /// Capacity of single lines, in both directions, by the port at either end; overrides `rate`.
    /// If both ends are listed, the smaller value counts.
    pub lines: BTreeMap<SwitchPort, Kbps>,
    /// Queues that are set up in all switches, by name.
    pub queues: BTreeMap<String, u32>,
}

/// A request for a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationRequest {
    /// The host that sends.
    pub from: HostName,
    /// The host that receives.
    pub to: HostName,
    /// Requested rate.
    pub rate: Kbps,
    /// Queue for its packets; `None`: a meter limits them to their rate.
    pub queue: Option<String>,
    /// How long to wait until other reservations release the missing bandwidth.
    pub wait: Duration,
}

/// A reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its number, used to release it.
    pub id: u32,
    /// The host that sends.
    pub from: HostId,
    /// The host that receives.
    pub to: HostId,
    /// Reserved rate.
    pub rate: Kbps,
    /// The name of its queue.
    pub queue: Option<String>,
    /// Its state.
    pub state: ReservationState,
}

/// State of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationState {
    /// It is being installed.
    Pending,
    /// Its flows are confirmed; packets leave switches by these ports.
    Installed(Vec<SwitchPort>),
    /// It is unknown whether packets get through, for this reason: a switch of its path is not
    /// connected, or has just reconnected, and there is no other path. It is kept for
    /// [`AWAY_FOR`](super::AWAY_FOR).
    Unknown(String),
    /// Its path broke, and there is no other yet. It holds no bandwidth. It is retried when the
    /// network changes, when another reservation is released or lost, and after
    /// [`RETRY_LOST`](super::RETRY_LOST).
    Lost(String),
}
