//! The hosts that the app `quarantine` blocks.

use bellrock_api::Dpid;
use serde::{Deserialize, Serialize};

use crate::{Count, Gauge, Page, Rows, text};

/// Maximum number of switches that an answer names for one host.
pub const MAX_GAPS_SHOWN: usize = 20;

/// Blocks a host or a prefix at every switch, until it is ended. Without a store it ends with the
/// controller. The answer comes when the switches have confirmed it, or after some seconds.
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

/// What was done: one of the first two fields is given. The answer comes when all switches have
/// confirmed a block or refused it, or after some seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuarantineAnswer {
    /// This host is blocked now, except at the switches in `gaps`. Other nodes block it at their
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// This host is let back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub let_back: Option<String>,
    /// Switches that are not known to block it: at most 20.
    #[serde(default)]
    pub gaps: Vec<BlockGap>,
    /// Number of further such switches.
    #[serde(default)]
    pub more_gaps: usize,
    /// Number of switches that obey other nodes of the cluster. Those block the host there, and
    /// their lists have the states.
    #[serde(default)]
    pub at_other_nodes: usize,
    /// What to know besides the result: the node that was asked does not serve, so that other nodes
    /// of the cluster carry the order out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
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
    /// Switches that are not known to block it: at most 20.
    pub gaps: Vec<BlockGap>,
    /// Number of further such switches.
    #[serde(default)]
    pub more_gaps: usize,
    /// Number of switches that obey other nodes of the cluster. Those block the host there, and
    /// their lists have the states.
    #[serde(default)]
    pub at_other_nodes: usize,
}

impl BlockedRow {
    /// How blocked hosts are counted.
    pub const GAUGES: &[Gauge<Self>] = &[
        Gauge {
            name: "bellrock_blocked_hosts",
            about: "Number of blocked hosts and prefixes.",
            count: Count::If(|_| true),
        },
        Gauge {
            name: "bellrock_blocked_hosts_with_gaps",
            about: "Number of blocked hosts and prefixes that some connected switch is not known to \
                    block.",
            count: Count::If(|row| {
                let away = [BlockGapState::Away, BlockGapState::Standby];
                row.gaps.iter().any(|gap| !away.contains(&gap.state))
            }),
        },
    ];
}

/// A switch that is not known to block a host.
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
    /// How far it is.
    #[serde(default)]
    pub state: BlockGapState,
    /// Why it is not known to block the host.
    pub why: String,
}

/// How far a switch is that is not known to block a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockGapState {
    /// It has not confirmed the block yet.
    Unconfirmed,
    /// It refuses the block, or its OpenFlow version cannot express it.
    Refused,
    /// It has a name in the configuration, and is not connected.
    Away,
    /// This controller stands by there, and knows no other node that the switch obeys.
    Standby,
    /// A newer controller has sent a state that this release does not know, or an older one none.
    #[default]
    #[serde(other)]
    Unknown,
}
