//! The task that keeps the switches at one app's desired state.
//!
//! It never waits for one event alone. Every event is noted: a write, a switch, its tables, the
//! outcome of changes, or a time. Then it sends all changes that wait for nothing. A switch has at
//! most one program of changes under way; further changes go with the next. So a slow switch delays
//! only the flows that must wait for it by their order.

mod progress;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bellrock_api::runtime::{EventPublisher as _, RoleControl as _};
use bellrock_api::{AppId, Change, Dpid, Event, Network, Refusal, Repeats, RequestError};
use futures_lite::FutureExt;

use super::compare::{RefusedChanges, additions, difference, missing_additions};
use super::not_kept::KeptReport;
use super::order::{LackCause, MissingAtSwitch, MissingEntries};
use super::read::{FlowSelection, KnownEntries, Objects, read};
use super::switch::{Audit, DesiredSwitch, ReadState, SentChange};
use super::wanted::{BookChange, WantedEntries};
use super::{AUDIT_EVERY, Desired, OperatorChanges, READ_AGAIN, REFUSAL_REPORTED_EVERY};
use crate::programming::PendingPrograms;
use crate::wait::wait_until;

/// Time to confirm a few changes. Many have more ([`bellrock_api::CHANGES_PER_SECOND`]).
const CONFIRM_WITHIN: Duration = Duration::from_secs(3);

/// Maximum number of refusals, by switch and reason, with events of their own. Further ones share
/// one such event.
const REFUSALS_REPORTED_APART: usize = 1024;

/// Maximum number of switches whose tables an app reads at the same time: incomplete replies share
/// a limit over all switches of a worker.
const READ_AT_A_TIME: usize = 64;

/// Maximum number of switches that an app audits at the same time: nothing waits for an audit.
const AUDITS_AT_A_TIME: usize = 4;

/// Time for a switch to report its tables.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// Keeps the switches at an app's desired state, as long as the controller runs.
pub(super) async fn run(network: Network, desired: Desired) {
    // The controller itself has no flows.
    let Some(app) = network.app_id() else { return };
    let (report_sender, reports) = async_channel::unbounded();
    let orders = OperatorChanges::of(&network);
    let mut task = DesiredTask {
        network: network.clone(),
        app,
        desired: desired.clone(),
        operator_changes: Arc::clone(&orders),
        orders: 0,
        switches: BTreeMap::new(),
        elsewhere: BTreeSet::new(),
        missing: MissingEntries::default(),
        changed: BTreeSet::new(),
        added: BTreeMap::new(),
        ready: BTreeSet::new(),
        removing: BTreeSet::new(),
        in_flight: PendingPrograms::default(),
        next_run: None,
        changes_sent: 0,
        refusals: Repeats::new(REFUSAL_REPORTED_EVERY, REFUSALS_REPORTED_APART),
        reports,
        report_sender,
    };
    let mut tables = None;
    loop {
        let writes = desired.0.writes.watch().load();
        let switches = network.watch_switches().load();
        let orders_now = orders.watch().load();
        let standbys = network.standbys().load();
        task.run_once(**writes, **orders_now, tables.take());
        let new_book = desired.0.writes.watch().newer(writes.version());
        let new_switches = network.watch_switches().newer(switches.version());
        let next_tables = async { tables = task.next_tables().await };
        let new_orders = orders.watch().newer(orders_now.version());
        let new_standbys = network.standbys().newer(standbys.version());
        next_tables.or(new_book).or(new_switches).or(new_orders).or(new_standbys).await;
    }
}

/// The result of reading a switch's tables.
struct TablesReport {
    dpid: Dpid,
    /// When the switch came up. Results of earlier connections are ignored.
    since: Duration,
    is_audit: bool,
    tables: Result<KnownEntries, RequestError>,
}

struct DesiredTask {
    network: Network,
    app: AppId,
    desired: Desired,
    operator_changes: Arc<OperatorChanges>,
    /// Number of the last change of the counts of orders that was noted.
    orders: u64,
    switches: BTreeMap<Dpid, DesiredSwitch>,
    /// Switches that another controller of the cluster is master of. It has the same intents.
    elsewhere: BTreeSet<Dpid>,
    missing: MissingEntries,
    /// Switches to compare.
    changed: BTreeSet<Dpid>,
    /// Switches in which only these intents were added.
    added: BTreeMap<Dpid, BTreeSet<u32>>,
    /// Switches that may have changes to send.
    ready: BTreeSet<Dpid>,
    /// Switches with flows to remove.
    removing: BTreeSet<Dpid>,
    /// Programs under way: the switch, when it came up, and the changes.
    in_flight: PendingPrograms<(Dpid, Duration, Vec<SentChange>)>,
    /// When to run again, if no event comes before.
    next_run: Option<Duration>,
    changes_sent: u64,
    /// Limits the events about refusals. `None` stands for further switches and reasons.
    refusals: Repeats<Option<(Dpid, Refusal)>>,
    reports: Receiver<TablesReport>,
    report_sender: Sender<TablesReport>,
}

impl DesiredTask {
    /// Waits for outcomes, for a time, or for a switch's tables, which it returns.
    async fn next_tables(&mut self) -> Option<TablesReport> {
        let DesiredTask { network, reports, in_flight, next_run, .. } = self;
        let mut report = None;
        // `self.told` is a sender too, so the channel is never closed.
        let tables = async { report = reports.recv().await.ok() };
        in_flight.any_finished().or(wait_until(network, *next_run)).or(tables).await;
        report
    }

    /// Brings all switches as far as possible now. `tables` are those that woke the task.
    fn run_once(&mut self, writes: u64, orders: u64, tables: Option<TablesReport>) {
        self.next_run = None;
        self.take_outcomes();
        self.update_switches();
        self.update_elsewhere();
        self.take_orders(orders);
        self.take_tables(tables);
        self.read_tables();
        self.clear_refusals();
        let desired = self.desired.clone();
        let mut book = desired.book();
        for (dpid, change) in book.take_changed(self.switches.keys().copied()) {
            match change {
                BookChange::Added(intents) => drop(self.added.insert(dpid, intents)),
                BookChange::Other => drop(self.changed.insert(dpid)),
            }
        }
        self.retry(&book.take_retried());
        self.find_orphans(&book.take_new());
        self.compare(&mut book);
        self.schedule_removals(&book);
        self.send(&book);
        let intents = self.intents(&mut book);
        drop(book);
        // A change sent now would make an audit begun before worthless.
        self.audit();
        self.publish(writes, intents);
        self.answer_questions();
    }

    fn run_at(&mut self, at: Duration) {
        self.next_run = Some(self.next_run.map_or(at, |next_run| next_run.min(at)));
    }

    /// Notes the outcomes of programs. Those of a switch that has gone down are void: a controller
    /// that lost an election gets refusals, which are no alarm.
    fn take_outcomes(&mut self) {
        let now = self.network.now();
        let all = self.network.switches();
        for ((dpid, since, sent), outcomes) in self.in_flight.take_finished() {
            let is_up = all.get(dpid).is_some_and(|info| info.since == since);
            let up = self.switches.get_mut(&dpid).filter(|switch| is_up && switch.since == since);
            let Some(switch) = up else { continue };
            let result = switch.finish_program(now, sent, outcomes);
            for why in result.refused {
                let Some((_, times)) = self.refusals.note(Some((dpid, why)), None, now) else {
                    continue;
                };
                let event = Event::WantedRefused { app: self.network.app(), dpid, why, times };
                self.network.events().publish(now, event);
            }
            if result.needs_comparison {
                self.changed.insert(dpid);
            } else {
                for (intent, distance) in result.installed {
                    self.missing.installed(intent, distance, dpid);
                }
            }
            self.ready.insert(dpid);
        }
    }

    /// Notes which switches are up.
    fn update_switches(&mut self) {
        let up = self.network.switches();
        self.switches.retain(|dpid, switch| {
            let is_kept = up.get(*dpid).is_some_and(|info| info.since == switch.since);
            if !is_kept {
                self.changed.insert(*dpid);
            }
            is_kept
        });
        let orders = &self.operator_changes;
        for info in up.iter() {
            self.switches.entry(info.dpid).or_insert_with(|| {
                self.changed.insert(info.dpid);
                DesiredSwitch::new(info, orders.of_switch(info.dpid))
            });
        }
    }

    /// Notes which switches obey another controller of the cluster. Entries in them are its task:
    /// nothing here waits for them.
    fn update_elsewhere(&mut self) {
        let standbys = self.network.standbys().load();
        let obeys_another = |dpid: &Dpid| {
            !self.switches.contains_key(dpid) && self.network.reachable(*dpid).is_some()
        };
        let elsewhere = standbys.iter().map(|info| info.dpid).filter(obeys_another).collect();
        let before = std::mem::replace(&mut self.elsewhere, elsewhere);
        self.changed.extend(before.symmetric_difference(&self.elsewhere));
    }

    /// Notes the orders of operators, if there are new ones.
    fn take_orders(&mut self, number: u64) {
        if std::mem::replace(&mut self.orders, number) != number {
            self.switches.values_mut().for_each(DesiredSwitch::note_orders);
        }
    }

    /// Takes the tables that switches have reported.
    fn take_tables(&mut self, first: Option<TablesReport>) {
        let now = self.network.now();
        let reports = self.reports.clone();
        let further = std::iter::from_fn(|| reports.try_recv().ok());
        for TablesReport { dpid, since, is_audit, tables } in first.into_iter().chain(further) {
            let up = self.switches.get_mut(&dpid).filter(|switch| switch.since == since);
            let Some(switch) = up else { continue };
            let why = tables.as_ref().map_or_else(|why| Some(*why), |known| known.unreported);
            if let Some(why) = why
                && !std::mem::replace(&mut switch.is_unreported, true)
            {
                let event = Event::TablesUntold { app: self.network.app(), dpid, why };
                self.network.events().publish(now, event);
            }
            if is_audit {
                let by_order = switch.is_outdated();
                let report = switch.finish_audit(now, tables);
                publish_report(&self.network, dpid, report, by_order);
                self.changed.insert(dpid);
                continue;
            }
            if switch.read_state != ReadState::Now {
                continue;
            }
            let known = match tables {
                Ok(known) => known,
                Err(why) => {
                    let pause =
                        if why == RequestError::TooLarge { AUDIT_EVERY } else { READ_AGAIN };
                    switch.read_state = ReadState::At(now + pause);
                    continue;
                }
            };
            if known.foreign > 0 && is_first_reader(&self.network, dpid, since) {
                let event = Event::ForeignFlows { dpid, flows: known.foreign };
                self.network.events().publish(now, event);
            }
            if switch.known.is_none() {
                self.desired.0.found.publish(dpid, &known);
            }
            switch.set_reported(now, known);
            self.changed.insert(dpid);
        }
    }

    /// Starts to read the tables that are due, each in its own task: none waits for another.
    fn read_tables(&mut self) {
        let now = self.network.now();
        let mut times = Vec::new();
        for switch in self.switches.values_mut().filter(|switch| switch.needs_object_read()) {
            switch.read_state = ReadState::At(now);
        }
        let is_read = |switch: &&DesiredSwitch| switch.read_state == ReadState::Now;
        let mut free =
            READ_AT_A_TIME.saturating_sub(self.switches.values().filter(is_read).count());
        for (dpid, switch) in &mut self.switches {
            match switch.read_state {
                // Its turn comes when an earlier read has ended.
                ReadState::At(at) if at <= now && free == 0 => {}
                ReadState::At(at) if at <= now => {
                    switch.begin_read();
                    free -= 1;
                    let objects = self.desired.book().objects_in(*dpid, switch.version);
                    if !spawn_read(
                        &self.network,
                        &self.report_sender,
                        *dpid,
                        switch,
                        objects,
                        false,
                    ) {
                        switch.read_state = ReadState::At(now + READ_AGAIN);
                        times.push(now + READ_AGAIN);
                    }
                }
                ReadState::At(at) => times.push(at),
                ReadState::Now | ReadState::Not => {}
            }
        }
        times.into_iter().for_each(|at| self.run_at(at));
    }

    /// Starts the audits that are due, to find changes by others. Own changes go on meanwhile.
    fn audit(&mut self) {
        let now = self.network.now();
        let mut times = Vec::new();
        let is_audited =
            |switch: &&DesiredSwitch| matches!(switch.audit, Audit::Now | Audit::Overtaken);
        let mut audited = self.switches.values().filter(is_audited).count();
        for (dpid, switch) in &mut self.switches {
            // An operator waits for the audit after an order.
            let limit = if switch.is_outdated() { READ_AT_A_TIME } else { AUDITS_AT_A_TIME };
            match switch.audit {
                Audit::At(at) if at > now => times.push(at),
                // A switch with changes under way, or an unfinished read, has its turn later.
                Audit::At(_) if audited < limit && switch.next_send().is_some() => {
                    audited += 1;
                    switch.begin_audit();
                    let objects = self.desired.book().objects_in(*dpid, switch.version);
                    if !spawn_read(&self.network, &self.report_sender, *dpid, switch, objects, true)
                    {
                        switch.audit = Audit::At(now + AUDIT_EVERY);
                        times.push(now + AUDIT_EVERY);
                    }
                }
                _ => {}
            }
        }
        times.into_iter().for_each(|at| self.run_at(at));
    }

    /// Forgets refusals that are old enough.
    fn clear_refusals(&mut self) {
        let now = self.network.now();
        let mut times = Vec::new();
        for (dpid, switch) in &mut self.switches {
            match switch.refused_until {
                Some(until) if until <= now => {
                    switch.refused = RefusedChanges::default();
                    switch.refused_until = None;
                    self.changed.insert(*dpid);
                }
                Some(until) => times.push(until),
                None => {}
            }
        }
        times.into_iter().for_each(|at| self.run_at(at));
    }

    /// Forgets refused changes of these intents.
    fn retry(&mut self, intents: &BTreeSet<u32>) {
        if intents.is_empty() {
            return;
        }
        for (dpid, switch) in &mut self.switches {
            if switch.retry(intents) {
                self.changed.insert(*dpid);
            }
        }
    }

    /// Finds the switches with flows of an earlier run whose numbers have become intents.
    fn find_orphans(&mut self, new: &BTreeSet<u32>) {
        let has_orphan =
            |switch: &DesiredSwitch| new.iter().any(|intent| switch.orphans.contains(intent));
        let found = self.switches.iter().filter(|(_, switch)| has_orphan(switch));
        self.changed.extend(found.map(|(dpid, _)| *dpid));
    }

    /// Compares the switches that have changed.
    fn compare(&mut self, book: &mut WantedEntries) {
        for (dpid, intents) in std::mem::take(&mut self.added) {
            if self.changed.contains(&dpid) || !self.add(dpid, &intents, book) {
                self.changed.insert(dpid);
            }
        }
        let mut needs_read = false;
        for dpid in std::mem::take(&mut self.changed) {
            let why = match self.switches.get_mut(&dpid) {
                None if self.elsewhere.contains(&dpid) => {
                    self.missing.set(dpid, MissingAtSwitch::new());
                    continue;
                }
                None => LackCause::Away,
                Some(switch) if switch.known.is_none() => LackCause::Due,
                Some(switch) => {
                    let wanted = book.objects_in(dpid, switch.version);
                    let requested =
                        switch.known.as_ref().map(|known| known.requested).unwrap_or_default();
                    switch.lacks_objects = !requested.include(wanted);
                    needs_read |= switch.lacks_objects;
                    let missing = compare(&self.network, self.app, dpid, switch, book);
                    self.missing.set(dpid, missing);
                    self.removing.insert(dpid);
                    self.ready.insert(dpid);
                    continue;
                }
            };
            let missing =
                book.entries(dpid).map(|(intent, entry)| ((intent, entry.flow_distance()), why));
            let all = missing.collect();
            self.missing.set(dpid, all);
        }
        self.ready.extend(self.missing.take_freed());
        if needs_read {
            // In the next pass.
            self.run_at(self.network.now());
        }
    }

    /// Adds flows of new intents to a switch that lacks nothing, at a cost that does not grow with
    /// its tables. Returns `false` if the whole switch has to be compared.
    fn add(&mut self, dpid: Dpid, intents: &BTreeSet<u32>, book: &mut WantedEntries) -> bool {
        let Some(switch) = self.switches.get_mut(&dpid).filter(|it| it.lacks_nothing()) else {
            return false;
        };
        let Some(known) = &switch.known else { return false };
        let of_app = (self.app, switch.version);
        let Some(additions) = additions(dpid, book, known, intents, of_app) else { return false };
        debug_assert_eq!(
            additions,
            difference(dpid, book, known, switch.held(self.network.now()), of_app).additions,
            "a comparison of all entries of {dpid} finds the same"
        );
        self.missing.set(dpid, missing_additions(&additions));
        switch.add(additions);
        self.ready.insert(dpid);
        true
    }

    /// Finds which flows to remove are needed by no other flow, and when their time is over.
    fn schedule_removals(&mut self, book: &WantedEntries) {
        let now = self.network.now();
        // It is unknown which intents need a flow of an earlier run: any ordered one may.
        let is_any_due = self.missing.due().any(|intent| book.is_ordered(intent));
        let mut times = Vec::new();
        self.removing.retain(|dpid| {
            let Some(switch) = self.switches.get_mut(dpid) else { return false };
            let is_free = |intent| {
                if !book.known_intents.contains(&intent) {
                    !is_any_due && !self.missing.is_due_at(*dpid, None)
                } else if book.is_ordered(intent) {
                    !self.missing.is_due(intent)
                } else {
                    !self.missing.is_due_at(*dpid, Some(intent))
                }
            };
            match switch.mark_free(now, is_free) {
                Some(at) if at <= now => {
                    self.ready.insert(*dpid);
                }
                Some(at) => times.push(at),
                None => {}
            }
            switch.has_removals()
        });
        times.into_iter().for_each(|at| self.run_at(at));
    }

    /// Sends the changes that wait for nothing.
    fn send(&mut self, book: &WantedEntries) {
        let now = self.network.now();
        for dpid in std::mem::take(&mut self.ready) {
            let Some(switch) = self.switches.get_mut(&dpid) else { continue };
            // Otherwise it is ready again after the event that it waits for.
            let Some(at) = switch.next_send() else { continue };
            if at > now {
                self.ready.insert(dpid);
                self.run_at(at);
                continue;
            }
            let program = switch.take_program(now, book, &self.missing);
            if program.is_empty() {
                continue;
            }
            let changes: Vec<Change> = program.iter().map(|sent| sent.due.change.clone()).collect();
            self.changes_sent += changes.len() as u64;
            let key = (dpid, switch.since, program);
            self.in_flight.push(key, self.network.program_within(dpid, changes, CONFIRM_WITHIN));
        }
    }
}

/// Starts a task that reads the tables of a switch. Returns `false` if there are too many tasks.
fn spawn_read(
    network: &Network,
    report_sender: &Sender<TablesReport>,
    dpid: Dpid,
    switch: &DesiredSwitch,
    objects: Objects,
    is_audit: bool,
) -> bool {
    let (since, version) = (switch.since, switch.version);
    let missing = switch.not_kept.missing_flows();
    let selection = match is_audit {
        true if missing.is_empty() => FlowSelection::Own,
        true => FlowSelection::AllAnd(missing),
        false => FlowSelection::All,
    };
    let (reader, report_sender) = (network.clone(), report_sender.clone());
    let task = network.spawn(format!("read the tables of {dpid}"), async move {
        let reply = reader.timeout(READ_WITHIN, read(&reader, dpid, version, selection, objects));
        let tables = reply.await.unwrap_or(Err(RequestError::Unanswered));
        // The receiver lives as long as the controller.
        let _ = report_sender.try_send(TablesReport { dpid, since, is_audit, tables });
    });
    !task.is_over()
}

/// Publishes what an audit of a switch has found.
fn publish_report(network: &Network, dpid: Dpid, report: KeptReport, by_order: bool) {
    let (app, now) = (network.app(), network.now());
    if report.altered > 0 {
        let event = Event::WantedAltered { app, dpid, flows: report.altered, by_order };
        network.events().publish(now, event);
    }
    if let Some(example) = report.example {
        let event = Event::WantedNotKept { app, dpid, entries: report.not_kept, example };
        network.events().publish(now, event);
    }
    if report.is_over {
        network.events().publish(now, Event::WantedKept { app, dpid });
    }
}

/// Compares a switch that has reported its tables. Returns its missing entries.
fn compare(
    network: &Network,
    app: AppId,
    dpid: Dpid,
    switch: &mut DesiredSwitch,
    book: &mut WantedEntries,
) -> MissingAtSwitch {
    let Some(known) = &switch.known else { return MissingAtSwitch::new() };
    let held = switch.held(network.now());
    let found = difference(dpid, book, known, held, (app, switch.version));
    let (missing, installed) = (found.missing(), known.flows.len());
    switch.set_difference(found);
    let changes = switch.changes();
    if std::mem::take(&mut switch.is_new) && installed + changes > 0 {
        let event = Event::Reconciled { app: network.app(), dpid, found: installed, changes };
        network.events().publish(network.now(), event);
    }
    missing
}

/// Connections of switches whose foreign flows were reported, each by the first app that read them.
#[derive(Default)]
struct Reported(Mutex<BTreeSet<(Dpid, Duration)>>);

fn is_first_reader(network: &Network, dpid: Dpid, since: Duration) -> bool {
    let reported = network.extension::<Reported>();
    let mut reported = reported.0.lock().unwrap_or_else(PoisonError::into_inner);
    reported.retain(|(other, at)| *other != dpid || *at == since);
    reported.insert((dpid, since))
}
