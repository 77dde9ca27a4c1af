//! A network of no switches.

use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::{RequestBody, ToSwitch};

use crate::task::{NewTask, RunningTask, TaskHandle, TimerId};
use crate::{
    AppId, Dpid, Error, Network, NetworkState, Outcome, Program, Programmed, Requested, Result,
    Runtime,
};

/// A network of no switches, in which nothing happens: for tests of what needs a [`Network`] and does not use it. Nothing
/// can be sent anywhere, tasks are over as soon as they are started, and no time passes.
#[derive(Debug, Default)]
pub struct Nowhere(NetworkState);

impl Nowhere {
    /// A handle to one.
    #[must_use]
    pub fn network() -> Network {
        Network::new(Arc::new(Nowhere::default()))
    }

    /// A handle to one, of an app.
    #[must_use]
    pub fn network_of(name: &'static str, app: AppId) -> Network {
        Network::of_app(Arc::new(Nowhere::default()), name, app)
    }
}

impl Runtime for Nowhere {
    fn state(&self) -> &NetworkState {
        &self.0
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn send(&self, _: Option<AppId>, to: Dpid, _: &ToSwitch<'_>) -> Result<(), Error> {
        Err(Error::UnknownSwitch(to))
    }

    fn program(&self, program: Program) -> Programmed {
        let unknown = Outcome::NotSent(Error::UnknownSwitch(program.to));
        Programmed::ready(vec![unknown; program.changes.len()])
    }

    fn request(&self, to: Dpid, _: RequestBody<'_>) -> Requested {
        Requested::not_sent(Error::UnknownSwitch(to))
    }

    fn spawn(&self, _: NewTask) -> TaskHandle {
        TaskHandle::new(Arc::new(Over))
    }

    fn set_timer(&self, at: Duration, _: &std::task::Waker) -> TimerId {
        TimerId { at, number: 0 }
    }

    fn clear_timer(&self, _: TimerId) {}
}

/// A task that is over.
struct Over;

impl RunningTask for Over {
    fn is_over(&self) -> bool {
        true
    }

    fn cancel(self: Arc<Self>) {}
}
