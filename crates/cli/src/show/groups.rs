//! The groups and meters of a switch.

use bellrock_query::{GroupRow, MeterRow};

use super::flows::count;
use super::{duration, printable, wide_table};

/// The groups of a switch.
pub(crate) fn groups(groups: &[GroupRow]) -> String {
    if groups.is_empty() {
        return "the switch has no groups\n".to_owned();
    }
    let row = |group: &GroupRow| {
        vec![
            group.group.to_string(),
            printable(&group.kind),
            count(group.used_by.map(u64::from)),
            count(group.packets),
            count(group.bytes),
            age(group.age_seconds),
            parts(&group.buckets),
        ]
    };
    let head = ["GROUP", "TYPE", "USED BY", "PACKETS", "BYTES", "AGE", "BUCKETS"];
    wide_table(&head, &["AGE", "BYTES", "PACKETS"], groups.iter().map(row))
}

/// The meters of a switch.
pub(crate) fn meters(meters: &[MeterRow]) -> String {
    if meters.is_empty() {
        return "the switch has no meters\n".to_owned();
    }
    let row = |meter: &MeterRow| {
        vec![
            meter.meter.to_string(),
            printable(&meter.flags),
            count(meter.used_by.map(u64::from)),
            count(meter.packets),
            count(meter.bytes),
            age(meter.age_seconds),
            parts(&meter.bands),
        ]
    };
    let head = ["METER", "FLAGS", "USED BY", "PACKETS", "BYTES", "AGE", "BANDS"];
    wide_table(&head, &["AGE", "BYTES", "PACKETS"], meters.iter().map(row))
}

fn age(seconds: Option<u32>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| duration(seconds.into()))
}

/// Buckets or bands, one behind the other.
fn parts(parts: &[String]) -> String {
    parts.iter().map(|part| printable(part)).collect::<Vec<_>>().join("; ")
}
