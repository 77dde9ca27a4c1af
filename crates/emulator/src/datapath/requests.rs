//! What controllers ask of a switch.

use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::{
    ConfigFlags, ErrorCode, FlowFlags, FlowMod, FlowRemovedReason, GroupMod, MeterMod, PortMod,
    PortReason, PortStatus, SwitchConfig, TableMod, Version,
};

use super::{Checker, Datapath, Effects, FlowRemoved, Notice, Program, groups};

/// The bits of a table's configuration that a controller may set: they mean nothing any more
/// (1.3.5 §7.3.3, `OFPTC_DEPRECATED_MASK`).
const TABLE_CONFIG: u32 = 3;

impl Datapath {
    /// Adds, changes or removes flows (1.0 §4.6; 1.3.5 §6.4). A packet that waits in the request's
    /// buffer then passes through: in 1.3 from the first table on, in 1.0 by the request's actions.
    ///
    /// # Errors
    /// As the specification names them; nothing has changed then. The exception is a buffer that is
    /// unknown or empty: the specification does not say what becomes of the flow, and it is carried
    /// out, because buffers run out on their own and controllers count on their flows.
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
            Program::default()
        } else {
            let checker = self.checker(version);
            Program::compile(&request.instructions, request.table, &matching, &checker)?
        };
        let program = Arc::new(program);
        let gone = &mut self.gone;
        self.tables.flow_mod(version, request, &matching, &program, now, gone)?;
        self.tell_of_flows(now, effects);
        match request.buffer_id {
            // A request that removes flows has no use for one, and is not to look at it.
            Some(id) if !request.command.is_delete() => {
                self.release(version, id, &program, now, effects)
            }
            _ => Ok(()),
        }
    }

    /// Adds, changes or removes groups (1.3.5 §6.5). Flows that use a group go with it.
    ///
    /// # Errors
    /// As the specification names them; nothing has changed then.
    pub fn group_mod(
        &mut self,
        request: &GroupMod<'_>,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let buckets = groups::compile(request, &self.checker(Version::V1_3))?;
        let mut gone = Vec::new();
        self.forwarding.groups.modify(request, buckets, now, &mut gone)?;
        if !gone.is_empty() {
            let is_gone = |group: u32| gone.binary_search(&group).is_ok();
            let uses = |program: &Program| program.groups().any(is_gone);
            self.tables.remove_where(FlowRemovedReason::GroupDelete, &mut self.gone, uses);
            self.tell_of_flows(now, effects);
        }
        Ok(())
    }

    /// Adds, changes or removes meters (1.3.5 §6.6). Flows that use a meter go with it; 1.3 has no
    /// reason of its own for that.
    ///
    /// # Errors
    /// As the specification names them; nothing has changed then.
    pub fn meter_mod(
        &mut self,
        request: &MeterMod<'_>,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let mut gone = Vec::new();
        self.forwarding.meters.modify(request, now, &mut gone)?;
        if !gone.is_empty() {
            let is_gone = |meter: u32| gone.binary_search(&meter).is_ok();
            let uses = |program: &Program| program.meter.is_some_and(is_gone);
            self.tables.remove_where(FlowRemovedReason::Delete, &mut self.gone, uses);
            self.tell_of_flows(now, effects);
        }
        Ok(())
    }

    /// Changes how a port is set up (1.0 §5.3.3; 1.3.5 §7.3.4.3).
    ///
    /// # Errors
    /// As the specification names them; nothing has changed then.
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

    /// Changes how a table is set up (1.3.5 §7.3.3): there is nothing left to change.
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

    /// Changes the treatment of fragments, and how much of a packet goes to the controller that no
    /// action sends there (1.0 §5.3.2; 1.3.5 §7.3.2).
    ///
    /// # Errors
    /// `OFPSCFC_BAD_FLAGS` for flags that the version does not have, and for reassembling
    /// fragments, which this switch cannot do. 1.0 has no such error: there the length is changed,
    /// and the treatment of fragments stays, as the reply to the next request shows.
    pub fn set_config(&mut self, version: Version, wanted: &SwitchConfig) -> Result<(), ErrorCode> {
        let config = &mut self.forwarding.config;
        let known = ConfigFlags::FRAG_DROP.contains(wanted.flags);
        if !known && version == Version::V1_3 {
            return Err(ErrorCode::SwitchConfigBadFlags);
        }
        config.miss_send_len = wanted.miss_send_len;
        if known {
            config.flags = wanted.flags;
        }
        Ok(())
    }

    /// A port lost or found its link.
    pub fn link(&mut self, port: u32, up: bool, effects: &mut Effects) {
        tell_of_port(self.forwarding.ports.link(port, up), effects);
    }

    /// Removes the flows whose timeouts have run out.
    pub fn timers(&mut self, now: Duration, effects: &mut Effects) {
        self.tables.expire(now, &mut self.gone);
        self.tell_of_flows(now, effects);
    }

    /// When [`Datapath::timers`] has something to do next, at the earliest.
    #[must_use]
    pub fn next_timer(&self) -> Option<Duration> {
        self.tables.next_expiry()
    }

    /// Forgets all flows, groups, meters and buffered packets, as a restart does. Nobody is told.
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

    /// From now on it refuses actions that send to FLOOD, as switches do that have no forwarding of their own.
    pub fn refuse_flood(&mut self) {
        self.forwarding.refuses_flood = true;
    }

    /// Tells of the flows that have gone, where they wanted it.
    fn tell_of_flows(&mut self, now: Duration, effects: &mut Effects) {
        let told = |flags: FlowFlags| flags.contains(FlowFlags::SEND_FLOW_REM);
        for removed in self.gone.drain(..).filter(|removed| told(removed.flow.flags)) {
            let flow = &removed.flow;
            effects.notices.push(Notice::FlowRemoved(Box::new(FlowRemoved {
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
