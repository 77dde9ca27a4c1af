//! The features of a switch's tables (1.3.5 §7.3.5.5): all tables have the same.

use bellrock_openflow::{
    ActionId, Bytes, Field, FixedStr, InstructionId, List, OxmId, ReplyBody, TableFeatures,
    TableProperty,
};

use super::ChannelClose;
use super::replies::ReplyTarget;
use crate::datapath::Datapath;

/// The instructions of 1.3, by number: goto_table to meter.
const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];

/// The actions of 1.3, by number.
const ACTIONS: [u16; 16] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

/// The actions of 1.3, one bit each.
pub(super) const ACTION_BITS: u32 = {
    let (mut bits, mut i) = (0, 0);
    while i < ACTIONS.len() {
        bits |= 1 << ACTIONS[i];
        i += 1;
    }
    bits
};

/// Only `OFPTC_DEPRECATED_MASK` is left of a table's configuration, and it has no meaning.
const CONFIG: u32 = 0;

/// The name of a table.
pub(super) fn name(table: u8) -> FixedStr<32> {
    FixedStr::new(&format!("table {table}"))
}

/// Sends the features of all tables.
pub(super) fn features(
    datapath: &Datapath,
    reply: &mut ReplyTarget<'_>,
) -> Result<(), ChannelClose> {
    let instructions = INSTRUCTIONS.map(|kind| InstructionId { kind, body: Bytes(&[]) });
    // The last table has no goto_table.
    let (_, last_instructions) = instructions.split_at(1);
    let actions = ACTIONS.map(|kind| ActionId { kind, body: Bytes(&[]) });
    let matched: Vec<_> =
        Field::BASIC.iter().map(|field| OxmId::of(*field, field.maskable())).collect();
    let wildcarded: Vec<_> = Field::BASIC.iter().map(|field| OxmId::of(*field, false)).collect();
    let settable = Field::BASIC.iter().filter(|field| field.is_settable());
    let set: Vec<_> = settable.map(|field| OxmId::of(*field, false)).collect();
    let count = datapath.tables().len();
    let numbers: Vec<u8> = (0..count).collect();
    // The table-miss entry has the same properties, so they are omitted.
    let miss = false;
    let properties: Vec<Vec<_>> = numbers
        .iter()
        .map(|number| {
            let later = &numbers[usize::from(*number) + 1..];
            let known = if later.is_empty() { last_instructions } else { &instructions[..] };
            vec![
                TableProperty::Instructions { miss, ids: List::of(known) },
                TableProperty::NextTables { miss, tables: Bytes(later) },
                TableProperty::WriteActions { miss, ids: List::of(&actions) },
                TableProperty::ApplyActions { miss, ids: List::of(&actions) },
                TableProperty::Match { oxm: List::of(&matched) },
                TableProperty::Wildcards { oxm: List::of(&wildcarded) },
                TableProperty::WriteSetField { miss, oxm: List::of(&set) },
                TableProperty::ApplySetField { miss, oxm: List::of(&set) },
            ]
        })
        .collect();
    let tables = datapath.tables().iter().zip(&properties);
    let features = tables.map(|((number, table), properties)| TableFeatures {
        table: number,
        name: name(number),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        config: CONFIG,
        max_entries: table.capacity(),
        properties: List::of(properties),
    });
    reply.all(&features.collect::<Vec<_>>(), ReplyBody::TableFeatures)
}
