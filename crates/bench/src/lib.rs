//! The load generator: what a controller can do, measured from outside.
//!
//! # What it is
//! It plays up to 10,000 switches ([`Load`]) towards any controller, on either version of OpenFlow,
//! sends packet_ins that are built beforehand, verifies every answer ([`Tally`] has what that
//! means), and says how fast, how late, how fairly and at what cost they came ([`Report`]). The
//! [`responder`] answers the same load with the minimum of work that passes the verification: what the
//! kernel's TCP allows on a machine.
//!
//! The field measures with cbench (2010). What it gets right is kept: the packet_in of 82 bytes, the
//! destination that is known before the test, its modes. What it gets wrong is not: it never looks
//! at `buffer_id` or match, so that a controller that answers twice looks twice as fast; it leaves
//! Nagle's algorithm on; it spins; its buffer grows without end against a slow reader.
//!
//! [`targets`] measures what this project's engine has to reach, row by row, and [`callgrind`] counts user
//! instructions for it and for tests.
//!
//! # What it is not
//! It knows nothing of the controller that it measures: of this workspace it uses the codec and the
//! switch's end of the session.
//!
//! # Who calls it
//! The command's `bellrock bench`, and tests. `docs/adr/0006-load-generator.md` explains why it is
//! built so.
//!
//! # How it goes
//! [`run`] leads: it starts threads, each with some of the switches, and takes them through the
//! phases of a test. A thread (`driver`) gives its switches turns of one read and one write. What is
//! sent is a pure function of a number ([`draw`]), written by patching ([`packet`]); what comes is
//! compared with what a right answer would look like (`verify`).
//!
//! [`suite`] repeats the studies' experiments on top of it, with controllers in turn ([`peer`]), draws
//! what it finds ([`plot`]), and puts beside it what they published ([`published`]).

pub mod callgrind;
mod compare;
mod control;
pub mod draw;
mod driver;
mod error;
mod lead;
mod load;
pub mod packet;
pub mod peer;
pub mod plot;
mod poller;
mod print;
mod process;
pub mod published;
mod report;
pub mod responder;
pub mod suite;
pub mod targets;
mod threads;
mod usage;
mod verify;
mod window;

pub use compare::{Comparison, ENOUGH_PAIRS, Side, alternate};
pub use error::{BenchError, LoadError};
pub use lead::{Progress, Step, Watch, run};
pub use load::{
    Cores, Destinations, Load, MAX_DPID, MAX_IN_FLIGHT, MAX_IN_FLIGHT_TOTAL, MAX_MACS,
    MAX_SWITCHES, MAX_THREADS, Mode, Order,
};
pub use process::{Controller, free_address};
pub use report::{
    Bound, Energy, Fairness, Latency, Little, LoadSummary, Report, Run, Spread, Summary,
};
pub use responder::{Idle, Responder, ResponderSettings};
pub use usage::{ProcessUse, Reads};
pub use verify::{Matched, Tally};
