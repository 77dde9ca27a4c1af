//! The hosts that the app `quarantine` blocks.

use bellrock_query::{BlockedList, BlockedRow, QuarantineAnswer};

use super::{named, named_table, printable};

/// What was done.
pub(crate) fn quarantine(answer: &QuarantineAnswer) -> String {
    match answer {
        QuarantineAnswer::Blocked(host) => format!("{} is blocked\n", printable(host)),
        QuarantineAnswer::LetBack(host) => format!("{} is let back\n", printable(host)),
    }
}

/// The blocked hosts.
pub(crate) fn blocked(list: &BlockedList) -> String {
    let row = |row: &BlockedRow| {
        let source =
            row.line.map_or_else(|| "added".to_owned(), |line| format!("file, line {line}"));
        let gaps = row.gaps.iter();
        let gaps: Vec<String> = gaps
            .map(|gap| format!("{}: {}", named(gap.dpid, gap.name.as_deref()), gap.why))
            .collect();
        vec![printable(&row.host), source, printable(&gaps.join("; "))]
    };
    let mut text = match list.hosts.rows[..] {
        [] => "nobody is blocked\n".to_owned(),
        _ => {
            let rows = list.hosts.rows.iter().map(|entry| (entry.name.as_deref(), row(entry)));
            named_table(&["BLOCKED", "BY", "NOT AT"], rows)
        }
    };
    for line in list.file_problem.iter().flat_map(|problem| problem.lines()) {
        text.push_str(&format!("not in force: {}\n", printable(line)));
    }
    text
}
