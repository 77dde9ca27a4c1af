//! Events of the network.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bellrock_openflow::Version;

use crate::{
    AppEvent, ConnectionEnd, Dpid, HostGone, HostId, Link, LinkDown, Port, Refusal, RequestError,
    StormSign, Suspicion, SwitchPort,
};

/// An event of the network. It prints as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A switch is up: the handshake is over, and the apps know the switch.
    SwitchUp {
        /// The switch.
        dpid: Dpid,
        /// Name that the switch reports; may be empty.
        name: Box<str>,
        /// Remote address of the connection.
        peer: SocketAddr,
        /// Version of the connection.
        version: Version,
    },
    /// A switch is down.
    SwitchDown {
        /// The switch.
        dpid: Dpid,
        /// Name that the switch reports; may be empty.
        name: Box<str>,
        /// Remote address of the connection.
        peer: SocketAddr,
        /// Why it is down.
        why: ConnectionEnd,
    },
    /// Connections from an address have ended before their switch was up. Each reason is published
    /// at most once a minute for an address.
    ConnectionEnded {
        /// Source address. `None` for further addresses, when many fail to connect at the same
        /// time.
        from: Option<IpAddr>,
        /// Why the last of these connections ended.
        why: ConnectionEnd,
        /// Number of connections that ended for this reason since the last such event.
        times: u64,
    },
    /// Connections were closed at once, because a limit was reached. Published at most once a
    /// minute.
    ConnectionsRefused {
        /// Source address of the last of these connections.
        from: IpAddr,
        /// Why the last of these connections was refused.
        why: ConnectionEnd,
        /// Number of connections refused, for any reason, since the last such event.
        times: u64,
    },
    /// An OpenFlow 1.0 switch did not report its flows, so flows that an app removes may stay.
    RemovalUnanswered {
        /// The app.
        app: &'static str,
        /// The switch.
        dpid: Dpid,
    },
    /// A certificate, or a list of revoked certificates, expires soon, or has expired. Published
    /// once a day.
    CertificateExpires {
        /// The switch that it belongs to. `None`: it is one of the controller's files.
        dpid: Option<Dpid>,
        /// Its common name, or the setting of the file, such as `tls.certificate`.
        name: Box<str>,
        /// Whole days until its end. `None`: it has expired.
        days: Option<u64>,
    },
    /// A switch that this controller had lost is connected again, and another node of the cluster
    /// is its master: this one stands by.
    SwitchStandsBy {
        /// The switch.
        dpid: Dpid,
    },
    /// A port that has a name in the configuration carries no packets.
    PortDown {
        /// The port.
        at: SwitchPort,
        /// Its name.
        name: Box<str>,
        /// Whether an operator has shut it down, at the switch.
        by_order: bool,
    },
    /// A port that was reported down carries packets again, or has no name any more.
    PortUp {
        /// The port.
        at: SwitchPort,
        /// The name that it was reported down with.
        name: Box<str>,
        /// Whether the configuration still names it.
        is_named: bool,
    },
    /// One direction of a link is up.
    LinkUp(Link),
    /// One direction of a link is down.
    LinkDown {
        /// The link.
        link: Link,
        /// Why it is down.
        why: LinkDown,
    },
    /// A link has carried announcements in one direction only, for longer than both directions
    /// need.
    OneWay(Link),
    /// Two ports hear other ports instead of each other: a crossed link, or a segment with more
    /// than two ports.
    Miswired {
        /// The link in one direction.
        link: Link,
        /// The port that hears what the receiving port sends.
        receiver: SwitchPort,
    },
    /// Ordinary switches join these ports: a segment.
    Segment {
        /// Its ports.
        ports: Box<[SwitchPort]>,
        /// Whether the network connects these ports otherwise too: a loop, which the controller
        /// keeps open.
        is_loop: bool,
    },
    /// A segment is over, or has other ports now.
    SegmentOver {
        /// The ports that it had.
        ports: Box<[SwitchPort]>,
    },
    /// An announcement came in that the controller did not make: a host pretends to be a switch.
    ForgedAnnouncement {
        /// Port where it came in.
        at: SwitchPort,
    },
    /// An announcement of the controller came in that was already used, or that is too old and came
    /// over no known link: it was recorded and sent again.
    ReplayedAnnouncement {
        /// Port where it came in.
        at: SwitchPort,
        /// Port that the announcement was made for.
        sender: SwitchPort,
    },
    /// An announcement came in at the port that sent it: a host, or a loopback plug, returns what
    /// it receives.
    ReflectedAnnouncement {
        /// The port.
        at: SwitchPort,
    },
    /// Two hosts may be relaying announcements to each other, so that a link seems to exist.
    RelaySuspected {
        /// Port that the announcement was made for.
        from: SwitchPort,
        /// Port where it came in.
        to: SwitchPort,
        /// The evidence.
        why: Suspicion,
    },
    /// A host was seen for the first time, or again after it was gone.
    HostSeen {
        /// The host.
        host: HostId,
        /// Port where it was seen.
        at: SwitchPort,
    },
    /// A host moved to another port.
    HostMoved {
        /// The host.
        host: HostId,
        /// Old port.
        from: SwitchPort,
        /// New port.
        to: SwitchPort,
    },
    /// A packet with the address of a host came in at another port, while the host still answered
    /// at its own: the address is spoofed.
    HostMoveRefused {
        /// The host.
        host: HostId,
        /// Port of the host.
        at: SwitchPort,
        /// Port where its address was claimed.
        claimed_at: SwitchPort,
    },
    /// A host claimed the IP address of another host, which still answered.
    AddressClaimRefused {
        /// The address.
        ip: IpAddr,
        /// Host that has the address.
        owner: HostId,
        /// Host that claimed it.
        claimed_by: HostId,
    },
    /// A host is gone.
    HostGone {
        /// The host.
        host: HostId,
        /// Its last port.
        at: SwitchPort,
        /// Why it is gone.
        why: HostGone,
    },
    /// A port has the maximum number of hosts: further ones are not learnt.
    TooManyHosts {
        /// The port.
        at: SwitchPort,
    },
    /// A frame came in from the address that the controller's probes of hosts use: a host pretends
    /// to be the controller, or an external loop returns the probes. The frame was dropped.
    ProbeAddressUsed {
        /// Port where it came in.
        at: SwitchPort,
    },
    /// A switch has flows that no app of this controller installed. They stay.
    ForeignFlows {
        /// The switch.
        dpid: Dpid,
        /// Number of such flows.
        flows: usize,
    },
    /// After a switch came up, the flows that an app wants were compared with the flows of the
    /// switch.
    Reconciled {
        /// The app.
        app: &'static str,
        /// The switch.
        dpid: Dpid,
        /// Number of flows of the app in the switch.
        found: usize,
        /// Number of changes made: the difference.
        changes: usize,
    },
    /// Flows that an app wants were changed from outside, or by an order of an operator. They are
    /// restored.
    WantedAltered {
        /// The app.
        app: &'static str,
        /// The switch.
        dpid: Dpid,
        /// Number of flows that were changed, removed, or added under the app's cookie.
        flows: usize,
        /// Whether an operator, or an app by a message as bytes, has changed the switch meanwhile.
        by_order: bool,
    },
    /// A switch confirms entries that an app wants, and reports them otherwise, or not at all,
    /// after each of several equal corrections. They are sent again, at growing intervals.
    WantedNotKept {
        /// The app.
        app: &'static str,
        /// The switch.
        dpid: Dpid,
        /// Number of such entries that are new since the last such event.
        entries: usize,
        /// One of them, and what the switch reports.
        example: Box<str>,
    },
    /// A switch reports all entries of an app that it did not keep before.
    WantedKept {
        /// The app.
        app: &'static str,
        /// The switch.
        dpid: Dpid,
    },
    /// A switch does not report its tables, so the changes that an app needs are unknown. The
    /// controller asks again.
    TablesUntold {
        /// The app.
        app: &'static str,
        /// The switch.
        dpid: Dpid,
        /// Why.
        why: RequestError,
    },
    /// A loop in the network returns flooded frames again and again. The app limits its flooding.
    /// Only the switch that notices it first reports it.
    Storm {
        /// The app that floods.
        app: &'static str,
        /// Port where the sign was seen.
        at: SwitchPort,
        /// The sign.
        sign: StormSign,
    },
    /// A storm is over: no switch has seen a sign of it for 30 s.
    StormOver {
        /// The app that floods.
        app: &'static str,
        /// Time from the first sign to the last.
        duration: Duration,
    },
    /// Packets of a host come in at the ports of a link, and the host is at no other port: an
    /// ordinary switch joins the ports, and forwards LLDP. Its hosts are not found. Published once
    /// for each link.
    HostAtLink {
        /// One of these hosts.
        host: HostId,
        /// The ports of the link.
        ports: Box<[SwitchPort]>,
    },
    /// Copies of flooded frames come back at ports: something outside of the network joins them, or
    /// repeats frames. Copies are not flooded again.
    OutsideLoop {
        /// The ports where copies come in.
        ports: Box<[SwitchPort]>,
        /// The one of them that is kept out of floods and of host tracking. `None`: there is only
        /// one port.
        kept_out: Option<SwitchPort>,
    },
    /// A loop outside of the network is over.
    OutsideLoopOver {
        /// The port that was kept out.
        at: SwitchPort,
        /// Time until the last copy.
        duration: Duration,
    },
    /// A switch refuses a flow of the controller's own. Without it, the switch does not send what
    /// the controller must see. The flow is sent again, at growing intervals. Published at most
    /// once a minute for each flow of a switch, however often the switch connects.
    OwnFlowRefused {
        /// The switch.
        dpid: Dpid,
        /// Name of the flow.
        flow: &'static str,
        /// Why.
        why: Refusal,
        /// Number of refusals since the last such event.
        times: u64,
    },
    /// A switch refuses to send announcements of discovery out of these ports: no link is found
    /// there. They are sent again, at growing intervals. Published again only for further ports.
    AnnouncementsRefused {
        /// The switch.
        dpid: Dpid,
        /// All such ports, in order.
        ports: Box<[Port]>,
        /// Why, at one of them.
        why: Refusal,
    },
    /// A switch sends announcements out of all ports again.
    AnnouncementsTaken {
        /// The switch.
        dpid: Dpid,
    },
    /// A flow of the controller's own that the switch refused before is installed.
    OwnFlowInstalled {
        /// The switch.
        dpid: Dpid,
        /// Name of the flow.
        flow: &'static str,
    },
    /// A switch refuses something that an app wants in it.
    WantedRefused {
        /// The app.
        app: &'static str,
        /// The switch.
        dpid: Dpid,
        /// Why.
        why: Refusal,
        /// Number of refusals since the last such event.
        times: u64,
    },
    /// This node of a cluster hears no majority of the nodes: it stands by at all switches.
    MajorityLost,
    /// This node of a cluster hears a majority of the nodes, and may be master of switches.
    MajorityFound,
    /// A majority of a cluster does not hear a node.
    NodeLost {
        /// Name of the node.
        node: Box<str>,
    },
    /// A node of a cluster that was lost is back.
    NodeFound {
        /// Name of the node.
        node: Box<str>,
    },
    /// A switch obeys another node of the cluster, which has taken it over from this one.
    SwitchTaken {
        /// The switch.
        dpid: Dpid,
    },
    /// No node of the cluster says that it is master of a switch which is connected to this one,
    /// for some seconds.
    SwitchUnclaimed {
        /// The switch.
        dpid: Dpid,
    },
    /// A node is master of a switch that was unclaimed, or the switch is not connected any more.
    SwitchClaimed {
        /// The switch.
        dpid: Dpid,
    },
    /// A switch had seen a newer election than the cluster's etcd. The cluster numbers its
    /// elections above it.
    ElectionAhead {
        /// The switch.
        dpid: Dpid,
        /// `generation_id` that the switch had seen.
        generation_id: u64,
    },
    /// The cluster's etcd does not answer this node.
    StoreLost {
        /// Why.
        why: Box<str>,
    },
    /// The cluster's etcd answers this node again.
    StoreFound,
    /// An event of an app's own: [`crate::Network::publish`].
    App {
        /// The app.
        app: &'static str,
        /// The event.
        event: AppEvent,
    },
}
