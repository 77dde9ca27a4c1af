//! The flow tables of a switch, and the rules of a flow_mod (1.0 §4.6; 1.3.5 §6.4).

use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::{
    ErrorCode, Field, FlowCommand, FlowFlags, FlowMod, FlowRemovedReason, FlowStatsRequest, Match,
    Version,
};

use super::flow::{FlowEntry, Removed};
use super::table::{FlowTable, Selection};
use crate::datapath::FlowProgram;

/// All flags but that of emergency flows.
const FLAGS: FlowFlags = FlowFlags::SEND_FLOW_REM
    .union(FlowFlags::CHECK_OVERLAP)
    .union(FlowFlags::RESET_COUNTS)
    .union(FlowFlags::NO_PKT_COUNTS)
    .union(FlowFlags::NO_BYT_COUNTS);

/// The flow tables of a switch, by their numbers.
#[derive(Clone, Debug)]
pub struct FlowTables {
    tables: Vec<FlowTable>,
    changes: u64,
    /// Time of the first expiry in any table; read after every packet.
    next_expiry: Option<Duration>,
}

impl FlowTables {
    /// Makes this many empty tables, at least one, each for at most `capacity` flows.
    #[must_use]
    pub fn new(tables: u8, capacity: u32) -> Self {
        let tables = (0..tables.max(1)).map(|_| FlowTable::new(capacity)).collect();
        FlowTables { tables, changes: 0, next_expiry: None }
    }

    /// Number of tables.
    #[must_use]
    pub fn len(&self) -> u8 {
        self.tables.len() as u8
    }

    /// Whether there are no tables.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// A table.
    #[must_use]
    #[inline]
    pub fn table(&self, table: u8) -> Option<&FlowTable> {
        self.tables.get(usize::from(table))
    }

    /// A table, for counting packets.
    #[must_use]
    #[inline]
    pub fn table_mut(&mut self, table: u8) -> Option<&mut FlowTable> {
        self.tables.get_mut(usize::from(table))
    }

    /// The tables, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &FlowTable)> {
        self.tables.iter().zip(0..).map(|(table, number)| (number, table))
    }

    /// A number that grows with every change of the flows or of their actions. Look-ups from before
    /// the change may no longer be right.
    #[must_use]
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Checks a request's table, flags and match. Call it before checking the request's
    /// instructions.
    ///
    /// # Errors
    /// - `OFPFMFC_BAD_TABLE_ID`: the table does not exist, or is "all" in a request that adds or
    ///   modifies.
    /// - `OFPFMFC_BAD_FLAGS`: a flag that the version does not have.
    /// - `OFPFMFC_BAD_EMERG_TIMEOUT`, `OFPFMFC_TABLE_FULL`: 1.0's emergency flows. None can be
    ///   added: a switch with a controller does not need them, and 1.1 dropped them.
    /// - `OFPBMC_BAD_FIELD`, `OFPBMC_BAD_MASK`, `OFPBMC_BAD_VALUE`: an unknown field, a mask on a
    ///   field that takes none, a VLAN id without `OFPVID_PRESENT`.
    pub fn check(
        &self,
        version: Version,
        request: &FlowMod<'_>,
        matching: &Match,
    ) -> Result<(), ErrorCode> {
        let all = request.table == FlowMod::ALL_TABLES;
        let is_there = match all {
            true => request.command.is_delete(),
            false => self.table(request.table).is_some(),
        };
        if !is_there {
            return Err(ErrorCode::FlowModBadTable);
        }
        check_flags(version, request)?;
        check_match(matching)
    }

    /// Carries out a request that [`FlowTables::check`] has accepted. `program` comes from its
    /// instructions; a request that deletes ignores it. Deleted flows are appended to `removed`. A
    /// flow that was replaced is not: no controller gets a notice of that.
    ///
    /// # Errors
    /// `OFPFMFC_OVERLAP`, `OFPFMFC_TABLE_FULL`; nothing has changed then.
    pub fn flow_mod(
        &mut self,
        version: Version,
        request: &FlowMod<'_>,
        matching: &Match,
        program: &Arc<FlowProgram>,
        now: Duration,
        removed: &mut Vec<Removed>,
    ) -> Result<(), ErrorCode> {
        if version.has_emergency_flows() && request.flags.contains(FlowFlags::EMERG) {
            // It deletes from the emergency flows, and there are none.
            return Ok(());
        }
        let selection = match request.command {
            FlowCommand::Add => return self.add(version, request, matching, program, now),
            FlowCommand::Modify | FlowCommand::Delete => Selection::covered_by(matching),
            FlowCommand::ModifyStrict | FlowCommand::DeleteStrict => {
                Selection::strict(version, matching, request.priority)
            }
        };
        let selection = selection.cookie(request.cookie, cookie_mask(version, request));
        if request.command.is_delete() {
            let selection = selection.output(request.out_port, request.out_group);
            self.delete(request.table, &selection, removed);
            return Ok(());
        }
        let found = self.modify(version, request, &selection, program);
        if !found && version.modify_adds() {
            return self.add(version, request, matching, program, now);
        }
        Ok(())
    }

    /// The flows that a statistics request selects, table by table.
    pub fn select(&self, request: &FlowStatsRequest<'_>) -> impl Iterator<Item = (u8, &FlowEntry)> {
        let selection = Selection::covered_by(&request.matching.to_match())
            .cookie(request.cookie, request.cookie_mask)
            .output(request.out_port, request.out_group);
        let wanted = request.table;
        let tables = self.iter().filter(move |(table, _)| is_meant(wanted, *table));
        tables.flat_map(move |(number, table)| {
            let found = table.select(&selection).into_iter();
            found.filter_map(move |id| Some((number, table.flow(id)?)))
        })
    }

    /// Removes the flows with such a program, for example one that uses a removed group.
    pub fn remove_where(
        &mut self,
        reason: FlowRemovedReason,
        removed: &mut Vec<Removed>,
        mut select: impl FnMut(&FlowProgram) -> bool,
    ) {
        for (table, number) in self.tables.iter_mut().zip(0..) {
            let found: Vec<_> = table.flows().filter(|(_, flow)| select(&flow.program)).collect();
            let found: Vec<_> = found.into_iter().map(|(id, _)| id).collect();
            let flows = found.into_iter().filter_map(|id| table.remove(id));
            removed.extend(flows.map(|flow| Removed { table: number, reason, flow }));
        }
        self.changed(1);
    }

    /// Removes the flows whose timeouts have expired.
    pub fn expire(&mut self, now: Duration, removed: &mut Vec<Removed>) {
        let before = removed.len();
        for (table, number) in self.tables.iter_mut().zip(0..) {
            table.expire(now, |flow, reason| removed.push(Removed { table: number, reason, flow }));
        }
        self.changed(u64::from(removed.len() > before));
    }

    /// Earliest time at which [`FlowTables::expire`] has work.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Duration> {
        self.next_expiry
    }

    /// Removes all flows from all tables, without notices.
    pub fn clear(&mut self) {
        for table in &mut self.tables {
            *table = FlowTable::new(table.capacity());
        }
        self.changed(1);
    }

    fn changed(&mut self, changes: u64) {
        self.changes += changes;
        self.next_expiry = self.tables.iter().filter_map(FlowTable::next_expiry).min();
    }

    fn add(
        &mut self,
        version: Version,
        request: &FlowMod<'_>,
        matching: &Match,
        program: &Arc<FlowProgram>,
        now: Duration,
    ) -> Result<(), ErrorCode> {
        let table = self.tables.get_mut(usize::from(request.table));
        let table = table.ok_or(ErrorCode::FlowModBadTable)?;
        let mut flow = FlowEntry::new(version, request, matching, Arc::clone(program), now);
        if request.flags.contains(FlowFlags::CHECK_OVERLAP) && table.overlaps(&flow) {
            return Err(ErrorCode::FlowModOverlap);
        }
        if version.replacing_keeps_counters() && !request.flags.contains(FlowFlags::RESET_COUNTS) {
            let equal = table.find(version, matching, request.priority);
            if let Some(equal) = equal.and_then(|id| table.flow(id)) {
                (flow.packet_count, flow.byte_count) = (equal.packet_count, equal.byte_count);
            }
        }
        table.insert(flow).map_err(|_| ErrorCode::FlowModTableFull)?;
        self.changed(1);
        Ok(())
    }

    /// Modifies the selected flows. Returns whether there were any.
    ///
    /// 1.0 does not say what happens to the cookie. As in Open vSwitch it is replaced: the request
    /// has a cookie, and no mask that would make it a condition.
    fn modify(
        &mut self,
        version: Version,
        request: &FlowMod<'_>,
        selection: &Selection,
        program: &Arc<FlowProgram>,
    ) -> bool {
        let Some(table) = self.tables.get_mut(usize::from(request.table)) else { return false };
        let found = table.select(selection);
        for id in &found {
            table.replace_program(*id, Arc::clone(program));
            if !version.selects_by_cookie() {
                table.set_cookie(*id, request.cookie);
            } else if request.flags.contains(FlowFlags::RESET_COUNTS) {
                table.reset_counts(*id);
            }
        }
        self.changed(1);
        !found.is_empty()
    }

    fn delete(&mut self, wanted: u8, selection: &Selection, removed: &mut Vec<Removed>) {
        let reason = FlowRemovedReason::Delete;
        for (table, number) in self.tables.iter_mut().zip(0..) {
            if is_meant(wanted, number) {
                let found = table.select(selection).into_iter();
                let flows = found.filter_map(|id| table.remove(id));
                removed.extend(flows.map(|flow| Removed { table: number, reason, flow }));
            }
        }
        self.changed(1);
    }
}

/// Whether a request for the table `wanted` includes this one.
fn is_meant(wanted: u8, table: u8) -> bool {
    wanted == FlowMod::ALL_TABLES || wanted == table
}

/// The bits of the cookie that are a condition. 1.0 has no such condition.
fn cookie_mask(version: Version, request: &FlowMod<'_>) -> u64 {
    if version.selects_by_cookie() { request.cookie_mask } else { 0 }
}

fn check_flags(version: Version, request: &FlowMod<'_>) -> Result<(), ErrorCode> {
    let flags = request.flags;
    if version.has_emergency_flows() && flags.contains(FlowFlags::EMERG) {
        let timeouts = request.idle_timeout != 0 || request.hard_timeout != 0;
        return match request.command.is_delete() {
            true => Ok(()),
            false if timeouts => Err(ErrorCode::FlowModBadEmergencyTimeout),
            false => Err(ErrorCode::FlowModTableFull),
        };
    }
    // 1.0 has no error for unknown flags; they are ignored.
    let bad_flags = ErrorCode::FlowModBadFlags;
    if FLAGS.contains(flags) || !bad_flags.exists_in(version) { Ok(()) } else { Err(bad_flags) }
}

/// Checks a match beyond what the codec has checked.
fn check_match(matching: &Match) -> Result<(), ErrorCode> {
    if !matching.unknown().is_empty() || !matching.fields().all(Field::is_basic) {
        return Err(ErrorCode::MatchBadField);
    }
    if matching.fields().any(|field| matching.is_masked(field) && !field.maskable()) {
        return Err(ErrorCode::MatchBadMask);
    }
    let vid = matching.value(Field::VlanVid).unwrap_or_default();
    if vid & u128::from(Match::VLAN_PRESENT) == 0 && vid != 0 && !matching.is_masked(Field::VlanVid)
    {
        return Err(ErrorCode::MatchBadValue);
    }
    Ok(())
}
