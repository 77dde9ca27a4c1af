//! The groups and meters of switches (1.3). As for flows, each answer comes from the switches.

use serde::{Deserialize, Serialize};

use crate::{Cell, Column, List, Page, SwitchRef, text};

/// Asks a switch for its groups, ordered by number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListGroups {
    /// The switch.
    #[serde(with = "text")]
    pub switch: SwitchRef,
    /// Which of them.
    #[serde(default)]
    pub page: Page,
}

/// A group of a switch (1.3.5 §5.6).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GroupRow {
    /// Its number.
    pub group: u32,
    /// `all`, `select`, `indirect` or `ff`; a type without a name is a number.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its buckets, as in `watch_port:2,actions=output:2`.
    pub buckets: Vec<String>,
    /// Number of flows and groups that use it. `None`: the switch does not count them.
    pub used_by: Option<u32>,
    /// Number of packets that it processed. `None`: the switch does not count them.
    pub packets: Option<u64>,
    /// Number of bytes in these packets.
    pub bytes: Option<u64>,
    /// Time since it was installed.
    pub age_seconds: Option<u32>,
}

impl GroupRow {
    /// How groups are listed.
    pub const LIST: List = List {
        command: "groups",
        about: "List the groups of a switch, with their counters (OpenFlow 1.3)",
        none: "the switch has no groups",
        columns: &[
            Column::new("GROUP", "group", Cell::Plain),
            Column::new("TYPE", "type", Cell::Plain),
            Column::new("USED BY", "used_by", Cell::Plain),
            Column::new("PACKETS", "packets", Cell::Plain),
            Column::new("BYTES", "bytes", Cell::Plain),
            Column::new("AGE", "age_seconds", Cell::Duration),
            Column::new("BUCKETS", "buckets", Cell::Parts),
        ],
        optional: &["AGE", "BYTES", "PACKETS"],
    };
}

/// Asks a switch for its meters, ordered by number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListMeters {
    /// The switch.
    #[serde(with = "text")]
    pub switch: SwitchRef,
    /// Which of them.
    #[serde(default)]
    pub page: Page,
}

/// A meter of a switch (1.3.5 §5.7).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MeterRow {
    /// Its number; 4294967294 for packets to the controller, 4294967293 for the slow path.
    pub meter: u32,
    /// Its flags, as in `KBPS|BURST`.
    pub flags: String,
    /// Its bands, as in `drop, rate=1000`. Rates are in kb/s or in packets per second, as the flags
    /// say.
    pub bands: Vec<String>,
    /// Number of flows that use it. `None`: the switch does not count them.
    pub used_by: Option<u32>,
    /// Number of packets that it processed. `None`: the switch does not count them.
    pub packets: Option<u64>,
    /// Number of bytes in these packets.
    pub bytes: Option<u64>,
    /// Time since it was installed.
    pub age_seconds: Option<u32>,
}

impl MeterRow {
    /// How meters are listed.
    pub const LIST: List = List {
        command: "meters",
        about: "List the meters of a switch, with their counters (OpenFlow 1.3)",
        none: "the switch has no meters",
        columns: &[
            Column::new("METER", "meter", Cell::Plain),
            Column::new("FLAGS", "flags", Cell::Plain),
            Column::new("USED BY", "used_by", Cell::Plain),
            Column::new("PACKETS", "packets", Cell::Plain),
            Column::new("BYTES", "bytes", Cell::Plain),
            Column::new("AGE", "age_seconds", Cell::Duration),
            Column::new("BANDS", "bands", Cell::Parts),
        ],
        optional: &["AGE", "BYTES", "PACKETS"],
    };
}
