//! Events of the network, and their text.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bellrock_openflow::Version;

use crate::event_causes::{
    write_host_at_link, write_loop, write_ports, write_refused_announcements, write_segment,
    write_storm,
};
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
    /// A certificate, or a list of revoked certificates, expires soon, or has expired. Published once a
    /// day.
    CertificateExpires {
        /// The switch that it belongs to. `None`: it is one of the controller's files.
        dpid: Option<Dpid>,
        /// Its common name, or the setting of the file, such as `tls.certificate`.
        name: Box<str>,
        /// Whole days until its end. `None`: it has expired.
        days: Option<u64>,
    },
    /// A switch that this controller had lost is connected again, and another node of the cluster is
    /// its master: this one stands by.
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
        /// Whether the network connects these ports otherwise too: a loop, which the controller keeps
        /// open.
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
        /// Whether an operator has ordered the controller to change the switch meanwhile.
        by_order: bool,
    },
    /// A switch confirms entries that an app wants, and reports them otherwise, or not at all, after
    /// each of several equal corrections. They are sent again, at growing intervals.
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
    /// Packets of a host come in at the ports of a link, and the host is at no other port: an ordinary
    /// switch joins the ports, and forwards LLDP. Its hosts are not found. Published once for each
    /// link.
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
    /// A switch refuses to send announcements of discovery out of these ports: no link is found there.
    /// They are sent again, at growing intervals. Published again only for further ports.
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
    /// No node of the cluster says that it is master of a switch which is connected to this one, for some
    /// seconds.
    SwitchUnclaimed {
        /// The switch.
        dpid: Dpid,
    },
    /// A node is master of a switch that was unclaimed, or the switch is not connected any more.
    SwitchClaimed {
        /// The switch.
        dpid: Dpid,
    },
    /// A switch had seen a newer election than the cluster's etcd. The cluster numbers its elections
    /// above it.
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

/// Prints a switch by its datapath id and, if it has one, its name.
struct Named<'a>(Dpid, &'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            "" => write!(f, "{}", self.0),
            name => write!(f, "{} ({name})", self.0),
        }
    }
}

fn in_days(days: u64) -> String {
    if days == 1 { "1 day".into() } else { format!("{days} days") }
}

/// Writes the number of repetitions, if there are several.
fn write_times(f: &mut fmt::Formatter<'_>, times: u64) -> fmt::Result {
    if times > 1 { write!(f, " ({times} times)") } else { Ok(()) }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::SwitchUp { dpid, name, peer, version } => {
                write!(f, "switch {} is up: OpenFlow {version}, from {peer}", Named(*dpid, name))
            }
            Event::SwitchDown { dpid, name, peer, why } => {
                write!(f, "switch {} at {peer} is down: {why}", Named(*dpid, name))
            }
            Event::ConnectionEnded { from, why, times } => {
                match from {
                    Some(from) => write!(f, "a connection from {from} ended: {why}")?,
                    None => write!(f, "connections from many addresses ended: {why}")?,
                }
                write_times(f, *times)
            }
            Event::ConnectionsRefused { from, why, times } => {
                write!(f, "a connection from {from} was refused: {why}")?;
                if *times > 1 {
                    write!(f, " (the last of {times})")?;
                }
                Ok(())
            }
            Event::CertificateExpires { dpid, name, days } => {
                match dpid {
                    Some(dpid) => write!(f, "the certificate {name:?} of switch {dpid} ")?,
                    None if name.ends_with(".crl") => {
                        write!(f, "the list of revoked certificates ({name}) ")?;
                        return match days {
                            Some(days) => write!(f, "is to be replaced within {}", in_days(*days)),
                            None => f.write_str(
                                "should have been replaced: what was revoked since is accepted; replace it, \
                                 and run `bellrock reload`",
                            ),
                        };
                    }
                    None => write!(f, "the controller's certificate ({name}) ")?,
                }
                match days {
                    Some(days) => write!(f, "expires in {}; renew it", in_days(*days)),
                    None => f.write_str("has expired; renew it, and run `bellrock reload`"),
                }
            }
            Event::RemovalUnanswered { app, dpid } => {
                write!(
                    f,
                    "switch {dpid} did not report its flows: flows that {app} removes may stay; check the switch's load"
                )
            }
            Event::SwitchStandsBy { dpid } => {
                write!(f, "switch {dpid} is connected again; another node is its master")
            }
            Event::PortDown { at, name, by_order } => {
                let why = if *by_order { ": it is shut down at the switch" } else { "" };
                write!(f, "port {at} ({name}) is down{why}")
            }
            Event::PortUp { at, name, is_named: true } => write!(f, "port {at} ({name}) is up"),
            Event::PortUp { at, name, is_named: false } => {
                write!(f, "port {at} is not called {name} any more, and not watched")
            }
            Event::LinkUp(link) => write!(f, "link up: {link}"),
            Event::LinkDown { link, why } => write!(f, "link down: {link}: {why}"),
            Event::OneWay(link) => write!(f, "{link} works in one direction only"),
            Event::Miswired { link, receiver: back } => {
                write!(f, "{link}, but {} is heard at {back}", link.to)
            }
            Event::Segment { ports, is_loop } => write_segment(f, ports, *is_loop),
            Event::SegmentOver { ports } => {
                f.write_str("the segment of ")?;
                write_ports(f, ports)?;
                f.write_str(" is over, or has other ports")
            }
            Event::ForgedAnnouncement { at } => write!(f, "a forged announcement came in at {at}"),
            Event::ReplayedAnnouncement { at, sender: of } => {
                write!(f, "an announcement of {of} came in at {at} again, or too late")
            }
            Event::ReflectedAnnouncement { at } => {
                write!(f, "{at} receives its own announcements")
            }
            Event::RelaySuspected { from, to, why } => {
                write!(
                    f,
                    "{from} -> {to} may be a relay between hosts: {why}; if it is a link, set \
                     discovery_trusted_ports: [{from}, {to}]"
                )
            }
            Event::HostSeen { host, at } => write!(f, "host {host} is at {at}"),
            Event::HostMoved { host, from, to } => {
                write!(f, "host {host} moved from {from} to {to}")
            }
            Event::HostMoveRefused { host, at, claimed_at } => {
                write!(f, "host {host} answers at {at}, and its address was used at {claimed_at}")
            }
            Event::AddressClaimRefused { ip, owner: of, claimed_by } => {
                write!(f, "{claimed_by} claimed {ip}, but {of} has it and still answers")
            }
            Event::HostGone { host, at, why } => {
                write!(f, "host {host} is not at {at} any more: {why}")
            }
            Event::TooManyHosts { at } => {
                write!(f, "{at} has the maximum number of hosts; further ones are not learnt")
            }
            Event::ProbeAddressUsed { at } => {
                write!(
                    f,
                    "a frame from the controller's own address came in at {at}, and was dropped"
                )
            }
            Event::ForeignFlows { dpid, flows } => {
                write!(
                    f,
                    "switch {dpid} has flows that no app of this controller installed, which stay: {flows}"
                )
            }
            Event::Reconciled { app, dpid, found, changes } => {
                write!(
                    f,
                    "flows of {app} in switch {dpid} were compared with those it wants: {found} found, {changes} changed"
                )
            }
            Event::WantedAltered { app, dpid, flows, by_order } => {
                let what = if *by_order { "by an operator's order" } else { "from outside" };
                match flows {
                    1 => write!(
                        f,
                        "1 flow of {app} in switch {dpid} was changed {what}; it is restored"
                    ),
                    _ => write!(
                        f,
                        "{flows} flows of {app} in switch {dpid} were changed {what}; they are restored"
                    ),
                }
            }
            Event::TablesUntold { app, dpid, why } => {
                write!(
                    f,
                    "switch {dpid} did not report its tables, which {app} needs to keep its flows: {why}"
                )
            }
            Event::Storm { app, at, sign } => write_storm(f, app, *at, *sign),
            Event::StormOver { app, duration: lasted } => {
                write!(f, "the storm is over after {} s; {app} floods as before", lasted.as_secs())
            }
            Event::OutsideLoop { ports, kept_out } => write_loop(f, ports, *kept_out),
            Event::OutsideLoopOver { at, duration } => {
                let lasted = duration.as_secs();
                write!(
                    f,
                    "the loop outside is over after {lasted} s; {at} takes part in floods again"
                )
            }
            Event::OwnFlowRefused { dpid, flow, why, times } => {
                write!(f, "switch {dpid} refuses the {flow}, which the controller needs: {why}")?;
                write_times(f, *times)
            }
            Event::AnnouncementsRefused { dpid, ports, why } => {
                write_refused_announcements(f, *dpid, ports, *why)
            }
            Event::AnnouncementsTaken { dpid } => write!(
                f,
                "switch {dpid} sends announcements out of all ports again that refused them before"
            ),
            Event::HostAtLink { host, ports } => write_host_at_link(f, *host, ports),
            Event::OwnFlowInstalled { dpid, flow } => {
                write!(f, "switch {dpid} has the {flow}, which it refused before")
            }
            Event::WantedNotKept { app, dpid, entries, example } => write!(
                f,
                "switch {dpid} confirms {entries} {} of {app} and does not keep what it confirms: {example}; it is sent again \
                 from time to time",
                if *entries == 1 { "entry" } else { "entries" }
            ),
            Event::WantedKept { app, dpid } => {
                write!(f, "switch {dpid} keeps all entries of {app} that it did not keep before")
            }
            Event::WantedRefused { app, dpid, why, times } => {
                write!(f, "switch {dpid} refuses a change that {app} wants: {why}")?;
                write_times(f, *times)
            }
            Event::MajorityLost => f.write_str(
                "this node stands by at all switches: it does not hear a majority of the cluster",
            ),
            Event::MajorityFound => {
                f.write_str("this node hears a majority of the cluster, and serves")
            }
            Event::NodeLost { node } => {
                write!(f, "a majority of the cluster does not hear node {node}")
            }
            Event::NodeFound { node } => write!(f, "node {node} of the cluster is back"),
            Event::SwitchTaken { dpid } => {
                write!(
                    f,
                    "switch {dpid} obeys another node of the cluster, which has taken it over"
                )
            }
            Event::SwitchUnclaimed { dpid } => write!(
                f,
                "switch {dpid} has no master: no node of the cluster has claimed it for some seconds"
            ),
            Event::SwitchClaimed { dpid } => write!(
                f,
                "switch {dpid} has a master again, or is not connected to this node any more"
            ),
            Event::ElectionAhead { dpid, generation_id } => write!(
                f,
                "switch {dpid} had seen a newer election than etcd (generation_id {generation_id}): etcd was restored \
                 from an old snapshot, or another cluster has the same switch"
            ),
            Event::StoreLost { why } => write!(f, "etcd does not serve this node: {why}"),
            Event::StoreFound => f.write_str("etcd serves this node again"),
            Event::App { app, event } => {
                write!(f, "{app} reports {}: {}", event.name(), event.text())
            }
        }
    }
}
