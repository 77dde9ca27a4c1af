//! The switches that are up or stand by.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use bellrock_api::{ControllerRole, Dpid, MacAddr, Port, Version};
use serde::{Deserialize, Serialize};

use crate::{Page, PortState, text};

/// A switch, as an operator writes it: its datapath id or its name.
///
/// A text that can be a datapath id is one. So a name cannot consist of hexadecimal digits only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SwitchRef {
    /// Its datapath id.
    Dpid(Dpid),
    /// Its name in the configuration.
    Name(String),
}

impl FromStr for SwitchRef {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let name = |_| SwitchRef::Name(text.to_owned());
        Ok(text.parse().map_or_else(name, SwitchRef::Dpid))
    }
}

impl fmt::Display for SwitchRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchRef::Dpid(dpid) => dpid.fmt(f),
            SwitchRef::Name(name) => f.write_str(name),
        }
    }
}

impl From<Dpid> for SwitchRef {
    fn from(dpid: Dpid) -> Self {
        SwitchRef::Dpid(dpid)
    }
}

/// Asks for the switches that are up or stand by, by datapath id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListSwitches {
    /// Only this switch.
    #[serde(with = "text::option")]
    pub switch: Option<SwitchRef>,
    /// Which of them.
    pub page: Page,
}

/// A switch that is connected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SwitchRow {
    /// Its datapath id.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// OpenFlow version of the connection.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub version: Version,
    /// Role of the controller at the switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub role: ControllerRole,
    /// Whether the controller stands by: apps do not see the switch.
    pub standby: bool,
    /// Name of the node of the cluster that the switch obeys, as far as this one knows. `None`:
    /// there is no cluster, or no master.
    #[serde(default)]
    pub master: Option<String>,
    /// Remote address of the connection.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub peer: SocketAddr,
    /// What the switch has proved by TLS. Nothing: the connection is plain.
    #[serde(default)]
    pub identity: Option<IdentityRow>,
    /// Time since it came up, or since the controller stands by.
    pub up_seconds: u64,
    /// Packet-ins that reached the apps, since the switch connected.
    #[serde(default)]
    pub packet_ins: u64,
    /// Packet-ins that were dropped since the switch connected, because it sent more than its limit
    /// a second, or more than its share of an overloaded worker.
    #[serde(default)]
    pub packet_ins_dropped: u64,
    /// Number of flow tables.
    pub n_tables: u8,
    /// Maximum number of packets that it can buffer.
    pub n_buffers: u32,
    /// Its maker.
    pub manufacturer: String,
    /// Its hardware.
    pub hardware: String,
    /// Its software.
    pub software: String,
    /// Its serial number.
    pub serial_number: String,
    /// Name that the switch reports.
    pub description: String,
    /// Its ports.
    pub ports: Vec<PortRow>,
    /// The controller's own flows that the switch refuses. It needs them to be useful.
    #[serde(default)]
    pub refused_flows: Vec<RefusedFlowRow>,
    /// The apps with entries that the switch does not have: it refuses them, cannot express them,
    /// or confirms them and does not keep them.
    #[serde(default)]
    pub missing_entries: Vec<MissingEntriesRow>,
    /// Numbers of the ports where the switch refuses announcements: no link is found there.
    #[serde(default)]
    pub unannounced_ports: Vec<String>,
}

impl SwitchRow {
    /// Whether it answers requests: the controller does not stand by, or the switch obeys another
    /// node of the cluster, which is asked then.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        !self.standby || self.master.is_some()
    }
}

/// The certificate of a switch, and the TLS session of its connection.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct IdentityRow {
    /// Common name of the certificate.
    pub name: String,
    /// Fingerprint of its public key: `sha256:` and 64 hexadecimal digits.
    pub key: String,
    /// Datapath ids that it names.
    pub dpids: Vec<String>,
    /// Its end, in seconds since 1970.
    pub expiry: i64,
    /// Version of TLS.
    pub protocol: String,
    /// Cipher suite, by its name at IANA.
    pub cipher: String,
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PortRow {
    /// Its number, or `LOCAL`.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub port: Port,
    /// Its name.
    pub name: String,
    /// Its Ethernet address.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub mac: MacAddr,
    /// Its state.
    pub state: PortState,
    /// Packet-ins that came in here and reached the apps, over all connections of the switch. One
    /// of each batch stands for all of the batch.
    #[serde(default)]
    pub packet_ins: u64,
    /// Packet-ins that came in here and were dropped, over all connections of the switch.
    #[serde(default)]
    pub packet_ins_dropped: u64,
}

/// An app with entries that a switch does not have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MissingEntriesRow {
    /// The app.
    pub app: String,
    /// Why the switch does not have one of them.
    pub reason: String,
}

/// One of the controller's own flows, which a switch refuses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RefusedFlowRow {
    /// The flow.
    pub flow: String,
    /// Why the switch refuses it.
    pub reason: String,
}
