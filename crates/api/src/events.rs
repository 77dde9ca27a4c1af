//! What has happened in the network, told to whoever wants to know.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bellrock_openflow::Version;

use crate::waiting::{Waiting, wake};
use crate::{Dpid, Ended, HostId, Link, Port, Refusal, RequestError, SwitchPort};

/// How many events are kept. Who is further behind misses the oldest, and is told how many.
pub const EVENTS_KEPT: usize = 4096;

/// How many of them are alarms ([`Event::is_alarming`]). They have room of their own: whoever makes others happen by
/// the thousand puts none of them out.
const ALARMS_KEPT: usize = EVENTS_KEPT / 4;

/// How many of them are about connections ([`Event::is_about_connection`]), alarming or not. They have room of their own
/// too: a peer that connects again and again puts no others out.
const CONNECTIONS_KEPT: usize = EVENTS_KEPT / 4;

/// How many are of another kind.
const OTHERS_KEPT: usize = EVENTS_KEPT - ALARMS_KEPT - CONNECTIONS_KEPT;

/// Something that has happened in the network. It prints as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A switch is up: its handshake is over, and the apps know it.
    SwitchUp {
        /// The switch.
        dpid: Dpid,
        /// What it says that it is called; may be empty.
        name: Box<str>,
        /// The address of its end of the connection.
        peer: SocketAddr,
        /// The version that it speaks.
        version: Version,
    },
    /// A switch is not up any more.
    SwitchDown {
        /// The switch.
        dpid: Dpid,
        /// What it says that it is called; may be empty.
        name: Box<str>,
        /// The address of its end of the connection.
        peer: SocketAddr,
        /// Why the connection ended.
        why: Ended,
    },
    /// Connections from an address have ended before a switch was up on them. Each reason is published at most once a
    /// minute for an address.
    ConnectionEnded {
        /// Where they came from; `None` for further addresses, when many connect in vain at the same time.
        from: Option<IpAddr>,
        /// Why the last of them ended.
        why: Ended,
        /// How many ended for this reason, since this was last published.
        times: u64,
    },
    /// A switch of OpenFlow 1.0 did not report its flows, so that those which an app removes may stay.
    RemovalUnanswered {
        /// The app.
        app: &'static str,
        /// The switch.
        dpid: Dpid,
    },
    /// One direction of a link is up.
    LinkUp(Link),
    /// One direction of a link is down.
    LinkDown {
        /// What it was.
        link: Link,
        /// Why it is down.
        why: LinkDown,
    },
    /// A link has carried announcements one way only for longer than both ways need.
    OneWay(Link),
    /// Two ports do not hear each other but others: a link that is patched crosswise, or a segment with
    /// more than two ports.
    Miswired {
        /// What one direction says.
        link: Link,
        /// Where what the receiving port sends goes to.
        back: SwitchPort,
    },
    /// An announcement that the controller has not made came in: a host pretends to be a switch.
    ForgedAnnouncement {
        /// Where it came in.
        at: SwitchPort,
    },
    /// An announcement of the controller came in that was used before, or is too old: somebody has
    /// recorded it and sent it again.
    ReplayedAnnouncement {
        /// Where it came in.
        at: SwitchPort,
        /// The port that it was made for.
        of: SwitchPort,
    },
    /// An announcement came in at the port that it was sent out of: a host, or a plug, sends back what
    /// it gets.
    ReflectedAnnouncement {
        /// The port.
        at: SwitchPort,
    },
    /// A link looks as if two hosts were passing announcements on to each other.
    RelaySuspected {
        /// The port that the announcement was made for.
        from: SwitchPort,
        /// Where it came in.
        to: SwitchPort,
        /// What speaks for it.
        why: Suspicion,
    },
    /// A host was seen for the first time, or again after it was gone.
    HostSeen {
        /// The host.
        host: HostId,
        /// Where.
        at: SwitchPort,
    },
    /// A host is at another port than before.
    HostMoved {
        /// The host.
        host: HostId,
        /// Where it was.
        from: SwitchPort,
        /// Where it is.
        to: SwitchPort,
    },
    /// A packet with the address of a host came in elsewhere while the host answered where it is:
    /// somebody uses its address.
    HostMoveRefused {
        /// The host.
        host: HostId,
        /// Where it is.
        at: SwitchPort,
        /// Where its address was claimed.
        claimed_at: SwitchPort,
    },
    /// A host claimed the Internet address of another that answered.
    AddressClaimRefused {
        /// The address.
        ip: IpAddr,
        /// Whose it is.
        of: HostId,
        /// Who claimed it.
        claimed_by: HostId,
    },
    /// A host is not there any more.
    HostGone {
        /// The host.
        host: HostId,
        /// Where it was.
        at: SwitchPort,
        /// Why it is gone.
        why: HostGone,
    },
    /// A port has as many hosts as it may: further ones are not learnt.
    TooManyHosts {
        /// The port.
        at: SwitchPort,
    },
    /// A frame came in from the address that the controller asks hosts from: a host pretends to be the controller, or a
    /// loop outside brings its questions back. It was dropped.
    ProbeAddressUsed {
        /// Where it came in.
        at: SwitchPort,
    },
    /// A switch has flows that no app of this controller has installed. They stay.
    ForeignFlows {
        /// The switch.
        dpid: Dpid,
        /// How many.
        flows: usize,
    },
    /// What an app wants in a switch was compared with what is there, after the switch came up.
    Reconciled {
        /// The app.
        app: &'static str,
        /// The switch.
        dpid: Dpid,
        /// Flows of the app that were there.
        found: usize,
        /// Changes that are made to them: the difference.
        changes: usize,
    },
    /// Somebody else has changed flows that an app wants in a switch. They are put back.
    WantedAltered {
        /// The app.
        app: &'static str,
        /// The switch.
        dpid: Dpid,
        /// Flows that were changed, removed, or added under the app's cookie.
        flows: usize,
    },
    /// A switch does not tell its tables, so that an app cannot find out what is to be changed in them. It is asked
    /// again.
    TablesUntold {
        /// The app.
        app: &'static str,
        /// The switch.
        dpid: Dpid,
        /// Why.
        why: RequestError,
    },
    /// A loop in the network brings flooded frames back again and again. The app slows this down. Reported once,
    /// by the switch that notices it first.
    Storm {
        /// The app that floods.
        app: &'static str,
        /// Where the sign was seen.
        at: SwitchPort,
        /// What was seen.
        sign: StormSign,
    },
    /// A storm is over: no switch has seen a sign of it for half a minute.
    StormOver {
        /// The app that floods.
        app: &'static str,
        /// From the first sign to the last.
        lasted: Duration,
    },
    /// A switch refuses a flow of the controller's own, without which it does not send what the controller has to see. The
    /// flow is sent again, less and less often.
    OwnFlowRefused {
        /// The switch.
        dpid: Dpid,
        /// Which flow.
        flow: &'static str,
        /// Why.
        why: Refusal,
    },
    /// A flow of the controller's own that the switch refused before is there.
    OwnFlowInstalled {
        /// The switch.
        dpid: Dpid,
        /// Which flow.
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
    },
}

/// What shows that there is a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StormSign {
    /// Flooded frames come in again by other ports of the switch.
    Returns {
        /// The port that the frame came in by before.
        from: Port,
    },
    /// The same broadcast or multicast frame comes in by one port again and again.
    Copies,
    /// Hosts move to and fro between ports of the switch.
    Moves {
        /// The port that the host was at before.
        from: Port,
    },
}

/// Why a link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkDown {
    /// One of its ports is down or gone.
    Port,
    /// One of its switches is gone.
    Switch,
    /// Nothing was heard through it for three rounds.
    Silent,
    /// Its sending port is heard elsewhere.
    Moved,
}

/// Why a host is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostGone {
    /// Its port is down, or gone with its switch.
    Port,
    /// A link to a switch was found at its port.
    Link,
    /// It was not seen for too long, and does not answer.
    Aged,
    /// Others needed its room: there are as many hosts as there may be.
    Evicted,
}

/// What speaks for a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// A host was seen at one of the ports when a link would have been found there long before.
    HostTraffic {
        /// The port.
        at: SwitchPort,
    },
    /// Announcements take longer than they did, or than over other links.
    Latency {
        /// How long they take.
        is: Duration,
        /// How long they should take.
        usual: Duration,
    },
}

impl Event {
    /// What happened, in one word as in logs and `bellrock show events`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Event::SwitchUp { .. } => "switch_up",
            Event::SwitchDown { .. } => "switch_down",
            Event::ConnectionEnded { .. } => "connection_ended",
            Event::RemovalUnanswered { .. } => "removal_unanswered",
            Event::LinkUp(_) => "link_up",
            Event::LinkDown { .. } => "link_down",
            Event::OneWay(_) => "one_way",
            Event::Miswired { .. } => "miswired",
            Event::ForgedAnnouncement { .. } => "forged_announcement",
            Event::ReplayedAnnouncement { .. } => "replayed_announcement",
            Event::ReflectedAnnouncement { .. } => "reflected_announcement",
            Event::RelaySuspected { .. } => "relay_suspected",
            Event::HostSeen { .. } => "host_seen",
            Event::HostMoved { .. } => "host_moved",
            Event::HostMoveRefused { .. } => "host_move_refused",
            Event::AddressClaimRefused { .. } => "address_claim_refused",
            Event::HostGone { .. } => "host_gone",
            Event::TooManyHosts { .. } => "too_many_hosts",
            Event::ProbeAddressUsed { .. } => "probe_address_used",
            Event::ForeignFlows { .. } => "foreign_flows",
            Event::Reconciled { .. } => "reconciled",
            Event::WantedAltered { .. } => "wanted_altered",
            Event::TablesUntold { .. } => "tables_untold",
            Event::Storm { .. } => "storm",
            Event::StormOver { .. } => "storm_over",
            Event::WantedRefused { .. } => "wanted_refused",
            Event::OwnFlowRefused { .. } => "own_flow_refused",
            Event::OwnFlowInstalled { .. } => "own_flow_installed",
        }
    }

    /// Whether an operator should look at it: somebody attacks, or something is connected wrongly.
    #[must_use]
    pub fn is_alarming(&self) -> bool {
        if let Event::SwitchDown { why, .. } | Event::ConnectionEnded { why, .. } = self {
            return why.reason.is_alarming();
        }
        !matches!(
            self,
            Event::SwitchUp { .. }
                | Event::LinkUp(_)
                | Event::LinkDown { .. }
                | Event::HostSeen { .. }
                | Event::HostMoved { .. }
                | Event::HostGone { .. }
                | Event::Reconciled { .. }
                | Event::StormOver { .. }
                | Event::OwnFlowInstalled { .. }
        )
    }
}

impl Event {
    /// Whether it is about the connection of a switch: that it is up or has ended.
    #[must_use]
    pub fn is_about_connection(&self) -> bool {
        matches!(
            self,
            Event::SwitchUp { .. } | Event::SwitchDown { .. } | Event::ConnectionEnded { .. }
        )
    }

    /// Why a connection ended, if it is about that.
    #[must_use]
    pub fn ended(&self) -> Option<&Ended> {
        match self {
            Event::SwitchDown { why, .. } | Event::ConnectionEnded { why, .. } => Some(why),
            _ => None,
        }
    }
}

/// A switch, by its number and, where it has one, its name.
struct Named<'a>(Dpid, &'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            "" => write!(f, "{}", self.0),
            name => write!(f, "{} ({name})", self.0),
        }
    }
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
                if *times > 1 {
                    write!(f, " ({times} times)")?;
                }
                Ok(())
            }
            Event::RemovalUnanswered { app, dpid } => {
                write!(
                    f,
                    "switch {dpid} did not report its flows: flows that {app} removes may stay; check the switch's load"
                )
            }
            Event::LinkUp(link) => write!(f, "link up: {link}"),
            Event::LinkDown { link, why } => write!(f, "link down: {link}: {why}"),
            Event::OneWay(link) => write!(f, "{link} carries nothing back"),
            Event::Miswired { link, back } => {
                write!(f, "{link}, but {} is heard at {back}", link.to)
            }
            Event::ForgedAnnouncement { at } => write!(f, "a forged announcement came in at {at}"),
            Event::ReplayedAnnouncement { at, of } => {
                write!(f, "an announcement of {of} that was used before came in at {at}")
            }
            Event::ReflectedAnnouncement { at } => {
                write!(f, "{at} gets back its own announcements")
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
            Event::AddressClaimRefused { ip, of, claimed_by } => {
                write!(f, "{ip} is {of}'s, which answers, and {claimed_by} claimed it")
            }
            Event::HostGone { host, at, why } => {
                write!(f, "host {host} is not at {at} any more: {why}")
            }
            Event::TooManyHosts { at } => {
                write!(f, "{at} has as many hosts as it may, further ones are not learnt")
            }
            Event::ProbeAddressUsed { at } => {
                write!(
                    f,
                    "a frame from the controller's own address came in at {at}, and was dropped"
                )
            }
            Event::ForeignFlows { dpid, flows } => {
                write!(f, "switch {dpid} has flows of somebody else, which stay: {flows}")
            }
            Event::Reconciled { app, dpid, found, changes } => {
                write!(
                    f,
                    "switch {dpid} was compared with what {app} wants: flows found {found}, changes made {changes}"
                )
            }
            Event::WantedAltered { app, dpid, flows } => {
                write!(
                    f,
                    "somebody else changed {flows} flows of {app} in switch {dpid}; they are put back"
                )
            }
            Event::TablesUntold { app, dpid, why } => {
                write!(
                    f,
                    "switch {dpid} did not tell its tables, for what {app} wants in it: {why}"
                )
            }
            Event::Storm { app, at, sign } => {
                write!(f, "storm at switch {}: ", at.dpid)?;
                match sign {
                    StormSign::Returns { from } => write!(
                        f,
                        "flooded frames come back (by port {from}, then by port {}): the network has a loop",
                        at.port
                    )?,
                    StormSign::Copies => write!(
                        f,
                        "port {} brings the same broadcast again and again: there is a loop behind it",
                        at.port
                    )?,
                    StormSign::Moves { from } => write!(
                        f,
                        "hosts move to and fro (between ports {from} and {}): the network has a loop, or two hosts \
                         have the same address",
                        at.port
                    )?,
                }
                write!(
                    f,
                    ", and {app} works only without loops. It floods less until this ends. Use the app routing \
                     (bellrock run --app routing), which works on any topology, or take a link out of the loop"
                )
            }
            Event::StormOver { app, lasted } => {
                write!(f, "the storm is over after {} s; {app} floods as before", lasted.as_secs())
            }
            Event::OwnFlowRefused { dpid, flow, why } => {
                write!(
                    f,
                    "switch {dpid} refuses the {flow}, and is of little use without it: {why}"
                )
            }
            Event::OwnFlowInstalled { dpid, flow } => {
                write!(f, "switch {dpid} has the {flow}, which it refused before")
            }
            Event::WantedRefused { app, dpid, why } => {
                write!(f, "switch {dpid} refuses what {app} wants in it: {why}")
            }
        }
    }
}

impl fmt::Display for LinkDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkDown::Port => "a port is down",
            LinkDown::Switch => "a switch is gone",
            LinkDown::Silent => "nothing was heard for three rounds",
            LinkDown::Moved => "its sender is heard elsewhere",
        })
    }
}

impl fmt::Display for HostGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HostGone::Port => "the port is down",
            HostGone::Link => "a switch is there",
            HostGone::Aged => "it was not seen for long, and does not answer",
            HostGone::Evicted => "others needed its room",
        })
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Suspicion::HostTraffic { at } => write!(f, "a host was seen at {at}"),
            Suspicion::Latency { is, usual: Duration::ZERO } => {
                write!(f, "it takes {is:?}, usual is less than can be measured")
            }
            Suspicion::Latency { is, usual } => write!(f, "it takes {is:?}, usual is {usual:?}"),
        }
    }
}

/// An event, and when it happened on the controller's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// When.
    pub at: Duration,
    /// What.
    pub event: Event,
}

/// Where events are published, and can be subscribed to. All clones are the same.
///
/// They are rare: alarms are told every few seconds at most, and hosts come and go within the bounds of
/// host tracking. Publishing takes a lock for as long as it takes to put one into a list, and never waits
/// for who reads.
#[derive(Clone, Debug, Default)]
pub struct Events(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// The latest alarms, at most [`ALARMS_KEPT`], each with how many events were published before it.
    alarms: VecDeque<(u64, Happened)>,
    /// The latest about connections.
    connections: VecDeque<(u64, Happened)>,
    /// The latest of the others.
    others: VecDeque<(u64, Happened)>,
    /// How many were published.
    count: u64,
    waiting: Waiting,
}

/// What a subscriber hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// An event.
    Event(Happened),
    /// It was too slow for so many events.
    Missed(u64),
}

/// Hears the events that are published from when it was made on.
#[derive(Debug)]
pub struct Subscription {
    events: Events,
    /// How many events were published before the next one to hear.
    next: u64,
}

impl Events {
    /// Publishes an event that happened at this time of the controller's clock.
    pub fn publish(&self, at: Duration, event: Event) {
        let mut kept = self.kept();
        let number = kept.count;
        kept.count += 1;
        let (ring, most) = match &event {
            event if event.is_about_connection() => (&mut kept.connections, CONNECTIONS_KEPT),
            event if event.is_alarming() => (&mut kept.alarms, ALARMS_KEPT),
            _ => (&mut kept.others, OTHERS_KEPT),
        };
        if ring.len() == most {
            ring.pop_front();
        }
        ring.push_back((number, Happened { at, event }));
        let woken = kept.waiting.take();
        drop(kept);
        woken.for_each(wake);
    }

    /// Hears what is published from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        let next = self.count();
        Subscription { events: self.clone(), next }
    }

    /// The last events, at most so many, the oldest first.
    #[must_use]
    pub fn latest(&self, most: usize) -> Vec<Happened> {
        let kept = self.kept();
        let all = kept.alarms.iter().chain(&kept.connections).chain(&kept.others);
        let mut all: Vec<&(u64, Happened)> = all.collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        let skipped = all.len().saturating_sub(most);
        all.into_iter().skip(skipped).map(|(_, happened)| happened.clone()).collect()
    }

    /// How many were published.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.kept().count
    }

    /// A panic under this lock leaves the list whole: each change is one call.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    /// Waits for the next event.
    pub async fn next(&mut self) -> Heard {
        let Subscription { events, next } = self;
        let mut wait = Wait { events, number: None };
        poll_fn(|context| {
            let mut kept = wait.events.kept();
            if let Some(heard) = kept.after(next) {
                return Poll::Ready(heard);
            }
            kept.waiting.wait(&mut wait.number, context.waker());
            Poll::Pending
        })
        .await
    }

    /// The next event, if there is one already.
    pub fn take(&mut self) -> Option<Heard> {
        self.events.kept().after(&mut self.next)
    }
}

impl Kept {
    /// What a subscriber hears who has heard so many.
    fn after(&self, heard: &mut u64) -> Option<Heard> {
        let rings = [&self.alarms, &self.connections, &self.others];
        let firsts = rings.into_iter().filter_map(|ring| first_from(ring, *heard));
        let (number, happened) = firsts.min_by_key(|(number, _)| *number)?;
        if *number > *heard {
            let missed = *number - *heard;
            *heard = *number;
            return Some(Heard::Missed(missed));
        }
        *heard += 1;
        Some(Heard::Event(happened.clone()))
    }
}

/// The first event of a list from this number on.
fn first_from(ring: &VecDeque<(u64, Happened)>, number: u64) -> Option<&(u64, Happened)> {
    ring.get(ring.partition_point(|(its, _)| *its < number))
}

/// A subscriber that waits, which leaves nothing behind when it is dropped before its time.
struct Wait<'a> {
    events: &'a Events,
    number: Option<u64>,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.events.kept().waiting.forget(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use bellrock_openflow::{MacAddr, Port};

    use super::*;
    use crate::{Dpid, EndReason};

    fn event(n: u32) -> Event {
        Event::ForgedAnnouncement { at: SwitchPort::new(Dpid(1), Port(n)) }
    }

    fn publish(events: &Events, n: u32) {
        events.publish(Duration::from_secs(n.into()), event(n));
    }

    #[test]
    fn a_subscriber_hears_what_came_after_it_and_what_it_missed() {
        let events = Events::default();
        publish(&events, 0);
        let mut heard = events.subscribe();
        assert_eq!(heard.take(), None);
        (1..=ALARMS_KEPT as u32 + 3).for_each(|n| publish(&events, n));
        assert_eq!(heard.take(), Some(Heard::Missed(3)));
        let Some(Heard::Event(next)) = heard.take() else { panic!("there is one") };
        assert_eq!((next.at, next.event), (Duration::from_secs(4), event(4)));
        assert_eq!(events.count(), ALARMS_KEPT as u64 + 4);
        let latest = events.latest(2);
        assert_eq!(latest.last().map(|it| it.event.clone()), Some(event(ALARMS_KEPT as u32 + 3)));
        assert_eq!(latest.len(), 2);
    }

    #[test]
    fn others_put_no_alarm_out() {
        let events = Events::default();
        let mut heard = events.subscribe();
        publish(&events, 0);
        let at = SwitchPort::new(Dpid(1), Port(1));
        let host = HostId::new(MacAddr([2, 0, 0, 0, 0, 1]), None);
        for _ in 0..2 * EVENTS_KEPT {
            events.publish(Duration::ZERO, Event::HostSeen { host, at });
        }
        publish(&events, 1);
        let latest = events.latest(usize::MAX);
        assert_eq!(latest.len(), OTHERS_KEPT + 2);
        assert_eq!(latest.first().map(|it| it.event.clone()), Some(event(0)));
        assert_eq!(latest.last().map(|it| it.event.clone()), Some(event(1)));
        assert!(matches!(heard.take(), Some(Heard::Event(it)) if it.event == event(0)));
        let missed = (2 * EVENTS_KEPT - OTHERS_KEPT) as u64;
        assert_eq!(heard.take(), Some(Heard::Missed(missed)));
        let rest = std::iter::from_fn(|| heard.take());
        assert_eq!(rest.filter(|it| matches!(it, Heard::Event(_))).count(), latest.len() - 1);
    }

    #[test]
    fn connections_put_nothing_else_out() {
        let events = Events::default();
        publish(&events, 0);
        let why = Ended { reason: EndReason::Malformed, text: "no OpenFlow".into() };
        for times in 1..=2 * EVENTS_KEPT as u64 {
            let from = Some(IpAddr::from([192, 0, 2, 1]));
            let ended = Event::ConnectionEnded { from, why: why.clone(), times };
            assert!(ended.is_alarming());
            events.publish(Duration::ZERO, ended);
        }
        let latest = events.latest(usize::MAX);
        assert_eq!(latest.len(), CONNECTIONS_KEPT + 1);
        assert_eq!(latest.first().map(|it| it.event.clone()), Some(event(0)));
        let last = latest.last().map(|it| it.event.to_string());
        let text = "a connection from 192.0.2.1 ended: no OpenFlow (8192 times)";
        assert_eq!(last.as_deref(), Some(text));
    }

    #[test]
    fn a_task_that_waits_is_woken() {
        let events = Events::default();
        let mut heard = events.subscribe();
        let mut context = std::task::Context::from_waker(Waker::noop());
        let mut next = std::pin::pin!(heard.next());
        assert!(Future::poll(next.as_mut(), &mut context).is_pending());
        publish(&events, 7);
        let polled = Future::poll(next.as_mut(), &mut context);
        let Poll::Ready(Heard::Event(it)) = polled else { panic!("it is there") };
        assert_eq!(it.event.to_string(), "a forged announcement came in at 0000000000000001:7");
    }

    #[test]
    fn a_task_that_waits_no_longer_leaves_nothing_behind() {
        struct Count;
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {}
        }
        let (events, count) = (Events::default(), Arc::new(Count));
        let mut heard = events.subscribe();
        for _ in 0..3 {
            let waker = Waker::from(Arc::clone(&count));
            let mut next = Box::pin(heard.next());
            let mut context = std::task::Context::from_waker(&waker);
            assert!(Future::poll(next.as_mut(), &mut context).is_pending());
        }
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
