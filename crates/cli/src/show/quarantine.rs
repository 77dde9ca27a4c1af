//! The hosts that the app `quarantine` blocks.

use bellrock_query::{BlockGap, BlockedList, BlockedRow, QuarantineAnswer};

use super::{named, named_table, notice_line, printable};

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
    match answer.at_other_nodes {
        0 => {}
        1 => text.push_str("at 1 switch by another node, whose list has its state\n"),
        n => {
            let line = format!("at {n} switches by other nodes, whose lists have their states\n");
            text.push_str(&line);
        }
    }
    text + &notice_line(answer.notice.as_deref())
}

/// The blocked hosts.
pub(crate) fn blocked(list: &BlockedList) -> String {
    let rows = &list.hosts.rows;
    // A controller alone has no other nodes.
    let has_others = rows.iter().any(|row| row.at_other_nodes > 0);
    let row = |row: &BlockedRow| {
        let source =
            row.line.map_or_else(|| "added".to_owned(), |line| format!("file, line {line}"));
        let others = has_others.then(|| row.at_other_nodes.to_string());
        let gaps = printable(&gaps(&row.gaps, row.more_gaps).join("; "));
        [printable(&row.host), source].into_iter().chain(others).chain([gaps]).collect()
    };
    let head: &[&str] = match has_others {
        true => &["BLOCKED", "BY", "AT OTHER NODES", "NOT AT"],
        false => &["BLOCKED", "BY", "NOT AT"],
    };
    let mut text = match rows[..] {
        [] => "nobody is blocked\n".to_owned(),
        _ => named_table(head, &[], rows.iter().map(|entry| (entry.name.as_deref(), row(entry)))),
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

#[cfg(test)]
mod tests {
    use bellrock_api::Dpid;
    use bellrock_query::{BlockGapState, Page, Rows};

    use super::*;

    fn row(host: &str, at_other_nodes: usize) -> BlockedRow {
        let gap = BlockGap {
            dpid: Dpid(1),
            name: Some("left".to_owned()),
            state: BlockGapState::Refused,
            why: "its table is full".to_owned(),
        };
        let gaps = if host == "10.0.0.7" { vec![gap] } else { vec![] };
        let host = host.to_owned();
        BlockedRow { host, name: None, line: None, gaps, more_gaps: 0, at_other_nodes }
    }

    fn shown(rows: Vec<BlockedRow>) -> String {
        let hosts = Rows::of(rows, Page::default());
        blocked(&BlockedList { hosts, file_problem: None })
    }

    #[test]
    fn switches_of_other_nodes_are_counted_and_have_a_column_in_a_cluster_only() {
        let text = shown(vec![row("10.0.0.7", 2), row("10.0.0.8", 2)]);
        let expected = "\
BLOCKED   BY     AT OTHER NODES  NOT AT
10.0.0.7  added  2               left: its table is full
10.0.0.8  added  2
";
        assert_eq!(text, expected);
        assert!(!shown(vec![row("10.0.0.7", 0)]).contains("OTHER"));
    }

    #[test]
    fn an_answer_to_an_order_names_other_nodes_and_its_notice() {
        let answer = QuarantineAnswer {
            blocked: Some("10.0.0.7".to_owned()),
            at_other_nodes: 2,
            notice: Some("this node does not serve".to_owned()),
            ..QuarantineAnswer::default()
        };
        let expected = "\
10.0.0.7 is blocked
at 2 switches by other nodes, whose lists have their states
note: this node does not serve
";
        assert_eq!(quarantine(&answer), expected);
    }
}
