//! `bellrock quarantine`: arguments, orders and answers.

use bellrock_apps::quarantine::Blocked;
use bellrock_query::{
    Block, BlockGap, BlockGapState, BlockedList, BlockedRow, ListBlocked, Page, QuarantineAnswer,
    Unblock,
};
use bellrock_tools::terminal::named_table;
use clap::{Args, Subcommand};

use super::host;
use crate::Failure;
use crate::ask::{self, Ask};
use crate::show::{named, notice_line, printable};

/// Block hosts at every switch, and let them back
///
/// Needs the app `quarantine` in the chain. With a store, as under systemd and in a cluster, hosts
/// added here stay blocked over a restart; else they are forgotten when the controller ends. Hosts
/// in the file of the app stay.
#[derive(Debug, Args)]
pub(crate) struct QuarantineArgs {
    #[command(subcommand)]
    order: QuarantineOrder,
}

#[derive(Debug, Subcommand)]
enum QuarantineOrder {
    /// Block a host or a prefix
    Add(BlockedHost),
    /// Let an added host or prefix back
    Remove(BlockedHost),
    /// List blocked hosts, and switches that could not block them
    List(Ask),
}

#[derive(Debug, Args)]
struct BlockedHost {
    /// An Ethernet address, an IPv4 or IPv6 address or prefix, or the name of a host
    #[arg(value_parser = host::<Blocked>)]
    host: String,
    #[command(flatten)]
    ask: Ask,
}

/// Gives the order, or lists.
pub(crate) fn run(args: &QuarantineArgs) -> Result<(), Failure> {
    match &args.order {
        QuarantineOrder::Add(BlockedHost { host, ask }) => {
            ask::order(ask, Block { host: host.clone() }, done, problems)
        }
        QuarantineOrder::Remove(BlockedHost { host, ask }) => {
            ask::ask(ask, Unblock { host: host.clone() }, done)
        }
        QuarantineOrder::List(ask) => ask_for_list(ask),
    }
}

/// Asks the controller for all blocked hosts, and prints them.
fn ask_for_list(args: &Ask) -> Result<(), Failure> {
    let client = ask::client(args)?;
    let ask = |skip| client.ask(ListBlocked { page: Page::largest(skip) });
    let mut all: BlockedList = ask(0)?;
    while all.hosts.rows.len() < all.hosts.total {
        let mut next = ask(all.hosts.rows.len())?;
        if next.hosts.rows.is_empty() {
            break;
        }
        all.hosts.rows.append(&mut next.hosts.rows);
    }
    ask::print_answer(args, &all, list)
}

/// What was done.
fn done(answer: &QuarantineAnswer) -> String {
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
fn list(list: &BlockedList) -> String {
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

/// Switches that refuse to block a host, or have not confirmed it in time.
fn problems(answer: &QuarantineAnswer) -> Vec<String> {
    let is_problem = |state| !matches!(state, BlockGapState::Away | BlockGapState::Standby);
    let gaps = answer.gaps.iter().filter(|gap| is_problem(gap.state));
    let host = answer.blocked.as_deref().unwrap_or("the host");
    let line = |gap: &BlockGap| {
        let switch = named(gap.dpid, gap.name.as_deref());
        format!("{host} is not blocked at switch {switch}: {}", gap.why)
    };
    gaps.map(line).collect()
}

#[cfg(test)]
mod tests {
    use bellrock_api::Dpid;
    use bellrock_query::Rows;

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
        list(&BlockedList { hosts, file_problem: None })
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
        assert_eq!(done(&answer), expected);
    }

    #[test]
    fn a_gap_is_a_problem_where_the_switch_is_there() {
        let gap = |state| BlockGap {
            dpid: Dpid(1),
            name: Some("left".to_owned()),
            state,
            why: "so".to_owned(),
        };
        let answer = QuarantineAnswer {
            blocked: Some("10.0.0.7".to_owned()),
            gaps: [BlockGapState::Refused, BlockGapState::Away, BlockGapState::Standby]
                .map(gap)
                .to_vec(),
            ..QuarantineAnswer::default()
        };
        let lines = problems(&answer);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with("10.0.0.7 is not blocked at switch") && lines[0].ends_with(": so")
        );
    }
}
