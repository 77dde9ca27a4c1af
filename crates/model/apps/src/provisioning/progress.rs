//! Decides about a circuit, and lays what is decided.
//!
//! The leader decides ([`CircuitProgress::decide`]): it stores the next state of the circuit. Each
//! controller lays what is stored ([`CircuitProgress::lay`]).
//!
//! Each layout is a generation with its own tags and groups, which are used again later. So the
//! layout before the last must be removed from the switches before the next is laid.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{AppEvent, SwitchPort};
use bellrock_services::desired::{Commit, Desired, DesiredState, IntentState, NotCommitted};

use super::CircuitState;
use super::layout::{CircuitLayout, VLANS_PER_CIRCUIT, generations};
use super::plan::PlannedCircuit;
use super::route::{CircuitRoute, NetworkView};
use super::stored::StoredCircuit;

/// Maximum time that a circuit waits for its last change before it reuses tags: an unresponsive
/// switch must not block it for ever. It waits longer while switches lack many flows.
pub const SETTLE_WITHIN: Duration = Duration::from_secs(2);

/// As many generations as a circuit can have, or more.
const MAX_GENERATIONS: u16 = VLANS_PER_CIRCUIT[0];

/// State of the circuit of a number.
#[derive(Default)]
pub(super) struct CircuitProgress {
    /// The last committed layout: that of `laid`, or none.
    last: Option<CommittedLayout>,
    /// The circuit whose flows are wanted.
    laid: Option<Arc<StoredCircuit>>,
    /// The last generation that was laid.
    generation: u16,
    /// Number of earlier generations that switches may still have.
    old_generations: u16,
    /// Reason why the store does not take its next state.
    trouble: Option<String>,
    /// Latest time of the next layout, which waits for earlier generations to be removed.
    next_layout_at: Option<Duration>,
    /// What the last event reported.
    reported: Option<Reported>,
}

/// A state of a circuit that an event has reported.
#[derive(Debug, PartialEq, Eq)]
enum Reported {
    /// Up, on this path.
    Up(Vec<SwitchPort>),
    /// The circuit of this name is down.
    Down(String),
}

/// Name of the alarm that a circuit is down. It ends when it is up again, or removed.
const DOWN: &str = "circuit_down";

/// A committed layout and its time.
struct CommittedLayout {
    layout: CircuitLayout,
    commit: Commit,
    since: Duration,
    /// Whether the time until it was confirmed has been measured.
    is_measured: bool,
}

impl CircuitProgress {
    /// Takes note of how far the switches are. Those of other controllers confirm nothing here:
    /// they get some time.
    pub(super) fn observe(&mut self, state: &DesiredState, is_shared: bool, now: Duration) {
        let Some(last) = &self.last else { return };
        // The flows of a disconnected switch are read when it returns.
        let is_gone = matches!(
            last.commit.state_in(state),
            IntentState::Settled | IntentState::Left(_) | IntentState::Restored(_)
        );
        if is_gone && (!is_shared || now >= last.since + SETTLE_WITHIN) {
            self.old_generations = 0;
        }
    }

    /// Returns the circuit as it is to be stored: on its present route as long as that is intact
    /// and none is better, else on another one. `stored`: what is stored under its number.
    pub(super) fn decide(
        &mut self,
        planned: &PlannedCircuit,
        stored: Option<&StoredCircuit>,
        view: &NetworkView<'_>,
        state: &DesiredState,
        now: Duration,
    ) -> StoredCircuit {
        self.next_layout_at = None;
        let PlannedCircuit { circuit, intent, vlans } = planned;
        let count = generations(circuit, vlans);
        let is_same = |stored: &StoredCircuit| stored.intent == *intent && stored.vlans == *vlans;
        let mut next = match stored {
            Some(stored) if is_same(stored) => {
                StoredCircuit { circuit: circuit.clone(), down: None, ..stored.clone() }
            }
            _ => StoredCircuit {
                circuit: circuit.clone(),
                intent: *intent,
                vlans: vlans.clone(),
                generation: self.last.as_ref().map_or(0, |_| (self.generation + 1) % count),
                route: None,
                down: None,
            },
        };
        if stored.is_some_and(|stored| !is_same(stored)) {
            // The flows of the circuit that had this number are withdrawn first.
            return next;
        }
        let route = match CircuitRoute::choose(circuit, next.tags(next.generation), view) {
            Ok(route) => route,
            Err(why) => return StoredCircuit { down: Some(why.to_string()), ..next },
        };
        if let Some(present) = &next.route {
            let keeps = present.places == route.places
                && present.is_intact(view)
                && present.cost() <= route.cost();
            if keeps || *present == route {
                return next;
            }
        }
        if let Some(last) = &self.last {
            let deadline = last.since + SETTLE_WITHIN + state.queue_time();
            if self.old_generations + 1 >= count && now < deadline {
                self.next_layout_at = Some(deadline);
                return next;
            }
        }
        if next.route.is_none() {
            next.route = Some(route);
            return next;
        }
        let generation = (next.generation + 1) % count;
        if let Ok(route) = CircuitRoute::choose(circuit, next.tags(generation), view) {
            (next.generation, next.route) = (generation, Some(route));
        }
        next
    }

    /// Wants the flows of a stored circuit, if it does not yet.
    pub(super) fn lay(
        &mut self,
        number: u32,
        stored: &Arc<StoredCircuit>,
        desired: &Desired,
        since: Duration,
    ) {
        if self.laid.as_ref().is_some_and(|laid| laid.has_flows_of(stored)) {
            return;
        }
        let Some(layout) = stored.layout(number) else { return };
        let commit = desired.commit_tree(stored.intent, layout.entries.iter().cloned());
        if self.last.is_some() {
            self.old_generations = self.old_generations.saturating_add(1);
        }
        self.generation = stored.generation;
        self.laid = Some(Arc::clone(stored));
        self.last = Some(CommittedLayout { layout, commit, since, is_measured: false });
    }

    /// The circuit whose flows are wanted.
    pub(super) fn laid(&self) -> Option<&StoredCircuit> {
        self.laid.as_deref()
    }

    /// Notes why the store does not take the next state of the circuit.
    pub(super) fn set_trouble(&mut self, why: Option<String>) {
        self.trouble = why;
    }

    /// Returns the time until the switches had confirmed the last layout, once.
    pub(super) fn take_time(&mut self, state: &DesiredState, now: Duration) -> Option<Duration> {
        let last = self.last.as_mut().filter(|last| !last.is_measured)?;
        let is_confirmed = matches!(
            last.commit.state_in(state),
            IntentState::Settled
                | IntentState::Leaving
                | IntentState::Left(_)
                | IntentState::Restored(_)
        );
        last.is_measured = is_confirmed;
        is_confirmed.then(|| now.saturating_sub(last.since))
    }

    /// Records that the entries of the circuit were withdrawn. The next circuit with its number
    /// waits until they are gone, as it has the same VLANs.
    pub(super) fn withdrawn(&mut self, commit: Commit, since: Duration) {
        let layout = CircuitLayout::default();
        self.last = Some(CommittedLayout { layout, commit, since, is_measured: true });
        (self.laid, self.trouble, self.next_layout_at) = (None, None, None);
        self.old_generations = MAX_GENERATIONS;
    }

    /// Present state of the circuit, as it is stored.
    pub(super) fn state(&self, stored: &StoredCircuit) -> CircuitState {
        let why = self.trouble.as_ref().or(stored.down.as_ref());
        match (why, &self.last) {
            (Some(why), _) => CircuitState::Down(why.clone()),
            (None, Some(last)) => match last.commit.state() {
                _ if self.laid.is_none() => CircuitState::Installing,
                IntentState::Refused(dpid, why) => {
                    CircuitState::Down(NotCommitted::Refused(dpid, why).to_string())
                }
                IntentState::Away(dpid) => CircuitState::Down(NotCommitted::Away(dpid).to_string()),
                // A restored entry was not there: the next report shows whether it is now.
                IntentState::Due | IntentState::Restored(_) => CircuitState::Installing,
                _ if self.is_waiting() => CircuitState::Installing,
                IntentState::Settled | IntentState::Leaving | IntentState::Left(_) => {
                    CircuitState::Up { bare_links: last.layout.unprotected.len() }
                }
            },
            (None, None) => CircuitState::Installing,
        }
    }

    /// Returns the event that reports a change of the circuit: the next one, if there are several.
    /// While it is being installed, it has not changed yet.
    pub(super) fn change(&mut self, stored: &StoredCircuit) -> Option<AppEvent> {
        let name = &stored.circuit.name;
        if matches!(&self.reported, Some(Reported::Down(other)) if other != name) {
            return self.removed();
        }
        let (reported, event) = match self.state(stored) {
            CircuitState::Installing => return None,
            CircuitState::Up { .. } => {
                let ports: Vec<_> = self.path().iter().map(ToString::to_string).collect();
                let text = format!("circuit {name} is up, by {}", ports.join(", "));
                let was_up = matches!(self.reported, Some(Reported::Up(_)));
                let event = if was_up { "circuit_moved" } else { "circuit_up" };
                let event = AppEvent::new(event, &text).ending(DOWN, name);
                (Reported::Up(self.path().to_vec()), event)
            }
            CircuitState::Down(why) => {
                let text = format!("circuit {name} is down: {why}");
                let event = AppEvent::new(DOWN, &text).alarming_until_ended(name);
                (Reported::Down(name.clone()), event)
            }
        };
        if self.reported.as_ref() == Some(&reported) {
            return None;
        }
        self.reported = Some(reported);
        Some(event)
    }

    /// Returns the event that ends the alarm of a circuit that is none any more.
    pub(super) fn removed(&mut self) -> Option<AppEvent> {
        let Reported::Down(name) = self.reported.take_if(|it| matches!(it, Reported::Down(_)))?
        else {
            return None;
        };
        let text = format!("circuit {name}, which was down, is removed");
        Some(AppEvent::new("circuit_removed", &text).ending(DOWN, &name))
    }

    /// Whether the circuit is down, and has been so since the controller started.
    pub(super) fn was_never_up(&self, stored: &StoredCircuit) -> bool {
        self.reported.is_none() && matches!(self.state(stored), CircuitState::Down(_))
    }

    /// Output ports of the links that carry it, or would.
    pub(super) fn path(&self) -> &[SwitchPort] {
        self.last.as_ref().map_or(&[], |last| &last.layout.path)
    }

    /// Returns whether it has a route for its present definition, or waits to be laid.
    pub(super) fn is_laid(&self, stored: &StoredCircuit) -> bool {
        let has_flows = self.laid.is_some() || self.is_waiting();
        self.trouble.is_none() && stored.down.is_none() && has_flows
    }

    /// Returns whether it will be laid again as soon as its last change has ended.
    pub(super) fn is_waiting(&self) -> bool {
        self.next_layout_at.is_some()
    }

    /// Latest time of the next layout.
    pub(super) fn next_layout_at(&self) -> Option<Duration> {
        self.next_layout_at
    }
}
