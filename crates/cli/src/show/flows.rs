//! The flows of switches.

use std::fmt::Write;

use bellrock_query::{FlowPage, FlowRow, ListFlows, SwitchFlows};

use super::{duration, named, printable, table, wide_table};

/// The numbers of flows by switch and app.
pub(crate) fn flow_counts(switches: &[SwitchFlows]) -> String {
    if switches.is_empty() {
        return "no switch is up\n".to_owned();
    }
    let rows = switches.iter().flat_map(|switch| {
        let switch_name = named(switch.dpid, switch.name.as_deref());
        let problem = switch.problem.iter().map(|why| printable(why));
        let problem: Vec<_> = problem.map(|why| vec![switch_name.clone(), why]).collect();
        let none = problem.is_empty() && switch.apps.is_empty();
        let none = none.then(|| vec![switch_name.clone(), "no flows".to_owned()]);
        let apps = switch.apps.iter().map(move |app| {
            vec![
                switch_name.clone(),
                name(app.app.as_deref()),
                app.flows.to_string(),
                app.wanted.map_or_else(|| "-".to_owned(), |wanted| wanted.to_string()),
                app.packets.to_string(),
                app.bytes.to_string(),
            ]
        });
        problem.into_iter().chain(none).chain(apps)
    });
    table(&["SWITCH", "APP", "FLOWS", "WANTED", "PACKETS", "BYTES"], rows)
}

fn name(app: Option<&str>) -> String {
    app.map_or_else(|| ListFlows::FOREIGN.to_owned(), printable)
}

/// A page of the flows of a switch.
pub(crate) fn flows(page: &FlowPage) -> String {
    let flows = &page.flows;
    if flows.rows.is_empty() {
        return match flows.total {
            0 => "no such flow is there\n".to_owned(),
            all => format!("no more flows: there are {all}\n"),
        };
    }
    let row = |flow: &FlowRow| {
        let app = match &flow.app {
            Some(app) => printable(app),
            // The cookie may identify the owner.
            None => format!("{} 0x{}", ListFlows::FOREIGN, printable(&flow.cookie)),
        };
        let timeouts = [("idle", flow.idle_timeout_seconds), ("hard", flow.hard_timeout_seconds)];
        let timeouts = timeouts.iter().filter(|(_, seconds)| *seconds != 0);
        vec![
            flow.table.to_string(),
            flow.priority.to_string(),
            app,
            count(flow.packets),
            count(flow.bytes),
            duration(flow.age_seconds.into()),
            timeouts.map(|(what, s)| format!("{what} {s}s")).collect::<Vec<_>>().join(" "),
            printable(&flow.matching),
            printable(&flow.actions),
        ]
    };
    let head =
        ["TABLE", "PRIORITY", "APP", "PACKETS", "BYTES", "AGE", "TIMEOUT", "MATCH", "ACTIONS"];
    let optional = ["AGE", "BYTES", "TIMEOUT", "PACKETS"];
    let mut text = wide_table(&head, &optional, flows.rows.iter().map(row));
    let (last, all) = (flows.skipped + flows.rows.len(), flows.total);
    if flows.rows.len() < all {
        let more = if last < all { format!("; --skip {last} lists more") } else { String::new() };
        let _ = writeln!(text, "(flows {} to {last} of {all}{more})", flows.skipped + 1);
    }
    text
}

/// A counter. `-`: the switch does not keep it.
pub(super) fn count(counter: Option<u64>) -> String {
    counter.map_or_else(|| "-".to_owned(), |counter| counter.to_string())
}
