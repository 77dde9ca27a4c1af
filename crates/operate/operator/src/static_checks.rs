//! Checks of static entries before they are wanted: what no switch can do, what this switch's
//! version lacks, and groups and meters that the switch does not have.
//!
//! An entry that was accepted once is not checked again: the file of the entries may be from an
//! earlier release, and a controller must start with it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bellrock_api::openflow::{Action, Meter, RequestBody};
use bellrock_api::{
    ALL_TABLES, Dpid, Flow, ImpossibleBuckets, InstructionPart, Network, ReplyBody, RequestFuture,
    Version, check_bucket, check_instructions, parse_instructions,
};
use bellrock_apps::static_entries::{NotSet, NotSetReason, Reference, Unresolved};
use bellrock_query::{ErrorKind, QueryError, StaticEntry};
use bellrock_services::desired::DesiredEntry;

use super::static_forms::part_of;
use super::wait::wait_until;

/// Time for the switches to report their groups and meters. An order does not fail because of a
/// switch that does not.
const REPORT_TIMEOUT: Duration = Duration::from_secs(4);

/// The field that says what an entry is.
fn kind_of(entry: &StaticEntry) -> &'static str {
    match (&entry.flow, &entry.group) {
        (Some(_), _) => "flow",
        (None, Some(_)) => "group",
        (None, None) => "meter",
    }
}

/// Refuses what no switch can do. `version`: that of the switch, if it is up.
///
/// # Errors
/// The field that is wrong, and what would be possible.
pub(super) fn check_possible(
    entry: &StaticEntry,
    wanted: &DesiredEntry,
    version: Option<Version>,
) -> Result<(), QueryError> {
    match wanted {
        DesiredEntry::Flow(flow) => check_flow(&parts(entry), flow, version),
        DesiredEntry::Group(group) => {
            group.check_buckets().map_err(|error| {
                let field = match error {
                    ImpossibleBuckets::Indirect(_) => "group.buckets".to_owned(),
                    ImpossibleBuckets::Unwatched { bucket } => {
                        format!("group.buckets[{bucket}].watch_port")
                    }
                    ImpossibleBuckets::WatchesItself { bucket } => {
                        format!("group.buckets[{bucket}].watch_group")
                    }
                    ImpossibleBuckets::Weight { bucket } => {
                        format!("group.buckets[{bucket}].weight")
                    }
                };
                QueryError::invalid(&field, error.to_string())
            })?;
            for (index, bucket) in group.buckets.iter().enumerate() {
                check_bucket(group.id, bucket).map_err(|error| {
                    let field = format!("group.buckets[{index}].actions");
                    QueryError::invalid(&part_of(&field, error.part), error.to_string())
                })?;
            }
            Ok(())
        }
        DesiredEntry::Meter(_) => Ok(()),
    }
}

fn check_flow(
    parts: &[InstructionPart],
    flow: &Flow,
    version: Option<Version>,
) -> Result<(), QueryError> {
    if flow.table == ALL_TABLES {
        let last = ALL_TABLES - 1;
        let why = format!("{ALL_TABLES} stands for all tables; give 0 to {last}");
        return Err(QueryError::invalid("flow.table", why));
    }
    check_instructions(parts, (&flow.matching, flow.table), version).map_err(|error| {
        QueryError::invalid(&part_of("flow.actions", error.part), error.to_string())
    })
}

/// The parts of a flow's actions, as they are written.
fn parts(entry: &StaticEntry) -> Vec<InstructionPart> {
    let actions = entry.flow.as_ref().map(|flow| parse_instructions(&flow.actions));
    // They were read before.
    actions.and_then(Result::ok).unwrap_or_default()
}

/// Names the part of an entry that does not fit a switch. `fits` says whether an entry does.
pub(super) fn unfit_part(
    entry: &StaticEntry,
    wanted: &DesiredEntry,
    fits: impl Fn(&DesiredEntry) -> bool,
) -> String {
    let DesiredEntry::Flow(flow) = wanted else { return kind_of(entry).to_owned() };
    let matching = Flow::new(flow.matching.clone());
    if !fits(&matching.clone().into()) {
        return "flow.match".to_owned();
    }
    let flow = matching.table(flow.table);
    if !fits(&flow.clone().into()) {
        return "flow.table".to_owned();
    }
    let parts = parts(entry);
    let unfit =
        (0..parts.len()).find(|last| !fits(&flow.clone().with_parts(&parts[..=*last]).into()));
    unfit.map_or_else(|| "flow.actions".to_owned(), |part| part_of("flow.actions", part))
}

/// Names the field of an entry that uses a group or a meter.
pub(super) fn using_part(entry: &StaticEntry, used: Reference) -> String {
    let is_used = |action: &Action<'_>| matches!((action, used), (Action::Group(id), Reference::Group(used)) if *id == used);
    if let Some(flow) = &entry.flow {
        let parts = parse_instructions(&flow.actions).unwrap_or_default();
        let uses = |part: &InstructionPart| match part {
            InstructionPart::Meter(id) => used == Reference::Meter(*id),
            InstructionPart::Apply(action) => is_used(action),
            InstructionPart::Write(actions) => actions.iter().any(is_used),
            _ => false,
        };
        let part = parts.iter().position(uses);
        return part
            .map_or_else(|| "flow.actions".to_owned(), |part| part_of("flow.actions", part));
    }
    let buckets = entry.group.iter().flat_map(|group| group.buckets.iter().enumerate());
    for (index, bucket) in buckets {
        let field = format!("group.buckets[{index}]");
        if bucket.watch_group.is_some_and(|id| used == Reference::Group(id)) {
            return format!("{field}.watch_group");
        }
        let actions = bellrock_api::parse_actions(&bucket.actions).unwrap_or_default();
        if let Some(part) = actions.iter().position(is_used) {
            return part_of(&format!("{field}.actions"), part);
        }
    }
    kind_of(entry).to_owned()
}

/// Finds the first entry that uses a group or meter which its switch does not have. Switches that
/// are not up, or report none in time, may have it.
pub(super) fn find_absent(network: &Network, unresolved: &[Unresolved]) -> Option<NotSet> {
    let mut reports: BTreeMap<(Dpid, bool), Option<RequestFuture>> = BTreeMap::new();
    for Unresolved { dpid, used, .. } in unresolved {
        let Some(info) = network.switch(*dpid) else { continue };
        let is_group = matches!(used, Reference::Group(_));
        let (is_known, request) = match is_group {
            true => (info.version.has_groups(), RequestBody::GroupDesc),
            false => (info.version.has_meters(), RequestBody::MeterConfig(Meter::ALL)),
        };
        if is_known {
            reports
                .entry((*dpid, is_group))
                .or_insert_with(|| Some(network.request(*dpid, request)));
        }
    }
    let until = Instant::now() + REPORT_TIMEOUT;
    let there: BTreeMap<(Dpid, bool), BTreeSet<u32>> = reports
        .into_iter()
        .filter_map(|(key, request)| Some((key, numbers(wait_until(until, request?)?.ok()?)?)))
        .collect();
    let is_absent = |unresolved: &&Unresolved| {
        let (is_group, id) = match unresolved.used {
            Reference::Group(id) => (true, id),
            Reference::Meter(id) => (false, id),
        };
        there.get(&(unresolved.dpid, is_group)).is_some_and(|there| !there.contains(&id))
    };
    let absent = unresolved.iter().find(is_absent)?;
    Some(NotSet { entry: Some(absent.entry), why: NotSetReason::Absent(absent.used) })
}

/// The numbers of the groups or meters in a reply.
fn numbers(reply: bellrock_api::Reply) -> Option<BTreeSet<u32>> {
    match reply.body().ok()? {
        ReplyBody::GroupDesc(groups) => Some(groups.iter().map(|group| group.group).collect()),
        ReplyBody::MeterConfig(meters) => Some(meters.iter().map(|meter| meter.meter).collect()),
        _ => None,
    }
}

/// An error about a wrong order.
pub(super) fn not_set(error: &NotSet, entries: &[StaticEntry], remove: &[String]) -> QueryError {
    let (kind, field) = match &error.why {
        NotSetReason::Name(_) | NotSetReason::Twice(_) => (ErrorKind::Invalid, "name"),
        NotSetReason::Owner { .. } => (ErrorKind::Refused, "owner"),
        NotSetReason::Taken { what, .. } => (ErrorKind::Refused, *what),
        NotSetReason::SameExact(_) => (ErrorKind::Refused, "flow"),
        NotSetReason::Priority(_) => (ErrorKind::Invalid, "flow.priority"),
        NotSetReason::Group(_) => (ErrorKind::Invalid, "group.id"),
        NotSetReason::Meter { .. } => (ErrorKind::Invalid, "meter.id"),
        NotSetReason::Missing(_) => (ErrorKind::NotFound, "remove"),
        NotSetReason::Full(_) => (ErrorKind::Refused, "entries"),
        NotSetReason::InUse { name, .. } => {
            let removed = if remove.contains(name) { "remove" } else { "replace" };
            let entry = error.entry.and_then(|index| entries.get(index));
            (ErrorKind::Refused, entry.map_or(removed, kind_of))
        }
        NotSetReason::Absent(used) => {
            let entry = error.entry.and_then(|index| entries.get(index));
            let part = entry.map(|entry| using_part(entry, *used)).unwrap_or_default();
            return QueryError::new(ErrorKind::Refused, error.to_string())
                .at(&format!("entries[{}].{part}", error.entry.unwrap_or_default()));
        }
    };
    let field = match error.entry {
        Some(index) => format!("entries[{index}].{field}"),
        None => field.to_owned(),
    };
    QueryError::new(kind, error.to_string()).at(&field)
}

#[cfg(test)]
mod tests {
    use bellrock_api::openflow::{self, FlowCommand};

    use super::*;
    use crate::static_forms::read;

    fn entry(json: &str) -> StaticEntry {
        serde_json::from_str(&format!(r#"{{"name": "e", "switch": "a1", {json}}}"#)).unwrap()
    }

    #[test]
    fn the_part_of_a_flow_that_a_version_lacks_is_named() {
        let fits = |wanted: &DesiredEntry| {
            let DesiredEntry::Flow(flow) = wanted else { panic!("{wanted:?}") };
            flow.with_flow_mod(FlowCommand::Add, |flow| {
                let mut out = openflow::Out::with_capacity(1024);
                openflow::ToSwitch::FlowMod(*flow).encode(Version::V1_0, 1, &mut out)
            })
            .is_ok()
        };
        for (flow, part) in [
            (r#"{"match": "eth_type=0x86dd,ipv6_src=2001:db8::1"}"#, "flow.match"),
            (r#"{"table": 1, "actions": "output:1"}"#, "flow.table"),
            (r#"{"actions": "push_vlan:0x8100,output:1"}"#, "flow.actions[0]"),
            (r#"{"actions": "output:1,group:7"}"#, "flow.actions[1]"),
        ] {
            let entry = entry(&format!(r#""flow": {flow}"#));
            let wanted = read(&entry).unwrap();
            assert!(!fits(&wanted), "{flow}");
            assert_eq!(unfit_part(&entry, &wanted, fits), part, "{flow}");
        }
    }

    #[test]
    fn an_impossible_entry_is_an_error_that_names_the_field() {
        let version = Some(Version::V1_3);
        for (text, field) in [
            (r#""flow": {"table": 255}"#, "flow.table"),
            (r#""flow": {"actions": "output:1,push_vlan:5"}"#, "flow.actions[1]"),
            (r#""flow": {"table": 3, "actions": "goto_table:2"}"#, "flow.actions[0]"),
            (r#""flow": {"actions": "meter:1,dec_nw_ttl,output:1"}"#, "flow.actions[1]"),
            (r#""group": {"id": 1, "type": "indirect"}"#, "group.buckets"),
            (
                r#""group": {"id": 1, "type": "fast_failover", "buckets": [{"watch_port": "1"}, {}]}"#,
                "group.buckets[1].watch_port",
            ),
            (
                r#""group": {"id": 1, "type": "all", "buckets": [{"weight": 2}]}"#,
                "group.buckets[0].weight",
            ),
            (
                r#""group": {"id": 1, "type": "all", "buckets": [{}, {"actions": "output:1,group:1"}]}"#,
                "group.buckets[1].actions[1]",
            ),
        ] {
            let entry = entry(text);
            let error = check_possible(&entry, &read(&entry).unwrap(), version).unwrap_err();
            assert_eq!(error.field.as_deref(), Some(field), "{text}: {error}");
        }
        let possible =
            entry(r#""flow": {"match": "eth_type=0x0800", "actions": "dec_nw_ttl,output:1"}"#);
        assert_eq!(check_possible(&possible, &read(&possible).unwrap(), version), Ok(()));
    }

    #[test]
    fn the_part_that_uses_a_group_or_a_meter_is_named() {
        for (text, used, part) in [
            (
                r#""flow": {"actions": "meter:5,output:1,group:7"}"#,
                Reference::Group(7),
                "flow.actions[2]",
            ),
            (r#""flow": {"actions": "meter:5,output:1"}"#, Reference::Meter(5), "flow.actions[0]"),
            (
                r#""flow": {"actions": "output:1,write_actions(output:2,group:7)"}"#,
                Reference::Group(7),
                "flow.actions[1]",
            ),
            (
                r#""group": {"id": 1, "type": "all", "buckets": [{}, {"actions": "group:7"}]}"#,
                Reference::Group(7),
                "group.buckets[1].actions[0]",
            ),
            (
                r#""group": {"id": 1, "type": "fast_failover", "buckets": [{"watch_group": 7}]}"#,
                Reference::Group(7),
                "group.buckets[0].watch_group",
            ),
        ] {
            assert_eq!(using_part(&entry(text), used), part, "{text}");
        }
    }
}
