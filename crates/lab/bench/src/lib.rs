//! The load generator. It measures a controller from outside.
//!
//! # What it is
//! It plays up to 10,000 switches ([`Load`]) towards any controller, on either version of OpenFlow.
//! It sends packet_ins that are built beforehand and verifies every answer ([`AnswerTally`] defines
//! what that means). It reports throughput, latency, fairness and cost ([`Report`]). The
//! [`responder`] answers the same load with the minimum of work that passes verification. Its rate
//! is the limit that the kernel's TCP sets on a machine.
//!
//! cbench (2010) is the field's usual tool. The load generator keeps what is right in it: the
//! packet_in of 82 bytes, the destination that is known before the test, the modes. It avoids
//! cbench's faults: cbench never looks at `buffer_id` or match, so a controller that answers twice
//! looks twice as fast; it leaves Nagle's algorithm on; it spins; its buffer grows without limit if
//! the reader is slow.
//!
//! [`callgrind`] counts user instructions, for targets and for tests.
//!
//! # What it is not
//! It does not depend on the controller that it measures. Of this workspace it uses only the codec
//! and the switch's end of the session.
//!
//! # Who calls it
//! The command `bellrock bench`, and tests. `docs/adr/0006-load-generator.md` gives the reasons for
//! the design.
//!
//! # How it works
//! [`run`] leads a test. It starts threads, gives each a part of the switches, and takes them
//! through the phases of the test. A thread (`driver`) gives its switches turns of one read and one
//! write. Each packet is a pure function of its number ([`draw`]) and is written by patching
//! ([`packet`]). Each message received is compared with the right answer (`verify`).
//!
//! The crate `studies` repeats the experiments of the studies with it, and runs controllers in turn
//! ([`peer`]).

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
mod poller;
mod print;
mod process;
mod report;
pub mod responder;
pub mod threads;
mod tls;
mod usage;
mod verify;
mod window;

pub use bellrock_tls::TlsFileError;
pub use compare::{Comparison, ENOUGH_PAIRS, Side, alternate};
pub use error::{BenchError, LoadError};
pub use lead::{ConnectedTest, MeasuredProcess, TestProgress, TestStep, run};
pub use load::{
    Destinations, GeneratorCores, HostOrder, Load, LoadMode, MAX_DPID, MAX_IN_FLIGHT,
    MAX_IN_FLIGHT_TOTAL, MAX_MACS, MAX_SWITCHES, MAX_THREADS,
};
pub use print::Nanoseconds;
pub use process::{ControllerProcess, free_address};
pub use report::{
    EnergyReport, Fairness, LatencyReport, LittlesLaw, LoadSummary, RateBound, Report, RunReport,
    RunSummary, Spread,
};
pub use responder::{Responder, ResponderIdle, ResponderSettings};
pub use tls::LoadTls;
pub use usage::{ProcessUse, ReadCounter};
pub use verify::{AnswerTally, MatchedFields};
