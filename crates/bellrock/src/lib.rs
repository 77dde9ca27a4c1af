//! Bellrock, an OpenFlow controller: the library for authors of apps.
//!
//! An app is a factory of handlers, one for each switch that connects ([`App`], [`Handler`]). The
//! names of most apps are here and in [`prelude`], all others in modules by subject. [`run`] runs
//! a controller with one app. [`Controller::builder`] takes several apps, and all settings:
//!
//! ```no_run
#![doc = include_str!("../../../examples/hub.rs")]
//! ```
//!
//! | To | see |
//! |---|---|
//! | react to events | [`App`], [`Handler`], [`per_switch`], [`Switch`], [`PacketIn`], [`Verdict`]; [`app`] |
//! | say what a flow matches and does | [`Flow`], [`Match`], [`Action`], [`Actions`]; [`FlowMod`] borrows; [`flow`] |
//! | keep flows in switches | [`Desired`], [`DesiredEntry`]; once, confirmed: [`Plan`], [`FlowProgramming`] |
//! | know the network | [`Network`], [`network::Topology`], [`network::Hosts`], [`services::paths`]; [`network`] |
//! | read and build packets | [`PacketIn`], [`packet`] |
//! | report what happened | [`Event`], [`AppEvent`]; [`event`] |
//! | wait for a change | [`Watch`], [`either`], [`Network::sleep`], [`Network::spawn`] |
//! | change variables together | [`TVar`], [`atomically`]; [`mod@transaction`] |
//! | be one of several controllers | [`Scope`], [`role`] |
//!
//! The feature `lab` has `lab::Lab`, which tests apps on emulated networks and a virtual clock. The
//! feature `apps` has Bellrock's apps, for chains with your own.
//!
//! # The book
//! It explains what is only described here. These links lead to the sources that this crate is
//! built from:
//!
#![doc = concat!("- [Write an app](file://", env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/guide/write-an-app.md): start here")]
#![doc = concat!("- [Test an app](file://", env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/guide/test-an-app.md)")]
#![doc = concat!("- [Program flows](file://", env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/guide/program-flows.md): at once, confirmed, or kept")]
#![doc = concat!("- [Rewrite and answer packets](file://", env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/guide/rewrite-and-answer.md)")]
#![doc = concat!("- [From Ryu or POX](file://", env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/guide/from-ryu-or-pox.md)")]
#![doc = concat!("- [All pages](file://", env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/SUMMARY.md)")]
//!
//! What only runtimes and services use is in `bellrock_api`, and not here:
//!
//! ```compile_fail,E0432
//! use bellrock::runtime::Runtime;
//! ```
//!
//! # What it is not
//! The command `bellrock`, for operators, is the crate `bellrock-cli`, a client of this one.

/// Header parser of [`PacketIn::headers`].
pub use bellrock_api::etherparse;
pub use bellrock_api::{counters, openflow};
#[cfg(feature = "apps")]
pub use bellrock_apps as apps;
pub use bellrock_book as book;
#[cfg(feature = "cluster")]
pub use bellrock_cluster as cluster;
#[cfg(feature = "http")]
pub use bellrock_northbound as http;
#[cfg(feature = "control")]
pub use bellrock_query as query;
pub use bellrock_services as services;
pub use controller::{Controller, ControllerBuilder, run};
pub use log::log_to_stderr;
#[doc(inline)]
pub use modules::common::*;
#[cfg(feature = "tls")]
pub use modules::tls;
pub use modules::{
    app, encoded, event, flow, names, network, packet, raw, role, settings, transaction,
};
pub use run_error::{Result, RunError};
pub use signals::{Signal, Signals};

mod allow;
#[cfg(all(feature = "cluster", feature = "control"))]
mod cluster_node;
#[cfg(feature = "cluster")]
mod cluster_start;
mod control_place;
mod controller;
mod event_log;
#[cfg(feature = "tls")]
mod expiry_log;
mod handles;
#[cfg(feature = "http")]
mod http_face;
#[cfg(feature = "lab")]
pub mod lab;
mod log;
mod modules;
mod once;
mod per_switch;
#[cfg(feature = "tls")]
mod pin_file;
#[cfg(feature = "control")]
mod port_watch;
mod raw_owner;
mod run_error;
mod signals;
#[cfg(feature = "control")]
mod table_log;

/// Everything that most apps name: `use bellrock::prelude::*`.
pub mod prelude {
    #[doc(no_inline)]
    pub use crate::modules::common::*;
}
