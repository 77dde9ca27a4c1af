//! What a switch holds at a moment: flows, groups, meters. It can be stepped along a plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bellrock_api::{Change, Flow, FlowCommand, GroupEntry, Instruction};
use bellrock_openflow::{Action, Field, Match};

use super::Packet;
use crate::compile::{Table, TableIds, Tables};
use crate::diff::Step;

/// Flows, groups and meters of a switch, at a moment.
#[derive(Clone, Debug)]
pub struct State<'t> {
    ids: TableIds,
    flows: Vec<Option<Held<'t>>>,
    tables: BTreeMap<u8, TableState>,
    pub(super) groups: BTreeMap<u32, &'t GroupEntry>,
    pub(super) meters: BTreeSet<u32>,
    /// Flows by the port and the VLAN that they match, each if it is one.
    scopes: HashMap<Scope, Vec<usize>>,
}

/// A port and a `vlan_vid` that a flow matches, if it matches one.
pub(super) type Scope = (Option<u32>, Option<u16>);

/// A flow, taken apart.
#[derive(Clone, Debug)]
pub(super) struct Held<'t> {
    pub(super) flow: &'t Flow,
    pub(super) meter: Option<u32>,
    pub(super) metadata: Option<(u64, u64)>,
    pub(super) goto: Option<u8>,
    /// It has an instruction that is not followed here.
    pub(super) is_unread: bool,
}

#[derive(Clone, Debug, Default)]
struct TableState {
    shapes: Vec<Shape>,
    flows: usize,
}

/// Flows that match the same bits of the same fields.
#[derive(Clone, Debug)]
struct Shape {
    fields: Vec<(Field, u128)>,
    /// By a hash of the values.
    flows: HashMap<u64, Vec<usize>>,
}

impl<'t> Held<'t> {
    fn new(flow: &'t Flow) -> Self {
        let mut held = Held { flow, meter: None, metadata: None, goto: None, is_unread: false };
        flow.with_flow_mod(FlowCommand::Add, |flow| {
            for instruction in flow.instructions.iter() {
                match instruction {
                    Instruction::GotoTable(table) => held.goto = Some(table),
                    Instruction::WriteMetadata { metadata, mask } => {
                        held.metadata = Some((metadata, mask));
                    }
                    Instruction::Meter(meter) => held.meter = Some(meter),
                    Instruction::ApplyActions(_) => {}
                    _ => held.is_unread = true,
                }
            }
        });
        held.is_unread |= flow.applied().iter().any(|action| !is_known(action));
        held
    }

    /// Whether it treats packets of its port as another those of its own.
    pub(super) fn is_alike(&self, other: &Held<'_>) -> bool {
        let (one, another) = (self.flow, other.flow);
        let same = (self.meter, self.metadata, self.goto);
        let place = (one.table, one.priority);
        place == (another.table, another.priority)
            && same == (other.meter, other.metadata, other.goto)
            && one.applied() == another.applied()
            && one.matching.fields().eq(another.matching.fields())
            && one.matching.fields().filter(|field| *field != Field::InPort).all(|field| {
                let of = |matching: &Match| (matching.value(field), matching.mask(field));
                of(&one.matching) == of(&another.matching)
            })
    }
}

/// Whether an action is followed here.
pub(super) fn is_known(action: &Action<'_>) -> bool {
    matches!(
        action,
        Action::Output { .. }
            | Action::Group(_)
            | Action::PopVlan
            | Action::PushVlan(_)
            | Action::SetField(..)
    )
}

impl<'t> State<'t> {
    /// A switch without flows.
    #[must_use]
    pub fn empty(ids: TableIds) -> Self {
        State {
            ids,
            flows: Vec::new(),
            tables: BTreeMap::new(),
            groups: BTreeMap::new(),
            meters: BTreeSet::new(),
            scopes: HashMap::new(),
        }
    }

    /// A switch with these tables.
    #[must_use]
    pub fn of(tables: &'t Tables) -> Self {
        let mut state = State::empty(tables.ids());
        tables.flows().for_each(|(_, it)| state.add(&it.flow));
        state.groups = tables.groups().map(|group| (group.id, group)).collect();
        state.meters = tables.meters().map(|meter| meter.id).collect();
        state
    }

    /// Carries out a step of a plan.
    pub fn step(&mut self, step: &'t Step) {
        if let Step::Change { change, .. } = step {
            self.change(change);
        }
    }

    /// Carries out a change.
    pub fn change(&mut self, change: &'t Change) {
        match change {
            Change::Add(flow) => self.add(flow),
            Change::Remove(flow) => self.remove(flow),
            Change::AddGroup(group) | Change::ModifyGroup(group) => {
                self.groups.insert(group.id, group);
            }
            Change::RemoveGroup(group) => {
                self.groups.remove(group);
            }
            Change::AddMeter(meter) | Change::ModifyMeter(meter) => {
                self.meters.insert(meter.id);
            }
            Change::RemoveMeter(meter) => {
                self.meters.remove(meter);
            }
            Change::RemoveReported(_) => {}
        }
    }

    fn add(&mut self, flow: &'t Flow) {
        self.remove(flow);
        let id = self.flows.len();
        self.flows.push(Some(Held::new(flow)));
        let table = self.tables.entry(flow.table).or_default();
        table.flows += 1;
        table.shape(&flow.matching).entry(hash_of(&flow.matching)).or_default().push(id);
        self.scopes.entry(scope(&flow.matching)).or_default().push(id);
    }

    fn remove(&mut self, flow: &Flow) {
        let Some(table) = self.tables.get_mut(&flow.table) else { return };
        let ids = table.shape(&flow.matching).entry(hash_of(&flow.matching)).or_default();
        let flows = &mut self.flows;
        let is_it = |id: &usize| {
            let held = flows.get(*id).and_then(Option::as_ref);
            held.is_some_and(|held| {
                held.flow.priority == flow.priority && held.flow.matching == flow.matching
            })
        };
        let Some(place) = ids.iter().position(is_it) else { return };
        let id = ids.swap_remove(place);
        table.flows -= 1;
        flows[id] = None;
        if let Some(ids) = self.scopes.get_mut(&scope(&flow.matching)) {
            ids.retain(|other| *other != id);
        }
    }

    /// The table with a number, if it is one of the pipeline.
    pub(super) fn name(&self, table: u8) -> &'static str {
        self.ids.table(table).map_or("?", Table::name)
    }

    pub(super) fn has_flows(&self, table: u8) -> bool {
        self.tables.get(&table).is_some_and(|table| table.flows > 0)
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = &Held<'t>> {
        self.flows.iter().flatten()
    }

    /// The flow with the table, the priority and the match of another.
    pub(super) fn like(&self, flow: &Flow) -> impl Iterator<Item = &Held<'t>> {
        self.flows_of(scope(&flow.matching)).filter(move |held| {
            let place = |flow: &Flow| (flow.table, flow.priority);
            place(held.flow) == place(flow) && held.flow.matching == flow.matching
        })
    }

    /// The flows that match one port and VLAN, or none.
    pub(super) fn flows_of(&self, scope: Scope) -> impl Iterator<Item = &Held<'t>> {
        let ids = self.scopes.get(&scope).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|id| self.flows.get(*id)?.as_ref())
    }

    pub(super) fn scopes(&self) -> impl Iterator<Item = Scope> + '_ {
        self.scopes.keys().copied()
    }

    /// The flows of a table with the highest priority that match a packet. If they are several, a
    /// switch takes any of them.
    pub(super) fn matching(&self, table: u8, packet: &Packet) -> Vec<&Held<'t>> {
        let mut found: Vec<&Held<'t>> = Vec::new();
        let Some(table) = self.tables.get(&table) else { return found };
        for shape in &table.shapes {
            let values = shape.fields.iter().map(|(field, mask)| packet.value(*field) & mask);
            let Some(ids) = shape.flows.get(&hash(values)) else { continue };
            for held in ids.iter().filter_map(|id| self.flows.get(*id)?.as_ref()) {
                let best = found.first().map_or(0, |best| best.flow.priority);
                if held.flow.priority < best || !packet.is_matched(&held.flow.matching, None) {
                    continue;
                }
                if held.flow.priority > best {
                    found.clear();
                }
                found.push(held);
            }
        }
        found
    }
}

impl TableState {
    fn shape(&mut self, matching: &Match) -> &mut HashMap<u64, Vec<usize>> {
        let is_it = |shape: &Shape| {
            let mut fields = matching.fields();
            let mut own = shape.fields.iter();
            own.all(|(field, mask)| {
                fields.next() == Some(*field) && matching.mask(*field) == Some(*mask)
            }) && fields.next().is_none()
        };
        let place = self.shapes.iter().position(is_it).unwrap_or_else(|| {
            let fields = matching.fields().filter_map(|field| Some((field, matching.mask(field)?)));
            self.shapes.push(Shape { fields: fields.collect(), flows: HashMap::new() });
            self.shapes.len() - 1
        });
        &mut self.shapes[place].flows
    }
}

fn hash_of(matching: &Match) -> u64 {
    hash(matching.fields().map(|field| matching.value(field).unwrap_or(0)))
}

/// A number for values: of different ones, hardly the same.
fn hash(values: impl Iterator<Item = u128>) -> u64 {
    /// 2^64 divided by the golden ratio, odd (Knuth, TAOCP 3, §6.4).
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    values.fold(1, |sum: u64, value| {
        let folded = value as u64 ^ (value >> 64) as u64;
        (sum.rotate_left(23) ^ folded).wrapping_mul(GOLDEN)
    })
}

/// The port and the VLAN that a match is for.
pub(super) fn scope(matching: &Match) -> Scope {
    let port = matching.value(Field::InPort).map(|port| port as u32);
    let vid = matching.value(Field::VlanVid).filter(|_| !matching.is_masked(Field::VlanVid));
    (port, vid.map(|vid| vid as u16))
}
