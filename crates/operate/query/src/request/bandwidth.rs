//! The reservations of the app `bandwidth`.

use serde::{Deserialize, Serialize};

use crate::gauges::word;
use crate::{Cell, Column, Count, Gauge, List, Page};

/// Longest time that a request waits for a release, in milliseconds. Clients wait only a little
/// longer.
pub const MAX_RESERVE_WAIT_MS: u64 = 5000;

/// Reserves bandwidth from one host to another.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// The host that sends: its Ethernet or IP address, its name, or `SWITCH:PORT`.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// The rate, in kbit/s.
    pub rate_kbps: u64,
    /// The queue to use, which is set up in all switches. `None`: a meter.
    #[serde(default)]
    pub queue: Option<String>,
    /// Time to wait until enough is released, up to 5,000.
    #[serde(default)]
    pub wait_ms: u64,
}

/// Releases a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Number of the reservation.
    pub id: u32,
}

/// Asks for the reservations, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListReservations {
    /// Which of them.
    pub page: Page,
}

/// A reservation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReservationRow {
    /// Its number.
    pub id: u32,
    /// The host that sends, as in the order. Named switches and hosts have their names.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// The rate, in kbit/s.
    pub rate_kbps: u64,
    /// The queue that carries it. `None`: a meter.
    pub queue: Option<String>,
    /// Whether it is in the switches.
    pub state: ReservationState,
    /// Why the state is unknown, or why the reservation is lost.
    pub why: Option<String>,
    /// The output ports of the switches on the path: `SWITCH:PORT`, with the name of the switch if
    /// it has one.
    pub path: Vec<String>,
}

impl ReservationRow {
    /// How reservations are listed.
    pub const LIST: List = List {
        command: "reservations",
        about: "List the reserved bandwidth",
        none: "nothing is reserved",
        columns: &[
            Column::new("ID", "id", Cell::Plain),
            Column::new("FROM", "from", Cell::Plain),
            Column::new("TO", "to", Cell::Plain),
            Column::new("RATE", "rate_kbps", Cell::Rate),
            Column::new("BY", "queue", Cell::Plain).or("meter"),
            Column::new("PATH", "path", Cell::Words),
            Column::new("STATE", "state", Cell::Plain),
            Column::new("REMARK", "why", Cell::Plain).or(""),
        ],
        optional: &["PATH", "BY"],
    };

    /// How reservations are counted.
    pub const GAUGES: &[Gauge<Self>] = &[Gauge {
        name: "bellrock_reservations",
        about: "Number of reservations in each state.",
        count: Count::By("state", &["installed", "lost", "pending"], |row| word(&row.state)),
    }];
}

/// Whether a reservation is in the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReservationState {
    /// It is being installed.
    Pending,
    /// All switches of its path have confirmed it.
    Installed,
    /// It has no path any more, or a switch refuses it.
    Lost,
    /// A switch of its path is away, or a newer controller has sent a state that this release does
    /// not know.
    #[serde(other)]
    Unknown,
}
