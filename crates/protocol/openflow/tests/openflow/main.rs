//! The codec against vectors, generated messages, and what cannot be written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

mod capabilities;
mod common;
mod errors;
mod round_trip;
mod unwritable;
mod vectors;
