//! Orders of operators, and the list of what is blocked.

use std::collections::{BTreeMap, BTreeSet};

use bellrock_api::{Dpid, Names};
use bellrock_query::{
    Answer, Block, BlockGap, BlockGapState, BlockedList, BlockedRow, ErrorKind, MAX_GAPS_SHOWN,
    Page, QuarantineAnswer, QueryError, Request, Rows, Unblock, read_named,
};

use super::{BlockGap as Gap, BlockLists, Blocked, NotChanged};
use crate::orders::{AppOrders, Asked};

impl AppOrders for BlockLists {
    fn answer(&self, request: &Request, asked: &dyn Asked) -> Option<Result<Answer, QueryError>> {
        Some(match request {
            Request::Block(order) => block(self, order, asked).map(Answer::Block),
            Request::Unblock(order) => unblock(self, order, asked).map(Answer::Unblock),
            Request::ListBlocked(query) => Ok(Answer::ListBlocked(list(self, query.page, asked))),
            _ => return None,
        })
    }
}

/// Blocks a host or a prefix, and waits until the switches have confirmed it or refused it.
///
/// # Errors
/// The text is no such address, or the entry cannot be added.
fn block(
    lists: &BlockLists,
    order: &Block,
    asked: &dyn Asked,
) -> Result<QuarantineAnswer, QueryError> {
    let host = parse(&order.host, asked)?;
    stored(lists.block(host), asked)?;
    asked.log(format_args!("an operator blocked {host}"));
    // After a time-out, the gaps name the switches that are late.
    let _ = asked.wait_for(lists.decided(host));
    let finder = GapsFinder::new(lists, asked);
    let (gaps, more_gaps) = finder.shown(&host);
    Ok(QuarantineAnswer {
        blocked: Some(host.to_string()),
        gaps,
        more_gaps,
        at_other_nodes: finder.at_other_nodes.len(),
        notice: asked.notice(),
        ..QuarantineAnswer::default()
    })
}

/// Lets a host or a prefix back.
///
/// # Errors
/// The text is no such address, or no operator has added this entry.
fn unblock(
    lists: &BlockLists,
    order: &Unblock,
    asked: &dyn Asked,
) -> Result<QuarantineAnswer, QueryError> {
    let host = parse(&order.host, asked)?;
    stored(lists.unblock(host), asked)?;
    asked.log(format_args!("an operator let {host} back"));
    let let_back = Some(host.to_string());
    Ok(QuarantineAnswer { let_back, notice: asked.notice(), ..QuarantineAnswer::default() })
}

/// The blocked hosts, and the switches that are not known to block them.
fn list(lists: &BlockLists, page: Page, asked: &dyn Asked) -> BlockedList {
    let finder = GapsFinder::new(lists, asked);
    let hosts = Rows::of(lists.entries(), page).map(|entry| {
        let (gaps, more_gaps) = finder.shown(&entry.blocked);
        BlockedRow {
            host: entry.blocked.to_string(),
            name: match entry.blocked {
                Blocked::Mac(mac) => asked.names().name_of_host(mac).map(str::to_owned),
                _ => None,
            },
            line: entry.line,
            gaps,
            more_gaps,
            at_other_nodes: finder.at_other_nodes.len(),
        }
    });
    BlockedList { hosts, file_problem: lists.file_problem() }
}

/// Finds the switches that are not known to block a host.
struct GapsFinder<'a> {
    lists: &'a BlockLists,
    names: &'a Names,
    up: BTreeSet<Dpid>,
    /// Switches with a name that are connected to no node.
    away: Vec<Dpid>,
    /// Switches at which this controller stands by, without knowing who blocks the host there, and
    /// why.
    standbys: BTreeMap<Dpid, String>,
    /// Switches at which other nodes of the cluster block the host.
    at_other_nodes: BTreeSet<Dpid>,
}

impl<'a> GapsFinder<'a> {
    fn new(lists: &'a BlockLists, asked: &'a dyn Asked) -> Self {
        let at_other_nodes = asked.at_other_nodes();
        let mut standbys = asked.standbys("blocks the host");
        standbys.retain(|dpid, _| !at_other_nodes.contains(dpid));
        let mut away = asked.missing();
        away.retain(|dpid| !at_other_nodes.contains(dpid));
        let up = asked.network().switches().iter().map(|info| info.dpid).collect();
        GapsFinder { lists, names: asked.names(), up, away, standbys, at_other_nodes }
    }

    /// The first [`MAX_GAPS_SHOWN`] switches, and the number of further ones. Those that refuse are
    /// named first, and those that are not here last.
    fn shown(&self, blocked: &Blocked) -> (Vec<BlockGap>, usize) {
        let of_switches = self.lists.gaps(blocked).into_iter();
        // One may have gone down since.
        let of_switches = of_switches.filter(|(dpid, _)| self.up.contains(dpid));
        let of_switches = of_switches.map(|(dpid, gap)| (dpid, state(&gap), gap.to_string()));
        let away = self.away.iter();
        let away =
            away.map(|dpid| (*dpid, BlockGapState::Away, "the switch is not connected".to_owned()));
        let standbys = self.standbys.iter();
        let standbys = standbys.map(|(dpid, why)| (*dpid, BlockGapState::Standby, why.clone()));
        let mut gaps: Vec<_> = of_switches
            .chain(away)
            .chain(standbys)
            .map(|(dpid, state, why)| BlockGap {
                dpid,
                name: self.names.name_of(dpid).map(str::to_owned),
                state,
                why,
            })
            .collect();
        gaps.sort_by_key(|gap| {
            let is_here = !matches!(gap.state, BlockGapState::Away | BlockGapState::Standby);
            (gap.state != BlockGapState::Refused, !is_here, gap.dpid)
        });
        let more = gaps.len().saturating_sub(MAX_GAPS_SHOWN);
        gaps.truncate(MAX_GAPS_SHOWN);
        (gaps, more)
    }
}

fn state(gap: &Gap) -> BlockGapState {
    match gap {
        Gap::Unconfirmed | Gap::Reading | Gap::Failed(_) => BlockGapState::Unconfirmed,
        Gap::Refused(_) | Gap::Unsupported(_) => BlockGapState::Refused,
    }
}

fn parse(host: &str, asked: &dyn Asked) -> Result<Blocked, QueryError> {
    read_named(asked.names(), "host", host, str::parse)
}

/// Waits until a change is stored.
fn stored(
    change: impl Future<Output = Result<(), NotChanged>>,
    asked: &dyn Asked,
) -> Result<(), QueryError> {
    let late = || {
        let why = "the store has not answered yet, and the change is carried out later or not at all: \
                   ask for the list later";
        QueryError::new(ErrorKind::Timeout, why)
    };
    let result = asked.wait_for(change).ok_or_else(late)?;
    result.map_err(|error| not_changed(&error))
}

fn not_changed(error: &NotChanged) -> QueryError {
    let kind = match error {
        NotChanged::NotListed(_) => ErrorKind::NotFound,
        NotChanged::NotStored(_) => ErrorKind::Timeout,
        _ => ErrorKind::Refused,
    };
    QueryError::new(kind, error.to_string()).at("host")
}
