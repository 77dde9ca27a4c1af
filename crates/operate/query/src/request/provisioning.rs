//! The circuits of the app `provisioning`.

use serde::{Deserialize, Serialize};

use crate::gauges::word;
use crate::{Cell, Column, Count, Gauge, List, Page};

/// Asks for the configured circuits and their states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListCircuits {
    /// Which of them.
    pub page: Page,
}

/// A circuit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CircuitRow {
    /// Its name.
    pub name: String,
    /// Its ends: `SWITCH:PORT`, with the VLAN if there is one, or a host. Named switches and hosts
    /// have their names.
    pub endpoints: Vec<String>,
    /// Whether it carries packets.
    pub state: CircuitState,
    /// Why it is down; in a cluster, also how the settings of this node differ from those of the
    /// node that leads, which count.
    pub why: Option<String>,
    /// Number of links without a detour, if the circuit is up.
    pub bare_links: Option<usize>,
    /// Output ports of the switches on its path, or on its tree: `SWITCH:PORT`, with the name of
    /// the switch if it has one.
    #[serde(default)]
    pub path: Vec<String>,
}

impl CircuitRow {
    /// How circuits are listed.
    pub const LIST: List = List {
        command: "circuits",
        about: "List the configured circuits and their states",
        none: "no circuit is configured",
        columns: &[
            Column::new("CIRCUIT", "name", Cell::Plain),
            Column::new("STATE", "state", Cell::Plain),
            Column::new("ENDPOINTS", "endpoints", Cell::Words),
            Column::new("PATH", "path", Cell::Words),
            Column::new("DETOURS", "bare_links", Cell::Counted(DETOURS)),
            Column::new("REMARK", "why", Cell::Plain).or(""),
        ],
        optional: &["PATH"],
    };

    /// How circuits are counted.
    pub const GAUGES: &[Gauge<Self>] = &[Gauge {
        name: "bellrock_circuits",
        about: "Number of circuits in each state.",
        count: Count::By("state", &["down", "installing", "up"], |row| word(&row.state)),
    }];
}

/// Numbers of links without a detour, in words.
const DETOURS: [&str; 3] =
    ["any one link may fail", "1 link without a detour", "links without a detour"];

/// Whether a circuit carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CircuitState {
    /// It does.
    Up,
    /// It is being installed.
    Installing,
    /// It does not.
    Down,
    /// A newer controller has sent it.
    #[serde(other)]
    Unknown,
}
