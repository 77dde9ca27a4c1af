//! Forwarding of a packet: actions, outputs, groups, meters and packet_ins.

use std::time::Duration;

use bellrock_openflow::{
    Action, Field, GroupType, PacketInMessage as WirePacketIn, PacketInReason, Port, PortConfig,
    SwitchConfig, Version,
};

use super::action_set::ActionSet;
use super::buffers::Buffers;
use super::flows::FlowEntry;
use super::{
    DEFAULT_CONFIG, DatapathPorts, DatapathSettings, Effects, FlowProgram, Groups, Meters, Notice,
    PacketInNotice,
};
use crate::packet::{EthernetFrame, InvalidTtl, Packet};

/// Maximum number of buckets for one packet. Chained groups of type `ALL` can multiply a packet
/// almost without end, though they have no loop. The rest is dropped.
const MAX_BUCKETS_A_PACKET: u32 = 4_096;

/// Maximum depth of groups for one packet. Real chains have only a few; without a limit a
/// controller could build a chain that overflows the stack. The rest is dropped.
const MAX_GROUP_DEPTH: u32 = 64;

/// Maximum number of packet_ins of one request or frame: thousands of buckets may each have a
/// thousand outputs to the controller. More are dropped.
const MAX_PACKET_INS: usize = 16_384;

/// The parts of a switch behind its flow tables.
#[derive(Clone, Debug)]
pub(super) struct Forwarding {
    pub(super) ports: DatapathPorts,
    pub(super) groups: Groups,
    pub(super) meters: Meters,
    pub(super) buffers: Buffers,
    pub(super) config: SwitchConfig,
    pub(super) rules: Version,
    /// The switch refuses FLOOD, which is optional (1.3.5 §4.5).
    pub(super) refuses_flood: bool,
    /// The empty action set of the last packet: its memory is reused.
    idle_set: ActionSet,
}

/// The packet goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketStopped;

/// The sender of a packet to the controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    table: u8,
    cookie: u64,
    /// Whether it is the table-miss flow, or no flow matched.
    miss: bool,
}

impl Origin {
    /// A packet_out.
    const CONTROLLER: Origin = Origin { table: 0, cookie: WirePacketIn::NO_COOKIE, miss: false };

    /// A table in which no flow matched.
    pub(super) fn miss(table: u8) -> Self {
        Origin { table, miss: true, ..Self::CONTROLLER }
    }

    #[inline]
    pub(super) fn flow(table: u8, flow: &FlowEntry, rules: Version) -> Self {
        // In 1.0 a flow for all packets is an ordinary one.
        let miss = rules.has_table_miss_entries() && flow.is_table_miss();
        Origin { table, cookie: flow.cookie, miss }
    }

    /// The same origin without a flow, for action sets and buckets (1.3.5 §7.4.1).
    fn of_no_flow(self) -> Self {
        Origin { cookie: WirePacketIn::NO_COOKIE, ..self }
    }
}

/// One packet on its way through the switch, with its state.
#[derive(Debug)]
pub(super) struct PacketRun {
    pub(super) packet: Packet,
    pub(super) now: Duration,
    pub(super) origin: Origin,
    set: ActionSet,
    queue: Option<u32>,
    /// The port where the packet, as it is now, will leave. It waits until the packet changes or
    /// goes to another port as well: so the last output needs no copy.
    waiting: Option<u32>,
    /// Number of buckets left for the packet and all its copies.
    pub(super) buckets_left: u32,
    /// Number of groups around it.
    depth: u32,
}

impl PacketRun {
    /// Copies the packet as it is now.
    pub(super) fn copy(&self, effects: &mut Effects) -> Packet {
        self.packet.copy(effects.frame())
    }
}

impl Forwarding {
    pub(super) fn new(settings: DatapathSettings, now: Duration) -> Self {
        Forwarding {
            ports: DatapathPorts::new(settings.ports, &settings.queues, now),
            groups: Groups::default(),
            meters: Meters::default(),
            buffers: Buffers::new(settings.buffers),
            config: DEFAULT_CONFIG,
            rules: settings.rules,
            refuses_flood: false,
            idle_set: ActionSet::default(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.meters.clear();
        self.buffers.clear();
        self.config = DEFAULT_CONFIG;
    }

    /// Begins the run of a packet.
    #[inline]
    pub(super) fn run(&mut self, packet: Packet, now: Duration) -> PacketRun {
        PacketRun {
            packet,
            now,
            origin: Origin::CONTROLLER,
            set: std::mem::take(&mut self.idle_set),
            queue: None,
            waiting: None,
            buckets_left: MAX_BUCKETS_A_PACKET,
            depth: 0,
        }
    }

    /// Ends the run of a packet: it leaves, or its memory is reused.
    #[inline]
    pub(super) fn finish(&mut self, mut run: PacketRun, effects: &mut Effects) {
        run.set.clear();
        self.idle_set = run.set;
        let frame = run.packet.into_frame();
        match run.waiting {
            Some(port) => effects.frames.push((port, frame)),
            None => effects.recycle(frame),
        }
    }

    /// Runs the instructions of a flow, except goto.
    #[inline]
    pub(super) fn run_program(
        &mut self,
        program: &FlowProgram,
        run: &mut PacketRun,
        effects: &mut Effects,
    ) -> Result<(), PacketStopped> {
        if let Some(meter) = program.meter {
            self.pass_meter(meter, run, effects)?;
        }
        if let Some(actions) = &program.apply {
            self.act_all(actions, run, effects)?;
        }
        if program.clear {
            run.set.clear();
        }
        if let Some(actions) = &program.write {
            run.set.merge(actions);
        }
        if let Some((metadata, mask)) = program.metadata {
            run.packet.write_metadata(metadata, mask);
        }
        Ok(())
    }

    /// Runs the action set, at the end of the tables. Without an output, the packet is dropped.
    pub(super) fn run_action_set(
        &mut self,
        run: &mut PacketRun,
        effects: &mut Effects,
    ) -> Result<(), PacketStopped> {
        if run.set.is_empty() {
            return Ok(());
        }
        let set = std::mem::take(&mut run.set);
        run.origin = run.origin.of_no_flow();
        let result = set.actions().try_for_each(|action| self.act(action, run, effects));
        run.set = set;
        result
    }

    pub(super) fn act_all(
        &mut self,
        actions: &[Action<'static>],
        run: &mut PacketRun,
        effects: &mut Effects,
    ) -> Result<(), PacketStopped> {
        actions.iter().try_for_each(|action| self.act(action, run, effects))
    }

    /// Runs one action. An action that does not fit the packet does nothing.
    #[inline]
    pub(super) fn act(
        &mut self,
        action: &Action<'static>,
        run: &mut PacketRun,
        effects: &mut Effects,
    ) -> Result<(), PacketStopped> {
        match *action {
            Action::Output { port, max_len } => self.output(port, max_len, run, effects),
            Action::Enqueue { port, queue } => {
                let before = run.queue.replace(queue);
                self.output(port, 0, run, effects);
                run.queue = before;
            }
            Action::SetQueue(queue) => run.queue = Some(queue),
            Action::Group(group) => self.group(group, run, effects),
            _ => return self.edit(action, run, effects),
        }
        Ok(())
    }

    fn edit(
        &mut self,
        action: &Action<'static>,
        run: &mut PacketRun,
        effects: &mut Effects,
    ) -> Result<(), PacketStopped> {
        send_waiting(run, effects);
        let packet = &mut run.packet;
        let mut ttl = Ok(());
        match *action {
            Action::SetField(field, value) => packet.set_field(field, value),
            Action::SetVlanVid(vid) => packet.set_vlan_vid(vid),
            Action::SetVlanPcp(pcp) => packet.set_vlan_pcp(pcp),
            Action::SetTpSrc(port) => packet.set_tp_src(port),
            Action::SetTpDst(port) => packet.set_tp_dst(port),
            Action::PushVlan(eth_type) => packet.push_vlan(eth_type),
            Action::PopVlan => packet.pop_vlan(),
            Action::PushMpls(eth_type) => packet.push_mpls(eth_type),
            Action::PopMpls(eth_type) => packet.pop_mpls(eth_type),
            Action::PushPbb(eth_type) => packet.push_pbb(eth_type),
            Action::PopPbb => packet.pop_pbb(),
            Action::CopyTtlOut => packet.copy_ttl_out(),
            Action::CopyTtlIn => packet.copy_ttl_in(),
            Action::SetMplsTtl(value) => packet.set_mpls_ttl(value),
            Action::SetNwTtl(value) => packet.set_nw_ttl(value),
            Action::DecMplsTtl => ttl = packet.dec_mpls_ttl(),
            Action::DecNwTtl => ttl = packet.dec_nw_ttl(),
            // Handled before, or refused by the check.
            Action::Output { .. }
            | Action::Enqueue { .. }
            | Action::SetQueue(_)
            | Action::Group(_)
            | Action::SetUnknownField { .. }
            | Action::Experimenter { .. }
            | Action::Unknown { .. } => {}
        }
        ttl.map_err(|InvalidTtl| {
            self.packet_in(None, PacketInReason::InvalidTtl, run, effects);
            PacketStopped
        })
    }

    #[inline]
    fn output(&mut self, port: Port, max_len: u16, run: &mut PacketRun, effects: &mut Effects) {
        let in_port = run.packet.in_port();
        match port {
            Port::IN_PORT => self.send(in_port.0, run, effects),
            Port::CONTROLLER => {
                let reason =
                    if run.origin.miss { PacketInReason::NoMatch } else { PacketInReason::Action };
                self.packet_in(Some(max_len), reason, run, effects);
            }
            Port::FLOOD => self.send_to_all(PortConfig::NO_FLOOD, run, effects),
            Port::ALL => self.send_to_all(PortConfig::empty(), run, effects),
            // Only `IN_PORT` sends a packet back (1.0 §3.3; 1.3.5 §4.5).
            port if port == in_port => {}
            Port(number) => self.send(number, run, effects),
        }
    }

    /// Sends to all ports except the ingress port and ports with a flag of `unless`. 1.0 means the
    /// physical ports; 1.3 means the standard ports, `LOCAL` included (1.0 §3.3; 1.3.5 §4.1, §4.5).
    fn send_to_all(&mut self, unless: PortConfig, run: &mut PacketRun, effects: &mut Effects) {
        let in_port = run.packet.in_port();
        for index in 0..self.ports.len() {
            let desc = &self.ports.at(index).desc;
            let local = desc.port == Port::LOCAL && !self.rules.floods_to_local();
            if desc.port != in_port && !local && !desc.config.intersects(unless) {
                let number = desc.port.0;
                self.send(number, run, effects);
            }
        }
    }

    #[inline]
    fn send(&mut self, port: u32, run: &mut PacketRun, effects: &mut Effects) {
        let Some(entry) = self.ports.get_mut(port) else { return };
        let room = effects.has_room(run.waiting.is_some().into());
        if entry.send_out(run.packet.bytes().len(), run.queue, room) {
            send_waiting(run, effects);
            run.waiting = Some(port);
        }
    }

    fn pass_meter(
        &mut self,
        meter: u32,
        run: &mut PacketRun,
        effects: &mut Effects,
    ) -> Result<(), PacketStopped> {
        // The meter may remark the packet.
        send_waiting(run, effects);
        let Some(entry) = self.meters.get_mut(meter) else { return Ok(()) };
        if entry.pass(&mut run.packet, run.now) { Ok(()) } else { Err(PacketStopped) }
    }

    /// Runs copies of the packet through a group (1.3.5 §5.6). The packet itself stays as it is.
    fn group(&mut self, number: u32, run: &mut PacketRun, effects: &mut Effects) {
        if run.depth == MAX_GROUP_DEPTH {
            return;
        }
        let Some(entry) = self.groups.get(number) else { return };
        let buckets = match entry.kind {
            GroupType::All => 0..entry.buckets.len(),
            _ => match self.groups.choose(entry, &run.packet, &self.ports) {
                Some(bucket) => bucket..bucket + 1,
                // No bucket is live: the packet is dropped.
                None => 0..0,
            },
        };
        let len = run.packet.bytes().len() as u64;
        if let Some(entry) = self.groups.get_mut(number) {
            count(&mut entry.counter, len);
        }
        for bucket in buckets {
            if run.buckets_left == 0 {
                return;
            }
            run.buckets_left -= 1;
            self.bucket(number, bucket, len, run, effects);
        }
    }

    fn bucket(
        &mut self,
        group: u32,
        bucket: usize,
        len: u64,
        run: &mut PacketRun,
        effects: &mut Effects,
    ) {
        let entry = self.groups.get_mut(group).and_then(|entry| entry.buckets.get_mut(bucket));
        let Some(entry) = entry else { return };
        count(&mut entry.counter, len);
        // The bucket's actions may lead to other groups, so they are taken out while they run. They
        // never lead back here.
        let set = entry.take_set();
        let mut copy = PacketRun {
            packet: run.copy(effects),
            now: run.now,
            origin: run.origin.of_no_flow(),
            set: ActionSet::default(),
            queue: run.queue,
            waiting: None,
            buckets_left: run.buckets_left,
            depth: run.depth + 1,
        };
        // An expired TTL ends the copy; a packet_in has reported it.
        let _ = set.actions().try_for_each(|action| self.act(action, &mut copy, effects));
        if let Some(entry) = self.groups.get_mut(group).and_then(|g| g.buckets.get_mut(bucket)) {
            entry.put_back(set);
        }
        run.buckets_left = copy.buckets_left;
        let frame = copy.packet.into_frame();
        match copy.waiting {
            Some(port) => effects.frames.push((port, frame)),
            None => effects.recycle(frame),
        }
    }

    /// Sends the packet to the controller: `max_len` bytes, or `miss_send_len` if no action gives a
    /// length.
    ///
    /// The packet is buffered, unless the action asks for all of it (1.3.5 §7.2.5,
    /// `OFPCML_NO_BUFFER`) or no buffer is free. Then all bytes are sent.
    pub(super) fn packet_in(
        &mut self,
        max_len: Option<u16>,
        reason: PacketInReason,
        run: &PacketRun,
        effects: &mut Effects,
    ) {
        let in_port = run.packet.in_port();
        let silent = || {
            let entry = self.ports.get(in_port.0);
            entry.is_some_and(|entry| entry.desc.config.contains(PortConfig::NO_PACKET_IN))
        };
        // `NO_PACKET_IN` suppresses the packet_ins of table misses only (1.3.5 §7.2.1).
        if reason == PacketInReason::NoMatch && silent() {
            return;
        }
        if effects.notices.len() >= MAX_PACKET_INS {
            return;
        }
        let max_len = max_len.unwrap_or(self.config.miss_send_len);
        let bytes = run.packet.bytes();
        let buffered = max_len != Action::NO_BUFFER;
        let buffer_id = if buffered { self.buffers.store(bytes, in_port, run.now) } else { None };
        let key = run.packet.key();
        let frame: EthernetFrame = effects.copy(bytes);
        let whole = frame.len();
        effects.notices.push(Notice::PacketIn(PacketInNotice {
            buffer_id,
            reason,
            table: run.origin.table,
            cookie: run.origin.cookie,
            in_port,
            metadata: key.number(Field::Metadata),
            tunnel_id: key.number(Field::TunnelId),
            data_len: if buffer_id.is_some() { whole.min(max_len.into()) } else { whole },
            frame,
        }));
    }
}

/// Sends the packet that waits, as it is now.
#[inline]
fn send_waiting(run: &mut PacketRun, effects: &mut Effects) {
    if let Some(port) = run.waiting.take() {
        let frame = effects.copy(run.packet.bytes());
        effects.frames.push((port, frame));
    }
}

fn count(counter: &mut bellrock_openflow::PacketByteCount, len: u64) {
    counter.packet_count += 1;
    counter.byte_count += len;
}
