//! Answers about links that look like relays, and orders about them.

use std::time::Duration;

use bellrock_api::runtime::PromiseFuture;
use bellrock_api::{Names, SwitchPort};
use bellrock_apps::orders::Asked;
use bellrock_query::{ErrorKind, JudgeRelay, Page, QueryError, RelayRow, RelayVerdict, Rows};
use bellrock_services::discovery::{LinkVerdict, Relays, SuspectedLink};

use super::name_of;

pub(super) fn list(asked: &dyn Asked, page: Page) -> Result<Rows<RelayRow>, QueryError> {
    let links = answer(Relays::list(asked.network()), asked)?;
    Ok(Rows::of(links, page).map(|link| row(&link, asked.names(), asked.network().now())))
}

pub(super) fn judge(
    asked: &dyn Asked,
    order: &JudgeRelay,
    ports: [SwitchPort; 2],
) -> Result<RelayRow, QueryError> {
    let verdict = match order.verdict {
        RelayVerdict::Link => Some(LinkVerdict::Link),
        RelayVerdict::Relay => Some(LinkVerdict::Relay),
        RelayVerdict::None => None,
        _ => {
            let why = "`verdict` is `link`, `relay` or `none`";
            return Err(QueryError::invalid("verdict", why));
        }
    };
    let [from, to] = ports;
    if from == to {
        return Err(QueryError::invalid("to", "a link has two different ports"));
    }
    let link = answer(Relays::judge(asked.network(), from, to, verdict), asked)?
        .map_err(|full| QueryError::new(ErrorKind::Refused, full.to_string()))?;
    Ok(row(&link, asked.names(), asked.network().now()))
}

fn answer<T>(answer: Option<PromiseFuture<T>>, asked: &dyn Asked) -> Result<T, QueryError> {
    let why = "discovery does not run, or is too busy; `services: discovery` starts it";
    asked.carried_out(answer.ok_or_else(|| QueryError::new(ErrorKind::Refused, why))?)
}

fn row(link: &SuspectedLink, names: &Names, now: Duration) -> RelayRow {
    let SuspectedLink { from, to, evidence, verdict, is_up } = *link;
    RelayRow {
        from_dpid: from.dpid,
        from_name: name_of(names, from.dpid),
        from_port: from.port,
        to_dpid: to.dpid,
        to_name: name_of(names, to.dpid),
        to_port: to.port,
        evidence: evidence.map(|(why, _)| why.to_string()),
        evidence_seconds: evidence.map(|(_, found)| now.saturating_sub(found).as_secs()),
        verdict: match verdict {
            None => RelayVerdict::None,
            Some(LinkVerdict::Link) => RelayVerdict::Link,
            Some(LinkVerdict::Relay) => RelayVerdict::Relay,
        },
        up: is_up,
    }
}
