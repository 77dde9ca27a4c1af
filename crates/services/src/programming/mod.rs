//! Flows installed on many switches, confirmed, in an order in which no packet loops or falls.
//!
//! A [`Plan`] says what is to change where, and how the changes depend on each other.
//! [`FlowProgramming::commit`] carries it out: switch by switch each change is confirmed by a barrier
//! ([`bellrock_api::Network::program`]), and what became of each is told exactly.
//!
//! # Order
//! - [`Plan::tree`]: flows that lead to one destination, each with its distance from it. Those nearest to
//!   the destination are changed and confirmed first. Whatever is changed leads, by what was
//!   changed before it, to the destination; whatever is not yet changed leads where it led before, or into
//!   what is changed. So at no moment is there a loop or a hole that was not there before. What the
//!   new tree needs no more is removed last, after packets that are on their way have had time to
//!   leave ([`DRAIN`]).
//! - [`Plan::two_phase`]: any other flows. Those within the network match a version tag, a VLAN id that no
//!   packet carries yet; then the flows at the edges are changed to put packets under the
//!   new tag. Each packet is dealt with by the old flows or by the new ones, and never by some of
//!   both.
//! - [`Plan::independent`]: changes of which no packet meets two, such as drops.
//! - [`Plan::new`]: the same for changes of one switch. One of several switches is refused: which order is
//!   right, its author knows.
//!
//! # Failure
//! If a switch refuses a change, the plan is taken back, in the opposite order, so that all that was said
//! of loops and holes holds on the way back; packets have [`DRAIN`] to leave before each flow that goes away. If it is not known what became of a change, because the
//! switch was lost or does not answer, nothing is taken back and nothing more is sent: whether the
//! lost switch has the change or not, what was confirmed until then has neither loop nor hole, and taking it
//! back could make one. Either way [`CommitError::Failed`] tells of each change what became of it.

mod commit;
mod plan;
mod two_phase;
mod under_way;

use std::future::Future;
use std::time::Duration;

use bellrock_api::Network;

pub use commit::{CommitError, Committed, Fate, Report};
pub use plan::Plan;
pub use under_way::UnderWay;

/// How long packets that are on their way have to leave the network before the flows that they may still
/// need are removed: many times what a packet needs across a network, queues included.
pub const DRAIN: Duration = Duration::from_millis(200);

/// Installs flows on many switches, confirmed.
pub trait FlowProgramming {
    /// Carries out a plan, for tasks.
    ///
    /// # Errors
    /// [`CommitError`]: a plan that is refused as it is, of which nothing was sent; or one that failed, and
    /// what became of each of its changes.
    fn commit(&self, plan: Plan) -> impl Future<Output = Result<Committed, CommitError>> + Send;
}

impl FlowProgramming for Network {
    async fn commit(&self, plan: Plan) -> Result<Committed, CommitError> {
        commit::carry_out(self, plan).await
    }
}
