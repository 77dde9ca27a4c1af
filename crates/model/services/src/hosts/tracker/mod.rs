//! The state of hosts: a state machine without I/O. Sightings, the topology and the time go in;
//! hosts, probes, requests to switches and events come out.
//!
//! A host that does not answer probes may still send, by flows whose packets the controller does
//! not see. So before such a host is forgotten or moved, its switch is asked how many packets from
//! it the flows at its port have counted ([`HostTracker::counts`]).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use bellrock_api::{Event, Host, HostGone, HostId, Hosts, SwitchPort, Topology};

use super::HostTrackingSettings;
use super::believed::BelievedHosts;
use super::counting::CountedHost;
use super::frame::SenderAddresses;
use super::ports::HostPorts;
use crate::exchange::Peer;
use crate::outside_loops::KeptOutPorts;
pub use at_links::AT_LINK_AFTER;
use at_links::HostsAtLinks;
use shared::Sharing;
pub(super) use shared::ToShare;

/// How long a host has to answer a probe.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Time after which a probe is repeated: the probe or its answer may have been lost.
pub const ASK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Number of probes in a row that an old host leaves unanswered before it is forgotten.
pub const AGE_PROBES: u32 = 2;

/// How long a switch has to report the packet count of a host. Then the host counts as silent. It
/// is long, since requests for other hosts of the switch may be before it.
pub const COUNTED_WITHIN: Duration = Duration::from_secs(60);

/// Time after a refused claim of a host's address in which further claims are ignored.
pub const CLAIM_PAUSE: Duration = Duration::from_secs(2);

/// Minimum time between two alarms of a kind about the same host or port.
pub const ALARM_EVERY: Duration = Duration::from_secs(10);

/// Maximum number of IP addresses of a host. A further address replaces the oldest.
pub const MAX_ADDRESSES: usize = 16;

/// Maximum number of a host's addresses that replace older ones in a second. Others are learnt
/// later.
pub const REPLACED_PER_S: u32 = 4;

/// Maximum number of hosts that are probed when their port is up again. Others must send first.
pub const ASKED_ON_RETURN: usize = 64;

/// Maximum number of addresses of a host that are probed at a time.
const ADDRESSES_PER_PROBE: usize = 4;

/// A host was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) host: HostId,
    pub(super) at: SwitchPort,
    pub(super) addresses: SenderAddresses,
    /// When the packet came.
    pub(super) time: Duration,
}

/// A probe to send out of a port to a host there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) at: SwitchPort,
    pub(super) host: HostId,
    pub(super) ip: IpAddr,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct HostTracker {
    settings: HostTrackingSettings,
    entries: BTreeMap<HostId, TrackedHost>,
    ports: HostPorts,
    /// Assumed hosts that have not sent yet, and their ports.
    believed: BelievedHosts,
    /// All hosts that were ever assumed: each is assumed once.
    once_believed: BTreeSet<HostId>,
    /// Ports with hosts that went down and are not edge ports again yet.
    down_ports: BTreeSet<SwitchPort>,
    /// When each host is looked at next.
    due: BTreeSet<(Duration, HostId)>,
    /// The hosts that are present.
    hosts: Hosts,
    changed: bool,
    /// When it was last reported that a port has too many hosts.
    full_reported: BTreeMap<SwitchPort, Duration>,
    /// When it was last reported that a port used the source address of probes.
    impostor_reported: BTreeMap<SwitchPort, Duration>,
    /// Probes to send.
    pub(super) probes: Vec<Probe>,
    /// Hosts whose packet counts to request. Each answer goes to [`HostTracker::handle_count`].
    pub(super) counts: Vec<CountedHost>,
    pub(super) events: Vec<Event>,
    /// Ports of which handlers may have outdated hosts in their caches.
    pub(super) stale: Vec<SwitchPort>,
    pub(super) refused: Vec<RefusedSighting>,
    at_links: HostsAtLinks,
    /// Ports that stand for segments.
    segment_places: BTreeSet<SwitchPort>,
    /// Ports that are no place of a host now.
    pub(super) kept_out: KeptOutPorts,
    /// What is kept for the other controllers of a cluster.
    sharing: Option<Sharing>,
}

/// A sighting that was refused, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedSighting {
    /// The address belongs to a host that answered.
    Claim(SwitchPort),
    /// The port has its maximum of hosts.
    PortFull(SwitchPort),
    /// The network has its maximum of hosts, and no port has more hosts than this one.
    Full(SwitchPort),
}

#[derive(Debug)]
struct TrackedHost {
    at: SwitchPort,
    /// Whether it is present. An absent host is kept, to report a later move.
    present: bool,
    addresses: Vec<IpAddr>,
    /// When the current second began, and how many addresses were replaced in it.
    replaced: (Duration, u32),
    /// The last source address of its packets. Probed if the host has stated no address.
    source_ip: Option<IpAddr>,
    since: Duration,
    last_seen: Duration,
    due: Duration,
    probe: Option<PendingProbe>,
    /// Whether a packet count was requested and has not been answered.
    is_counted: bool,
    /// The packet count when the host was last silent.
    packets: Option<u64>,
    /// Until when claims are ignored, after a refused one.
    paused_until: Duration,
    claim_reported: Option<Duration>,
    /// The other controller of the cluster that it belongs to. This one only shows it then.
    of: Option<Peer>,
    /// The other controller at whose switch it was seen, until that is decided.
    claimed_by: Option<Peer>,
    /// The report of that controller that it was in: the number of [`Sharing`].
    report: u32,
}

impl TrackedHost {
    /// A host that is present since now.
    fn new(at: SwitchPort, now: Duration, due: Duration) -> Self {
        TrackedHost {
            at,
            present: true,
            addresses: Vec::new(),
            replaced: (Duration::ZERO, 0),
            source_ip: None,
            since: now,
            last_seen: now,
            due,
            probe: None,
            is_counted: false,
            packets: None,
            paused_until: Duration::ZERO,
            claim_reported: None,
            of: None,
            claimed_by: None,
            report: 0,
        }
    }

    /// Whether a new address may replace an old one. Each change makes all readers look again.
    fn may_replace(&mut self, now: Duration) -> bool {
        let (since, count) = &mut self.replaced;
        if *since + Duration::from_secs(1) <= now {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= REPLACED_PER_S
    }
}

/// A probe that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct PendingProbe {
    reason: ProbeReason,
    deadline: Duration,
    repeat_at: Option<Duration>,
    /// The packet count that was requested when the probe was repeated.
    packets: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum ProbeReason {
    /// It was not seen for long. Number of the probe, from 1.
    Aged(u32),
    /// It does not answer. Its packet count was requested.
    Silent,
    /// It was seen at this port.
    Claim(SwitchPort),
    /// It was seen at this port and does not answer. This is its packet count, requested once more.
    SilentClaim(SwitchPort, u64),
    /// Another host states that this address is its own.
    Address(IpAddr, HostId),
    /// Its port is up again.
    Returned,
}

impl HostTracker {
    pub(super) fn new(settings: HostTrackingSettings, keys: [u64; 2]) -> Self {
        HostTracker {
            settings,
            entries: BTreeMap::new(),
            ports: HostPorts::default(),
            believed: BelievedHosts::new(),
            once_believed: BTreeSet::new(),
            down_ports: BTreeSet::new(),
            due: BTreeSet::new(),
            hosts: Hosts::with_keys(keys),
            changed: false,
            full_reported: BTreeMap::new(),
            impostor_reported: BTreeMap::new(),
            probes: Vec::new(),
            counts: Vec::new(),
            events: Vec::new(),
            stale: Vec::new(),
            refused: Vec::new(),
            at_links: HostsAtLinks::default(),
            segment_places: BTreeSet::new(),
            kept_out: KeptOutPorts::default(),
            sharing: None,
        }
    }

    /// Handles a sighting of a host.
    pub(super) fn handle_sighting(
        &mut self,
        sighting: Sighting,
        topology: &Topology,
        now: Duration,
    ) {
        let Sighting { host, at, addresses, time: _ } = sighting;
        if !topology.is_host_place(at) {
            return;
        }
        self.learn_believed_host(host, topology, now);
        self.reclaim(host, at, now);
        match self.entries.get(&host).map(|entry| (entry.present, entry.at == at)) {
            None => {
                if !self.learn(host, at, now) {
                    return;
                }
            }
            Some((true, true)) => self.seen_at_port(host, addresses, now),
            Some((true, false)) => {
                return self.handle_claim(host, at, addresses, topology, now);
            }
            Some((false, _)) => self.handle_return(host, at, now),
        }
        match addresses {
            SenderAddresses::Address(ip) => self.handle_address(host, ip, now),
            SenderAddresses::Used(ip) => {
                if let Some(entry) = self.entries.get_mut(&host) {
                    entry.source_ip = Some(ip);
                }
            }
            SenderAddresses::Nothing => {}
        }
    }

    /// Learns a new host. Returns whether it was accepted.
    fn learn(&mut self, host: HostId, at: SwitchPort, now: Duration) -> bool {
        let count = self.ports.count(at);
        if count >= self.settings.max_hosts_per_port {
            self.refused.push(RefusedSighting::PortFull(at));
            let reported = self.full_reported.get(&at);
            if reported.is_none_or(|told| *told + ALARM_EVERY <= now) {
                self.full_reported.insert(at, now);
                self.events.push(Event::TooManyHosts { at });
            }
            return false;
        }
        if self.entries.len() >= self.settings.max_hosts && !self.evict_for(count) {
            self.refused.push(RefusedSighting::Full(at));
            return false;
        }
        let due = now + self.settings.max_age;
        self.entries.insert(host, TrackedHost::new(at, now, due));
        self.due.insert((due, host));
        self.ports.add(at, host);
        self.events.push(Event::HostSeen { host, at });
        self.publish(host);
        true
    }

    /// Forgets the oldest host of the port with most hosts, if that port has more than `fewer + 1`.
    fn evict_for(&mut self, limit: usize) -> bool {
        let Some((count, at)) = self.ports.fullest() else { return false };
        if count <= limit + 1 {
            return false;
        }
        let oldest = self
            .ports
            .hosts(at)
            .filter(|host| !self.is_of_peer(*host))
            .min_by_key(|host| self.entries.get(host).map(|entry| entry.last_seen));
        let Some(oldest) = oldest else { return false };
        self.remove(oldest, HostGone::Evicted);
        true
    }

    /// A host was seen at its port.
    fn seen_at_port(&mut self, host: HostId, addresses: SenderAddresses, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        entry.last_seen = now;
        match entry.probe.map(|probe| probe.reason) {
            Some(ProbeReason::Address(ip, by)) => {
                if addresses == SenderAddresses::Address(ip) {
                    entry.probe = None;
                    entry.paused_until = now + CLAIM_PAUSE;
                    let refused = Event::AddressClaimRefused { ip, owner: host, claimed_by: by };
                    self.refuse(host, by, refused, now);
                }
            }
            Some(ProbeReason::Claim(claimed_at) | ProbeReason::SilentClaim(claimed_at, _)) => {
                return self.refuse_claim(host, claimed_at, now);
            }
            Some(ProbeReason::Aged(_) | ProbeReason::Silent | ProbeReason::Returned) => {
                entry.probe = None;
            }
            None => return,
        }
        self.reschedule(host);
    }

    /// A host is still at its port, and its address was used elsewhere.
    fn refuse_claim(&mut self, host: HostId, claimed_at: SwitchPort, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        entry.probe = None;
        entry.paused_until = now + CLAIM_PAUSE;
        let event = Event::HostMoveRefused { host, at: entry.at, claimed_at };
        // Packets of hosts elsewhere cross segments.
        if !self.segment_places.contains(&claimed_at) {
            self.refused.push(RefusedSighting::Claim(claimed_at));
            self.alarm(host, event, now);
        }
        self.reschedule(host);
        self.claim_decided(host);
    }

    fn refuse(&mut self, host: HostId, by: HostId, event: Event, now: Duration) {
        if let Some(at) = self.entries.get(&by).map(|entry| entry.at) {
            self.refused.push(RefusedSighting::Claim(at));
        }
        self.alarm(host, event, now);
    }

    /// Reports a refused claim, at most once every [`ALARM_EVERY`].
    fn alarm(&mut self, host: HostId, event: Event, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        if entry.claim_reported.is_none_or(|reported| reported + ALARM_EVERY <= now) {
            entry.claim_reported = Some(now);
            self.events.push(event);
        }
    }

    /// A host was seen at another port. If it is still at its own, the sighting is a false claim.
    fn handle_claim(
        &mut self,
        host: HostId,
        at: SwitchPort,
        addresses: SenderAddresses,
        topology: &Topology,
        now: Duration,
    ) {
        if self.pass_claim(host, at, addresses, topology, now) {
            return;
        }
        let Some(entry) = self.entries.get_mut(&host) else { return };
        if self.kept_out.contains(entry.at) {
            // It was learnt there before the loop was found.
            return self.accept_claim(host, at, topology, now);
        }
        if !topology.is_edge(at) && entry.addresses.is_empty() {
            // Its packet may only cross the segment, and it cannot be asked.
            return;
        }
        let is_claimed =
            |reason| matches!(reason, ProbeReason::Claim(_) | ProbeReason::SilentClaim(..));
        if now < entry.paused_until || entry.probe.is_some_and(|probe| is_claimed(probe.reason)) {
            return;
        }
        // If the host has stated no address, the claimed one serves for the probe.
        if let (None, SenderAddresses::Address(ip) | SenderAddresses::Used(ip)) =
            (entry.source_ip, addresses)
        {
            entry.source_ip = Some(ip);
        }
        // Clears the handler's cache, so that each packet from its port is reported.
        self.stale.push(entry.at);
        self.probe(host, ProbeReason::Claim(at), now);
    }

    /// A host that was gone was seen.
    fn handle_return(&mut self, host: HostId, at: SwitchPort, now: Duration) {
        if self.is_port_full(host, at) {
            return self.remove(host, HostGone::Evicted);
        }
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let from = std::mem::replace(&mut entry.at, at);
        (entry.present, entry.since, entry.last_seen, entry.probe) = (true, now, now, None);
        entry.of = None;
        self.ports.remove(from, host);
        self.ports.add(at, host);
        self.events.push(match from == at {
            true => Event::HostSeen { host, at },
            false => Event::HostMoved { host, from, to: at },
        });
        self.reschedule(host);
        self.publish(host);
    }

    /// Probes a host.
    fn probe(&mut self, host: HostId, reason: ProbeReason, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let (deadline, repeat_at) = (now + ANSWER_WITHIN, Some(now + ASK_AGAIN_AFTER));
        entry.probe = Some(PendingProbe { reason, deadline, repeat_at, packets: None });
        self.send_probes(host, reason);
        self.reschedule(host);
    }

    /// Reports that a port used the source address of probes.
    pub(super) fn probe_address_used(&mut self, at: SwitchPort, now: Duration) {
        let reported = self.impostor_reported.get(&at);
        if reported.is_none_or(|told| *told + ALARM_EVERY <= now) {
            self.impostor_reported.insert(at, now);
            self.events.push(Event::ProbeAddressUsed { at });
        }
    }

    fn send_probes(&mut self, host: HostId, reason: ProbeReason) {
        let Some(entry) = self.entries.get(&host) else { return };
        let at = entry.at;
        if let ProbeReason::Address(ip, _) = reason {
            return self.probes.push(Probe { at, host, ip });
        }
        // The newest addresses are most likely in use.
        let stated = entry.addresses.iter().rev().take(ADDRESSES_PER_PROBE).copied();
        let used = entry.source_ip.filter(|_| entry.addresses.is_empty());
        self.probes.extend(stated.chain(used).map(|ip| Probe { at, host, ip }));
    }

    /// A probe could not be sent: it is sent a little later, and its time to answer begins then.
    pub(super) fn not_sent(&mut self, host: HostId, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        if let Some(probe) = &mut entry.probe {
            let repeat_at = now + ASK_AGAIN_AFTER;
            (probe.deadline, probe.repeat_at) = (repeat_at + ANSWER_WITHIN, Some(repeat_at));
            self.reschedule(host);
        }
    }

    /// Updates when a host is looked at next.
    fn reschedule(&mut self, host: HostId) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let due = match entry.probe {
            Some(probe) => probe.repeat_at.unwrap_or(probe.deadline),
            None => entry.last_seen + self.settings.max_age,
        };
        let before = std::mem::replace(&mut entry.due, due);
        self.due.remove(&(before, host));
        if entry.of.is_some() {
            // Its own controller asks it.
            return;
        }
        self.due.insert((due, host));
    }

    /// Does what is due.
    pub(super) fn timers(&mut self, topology: &Topology, now: Duration) {
        while let Some((_, host)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.timer(host, topology, now);
        }
    }

    fn timer(&mut self, host: HostId, topology: &Topology, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let Some(probe) = &mut entry.probe else {
            if entry.last_seen + self.settings.max_age > now {
                // It was seen since.
                return self.reschedule(host);
            }
            return match entry.present {
                true => self.probe(host, ProbeReason::Aged(1), now),
                false => self.remove(host, HostGone::Aged),
            };
        };
        let (reason, packets) = (probe.reason, probe.packets);
        if probe.deadline > now {
            probe.repeat_at = None;
            self.send_probes(host, reason);
            if matches!(reason, ProbeReason::Claim(_)) {
                self.count(host);
            }
            return self.reschedule(host);
        }
        entry.probe = None;
        match (reason, packets) {
            (ProbeReason::Aged(AGE_PROBES..), _) => {
                return self.request_count(host, ProbeReason::Silent, now);
            }
            (ProbeReason::Aged(times), _) => {
                return self.probe(host, ProbeReason::Aged(times + 1), now);
            }
            (ProbeReason::Silent, _) => return self.remove(host, HostGone::Aged),
            (ProbeReason::Claim(to), Some(packets)) => {
                return self.request_count(host, ProbeReason::SilentClaim(to, packets), now);
            }
            (ProbeReason::Claim(to) | ProbeReason::SilentClaim(to, _), _) => {
                return self.accept_claim(host, to, topology, now);
            }
            (ProbeReason::Address(ip, by), _) => self.transfer_address(host, ip, by, now),
            // It may be back later.
            (ProbeReason::Returned, _) => {}
        }
        self.reschedule(host);
    }

    /// Whether a port has no space for a host from another port.
    fn is_port_full(&self, host: HostId, at: SwitchPort) -> bool {
        let is_elsewhere = self.entries.get(&host).is_some_and(|entry| entry.at != at);
        is_elsewhere && self.ports.count(at) >= self.settings.max_hosts_per_port
    }

    /// A host did not answer at its port, and was seen elsewhere.
    fn move_host(&mut self, host: HostId, to: SwitchPort, now: Duration) {
        if self.is_port_full(host, to) {
            return self.remove(host, HostGone::Evicted);
        }
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let from = std::mem::replace(&mut entry.at, to);
        (entry.since, entry.last_seen, entry.packets) = (now, now, None);
        self.ports.remove(from, host);
        self.ports.add(to, host);
        self.stale.push(from);
        self.events.push(Event::HostMoved { host, from, to });
        self.publish(host);
    }

    /// A host is not present any more, and may come back.
    fn mark_absent(&mut self, host: HostId, why: HostGone) {
        if self.is_of_peer(host) {
            return self.remove_silently(host);
        }
        let Some(entry) = self.entries.get_mut(&host).filter(|entry| entry.present) else { return };
        let at = entry.at;
        (entry.present, entry.probe) = (false, None);
        self.note_change(host);
        self.changed |= self.hosts.remove(host).is_some();
        self.stale.push(at);
        self.events.push(Event::HostGone { host, at, why });
        self.reschedule(host);
    }

    fn remove(&mut self, host: HostId, why: HostGone) {
        if self.is_of_peer(host) {
            return self.remove_silently(host);
        }
        self.note_change(host);
        let Some(entry) = self.entries.remove(&host) else { return };
        let at = entry.at;
        self.due.remove(&(entry.due, host));
        self.ports.remove(at, host);
        if entry.present {
            self.changed |= self.hosts.remove(host).is_some();
            self.stale.push(at);
            self.events.push(Event::HostGone { host, at, why });
        }
    }

    /// Updates a host in the published hosts.
    fn publish(&mut self, id: HostId) {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.present) else { return };
        // While it was gone, another host may have taken its addresses.
        let owner = |ip: &IpAddr| self.hosts.by_ip(*ip, id.vlan).map(|owner| owner.id);
        entry.addresses.retain(|ip| owner(ip).is_none_or(|owner| owner == id));
        let (at, since) = (entry.at, entry.since);
        let is_own = entry.of.is_none();
        self.hosts.insert(Host { id, at, addresses: entry.addresses.clone(), since });
        self.changed = true;
        if is_own {
            self.note_change(id);
        }
    }

    /// When [`timers`](Self::timers) has work.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The present hosts.
    pub(super) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// When a present host of this controller was last seen.
    pub(super) fn last_seen(&self, host: HostId) -> Option<Duration> {
        let entry = self.entries.get(&host)?;
        (entry.present && entry.of.is_none()).then_some(entry.last_seen)
    }

    /// Returns the present hosts, if they have changed since the last call.
    pub(super) fn take_hosts(&mut self) -> Option<Hosts> {
        std::mem::take(&mut self.changed).then(|| self.hosts.clone())
    }
}

mod addresses;
mod at_links;
mod believed;
mod shared;
mod silent;
#[cfg(test)]
mod tests;
mod topology;
