//! Carries out a plan, and rolls it back.

use std::fmt;

use bellrock_api::{
    Change, ChangeOutcome, Dpid, Error, Network, NoConfirmation, ProgramFuture, Refusal,
};

use super::plan::{Moment, PlanStep};
use super::{DRAIN, Plan};

/// The outcome of a change of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanOutcome {
    /// The switch has confirmed it.
    Installed,
    /// The switch refused it; it has changed nothing.
    Refused(Refusal),
    /// It could not be sent; it has changed nothing.
    NotSent(Error),
    /// It was confirmed and then rolled back, which was confirmed too.
    RolledBack,
    /// It was not sent, because an earlier change failed.
    NotReached,
    /// The outcome is unknown: it may be in place or not.
    Unknown(NoConfirmation),
}

/// A change of a plan, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeReport {
    /// The switch.
    pub dpid: Dpid,
    /// The change.
    pub change: Change,
    /// The outcome.
    pub outcome: PlanOutcome,
}

/// A plan that was carried out: all its changes are confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Number of changes.
    pub changes: usize,
}

/// Why a plan was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The plan changes several switches without stating an order.
    #[error(
        "the plan changes {switches} switches and states no order; use Plan::tree() for flows to \
         a destination, Plan::independent() if no packet meets two of the switches, or \
         Plan::two_phase() for other flows"
    )]
    NeedsOrder {
        /// Number of switches.
        switches: usize,
    },
    /// The plan has flows for a version tag, but no tag.
    #[error(
        "the plan has an ingress, transit or egress flow for switch {dpid}, but no version tag; \
         begin it with Plan::two_phase()"
    )]
    NoTag {
        /// The switch of the first such flow.
        dpid: Dpid,
    },
    /// The tag is not a VLAN id.
    #[error("{tag} is not a version tag; use a VLAN id from 1 to 4094")]
    BadTag {
        /// The tag that was given.
        tag: u16,
    },
    /// A packet has one outermost VLAN tag, and the flow needs it itself.
    #[error(
        "a flow of switch {dpid} matches or changes VLAN tags, so its packets cannot carry a version \
         tag; it cannot be part of a two-phase plan"
    )]
    OwnTags {
        /// The switch of the first such flow.
        dpid: Dpid,
    },
    /// In 1.0, setting a VLAN id replaces an existing one (§5.2.4): the packet would lose its own.
    #[error(
        "the ingress flow of switch {dpid} also matches packets with VLAN tags, which OpenFlow 1.0 \
         would overwrite; add untagged() to its match, or use OpenFlow 1.3"
    )]
    LosesTags {
        /// The switch of the first such flow.
        dpid: Dpid,
    },
    /// A change failed.
    #[error("{}", FirstFailure(.0))]
    Failed(Vec<ChangeReport>),
}

/// Prints the first failure, and how many changes were rolled back, stay, or are unknown.
struct FirstFailure<'r>(&'r [ChangeReport]);

impl fmt::Display for FirstFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_cause = |report: &&ChangeReport| {
            matches!(
                report.outcome,
                PlanOutcome::Refused(_) | PlanOutcome::NotSent(_) | PlanOutcome::Unknown(_)
            )
        };
        match self.0.iter().find(is_cause) {
            None => f.write_str("the plan failed")?,
            Some(ChangeReport { dpid, change, outcome }) => {
                write!(f, "switch {dpid} did not {change}: ")?;
                match outcome {
                    PlanOutcome::Refused(refusal) => write!(f, "it refused ({refusal})")?,
                    PlanOutcome::NotSent(error) => write!(f, "{error}")?,
                    PlanOutcome::Unknown(loss) => write!(f, "{loss}")?,
                    PlanOutcome::Installed | PlanOutcome::RolledBack | PlanOutcome::NotReached => {}
                }
            }
        }
        let count =
            |outcome: PlanOutcome| self.0.iter().filter(|report| report.outcome == outcome).count();
        let unknown = self
            .0
            .iter()
            .filter(|report| matches!(report.outcome, PlanOutcome::Unknown(_)))
            .count();
        write!(
            f,
            "; of {} changes, {} were rolled back, {} stay and {unknown} are unknown",
            self.0.len(),
            count(PlanOutcome::RolledBack),
            count(PlanOutcome::Installed)
        )
    }
}

/// Carries out a plan.
pub(super) async fn carry_out(network: &Network, plan: Plan) -> Result<Committed, CommitError> {
    let mut steps = plan.ordered(|dpid| network.reachable(dpid).map(|info| info.version))?;
    let mut from = 0;
    while let Some(moment) = steps.get(from).map(|step| step.moment) {
        let until = from + steps.iter().skip(from).take_while(|s| s.moment == moment).count();
        if moment == Moment::Removed && from > 0 {
            network.sleep(DRAIN).await;
        }
        if !run_moment(network, steps.get_mut(from..until).unwrap_or_default()).await {
            if !steps.iter().any(|step| matches!(step.outcome, PlanOutcome::Unknown(_))) {
                roll_back(network, steps.get_mut(..until).unwrap_or_default()).await;
            }
            let report = |step: PlanStep| ChangeReport {
                dpid: step.dpid,
                change: step.change,
                outcome: step.outcome,
            };
            return Err(CommitError::Failed(steps.into_iter().map(report).collect()));
        }
        from = until;
    }
    Ok(Committed { changes: steps.len() })
}

/// Sends the changes of one moment to all their switches. Returns whether all are confirmed.
async fn run_moment(network: &Network, steps: &mut [PlanStep]) -> bool {
    let all: Vec<usize> = (0..steps.len()).collect();
    let change = |step: &PlanStep| Some(step.change.clone());
    for (at, outcome) in send(network, steps, &all, change).await {
        if let Some(step) = steps.get_mut(at) {
            step.outcome = match outcome {
                ChangeOutcome::Installed => PlanOutcome::Installed,
                ChangeOutcome::Refused(refusal) => PlanOutcome::Refused(refusal),
                ChangeOutcome::NotSent(error) => PlanOutcome::NotSent(error),
                ChangeOutcome::Withheld => PlanOutcome::NotReached,
                ChangeOutcome::Unknown(loss) => PlanOutcome::Unknown(loss),
            };
        }
    }
    steps.iter().all(|step| step.outcome == PlanOutcome::Installed)
}

/// Rolls back installed changes in reverse order of moments, and within a moment in reverse order.
/// Before a flow is removed, packets that the flow before it sent to it have time to leave.
async fn roll_back(network: &Network, steps: &mut [PlanStep]) {
    let mut until = steps.len();
    let mut has_changed = false;
    while let Some(moment) = until.checked_sub(1).and_then(|last| steps.get(last)).map(|s| s.moment)
    {
        let from = steps.iter().position(|step| step.moment == moment).unwrap_or(0);
        let installed =
            |at: &usize| steps.get(*at).is_some_and(|s| s.outcome == PlanOutcome::Installed);
        let undone: Vec<usize> = (from..until).rev().filter(installed).collect();
        let is_removal = |at: &usize| {
            steps.get(*at).is_some_and(|step| matches!(step.undo, Some(Change::Remove(_))))
        };
        if has_changed && undone.iter().any(is_removal) {
            network.sleep(DRAIN).await;
        }
        has_changed |= !undone.is_empty();
        let mut has_failed = false;
        for (at, outcome) in send(network, steps, &undone, |step| step.undo.clone()).await {
            let Some(step) = steps.get_mut(at) else { continue };
            match outcome {
                ChangeOutcome::Installed => step.outcome = PlanOutcome::RolledBack,
                ChangeOutcome::Unknown(loss) => step.outcome = PlanOutcome::Unknown(loss),
                // The change was not undone: it is still installed.
                ChangeOutcome::Refused(_) | ChangeOutcome::NotSent(_) | ChangeOutcome::Withheld => {
                }
            }
            has_failed |= outcome != ChangeOutcome::Installed;
        }
        if has_failed {
            // Going on could remove flows that a remaining flow leads to.
            return;
        }
        until = from;
    }
}

/// Sends the change that `change` returns for each step, to each switch at once, and waits for all.
async fn send(
    network: &Network,
    steps: &[PlanStep],
    indices: &[usize],
    change: impl Fn(&PlanStep) -> Option<Change>,
) -> Vec<(usize, ChangeOutcome)> {
    let mut by_switch: Vec<(Dpid, usize)> =
        indices.iter().filter_map(|at| Some((steps.get(*at)?.dpid, *at))).collect();
    // The sort is stable: changes of one switch stay in order.
    by_switch.sort_by_key(|(dpid, _)| *dpid);
    let mut programs: Vec<(Vec<usize>, ProgramFuture)> = Vec::new();
    for group in by_switch.chunk_by(|(a, _), (b, _)| a == b) {
        let Some((dpid, _)) = group.first() else { continue };
        let (places, changes): (Vec<usize>, Vec<Change>) =
            group.iter().filter_map(|(_, at)| Some((*at, change(steps.get(*at)?)?))).unzip();
        programs.push((places, network.program(*dpid, changes)));
    }
    let mut outcomes = Vec::with_capacity(indices.len());
    for (places, program) in programs {
        outcomes.extend(places.into_iter().zip(program.await));
    }
    outcomes
}
