//! Questions about a network: reachability, the paths that packets would take and took, the flows
//! in tables, the messages that were sent.
//!
//! - [`Reachability`]: by traffic. Hosts ping; the matrix shows which pings were answered.
//! - [`Analysis`]: without traffic. It follows a packet through copies of the switches' tables, and
//!   reports loops, black holes and paths.
//! - [`paths`] and [`duplicates`]: what happened to packets that were sent.
//! - [`dump_flows`], [`dump_groups`]: flow tables and groups as text.
//! - [`MessageLog`]: messages between switches and controllers.
//!
//! # What it is not
//! Only its pings change the network. It judges by what a host or an operator can see, not by what
//! an app intended.

mod analysis;
mod delivery;
mod reachability;
#[cfg(test)]
mod tests;
mod text;

pub use crate::network::{LoggedMessage, MAX_KEPT_BYTES, MessageDirection, MessageLog};
pub use analysis::{Analysis, MAX_LOOPS, MAX_STEPS, PathFault, StepOutcome, Trace, TraceStep};
pub use delivery::{duplicates, paths};
pub use reachability::{Matrix, Reachability};
pub use text::{dump_flows, dump_groups, dump_table};
