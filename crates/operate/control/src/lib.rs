//! The control socket: requests to a running controller, over a Unix socket.
//!
//! A client connects, sends one line of JSON, and gets one line back ([`message`]). Then the
//! controller closes the connection. The requests and answers are those of `bellrock-query`. The
//! file system decides access: only the owner of the socket can open it.
//!
//! # What it is not
//! It answers nothing itself: an [`Operator`](bellrock_query::Operator) does. Controllers start a
//! [`Server`]; the command, and any other program that asks, use a [`Client`].

mod client;
pub mod message;
mod path;
mod server;
#[cfg(test)]
mod tests;

pub use client::{AskError, Client};
pub use message::MAX_REQUEST_BYTES;
pub use path::default_path;
pub use server::{CLIENT_TIMEOUT, MAX_CLIENTS, Server, ServerError};

/// A new directory for a test.
#[cfg(test)]
fn test_directory(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("bellrock-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}
