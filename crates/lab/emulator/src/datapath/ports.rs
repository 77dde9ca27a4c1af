//! The ports of a switch: configuration, links, counters and queues.

use std::time::Duration;

use bellrock_openflow::{
    ErrorCode, MacAddr, Port, PortConfig, PortCounters, PortDesc, PortMod, PortState, Version,
};

/// A queue of a port. It counts packets; the link decides how fast they leave.
#[derive(Clone, Debug)]
pub struct QueueEntry {
    /// Its number at the port.
    pub queue: u32,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped.
    pub tx_errors: u64,
}

/// A port.
#[derive(Clone, Debug)]
pub struct PortEntry {
    /// Its description. [`PortState::LIVE`] is kept up to date; 1.0 has no such bit.
    pub desc: PortDesc,
    /// Its counters.
    pub counters: PortCounters,
    /// Its queues.
    pub queues: Vec<QueueEntry>,
    /// When it was added.
    pub created: Duration,
}

impl PortEntry {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.desc.port.0
    }

    /// One of its queues.
    #[must_use]
    pub fn queue(&self, queue: u32) -> Option<&QueueEntry> {
        self.queues.iter().find(|entry| entry.queue == queue)
    }

    /// Counts a frame that arrives. Returns whether the port accepts it.
    #[inline]
    pub(super) fn take_in(&mut self, frame: &[u8], rules: Version) -> bool {
        if !self.desc.is_up() {
            self.counters.rx_dropped += 1;
            return false;
        }
        self.counters.rx_packets += 1;
        self.counters.rx_bytes += frame.len() as u64;
        if frame.len() < ETHERNET_HEADER_LEN {
            self.counters.rx_errors += 1;
            self.counters.rx_frame_err += 1;
            return false;
        }
        let refusing =
            PortConfig::NO_RECV.union(PortConfig::NO_RECV_STP).intersection(self.desc.config);
        if refusing.is_empty() {
            return true;
        }
        // 1.0 has a flag of its own for frames of the spanning tree.
        let refused = match rules.has_spanning_tree() {
            true if frame.starts_with(&SPANNING_TREE.0) => PortConfig::NO_RECV_STP,
            _ => PortConfig::NO_RECV,
        };
        let let_in = !refusing.contains(refused);
        self.counters.rx_dropped += u64::from(!let_in);
        let_in
    }

    /// Counts a frame for a queue of the port, if there is space. Returns whether it leaves.
    ///
    /// A queue that the port does not have means no queue: the action that set it did not name a
    /// port.
    #[inline]
    pub(super) fn send_out(&mut self, len: usize, queue: Option<u32>, room: bool) -> bool {
        let open = self.desc.is_up() && !self.desc.config.contains(PortConfig::NO_FWD);
        let sends = open && room && len <= MAX_FRAME_BYTES;
        let len = len as u64;
        if sends {
            self.counters.tx_packets += 1;
            self.counters.tx_bytes += len;
        } else {
            self.counters.tx_dropped += 1;
        }
        if let Some(queue) = queue
            && let Some(entry) = self.queues.iter_mut().find(|entry| entry.queue == queue)
        {
            entry.tx_packets += u64::from(sends);
            entry.tx_bytes += if sends { len } else { 0 };
            entry.tx_errors += u64::from(!sends);
        }
        sends
    }

    /// Whether a group may use the port for liveness.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.desc.state.contains(PortState::LIVE)
    }

    fn refresh(&mut self) {
        let live = self.desc.is_up();
        self.desc.state.set(PortState::LIVE, live);
    }
}

/// Length of the longest frame that a port sends: a jumbo frame with some tags. Without a limit, a
/// frame that gets a tag on every turn of a loop would grow for ever.
pub const MAX_FRAME_BYTES: usize = 9_728;

const ETHERNET_HEADER_LEN: usize = 14;
/// Destination of the spanning tree's frames (IEEE 802.1D).
const SPANNING_TREE: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0]);

/// The configuration that all versions can set (1.0 §5.2.1; 1.3.5 §7.2.1).
const CONFIG: PortConfig = PortConfig::PORT_DOWN
    .union(PortConfig::NO_RECV)
    .union(PortConfig::NO_FWD)
    .union(PortConfig::NO_PACKET_IN);
/// The configuration that belongs to the spanning tree (1.0 §5.2.1).
const SPANNING_TREE_CONFIG: PortConfig =
    PortConfig::NO_STP.union(PortConfig::NO_RECV_STP).union(PortConfig::NO_FLOOD);

/// The ports of a switch, by their numbers.
#[derive(Clone, Debug)]
pub struct DatapathPorts(Vec<PortEntry>);

impl DatapathPorts {
    pub(super) fn new(descs: Vec<PortDesc>, queues: &[(Port, u32)], now: Duration) -> Self {
        let entry = |desc: PortDesc| {
            let own = queues.iter().filter(|(port, _)| *port == desc.port);
            let queue = |&(_, queue): &(Port, u32)| QueueEntry {
                queue,
                tx_packets: 0,
                tx_bytes: 0,
                tx_errors: 0,
            };
            let mut entry = PortEntry {
                desc,
                counters: PortCounters::default(),
                queues: own.map(queue).collect(),
                created: now,
            };
            entry.refresh();
            entry
        };
        let mut entries: Vec<_> = descs.into_iter().map(entry).collect();
        entries.sort_by_key(PortEntry::number);
        DatapathPorts(entries)
    }

    /// A port, by its number.
    #[must_use]
    #[inline]
    pub fn get(&self, port: u32) -> Option<&PortEntry> {
        self.0.get(self.index(port)?)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, port: u32) -> Option<&mut PortEntry> {
        let index = self.index(port)?;
        self.0.get_mut(index)
    }

    /// All ports, by their numbers; [`Port::LOCAL`] last.
    pub fn iter(&self) -> impl Iterator<Item = &PortEntry> {
        self.0.iter()
    }

    /// Number of ports.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no port.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn at(&self, index: usize) -> &PortEntry {
        &self.0[index]
    }

    /// Index of a port. Ports are usually numbered from 1 without gaps.
    #[inline]
    fn index(&self, port: u32) -> Option<usize> {
        let guess = (port as usize).wrapping_sub(1);
        if self.0.get(guess).is_some_and(|entry| entry.number() == port) {
            return Some(guess);
        }
        self.0.binary_search_by_key(&port, PortEntry::number).ok()
    }

    /// Carries out a port_mod (1.0 §5.3.3; 1.3.5 §7.3.4.3). Returns the port if it changed.
    ///
    /// # Errors
    /// `OFPPMFC_BAD_PORT`, `OFPPMFC_BAD_HW_ADDR`, `OFPPMFC_BAD_CONFIG` (a bit that the version does
    /// not have), `OFPPMFC_BAD_ADVERTISE` (a feature that the port does not support).
    pub(super) fn modify(
        &mut self,
        version: Version,
        request: &PortMod,
    ) -> Result<Option<PortDesc>, ErrorCode> {
        let entry = self.get_mut(request.port.0).ok_or(ErrorCode::PortModBadPort)?;
        if request.address != entry.desc.address {
            return Err(ErrorCode::PortModBadAddress);
        }
        let settable = match version.has_spanning_tree() {
            true => CONFIG.union(SPANNING_TREE_CONFIG),
            false => CONFIG,
        };
        let (bad_config, bad_advertise) =
            (ErrorCode::PortModBadConfig, ErrorCode::PortModBadAdvertise);
        if bad_config.exists_in(version) && !settable.contains(request.mask) {
            return Err(bad_config);
        }
        let supported = entry.desc.supported;
        if bad_advertise.exists_in(version) && !supported.contains(request.advertise) {
            return Err(bad_advertise);
        }
        let before = entry.desc;
        let mask = request.mask.intersection(settable);
        entry.desc.config = entry.desc.config.difference(mask) | request.config.intersection(mask);
        let advertise = request.advertise.intersection(entry.desc.supported);
        if !advertise.is_empty() {
            entry.desc.advertised = advertise;
        }
        entry.refresh();
        Ok((entry.desc != before).then_some(entry.desc))
    }

    /// Sets whether a port's link is up. Returns the port if it changed.
    pub(super) fn link(&mut self, port: u32, up: bool) -> Option<PortDesc> {
        let entry = self.get_mut(port)?;
        let before = entry.desc;
        entry.desc.state.set(PortState::LINK_DOWN, !up);
        entry.refresh();
        (entry.desc != before).then_some(entry.desc)
    }
}
