//! The drops of one switch: a task updates them after each change of the lists, and periodically
//! checks that the switch still has them.
//!
//! After an order of an operator that may have removed drops, the flows are read at once; until
//! then no drop counts as confirmed.
//!
//! A drop that the switch refuses, because its table is full, is sent again after a pause, which
//! doubles from one second to a minute; or at once, when other drops have left the table.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::{
    AppId, Backoff, Change, ChangeOutcome, Dpid, Event, Flow, FlowKey, FlowNormalizer, Network,
    Refusal, Repeats, ReportedFlow, RequestError, Version,
};
use bellrock_services::desired::{
    AUDIT_EVERY, IncludedOrders, OperatorChanges, OrderCounts, SwitchOrders, reported_flows,
};
use bellrock_services::wait::wait_until;
use futures_lite::FutureExt;

use super::list::Blocked;
use super::lists::{BlockGap, BlockLists, SwitchBlocks};

/// Time after which an unreported flow table is requested again.
pub const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Maximum number of switches that report drops at a time: a long list takes some megabytes.
pub const READS_AT_A_TIME: usize = 16;

/// Time for a switch to report them.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// Maximum number of changes on their way to a switch: a long list leaves space for other messages.
const CHANGES_AT_A_TIME: usize = 1000;

/// Minimum time between two events about refused drops of a switch, over all its connections.
const REFUSAL_REPORTED_EVERY: Duration = Duration::from_secs(60);

/// Maximum number of switches with such events of their own. Further switches share one such event.
const SWITCHES_REPORTED_APART: usize = 1024;

/// Number of entries whose drops fit the first bytes sent to a switch, beside those of other apps.
pub(super) const FIRST_ENTRIES: usize = 1000;

/// Keeps the drops of a switch while it is connected.
pub(super) async fn keep_drops(
    network: Network,
    (dpid, version): (Dpid, Version),
    lists: BlockLists,
    permits: ReadPermits,
) {
    let Some(app) = network.app_id() else { return };
    let orders = OperatorChanges::of(&network).of_switch(dpid);
    let mut drops = SwitchDrops::new(network.clone(), app, (dpid, version), orders.clone());
    lists.note(dpid, SwitchBlocks::of_new_connection(orders.clone()));
    let mut revision = 0;
    let mut wanted = lists.wanted().load();
    let mut retry_at = (wanted.all().len() > FIRST_ENTRIES).then(|| network.now());
    let request = |at| Box::pin(read_drops(network.clone(), dpid, version, permits.clone(), at));
    let mut counts = orders.watch().load();
    let mut requested = ReportRequest { at: network.now(), orders: **counts };
    let mut pending_report = request(requested.at);
    loop {
        // Changes of the lists and retries do not wait for the switch's report.
        let mut report = None;
        let reported = async { report = Some(pending_report.as_mut().await) };
        let changed = lists.wanted().newer(wanted.version());
        let ordered = orders.watch().newer(counts.version());
        reported.or(changed).or(ordered).or(wait_until(&network, retry_at)).await;
        wanted = lists.wanted().load();
        counts = orders.watch().load();
        let (supported, unsupported): (BTreeSet<_>, BTreeSet<_>) =
            wanted.all().into_iter().partition(|blocked| blocked.is_known_to(version));
        if let Some(report) = report {
            drops.compare(report, requested, &supported);
        }
        // Entries of later revisions count as unconfirmed until the changes have ended.
        let is_old = |blocked: &Blocked| wanted.since(blocked).is_some_and(|at| at <= revision);
        let old = supported.iter().copied().filter(is_old);
        lists.note(dpid, drops.blocks(revision, old, &unsupported));
        drops.change(&supported).await;
        // After the wanted drops: a prefix may have replaced its parts.
        if lists.is_read() {
            drops.remove_unwanted().await;
        }
        revision = wanted.revision();
        lists.note(dpid, drops.blocks(revision, supported.iter().copied(), &unsupported));
        retry_at = drops.retry_at();
        if let Some(at) = drops.next_request(requested.at, **counts) {
            requested = ReportRequest { at, orders: **counts };
            pending_report = request(at);
        }
    }
}

/// When a report of the switch's flows is requested.
#[derive(Clone, Copy)]
struct ReportRequest {
    at: Duration,
    /// Orders of operators that the report includes.
    orders: OrderCounts,
}

/// The flows that a switch reports, or the error.
type ReportedDrops = Result<HashMap<FlowKey, ReportedFlow>, RequestError>;

/// Requests the drops of a switch at the given time, when a turn is free.
async fn read_drops(
    network: Network,
    dpid: Dpid,
    version: Version,
    permits: ReadPermits,
    at: Duration,
) -> ReportedDrops {
    network.sleep_until(at).await;
    let _permit = permits.acquire().await;
    let report = reported_flows(&network, dpid, version);
    network.timeout(READ_WITHIN, report).await.unwrap_or(Err(RequestError::Unanswered))
}

struct SwitchDrops {
    network: Network,
    app: AppId,
    dpid: Dpid,
    version: Version,
    /// Blocked hosts whose drops the switch has reported or confirmed.
    confirmed: BTreeSet<Blocked>,
    /// Hosts that may be partly blocked: some flows were refused, or their state is unknown.
    partly_blocked: BTreeSet<Blocked>,
    /// Missing flows of wanted hosts, from the last report.
    missing_flows: BTreeMap<Blocked, Vec<Flow>>,
    /// Reported flows that are not wanted: of an earlier run, or of entries removed since.
    unwanted: Vec<ReportedFlow>,
    /// Whether the switch has reported its flows: later differences come from other programs.
    is_known: bool,
    /// Time of the last change sent: a report requested before it may be out of date.
    changed_at: Option<Duration>,
    /// Whether an event has reported that the switch does not report its flows.
    is_unreported: bool,
    /// Time of the next report to request, after a report or a failure.
    next_report_at: Option<Duration>,
    /// No report because of an operator's order is requested before this time.
    earliest_report: Duration,
    orders: SwitchOrders,
    /// Orders of operators that the last report includes.
    included_orders: IncludedOrders,
    /// Changes that failed.
    failed: BTreeMap<Blocked, FailedChange>,
    /// Pauses between attempts to make the failed changes.
    backoff: Backoff,
    /// Pauses between reports after failed removals of unwanted flows.
    rereads: Backoff,
    /// Whether drops were removed since the last attempt, so that the table may have space.
    has_space: bool,
    /// Number of events about refusals since no change failed: at the first refusal, and at the
    /// longest pause.
    reported: u8,
}

/// A change that failed.
struct FailedChange {
    /// `true`: drops were to be added; `false`: removed.
    is_addition: bool,
    gap: BlockGap,
}

/// Limits the events about refused drops. All switches share it: [`Network::extension`].
struct Reports(Mutex<Repeats<Option<Dpid>>>);

impl Default for Reports {
    fn default() -> Self {
        Reports(Mutex::new(Repeats::new(REFUSAL_REPORTED_EVERY, SWITCHES_REPORTED_APART)))
    }
}

impl SwitchDrops {
    fn new(
        network: Network,
        app: AppId,
        (dpid, version): (Dpid, Version),
        orders: SwitchOrders,
    ) -> Self {
        SwitchDrops {
            network,
            app,
            dpid,
            version,
            confirmed: BTreeSet::new(),
            partly_blocked: BTreeSet::new(),
            missing_flows: BTreeMap::new(),
            unwanted: Vec::new(),
            is_known: false,
            changed_at: None,
            is_unreported: false,
            next_report_at: None,
            earliest_report: Duration::ZERO,
            included_orders: IncludedOrders::of_new_connection(orders.counts()),
            orders,
            failed: BTreeMap::new(),
            backoff: Backoff::default(),
            rereads: Backoff::default(),
            has_space: false,
            reported: 0,
        }
    }

    /// Time to try the failed changes again, if there are any.
    fn retry_at(&mut self) -> Option<Duration> {
        let has_space = std::mem::take(&mut self.has_space);
        if self.failed.is_empty() {
            (self.backoff, self.reported) = (Backoff::default(), 0);
            return None;
        }
        if has_space {
            self.backoff = Backoff::default();
        }
        Some(self.backoff.until())
    }

    /// Which of these entries, and of those that the version does not support, the switch blocks.
    fn blocks(
        &self,
        revision: u64,
        supported: impl Iterator<Item = Blocked>,
        unsupported: &BTreeSet<Blocked>,
    ) -> SwitchBlocks {
        let gap = |blocked| match self.failed.get(&blocked) {
            Some(failed) => failed.gap.clone(),
            None => BlockGap::Unconfirmed,
        };
        let missing = supported.filter(|blocked| !self.confirmed.contains(blocked));
        let unsupported =
            unsupported.iter().map(|blocked| (*blocked, BlockGap::Unsupported(self.version)));
        SwitchBlocks {
            revision,
            gaps: missing.map(|blocked| (blocked, gap(blocked))).chain(unsupported).collect(),
            orders: self.orders.clone(),
            included_orders: self.included_orders,
        }
    }

    /// Returns the time of another report to request, instead of the one requested at `requested`:
    /// after that one, or earlier because of an operator's order.
    fn next_request(&mut self, requested: Duration, orders: OrderCounts) -> Option<Duration> {
        let next = self.next_report_at.take();
        let waiting = next.or((requested > self.network.now()).then_some(requested));
        match waiting {
            // One that is under way is repeated when it has ended.
            Some(at) if self.included_orders.needs_report(orders) => {
                Some(at.min(self.earliest_report))
            }
            _ => next,
        }
    }

    /// Compares a report with the wanted drops, and finds unwanted flows. It may contain changes
    /// sent meanwhile or not: at worst they are sent again.
    fn compare(
        &mut self,
        report: ReportedDrops,
        requested: ReportRequest,
        supported: &BTreeSet<Blocked>,
    ) {
        let now = self.network.now();
        let is_permanent = |why: &RequestError| *why == RequestError::TooLarge || why.is_none();
        let is_later = report.as_ref().map_or_else(is_permanent, |_| true);
        self.next_report_at = Some(now + if is_later { AUDIT_EVERY } else { TRY_AGAIN_AFTER });
        self.earliest_report = now + TRY_AGAIN_AFTER;
        let by_order = self.included_orders.is_outdated(self.orders.counts());
        if is_later {
            if report.is_err() && self.included_orders.needs_report(requested.orders) {
                // Nothing shows which drops the order has left: all are sent again.
                self.confirmed.clear();
            }
            self.included_orders.add_report(requested.orders);
        }
        let (app, dpid) = (self.network.app(), self.dpid);
        let flows = match report {
            Ok(flows) => {
                self.is_unreported = false;
                flows
            }
            Err(why) => {
                if !std::mem::replace(&mut self.is_unreported, true) {
                    let event = Event::TablesUntold { app, dpid, why };
                    self.network.events().publish(now, event);
                }
                // A switch that does not report flows counts as having only the confirmed ones.
                if !why.is_none() || self.is_known {
                    return;
                }
                HashMap::new()
            }
        };
        let mut normalizer = FlowNormalizer::new(self.version);
        let mut wanted = HashSet::new();
        let mut altered = 0;
        let before = std::mem::take(&mut self.confirmed);
        self.partly_blocked.retain(|blocked| self.failed.contains_key(blocked));
        for blocked in supported {
            let mut missing = Vec::new();
            for flow in drops(*blocked) {
                let Ok(expected) = normalizer.of_flow(self.app, &flow) else { continue };
                if flows.get(&expected.key) != Some(&expected) {
                    missing.push(flow);
                }
                wanted.insert(expected.key);
            }
            altered += if before.contains(blocked) { missing.len() } else { 0 };
            if missing.is_empty() {
                self.confirmed.insert(*blocked);
            } else {
                self.missing_flows.insert(*blocked, missing);
            }
        }
        self.unwanted = flows.into_values().filter(|flow| !wanted.contains(&flow.key)).collect();
        altered += self.unwanted.len();
        let was_known = std::mem::replace(&mut self.is_known, true);
        let is_overtaken = self.changed_at.is_some_and(|at| at >= requested.at);
        if was_known && !is_overtaken && altered > 0 {
            let event = Event::WantedAltered { app, dpid, flows: altered, by_order };
            self.network.events().publish(now, event);
        }
    }

    /// Changes the drops of the switch to these. Failed changes wait for their next attempt.
    async fn change(&mut self, wanted: &BTreeSet<Blocked>) {
        let mut missing = std::mem::take(&mut self.missing_flows);
        let is_pausing = !self.backoff.is_over(self.network.now());
        let (confirmed, partly_blocked) = (&self.confirmed, &self.partly_blocked);
        // Drops failed changes that are not wanted any more, or that the switch reports as made.
        self.failed.retain(|blocked, failed| match wanted.contains(blocked) {
            true => failed.is_addition && !confirmed.contains(blocked),
            false => {
                !failed.is_addition
                    && (confirmed.contains(blocked) || partly_blocked.contains(blocked))
            }
        });
        let is_due = |blocked: &Blocked| !(is_pausing && self.failed.contains_key(blocked));
        // Additions first, so that no packet slips through when a prefix replaces its parts.
        let mut changes: Vec<(bool, Blocked, Change)> = Vec::new();
        for blocked in wanted.difference(confirmed).filter(|blocked| is_due(blocked)) {
            let flows = missing.remove(blocked).unwrap_or_else(|| drops(*blocked).collect());
            changes.extend(flows.into_iter().map(|flow| (true, *blocked, Change::Add(flow))));
        }
        for blocked in confirmed
            .union(partly_blocked)
            .filter(|blocked| !wanted.contains(blocked) && is_due(blocked))
        {
            let flows = drops(*blocked);
            changes.extend(flows.map(|flow| (false, *blocked, Change::Remove(flow))));
        }
        let mut failed = BTreeMap::new();
        let mut refusal = None;
        if !changes.is_empty() {
            self.changed_at = Some(self.network.now());
        }
        for chunk in changes.chunks(CHANGES_AT_A_TIME) {
            let sent = chunk.iter().map(|(.., change)| change.clone()).collect();
            let outcomes = self.network.program(self.dpid, sent).await;
            for ((is_addition, blocked, _), outcome) in chunk.iter().zip(outcomes) {
                if !outcome.is_installed() {
                    let gap = match outcome {
                        ChangeOutcome::Refused(_) => BlockGap::Refused(outcome.to_string()),
                        _ => BlockGap::Failed(outcome.to_string()),
                    };
                    failed.insert(*blocked, FailedChange { is_addition: *is_addition, gap });
                } else if *is_addition {
                    self.confirmed.insert(*blocked);
                } else {
                    self.confirmed.remove(blocked);
                }
                if let ChangeOutcome::Refused(why) = outcome {
                    refusal.get_or_insert(why);
                }
                self.failed.remove(blocked);
                self.partly_blocked.remove(blocked);
            }
        }
        // Only hosts whose flows are all gone: a removal that fails in part is not tried again at
        // once, which would never end.
        self.has_space |= changes
            .iter()
            .any(|(is_addition, blocked, _)| !is_addition && !failed.contains_key(blocked));
        // If one of several flows was refused, all are sent again.
        for blocked in failed.keys() {
            self.confirmed.remove(blocked);
            self.partly_blocked.insert(*blocked);
        }
        if !failed.is_empty() {
            self.backoff.failed(self.network.now());
        }
        self.failed.append(&mut failed);
        if let Some(why) = refusal {
            self.publish_refusal(why);
        }
    }

    /// Publishes that the switch refuses drops: at the first refusal, and again at the longest
    /// pause.
    fn publish_refusal(&mut self, why: Refusal) {
        let is_due = match self.reported {
            0 => true,
            1 => self.backoff.is_longest(),
            _ => false,
        };
        if !is_due {
            return;
        }
        let (app, dpid, now) = (self.network.app(), self.dpid, self.network.now());
        let reports = self.network.extension::<Reports>();
        let mut reports = reports.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, times)) = reports.note(Some(dpid), None, now) {
            self.reported += 1;
            self.network.events().publish(now, Event::WantedRefused { app, dpid, why, times });
        }
    }

    /// Removes the unwanted flows. If this fails, requests a new report.
    async fn remove_unwanted(&mut self) {
        let unwanted = std::mem::take(&mut self.unwanted);
        for chunk in unwanted.chunks(CHANGES_AT_A_TIME) {
            let changes = chunk.iter().cloned().map(Change::RemoveReported).collect();
            let outcomes = self.network.program(self.dpid, changes).await;
            self.has_space |= outcomes.iter().any(|outcome| outcome.is_installed());
            if !outcomes.iter().all(|outcome| outcome.is_installed()) {
                self.is_known = false;
                self.rereads.failed(self.network.now());
                self.next_report_at = Some(self.rereads.until());
            }
        }
    }
}

/// The flows that drop a host's packets.
pub(super) fn drops(blocked: Blocked) -> impl Iterator<Item = Flow> {
    blocked.matches().into_iter().map(Flow::new)
}

/// Limits the number of concurrent reports. All clones share the limit.
#[derive(Clone, Debug)]
pub(super) struct ReadPermits(Sender<()>, Receiver<()>);

impl Default for ReadPermits {
    fn default() -> Self {
        let (taken, given_back) = async_channel::bounded(READS_AT_A_TIME);
        ReadPermits(taken, given_back)
    }
}

impl ReadPermits {
    /// Waits for a turn, which ends when the returned value is dropped.
    async fn acquire(&self) -> ReadPermit {
        // It cannot fail: both ends are held here.
        let _ = self.0.send(()).await;
        ReadPermit(self.1.clone())
    }
}

struct ReadPermit(Receiver<()>);

impl Drop for ReadPermit {
    fn drop(&mut self) {
        let _ = self.0.try_recv();
    }
}
