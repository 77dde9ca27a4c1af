//! One worker of the controller: it owns a set of switches, and handles all their events.
//!
//! A [`WorkerOf`] holds the connections of its switches, their timers, and a bounded mailbox
//! through which other workers reach its switches. Its caller reports that bytes have arrived
//! ([`Drive::read`]), that time has passed ([`Drive::timers`]) and that mail is there
//! ([`Drive::mail`]). It writes to a [`Transport`].
//!
//! A [`Worker`] passes what comes to the handlers of the apps. A [`RawWorker`] gives all messages
//! to one owner instead, as they are. So the crate has three parts: `connection` is what both are
//! made of, `apps` and `raw` are the two.
//!
//! They have no thread, no socket and no clock: crate `engine` provides them, and tests provide
//! virtual ones. All dispatch is in this crate.

mod activity;
mod admission;
mod apps;
mod balance;
mod connection;
mod counters;
mod directory;
mod draft;
mod guard;
mod health;
mod limits;
mod log_budget;
mod mailbox;
mod port_counts;
mod raw;
mod settings;
mod switch_counters;
mod tasks;
mod transport;

pub use activity::{Activity, EventKind, HandlerCall};
pub use admission::{Admission, AdmissionError};
pub use apps::{Apps, FAULT_LINES_PER_SECOND, MAX_APPS, MIN_REQUESTS, TASKS_UNANSWERED, Worker};
pub use connection::{Drive, WorkerOf};
pub use counters::{COUNTERS, TASK_COUNTERS, TaskCounters, WorkerCounters};
pub use directory::{AppState, MessagesSeen, SharedParts, SharedState};
pub use health::{MAX_PANICS, PANIC_WINDOW};
pub use limits::{LimitError, Limits};
pub use mailbox::{AppCounter, Mailbox, SeenHost, Wake, WorkerQuery};
pub use port_counts::{MAX_PORTS_COUNTED, PortPacketIns};
pub use raw::{Raw, RawWorker};
pub use settings::{LOAD_WINDOW, MAX_EARLY_BYTES, WorkerSettings, WriteMode};
pub use switch_counters::{MAX_PAST_SWITCHES, SWITCH_COUNTERS, SwitchCounters};
pub use tasks::{ClockFn, TaskInfo, TaskState, TaskWorker};
pub use transport::{ConnectionKey, ReadOutcome, Transport};
