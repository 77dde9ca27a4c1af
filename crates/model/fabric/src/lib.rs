//! The fabric: a network that is declared in one file. This crate reads the file and makes an
//! [`Intent`] of it.
//!
//! # What it is
//! - [`read()`] reads Faucet's `faucet.yaml` unchanged, with the files that it includes. It knows
//!   all keys of Faucet 1.10.12 ([`keys`]), and refuses what Faucet refuses. It reports as many
//!   problems as it finds, each with file, line, column, what is wrong and what would be right.
//! - [`Intent`] is the result: switches, ports, VLANs, ACLs, meters, routers and the stack, typed,
//!   with all references resolved. Each item keeps its [`Place`].
//! - [`Intent::unsupported`] lists the keys that Bellrock reads but does not carry out yet, so that
//!   they are refused by name.
//!
//! # What it is not
//! It does no I/O, has no clock and no threads: texts of files come through [`Files`]. It does not
//! know switches: from an intent to flows is the compiler's affair.
//!
//! # Where it differs from Faucet
//! docs/adr/0045 has the list. Where Faucet ignores something in silence, there is a warning. Where
//! it would send a switch a cut number or crash, there is a problem.

mod files;
pub mod intent;
pub mod keys;
mod place;
mod read;
mod yaml;

pub use files::Files;
pub use intent::Intent;
pub use place::{MAX_PROBLEMS, Place, Problem, Problems, ReadFile};
pub use read::{Declared, read};
