//! Flows of apps that do not run.

use std::fmt::Write;

use bellrock_query::{CleanAnswer, SwitchOrphans};

use super::{named, printable, wide_table};

/// The flows of switches whose apps do not run here.
pub(crate) fn orphans(switches: &[SwitchOrphans]) -> String {
    let is_shown = |switch: &&SwitchOrphans| switch.problem.is_some() || !switch.apps.is_empty();
    let shown: Vec<_> = switches.iter().filter(is_shown).collect();
    if shown.is_empty() {
        return "no switch has flows of apps that do not run here\n".to_owned();
    }
    let rows = shown.iter().flat_map(|switch| {
        let name = named(switch.dpid, switch.name.as_deref());
        switch.flows.iter().map(move |flow| {
            vec![
                name.clone(),
                flow.app.as_deref().map(printable).unwrap_or_default(),
                flow.table.to_string(),
                flow.priority.to_string(),
                printable(&flow.matching),
                printable(&flow.actions),
            ]
        })
    });
    let head = ["SWITCH", "APP", "TABLE", "PRIORITY", "MATCH", "ACTIONS"];
    let mut text = wide_table(&head, &["TABLE", "ACTIONS"], rows);
    for switch in shown {
        let name = named(switch.dpid, switch.name.as_deref());
        let all: u64 = switch.apps.iter().map(|app| app.flows).sum();
        let more = all.saturating_sub(switch.flows.len() as u64);
        if more > 0 {
            let _ = writeln!(text, "switch {name}: {more} more flows");
        }
        if let Some(why) = &switch.problem {
            let _ = writeln!(text, "switch {name}: {}", printable(why));
        }
    }
    text
}

/// What was removed.
pub(crate) fn cleaned(answer: &CleanAnswer) -> String {
    let flows = if answer.removed == 1 { "flow" } else { "flows" };
    let mut text = format!("{} {flows} removed\n", answer.removed);
    for switch in &answer.switches {
        let name = named(switch.dpid, switch.name.as_deref());
        for app in &switch.apps {
            let _ = writeln!(text, "switch {name}: {} of {}", app.flows, printable(&app.app));
        }
    }
    text
}

/// What was not removed.
pub(crate) fn not_cleaned(answer: &CleanAnswer) -> Vec<String> {
    let problem = |switch: &SwitchOrphans| {
        let name = named(switch.dpid, switch.name.as_deref());
        switch.problem.as_ref().map(|why| format!("switch {name}: {}", printable(why)))
    };
    answer.switches.iter().filter_map(problem).collect()
}
