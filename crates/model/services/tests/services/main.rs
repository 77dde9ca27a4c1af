//! The services, with switches and networks played by the tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

mod desired;
mod desired_commit;
mod discovery;
mod flows;
mod hosts;
mod lab;
mod needs;
mod networks;
mod not_kept;
#[path = "../../../../../vectors/odd/flows.rs"]
mod odd;
mod outdated_flows;
mod paths;
mod programming;
mod read_back;
mod topology_attacks;
mod unreported;
