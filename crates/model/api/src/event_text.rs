//! The text of an event.

use std::fmt;

use crate::event_causes::{
    write_host_at_link, write_loop, write_ports, write_refused_announcements, write_segment,
    write_storm,
};
use crate::{Dpid, Event};

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
                let what = match by_order {
                    true => "by an order of an operator or app",
                    false => "from outside",
                };
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
