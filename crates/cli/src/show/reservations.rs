//! The reservations of the app `bandwidth`.

use bellrock_apps::bandwidth::Kbps;
use bellrock_query::{ReservationRow, ReservationState};

use super::{printable, wide_table};

/// Formats reservations as text.
pub(crate) fn reservations(rows: &[ReservationRow]) -> String {
    if rows.is_empty() {
        return "nothing is reserved\n".to_owned();
    }
    let row = |row: &ReservationRow| {
        let state = match row.state {
            ReservationState::Pending => "pending",
            ReservationState::Installed => "installed",
            ReservationState::Unknown => "unknown",
            ReservationState::Lost => "lost",
            _ => "of a newer controller",
        };
        let state = match &row.why {
            Some(why) => format!("{state}: {why}"),
            None => state.to_owned(),
        };
        vec![
            row.id.to_string(),
            printable(&row.from),
            printable(&row.to),
            Kbps(row.rate_kbps).to_string(),
            printable(row.queue.as_deref().unwrap_or("meter")),
            printable(&row.path.join(" ")),
            printable(&state),
        ]
    };
    let head = ["ID", "FROM", "TO", "RATE", "BY", "PATH", "STATE"];
    wide_table(&head, &["PATH", "BY"], rows.iter().map(row))
}
