//! A network without switches.

use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::ToSwitch;

use crate::runtime::{NetworkState, Program, Runtime};
use crate::task::{NewTask, RunningTask, TaskHandle, TimerId};
use crate::{
    AppId, ChangeOutcome, Dpid, Error, Network, ProgramFuture, RequestFuture, Result, RoleOrder,
    RoleOrderFuture,
};

/// A network without switches and events, for tests of code that needs a [`Network`] but does not
/// use it. Nothing can be sent, tasks end as soon as they are started, and no time passes.
#[derive(Debug, Default)]
pub struct EmptyNetwork(NetworkState);

impl EmptyNetwork {
    /// Makes a handle to a new one.
    #[must_use]
    pub fn network() -> Network {
        Network::new(Arc::new(EmptyNetwork::default()))
    }

    /// Makes a handle of an app to a new one.
    #[must_use]
    pub fn network_of(name: &'static str, app: AppId) -> Network {
        Network::of_app(Arc::new(EmptyNetwork::default()), name, app)
    }
}

impl Runtime for EmptyNetwork {
    fn state(&self) -> &NetworkState {
        &self.0
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn send(&self, _: Option<AppId>, to: Dpid, _: &ToSwitch<'_>) -> Result<(), Error> {
        Err(Error::UnknownSwitch(to))
    }

    fn resume(&self, _: AppId, dpid: Dpid) -> Result<(), Error> {
        Err(Error::UnknownSwitch(dpid))
    }

    fn program(&self, program: Program) -> ProgramFuture {
        let unknown = ChangeOutcome::NotSent(Error::UnknownSwitch(program.dpid));
        ProgramFuture::ready(vec![unknown; program.changes.len()])
    }

    fn request(&self, to: Dpid, _: &ToSwitch<'_>) -> RequestFuture {
        RequestFuture::not_sent(Error::UnknownSwitch(to))
    }

    fn set_role(&self, to: Dpid, _: RoleOrder) -> RoleOrderFuture {
        RoleOrderFuture::not_sent(Error::UnknownSwitch(to))
    }

    fn spawn(&self, _: NewTask) -> TaskHandle {
        TaskHandle::new(Arc::new(EndedTask))
    }

    fn set_timer(&self, at: Duration, _: &std::task::Waker) -> TimerId {
        TimerId { at, number: 0 }
    }

    fn clear_timer(&self, _: TimerId) {}
}

/// A task that has ended.
struct EndedTask;

impl RunningTask for EndedTask {
    fn is_over(&self) -> bool {
        true
    }

    fn cancel(self: Arc<Self>) {}
}
