//! Static entries between the text that operators write and the values that the app keeps.

use std::fmt::Display;

use bellrock_api::openflow::{BandType, FlowCommand, Group, GroupType, MeterFlags, Port};
use bellrock_api::{
    BucketEntry, Flow, GroupEntry, Match, MeterEntry, ParseInstructionsError, PriorityBand,
    openflow, parse_actions,
};
use bellrock_apps::static_entries::NotSetReason;
use bellrock_query::{
    GroupKind, MeterUnit, QueryError, StaticBand, StaticBucket, StaticEntry, StaticFlow,
    StaticGroup, StaticMeter,
};
use bellrock_services::desired::DesiredEntry;

/// What an entry is: exactly one of the three.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) flow: Option<StaticFlow>,
    pub(super) group: Option<StaticGroup>,
    pub(super) meter: Option<StaticMeter>,
}

/// Checks that an order says what becomes of packets. Nobody drops the packets of a whole switch by
/// leaving something out.
///
/// # Errors
/// The actions that are missing.
pub(super) fn check_actions(entry: &StaticEntry) -> Result<(), QueryError> {
    let is_missing = |actions: &str| actions.trim().is_empty();
    let flow = entry.flow.iter().filter(|flow| is_missing(&flow.actions));
    let flow = flow.map(|_| "flow.actions".to_owned());
    let buckets = entry.group.iter().flat_map(|group| group.buckets.iter().enumerate());
    let buckets = buckets.filter(|(_, bucket)| is_missing(&bucket.actions));
    let buckets = buckets.map(|(index, _)| format!("group.buckets[{index}].actions"));
    match flow.chain(buckets).next() {
        Some(field) => {
            let why =
                "it says not what to do with packets; give actions, such as output:2, or drop";
            Err(QueryError::invalid(&field, why))
        }
        None => Ok(()),
    }
}

/// Reads what an entry is.
///
/// # Errors
/// The field that is wrong, and what would be right.
pub(super) fn read(entry: &StaticEntry) -> Result<DesiredEntry, QueryError> {
    match (&entry.flow, &entry.group, &entry.meter) {
        (Some(flow), None, None) => Ok(read_flow(flow)?.into()),
        (None, Some(group), None) => Ok(read_group(group)?.into()),
        (None, None, Some(meter)) => Ok(read_meter(meter)?.into()),
        _ => {
            let why = "give exactly one of `flow`, `group` and `meter`";
            Err(QueryError::new(bellrock_query::ErrorKind::Invalid, why))
        }
    }
}

fn wrong(field: &str) -> impl Fn(&dyn Display) -> QueryError {
    let field = field.to_owned();
    move |error| QueryError::invalid(&field, error.to_string())
}

/// A wrong list of actions. The error names the part between commas, counted from 0.
fn wrong_part(field: &str) -> impl Fn(ParseInstructionsError) -> QueryError {
    let field = field.to_owned();
    move |error| match error.part() {
        Some(part) => QueryError::invalid(&part_of(&field, part), error.to_string()),
        None => QueryError::invalid(&field, error.to_string()),
    }
}

/// The name of a part of a list of actions.
pub(super) fn part_of(field: &str, part: usize) -> String {
    format!("{field}[{part}]")
}

fn read_flow(flow: &StaticFlow) -> Result<Flow, QueryError> {
    let StaticFlow { table, priority, matching, actions } = flow;
    if *priority >= PriorityBand::PRIORITIES {
        let why = NotSetReason::Priority(*priority);
        return Err(wrong("flow.priority")(&why));
    }
    let matching: Match = matching.parse().map_err(|error| wrong("flow.match")(&error))?;
    let flow = Flow::new(matching).table(*table).priority(*priority);
    flow.instructions(actions).map_err(wrong_part("flow.actions"))
}

fn read_group(group: &StaticGroup) -> Result<GroupEntry, QueryError> {
    let StaticGroup { id, kind, buckets } = group;
    let mut entry = GroupEntry::new(*id, group_type(*kind));
    for (index, bucket) in buckets.iter().enumerate() {
        let StaticBucket { weight, watch_port, watch_group, actions } = bucket;
        let field = |name| format!("group.buckets[{index}].{name}");
        let actions = parse_actions(actions).map_err(wrong_part(&field("actions")))?;
        let watch_port = watch_port.as_deref().map(str::parse::<Port>).transpose();
        let watch_port = watch_port.map_err(|error| wrong(&field("watch_port"))(&error))?;
        if *kind == GroupKind::Select && *weight == 0 {
            let why = "a bucket of a group that selects needs a weight of at least 1";
            return Err(wrong(&field("weight"))(&why));
        }
        entry = entry.bucket(BucketEntry {
            weight: *weight,
            watch_port: watch_port.unwrap_or(Port::ANY),
            watch_group: watch_group.unwrap_or(Group::ANY),
            actions,
        });
    }
    Ok(entry)
}

fn read_meter(meter: &StaticMeter) -> Result<MeterEntry, QueryError> {
    let StaticMeter { id, unit, bands } = meter;
    if bands.is_empty() {
        let why = "a meter without bands does nothing; give at least one";
        return Err(wrong("meter.bands")(&why));
    }
    let mut flags = match unit {
        MeterUnit::Kbps => MeterFlags::KBPS,
        MeterUnit::Pps => MeterFlags::PKTPS,
    };
    if bands.iter().any(|band| band.burst > 0) {
        flags |= MeterFlags::BURST;
    }
    let band = |band: &StaticBand| openflow::Band {
        rate: band.rate,
        burst_size: band.burst,
        kind: match band.dscp_remark {
            Some(levels) => BandType::DscpRemark(levels),
            None => BandType::Drop,
        },
    };
    Ok(MeterEntry { id: *id, flags, bands: bands.iter().map(band).collect() })
}

/// Shows what an entry is, in the form that [`read`] reads.
pub(super) fn show(wanted: &DesiredEntry) -> Shown {
    match wanted {
        DesiredEntry::Flow(flow) => Shown { flow: Some(show_flow(flow)), ..Shown::default() },
        DesiredEntry::Group(group) => Shown { group: Some(show_group(group)), ..Shown::default() },
        DesiredEntry::Meter(meter) => Shown { meter: Some(show_meter(meter)), ..Shown::default() },
    }
}

fn show_flow(flow: &Flow) -> StaticFlow {
    StaticFlow {
        table: flow.table,
        priority: flow.priority,
        matching: flow.matching.to_string(),
        actions: flow.with_flow_mod(FlowCommand::Add, |flow| flow.instructions.to_string()),
    }
}

fn show_group(group: &GroupEntry) -> StaticGroup {
    let bucket = |bucket: &BucketEntry| StaticBucket {
        weight: bucket.weight,
        watch_port: (bucket.watch_port != Port::ANY).then(|| bucket.watch_port.to_string()),
        watch_group: (bucket.watch_group != Group::ANY).then_some(bucket.watch_group),
        actions: match &bucket.actions[..] {
            [] => "drop".to_owned(),
            actions => actions.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        },
    };
    StaticGroup {
        id: group.id,
        kind: group_kind(group.kind),
        buckets: group.buckets.iter().map(bucket).collect(),
    }
}

fn show_meter(meter: &MeterEntry) -> StaticMeter {
    let band = |band: &openflow::Band<'_>| StaticBand {
        rate: band.rate,
        burst: band.burst_size,
        dscp_remark: match band.kind {
            BandType::DscpRemark(levels) => Some(levels),
            _ => None,
        },
    };
    let is_packets = meter.flags.contains(MeterFlags::PKTPS);
    StaticMeter {
        id: meter.id,
        unit: if is_packets { MeterUnit::Pps } else { MeterUnit::Kbps },
        bands: meter.bands.iter().map(band).collect(),
    }
}

const fn group_type(kind: GroupKind) -> GroupType {
    match kind {
        GroupKind::All => GroupType::All,
        GroupKind::Select => GroupType::Select,
        GroupKind::Indirect => GroupType::Indirect,
        GroupKind::FastFailover => GroupType::FastFailover,
    }
}

const fn group_kind(kind: GroupType) -> GroupKind {
    match kind {
        GroupType::Select => GroupKind::Select,
        GroupType::Indirect => GroupKind::Indirect,
        GroupType::FastFailover => GroupKind::FastFailover,
        _ => GroupKind::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: &str) -> StaticEntry {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn entries_read_as_they_are_shown() {
        for text in [
            r#"{"name": "f", "switch": "a1", "flow": {"table": 1, "priority": 7,
                "match": "in_port=1,eth_type=0x0800,ipv4_dst=10.0.0.0/8",
                "actions": "meter:3,set_field:10.0.0.7->ipv4_dst,output:3,goto_table:2"}}"#,
            r#"{"name": "g", "switch": "a1", "group": {"id": 7, "type": "fast_failover", "buckets": [
                {"watch_port": "1", "actions": "output:1"}, {"watch_group": 8, "actions": "FLOOD,group:9"}]}}"#,
            r#"{"name": "m", "switch": "a1", "meter": {"id": 5, "unit": "pps", "bands": [
                {"rate": 100, "burst": 10, "dscp_remark": 1}, {"rate": 200, "burst": 0}]}}"#,
        ] {
            let entry = entry(text);
            let Shown { flow, group, meter } = show(&read(&entry).unwrap());
            assert_eq!((&flow, &group), (&entry.flow, &entry.group), "{text}");
            assert_eq!(meter.map(|meter| meter.id), entry.meter.map(|meter| meter.id));
        }
    }

    #[test]
    fn packets_are_dropped_only_by_an_order_that_says_so() {
        for (what, field) in [
            (r#""flow": {}"#, Some("flow.actions")),
            (r#""flow": {"match": "in_port=1", "actions": " "}"#, Some("flow.actions")),
            (r#""flow": {"actions": "drop"}"#, None),
            (r#""flow": {"actions": "output:1"}"#, None),
            (
                r#""group": {"id": 1, "type": "all", "buckets": [{"actions": "drop"}, {}]}"#,
                Some("group.buckets[1].actions"),
            ),
            (r#""group": {"id": 1, "type": "all"}"#, None),
            (r#""meter": {"id": 1, "bands": [{"rate": 1}]}"#, None),
        ] {
            let checked =
                check_actions(&entry(&format!(r#"{{"name": "n", "switch": "a1", {what}}}"#)));
            assert_eq!(checked.err().and_then(|error| error.field).as_deref(), field, "{what}");
        }
    }

    #[test]
    fn a_bucket_without_actions_is_shown_as_one_that_drops() {
        let text =
            r#"{"name": "g", "switch": "a1", "group": {"id": 1, "type": "all", "buckets": [{}]}}"#;
        let shown = show(&read(&entry(text)).unwrap()).group.unwrap();
        assert_eq!(shown.buckets[0].actions, "drop");
    }

    #[test]
    fn a_wrong_entry_names_the_field() {
        for (text, field, part) in [
            (r#"{"name": "f", "switch": "a1"}"#, None, "exactly one of"),
            (
                r#"{"name": "f", "switch": "a1", "flow": {"match": "nonsense=1"}}"#,
                Some("flow.match"),
                "there is no field \"nonsense\"",
            ),
            (
                r#"{"name": "f", "switch": "a1", "flow": {"actions": "fly"}}"#,
                Some("flow.actions[0]"),
                "there is no action \"fly\"",
            ),
            (
                r#"{"name": "f", "switch": "a1", "flow": {"actions": "output:1,set_field:ipv4_dst=10.0.0.7"}}"#,
                Some("flow.actions[1]"),
                "write set_field:10.0.0.7->ipv4_dst",
            ),
            (
                r#"{"name": "g", "switch": "a1", "group": {"id": 1, "type": "all", "buckets": [
                    {}, {"actions": "output:1,fly"}]}}"#,
                Some("group.buckets[1].actions[1]"),
                "there is no action \"fly\"",
            ),
            (
                r#"{"name": "g", "switch": "a1", "group": {"id": 1, "type": "select", "buckets": [{}]}}"#,
                Some("group.buckets[0].weight"),
                "at least 1",
            ),
            (
                r#"{"name": "m", "switch": "a1", "meter": {"id": 1, "bands": []}}"#,
                Some("meter.bands"),
                "at least one",
            ),
        ] {
            let error = read(&entry(text)).unwrap_err();
            assert_eq!(error.field.as_deref(), field, "{text}");
            assert!(error.message.contains(part), "{error}");
        }
    }
}
