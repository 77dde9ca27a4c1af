//! The groups and meters of switches.
//!
//! Each answer asks the switch twice: for what it has (`OFPMP_GROUP_DESC`, 1.3.5 §7.3.5.8;
//! `OFPMP_METER_CONFIG`, §7.3.5.13) and for the counters (`OFPMP_GROUP`, §7.3.5.7; `OFPMP_METER`,
//! §7.3.5.12). Counters are missing if the switch does not answer the second question.

use std::collections::BTreeMap;

use bellrock_api::openflow::{
    Group, GroupDesc, GroupStats, Meter, MeterConfig, MeterStats, RequestBody,
};
use bellrock_api::{Network, ReplyBody, SwitchInfo};
use bellrock_query::{
    ErrorKind, GroupRow, ListGroups, ListMeters, MeterRow, QueryError, Rows, SwitchRef,
};

use super::ask::{ask_one, kept, of_switch};

/// The groups of a switch that is up.
///
/// # Errors
/// The switch does not report its groups.
pub(super) fn list_groups(
    network: &Network,
    info: &SwitchInfo,
    query: &ListGroups,
) -> Result<Rows<GroupRow>, QueryError> {
    if !info.version.has_groups() {
        return Err(lacks(&query.switch, info, "groups"));
    }
    let ask_groups = || network.request(info.dpid, RequestBody::GroupDesc);
    let reported = ask_one("groups", ask_groups, |reply| match reply {
        ReplyBody::GroupDesc(groups) => Some(groups.iter().map(group_row).collect()),
        _ => None,
    });
    let mut rows: BTreeMap<u32, GroupRow> = of_switch(&query.switch, reported)?;
    let ask_counters = || network.request(info.dpid, RequestBody::Group(Group::ALL));
    let _ = ask_one("counters of groups", ask_counters, |reply| match reply {
        ReplyBody::Group(counters) => {
            counters.iter().for_each(|counters| count_group(&mut rows, &counters));
            Some(())
        }
        _ => None,
    });
    Ok(Rows::of(rows.into_values().collect::<Vec<_>>(), query.page))
}

fn group_row(group: GroupDesc<'_>) -> (u32, GroupRow) {
    let row = GroupRow {
        group: group.group,
        kind: group.kind.to_string(),
        buckets: group.buckets.iter().map(|bucket| without_name("bucket=", bucket)).collect(),
        used_by: None,
        packets: None,
        bytes: None,
        age_seconds: None,
    };
    (group.group, row)
}

fn count_group(rows: &mut BTreeMap<u32, GroupRow>, counters: &GroupStats<'_>) {
    // A group may be added between the two replies.
    let Some(row) = rows.get_mut(&counters.group) else { return };
    row.used_by = kept_count(counters.ref_count);
    row.packets = kept(counters.packet_count);
    row.bytes = kept(counters.byte_count);
    row.age_seconds = Some(counters.duration_sec);
}

/// The meters of a switch that is up.
///
/// # Errors
/// The switch does not report its meters.
pub(super) fn list_meters(
    network: &Network,
    info: &SwitchInfo,
    query: &ListMeters,
) -> Result<Rows<MeterRow>, QueryError> {
    if !info.version.has_meters() {
        return Err(lacks(&query.switch, info, "meters"));
    }
    let ask_meters = || network.request(info.dpid, RequestBody::MeterConfig(Meter::ALL));
    let reported = ask_one("meters", ask_meters, |reply| match reply {
        ReplyBody::MeterConfig(meters) => Some(meters.iter().map(meter_row).collect()),
        _ => None,
    });
    let mut rows: BTreeMap<u32, MeterRow> = of_switch(&query.switch, reported)?;
    let ask_counters = || network.request(info.dpid, RequestBody::Meter(Meter::ALL));
    let _ = ask_one("counters of meters", ask_counters, |reply| match reply {
        ReplyBody::Meter(counters) => {
            counters.iter().for_each(|counters| count_meter(&mut rows, &counters));
            Some(())
        }
        _ => None,
    });
    Ok(Rows::of(rows.into_values().collect::<Vec<_>>(), query.page))
}

fn meter_row(meter: MeterConfig<'_>) -> (u32, MeterRow) {
    let row = MeterRow {
        meter: meter.meter,
        flags: meter.flags.to_string(),
        bands: meter.bands.iter().map(|band| without_name("band=", band)).collect(),
        used_by: None,
        packets: None,
        bytes: None,
        age_seconds: None,
    };
    (meter.meter, row)
}

fn count_meter(rows: &mut BTreeMap<u32, MeterRow>, counters: &MeterStats<'_>) {
    let Some(row) = rows.get_mut(&counters.meter) else { return };
    row.used_by = kept_count(counters.flow_count);
    row.packets = kept(counters.packet_in_count);
    row.bytes = kept(counters.byte_in_count);
    row.age_seconds = Some(counters.duration_sec);
}

/// The error for a switch whose version has no groups or no meters.
fn lacks(switch: &SwitchRef, info: &SwitchInfo, what: &str) -> QueryError {
    let version = info.version;
    let why = format!("switch {switch} speaks OpenFlow {version}, which has no {what}");
    QueryError::new(ErrorKind::Refused, why).at("switch")
}

/// The text of a part without its name, which the field says already.
fn without_name(name: &str, part: impl ToString) -> String {
    let text = part.to_string();
    text.strip_prefix(name).map_or_else(|| text.clone(), str::to_owned)
}

/// As [`kept`], for counters of 32 bits.
fn kept_count(counter: u32) -> Option<u32> {
    (counter != u32::MAX).then_some(counter)
}
