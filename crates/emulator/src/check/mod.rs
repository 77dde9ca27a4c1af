//! Questions that anybody may ask of a network: who reaches whom, where packets would go and where
//! they went, what stands in flow tables, what was said.
//!
//! - [`Reachability`]: by traffic. Hosts ping, and the matrix says whose pings were answered.
//! - [`Analysis`]: without traffic. A packet is led through copies of the switches' tables, and
//!   loops, black holes and paths come out.
//! - [`paths`] and [`duplicates`]: what packets did that were sent.
//! - [`dump_flows`]: flow tables as text.
//! - [`MessageLog`]: messages between switches and controllers.
//!
//! # What it is not
//! It changes nothing but by the traffic of pings, and it judges by what a host or an operator could
//! see, not by what an app meant to do.

mod analysis;
mod delivery;
mod reachability;
#[cfg(test)]
mod tests;
mod text;

pub use crate::network::{LoggedMessage, MAX_KEPT_BYTES, MessageLog, Way};
pub use analysis::{Analysis, Finding, MAX_LOOPS, MAX_STEPS, Outcome, Step, Trace};
pub use delivery::{duplicates, paths};
pub use reachability::{Matrix, Reachability};
pub use text::{dump_flows, dump_table};
