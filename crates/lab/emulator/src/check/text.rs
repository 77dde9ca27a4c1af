//! Flow tables and groups as text.

use std::fmt::Write as _;
use std::time::Duration;

use bellrock_openflow::{Instructions, MatchView};

use crate::datapath::flows::{FlowEntry, FlowTable};
use crate::switch::EmulatedSwitch;

/// All flows of a switch, one a line, much as `ovs-ofctl dump-flows` shows them: by table, then by
/// priority (highest first), then by match.
#[must_use]
pub fn dump_flows(switch: &EmulatedSwitch, now: Duration) -> String {
    let tables = switch.datapath().tables().iter();
    tables.map(|(number, table)| dump_table(number, table, now)).collect()
}

/// The flows of one table, as [`dump_flows`] shows them.
#[must_use]
pub fn dump_table(number: u8, table: &FlowTable, now: Duration) -> String {
    let mut lines: Vec<_> = table.flows().map(|(_, flow)| line(number, flow, now)).collect();
    lines.sort_by(|(a, a_match, _), (b, b_match, _)| b.cmp(a).then_with(|| a_match.cmp(b_match)));
    lines.into_iter().map(|(_, _, line)| line + "\n").collect()
}

/// The groups of a switch, one a line, much as `ovs-ofctl dump-groups` shows them, by number.
#[must_use]
pub fn dump_groups(switch: &EmulatedSwitch) -> String {
    let mut text = String::new();
    for (number, group) in switch.datapath().groups().iter() {
        // Writing to a string does not fail.
        let _ = write!(text, "group_id={number},type={}", group.kind);
        for bucket in &group.buckets {
            let _ = write!(text, ",{}", bucket.bucket());
        }
        text.push('\n');
    }
    text
}

/// A flow's priority, match and line.
fn line(table: u8, flow: &FlowEntry, now: Duration) -> (u16, String, String) {
    let matching = MatchView::from(&flow.matching()).to_string();
    let mut line = format!(
        "table={table} priority={} {matching} cookie={:#x} duration={:.3}s packets={} bytes={}",
        flow.priority,
        flow.cookie,
        now.saturating_sub(flow.created).as_secs_f64(),
        flow.packet_count,
        flow.byte_count,
    );
    for (name, seconds) in
        [("idle_timeout", flow.idle_timeout), ("hard_timeout", flow.hard_timeout)]
    {
        if seconds != 0 {
            // Writing to a string does not fail.
            let _ = write!(line, " {name}={seconds}");
        }
    }
    let instructions = flow.program.instructions();
    let _ = write!(line, " {}", Instructions::of(&instructions));
    (flow.priority, matching, line)
}
