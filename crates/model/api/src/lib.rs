//! The interface for apps.
//!
//! # The model
//! An [`App`] is a factory: it makes a [`Handler`] for each switch that comes up. The handler owns
//! the state of its switch. One thread at a time calls it, so it takes no lock. Each method of a
//! handler is an event. A handler answers by appending messages to its [`Switch`]; it never blocks.
//! (The model is McNettle's: one handler per switch, and explicit shared state.)
//!
//! Several apps form a chain, in the order of the configuration. Each packet goes to the first app,
//! and on to the next while apps return [`Verdict::Pass`].
//!
//! # What it is not
//! Traits and data only. A worker (crate `worker`) calls them, with real sockets (crate `engine`)
//! or in a test. This crate knows no threads, sockets or configuration files.
//!
//! # Versions
//! Apps are independent of the version: [`Switch`] encodes messages in the version of its switch.
//! What that version does not support is [`Error::Encode`], which names it.

mod actions;
mod allowance;
mod app;
mod app_event;
mod app_id;
mod batch;
mod confirm;
mod connection_end;
mod counters;
mod either;
mod empty_network;
mod error;
mod event;
mod event_alarms;
mod event_causes;
mod event_kinds;
mod event_subject;
mod event_text;
mod events;
mod flow;
mod hosts;
mod identity;
mod info;
mod intern;
mod latency;
mod names;
mod network;
mod own_flow;
pub mod packet;
mod raw;
mod remote;
mod role;
pub mod runtime;
mod switch;
mod switches;
mod task;
mod template;
mod term;
mod topology;
mod waiting;
mod watch;

pub use actions::Actions;
pub use allowance::{
    APP_MESSAGES_PER_PACKET_IN, APP_MESSAGES_PER_SECOND, APP_TASKS, Allowance, AllowedWrites,
    AppGuard,
};
pub use app::{App, EarlierFlows, Forwards, Handler, MAX_SEEN, Needs, Scope, Verdict};
pub use app_event::{
    AppEvent, MAX_APP_ALARM_SUBJECT_BYTES, MAX_APP_EVENT_NAME_BYTES, MAX_APP_EVENT_TEXT_BYTES,
};
pub use app_id::AppId;
pub use batch::{BATCH_PACKETS, Batch, PacketFilter};
pub use bellrock_openflow as openflow;
pub use bellrock_openflow::{
    Action, EncodeError, ErrorCode, ErrorMessage, Field, Filling, FlowCommand, FlowFlags, FlowMod,
    FlowRemoved, FlowRemovedReason, FlowStats, Instruction, MacAddr, Match, PacketInReason,
    PacketInView, Port, PortDesc, PortReason, PortStatus, PriorityBand, ReplyBody, ToSwitch,
    Version,
};
pub use bellrock_pace::{Backoff, RateLimit, Repeats};
pub use confirm::{
    CHANGES_PER_SECOND, CONFIRM_WITHIN, ProgramFuture, Reply, RequestError, RequestFuture,
    time_for_changes,
};
pub use connection_end::{ConnectionEnd, EndReason};
pub use counters::{Counter, CounterValue, SharedCounter};
pub use either::{Either, either};
pub use error::{Error, HandlerError, Result};
/// Header parser of [`PacketIn::headers`].
pub use etherparse;
pub use event::Event;
pub use event_causes::{HostGone, LinkDown, StormSign, Suspicion};
pub use event_subject::EventSubject;
pub use events::{
    AlarmState, EVENTS_KEPT, EventRecord, Events, OPEN_ALARMS_KEPT, OPEN_APP_ALARMS_KEPT,
    Subscription, SubscriptionItem,
};
pub use flow::{
    ALL_TABLES, AsFlowMod, BucketEntry, Change, ChangeOutcome, Deviation, Flow, FlowKey,
    FlowNormalizer, GroupEntry, ImpossibleBuckets, ImpossibleInstruction, ImpossibleReason,
    InstructionPart, MeterEntry, NoConfirmation, ParseInstructionsError, Refusal, ReportedFlow,
    check_bucket, check_instructions, parse_actions, parse_instructions,
};
pub use hosts::{Host, HostId, Hosts};
pub use identity::{Fingerprint, ParseFingerprintError, SwitchIdentity};
pub use info::{Cookie, Description, Dpid, HostEntry, ParseDpidError, SwitchInfo};
pub use latency::{LATENCY_BOUNDS, Latencies, LatencyCounts, LatencyHistogram};
pub use names::{MAX_NAME_CHARS, MAX_NAMES, NameError, NameKind, Names, name_in};
pub use network::Network;
pub use own_flow::{OWN_FLOW_REPORTED_EVERY, OwnFlow, RefusedFlows};
pub use packet::{PacketIn, VlanTag};
pub use raw::{
    MAX_OWNER_BYTES, MAX_OWNER_BYTES_OF_ALL, MAX_UNSENT_BYTES, RawConnection, RawEvent, RawOwner,
    RawSendError, RawUp,
};
pub use role::{
    ControllerRole, GrantedRole, ParseRoleError, RoleError, RoleOrder, RoleOrderFuture,
};
pub use switch::{MAX_ALLOWED, Switch, Xid};
pub use switches::Switches;
pub use task::{Sleep, TaskHandle};
pub use template::FlowTemplate;
pub use term::Term;
pub use topology::{Link, ParseSwitchPortError, SwitchPort, Topology};
pub use watch::{Published, Publisher, Snapshot, Watch, WatchReader};
