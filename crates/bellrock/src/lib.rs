//! Bellrock, an OpenFlow controller: the library for authors of apps.
//!
//! An app is a factory of handlers, one for each switch that connects ([`App`], [`Handler`]). The
//! types that an app uses come from `bellrock-api`, and [`prelude`] has them all. [`run`] runs a
//! controller with one app. [`Controller::builder`] takes several apps, and all settings:
//!
//! ```no_run
#![doc = include_str!("../../../examples/hub.rs")]
//! ```
//!
//! | To | see |
//! |---|---|
//! | react to events | [`App`], [`Handler`], [`per_switch`], [`Switch`], [`PacketIn`], [`Verdict`] |
//! | say what a flow matches and does | [`Flow`], [`Match`], [`Action`], [`Actions`]; [`FlowMod`] borrows |
//! | keep flows in switches | [`Desired`], [`DesiredEntry`]; once, confirmed: [`Plan`], [`FlowProgramming`] |
//! | know the network | [`Network`], [`Topology`], [`Hosts`], [`services::paths`] |
//! | wait for a change | [`Watch`], [`either`], [`Network::sleep`], [`Network::spawn`] |
//! | change variables together | [`TVar`], [`atomically`] |
//!
//! The feature `lab` has `lab::Lab`, which tests apps on emulated networks and a virtual clock. The
//! feature `apps` has Bellrock's apps, for chains with your own.
//!
//! What only runtimes call is the module `runtime` of `bellrock_api`, which is private here:
//!
//! ```compile_fail,E0603
//! use bellrock::runtime::Runtime;
//! ```
//!
//! # What it is not
//! The command `bellrock`, for operators, is the crate `bellrock-cli`, a client of this one.

#[expect(
    hidden_glob_reexports,
    unused_imports,
    reason = "what only runtimes call is not for apps"
)]
use bellrock_api::runtime;
pub use bellrock_api::*;
/// What runtimes and services use. Apps hardly need it.
#[doc(hidden)]
pub use bellrock_api::{AppGuard, Backoff, OwnFlow, RateLimit, RefusedFlows, Repeats};
#[cfg(feature = "apps")]
pub use bellrock_apps as apps;
#[cfg(feature = "cluster")]
pub use bellrock_cluster as cluster;
#[cfg(feature = "config")]
pub use bellrock_config as config;
pub use bellrock_engine::{EngineSettings, IdleMode, Limits, Pinning, StartError, WriteMode};
#[cfg(feature = "http")]
pub use bellrock_northbound as http;
#[cfg(feature = "control")]
pub use bellrock_query as query;
pub use bellrock_services as services;
pub use bellrock_services::desired::{Desired, DesiredEntry, DesiredFlows};
pub use bellrock_services::programming::{FlowProgramming, Plan};
pub use controller::{Controller, ControllerBuilder, run};
#[cfg(feature = "control")]
pub use file_store::FileStoreError;
#[cfg(feature = "control")]
pub use handles::NamesHandle;
#[cfg(feature = "tls")]
pub use handles::TlsHandle;
pub use handles::{LimitsHandle, Liveness};
pub use log::log_to_stderr;
#[cfg(feature = "control")]
pub use operator::{ReloadFn, StaticStore, StaticStoreError};
pub use per_switch::{PerSwitch, per_switch};
pub use run_error::{Result, RunError};
pub use signals::{Signal, Signals};

mod allow;
#[cfg(all(feature = "cluster", feature = "control"))]
mod cluster_node;
#[cfg(feature = "cluster")]
mod cluster_start;
#[cfg(feature = "config")]
pub mod configured;
mod control_place;
mod controller;
mod event_log;
#[cfg(feature = "tls")]
mod expiry_log;
#[cfg(feature = "control")]
mod file_store;
mod handles;
#[cfg(feature = "http")]
mod http_face;
#[cfg(feature = "lab")]
pub mod lab;
mod log;
mod once;
#[cfg(feature = "control")]
mod operator;
mod per_switch;
#[cfg(feature = "tls")]
mod pin_file;
#[cfg(feature = "control")]
mod port_watch;
mod raw;
mod run_error;
mod signals;
#[cfg(any(feature = "control", feature = "tls"))]
mod state_file;
#[cfg(feature = "control")]
mod table_log;
#[cfg(feature = "config")]
mod threaded_file_store;

/// TLS towards switches: certificates, and the datapath ids that they speak for (feature `tls`).
#[cfg(feature = "tls")]
pub mod tls {
    pub use crate::pin_file::{PinFileError, identities_with_file};
    pub use bellrock_engine::{
        Identities, IdentityMap, MAX_PINS, MAX_PINS_PER_KEY, Pin, Pins, PinsChanged, TlsFileError,
        TlsFiles, TlsServer, TlsSettings, UnnamedIdentity,
    };
}

/// Everything that most apps name: `use bellrock::prelude::*`.
pub mod prelude {
    pub use crate::per_switch;
    pub use bellrock_api::{
        Abort, Action, Actions, App, Batch, Cookie, Dpid, Error, ErrorCode, ErrorMessage, Field,
        FlowMod, FlowRemoved, FlowTemplate, Handler, HandlerError, HostEntry, Instruction,
        Interrupt, MacAddr, Match, Network, PacketIn, Port, PortStatus, Publisher, ReplyBody,
        Result, Switch, SwitchInfo, TVar, ToSwitch, Transaction, Verdict, Version, Watch, Xid,
        atomically, try_atomically,
    };
    pub use bellrock_api::{EarlierFlows, Flow, FlowStats};
    pub use bellrock_services::desired::{Desired, DesiredEntry, DesiredFlows};
    pub use bellrock_services::programming::{FlowProgramming, Plan};
}
