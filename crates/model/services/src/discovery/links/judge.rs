//! Tells links from relays between hosts: by hosts, by what an operator says, and by the history of
//! ports.

use std::time::Duration;

use bellrock_api::{Event, Hosts, LinkDown, Suspicion, SwitchPort};

use super::{COMPARED_LINKS, LinkTable, NEW_PORT};
use crate::discovery::latency::{LatencyChange, LinkLatency, is_late};
use crate::discovery::relays::{LinkVerdict, SuspectedLink, VerdictsFull};

/// Usual latency of a new link as a multiple of the median of all links: links of a network differ.
const TIMES_MEDIAN: u32 = 4;

impl LinkTable {
    /// Whether a new link is refused as a relay. Reports why, unless an operator has said so.
    pub(super) fn is_relay(
        &mut self,
        from: SwitchPort,
        to: SwitchPort,
        hosts: &Hosts,
        now: Duration,
    ) -> bool {
        match self.relays.verdict(from, to) {
            Some(LinkVerdict::Relay) => return true,
            Some(LinkVerdict::Link) => return false,
            None if self.relays.is_trusted(from, to) => return false,
            None => {}
        }
        let suspicion = self.suspicious_hosts(from, to, hosts, now);
        let suspicion = suspicion.or_else(|| self.suspicious_history(from, to, now));
        let Some(why) = suspicion else { return false };
        self.report_suspicion(from, to, why, now);
        true
    }

    /// Finds hosts where a new link would be. Between ports that have long been up, a link would
    /// have been found at once. If it is found only now and a port has hosts, they are what
    /// connects the ports.
    fn suspicious_hosts(
        &self,
        from: SwitchPort,
        to: SwitchPort,
        hosts: &Hosts,
        now: Duration,
    ) -> Option<Suspicion> {
        let since = self.port(from)?.since.max(self.port(to)?.since);
        let is_old = now > since + NEW_PORT + self.interval;
        if !is_old {
            return None;
        }
        let at = [from, to].into_iter().find(|at| hosts.at(*at).next().is_some())?;
        Some(Suspicion::HostTraffic { at })
    }

    /// Finds a port that had hosts when it went down, a short time ago, while the other switch was
    /// connected. A host can take its port down and up to have its history forgotten. A switch that
    /// takes the place of a host connects after that.
    fn suspicious_history(
        &self,
        from: SwitchPort,
        to: SwitchPort,
        now: Duration,
    ) -> Option<Suspicion> {
        let is_suspicious = |at: SwitchPort, other: SwitchPort| {
            let connected = self.switches.get(&other.dpid).map(|switch| switch.since);
            let lost = self.relays.lost_hosts(at, now);
            lost.zip(connected).is_some_and(|(lost, connected)| connected < lost)
        };
        let at =
            [(from, to), (to, from)].into_iter().find(|(at, other)| is_suspicious(*at, *other));
        at.map(|(at, _)| Suspicion::HostPort { at })
    }

    /// Notes the hosts at a port that goes down.
    pub(in crate::discovery) fn note_hosts(
        &mut self,
        at: SwitchPort,
        hosts: &Hosts,
        now: Duration,
    ) {
        if self.port(at).is_some() && hosts.at(at).next().is_some() {
            self.relays.note_hosts(at, now);
        }
    }

    /// Records the latency of an announcement. Returns whether it is suspicious.
    pub(super) fn measure(
        &mut self,
        from: SwitchPort,
        (took, noise): (Duration, Duration),
        now: Duration,
    ) -> bool {
        let noise = noise + self.load;
        let Some(pair) = self.pairs.get_mut(&from) else { return false };
        let (to, change) = (pair.to, pair.latency.add(took, noise));
        if pair.is_trusted {
            return false;
        }
        let is_slow = |latency| {
            let median = self.median.filter(|it| is_late(latency, *it * TIMES_MEDIAN + noise));
            median.map(|median| (latency, median))
        };
        let (new, refuses) = (pair.up.is_none(), self.refuse_slow);
        let found = match change {
            LatencyChange::Nothing => return false,
            LatencyChange::Late { current, usual } => Some((current, usual)),
            // The link waits for this verdict.
            LatencyChange::Known(latency) if refuses => {
                let found = is_slow(latency);
                pair.is_slow = found.is_some();
                found
            }
            LatencyChange::Known(_) => return false,
            LatencyChange::Confirmed(latency) => {
                let (was_slow, found) = (pair.is_slow, is_slow(latency));
                pair.is_slow = found.is_some();
                // It was reported when it was refused.
                found.filter(|_| !was_slow)
            }
        };
        // The ports of a refused link count as edge ports.
        self.changed |= new;
        let Some((latency, usual)) = found else { return false };
        self.report_suspicion(
            from,
            to,
            Suspicion::Latency { measured: latency, expected: usual },
            now,
        );
        true
    }

    /// Returns the median latency of the links that are up, if enough are known.
    pub(super) fn median_latency(&self) -> Option<Duration> {
        self.median_of(LinkLatency::usual)
    }

    /// Returns by how much most links are slower than usual.
    pub(super) fn load(&self) -> Duration {
        self.median_of(LinkLatency::excess).unwrap_or_default()
    }

    fn median_of(&self, value: impl Fn(&LinkLatency) -> Option<Duration>) -> Option<Duration> {
        let up = self.pairs.values().filter(|pair| pair.up.is_some());
        let mut all: Vec<Duration> = up.filter_map(|pair| value(&pair.latency)).collect();
        if all.len() < COMPARED_LINKS {
            return None;
        }
        let middle = all.len() / 2;
        Some(*all.select_nth_unstable(middle).1)
    }

    pub(super) fn report_suspicion(
        &mut self,
        from: SwitchPort,
        to: SwitchPort,
        why: Suspicion,
        now: Duration,
    ) {
        self.relays.suspect(from, to, why, now);
        self.alarm(to, Event::RelaySuspected { from, to, why }, now);
    }

    /// Keeps what an operator says of the link between two ports, in both directions. `None`:
    /// discovery decides again.
    ///
    /// # Errors
    /// There are too many verdicts.
    pub(in crate::discovery) fn judge(
        &mut self,
        from: SwitchPort,
        to: SwitchPort,
        verdict: Option<LinkVerdict>,
    ) -> Result<SuspectedLink, VerdictsFull> {
        self.relays.judge(from, to, verdict)?;
        if verdict == Some(LinkVerdict::Relay) {
            self.segments.forget(from, to);
            self.changed = true;
        }
        for (from, to) in [(from, to), (to, from)] {
            if self.is_shared && !self.is_here(from.dpid) {
                // Another controller decides about this direction.
                continue;
            }
            let Some(pair) = self.pairs.get_mut(&from).filter(|pair| pair.to == to) else {
                continue;
            };
            pair.is_trusted = self.relays.is_trusted(from, to);
            pair.is_slow &= !pair.is_trusted;
            // Its ports are edge ports again, or are not.
            self.changed = true;
            if verdict == Some(LinkVerdict::Relay)
                && let Some(pair) = self.pairs.remove(&from)
            {
                self.by_receiver.remove(&(to, from));
                self.link_down(pair.up, LinkDown::Refused);
            }
        }
        Ok(self.suspected_link(from, to))
    }

    /// Returns the links that look like relays, and those that an operator has judged.
    pub(in crate::discovery) fn suspected_links(&self) -> Vec<SuspectedLink> {
        self.relays.pairs().map(|[one, other]| self.suspected_link(one, other)).collect()
    }

    fn suspected_link(&self, from: SwitchPort, to: SwitchPort) -> SuspectedLink {
        let is_up = |from, to| self.up(from).is_some_and(|up| up.link.to == to);
        let is_up = is_up(from, to) || is_up(to, from);
        SuspectedLink { is_up, ..self.relays.link(from, to) }
    }
}
