//! The queues of ports, with their counters. As for ports, each answer comes from the switches.

use bellrock_api::{Dpid, Port};
use serde::{Deserialize, Serialize};

use crate::{Cell, Column, List, Page, SwitchRef, text};

/// Asks for the queues of ports, by datapath id, port and number, with their counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListQueues {
    /// Only this switch.
    #[serde(with = "text::option")]
    pub switch: Option<SwitchRef>,
    /// Only this port.
    #[serde(with = "text::option")]
    pub port: Option<Port>,
    /// Which of them. All switches are asked.
    pub page: Page,
}

/// A queue with its counters (1.3.5 §7.3.5.10, 1.0 §5.3.5). `None` stands for a counter that the
/// switch does not keep.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueueRow {
    /// The switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Name of the switch in the configuration.
    #[serde(default)]
    pub switch_name: Option<String>,
    /// The number of its port, or `LOCAL`.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub port: Port,
    /// The queue's number at the port.
    pub queue: u32,
    /// Current rate of the port's link. `None` if the switch does not report it.
    pub rate_kbps: Option<u64>,
    /// Packets sent.
    pub tx_packets: Option<u64>,
    /// Bytes sent.
    pub tx_bytes: Option<u64>,
    /// Packets dropped because the queue was full.
    pub tx_errors: Option<u64>,
    /// Time that the queue has existed. `None` on 1.0, which does not report it.
    pub age_seconds: Option<u64>,
}

impl QueueRow {
    /// How queues are listed.
    pub const LIST: List = List {
        command: "queues",
        about: "List the queues of ports, with their counters\n\nThe switches are asked for them. `-` \
                stands for what a switch does not report.",
        none: "no port has a queue",
        columns: &[
            Column::new("SWITCH", "dpid", Cell::Switch),
            Column::new("PORT", "port", Cell::Plain),
            Column::new("QUEUE", "queue", Cell::Plain),
            Column::new("BIT/S", "rate_kbps", Cell::Rate),
            Column::new("TX PACKETS", "tx_packets", Cell::Plain),
            Column::new("TX BYTES", "tx_bytes", Cell::Plain),
            Column::new("ERRORS", "tx_errors", Cell::Plain),
            Column::new("AGE", "age_seconds", Cell::Duration),
        ],
        optional: &["AGE", "BIT/S", "TX PACKETS"],
    };
}
