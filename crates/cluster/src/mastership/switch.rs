//! One switch: its record, and what this node is at it.

use std::time::Duration;

use bellrock_api::{Dpid, RoleOrder};

use super::unclaimed::Unclaimed;
use super::{
    CONNECT_GRACE, LOOK_FOR_PLACE, MAX_REFUSED_CLAIMS, MAX_SWITCHES, Mastership, NEW_SWITCH,
    Notice, Output, RECORD_FOLLOWS, RETRY, SwitchRole, UNANSWERED, UNFIT, YIELD,
};
use crate::node::NodeId;
use crate::record::{Generation, Record, is_later, later, next_epoch};

/// What this node knows of a switch.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) record: Option<Record>,
    pub(super) here: Option<Here>,
    /// When the entry is looked at again.
    pub(super) wake: Option<Duration>,
    /// The newest epoch of any record or claim, which the next record must exceed.
    pub(super) epoch: u64,
    /// The last generation that this process has claimed.
    pub(super) claimed: Option<Generation>,
    /// The record that is being written: its first node, and when it counts as failed.
    pub(super) writing: Option<(NodeId, Duration)>,
    /// Whether etcd has not taken the last record.
    pub(super) has_failed: bool,
    /// When the next record may be written.
    pub(super) next_write: Duration,
    /// Number of records that this node has written since the switch has had a master.
    pub(super) writes: u32,
    /// Since when this node waits for nodes in front of it that live and lack the switch.
    missed_since: Option<Duration>,
    /// While no node says that it is master of the switch.
    pub(super) unclaimed: Option<Unclaimed>,
    /// Since when no node has it, as far as this one knows.
    pub(super) unused_since: Option<Duration>,
}

impl Entry {
    /// Whether a record is on its way to etcd.
    pub(super) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }
}

/// A switch that is connected to this node.
#[derive(Debug)]
pub(super) struct Here {
    since: Duration,
    pub(super) role: Role,
    /// The newest generation that the switch is known to have seen.
    pub(super) newest: Option<Generation>,
    /// Whether this is what the switch has seen, or must be asked for before a claim.
    pub(super) question: Question,
    /// No claim before.
    next_claim: Duration,
    /// Whether a stale generation is to be jumped over.
    must_jump: bool,
    refused: u32,
}

/// Whether a switch was asked what it has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Answered,
    /// This node has lost the switch, or the majority, since.
    Open,
    /// It is asked again at this time.
    Asked(Duration),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    Standby,
    Claiming {
        generation: Generation,
        until: Duration,
    },
    /// `claim`: a newer generation has been ordered, or the same one again, until its answer or this
    /// time. `confirm_at`: the same one is ordered again then.
    Master {
        generation: Generation,
        claim: Option<Duration>,
        yield_at: Option<Duration>,
        confirm_at: Option<Duration>,
    },
}

impl Role {
    pub(super) fn public(self) -> SwitchRole {
        match self {
            Role::Standby => SwitchRole::Standby,
            Role::Claiming { .. } => SwitchRole::Claiming,
            Role::Master { generation, .. } => SwitchRole::Master(generation),
        }
    }
}

/// Which node is to be master of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Designated {
    node: NodeId,
    /// A living node in front of it does not have the switch.
    passes_over: bool,
}

impl Mastership {
    pub(super) fn connected(&mut self, dpid: Dpid, newest: Option<Generation>, now: Duration) {
        self.own.set(dpid, true);
        self.next_heartbeat = now;
        let entry = self.switches.entry(dpid).or_default();
        entry.missed_since = None;
        entry.here = Some(Here {
            since: now,
            role: Role::Standby,
            newest,
            question: Question::Answered,
            next_claim: now,
            must_jump: false,
            refused: 0,
        });
        self.wake_at(dpid, now);
    }

    pub(super) fn disconnected(&mut self, dpid: Dpid, out: &mut Vec<Output>) {
        self.own.set(dpid, false);
        self.end_unclaimed(dpid, out);
        if let Some(entry) = self.switches.get_mut(&dpid) {
            entry.here = None;
        }
        self.forget_unknown(dpid);
        self.moves.withdraw(dpid);
        self.next_heartbeat = Duration::ZERO;
    }

    /// Takes all records. Those that are not among them are gone.
    pub(super) fn read(&mut self, records: Vec<(Dpid, Record)>, now: Duration) {
        self.has_records = true;
        let read: std::collections::BTreeSet<Dpid> =
            records.iter().map(|&(dpid, _)| dpid).collect();
        let known = self.switches.iter().filter(|(_, entry)| entry.record.is_some());
        let gone: Vec<Dpid> =
            known.map(|(&dpid, _)| dpid).filter(|dpid| !read.contains(dpid)).collect();
        for dpid in gone {
            self.set_record(dpid, None, now);
        }
        for (dpid, record) in records {
            self.set_record(dpid, Some(record), now);
        }
    }

    /// Takes a record that was written, unless a newer one is known: answers and changes do not come
    /// in one order.
    pub(super) fn change_record(&mut self, dpid: Dpid, record: Record, now: Duration) {
        // Another record of the same revision is of an etcd that was restored.
        if self.record(dpid).is_none_or(|known| known.revision <= record.revision) {
            self.set_record(dpid, Some(record), now);
        }
    }

    pub(super) fn set_record(&mut self, dpid: Dpid, record: Option<Record>, now: Duration) {
        let entry = self.switches.entry(dpid).or_default();
        if entry.record == record {
            return self.forget_unknown(dpid);
        }
        let load = |record: &Option<Record>| record.as_ref().and_then(Record::first);
        let (before, after) = (load(&entry.record), load(&record));
        match (&entry.record, &record) {
            (None, Some(_)) => self.records += 1,
            (Some(_), None) => self.records -= 1,
            _ => {}
        }
        if let Some(load) = before.and_then(|node| self.loads.get_mut(node.index())) {
            *load = load.saturating_sub(1);
        }
        if let Some(load) = after.and_then(|node| self.loads.get_mut(node.index())) {
            *load += 1;
        }
        if let Some(record) = &record {
            entry.epoch = later(entry.epoch, record.epoch());
        }
        entry.record = record;
        entry.missed_since = None;
        if let Some(here) = &mut entry.here {
            // The record that was waited for.
            here.next_claim = now;
            here.must_jump = false;
        }
        self.forget_unknown(dpid);
        self.wake_at(dpid, now);
    }

    pub(super) fn granted(
        &mut self,
        dpid: Dpid,
        generation: Generation,
        now: Duration,
        out: &mut Vec<Output>,
    ) {
        let Some(entry) = self.switches.get_mut(&dpid) else { return };
        let Some(here) = &mut entry.here else { return };
        here.newest = Generation::newest(here.newest, Some(generation));
        here.refused = 0;
        here.must_jump = false;
        match here.role {
            // Ordered before this node stood by.
            Role::Standby => out.push(Output::Order(dpid, STAND_BY)),
            // The answer to an older claim; that to this one follows.
            Role::Claiming { generation: claimed, .. } if claimed.is_newer_than(generation) => {
                return;
            }
            Role::Claiming { .. } => {
                let before = entry.record.as_ref().and_then(Record::first);
                out.push(Output::Notice(Notice::Master(
                    dpid,
                    before.filter(|&node| node != self.me),
                )));
                here.role =
                    Role::Master { generation, claim: None, yield_at: None, confirm_at: None };
            }
            Role::Master { yield_at, confirm_at, .. } => {
                here.role = Role::Master { generation, claim: None, yield_at, confirm_at };
            }
        }
        self.wake_at(dpid, now);
    }

    pub(super) fn stale(
        &mut self,
        dpid: Dpid,
        newest: Option<Generation>,
        now: Duration,
        out: &mut Vec<Output>,
    ) {
        if self.is_master(dpid) {
            // It has obeyed another node since, which may be gone.
            self.fenced(dpid, out);
            out.push(Output::Order(dpid, STAND_BY));
        }
        let Some(here) = self.here(dpid) else { return };
        match newest {
            Some(_) => here.newest = newest,
            // It must be asked.
            None => here.question = Question::Open,
        }
        here.role = Role::Standby;
        here.must_jump = true;
        here.next_claim = now + RECORD_FOLLOWS;
        self.wake_at(dpid, now);
    }

    pub(super) fn refused(&mut self, dpid: Dpid, now: Duration, out: &mut Vec<Output>) {
        let Some(here) = self.here(dpid) else { return };
        here.role = Role::Standby;
        here.next_claim = now + RETRY;
        here.refused += 1;
        if here.refused >= MAX_REFUSED_CLAIMS {
            here.refused = 0;
            here.next_claim = now + UNFIT;
            self.own.set(dpid, false);
            out.push(Output::Notice(Notice::Unfit(dpid)));
        }
        self.wake_at(dpid, now);
    }

    pub(super) fn demoted(&mut self, dpid: Dpid, now: Duration, out: &mut Vec<Output>) {
        if self.is_master(dpid) {
            self.fenced(dpid, out);
        }
        let Some(entry) = self.switches.get_mut(&dpid) else { return };
        let Some(here) = &mut entry.here else { return };
        if let Role::Master { generation, .. } = here.role {
            let record = entry.record.as_ref();
            // The record of the other node may be here already.
            here.must_jump =
                record.is_none_or(|record| !is_later(record.epoch(), generation.epoch()));
            here.next_claim = if here.must_jump { now + RECORD_FOLLOWS } else { now };
        }
        here.role = Role::Standby;
        here.question = Question::Open;
        self.moves.withdraw(dpid);
        self.wake_at(dpid, now);
    }

    /// Reports that this node has lost a switch to another one. After a move it is what was wanted.
    fn fenced(&self, dpid: Dpid, out: &mut Vec<Output>) {
        let is_first = self.record(dpid).and_then(Record::first) == Some(self.me);
        if is_first && !self.moves.is_handing_over(dpid) {
            out.push(Output::Notice(Notice::Fenced(dpid)));
        }
    }

    /// Takes what the switch has seen. It has said so itself, so nothing else counts any more.
    pub(super) fn asked(&mut self, dpid: Dpid, newest: Option<Generation>, now: Duration) {
        let Some(here) = self.here(dpid) else { return };
        // The answer is older than a claim.
        if !matches!(here.role, Role::Standby) {
            return;
        }
        here.newest = newest;
        here.question = Question::Answered;
        self.wake_at(dpid, now);
    }

    /// Asks the switch what it has seen, unless it is asked already.
    pub(super) fn ask(&mut self, dpid: Dpid, now: Duration, out: &mut Vec<Output>) {
        let Some(here) = self.here(dpid) else { return };
        let until = match here.question {
            Question::Asked(until) if now < until => until,
            _ => {
                here.question = Question::Asked(now + UNANSWERED);
                out.push(Output::Ask(dpid));
                now + UNANSWERED
            }
        };
        self.wake_at(dpid, until);
    }

    /// Looks at a switch again at this time, or before.
    pub(super) fn wake_at(&mut self, dpid: Dpid, at: Duration) {
        let Some(entry) = self.switches.get_mut(&dpid) else { return };
        match entry.wake {
            Some(before) if before <= at => return,
            Some(before) => {
                self.timers.remove(&(before, dpid));
            }
            None => {}
        }
        entry.wake = Some(at);
        self.timers.insert((at, dpid));
    }

    /// Looks at a switch: does what is to be done, and tells the other nodes what this one is there.
    pub(super) fn look_at(&mut self, dpid: Dpid, now: Duration, out: &mut Vec<Output>) {
        self.decide(dpid, now, out);
        let generation = match self.role(dpid) {
            SwitchRole::Master(generation) => Some(generation),
            SwitchRole::Away | SwitchRole::Standby | SwitchRole::Claiming => None,
        };
        self.own.set_generation(dpid, generation);
        self.look_for_master(dpid, now, out);
    }

    fn decide(&mut self, dpid: Dpid, now: Duration, out: &mut Vec<Output>) {
        if let SwitchRole::Master(held) = self.role(dpid)
            && self.is_named_newer(dpid, held)
        {
            // The switch has granted it, so it obeys this node no more. It may not say so.
            out.push(Output::Order(dpid, STAND_BY));
            return self.demoted(dpid, now, out);
        }
        let serving = self.serving;
        let Some(entry) = self.switches.get_mut(&dpid) else { return };
        let Some(here) = &mut entry.here else {
            entry.missed_since = None;
            return;
        };
        if !serving {
            here.question = Question::Open;
            if !matches!(here.role, Role::Standby) {
                here.role = Role::Standby;
                out.push(Output::Order(dpid, STAND_BY));
            }
            return;
        }
        match here.role {
            Role::Claiming { until, .. } if until <= now => {
                self.refused(dpid, now, out);
                return;
            }
            Role::Claiming { until, .. } => return self.wake_at(dpid, until),
            Role::Standby | Role::Master { .. } => {}
        }
        // The time of a node that the switch had refused is over.
        if here.next_claim <= now && !self.own.contains(dpid) {
            self.own.set(dpid, true);
        }
        self.confirm(dpid, now, out);
        match self.designated(dpid) {
            None => self.propose(dpid, now, out),
            Some(Designated { node, passes_over }) if node == self.me => {
                if self.has_waited(dpid, passes_over, now) {
                    self.lead(dpid, now, out);
                }
            }
            Some(_) if self.waits_in_vain(dpid, now) => self.lead(dpid, now, out),
            Some(_) => self.follow(dpid, now, out),
        }
    }

    /// The node that is to be master of a switch, as this node sees it. The switch may not obey it yet.
    #[must_use]
    pub fn master(&self, dpid: Dpid) -> Option<NodeId> {
        self.designated(dpid).map(|designated| designated.node)
    }

    /// The first node of the order that lives and has the switch. `None`: there is no record, or no
    /// such node.
    ///
    /// The order begins with the node that the switch has obeyed last, as far as this node knows from
    /// the switch or from others: it has taken over, and its record may still be on the way.
    fn designated(&self, dpid: Dpid) -> Option<Designated> {
        let entry = self.switches.get(&dpid)?;
        let record = entry.record.as_ref()?;
        let seen = entry.here.as_ref().and_then(|here| here.newest);
        let named = self.peers.nodes().map(|node| self.peers.generation(node, dpid));
        let newest = named.fold(seen, Generation::newest);
        let begin = newest.map_or(0, |newest| record.place_after(newest)).min(record.masters.len());
        let (before, from) = record.masters.split_at(begin);
        let mut passes_over = false;
        for &node in from.iter().chain(before).filter(|&&node| self.may_serve(node)) {
            if self.is_connected(node, dpid) {
                return Some(Designated { node, passes_over });
            }
            passes_over = true;
        }
        None
    }

    /// Whether nodes in front of this one had the time to get their connections to the switch.
    fn has_waited(&mut self, dpid: Dpid, passes_over: bool, now: Duration) -> bool {
        let Some(entry) = self.switches.get_mut(&dpid) else { return false };
        let is_master = matches!(&entry.here, Some(Here { role: Role::Master { .. }, .. }));
        if !passes_over || is_master {
            entry.missed_since = None;
            return true;
        }
        let until = *entry.missed_since.get_or_insert(now) + CONNECT_GRACE;
        if now < until {
            self.wake_at(dpid, until);
        }
        now >= until
    }

    /// This node is to be master: claims the switch, and puts itself in front of the record.
    fn lead(&mut self, dpid: Dpid, now: Duration, out: &mut Vec<Output>) {
        let me = self.me;
        let Some(entry) = self.switches.get_mut(&dpid) else { return };
        let (Some(record), Some(here)) = (&entry.record, &mut entry.here) else { return };
        let Some(generation) = record.generation(me) else {
            // The cluster has got more nodes since the record was written.
            self.write_with_me_first(dpid, now, out);
            return;
        };
        let is_first = record.first() == Some(me);
        let is_old = is_later(entry.epoch, record.epoch());
        match &mut here.role {
            Role::Master { generation: held, claim, yield_at, .. } => {
                *yield_at = None;
                if is_old || !is_first || is_later(held.epoch(), record.epoch()) {
                    self.write_with_me_first(dpid, now, out);
                    return;
                }
                // The switch learns the generation of a new record, so that it refuses nodes that
                // know only the old one.
                if generation.is_newer_than(*held) && claim.is_none_or(|until| until <= now) {
                    *claim = Some(now + UNANSWERED);
                    entry.claimed = Some(generation);
                    out.push(Output::Order(dpid, claim_of(generation)));
                    self.wake_at(dpid, now + UNANSWERED);
                }
            }
            Role::Standby if now < here.next_claim => {
                let at = here.next_claim;
                self.wake_at(dpid, at);
            }
            // What it has seen may be newer than all that this node knows.
            Role::Standby if here.question != Question::Answered => self.ask(dpid, now, out),
            Role::Standby => {
                // A generation that the switch knows, and that this process has not claimed, is
                // that of another master, or of a process before.
                let is_known = here.newest.is_some_and(|newest| {
                    newest.is_newer_than(generation)
                        || newest == generation && entry.claimed != Some(generation)
                });
                let needs_record = is_old || is_known || here.must_jump;
                let is_lost = entry.writing.is_some_and(|(_, until)| until <= now);
                let mut generation = generation;
                if needs_record && (entry.has_failed || is_lost) {
                    // etcd is away, so the record follows later. No other node can have this one.
                    entry.has_failed = false;
                    let newest = Generation::newest(entry.claimed, here.newest);
                    let epoch = newest.map_or(entry.epoch, |it| later(entry.epoch, it.epoch()));
                    generation = Generation::new(next_epoch(epoch), 0, me);
                } else if needs_record {
                    let jumped = here.newest.filter(|_| is_known && here.must_jump);
                    let is_sent = self.write_with_me_first(dpid, now, out);
                    if let Some(newest) = jumped.filter(|_| is_sent) {
                        out.push(Output::Notice(Notice::Jumped(dpid, newest)));
                    }
                    return;
                }
                let until = now + UNANSWERED;
                here.role = Role::Claiming { generation, until };
                entry.claimed = Some(generation);
                out.push(Output::Order(dpid, claim_of(generation)));
                self.wake_at(dpid, until);
            }
            Role::Claiming { .. } => {}
        }
    }

    /// Another node is to be master.
    fn follow(&mut self, dpid: Dpid, now: Duration, out: &mut Vec<Output>) {
        let Some(entry) = self.switches.get_mut(&dpid) else { return };
        entry.missed_since = None;
        let Some(here) = &mut entry.here else { return };
        here.must_jump = false;
        let Role::Master { generation, yield_at, .. } = &mut here.role else { return };
        let held = *generation;
        // A node with a lower rank than the one that this node has taken over with is refused by the
        // switch. So this node stays, and its record follows.
        let theirs = entry.record.as_ref().map_or(0, Record::epoch);
        if !is_later(theirs, held.epoch()) {
            self.write_with_me_first(dpid, now, out);
            return;
        }
        let at = *yield_at.get_or_insert(now + YIELD);
        if now < at {
            return self.wake_at(dpid, at);
        }
        here.role = Role::Standby;
        out.push(Output::Order(dpid, STAND_BY));
    }

    /// There is no record, or no node of it is there. The first node that has the switch writes one.
    fn propose(&mut self, dpid: Dpid, now: Duration, out: &mut Vec<Output>) {
        let Some(Entry { here: Some(here), .. }) = self.switches.get(&dpid) else { return };
        let is_master = matches!(here.role, Role::Master { .. });
        let since = here.since;
        let in_front = NodeId::all(self.nodes)
            .take_while(|&node| node != self.me)
            .filter(|&node| self.may_serve(node) && self.is_connected(node, dpid));
        let places = u32::try_from(in_front.count()).unwrap_or(u32::MAX).saturating_add(1);
        let at = since + NEW_SWITCH.saturating_mul(places);
        if is_master {
            self.write_with_me_first(dpid, now, out);
        } else if now < at {
            self.wake_at(dpid, at);
        } else if self.record(dpid).is_none() && self.records + self.writing_new() >= MAX_SWITCHES {
            out.push(Output::Notice(Notice::TooMany(dpid)));
            self.wake_at(dpid, now + LOOK_FOR_PLACE);
        } else {
            let masters = self.placement(dpid);
            self.write(dpid, masters, false, now, out);
        }
    }

    pub(super) fn here(&mut self, dpid: Dpid) -> Option<&mut Here> {
        self.switches.get_mut(&dpid)?.here.as_mut()
    }

    /// Whether this node is master of a switch.
    pub(super) fn is_master(&self, dpid: Dpid) -> bool {
        matches!(self.role(dpid), SwitchRole::Master(_))
    }
}

/// Stands by whatever the switch has seen.
const STAND_BY: RoleOrder = RoleOrder::Slave { generation_id: None };

pub(super) fn claim_of(generation: Generation) -> RoleOrder {
    RoleOrder::Master { generation_id: generation.0 }
}
