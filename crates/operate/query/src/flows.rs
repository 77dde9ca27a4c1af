//! The flows of switches. Each answer comes from the switches, so it lists the flows that they
//! have, and not those that the controller believes to be there.

use bellrock_api::{Dpid, Version};
use serde::{Deserialize, Serialize};

use crate::{Page, Rows, SwitchRef, text};

/// Asks a switch for its flows, ordered by table, then by priority (highest first), then by match.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListFlows {
    /// The switch.
    #[serde(with = "text")]
    pub switch: SwitchRef,
    /// Only flows of this app, of `controller`, or `foreign` ones.
    #[serde(default)]
    pub app: Option<String>,
    /// Which of them.
    #[serde(default)]
    pub page: Page,
}

impl ListFlows {
    /// Stands for flows of no app of this controller, in [`ListFlows::app`].
    pub const FOREIGN: &str = "foreign";

    /// Stands for the controller's own flows, in [`ListFlows::app`].
    pub const CONTROLLER: &str = "controller";
}

/// Some flows of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FlowPage {
    /// The switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// OpenFlow version of its connection.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub version: Version,
    /// The flows.
    #[serde(flatten)]
    pub flows: Rows<FlowRow>,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FlowRow {
    /// Number of its table.
    pub table: u8,
    /// As in the switch.
    pub priority: u16,
    /// `None` if the flow is foreign.
    pub app: Option<String>,
    /// 16 hexadecimal digits.
    pub cookie: String,
    /// Its match.
    #[serde(rename = "match")]
    pub matching: String,
    /// Its actions (1.0) or instructions (1.3).
    pub actions: String,
    /// Number of packets that it matched. `None`: the switch does not count them.
    pub packets: Option<u64>,
    /// Number of bytes in these packets.
    pub bytes: Option<u64>,
    /// Time since it was installed.
    pub age_seconds: u32,
    /// 0 for none.
    pub idle_timeout_seconds: u16,
    /// 0 for none.
    pub hard_timeout_seconds: u16,
}

/// Asks switches for their flows, and counts them by app.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct CountFlows {
    /// Only this switch.
    #[serde(with = "text::option")]
    pub switch: Option<SwitchRef>,
    /// Which of the switches, by datapath id. Only these are asked.
    pub page: Page,
}

/// Numbers of flows of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SwitchFlows {
    /// The switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// Why the numbers are unknown.
    pub problem: Option<String>,
    /// Its flows by app, in the order of the chain; foreign ones are last.
    pub apps: Vec<AppFlows>,
}

/// Number of flows of one app in a switch, and sums of their counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AppFlows {
    /// `None` for all foreign flows.
    pub app: Option<String>,
    /// Number of flows.
    pub flows: u64,
    /// Number of flows in the app's desired state. `None` for an app without one.
    pub wanted: Option<u64>,
    /// Number of packets that they matched, as far as the switch counts them.
    pub packets: u64,
    /// Number of bytes in these packets.
    pub bytes: u64,
}
