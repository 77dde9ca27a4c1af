//! `bellrock flows`: the flows of switches, and the app of each flow.
//!
//! Each question asks the switches (`OFPMP_FLOW`, 1.3.5 §7.3.5.2; `OFPST_FLOW`, 1.0 §5.3.5). So the
//! answer lists the flows in the switches, not those that the controller believes to be there. The
//! cookie names the app of a flow.
//!
//! The types are the JSON that `--json` prints, as in [`super::answers`].

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use bellrock_api::openflow::{FlowStats, FlowStatsRequest, RequestBody};
use bellrock_api::{Dpid, Match, Network, ReplyBody, Requested, SwitchInfo};
use bellrock_services::desired;
#[cfg(feature = "cli")]
use clap::Args;
use serde::{Deserialize, Serialize};

#[cfg(feature = "cli")]
use super::args::Ask;
use super::show::{duration, printable, table};
use super::wait::wait_until;

/// Maximum number of flows in an answer.
const MAX_FLOWS: usize = 10_000;

/// Default number of flows in an answer.
const DEFAULT_FLOWS: usize = 1000;

/// Time limit for all switches together. The client waits a little longer.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Switches asked at a time. Their tables are in memory together.
const AT_A_TIME: usize = 8;

/// Stands for flows of no app of this controller.
const FOREIGN: &str = "foreign";

/// Stands for any app.
const ANY_APP: &str = "-";

/// List the flows of a switch and their apps, or count the flows of all switches
///
/// Flows whose cookie belongs to no app of this controller are foreign, and so are flows that no
/// app can have installed. `bellrock apps` lists the priorities and cookies of each app.
#[cfg(feature = "cli")]
#[derive(Debug, Args)]
pub(super) struct Flows {
    /// Datapath id of the switch, in hexadecimal. Without it: counts for all switches
    switch: Option<Dpid>,
    /// Only flows of this app, of `controller`, or `foreign` ones
    #[arg(long, value_name = "NAME", requires = "switch")]
    app: Option<String>,
    /// Maximum number of flows to list
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_FLOWS, value_parser = number, requires = "switch")]
    limit: usize,
    /// Number of flows to skip: those of earlier pages
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "switch")]
    skip: usize,
    #[command(flatten)]
    ask: Ask,
}

#[cfg(feature = "cli")]
impl Flows {
    /// The controller to ask, and the words of the question.
    pub(super) fn question(&self) -> (&Ask, Vec<String>) {
        let Some(switch) = self.switch else { return (&self.ask, Vec::new()) };
        let app = self.app.clone().unwrap_or_else(|| ANY_APP.to_owned());
        let words = [switch.to_string(), app, self.limit.to_string(), self.skip.to_string()];
        (&self.ask, words.into())
    }
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_FLOWS).contains(number));
    number.ok_or_else(|| format!("give a whole number from 1 to {MAX_FLOWS}"))
}

/// Answer to a question about flows.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum FlowsAnswer {
    /// Numbers of flows of all switches.
    Switches(Vec<SwitchFlows>),
    /// A page of the flows of one switch.
    Page(Page),
}

/// Numbers of flows of a switch.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SwitchFlows {
    dpid: String,
    /// Why the numbers are unknown.
    problem: Option<String>,
    apps: Vec<AppFlows>,
}

/// Number of flows of one app in a switch, and sums of their counters.
#[derive(Debug, Default, Deserialize, Serialize)]
struct AppFlows {
    /// `null` for all foreign flows.
    app: Option<String>,
    flows: u64,
    /// Number of flows in the app's desired state. `null` for an app without one.
    wanted: Option<u64>,
    packets: u64,
    bytes: u64,
}

/// Some flows of a switch, ordered by table, then by priority (highest first), then by match.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Page {
    dpid: String,
    version: String,
    /// Number of flows on all pages.
    flows_in_all: usize,
    /// Number of flows skipped before this page.
    skipped: usize,
    flows: Vec<FlowRow>,
}

/// A flow.
#[derive(Debug, Deserialize, Serialize)]
struct FlowRow {
    table: u8,
    /// As in the switch.
    priority: u16,
    /// `null` if the flow is foreign.
    app: Option<String>,
    /// 16 hexadecimal digits.
    cookie: String,
    #[serde(rename = "match")]
    matching: String,
    actions: String,
    packets: u64,
    bytes: u64,
    age_seconds: u32,
    /// 0 for none.
    idle_timeout_seconds: u16,
    /// 0 for none.
    hard_timeout_seconds: u16,
}

/// Asks switches for their flows.
///
/// # Errors
/// What is wrong with the question, or why the switch does not report its flows.
pub(super) fn answer(network: &Network, words: &[String]) -> Result<FlowsAnswer, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let until = Instant::now() + TIMEOUT;
    let (switch, app, limit, skip) = match words[..] {
        [] => return Ok(FlowsAnswer::Switches(switches(network, until))),
        [switch] => (switch, ANY_APP, DEFAULT_FLOWS, 0),
        [switch, app, limit, skip] => {
            let skip = skip.parse().map_err(|_| "SKIP is a whole number".to_owned())?;
            (switch, app, number(limit)?, skip)
        }
        _ => return Err("give flows [SWITCH [APP|- LIMIT SKIP]]".to_owned()),
    };
    let dpid: Dpid = switch.parse().map_err(|error| format!("{switch:?}: {error}"))?;
    let info = network.switch(dpid).ok_or_else(|| {
        format!("switch {dpid} is not connected; `bellrock switches` lists those that are")
    })?;
    let whose = whose(network, app)?;
    page(network, &info, whose, (limit, skip), until).map(FlowsAnswer::Page)
}

/// Filter by app: all flows, or those of one app, or foreign ones.
#[derive(Clone, Copy)]
enum Whose {
    Everybody,
    One(Option<&'static str>),
}

fn whose(network: &Network, app: &str) -> Result<Whose, String> {
    if app == ANY_APP {
        return Ok(Whose::Everybody);
    }
    let known = || network.apps().chain(["controller"]);
    match known().find(|name| *name == app) {
        Some(name) => Ok(Whose::One(Some(name))),
        None if app == FOREIGN => Ok(Whose::One(None)),
        None => {
            let names: Vec<_> = known().chain([FOREIGN]).collect();
            Err(format!("no app {app:?} runs here; give one of {}", names.join(", ")))
        }
    }
}

fn page(
    network: &Network,
    info: &SwitchInfo,
    whose: Whose,
    (limit, skip): (usize, usize),
    until: Instant,
) -> Result<Page, String> {
    let dpid = info.dpid;
    let page = read(ask(network, dpid), until, |flows| {
        let owner = |flow: &FlowStats<'_>| network.app_of_flow(flow);
        let mut flows: Vec<_> = flows
            .filter(|flow| match whose {
                Whose::Everybody => true,
                Whose::One(app) => owner(flow) == app,
            })
            .collect();
        // By the text of the match too, so that pages fit together.
        flows.sort_by_cached_key(|flow| {
            (flow.table, Reverse(flow.priority), flow.matching.to_string())
        });
        Page {
            dpid: dpid.to_string(),
            version: info.version.to_string(),
            flows_in_all: flows.len(),
            skipped: skip.min(flows.len()),
            flows: flows.iter().skip(skip).take(limit).map(|flow| row(flow, owner(flow))).collect(),
        }
    });
    page.map_err(|why| format!("switch {dpid}: {why}"))
}

fn row(flow: &FlowStats<'_>, app: Option<&str>) -> FlowRow {
    FlowRow {
        table: flow.table,
        priority: flow.priority,
        app: app.map(str::to_owned),
        cookie: format!("{:016x}", flow.cookie),
        matching: flow.matching.to_string(),
        actions: flow.instructions.to_string(),
        packets: flow.packet_count,
        bytes: flow.byte_count,
        age_seconds: flow.duration_sec,
        idle_timeout_seconds: flow.idle_timeout,
        hard_timeout_seconds: flow.hard_timeout,
    }
}

/// Asks all switches for their flows, some at a time, and counts them.
fn switches(network: &Network, until: Instant) -> Vec<SwitchFlows> {
    let dpids: Vec<Dpid> = network.switches().iter().map(|info| info.dpid).collect();
    let mut told = Vec::with_capacity(dpids.len());
    for some in dpids.chunks(AT_A_TIME) {
        let asked: Vec<_> = some.iter().map(|dpid| (*dpid, ask(network, *dpid))).collect();
        for (dpid, asked) in asked {
            let counted = read(asked, until, |flows| count(network, dpid, flows));
            let (apps, problem) = match counted {
                Ok(apps) => (apps, None),
                Err(why) => (Vec::new(), Some(why)),
            };
            told.push(SwitchFlows { dpid: dpid.to_string(), problem, apps });
        }
    }
    told
}

/// Counts flows by app, in the order of the apps; foreign ones are last.
fn count<'a>(
    network: &Network,
    dpid: Dpid,
    flows: impl Iterator<Item = FlowStats<'a>>,
) -> Vec<AppFlows> {
    let mut of = BTreeMap::<Option<&str>, AppFlows>::new();
    for (app, wanted) in desired::wanted_in(network, dpid) {
        of.entry(Some(app)).or_default().wanted = Some(wanted as u64);
    }
    for flow in flows {
        let sum = of.entry(network.app_of_flow(&flow)).or_default();
        sum.flows += 1;
        sum.packets += flow.packet_count;
        sum.bytes += flow.byte_count;
    }
    let names = network.apps().chain(["controller"]).map(Some).chain([None]);
    let mut told = Vec::new();
    for app in names {
        if let Some(sum) = of.remove(&app) {
            told.push(AppFlows { app: app.map(str::to_owned), ..sum });
        }
    }
    told
}

fn ask(network: &Network, dpid: Dpid) -> Requested {
    let all = Match::any();
    network.request(dpid, RequestBody::Flow(FlowStatsRequest::all(&all)))
}

/// Applies `make` to the flows that a switch reports, or returns why there are none.
fn read<T>(
    asked: Requested,
    until: Instant,
    make: impl FnOnce(&mut dyn Iterator<Item = FlowStats<'_>>) -> T,
) -> Result<T, String> {
    let silent = || format!("it did not report its flows within {} s", TIMEOUT.as_secs());
    let reply = wait_until(until, asked).ok_or_else(silent)?;
    let reply = reply.map_err(|error| error.to_string())?;
    match reply.body() {
        Ok(ReplyBody::Flow(flows)) => Ok(make(&mut flows.into_iter())),
        _ => Err("it answered something else".to_owned()),
    }
}

/// Formats the answer as text.
pub(super) fn show(answer: &FlowsAnswer) -> String {
    match answer {
        FlowsAnswer::Switches(switches) => show_switches(switches),
        FlowsAnswer::Page(page) => show_page(page),
    }
}

fn show_switches(switches: &[SwitchFlows]) -> String {
    if switches.is_empty() {
        return "no switch is up\n".to_owned();
    }
    let rows = switches.iter().flat_map(|switch| {
        let dpid = printable(&switch.dpid);
        let problem = switch.problem.iter().map(|why| printable(why));
        let problem: Vec<_> = problem.map(|why| vec![dpid.clone(), why]).collect();
        let none = problem.is_empty() && switch.apps.is_empty();
        let none = none.then(|| vec![dpid.clone(), "no flows".to_owned()]);
        let apps = switch.apps.iter().map(move |app| {
            vec![
                dpid.clone(),
                name(app.app.as_deref()),
                app.flows.to_string(),
                app.wanted.map_or_else(|| "-".to_owned(), |wanted| wanted.to_string()),
                app.packets.to_string(),
                app.bytes.to_string(),
            ]
        });
        problem.into_iter().chain(none).chain(apps)
    });
    table(&["SWITCH", "APP", "FLOWS", "WANTED", "PACKETS", "BYTES"], rows)
}

fn name(app: Option<&str>) -> String {
    app.map_or_else(|| FOREIGN.to_owned(), printable)
}

fn show_page(page: &Page) -> String {
    if page.flows.is_empty() {
        return match page.flows_in_all {
            0 => "no such flow is there\n".to_owned(),
            all => format!("no more flows: there are {all}\n"),
        };
    }
    let row = |flow: &FlowRow| {
        let app = match &flow.app {
            Some(app) => printable(app),
            // The cookie may identify the owner.
            None => format!("{FOREIGN} 0x{}", printable(&flow.cookie)),
        };
        let timeouts = [("idle", flow.idle_timeout_seconds), ("hard", flow.hard_timeout_seconds)];
        let timeouts = timeouts.iter().filter(|(_, seconds)| *seconds != 0);
        vec![
            flow.table.to_string(),
            flow.priority.to_string(),
            app,
            flow.packets.to_string(),
            flow.bytes.to_string(),
            duration(flow.age_seconds.into()),
            timeouts.map(|(what, s)| format!("{what} {s}s")).collect::<Vec<_>>().join(" "),
            printable(&flow.matching),
            printable(&flow.actions),
        ]
    };
    let head =
        ["TABLE", "PRIORITY", "APP", "PACKETS", "BYTES", "AGE", "TIMEOUT", "MATCH", "ACTIONS"];
    let mut text = table(&head, page.flows.iter().map(row));
    let (last, all) = (page.skipped + page.flows.len(), page.flows_in_all);
    if page.flows.len() < all {
        let more = if last < all { format!("; --skip {last} lists more") } else { String::new() };
        let _ = writeln!(text, "(flows {} to {last} of {all}{more})", page.skipped + 1);
    }
    text
}
