//! The entries of the app `static`: flows, groups and meters that operators name.

use bellrock_api::Dpid;
use serde::{Deserialize, Serialize};

use crate::{Page, SwitchRef, text};

/// The owner of entries whose order names none.
pub const DEFAULT_OWNER: &str = "operator";

/// Maximum number of entries whose state an answer to [`SetStatic`] reports one by one.
pub const MAX_UNCONFIRMED_SHOWN: usize = 100;

/// Sets and removes static entries: all of them, or none. The answer comes when the switches have
/// confirmed them, or after some seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SetStatic {
    /// Who orders. Only this owner changes and removes the entries later. `None`: `operator`, or
    /// over HTTP the name of the token.
    pub owner: Option<String>,
    /// Entries to set. Those of the same names are replaced.
    pub entries: Vec<StaticEntry>,
    /// Names of entries to remove.
    pub remove: Vec<String>,
    /// Whether to remove all other entries of the owner.
    pub replace: bool,
}

/// A flow, group or meter that a switch is to have. Exactly one of the three is given.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StaticEntry {
    /// Its name: 1 to 64 letters, digits, `.`, `-`, `_` and `:`.
    pub name: String,
    /// The switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub switch: SwitchRef,
    /// Time after which it is removed. `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u32>,
    /// It is this flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<StaticFlow>,
    /// It is this group (1.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<StaticGroup>,
    /// It is this meter (1.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<StaticMeter>,
}

/// A static flow. Its actions have to be given: an order without them would drop packets, perhaps
/// all.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct StaticFlow {
    /// Number of its table (1.0 has only table 0).
    pub table: u8,
    /// Its priority among the static flows, 0 to 4095. The default is 2048.
    pub priority: u16,
    /// Its match, such as `in_port=1,eth_type=0x0800,ipv4_dst=10.0.0.0/8`. The default is `any`.
    #[serde(rename = "match")]
    pub matching: String,
    /// What it does, such as `set_field:10.0.0.7->ipv4_dst,output:3`, or `drop`.
    #[cfg_attr(feature = "schema", schema(required))]
    pub actions: String,
}

impl Default for StaticFlow {
    fn default() -> Self {
        StaticFlow {
            table: 0,
            priority: bellrock_api::PriorityBand::MIDDLE,
            matching: "any".to_owned(),
            // Which an order must not leave so.
            actions: String::new(),
        }
    }
}

/// A static group (1.3.5 §5.6).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StaticGroup {
    /// Its number.
    pub id: u32,
    /// How it uses its buckets.
    #[serde(rename = "type")]
    pub kind: GroupKind,
    /// Its buckets, in order.
    #[serde(default)]
    pub buckets: Vec<StaticBucket>,
}

/// How a group uses its buckets (1.3.5 §5.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum GroupKind {
    /// All of them.
    All,
    /// One, which the switch selects by the packet and the weights.
    Select,
    /// The only one.
    Indirect,
    /// The first one that is live.
    FastFailover,
}

/// A bucket of a static group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct StaticBucket {
    /// Its weight, in groups that select. There it is at least 1.
    pub weight: u16,
    /// The port that must be up for the bucket to be live. It may be given as a number, too.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text::port_or_number")]
    pub watch_port: Option<String>,
    /// The group that must be live for the bucket to be live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch_group: Option<u32>,
    /// Its actions, such as `output:3`, or `drop`.
    #[cfg_attr(feature = "schema", schema(required))]
    pub actions: String,
}

/// A static meter (1.3.5 §5.7).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StaticMeter {
    /// Its number. With the app `bandwidth` in the chain, the first ones are that app's.
    pub id: u32,
    /// The unit of its rates.
    #[serde(default)]
    pub unit: MeterUnit,
    /// Its bands.
    pub bands: Vec<StaticBand>,
}

/// The unit of a meter's rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MeterUnit {
    /// Kilobits per second.
    #[default]
    Kbps,
    /// Packets per second.
    Pps,
}

/// A band of a static meter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StaticBand {
    /// The rate above which it applies, in the meter's unit.
    pub rate: u32,
    /// Size of a burst that is allowed, in kilobits or packets. 0: the switch chooses.
    #[serde(default)]
    pub burst: u32,
    /// Raises the drop precedence of the packets by this much. `None`: drops them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp_remark: Option<u8>,
}

/// What an order to set static entries has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StaticAnswer {
    /// Number of entries that are new, or differ from before.
    pub set: usize,
    /// Number of entries that were the same before.
    pub unchanged: usize,
    /// Number of entries that were removed.
    pub removed: usize,
    /// Number of changed entries that their switches have not confirmed.
    pub unconfirmed: usize,
    /// Number of these whose switch is not connected, or obeys another node of the cluster, which
    /// installs them.
    #[serde(default)]
    pub waiting: usize,
    /// The first of them, at most 100; those that a switch refuses come first.
    pub problems: Vec<StaticProblem>,
    /// Whether the entries come back after a restart of the controller: they are in a file, or in
    /// the etcd of a cluster.
    pub saved: bool,
    /// What to know besides the result: the node that was asked does not serve, so that other nodes
    /// of the cluster carry the order out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// An entry that its switch has not confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StaticProblem {
    /// Its name. `None`: it is removed.
    pub name: Option<String>,
    /// How far it is.
    pub state: StaticState,
    /// Why it is not installed.
    pub why: String,
}

/// Asks for the static entries, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListStatic {
    /// Only this entry.
    pub name: Option<String>,
    /// Only entries of this switch.
    #[serde(with = "text::option")]
    pub switch: Option<SwitchRef>,
    /// Only entries of this owner.
    pub owner: Option<String>,
    /// Which of them.
    pub page: Page,
}

/// A static entry and its state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StaticRow {
    /// Its name.
    pub name: String,
    /// Who may change and remove it.
    pub owner: String,
    /// Its switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// The switch's name in the configuration.
    #[serde(default)]
    pub switch_name: Option<String>,
    /// How far it is.
    pub state: StaticState,
    /// Why it is not installed.
    #[serde(default)]
    pub why: Option<String>,
    /// Time until it is removed. `None`: never.
    #[serde(default)]
    pub ttl_seconds: Option<u64>,
    /// It is this flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<StaticFlow>,
    /// It is this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<StaticGroup>,
    /// It is this meter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<StaticMeter>,
}

/// How far a static entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StaticState {
    /// Its switch has confirmed it.
    Installed,
    /// It is on its way.
    Pending,
    /// Its switch is not connected. It is installed when the switch comes.
    Waiting,
    /// This controller stands by at its switch: another node of the cluster installs it, and shows
    /// whether the switch has it.
    Standby,
    /// Its switch refuses it, or cannot have it. It is tried again from time to time.
    Refused,
    /// Its switch confirms it, and then reports it otherwise, or not at all. It is tried again from
    /// time to time.
    NotKept,
    /// A newer controller has sent a state that this release does not know.
    #[serde(other)]
    Unknown,
}
