//! Moves a circuit from one layout to the next.
//!
//! Each layout is a generation with its own tags and groups, which are used again later. So the
//! layout before the last must be removed from the switches before the next is laid.

use std::ops::Range;
use std::time::Duration;

use bellrock_api::{AppEvent, SwitchPort};
use bellrock_services::desired::{Commit, DesiredState, IntentState, NotCommitted};

use super::CircuitState;
use super::circuit::Circuit;
use super::layout::{
    CircuitLayout, CircuitNumbers, NetworkView, VLANS_PER_CIRCUIT, compute_layout, generations,
};

/// Maximum time that a circuit waits for its last change before it reuses tags: an unresponsive
/// switch must not block it for ever. It waits longer while switches lack many flows.
pub const SETTLE_WITHIN: Duration = Duration::from_secs(2);

/// As many generations as a circuit can have, or more.
const MAX_GENERATIONS: u16 = VLANS_PER_CIRCUIT[0];

/// State of laying a circuit.
#[derive(Default)]
pub(super) struct CircuitProgress {
    /// The last committed layout.
    last: Option<CommittedLayout>,
    /// Its generation.
    generation: u16,
    /// Number of earlier generations that switches may still have.
    old_generations: u16,
    /// Reason why the present network has no layout for it.
    problem: Option<String>,
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
    Down,
}

/// A committed layout and its time.
struct CommittedLayout {
    layout: CircuitLayout,
    commit: Commit,
    since: Duration,
    /// Whether the time until it was confirmed has been measured.
    is_measured: bool,
}

impl CircuitProgress {
    /// Computes the layout of a circuit with this number and these VLANs. Returns it if it must be
    /// committed, as it differs from the last one. `state` is the progress of the switches.
    pub(super) fn update(
        &mut self,
        circuit: &Circuit,
        (number, vlans): (u32, &Range<u16>),
        view: &NetworkView<'_>,
        state: &DesiredState,
        now: Duration,
    ) -> Option<CircuitLayout> {
        let progress = self.last.as_ref().map(|last| last.commit.state_in(state));
        // The flows of a disconnected switch are read when it returns.
        if matches!(progress, Some(IntentState::Settled | IntentState::Left(_))) {
            self.old_generations = 0;
        }
        (self.problem, self.next_layout_at) = (None, None);
        let compute = |generation| {
            let numbers = CircuitNumbers { number, vlans: vlans.clone(), generation };
            compute_layout(circuit, numbers, view)
        };
        let mut next = match compute(self.generation) {
            Ok(next) => next,
            Err(why) => {
                self.problem = Some(why.to_string());
                return None;
            }
        };
        if let Some(last) = &self.last {
            if last.layout == next {
                return None;
            }
            let deadline = last.since + SETTLE_WITHIN + state.queue_time();
            if self.old_generations + 1 >= generations(circuit, vlans) && now < deadline {
                self.next_layout_at = Some(deadline);
                return None;
            }
            self.old_generations += 1;
            self.generation = (self.generation + 1) % generations(circuit, vlans);
            next = compute(self.generation).ok()?;
        }
        Some(next)
    }

    /// Records a committed layout.
    pub(super) fn committed(&mut self, layout: CircuitLayout, commit: Commit, since: Duration) {
        self.last = Some(CommittedLayout { layout, commit, since, is_measured: false });
    }

    /// Returns the time until the switches had confirmed the last layout, once.
    pub(super) fn take_time(&mut self, state: &DesiredState, now: Duration) -> Option<Duration> {
        let last = self.last.as_mut().filter(|last| !last.is_measured)?;
        let is_confirmed = matches!(
            last.commit.state_in(state),
            IntentState::Settled | IntentState::Leaving | IntentState::Left(_)
        );
        last.is_measured = is_confirmed;
        is_confirmed.then(|| now.saturating_sub(last.since))
    }

    /// Records that the entries of the circuit were withdrawn. The next circuit with its number
    /// waits until they are gone, as it has the same VLANs.
    pub(super) fn withdrawn(&mut self, commit: Commit, since: Duration) {
        if self.last.is_none() {
            return;
        }
        let layout = CircuitLayout::default();
        self.last = Some(CommittedLayout { layout, commit, since, is_measured: true });
        (self.old_generations, self.problem, self.next_layout_at) = (MAX_GENERATIONS, None, None);
    }

    /// Present state of the circuit.
    pub(super) fn state(&self) -> CircuitState {
        match (&self.problem, &self.last) {
            (Some(why), _) => CircuitState::Down(why.clone()),
            (None, Some(last)) => match last.commit.state() {
                IntentState::Refused(dpid, why) => {
                    CircuitState::Down(NotCommitted::Refused(dpid, why).to_string())
                }
                IntentState::Away(dpid) => CircuitState::Down(NotCommitted::Away(dpid).to_string()),
                IntentState::Due => CircuitState::Installing,
                _ if self.is_waiting() => CircuitState::Installing,
                IntentState::Settled | IntentState::Leaving | IntentState::Left(_) => {
                    CircuitState::Up { bare_links: last.layout.unprotected.len() }
                }
            },
            (None, None) => CircuitState::Installing,
        }
    }

    /// Returns the event that reports a change of the circuit `name`. While it is being installed,
    /// it has not changed yet.
    pub(super) fn change(&mut self, name: &str) -> Option<AppEvent> {
        let (reported, event) = match self.state() {
            CircuitState::Installing => return None,
            CircuitState::Up { .. } => {
                let ports: Vec<_> = self.path().iter().map(ToString::to_string).collect();
                let text = format!("circuit {name} is up, by {}", ports.join(", "));
                let was_up = matches!(self.reported, Some(Reported::Up(_)));
                let event = if was_up { "circuit_moved" } else { "circuit_up" };
                (Reported::Up(self.path().to_vec()), AppEvent::new(event, &text))
            }
            CircuitState::Down(why) => {
                let text = format!("circuit {name} is down: {why}");
                (Reported::Down, AppEvent::new("circuit_down", &text).alarming())
            }
        };
        if self.reported.as_ref() == Some(&reported) {
            return None;
        }
        self.reported = Some(reported);
        Some(event)
    }

    /// Whether the circuit is down, and has been so since the controller started.
    pub(super) fn was_never_up(&self) -> bool {
        self.reported.is_none() && matches!(self.state(), CircuitState::Down(_))
    }

    /// Whether a change of the circuit is still to be reported, once it is installed.
    pub(super) fn is_changing(&self) -> bool {
        matches!(self.state(), CircuitState::Installing)
    }

    /// Output ports of the links that carry it, or would.
    pub(super) fn path(&self) -> &[SwitchPort] {
        self.last.as_ref().map_or(&[], |last| &last.layout.path)
    }

    /// Returns whether it has been laid since the controller started.
    pub(super) fn has_layout(&self) -> bool {
        self.last.is_some()
    }

    /// Returns whether it is laid for the present network, or waits to be laid.
    pub(super) fn is_laid(&self) -> bool {
        self.problem.is_none()
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
