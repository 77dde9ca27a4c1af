//! Waits until the switches have the entries of an intent.

use std::time::Duration;

use bellrock_api::{Dpid, Latencies, Network};

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
    writes: u64,
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
        let writes = **desired.0.writes.watch().load();
        Commit { desired, intent, writes }
    }

    /// Returns how far the switches are.
    #[must_use]
    pub fn state(&self) -> IntentState {
        self.state_in(&self.desired.state().load())
    }

    /// Returns how far the switches were in this state.
    #[must_use]
    pub fn state_in(&self, state: &DesiredState) -> IntentState {
        let intent_state = state.intents.get(&self.intent).filter(|_| state.writes >= self.writes);
        intent_state.copied().unwrap_or(IntentState::Due)
    }

    /// Waits until the switches have confirmed all entries: for `within`, and longer if changes of
    /// other intents are sent first ([`bellrock_api::time_for_changes`]).
    ///
    /// # Errors
    /// [`NotCommitted`].
    pub async fn confirmed(&self, network: &Network, within: Duration) -> Result<(), NotCommitted> {
        self.wait_for(network, within, |state| {
            matches!(
                state,
                IntentState::Settled
                    | IntentState::Leaving
                    | IntentState::Left(_)
                    | IntentState::Restored(_)
            )
        })
        .await
    }

    /// Waits until the switches also have no earlier flows of the intent. (Groups and meters go
    /// later.)
    ///
    /// # Errors
    /// [`NotCommitted`].
    pub async fn settled(&self, network: &Network, within: Duration) -> Result<(), NotCommitted> {
        let is_done =
            |state: IntentState| matches!(state, IntentState::Settled | IntentState::Restored(_));
        self.wait_for(network, within, is_done).await
    }

    async fn wait_for(
        &self,
        network: &Network,
        within: Duration,
        is_done: impl Fn(IntentState) -> bool,
    ) -> Result<(), NotCommitted> {
        let within = within + self.desired.state().load().queue_time();
        let result = network.timeout(within, async {
            let mut all_states = self.desired.state().load();
            loop {
                match self.state_in(&all_states) {
                    state if is_done(state) => return Ok(()),
                    IntentState::Refused(dpid, why) => {
                        return Err(NotCommitted::Refused(dpid, why));
                    }
                    IntentState::Away(dpid) | IntentState::Left(dpid) => {
                        return Err(NotCommitted::Away(dpid));
                    }
                    _ => all_states = self.desired.state().changed(all_states.version()).await,
                }
            }
        });
        let began = network.now();
        let result = result.await.unwrap_or(Err(NotCommitted::Unconfirmed(within)));
        if result.is_ok() {
            let time = network.now().saturating_sub(began);
            network.extension::<Latencies>().commit.record(time);
        }
        result
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        self.desired.book().unfollow(self.intent);
    }
}
