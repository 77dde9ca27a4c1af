//! What a switch is made of.

use std::time::Duration;

use bellrock_openflow::{FixedStr, MacAddr, Port, PortConfig, PortDesc, PortFeatures, PortState};
use bellrock_session::Versions;

/// What a switch is made of.
#[derive(Clone, Debug)]
pub struct SwitchSettings {
    /// Its datapath id.
    pub dpid: u64,
    /// What its operator calls it: part of its description, cut to 255 bytes.
    pub name: Box<str>,
    /// Its ports.
    pub ports: Vec<PortDesc>,
    /// Queues: each a port and the queue's number at that port.
    pub queues: Vec<(Port, u32)>,
    /// Flow tables, at least one. 1.0 uses the first only.
    pub tables: u8,
    /// Flows that each table can hold.
    pub table_capacity: u32,
    /// Packets that it can buffer for controllers; 0 for none.
    pub n_buffers: u32,
    /// The versions that it speaks.
    pub versions: Versions,
    /// The time at which it starts.
    pub started: Duration,
}

impl SwitchSettings {
    /// Flow tables of a switch that is not told otherwise.
    pub const TABLES: u8 = 8;
    /// Flows that each table holds, likewise.
    pub const TABLE_CAPACITY: u32 = 65_536;
    /// Packets that it buffers, likewise.
    pub const N_BUFFERS: u32 = 256;

    /// A switch with ports 1 to `ports`, named as Mininet names them: `s1-eth1`. They are copper of
    /// 10 Gb/s, with a link.
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
            versions: Versions::Both,
            started: Duration::ZERO,
        }
    }
}

/// A port of an emulated switch: a locally administered address made of both numbers, a name, and 10 Gb/s.
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

/// Has a port tell the rate of its link, in kb/s and, where OpenFlow has a name for it, as a feature.
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
    // 0 would say nothing.
    let kbps = u32::try_from(bits_per_second / 1000).unwrap_or(u32::MAX).max(1);
    (desc.current_speed, desc.max_speed) = (kbps, kbps);
}

/// The rate of a port whose link has none, in kb/s.
const PORT_KBPS: u32 = 10_000_000;
