//! A worker's view of an app of the chain.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{AppGuard, AppId, Counter, EarlierFlows, Match, Network, PriorityBand};
use crossbeam_utils::CachePadded;
use tracing::error;

use crate::counters::WorkerCounters;
use crate::health::{Health, MAX_PANICS, PANIC_WINDOW};
use crate::sight::Front;

/// A worker's view of an app.
pub(crate) struct WorkerApp {
    pub(crate) name: &'static str,
    pub(crate) id: AppId,
    pub(crate) earlier_flows: EarlierFlows,
    pub(crate) reports_refusals: bool,
    pub(crate) health: Arc<Health>,
    /// The app's handle to the network.
    pub(crate) network: Network,
    /// Set if the messages of its handlers must be checked.
    pub(crate) guard: Option<Arc<AppGuard>>,
    /// The packets that it sees.
    pub(crate) sees: Arc<[Match]>,
    /// The apps in front that see packets, the nearest first.
    pub(crate) fronts: Box<[Front]>,
    /// Whether something looks at the messages of its handlers: the guard, or the apps in front.
    pub(crate) is_looked_at: bool,
    /// Messages that its handlers have written in this worker.
    pub(crate) messages: Arc<CachePadded<Counter>>,
}

/// Maximum number of apps in a chain: each needs its own band of priorities.
pub const MAX_APPS: usize = PriorityBand::PLACES;

impl WorkerApp {
    /// Its place in the chain.
    #[inline]
    pub(crate) fn place(&self) -> usize {
        usize::from(self.id.owner()).saturating_sub(1)
    }

    /// Counts a panic of one of its handlers.
    #[cold]
    pub(crate) fn panicked(&self, now: Duration, counters: &WorkerCounters) {
        counters.handler_panics.add(1);
        if self.health.panicked(now) {
            counters.apps_disabled.add(1);
            // Once for each app, so not limited by the budget of log lines.
            error!(
                app = self.name,
                panics = self.health.panics(),
                "APP DISABLED: its handlers panicked {MAX_PANICS} times within {PANIC_WINDOW:?}. It gets \
                 no more events; its flows stay; the other apps go on. Repair it and start the \
                 controller again"
            );
        }
    }
}
