//! How far the switches are: the states of intents, for who waits for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use bellrock_api::Dpid;

use super::super::wanted::WantedEntries;
use super::super::{DesiredState, IntentState, UnsettledIntents};
use super::{DesiredSwitch, DesiredTask};

impl DesiredTask {
    /// Returns the states of the followed intents.
    pub(super) fn intents(&self, book: &mut WantedEntries) -> BTreeMap<u32, IntentState> {
        let mut intents: BTreeMap<u32, IntentState> = book
            .followed()
            .map(|(intent, switches)| (intent, self.intent(intent, switches)))
            .collect();
        if intents.is_empty() {
            return intents;
        }
        for (dpid, switch) in &self.switches {
            if switch.is_outdated() {
                for (intent, _) in book.entries(*dpid) {
                    if let Some(
                        state
                        @ (IntentState::Settled | IntentState::Leaving | IntentState::Left(_)),
                    ) = intents.get_mut(&intent)
                    {
                        *state = IntentState::Due;
                    }
                }
            }
            for intent in switch.removal_intents() {
                if let Some(state @ (IntentState::Settled | IntentState::Left(_))) =
                    intents.get_mut(&intent)
                {
                    *state = IntentState::Leaving;
                }
            }
            for (intent, why) in switch.impossible() {
                if let Some(state) = intents.get_mut(&intent) {
                    *state = IntentState::Refused(*dpid, why);
                }
            }
        }
        let settled = intents.iter().filter(|(_, state)| **state == IntentState::Settled);
        settled.for_each(|(intent, _)| book.remove_unwanted_switches(*intent));
        for (dpid, switch) in &self.switches {
            for intent in switch.unverified() {
                if let Some(state @ IntentState::Settled) = intents.get_mut(&intent) {
                    *state = IntentState::Restored(*dpid);
                }
            }
        }
        intents
    }

    /// Answers who waits for states of intents, as soon as theirs are decided.
    pub(super) fn answer_questions(&self) {
        let questions = &self.desired.0.questions;
        let mut questions = questions.lock().unwrap_or_else(PoisonError::into_inner);
        questions.retain(|question| !question.answer.is_abandoned());
        if questions.is_empty() {
            return;
        }
        let unsettled = self.unsettled();
        let is_open = |intent: &u32| {
            matches!(unsettled.get(intent), Some(IntentState::Due | IntentState::Leaving))
        };
        for question in questions.extract_if(.., |question| !question.intents.iter().any(is_open)) {
            question.answer.resolve(unsettled.clone());
        }
    }

    /// Returns the states of the intents that are not settled.
    fn unsettled(&self) -> UnsettledIntents {
        let removals = self.switches.values().flat_map(DesiredSwitch::removal_intents);
        let mut unsettled: UnsettledIntents =
            removals.map(|intent| (intent, IntentState::Leaving)).collect();
        let outdated = self.switches.iter().filter(|(_, switch)| switch.is_outdated());
        for (dpid, _) in outdated {
            let intents = self.desired.book();
            unsettled.extend(intents.entries(*dpid).map(|(intent, _)| (intent, IntentState::Due)));
        }
        unsettled.extend(self.missing.intents().map(|intent| {
            let away = self.missing.disconnected(intent);
            (intent, away.map_or(IntentState::Due, IntentState::Away))
        }));
        for dpid in &self.elsewhere {
            let intents = self.desired.book();
            for (intent, _) in intents.entries(*dpid) {
                unsettled.entry(intent).or_insert(IntentState::Away(*dpid));
            }
        }
        for (dpid, switch) in &self.switches {
            for intent in switch.unverified() {
                unsettled.entry(intent).or_insert(IntentState::Restored(*dpid));
            }
            let refused = switch.impossible();
            unsettled
                .extend(refused.map(|(intent, why)| (intent, IntentState::Refused(*dpid, why))));
        }
        unsettled
    }

    /// Returns the state of an intent with entries, or earlier entries, in these switches, as far
    /// as `missing` and the connections show it.
    fn intent(&self, intent: u32, switches: &BTreeSet<Dpid>) -> IntentState {
        if let Some(dpid) = self.missing.disconnected(intent) {
            return IntentState::Away(dpid);
        }
        if self.missing.is_due(intent) {
            return IntentState::Due;
        }
        let up = switches.iter().filter_map(|dpid| self.switches.get(dpid));
        if !up.into_iter().all(DesiredSwitch::is_read) {
            return IntentState::Leaving;
        }
        let is_gone =
            |dpid: &&Dpid| !self.switches.contains_key(dpid) && !self.elsewhere.contains(dpid);
        let disconnected = switches.iter().find(is_gone);
        disconnected.map_or(IntentState::Settled, |dpid| IntentState::Left(*dpid))
    }

    pub(super) fn publish(&self, writes: u64, intents: BTreeMap<u32, IntentState>) {
        let switches = self.switches.values();
        let refused = self.switches.iter();
        self.desired.0.state.publish(DesiredState {
            writes,
            wanted: switches.clone().map(|switch| switch.wanted).sum(),
            installed: switches.clone().map(|switch| switch.installed).sum(),
            unread_switches: switches
                .clone()
                .filter(|switch| !switch.is_read() || switch.is_outdated())
                .count(),
            refused: refused
                .filter_map(|(dpid, switch)| Some((*dpid, switch.missing_reason()?)))
                .collect(),
            faults: self
                .switches
                .iter()
                .filter_map(|(dpid, switch)| Some((*dpid, switch.fault()?)))
                .collect(),
            refusals: self
                .switches
                .iter()
                .filter(|(_, switch)| switch.refusals > 0)
                .map(|(dpid, switch)| (*dpid, switch.refusals))
                .collect(),
            changes_sent: self.changes_sent,
            longest_queue: switches.map(DesiredSwitch::unconfirmed_changes).max().unwrap_or(0),
            intents,
        });
    }
}
