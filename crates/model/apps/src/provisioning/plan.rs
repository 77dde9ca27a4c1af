//! Which circuit has which numbers: VLANs, groups and intent.
//!
//! A circuit keeps its numbers while it is configured, whatever changes beside it. A removed
//! circuit leaves its numbers to a new one only when no others are free.
//!
//! The number follows from the circuit's name, not from its position in the list. So a controller
//! that starts with a changed list gives the other circuits the numbers that they had. Only names
//! that want the same number depend on each other: the first in the list gets it.
//!
//! A stored circuit keeps the numbers that are stored with it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

use super::circuit::Circuit;
use super::layout::generations;
use super::stored::StoredCircuits;

/// The VLANs of all circuits.
#[derive(Clone, Debug)]
pub(super) struct CircuitVlans {
    pub(super) all: RangeInclusive<u16>,
    pub(super) per_circuit: u16,
}

impl CircuitVlans {
    /// The VLANs of each number. A number has all of its VLANs, or does not exist.
    pub(super) fn by_number(&self) -> Vec<Range<u16>> {
        let per_circuit = self.per_circuit.max(1);
        let all = self.all.clone().step_by(usize::from(per_circuit));
        let ranges = all.map(|first| first..first.saturating_add(per_circuit));
        ranges.filter(|range| range.end - 1 <= *self.all.end()).collect()
    }
}

/// The configured circuits, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct CircuitPlan {
    /// `None`: no circuit has this number.
    slots: Vec<Option<PlannedCircuit>>,
    /// The numbers of the circuits, in the order of the list.
    order: Vec<usize>,
    /// Numbers that a circuit has had and lost: switches may still have its flows.
    left: BTreeSet<usize>,
    /// Numbers of stored circuits.
    stored: BTreeSet<usize>,
}

/// A circuit and its intent.
#[derive(Clone, Debug)]
pub(super) struct PlannedCircuit {
    pub(super) circuit: Circuit,
    /// The intent of its entries. It stays while the circuit changes.
    pub(super) intent: u32,
    pub(super) vlans: Range<u16>,
}

impl CircuitPlan {
    /// The first plan of these circuits.
    #[cfg(test)]
    pub(super) fn new(circuits: &[Circuit], vlans: &CircuitVlans) -> Self {
        CircuitPlan::default().changed(circuits, vlans)
    }

    /// The same after what is stored now: the circuits of the store with their numbers, as far as
    /// these VLANs have them, and no others.
    pub(super) fn following(&self, stored: &StoredCircuits, vlans: &CircuitVlans) -> Self {
        let numbered = vlans.by_number();
        let slot = |(index, vlans): (usize, &Range<u16>)| {
            let stored = stored.get(&index).filter(|stored| stored.vlans == *vlans)?;
            let (circuit, intent) = (stored.circuit.clone(), stored.intent);
            Some(PlannedCircuit { circuit, intent, vlans: vlans.clone() })
        };
        let slots: Vec<_> = numbered.iter().enumerate().map(slot).collect();
        let now: BTreeSet<usize> = stored.keys().copied().collect();
        let left = self.left.union(&(&self.stored - &now)).copied().collect();
        CircuitPlan { slots, order: Vec::new(), left, stored: now }
    }

    /// The next plan. There are VLANs enough for these circuits.
    pub(super) fn changed(&self, circuits: &[Circuit], vlans: &CircuitVlans) -> Self {
        let mut remaining: BTreeMap<&str, &Circuit> =
            circuits.iter().map(|circuit| (&*circuit.name, circuit)).collect();
        let mut next = self.clone();
        let numbered = vlans.by_number();
        next.slots.resize(numbered.len(), None);
        for (index, slot) in next.slots.iter_mut().enumerate() {
            let Some(planned) = slot else { continue };
            // The generations of a circuit share its VLANs, so their number must stay.
            let count = |circuit: &Circuit| generations(circuit, &planned.vlans);
            let is_same = |circuit: &&Circuit| count(circuit) == count(&planned.circuit);
            match remaining.get(&*planned.circuit.name).copied().filter(is_same) {
                Some(circuit) => {
                    remaining.remove(&*circuit.name);
                    planned.circuit = circuit.clone();
                }
                None => {
                    *slot = None;
                    next.left.insert(index);
                }
            }
        }
        for circuit in circuits.iter().filter(|circuit| remaining.contains_key(&*circuit.name)) {
            let Some(index) = next.free_number(&circuit.name) else { break };
            let Some(vlans) = numbered.get(index).cloned() else { break };
            let (circuit, intent) = (circuit.clone(), intent(index, circuit, vlans.start));
            next.slots[index] = Some(PlannedCircuit { circuit, intent, vlans });
        }
        let slots = next.slots.iter().enumerate();
        let named = slots.filter_map(|(index, slot)| Some((&*slot.as_ref()?.circuit.name, index)));
        let numbers: BTreeMap<&str, usize> = named.collect();
        let order = circuits.iter().filter_map(|circuit| numbers.get(&*circuit.name).copied());
        next.order = order.collect();
        next
    }

    /// The free number that is next behind the one that the name wants; if there are others, none
    /// that a removed circuit had.
    fn free_number(&self, name: &str) -> Option<usize> {
        let numbers = self.slots.len();
        let wanted = usize::try_from(hash(name) % u64::try_from(numbers.max(1)).ok()?).ok()?;
        let free = |index: &usize| self.slots.get(*index).is_some_and(Option::is_none);
        let mut in_order = (wanted..numbers).chain(0..wanted).filter(free);
        let first = in_order.clone().next();
        in_order.find(|index| !self.left.contains(index)).or(first)
    }

    /// All numbers from 0, with their circuits.
    pub(super) fn slots(&self) -> &[Option<PlannedCircuit>] {
        &self.slots
    }

    /// The circuits with their numbers, in the order of the list.
    pub(super) fn circuits(&self) -> impl Iterator<Item = (usize, &PlannedCircuit)> {
        self.order.iter().filter_map(|index| Some((*index, self.slots.get(*index)?.as_ref()?)))
    }
}

/// FNV-1a. Flows in switches depend on it, so it must be the same in each run.
fn hash(text: &str) -> u64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // The low bits alone say little about short names.
    hash ^ (hash >> 32)
}

/// The intent of a circuit: its number and a hash of its text. So flows of an earlier run are
/// recognised as those of the same circuit, with the same VLANs. 0 is not used.
fn intent(index: usize, circuit: &Circuit, first_vlan: u16) -> u32 {
    const TEXT_BITS: u32 = 20;
    let text = hash(&format!("{circuit} {first_vlan}")) as u32 & ((1 << TEXT_BITS) - 1);
    (index as u32 + 1) << TEXT_BITS | text
}

#[cfg(test)]
mod tests {
    use super::super::stored::StoredCircuit;
    use super::*;

    fn circuits(texts: &[&str]) -> Vec<Circuit> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn eight_each(all: RangeInclusive<u16>) -> CircuitVlans {
        CircuitVlans { all, per_circuit: 8 }
    }

    /// Name and first VLAN of each number.
    fn shown(plan: &CircuitPlan) -> Vec<String> {
        let shown = |slot: &Option<PlannedCircuit>| match slot {
            Some(planned) => format!("{} {}", planned.circuit.name, planned.vlans.start),
            None => "-".to_owned(),
        };
        plan.slots().iter().map(shown).collect()
    }

    /// The numbers of the circuits of a plan, by name.
    fn numbers(plan: &CircuitPlan) -> BTreeMap<String, usize> {
        plan.circuits().map(|(index, it)| (it.circuit.name.to_string(), index)).collect()
    }

    #[test]
    fn a_circuit_keeps_its_numbers_whatever_changes_beside_it() {
        let vlans = eight_each(2000..=2031);
        let plan = CircuitPlan::new(&circuits(&["a 1:1 2:1", "b 1:2 2:2", "c 1:3 2:3"]), &vlans);
        assert_eq!(numbers(&plan).len(), 3, "{:?}", shown(&plan));
        let next = plan.changed(&circuits(&["c 1:3 3:3", "d 1:4 2:4", "a 1:1 2:1"]), &vlans);
        let (before, after) = (numbers(&plan), numbers(&next));
        assert_eq!((after["a"], after["c"]), (before["a"], before["c"]));
        // Not the number of the removed circuit, while another is free.
        assert_ne!(after["d"], before["b"]);
        let planned = |plan: &CircuitPlan, index: usize| plan.slots()[index].clone().unwrap();
        let c = after["c"];
        assert_eq!(planned(&next, c).intent, planned(&plan, c).intent);
        assert_eq!(planned(&next, c).circuit, circuits(&["c 1:3 3:3"])[0]);
        // No other number is free.
        let full =
            next.changed(&circuits(&["a 1:1 2:1", "c 1:3 3:3", "d 1:4 2:4", "e 1:5 2:5"]), &vlans);
        let b = before["b"];
        assert_eq!(numbers(&full)["e"], b);
        assert_ne!(planned(&full, b).intent, planned(&plan, b).intent);
        assert_eq!(planned(&full, b).vlans.start, 2000 + 8 * b as u16);
    }

    #[test]
    fn a_circuit_that_is_not_stored_yet_keeps_the_number_of_its_name() {
        let (vlans, all) = (eight_each(2000..=2031), circuits(&["a 1:1 2:1", "b 1:2 2:2"]));
        let stored = |plan: &CircuitPlan| -> StoredCircuits {
            let stored = |(index, it): (usize, &PlannedCircuit)| {
                let (circuit, intent, vlans) = (it.circuit.clone(), it.intent, it.vlans.clone());
                let (generation, route, down) = (0, None, None);
                (index, StoredCircuit { circuit, intent, vlans, generation, route, down }.into())
            };
            plan.circuits().map(stored).collect()
        };
        let first = CircuitPlan::new(&all, &vlans);
        let mut plan = CircuitPlan::default();
        for _ in 0..3 {
            plan = plan.following(&StoredCircuits::new(), &vlans).changed(&all, &vlans);
            assert_eq!(numbers(&plan), numbers(&first));
        }
        let both = stored(&plan);
        let plan = plan.following(&both, &vlans).changed(&all[..1], &vlans);
        assert_eq!(numbers(&plan).len(), 1);
        // What another controller has removed is left, too.
        let plan = plan.following(&stored(&plan), &vlans);
        let next = circuits(&["a 1:1 2:1", "c 1:3 2:3", "d 1:4 2:4"]);
        let plan = plan.changed(&next, &vlans);
        assert!(!numbers(&plan).values().any(|number| *number == numbers(&first)["b"]));
        // Other VLANs: what is stored for them counts no more.
        let four = CircuitVlans { per_circuit: 4, ..vlans };
        assert!(CircuitPlan::default().following(&both, &four).slots().iter().all(Option::is_none));
    }

    #[test]
    fn a_circuit_in_front_leaves_the_numbers_of_the_others_at_the_next_start() {
        let vlans = eight_each(2000..=3999);
        let old = circuits(&["blue 1:1 2:1", "green 1:2 2:2", "red 1:3 2:3"]);
        let before = numbers(&CircuitPlan::new(&old, &vlans));
        let added = circuits(&["amber 1:4 2:4"]);
        let after = numbers(&CircuitPlan::new(&[added, old.clone()].concat(), &vlans));
        assert_eq!(after.len(), 4);
        assert!(before.iter().all(|(name, number)| after[name] == *number), "{before:?} {after:?}");
        let reversed: Vec<_> = old.into_iter().rev().collect();
        assert_eq!(numbers(&CircuitPlan::new(&reversed, &vlans)), before);
    }

    #[test]
    fn all_numbers_are_used_and_few_circuits_move_for_one_in_front() {
        let vlans = eight_each(2000..=3999);
        let texts = (0..250).map(|n| format!("circuit-{n} 1:{n} 2:{n}", n = n + 1));
        let all: Vec<Circuit> = texts.map(|text| text.parse().unwrap()).collect();
        assert_eq!(numbers(&CircuitPlan::new(&all, &vlans)).len(), 250);
        let old = &all[1..126];
        let before = numbers(&CircuitPlan::new(old, &vlans));
        let after = numbers(&CircuitPlan::new(&all[..126], &vlans));
        let moved = before.iter().filter(|(name, number)| after[*name] != **number).count();
        assert!(moved <= 5, "{moved} circuits have moved");
    }

    #[test]
    fn with_four_vlans_each_there_are_twice_as_many_circuits() {
        let vlans = CircuitVlans { all: 1..=4094, per_circuit: 4 };
        let texts = (1..=1023).map(|n| format!("c{n} 1:{n} 2:{n}"));
        let all: Vec<Circuit> = texts.map(|text| text.parse().unwrap()).collect();
        let plan = CircuitPlan::new(&all, &vlans);
        let mut ranges: Vec<_> =
            plan.circuits().map(|(_, planned)| planned.vlans.clone()).collect();
        ranges.sort_by_key(|range| range.start);
        assert_eq!(ranges.len(), 1023);
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(ranges.iter().all(|range| range.len() == 4 && range.end <= 4095));
    }

    #[test]
    fn a_circuit_with_another_kind_of_tags_is_a_new_one() {
        let vlans = eight_each(2000..=2031);
        let plan = CircuitPlan::new(&circuits(&["a 1:1 2:1"]), &vlans);
        let tree = plan.changed(&circuits(&["a 1:1 2:1 3:1"]), &vlans);
        assert_eq!(numbers(&tree).len(), 1);
        assert_ne!(numbers(&tree)["a"], numbers(&plan)["a"]);
        assert!(numbers(&tree.changed(&[], &vlans)).is_empty());
    }
}
