//! The circuits of the app `provisioning`.

use bellrock_query::{CircuitRow, CircuitState};

use super::{printable, table};

/// Formats circuits as text.
pub(crate) fn circuits(rows: &[CircuitRow]) -> String {
    if rows.is_empty() {
        return "no circuit is configured\n".to_owned();
    }
    let row = |row: &CircuitRow| {
        let note = match (&row.why, row.bare_links) {
            (Some(why), _) => why.clone(),
            (None, Some(0)) => "any one link may fail".to_owned(),
            (None, Some(1)) => "1 link without a detour".to_owned(),
            (None, Some(bare)) => format!("{bare} links without a detour"),
            (None, None) => String::new(),
        };
        let endpoints = row.endpoints.join(" ");
        let state = match row.state {
            CircuitState::Up => "up",
            CircuitState::Installing => "installing",
            CircuitState::Down => "down",
            _ => "unknown",
        };
        let path = row.path.join(" ");
        vec![
            printable(&row.name),
            state.to_owned(),
            printable(&endpoints),
            printable(&path),
            printable(&note),
        ]
    };
    table(&["CIRCUIT", "STATE", "ENDPOINTS", "PATH", "REMARK"], rows.iter().map(row))
}
