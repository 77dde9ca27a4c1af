//! The network as every app sees it.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use bellrock_openflow::{FlowMod, FlowStats, RequestBody, ToSwitch, Version};

use crate::task::{NewTask, Sleep, TaskHandle, TaskWork, TimerId};
use crate::transaction::{transaction, try_transaction};
use crate::{
    Abort, AppId, CONFIRM_WITHIN, Change, Cookie, Dpid, Error, Events, FlowTemplate, Hosts,
    Interrupt, Outcome, Program, Programmed, Requested, Result, Snapshot, SwitchInfo, Switches,
    Topology, Transaction, Watch,
};

/// What a runtime offers behind a [`Network`]: a controller, the emulator's lab, a test.
pub trait Runtime: Send + Sync + 'static {
    /// What is published.
    fn state(&self) -> &NetworkState;

    /// The time since the controller started.
    fn now(&self) -> Duration;

    /// Sends a message to a switch, whichever worker owns it, for an app or for the controller
    /// itself.
    ///
    /// # Errors
    /// Those of [`Network::send`].
    fn send(&self, from: Option<AppId>, to: Dpid, message: &ToSwitch<'_>) -> Result<(), Error>;

    /// Sends changes to a switch, and a barrier behind them.
    fn program(&self, program: Program) -> Programmed;

    /// Sends a request to a switch.
    fn request(&self, to: Dpid, body: RequestBody<'_>) -> Requested;

    /// Runs a task.
    fn spawn(&self, task: NewTask) -> TaskHandle;

    /// Has somebody woken at a time, once.
    fn set_timer(&self, at: Duration, waker: &Waker) -> TimerId;

    /// Takes a timer back, if it has not fired yet.
    fn clear_timer(&self, timer: TimerId);
}

/// What is published of the network. A runtime has one of it.
#[derive(Debug, Default)]
pub struct NetworkState {
    /// The switches that are up. The runtime publishes them.
    pub switches: Watch<Switches>,
    /// Switches and links. Discovery publishes it.
    pub topology: Watch<Topology>,
    /// Hosts. Host tracking publishes them.
    pub hosts: Watch<Hosts>,
    /// What happens.
    pub events: Events,
    /// What services share.
    pub extensions: Extensions,
    /// The apps of the chain, in order, and their cookies.
    pub apps: Vec<(&'static str, Cookie)>,
    /// Of a run that repeats.
    pub seed: Option<u64>,
}

/// A handle to the network, of one app. Cheap to clone, good in any thread.
///
/// What is published ([`switches`](Network::switches), [`topology`](Network::topology),
/// [`hosts`](Network::hosts)) is read without a lock. Where that is done for every packet, a
/// [`crate::Reader`] is best, kept in the handler.
#[derive(Clone)]
pub struct Network {
    runtime: Arc<dyn Runtime>,
    /// Whose it is: its name, and its place in the chain. `None`: the controller's own.
    app: Option<(&'static str, AppId)>,
}

impl Network {
    /// For runtimes: the controller's own handle.
    #[must_use]
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Network { runtime, app: None }
    }

    /// For runtimes: the handle of the app with this name.
    #[must_use]
    pub fn of_app(runtime: Arc<dyn Runtime>, name: &'static str, id: AppId) -> Self {
        Network { runtime, app: Some((name, id)) }
    }

    /// The app that the handle was given to; `controller` for the controller's own.
    #[must_use]
    pub fn app(&self) -> &'static str {
        self.app.map_or("controller", |(name, _)| name)
    }

    /// The cookies of the app's flows.
    #[must_use]
    pub fn cookie(&self) -> Cookie {
        self.app.map_or(Cookie::CONTROLLER, |(_, id)| id.cookie())
    }

    /// The app whose cookie this is; `controller` for the controller itself. `None`: a flow with it is of
    /// somebody else.
    #[must_use]
    pub fn app_of(&self, cookie: u64) -> Option<&'static str> {
        if Cookie::CONTROLLER.owns(cookie) {
            return Some("controller");
        }
        let mut apps = self.runtime.state().apps.iter();
        apps.find(|(_, app)| app.owns(cookie)).map(|(name, _)| *name)
    }

    /// The app that a flow is of which a switch reports; as [`Network::app_of`], and `None` for a flow that
    /// no app can have installed ([`Cookie::owns_flow`]).
    #[must_use]
    pub fn app_of_flow(&self, flow: &FlowStats<'_>) -> Option<&'static str> {
        self.app_of(flow.cookie).filter(|_| flow.is_well_formed())
    }

    /// The apps of the chain, in order.
    pub fn apps(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.runtime.state().apps.iter().map(|(name, _)| *name)
    }

    /// The app's place in the chain; `None` for the controller itself.
    #[must_use]
    pub fn app_id(&self) -> Option<AppId> {
        self.app.map(|(_, id)| id)
    }

    /// Prepares flows of the app for all switches of a version, as [`Switch::template`](crate::Switch::template)
    /// does for one.
    ///
    /// # Errors
    /// As there; [`Error::NotAnApp`] for the controller itself.
    pub fn template(&self, version: Version, flow: &FlowMod<'_>) -> Result<FlowTemplate, Error> {
        self.app_id().ok_or(Error::NotAnApp)?.template(version, flow)
    }

    /// The time since the controller started.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.runtime.now()
    }

    /// The switches that are up.
    #[must_use]
    pub fn switches(&self) -> Snapshot<Switches> {
        self.watch_switches().load()
    }

    /// The same, to wait for changes of them.
    #[must_use]
    pub fn watch_switches(&self) -> &Watch<Switches> {
        &self.runtime.state().switches
    }

    /// A switch, if it is up.
    #[must_use]
    pub fn switch(&self, dpid: Dpid) -> Option<Arc<SwitchInfo>> {
        self.switches().get(dpid).cloned()
    }

    /// The switches and links that discovery has found. Empty where nobody runs discovery.
    #[must_use]
    pub fn topology(&self) -> &Watch<Topology> {
        &self.runtime.state().topology
    }

    /// The hosts that were found. Empty where nobody tracks hosts.
    #[must_use]
    pub fn hosts(&self) -> &Watch<Hosts> {
        &self.runtime.state().hosts
    }

    /// What happens in the network.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.runtime.state().events
    }

    /// What all apps of the controller share by this type. There is one of each, made when it is first
    /// asked for: where a service keeps what it offers.
    #[must_use]
    pub fn extension<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.runtime.state().extensions.get()
    }

    /// Sends a message to any switch. Messages of one sender to one switch, a handler or a task, arrive in
    /// the order in which they were sent, also if the switch is handed over to another worker meanwhile,
    /// and are never mixed with others'. What a handler writes by [`crate::Switch`] to its own switch goes
    /// out with its answers, and does not wait for what was sent by this.
    ///
    /// A flow_mod gets the app's cookie and a priority of its band, as by [`crate::Switch::install`].
    /// What the switch answers, nobody hears.
    ///
    /// # Errors
    /// [`crate::Error::UnknownSwitch`], [`crate::Error::Full`] if too much waits for that switch already, or
    /// what its version cannot say.
    pub fn send(&self, dpid: Dpid, message: &ToSwitch<'_>) -> Result<(), Error> {
        self.runtime.send(self.app_id(), dpid, message)
    }

    /// Changes a switch, and waits until it has confirmed that: the messages are followed by a barrier, and
    /// an OpenFlow error comes back as the outcome of the change that caused it. They are sent at once, in
    /// order; what the returned future comes to is one [`crate::Outcome`] for each. If one of them cannot be
    /// said in the switch's version, none is sent.
    ///
    /// The switch has [`CONFIRM_WITHIN`] to confirm, and a second more for each [`crate::CHANGES_PER_SECOND`] changes that it
    /// has to carry out until then, of whomever. What it has not confirmed by then, or before its
    /// connection ends, may be there or not: [`crate::Outcome::Unknown`].
    pub fn program(&self, dpid: Dpid, changes: Vec<Change>) -> Programmed {
        self.program_within(dpid, changes, CONFIRM_WITHIN)
    }

    /// The same with another time in which the switch has to confirm. It is looked at once a second.
    pub fn program_within(&self, dpid: Dpid, changes: Vec<Change>, within: Duration) -> Programmed {
        match self.app_id() {
            Some(app) => self.runtime.program(Program { app, to: dpid, changes, within }),
            None => Programmed::ready(vec![Outcome::NotSent(Error::NotAnApp); changes.len()]),
        }
    }

    /// Asks a switch for statistics or descriptions, for tasks: handlers have
    /// [`crate::Switch::request`]. Flows in the reply have the priorities that they have in the switch
    /// ([`crate::PriorityBand::lower`]).
    pub fn request(&self, dpid: Dpid, body: RequestBody<'_>) -> Requested {
        self.runtime.request(dpid, body)
    }

    /// Runs a task beside the handlers: a future that can wait for time, for what is published, and for
    /// others, and that may compute for long. Tasks have a thread of their own, in which they take turns
    /// at each `await`.
    ///
    /// A panic ends the task, is logged and counted, and harms nobody else: see
    /// [`supervise`](Self::supervise) for one that goes on then. The task ends at the latest with the controller: it
    /// is dropped where it waits.
    ///
    /// ```
    /// # use bellrock_api::Network;
    /// use std::time::Duration;
    ///
    /// fn start(network: &Network) {
    ///     let seen = network.clone();
    ///     network.spawn("count switches", async move {
    ///         loop {
    ///             seen.sleep(Duration::from_secs(60)).await;
    ///             println!("{} switches", seen.switches().len());
    ///         }
    ///     });
    /// }
    /// ```
    pub fn spawn(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> TaskHandle {
        let work = TaskWork::Once(Box::pin(future));
        self.runtime.spawn(NewTask { app: self.app(), name: name.into(), work })
    }

    /// The same for a task that is started again when it has panicked: `make` makes it anew. That is right for
    /// one that finds out all that it needs when it starts, from what is published or by asking switches. One that
    /// would miss what it was told before is better left to end, where everybody sees it.
    ///
    /// It is started again after a tenth of a second, and each time after twice as long. When it has panicked
    /// ten times within a minute, it is over. Each panic is logged and counted.
    ///
    /// ```
    /// # use bellrock_api::Network;
    /// fn start(network: &Network) {
    ///     let hosts = network.hosts().clone();
    ///     network.supervise("print hosts", move || {
    ///         let hosts = hosts.clone();
    ///         async move {
    ///             let mut seen = hosts.load();
    ///             loop {
    ///                 println!("{} hosts", seen.len());
    ///                 seen = hosts.changed(seen.version()).await;
    ///             }
    ///         }
    ///     });
    /// }
    /// ```
    pub fn supervise<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: impl Into<Cow<'static, str>>,
        mut make: impl FnMut() -> F + Send + 'static,
    ) -> TaskHandle {
        let work = TaskWork::Again(Box::new(move || Box::pin(make())));
        self.runtime.spawn(NewTask { app: self.app(), name: name.into(), work })
    }

    /// Waits for so long.
    pub fn sleep(&self, time: Duration) -> Sleep {
        self.sleep_until(self.now().saturating_add(time))
    }

    /// Waits until this time of the controller's clock ([`Network::now`]).
    pub fn sleep_until(&self, until: Duration) -> Sleep {
        Sleep::new(Arc::clone(&self.runtime), until)
    }

    /// What a future comes to, or `None` if it has not come to it in time. It is dropped then.
    pub async fn timeout<F: Future>(&self, time: Duration, future: F) -> Option<F::Output> {
        let (mut future, mut sleep) = (pin!(future), pin!(self.sleep(time)));
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
        })
        .await
    }

    /// Changes variables as one, for tasks: [`Transaction::retry`] suspends the task until a variable that was
    /// read has changed. See [`crate::TVar`] and [`crate::atomically`].
    ///
    /// A retry that read nothing waits for ever.
    ///
    /// # Panics
    /// Inside another transaction.
    pub async fn transaction<T>(
        &self,
        body: impl Fn(&mut Transaction<'_>) -> Result<T, Interrupt>,
    ) -> T {
        transaction(body).await
    }

    /// The same for one that may fail by an error of the caller's.
    ///
    /// # Errors
    /// What it was [aborted](Transaction::abort) with. Nothing has changed then.
    ///
    /// # Panics
    /// Inside another transaction.
    pub async fn try_transaction<T, E>(
        &self,
        body: impl Fn(&mut Transaction<'_>) -> Result<T, Abort<E>>,
    ) -> Result<T, E> {
        try_transaction(body).await
    }

    /// The seed of a run that repeats, such as one of the emulator's lab: what an app draws by
    /// lot, it draws from this then. `None` in a controller, where lots cannot be foretold.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.runtime.state().seed
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network of {} ({} switches)", self.app(), self.switches().len())
    }
}

/// One value of each type: see [`Network::extension`].
#[derive(Default)]
pub struct Extensions(Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Extensions {
    fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        // A panic in `T::default()` leaves the map as it was.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = all.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        match Arc::clone(value).downcast() {
            Ok(value) => value,
            Err(_) => unreachable!("it stands under its own type"),
        }
    }
}

/// Each goes by its own code. A panic in it ends nothing else.
impl Drop for Extensions {
    fn drop(&mut self) {
        let all = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for value in std::mem::take(all).into_values() {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
                std::mem::forget(panic);
            }
        }
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Extensions({})", all.len())
    }
}
