//! Settings of a switch.

use std::time::Duration;

use bellrock_openflow::{FixedStr, MacAddr, Port, PortConfig, PortDesc, PortFeatures, PortState};
use bellrock_session::Versions;

/// Settings of a switch.
#[derive(Clone, Debug)]
pub struct SwitchSettings {
    /// Its datapath id.
    pub dpid: u64,
    /// Its name: part of its description, cut to 255 bytes.
    pub name: Box<str>,
    /// Its ports.
    pub ports: Vec<PortDesc>,
    /// Queues: a port, and the queue's number at that port.
    pub queues: Vec<(Port, u32)>,
    /// Number of flow tables, at least one. 1.0 uses only the first.
    pub tables: u8,
    /// Maximum number of flows in each table.
    pub table_capacity: u32,
    /// Maximum number of packets that it buffers for controllers; 0 for none.
    pub n_buffers: u32,
    /// The versions that it supports.
    pub versions: Versions,
    /// Time at which it starts.
    pub started: Duration,
}

impl SwitchSettings {
    /// Default number of flow tables.
    pub const TABLES: u8 = 8;
    /// Default number of flows in each table.
    pub const TABLE_CAPACITY: u32 = 65_536;
    /// Default number of buffered packets.
    pub const N_BUFFERS: u32 = 256;

    /// A switch with ports 1 to `ports`, with Mininet's names: `s1-eth1`. They are copper with 10
    /// Gb/s, and their links are up.
    #[must_use]
    pub fn new(dpid: u64, ports: u32) -> Self {
        SwitchSettings {
            dpid,
            name: format!("s{dpid}").into(),
            ports: (1..=ports).map(|port| port_desc(dpid, port)).collect(),
            queues: Vec::new(),
            tables: Self::TABLES,
            table_capacity: Self::TABLE_CAPACITY,
            n_buffers: Self::N_BUFFERS,
            versions: Versions::ALL,
            started: Duration::ZERO,
        }
    }
}

/// A port of an emulated switch: a local address from both numbers, a name, and 10 Gb/s.
#[must_use]
pub fn port_desc(dpid: u64, port: u32) -> PortDesc {
    let [.., d2, d1, d0] = dpid.to_be_bytes();
    let [.., p1, p0] = port.to_be_bytes();
    let features = PortFeatures::RATE_10GB_FD | PortFeatures::COPPER;
    PortDesc {
        port: Port(port),
        address: MacAddr([0x02, d2, d1, d0, p1, p0]),
        name: FixedStr::new(&format!("s{dpid}-eth{port}")),
        config: PortConfig::empty(),
        state: PortState::empty(),
        current: features,
        advertised: features,
        supported: features,
        peer: PortFeatures::empty(),
        current_speed: PORT_KBPS,
        max_speed: PORT_KBPS,
    }
}

/// Sets a port's rate, in kb/s and as a feature, if OpenFlow has one for the rate.
pub(crate) fn set_rate(desc: &mut PortDesc, bits_per_second: u64) {
    let rate = match bits_per_second {
        10_000_000 => PortFeatures::RATE_10MB_FD,
        100_000_000 => PortFeatures::RATE_100MB_FD,
        1_000_000_000 => PortFeatures::RATE_1GB_FD,
        10_000_000_000 => PortFeatures::RATE_10GB_FD,
        40_000_000_000 => PortFeatures::RATE_40GB_FD,
        100_000_000_000 => PortFeatures::RATE_100GB_FD,
        1_000_000_000_000 => PortFeatures::RATE_1TB_FD,
        _ => PortFeatures::RATE_OTHER,
    };
    let features = rate | PortFeatures::COPPER;
    (desc.current, desc.advertised, desc.supported) = (features, features, features);
    // 0 would mean "unknown".
    let kbps = u32::try_from(bits_per_second / 1000).unwrap_or(u32::MAX).max(1);
    (desc.current_speed, desc.max_speed) = (kbps, kbps);
}

/// Rate of a port whose link has no bandwidth set, in kb/s.
const PORT_KBPS: u32 = 10_000_000;
