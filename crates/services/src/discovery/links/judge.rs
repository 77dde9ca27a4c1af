//! Tells links from relays between hosts: by hosts, by what an operator says, and by the history of
//! ports.

use std::time::Duration;

use bellrock_api::{Event, Hosts, LinkDown, Suspicion, SwitchPort};

use super::{LinkTable, NEW_PORT};
use crate::discovery::relays::{LinkVerdict, SuspectedLink, VerdictsFull};

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
