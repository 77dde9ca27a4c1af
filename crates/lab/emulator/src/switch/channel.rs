//! One connection to a controller: its session, its role, and the waiting bytes.

use bellrock_openflow::{
    AsyncConfig, AsyncMasks, FlowRemovedReason, PacketInReason, PortReason, RoleKind, Version,
};
use bellrock_session as session;

use super::outbox::Outbox;
use crate::datapath::Notice;

/// Maximum bytes that wait for a controller before the switch pauses: above, packet_ins for it are
/// dropped and counted, and its requests wait. One reply may be longer.
pub const PAUSE_BYTES: usize = 1 << 20;

/// Maximum bytes that may wait for a controller. Above, a flow_removed or port_status (which a
/// controller must not miss) closes its connection.
pub const CLOSE_BYTES: usize = 64 << 20;

/// Maximum bytes of requests that wait until the controller reads. Above, the connection closes.
pub const INPUT_BYTES: usize = 1 << 20;

/// Maximum bytes of a table features request in several parts. A longer one is refused.
pub const REQUEST_PARTS_BYTES: usize = 1 << 20;

/// Id of a connection to a controller. Ids are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub(super) u64);

#[derive(Debug)]
pub(super) struct ControllerChannel {
    pub(super) id: ChannelId,
    pub(super) session: session::SwitchSession,
    pub(super) outbox: Outbox,
    /// Received bytes that wait: the start of a message, or requests while the controller does not
    /// read.
    pub(super) input: Vec<u8>,
    pub(super) role: RoleKind,
    pub(super) wants: AsyncConfig,
    /// Xid and bytes so far of a multipart request with several parts.
    pub(super) gathering: Option<(u32, usize)>,
    /// A message that the controller must not miss could not be queued.
    pub(super) overrun: bool,
}

impl ControllerChannel {
    pub(super) fn new(id: ChannelId, session: session::SwitchSession) -> Self {
        ControllerChannel {
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

    /// Whether the switch handles its requests.
    pub(super) fn is_reading(&self) -> bool {
        self.outbox.len() <= PAUSE_BYTES
    }

    pub(super) fn is_slave(&self) -> bool {
        self.role == RoleKind::Slave
    }

    /// Whether this controller gets the notice (1.3.5 §6.3.5, §7.3.10). 1.0 has no masks.
    pub(super) fn is_told(&self, notice: &Notice) -> bool {
        if !self.session.is_ready() {
            return false;
        }
        if !self.version().has_async_config() {
            let only_1_3 = |notice: &_| matches!(notice, Notice::PacketIn(packet) if packet.reason == PacketInReason::InvalidTtl);
            let is_for_all = matches!(notice, Notice::PortStatus(_)) || !self.is_slave();
            return is_for_all && !only_1_3(notice);
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

/// The notices that controllers get by default. The specification leaves this to the switch, except
/// for slaves: they get port_status only (1.3.5 §6.3.4). Packets with an expired TTL go only to
/// controllers that ask for them, as with 1.2's setting.
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
