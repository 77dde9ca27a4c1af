//! Which circuit has which numbers: VLANs, groups and intent.
//!
//! A circuit keeps its numbers while it is configured, whatever changes beside it. A removed
//! circuit leaves its numbers to a new one only when no others are free.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::circuit::Circuit;
use super::layout::{VLANS_PER_CIRCUIT, generations};

/// The configured circuits, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct CircuitPlan {
    /// `None`: the circuit with this number was removed.
    slots: Vec<Option<PlannedCircuit>>,
}

/// A circuit and its intent.
#[derive(Clone, Debug)]
pub(super) struct PlannedCircuit {
    pub(super) circuit: Circuit,
    /// The intent of its entries. It stays while the circuit changes.
    pub(super) intent: u32,
    pub(super) first_vlan: u16,
}

impl CircuitPlan {
    /// The first plan of these circuits: each has its position as number.
    pub(super) fn new(circuits: &[Circuit], vlans: &RangeInclusive<u16>) -> Self {
        CircuitPlan::default().changed(circuits, vlans)
    }

    /// The next plan. There are VLANs enough for these circuits.
    pub(super) fn changed(&self, circuits: &[Circuit], vlans: &RangeInclusive<u16>) -> Self {
        let mut remaining: BTreeMap<&str, &Circuit> =
            circuits.iter().map(|circuit| (&*circuit.name, circuit)).collect();
        // The generations of a circuit share its VLANs, so their number must stay.
        let mut slots: Vec<_> = self
            .slots
            .iter()
            .map(|slot| {
                let planned = slot.as_ref()?;
                let next = remaining.get(&*planned.circuit.name)?;
                if generations(next) != generations(&planned.circuit) {
                    return None;
                }
                let circuit = remaining.remove(&*planned.circuit.name)?.clone();
                Some(PlannedCircuit { circuit, ..*planned })
            })
            .collect();
        let first_vlans: Vec<u16> = vlans.clone().step_by(usize::from(VLANS_PER_CIRCUIT)).collect();
        for circuit in circuits.iter().filter(|circuit| remaining.contains_key(&*circuit.name)) {
            if slots.len() < vlans.len() / usize::from(VLANS_PER_CIRCUIT) {
                slots.push(None);
            }
            let free = slots.iter().rposition(Option::is_none);
            let Some((index, first_vlan)) =
                free.and_then(|index| Some((index, *first_vlans.get(index)?)))
            else {
                break;
            };
            let (circuit, intent) = (circuit.clone(), intent(index, circuit, first_vlan));
            slots[index] = Some(PlannedCircuit { circuit, intent, first_vlan });
        }
        CircuitPlan { slots }
    }

    /// All numbers from 0, with their circuits.
    pub(super) fn slots(&self) -> &[Option<PlannedCircuit>] {
        &self.slots
    }

    /// The circuits with their numbers.
    pub(super) fn circuits(&self) -> impl Iterator<Item = (usize, &PlannedCircuit)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
    }
}

/// The intent of a circuit: its number and a hash of its text. So flows of an earlier run are
/// recognised as those of the same circuit, with the same VLANs. 0 is not used.
fn intent(index: usize, circuit: &Circuit, first_vlan: u16) -> u32 {
    const TEXT_BITS: u32 = 20;
    // FNV-1a: flows in switches contain it, so it must be the same in each run.
    let text = format!("{circuit} {first_vlan}");
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let text = (hash ^ (hash >> 32)) as u32 & ((1 << TEXT_BITS) - 1);
    (index as u32 + 1) << TEXT_BITS | text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circuits(texts: &[&str]) -> Vec<Circuit> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// Name and first VLAN of each number.
    fn shown(plan: &CircuitPlan) -> Vec<String> {
        let shown = |slot: &Option<PlannedCircuit>| match slot {
            Some(planned) => format!("{} {}", planned.circuit.name, planned.first_vlan),
            None => "-".to_owned(),
        };
        plan.slots().iter().map(shown).collect()
    }

    #[test]
    fn a_circuit_keeps_its_numbers_whatever_changes_beside_it() {
        let vlans = 2000..=2031;
        let plan = CircuitPlan::new(&circuits(&["a 1:1 2:1", "b 1:2 2:2", "c 1:3 2:3"]), &vlans);
        assert_eq!(shown(&plan), ["a 2000", "b 2008", "c 2016"]);
        let next = plan.changed(&circuits(&["c 1:3 3:3", "d 1:4 2:4", "a 1:1 2:1"]), &vlans);
        assert_eq!(shown(&next), ["a 2000", "-", "c 2016", "d 2024"]);
        let intents =
            |plan: &CircuitPlan| plan.circuits().map(|it| it.1.intent).collect::<Vec<_>>();
        assert_eq!(intents(&next)[..2], [intents(&plan)[0], intents(&plan)[2]]);
        assert_eq!(
            next.slots()[2].as_ref().unwrap().circuit.to_string(),
            circuits(&["c 1:3 3:3"])[0].to_string()
        );
        // No other number is free.
        let full =
            next.changed(&circuits(&["a 1:1 2:1", "c 1:3 3:3", "d 1:4 2:4", "e 1:5 2:5"]), &vlans);
        assert_eq!(shown(&full), ["a 2000", "e 2008", "c 2016", "d 2024"]);
        assert_ne!(full.slots()[1].as_ref().unwrap().intent, intents(&plan)[1]);
    }

    #[test]
    fn a_circuit_with_another_kind_of_tags_is_a_new_one() {
        let vlans = 2000..=2031;
        let plan = CircuitPlan::new(&circuits(&["a 1:1 2:1"]), &vlans);
        let tree = plan.changed(&circuits(&["a 1:1 2:1 3:1"]), &vlans);
        assert_eq!(shown(&tree), ["-", "a 2008"]);
        assert_eq!(shown(&tree.changed(&[], &vlans)), ["-", "-"]);
    }
}
