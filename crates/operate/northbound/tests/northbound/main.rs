//! The REST interface, its stream, its metrics and its page, by HTTP on the loopback interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

mod client;
mod limits;
mod metrics;
mod page;
mod rest;
mod stream;
