//! Apps and handlers.

use std::ops::ControlFlow;

use bellrock_openflow::{ErrorMessage, FlowRemoved, FlowStats, FromSwitch, PortStatus, ReplyBody};

use crate::intern::intern;
use crate::{
    Allowance, Batch, Dpid, HostEntry, Match, Network, PacketIn, Result, Switch, SwitchInfo, Xid,
};

/// Maximum number of matches that an app may see ([`App::sees`]): each is a flow in every switch.
pub const MAX_SEEN: usize = 64;

/// Whether the next app sees a packet that a handler has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The next app in the chain sees the packet too.
    Pass,
    /// The packet is handled. No later app sees it.
    Consume,
}

/// What happens to the flows of an app's earlier run when the switch comes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlierFlows {
    /// They are removed before the app sees the switch. For apps that do not know what the flows
    /// were for.
    #[default]
    Remove,
    /// [`Handler::adopt`] is called for each flow, before all other events. Flows that it does not
    /// accept are removed one by one. For apps that can decide from a flow whether they would
    /// install it today.
    Adopt,
    /// They stay. For apps that compare the switch's flows with those they want, and change the
    /// difference.
    Keep,
}

/// Which packets an app forwards. At start, the controller checks the order of its apps by this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwards {
    /// Unknown.
    #[default]
    Unknown,
    /// Every packet that reaches the app. Later apps get none.
    All,
    /// The packets of some hosts or ports, as an operator requests. All other packets are passed
    /// on.
    Selected,
    /// None. The app only drops packets, so its flows must have priority over those of all other
    /// apps.
    Nothing,
}

/// Where the background tasks of an app run in a cluster, which [`App::start`] begins.
///
/// The handlers run at the master of each switch in both cases. A controller that is alone is like
/// the only node: it calls [`App::start`] when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Where the switches are: each node calls [`App::start`] when it starts. For apps that work
    /// for the switches of their node, or want the same at all nodes.
    #[default]
    PerSwitch,
    /// At one node of the cluster, the leader. It calls [`App::start`] when its term begins, with a
    /// [`Network`] of that term ([`Network::term`]). For apps that act for the whole network.
    ///
    /// The tasks that `start` begins by this [`Network`], and those that they begin, end with the
    /// term: they are dropped where they wait. The term ends when the node has not reached the
    /// store for so long that another one may lead: before the other one begins. So
    /// at most one node runs them at any time, except for one turn of a task that has begun before
    /// the end. [`Term::number`](crate::Term::number) fences what such a turn still stores.
    ///
    /// While no node reaches the store, the tasks run nowhere. After a leader is lost, the next one
    /// begins within some seconds, and calls `start` anew: what the last one knew is lost, unless
    /// it was stored. Handlers at other nodes do not share memory with the tasks.
    Once,
}

bitflags::bitflags! {
    /// Network services that an app reads. Those that any app of a chain needs run in front of it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Needs: u32 {
        /// The switches, and the links between them.
        const TOPOLOGY = 1 << 0;
        /// The locations of hosts.
        const HOSTS = 1 << 1;
        /// Paths between switches.
        const PATHS = 1 << 2;
    }
}

/// An application. It makes a handler for each switch.
///
/// [`App::name`], [`App::wants_packet_ins`], [`App::sees`], [`App::needs`], [`App::scope`],
/// [`App::earlier_flows`] and [`App::counter_meanings`] are called once, at the start of the
/// controller. A panic there, or in [`App::start`], ends the start. A later panic of an app never
/// ends the controller.
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
    /// The app's state of one switch.
    type Handler: Handler;

    /// Name of the app: in the configuration, in logs, and as the origin of its flows' cookies. Two
    /// apps of a chain cannot share one. It may be made at run time, and must not change.
    fn name(&self) -> &str {
        let name = std::any::type_name::<Self>();
        name.rsplit("::").next().unwrap_or(name)
    }

    /// Whether the app wants packets that match no flow. If no app does, switches get no table-miss
    /// entry.
    fn wants_packet_ins(&self) -> bool {
        true
    }

    /// Which packets the app forwards. The controller warns about an order of apps in which one of
    /// them cannot work, or does not start.
    fn forwards(&self) -> Forwards {
        Forwards::Unknown
    }

    /// The packets that the app must see, whatever the apps behind it install: at most
    /// [`MAX_SEEN`]. The controller keeps a flow for each match in every switch, which sends these
    /// packets to the controller. It has the lowest priority of the app's band: the app's own flows
    /// have priority over it, and it has priority over all flows of the apps behind. So when the
    /// app passes such a packet on, the next packet comes again.
    /// [`Switch::allow`] lets the switch forward the packets of a match for some time.
    ///
    /// Without it, the flows of the apps behind carry later packets past the app. An app that
    /// passes packets on and does not mind says so with an empty list. `None`, the default, says
    /// nothing: the controller warns if an app behind could take its packets away.
    fn sees(&self) -> Option<Vec<Match>> {
        None
    }

    /// Network services that the app reads, such as `Needs::TOPOLOGY | Needs::HOSTS`. They run in
    /// front of it. [`Network::topology`], [`Network::hosts`] and the paths panic in an app that
    /// does not need them: without the service they would be empty for ever.
    fn needs(&self) -> Needs {
        Needs::empty()
    }

    /// Where the tasks that [`App::start`] begins run in a cluster.
    fn scope(&self) -> Scope {
        Scope::PerSwitch
    }

    /// What happens to the flows that an earlier run of the app left in a switch.
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Remove
    }

    /// Whether the app reports itself, by events, which of its messages a switch refuses. Then the
    /// log has no line of its own for each of them.
    fn reports_refusals(&self) -> bool {
        false
    }

    /// Name and meaning of each counter that the handlers report ([`Handler::counters`]), for the
    /// operator. Most are the `ALL` of a set made by [`counters!`](crate::counters!).
    fn counter_meanings(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Called once, when the controller starts. No switch is connected yet.
    ///
    /// In a cluster, an app of [`Scope::Once`] is called when this node becomes the leader, and
    /// again each time that it does. Switches may be up then. A panic there ends that term only.
    fn start(&self, _network: &Network) {}

    /// Makes the handler of a switch that is up. The handshake is over. The flows of an earlier run
    /// of this app are removed, unless the app keeps or adopts them ([`App::earlier_flows`]).
    ///
    /// The network knows the switch already: a task started here finds it ([`Network::switch`]) and
    /// may send to it at once. Messages of the task follow those that handlers write in
    /// [`Handler::switch_up`].
    fn switch_up(&self, network: &Network, switch: &SwitchInfo) -> Self::Handler;

    /// Reports the hosts that the app keeps in one place for all switches, for the operator. It
    /// stops when `report` returns `Break`. The asking thread calls it, never a worker, so it may
    /// read a large table. Handlers report their own hosts ([`Handler::hosts`]).
    #[expect(unused_variables, reason = "the names of unused arguments are documentation")]
    fn hosts(&self, network: &Network, report: &mut dyn FnMut(Dpid, HostEntry) -> ControlFlow<()>) {
    }
}

/// What an app does at one switch. One thread at a time calls it; it never blocks.
///
/// A handler that returns an error, or panics, loses the messages that it wrote for that event. The
/// switch and the other apps go on. Both are counted and logged. An app whose handlers panic
/// repeatedly, at any switches, is disabled: it gets no more events, and its flows stay. Panics in
/// [`Handler::hosts`], [`Handler::counters`] and `Drop` count too; that call then reports nothing.
#[expect(unused_variables, reason = "the names of unused arguments are documentation")]
pub trait Handler: Send + 'static {
    /// Decides whether to keep a flow that an earlier run of this app left in the switch. `false`
    /// removes it.
    ///
    /// Called only for apps with [`EarlierFlows::Adopt`], once for each such flow, before all other
    /// events. If packet-ins wait and the switch takes more than 200 ms to report its flows, it is
    /// called later, for flows older than the connection.
    ///
    /// The flow's priority is relative to the app's band, as the app gave it. A flow outside the
    /// band, from an earlier order of the apps, is removed without this call. If the switch does
    /// not report its flows in time, or reports too many, all of the app's flows are removed; in
    /// 1.0 they stay, because they cannot be told apart from those of other apps.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]). The flow is removed.
    fn adopt(&mut self, switch: &mut Switch<'_>, flow: &FlowStats<'_>) -> Result<bool> {
        Ok(false)
    }

    /// The first event after [`Handler::adopt`], right after [`App::switch_up`] made the handler.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        Ok(())
    }

    /// A packet for the controller.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]). The messages written for this packet are
    /// discarded, and the next app gets the packet.
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        Ok(Verdict::Pass)
    }

    /// Packets that arrived together, in order. By default, calls [`Handler::packet_in`] for each.
    /// An app with a table larger than the CPU cache overrides it, to hash and prefetch all keys
    /// before the first look-up.
    fn packet_ins(&mut self, switch: &mut Switch<'_>, batch: &mut Batch<'_>) {
        batch.for_each(switch, self);
    }

    /// A port was added, removed or changed. [`Switch::info`] already shows the change.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn port_status(&mut self, switch: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        Ok(())
    }

    /// A flow was removed. All apps see it; [`crate::Cookie::owns`] shows which app owns the flow.
    /// An app sees the priorities that it gave to its own flows. Other flows have their priorities
    /// in the switch.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn flow_removed(&mut self, switch: &mut Switch<'_>, flow: &FlowRemoved<'_>) -> Result<()> {
        Ok(())
    }

    /// The switch refused the message of this app with this xid.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn error(&mut self, switch: &mut Switch<'_>, xid: Xid, error: &ErrorMessage<'_>) -> Result<()> {
        Ok(())
    }

    /// The whole reply to a multipart request of this app, all parts together. Priorities of flows
    /// are as in [`Handler::flow_removed`].
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn reply(&mut self, switch: &mut Switch<'_>, xid: Xid, reply: &ReplyBody<'_>) -> Result<()> {
        Ok(())
    }

    /// A request of this app has no answer: none came in time, or none before the reply to the
    /// barrier behind it. For [`Switch::remove`] in 1.0: the switch does not report its flows, so
    /// they stay. An answer that comes later is discarded.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn unanswered(&mut self, switch: &mut Switch<'_>, xid: Xid) -> Result<()> {
        Ok(())
    }

    /// The answer to any other request of this app ([`Switch::send`]): configuration, asynchronous
    /// configuration, queues, role, features, echo, or an experimenter's message.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn answer(&mut self, switch: &mut Switch<'_>, xid: Xid, answer: &FromSwitch<'_>) -> Result<()> {
        Ok(())
    }

    /// Everything that this app sent before the barrier with this xid has been processed.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn barrier(&mut self, switch: &mut Switch<'_>, xid: Xid) -> Result<()> {
        Ok(())
    }

    /// Called once a second.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        Ok(())
    }

    /// Called soon after [`Network::resume`], for handlers that work with another thread: what that
    /// thread wrote meanwhile is sent now.
    ///
    /// Packet_ins that the handler has consumed for that thread, and appends to `passed`, whole and
    /// unchanged, go to the apps behind this one in the chain.
    ///
    /// # Errors
    /// Any error of the app ([`crate::HandlerError`]).
    fn resume(&mut self, switch: &mut Switch<'_>, passed: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    /// The connection has ended, or another controller is the switch's master now. Nothing can be
    /// sent any more. If the switch comes up again, that is after this, with a new handler.
    fn switch_down(&mut self, info: &SwitchInfo) {}

    /// Reports the hosts behind this switch, for the operator. It stops when `report` returns
    /// `Break`.
    fn hosts(&self, report: &mut dyn FnMut(HostEntry) -> ControlFlow<()>) {}

    /// Reports the app's counters by name, for the operator. They only grow.
    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {}
}

/// The handler of an app that works with tasks only. It passes all packets on.
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
    /// See [`App::sees`].
    fn sees(&self) -> Option<Vec<Match>>;
    /// See [`App::needs`].
    fn needs(&self) -> Needs;
    /// See [`App::scope`].
    fn scope(&self) -> Scope;
    /// See [`App::earlier_flows`].
    fn earlier_flows(&self) -> EarlierFlows;
    /// See [`App::reports_refusals`].
    fn reports_refusals(&self) -> bool;
    /// See [`App::counter_meanings`].
    fn counter_meanings(&self) -> Vec<(&'static str, &'static str)>;
    /// See [`App::start`].
    fn start(&self, network: &Network);
    /// See [`App::switch_up`].
    fn switch_up(&self, network: &Network, switch: &SwitchInfo) -> Box<dyn Handler>;
    /// See [`App::hosts`].
    fn hosts(&self, network: &Network, report: &mut dyn FnMut(Dpid, HostEntry) -> ControlFlow<()>);
    /// What the app may do. `None`: everything.
    fn allowance(&self) -> Option<&Allowance> {
        None
    }
}

/// An app with an allowance, for runtimes.
pub struct AllowedApp {
    app: Box<dyn DynApp>,
    allowance: Allowance,
}

impl AllowedApp {
    /// The app, kept to this allowance.
    #[must_use]
    pub fn new(app: Box<dyn DynApp>, allowance: Allowance) -> Self {
        AllowedApp { app, allowance }
    }
}

impl DynApp for AllowedApp {
    fn name(&self) -> &'static str {
        self.app.name()
    }

    fn wants_packet_ins(&self) -> bool {
        self.app.wants_packet_ins()
    }

    fn forwards(&self) -> Forwards {
        self.app.forwards()
    }

    fn sees(&self) -> Option<Vec<Match>> {
        self.app.sees()
    }

    fn needs(&self) -> Needs {
        self.app.needs()
    }

    fn scope(&self) -> Scope {
        self.app.scope()
    }

    fn earlier_flows(&self) -> EarlierFlows {
        self.app.earlier_flows()
    }

    fn reports_refusals(&self) -> bool {
        self.app.reports_refusals()
    }

    fn counter_meanings(&self) -> Vec<(&'static str, &'static str)> {
        self.app.counter_meanings()
    }

    fn start(&self, network: &Network) {
        self.app.start(network);
    }

    fn switch_up(&self, network: &Network, switch: &SwitchInfo) -> Box<dyn Handler> {
        self.app.switch_up(network, switch)
    }

    fn hosts(&self, network: &Network, report: &mut dyn FnMut(Dpid, HostEntry) -> ControlFlow<()>) {
        self.app.hosts(network, report);
    }

    fn allowance(&self) -> Option<&Allowance> {
        Some(&self.allowance)
    }
}

impl<A: App> DynApp for A {
    fn name(&self) -> &'static str {
        intern(App::name(self))
    }

    fn wants_packet_ins(&self) -> bool {
        App::wants_packet_ins(self)
    }

    fn forwards(&self) -> Forwards {
        App::forwards(self)
    }

    fn sees(&self) -> Option<Vec<Match>> {
        App::sees(self)
    }

    fn needs(&self) -> Needs {
        App::needs(self)
    }

    fn scope(&self) -> Scope {
        App::scope(self)
    }

    fn earlier_flows(&self) -> EarlierFlows {
        App::earlier_flows(self)
    }

    fn reports_refusals(&self) -> bool {
        App::reports_refusals(self)
    }

    fn counter_meanings(&self) -> Vec<(&'static str, &'static str)> {
        App::counter_meanings(self)
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
