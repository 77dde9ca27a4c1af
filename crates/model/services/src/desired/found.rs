//! Searches for flows that an earlier run of an app left in the switches.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bellrock_api::{Dpid, Match, Publisher, Watch};

use super::read::KnownEntries;

/// Maximum number of matches that are published for a switch.
pub const MAX_FOUND_PER_SWITCH: usize = 4096;

/// The matches that were found, sorted, for each switch that has reported its tables.
pub type FoundFlows = BTreeMap<Dpid, Vec<Match>>;

/// Whether the app looks for a flow with this match.
type FlowFilter = dyn Fn(&Match) -> bool + Send + Sync;

#[derive(Default)]
pub(super) struct FoundMatches {
    filter: OnceLock<Box<FlowFilter>>,
    flows: Publisher<FoundFlows>,
}

impl FoundMatches {
    pub(super) fn watch(
        &self,
        filter: impl Fn(&Match) -> bool + Send + Sync + 'static,
    ) -> &Watch<FoundFlows> {
        let _ = self.filter.set(Box::new(filter));
        self.flows.watch()
    }

    /// Publishes the matches that were found in a switch's tables.
    pub(super) fn publish(&self, dpid: Dpid, known: &KnownEntries) {
        let Some(filter) = self.filter.get() else { return };
        let matches = known.flows.keys().map(|key| &key.matching);
        let mut found: Vec<Match> = matches.filter(|matching| filter(matching)).cloned().collect();
        if found.is_empty() {
            return;
        }
        // The table has no order, and a repeatable run needs one.
        found.sort_by_cached_key(ToString::to_string);
        found.truncate(MAX_FOUND_PER_SWITCH);
        self.flows.update(|before| {
            let mut all = before.clone();
            all.insert(dpid, found);
            all
        });
    }
}
