//! The circuits of the app `provisioning`.

use serde::{Deserialize, Serialize};

use crate::Page;

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
