//! What is known of the switches of this controller, for the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellrock_api::{Dpid, Hosts};

use super::digest::Digest;
use super::frame::SwitchFacts;
use crate::discovery::MAX_SWITCHES;

/// What is known of the switches of this controller.
#[derive(Debug, Default)]
pub(super) struct OwnSwitches {
    facts: BTreeMap<Dpid, Arc<SwitchFacts>>,
    /// The last election of this controller for each switch, whether it is its master or not.
    terms: BTreeMap<Dpid, u64>,
    /// Digests of the switches, and of the hosts at them, until something changes.
    digests: Option<(Digest, Digest)>,
}

/// What has changed.
#[derive(Debug, Default)]
pub(super) struct ChangedSwitches {
    /// New switches.
    pub(super) new: Vec<Dpid>,
    /// New switches, and those with other ports or links.
    pub(super) changed: Vec<Dpid>,
    /// Switches of other controllers by now.
    pub(super) left: Vec<Dpid>,
}

impl OwnSwitches {
    /// Replaces what is known.
    pub(super) fn set(&mut self, all: BTreeMap<Dpid, Arc<SwitchFacts>>) -> ChangedSwitches {
        let before = std::mem::replace(&mut self.facts, all);
        self.digests = None;
        let is_new = |dpid: &&Dpid| !before.contains_key(dpid);
        let is_changed = |dpid: &&Dpid| before.get(dpid) != self.facts.get(dpid);
        ChangedSwitches {
            new: self.facts.keys().filter(is_new).copied().collect(),
            changed: self.facts.keys().filter(is_changed).copied().collect(),
            left: before.keys().filter(|dpid| !self.facts.contains_key(dpid)).copied().collect(),
        }
    }

    /// Notes an election. Returns whether what was reported of the switch has another one.
    pub(super) fn elected(&mut self, dpid: Dpid, term: u64) -> bool {
        if self.terms.len() >= MAX_SWITCHES && !self.terms.contains_key(&dpid) {
            self.terms.retain(|dpid, _| self.facts.contains_key(dpid));
        }
        self.terms.insert(dpid, term) != Some(term) && self.facts.contains_key(&dpid)
    }

    pub(super) fn has(&self, dpid: Dpid) -> bool {
        self.facts.contains_key(&dpid)
    }

    pub(super) fn dpids(&self) -> impl Iterator<Item = Dpid> {
        self.facts.keys().copied()
    }

    /// Returns what is known of a switch, and the election that made this controller its master.
    pub(super) fn get(&self, dpid: Dpid) -> Option<(u64, &SwitchFacts)> {
        let facts = self.facts.get(&dpid)?;
        Some((self.terms.get(&dpid).copied().unwrap_or_default(), facts))
    }

    /// Notes that hosts have changed.
    pub(super) fn hosts_changed(&mut self) {
        self.digests = None;
    }

    /// Digests of the switches, and of the hosts at them.
    pub(super) fn digests(&mut self, hosts: &Hosts) -> (Digest, Digest) {
        let facts = &self.facts;
        let digests = self.digests.get_or_insert_with(|| {
            let (mut of_switches, mut of_hosts) = (Digest::default(), Digest::default());
            facts.values().for_each(|facts| of_switches.add_switch(facts));
            for host in hosts.iter().filter(|host| facts.contains_key(&host.at.dpid)) {
                of_hosts.add_host(host.id, host.at, &host.addresses);
            }
            (of_switches, of_hosts)
        });
        digests.clone()
    }
}
