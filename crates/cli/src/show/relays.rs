//! Links that look like relays between hosts.

use bellrock_query::{RelayRow, RelayVerdict};

use super::{duration, named, table};

/// Formats such links as text.
pub(crate) fn relays(rows: &[RelayRow]) -> String {
    if rows.is_empty() {
        return "no link looks like a relay, and none was judged\n".to_owned();
    }
    table(&["PORT", "PORT", "STATE", "VERDICT", "SIGN OF A RELAY", "AGO"], rows.iter().map(cells))
}

fn cells(row: &RelayRow) -> Vec<String> {
    let verdict = match row.verdict {
        RelayVerdict::Link => "link",
        RelayVerdict::Relay => "relay",
        RelayVerdict::None => "-",
        _ => "?",
    };
    vec![
        format!("{}:{}", named(row.from_dpid, row.from_name.as_deref()), row.from_port),
        format!("{}:{}", named(row.to_dpid, row.to_name.as_deref()), row.to_port),
        if row.up { "up" } else { "no link" }.to_owned(),
        verdict.to_owned(),
        row.evidence.clone().unwrap_or_else(|| "-".to_owned()),
        row.evidence_seconds.map_or_else(|| "-".to_owned(), duration),
    ]
}
