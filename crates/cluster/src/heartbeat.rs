//! What nodes say to each other, and what they remember of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bellrock_api::Dpid;

use crate::node::NodeSet;

/// Maximum number of changes of the list of switches that a node keeps for peers that have missed
/// them. A peer that has missed more gets the whole list.
const MAX_KEPT_CHANGES: usize = 1024;

/// What a node says to another one, every [`HEARTBEAT`](crate::mastership::HEARTBEAT) and when
/// something has changed.
///
/// All of it is the present state. So a lost heartbeat costs time and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Whether the sender may be master of switches: it hears a majority and has read etcd.
    pub serving: bool,
    /// Whether the sender gives its switches to others, before maintenance.
    pub draining: bool,
    /// Nodes that the sender does not hear.
    pub suspects: NodeSet,
    /// Switches that are connected to the sender.
    pub switches: SwitchReport,
    /// Version of the receiver's list of switches that the sender knows.
    pub known: Option<u64>,
    /// A switch that the sender is master of, and that the receiver may have.
    pub offer: Option<Dpid>,
    /// The switch of the receiver's offer, if the sender takes it.
    pub accept: Option<Dpid>,
}

/// Switches that are connected to a node: what has changed since the list that the receiver knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchReport {
    /// The receiver knows the list.
    Same {
        /// Version of the list.
        version: u64,
    },
    /// What has changed.
    Changes {
        /// Version that the receiver knows.
        from: u64,
        /// Version of the list after the changes.
        to: u64,
        /// Switches that have connected.
        joined: Vec<Dpid>,
        /// Switches whose connection has ended.
        left: Vec<Dpid>,
    },
    /// The whole list.
    All {
        /// Version of the list.
        version: u64,
        /// All switches that are connected.
        switches: Vec<Dpid>,
    },
}

/// The switches that are connected to this node, and the last changes of that list.
#[derive(Debug)]
pub(crate) struct OwnSwitches {
    version: u64,
    connected: BTreeSet<Dpid>,
    /// The last changes, the newest last: true for a switch that has connected.
    changes: VecDeque<(Dpid, bool)>,
}

impl OwnSwitches {
    /// An empty list. Its first version is random, so that a peer does not take it for the list of
    /// the process before.
    pub(crate) fn new(first_version: u64) -> Self {
        let connected = BTreeSet::new();
        // The upper half of the numbers is left for the changes.
        OwnSwitches { version: first_version >> 1, connected, changes: VecDeque::new() }
    }

    pub(crate) fn contains(&self, dpid: Dpid) -> bool {
        self.connected.contains(&dpid)
    }

    /// Adds or removes a switch.
    pub(crate) fn set(&mut self, dpid: Dpid, is_connected: bool) {
        let has_changed =
            if is_connected { self.connected.insert(dpid) } else { self.connected.remove(&dpid) };
        if !has_changed {
            return;
        }
        if self.changes.len() == MAX_KEPT_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((dpid, is_connected));
        self.version += 1;
    }

    /// What a peer must know that knows this version.
    pub(crate) fn report(&self, known: Option<u64>) -> SwitchReport {
        let version = self.version;
        let missed = known.and_then(|known| version.checked_sub(known));
        let missed = missed.and_then(|missed| usize::try_from(missed).ok());
        match missed {
            Some(0) => SwitchReport::Same { version },
            Some(missed) if missed <= self.changes.len() => {
                let missed = self.changes.iter().skip(self.changes.len() - missed);
                let last: BTreeMap<Dpid, bool> = missed.copied().collect();
                let those = |wanted| -> Vec<Dpid> {
                    let those = last.iter().filter(|&(_, &joined)| joined == wanted);
                    those.map(|(&dpid, _)| dpid).collect()
                };
                SwitchReport::Changes {
                    from: known.unwrap_or_default(),
                    to: version,
                    joined: those(true),
                    left: those(false),
                }
            }
            _ => SwitchReport::All { version, switches: self.connected.iter().copied().collect() },
        }
    }
}

/// The switches that are connected to a peer, as far as it has reported them.
#[derive(Debug, Default)]
pub(crate) struct PeerSwitches {
    version: Option<u64>,
    connected: BTreeSet<Dpid>,
}

impl PeerSwitches {
    pub(crate) fn version(&self) -> Option<u64> {
        self.version
    }

    pub(crate) fn contains(&self, dpid: Dpid) -> bool {
        self.connected.contains(&dpid)
    }

    /// Takes a report, and adds the switches that have changed to `changed`.
    pub(crate) fn apply(&mut self, report: &SwitchReport, changed: &mut Vec<Dpid>) {
        match report {
            SwitchReport::Same { .. } => {}
            SwitchReport::Changes { from, to, joined, left } => {
                // A report for another version was on its way when ours changed. The next one is
                // for the version that the next heartbeat names.
                if self.version == Some(*from) {
                    self.version = Some(*to);
                    self.connected.extend(joined);
                    for dpid in left {
                        self.connected.remove(dpid);
                    }
                    changed.extend(joined.iter().chain(left));
                }
            }
            SwitchReport::All { version, switches } => {
                if self.version == Some(*version) {
                    return;
                }
                let all: BTreeSet<Dpid> = switches.iter().copied().collect();
                changed.extend(self.connected.symmetric_difference(&all));
                self.version = Some(*version);
                self.connected = all;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_misses_reports_still_gets_the_list() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut own = OwnSwitches::new(u64::MAX);
        let mut peer = PeerSwitches::default();
        let mut kinds = [0; 3];
        for _ in 0..3000 {
            let changes =
                if random.u32(0..100) == 0 { 2 * MAX_KEPT_CHANGES } else { random.usize(0..4) };
            for _ in 0..changes {
                own.set(Dpid(random.u64(0..50)), random.bool());
            }
            let report = own.report(peer.version());
            kinds[match report {
                SwitchReport::Same { .. } => 0,
                SwitchReport::Changes { .. } => 1,
                SwitchReport::All { .. } => 2,
            }] += 1;
            if random.bool() {
                let before = peer.connected.clone();
                let mut changed = Vec::new();
                peer.apply(&report, &mut changed);
                assert_eq!(peer.connected, own.connected);
                for dpid in before.symmetric_difference(&peer.connected) {
                    assert!(changed.contains(dpid));
                }
            }
        }
        assert!(kinds.iter().all(|&count| count > 5), "{kinds:?}");
    }

    #[test]
    fn the_list_of_a_process_before_is_replaced() {
        let mut peer = PeerSwitches::default();
        let mut before = OwnSwitches::new(4000);
        before.set(Dpid(1), true);
        peer.apply(&before.report(None), &mut Vec::new());
        let mut after = OwnSwitches::new(9000);
        after.set(Dpid(2), true);
        peer.apply(&after.report(peer.version()), &mut Vec::new());
        assert!(peer.contains(Dpid(2)) && !peer.contains(Dpid(1)));
    }
}
