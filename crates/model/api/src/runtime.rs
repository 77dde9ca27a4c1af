//! What runtimes call, and what puts a controller together. The handlers of apps need nothing of
//! it.
//!
//! An app may use [`promise`] to answer callers of its own.

use std::fmt;
use std::time::Duration;

use bellrock_openflow::{Port, RequestKind, ToSwitch, Version};

pub use crate::app::{AllowedApp, DynApp};
pub use crate::confirm::{Changes, Program, Promise, PromiseFuture, promise};
pub use crate::empty_network::EmptyNetwork;
pub use crate::network::{Extensions, NetworkState, Runtime};
pub use crate::raw::{OWNER_GONE, RawLink, RawPort, raw_owner};
pub use crate::remote::{EncodedProgram, EncodedRequest, Remote, RemoteControl, RemoteSlot};
pub use crate::switch::Requests;
pub use crate::task::{MakeTask, NewTask, RunningTask, TaskFuture, TaskWork, TimerId};
pub use crate::term::TermControl;
use crate::{
    Cookie, Dpid, Error, Event, Events, Hosts, Match, ProgramFuture, RequestFuture, RoleOrder,
    RoleOrderFuture, Switch, Switches, Topology, Watch, Xid,
};

/// Roles of the controller at its switches, by its [`Network`](crate::Network): for what decides
/// which of several controllers is master.
///
/// A connection *stands by* while the controller is slave, or waits for its first role. Such a
/// switch is ready, but not up: apps do not see it, and nothing is sent that could change it.
pub trait RoleControl {
    /// Orders a role at a switch that is up or stands by. The future resolves to the switch's
    /// answer. Orders for one switch are carried out one after the other, whether or not a task
    /// awaits them.
    ///
    /// When the switch confirms the role of master or equal, a switch that stands by comes up, as
    /// after a connect. An order for slave takes a switch that is up down for the apps, at once if
    /// it has no generation id; the flows stay.
    ///
    /// An order holds until the next one, also on the next connection of the switch: a slave
    /// stands by, and a master requests its role again with the same generation id. An order for
    /// slave at a switch that is not connected fails, and replaces such an order all the same.
    fn set_role(&self, dpid: Dpid, order: RoleOrder) -> RoleOrderFuture;

    /// The switches that stand by, to wait for changes.
    fn standbys(&self) -> &Watch<Switches>;

    /// The switches that are connected, to wait for changes: those that are up or stand by, and
    /// those between the two. Each connection has an entry of its own: a switch that connects again
    /// has another one.
    fn connected(&self) -> &Watch<Switches>;
}

/// Messages to a switch as they are, by its [`Network`](crate::Network): for operators who know
/// what they send. Apps use [`Network::program`](crate::Network::program) and
/// [`Network::request`](crate::Network::request).
pub trait RawMessages {
    /// Sends encoded messages of the switch's version, each whole, followed by a barrier. None of
    /// them may expect a reply. Their transaction ids are replaced. The future resolves to one
    /// outcome for each message.
    fn send_messages(&self, dpid: Dpid, messages: Vec<Box<[u8]>>) -> ProgramFuture;

    /// Sends a request of any kind, and returns a future that waits for the reply. An
    /// experimenter's message counts as a request. A message that expects no reply is not sent
    /// ([`Error::NotARequest`]).
    fn send_request(&self, dpid: Dpid, request: &ToSwitch<'_>) -> RequestFuture;
}

/// Publishes the controller's own events: for runtimes, services, and the apps that come with
/// Bellrock. Other apps publish events of their own
/// ([`Network::publish`](crate::Network::publish)), so that no app can report what did not happen
/// in the network.
pub trait EventPublisher {
    /// Publishes an event that happened at `at` on the controller's clock.
    fn publish(&self, at: Duration, event: Event);
}

impl EventPublisher for Events {
    fn publish(&self, at: Duration, event: Event) {
        self.record(at, event);
    }
}

/// What a runtime does with the [`Switch`] of an event.
pub trait SwitchControl {
    /// Discards what was written since the buffer had this length.
    fn undo_to(&mut self, mark: usize);

    /// Appends whole messages that were written elsewhere by a [`Switch`] of the same app and
    /// version, and what was expected for them. Their transaction ids stay, except those of the
    /// session. Returns the transaction ids of requests that are not sent, as too many wait for
    /// answers.
    ///
    /// # Errors
    /// [`EncodeError::Full`](crate::EncodeError::Full). Then nothing is appended.
    fn append(&mut self, messages: &[u8], expected: &[Expected]) -> Result<Vec<Xid>, Error>;
}

/// What was expected for a message that a [`Switch`] wrote: the calls of its [`Requests`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// See [`Requests::expect_answer`].
    Answer {
        /// Transaction id of the request.
        xid: u32,
        /// Its kind.
        kind: RequestKind,
    },
    /// See [`Requests::expect_overtaken`].
    Overtaken {
        /// Transaction id of the request.
        request: u32,
        /// Transaction id of the barrier behind it.
        barrier: u32,
    },
    /// See [`Requests::expect_removal`].
    Removal {
        /// Transaction id of the request.
        xid: u32,
        /// Cookies of the flows to remove.
        cookie: Cookie,
        /// The port that they send to.
        out_port: Port,
    },
    /// See [`Requests::allow`].
    Allowed {
        /// The packets.
        matching: Box<Match>,
        /// Time of the controller's clock at which it ends.
        until: Duration,
    },
}

/// What a runtime does with a [`Batch`](crate::Batch) of packets in a stream.
pub trait BatchControl<'b> {
    /// Sets the version of the packets that follow.
    fn begin(&mut self, version: Version);

    /// Adds packet_ins of the stream from `start` on. Stops at the first message of another type, a
    /// packet_in of an uncommon form ([`PacketInView::common`](crate::PacketInView::common)), or
    /// one that does not end within `max_bytes`. Returns where it stopped.
    fn fill(&mut self, start: usize, max_bytes: usize) -> usize;

    /// Adds one packet_in of this batch's version, in any form. The caller checks
    /// [`Batch::is_full`](crate::Batch::is_full) first: one packet too many is lost.
    fn push(&mut self, message: &'b [u8]);

    /// Removes all packets.
    fn clear(&mut self);

    /// Starts the next handler of the chain, at the first packet passed on to it.
    fn rewind(&mut self, switch: &Switch<'_>);

    /// Cleans up after a panic of the handler at its current packet of
    /// [`Batch::for_each`](crate::Batch::for_each). Discards the messages written for that packet;
    /// no other handler sees it.
    fn abandon_current(&mut self, switch: &mut Switch<'_>);
}

/// The chain of a controller: its services and apps, and what the services publish of the network.
///
/// A chain is made before the runtime starts. Its maker gives the [`Publisher`](crate::Publisher)s
/// to the services, so no app can reach them.
pub struct Chain {
    /// Services and apps, in order.
    pub apps: Vec<Box<dyn DynApp>>,
    /// Switches and links. Discovery publishes them.
    pub topology: Watch<Topology>,
    /// Hosts. Host tracking publishes them.
    pub hosts: Watch<Hosts>,
}

impl Chain {
    /// A chain of only this app, without services.
    #[must_use]
    pub fn of_app(app: impl DynApp) -> Self {
        Chain::from(vec![Box::new(app) as Box<dyn DynApp>])
    }
}

/// A chain without services: topology and hosts stay empty.
impl From<Vec<Box<dyn DynApp>>> for Chain {
    fn from(apps: Vec<Box<dyn DynApp>>) -> Self {
        Chain { apps, topology: Watch::default(), hosts: Watch::default() }
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.apps.iter().map(|app| app.name())).finish()
    }
}
