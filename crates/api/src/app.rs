//! Apps and handlers.

use std::ops::ControlFlow;

use bellrock_openflow::{ErrorMessage, FlowRemoved, FlowStats, PortStatus, ReplyBody};

use crate::{Batch, Dpid, HostEntry, Network, PacketIn, Result, Switch, SwitchInfo, Xid};

/// What becomes of a packet after a handler has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The next app in the chain sees it too.
    Pass,
    /// It is dealt with.
    Consume,
}

/// What becomes of the flows that an earlier run of an app left in a switch, when the switch comes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeftFlows {
    /// They are removed before the app sees the switch: for an app that does not know what they were
    /// for.
    #[default]
    Remove,
    /// Its handler is asked about each of them before it sees anything else ([`Handler::adopt`]). Those
    /// that it does not take on are removed, one by one: for an app that can tell from a flow whether it would
    /// install it today.
    Adopt,
    /// They stay, and the app takes them on: for an app that compares what is there with what it
    /// wants, and changes the difference.
    Keep,
}

/// Which packets an app forwards. A controller checks the order of its apps by this when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwards {
    /// It is not known.
    #[default]
    Unknown,
    /// Every packet that reaches the app: apps behind it get none.
    All,
    /// The packets of some hosts or ports, as an operator requests. All others are passed on.
    Selected,
    /// None. The app only drops packets, so its flows must be above those of all others.
    Nothing,
}

bitflags::bitflags! {
    /// The network services that an app reads. Those that any app of a chain needs run in front of it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Needs: u32 {
        /// Which switches and links there are.
        const TOPOLOGY = 1 << 0;
        /// Where hosts are.
        const HOSTS = 1 << 1;
        /// Paths between switches.
        const PATHS = 1 << 2;
    }
}

/// An application: makes a handler for each switch.
///
/// What it says of itself ([`App::name`], [`App::wants_packet_ins`], [`App::needs`], [`App::left_flows`]) is asked for when
/// the controller starts, and not again. A panic there, or in [`App::start`], ends the start; no later panic of an app ends
/// the controller.
///
/// ```
/// use bellrock_api::{App, Handler, Network, PacketIn, Port, Result, Switch, SwitchInfo, Verdict};
///
/// struct Hub;
///
/// impl App for Hub {
///     type Handler = Hub;
///     fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Hub {
///         Hub
///     }
/// }
///
/// impl Handler for Hub {
///     fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) -> Result<Verdict> {
///         switch.packet_out(packet, Port::FLOOD)?;
///         Ok(Verdict::Consume)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no app: it does not implement `App`",
    label = "an app is expected here, which makes a handler for each switch",
    note = "if `{Self}` implements `Handler`, make an app of it: `per_switch(\"name\", |_| ..)`, where `..` is the \
            handler of a new switch, as in `bellrock::run(per_switch(\"hub\", |_| Hub))`"
)]
pub trait App: Send + Sync + 'static {
    /// What it keeps of each switch.
    type Handler: Handler;

    /// Its name: in the configuration, in logs, and the origin of its flows' cookies. Two apps in
    /// a chain cannot share one.
    fn name(&self) -> &'static str {
        let name = std::any::type_name::<Self>();
        name.rsplit("::").next().unwrap_or(name)
    }

    /// Whether it wants packets that match no flow. If no app does, switches get no table-miss
    /// entry.
    fn wants_packet_ins(&self) -> bool {
        true
    }

    /// Which packets it forwards. A controller with apps in an order in which one of them could not work does
    /// not start, or warns.
    fn forwards(&self) -> Forwards {
        Forwards::Unknown
    }

    /// Which network services it reads.
    fn needs(&self) -> Needs {
        Needs::empty()
    }

    /// What becomes of the flows that an earlier run of it left in a switch.
    fn left_flows(&self) -> LeftFlows {
        LeftFlows::Remove
    }

    /// The controller starts; no switch is connected yet.
    fn start(&self, _network: &Network) {}

    /// A switch is up: its handshake is over, and the flows that an earlier run of this app left
    /// in it are removed, unless it keeps them or is to be asked about each ([`App::left_flows`]).
    ///
    /// The network knows the switch already: a task that is started here finds it
    /// ([`Network::switch`]), and may send to it at once. What a task sends goes out after what the
    /// handlers write in [`Handler::switch_up`].
    fn switch_up(&self, network: &Network, switch: &SwitchInfo) -> Self::Handler;

    /// Reports the hosts that it keeps in one place for all switches, each with its switch, for the operator, until
    /// `report` has enough. The asking thread calls it, never a worker: it may read a large table. Hosts that
    /// handlers keep are theirs to report ([`Handler::hosts`]).
    #[expect(unused_variables, reason = "the names of unused arguments are documentation")]
    fn hosts(&self, network: &Network, report: &mut dyn FnMut(Dpid, HostEntry) -> ControlFlow<()>) {
    }
}

/// What an app does at one switch. Called by one thread at a time; never blocks.
///
/// A handler that returns an error, or panics, loses what it wrote for that event; the switch and
/// the other apps go on. Both are counted and logged. An app whose handlers panic again and again, at whichever
/// switches, is disabled: it gets no more events, and its flows stay. A panic in [`Handler::hosts`],
/// [`Handler::counters`] or `Drop` counts like any other; nothing of that call is reported then.
#[expect(unused_variables, reason = "the names of unused arguments are documentation")]
pub trait Handler: Send + 'static {
    /// An earlier run of this app has left this flow in the switch: whether this one takes it on. If not, it
    /// is removed. For apps with [`LeftFlows::Adopt`]; once for each such flow, before all other
    /// events, so that what they install is not removed with what was there. Only where packet-ins wait and the
    /// switch takes more than 200 ms to report its flows is it called later, for flows that are older than the
    /// connection.
    ///
    /// Its priority is the one that the app gave. A flow that is not in the app's band, because the
    /// chain was another one, is removed without a question. So are all flows of a switch that does not tell them in time,
    /// or tells too many; but in 1.0, where they cannot be told from those of others, they stay.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]). The flow is removed.
    fn adopt(&mut self, switch: &mut Switch<'_>, flow: &FlowStats<'_>) -> Result<bool> {
        Ok(false)
    }

    /// The first event, but for [`Handler::adopt`], right after [`App::switch_up`] made the handler.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        Ok(())
    }

    /// A packet for the controller.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]). What was written for this packet is taken back, and
    /// the packet goes on to the next app.
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        Ok(Verdict::Pass)
    }

    /// Packets that arrived together, in order. The default calls [`Handler::packet_in`] for each;
    /// an app with a table larger than the cache overrides it, to hash and prefetch all keys
    /// before it looks up the first.
    fn packet_ins(&mut self, switch: &mut Switch<'_>, batch: &mut Batch<'_>) {
        batch.each(switch, self);
    }

    /// A port was added, removed or changed. [`Switch::info`] has the change already.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn port_status(&mut self, switch: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        Ok(())
    }

    /// A flow is gone. All apps see it; [`crate::Cookie::owns`] tells whose it was. An app's own flows have
    /// the priorities that it gave them; others' have those that they have in the switch.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn flow_removed(&mut self, switch: &mut Switch<'_>, flow: &FlowRemoved<'_>) -> Result<()> {
        Ok(())
    }

    /// The switch refused a message of this app, the one with this xid.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn error(&mut self, switch: &mut Switch<'_>, xid: Xid, error: &ErrorMessage<'_>) -> Result<()> {
        Ok(())
    }

    /// The answer to a multipart request of this app, all parts of it. Priorities of flows are as in
    /// [`Handler::flow_removed`].
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn reply(&mut self, switch: &mut Switch<'_>, xid: Xid, reply: &ReplyBody<'_>) -> Result<()> {
        Ok(())
    }

    /// The switch did not answer a request of this app, the one with this xid, in time, or before the barrier
    /// behind it; or it does not report its flows, so that those which were to be removed stay
    /// ([`Switch::remove`] in 1.0). If the answer still comes, nobody hears of it.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn unanswered(&mut self, switch: &mut Switch<'_>, xid: Xid) -> Result<()> {
        Ok(())
    }

    /// Everything that this app sent before the barrier with this xid is done.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn barrier(&mut self, switch: &mut Switch<'_>, xid: Xid) -> Result<()> {
        Ok(())
    }

    /// A second has passed.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        Ok(())
    }

    /// The connection is gone; nothing can be sent any more. A new connection of the same switch comes
    /// up after this.
    fn switch_down(&mut self, info: &SwitchInfo) {}

    /// Tells the hosts that it knows behind this switch, for the operator, until `report` says that it
    /// has enough.
    fn hosts(&self, report: &mut dyn FnMut(HostEntry) -> ControlFlow<()>) {}

    /// Tells its counters by name, for the operator. They only grow.
    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {}
}

/// The handler of an app that does all by tasks. Packets are the next app's.
impl Handler for () {
    fn packet_ins(&mut self, _: &mut Switch<'_>, _: &mut Batch<'_>) {}
}

/// An [`App`] without its type, as workers hold it.
pub trait DynApp: Send + Sync + 'static {
    /// See [`App::name`].
    fn name(&self) -> &'static str;
    /// See [`App::wants_packet_ins`].
    fn wants_packet_ins(&self) -> bool;
    /// See [`App::forwards`].
    fn forwards(&self) -> Forwards;
    /// See [`App::needs`].
    fn needs(&self) -> Needs;
    /// See [`App::left_flows`].
    fn left_flows(&self) -> LeftFlows;
    /// See [`App::start`].
    fn start(&self, network: &Network);
    /// See [`App::switch_up`].
    fn switch_up(&self, network: &Network, switch: &SwitchInfo) -> Box<dyn Handler>;
    /// See [`App::hosts`].
    fn hosts(&self, network: &Network, report: &mut dyn FnMut(Dpid, HostEntry) -> ControlFlow<()>);
}

impl<A: App> DynApp for A {
    fn name(&self) -> &'static str {
        App::name(self)
    }

    fn wants_packet_ins(&self) -> bool {
        App::wants_packet_ins(self)
    }

    fn forwards(&self) -> Forwards {
        App::forwards(self)
    }

    fn needs(&self) -> Needs {
        App::needs(self)
    }

    fn left_flows(&self) -> LeftFlows {
        App::left_flows(self)
    }

    fn start(&self, network: &Network) {
        App::start(self, network);
    }

    fn switch_up(&self, network: &Network, switch: &SwitchInfo) -> Box<dyn Handler> {
        Box::new(App::switch_up(self, network, switch))
    }

    fn hosts(&self, network: &Network, report: &mut dyn FnMut(Dpid, HostEntry) -> ControlFlow<()>) {
        App::hosts(self, network, report);
    }
}
