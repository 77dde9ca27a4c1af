//! What several crates need of TLS.
//!
//! - [`files`] reads certificates, keys and lists of revocations in PEM. Its errors name the file,
//!   and what it should have.
//! - [`switch_config`] makes the switch's end: of emulated switches, and of the load generator.
//! - [`unbuffered`] takes messages of TLS itself out of a session that has no buffers of its own.
//!
//! # What it is not
//! It has no socket, no thread and no session: its users read, write and decide. Which certificates
//! a controller accepts is the engine's and the HTTP server's business.

pub mod files;
mod switch;
pub mod unbuffered;

pub use files::TlsFileError;
pub use switch::{controller_name, switch_config};
