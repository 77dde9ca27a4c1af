//! The hosts that the app `quarantine` blocks.

use bellrock_api::Dpid;
use serde::{Deserialize, Serialize};

use crate::{Page, Rows, text};

/// Blocks a host or a prefix at every switch, until the controller ends.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// An Ethernet address, an IPv4 or IPv6 address or prefix, or the name of a host.
    pub host: String,
}

/// Ends the block of a host or a prefix that an operator added.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Unblock {
    /// The host as it is listed, or its name.
    pub host: String,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuarantineAnswer {
    /// This host is blocked now.
    Blocked(String),
    /// This host is let back.
    LetBack(String),
}

/// Asks for the blocked hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListBlocked {
    /// Which of them.
    pub page: Page,
}

/// A page of the blocked hosts, and the state of the list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BlockedList {
    /// The blocked hosts.
    #[serde(flatten)]
    pub hosts: Rows<BlockedRow>,
    /// Why the present list of the file is not in force.
    pub file_problem: Option<String>,
}

/// A blocked host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BlockedRow {
    /// Its address, or its prefix.
    pub host: String,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// Its line in the file. `None`: an operator added it.
    pub line: Option<usize>,
    /// Switches that do not block it.
    pub gaps: Vec<BlockGap>,
}

/// A switch that does not block a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BlockGap {
    /// The switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// Why it does not.
    pub why: String,
}
