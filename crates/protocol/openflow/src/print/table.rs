//! Tables: their counters and features.

use std::fmt::{self, Display, Formatter};

use super::{Hex, SUBITEM, commas, lines};
use crate::{ActionId, InstructionId, OxmId, TableFeatures, TableProperty, TableStats};

/// Actions of 1.3, by number; `""` for unused numbers.
pub(super) const ACTIONS: &[&str] = &[
    "output",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "copy_ttl_out",
    "copy_ttl_in",
    "",
    "",
    "set_mpls_ttl",
    "dec_mpls_ttl",
    "push_vlan",
    "pop_vlan",
    "push_mpls",
    "pop_mpls",
    "set_queue",
    "group",
    "set_nw_ttl",
    "dec_nw_ttl",
    "set_field",
    "push_pbb",
    "pop_pbb",
];

/// Instructions of 1.3, by number.
const INSTRUCTIONS: &[&str] = &[
    "",
    "goto_table",
    "write_metadata",
    "write_actions",
    "apply_actions",
    "clear_actions",
    "meter",
];

impl Display for TableStats {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "table {}", self.table)?;
        if let Some(details) = &self.v1_0 {
            write!(f, " ({}): wildcards={:#x}", details.name, details.wildcards)?;
            write!(f, ", max_entries={}", details.max_entries)?;
            f.write_str(", ")?;
        } else {
            f.write_str(": ")?;
        }
        write!(f, "active={}, lookup={}", self.active_count, self.lookup_count)?;
        write!(f, ", matched={}", self.matched_count)
    }
}

impl Display for TableFeatures<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "table {} ({})", self.table, self.name)?;
        write!(f, ": metadata_match={:#x}", self.metadata_match)?;
        write!(f, ", metadata_write={:#x}", self.metadata_write)?;
        write!(f, ", config={:#x}, max_entries={}", self.config, self.max_entries)?;
        lines(SUBITEM, self.properties.iter(), f)
    }
}

impl Display for TableProperty<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let named = |f: &mut Formatter<'_>, name: &str, miss: bool| {
            write!(f, "{name}{}=", if miss { "_miss" } else { "" })
        };
        match *self {
            TableProperty::Instructions { miss, ids } => {
                named(f, "instructions", miss)?;
                commas(ids.iter(), f)
            }
            TableProperty::NextTables { miss, tables } => {
                named(f, "next_tables", miss)?;
                runs(&tables, f)
            }
            TableProperty::WriteActions { miss, ids } => {
                named(f, "write_actions", miss)?;
                commas(ids.iter(), f)
            }
            TableProperty::ApplyActions { miss, ids } => {
                named(f, "apply_actions", miss)?;
                commas(ids.iter(), f)
            }
            TableProperty::Match { oxm } => {
                f.write_str("match=")?;
                commas(oxm.iter(), f)
            }
            TableProperty::Wildcards { oxm } => {
                f.write_str("wildcards=")?;
                commas(oxm.iter(), f)
            }
            TableProperty::WriteSetField { miss, oxm } => {
                named(f, "write_setfield", miss)?;
                commas(oxm.iter(), f)
            }
            TableProperty::ApplySetField { miss, oxm } => {
                named(f, "apply_setfield", miss)?;
                commas(oxm.iter(), f)
            }
            TableProperty::Unknown { kind, body } => {
                write!(f, "property({kind})={}", Hex(&body))
            }
        }
    }
}

/// Prints table numbers, with runs joined: `1-253`.
fn runs(tables: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    let mut comma = "";
    for run in tables.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        match run {
            [first, .., last] => write!(f, "{comma}{first}-{last}")?,
            [one] => write!(f, "{comma}{one}")?,
            [] => {}
        }
        comma = ",";
    }
    Ok(())
}

/// Prints the name of a type, with the data of an experimenter's type.
fn id(names: &[&str], kind: u16, body: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    match names.get(usize::from(kind)) {
        Some(name) if !name.is_empty() => f.write_str(name)?,
        _ if kind == 0xffff => f.write_str("experimenter")?,
        _ => write!(f, "{kind}")?,
    }
    if body.is_empty() { Ok(()) } else { write!(f, "({})", Hex(body)) }
}

impl Display for ActionId<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        id(ACTIONS, self.kind, &self.body, f)
    }
}

impl Display for InstructionId<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        id(INSTRUCTIONS, self.kind, &self.body, f)
    }
}

/// Prints the name of the field, with `/mask` if masks are supported; the header of an
/// unknown field.
impl Display for OxmId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.field(), self.experimenter) {
            (Some(field), _) => write!(f, "{field}{}", if self.has_mask() { "/mask" } else { "" }),
            (None, None) => write!(f, "oxm({:#010x})", self.header),
            (None, Some(id)) => write!(f, "oxm({:#010x},experimenter={id:#010x})", self.header),
        }
    }
}
