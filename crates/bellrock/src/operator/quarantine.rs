//! Orders to the app `quarantine`, and its list.

use bellrock_api::Names;
use bellrock_apps::quarantine::{BlockLists, Blocked, NotChanged};
use bellrock_query::{
    Block, BlockGap, BlockedList, BlockedRow, ErrorKind, Page, QuarantineAnswer, QueryError, Rows,
    Unblock,
};
use tracing::info;

use super::{name_of, names};

/// Blocks a host or a prefix.
///
/// # Errors
/// The text is no such address, or the entry cannot be added.
pub(super) fn block(
    lists: &BlockLists,
    names: &Names,
    order: &Block,
) -> Result<QuarantineAnswer, QueryError> {
    let host = parse(names, &order.host)?;
    lists.add(host).map_err(|error| not_changed(&error))?;
    info!("an operator blocked {host}");
    Ok(QuarantineAnswer::Blocked(host.to_string()))
}

/// Lets a host or a prefix back.
///
/// # Errors
/// The text is no such address, or no operator has added this entry.
pub(super) fn unblock(
    lists: &BlockLists,
    names: &Names,
    order: &Unblock,
) -> Result<QuarantineAnswer, QueryError> {
    let host = parse(names, &order.host)?;
    lists.remove(host).map_err(|error| not_changed(&error))?;
    info!("an operator let {host} back");
    Ok(QuarantineAnswer::LetBack(host.to_string()))
}

pub(super) fn list(lists: &BlockLists, names: &Names, page: Page) -> BlockedList {
    let gap = |(dpid, why)| BlockGap { dpid, name: name_of(names, dpid), why };
    let hosts = Rows::of(lists.entries(), page).map(|entry| BlockedRow {
        host: entry.blocked.to_string(),
        name: match entry.blocked {
            Blocked::Mac(mac) => names.name_of_host(mac).map(str::to_owned),
            _ => None,
        },
        line: entry.line,
        gaps: entry.gaps.into_iter().map(gap).collect(),
    });
    BlockedList { hosts, file_problem: lists.file_problem() }
}

fn parse(names: &Names, host: &str) -> Result<Blocked, QueryError> {
    names::read(names, "host", host, str::parse)
}

fn not_changed(error: &NotChanged) -> QueryError {
    let kind = match error {
        NotChanged::NotListed(_) => ErrorKind::NotFound,
        _ => ErrorKind::Refused,
    };
    QueryError::new(kind, error.to_string()).at("host")
}
