//! The hosts.

use std::net::IpAddr;

use bellrock_api::{Dpid, MacAddr, Port};
use serde::{Deserialize, Serialize};

use crate::{Page, SwitchRef, text};

/// Asks for the hosts, by switch and port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListHosts {
    /// Only hosts at this switch.
    #[serde(with = "text::option")]
    pub switch: Option<SwitchRef>,
    /// Which of them.
    pub page: Page,
}

/// A host at its edge port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HostRow {
    /// Its switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// The name of its switch in the configuration.
    #[serde(default)]
    pub switch_name: Option<String>,
    /// Its port.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub port: Port,
    /// Its Ethernet address.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub mac: MacAddr,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// Its VLAN, if its packets have a tag.
    pub vlan: Option<u16>,
    /// IP addresses, if host tracking runs.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub addresses: Vec<IpAddr>,
    /// Time since a learning app or host tracking saw it. `None`: none has, since the controller
    /// started.
    pub age_seconds: Option<u64>,
    /// Whether it changed between ports quickly, which looks like a loop.
    pub flapping: bool,
    /// Whether apps see it at several ports and its own port is unknown.
    pub guessed: bool,
    /// Sources: host tracking (`hosts`), and apps in alphabetical order.
    pub apps: Vec<String>,
}
