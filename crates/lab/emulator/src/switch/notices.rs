//! Notices for controllers: which controllers get them, and in which form.

use bellrock_openflow::{
    Bytes, EncodeError, Field, FlowRemoved, FromSwitch, Match, MatchView, Out, PacketInMessage,
    PortStatus, Version,
};

use super::channel::{CLOSE_BYTES, ControllerChannel};
use super::messages::described;
use super::{EmulatedSwitch, SwitchCounters};
use crate::datapath::{self, Effects, Notice};

impl EmulatedSwitch {
    /// Gives the notices in `effects` to the controllers that want them. `requester` is the
    /// controller whose request caused them.
    pub(super) fn send_notices(&mut self, requester: Option<usize>, effects: &mut Effects) {
        if effects.notices.is_empty() {
            return;
        }
        let mut notices = std::mem::take(&mut effects.notices);
        for notice in notices.drain(..) {
            for (index, channel) in self.channels.iter_mut().enumerate() {
                if let Notice::PortStatus(status) = &notice {
                    keep_up(channel, status);
                }
                let own = requester == Some(index) && matches!(notice, Notice::PortStatus(_));
                // The controller that sent a port_mod gets no port_status for it (1.3.5 §7.2.1:
                // that is for changes through another interface). The other controllers get it.
                if !own && channel.is_told(&notice) {
                    give(channel, &notice, &mut self.scratch, &mut self.counters);
                }
            }
            if let Notice::PacketIn(packet) = notice {
                effects.recycle(packet.frame);
            }
        }
        // The memory is reused.
        effects.notices = notices;
    }
}

/// Updates the session's description of the ports.
fn keep_up(channel: &mut ControllerChannel, status: &PortStatus) {
    if !channel.session.is_ready() {
        return;
    }
    let desc = described(channel.version(), status.desc);
    channel.session.description_mut().apply(&PortStatus { desc, ..*status });
}

/// Appends a notice to the bytes that wait for a controller, if there is space.
fn give(
    channel: &mut ControllerChannel,
    notice: &Notice,
    scratch: &mut Out,
    counters: &mut SwitchCounters,
) {
    let version = channel.version();
    let is_packet_in = matches!(notice, Notice::PacketIn(_));
    if is_packet_in && !channel.is_reading() {
        counters.packet_ins_dropped += 1;
        return;
    }
    if channel.outbox.len() > CLOSE_BYTES {
        channel.overrun = true;
        return;
    }
    scratch.clear();
    let written = match notice {
        Notice::PacketIn(packet) => packet_in(version, packet, scratch),
        Notice::FlowRemoved(flow) => flow_removed(version, flow, scratch),
        Notice::PortStatus(status) => {
            let desc = described(version, status.desc);
            let status = PortStatus { desc, ..*status };
            FromSwitch::PortStatus(status).encode(version, UNASKED, scratch)
        }
    };
    match written {
        Ok(()) => {
            channel.outbox.append(scratch.as_slice());
            counters.packet_ins += u64::from(is_packet_in);
        }
        Err(_) => counters.unsayable += 1,
    }
    scratch.clear();
}

/// The xid of messages that are not replies.
const UNASKED: u32 = 0;

fn packet_in(
    version: Version,
    packet: &datapath::PacketInNotice,
    out: &mut Out,
) -> Result<(), EncodeError> {
    // Pipeline fields that are zero are omitted (1.3.5 §7.4.1).
    let has_fields = packet.metadata != 0 || packet.tunnel_id != 0;
    let pipeline = (has_fields && version.can_match(Field::Metadata)).then(|| {
        let mut fields = Match::any().in_port(packet.in_port);
        for (field, value) in
            [(Field::Metadata, packet.metadata), (Field::TunnelId, packet.tunnel_id)]
        {
            if value != 0 {
                fields.set(field, value.into());
            }
        }
        fields
    });
    let in_port = MatchView::port(packet.in_port);
    let table = if version.names_tables() { packet.table } else { 0 };
    let cookie = match version.packet_in_has_cookie() {
        true => packet.cookie,
        false => PacketInMessage::NO_COOKIE,
    };
    let message = FromSwitch::PacketIn(PacketInMessage {
        buffer_id: packet.buffer_id,
        total_len: u16::try_from(packet.frame.len()).unwrap_or(u16::MAX),
        reason: packet.reason,
        table,
        cookie,
        matching: pipeline.as_ref().map_or(in_port, MatchView::from),
        data: Bytes(packet.data()),
    });
    message.encode(version, UNASKED, out)
}

fn flow_removed(
    version: Version,
    flow: &datapath::FlowRemovedNotice,
    out: &mut Out,
) -> Result<(), EncodeError> {
    let hard_timeout = match version.flow_removed_has_hard_timeout() {
        true => flow.hard_timeout,
        false => 0,
    };
    let message = FromSwitch::FlowRemoved(FlowRemoved {
        cookie: flow.cookie,
        priority: flow.priority,
        reason: flow.reason,
        table: if version.names_tables() { flow.table } else { 0 },
        duration_sec: u32::try_from(flow.duration.as_secs()).unwrap_or(u32::MAX),
        duration_nsec: flow.duration.subsec_nanos(),
        idle_timeout: flow.idle_timeout,
        hard_timeout,
        packet_count: flow.packet_count,
        byte_count: flow.byte_count,
        matching: MatchView::from(&flow.matching),
    });
    message.encode(version, UNASKED, out)
}
