//! Which certificate speaks for which datapath id.

use bellrock_query::PinRow;

use super::{printable, table};

/// Formats datapath ids with their certificates as text.
pub(crate) fn identities(rows: &[PinRow]) -> String {
    if rows.is_empty() {
        return "no datapath id has a certificate\n".to_owned();
    }
    let row = |row: &PinRow| {
        let switch = row.switch_name.clone().unwrap_or_else(|| row.dpid.to_string());
        vec![printable(&switch), printable(&row.name), printable(&row.key)]
    };
    table(&["SWITCH", "CERTIFICATE", "KEY"], rows.iter().map(row))
}
