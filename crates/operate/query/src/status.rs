//! The controller as a whole.

use std::net::SocketAddr;

use bellrock_api::Dpid;
use serde::{Deserialize, Serialize};

use crate::text;

/// Asks for the state of the controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GetStatus {}

/// The state of the controller.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Status {
    /// Version of Bellrock.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Time since its start.
    pub uptime_seconds: u64,
    /// Addresses where switches can connect.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub listen: Vec<SocketAddr>,
    /// The same for switches that connect by TLS.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    #[serde(default)]
    pub listen_tls: Vec<SocketAddr>,
    /// End of the controller's certificate towards switches, in seconds since 1970. `None`: it
    /// listens without TLS only.
    #[serde(default)]
    pub tls_certificate_expiry: Option<i64>,
    /// Time by which the first list of revoked certificates of switches is to be replaced
    /// (`nextUpdate`), in seconds since 1970. `None`: there is none, or it has no end.
    #[serde(default)]
    pub tls_crl_expiry: Option<i64>,
    /// The apps of the chain, in order.
    pub apps: Vec<String>,
    /// Number of workers.
    pub workers: usize,
    /// Number of connections, with or without a finished handshake.
    pub connections: usize,
    /// Number of connections accepted since the start.
    pub accepted: u64,
    /// Number of connections closed at once because of a limit.
    pub refused: u64,
    /// Number of the accepted connections that were closed because another connection has their
    /// datapath id.
    #[serde(default)]
    pub duplicates_refused: u64,
    /// Number of switches that are up.
    pub switches: usize,
    /// Switches that are not connected: those with a name in the configuration, by name, and then
    /// others that were lost.
    #[serde(default)]
    pub missing_switches: Vec<MissingSwitch>,
    /// Number of hosts that host tracking knows. 0 if it does not run.
    #[serde(default)]
    pub hosts: usize,
    /// Missing where the tables of the apps share no budget, as in a program of your own.
    #[serde(flatten)]
    pub table_memory: Option<TableMemory>,
}

/// A switch that is expected, and not connected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MissingSwitch {
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// Its datapath id.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Time since its connection ended. `None`: it was not connected since the controller started,
    /// or that is too long ago to be kept.
    #[serde(default)]
    pub lost_seconds: Option<u64>,
}

/// Memory that the tables of the apps use, and their limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TableMemory {
    /// Bytes used.
    pub table_memory_used_bytes: usize,
    /// Maximum number of bytes.
    pub table_memory_limit_bytes: usize,
    /// Bytes of those used that the kernel was advised to keep in huge pages.
    pub table_memory_huge_page_bytes: usize,
}
