//! What a peer does not know yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{Dpid, Host, HostId, Hosts, SwitchPort};

use super::NumberedFrame;
use super::frame::{HostFact, HostFacts, MAX_LEFT, PeerFrame, SwitchFacts};
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
    /// What is left of the report of everything.
    report: Option<FullReport>,
    left: BTreeSet<Dpid>,
    switches: BTreeSet<Dpid>,
    hosts: BTreeSet<HostId>,
}

/// A report of everything: the key, all switches, then all hosts.
#[derive(Debug)]
enum FullReport {
    Key,
    Begin,
    /// All switches.
    Switches,
    /// The hosts after this one.
    Hosts(Option<(SwitchPort, HostId)>),
    End,
}

impl Outbox {
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
        self.stream += 1;
        (self.sent, self.applied) = (0, 0);
        self.posted.clear();
        self.report = Some(FullReport::Key);
        (self.left, self.switches, self.hosts) = Default::default();
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
        own: &BTreeMap<Dpid, Arc<SwitchFacts>>,
        hosts: &Hosts,
        now: Duration,
    ) -> Option<NumberedFrame> {
        if !self.is_connected || self.sent - self.applied >= WINDOW as u64 {
            return None;
        }
        let frame = self.next_frame(key, own, hosts, now)?;
        self.sent += 1;
        Some(NumberedFrame { stream: self.stream, number: self.sent, frame })
    }

    fn next_frame(
        &mut self,
        (instance, key): &(u64, DiscoveryKey),
        own: &BTreeMap<Dpid, Arc<SwitchFacts>>,
        hosts: &Hosts,
        now: Duration,
    ) -> Option<PeerFrame> {
        // Announcements come after the key that their senders check, and after the ports.
        match self.report {
            Some(FullReport::Key) => {
                self.report = Some(FullReport::Begin);
                return Some(PeerFrame::Key { instance: *instance, key: key.secret().into() });
            }
            Some(FullReport::Begin) => {
                self.report = Some(FullReport::Switches);
                self.switches = own.keys().copied().collect();
                return Some(PeerFrame::Begin);
            }
            _ => {}
        }
        while let Some(dpid) = self.switches.pop_first() {
            if let Some(facts) = own.get(&dpid) {
                return Some(PeerFrame::Switch { sent_at: now, facts: SwitchFacts::clone(facts) });
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
        if matches!(self.report, Some(FullReport::Switches)) {
            self.report = Some(FullReport::Hosts(None));
        }
        if let Some(FullReport::Hosts(last)) = self.report {
            let is_own = |host: &&Host| own.contains_key(&host.at.dpid);
            let mut present = Vec::new();
            present.extend(hosts.after(last).filter(is_own).take(HOSTS_PER_FRAME).map(fact));
            self.report = match present.last() {
                Some(last) => Some(FullReport::Hosts(Some((last.at, last.id)))),
                None => Some(FullReport::End),
            };
            if !present.is_empty() {
                let facts = HostFacts { present, gone: Vec::new() };
                return Some(PeerFrame::Hosts { sent_at: now, facts });
            }
        }
        if matches!(self.report, Some(FullReport::End)) {
            self.report = None;
            return Some(PeerFrame::End);
        }
        let facts = self.changed_hosts(own, hosts)?;
        Some(PeerFrame::Hosts { sent_at: now, facts })
    }

    /// What changed hosts are now. A host at a switch of another controller is left to that one.
    fn changed_hosts(
        &mut self,
        own: &BTreeMap<Dpid, Arc<SwitchFacts>>,
        hosts: &Hosts,
    ) -> Option<HostFacts> {
        let mut facts = HostFacts::default();
        while facts.present.len() + facts.gone.len() < HOSTS_PER_FRAME {
            let Some(id) = self.hosts.pop_first() else { break };
            match hosts.get(id.mac, id.vlan) {
                Some(host) if own.contains_key(&host.at.dpid) => facts.present.push(fact(host)),
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
