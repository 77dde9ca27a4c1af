//! One worker of the controller: it owns a set of switches, and handles all their events.
//!
//! A [`Worker`] holds the sessions of its switches, the apps' handlers for each of them, their
//! timers, and a bounded mailbox through which other workers reach its switches. Its caller reports
//! that bytes have arrived ([`Worker::read`]), that time has passed ([`Worker::timers`]) and that
//! mail is there ([`Worker::mail`]). It writes to a [`Transport`].
//!
//! A [`RawWorker`] gives all messages of its switches to one owner instead, as they are. The caller
//! treats both alike ([`Drive`]).
//!
//! They have no thread, no socket and no clock: crate `engine` provides them, and tests provide
//! virtual ones. All dispatch is in this crate.

mod activity;
mod admission;
mod allowed;
mod asker;
mod balance;
mod budget;
mod clean;
mod closing;
mod confirm;
mod connection;
mod connection_events;
mod contend;
mod counters;
mod directory;
mod dispatch;
mod draft;
mod drive;
mod early;
mod faults;
mod flood;
mod guard;
mod hand_over;
mod handlers;
mod health;
mod limits;
mod log_budget;
mod mailbox;
mod meter;
mod port_counts;
mod queries;
mod raw;
mod removal;
mod resume;
mod roles;
mod sending;
mod settings;
mod sight;
mod standby;
mod switch_counters;
mod table_miss;
mod tasks;
mod timers;
mod transport;
mod turns;
mod worker;
mod worker_app;

pub use activity::{Activity, EventKind, HandlerCall};
pub use admission::{Admission, AdmissionError};
pub use confirm::{MIN_REQUESTS, TASKS_UNANSWERED};
pub use counters::{COUNTERS, TASK_COUNTERS, TaskCounters, WorkerCounters};
pub use directory::{AppState, MessagesSeen, SharedParts, SharedState};
pub use drive::Drive;
pub use faults::FAULT_LINES_PER_SECOND;
pub use health::{MAX_PANICS, PANIC_WINDOW};
pub use limits::{LimitError, Limits};
pub use mailbox::{AppCounter, Mailbox, SeenHost, Wake, WorkerQuery};
pub use port_counts::{MAX_PORTS_COUNTED, PortPacketIns};

pub use raw::{MAX_EARLY_BYTES, RawWorker};
pub use settings::{LOAD_WINDOW, WorkerSettings, WriteMode};
pub use switch_counters::{MAX_PAST_SWITCHES, SWITCH_COUNTERS, SwitchCounters};
pub use tasks::{ClockFn, TaskInfo, TaskState, TaskWorker};
pub use transport::{ConnectionKey, ReadOutcome, Transport};
pub use worker::Worker;
pub use worker_app::MAX_APPS;
