//! The client of etcd against real members of etcd (`scripts/tools` installs it).
//!
//! Each test starts members of its own. What is waited for has a generous time limit; nothing is
//! measured.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of a test fail it by panicking"
)]
#![allow(unreachable_pub, reason = "parts of a test")]

mod access;
mod books;
mod data;
mod faults;
mod pki;
mod servers;
mod stores;
mod watching;
