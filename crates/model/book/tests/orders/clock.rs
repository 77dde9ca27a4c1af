//! The virtual clock, and the network of a controller that has nothing else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use bellrock_api::openflow::ToSwitch;
use bellrock_api::runtime::{EmptyNetwork, NetworkState, Program, Runtime};
use bellrock_api::runtime::{NewTask, TimerId};
use bellrock_api::{
    AppId, Dpid, Error, Network, ProgramFuture, RequestFuture, RoleOrder, RoleOrderFuture,
    TaskHandle,
};

/// The time, and the timers of all controllers. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<Mutex<Timers>>);

#[derive(Default)]
struct Timers {
    now: Duration,
    next: u64,
    waiting: BTreeMap<(Duration, u64), Waker>,
}

impl Clock {
    pub(crate) fn now(&self) -> Duration {
        self.0.lock().unwrap().now
    }

    /// Time of the next timer.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.0.lock().unwrap().waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Sets the time, and wakes those who wait for it.
    pub(crate) fn advance(&self, to: Duration) {
        let due = {
            let mut timers = self.0.lock().unwrap();
            timers.now = to;
            let later = timers.waiting.split_off(&(to, u64::MAX));
            std::mem::replace(&mut timers.waiting, later)
        };
        due.into_values().for_each(Waker::wake);
    }

    /// The network of a controller with this clock, whose tasks end as soon as they are started.
    pub(crate) fn network(&self) -> Network {
        self.network_with(Box::new(|task| EmptyNetwork::default().spawn(task)))
    }

    /// The network of a controller with this clock, which runs its tasks so.
    pub(crate) fn network_with(&self, spawn: Spawn) -> Network {
        let (clock, state) = (self.clone(), NetworkState::default());
        Network::new(Arc::new(Controller { clock, state, spawn }))
    }
}

/// Runs a task.
pub(crate) type Spawn = Box<dyn Fn(NewTask) -> TaskHandle + Send + Sync>;

struct Controller {
    clock: Clock,
    state: NetworkState,
    spawn: Spawn,
}

impl Runtime for Controller {
    fn state(&self) -> &NetworkState {
        &self.state
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn send(&self, from: Option<AppId>, to: Dpid, message: &ToSwitch<'_>) -> Result<(), Error> {
        EmptyNetwork::default().send(from, to, message)
    }

    fn resume(&self, app: AppId, dpid: Dpid) -> Result<(), Error> {
        EmptyNetwork::default().resume(app, dpid)
    }

    fn program(&self, program: Program) -> ProgramFuture {
        EmptyNetwork::default().program(program)
    }

    fn request(&self, to: Dpid, request: &ToSwitch<'_>) -> RequestFuture {
        EmptyNetwork::default().request(to, request)
    }

    fn set_role(&self, to: Dpid, order: RoleOrder) -> RoleOrderFuture {
        EmptyNetwork::default().set_role(to, order)
    }

    fn spawn(&self, task: NewTask) -> TaskHandle {
        (self.spawn)(task)
    }

    fn set_timer(&self, at: Duration, waker: &Waker) -> TimerId {
        let mut timers = self.clock.0.lock().unwrap();
        timers.next += 1;
        let id = TimerId { at, number: timers.next };
        timers.waiting.insert((at, id.number), waker.clone());
        id
    }

    fn clear_timer(&self, timer: TimerId) {
        self.clock.0.lock().unwrap().waiting.remove(&(timer.at, timer.number));
    }
}
