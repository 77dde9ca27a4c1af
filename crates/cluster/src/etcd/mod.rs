//! A client of etcd (3.4 or later) over its JSON gateway.
//!
//! - [`Client::read`] reads all entries under a prefix, in pages of one revision.
//! - [`Client::transact`] changes several keys at once if its compares hold; [`Client::write_each`]
//!   writes many independent keys in few requests.
//! - [`Client::watch`] follows changes from a revision on, from member to member.
//! - [`Client::grant_lease`] and its neighbours keep keys for as long as this node lives.
//!
//! # Deadlines
//! Every attempt has a short time limit ([`limits::ATTEMPT`]). A member that is silent, refuses or
//! has no leader is left for the next address, until the time of the whole operation
//! ([`limits::TOTAL`]) is over. The address that answered last is asked first.
//!
//! # Writes whose answer is lost
//! etcd may have executed such a write, or may do so later. It is sent again only if executing it
//! twice is the same as once: a transaction that changes a key and compares its revision
//! ([`Transaction::unchanged`]). The second fails, and the client then reads what became of the
//! first. Others are never sent again. What cannot be found out is [`Outcome::Unknown`].
//!
//! One thing compares cannot prevent: a key that was created (compared with revision 0), and then
//! deleted by somebody, can be created once more by a lost request that was on its way for longer
//! than all of that. Values therefore say whose and of when they are.
//!
//! # Trust
//! Each answer names its cluster, and answers to reads and writes have revisions that only grow. An
//! answer of another cluster is an error ([`Error::OtherCluster`]). A revision that went back is
//! one for all later operations, too ([`Error::WentBack`]): an old snapshot was restored, and what
//! this node knows is wrong. (A snapshot that was restored *and* written to until it had as many
//! revisions cannot be noticed by them.)
//!
//! Plain HTTP to another machine must be asked for. The gateway is a client of its own etcd: with
//! `--client-cert-auth`, etcd's certificate needs the extended key usage of clients, too. The
//! gateway never uses the name in a client's certificate as user; users need a password.
//!
//! # What it is not
//! It decides nothing, and stores nothing. It needs a runtime of tokio with time and I/O, in a
//! thread that is not a worker's.

mod answers;
mod client;
mod endpoint;
mod error;
mod history;
mod lease;
pub mod limits;
mod read;
mod requests;
mod settings;
mod transaction;
mod watch;
mod writes;

pub use client::{Client, Member};
pub use error::Error;
pub use lease::LeaseId;
pub use read::{Entry, Snapshot};
pub use settings::{Settings, SettingsError, TlsFiles, User};
pub use transaction::{Compare, Operation, Outcome, Transaction, Write};
pub use watch::{Change, ReadNeeded, Watch, WatchEvent};
