//! The fabric: a network that is declared in one file. This crate reads the file, makes an
//! [`Intent`] of it, and compiles that to the flows of each switch.
//!
//! # What it is
//! - [`read()`] reads Faucet's `faucet.yaml` unchanged, with the files that it includes. It knows
//!   all keys of Faucet 1.10.12 ([`keys`]), and refuses what Faucet refuses. It reports as many
//!   problems as it finds, each with file, line, column, what is wrong and what would be right.
//! - [`Intent`] is the result: switches, ports, VLANs, ACLs, meters, routers and the stack, typed,
//!   with all references resolved. Each item keeps its [`Place`].
//! - [`Intent::unsupported`] lists the keys that Bellrock reads but does not carry out yet, so that
//!   they are refused by name.
//! - [`compile()`] makes the tables of a switch of an intent and of [`compile::Facts`]: what the
//!   switch can, which ports are up, which hosts were learned. Everything in the tables has an
//!   [`compile::Owner`], and a changed fact compiles its owners only.
//! - [`diff()`] orders the changes from one state of the tables to another, such that packets of
//!   others pass all the while.
//! - [`check()`] follows packets through compiled tables, before they are installed, and returns
//!   those that go where the intent does not want them.
//!
//! # What it is not
//! It does no I/O, has no clock and no threads: texts of files come through [`Files`], facts and
//! time from an app, which also sends what [`diff()`] returns.
//!
//! # Where it differs from Faucet
//! docs/adr/0046 has the list for the file, docs/book/src/internals/fabric.md that for the tables.
//! Where Faucet ignores something in silence, there is a warning. Where it would send a switch a
//! cut number or crash, there is a problem.

pub mod check;
pub mod compile;
pub mod diff;
mod files;
pub mod intent;
pub mod keys;
mod place;
mod read;
mod yaml;

pub use check::check;
pub use compile::{Compiler, Facts, Tables, compile};
pub use diff::{Plan, diff};
pub use files::Files;
pub use intent::Intent;
pub use place::{MAX_PROBLEMS, Place, Problem, Problems, ReadFile};
pub use read::{Declared, read};
