//! The network, for apps.

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

use bellrock_openflow::{FlowMod, FlowStats, MultipartRequest, RequestBody, ToSwitch, Version};

use crate::runtime::{Changes, Program, RawMessages, RemoteSlot, RoleControl};
use crate::task::{NewTask, Sleep, TaskHandle, TaskWork, TimerId};
use crate::term::Term;
use crate::{
    AppEvent, AppGuard, AppId, AsFlowMod, CONFIRM_WITHIN, Change, ChangeOutcome, Cookie, Dpid,
    Error, Event, Events, FlowTemplate, Hosts, Needs, ProgramFuture, RequestFuture, Result,
    RoleOrder, RoleOrderFuture, Snapshot, SwitchInfo, Switches, Topology, Watch,
};

/// The implementation behind a [`Network`]: a controller, the emulator's lab, or a test.
pub trait Runtime: Send + Sync + 'static {
    /// The published state.
    fn state(&self) -> &NetworkState;

    /// The time since the controller started.
    fn now(&self) -> Duration;

    /// Sends a message to a switch, of any worker, for an app or for the controller itself.
    ///
    /// # Errors
    /// Those of [`Network::send`].
    fn send(&self, from: Option<AppId>, to: Dpid, message: &ToSwitch<'_>) -> Result<(), Error>;

    /// Calls [`Handler::resume`](crate::Handler::resume) of an app's handler soon.
    ///
    /// # Errors
    /// Those of [`Network::resume`].
    fn resume(&self, app: AppId, dpid: Dpid) -> Result<(), Error>;

    /// Sends changes to a switch, followed by a barrier.
    fn program(&self, program: Program) -> ProgramFuture;

    /// Sends a request to a switch. A message that expects no reply is not sent.
    fn request(&self, to: Dpid, request: &ToSwitch<'_>) -> RequestFuture;

    /// Requests a role at a switch that is up or stands by.
    fn set_role(&self, to: Dpid, order: RoleOrder) -> RoleOrderFuture;

    /// Runs a task.
    fn spawn(&self, task: NewTask) -> TaskHandle;

    /// Wakes `waker` once, at `at`.
    fn set_timer(&self, at: Duration, waker: &Waker) -> TimerId;

    /// Cancels a timer that has not fired yet.
    fn clear_timer(&self, timer: TimerId);
}

/// What is published of the network, for its readers. Each runtime has one.
#[derive(Debug, Default)]
pub struct NetworkState {
    /// The switches that are up. The runtime publishes them.
    pub switches: Watch<Switches>,
    /// The switches that stand by. The runtime publishes them.
    pub standbys: Watch<Switches>,
    /// The switches that are connected.
    pub connected: Watch<Switches>,
    /// Switches and links. Discovery publishes them.
    pub topology: Watch<Topology>,
    /// Hosts. Host tracking publishes them.
    pub hosts: Watch<Hosts>,
    /// Events.
    pub events: Events,
    /// Values that services share.
    pub extensions: Extensions,
    /// The apps of the chain, in order, and their cookies.
    pub apps: Vec<(&'static str, Cookie)>,
    /// Random seed of a repeatable run.
    pub seed: Option<u64>,
    /// What carries messages to switches of other controllers.
    pub remote: RemoteSlot,
}

/// An app's handle to the network. Cheap to clone, usable in any thread.
///
/// [`switches`](Network::switches), [`topology`](Network::topology) and [`hosts`](Network::hosts)
/// are read without a lock. To read them for every packet, keep a [`crate::WatchReader`] in the
/// handler.
#[derive(Clone)]
pub struct Network {
    runtime: Arc<dyn Runtime>,
    /// Name and chain place of its app. `None`: the controller's own handle.
    app: Option<(&'static str, AppId)>,
    /// What the app may do. `None`: everything.
    guard: Option<Arc<AppGuard>>,
    /// The term with which its tasks end. `None`: they end with the controller.
    term: Option<Term>,
}

impl Network {
    /// For runtimes: the controller's own handle.
    #[must_use]
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Network { runtime, app: None, guard: None, term: None }
    }

    /// For runtimes: the handle of the app with this name.
    #[must_use]
    pub fn of_app(runtime: Arc<dyn Runtime>, name: &'static str, id: AppId) -> Self {
        Network { runtime, app: Some((name, id)), guard: None, term: None }
    }

    /// For runtimes: the same handle, kept to what its app may do.
    #[must_use]
    pub fn with_guard(self, guard: Option<Arc<AppGuard>>) -> Self {
        Network { guard, ..self }
    }

    /// For runtimes: the same handle, whose tasks end with this term. `None`: with the controller.
    #[must_use]
    pub fn with_term(self, term: Option<Term>) -> Self {
        Network { term, ..self }
    }

    /// The term in which this node leads: for the [`Network`] that
    /// [`App::start`](crate::App::start) of an app of [`Scope::Once`](crate::Scope::Once) gets in a
    /// cluster. `None`: the controller is alone, or the app is of another scope.
    #[must_use]
    pub fn term(&self) -> Option<&Term> {
        self.term.as_ref()
    }

    /// Name of the handle's app; `controller` for the controller's own.
    #[must_use]
    pub fn app(&self) -> &'static str {
        self.app.map_or("controller", |(name, _)| name)
    }

    /// The implementation behind it.
    pub(crate) fn runtime(&self) -> &dyn Runtime {
        &*self.runtime
    }

    /// Cookies of the app's flows.
    #[must_use]
    pub fn cookie(&self) -> Cookie {
        self.app.map_or(Cookie::CONTROLLER, |(_, id)| id.cookie())
    }

    /// Name of the app that owns this cookie; `controller` for the controller itself. `None`: no
    /// app of this controller owns it.
    #[must_use]
    pub fn app_of(&self, cookie: u64) -> Option<&'static str> {
        if Cookie::CONTROLLER.owns(cookie) {
            return Some("controller");
        }
        let mut apps = self.runtime.state().apps.iter();
        apps.find(|(_, app)| app.owns(cookie) || app.of_sight().owns(cookie)).map(|(name, _)| *name)
    }

    /// Name of the app that owns a reported flow, as in [`Network::app_of`]. Also `None` for a flow
    /// that no app can have installed ([`Cookie::owns_flow`]).
    #[must_use]
    pub fn app_of_flow(&self, flow: &FlowStats<'_>) -> Option<&'static str> {
        self.app_of(flow.cookie).filter(|_| flow.is_well_formed())
    }

    /// Names of the apps of the chain, in order.
    pub fn apps(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.runtime.state().apps.iter().map(|(name, _)| *name)
    }

    /// Id of the app, with its place in the chain; `None` for the controller itself.
    #[must_use]
    pub fn app_id(&self) -> Option<AppId> {
        self.app.map(|(_, id)| id)
    }

    /// Prepares flows of the app for all switches of a version.
    /// [`Switch::template`](crate::Switch::template) does it for one switch.
    ///
    /// # Errors
    /// Those of `Switch::template`; [`Error::NotAnApp`] for the controller itself.
    pub fn template(&self, version: Version, flow: &FlowMod<'_>) -> Result<FlowTemplate, Error> {
        self.app_id().ok_or(Error::NotAnApp)?.template(version, flow)
    }

    /// Time since the controller started.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.runtime.now()
    }

    /// The switches that are up.
    #[must_use]
    pub fn switches(&self) -> Snapshot<Switches> {
        self.watch_switches().load()
    }

    /// The same as a [`Watch`], to wait for changes.
    #[must_use]
    pub fn watch_switches(&self) -> &Watch<Switches> {
        &self.runtime.state().switches
    }

    /// A switch, if it is up.
    #[must_use]
    pub fn switch(&self, dpid: Dpid) -> Option<Arc<SwitchInfo>> {
        self.switches().get(dpid).cloned()
    }

    /// Switches and links that discovery has found.
    ///
    /// # Panics
    /// In an app whose [`App::needs`](crate::App::needs) are empty: discovery may not run.
    #[must_use]
    #[track_caller]
    pub fn topology(&self) -> &Watch<Topology> {
        // Each service builds on discovery.
        if self.guard.as_ref().is_some_and(|guard| guard.needs().is_empty()) {
            self.check_needs(Needs::TOPOLOGY);
        }
        &self.runtime.state().topology
    }

    /// Hosts that host tracking has found.
    ///
    /// # Panics
    /// In an app without [`Needs::HOSTS`]: host tracking may not run.
    #[must_use]
    #[track_caller]
    pub fn hosts(&self) -> &Watch<Hosts> {
        self.check_needs(Needs::HOSTS);
        &self.runtime.state().hosts
    }

    /// For services: checks that the app may read what they publish. The controller itself may.
    ///
    /// # Panics
    /// If [`App::needs`](crate::App::needs) of the app lacks one of these services. What it reads
    /// would be empty for ever, unless another app happens to need the same.
    #[track_caller]
    #[expect(clippy::panic, reason = "a mistake in the app's code, which it cannot handle")]
    pub fn check_needs(&self, needed: Needs) {
        let Some(guard) = &self.guard else { return };
        let missing = needed - guard.needs();
        if !missing.is_empty() {
            let names = |needs: Needs, before: &str, between: &str| {
                let names: Vec<_> =
                    needs.iter_names().map(|(it, _)| format!("{before}{it}")).collect();
                names.join(between)
            };
            panic!(
                "the app {:?} reads {}, and does not need it: let its `App::needs` return `{}`",
                self.app(),
                names(missing, "", ", ").to_lowercase(),
                names(guard.needs() | needed, "Needs::", " | "),
            );
        }
    }

    /// Events of the network.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.runtime.state().events
    }

    /// Publishes an event of the app's own. Operators see it in the log and by `bellrock events`,
    /// with the name of the app. An alarm that lasts
    /// ([`AppEvent::alarming_until_ended`]) is also listed by `bellrock alarms` until it ends.
    ///
    /// ```
    /// # use bellrock_api::{AppEvent, Network};
    /// fn report(network: &Network, host: &str) {
    ///     network.publish(AppEvent::new("scan_seen", &format!("{host} scans ports")).alarming());
    /// }
    /// ```
    pub fn publish(&self, event: AppEvent) {
        self.events().record(self.now(), Event::App { app: self.app(), event });
    }

    /// Whether an alarm of the app is open that `event` would end.
    #[must_use]
    pub fn would_end(&self, event: &AppEvent) -> bool {
        self.events().would_end(&Event::App { app: self.app(), event: event.clone() })
    }

    /// Returns the value of this type that all apps of the controller share. The first call makes
    /// it. Services keep their state here.
    #[must_use]
    pub fn extension<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.runtime.state().extensions.get()
    }

    /// Sends a message to any switch. Messages of one sender (a handler or a task) to one switch
    /// arrive in the order in which they were sent, even if another worker takes over the switch
    /// meanwhile. Each message arrives whole. What a handler writes to its own switch by
    /// [`crate::Switch`] goes out with its answers, independently of messages sent by this.
    ///
    /// In a cluster, a message for a switch of another controller goes there, in order too. It is
    /// lost if that controller is lost meanwhile, as with a switch that is lost.
    ///
    /// A flow_mod gets the app's cookie and a priority of its band, as by
    /// [`crate::Switch::install`]. The switch's answer is discarded.
    ///
    /// # Errors
    /// [`crate::Error::UnknownSwitch`], [`crate::Error::Full`] if too much waits for that switch
    /// already, [`crate::Error::RoleChange`], or what its version does not support.
    pub fn send(&self, dpid: Dpid, message: &ToSwitch<'_>) -> Result<(), Error> {
        crate::role::refuse_role_change(message)?;
        if let Some(guard) = &self.guard {
            guard.check_sent(self, dpid, message)?;
        }
        self.carry(self.app_id(), dpid, message)
    }

    /// Installs a flow of the app at a switch, as [`Network::send`] does. To have it confirmed, use
    /// a plan or desired state.
    ///
    /// # Errors
    /// Those of [`Network::send`].
    pub fn install(&self, dpid: Dpid, flow: &impl AsFlowMod) -> Result<(), Error> {
        flow.as_flow_mod(|flow| self.send(dpid, &ToSwitch::FlowMod(*flow)))
    }

    /// Calls [`Handler::resume`](crate::Handler::resume) of the app's handler of this switch soon,
    /// in the thread of its worker: for apps that work in a thread of their own.
    ///
    /// # Errors
    /// [`crate::Error::UnknownSwitch`]; [`crate::Error::Full`] if too much waits for its worker
    /// already; [`crate::Error::NotAnApp`] for the controller itself.
    pub fn resume(&self, dpid: Dpid) -> Result<(), Error> {
        self.runtime.resume(self.app_id().ok_or(Error::NotAnApp)?, dpid)
    }

    /// Sends changes to a switch, and returns a future that waits for their confirmation. The
    /// changes are sent at once, in order, followed by a barrier. The future resolves to one
    /// [`crate::ChangeOutcome`] for each change; an OpenFlow error becomes the outcome of the
    /// change that caused it. If the switch's version does not support one of the changes, none is
    /// sent.
    ///
    /// The switch has [`CONFIRM_WITHIN`] to confirm, and one second more for each
    /// [`crate::CHANGES_PER_SECOND`] changes that it must process until then, of all senders. A
    /// change that is not confirmed by then, or before the connection ends, may or may not have
    /// happened: [`crate::ChangeOutcome::Unknown`]. In a cluster, changes for a switch of another
    /// controller go there; the loss of that controller is like that of the switch.
    pub fn program(&self, dpid: Dpid, changes: Vec<Change>) -> ProgramFuture {
        self.program_within(dpid, changes, CONFIRM_WITHIN)
    }

    /// Like [`Network::program`], with another time limit, which is checked once a second.
    pub fn program_within(
        &self,
        dpid: Dpid,
        changes: Vec<Change>,
        within: Duration,
    ) -> ProgramFuture {
        match self.app_id() {
            Some(app) => {
                if let Some(guard) = &self.guard
                    && let Err(error) = guard.check_changes(self, dpid, &changes)
                {
                    return ProgramFuture::ready(vec![
                        ChangeOutcome::NotSent(error);
                        changes.len()
                    ]);
                }
                let changes = Changes::OfApp(app, changes);
                self.carry_program(Program { dpid, changes, within }).measured(self)
            }
            None => {
                ProgramFuture::ready(vec![ChangeOutcome::NotSent(Error::NotAnApp); changes.len()])
            }
        }
    }

    /// Requests statistics or descriptions from a switch, for tasks. Handlers use
    /// [`crate::Switch::request`]. Flows in the reply have their priorities in the switch
    /// ([`crate::PriorityBand::lower`]).
    pub fn request(&self, dpid: Dpid, body: RequestBody<'_>) -> RequestFuture {
        let request = ToSwitch::MultipartRequest(MultipartRequest::of(body));
        if let Some(guard) = &self.guard
            && let Err(error) = guard.check_sent(self, dpid, &request)
        {
            return RequestFuture::not_sent(error);
        }
        self.carry_request(dpid, &request)
    }

    /// Runs a task beside the handlers: a future that can wait for time, published values and other
    /// tasks, and may compute for long. Tasks share one thread and take turns at each `await`.
    ///
    /// A panic ends the task. It is logged and counted, and affects nothing else.
    /// [`supervise`](Self::supervise) restarts a task after a panic. The end of the controller
    /// drops all tasks where they wait, and the end of a [`Term`] those of this term.
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
        let work = match self.guard.as_ref().map(|guard| guard.start_task(self)) {
            None => TaskWork::Once(Box::pin(future)),
            Some(Some(permit)) => TaskWork::Once(Box::pin(async move {
                let _permit = permit;
                future.await;
            })),
            // Refused: it ends at once.
            Some(None) => TaskWork::Once(Box::pin(async {})),
        };
        self.start_task(name.into(), work)
    }

    /// Runs a task until the end of the term, if this is a handle of one.
    fn start_task(&self, name: Cow<'static, str>, work: TaskWork) -> TaskHandle {
        let start = |work| self.runtime.spawn(NewTask { app: self.app(), name, work });
        let Some(term) = &self.term else { return start(work) };
        let task = start(term.bind(work));
        term.add(&task);
        task
    }

    /// Runs a task, and restarts it after a panic: `make` makes each run. This suits tasks that can
    /// rebuild their state at the start, from published values or from switches. A task that would
    /// lose earlier messages should end visibly instead: use [`spawn`](Self::spawn).
    ///
    /// The first restart comes after 100 ms; each further delay is twice as long. Ten panics within
    /// a minute end the task. Each panic is logged and counted.
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
        let work = match self.guard.as_ref().map(|guard| guard.start_task(self)) {
            Some(None) => TaskWork::Once(Box::pin(async {})),
            permit => {
                let permit = permit.flatten();
                TaskWork::Again(Box::new(move || {
                    let _ = &permit;
                    Box::pin(make())
                }))
            }
        };
        self.start_task(name.into(), work)
    }

    /// Waits for this time.
    pub fn sleep(&self, time: Duration) -> Sleep {
        self.sleep_until(self.now().saturating_add(time))
    }

    /// Waits until this time of the controller's clock ([`Network::now`]).
    pub fn sleep_until(&self, until: Duration) -> Sleep {
        Sleep::new(Arc::clone(&self.runtime), until)
    }

    /// Awaits `future` for at most `time`. `None` if it has not resolved by then; it is dropped.
    pub async fn timeout<F: Future>(&self, time: Duration, future: F) -> Option<F::Output> {
        let (mut future, mut sleep) = (pin!(future), pin!(self.sleep(time)));
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
        })
        .await
    }

    /// Random seed of a repeatable run, such as in the emulator's lab. Apps take all random numbers
    /// from it then. `None` in a controller, where random numbers must be unpredictable.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.runtime.state().seed
    }
}

impl RoleControl for Network {
    fn set_role(&self, dpid: Dpid, order: RoleOrder) -> RoleOrderFuture {
        if let Some(guard) = &self.guard
            && let Err(error) = guard.check_all(self, "change the controller's role")
        {
            return RoleOrderFuture::not_sent(error);
        }
        self.runtime.set_role(dpid, order)
    }

    fn standbys(&self) -> &Watch<Switches> {
        &self.runtime.state().standbys
    }

    fn connected(&self) -> &Watch<Switches> {
        &self.runtime.state().connected
    }
}

impl RawMessages for Network {
    fn send_messages(&self, dpid: Dpid, messages: Vec<Box<[u8]>>) -> ProgramFuture {
        if let Some(guard) = &self.guard
            && let Err(error) = guard.check_raw(self, dpid)
        {
            return ProgramFuture::ready(vec![ChangeOutcome::NotSent(error); messages.len()]);
        }
        let changes = Changes::Messages(messages);
        self.carry_program(Program { dpid, changes, within: CONFIRM_WITHIN })
    }

    fn send_request(&self, dpid: Dpid, request: &ToSwitch<'_>) -> RequestFuture {
        let checked = self.guard.as_ref().map_or(Ok(()), |guard| guard.check_raw(self, dpid));
        match checked.and_then(|()| crate::role::refuse_role_change(request)) {
            Ok(()) => self.carry_request(dpid, request),
            Err(error) => RequestFuture::not_sent(error),
        }
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

/// Drops each value. A panic in one drop does not stop the others.
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
