//! Flows of apps that do not run here any more.
//!
//! The cookie of a flow names its app, and is derived from the app's name. So the flows of an app
//! that was taken out of the chain are found by the names of all apps that come with Bellrock, and
//! by a name that the operator gives. Flows with other cookies belong to other controllers, or to
//! nobody: they are never listed here, and never removed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

use bellrock_api::openflow::{FlowMod, FlowStats, MAX_MESSAGE_LEN, Out};
use bellrock_api::runtime::RawMessages as _;
use bellrock_api::{Cookie, Dpid, Names, Network, ReplyBody, ToSwitch, Version};
use bellrock_apps::NAMES;
use bellrock_query::{
    CleanAnswer, FlowRow, ListFlows, MAX_MESSAGES, MAX_ORPHANS_SHOWN, OrphansOfApp, QueryError,
    Rows, SwitchOrphans,
};
use bellrock_services::desired::OperatorChange;

use super::ask::{Reported, ask_each};
use super::flows::{ask, flows_of, row};
use super::wait::wait_until;
use super::{ORDER_TIMEOUT, name_of};

/// The cookies of apps that do not run here.
pub(super) struct OrphanApps(Vec<(String, Cookie)>);

impl OrphanApps {
    /// Those of all apps that come with Bellrock, or `app`: only the app with this name.
    ///
    /// # Errors
    /// The app runs here.
    pub(super) fn new(network: &Network, app: Option<&str>) -> Result<Self, QueryError> {
        let runs = |app: &str| app == ListFlows::CONTROLLER || network.apps().any(|it| it == app);
        let names: Vec<String> = match app {
            Some(app) if runs(app) => {
                let why = format!("{app} runs here, and removes its flows itself");
                return Err(QueryError::invalid("app", why));
            }
            Some(app) => vec![app.to_owned()],
            None => NAMES.into_iter().filter(|app| !runs(app)).map(str::to_owned).collect(),
        };
        let with_cookie = |name: String| {
            let cookie = Cookie::of_app(&name);
            (name, cookie)
        };
        Ok(OrphanApps(names.into_iter().map(with_cookie).collect()))
    }

    fn of_flow(&self, flow: &FlowStats<'_>) -> Option<(&str, Cookie)> {
        let (name, cookie) = self.0.iter().find(|(_, cookie)| cookie.owns_flow(flow))?;
        Some((name, *cookie))
    }
}

/// The orphans of a switch.
#[derive(Default)]
struct Found {
    apps: BTreeMap<String, u64>,
    rows: Vec<FlowRow>,
    /// Messages that remove them, at most [`MAX_MESSAGES`].
    removals: Vec<Box<[u8]>>,
    /// Number of flows.
    flows: usize,
}

/// Lists the orphans of these switches.
pub(super) fn list(
    network: &Network,
    names: &Names,
    apps: &OrphanApps,
    dpids: Rows<Dpid>,
) -> Rows<SwitchOrphans> {
    let mut found = find(network, apps, &dpids.rows).into_iter();
    dpids.map(|dpid| {
        let found = found.next().unwrap_or_else(|| Ok(Found::default()));
        shown(names, dpid, found).0
    })
}

/// Removes the orphans of these switches.
pub(super) fn clean(
    network: &Network,
    names: &Names,
    apps: &OrphanApps,
    dpids: &[Dpid],
) -> CleanAnswer {
    let mut answer = CleanAnswer::default();
    let mut under_way = Vec::new();
    for (dpid, found) in dpids.iter().zip(find(network, apps, dpids)) {
        let (mut row, found) = shown(names, *dpid, found);
        let Some(found) = found.filter(|found| found.flows > 0) else {
            answer.switches.extend(row.problem.is_some().then_some(row));
            continue;
        };
        let left = found.flows - found.removals.len();
        if left > 0 {
            let why = format!("{left} more flows are left; give the order again");
            row.problem = Some(why);
        }
        // Apps read their tables when this is dropped.
        let change = OperatorChange::begin(network, *dpid);
        let sent = network.send_messages(*dpid, found.removals);
        under_way.push((row, sent, change));
    }
    let end = Instant::now() + ORDER_TIMEOUT;
    for (mut row, sent, change) in under_way {
        let outcomes = wait_until(end, sent);
        drop(change);
        match outcomes {
            None => {
                let limit = ORDER_TIMEOUT.as_secs();
                let why = format!("the switch has not confirmed it within {limit} s");
                row.problem = Some(why);
            }
            Some(outcomes) => {
                let (done, not_done): (Vec<_>, Vec<_>) =
                    outcomes.into_iter().partition(|outcome| outcome.is_installed());
                answer.removed += done.len() as u64;
                if let Some(why) = not_done.first() {
                    row.problem = Some(format!("{} flows are not removed: {why}", not_done.len()));
                }
            }
        }
        answer.switches.push(row);
    }
    answer
}

fn shown(names: &Names, dpid: Dpid, found: Reported<Found>) -> (SwitchOrphans, Option<Found>) {
    let (found, problem) = match found {
        Ok(found) => (Some(found), None),
        Err((_, why)) => (None, Some(why)),
    };
    let (apps, rows) =
        found.as_ref().map(|it| (it.apps.clone(), it.rows.clone())).unwrap_or_default();
    let apps = apps.into_iter().map(|(app, flows)| OrphansOfApp { app, flows }).collect();
    (SwitchOrphans { dpid, name: name_of(names, dpid), problem, apps, flows: rows }, found)
}

fn find(network: &Network, apps: &OrphanApps, dpids: &[Dpid]) -> Vec<Reported<Found>> {
    ask_each(
        dpids,
        "flows",
        |dpid| ask(network, *dpid),
        |dpid, reply: ReplyBody<'_>| {
            let version = network.reachable(*dpid)?.version;
            let flows = flows_of(reply)?;
            let mut flows: Vec<_> =
                flows.filter_map(|flow| Some((apps.of_flow(&flow)?, flow))).collect();
            flows.sort_by_cached_key(|(_, flow)| {
                (flow.table, Reverse(flow.priority), flow.matching.to_string())
            });
            let mut found = Found { flows: flows.len(), ..Found::default() };
            let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
            for ((app, cookie), flow) in &flows {
                *found.apps.entry((*app).to_owned()).or_default() += 1;
                if found.rows.len() < MAX_ORPHANS_SHOWN {
                    found.rows.push(row(flow, Some(app)));
                }
                if found.removals.len() < MAX_MESSAGES
                    && let Some(message) = removal(flow, *cookie, version, &mut out)
                {
                    found.removals.push(message);
                }
            }
            Some(found)
        },
    )
}

/// Returns a message that removes exactly this flow.
fn removal(
    flow: &FlowStats<'_>,
    cookie: Cookie,
    version: Version,
    out: &mut Out,
) -> Option<Box<[u8]>> {
    let matching = flow.matching.to_match();
    let mut request = FlowMod::delete(&matching).strict().priority(flow.priority);
    if version.names_tables() {
        request = request.table(flow.table);
    }
    if version.selects_by_cookie() {
        request = request.cookie_mask(cookie.with(0), Cookie::MASK);
    }
    out.clear();
    ToSwitch::FlowMod(request).encode(version, 0, out).ok()?;
    Some(out.as_slice().into())
}
