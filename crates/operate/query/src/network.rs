//! Topology, links and events.

use bellrock_api::{Dpid, Port};
use serde::{Deserialize, Serialize};

use crate::{Page, text};

/// Asks for the switches and links that discovery knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GetTopology {}

/// Switches and links found by discovery.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TopologyAnswer {
    /// Whether discovery has probed every port.
    pub settled: bool,
    /// The switches, by datapath id.
    pub switches: Vec<TopologySwitch>,
    /// The links, by their first port.
    pub links: Vec<LinkRow>,
}

/// A switch in the topology.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TopologySwitch {
    /// Its datapath id.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// Number of its ports that are up.
    pub ports_up: usize,
    /// Ports where hosts can be.
    #[serde(with = "text::list")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub edge_ports: Vec<Port>,
}

/// Asks for the links between switches, by their first port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListLinks {
    /// Which of them.
    pub page: Page,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LinkRow {
    /// The switch that sends.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub from_dpid: Dpid,
    /// The name of that switch in the configuration.
    #[serde(default)]
    pub from_name: Option<String>,
    /// The port that sends.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub from_port: Port,
    /// The switch that receives.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub to_dpid: Dpid,
    /// The name of that switch in the configuration.
    #[serde(default)]
    pub to_name: Option<String>,
    /// The port that receives.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub to_port: Port,
    /// Time since it came up.
    pub up_seconds: u64,
    /// Its rate, in kbit/s.
    pub rate_kbps: Option<u64>,
    /// Whether the other direction is up too.
    pub both_ways: bool,
}

/// Asks for the latest events of the network. The newest are on the first page; each page is
/// ordered by time, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListEvents {
    /// Only events of this kind: [`EventRow::event`].
    pub kind: Option<String>,
    /// Only alarms.
    pub alarming: bool,
    /// Only open alarms: what they report still lasts.
    pub open: bool,
    /// Which of them.
    pub page: Page,
}

/// Maximum time for which [`FollowEvents`] waits, in milliseconds. Clients wait longer.
pub const MAX_EVENTS_WAIT_MS: u64 = 5000;

/// Maximum number of events in an answer to [`FollowEvents`].
pub const MAX_EVENTS_AT_ONCE: usize = 1000;

/// Waits for the events after a known one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct FollowEvents {
    /// [`EventRow::id`] of the latest known event, or [`EventsAfter::last`]. `None`: no earlier
    /// event is wanted.
    pub after: Option<String>,
    /// Time to wait if there is no such event yet, up to [`MAX_EVENTS_WAIT_MS`].
    pub wait_ms: u64,
}

/// The events after a known one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventsAfter {
    /// Whether the known event is of an earlier run of the controller. Then these are the events
    /// since its start.
    pub restarted: bool,
    /// Number of events that are not kept any more.
    pub missed: u64,
    /// The events in the order of their times, up to [`MAX_EVENTS_AT_ONCE`].
    pub events: Vec<EventRow>,
    /// For the next request, as [`FollowEvents::after`].
    pub last: String,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventRow {
    /// Its place in the order of all events, for [`FollowEvents`].
    #[serde(default)]
    pub id: String,
    /// Time since the event.
    pub seconds_ago: u64,
    /// Time of the event, in milliseconds since 1970.
    #[serde(default)]
    pub unix_ms: u64,
    /// Name of this kind of event.
    pub event: String,
    /// The event as a sentence.
    pub text: String,
    /// Why a connection ended, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the event is an alarm for operators.
    pub alarming: bool,
    /// For an alarm with an end, such as a link that is down: whether it is over. The events of a
    /// stream have the state when they happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AlarmState>,
    /// Time of the end of the alarm, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_ms: Option<u64>,
    /// The `id` of the alarm that this event ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
}

/// State of an alarm with an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AlarmState {
    /// What it reports still lasts.
    Open,
    /// It has ended.
    Over,
}
