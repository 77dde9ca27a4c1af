//! Flows of apps that do not run here any more, and their removal.

use bellrock_api::Dpid;
use serde::{Deserialize, Serialize};

use crate::{FlowRow, Page, SwitchRef, text};

/// Maximum number of flows that an answer lists of each switch. All are counted.
pub const MAX_ORPHANS_SHOWN: usize = 100;

/// Asks switches for flows of apps that do not run here, and counts them by app: what an app leaves
/// that was taken out of the chain. Cookies name the apps that Bellrock has. Flows of other
/// controllers are never among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListOrphans {
    /// Only this switch.
    #[serde(with = "text::option")]
    pub switch: Option<SwitchRef>,
    /// Only flows of the app with this name. An app that does not come with Bellrock has to be
    /// named.
    pub app: Option<String>,
    /// Which of the switches, by datapath id. Only these are asked.
    pub page: Page,
}

/// Removes the flows that [`ListOrphans`] lists, each by its match, priority and cookie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CleanFlows {
    /// Only at this switch: its datapath id or its name.
    #[serde(default, with = "text::option")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub switch: Option<SwitchRef>,
    /// Only flows of the app with this name. An app that does not come with Bellrock has to be
    /// named.
    pub app: Option<String>,
}

/// Flows of a switch whose apps do not run here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SwitchOrphans {
    /// The switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// Why the flows are unknown, or are not removed.
    pub problem: Option<String>,
    /// Number of flows by app, by name.
    pub apps: Vec<OrphansOfApp>,
    /// The first of them, up to 100.
    pub flows: Vec<FlowRow>,
}

/// Number of flows of an app that does not run here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OrphansOfApp {
    /// Name of the app.
    pub app: String,
    /// Number of flows.
    pub flows: u64,
}

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CleanAnswer {
    /// Number of flows that the switches have confirmed to remove.
    pub removed: u64,
    /// The switches that had such flows, and those with a problem.
    pub switches: Vec<SwitchOrphans>,
}
