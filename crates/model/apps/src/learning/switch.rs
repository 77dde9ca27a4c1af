//! The handler of a learning switch.

use std::hint::cold_path;
use std::ops::ControlFlow;
use std::time::Duration;

use arrayvec::ArrayVec;
use bellrock_api::{
    Action, BATCH_PACKETS, Backoff, Batch, ErrorCode, ErrorMessage, FlowMod, FlowStats, Handler,
    HostEntry, Match, PacketIn, Port, PortDesc, PortReason, PortStatus, Result, Switch, Verdict,
    Xid,
};
use bellrock_services::reserved::{ReservedFrames, vlan_of};
use bellrock_tables::{Hashed, Stamp};

use super::counters::LearningCounters;
use super::flaps::Flaps;
use super::frame::{FrameHeader, HostKey, HostPlace};
use super::hosts::{Destination, HostChange, HostTable, Learnt, SwitchHosts};
use super::prepared::{self, Plain, Prepared};
use super::{LearningSettings, earlier_flows, matching};
use crate::storm::StormGuard;

/// Seconds in which a sweep covers the whole table.
const SWEEP_S: usize = 60;

/// Maximum number of hosts with flows that age out in a second: their messages must fit a send
/// buffer. The rest waits; a packet to such a host finds it too old before, and is flooded.
const MAX_AGED_WITH_FLOWS_PER_S: usize = 64;

/// Maximum number of changes by other switches that are handled at a time, for the same reason. The
/// rest waits for the next packets, or the next second.
const MAX_CHANGES_AT_A_TIME: usize = 64;

/// Steps of a resize of the host table for each batch of packets, and for each second: a busy
/// switch ends the resize of a thousand hosts within milliseconds, an idle one within seconds. A
/// second's steps drain 128 lines of 64 bytes.
const RESIZE_STEPS_PER_BATCH: usize = 1;
const RESIZE_STEPS_PER_S: usize = 64;

/// A learning switch at one switch.
#[expect(private_bounds, reason = "the host table is private to this crate")]
pub struct LearningSwitch<H: HostTable = SwitchHosts> {
    settings: LearningSettings,
    prepared: Prepared,
    /// The same templates while `is_fast` is true, otherwise none.
    fast_templates: Prepared,
    hosts: H,
    /// Ports that belong to other apps: no host is learnt there, and no packet is sent there.
    reserved_frames: ReservedFrames,
    flaps: Flaps,
    /// Pauses in installing flows, after the switch's table was full.
    flow_mods: Backoff,
    /// Pauses in using buffered packets, after the switch did not know a buffer; no flows are
    /// installed meanwhile either.
    buffers: Backoff,
    counters: LearningCounters,
    /// Watches floods.
    storm: StormGuard,
    /// The time of the last event in seconds, for ages between events.
    now_s: u32,
    /// Whether flows may be installed without further checks: no pause runs, and no host moves.
    is_fast: bool,
    /// Whether this event removes flows. If the event fails, its messages are lost.
    is_removing: bool,
    /// Whether a removal was lost: it is then unknown which flows are wrong.
    is_removal_lost: bool,
    /// Pauses after removals that the switch did not carry out (1.0).
    removals: Backoff,
}

/// A packet whose addresses are read and hashed.
#[derive(Clone, Copy)]
struct HashedPacket {
    frame: FrameHeader,
    src: Hashed,
    dst: Hashed,
}

#[expect(private_bounds, reason = "the host table is private to this crate")]
impl<H: HostTable> LearningSwitch<H> {
    pub(crate) fn new(
        settings: LearningSettings,
        prepared: Prepared,
        hosts: H,
        reserved_frames: ReservedFrames,
        storm: StormGuard,
    ) -> Self {
        LearningSwitch {
            settings,
            fast_templates: prepared.clone(),
            prepared,
            hosts,
            reserved_frames,
            flaps: Flaps::default(),
            flow_mods: Backoff::default(),
            buffers: Backoff::default(),
            counters: LearningCounters::default(),
            storm,
            now_s: 0,
            is_fast: true,
            is_removing: false,
            is_removal_lost: false,
            removals: Backoff::default(),
        }
    }

    /// Starts to load the entries of all packets' addresses into the cache.
    #[inline(never)]
    fn prefetch(&self, batch: &Batch<'_>) {
        let mut hosts = ArrayVec::<_, { 2 * BATCH_PACKETS }>::new();
        for frame in batch.iter().filter_map(|packet| FrameHeader::read(&packet)) {
            for host in [frame.from(), frame.to()] {
                let host = self.hosts.hash(host);
                self.hosts.prefetch(host);
                hosts.push(host);
            }
        }
        if self.hosts.is_large() {
            hosts.iter().for_each(|host| self.hosts.prefetch_rest(*host));
        }
    }

    /// The fast path of nearly all packets: installs one more flow between two known hosts that
    /// have not moved and have flows already. Returns the output port. `None` in any other case,
    /// for [`LearningSwitch::handle`], which would do the same in this one.
    #[inline(always)]
    fn install_known(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Option<Port> {
        let now = Stamp::at(seconds(switch.now()));
        let port = match &self.fast_templates {
            Prepared::Exact(templates) => {
                let (frame, plain) = Plain::untagged(packet, templates)?;
                let port = self.hosts.with_flows(packet, &frame, now)?.port();
                let template = &plain.by_tag.untagged;
                let mut flow = switch.install_for(packet, template).ok()?;
                prepared::fill_link(&mut flow, packet, &frame, port).ok()?;
                plain.fill(&mut flow, &frame);
                flow.finish().ok()?;
                port
            }
            Prepared::L2(templates) => {
                let frame = FrameHeader::untagged(packet)?;
                let port = self.hosts.with_flows(packet, &frame, now)?.port();
                let mut flow = switch.install_for(packet, &templates.untagged).ok()?;
                prepared::fill_link(&mut flow, packet, &frame, port).ok()?;
                flow.finish().ok()?;
                port
            }
            Prepared::Nothing => return None,
        };
        self.counters.flow_mods += 1;
        Some(port)
    }

    #[cold]
    fn handle(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<()> {
        let result = self.handle_any(switch, packet);
        if self.is_removing {
            self.finish_removal(&result);
        }
        self.update_fast_path(switch.now());
        result
    }

    /// Updates `is_fast`, after a change that may affect it, and every second.
    fn update_fast_path(&mut self, now: Duration) {
        let is_paused = !self.flow_mods.is_over(now) || !self.buffers.is_over(now);
        let is_fast = !is_paused && !self.flaps.has_entries();
        // Not for each packet: a clone writes to memory that workers share.
        if is_fast != self.is_fast {
            self.is_fast = is_fast;
            self.fast_templates = if is_fast { self.prepared.clone() } else { Prepared::Nothing };
        }
    }

    fn handle_any(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<()> {
        self.now_s = seconds(switch.now());
        let Some(frame) = FrameHeader::read(packet) else {
            self.counters.malformed += 1;
            return self.drop(switch, packet);
        };
        if self.reserved_frames.is_reserved_for(packet) {
            self.counters.reserved += 1;
            return self.drop(switch, packet);
        }
        let (src, dst) = (self.hosts.hash(frame.from()), self.hosts.hash(frame.to()));
        let hashed = HashedPacket { frame, src, dst };
        if !frame.is_from_station() {
            self.counters.bad_source += 1;
            return self.drop(switch, packet);
        }
        self.handle_storm(switch)?;
        // A copy comes in where its source is not.
        let may_be_copy = || match self.hosts.find(src, self.now_s) {
            Destination::At(place) => place.port() != packet.in_port(),
            _ => frame.is_to_group(),
        };
        if self.storm.is_copy(switch, packet, may_be_copy) {
            return self.drop(switch, packet);
        }
        let from = match self.storm.is_young(switch.now()) {
            true => None,
            false => self.learn(switch, packet, &hashed)?,
        };
        if frame.is_link_local() {
            self.counters.link_local += 1;
            return self.drop(switch, packet);
        }
        if frame.is_to_group() {
            return self.flood(switch, packet);
        }
        match self.find(switch, &hashed)? {
            None => self.flood(switch, packet),
            Some(to) if to.port() == packet.in_port() => {
                self.counters.same_port += 1;
                self.drop(switch, packet)
            }
            Some(to) => self.forward(switch, packet, &hashed, from, to),
        }
    }

    /// Learns the place of a packet's source. `None` if the table does not have it afterwards.
    fn learn(
        &mut self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        hashed: &HashedPacket,
    ) -> Result<Option<HostPlace>> {
        let Some(at) = HostPlace::at(packet.in_port()) else {
            self.counters.bad_port += 1;
            return Ok(None);
        };
        match self.hosts.learn(hashed.src, at, hashed.frame.is_to_group(), self.now_s) {
            Learnt::Known(place) => Ok(Some(place)),
            Learnt::New(place, evicted) => {
                if let Some((host, from)) = evicted {
                    self.counters.evicted += 1;
                    self.remove_flows(switch, host, from)?;
                }
                Ok(Some(place))
            }
            Learnt::Moved { from, to } => {
                self.counters.moves += 1;
                let is_new_flap = self.flaps.record_move(hashed.frame.from(), self.now_s);
                self.counters.flaps += u64::from(is_new_flap);
                if self.flaps.is_flapping(hashed.frame.from()) {
                    self.storm.flapping_host_moved(switch, from.port(), to.port());
                }
                self.remove_flows(switch, hashed.frame.from(), from)?;
                Ok(Some(to))
            }
            Learnt::OverLimit { from } => {
                self.counters.over_port_limit += 1;
                if let Some(from) = from {
                    self.remove_flows(switch, hashed.frame.from(), from)?;
                }
                Ok(None)
            }
            Learnt::Elsewhere => Ok(None),
            Learnt::NoMemory => {
                self.counters.no_memory += 1;
                Ok(None)
            }
        }
    }

    /// Forgets the hosts that have moved recently, when a storm has begun. They were learnt where
    /// copies came in, so packets to them would be lost until they send.
    fn handle_storm(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        let mut result = Ok(());
        if !self.storm.is_new_storm() {
            return result;
        }
        for host in self.flaps.hosts() {
            let hashed = self.hosts.hash(host);
            if let Destination::At(place) | Destination::Stale(place) =
                self.hosts.find(hashed, self.now_s)
            {
                self.hosts.forget(hashed);
                let removed = self.remove_flows(switch, host, place);
                result = result.and(removed);
            }
        }
        result
    }

    /// Finds the destination of a packet, and forgets it if it is too old.
    fn find(
        &mut self,
        switch: &mut Switch<'_>,
        hashed: &HashedPacket,
    ) -> Result<Option<HostPlace>> {
        match self.hosts.find(hashed.dst, self.now_s) {
            Destination::At(place) => Ok(Some(place)),
            Destination::Nowhere => Ok(None),
            Destination::Stale(place) => {
                self.counters.aged_out += 1;
                self.hosts.forget(hashed.dst);
                self.remove_flows(switch, hashed.frame.to(), place)?;
                Ok(None)
            }
        }
    }

    /// Sends a packet to its destination, by a flow if one may be installed.
    fn forward(
        &mut self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        hashed: &HashedPacket,
        from: Option<HostPlace>,
        to: HostPlace,
    ) -> Result<()> {
        let Some(from) = from.filter(|_| self.may_install(switch.now(), &hashed.frame)) else {
            return self.send_on(switch, packet, to.port());
        };
        // Before the flows exist: the code that moves a host must know whether it has flows.
        if !self.hosts.note_flows(hashed.src, from) || !self.hosts.note_flows(hashed.dst, to) {
            return self.send_on(switch, packet, to.port());
        }
        self.install(switch, packet, &hashed.frame, to.port())?;
        self.counters.flow_mods += 1;
        if packet.buffer_id().is_none() {
            return self.send_on(switch, packet, to.port());
        }
        Ok(())
    }

    fn may_install(&self, now: Duration, frame: &FrameHeader) -> bool {
        self.flow_mods.is_over(now)
            && self.buffers.is_over(now)
            && !self.flaps.is_flapping(frame.from())
            && !self.flaps.is_flapping(frame.to())
    }

    /// Installs the flow of a packet; if the switch buffers the packet, it takes this flow.
    fn install(
        &self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        frame: &FrameHeader,
        port: Port,
    ) -> Result<()> {
        match &self.prepared {
            Prepared::L2(templates) => {
                let mut flow = switch.install_for(packet, templates.of(frame))?;
                prepared::fill_link(&mut flow, packet, frame, port)?;
                flow.finish()?;
            }
            Prepared::Exact(templates) => match Plain::read(packet, frame, templates) {
                Some(plain) => {
                    let template = plain.by_tag.of(frame);
                    let mut flow = switch.install_for(packet, template)?;
                    prepared::fill_link(&mut flow, packet, frame, port)?;
                    plain.fill(&mut flow, frame);
                    flow.finish()?;
                }
                None => self.install_exact(switch, packet, frame, port)?,
            },
            Prepared::Nothing => self.install_exact(switch, packet, frame, port)?,
        }
        Ok(())
    }

    fn install_exact(
        &self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        frame: &FrameHeader,
        port: Port,
    ) -> Result<()> {
        let matching = matching::exact(packet, frame, switch.version());
        let actions = [Action::output(port)];
        let flow = FlowMod::add(&matching)
            .priority(self.settings.priority)
            .idle_timeout(self.settings.idle_timeout_s)
            .hard_timeout(self.settings.hard_timeout_s)
            .buffer_id(packet.buffer_id())
            .actions(&actions);
        switch.install(&flow)?;
        Ok(())
    }

    #[cold]
    fn send_on(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>, to: Port) -> Result<()> {
        let is_buffer_avoided = !self.buffers.is_over(switch.now());
        let is_sent = send(switch, packet, &[Action::output(to)], is_buffer_avoided)?;
        self.counters.packet_outs += u64::from(is_sent);
        self.counters.truncated += u64::from(!is_sent);
        Ok(())
    }

    fn flood(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<()> {
        if self.storm.holds_back(switch, packet) {
            return self.drop(switch, packet);
        }
        let is_buffer_avoided = !self.buffers.is_over(switch.now());
        let actions = self.reserved_frames.flood(switch, packet.in_port(), || vlan_of(packet));
        let is_sent = send(switch, packet, actions, is_buffer_avoided)?;
        self.counters.floods += u64::from(is_sent);
        self.counters.truncated += u64::from(!is_sent);
        Ok(())
    }

    /// Does not send a packet on, and frees its buffer in the switch.
    fn drop(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<()> {
        if packet.buffer_id().is_some() && self.buffers.is_over(switch.now()) {
            switch.packet_out_with(packet, &[])?;
        }
        Ok(())
    }

    /// Removes the flows from and to a host that left a place.
    fn remove_flows(
        &mut self,
        switch: &mut Switch<'_>,
        host: HostKey,
        at: HostPlace,
    ) -> Result<()> {
        self.is_removing |= at.has_flows();
        remove_flows(switch, host, at)
    }

    /// Ends an event that removed flows. If it failed, its removals are recorded as lost.
    #[cold]
    fn finish_removal(&mut self, result: &Result<()>) {
        self.is_removal_lost |= self.is_removing && result.is_err();
        self.is_removing = false;
    }

    /// Removes all flows once after a lost removal, as it is unknown which are wrong.
    fn retry_lost_removal(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        if self.is_removal_lost && self.removals.is_over(switch.now()) {
            self.is_removing = true;
            self.is_removal_lost = false;
            switch.remove(&Match::any(), Port::ANY)?;
        }
        Ok(())
    }

    /// Forgets the hosts that are too old in the next part of the table.
    fn sweep(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        let LearningSwitch { hosts, counters, is_removing, now_s, .. } = self;
        let mut with_flows = 0;
        let mut removed = Ok(());
        for _ in 0..hosts.lines().div_ceil(SWEEP_S) {
            if with_flows >= MAX_AGED_WITH_FLOWS_PER_S || removed.is_err() {
                break;
            }
            hosts.age(*now_s, |host, place| {
                counters.aged_out += 1;
                with_flows += usize::from(place.has_flows());
                *is_removing |= place.has_flows();
                if removed.is_ok() {
                    removed = remove_flows(switch, host, place);
                }
            });
        }
        removed
    }

    /// Removes the flows that changes by other switches have made wrong.
    #[cold]
    fn handle_changes(&mut self, switch: &mut Switch<'_>) {
        let result = self.remove_wrong_flows(switch);
        self.finish_removal(&result);
    }

    fn remove_wrong_flows(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        for _ in 0..MAX_CHANGES_AT_A_TIME {
            let Some(change) = self.hosts.next_change() else { break };
            match change {
                HostChange::Gone(host, place) => self.remove_flows(switch, host, place)?,
                HostChange::Rerouted(port) => self.remove_flows_of_port(switch, port)?,
                HostChange::Lost => self.is_removal_lost = true,
            }
        }
        Ok(())
    }

    fn port_gone(&mut self, switch: &mut Switch<'_>, port: Port) -> Result<()> {
        self.hosts.forget_port(port);
        self.remove_flows_of_port(switch, port)
    }

    fn remove_flows_of_port(&mut self, switch: &mut Switch<'_>, port: Port) -> Result<()> {
        self.is_removing = true;
        switch.remove(&Match::any(), port)?;
        switch.remove(&Match::any().in_port(port), Port::ANY)?;
        Ok(())
    }
}

/// Sends a packet_out with these actions: with the whole packet if buffers are avoided.
/// Returns false if only a part of the packet is available.
fn send(
    switch: &mut Switch<'_>,
    packet: &PacketIn<'_>,
    actions: &[Action<'_>],
    is_buffer_avoided: bool,
) -> Result<bool> {
    match packet.buffer_id() {
        None if !packet.is_whole() => return Ok(false),
        Some(_) if packet.is_whole() && is_buffer_avoided => {
            switch.packet_out_whole(packet, actions)?;
        }
        _ => switch.packet_out_with(packet, actions)?,
    }
    Ok(true)
}

/// Removes the flows to and from a host at a place, if it has any.
fn remove_flows(switch: &mut Switch<'_>, host: HostKey, at: HostPlace) -> Result<()> {
    if !at.has_flows() {
        return Ok(());
    }
    // Without a VLAN id this covers all packets of the address: untagged, and tagged without an id.
    let vlan = |matching: Match| match host.vlan() {
        Some(id) => matching.vlan_id(id),
        None => matching,
    };
    switch.remove(&vlan(Match::any().eth_dst(host.mac())), at.port())?;
    switch.remove(&vlan(Match::any().in_port(at.port()).eth_src(host.mac())), Port::ANY)?;
    Ok(())
}

/// The clock of the table, in seconds. It wraps around after 136 years.
pub(crate) fn seconds(now: Duration) -> u32 {
    now.as_secs() as u32
}

impl<H: HostTable> Handler for LearningSwitch<H> {
    fn adopt(&mut self, switch: &mut Switch<'_>, flow: &FlowStats<'_>) -> Result<bool> {
        self.now_s = seconds(switch.now());
        let info = switch.info();
        let is_up = |port| info.port(port).is_some_and(PortDesc::is_up);
        let ends = earlier_flows::ends(flow, info.version, &self.settings);
        let ends = ends.filter(|ends| ends.ports().into_iter().all(is_up));
        let reserved_frames = &mut self.reserved_frames;
        let ends = ends.filter(|ends| {
            let vlan = ends.vlan();
            ends.ports().into_iter().all(|port| !reserved_frames.is_reserved(port, vlan))
        });
        Ok(ends.is_some_and(|ends| self.hosts.adopt(&ends, self.now_s)))
    }

    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        // A table that outlives the connection may have hosts behind ports that are now down.
        let down = switch.info().ports.iter().filter(|desc| !desc.is_up());
        down.for_each(|desc| self.hosts.forget_port(desc.port));
        Ok(())
    }

    #[inline(always)]
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let installed = self.install_known(switch, packet);
        if installed.is_some() && packet.buffer_id().is_some() {
            return Ok(Verdict::Consume);
        }
        cold_path();
        // A copy, so that the packet of the fast path need not be in memory.
        let packet = *packet;
        match installed {
            Some(port) => self.send_on(switch, &packet, port)?,
            None => self.handle(switch, &packet)?,
        }
        Ok(Verdict::Consume)
    }

    fn packet_ins(&mut self, switch: &mut Switch<'_>, batch: &mut Batch<'_>) {
        if self.hosts.has_changes() {
            self.handle_changes(switch);
        }
        self.hosts.continue_resize(RESIZE_STEPS_PER_BATCH);
        if self.hosts.is_beyond_cache() {
            self.prefetch(batch);
        }
        batch.for_each(switch, self);
    }

    fn port_status(&mut self, switch: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        if status.reason != PortReason::Delete && status.desc.is_up() {
            return Ok(());
        }
        let result = self.port_gone(switch, status.desc.port);
        self.finish_removal(&result);
        result
    }

    fn error(&mut self, switch: &mut Switch<'_>, _: Xid, error: &ErrorMessage<'_>) -> Result<()> {
        let code = match error {
            ErrorMessage::Standard { code, .. } => Some(*code),
            ErrorMessage::Experimenter { .. } => None,
        };
        match code {
            Some(ErrorCode::FlowModTableFull) => {
                self.counters.table_full += 1;
                self.flow_mods.failed(switch.now());
            }
            Some(ErrorCode::RequestBufferUnknown | ErrorCode::RequestBufferEmpty) => {
                self.counters.buffer_unknown += 1;
                self.buffers.failed(switch.now());
            }
            _ => self.counters.other_errors += 1,
        }
        self.update_fast_path(switch.now());
        Ok(())
    }

    /// Only removals in 1.0 are requests: it is now unknown which flows are wrong.
    fn unanswered(&mut self, switch: &mut Switch<'_>, _: Xid) -> Result<()> {
        self.is_removal_lost = true;
        self.removals.failed(switch.now());
        Ok(())
    }

    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.now_s = seconds(switch.now());
        self.storm.tick(switch.now());
        self.flaps.remove_calm(self.now_s);
        self.hosts.note_flapping(self.flaps.flapping());
        self.update_fast_path(switch.now());
        self.hosts.continue_resize(RESIZE_STEPS_PER_S);
        if self.hosts.has_changes() {
            self.handle_changes(switch);
        }
        let result = self.retry_lost_removal(switch);
        let result = result.and_then(|()| self.handle_storm(switch));
        let result = result.and_then(|()| self.sweep(switch));
        self.finish_removal(&result);
        result
    }

    fn hosts(&self, report: &mut dyn FnMut(HostEntry) -> ControlFlow<()>) {
        self.hosts.for_each(self.now_s, &mut |host, place, age| {
            report(HostEntry {
                mac: host.mac(),
                vlan: host.vlan(),
                port: place.port(),
                age: Duration::from_secs(age.into()),
                flapping: self.flaps.is_flapping(host),
            })
        });
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.iter().for_each(|(name, n)| report(name, n));
        self.storm.counters(report);
    }
}
