//! Cuts and mends links, one after another, and counts what the network loses.
//!
//! A cut never separates the network: only links with another way around them are cut. The time to
//! heal is the largest loss of a stream, in datagrams, times their interval.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bellrock_emulator::network::EmulatedNetwork;
use bellrock_emulator::topology::{LinkIndex, Node, SwitchIndex};

use super::traffic::{Datagrams, INTERVAL};

/// Time from the start of the traffic, or from the mending of a link, to the next cut.
const WHOLE: Duration = Duration::from_secs(2);

/// Time that a link is down.
const CUT: Duration = Duration::from_secs(4);

/// Time from a cut, or from the mending of a link, until the losses are counted.
const COUNT_AFTER: Duration = Duration::from_secs(1);

/// Time until they are counted again, if the network has not healed.
const COUNT_AGAIN: Duration = Duration::from_millis(200);

/// Datagrams that a stream must have sent before it can count as arriving again.
const SHOWING: u64 = 10;

/// Losses of one cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CutLosses {
    /// Number of streams that lost datagrams.
    pub(super) streams: usize,
    /// Number of lost datagrams.
    pub(super) lost: u64,
    /// Longest time that a stream was broken.
    pub(super) longest: Duration,
    /// Whether all streams arrive again.
    pub(super) healed: bool,
}

impl CutLosses {
    /// Losses between `before` and `now`. `recent` is shortly before `now`. A stream that lost all
    /// datagrams since `recent` is still broken.
    fn between(before: &Datagrams, recent: &Datagrams, now: &Datagrams) -> CutLosses {
        let lost = now.lost_since(before);
        let sent = now.sent.saturating_sub(recent.sent);
        let maximum = lost.iter().copied().max().unwrap_or_default();
        CutLosses {
            streams: lost.iter().filter(|lost| **lost > 0).count(),
            lost: lost.iter().sum(),
            longest: INTERVAL * u32::try_from(maximum).unwrap_or(u32::MAX),
            healed: sent >= SHOWING && now.lost_since(recent).iter().all(|lost| *lost < sent),
        }
    }
}

/// An event of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkEvent {
    Cut(LinkIndex),
    /// Losses of the cut.
    Counted(LinkIndex, CutLosses),
    Mended(LinkIndex),
    /// Losses of the mending.
    CountedAfter(LinkIndex, CutLosses),
    /// No link can be cut.
    NoneToCut,
}

/// State of the link that is cut, or was cut last.
enum CutPhase {
    /// All links are up. The next cut is at `next`.
    Whole { next: Duration },
    /// `link` is down, and will be mended. Losses are counted at `count_at`, then `None`.
    Down { link: LinkIndex, since: Duration, count_at: Option<Duration> },
}

/// The cuts of a demo. Times are those of the network.
pub(super) struct Cuts {
    chance: fastrand::Rng,
    automatic: bool,
    phase: CutPhase,
    /// Datagrams at the latest event, and at the latest look.
    before: Datagrams,
    recent: Datagrams,
    /// A mended link and the time of its mending, until its losses are counted.
    mended: Option<(LinkIndex, Duration)>,
    /// Links that were cut. All others come first.
    done: BTreeSet<LinkIndex>,
}

impl Cuts {
    pub(super) fn new(seed: u64, automatic: bool) -> Self {
        Cuts {
            chance: fastrand::Rng::with_seed(seed),
            automatic,
            phase: CutPhase::Whole { next: Duration::MAX },
            before: Datagrams::default(),
            recent: Datagrams::default(),
            mended: None,
            done: BTreeSet::new(),
        }
    }

    /// Starts the cuts, with the traffic.
    pub(super) fn begin(&mut self, now: Duration) {
        self.phase = CutPhase::Whole { next: now + WHOLE };
    }

    /// The link that is down.
    pub(super) fn down(&self) -> Option<LinkIndex> {
        match self.phase {
            CutPhase::Down { link, .. } => Some(link),
            CutPhase::Whole { .. } => None,
        }
    }

    /// Time of the next action.
    pub(super) fn next(&self) -> Duration {
        let phase = match self.phase {
            CutPhase::Whole { next } if self.automatic => next,
            CutPhase::Whole { .. } => Duration::MAX,
            CutPhase::Down { count_at: Some(at), .. } => at,
            CutPhase::Down { since, .. } if self.automatic => since + CUT,
            CutPhase::Down { .. } => Duration::MAX,
        };
        self.mended.map_or(phase, |(_, at)| phase.min(at + COUNT_AFTER))
    }

    /// Remembers the current numbers of datagrams, several times a second.
    pub(super) fn update(&mut self, datagrams: Datagrams) {
        self.recent = datagrams;
    }

    /// Does what is due.
    pub(super) fn go_on(
        &mut self,
        network: &mut EmulatedNetwork,
        datagrams: &Datagrams,
    ) -> Option<LinkEvent> {
        let now = network.now();
        if let Some((link, at)) = self.mended
            && now >= at + COUNT_AFTER
        {
            self.mended = None;
            let wound = CutLosses::between(&self.before, &self.recent, datagrams);
            return Some(LinkEvent::CountedAfter(link, wound));
        }
        match self.phase {
            CutPhase::Whole { next } if self.automatic && now >= next => {
                let event = self.cut(network, datagrams);
                if event == LinkEvent::NoneToCut {
                    self.automatic = false;
                }
                Some(event)
            }
            CutPhase::Down { link, since, count_at: Some(at) } if now >= at => {
                let wound = CutLosses::between(&self.before, &self.recent, datagrams);
                let is_final = wound.healed || now >= since + CUT;
                let count_at = (!is_final).then_some(now + COUNT_AGAIN);
                self.phase = CutPhase::Down { link, since, count_at };
                is_final.then_some(LinkEvent::Counted(link, wound))
            }
            CutPhase::Down { link, since, count_at: None }
                if self.automatic && now >= since + CUT =>
            {
                Some(self.mend(link, network, datagrams))
            }
            _ => None,
        }
    }

    /// Cuts a link, or mends the one that is down.
    pub(super) fn toggle(
        &mut self,
        network: &mut EmulatedNetwork,
        datagrams: &Datagrams,
    ) -> LinkEvent {
        match self.phase {
            CutPhase::Down { link, .. } => self.mend(link, network, datagrams),
            CutPhase::Whole { .. } => self.cut(network, datagrams),
        }
    }

    fn cut(&mut self, network: &mut EmulatedNetwork, datagrams: &Datagrams) -> LinkEvent {
        let Some(link) = self.choose(network) else { return LinkEvent::NoneToCut };
        self.before = datagrams.clone();
        self.mended = None;
        network.set_link(link, false);
        let since = network.now();
        self.phase = CutPhase::Down { link, since, count_at: Some(since + COUNT_AFTER) };
        LinkEvent::Cut(link)
    }

    fn mend(
        &mut self,
        link: LinkIndex,
        network: &mut EmulatedNetwork,
        datagrams: &Datagrams,
    ) -> LinkEvent {
        self.before = datagrams.clone();
        network.set_link(link, true);
        self.mended = Some((link, network.now()));
        self.phase = CutPhase::Whole { next: network.now() + WHOLE };
        LinkEvent::Mended(link)
    }

    /// Chooses a link between switches, up and with a way around it; each once before any repeats.
    fn choose(&mut self, network: &EmulatedNetwork) -> Option<LinkIndex> {
        let all = (0..network.topology().links().len() as u32).map(LinkIndex);
        let mut links: Vec<LinkIndex> =
            all.filter(|link| switches(network, *link).is_some()).collect();
        self.chance.shuffle(&mut links);
        let mut fresh = links.iter().filter(|link| !self.done.contains(link));
        let link = match fresh.find(|link| has_way_around(network, **link)) {
            Some(link) => *link,
            None => {
                self.done.clear();
                *links.iter().find(|link| has_way_around(network, **link))?
            }
        };
        self.done.insert(link);
        Some(link)
    }
}

/// The switches at the ends of a link that is up. `None` for the link of a host.
fn switches(network: &EmulatedNetwork, link: LinkIndex) -> Option<[SwitchIndex; 2]> {
    match network.link_ends(link).map(|end| end.node) {
        [Node::Switch(a), Node::Switch(b)] if network.is_link_up(link) => Some([a, b]),
        _ => None,
    }
}

/// Whether the ends of a link can reach each other without it.
fn has_way_around(network: &EmulatedNetwork, cut: LinkIndex) -> bool {
    let Some([from, to]) = switches(network, cut) else { return false };
    let all = network.topology().links().len() as u32;
    let mut neighbours = vec![Vec::new(); network.topology().switches().len()];
    for link in (0..all).map(LinkIndex).filter(|link| *link != cut) {
        if let Some([a, b]) = switches(network, link) {
            neighbours[a.index()].push(b);
            neighbours[b.index()].push(a);
        }
    }
    let mut seen = BTreeSet::from([from.0]);
    let mut queue = VecDeque::from([from]);
    while let Some(switch) = queue.pop_front() {
        if switch == to {
            return true;
        }
        let neighbours_of = neighbours[switch.index()].iter().copied();
        queue.extend(neighbours_of.filter(|near| seen.insert(near.0)));
    }
    false
}

#[cfg(test)]
mod tests {
    use bellrock_emulator::network::NetworkSettings;
    use bellrock_emulator::topology::{NamedTopology, TopologySpec};

    use super::*;

    fn network(text: &str) -> EmulatedNetwork {
        let topology: TopologySpec = text.parse().and_then(NamedTopology::build).unwrap();
        EmulatedNetwork::new(&topology, NetworkSettings::default())
    }

    fn datagrams(sent: u64, received: &[u64]) -> Datagrams {
        Datagrams { sent, received: received.to_vec() }
    }

    #[test]
    fn no_cut_separates_the_network_and_each_link_has_its_turn() {
        for (text, links) in [("ring:6", 6), ("fat-tree:4", 32), ("tree:2,3", 0), ("linear:4", 0)] {
            let mut network = network(text);
            let mut cuts = Cuts::new(7, true);
            let idle = datagrams(0, &[]);
            let mut cut = BTreeSet::new();
            for _ in 0..links {
                let LinkEvent::Cut(link) = cuts.toggle(&mut network, &idle) else {
                    panic!("{text}")
                };
                cut.insert(link);
                assert!(!network.is_link_up(link));
                assert_eq!(cuts.toggle(&mut network, &idle), LinkEvent::Mended(link));
                assert!(network.is_link_up(link));
            }
            assert_eq!(cut.len(), links, "{text}");
            if links == 0 {
                assert_eq!(cuts.toggle(&mut network, &idle), LinkEvent::NoneToCut);
            }
        }
    }

    #[test]
    fn in_a_ring_with_a_link_down_no_other_is_cut() {
        let mut network = network("ring:4");
        let first = Cuts::new(2, true).toggle(&mut network, &datagrams(0, &[]));
        assert!(matches!(first, LinkEvent::Cut(_)), "{first:?}");
        assert_eq!(
            Cuts::new(1, true).toggle(&mut network, &datagrams(0, &[])),
            LinkEvent::NoneToCut
        );
    }

    #[test]
    fn links_are_cut_counted_and_mended_by_the_clock() {
        let mut network = network("ring:4");
        let mut cuts = Cuts::new(1, true);
        let mut events = Vec::new();
        cuts.begin(Duration::ZERO);
        while events.len() < 5 {
            let at = cuts.next();
            network.advance(at);
            let sent = at.as_millis() as u64;
            // The stream is broken for 7 ms after the first cut.
            let received = if sent > 2000 { sent - 7 } else { sent };
            cuts.update(datagrams(sent - SHOWING, &[received - SHOWING]));
            let event = cuts.go_on(&mut network, &datagrams(sent, &[received]));
            events.push((at.as_secs(), event.unwrap()));
        }
        let wound = |lost| CutLosses {
            streams: usize::from(lost > 0),
            lost,
            longest: INTERVAL * lost as u32,
            healed: true,
        };
        let (2, LinkEvent::Cut(link)) = events[0] else { panic!("{events:?}") };
        assert_eq!(
            events[1..4],
            [
                (3, LinkEvent::Counted(link, wound(7))),
                (6, LinkEvent::Mended(link)),
                (7, LinkEvent::CountedAfter(link, wound(0))),
            ]
        );
        assert!(matches!(events[4], (8, LinkEvent::Cut(next)) if next != link), "{events:?}");
    }

    #[test]
    fn losses_are_counted_when_the_network_has_healed_or_the_link_is_mended() {
        // Broken until the given time, or for ever.
        for (until, counted) in [(3_500, 3), (u64::MAX, 6)] {
            let mut network = network("ring:4");
            let mut cuts = Cuts::new(1, true);
            cuts.begin(Duration::ZERO);
            let at = |ms: u64| datagrams(ms, &[ms.min(2_000) + ms.saturating_sub(until)]);
            let (wound, seconds) = loop {
                network.advance(cuts.next());
                let ms = network.now().as_millis() as u64;
                cuts.update(at(ms - SHOWING));
                if let Some(LinkEvent::Counted(_, wound)) = cuts.go_on(&mut network, &at(ms)) {
                    break (wound, ms / 1000);
                }
            };
            assert_eq!((wound.healed, seconds), (until == 3_500, counted));
        }
    }

    #[test]
    fn a_stream_that_stays_broken_is_no_healed_network() {
        let (before, recent) = (datagrams(0, &[0, 0]), datagrams(900, &[900, 10]));
        let wound = CutLosses::between(&before, &recent, &datagrams(1000, &[1000, 10]));
        assert_eq!((wound.streams, wound.lost, wound.healed), (1, 990, false));
    }
}
