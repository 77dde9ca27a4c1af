//! Waits until the switches have the entries of an intent.

use std::time::Duration;

use bellrock_api::{Dpid, Network};

use super::{Desired, DesiredState, IntentState, MissingReason};

/// The progress of an intent, from [`Desired::commit`].
///
/// It reports the current state of the intent, even if the intent was set again since. While a
/// `Commit` exists, [`DesiredState::intents`] includes its intent, and the task looks at it on
/// every event. An app with thousands of intents should keep a `Commit` only while it waits.
pub struct Commit {
    desired: Desired,
    intent: u32,
    /// Number of writes that a state must include to be about this commit.
    written: u64,
}

/// Why an intent is not in the switches. It stays wanted: confirmed entries stay, and the rest is
/// tried again until the intent is set anew or withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCommitted {
    /// A switch cannot have all entries.
    #[error("switch {0}: {1}")]
    Refused(Dpid, MissingReason),
    /// A switch is not connected: its entries are unknown.
    #[error("switch {0} is not connected")]
    Away(Dpid),
    /// The switches took too long.
    #[error("the switches have not confirmed it within {} s", .0.as_secs_f64())]
    Unconfirmed(Duration),
}

impl Commit {
    pub(super) fn new(desired: Desired, intent: u32) -> Self {
        let written = **desired.0.written.watch().load();
        Commit { desired, intent, written }
    }

    /// Returns how far the switches are.
    #[must_use]
    pub fn state(&self) -> IntentState {
        self.state_in(&self.desired.state().load())
    }

    /// Returns how far the switches were in this state.
    #[must_use]
    pub fn state_in(&self, state: &DesiredState) -> IntentState {
        let told = state.intents.get(&self.intent).filter(|_| state.written >= self.written);
        told.copied().unwrap_or(IntentState::Due)
    }

    /// Waits until the switches have confirmed all entries: for `within`, and longer if changes of
    /// other intents are sent first ([`bellrock_api::time_for_changes`]).
    ///
    /// # Errors
    /// [`NotCommitted`].
    pub async fn confirmed(&self, network: &Network, within: Duration) -> Result<(), NotCommitted> {
        self.reached(network, within, |state| {
            matches!(state, IntentState::Settled | IntentState::Leaving | IntentState::Left(_))
        })
        .await
    }

    /// Waits until the switches also have no earlier flows of the intent. (Groups and meters go
    /// later.)
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
