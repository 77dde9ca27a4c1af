//! The ports of switches, with their counters. Each answer comes from the switches.

use bellrock_api::{Dpid, MacAddr, Port};
use serde::{Deserialize, Serialize};

use crate::{Page, SwitchRef, text};

/// Asks for the ports of switches, by datapath id and number, with their counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListPorts {
    /// Only this switch.
    #[serde(with = "text::option")]
    pub switch: Option<SwitchRef>,
    /// Which of the ports. Only the switches of these are asked.
    pub page: Page,
}

/// A port with its counters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PortStatsRow {
    /// The switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Name of the switch in the configuration.
    #[serde(default)]
    pub switch_name: Option<String>,
    /// The port's number, or `LOCAL`.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub port: Port,
    /// The port's name in the switch.
    pub name: String,
    /// The port's Ethernet address.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub mac: MacAddr,
    /// Its state.
    pub state: PortState,
    /// Current rate of its link. `None` if the switch does not report it.
    pub rate_kbps: Option<u64>,
    /// Packet-ins that came in here and reached the apps, over all connections of the switch. One
    /// of each batch stands for all of the batch.
    #[serde(default)]
    pub packet_ins: u64,
    /// Packet-ins that came in here and were dropped, because the switch sent more than its limit a
    /// second, or more than its share of an overloaded worker.
    #[serde(default)]
    pub packet_ins_dropped: u64,
    /// What the switch has counted. `None` if it did not report it: see `problem`.
    pub counters: Option<PortCounters>,
    /// Why there are no counters.
    #[serde(default)]
    pub problem: Option<String>,
}

/// State of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PortState {
    /// It carries packets.
    Up,
    /// There is no physical link (`OFPPS_LINK_DOWN`).
    LinkDown,
    /// It is switched off (`OFPPC_PORT_DOWN`).
    AdminDown,
    /// A protocol outside of OpenFlow, such as spanning tree, blocks it (`OFPPS_BLOCKED`; in 1.0
    /// `OFPPS_STP_BLOCK`).
    Blocked,
    /// Spanning tree learns hosts behind it, and does not forward yet (1.0 `OFPPS_STP_LEARN`).
    Learning,
    /// A newer controller has sent it.
    #[serde(other)]
    Unknown,
}

/// Counters of a port since the switch started, or since it was added (1.3.5 §7.3.5.6, 1.0 §5.3.5).
/// A counter that the switch does not keep is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct PortCounters {
    /// Packets received.
    pub rx_packets: Option<u64>,
    /// Packets sent.
    pub tx_packets: Option<u64>,
    /// Bytes received.
    pub rx_bytes: Option<u64>,
    /// Bytes sent.
    pub tx_bytes: Option<u64>,
    /// Packets dropped on receipt.
    pub rx_dropped: Option<u64>,
    /// Packets dropped instead of sent.
    pub tx_dropped: Option<u64>,
    /// Receive errors of all kinds.
    pub rx_errors: Option<u64>,
    /// Transmit errors.
    pub tx_errors: Option<u64>,
    /// Time that the port has existed. `None` on 1.0, which does not report it.
    pub age_seconds: Option<u64>,
}
