//! The static entries.

use bellrock_query::{GroupKind, MeterUnit, StaticAnswer, StaticRow, StaticState};

use super::{duration, named, notice_line, printable, wide_table};

/// What an order has changed.
pub(crate) fn static_answer(answer: &StaticAnswer) -> String {
    let StaticAnswer { set, unchanged, removed, unconfirmed, problems, saved, notice, .. } = answer;
    let mut text = format!("set: {set}, as before: {unchanged}, removed: {removed}\n");
    for problem in problems {
        let name = problem.name.as_deref().map_or_else(|| "a removed entry".to_owned(), printable);
        let why = printable(&problem.why);
        text.push_str(&format!("{name}: {}: {why}\n", word(problem.state)));
    }
    if *unconfirmed > problems.len() {
        text.push_str(&format!("and {} others\n", unconfirmed - problems.len()));
    }
    if !saved {
        text.push_str("kept in memory only: a restart of the controller loses them\n");
    }
    text + &notice_line(notice.as_deref())
}

/// The entries, by name. `owner`: only those of this one were asked for.
pub(crate) fn static_entries(rows: &[StaticRow], owner: Option<&str>) -> String {
    if rows.is_empty() {
        return match owner {
            Some(owner) => format!("no static entry has the owner {}\n", printable(owner)),
            None => "there are no static entries\n".to_owned(),
        };
    }
    let row = |row: &StaticRow| {
        vec![
            printable(&row.name),
            named(row.dpid, row.switch_name.as_deref()),
            printable(&what(row)),
            printable(&row.owner),
            row.ttl_seconds.map_or_else(|| "-".to_owned(), duration),
            word(row.state).to_owned(),
            row.why.as_deref().map(printable).unwrap_or_default(),
        ]
    };
    let head = ["ENTRY", "SWITCH", "WHAT", "OWNER", "FOR", "STATE", ""];
    wide_table(&head, &["OWNER", "FOR"], rows.iter().map(row))
}

fn word(state: StaticState) -> &'static str {
    match state {
        StaticState::Installed => "installed",
        StaticState::Pending => "pending",
        StaticState::Waiting => "waiting",
        StaticState::Standby => "standby",
        StaticState::Refused => "REFUSED",
        StaticState::NotKept => "NOT KEPT",
        _ => "unknown",
    }
}

fn what(row: &StaticRow) -> String {
    if let Some(flow) = &row.flow {
        let table = if flow.table == 0 { String::new() } else { format!(" table={}", flow.table) };
        return format!("{}{table} priority={} {}", flow.matching, flow.priority, flow.actions);
    }
    if let Some(group) = &row.group {
        let kind = match group.kind {
            GroupKind::All => "all",
            GroupKind::Select => "select",
            GroupKind::Indirect => "indirect",
            GroupKind::FastFailover => "fast_failover",
        };
        return format!("group {} {kind} buckets={}", group.id, group.buckets.len());
    }
    if let Some(meter) = &row.meter {
        let unit = match meter.unit {
            MeterUnit::Kbps => "kbit/s",
            MeterUnit::Pps => "packets/s",
        };
        let rates: Vec<_> = meter.bands.iter().map(|band| band.rate.to_string()).collect();
        return format!("meter {} {} {unit}", meter.id, rates.join(","));
    }
    String::new()
}
