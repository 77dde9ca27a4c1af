//! The task that keeps the switches at what one app wants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bellrock_api::{
    Change, Dpid, Error, Event, Network, Outcome, Programmed, RequestError, Version,
};

use super::compare::{Difference, Due, Made, Refused, difference};
use super::read::{Known, read};
use super::{Desired, DesiredState, READ_AGAIN, REFUSED_AGAIN, WhyNot};
use crate::programming::DRAIN;
use crate::wait::first;

/// How long a switch has to confirm: others wait for it meanwhile.
const CONFIRM_WITHIN: Duration = Duration::from_secs(3);

/// How long a switch has to tell its tables.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// After how long a switch that had too much to do is sent the rest.
const FULL_AGAIN: Duration = Duration::from_millis(100);

/// Keeps the switches at what an app wants, for as long as the controller runs.
pub(super) async fn keep(network: Network, desired: Desired) {
    let (told, telling) = async_channel::unbounded();
    let mut keeper = Keeper {
        network: network.clone(),
        desired: desired.clone(),
        switches: BTreeMap::new(),
        changed: BTreeSet::new(),
        again: None,
        changes_sent: 0,
        telling,
        told,
    };
    loop {
        let written = desired.0.written.load();
        let switches = network.watch_switches().load();
        keeper.pass(**written).await;
        let new_book = desired.0.written.changed(written.version());
        let new_switches = network.watch_switches().changed(switches.version());
        // One that is told here is lost, so nobody takes it: the pass does.
        let tables = keeper.wait_for_tables();
        let again = keeper.wait_for_time();
        first(first(new_book, new_switches), first(tables, again)).await;
    }
}

/// What a switch has told, and since when it is up: a later connection is another matter.
type Told = (Dpid, Duration, Result<Known, RequestError>);

struct Keeper {
    network: Network,
    desired: Desired,
    switches: BTreeMap<Dpid, InSwitch>,
    /// Switches that are to be compared.
    changed: BTreeSet<Dpid>,
    /// When something is to be tried again.
    again: Option<Duration>,
    changes_sent: u64,
    telling: Receiver<Told>,
    told: Sender<Told>,
}

/// What is known of a switch that is up.
struct InSwitch {
    since: Duration,
    version: Version,
    tables: Tables,
    refused: Refused,
    refused_until: Option<Duration>,
    /// Things wanted, and those of them that are there.
    wanted: usize,
    installed: usize,
    /// It was read, and not yet compared.
    fresh: bool,
    /// Its version cannot say something that is wanted.
    unsayable: Option<Error>,
}

enum Tables {
    /// To be read, at this time or later.
    Unread(Duration),
    Reading,
    Read(Known),
}

impl InSwitch {
    fn is_read(&self) -> bool {
        matches!(self.tables, Tables::Read(_))
    }

    /// Why something that is wanted cannot be there.
    fn why_not(&self) -> Option<WhyNot> {
        let refused = self.refused.first().map(|(_, refusal)| WhyNot::Refused(*refusal));
        refused.or(self.unsayable.map(WhyNot::Unsayable))
    }
}

/// Intents that cannot be gone on with, and the nearest distance from the destination at which something
/// is missing: what is farther has to wait.
#[derive(Default)]
struct Held(BTreeMap<u32, Option<u32>>);

impl Held {
    fn beyond(&mut self, intent: u32, distance: Option<u32>) {
        let nearest = self.0.entry(intent).or_insert(distance);
        *nearest = distance.min(*nearest);
    }
}

/// Changes that are to be made at a switch.
type AtSwitches = BTreeMap<Dpid, Vec<Due>>;

impl Keeper {
    async fn wait_for_tables(&self) {
        while self.telling.is_empty() {
            // The sender is held here too: it does not end.
            let Ok(told) = self.telling.recv().await else { return };
            if self.told.try_send(told).is_err() {
                return;
            }
        }
    }

    async fn wait_for_time(&self) {
        match self.again {
            Some(at) => self.network.sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Brings all switches as far as they can be brought now.
    async fn pass(&mut self, written: u64) {
        self.again = None;
        self.follow_switches();
        self.take_tables();
        self.read_tables();
        self.forgive();
        let changed = self.desired.book().take_changed(self.switches.keys().copied());
        self.changed.extend(changed);
        // Each time something is made, or fails and is known to. More comes by another pass.
        self.compare_and_make().await;
        self.publish(written);
    }

    fn try_again(&mut self, at: Duration) {
        self.again = Some(self.again.map_or(at, |again| again.min(at)));
    }

    /// Notes which switches are up.
    fn follow_switches(&mut self) {
        let up = self.network.switches();
        self.switches
            .retain(|dpid, kept| up.get(*dpid).is_some_and(|info| info.since == kept.since));
        for info in up.iter() {
            self.switches.entry(info.dpid).or_insert_with(|| InSwitch {
                since: info.since,
                version: info.version,
                tables: Tables::Unread(Duration::ZERO),
                refused: Vec::new(),
                refused_until: None,
                wanted: 0,
                installed: 0,
                fresh: false,
                unsayable: None,
            });
        }
    }

    /// Takes what switches have told.
    fn take_tables(&mut self) {
        let now = self.network.now();
        while let Ok((dpid, since, told)) = self.telling.try_recv() {
            let Some(switch) = self.switches.get_mut(&dpid) else { continue };
            if switch.since != since || !matches!(switch.tables, Tables::Reading) {
                continue;
            }
            match told {
                Err(_) => switch.tables = Tables::Unread(now + READ_AGAIN),
                Ok(known) => {
                    if known.foreign > 0 && first_to_read(&self.network, dpid, since) {
                        let event = Event::ForeignFlows { dpid, flows: known.foreign };
                        self.network.events().publish(now, event);
                    }
                    switch.tables = Tables::Read(known);
                    switch.fresh = true;
                    // What waits for this switch is at others, too.
                    let book = self.desired.book();
                    for intent in book.intents_of(dpid) {
                        self.changed.extend(book.switches_of(intent));
                    }
                    self.changed.insert(dpid);
                }
            }
        }
    }

    /// Has the tables read that are to be: each by a task of its own, so that none waits for another.
    fn read_tables(&mut self) {
        let now = self.network.now();
        let mut later = Vec::new();
        for (dpid, switch) in &mut self.switches {
            match switch.tables {
                Tables::Unread(at) if at <= now => {
                    switch.tables = Tables::Reading;
                    let (dpid, since, version) = (*dpid, switch.since, switch.version);
                    let (network, told) = (self.network.clone(), self.told.clone());
                    self.network.spawn(format!("read the tables of {dpid}"), async move {
                        let reading = network.timeout(READ_WITHIN, read(&network, dpid, version));
                        let known = reading.await.unwrap_or(Err(RequestError::Unanswered));
                        // The keeper goes with the controller only.
                        let _ = told.try_send((dpid, since, known));
                    });
                }
                Tables::Unread(at) => later.push(at),
                Tables::Reading | Tables::Read(_) => {}
            }
        }
        later.into_iter().for_each(|at| self.try_again(at));
    }

    /// Forgets what switches have refused long ago.
    fn forgive(&mut self) {
        let now = self.network.now();
        let mut later = Vec::new();
        for (dpid, switch) in &mut self.switches {
            match switch.refused_until {
                Some(until) if until <= now => {
                    switch.refused.clear();
                    switch.refused_until = None;
                    self.changed.insert(*dpid);
                }
                Some(until) => later.push(until),
                None => {}
            }
        }
        later.into_iter().for_each(|at| self.try_again(at));
    }

    async fn compare_and_make(&mut self) {
        let mut held = self.held();
        let (mut adds, mut removes, mut removes_after) = self.compare(&mut held);
        let mut failed = false;
        while let Some((at, round)) = adds.pop_first() {
            let (go, hold) =
                part(round, |due| held.0.get(&due.intent).is_none_or(|nearest| at <= *nearest));
            failed |= !hold.is_empty();
            self.compare_later(hold.keys().copied());
            for intent in self.make(go).await {
                failed = true;
                held.beyond(intent, at);
            }
        }
        if failed {
            // What is not wanted any more may still be needed while what is wanted is not there.
            let (go, hold) = part(removes, |due| {
                self.desired.book().known.contains(&due.intent) && !held.0.contains_key(&due.intent)
            });
            self.compare_later(hold.keys().copied());
            self.compare_later(removes_after.keys().copied());
            (removes, removes_after) = (go, BTreeMap::new());
        }
        if !removes.is_empty() {
            self.network.sleep(DRAIN).await;
            self.make(removes).await;
        }
        if !removes_after.is_empty() {
            self.make(removes_after).await;
        }
    }

    /// The differences of all switches that have changed, by their distance.
    fn compare(
        &mut self,
        held: &mut Held,
    ) -> (BTreeMap<Option<u32>, AtSwitches>, AtSwitches, AtSwitches) {
        let (mut adds, mut removes, mut after) =
            (BTreeMap::<_, AtSwitches>::new(), AtSwitches::new(), AtSwitches::new());
        let Some(app) = self.network.app_id() else { return (adds, removes, after) };
        let desired = self.desired.clone();
        let book = desired.book();
        // Switches that cannot be compared now are when they are read.
        for dpid in std::mem::take(&mut self.changed) {
            let Some(switch) = self.switches.get_mut(&dpid) else { continue };
            let Tables::Read(known) = &switch.tables else { continue };
            let of_app = (app, switch.version);
            let found = difference(dpid, &book, known, &switch.refused, of_app);
            found.stuck.iter().for_each(|(intent, at)| held.beyond(*intent, *at));
            switch.unsayable = found.unsayable;
            let Difference { adds: wanted, removes: gone, removes_after, .. } = found;
            (switch.wanted, switch.installed) = (found.wanted, found.installed);
            if std::mem::take(&mut switch.fresh) {
                let changes = wanted.values().map(Vec::len).sum::<usize>() + gone.len();
                let (app, found) = (self.network.app(), known.flows.len());
                if found + changes > 0 {
                    let event = Event::Reconciled { app, dpid, found, changes };
                    self.network.events().publish(self.network.now(), event);
                }
            }
            for (at, dues) in wanted {
                adds.entry(at).or_default().insert(dpid, dues);
            }
            if !gone.is_empty() {
                removes.insert(dpid, gone);
            }
            if !removes_after.is_empty() {
                after.insert(dpid, removes_after);
            }
        }
        (adds, removes, after)
    }

    /// The intents that have entries in switches that are not there or not read.
    fn held(&self) -> Held {
        let mut held = Held::default();
        let is_read = |dpid| self.switches.get(&dpid).is_some_and(InSwitch::is_read);
        for (intent, distance) in self.desired.book().waiting(is_read) {
            held.beyond(intent, Some(distance));
        }
        held
    }

    /// Compares switches again when something has changed that they wait for.
    fn compare_later(&mut self, switches: impl Iterator<Item = Dpid>) {
        self.changed.extend(switches);
    }

    /// Makes changes, at all their switches at a time. Returns the intents of those that are not
    /// confirmed.
    async fn make(&mut self, round: AtSwitches) -> BTreeSet<u32> {
        let mut waiting: Vec<(Dpid, Vec<Due>, Programmed)> = Vec::new();
        for (dpid, dues) in round {
            let changes: Vec<Change> = dues.iter().map(|due| due.change.clone()).collect();
            self.changes_sent += changes.len() as u64;
            let programmed = self.network.program_within(dpid, changes, CONFIRM_WITHIN);
            waiting.push((dpid, dues, programmed));
        }
        let mut failed = BTreeSet::new();
        for (dpid, dues, programmed) in waiting {
            for (due, outcome) in dues.into_iter().zip(programmed.await) {
                let intent = due.intent;
                if !self.made(dpid, due, outcome) {
                    failed.insert(intent);
                }
            }
        }
        failed
    }

    /// Notes what became of a change. Says whether it is made.
    fn made(&mut self, dpid: Dpid, due: Due, outcome: Outcome) -> bool {
        let now = self.network.now();
        let Some(switch) = self.switches.get_mut(&dpid) else { return false };
        let mut again = None;
        match outcome {
            Outcome::Installed => {
                if let Tables::Read(known) = &mut switch.tables {
                    let adds =
                        matches!(due.made, Made::Flow(_) | Made::Group(..) | Made::Meter(..));
                    switch.installed += usize::from(adds);
                    known.note(due.made);
                }
                return true;
            }
            Outcome::Refused(why) => {
                let event = Event::WantedRefused { app: self.network.app(), dpid, why };
                self.network.events().publish(now, event);
                switch.refused.push((due.change, why));
                let until = *switch.refused_until.get_or_insert(now + REFUSED_AGAIN);
                again = Some(until);
            }
            Outcome::Unknown(_) => {
                // It may be there or not: the switch will tell.
                switch.tables = Tables::Unread(now + READ_AGAIN);
                again = Some(now + READ_AGAIN);
            }
            Outcome::NotSent(Error::Full(_)) | Outcome::Withheld => {
                self.changed.insert(dpid);
                again = Some(now + FULL_AGAIN);
            }
            // The switch has gone, and will be read when it is back.
            Outcome::NotSent(_) => {}
        }
        if let Some(at) = again {
            self.try_again(at);
        }
        false
    }

    fn publish(&self, written: u64) {
        let switches = self.switches.values();
        let refused = self.switches.iter();
        self.desired.0.state.publish(DesiredState {
            written,
            wanted: switches.clone().map(|switch| switch.wanted).sum(),
            installed: switches.clone().map(|switch| switch.installed).sum(),
            unread: switches.filter(|switch| !switch.is_read()).count(),
            refused: refused
                .filter_map(|(dpid, switch)| Some((*dpid, switch.why_not()?)))
                .collect(),
            changes_sent: self.changes_sent,
        });
    }
}

/// Divides changes by what `goes` says of each.
fn part(round: AtSwitches, mut goes: impl FnMut(&Due) -> bool) -> (AtSwitches, AtSwitches) {
    let (mut going, mut staying) = (AtSwitches::new(), AtSwitches::new());
    for (dpid, dues) in round {
        let (go, stay): (Vec<Due>, Vec<Due>) = dues.into_iter().partition(&mut goes);
        if !go.is_empty() {
            going.insert(dpid, go);
        }
        if !stay.is_empty() {
            staying.insert(dpid, stay);
        }
    }
    (going, staying)
}

/// The connections of switches whose foreign flows were reported: each by the first app that read them.
#[derive(Default)]
struct Reported(Mutex<BTreeSet<(Dpid, Duration)>>);

fn first_to_read(network: &Network, dpid: Dpid, since: Duration) -> bool {
    let reported = network.extension::<Reported>();
    let mut reported = reported.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    reported.retain(|(other, at)| *other != dpid || *at == since);
    reported.insert((dpid, since))
}
