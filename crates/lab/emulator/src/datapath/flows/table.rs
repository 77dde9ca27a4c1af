//! One flow table: its flows, their classifier and their timeouts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::{FlowFlags, FlowMod, FlowRemovedReason, Match, Port, Version};

use super::classifier::Classifier;
use super::flow::{FlowEntry, FlowIndex, rank};
use crate::datapath::FlowProgram;
use crate::packet::{KeyPattern, PacketKey};

/// A table is full (`OFPFMFC_TABLE_FULL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table is full")]
pub(super) struct TableFull;

/// A flow table (1.0 §3; 1.3.5 §5.1).
///
/// It holds at most as many flows as its capacity. Ids are reused: they are valid only until the
/// table changes.
#[derive(Clone, Debug)]
pub struct FlowTable {
    slots: Vec<Option<FlowEntry>>,
    free: Vec<u32>,
    classifier: Classifier,
    /// Times at which to check the timeouts of a flow. A packet that extends an idle timeout
    /// changes nothing here: the flow is checked at the old time, and inserted again.
    due: BTreeSet<(Duration, u32)>,
    capacity: u32,
    /// Packets looked up.
    pub lookup_count: u64,
    /// Packets that matched a flow.
    pub matched_count: u64,
}

impl FlowTable {
    /// An empty table for at most `capacity` flows.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        FlowTable {
            slots: Vec::new(),
            free: Vec::new(),
            classifier: Classifier::default(),
            due: BTreeSet::new(),
            capacity,
            lookup_count: 0,
            matched_count: 0,
        }
    }

    /// Number of flows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether it holds no flow.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Maximum number of flows.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The flow that a packet matches: the one with the highest priority. It changes no counter.
    #[must_use]
    #[inline]
    pub fn lookup(&self, key: &PacketKey) -> Option<FlowIndex> {
        self.classifier.lookup(key.words()).map(FlowIndex)
    }

    /// A flow.
    #[must_use]
    #[inline]
    pub fn flow(&self, id: FlowIndex) -> Option<&FlowEntry> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// Counts a packet of this many bytes for a flow, and restarts its idle timeout.
    #[inline]
    pub fn count(&mut self, id: FlowIndex, bytes: u64, now: Duration) {
        let Some(Some(flow)) = self.slots.get_mut(id.0 as usize) else { return };
        flow.used = now;
        if !flow.flags.intersects(FlowFlags::NO_PKT_COUNTS | FlowFlags::NO_BYT_COUNTS) {
            flow.packet_count += 1;
            flow.byte_count += bytes;
            return;
        }
        flow.packet_count += u64::from(!flow.flags.contains(FlowFlags::NO_PKT_COUNTS));
        flow.byte_count += if flow.flags.contains(FlowFlags::NO_BYT_COUNTS) { 0 } else { bytes };
    }

    /// All flows, by their slots.
    pub fn flows(&self) -> impl Iterator<Item = (FlowIndex, &FlowEntry)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, flow)| Some((FlowIndex(slot as u32), flow.as_ref()?)))
    }

    /// The flow with this match and priority, under the rules of `version`.
    #[must_use]
    pub fn find(&self, version: Version, matching: &Match, priority: u16) -> Option<FlowIndex> {
        let rank = rank(version, matching, priority);
        self.classifier.find(&KeyPattern::of(matching), rank).map(FlowIndex)
    }

    /// Whether a packet could match both this flow and another one of the same priority.
    pub(super) fn overlaps(&self, flow: &FlowEntry) -> bool {
        self.classifier.overlaps(&flow.pattern, flow.rank)
    }

    /// The flows that a request selects, in the order of their slots.
    #[must_use]
    pub fn select(&self, selection: &Selection) -> Vec<FlowIndex> {
        let mut found = Vec::new();
        match selection.strict_rank {
            Some(rank) => {
                found.extend(self.classifier.find(&selection.pattern, rank).map(FlowIndex));
            }
            None => self.classifier.covered(&selection.pattern, |slot| found.push(FlowIndex(slot))),
        }
        found.retain(|id| self.flow(*id).is_some_and(|flow| selection.admits(flow)));
        found.sort_unstable();
        found
    }

    /// Adds a flow. It replaces a flow with the same match and priority, which is returned.
    ///
    /// # Errors
    /// [`TableFull`]: the table is full, and has no flow with this match and priority.
    pub(super) fn insert(
        &mut self,
        mut flow: FlowEntry,
    ) -> Result<(FlowIndex, Option<FlowEntry>), TableFull> {
        if let Some(slot) = self.classifier.find(&flow.pattern, flow.rank) {
            self.forget(slot);
            self.watch(slot, &mut flow);
            return Ok((FlowIndex(slot), self.slots[slot as usize].replace(flow)));
        }
        if self.len() >= self.capacity as usize {
            return Err(TableFull);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.classifier.insert(&flow.pattern, flow.rank, slot);
        self.watch(slot, &mut flow);
        self.slots[slot as usize] = Some(flow);
        Ok((FlowIndex(slot), None))
    }

    /// Removes a flow.
    pub(super) fn remove(&mut self, id: FlowIndex) -> Option<FlowEntry> {
        self.forget(id.0);
        let flow = self.slots.get_mut(id.0 as usize)?.take()?;
        self.free.push(id.0);
        self.classifier.remove(&flow.pattern, flow.rank);
        Some(flow)
    }

    /// Replaces a flow's program, and returns the old one.
    pub(super) fn replace_program(
        &mut self,
        id: FlowIndex,
        program: Arc<FlowProgram>,
    ) -> Option<Arc<FlowProgram>> {
        let flow = self.slots.get_mut(id.0 as usize)?.as_mut()?;
        Some(std::mem::replace(&mut flow.program, program))
    }

    /// Sets the counters of a flow to zero.
    pub(super) fn reset_counts(&mut self, id: FlowIndex) {
        if let Some(Some(flow)) = self.slots.get_mut(id.0 as usize) {
            (flow.packet_count, flow.byte_count) = (0, 0);
        }
    }

    /// Sets the cookie of a flow.
    pub(super) fn set_cookie(&mut self, id: FlowIndex, cookie: u64) {
        if let Some(Some(flow)) = self.slots.get_mut(id.0 as usize) {
            flow.cookie = cookie;
        }
    }

    /// Removes flows whose timeouts have expired, earliest first, and passes them to `each`.
    pub(super) fn expire(
        &mut self,
        now: Duration,
        mut each: impl FnMut(FlowEntry, FlowRemovedReason),
    ) {
        while let Some((due, slot)) = self.due.first().copied()
            && due <= now
        {
            let Some(Some(flow)) = self.slots.get_mut(slot as usize) else {
                self.due.pop_first();
                continue;
            };
            match flow.expired(now) {
                Some(reason) => {
                    if let Some(flow) = self.remove(FlowIndex(slot)) {
                        each(flow, reason);
                    }
                }
                None => {
                    self.due.pop_first();
                    flow.due = flow.deadline();
                    self.due.extend(flow.due.map(|due| (due, slot)));
                }
            }
        }
    }

    /// Earliest time at which [`FlowTable::expire`] has work.
    pub(super) fn next_expiry(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }

    fn watch(&mut self, slot: u32, flow: &mut FlowEntry) {
        flow.due = flow.deadline();
        self.due.extend(flow.due.map(|due| (due, slot)));
    }

    fn forget(&mut self, slot: u32) {
        if let Some(Some(FlowEntry { due: Some(due), .. })) = self.slots.get(slot as usize) {
            self.due.remove(&(*due, slot));
        }
    }
}

/// The flows that a request selects: by match, by cookie, and by their outputs.
#[derive(Debug)]
pub struct Selection {
    pattern: KeyPattern,
    /// The rank that they must have; `None` for every flow that the match covers.
    strict_rank: Option<u32>,
    cookie: u64,
    cookie_mask: u64,
    out_port: Port,
    out_group: u32,
}

impl Selection {
    /// Selects all flows that `matching` covers.
    #[must_use]
    pub fn covered_by(matching: &Match) -> Self {
        Selection {
            pattern: KeyPattern::of(matching),
            strict_rank: None,
            cookie: 0,
            cookie_mask: 0,
            out_port: Port::ANY,
            out_group: FlowMod::ANY_GROUP,
        }
    }

    /// Selects the flow with this match and priority, under the rules of `version`.
    #[must_use]
    pub fn strict(version: Version, matching: &Match, priority: u16) -> Self {
        let strict_rank = Some(rank(version, matching, priority));
        Selection { strict_rank, ..Self::covered_by(matching) }
    }

    /// Keeps only flows whose cookie is `cookie` in the bits of `mask`.
    #[must_use]
    pub fn cookie(self, cookie: u64, mask: u64) -> Self {
        Selection { cookie, cookie_mask: mask, ..self }
    }

    /// Keeps only flows that send to this port and this group. [`Port::ANY`] and
    /// [`FlowMod::ANY_GROUP`] keep all.
    #[must_use]
    pub fn output(self, port: Port, group: u32) -> Self {
        Selection { out_port: port, out_group: group, ..self }
    }

    fn admits(&self, flow: &FlowEntry) -> bool {
        (flow.cookie ^ self.cookie) & self.cookie_mask == 0
            && (self.out_port == Port::ANY || flow.program.outputs_to(self.out_port))
            && (self.out_group == FlowMod::ANY_GROUP || flow.program.uses_group(self.out_group))
    }
}
