//! Orders to the app `quarantine`, and its list.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bellrock_api::{Dpid, Names};
use bellrock_apps::quarantine::{BlockGap as Gap, BlockLists, Blocked, NotChanged};
use bellrock_query::{
    Block, BlockGap, BlockGapState, BlockedList, BlockedRow, ErrorKind, MAX_GAPS_SHOWN, Page,
    QuarantineAnswer, QueryError, Rows, Unblock,
};
use tracing::info;

use super::wait::wait_until;
use super::{ControllerOperator, ORDER_TIMEOUT, name_of, names};

impl ControllerOperator {
    /// Blocks a host or a prefix, and waits until the switches have confirmed it or refused it.
    ///
    /// # Errors
    /// The text is no such address, or the entry cannot be added.
    pub(super) fn block(
        &self,
        names: &Names,
        order: &Block,
    ) -> Result<QuarantineAnswer, QueryError> {
        let lists = self.block_lists()?;
        let host = parse(names, &order.host)?;
        stored(lists.block(host))?;
        info!("an operator blocked {host}");
        // After a time-out, the gaps name the switches that are late.
        let _ = wait_until(Instant::now() + ORDER_TIMEOUT, lists.decided(host));
        let finder = self.gaps_finder(lists, names);
        let (gaps, more_gaps) = finder.shown(&host);
        Ok(QuarantineAnswer {
            blocked: Some(host.to_string()),
            gaps,
            more_gaps,
            at_other_nodes: finder.at_other_nodes.len(),
            notice: self.notice(),
            ..QuarantineAnswer::default()
        })
    }

    /// Lets a host or a prefix back.
    ///
    /// # Errors
    /// The text is no such address, or no operator has added this entry.
    pub(super) fn unblock(
        &self,
        names: &Names,
        order: &Unblock,
    ) -> Result<QuarantineAnswer, QueryError> {
        let lists = self.block_lists()?;
        let host = parse(names, &order.host)?;
        stored(lists.unblock(host))?;
        info!("an operator let {host} back");
        let let_back = Some(host.to_string());
        Ok(QuarantineAnswer { let_back, notice: self.notice(), ..QuarantineAnswer::default() })
    }

    /// The blocked hosts, and the switches that are not known to block them.
    ///
    /// # Errors
    /// The app does not run.
    pub(super) fn list_blocked(
        &self,
        names: &Names,
        page: Page,
    ) -> Result<BlockedList, QueryError> {
        let lists = self.block_lists()?;
        let finder = self.gaps_finder(lists, names);
        let hosts = Rows::of(lists.entries(), page).map(|entry| {
            let (gaps, more_gaps) = finder.shown(&entry.blocked);
            BlockedRow {
                host: entry.blocked.to_string(),
                name: match entry.blocked {
                    Blocked::Mac(mac) => names.name_of_host(mac).map(str::to_owned),
                    _ => None,
                },
                line: entry.line,
                gaps,
                more_gaps,
                at_other_nodes: finder.at_other_nodes.len(),
            }
        });
        Ok(BlockedList { hosts, file_problem: lists.file_problem() })
    }

    fn gaps_finder<'a>(&self, lists: &'a BlockLists, names: &'a Names) -> GapsFinder<'a> {
        let at_other_nodes: BTreeSet<Dpid> = self.at_other_nodes().into_keys().collect();
        let mut standbys = self.standbys(names, "blocks the host");
        standbys.retain(|dpid, _| !at_other_nodes.contains(dpid));
        let mut away = super::missing::named(self, names);
        away.retain(|dpid| !at_other_nodes.contains(dpid));
        let up = self.network.switches().iter().map(|info| info.dpid).collect();
        GapsFinder { lists, names, up, away, standbys, at_other_nodes }
    }
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

impl GapsFinder<'_> {
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
                name: name_of(self.names, dpid),
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

fn parse(names: &Names, host: &str) -> Result<Blocked, QueryError> {
    names::read(names, "host", host, str::parse)
}

/// Waits until a change is stored.
fn stored(change: impl Future<Output = Result<(), NotChanged>>) -> Result<(), QueryError> {
    let late = || {
        let why = "the store has not answered yet, and the change is carried out later or not at all: \
                   ask for the list later";
        QueryError::new(ErrorKind::Timeout, why)
    };
    let result = wait_until(Instant::now() + ORDER_TIMEOUT, change).ok_or_else(late)?;
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
