//! Requests of controllers.

use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::{
    ConfigFlags, ErrorCode, FlowFlags, FlowMod, FlowRemovedReason, GroupMod, MeterMod, PortMod,
    PortReason, PortStatus, SwitchConfig, TableMod, Version,
};

use super::{Checker, Datapath, Effects, FlowProgram, FlowRemovedNotice, Notice, groups};

/// Configuration bits of a table that a controller may set; they no longer mean anything (1.3.5
/// §7.3.3, `OFPTC_DEPRECATED_MASK`).
const TABLE_CONFIG: u32 = 3;

impl Datapath {
    /// Adds, changes or removes flows (1.0 §4.6; 1.3.5 §6.4). Then sends the packet in the
    /// request's buffer: in 1.3 through all tables, in 1.0 by the request's actions.
    ///
    /// # Errors
    /// The errors of the specification; nothing has changed then. A buffer that is unknown or empty
    /// is the exception: the specification does not say what happens to the flow. The flow is
    /// carried out, because buffers expire on their own and controllers rely on their flows.
    pub fn flow_mod(
        &mut self,
        version: Version,
        request: &FlowMod<'_>,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let matching = request.matching.to_match();
        self.tables.check(version, request, &matching)?;
        let program = if request.command.is_delete() {
            FlowProgram::default()
        } else {
            let checker = self.checker(version);
            FlowProgram::compile(&request.instructions, request.table, &matching, &checker)?
        };
        let program = Arc::new(program);
        let removed = &mut self.removed;
        self.tables.flow_mod(version, request, &matching, &program, now, removed)?;
        self.tell_of_flows(now, effects);
        match request.buffer_id {
            // A request that removes flows ignores its buffer.
            Some(id) if !request.command.is_delete() => {
                self.release(version, id, &program, now, effects)
            }
            _ => Ok(()),
        }
    }

    /// Adds, changes or removes groups (1.3.5 §6.5). Removes flows that use a removed group.
    ///
    /// # Errors
    /// The errors of the specification; nothing has changed then.
    pub fn group_mod(
        &mut self,
        version: Version,
        request: &GroupMod<'_>,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let buckets = groups::compile(request, &self.checker(version))?;
        let mut removed = Vec::new();
        self.forwarding.groups.modify(request, buckets, now, &mut removed)?;
        if !removed.is_empty() {
            let is_gone = |group: u32| removed.binary_search(&group).is_ok();
            let uses = |program: &FlowProgram| program.groups().any(is_gone);
            self.tables.remove_where(FlowRemovedReason::GroupDelete, &mut self.removed, uses);
            self.tell_of_flows(now, effects);
        }
        Ok(())
    }

    /// Adds, changes or removes meters (1.3.5 §6.6). Flows that use a removed meter are removed
    /// too; 1.3 has no separate reason for that.
    ///
    /// # Errors
    /// The errors of the specification; nothing has changed then.
    pub fn meter_mod(
        &mut self,
        request: &MeterMod<'_>,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let mut removed = Vec::new();
        self.forwarding.meters.modify(request, now, &mut removed)?;
        if !removed.is_empty() {
            let is_gone = |meter: u32| removed.binary_search(&meter).is_ok();
            let uses = |program: &FlowProgram| program.meter.is_some_and(is_gone);
            self.tables.remove_where(FlowRemovedReason::Delete, &mut self.removed, uses);
            self.tell_of_flows(now, effects);
        }
        Ok(())
    }

    /// Changes the configuration of a port (1.0 §5.3.3; 1.3.5 §7.3.4.3).
    ///
    /// # Errors
    /// The errors of the specification; nothing has changed then.
    pub fn port_mod(
        &mut self,
        version: Version,
        request: &PortMod,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let changed = self.forwarding.ports.modify(version, request)?;
        tell_of_port(changed, effects);
        Ok(())
    }

    /// Changes the configuration of a table (1.3.5 §7.3.3). No bit of it has an effect.
    ///
    /// # Errors
    /// `OFPTMFC_BAD_TABLE`, `OFPTMFC_BAD_CONFIG`.
    pub fn table_mod(&mut self, request: &TableMod) -> Result<(), ErrorCode> {
        let all = request.table == FlowMod::ALL_TABLES;
        if !all && self.tables.table(request.table).is_none() {
            return Err(ErrorCode::TableModBadTable);
        }
        if request.config & !TABLE_CONFIG != 0 {
            return Err(ErrorCode::TableModBadConfig);
        }
        Ok(())
    }

    /// Changes the treatment of fragments, and the number of bytes for the controller when no
    /// action sends the packet there (1.0 §5.3.2; 1.3.5 §7.3.2).
    ///
    /// # Errors
    /// `OFPSCFC_BAD_FLAGS` for flags that the version does not have, and for reassembly of
    /// fragments, which this switch cannot do. 1.0 has no such error: the length changes and the
    /// treatment of fragments stays. The reply to the next request shows that.
    pub fn set_config(&mut self, version: Version, wanted: &SwitchConfig) -> Result<(), ErrorCode> {
        let config = &mut self.forwarding.config;
        let known = ConfigFlags::FRAG_DROP.contains(wanted.flags);
        let bad_flags = ErrorCode::SwitchConfigBadFlags;
        if !known && bad_flags.exists_in(version) {
            return Err(bad_flags);
        }
        config.miss_send_len = wanted.miss_send_len;
        if known {
            config.flags = wanted.flags;
        }
        Ok(())
    }

    /// Sets whether a port's link is up.
    pub fn link(&mut self, port: u32, up: bool, effects: &mut Effects) {
        tell_of_port(self.forwarding.ports.link(port, up), effects);
    }

    /// Removes the flows whose timeouts have expired.
    pub fn timers(&mut self, now: Duration, effects: &mut Effects) {
        self.tables.expire(now, &mut self.removed);
        self.tell_of_flows(now, effects);
    }

    /// Earliest time at which [`Datapath::timers`] has work.
    #[must_use]
    pub fn next_timer(&self) -> Option<Duration> {
        self.tables.next_expiry()
    }

    /// Removes all flows, groups, meters and buffered packets, as a restart does, without notices.
    pub fn clear(&mut self) {
        self.tables.clear();
        self.forwarding.clear();
    }

    pub(super) fn checker(&self, version: Version) -> Checker<'_> {
        Checker {
            version,
            tables: self.tables.len(),
            ports: &self.forwarding.ports,
            groups: &self.forwarding.groups,
            meters: &self.forwarding.meters,
            packet_out: false,
            refuses_flood: self.forwarding.refuses_flood,
        }
    }

    /// Refuses outputs to FLOOD from now on, as switches without forwarding of their own do.
    pub fn refuse_flood(&mut self) {
        self.forwarding.refuses_flood = true;
    }

    /// Adds notices for the removed flows with `SEND_FLOW_REM`.
    fn tell_of_flows(&mut self, now: Duration, effects: &mut Effects) {
        let sends_removal = |flags: FlowFlags| flags.contains(FlowFlags::SEND_FLOW_REM);
        for removed in self.removed.drain(..).filter(|removed| sends_removal(removed.flow.flags)) {
            let flow = &removed.flow;
            effects.notices.push(Notice::FlowRemoved(Box::new(FlowRemovedNotice {
                table: removed.table,
                cookie: flow.cookie,
                priority: flow.priority,
                reason: removed.reason,
                duration: now.saturating_sub(flow.created),
                idle_timeout: flow.idle_timeout,
                hard_timeout: flow.hard_timeout,
                packet_count: flow.packet_count,
                byte_count: flow.byte_count,
                matching: flow.matching(),
            })));
        }
    }
}

fn tell_of_port(changed: Option<bellrock_openflow::PortDesc>, effects: &mut Effects) {
    let status = changed.map(|desc| PortStatus { reason: PortReason::Modify, desc });
    effects.notices.extend(status.map(Notice::PortStatus));
}
