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
use bellrock_tables::Hashed;

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
const MAX_NEWS_AT_A_TIME: usize = 64;

/// A learning switch at one switch.
#[expect(private_bounds, reason = "the host table is private to this crate")]
pub struct LearningSwitch<H: HostTable = SwitchHosts> {
    settings: LearningSettings,
    prepared: Prepared,
    /// The same templates while `quiet` is true, otherwise none.
    straight: Prepared,
    hosts: H,
    /// Ports that belong to other apps: no host is learnt there, and no packet is sent there.
    fence: ReservedFrames,
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
    quiet: bool,
    /// Whether this event removes flows. If the event fails, its messages are lost.
    removing: bool,
    /// Whether a removal was lost: it is then unknown which flows are wrong.
    removal_lost: bool,
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
        fence: ReservedFrames,
        storm: StormGuard,
    ) -> Self {
        LearningSwitch {
            settings,
            straight: prepared.clone(),
            prepared,
            hosts,
            fence,
            flaps: Flaps::default(),
            flow_mods: Backoff::default(),
            buffers: Backoff::default(),
            counters: LearningCounters::default(),
            storm,
            now_s: 0,
            quiet: true,
            removing: false,
            removal_lost: false,
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
    /// for [`LearningSwitch::answer`], which would do the same in this one.
    #[inline(always)]
    fn install_known(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Option<Port> {
        let now_s = seconds(switch.now());
        let port = match &self.straight {
            Prepared::Exact(templates) => {
                let (frame, plain) = Plain::untagged(packet, templates)?;
                let port = self.hosts.with_flows(packet, &frame, now_s)?.port();
                let template = &plain.by_tag.untagged;
                let mut flow = switch.install_for(packet, template).ok()?;
                prepared::fill_link(&mut flow, packet, &frame, port).ok()?;
                plain.fill(&mut flow, &frame);
                flow.finish().ok()?;
                port
            }
            Prepared::L2(templates) => {
                let frame = FrameHeader::untagged(packet)?;
                let port = self.hosts.with_flows(packet, &frame, now_s)?.port();
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
    fn answer(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<()> {
        let answered = self.answer_any(switch, packet);
        if self.removing {
            self.settle(&answered);
        }
        self.look_round(switch.now());
        answered
    }

    /// Updates `quiet`, after a change that may affect it, and every second.
    fn look_round(&mut self, now: Duration) {
        let paused = !self.flow_mods.is_over(now) || !self.buffers.is_over(now);
        let quiet = !paused && !self.flaps.are_watched();
        // Not for each packet: a clone writes to memory that workers share.
        if quiet != self.quiet {
            self.quiet = quiet;
            self.straight = if quiet { self.prepared.clone() } else { Prepared::Nothing };
        }
    }

    fn answer_any(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<()> {
        self.now_s = seconds(switch.now());
        let Some(frame) = FrameHeader::read(packet) else {
            self.counters.malformed += 1;
            return self.drop(switch, packet);
        };
        if self.fence.is_reserved_for(packet) {
            self.counters.reserved += 1;
            return self.drop(switch, packet);
        }
        let (src, dst) = (self.hosts.hash(frame.from()), self.hosts.hash(frame.to()));
        let seen = HashedPacket { frame, src, dst };
        if !frame.is_from_station() {
            self.counters.bad_source += 1;
            return self.drop(switch, packet);
        }
        self.hear_of_storm(switch)?;
        if self.storm.is_copy(switch, packet) {
            return self.drop(switch, packet);
        }
        let from = match self.storm.is_young(switch.now()) {
            true => None,
            false => self.learn(switch, packet, &seen)?,
        };
        if frame.is_link_local() {
            self.counters.link_local += 1;
            return self.drop(switch, packet);
        }
        if frame.is_to_group() {
            return self.flood(switch, packet);
        }
        match self.find(switch, &seen)? {
            None => self.flood(switch, packet),
            Some(to) if to.port() == packet.in_port() => {
                self.counters.same_port += 1;
                self.drop(switch, packet)
            }
            Some(to) => self.forward(switch, packet, &seen, from, to),
        }
    }

    /// Learns the place of a packet's source. `None` if the table does not have it afterwards.
    fn learn(
        &mut self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        seen: &HashedPacket,
    ) -> Result<Option<HostPlace>> {
        let Some(at) = HostPlace::at(packet.in_port()) else {
            self.counters.bad_port += 1;
            return Ok(None);
        };
        match self.hosts.learn(seen.src, at, seen.frame.is_to_group(), self.now_s) {
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
                let began = self.flaps.moved(seen.frame.from(), self.now_s);
                self.counters.flaps += u64::from(began);
                if self.flaps.is_flapping(seen.frame.from()) {
                    self.storm.flapping_host_moved(switch, from.port(), to.port());
                }
                self.remove_flows(switch, seen.frame.from(), from)?;
                Ok(Some(to))
            }
            Learnt::OverLimit { from } => {
                self.counters.over_port_limit += 1;
                if let Some(from) = from {
                    self.remove_flows(switch, seen.frame.from(), from)?;
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
    fn hear_of_storm(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        let mut done = Ok(());
        if !self.storm.begins() {
            return done;
        }
        for host in self.flaps.hosts() {
            let hashed = self.hosts.hash(host);
            if let Destination::At(place) | Destination::Stale(place) =
                self.hosts.find(hashed, self.now_s)
            {
                self.hosts.forget(hashed);
                let removed = self.remove_flows(switch, host, place);
                done = done.and(removed);
            }
        }
        done
    }

    /// Finds the destination of a packet, and forgets it if it is too old.
    fn find(&mut self, switch: &mut Switch<'_>, seen: &HashedPacket) -> Result<Option<HostPlace>> {
        match self.hosts.find(seen.dst, self.now_s) {
            Destination::At(place) => Ok(Some(place)),
            Destination::Nowhere => Ok(None),
            Destination::Stale(place) => {
                self.counters.aged_out += 1;
                self.hosts.forget(seen.dst);
                self.remove_flows(switch, seen.frame.to(), place)?;
                Ok(None)
            }
        }
    }

    /// Sends a packet to its destination, by a flow if one may be installed.
    fn forward(
        &mut self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        seen: &HashedPacket,
        from: Option<HostPlace>,
        to: HostPlace,
    ) -> Result<()> {
        let Some(from) = from.filter(|_| self.may_install(switch.now(), &seen.frame)) else {
            return self.send_on(switch, packet, to.port());
        };
        // Before the flows exist: the code that moves a host must know whether it has flows.
        if !self.hosts.note_flows(seen.src, from) || !self.hosts.note_flows(seen.dst, to) {
            return self.send_on(switch, packet, to.port());
        }
        self.install(switch, packet, &seen.frame, to.port())?;
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
        let left_alone = !self.buffers.is_over(switch.now());
        let is_sent = send(switch, packet, &[Action::output(to)], left_alone)?;
        self.counters.packet_outs += u64::from(is_sent);
        self.counters.truncated += u64::from(!is_sent);
        Ok(())
    }

    fn flood(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<()> {
        if self.storm.holds(switch, packet) {
            return self.drop(switch, packet);
        }
        let left_alone = !self.buffers.is_over(switch.now());
        let actions = self.fence.flood(switch, packet.in_port(), || vlan_of(packet));
        let is_sent = send(switch, packet, actions, left_alone)?;
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
        self.removing |= at.has_flows();
        remove_flows(switch, host, at)
    }

    /// Ends an event that removed flows. If it failed, its removals are recorded as lost.
    #[cold]
    fn settle(&mut self, ended: &Result<()>) {
        self.removal_lost |= self.removing && ended.is_err();
        self.removing = false;
    }

    /// Removes all flows once after a lost removal, as it is unknown which are wrong.
    fn make_up_for_lost_removal(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        if self.removal_lost && self.removals.is_over(switch.now()) {
            self.removing = true;
            self.removal_lost = false;
            switch.remove(&Match::any(), Port::ANY)?;
        }
        Ok(())
    }

    /// Forgets the hosts that are too old in the next part of the table.
    fn sweep(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        let LearningSwitch { hosts, counters, removing, now_s, .. } = self;
        let mut with_flows = 0;
        let mut removed = Ok(());
        for _ in 0..hosts.lines().div_ceil(SWEEP_S) {
            if with_flows >= MAX_AGED_WITH_FLOWS_PER_S || removed.is_err() {
                break;
            }
            hosts.age(*now_s, |host, place| {
                counters.aged_out += 1;
                with_flows += usize::from(place.has_flows());
                *removing |= place.has_flows();
                if removed.is_ok() {
                    removed = remove_flows(switch, host, place);
                }
            });
        }
        removed
    }

    /// Removes the flows that changes by other switches have made wrong.
    #[cold]
    fn hear_news(&mut self, switch: &mut Switch<'_>) {
        let heard = self.remove_what_is_old(switch);
        self.settle(&heard);
    }

    fn remove_what_is_old(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        for _ in 0..MAX_NEWS_AT_A_TIME {
            let Some(news) = self.hosts.next_news() else { break };
            match news {
                HostChange::Gone(host, place) => self.remove_flows(switch, host, place)?,
                HostChange::Rerouted(port) => self.remove_flows_of_port(switch, port)?,
                HostChange::Lost => self.removal_lost = true,
            }
        }
        Ok(())
    }

    fn port_gone(&mut self, switch: &mut Switch<'_>, port: Port) -> Result<()> {
        self.hosts.forget_port(port);
        self.remove_flows_of_port(switch, port)
    }

    fn remove_flows_of_port(&mut self, switch: &mut Switch<'_>, port: Port) -> Result<()> {
        self.removing = true;
        switch.remove(&Match::any(), port)?;
        switch.remove(&Match::any().in_port(port), Port::ANY)?;
        Ok(())
    }
}

/// Sends a packet_out with these actions: with the whole packet if buffers are `left_alone`.
/// Returns false if only a part of the packet is available.
fn send(
    switch: &mut Switch<'_>,
    packet: &PacketIn<'_>,
    actions: &[Action<'_>],
    left_alone: bool,
) -> Result<bool> {
    match packet.buffer_id() {
        None if !packet.is_whole() => return Ok(false),
        Some(_) if packet.is_whole() && left_alone => switch.packet_out_whole(packet, actions)?,
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
        let fence = &mut self.fence;
        let ends = ends.filter(|ends| {
            let vlan = ends.vlan();
            ends.ports().into_iter().all(|port| !fence.is_reserved(port, vlan))
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
            None => self.answer(switch, &packet)?,
        }
        Ok(Verdict::Consume)
    }

    fn packet_ins(&mut self, switch: &mut Switch<'_>, batch: &mut Batch<'_>) {
        if self.hosts.has_news() {
            self.hear_news(switch);
        }
        if self.hosts.are_beyond_cache() {
            self.prefetch(batch);
        }
        batch.each(switch, self);
    }

    fn port_status(&mut self, switch: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        if status.reason != PortReason::Delete && status.desc.is_up() {
            return Ok(());
        }
        let removed = self.port_gone(switch, status.desc.port);
        self.settle(&removed);
        removed
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
        self.look_round(switch.now());
        Ok(())
    }

    /// Only removals in 1.0 are requests: it is now unknown which flows are wrong.
    fn unanswered(&mut self, switch: &mut Switch<'_>, _: Xid) -> Result<()> {
        self.removal_lost = true;
        self.removals.failed(switch.now());
        Ok(())
    }

    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.now_s = seconds(switch.now());
        self.storm.tick(switch.now());
        self.flaps.calm(self.now_s);
        self.hosts.note_flapping(self.flaps.flapping());
        self.look_round(switch.now());
        if self.hosts.has_news() {
            self.hear_news(switch);
        }
        let cleaned = self.make_up_for_lost_removal(switch);
        let cleaned = cleaned.and_then(|()| self.hear_of_storm(switch));
        let cleaned = cleaned.and_then(|()| self.sweep(switch));
        self.settle(&cleaned);
        cleaned
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
