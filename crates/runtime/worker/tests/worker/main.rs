//! The worker, with switches played by the tests and a virtual clock. One program, since each one
//! is linked by itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

mod adopt;
mod allowed;
mod answers;
mod chain;
mod confirm;
mod connection_events;
mod connections;
mod dispatch;
mod faults;
mod guard;
mod hand_over;
mod known;
mod lab;
mod learning;
mod raw;
mod role_terms;
mod roles;
mod shares;
mod silence;
mod tasks;
mod turns;
mod watched;
