//! What an operator can ask of a controller, and order.
//!
//! Each request is a struct ([`ListFlows`], [`Reserve`]), and [`Query`] gives the type of its
//! answer. An [`Operator`] answers all of them. The command, the control socket, REST and other
//! faces are clients of an operator: a row, a request or an error that only one face needs does not
//! exist.
//!
//! [`request`] lists all requests, with their routes over HTTP. A new one is a struct with its
//! answer in one of the modules here, its place in that list, and an arm in the operator of the
//! controller, or in the handle of an app.
//!
//! All types serialise with serde. Datapath ids, ports and addresses are text, as operators write
//! them. Names of fields include their unit.
//!
//! # What it is not
//! No I/O, no log, and no text for terminals. It has only the text of an order that others log.

mod apps;
mod audit;
mod by_name;
mod cluster;
mod columns;
mod configuration;
mod error;
mod flows;
mod gauges;
mod groups;
mod hosts;
mod identities;
mod messages;
mod names;
mod network;
mod operator;
mod orphans;
mod page;
mod ports;
mod queues;
mod relays;
pub mod request;
mod route;
mod status;
mod switches;
mod text;

pub use apps::{
    AppRow, AppScope, AppTables, CounterMeaning, CounterPart, Counters, DescribeCounters,
    GetCounters, LatencyBucket, LatencyRow, ListApps, ListLatencies, ListTasks, SwitchCounterRow,
    TaskRow, TaskState,
};
pub use audit::MAX_AUDIT_BYTES;
pub use by_name::{ByName, by_name};
pub use cluster::{
    BalanceCluster, ClusterHandle, ClusterRequestsRow, ClusterStatus, ClusterStoreRow,
    ClusterSwitchRow, DrainNode, GetCluster, ListClusterSwitches, MoveSwitch, NodeRole, NodeRow,
    NodeState,
};
pub use columns::{Cell, Column, List};
pub use configuration::{
    GetSharedConfig, Reload, ReloadAnswer, RenewedFileRow, SetSharedConfig, SettingChangeRow,
    SharedConfig, SharedConfigHandle,
};
pub use error::{ErrorKind, QueryError};
pub use flows::{AppFlows, CountFlows, FlowPage, FlowRow, ListFlows, SwitchFlows};
pub use gauges::{Count, Gauge, GaugeNumbers, ReadGauges};
pub use groups::{GroupRow, ListGroups, ListMeters, MeterRow};
pub use hosts::{HostRow, ListHosts};
pub use identities::{ForgetIdentity, ListIdentities, PinRow};
pub use messages::{
    AskSwitch, MAX_MESSAGES, MAX_REPLY_TEXT_BYTES, MessageBytes, MessageOutcome, MessageState,
    ParseMessageError, SendMessages, SentMessages, SwitchReply,
};
pub use names::{read_named, unknown_name};
pub use network::{
    AlarmState, EventRow, EventsAfter, FollowEvents, GetTopology, LinkRow, ListEvents, ListLinks,
    MAX_EVENTS_AT_ONCE, MAX_EVENTS_WAIT_MS, TopologyAnswer, TopologySwitch,
};
pub use operator::Operator;
pub use orphans::{
    CleanAnswer, CleanFlows, ListOrphans, MAX_ORPHANS_SHOWN, OrphansOfApp, SwitchOrphans,
};
pub use page::{DEFAULT_PAGE_ROWS, MAX_PAGE_ROWS, Page, Rows};
pub use ports::{ListPorts, PortCounters, PortState, PortStatsRow};
pub use queues::{ListQueues, QueueRow};
pub use relays::{JudgeRelay, ListRelays, ParsePortRefError, PortRef, RelayRow, RelayVerdict};
pub use request::*;
pub use route::{Declared, Form, Method, Param, ParamKind, Route};
#[cfg(feature = "schema")]
pub use route::{Schemas, add_schema};
pub use status::{GetStatus, MissingSwitch, Status, TableMemory};
pub use switches::{
    IdentityRow, ListSwitches, MissingEntriesRow, PortRow, RefusedFlowRow, SwitchRef, SwitchRow,
};
