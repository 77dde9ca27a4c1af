//! Changes of flows on their way to switches: stage by stage for a pair, in parallel for several.
//!
//! A switch gets all its possible changes in one batch, and no more until it has confirmed or
//! refused them; later changes form the next batch. So a slow switch delays only the pairs with
//! flows to change there, and has at most one outstanding change for each pair.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;

use bellrock_api::{ChangeOutcome, Dpid, Port, ProgramFuture};
use bellrock_services::programming::PendingPrograms;

use super::flows::HostPair;

/// A change of a pair's flow in a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowEdit {
    pub(super) at: Dpid,
    /// New output port of the flow. `None` removes the flow.
    pub(super) port: Option<Port>,
}

/// A change of a pair that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DueEdit {
    pub(super) pair: HostPair,
    pub(super) edit: FlowEdit,
    /// Number of the list of changes that it belongs to; a newer list replaces it.
    number: u64,
}

/// Changes of a pair's flows that may be made in any order.
pub(super) type EditStage = Vec<FlowEdit>;

/// Remaining changes of a pair.
struct PendingEdits {
    number: u64,
    /// Number of unfinished changes of the current stage.
    unfinished: usize,
    /// Whether the current stage adds or changes flows.
    is_adding: bool,
    stages: VecDeque<EditStage>,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct FlowChanges {
    /// The pairs with unfinished changes.
    pending: BTreeMap<HostPair, PendingEdits>,
    ready: BTreeMap<Dpid, Vec<DueEdit>>,
    sent_programs: PendingPrograms<(Dpid, Vec<DueEdit>)>,
    /// Switches with a batch under way.
    busy: BTreeSet<Dpid>,
    last_number: u64,
}

impl FlowChanges {
    /// Replaces the remaining changes of a pair by these stages. Each stage begins when the
    /// previous one was confirmed.
    pub(super) fn begin(&mut self, pair: HostPair, stages: impl IntoIterator<Item = EditStage>) {
        self.last_number += 1;
        let stages = stages.into_iter().collect();
        let number = self.last_number;
        let edits = PendingEdits { number, unfinished: 0, is_adding: false, stages };
        self.pending.insert(pair, edits);
        self.advance(pair);
    }

    /// Returns whether a pair has remaining changes.
    pub(super) fn has_pending(&self, pair: HostPair) -> bool {
        self.pending.contains_key(&pair)
    }

    /// Records that a change of a pair has ended. After the last one of its stage, the next stage
    /// is ready. Returns `false` if no change is left.
    pub(super) fn change_ended(&mut self, pair: HostPair) -> bool {
        if let Some(pending) = self.pending.get_mut(&pair) {
            pending.unfinished = pending.unfinished.saturating_sub(1);
        }
        self.advance(pair)
    }

    fn advance(&mut self, pair: HostPair) -> bool {
        let Some(pending) = self.pending.get_mut(&pair) else { return false };
        while pending.unfinished == 0 {
            let Some(stage) = pending.stages.pop_front() else {
                self.pending.remove(&pair);
                return false;
            };
            pending.unfinished = stage.len();
            pending.is_adding = stage.iter().any(|edit| edit.port.is_some());
            for edit in stage {
                let due = DueEdit { pair, edit, number: pending.number };
                self.ready.entry(edit.at).or_default().push(due);
            }
        }
        true
    }

    /// Inserts a change of a pair before its remaining stages.
    pub(super) fn insert(&mut self, pair: HostPair, edit: FlowEdit) {
        if let Some(pending) = self.pending.get_mut(&pair) {
            pending.stages.push_front(vec![edit]);
        }
    }

    /// Returns whether remaining stages add or change flows, which may lead to the changed ones.
    pub(super) fn has_adds(&self, pair: HostPair) -> bool {
        let pending = self.pending.get(&pair);
        pending
            .is_some_and(|pending| pending.stages.iter().flatten().any(|edit| edit.port.is_some()))
    }

    /// Returns whether flows are still added or changed. When that ends the path is there; older
    /// flows may be left to remove.
    pub(super) fn is_adding(&self, pair: HostPair) -> bool {
        self.has_adds(pair) || self.pending.get(&pair).is_some_and(|pending| pending.is_adding)
    }

    /// Drops all further stages of a pair.
    pub(super) fn cancel(&mut self, pair: HostPair) {
        if let Some(pending) = self.pending.get_mut(&pair) {
            pending.stages.clear();
        }
    }

    /// Returns the changes that can be sent now, in one batch for each switch.
    pub(super) fn take_ready(&mut self) -> BTreeMap<Dpid, Vec<DueEdit>> {
        let busy = &self.busy;
        let is_free = |dpid: &Dpid, _: &mut Vec<DueEdit>| !busy.contains(dpid);
        let mut ready: BTreeMap<Dpid, Vec<DueEdit>> = self.ready.extract_if(.., is_free).collect();
        for edits in ready.values_mut() {
            edits.retain(|edit| self.is_current(edit));
        }
        ready.retain(|_, edits| !edits.is_empty());
        ready
    }

    /// Records that a batch was sent to a switch.
    pub(super) fn sent(&mut self, dpid: Dpid, edits: Vec<DueEdit>, program: ProgramFuture) {
        self.busy.insert(dpid);
        self.sent_programs.push((dpid, edits), program);
    }

    /// Waits until at least one batch has an outcome.
    pub(super) fn any_finished(&mut self) -> impl Future<Output = ()> + '_ {
        self.sent_programs.any_finished()
    }

    /// Returns the outcomes of changes that were not replaced meanwhile.
    pub(super) fn take_finished(&mut self) -> Vec<(DueEdit, ChangeOutcome)> {
        let mut finished = Vec::new();
        for ((dpid, edits), outcomes) in self.sent_programs.take_finished() {
            self.busy.remove(&dpid);
            finished.extend(edits.into_iter().zip(outcomes));
        }
        finished.retain(|(due, _)| self.is_current(due));
        finished
    }

    fn is_current(&self, due: &DueEdit) -> bool {
        self.pending.get(&due.pair).is_some_and(|pending| pending.number == due.number)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use bellrock_api::runtime::promise;
    use bellrock_api::{HostId, MacAddr};

    use super::*;

    fn pair(n: u8) -> HostPair {
        let host = |n| HostId::new(MacAddr([2, 0, 0, 0, 0, n]), None);
        HostPair { from: host(n), to: host(0) }
    }

    fn add(at: u64, port: u32) -> FlowEdit {
        FlowEdit { at: Dpid(at), port: Some(Port(port)) }
    }

    /// The changes that can be sent now, by switch.
    fn ready(changes: &mut FlowChanges) -> Vec<(u64, Vec<DueEdit>)> {
        changes.take_ready().into_iter().map(|(dpid, dues)| (dpid.0, dues)).collect()
    }

    fn pairs(ready: &[(u64, Vec<DueEdit>)]) -> Vec<(u64, Vec<HostPair>)> {
        let of = |dues: &Vec<DueEdit>| dues.iter().map(|due| due.pair).collect();
        ready.iter().map(|(dpid, dues)| (*dpid, of(dues))).collect()
    }

    #[test]
    fn the_path_is_there_before_older_flows_are_removed() {
        let mut changes = FlowChanges::default();
        let remove = |at| FlowEdit { at: Dpid(at), port: None };
        changes.begin(pair(1), [vec![add(1, 1), add(2, 1)], vec![add(3, 1)], vec![remove(4)]]);
        for is_adding in [true, true, false] {
            assert!(changes.change_ended(pair(1)));
            assert_eq!(changes.is_adding(pair(1)), is_adding);
        }
        assert!(!changes.change_ended(pair(1)));
        assert!(!changes.is_adding(pair(1)));
    }

    #[test]
    fn a_switch_that_does_not_answer_holds_up_only_who_needs_it() {
        let mut context = Context::from_waker(Waker::noop());
        let mut changes = FlowChanges::default();
        let (slow, others) = (9, 5);
        changes.begin(pair(1), [vec![add(slow, 1)], vec![add(1, 1)]]);
        changes.begin(pair(2), [vec![add(others, 1)], vec![add(1, 1)]]);
        let sent = ready(&mut changes);
        assert_eq!(pairs(&sent), [(others, vec![pair(2)]), (slow, vec![pair(1)])]);
        let mut promises = Vec::new();
        for (dpid, dues) in sent {
            let (promise, answer) = promise();
            promises.push((dpid, promise));
            changes.sent(Dpid(dpid), dues, ProgramFuture::in_parts([(1, answer)]));
        }
        assert!(pin!(changes.any_finished()).poll(&mut context).is_pending());
        promises.remove(0).1.resolve(vec![ChangeOutcome::Installed]);
        assert!(pin!(changes.any_finished()).poll(&mut context).is_ready());
        let ended = changes.take_finished();
        assert_eq!(ended.iter().map(|(due, _)| due.pair).collect::<Vec<_>>(), [pair(2)]);
        assert!(changes.change_ended(pair(2)));
        // New changes for the slow switch wait, and only the last version is sent.
        changes.begin(pair(3), [vec![add(slow, 2)]]);
        changes.begin(pair(3), [vec![add(slow, 3)]]);
        assert_eq!(pairs(&ready(&mut changes)), [(1, vec![pair(2)])]);
        // A pair with a new path does not wait for the slow switch, and gets no outcome from it.
        changes.begin(pair(1), [vec![add(others, 2)]]);
        assert_eq!(pairs(&ready(&mut changes)), [(others, vec![pair(1)])]);
        promises.remove(0).1.resolve(vec![ChangeOutcome::Installed]);
        assert!(pin!(changes.any_finished()).poll(&mut context).is_ready());
        assert_eq!(changes.take_finished(), []);
        let then = ready(&mut changes);
        assert_eq!(pairs(&then), [(slow, vec![pair(3)])]);
        assert_eq!(then[0].1[0].edit, add(slow, 3), "the last counts");
    }

    #[test]
    fn an_inserted_change_is_done_before_the_remaining_ones() {
        let mut changes = FlowChanges::default();
        let removal = |at| FlowEdit { at: Dpid(at), port: None };
        changes.begin(pair(1), [vec![add(1, 1)], vec![add(2, 1)], vec![removal(3)]]);
        changes.take_ready();
        assert!(changes.has_adds(pair(1)));
        changes.insert(pair(1), removal(1));
        for (at, has_adds) in [(1, true), (2, false), (3, false)] {
            assert!(changes.change_ended(pair(1)));
            assert_eq!(pairs(&ready(&mut changes)), [(at, vec![pair(1)])]);
            assert_eq!(changes.has_adds(pair(1)), has_adds);
        }
        assert!(!changes.change_ended(pair(1)) && !changes.has_pending(pair(1)));
    }

    #[test]
    fn a_stage_waits_for_all_of_the_one_before() {
        let mut changes = FlowChanges::default();
        changes.begin(pair(1), [vec![], vec![add(1, 1), add(2, 1)], vec![add(3, 1)]]);
        assert_eq!(pairs(&ready(&mut changes)), [(1, vec![pair(1)]), (2, vec![pair(1)])]);
        assert!(changes.change_ended(pair(1)));
        assert_eq!(ready(&mut changes), []);
        assert!(changes.change_ended(pair(1)));
        assert_eq!(pairs(&ready(&mut changes)), [(3, vec![pair(1)])]);
        assert!(
            changes.has_pending(pair(1))
                && !changes.change_ended(pair(1))
                && !changes.has_pending(pair(1))
        );
    }

    #[test]
    fn a_pair_that_is_given_up_is_done_when_its_stage_is() {
        let mut changes = FlowChanges::default();
        changes.begin(pair(1), [vec![add(1, 1), add(2, 1)], vec![add(3, 1)]]);
        ready(&mut changes);
        changes.cancel(pair(1));
        assert!(changes.change_ended(pair(1)) && changes.has_pending(pair(1)));
        assert!(!changes.change_ended(pair(1)) && !changes.has_pending(pair(1)));
        assert_eq!(ready(&mut changes), []);
    }
}
