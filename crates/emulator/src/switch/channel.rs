//! One connection to a controller: its session, its role, and what waits in either direction.

use bellrock_openflow::{
    AsyncConfig, AsyncMasks, FlowRemovedReason, PacketInReason, PortReason, RoleKind, Version,
};
use bellrock_session as session;

use super::outbox::Outbox;
use crate::datapath::Notice;

/// Bytes that may wait for a controller before the switch spares it: above, packet_ins for it are
/// dropped and counted, and its requests wait. One reply may be longer.
pub const PAUSE_BYTES: usize = 1 << 20;

/// Bytes that may wait for a controller at all. Above, a flow_removed or port_status (which a
/// controller must not miss) for it ends its connection.
pub const CLOSE_BYTES: usize = 64 << 20;

/// Bytes of requests that may wait for a controller to read its replies. Above, its connection ends.
pub const INPUT_BYTES: usize = 1 << 20;

/// Bytes of a table features request in several parts. Above, it is refused.
pub const REQUEST_PARTS_BYTES: usize = 1 << 20;

/// A connection to a controller, as long as it stands. Numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub(super) u64);

#[derive(Debug)]
pub(super) struct Channel {
    pub(super) id: ChannelId,
    pub(super) session: session::Switch,
    pub(super) outbox: Outbox,
    /// What was received and waits: the start of a message, or requests while the controller does
    /// not read.
    pub(super) input: Vec<u8>,
    pub(super) role: RoleKind,
    pub(super) wants: AsyncConfig,
    /// Xid and bytes so far of a request that comes in parts.
    pub(super) gathering: Option<(u32, usize)>,
    /// Something that a controller must not miss could not be kept for it.
    pub(super) overrun: bool,
}

impl Channel {
    pub(super) fn new(id: ChannelId, session: session::Switch) -> Self {
        Channel {
            id,
            session,
            outbox: Outbox::default(),
            input: Vec::new(),
            role: RoleKind::Equal,
            wants: DEFAULT_WANTS,
            gathering: None,
            overrun: false,
        }
    }

    pub(super) fn version(&self) -> Version {
        self.session.version()
    }

    /// Whether the switch goes on with its requests.
    pub(super) fn is_reading(&self) -> bool {
        self.outbox.len() <= PAUSE_BYTES
    }

    pub(super) fn is_slave(&self) -> bool {
        self.role == RoleKind::Slave
    }

    /// Whether this controller is told (1.3.5 §6.3.5, §7.3.10). 1.0 knows neither roles nor masks.
    pub(super) fn is_told(&self, notice: &Notice) -> bool {
        if !self.session.is_ready() {
            return false;
        }
        if self.version() == Version::V1_0 {
            let only_1_3 = |notice: &_| matches!(notice, Notice::PacketIn(packet) if packet.reason == PacketInReason::InvalidTtl);
            return !only_1_3(notice);
        }
        let masks = if self.is_slave() { &self.wants.slave } else { &self.wants.master };
        let (mask, reason) = match notice {
            Notice::PacketIn(packet) => (masks.packet_in, packet_in_bit(packet.reason)),
            Notice::FlowRemoved(flow) => (masks.flow_removed, flow_removed_bit(flow.reason)),
            Notice::PortStatus(status) => (masks.port_status, port_status_bit(status.reason)),
        };
        mask.checked_shr(reason).unwrap_or(0) & 1 != 0
    }
}

/// What controllers are told until they say otherwise. The specification leaves it to the switch,
/// but for slaves: they get port_status only (1.3.5 §6.3.4). Packets whose TTL ran out are for
/// those who ask for them, as they were when 1.2 had a setting for it.
const DEFAULT_WANTS: AsyncConfig = AsyncConfig {
    master: AsyncMasks { packet_in: 0b011, port_status: 0b111, flow_removed: 0b1111 },
    slave: AsyncMasks { packet_in: 0, port_status: 0b111, flow_removed: 0 },
};

fn packet_in_bit(reason: PacketInReason) -> u32 {
    match reason {
        PacketInReason::NoMatch => 0,
        PacketInReason::Action => 1,
        PacketInReason::InvalidTtl => 2,
        PacketInReason::Unknown(other) => other.into(),
    }
}

fn flow_removed_bit(reason: FlowRemovedReason) -> u32 {
    match reason {
        FlowRemovedReason::IdleTimeout => 0,
        FlowRemovedReason::HardTimeout => 1,
        FlowRemovedReason::Delete => 2,
        FlowRemovedReason::GroupDelete => 3,
        FlowRemovedReason::Unknown(other) => other.into(),
    }
}

fn port_status_bit(reason: PortReason) -> u32 {
    match reason {
        PortReason::Add => 0,
        PortReason::Delete => 1,
        PortReason::Modify => 2,
        PortReason::Unknown(other) => other.into(),
    }
}
