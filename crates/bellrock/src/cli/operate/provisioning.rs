//! `bellrock circuits`: the circuits of the app `provisioning`, and their states.

use bellrock_apps::provisioning::{CircuitState, CircuitStatus, Circuits};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::show::{printable, table};
use super::kept::How;

/// A circuit, as the JSON that `--json` prints.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    name: String,
    endpoints: Vec<String>,
    /// `up`, `installing` or `down`.
    state: String,
    /// Why it is down.
    why: Option<String>,
    /// Number of links without a detour, if the circuit is up.
    bare_links: Option<usize>,
}

/// Lists all circuits.
///
/// # Errors
/// Only errors of JSON.
pub(crate) fn list(circuits: &Circuits, _: &[&str]) -> Result<Value, String> {
    let rows: Vec<Row> = circuits.list().into_iter().map(row).collect();
    serde_json::to_value(rows).map_err(|error| error.to_string())
}

/// The state of each circuit, for the log.
pub(crate) fn kept(circuits: &Circuits) -> Vec<(String, How)> {
    let how = |status: CircuitStatus| {
        let how = match status.state {
            CircuitState::Up { .. } => How::Up,
            CircuitState::Installing => How::UnderWay,
            CircuitState::Down(why) => How::Down(why),
        };
        (format!("circuit {}", status.circuit.name), how)
    };
    circuits.list().into_iter().map(how).collect()
}

fn row(status: CircuitStatus) -> Row {
    let (state, why, bare_links) = match status.state {
        CircuitState::Up { bare_links } => ("up", None, Some(bare_links)),
        CircuitState::Installing => ("installing", None, None),
        CircuitState::Down(why) => ("down", Some(why), None),
    };
    Row {
        name: status.circuit.name,
        endpoints: status.circuit.endpoints.iter().map(ToString::to_string).collect(),
        state: state.to_owned(),
        why,
        bare_links,
    }
}

/// Formats circuits as text.
pub(crate) fn show(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no circuit is configured\n".to_owned();
    }
    let row = |row: &Row| {
        let note = match (&row.why, row.bare_links) {
            (Some(why), _) => why.clone(),
            (None, Some(0)) => "any one link may fail".to_owned(),
            (None, Some(1)) => "1 link without a detour".to_owned(),
            (None, Some(bare)) => format!("{bare} links without a detour"),
            (None, None) => String::new(),
        };
        let endpoints = row.endpoints.join(" ");
        vec![printable(&row.name), row.state.clone(), printable(&endpoints), printable(&note)]
    };
    table(&["CIRCUIT", "STATE", "ENDPOINTS", ""], rows.iter().map(row))
}
