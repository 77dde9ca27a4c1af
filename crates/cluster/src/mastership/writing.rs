//! Records that this node writes: when, with which order of masters, and what etcd has answered.

use std::time::Duration;

use bellrock_api::Dpid;

use super::{MAX_WRITE_PAUSE, Mastership, Output, RETRY, UNANSWERED, WriteResult};
use crate::node::NodeId;
use crate::record::{Generation, Record, later, next_epoch};

impl Mastership {
    pub(super) fn written(&mut self, dpid: Dpid, result: WriteResult, now: Duration) {
        let Some(entry) = self.switches.get_mut(&dpid) else { return };
        if let Some((first, _)) = entry.writing.take() {
            self.writing[first.index()] -= 1;
        }
        let is_written = matches!(result, WriteResult::Written(_));
        entry.has_failed = result == WriteResult::Failed;
        entry.writes = entry.writes.saturating_add(u32::from(is_written));
        match result {
            WriteResult::Written(record) | WriteResult::Conflict(Some(record)) => {
                self.change_record(dpid, record, now);
            }
            // It is written again when the pause is over.
            WriteResult::Conflict(None) | WriteResult::Failed => {}
        }
        self.wake_at(dpid, now);
    }

    /// Number of records that this node is writing. Few of them are not new.
    pub(super) fn writing_new(&self) -> usize {
        self.writing.iter().sum()
    }

    /// Writes a record with this node in front. What an operator has placed here stays placed; what
    /// this node takes over from another one does not.
    pub(super) fn write_with_me_first(
        &mut self,
        dpid: Dpid,
        now: Duration,
        out: &mut Vec<Output>,
    ) -> bool {
        let order = self.order_with(dpid, self.me);
        let placed = self.placed_at(dpid) == Some(self.me);
        self.write(dpid, order, placed, now, out)
    }

    /// The node that an operator has given a switch to, by the record.
    pub(super) fn placed_at(&self, dpid: Dpid) -> Option<NodeId> {
        self.record(dpid).and_then(Record::placed_at)
    }

    /// The order of a switch with this node in front. Nodes that may not serve come last.
    pub(super) fn order_with(&self, dpid: Dpid, first: NodeId) -> Vec<NodeId> {
        let known = self.record(dpid).map_or(&[][..], |record| &record.masters);
        let missing = NodeId::all(self.nodes).filter(|node| !known.contains(node));
        let mut rest: Vec<NodeId> = known.iter().copied().chain(missing).collect();
        rest.retain(|&node| node != first && node.index() < self.nodes);
        rest.sort_by_key(|&node| !self.may_serve(node));
        rest.insert(0, first);
        rest
    }

    /// Writes a record, unless one is on its way. `placed`: whether the first node has the switch
    /// by order of an operator. Returns whether it does.
    pub(super) fn write(
        &mut self,
        dpid: Dpid,
        masters: Vec<NodeId>,
        placed: bool,
        now: Duration,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(entry) = self.switches.get_mut(&dpid) else { return false };
        let next = entry.writing.map_or(now, |(_, until)| until).max(entry.next_write);
        if now < next {
            self.wake_at(dpid, next);
            return false;
        }
        let Some(&first) = masters.first() else { return false };
        if let Some((before, _)) = entry.writing.replace((first, now + UNANSWERED)) {
            self.writing[before.index()] -= 1;
        }
        self.writing[first.index()] += 1;
        let pause = RETRY.saturating_mul(1 << entry.writes.min(16));
        entry.next_write = now + pause.min(MAX_WRITE_PAUSE);
        let newest = entry.here.as_ref().and_then(|here| here.newest);
        let newest = Generation::newest(entry.claimed, newest);
        out.push(Output::Write {
            dpid,
            masters,
            floor: next_epoch(newest.map_or(entry.epoch, |it| later(entry.epoch, it.epoch()))),
            placed,
            expected: entry.record.as_ref().map_or(0, |record| record.revision),
        });
        self.wake_at(dpid, now + UNANSWERED);
        true
    }
}
