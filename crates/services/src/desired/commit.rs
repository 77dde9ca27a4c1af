//! Waiting until the switches have what was said to be wanted.

use std::time::Duration;

use bellrock_api::{Dpid, Network};

use super::{Desired, DesiredState, IntentState, WhyNot};

/// An intent on its way into the switches, by [`Desired::commit`]: to be waited for, or to be looked at now and then.
///
/// It tells of the intent as it is, also when that was set again since. [`DesiredState::intents`] tells of
/// an intent for as long as there is one of these; each makes the task that keeps the switches look at one more intent
/// whenever something happens, so who has thousands of intents keeps it for as long as it waits.
pub struct Commit {
    desired: Desired,
    intent: u32,
    /// A state that includes so many changes includes this one.
    written: u64,
}

/// Why an intent is not in the switches. It stays wanted: what has been confirmed is there, and the rest is tried
/// again, until the intent is set anew or withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCommitted {
    /// A switch cannot be given all that is wanted in it.
    #[error("switch {0}: {1}")]
    Refused(Dpid, WhyNot),
    /// A switch is not connected: what it has is not known.
    #[error("switch {0} is not connected")]
    Away(Dpid),
    /// The switches took too long.
    #[error("the switches have not confirmed it within {} s", .0.as_secs_f64())]
    Unconfirmed(Duration),
}

impl Commit {
    pub(super) fn new(desired: Desired, intent: u32) -> Self {
        let written = **desired.0.written.load();
        Commit { desired, intent, written }
    }

    /// How far the switches are.
    #[must_use]
    pub fn state(&self) -> IntentState {
        self.state_in(&self.desired.state().load())
    }

    /// How far they were.
    #[must_use]
    pub fn state_in(&self, state: &DesiredState) -> IntentState {
        let told = state.intents.get(&self.intent).filter(|_| state.written >= self.written);
        told.copied().unwrap_or(IntentState::Due)
    }

    /// Waits until the switches have confirmed all that is wanted. They have this time, and more for what they lack of
    /// other intents, which may be in front of it ([`bellrock_api::time_for_changes`]).
    ///
    /// # Errors
    /// [`NotCommitted`].
    pub async fn confirmed(&self, network: &Network, within: Duration) -> Result<(), NotCommitted> {
        self.reached(network, within, |state| {
            matches!(state, IntentState::Settled | IntentState::Leaving | IntentState::Left(_))
        })
        .await
    }

    /// Waits until they also have nothing left of what was wanted before. (Groups and meters go when no flow uses them,
    /// behind that.)
    ///
    /// # Errors
    /// [`NotCommitted`].
    pub async fn settled(&self, network: &Network, within: Duration) -> Result<(), NotCommitted> {
        self.reached(network, within, |state| state == IntentState::Settled).await
    }

    async fn reached(
        &self,
        network: &Network,
        within: Duration,
        is_reached: impl Fn(IntentState) -> bool,
    ) -> Result<(), NotCommitted> {
        let within = within + self.desired.state().load().time_for_lacking();
        let reached = network.timeout(within, async {
            let mut all = self.desired.state().load();
            loop {
                match self.state_in(&all) {
                    state if is_reached(state) => return Ok(()),
                    IntentState::Refused(dpid, why) => {
                        return Err(NotCommitted::Refused(dpid, why));
                    }
                    IntentState::Away(dpid) | IntentState::Left(dpid) => {
                        return Err(NotCommitted::Away(dpid));
                    }
                    _ => all = self.desired.state().changed(all.version()).await,
                }
            }
        });
        reached.await.unwrap_or(Err(NotCommitted::Unconfirmed(within)))
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        self.desired.book().unfollow(self.intent);
    }
}
