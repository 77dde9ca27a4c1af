//! What an app is written against.
//!
//! # The model
//! An [`App`] is a factory: for each switch that comes up it makes a [`Handler`], which owns what
//! it knows of that switch and is called by one thread at a time, so it takes no lock. The name of
//! a handler's method is the event. A handler answers by appending messages to the [`Switch`] that
//! it is given; it never blocks. (The model is McNettle's: one handler per switch, shared state
//! only where it says so.)
//!
//! Several apps form a chain, in the order of the configuration: each packet goes to the first,
//! and on to the next for as long as they [`Verdict::Pass`] it.
//!
//! # What it is not
//! Traits and data only. Who calls them is a worker (crate `worker`), under real sockets (crate
//! `engine`) or in a test. Nothing here knows threads, sockets or configuration files.
//!
//! # Versions
//! Apps say what they mean, and [`Switch`] says it in the version of the switch. What that version
//! cannot say is [`Error::Encode`] with the name of the thing.

mod actions;
mod app;
mod app_id;
mod batch;
mod confirm;
mod ended;
mod error;
mod event;
mod events;
mod flow;
mod hosts;
mod info;
mod network;
mod nowhere;
mod own_flow;
pub mod packet;
mod switch;
mod switches;
mod task;
mod template;
mod topology;
mod transaction;
mod waiting;
mod watch;

pub use actions::Actions;
pub use app::{App, DynApp, Forwards, Handler, LeftFlows, Needs, Verdict};
pub use app_id::AppId;
pub use batch::{BATCH_PACKETS, Batch, Wants};
pub use bellrock_openflow as openflow;
pub use bellrock_openflow::{
    Action, EncodeError, ErrorCode, ErrorMessage, Field, Filling, FlowCommand, FlowFlags, FlowMod,
    FlowRemoved, FlowRemovedReason, FlowStats, Instruction, MacAddr, Match, PacketInReason,
    PacketInView, Port, PortDesc, PortReason, PortStatus, PriorityBand, ReplyBody, ToSwitch,
    Version,
};
pub use confirm::{
    Answer, CHANGES_PER_SECOND, CONFIRM_WITHIN, Program, Programmed, Promise, Reply, RequestError,
    Requested, promise, time_for_changes,
};
pub use ended::{EndReason, Ended};
pub use error::{Error, HandlerError, Result};
/// What [`PacketIn::headers`] reads headers with.
pub use etherparse;
pub use event::{Event, HostGone, LinkDown, StormSign, Suspicion};
pub use events::{EVENTS_KEPT, Events, Happened, Heard, Subscription};
pub use flow::{
    BucketEntry, Change, Flow, FlowKey, GroupEntry, Loss, MeterEntry, Outcome, Refusal, ToldFlow,
    ToldForm,
};
pub use hosts::{Host, HostId, Hosts};
pub use info::{Cookie, Description, Dpid, HostEntry, ParseDpidError, SwitchInfo};
pub use network::{Extensions, Network, NetworkState, Runtime};
pub use nowhere::Nowhere;
pub use own_flow::{OWN_FLOW_AGAIN, OWN_FLOW_AGAIN_MAX, OwnFlow, RefusedFlows};
pub use packet::{PacketIn, VlanTag};
pub use switch::{Requests, Switch, Xid};
pub use switches::Switches;
pub use task::{MakeTask, NewTask, RunningTask, Sleep, TaskFuture, TaskHandle, TaskWork, TimerId};
pub use template::FlowTemplate;
pub use topology::{Link, ParseSwitchPortError, SwitchPort, Topology};
pub use transaction::{
    ATTEMPTS_PER_POLL, Abort, Early, Interrupt, MAX_ATTEMPTS, TVar, Transaction, TransactionError,
    atomically, try_atomically,
};
pub use watch::{Published, Reader, Snapshot, Watch};
