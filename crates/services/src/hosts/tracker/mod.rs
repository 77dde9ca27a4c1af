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
    pub(super) told: SenderAddresses,
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
    were_believed: BTreeSet<HostId>,
    /// Ports with hosts that went down and are not edge ports again yet.
    away: BTreeSet<SwitchPort>,
    /// When each host is looked at next.
    due: BTreeSet<(Duration, HostId)>,
    /// The hosts that are present.
    hosts: Hosts,
    changed: bool,
    /// When it was last reported that a port has too many hosts.
    told_full: BTreeMap<SwitchPort, Duration>,
    /// When it was last reported that a port used the source address of probes.
    told_impostor: BTreeMap<SwitchPort, Duration>,
    /// Probes to send.
    pub(super) probes: Vec<Probe>,
    /// Hosts whose packet counts to request. Each answer goes to [`HostTracker::counted`].
    pub(super) counts: Vec<CountedHost>,
    pub(super) events: Vec<Event>,
    /// Ports of which handlers may have outdated hosts in their caches.
    pub(super) stale: Vec<SwitchPort>,
    pub(super) refused: Vec<RefusedSighting>,
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
    used: Option<IpAddr>,
    since: Duration,
    seen: Duration,
    due: Duration,
    asked: Option<PendingProbe>,
    /// Whether a packet count was requested and has not been answered.
    is_counted: bool,
    /// The packet count when the host was last silent.
    packets: Option<u64>,
    /// Until when claims are ignored, after a refused one.
    paused: Duration,
    told_claim: Option<Duration>,
}

impl TrackedHost {
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
    why: ProbeReason,
    until: Duration,
    again: Option<Duration>,
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
            were_believed: BTreeSet::new(),
            away: BTreeSet::new(),
            due: BTreeSet::new(),
            hosts: Hosts::keyed(keys),
            changed: false,
            told_full: BTreeMap::new(),
            told_impostor: BTreeMap::new(),
            probes: Vec::new(),
            counts: Vec::new(),
            events: Vec::new(),
            stale: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Handles a sighting of a host.
    pub(super) fn seen(&mut self, sighting: Sighting, topology: &Topology, now: Duration) {
        let Sighting { host, at, told } = sighting;
        if !topology.is_edge(at) {
            return;
        }
        self.recall(host, topology, now);
        match self.entries.get(&host).map(|entry| (entry.present, entry.at == at)) {
            None => {
                if !self.learn(host, at, now) {
                    return;
                }
            }
            Some((true, true)) => self.still_there(host, told, now),
            Some((true, false)) => return self.claimed(host, at, told, now),
            Some((false, _)) => self.returned(host, at, now),
        }
        match told {
            SenderAddresses::Address(ip) => self.address(host, ip, now),
            SenderAddresses::Used(ip) => {
                if let Some(entry) = self.entries.get_mut(&host) {
                    entry.used = Some(ip);
                }
            }
            SenderAddresses::Nothing => {}
        }
    }

    /// Learns a new host. Returns whether it was accepted.
    fn learn(&mut self, host: HostId, at: SwitchPort, now: Duration) -> bool {
        let here = self.ports.count(at);
        if here >= self.settings.max_hosts_per_port {
            self.refused.push(RefusedSighting::PortFull(at));
            let told = self.told_full.get(&at);
            if told.is_none_or(|told| *told + ALARM_EVERY <= now) {
                self.told_full.insert(at, now);
                self.events.push(Event::TooManyHosts { at });
            }
            return false;
        }
        if self.entries.len() >= self.settings.max_hosts && !self.make_room(here) {
            self.refused.push(RefusedSighting::Full(at));
            return false;
        }
        let due = now + self.settings.max_age;
        self.entries.insert(
            host,
            TrackedHost {
                at,
                present: true,
                addresses: Vec::new(),
                replaced: (Duration::ZERO, 0),
                used: None,
                since: now,
                seen: now,
                due,
                asked: None,
                is_counted: false,
                packets: None,
                paused: Duration::ZERO,
                told_claim: None,
            },
        );
        self.due.insert((due, host));
        self.ports.add(at, host);
        self.events.push(Event::HostSeen { host, at });
        self.publish(host);
        true
    }

    /// Forgets the oldest host of the port with most hosts, if that port has more than `fewer + 1`.
    fn make_room(&mut self, fewer: usize) -> bool {
        let Some((most, at)) = self.ports.fullest() else { return false };
        if most <= fewer + 1 {
            return false;
        }
        let oldest =
            self.ports.hosts(at).min_by_key(|host| self.entries.get(host).map(|it| it.seen));
        let Some(oldest) = oldest else { return false };
        self.forget(oldest, HostGone::Evicted);
        true
    }

    /// A host was seen at its port.
    fn still_there(&mut self, host: HostId, told: SenderAddresses, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        entry.seen = now;
        match entry.asked.map(|asked| asked.why) {
            Some(ProbeReason::Address(ip, by)) => {
                if told == SenderAddresses::Address(ip) {
                    entry.asked = None;
                    entry.paused = now + CLAIM_PAUSE;
                    let refused = Event::AddressClaimRefused { ip, of: host, claimed_by: by };
                    self.refuse(host, by, refused, now);
                }
            }
            Some(ProbeReason::Claim(claimed_at) | ProbeReason::SilentClaim(claimed_at, _)) => {
                return self.refuse_claim(host, claimed_at, now);
            }
            Some(ProbeReason::Aged(_) | ProbeReason::Silent | ProbeReason::Returned) => {
                entry.asked = None;
            }
            None => return,
        }
        self.look_at(host);
    }

    /// A host is still at its port, and its address was used elsewhere.
    fn refuse_claim(&mut self, host: HostId, claimed_at: SwitchPort, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        entry.asked = None;
        entry.paused = now + CLAIM_PAUSE;
        let event = Event::HostMoveRefused { host, at: entry.at, claimed_at };
        self.refused.push(RefusedSighting::Claim(claimed_at));
        self.alarm(host, event, now);
        self.look_at(host);
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
        if entry.told_claim.is_none_or(|told| told + ALARM_EVERY <= now) {
            entry.told_claim = Some(now);
            self.events.push(event);
        }
    }

    /// A host was seen at another port. If it is still at its own, the sighting is a false claim.
    fn claimed(&mut self, host: HostId, at: SwitchPort, told: SenderAddresses, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let is_claimed = |why| matches!(why, ProbeReason::Claim(_) | ProbeReason::SilentClaim(..));
        if now < entry.paused || entry.asked.is_some_and(|asked| is_claimed(asked.why)) {
            return;
        }
        // If the host has stated no address, the claimed one serves for the probe.
        if let (None, SenderAddresses::Address(ip) | SenderAddresses::Used(ip)) = (entry.used, told)
        {
            entry.used = Some(ip);
        }
        // Clears the handler's cache, so that each packet from its port is reported.
        self.stale.push(entry.at);
        self.ask(host, ProbeReason::Claim(at), now);
    }

    /// A host that was gone was seen.
    fn returned(&mut self, host: HostId, at: SwitchPort, now: Duration) {
        if self.is_too_many(host, at) {
            return self.forget(host, HostGone::Evicted);
        }
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let from = std::mem::replace(&mut entry.at, at);
        (entry.present, entry.since, entry.seen, entry.asked) = (true, now, now, None);
        self.ports.remove(from, host);
        self.ports.add(at, host);
        self.events.push(match from == at {
            true => Event::HostSeen { host, at },
            false => Event::HostMoved { host, from, to: at },
        });
        self.look_at(host);
        self.publish(host);
    }

    /// A host has stated an address of its own.
    fn address(&mut self, host: HostId, ip: IpAddr, now: Duration) {
        let owner = self.hosts.by_ip(ip, host.vlan).map(|owner| owner.id);
        match owner {
            Some(owner) if owner == host => {}
            None => self.add_address(host, ip, now),
            Some(owner) => {
                let asked = self.entries.get(&owner).is_none_or(|entry| entry.asked.is_some());
                let paused = self.entries.get(&owner).is_some_and(|entry| now < entry.paused);
                if !asked && !paused {
                    self.ask(owner, ProbeReason::Address(ip, host), now);
                }
            }
        }
    }

    fn add_address(&mut self, host: HostId, ip: IpAddr, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host).filter(|entry| entry.present) else { return };
        if entry.addresses.len() == MAX_ADDRESSES {
            if !entry.may_replace(now) {
                return;
            }
            entry.addresses.remove(0);
        }
        entry.addresses.push(ip);
        self.publish(host);
    }

    /// Probes a host.
    fn ask(&mut self, host: HostId, why: ProbeReason, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let (until, again) = (now + ANSWER_WITHIN, Some(now + ASK_AGAIN_AFTER));
        entry.asked = Some(PendingProbe { why, until, again, packets: None });
        self.send_probes(host, why);
        self.look_at(host);
    }

    /// Reports that a port used the source address of probes.
    pub(super) fn probe_address_used(&mut self, at: SwitchPort, now: Duration) {
        let told = self.told_impostor.get(&at);
        if told.is_none_or(|told| *told + ALARM_EVERY <= now) {
            self.told_impostor.insert(at, now);
            self.events.push(Event::ProbeAddressUsed { at });
        }
    }

    fn send_probes(&mut self, host: HostId, why: ProbeReason) {
        let Some(entry) = self.entries.get(&host) else { return };
        let at = entry.at;
        if let ProbeReason::Address(ip, _) = why {
            return self.probes.push(Probe { at, host, ip });
        }
        // The newest addresses are most likely in use.
        let told = entry.addresses.iter().rev().take(ADDRESSES_PER_PROBE).copied();
        let used = entry.used.filter(|_| entry.addresses.is_empty());
        self.probes.extend(told.chain(used).map(|ip| Probe { at, host, ip }));
    }

    /// A probe could not be sent: it is sent a little later, and its time to answer begins then.
    pub(super) fn not_sent(&mut self, host: HostId, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        if let Some(asked) = &mut entry.asked {
            let again = now + ASK_AGAIN_AFTER;
            (asked.until, asked.again) = (again + ANSWER_WITHIN, Some(again));
            self.look_at(host);
        }
    }

    /// Updates when a host is looked at next.
    fn look_at(&mut self, host: HostId) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let due = match entry.asked {
            Some(asked) => asked.again.unwrap_or(asked.until),
            None => entry.seen + self.settings.max_age,
        };
        let before = std::mem::replace(&mut entry.due, due);
        self.due.remove(&(before, host));
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
        let Some(asked) = &mut entry.asked else {
            if entry.seen + self.settings.max_age > now {
                // It was seen since.
                return self.look_at(host);
            }
            return match entry.present {
                true => self.ask(host, ProbeReason::Aged(1), now),
                false => self.forget(host, HostGone::Aged),
            };
        };
        let (why, packets) = (asked.why, asked.packets);
        if asked.until > now {
            asked.again = None;
            self.send_probes(host, why);
            if matches!(why, ProbeReason::Claim(_)) {
                self.count(host);
            }
            return self.look_at(host);
        }
        entry.asked = None;
        match (why, packets) {
            (ProbeReason::Aged(AGE_PROBES..), _) => {
                return self.count_for(host, ProbeReason::Silent, now);
            }
            (ProbeReason::Aged(times), _) => {
                return self.ask(host, ProbeReason::Aged(times + 1), now);
            }
            (ProbeReason::Silent, _) => return self.forget(host, HostGone::Aged),
            (ProbeReason::Claim(to), Some(packets)) => {
                return self.count_for(host, ProbeReason::SilentClaim(to, packets), now);
            }
            (ProbeReason::Claim(to) | ProbeReason::SilentClaim(to, _), _) => {
                return self.claim_over(host, to, topology, now);
            }
            (ProbeReason::Address(ip, by), _) => self.take_address(host, ip, by, now),
            // It may be back later.
            (ProbeReason::Returned, _) => {}
        }
        self.look_at(host);
    }

    /// Whether a port has no space for a host from another port.
    fn is_too_many(&self, host: HostId, at: SwitchPort) -> bool {
        let elsewhere = self.entries.get(&host).is_some_and(|entry| entry.at != at);
        elsewhere && self.ports.count(at) >= self.settings.max_hosts_per_port
    }

    /// A host did not answer at its port, and was seen elsewhere.
    fn moved(&mut self, host: HostId, to: SwitchPort, now: Duration) {
        if self.is_too_many(host, to) {
            return self.forget(host, HostGone::Evicted);
        }
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let from = std::mem::replace(&mut entry.at, to);
        (entry.since, entry.seen, entry.packets) = (now, now, None);
        self.ports.remove(from, host);
        self.ports.add(to, host);
        self.stale.push(from);
        self.events.push(Event::HostMoved { host, from, to });
        self.publish(host);
    }

    /// A host does not answer for an address that another host states as its own.
    fn take_address(&mut self, host: HostId, ip: IpAddr, by: HostId, now: Duration) {
        if let Some(entry) = self.entries.get_mut(&host) {
            entry.addresses.retain(|its| *its != ip);
            self.publish(host);
        }
        self.add_address(by, ip, now);
    }

    /// Updates the hosts after the topology has changed. Hosts at trunk ports are forgotten, and
    /// hosts at ports that are down are gone. Hosts of a switch that is away stay, since it goes on
    /// forwarding. So do hosts at a port that is not judged yet.
    pub(super) fn topology(&mut self, topology: &Topology, now: Duration) {
        let is_down =
            |at: SwitchPort| topology.switches.contains_key(&at.dpid) && !topology.is_up(at);
        self.learn_believed(topology, now);
        let places: Vec<SwitchPort> = self.ports.all().collect();
        for at in places {
            if topology.is_trunk(at) {
                self.each_at(at, |tracker, host| tracker.forget(host, HostGone::Link));
            } else if topology.is_edge(at) {
                if self.away.remove(&at) {
                    self.port_returned(at, now);
                }
            } else if is_down(at) && self.away.insert(at) {
                self.each_at(at, |tracker, host| tracker.gone(host, HostGone::Port));
            }
        }
        self.away.retain(|at| self.ports.count(*at) > 0);
        self.told_full.retain(|at, _| topology.is_edge(*at));
        self.told_impostor.retain(|at, _| topology.is_up(*at));
    }

    fn each_at(&mut self, at: SwitchPort, mut visit: impl FnMut(&mut Self, HostId)) {
        let hosts: Vec<HostId> = self.ports.hosts(at).collect();
        hosts.into_iter().for_each(|host| visit(self, host));
    }

    /// A port is up again: probes its absent hosts, the last seen first.
    fn port_returned(&mut self, at: SwitchPort, now: Duration) {
        let away = |host: &HostId| self.entries.get(host).filter(|entry| !entry.present);
        let mut hosts: Vec<(Duration, HostId)> =
            self.ports.hosts(at).filter_map(|host| Some((away(&host)?.seen, host))).collect();
        hosts.sort_unstable_by(|a, b| b.cmp(a));
        for (_, host) in hosts.into_iter().take(ASKED_ON_RETURN) {
            self.ask(host, ProbeReason::Returned, now);
        }
    }

    /// A host is not present any more, and may come back.
    fn gone(&mut self, host: HostId, why: HostGone) {
        let Some(entry) = self.entries.get_mut(&host).filter(|entry| entry.present) else { return };
        let at = entry.at;
        (entry.present, entry.asked) = (false, None);
        self.changed |= self.hosts.remove(host).is_some();
        self.stale.push(at);
        self.events.push(Event::HostGone { host, at, why });
        self.look_at(host);
    }

    fn forget(&mut self, host: HostId, why: HostGone) {
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
        self.hosts.insert(Host { id, at, addresses: entry.addresses.clone(), since });
        self.changed = true;
    }

    /// When [`timers`](Self::timers) has work.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Returns the present hosts, if they have changed since the last call.
    pub(super) fn take_hosts(&mut self) -> Option<Hosts> {
        std::mem::take(&mut self.changed).then(|| self.hosts.clone())
    }
}

mod believed;
mod silent;
#[cfg(test)]
mod tests;
