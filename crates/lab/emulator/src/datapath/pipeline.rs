//! The tables' pipeline (1.0 §3.4; 1.3.5 §5.1 to §5.3).

use std::time::Duration;

use bellrock_openflow::{Action, ConfigFlags, ErrorCode, PacketInReason, PacketOut, Port, Version};

use super::forwarding::{Origin, PacketRun, PacketStopped};
use super::paths::CachedPath;
use super::{Checker, Datapath, Effects, FlowProgram};
use crate::packet::{EthernetFrame, Packet};

/// Length of the shortest frame: an Ethernet header.
const SHORTEST_FRAME: usize = 14;

impl Datapath {
    /// Receives a frame by a port.
    pub fn receive(
        &mut self,
        port: u32,
        frame: EthernetFrame,
        now: Duration,
        effects: &mut Effects,
    ) {
        let rules = self.forwarding.rules;
        let entry = self.forwarding.ports.get_mut(port);
        if !entry.is_some_and(|entry| entry.take_in(&frame, rules)) {
            return effects.recycle(frame);
        }
        let run = self.forwarding.run(Packet::new(frame, Port(port), rules), now);
        self.pass_tables(run, effects);
    }

    /// Sends a packet from the controller or from a buffer (1.0 §5.3.6; 1.3.5 §7.3.7).
    ///
    /// # Errors
    /// The error of an action; `OFPBRC_BUFFER_EMPTY` or `OFPBRC_BUFFER_UNKNOWN`; in 1.3
    /// `OFPBRC_BAD_PORT` for an ingress port that is neither a port nor the controller;
    /// `OFPBRC_BAD_PACKET` (1.0: `OFPBRC_BAD_LEN`) for a packet without an Ethernet header. Nothing
    /// was sent then.
    pub fn packet_out(
        &mut self,
        version: Version,
        request: &PacketOut<'_>,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let checker = Checker { packet_out: true, ..self.checker(version) };
        let port = request.in_port;
        let known = port == Port::CONTROLLER || checker.ports.get(port.0).is_some();
        let bad_port = ErrorCode::RequestBadPort;
        if !known && bad_port.exists_in(version) {
            return Err(bad_port);
        }
        let actions = checker.check(request.actions.iter(), None)?;
        let frame = match request.buffer_id {
            Some(id) => self.forwarding.buffers.take(id)?.0,
            None if request.data.len() < SHORTEST_FRAME => {
                let bad_packet = ErrorCode::RequestBadPacket;
                return Err(match bad_packet.exists_in(version) {
                    true => bad_packet,
                    false => ErrorCode::RequestBadLength,
                });
            }
            None => effects.copy(&request.data),
        };
        let packet = Packet::new(frame, port, self.forwarding.rules);
        let mut run = self.forwarding.run(packet, now);
        for action in &actions {
            if matches!(action, Action::Output { port: Port::TABLE, .. }) {
                let mut copy = self.forwarding.run(run.copy(effects), now);
                // The limit on buckets holds for the packet and all its copies.
                copy.buckets_left = run.buckets_left;
                run.buckets_left = self.pass_tables(copy, effects);
            } else if self.forwarding.act(action, &mut run, effects).is_err() {
                break;
            }
        }
        self.forwarding.finish(run, effects);
        Ok(())
    }

    /// Sends a buffered packet whose flow has just been added. In 1.3 it passes the tables from the
    /// first on, as a packet_out to `TABLE` does (1.3.5 §7.3.4.1). In 1.0 the flow's actions run.
    pub(super) fn release(
        &mut self,
        version: Version,
        buffer_id: u32,
        program: &FlowProgram,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let (frame, in_port) = self.forwarding.buffers.take(buffer_id)?;
        let packet = Packet::new(frame, in_port, self.forwarding.rules);
        let mut run = self.forwarding.run(packet, now);
        if version.buffered_packets_pass_tables() {
            self.pass_tables(run, effects);
            return Ok(());
        }
        let actions = program.apply.as_deref().unwrap_or_default();
        // An expired TTL ends it; a packet_in has reported it.
        let _ = self.forwarding.act_all(actions, &mut run, effects);
        self.forwarding.finish(run, effects);
        Ok(())
    }

    /// Takes a packet through all tables. Returns the number of buckets left for it.
    fn pass_tables(&mut self, mut run: PacketRun, effects: &mut Effects) -> u32 {
        let drops = self.forwarding.config.flags.contains(ConfigFlags::FRAG_DROP);
        if !(drops && run.packet.is_fragment()) {
            // An expired TTL ends it; a packet_in has reported it.
            let _ = self.walk(&mut run, effects);
        }
        let buckets_left = run.buckets_left;
        self.forwarding.finish(run, effects);
        buckets_left
    }

    fn walk(&mut self, run: &mut PacketRun, effects: &mut Effects) -> Result<(), PacketStopped> {
        let key = *run.packet.key();
        // Fragments of one packet may have one key, but an action may find ports only in the first.
        let remembers = !run.packet.is_fragment();
        let known = if remembers { self.paths.find(&key, self.tables.changes()) } else { None };
        let mut seen = CachedPath::default();
        let result = self.walk_by(&known.unwrap_or_default(), &mut seen, run, effects);
        if remembers && known.is_none() {
            self.paths.insert(&key, seen);
        }
        result
    }

    /// Takes a packet through the tables along a known path, as far as that goes. Records in `seen`
    /// the flows that the next packet with the same key will match.
    fn walk_by(
        &mut self,
        known: &CachedPath,
        seen: &mut CachedPath,
        run: &mut PacketRun,
        effects: &mut Effects,
    ) -> Result<(), PacketStopped> {
        let Datapath { tables, forwarding, .. } = self;
        let (mut number, mut place, mut predictable) = (0, 0, true);
        while let Some(table) = tables.table_mut(number) {
            table.lookup_count += 1;
            let Some(id) = known.flow(place).or_else(|| table.lookup(run.packet.key())) else {
                if !forwarding.rules.has_table_miss_entries() {
                    run.origin = Origin::miss(number);
                    forwarding.packet_in(None, PacketInReason::NoMatch, run, effects);
                }
                // 1.3 drops the packet and its action set (1.3.5 §5.4).
                return Err(PacketStopped);
            };
            if predictable {
                seen.note(place, id);
            }
            table.matched_count += 1;
            table.count(id, run.packet.bytes().len() as u64, run.now);
            let Some(flow) = table.flow(id) else { return Err(PacketStopped) };
            run.origin = Origin::flow(number, flow, forwarding.rules);
            let program = &*flow.program;
            forwarding.run_program(program, run, effects)?;
            predictable &= program.is_predictable();
            match program.goto {
                // The check allows only later tables, so this ends.
                Some(next) => (number, place) = (next, place + 1),
                None => break,
            }
        }
        forwarding.run_action_set(run, effects)
    }
}
