//! Both ends of one OpenFlow connection, without a socket.
//!
//! # What it is
//! [`ControllerSession`] is the controller's end of a connection, [`SwitchSession`] the switch's
//! end. [`RawSession`] is the controller's end of a connection whose messages an owner gets as they
//! are. All take received bytes and the time, and return events and bytes to send:
//!
//! ```
//! use bellrock_openflow::Out;
//! use bellrock_session::{
//!     ControllerSession, SessionEvent, SessionSettings, SwitchDescription, SwitchSession, Versions,
//! };
//! use std::time::Duration;
//!
//! let now = Duration::ZERO;
//! let (mut up, mut down) = (Out::with_capacity(4096), Out::with_capacity(4096));
//! let mut switch = SwitchSession::new(SwitchDescription::new(0x1), Versions::ALL, &mut up)?;
//! let mut controller = ControllerSession::new(&SessionSettings::default(), now, &mut down)?;
//! while !controller.is_ready() {
//!     let mut bytes = down.as_slice();
//!     while let Some((used, _event)) = switch.next(bytes, &mut up)? {
//!         bytes = &bytes[used..];
//!     }
//!     down.clear();
//!     let mut bytes = up.as_slice();
//!     controller.received(now);
//!     while let Some((used, _event)) = controller.next(bytes, now, &mut down)? {
//!         bytes = &bytes[used..];
//!     }
//!     up.clear();
//! }
//! assert_eq!(controller.take_switch().map(|switch| switch.datapath_id), Some(0x1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it is not
//! It has no socket, thread, clock or logger. Time is a [`Duration`](std::time::Duration) since a
//! start that the caller chooses, and never goes back. It keeps no received bytes: the caller
//! passes the bytes that [`ControllerSession::next`] has not consumed again, with more behind them.
//! (The only exception: it joins multipart replies of several parts.)
//!
//! # Who calls it
//! Workers hold a `ControllerSession` for each connection. The emulator and the load generator hold
//! a `SwitchSession`. Both ends are in one crate so that each is tested against the other.
//!
//! `docs/adr/0004-session-without-io.md` gives the reasons.

mod close;
mod controller;
mod description;
mod event;
mod hello;
mod raw;
mod requests;
mod settings;
pub mod switch;

pub use bellrock_openflow::Versions;
pub use bellrock_openflow::xid;
pub use close::CloseReason;
pub use controller::{ControllerSession, PACKET_WAIT, PendingRequests};
pub use description::{MAX_PORTS, MissingReply, SwitchDescription};
pub use event::{SessionCounters, SessionEvent};
pub use hello::{MAX_FIRST_MESSAGE_BYTES, PeerVersions};
pub use raw::{RawSession, RawSessionEvent};
pub use requests::{CompleteReply, RequestRejected};
pub use settings::{FirstRole, SessionSettings};
pub use switch::SwitchSession;
