//! The two ends of a connection, without a socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

mod common;
mod conversation;
mod errors;
mod keepalive;
mod multipart;
mod negotiation;
mod raw;
mod roles;
mod silence;
