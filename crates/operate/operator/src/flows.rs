//! The flows of switches, and the app of each flow.
//!
//! Each answer asks the switches (`OFPMP_FLOW`, 1.3.5 §7.3.5.2; `OFPST_FLOW`, 1.0 §5.3.5). The
//! cookie names the app of a flow.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use bellrock_api::openflow::{FlowStats, FlowStatsRequest, RequestBody};
use bellrock_api::{Dpid, Match, Names, Network, ReplyBody, RequestFuture, SwitchInfo};
use bellrock_query::{AppFlows, FlowPage, FlowRow, ListFlows, Page, QueryError, Rows, SwitchFlows};
use bellrock_services::desired;

use super::ask::{ask_each, ask_one, kept, of_switch};
use super::name_of;

/// The flows of a switch that is up.
///
/// # Errors
/// There is no such app, or the switch does not report its flows.
pub(super) fn list(
    network: &Network,
    names: &Names,
    info: &SwitchInfo,
    query: &ListFlows,
) -> Result<FlowPage, QueryError> {
    let whose = whose(network, query.app.as_deref())?;
    let (dpid, page) = (info.dpid, query.page);
    let flows = ask_one(
        "flows",
        || ask(network, dpid),
        |reply| {
            let owner = |flow: &FlowStats<'_>| network.app_of_flow(flow);
            let flows: Vec<_> = flows_of(reply)?
                .filter(|flow| match whose {
                    Whose::Everybody => true,
                    Whose::One(app) => owner(flow) == app,
                })
                .collect();
            Some(Rows::of_unsorted(flows, page, order).map(|flow| row(&flow, owner(&flow))))
        },
    );
    let flows = of_switch(&query.switch, flows)?;
    Ok(FlowPage { dpid, name: name_of(names, dpid), version: info.version, flows })
}

/// The order of flows in a list. The match counts too, so that pages fit together: by its bytes,
/// for a switch may report a hundred thousand flows.
fn order(a: &FlowStats<'_>, b: &FlowStats<'_>) -> Ordering {
    fn key<'f>(flow: &FlowStats<'f>) -> (u8, Reverse<u16>, &'f [u8]) {
        (flow.table, Reverse(flow.priority), flow.matching.received_bytes())
    }
    key(a).cmp(&key(b))
}

/// Filter by app: all flows, or those of one app, or foreign ones.
#[derive(Clone, Copy)]
enum Whose {
    Everybody,
    One(Option<&'static str>),
}

fn whose(network: &Network, app: Option<&str>) -> Result<Whose, QueryError> {
    let Some(app) = app else { return Ok(Whose::Everybody) };
    let known = || network.apps().chain([ListFlows::CONTROLLER]);
    match known().find(|name| *name == app) {
        Some(name) => Ok(Whose::One(Some(name))),
        None if app == ListFlows::FOREIGN => Ok(Whose::One(None)),
        None => {
            let names: Vec<_> = known().chain([ListFlows::FOREIGN]).collect();
            let names = names.join(", ");
            Err(QueryError::not_found(
                "app",
                format!("no app {app:?} runs here; give one of {names}"),
            ))
        }
    }
}

pub(super) fn row(flow: &FlowStats<'_>, app: Option<&str>) -> FlowRow {
    FlowRow {
        table: flow.table,
        priority: flow.priority,
        app: app.map(str::to_owned),
        cookie: format!("{:016x}", flow.cookie),
        matching: flow.matching.to_string(),
        actions: flow.instructions.to_string(),
        packets: kept(flow.packet_count),
        bytes: kept(flow.byte_count),
        age_seconds: flow.duration_sec,
        idle_timeout_seconds: flow.idle_timeout,
        hard_timeout_seconds: flow.hard_timeout,
    }
}

/// Asks the switches of a page for their flows, some at a time, and counts them.
pub(super) fn count(
    network: &Network,
    names: &Names,
    dpids: Vec<Dpid>,
    page: Page,
) -> Rows<SwitchFlows> {
    let dpids = Rows::of(dpids, page);
    let counted = ask_each(
        &dpids.rows,
        "flows",
        |dpid| ask(network, *dpid),
        |dpid, reply| flows_of(reply).map(|mut flows| count_by_app(network, *dpid, &mut flows)),
    );
    let mut counted = counted.into_iter();
    dpids.map(|dpid| {
        let (apps, problem) = match counted.next() {
            Some(Ok(apps)) => (apps, None),
            Some(Err((_, why))) => (Vec::new(), Some(why)),
            None => (Vec::new(), None),
        };
        SwitchFlows { dpid, name: name_of(names, dpid), problem, apps }
    })
}

/// Counts flows by app, in the order of the apps; foreign ones are last.
fn count_by_app<'a>(
    network: &Network,
    dpid: Dpid,
    flows: &mut dyn Iterator<Item = FlowStats<'a>>,
) -> Vec<AppFlows> {
    let mut of = BTreeMap::<Option<&str>, AppFlows>::new();
    for (app, wanted) in desired::wanted_flow_counts(network, dpid) {
        of.entry(Some(app)).or_default().wanted = Some(wanted as u64);
    }
    for flow in flows {
        let sum = of.entry(network.app_of_flow(&flow)).or_default();
        sum.flows += 1;
        sum.packets = sum.packets.saturating_add(kept(flow.packet_count).unwrap_or_default());
        sum.bytes = sum.bytes.saturating_add(kept(flow.byte_count).unwrap_or_default());
    }
    let names = network.apps().chain([ListFlows::CONTROLLER]).map(Some).chain([None]);
    names
        .filter_map(|app| {
            let sum = of.remove(&app)?;
            Some(AppFlows { app: app.map(str::to_owned), ..sum })
        })
        .collect()
}

pub(super) fn ask(network: &Network, dpid: Dpid) -> RequestFuture {
    let all = Match::any();
    network.request(dpid, RequestBody::Flow(FlowStatsRequest::all(&all)))
}

/// The flows of a reply. `None`: it is another reply.
pub(super) fn flows_of(reply: ReplyBody<'_>) -> Option<impl Iterator<Item = FlowStats<'_>>> {
    match reply {
        ReplyBody::Flow(flows) => Some(flows.into_iter()),
        _ => None,
    }
}
