//! The tables of a switch and their features.

use bellrock_api::openflow::{
    ActionId, InstructionId, List, OxmId, ReplyBody, RequestBody, TableFeatures, TableProperty,
};
use serde_json::{Value, json};

use super::Failure;
use super::numbers::TABLES;
use super::stats::Asked;
use super::switch::Switch;

/// Length of the head of an instruction or action in a list of supported ones, in bytes.
const ID_BYTES: usize = 4;

/// Bits of `ofp_table_stats.wildcards` (1.0 §5.2.3). An address is left out as a whole with bits 13
/// and 19.
const WILDCARDS_V10: &[(&str, u32)] = &[
    ("IN_PORT", 1),
    ("DL_VLAN", 1 << 1),
    ("DL_SRC", 1 << 2),
    ("DL_DST", 1 << 3),
    ("DL_TYPE", 1 << 4),
    ("NW_PROTO", 1 << 5),
    ("TP_SRC", 1 << 6),
    ("TP_DST", 1 << 7),
    ("NW_SRC_ALL", 1 << 13),
    ("NW_DST_ALL", 1 << 19),
    ("DL_VLAN_PCP", 1 << 20),
    ("NW_TOS", 1 << 21),
];

pub(super) fn table(switch: &Switch<'_>, _: &Asked) -> Result<Value, Failure> {
    switch.multipart(RequestBody::Table, |reply| {
        let ReplyBody::Table(tables) = reply else { return None };
        let show = |table: bellrock_api::openflow::TableStats| {
            let mut shown = json!({
                "table_id": TABLES.show(table.table),
                "active_count": table.active_count,
                "lookup_count": table.lookup_count,
                "matched_count": table.matched_count,
            });
            if let (Some(shown), Some(details)) = (shown.as_object_mut(), table.v1_0) {
                let set = WILDCARDS_V10.iter().filter(|(_, bit)| details.wildcards & bit != 0);
                let wildcards: Vec<&str> = set.map(|(name, _)| *name).collect();
                shown.insert("name".to_owned(), details.name.to_string().into());
                shown.insert("wildcards".to_owned(), wildcards.into());
                shown.insert("max_entries".to_owned(), details.max_entries.into());
            }
            shown
        };
        Some(tables.iter().map(show).collect())
    })
}

pub(super) fn table_features(switch: &Switch<'_>, _: &Asked) -> Result<Value, Failure> {
    let request = RequestBody::TableFeatures(List::empty());
    switch.multipart(request, |reply| match reply {
        ReplyBody::TableFeatures(tables) => {
            Some(tables.iter().map(|it| show_features(&it)).collect())
        }
        _ => None,
    })
}

fn show_features(table: &TableFeatures<'_>) -> Value {
    let properties: Vec<Value> = table.properties.iter().map(|it| show_property(&it)).collect();
    json!({
        "table_id": TABLES.show(table.table),
        "name": table.name.to_string(),
        "metadata_match": table.metadata_match,
        "metadata_write": table.metadata_write,
        "config": table.config,
        "max_entries": table.max_entries,
        "properties": properties,
    })
}

fn show_property(property: &TableProperty<'_>) -> Value {
    let named =
        |name: &str, miss: bool| if miss { format!("{name}_MISS") } else { name.to_owned() };
    match *property {
        TableProperty::Instructions { miss, ids } => {
            let ids: Vec<Value> =
                ids.iter().map(|id: InstructionId<'_>| show_id(id.kind, id.body.0)).collect();
            json!({"type": named("INSTRUCTIONS", miss), "instruction_ids": ids})
        }
        TableProperty::NextTables { miss, tables } => {
            json!({"type": named("NEXT_TABLES", miss), "table_ids": tables.0})
        }
        TableProperty::WriteActions { miss, ids } => {
            json!({"type": named("WRITE_ACTIONS", miss), "action_ids": action_ids(ids)})
        }
        TableProperty::ApplyActions { miss, ids } => {
            json!({"type": named("APPLY_ACTIONS", miss), "action_ids": action_ids(ids)})
        }
        TableProperty::Match { oxm } => json!({"type": "MATCH", "oxm_ids": oxm_ids(oxm)}),
        TableProperty::Wildcards { oxm } => json!({"type": "WILDCARDS", "oxm_ids": oxm_ids(oxm)}),
        TableProperty::WriteSetField { miss, oxm } => {
            json!({"type": named("WRITE_SETFIELD", miss), "oxm_ids": oxm_ids(oxm)})
        }
        TableProperty::ApplySetField { miss, oxm } => {
            json!({"type": named("APPLY_SETFIELD", miss), "oxm_ids": oxm_ids(oxm)})
        }
        TableProperty::Unknown { kind: 0xfffe, .. } => json!({"type": "EXPERIMENTER"}),
        TableProperty::Unknown { kind: 0xffff, .. } => json!({"type": "EXPERIMENTER_MISS"}),
        TableProperty::Unknown { .. } => json!({"type": "UNKNOWN"}),
    }
}

fn show_id(kind: u16, body: &[u8]) -> Value {
    json!({"type": kind, "len": ID_BYTES + body.len()})
}

fn action_ids(ids: List<'_, ActionId<'_>>) -> Vec<Value> {
    ids.iter().map(|id| show_id(id.kind, id.body.0)).collect()
}

/// Fields. One that is not of the specification has a number: its class and field.
fn oxm_ids(fields: List<'_, OxmId>) -> Vec<Value> {
    const LENGTH: u32 = 0xff;
    const CLASS_AND_FIELD_SHIFT: u32 = 9;
    let show = |id: OxmId| {
        let number = id.header >> CLASS_AND_FIELD_SHIFT;
        let name =
            id.field().map_or_else(|| format!("field_{number}"), |field| field.name().to_owned());
        json!({"type": name, "hasmask": u8::from(id.has_mask()), "length": id.header & LENGTH})
    };
    fields.iter().map(show).collect()
}
