//! Prints answers of a controller as aligned tables.
//!
//! Text from switches must not control a terminal: every character that is not a letter, a digit,
//! punctuation or a plain space is written as an escape.

mod cluster;
mod flows;
mod hosts;
mod identities;
mod latencies;
mod messages;
mod network;
mod orphans;
mod ports;
mod relays;
mod static_entries;

use std::fmt::Write;

use bellrock_api::Dpid;
use bellrock_engine::{COUNTERS, TASK_COUNTERS};
use bellrock_query::{
    AppRow, AppScope, CounterMeaning, CounterPart, Counters, IdentityRow, MissingSwitch, PortState,
    ReloadAnswer, RenewedFileRow, SettingChangeRow, Status, SwitchRow, TaskRow, TaskState,
};

use bellrock_tools::terminal::{named_table, wide_table};
pub(crate) use bellrock_tools::terminal::{printable, table};
pub(crate) use cluster::{cluster, cluster_switches, shared_config};
pub(crate) use flows::{flow_counts, flows};
pub(crate) use hosts::hosts;
pub(crate) use identities::identities;
pub(crate) use latencies::latencies;
pub(crate) use messages::{outcomes, reply};
pub(crate) use network::{event, events, links, no_links, topology};
pub(crate) use orphans::{cleaned, not_cleaned, orphans};
pub(crate) use ports::ports;
pub(crate) use relays::relays;
pub(crate) use static_entries::{static_answer, static_entries};

/// Maximum number of missing switches whose names are printed.
const MAX_MISSING_SHOWN: usize = 10;

/// The controller as a whole.
pub(crate) fn status(status: &Status) -> String {
    let plain = status.listen.iter().map(ToString::to_string);
    let tls = status.listen_tls.iter().map(|address| format!("tls:{address}"));
    let listen: Vec<_> = plain.chain(tls).collect();
    let mut rows = vec![
        ("version", printable(&status.version)),
        ("process", status.pid.to_string()),
        ("up for", duration(status.uptime_seconds)),
        ("listening on", listen.join(", ")),
        ("apps", printable(&status.apps.join(", "))),
        ("workers", status.workers.to_string()),
        ("switches", switch_count(status)),
        ("connections", connection_count(status)),
    ];
    // Without host tracking apps may know hosts all the same.
    if status.hosts > 0 {
        rows.push(("hosts", status.hosts.to_string()));
    }
    if let Some(end) = status.tls_certificate_expiry {
        rows.push(("certificate", format!("until {}", date(end))));
    }
    if let Some(tables) = &status.table_memory {
        let text = format!(
            "{} of {}, {} in huge pages",
            mebibytes(tables.table_memory_used_bytes),
            mebibytes(tables.table_memory_limit_bytes),
            mebibytes(tables.table_memory_huge_page_bytes)
        );
        rows.push(("table memory", text));
    }
    rows.into_iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:14}{value}");
        text
    })
}

/// An amount of memory, rounded up to tenths of MiB.
fn mebibytes(bytes: usize) -> String {
    let tenths = (bytes * 10).div_ceil(1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// Connections now, and those since the start. One whose datapath id was taken is refused too.
fn connection_count(status: &Status) -> String {
    let Status { connections, accepted, refused, duplicates_refused: duplicates, .. } = status;
    let accepted = accepted.saturating_sub(*duplicates);
    let why = match duplicates {
        0 => String::new(),
        n => format!(", {n} of them because their datapath id is connected already"),
    };
    let refused = refused.saturating_add(*duplicates);
    format!("{connections} ({accepted} accepted, {refused} refused{why})")
}

/// Number of switches, and the names of those that are missing.
fn switch_count(status: &Status) -> String {
    let missing = status.missing_switches.iter();
    let missing: Vec<_> = missing.map(|row| named(row.dpid, row.name.as_deref())).collect();
    match &missing[..] {
        [] => status.switches.to_string(),
        names => {
            let shown = names[..names.len().min(MAX_MISSING_SHOWN)].join(", ");
            let others = match names.len().saturating_sub(MAX_MISSING_SHOWN) {
                0 => String::new(),
                1 => " and 1 other".to_owned(),
                n => format!(" and {n} others"),
            };
            format!("{}; missing: {shown}{others}", status.switches)
        }
    }
}

/// The switches that are up, and those that are missing.
pub(crate) fn switches(switches: &[SwitchRow], missing: &[MissingSwitch]) -> String {
    let up = match switches {
        [] => "no switch is connected\n".to_owned(),
        switches => connected(switches),
    };
    if missing.is_empty() {
        return up;
    }
    let since = |row: &MissingSwitch| match row.lost_seconds {
        Some(seconds) => format!("{} ago", duration(seconds)),
        None => "not seen since the controller started".to_owned(),
    };
    let row = |row: &MissingSwitch| vec![row.dpid.to_string(), since(row)];
    let rows = missing.iter().map(|it| (it.name.as_deref(), row(it)));
    format!("{up}\nNot connected:\n{}", named_table(&["DPID", "LOST"], &[], rows))
}

fn connected(switches: &[SwitchRow]) -> String {
    let row = |switch: &SwitchRow| {
        vec![
            switch.dpid.to_string(),
            switch.version.to_string(),
            switch.peer.to_string(),
            identity(switch),
            role(switch),
            duration(switch.up_seconds),
            format!(
                "{}/{}",
                switch.ports.iter().filter(|port| port.state == PortState::Up).count(),
                switch.ports.len()
            ),
            said(&switch.software),
            said(&switch.description),
            problems(switch),
        ]
    };
    let head = [
        "DPID",
        "OPENFLOW",
        "PEER",
        "CERTIFICATE",
        "ROLE",
        "FOR",
        "PORTS UP",
        "SOFTWARE",
        "DESCRIPTION",
        "PROBLEMS",
    ];
    let optional =
        ["SOFTWARE", "DESCRIPTION", "CERTIFICATE", "OPENFLOW", "PEER", "ROLE", "PORTS UP", "FOR"];
    let rows = switches.iter().map(|switch| (switch.name.as_deref(), row(switch)));
    named_table(&head, &optional, rows)
}

/// What a switch says of itself; `-` for nothing.
fn said(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { printable(text) }
}

/// The controller's role at a switch, and the node that the switch obeys instead.
fn role(switch: &SwitchRow) -> String {
    match &switch.master {
        _ if !switch.standby => switch.role.to_string(),
        Some(node) => format!("{}, stands by for {}", switch.role, printable(node)),
        None => format!("{}, stands by", switch.role),
    }
}

/// Name and last day of a switch's certificate, and its session; `-` for a plain connection.
fn identity(switch: &SwitchRow) -> String {
    let Some(IdentityRow { name, expiry, protocol, cipher, .. }) = &switch.identity else {
        return "-".to_owned();
    };
    printable(&format!("{name} until {} ({protocol}, {cipher})", date(*expiry)))
}

/// The day of a time in seconds since 1970.
fn date(seconds: i64) -> String {
    let time = time::OffsetDateTime::from_unix_timestamp(seconds);
    time.map_or_else(|_| "?".to_owned(), |time| time.date().to_string())
}

/// Seconds before the end of a certificate from which on it is a problem.
const EXPIRY_AHEAD_S: i64 = 30 * 86_400;

/// Problems of a switch; `-` for none.
fn problems(switch: &SwitchRow) -> String {
    let refused = switch.refused_flows.iter();
    let refused = refused.map(|it| printable(&format!("{} refused: {}", it.flow, it.reason)));
    let missing = switch.missing_entries.iter();
    let missing =
        missing.map(|it| printable(&format!("entries of {} missing: {}", it.app, it.reason)));
    let now = time::OffsetDateTime::now_utc().unix_timestamp();
    let expires = |identity: &&IdentityRow| identity.expiry < now.saturating_add(EXPIRY_AHEAD_S);
    let expires = switch.identity.as_ref().filter(expires);
    let expires = expires.map(|_| "its certificate expires soon".to_owned());
    let ports = &switch.unannounced_ports;
    let unannounced = (!ports.is_empty()).then(|| match &ports[..] {
        [port] => format!("announcements refused at port {}", printable(port)),
        _ => format!("announcements refused at {} ports", ports.len()),
    });
    let all: Vec<String> = refused.chain(missing).chain(unannounced).chain(expires).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// The apps of the chain, in order.
pub(crate) fn apps(apps: &[AppRow]) -> String {
    let row = |app: &AppRow| {
        vec![
            printable(&app.name),
            format!("{}-{}", app.lowest_priority, app.highest_priority),
            format!("0x{}00000000", printable(&app.cookie)),
            runs(app),
            app.panics.to_string(),
            app.errors.to_string(),
            if app.disabled { "DISABLED" } else { "" }.to_owned(),
            over_budget(app),
            printable(app.last_error.as_deref().unwrap_or_default()),
        ]
    };
    let head = [
        "APP",
        "PRIORITIES",
        "COOKIES",
        "RUNS",
        "PANICS",
        "ERRORS",
        "",
        "OVER BUDGET",
        "LAST ERROR",
    ];
    wide_table(&head, &["COOKIES", "PRIORITIES", "PANICS"], apps.iter().map(row))
}

/// Where the background tasks of an app run.
fn runs(app: &AppRow) -> String {
    match (app.scope, &app.leader) {
        (AppScope::PerSwitch, _) => "per switch".to_owned(),
        (AppScope::Once, None) => "once".to_owned(),
        (AppScope::Once, Some(leader)) => format!("once, at {}", printable(leader)),
        _ => "unknown".to_owned(),
    }
}

/// How often an app has exceeded its budgets; `-` for never.
fn over_budget(app: &AppRow) -> String {
    let budgets = [
        (app.blocked, "late events"),
        (app.refused, "refused"),
        (app.message_excesses, "seconds of too many messages"),
        (app.tables.map_or(0, |tables| tables.refusals), "times no table memory"),
    ];
    let exceeded = budgets.iter().filter(|(n, _)| *n > 0);
    let all: Vec<String> = exceeded.map(|(n, what)| format!("{n} {what}")).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// The background tasks of the apps.
pub(crate) fn tasks(tasks: &[TaskRow]) -> String {
    if tasks.is_empty() {
        return "no app runs a task\n".to_owned();
    }
    let row = |task: &TaskRow| {
        let state = match task.state {
            TaskState::Waiting => "waiting",
            TaskState::Ready => "ready",
            TaskState::Running => "running",
            TaskState::Panicked => "panicked",
            _ => "unknown",
        };
        vec![
            printable(&task.app),
            printable(&task.name),
            state.to_owned(),
            duration(task.age_seconds),
            task.turns.to_string(),
            format!("{:.3}s", task.busy_microseconds as f64 / 1e6),
            task.panic.as_deref().map(printable).unwrap_or_default(),
        ]
    };
    let head = ["APP", "TASK", "STATE", "AGE", "TURNS", "TIME", ""];
    table(&head, tasks.iter().map(row))
}

/// All counters: sums of the workers in the order of the manual, then of the tasks and the apps.
pub(crate) fn counters(counters: &Counters) -> String {
    let sum =
        |name: &str| counters.workers.iter().filter_map(|worker| worker.get(name)).sum::<u64>();
    let of_workers =
        COUNTERS.iter().map(|(name, _)| vec![(*name).to_owned(), sum(name).to_string()]);
    let mut text = table(&["WORKERS", "SUM"], of_workers);
    let of_tasks = TASK_COUNTERS.iter().map(|(name, _)| {
        let n = counters.tasks.get(*name).copied().unwrap_or_default();
        vec![(*name).to_owned(), n.to_string()]
    });
    text.push('\n');
    text.push_str(&table(&["TASKS", "SUM"], of_tasks));
    if !counters.http.is_empty() {
        let rows = counters.http.iter().map(|(name, n)| vec![printable(name), n.to_string()]);
        text.push('\n');
        text.push_str(&table(&["HTTP", "SUM"], rows));
    }
    for (app, values) in &counters.apps {
        let rows = values.iter().map(|(name, n)| vec![printable(name), n.to_string()]);
        text.push('\n');
        text.push_str(&table(&[&printable(app).to_uppercase(), "SUM"], rows));
    }
    text
}

/// What a reload has changed.
pub(crate) fn reload(answer: &ReloadAnswer) -> String {
    // Each says that it is a warning, and where.
    let warnings = answer.warnings.iter().map(|warning| format!("{warning}\n"));
    let mut text: String = warnings.collect();
    for change in &answer.changes {
        let SettingChangeRow { setting, before, after, needs_restart } = change;
        let when = if *needs_restart { " (needs a restart)" } else { "" };
        let what = match (before, after) {
            (Some(before), Some(after)) => format!("{before} -> {after}"),
            (None, Some(after)) => format!("added {after}"),
            (Some(before), None) => format!("removed {before}"),
            (None, None) => String::new(),
        };
        text.push_str(&format!("{setting}: {what}{when}\n"));
    }
    for RenewedFileRow { setting, path } in &answer.renewed {
        text.push_str(&format!("{setting}: {path} is renewed\n"));
    }
    let text: String = text.lines().map(|line| printable(line) + "\n").collect();
    let renewed = match answer.renewed.len() {
        0 => String::new(),
        n => format!("; renewed files: {n}"),
    };
    let end = match (answer.applied, answer.changes.len()) {
        (true, 0) => format!("no setting has changed{renewed}"),
        (true, n) => format!("changes in force: {n}{renewed}"),
        (false, 0) if answer.renewed.is_empty() => "no setting has changed".to_owned(),
        (false, n) => format!("changes: {n}{renewed}; nothing was changed"),
    };
    format!("{text}{end}\n{}", notice_line(answer.notice.as_deref()))
}

/// What an answer says besides its result.
pub(crate) fn notice_line(notice: Option<&str>) -> String {
    notice.map(|notice| format!("note: {}\n", printable(notice))).unwrap_or_default()
}

/// What each counter counts.
pub(crate) fn meanings(rows: &[CounterMeaning]) -> String {
    let row = |row: &CounterMeaning| {
        let part = match (row.part, &row.app) {
            (CounterPart::Workers, _) => "workers",
            (CounterPart::Tasks, _) => "tasks",
            (CounterPart::Http, _) => "http",
            (CounterPart::Switches, _) => "switches",
            (_, Some(app)) => app,
            (_, None) => "-",
        };
        vec![printable(part), printable(&row.name), printable(&row.meaning)]
    };
    table(&["OF", "COUNTER", "COUNTS"], rows.iter().map(row))
}

/// The name of a switch if it has one, else its datapath id.
pub(crate) fn named(dpid: Dpid, name: Option<&str>) -> String {
    name.map_or_else(|| dpid.to_string(), printable)
}

/// Formats seconds: `42s`, `3m 5s`, `2h 10m`, `12d 4h`.
pub(crate) fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match () {
        () if days > 0 => format!("{days}d {}h", hours % 24),
        () if hours > 0 => format!("{hours}h {}m", minutes % 60),
        () if minutes > 0 => format!("{minutes}m {}s", seconds % 60),
        () => format!("{seconds}s"),
    }
}

/// Formats JSON, indented and in ASCII. Other characters become `\u` escapes.
pub(crate) fn json(value: &serde_json::Value) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    let mut ascii = String::with_capacity(text.len() + 1);
    for char in text.chars() {
        // DEL is the one control character that serde_json does not escape.
        if char.is_ascii() && char != '\x7f' {
            ascii.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            let _ = write!(ascii, "\\u{unit:04x}");
        }
    }
    ascii.push('\n');
    Ok(ascii)
}

#[cfg(test)]
mod tests {
    use bellrock_query::{MissingEntriesRow, RefusedFlowRow};

    use super::*;

    #[test]
    fn text_of_switches_cannot_command_a_terminal() {
        let evil = "ovs\x1b[2J\u{9b}31m\u{202e}x\n\t\x7f é\\";
        let shown = printable(evil);
        assert_eq!(shown, "ovs\\u{1b}[2J\\u{9b}31m\\u{202e}x\\n\\t\\u{7f} é\\");
        let json = json(&serde_json::json!({ "software": evil, "emoji": "🦀" })).unwrap();
        assert!(json.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{json}");
        let back: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((back["software"].as_str(), back["emoji"].as_str()), (Some(evil), Some("🦀")));
    }

    #[test]
    fn missing_switches_are_listed_with_when_they_were_lost() {
        let row = |name: Option<&str>, dpid, lost_seconds| MissingSwitch {
            name: name.map(str::to_owned),
            dpid: Dpid(dpid),
            lost_seconds,
        };
        let rows =
            [row(Some("core-3"), 3, Some(185)), row(None, 4, Some(5)), row(Some("x"), 5, None)];
        let expected = "no switch is connected\n\nNot connected:\n\
                        NAME    DPID              LOST\n\
                        core-3  0000000000000003  3m 5s ago\n\
                        -       0000000000000004  5s ago\n\
                        x       0000000000000005  not seen since the controller started\n";
        assert_eq!(switches(&[], &rows), expected);
        assert_eq!(switches(&[], &[]), "no switch is connected\n");
    }

    #[test]
    fn the_problems_of_a_switch_name_refused_flows_missing_entries_and_ports() {
        let row = serde_json::json!({
            "dpid": "0000000000000001", "version": "1.3", "role": "master", "standby": false,
            "peer": "127.0.0.1:40000", "up_seconds": 7, "n_tables": 4, "n_buffers": 0,
            "manufacturer": "", "hardware": "", "software": "", "serial_number": "",
            "description": "", "ports": [],
        });
        let mut row: SwitchRow = serde_json::from_value(row).unwrap();
        assert_eq!(problems(&row), "-");
        row.refused_flows =
            vec![RefusedFlowRow { flow: "table-miss".into(), reason: "its table is full".into() }];
        let reason = "the switch does not keep it".to_owned();
        row.missing_entries = vec![MissingEntriesRow { app: "static".into(), reason }];
        row.unannounced_ports = vec!["7".into()];
        assert_eq!(
            problems(&row),
            "table-miss refused: its table is full, entries of static missing: the switch does not \
             keep it, announcements refused at port 7"
        );
    }

    #[test]
    fn durations_have_two_units_at_most() {
        let shown =
            [(0, "0s"), (59, "59s"), (185, "3m 5s"), (7_800, "2h 10m"), (1_051_200, "12d 4h")];
        for (seconds, text) in shown {
            assert_eq!(duration(seconds), text);
        }
    }
}
