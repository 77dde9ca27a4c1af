//! What a peer does not know yet.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bellrock_api::{Dpid, Host, HostId, Hosts, SwitchPort};

use super::NumberedFrame;
use super::digest::{Buckets, DIGEST_EVERY};
use super::frame::{HostFact, HostFacts, MAX_LEFT, PeerFrame, SwitchFacts};
use super::own::OwnSwitches;
use crate::discovery::DiscoveryKey;

/// Maximum number of frames that a peer has not applied yet.
pub const WINDOW: usize = 8;

/// Maximum number of hosts in a frame: some 60 KB.
pub const HOSTS_PER_FRAME: usize = 512;

/// Maximum number of changed hosts that a peer does not know. Above it, everything is sent again.
pub const MAX_CHANGED_HOSTS: usize = 1 << 16;

/// Maximum number of announcements and claims that wait for a peer. Further ones are dropped: the
/// next round, or a later packet, repeats them.
pub const MAX_POSTED: usize = 4096;

/// What a peer does not know yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    is_connected: bool,
    stream: u64,
    sent: u64,
    applied: u64,
    /// Frames that go before all others.
    posted: VecDeque<PeerFrame>,
    /// What is left of a report.
    report: Option<Report>,
    left: BTreeSet<Dpid>,
    switches: BTreeSet<Dpid>,
    hosts: BTreeSet<HostId>,
    /// When a digest is due.
    digest_at: Duration,
}

/// A report of all switches and hosts, or of those of some buckets.
#[derive(Debug)]
struct Report {
    step: Step,
    switches: Buckets,
    hosts: Buckets,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Key,
    Begin,
    /// All switches, then the hosts after this one.
    Facts(Option<(SwitchPort, HostId)>),
}

impl Report {
    const EVERYTHING: Report =
        Report { step: Step::Key, switches: Buckets::ALL, hosts: Buckets::ALL };
}

impl Outbox {
    /// An outbox whose streams have numbers after this one.
    pub(super) fn after(stream: u64) -> Self {
        Outbox { stream, ..Outbox::default() }
    }

    pub(super) fn connected(&mut self) {
        self.is_connected = true;
        self.restart();
    }

    pub(super) fn disconnected(&mut self) {
        self.restart();
        self.is_connected = false;
    }

    /// Begins to report everything again.
    pub(super) fn restart(&mut self) {
        self.stream = self.stream.wrapping_add(1);
        (self.sent, self.applied) = (0, 0);
        self.posted.clear();
        self.report = Some(Report::EVERYTHING);
        (self.left, self.switches, self.hosts) = Default::default();
    }

    /// Begins to report the switches and hosts of some buckets again, unless a report is under way:
    /// if that does not help, the next digests say so.
    pub(super) fn repeat(&mut self, switches: Buckets, hosts: Buckets) {
        if self.is_connected && self.report.is_none() {
            self.report = Some(Report { step: Step::Begin, switches, hosts });
        }
    }

    pub(super) fn applied(&mut self, stream: u64, count: u64) {
        if stream == self.stream {
            self.applied = self.applied.max(count.min(self.sent));
        }
    }

    pub(super) fn switches_changed(&mut self, changed: &[Dpid], left: &[Dpid]) {
        if self.is_connected {
            for dpid in changed {
                self.left.remove(dpid);
                self.switches.insert(*dpid);
            }
            for dpid in left {
                self.switches.remove(dpid);
                self.left.insert(*dpid);
            }
        }
    }

    pub(super) fn hosts_changed(&mut self, changed: &[HostId]) {
        if !self.is_connected {
            return;
        }
        self.hosts.extend(changed);
        if self.hosts.len() > MAX_CHANGED_HOSTS {
            self.restart();
        }
    }

    pub(super) fn post(&mut self, frame: PeerFrame) -> bool {
        let has_room = self.is_connected && self.posted.len() < MAX_POSTED;
        if has_room {
            self.posted.push_back(frame);
        }
        has_room
    }

    /// Returns the next frame, if the peer can take one.
    pub(super) fn next(
        &mut self,
        key: &(u64, DiscoveryKey),
        own: &mut OwnSwitches,
        hosts: &Hosts,
        now: Duration,
    ) -> Option<NumberedFrame> {
        if !self.is_connected || self.sent - self.applied >= WINDOW as u64 {
            return None;
        }
        let frame = match self.next_frame(key, own, hosts, now) {
            Some(frame) => frame,
            // Nothing is left to say, so the peer must know all this.
            None if now >= self.digest_at => {
                self.digest_at = now + DIGEST_EVERY;
                let (switches, hosts) = own.digests(hosts);
                PeerFrame::Digest { switches, hosts }
            }
            None => return None,
        };
        self.sent += 1;
        Some(NumberedFrame { stream: self.stream, number: self.sent, frame })
    }

    fn next_frame(
        &mut self,
        (instance, key): &(u64, DiscoveryKey),
        own: &OwnSwitches,
        hosts: &Hosts,
        now: Duration,
    ) -> Option<PeerFrame> {
        // Announcements come after the key that their senders check, and after the ports.
        match &mut self.report {
            Some(Report { step: step @ Step::Key, .. }) => {
                *step = Step::Begin;
                return Some(PeerFrame::Key { instance: *instance, key: key.secret().into() });
            }
            Some(Report { step: step @ Step::Begin, switches, hosts }) => {
                *step = Step::Facts(None);
                let (switches, hosts) = (*switches, *hosts);
                self.switches.extend(own.dpids().filter(|dpid| switches.has_switch(*dpid)));
                return Some(PeerFrame::Begin { switches, hosts });
            }
            _ => {}
        }
        while let Some(dpid) = self.switches.pop_first() {
            if let Some((term, facts)) = own.get(dpid) {
                let facts = SwitchFacts::clone(facts);
                return Some(PeerFrame::Switch { sent_at: now, term, facts });
            }
        }
        if let Some(frame) = self.posted.pop_front() {
            return Some(frame);
        }
        if !self.left.is_empty() {
            let mut left = std::mem::take(&mut self.left).into_iter();
            let first = left.by_ref().take(MAX_LEFT).collect();
            self.left = left.collect();
            return Some(PeerFrame::Left(first));
        }
        if let Some(frame) = self.rest_of_report(own, hosts, now) {
            return Some(frame);
        }
        let facts = self.changed_hosts(own, hosts)?;
        Some(PeerFrame::Hosts { sent_at: now, facts })
    }

    /// Returns the next frame of a report whose switches are sent: hosts, and its end.
    fn rest_of_report(
        &mut self,
        own: &OwnSwitches,
        hosts: &Hosts,
        now: Duration,
    ) -> Option<PeerFrame> {
        let report = self.report.as_mut()?;
        let Step::Facts(last) = report.step else { return None };
        let mut present = Vec::new();
        if !report.hosts.is_empty() {
            let is_due = |host: &&Host| own.has(host.at.dpid) && report.hosts.has_host(host.id);
            present.extend(hosts.after(last).filter(is_due).take(HOSTS_PER_FRAME).map(fact));
        }
        if let Some(last) = present.last() {
            report.step = Step::Facts(Some((last.at, last.id)));
            let facts = HostFacts { present, gone: Vec::new() };
            return Some(PeerFrame::Hosts { sent_at: now, facts });
        }
        self.report = None;
        self.digest_at = now + DIGEST_EVERY;
        Some(PeerFrame::End)
    }

    /// What changed hosts are now. A host at a switch of another controller is left to that one.
    fn changed_hosts(&mut self, own: &OwnSwitches, hosts: &Hosts) -> Option<HostFacts> {
        let mut facts = HostFacts::default();
        while facts.present.len() + facts.gone.len() < HOSTS_PER_FRAME {
            let Some(id) = self.hosts.pop_first() else { break };
            match hosts.get(id.mac, id.vlan) {
                Some(host) if own.has(host.at.dpid) => facts.present.push(fact(host)),
                Some(_) => {}
                None => facts.gone.push(id),
            }
        }
        (!facts.present.is_empty() || !facts.gone.is_empty()).then_some(facts)
    }
}

fn fact(host: &Host) -> HostFact {
    let Host { id, at, addresses, since } = host.clone();
    HostFact { id, at, addresses, since }
}
