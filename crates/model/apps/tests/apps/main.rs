//! The apps, each under the events and packets of a test, in the emulator, or both.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

mod adopt;
mod any_packet;
mod bandwidth;
mod bandwidth_failures;
mod chain;
mod circuit_ends;
mod global_learning;
mod global_restart;
mod hostile_apps;
mod hub;
mod known;
mod lab;
mod learning;
mod left_flows;
mod matches;
#[path = "../../../../../vectors/odd/flows.rs"]
mod odd;
mod outside_loops;
mod provisioning;
mod quarantine;
mod questions;
mod reserving;
mod routing;
mod routing_failures;
mod routing_faults;
mod routing_restart;
mod scenarios;
#[path = "../seeds/mod.rs"]
mod seeds;
mod segments;
mod static_entries;
mod stored_circuits;
mod storm;
