//! What nodes say to each other, and what they remember of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bellrock_api::Dpid;
use serde::{Deserialize, Serialize};

use crate::mastership::MAX_SWITCHES;
use crate::node::NodeSet;
use crate::record::Generation;

/// Maximum number of changes of the list of switches that a node keeps for peers that have missed
/// them. A peer that has missed more gets the whole list.
const MAX_KEPT_CHANGES: usize = 1024;

/// What a node says to another one, every [`HEARTBEAT`](crate::mastership::HEARTBEAT) and when
/// something has changed.
///
/// All of it is the present state. So a lost heartbeat costs time and nothing else.
///
/// It travels as it is: what is renamed here is renamed between nodes too. A node of the release
/// before must read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The random number of the sender's process. `None`: the sender is of the first release, which
    /// says neither this nor `hears` nor generations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<u64>,
    /// The process that the sender hears under the receiver's name. It may be another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hears: Option<u64>,
}

/// Switches that are connected to a node: what has changed since the list that the receiver knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        /// Switches that have connected, or whose generation has changed.
        joined: Vec<Dpid>,
        /// The generations of `joined`.
        #[serde(default, with = "generations", skip_serializing_if = "Option::is_none")]
        generations: Option<Generations>,
        /// Switches whose connection has ended.
        left: Vec<Dpid>,
    },
    /// The whole list.
    All {
        /// Version of the list.
        version: u64,
        /// All switches that are connected.
        switches: Vec<Dpid>,
        /// The generations of `switches`.
        #[serde(default, with = "generations", skip_serializing_if = "Option::is_none")]
        generations: Option<Generations>,
    },
}

/// For each switch of a list, the generation by which the sender is its master, if it is. A report
/// without them is of the first release, or has more than [`MAX_SWITCHES`].
pub type Generations = Vec<Option<Generation>>;

/// [`Generations`] as numbers. A generation of 0 is none: no node claims a switch by it.
mod generations {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Generation, Generations};

    pub(super) fn serialize<S: Serializer>(
        generations: &Option<Generations>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let number = |it: &Option<Generation>| it.map_or(0, |Generation(id)| id);
        serializer.collect_seq(generations.iter().flatten().map(number))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Generations>, D::Error> {
        let generation = |id: u64| (id != 0).then_some(Generation(id));
        let ids = <Option<Vec<u64>>>::deserialize(deserializer)?;
        Ok(ids.map(|ids| ids.into_iter().map(generation).collect()))
    }
}

/// The switches that are connected to this node, and the last changes of that list.
#[derive(Debug)]
pub(crate) struct OwnSwitches {
    version: u64,
    /// With the generation by which this node is master, if it is.
    connected: BTreeMap<Dpid, Option<Generation>>,
    /// The switches of the last changes, the newest last.
    changes: VecDeque<Dpid>,
}

impl OwnSwitches {
    /// An empty list. Its first version is random, so that a peer does not take it for the list of
    /// the process before.
    pub(crate) fn new(first_version: u64) -> Self {
        let connected = BTreeMap::new();
        // The upper half of the numbers is left for the changes.
        OwnSwitches { version: first_version >> 1, connected, changes: VecDeque::new() }
    }

    pub(crate) fn contains(&self, dpid: Dpid) -> bool {
        self.connected.contains_key(&dpid)
    }

    /// Adds or removes a switch.
    pub(crate) fn set(&mut self, dpid: Dpid, is_connected: bool) {
        if is_connected == self.contains(dpid) {
            return;
        }
        if is_connected {
            self.connected.insert(dpid, None);
        } else {
            self.connected.remove(&dpid);
        }
        self.changed(dpid);
    }

    /// Notes by which generation this node is master of a switch that is connected.
    pub(crate) fn set_generation(&mut self, dpid: Dpid, generation: Option<Generation>) {
        if let Some(known) = self.connected.get_mut(&dpid)
            && *known != generation
        {
            *known = generation;
            self.changed(dpid);
        }
    }

    fn changed(&mut self, dpid: Dpid) {
        if self.changes.len() == MAX_KEPT_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(dpid);
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
                let changed: BTreeSet<Dpid> = missed.copied().collect();
                let (joined, left): (Vec<Dpid>, Vec<Dpid>) =
                    changed.into_iter().partition(|&dpid| self.contains(dpid));
                let generations = Some(self.generations(&joined));
                let from = known.unwrap_or_default();
                SwitchReport::Changes { from, to: version, joined, left, generations }
            }
            _ => {
                let switches: Vec<Dpid> = self.connected.keys().copied().collect();
                let fits = switches.len() <= MAX_SWITCHES;
                let generations = fits.then(|| self.generations(&switches));
                SwitchReport::All { version, switches, generations }
            }
        }
    }

    fn generations(&self, switches: &[Dpid]) -> Generations {
        switches.iter().map(|dpid| self.connected.get(dpid).copied().flatten()).collect()
    }
}

/// The switches that are connected to a peer, as far as it has reported them.
#[derive(Debug, Default)]
pub(crate) struct PeerSwitches {
    version: Option<u64>,
    /// With the generation by which the peer is master, if it is.
    connected: BTreeMap<Dpid, Option<Generation>>,
    /// Whether the peer reports generations.
    has_generations: bool,
}

impl PeerSwitches {
    pub(crate) fn version(&self) -> Option<u64> {
        self.version
    }

    pub(crate) fn contains(&self, dpid: Dpid) -> bool {
        self.connected.contains_key(&dpid)
    }

    /// The generation by which the peer is master of a switch.
    pub(crate) fn generation(&self, dpid: Dpid) -> Option<Generation> {
        self.connected.get(&dpid).copied().flatten()
    }

    /// Whether the peer reports by which generations it is master.
    pub(crate) fn has_generations(&self) -> bool {
        self.has_generations
    }

    /// Takes a report, and adds the switches that have changed to `changed`.
    pub(crate) fn apply(&mut self, report: &SwitchReport, changed: &mut Vec<Dpid>) {
        match report {
            SwitchReport::Same { .. } => {}
            SwitchReport::Changes { from, to, joined, left, generations } => {
                // A report for another version was on its way when ours changed. The next one is
                // for the version that the next heartbeat names.
                if self.version == Some(*from) {
                    self.version = Some(*to);
                    self.connected.extend(with_generations(joined, generations.as_ref()));
                    for dpid in left {
                        self.connected.remove(dpid);
                    }
                    changed.extend(joined.iter().chain(left));
                }
            }
            SwitchReport::All { version, switches, generations } => {
                if self.version == Some(*version) {
                    return;
                }
                let all: BTreeMap<_, _> =
                    with_generations(switches, generations.as_ref()).collect();
                let gone = self.connected.keys().filter(|dpid| !all.contains_key(dpid));
                changed.extend(gone);
                let differ = all.iter().filter(|&(dpid, it)| self.connected.get(dpid) != Some(it));
                changed.extend(differ.map(|(&dpid, _)| dpid));
                self.version = Some(*version);
                self.connected = all;
                self.has_generations = generations.is_some();
            }
        }
    }
}

/// Switches with their generations. Those that are missing are none.
fn with_generations<'a>(
    switches: &'a [Dpid],
    generations: Option<&'a Generations>,
) -> impl Iterator<Item = (Dpid, Option<Generation>)> + 'a {
    let generations = generations.into_iter().flatten().copied().chain(std::iter::repeat(None));
    switches.iter().copied().zip(generations)
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
                let dpid = Dpid(random.u64(0..50));
                own.set(dpid, random.bool());
                let generation = random.bool().then(|| Generation(random.u64(1..4)));
                own.set_generation(dpid, generation);
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
                for dpid in (0..50).map(Dpid) {
                    let has_changed = before.get(&dpid) != peer.connected.get(&dpid);
                    assert!(!has_changed || changed.contains(&dpid));
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
