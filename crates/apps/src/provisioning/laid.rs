//! A circuit's way from one layout to the next.
//!
//! Each layout is a generation with tags and groups of its own, and those are used again later. So the one
//! before the last has to be gone from the switches before the next is laid.

use std::time::Duration;

use bellrock_services::desired::{Commit, DesiredState, IntentState, NotCommitted};

use super::CircuitState;
use super::circuit::Circuit;
use super::layout::{Layout, Own, View, generations, lay};

/// How long a circuit waits for its last change before it is laid anew with tags that may still be in use: a switch
/// that does not answer must not hold it for ever. It waits longer while switches lack many flows, of whichever circuits.
pub const SETTLE_WITHIN: Duration = Duration::from_secs(2);

/// What came of laying a circuit.
#[derive(Default)]
pub(super) struct Laid {
    /// What was committed last.
    last: Option<Last>,
    /// Its generation.
    generation: u16,
    /// Earlier generations that switches may have still.
    leaving: u16,
    /// Why it cannot be laid as the network is now.
    problem: Option<String>,
    /// It is to be laid anew at this time, or before, when the generations of before have gone.
    waits_until: Option<Duration>,
}

/// What was committed, and when.
struct Last {
    layout: Layout,
    commit: Commit,
    since: Duration,
}

impl Laid {
    /// Lays a circuit, which has a number and VLANs from a first one on. What is to be committed, if it is something
    /// else than before; the switches were as far as `state` says.
    pub(super) fn lay(
        &mut self,
        circuit: &Circuit,
        (number, first_vlan): (u32, u16),
        view: &View<'_>,
        state: &DesiredState,
        now: Duration,
    ) -> Option<Layout> {
        let progress = self.last.as_ref().map(|last| last.commit.state_in(state));
        // What a switch that is away has is found out when it is back.
        if matches!(progress, Some(IntentState::Settled | IntentState::Left(_))) {
            self.leaving = 0;
        }
        (self.problem, self.waits_until) = (None, None);
        let lay = |generation| lay(circuit, Own { number, first_vlan, generation }, view);
        let mut next = match lay(self.generation) {
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
            let patience = last.since + SETTLE_WITHIN + state.time_for_lacking();
            if self.leaving + 1 >= generations(circuit) && now < patience {
                self.waits_until = Some(patience);
                return None;
            }
            self.leaving += 1;
            self.generation = (self.generation + 1) % generations(circuit);
            next = lay(self.generation).ok()?;
        }
        Some(next)
    }

    /// Notes that a layout was committed.
    pub(super) fn committed(&mut self, layout: Layout, commit: Commit, since: Duration) {
        self.last = Some(Last { layout, commit, since });
    }

    /// How the circuit is now.
    pub(super) fn state(&self) -> CircuitState {
        match (&self.problem, &self.last) {
            (Some(why), _) => CircuitState::Down(why.clone()),
            (None, Some(last)) => match last.commit.state() {
                IntentState::Refused(dpid, why) => {
                    CircuitState::Down(NotCommitted::Refused(dpid, why).to_string())
                }
                IntentState::Away(dpid) => CircuitState::Down(NotCommitted::Away(dpid).to_string()),
                IntentState::Due => CircuitState::Installing,
                _ if self.waits() => CircuitState::Installing,
                IntentState::Settled | IntentState::Leaving | IntentState::Left(_) => {
                    CircuitState::Up { bare_links: last.layout.bare.len() }
                }
            },
            (None, None) => CircuitState::Installing,
        }
    }

    /// It was laid at some time since the controller started.
    pub(super) fn was_laid(&self) -> bool {
        self.last.is_some()
    }

    /// It is laid as the network is now, or waits for that.
    pub(super) fn is_laid(&self) -> bool {
        self.problem.is_none()
    }

    /// It is to be laid anew as soon as its last change has come to its end.
    pub(super) fn waits(&self) -> bool {
        self.waits_until.is_some()
    }

    /// When it is laid anew at the latest.
    pub(super) fn waits_until(&self) -> Option<Duration> {
        self.waits_until
    }
}
