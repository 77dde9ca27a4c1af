//! Installs flows on many switches, confirmed, in an order in which no packet loops or is lost.
//!
//! A [`Plan`] lists the changes and how they depend on each other. [`FlowProgramming::commit`]
//! carries it out: a barrier confirms each change at its switch
//! ([`bellrock_api::Network::program`]), and the outcome of each is reported exactly.
//!
//! # Order
//! - [`Plan::tree`]: flows that lead to one destination, each with its distance. Flows nearest to
//!   the destination are changed and confirmed first. A changed flow leads to the destination by
//!   flows that were changed before it. An unchanged flow leads where it led before, or to a
//!   changed one. So there is never a loop or a hole that was not there before. Flows that the new
//!   tree does not need are removed last, after packets have had time to leave ([`DRAIN`]).
//! - [`Plan::two_phase`]: any other flows. Flows within the network match a version tag, a VLAN id
//!   that no packet carries yet. Then the flows at the edge are changed to put the new tag on
//!   packets. So each packet meets either only old flows or only new ones.
//! - [`Plan::independent`]: changes of which no packet meets two, such as drops.
//! - [`Plan::new`]: changes of one switch. It is refused for several: only its author knows the
//!   order.
//!
//! # Failure
//! If a switch refuses a change, the plan is rolled back in reverse order. So the guarantees about
//! loops and holes hold on the way back too; packets have [`DRAIN`] to leave before a flow is
//! removed. If the outcome of a change is unknown, because the switch was lost or does not answer,
//! nothing is rolled back and nothing more is sent: the confirmed changes have neither loop nor
//! hole whether the lost switch has the change or not, and rolling back could make one. In both
//! cases [`CommitError::Failed`] reports the outcome of each change.

mod commit;
mod pending;
mod plan;
mod two_phase;

use std::future::Future;
use std::time::Duration;

use bellrock_api::Network;

pub use commit::{ChangeReport, CommitError, Committed, PlanOutcome};
pub use pending::PendingPrograms;
pub use plan::Plan;

/// How long packets under way have to leave the network before flows that they may need are
/// removed: many times the time that a packet needs across a network, queues included.
pub const DRAIN: Duration = Duration::from_millis(200);

/// Installs flows on many switches, with confirmation.
pub trait FlowProgramming {
    /// Carries out a plan. For tasks.
    ///
    /// # Errors
    /// [`CommitError`]: the plan was refused and nothing was sent, or a change failed.
    fn commit(&self, plan: Plan) -> impl Future<Output = Result<Committed, CommitError>> + Send;
}

impl FlowProgramming for Network {
    async fn commit(&self, plan: Plan) -> Result<Committed, CommitError> {
        commit::carry_out(self, plan).await
    }
}
