//! The apps of the chain, their states, and what they may do.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::runtime::{DynApp, Runtime};
use bellrock_api::{AppGuard, AppId, Counter, EarlierFlows, MAX_SEEN, Match, Network, Scope};
use crossbeam_utils::CachePadded;
use tracing::error;

use super::SharedState;
use crate::activity::HandlerCall;
use crate::guard::guarded;
use crate::health::Health;
use crate::mailbox::SeenHost;

/// The state of an app of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppState {
    /// Its name.
    pub name: &'static str,
    /// Its cookies and its band of priorities.
    pub id: AppId,
    /// Where its tasks run in a cluster.
    pub scope: Scope,
    /// Number of panics of its handlers.
    pub panics: u64,
    /// Whether it is disabled after too many panics.
    pub disabled: bool,
    /// Number of errors that its handlers returned.
    pub errors: u64,
    /// The last of these errors that was logged: text and type.
    pub last_error: Option<String>,
    /// Number of its handlers' events that took longer than the limit.
    pub blocked: u64,
    /// Messages and tasks of it that were refused, because it is not allowed to send or run them.
    pub refused: u64,
    /// Messages that it has sent to switches.
    pub messages: u64,
    /// Seconds in which it sent too many messages.
    pub excesses: u64,
    /// Name and meaning of each of its counters, as far as the app describes them.
    pub counter_meanings: Arc<[(&'static str, &'static str)]>,
}

/// What [`SharedState::look_at_messages`] saw last.
#[derive(Debug, Default)]
pub struct MessagesSeen {
    at: Duration,
    packet_ins: u64,
    of_apps: Vec<u64>,
}

/// An app of the chain, with its answers at the start, which are final.
pub(crate) struct ChainApp {
    pub(crate) name: &'static str,
    pub(crate) earlier_flows: EarlierFlows,
    pub(crate) reports_refusals: bool,
    scope: Scope,
    pub(crate) sees: Arc<[Match]>,
    pub(crate) guard: Arc<AppGuard>,
    counter_meanings: Arc<[(&'static str, &'static str)]>,
    pub(crate) app: Box<dyn DynApp>,
}

impl ChainApp {
    pub(super) fn new(app: Box<dyn DynApp>) -> Self {
        let allowance = app.allowance().cloned().unwrap_or_default();
        ChainApp {
            name: app.name(),
            earlier_flows: app.earlier_flows(),
            reports_refusals: app.reports_refusals(),
            scope: app.scope(),
            sees: app.sees().unwrap_or_default().into_iter().take(MAX_SEEN).collect(),
            guard: Arc::new(AppGuard::new(allowance, app.needs())),
            counter_meanings: app.counter_meanings().into(),
            app,
        }
    }
}

impl SharedState {
    pub(crate) fn apps(&self) -> &[ChainApp] {
        &self.apps
    }

    /// Name of the app at this place of the chain.
    #[must_use]
    pub fn app_name(&self, place: usize) -> &'static str {
        self.apps.get(place).map_or("unknown", |app| app.name)
    }

    /// The network, for the app at this place.
    pub(crate) fn network_of(&self, place: usize, name: &'static str) -> Network {
        let runtime = Arc::clone(&self.posts) as Arc<dyn Runtime>;
        let guard = self.apps.get(place).map(|app| Arc::clone(&app.guard));
        match AppId::new(place, name) {
            Some(id) => Network::of_app(runtime, name, id).with_guard(guard),
            None => Network::new(runtime),
        }
    }

    /// Counts the messages that the handlers of an app write in a worker.
    pub(crate) fn messages_counter(
        &self,
        worker: usize,
        place: usize,
    ) -> Arc<CachePadded<Counter>> {
        self.messages.get(worker).and_then(|apps| apps.get(place)).cloned().unwrap_or_default()
    }

    /// Number of messages that an app has sent, by its handlers and by its tasks.
    fn messages_of(&self, place: usize) -> u64 {
        let of_worker = |apps: &Vec<Arc<CachePadded<Counter>>>| apps.get(place).map(|it| it.get());
        let by_handlers: u64 = self.messages.iter().filter_map(of_worker).sum();
        by_handlers + self.apps.get(place).map_or(0, |app| app.guard.sent())
    }

    /// Names the apps that have sent too many messages since the last look
    /// ([`bellrock_api::APP_MESSAGES_PER_SECOND`]). Call it once a second, in one thread only.
    pub fn look_at_messages(&self, last: &mut MessagesSeen) {
        let packet_ins = self.counters.iter().map(|worker| worker.packet_ins.get()).sum();
        let new_packet_ins = packet_ins - std::mem::replace(&mut last.packet_ins, packet_ins);
        let now = self.posts.now();
        let time = now.saturating_sub(std::mem::replace(&mut last.at, now));
        last.of_apps.resize(self.apps.len(), 0);
        for (place, (app, before)) in self.apps.iter().zip(&mut last.of_apps).enumerate() {
            let messages = self.messages_of(place);
            let sent = messages - std::mem::replace(before, messages);
            let network = self.network_of(place, app.name);
            app.guard.note_sent(&network, sent, new_packet_ins, time);
        }
    }

    /// The call of a handler that a worker is in.
    #[must_use]
    pub fn current_call(&self, worker: usize) -> Option<HandlerCall> {
        self.activities.get(worker)?.current()
    }

    /// Counts a handler's event that takes longer than the limit. Returns the name of the app. Only
    /// one thread may call it, a watchdog.
    pub fn record_blocked(&self, worker: usize, place: usize) -> &'static str {
        if let Some(counters) = self.counters.get(worker) {
            counters.handlers_blocked.add(1);
        }
        self.health(place).blocked();
        self.app_name(place)
    }

    /// Hosts that apps keep for all switches at once ([`bellrock_api::App::hosts`]), at most
    /// `limit`. It may read large tables: never call it in a worker's thread.
    #[must_use]
    pub fn hosts_of_apps(&self, limit: usize) -> Vec<SeenHost> {
        let mut hosts = Vec::new();
        for (place, (app, health)) in self.apps.iter().zip(&self.health).enumerate() {
            let before = hosts.len();
            if health.is_disabled() || before >= limit {
                continue;
            }
            let mut report = |dpid, host| {
                if hosts.len() >= limit {
                    return ControlFlow::Break(());
                }
                hosts.push((dpid, app.name, host));
                ControlFlow::Continue(())
            };
            let network = self.network_of(place, app.name);
            if guarded(|| app.app.hosts(&network, &mut report)).is_none() {
                // No worker counts this, and it is called rarely.
                error!(app = app.name, what = "hosts", "an app panicked");
                hosts.truncate(before);
            }
        }
        hosts
    }

    /// Gives an app its events again after too many panics, such as when its code was replaced. A
    /// switch that came up meanwhile has no handler of it until it connects again. `false`: there
    /// is no such app.
    #[must_use]
    pub fn enable_app(&self, name: &str) -> bool {
        let found = self.apps.iter().zip(&self.health).find(|(app, _)| app.name == name);
        found.map(|(_, health)| health.enable()).is_some()
    }

    /// Health of the app at this place.
    pub(crate) fn health(&self, place: usize) -> Arc<Health> {
        self.health.get(place).cloned().unwrap_or_default()
    }

    /// The apps of the chain and their states, in order.
    #[must_use]
    pub fn app_states(&self) -> Vec<AppState> {
        let apps = self.apps.iter().zip(&self.health).enumerate();
        let states = apps.filter_map(|(place, (app, health))| {
            let id = AppId::new(place, app.name)?;
            let (panics, disabled) = (health.panics(), health.is_disabled());
            let (errors, last_error) = health.errors();
            let counter_meanings = Arc::clone(&app.counter_meanings);
            let blocked = health.times_blocked();
            let (refused, excesses) = (app.guard.refused(), app.guard.excesses());
            let messages = self.messages_of(place);
            let name = app.name;
            Some(AppState {
                name,
                id,
                scope: app.scope,
                panics,
                disabled,
                errors,
                last_error,
                blocked,
                refused,
                messages,
                excesses,
                counter_meanings,
            })
        });
        states.collect()
    }
}
