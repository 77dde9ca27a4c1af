//! From one state of a switch's tables to another: the changes, in order.
//!
//! A flow whose match and priority stay is replaced, never removed and added: packets see the old
//! or the new one. The order is such that packets always find what a flow sends them to:
//!
//! 1. Ways of a port into a VLAN that are to end are closed: then no packet is left that could miss
//!    an ACL which goes, or be in a group that gets other ports.
//! 2. Meters are added and changed, and groups are added.
//! 3. Flows are added and replaced, from the last table to the first, from the highest priority
//!    down. A flow comes after what it goes to, and a rule that denies before one that allows.
//! 4. Groups are changed: behind flows that keep packets of single ports away from them.
//! 5. New ways into VLANs are opened, behind all their ACLs.
//! 6. Flows are removed, from the first table to the last, from the lowest priority up.
//! 7. Groups and meters are removed.
//!
//! Between these is a barrier, if there is something on both sides.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use bellrock_api::{Change, Flow, FlowCommand, Instruction, Match};

use crate::compile::{CompiledFlow, Entries, Table, Tables};

/// A step of a plan.
#[expect(clippy::large_enum_variant, reason = "nearly all steps are changes")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Change the switch. Priorities of flows are the switch's own, with all 16 bits.
    Change {
        /// The change.
        change: Change,
        /// The whole cookie of a flow that is added; else 0.
        cookie: u64,
    },
    /// Wait until the switch has done all before.
    Barrier,
}

/// Steps from one state to another, in the order in which they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<Step>,
}

/// The changes from one state of a switch's tables to another.
#[must_use]
pub fn diff(old: &Tables, new: &Tables) -> Plan {
    let changed = |one: &Tables, other: &Tables| -> Vec<Entries> {
        let owners = one.owners();
        let is_other = |(owner, entries): &(_, &Entries)| other.owned_by(*owner) != Some(*entries);
        owners.filter(is_other).map(|(_, entries)| entries.clone()).collect()
    };
    Plan::between(&changed(old, new), &changed(new, old))
}

impl Plan {
    /// The changes from what owners had to what they have.
    #[must_use]
    pub fn between(old: &[Entries], new: &[Entries]) -> Plan {
        let (old_flows, new_flows) = (flows(old), flows(new));
        let mut added: Vec<&CompiledFlow> = new_flows
            .list
            .iter()
            .copied()
            .filter(|new| {
                let old = old_flows.with_key(&new.flow);
                old.is_none_or(|old| (&old.flow, old.cookie) != (&new.flow, new.cookie))
            })
            .collect();
        added.sort_by_key(|it| (Reverse(it.flow.table), Reverse(it.flow.priority)));
        let is_opened =
            |it: &&CompiledFlow| is_way_in(&it.flow) && old_flows.with_key(&it.flow).is_none();
        let (opened, added): (Vec<_>, Vec<_>) = added.into_iter().partition(is_opened);
        let mut removed: Vec<&CompiledFlow> = old_flows.list;
        removed.retain(|old| new_flows.with_key(&old.flow).is_none());
        removed.sort_by_key(|it| (it.flow.table, it.flow.priority));
        let (closed, removed): (Vec<_>, Vec<_>) =
            removed.into_iter().partition(|it| is_way_in(&it.flow));

        let of_groups = Parts::new(
            old.iter().flat_map(|it| &it.groups).map(|it| (it.id, it)),
            new.iter().flat_map(|it| &it.groups).map(|it| (it.id, it)),
        );
        let of_meters = Parts::new(
            old.iter().flat_map(|it| &it.meters).map(|it| (it.id, it)),
            new.iter().flat_map(|it| &it.meters).map(|it| (it.id, it)),
        );
        let mut plan = Plan::default();
        let entry = |change| Step::Change { change, cookie: 0 };
        plan.part(closed.into_iter().map(|it| entry(Change::Remove(it.flow.clone()))));
        plan.barrier();
        plan.part(of_meters.set(Change::AddMeter, Change::ModifyMeter).map(entry));
        let groups = of_groups.set(Change::AddGroup, Change::ModifyGroup);
        let (new, changed): (Vec<_>, Vec<_>) =
            groups.partition(|change| matches!(change, Change::AddGroup(_)));
        plan.part(new.into_iter().map(entry));
        let add = |it: &CompiledFlow| Step::Change {
            change: Change::Add(it.flow.clone()),
            cookie: it.cookie,
        };
        let remove = |it: &CompiledFlow| entry(Change::Remove(it.flow.clone()));
        plan.barrier();
        plan.part(added.into_iter().map(add));
        plan.barrier();
        plan.part(changed.into_iter().map(entry));
        plan.barrier();
        plan.part(opened.into_iter().map(add));
        plan.barrier();
        plan.part(removed.into_iter().map(remove));
        plan.barrier();
        plan.part(of_groups.removed().map(|id| entry(Change::RemoveGroup(id))));
        plan.part(of_meters.removed().map(|id| entry(Change::RemoveMeter(id))));
        if plan.steps.last() == Some(&Step::Barrier) {
            plan.steps.pop();
        }
        plan
    }

    fn part(&mut self, steps: impl Iterator<Item = Step>) {
        self.steps.extend(steps);
    }

    /// A barrier, if something was sent since the last one.
    fn barrier(&mut self) {
        if self.steps.last().is_some_and(|last| *last != Step::Barrier) {
            self.steps.push(Step::Barrier);
        }
    }

    /// The steps. The last one is no barrier.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Number of messages: changes, and barriers.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.steps.len()
    }

    /// The changes.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.steps.iter().filter_map(|step| match step {
            Step::Change { change, .. } => Some(change),
            Step::Barrier => None,
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            match step {
                Step::Change { change, .. } => writeln!(f, "{change}")?,
                Step::Barrier => writeln!(f, "barrier")?,
            }
        }
        Ok(())
    }
}

/// Whether a flow lets packets of a port into a VLAN. The table has one number on all switches: the
/// two first tables are always used.
fn is_way_in(flow: &Flow) -> bool {
    flow.table == Table::Vlan as u8
        && flow.with_flow_mod(FlowCommand::Add, |flow| {
            flow.instructions.iter().any(|it| matches!(it, Instruction::GotoTable(_)))
        })
}

/// Flows in order, and where each is.
struct FlowList<'e> {
    list: Vec<&'e CompiledFlow>,
    places: HashMap<(u8, u16, &'e Match), usize>,
}

fn flows(entries: &[Entries]) -> FlowList<'_> {
    let list: Vec<&CompiledFlow> = entries.iter().flat_map(|it| &it.flows).collect();
    let places = list.iter().enumerate().map(|(place, it)| (key(&it.flow), place)).collect();
    FlowList { list, places }
}

fn key(flow: &Flow) -> (u8, u16, &Match) {
    (flow.table, flow.priority, &flow.matching)
}

impl<'e> FlowList<'e> {
    fn with_key(&self, flow: &Flow) -> Option<&'e CompiledFlow> {
        let place = self.places.get(&key(flow))?;
        self.list.get(*place).copied()
    }
}

/// Groups or meters by number, before and after.
struct Parts<'e, T> {
    old: BTreeMap<u32, &'e T>,
    new: BTreeMap<u32, &'e T>,
}

impl<'e, T: Clone + PartialEq> Parts<'e, T> {
    fn new(
        old: impl Iterator<Item = (u32, &'e T)>,
        new: impl Iterator<Item = (u32, &'e T)>,
    ) -> Self {
        Parts { old: old.collect(), new: new.collect() }
    }

    fn set(&self, add: fn(T) -> Change, modify: fn(T) -> Change) -> impl Iterator<Item = Change> {
        self.new.iter().filter_map(move |(id, new)| match self.old.get(id) {
            None => Some(add((*new).clone())),
            Some(old) if old != new => Some(modify((*new).clone())),
            Some(_) => None,
        })
    }

    fn removed(&self) -> impl Iterator<Item = u32> {
        self.old.keys().copied().filter(|id| !self.new.contains_key(id))
    }
}
