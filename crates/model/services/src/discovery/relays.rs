//! Links that look like relays between hosts, and what an operator says of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::time::Duration;

use async_channel::Sender;
use bellrock_api::runtime::{Promise, PromiseFuture, promise};
use bellrock_api::{Network, Suspicion, SwitchPort};

/// How long a port counts as one that had hosts, after it went down. As long as a host is
/// remembered by default.
pub const HOST_PORT_MEMORY: Duration = Duration::from_secs(300);

/// Maximum number of links that are kept as suspected. Further ones are reported only.
pub const MAX_SUSPECTED: usize = 1024;

/// Maximum number of links that an operator has judged.
pub const MAX_VERDICTS: usize = 1024;

/// Maximum number of orders that wait for the task.
pub(super) const MAX_ORDERS: usize = 64;

/// What an operator says of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkVerdict {
    /// It is a link, whatever it looks like.
    Link,
    /// It is a relay between hosts: it is no link.
    Relay,
}

/// A link that looks like a relay, or that an operator has judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspectedLink {
    /// Port that announcements were made for.
    pub from: SwitchPort,
    /// Port where they came in.
    pub to: SwitchPort,
    /// The latest evidence for a relay, and when it was found.
    pub evidence: Option<(Suspicion, Duration)>,
    /// What an operator says.
    pub verdict: Option<LinkVerdict>,
    /// Whether it is up, in a direction or both.
    pub is_up: bool,
}

/// An operator has judged [`MAX_VERDICTS`] links already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{MAX_VERDICTS} links are judged already, the maximum; `bellrock relays forget` makes room"
)]
pub struct VerdictsFull;

/// An order for the task of discovery.
#[derive(Debug)]
pub(super) enum RelayOrder {
    List(Promise<Vec<SuspectedLink>>),
    Judge {
        from: SwitchPort,
        to: SwitchPort,
        verdict: Option<LinkVerdict>,
        answer: Promise<Result<SuspectedLink, VerdictsFull>>,
    },
}

/// Where operators ask about relays, and overrule discovery. An
/// [extension](bellrock_api::Network::extension) of the network.
#[derive(Debug, Default)]
pub struct Relays(OnceLock<Sender<RelayOrder>>);

impl Relays {
    /// Lists the links that look like relays, and those that an operator has judged. `None`:
    /// discovery does not run, or has too many orders.
    #[must_use]
    pub fn list(network: &Network) -> Option<PromiseFuture<Vec<SuspectedLink>>> {
        let (answer, future) = promise();
        Self::send(network, RelayOrder::List(answer))?;
        Some(future)
    }

    /// Says what the link between two ports is. `None`: discovery decides again. It holds until the
    /// controller ends.
    #[must_use]
    pub fn judge(
        network: &Network,
        from: SwitchPort,
        to: SwitchPort,
        verdict: Option<LinkVerdict>,
    ) -> Option<PromiseFuture<Result<SuspectedLink, VerdictsFull>>> {
        let (answer, future) = promise();
        Self::send(network, RelayOrder::Judge { from, to, verdict, answer })?;
        Some(future)
    }

    fn send(network: &Network, order: RelayOrder) -> Option<()> {
        network.extension::<Relays>().0.get()?.try_send(order).ok()
    }

    pub(super) fn serve(network: &Network, orders: Sender<RelayOrder>) {
        // Discovery starts once.
        let _ = network.extension::<Relays>().0.set(orders);
    }
}

/// What is known of relays. Links are without a direction: their lower port is first.
#[derive(Debug)]
pub(super) struct RelayTable {
    /// Ports that lead to switches, as the configuration states.
    trusted: BTreeSet<SwitchPort>,
    verdicts: BTreeMap<[SwitchPort; 2], LinkVerdict>,
    suspected: BTreeMap<[SwitchPort; 2], (Suspicion, Duration)>,
    /// When ports with hosts went down.
    lost_hosts: BTreeMap<SwitchPort, Duration>,
}

fn sorted(from: SwitchPort, to: SwitchPort) -> [SwitchPort; 2] {
    [from.min(to), from.max(to)]
}

impl RelayTable {
    pub(super) fn new(trusted: BTreeSet<SwitchPort>) -> Self {
        let (verdicts, suspected, lost_hosts) = Default::default();
        RelayTable { trusted, verdicts, suspected, lost_hosts }
    }

    /// Whether configuration or operator state that the link is one.
    pub(super) fn is_trusted(&self, from: SwitchPort, to: SwitchPort) -> bool {
        match self.verdict(from, to) {
            Some(verdict) => verdict == LinkVerdict::Link,
            None => self.trusted.contains(&from) && self.trusted.contains(&to),
        }
    }

    pub(super) fn verdict(&self, from: SwitchPort, to: SwitchPort) -> Option<LinkVerdict> {
        self.verdicts.get(&sorted(from, to)).copied()
    }

    pub(super) fn judge(
        &mut self,
        from: SwitchPort,
        to: SwitchPort,
        verdict: Option<LinkVerdict>,
    ) -> Result<(), VerdictsFull> {
        let link = sorted(from, to);
        match verdict {
            None => {
                self.verdicts.remove(&link);
            }
            Some(_)
                if self.verdicts.len() >= MAX_VERDICTS && !self.verdicts.contains_key(&link) =>
            {
                return Err(VerdictsFull);
            }
            Some(verdict) => {
                self.verdicts.insert(link, verdict);
            }
        }
        Ok(())
    }

    pub(super) fn suspect(
        &mut self,
        from: SwitchPort,
        to: SwitchPort,
        why: Suspicion,
        now: Duration,
    ) {
        let link = sorted(from, to);
        if self.suspected.len() < MAX_SUSPECTED || self.suspected.contains_key(&link) {
            self.suspected.insert(link, (why, now));
        }
    }

    pub(super) fn note_hosts(&mut self, at: SwitchPort, now: Duration) {
        self.lost_hosts.insert(at, now);
    }

    /// When a port with hosts went down, if that is not long ago.
    pub(super) fn lost_hosts(&self, at: SwitchPort, now: Duration) -> Option<Duration> {
        self.lost_hosts.get(&at).copied().filter(|lost| now < *lost + HOST_PORT_MEMORY)
    }

    /// A port is down: what its announcements showed is over. Verdicts stay.
    pub(super) fn port_removed(&mut self, at: SwitchPort) {
        self.suspected.retain(|link, _| !link.contains(&at));
    }

    pub(super) fn forget_old(&mut self, now: Duration) {
        self.lost_hosts.retain(|_, lost| now < *lost + HOST_PORT_MEMORY);
    }

    /// The links that are suspected or judged.
    pub(super) fn pairs(&self) -> impl Iterator<Item = [SwitchPort; 2]> {
        let pairs: BTreeSet<_> =
            self.suspected.keys().chain(self.verdicts.keys()).copied().collect();
        pairs.into_iter()
    }

    pub(super) fn link(&self, from: SwitchPort, to: SwitchPort) -> SuspectedLink {
        let evidence = self.suspected.get(&sorted(from, to)).copied();
        let verdict = self.verdict(from, to);
        SuspectedLink { from, to, evidence, verdict, is_up: false }
    }
}
