//! The hosts that the app `quarantine` blocks.

use bellrock_query::{BlockGap, BlockedList, BlockedRow, QuarantineAnswer};

use super::{named, named_table, printable};

/// What was done.
pub(crate) fn quarantine(answer: &QuarantineAnswer) -> String {
    let mut text = String::new();
    if let Some(host) = &answer.blocked {
        text.push_str(&format!("{} is blocked\n", printable(host)));
    }
    if let Some(host) = &answer.let_back {
        text.push_str(&format!("{} is let back\n", printable(host)));
    }
    for gap in gaps(&answer.gaps, answer.more_gaps) {
        text.push_str(&format!("not at {}\n", printable(&gap)));
    }
    text
}

/// The blocked hosts.
pub(crate) fn blocked(list: &BlockedList) -> String {
    let row = |row: &BlockedRow| {
        let source =
            row.line.map_or_else(|| "added".to_owned(), |line| format!("file, line {line}"));
        let gaps = gaps(&row.gaps, row.more_gaps).join("; ");
        vec![printable(&row.host), source, printable(&gaps)]
    };
    let mut text = match list.hosts.rows[..] {
        [] => "nobody is blocked\n".to_owned(),
        _ => {
            let rows = list.hosts.rows.iter().map(|entry| (entry.name.as_deref(), row(entry)));
            named_table(&["BLOCKED", "BY", "NOT AT"], &[], rows)
        }
    };
    for line in list.file_problem.iter().flat_map(|problem| problem.lines()) {
        text.push_str(&format!("not in force: {}\n", printable(line)));
    }
    text
}

/// The switches that are not known to block a host, each with the reason.
fn gaps(gaps: &[BlockGap], more: usize) -> Vec<String> {
    let text = |gap: &BlockGap| format!("{}: {}", named(gap.dpid, gap.name.as_deref()), gap.why);
    let more = (more > 0).then(|| format!("{more} more switches"));
    gaps.iter().map(text).chain(more).collect()
}
