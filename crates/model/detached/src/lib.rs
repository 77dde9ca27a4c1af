//! Apps whose handlers run in a thread of their own, so that the workers never wait for them.
//!
//! A [`DetachedApp`] is an app of the chain. Its handlers, in the workers, only copy events into a
//! bounded [`Feed`]. Another thread takes [`Delivery`] after delivery, calls the app's real code,
//! and writes with the same [`Switch`](bellrock_api::Switch) as any other handler, by a [`Writer`].
//! What it wrote goes back to the worker, which sends it in the thread of the switch
//! ([`Handler::resume`](bellrock_api::Handler::resume)).
//!
//! # What it is not
//! It knows no language and starts no thread: crate `python` does. An app in Rust needs it only if
//! its handlers block.
//!
//! # What happens when the other thread does not keep up
//! - Packet_ins are dropped, and counted. The bytes that wait are bounded ([`MAX_PACKET_BYTES`]),
//!   and a switch may fill at most as much as is free, so that one that floods leaves space for the
//!   others.
//! - All other events have their own bound ([`MAX_EVENT_BYTES`]). A switch whose events do not fit
//!   goes down for the app, and comes up again when there is space: no event is lost unseen.
//! - Echoes, port status, other apps and other switches go on.
//! - Flows of an earlier run that the app may adopt stay until its thread has decided. Their bytes
//!   are bounded ([`MAX_ADOPT_BYTES`]); further ones are removed.

mod app;
mod doorbell;
mod event;
mod feed;
mod link;
mod writer;

pub use app::{DETACHED_COUNTERS, DetachedApp, DetachedSettings, MAX_ADOPT_BYTES, Wanted};
pub use doorbell::Doorbell;
pub use event::{Delivery, DetachedEvent};
pub use feed::{Feed, MAX_EVENT_BYTES, MAX_PACKET_BYTES};
pub use link::{MAX_WAITING_BYTES, SwitchLink};
pub use writer::{Mark, Writer};
