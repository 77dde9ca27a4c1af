//! A worker's view of an app of the chain.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{AppGuard, AppId, Counter, EarlierFlows, Match, Network, PriorityBand};
use crossbeam_utils::CachePadded;
use tracing::error;

use crate::apps::sight::{Front, fronts};
use crate::counters::WorkerCounters;
use crate::directory::SharedState;
use crate::guard::guarded;
use crate::health::{Health, MAX_PANICS, PANIC_WINDOW};
use crate::log_budget::LogBudget;

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

/// A worker's view of the whole chain, in its order.
pub(super) fn chain_of(shared: &SharedState, worker: usize) -> Vec<WorkerApp> {
    let mut chain: Vec<WorkerApp> = Vec::new();
    for (place, app) in shared.apps().iter().enumerate() {
        let (name, earlier_flows) = (app.name, app.earlier_flows);
        let Some(id) = AppId::new(place, name) else { break };
        let health = shared.health(place);
        let fronts = fronts(&chain);
        let guard = app.guard.checks_handlers().then(|| Arc::clone(&app.guard));
        let messages = shared.messages_counter(worker, place);
        chain.push(WorkerApp {
            name,
            id,
            earlier_flows,
            reports_refusals: app.reports_refusals,
            health,
            network: shared.network_of(place, name),
            is_looked_at: guard.is_some() || !fronts.is_empty(),
            guard,
            sees: Arc::clone(&app.sees),
            fronts,
            messages,
        });
    }
    chain
}

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

    /// Calls code of the app that writes nothing to switches. `None`: it panicked, which is counted
    /// and logged.
    pub(crate) fn call<R>(
        &self,
        what: &'static str,
        (now, counters, log): (Duration, &WorkerCounters, &mut LogBudget),
        call: impl FnOnce() -> R,
    ) -> Option<R> {
        let result = guarded(call);
        if result.is_none() {
            self.panicked(now, counters);
            if log.allows(now, counters) {
                error!(app = self.name, what, "an app panicked");
            }
        }
        result
    }
}
