//! Drops all packets of listed hosts at every switch, and lets them back.
//!
//! Who is listed, [`BlockLists`] says: whoever holds them changes them at any time. For each switch a task
//! waits for that and changes the switch's drops by the difference. A switch that comes up gets all drops
//! with the first bytes that are sent to it; the task then has them confirmed. Those that it has from before
//! are not taken away meanwhile, so that nobody slips through: they stay what they are, and go once it is
//! known that nobody wants them.
//!
//! The app has to stand before those whose flows it is to beat: its place in the chain gives its drops the higher
//! priority, so that they also stop what those apps have installed long before.

mod list;
mod lists;

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use bellrock_api::openflow::{FlowCommand, FlowStatsRequest, RequestBody};
use bellrock_api::{
    App, AppId, Batch, Change, Dpid, Flow, FlowKey, Handler, LeftFlows, Match, Network, ReplyBody,
    Result, Switch, SwitchInfo, TaskHandle, ToldForm, Version,
};

pub use list::{BadLine, BlockList, Blocked, MAX_BAD_LINES_TOLD, MAX_BLOCKED, NotBlockable};
use lists::Gaps;
pub use lists::{BlockLists, Entry, NotChanged};

/// How long it takes until a switch that has refused a drop is asked for it again, and one that has not told its
/// flows for them.
pub const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Changes that are on their way to a switch at a time, so that a long list leaves room for others'
/// messages.
const CHANGES_AT_A_TIME: usize = 1000;

/// The app.
#[derive(Debug, Default)]
pub struct Quarantine {
    lists: BlockLists,
}

impl Quarantine {
    /// Blocks who is in these lists.
    #[must_use]
    pub fn new(lists: &BlockLists) -> Self {
        Quarantine { lists: lists.clone() }
    }
}

impl App for Quarantine {
    type Handler = Drops;

    fn name(&self) -> &'static str {
        "quarantine"
    }

    fn wants_packet_ins(&self) -> bool {
        false
    }

    /// Who is listed stays cut off while the controller is away, and while it comes back.
    fn left_flows(&self) -> LeftFlows {
        LeftFlows::Keep
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> Drops {
        let (its, lists, dpid, version) =
            (network.clone(), self.lists.clone(), info.dpid, info.version);
        let keeping = move || keep(its.clone(), dpid, version, lists.clone());
        let task = network.supervise(format!("drops of {dpid}"), keeping);
        Drops { lists: self.lists.clone(), task }
    }
}

/// The drops of one switch.
#[derive(Debug)]
pub struct Drops {
    lists: BlockLists,
    /// Keeps them up to the lists.
    task: TaskHandle,
}

impl Handler for Drops {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        let version = switch.version();
        let all = self.lists.wanted().load().all();
        for blocked in all.into_iter().filter(|blocked| blocked.is_known_to(version)) {
            for flow in drops(blocked) {
                let sent = flow.with_flow_mod(FlowCommand::Add, |flow| switch.install(flow));
                if sent.is_err() {
                    // What the buffer has no room for, the task sends.
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Packets are the next app's.
    fn packet_ins(&mut self, _: &mut Switch<'_>, _: &mut Batch<'_>) {}

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.task.cancel();
        self.lists.note_gaps(info.dpid, Gaps::new());
    }
}

/// Brings a switch to what the lists say, whenever they change.
async fn keep(network: Network, dpid: Dpid, version: Version, lists: BlockLists) {
    let mut dropped = BTreeSet::new();
    let mut is_tidy = false;
    let mut wanted = lists.wanted().load();
    loop {
        let (known, unknown): (BTreeSet<_>, BTreeSet<_>) =
            wanted.all().into_iter().partition(|blocked| blocked.is_known_to(version));
        let mut gaps = change(&network, dpid, &mut dropped, &known).await;
        // Behind the drops that are wanted: a prefix may have come into the place of its parts.
        is_tidy = is_tidy || remove_left(&network, dpid, version, &known).await;
        let is_complete = gaps.is_empty() && is_tidy;
        let why = format!("OpenFlow {version} does not know IPv6");
        gaps.extend(unknown.into_iter().map(|blocked| (blocked, why.clone())));
        lists.note_gaps(dpid, gaps);
        let next = lists.wanted().changed(wanted.version());
        wanted = match is_complete {
            true => next.await,
            false => network.timeout(TRY_AGAIN_AFTER, next).await.unwrap_or(wanted),
        };
    }
}

/// Changes what a switch drops from `dropped` to `wanted`, and tells what it could not.
async fn change(
    network: &Network,
    dpid: Dpid,
    dropped: &mut BTreeSet<Blocked>,
    wanted: &BTreeSet<Blocked>,
) -> Gaps {
    // First who comes, so that nobody slips through where a prefix takes the place of its parts.
    let come = wanted.difference(dropped).map(|blocked| (true, *blocked));
    let go = dropped.difference(wanted).map(|blocked| (false, *blocked));
    let changes: Vec<(bool, Blocked, Change)> = come
        .chain(go)
        .flat_map(|(comes, blocked)| {
            let change = if comes { Change::Add } else { Change::Remove };
            drops(blocked).map(move |flow| (comes, blocked, change(flow)))
        })
        .collect();
    let mut gaps = Gaps::new();
    for some in changes.chunks(CHANGES_AT_A_TIME) {
        let sent = some.iter().map(|(.., change)| change.clone()).collect();
        let outcomes = network.program(dpid, sent).await;
        for ((comes, blocked, _), outcome) in some.iter().zip(outcomes) {
            if !outcome.is_installed() {
                gaps.insert(*blocked, outcome.to_string());
            } else if *comes {
                dropped.insert(*blocked);
            } else {
                dropped.remove(blocked);
            }
        }
    }
    // Where one flow of several was refused, all are tried again.
    for blocked in gaps.keys() {
        if wanted.contains(blocked) {
            dropped.remove(blocked)
        } else {
            dropped.insert(*blocked)
        };
    }
    gaps
}

/// Removes the drops that a switch has from before it came up, and that nobody wants now: by an earlier run, or listed
/// then and not any more. Says whether that is done.
async fn remove_left(
    network: &Network,
    dpid: Dpid,
    version: Version,
    wanted: &BTreeSet<Blocked>,
) -> bool {
    let Some(app) = network.app_id() else { return true };
    let any = Match::any();
    let all = RequestBody::Flow(FlowStatsRequest::all(&any));
    let Ok(reply) = network.request(dpid, all).await else { return false };
    let Ok(ReplyBody::Flow(flows)) = reply.body() else { return false };
    let mut form = ToldForm::new(version);
    let wanted = keys(app, &mut form, wanted);
    let left: Vec<Change> = flows
        .iter()
        .filter(|flow| app.cookie().owns(flow.cookie))
        .filter_map(|flow| form.of_stats(&flow).ok())
        .filter(|told| !wanted.contains(&told.key))
        .map(Change::RemoveTold)
        .collect();
    let mut is_done = true;
    for some in left.chunks(CHANGES_AT_A_TIME) {
        let outcomes = network.program(dpid, some.to_vec()).await;
        is_done &= outcomes.iter().all(|outcome| outcome.is_installed());
    }
    is_done
}

/// What tells the drops of these from others.
fn keys(app: AppId, form: &mut ToldForm, all: &BTreeSet<Blocked>) -> HashSet<FlowKey> {
    let told = |flow| form.of_flow(app, &flow).ok().map(|told| told.key);
    all.iter().flat_map(|blocked| drops(*blocked)).filter_map(told).collect()
}

/// The flows that drop a host's packets.
fn drops(blocked: Blocked) -> impl Iterator<Item = Flow> {
    blocked.matches().into_iter().map(Flow::new)
}
