//! What an event is about, for programs that follow events.

use std::net::IpAddr;

use crate::{Dpid, Event, HostId, Link, SwitchPort};

/// What an event is about. What an event does not have is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventSubject<'e> {
    /// The switch.
    pub dpid: Option<Dpid>,
    /// The port: where it happened, and for a link the one that sends.
    pub at: Option<SwitchPort>,
    /// A second port: where a host was before it moved, or where its address was claimed; the
    /// sender of an announcement; the receiving port of a link.
    pub other: Option<SwitchPort>,
    /// The host.
    pub host: Option<HostId>,
    /// The IP address.
    pub ip: Option<IpAddr>,
    /// The link, one direction.
    pub link: Option<Link>,
    /// The app.
    pub app: Option<&'e str>,
    /// The node of the cluster.
    pub node: Option<&'e str>,
}

impl<'e> EventSubject<'e> {
    fn switch(dpid: Dpid) -> Self {
        EventSubject { dpid: Some(dpid), ..EventSubject::default() }
    }

    fn port(at: SwitchPort) -> Self {
        EventSubject { at: Some(at), ..EventSubject::switch(at.dpid) }
    }

    fn ports(at: SwitchPort, other: SwitchPort) -> Self {
        EventSubject { other: Some(other), ..EventSubject::port(at) }
    }

    fn link(link: &Link) -> Self {
        EventSubject { link: Some(*link), ..EventSubject::ports(link.from, link.to) }
    }

    fn first(ports: &[SwitchPort]) -> Self {
        ports.first().map_or_else(EventSubject::default, |at| EventSubject::port(*at))
    }

    fn host(self, host: HostId) -> Self {
        EventSubject { host: Some(host), ..self }
    }

    fn app(self, app: &'e str) -> Self {
        EventSubject { app: Some(app), ..self }
    }
}

impl Event {
    /// What it is about.
    ///
    /// ```
    /// use bellrock_api::{Dpid, Event, HostId, MacAddr, Port, SwitchPort};
    ///
    /// let at = SwitchPort::new(Dpid(1), Port(4));
    /// let host = HostId::new(MacAddr([2, 0, 0, 0, 0, 1]), None);
    /// let subject = Event::HostSeen { host, at };
    /// let subject = subject.subject();
    /// assert_eq!((subject.host, subject.at, subject.dpid), (Some(host), Some(at), Some(Dpid(1))));
    /// ```
    #[must_use]
    pub fn subject(&self) -> EventSubject<'_> {
        match self {
            Event::SwitchUp { dpid, .. }
            | Event::SwitchDown { dpid, .. }
            | Event::SwitchStandsBy { dpid }
            | Event::SwitchTaken { dpid }
            | Event::SwitchUnclaimed { dpid }
            | Event::SwitchClaimed { dpid }
            | Event::ElectionAhead { dpid, .. }
            | Event::ForeignFlows { dpid, .. }
            | Event::AnnouncementsRefused { dpid, .. }
            | Event::AnnouncementsTaken { dpid }
            | Event::OwnFlowRefused { dpid, .. }
            | Event::OwnFlowInstalled { dpid, .. } => EventSubject::switch(*dpid),
            Event::RemovalUnanswered { app, dpid }
            | Event::Reconciled { app, dpid, .. }
            | Event::WantedAltered { app, dpid, .. }
            | Event::WantedNotKept { app, dpid, .. }
            | Event::WantedKept { app, dpid }
            | Event::TablesUntold { app, dpid, .. }
            | Event::WantedRefused { app, dpid, .. } => EventSubject::switch(*dpid).app(app),
            Event::CertificateExpires { dpid, .. } => {
                EventSubject { dpid: *dpid, ..EventSubject::default() }
            }
            Event::PortDown { at, .. }
            | Event::PortUp { at, .. }
            | Event::ForgedAnnouncement { at }
            | Event::ReflectedAnnouncement { at }
            | Event::TooManyHosts { at }
            | Event::ProbeAddressUsed { at }
            | Event::OutsideLoopOver { at, .. } => EventSubject::port(*at),
            Event::LinkUp(link) | Event::LinkDown { link, .. } | Event::OneWay(link) => {
                EventSubject::link(link)
            }
            Event::Miswired { link, receiver } => {
                EventSubject { other: Some(*receiver), ..EventSubject::link(link) }
            }
            Event::Segment { ports, .. } | Event::SegmentOver { ports } => {
                EventSubject::first(ports)
            }
            Event::HostAtLink { host, ports } => EventSubject::first(ports).host(*host),
            Event::OutsideLoop { ports, kept_out } => {
                kept_out.map_or_else(|| EventSubject::first(ports), EventSubject::port)
            }
            Event::ReplayedAnnouncement { at, sender } => EventSubject::ports(*at, *sender),
            Event::RelaySuspected { from, to, .. } => EventSubject::ports(*from, *to),
            Event::HostSeen { host, at } | Event::HostGone { host, at, .. } => {
                EventSubject::port(*at).host(*host)
            }
            Event::HostMoved { host, from, to } => EventSubject::ports(*to, *from).host(*host),
            Event::HostMoveRefused { host, at, claimed_at } => {
                EventSubject::ports(*at, *claimed_at).host(*host)
            }
            Event::AddressClaimRefused { ip, claimed_by, .. } => {
                EventSubject { ip: Some(*ip), ..EventSubject::default() }.host(*claimed_by)
            }
            Event::Storm { app, at, .. } => EventSubject::port(*at).app(app),
            Event::StormOver { app, .. } | Event::App { app, .. } => {
                EventSubject::default().app(app)
            }
            Event::ConnectionEnded { from, .. } => {
                EventSubject { ip: *from, ..EventSubject::default() }
            }
            Event::ConnectionsRefused { from, .. } => {
                EventSubject { ip: Some(*from), ..EventSubject::default() }
            }
            Event::NodeLost { node } | Event::NodeFound { node } => {
                EventSubject { node: Some(node), ..EventSubject::default() }
            }
            Event::MajorityLost
            | Event::MajorityFound
            | Event::StoreLost { .. }
            | Event::StoreFound => EventSubject::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellrock_openflow::{MacAddr, Port};

    use super::*;

    #[test]
    fn an_event_names_its_switch_ports_host_and_link() {
        let at = |dpid, port| SwitchPort::new(Dpid(dpid), Port(port));
        let host = HostId::new(MacAddr([2, 0, 0, 0, 0, 1]), Some(7));
        let moved = Event::HostMoved { host, from: at(1, 4), to: at(2, 5) };
        let subject = moved.subject();
        assert_eq!((subject.at, subject.other), (Some(at(2, 5)), Some(at(1, 4))));
        assert_eq!((subject.dpid, subject.host), (Some(Dpid(2)), Some(host)));
        let link = Link { from: at(1, 3), to: at(2, 3), rate_kbps: None, since: Duration::ZERO };
        let up = Event::LinkUp(link);
        let subject = up.subject();
        assert_eq!((subject.link, subject.dpid), (Some(link), Some(Dpid(1))));
        let kept = Event::WantedKept { app: "routing", dpid: Dpid(3) };
        assert_eq!((kept.subject().app, kept.subject().dpid), (Some("routing"), Some(Dpid(3))));
        assert_eq!(Event::StoreFound.subject(), EventSubject::default());
    }
}
