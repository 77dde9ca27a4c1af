//! What controllers of a cluster send to each other about links and hosts.

use std::net::IpAddr;
use std::time::Duration;

use bellrock_api::{Dpid, HostId, Port, SwitchPort};

use super::digest::{Buckets, Digest};
use super::outbox::HOSTS_PER_FRAME;
use crate::discovery::MIN_KEY_LEN;
use crate::hosts::MAX_ADDRESSES;

/// Maximum number of ports of a switch in a frame. A controller keeps no more of a switch.
pub const MAX_PORTS_OF_SWITCH: usize = 8192;

/// Maximum number of links from a switch in a frame: one from each port.
pub const MAX_LINKS_OF_SWITCH: usize = MAX_PORTS_OF_SWITCH;

/// Maximum number of switches in [`PeerFrame::Left`].
pub const MAX_LEFT: usize = 4096;

/// Maximum length of a key of announcements, in bytes.
const MAX_KEY_LEN: usize = 1024;

/// A message to another controller of the cluster. Times are those of the sender's clock.
#[derive(Clone, PartialEq, Eq)]
pub enum PeerFrame {
    /// The key that the sender's announcements are signed with, and the number in them.
    Key {
        /// The number of this start of the sender.
        instance: u64,
        /// The key. It is secret.
        key: Vec<u8>,
    },
    /// The sender begins to report all its switches and hosts of these buckets.
    Begin {
        /// Buckets of switches.
        switches: Buckets,
        /// Buckets of hosts.
        hosts: Buckets,
    },
    /// The sender is master of this switch. Replaces what it reported of the switch before.
    Switch {
        /// Time when it was sent.
        sent_at: Duration,
        /// The election that made the sender its master. Newer ones are greater, in the circle of
        /// numbers.
        term: u64,
        /// Ports and links.
        facts: SwitchFacts,
    },
    /// The sender is master of these switches no more.
    Left(Vec<Dpid>),
    /// Hosts at switches of the sender.
    Hosts {
        /// Time when it was sent.
        sent_at: Duration,
        /// The hosts.
        facts: HostFacts,
    },
    /// The sender has reported all that it knew at [`PeerFrame::Begin`].
    End,
    /// An announcement of the receiver came in at a switch of the sender.
    Announcement(PassedAnnouncement),
    /// Something claims what belongs to a host of the receiver.
    Claim(HostClaim),
    /// A host of the sender has moved to a switch of the receiver.
    Moved(HostFact),
    /// What the receiver must know of the sender by now.
    Digest {
        /// The sender's switches, with their ports and links.
        switches: Digest,
        /// Hosts at its switches.
        hosts: Digest,
    },
    /// The sender knows something else of the receiver than its digests say. The receiver reports
    /// these buckets again.
    Differs {
        /// Buckets of switches.
        switches: Buckets,
        /// Buckets of hosts.
        hosts: Buckets,
    },
}

/// Ports of a switch that are up, and the links that they send to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchFacts {
    /// The switch.
    pub dpid: Dpid,
    /// Its ports that are up.
    pub ports: Vec<PortFact>,
    /// Links from this switch that are up.
    pub links: Vec<LinkFact>,
}

/// A port that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortFact {
    /// Its number.
    pub port: Port,
    /// When it came up.
    pub since: Duration,
    /// The same on the clock of the controller that reports it, whoever reads it. If it differs
    /// from that of the last report, the port was down meanwhile.
    pub came_up: Duration,
    /// Whether it was announced for long enough to count as an edge port if it has no link.
    pub is_known: bool,
    /// Whether it had a link that was lost with its switch. Then it is no edge port.
    pub is_lost: bool,
}

/// A direction of a link that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFact {
    /// Port that sends.
    pub port: Port,
    /// Port that receives.
    pub to: SwitchPort,
    /// Rate in kbit/s, if the sending port reports it.
    pub rate_kbps: Option<u64>,
    /// When it came up.
    pub since: Duration,
}

/// Hosts that are there, and hosts that are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Hosts that are there.
    pub present: Vec<HostFact>,
    /// Hosts that are gone.
    pub gone: Vec<HostId>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFact {
    /// Its Ethernet address and VLAN.
    pub id: HostId,
    /// Its port.
    pub at: SwitchPort,
    /// Its IP addresses, in the order in which they were learnt.
    pub addresses: Vec<IpAddr>,
    /// Time since when it is known.
    pub since: Duration,
}

/// An announcement whose signature was checked, for the controller that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedAnnouncement {
    /// The number of the start of the controller that made it.
    pub instance: u64,
    /// Port that sent it.
    pub from: SwitchPort,
    /// Port that received it.
    pub to: SwitchPort,
    /// Its number.
    pub nonce: u64,
    /// When it was sent, on the clock of the controller that made it.
    pub sent: Duration,
}

/// A claim of something that belongs to a host of another controller, which decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostClaim {
    /// The host's Ethernet address was seen at another port.
    Place {
        /// The host.
        host: HostId,
        /// The port where it was seen.
        at: SwitchPort,
        /// IP address that its packet stated or used.
        ip: Option<IpAddr>,
    },
    /// Another host states that an IP address of this host is its own.
    Address {
        /// The address.
        ip: IpAddr,
        /// The host that has it.
        owner: HostId,
        /// The host that claims it.
        by: HostId,
    },
}

/// The contents of a frame are beyond its bounds. No controller sends that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame with {count} {what}: {minimum} to {maximum} are allowed")]
pub struct InvalidFrame {
    what: &'static str,
    count: usize,
    minimum: usize,
    maximum: usize,
}

impl PeerFrame {
    /// Checks that the contents are within their bounds.
    pub(super) fn check(&self) -> Result<(), InvalidFrame> {
        let check = |what, count, minimum, maximum| match (minimum..=maximum).contains(&count) {
            true => Ok(()),
            false => Err(InvalidFrame { what, count, minimum, maximum }),
        };
        let check_host =
            |fact: &HostFact| check("addresses", fact.addresses.len(), 0, MAX_ADDRESSES);
        match self {
            PeerFrame::Key { key, .. } => {
                check("bytes of a key", key.len(), MIN_KEY_LEN, MAX_KEY_LEN)
            }
            PeerFrame::Switch { facts, .. } => {
                check("ports", facts.ports.len(), 0, MAX_PORTS_OF_SWITCH)?;
                check("links", facts.links.len(), 0, MAX_LINKS_OF_SWITCH)
            }
            PeerFrame::Left(dpids) => check("switches", dpids.len(), 0, MAX_LEFT),
            PeerFrame::Hosts { facts, .. } => {
                check("hosts", facts.present.len() + facts.gone.len(), 0, HOSTS_PER_FRAME)?;
                facts.present.iter().try_for_each(check_host)
            }
            PeerFrame::Moved(fact) => check_host(fact),
            PeerFrame::Begin { .. }
            | PeerFrame::End
            | PeerFrame::Announcement(_)
            | PeerFrame::Claim(_)
            | PeerFrame::Digest { .. }
            | PeerFrame::Differs { .. } => Ok(()),
        }
    }
}

/// Keys are not shown.
impl std::fmt::Debug for PeerFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PeerFrame::Key { instance, .. } => write!(f, "Key({instance:x}, ..)"),
            PeerFrame::Begin { .. } => f.write_str("Begin"),
            PeerFrame::Switch { facts, .. } => facts.fmt(f),
            PeerFrame::Left(dpids) => write!(f, "Left({dpids:?})"),
            PeerFrame::Hosts { facts, .. } => facts.fmt(f),
            PeerFrame::End => f.write_str("End"),
            PeerFrame::Announcement(announcement) => announcement.fmt(f),
            PeerFrame::Claim(claim) => claim.fmt(f),
            PeerFrame::Moved(fact) => write!(f, "Moved({fact:?})"),
            PeerFrame::Digest { .. } => f.write_str("Digest"),
            PeerFrame::Differs { switches, hosts } => write!(f, "Differs({switches:?}, {hosts:?})"),
        }
    }
}

/// Converts a time of the sender's clock to this controller's. A time before this controller
/// started becomes its start.
fn at_clock(since: Duration, sent_at: Duration, now: Duration) -> Duration {
    now.saturating_sub(sent_at.saturating_sub(since))
}

impl SwitchFacts {
    /// The same with the times of this controller's clock.
    pub(super) fn at_clock(mut self, sent_at: Duration, now: Duration) -> Self {
        self.ports.iter_mut().for_each(|it| it.since = at_clock(it.since, sent_at, now));
        self.links.iter_mut().for_each(|it| it.since = at_clock(it.since, sent_at, now));
        self
    }
}

impl HostFacts {
    /// The same with the times of this controller's clock.
    pub(super) fn at_clock(mut self, sent_at: Duration, now: Duration) -> Self {
        self.present.iter_mut().for_each(|it| it.since = at_clock(it.since, sent_at, now));
        self
    }
}
