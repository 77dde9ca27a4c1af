//! The one place where engine, services, apps and the control socket are put together.

#[cfg(all(test, feature = "apps"))]
mod tests;

#[cfg(feature = "control")]
use std::collections::BTreeMap;
use std::mem;
use std::net::SocketAddr;
#[cfg(feature = "control")]
use std::path::PathBuf;
#[cfg(any(feature = "cluster", feature = "control", feature = "tls"))]
use std::sync::Arc;

#[cfg(feature = "control")]
use bellrock_api::Names;
use bellrock_api::runtime::{DynApp, RawPort, RoleControl};
use bellrock_api::{Allowance, App, Dpid, Network, RoleOrder, RoleOrderFuture, Snapshot, Switches};
#[cfg(feature = "control")]
use bellrock_apps::{orders::AppOrders, static_entries::StaticEntries};
#[cfg(feature = "cluster")]
use bellrock_cluster::{Cluster, ClusterSettings};
#[cfg(feature = "control")]
use bellrock_control::Server;
#[cfg(feature = "tls")]
use bellrock_engine::TlsSettings;
use bellrock_engine::session::FirstRole;
use bellrock_engine::{Engine, EngineSettings, Limits, Pinning, WriteMode};
#[cfg(feature = "http")]
use bellrock_northbound::{HttpCounters, HttpSettings};
#[cfg(feature = "control")]
use bellrock_query::{Operator, SharedConfigHandle};
use bellrock_services::chain::{AppRole, ChainProblem, ServiceSettings, check};
#[cfg(feature = "control")]
use bellrock_tables::Budget;

#[cfg(all(feature = "cluster", feature = "control"))]
use crate::cluster_node::ClusterNode;
#[cfg(feature = "cluster")]
use crate::cluster_start::start_cluster;
#[cfg(not(feature = "control"))]
use crate::control_place::ControlFeature;
#[cfg(feature = "control")]
use crate::control_place::ControlPlace;
use crate::event_log::log_events;
#[cfg(feature = "tls")]
use crate::expiry_log::{OwnFiles, log_expiry};
#[cfg(feature = "control")]
use crate::handles::NamesHandle;
#[cfg(feature = "tls")]
use crate::handles::TlsHandle;
use crate::handles::{LimitsHandle, Liveness};
#[cfg(feature = "http")]
use crate::http_face::serve_http;
use crate::log::log_to_stderr;
use crate::once::Once;
#[cfg(feature = "control")]
use crate::port_watch::watch_ports;
use crate::run_error::{Result, RunError};
use crate::signals::Signals;
#[cfg(feature = "control")]
use crate::table_log::log_tables;
#[cfg(feature = "control")]
use bellrock_operator::{ControllerOperator, Handles, ReloadFn, Run};

/// Runs a controller with this one app: short for `Controller::builder().app(app).run()`.
///
/// An app that consists only of its handler is made by [`per_switch`](crate::per_switch).
///
/// # Errors
/// [`RunError`].
pub fn run<A: App>(app: A) -> Result {
    Controller::builder().app(app).run()
}

/// A controller that is to be started: its chain of apps, and its settings.
///
/// The services that the apps need stand in front of them. One worker runs on each core. Every
/// other setting has its default.
///
/// ```no_run
/// use bellrock::prelude::*;
/// # struct Nothing;
/// # impl Handler for Nothing {}
///
/// fn main() -> bellrock::Result {
///     let app = per_switch("nothing", |_| Nothing);
///     bellrock::Controller::builder().app(app).listen(([0, 0, 0, 0], 6653)).run()
/// }
/// ```
#[derive(Default)]
#[must_use = "it does nothing until it runs"]
pub struct ControllerBuilder {
    pub(crate) apps: Vec<Box<dyn DynApp>>,
    pub(crate) once: Once,
    /// The end of the queue of a raw owner, which takes the place of apps.
    pub(crate) raw: Option<RawPort>,
    /// What apps may do that may not do everything.
    pub(crate) allowances: Vec<(String, Allowance)>,
    engine: EngineSettings,
    /// Changes of single settings. They apply after `engine`, whichever was called first.
    changes: Vec<Change>,
    /// Addresses to listen on, instead of those of `engine`.
    listen: Vec<SocketAddr>,
    #[cfg(feature = "tls")]
    tls: Option<TlsSettings>,
    pub(crate) services: ServiceSettings,
    #[cfg(feature = "cluster")]
    pub(crate) cluster: Option<ClusterSettings>,
    #[cfg(feature = "control")]
    control: Option<ControlPlace>,
    #[cfg(feature = "control")]
    tables: Option<Budget>,
    /// Budgets of the tables of single apps.
    #[cfg(feature = "control")]
    pub(crate) app_tables: BTreeMap<String, Budget>,
    #[cfg(feature = "control")]
    pub(crate) handles: Handles,
    limits: LimitsHandle,
    #[cfg(feature = "control")]
    names: NamesHandle,
    #[cfg(feature = "http")]
    http: Option<HttpSettings>,
}

/// A change of a setting.
type Change = Box<dyn FnOnce(&mut EngineSettings) + Send>;

impl ControllerBuilder {
    /// Adds this app to the end of the chain. It gets the packets that the apps before it pass on,
    /// and its flows have lower priorities. If an app could do nothing in this order,
    /// [`run`](Self::run) and [`start`](Self::start) return an error. `run` logs doubtful orders.
    /// See [`App::forwards`].
    pub fn app<A: App>(self, app: A) -> Self {
        self.boxed_app(Box::new(app))
    }

    /// Adds an app whose type is chosen while the program runs, as [`app`](Self::app) does.
    pub fn boxed_app(mut self, app: Box<dyn DynApp>) -> Self {
        self.apps.push(app);
        self
    }

    /// Listens on this address instead of 127.0.0.1:6653. Call it several times to listen on
    /// several addresses. Port 0 takes a free port. Anyone who reaches an address can claim to be a
    /// switch.
    pub fn listen(mut self, address: impl Into<SocketAddr>) -> Self {
        self.listen.push(address.into());
        self
    }

    /// Listens with TLS too, at the addresses of these settings (feature `tls`).
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: TlsSettings) -> Self {
        self.tls = Some(tls.clone());
        #[cfg(feature = "control")]
        {
            self.handles.identities = Some(tls.identities.clone());
            self.handles.tls = Some(tls.server.clone());
        }
        self.change(move |settings| settings.tls = Some(tls))
    }

    /// Changes certificates and their datapath ids while the controller runs (feature `tls`).
    /// `None`: without [`tls`](Self::tls).
    #[cfg(feature = "tls")]
    pub fn tls_handle(&self) -> Option<TlsHandle> {
        let monitor = Arc::clone(&self.limits.0);
        self.tls.clone().map(|tls| TlsHandle { tls, monitor })
    }

    /// Number of workers; 0 for one on each core that this process may use.
    pub fn workers(self, workers: usize) -> Self {
        self.change(move |settings| settings.workers = workers)
    }

    /// Number of cores without a worker, if the number of workers is 0: for threads of apps that
    /// work as much as a worker. There is one worker at least.
    pub fn spare_cores(self, cores: usize) -> Self {
        self.change(move |settings| settings.spared_cores = cores)
    }

    /// The cores of the workers.
    pub fn pin(self, pin: Pinning) -> Self {
        self.change(move |settings| settings.pin = pin)
    }

    /// The limits of connections, of their memory and of their time.
    pub fn limits(self, limits: Limits) -> Self {
        self.change(move |settings| settings.worker.limits = limits)
    }

    /// When a worker writes.
    pub fn write(self, mode: WriteMode) -> Self {
        self.change(move |settings| settings.worker.write = mode)
    }

    /// All settings of the engine at once. Those that other methods set, such as
    /// [`workers`](Self::workers) and [`listen`](Self::listen), override these in any order of
    /// calls.
    pub fn engine(mut self, settings: EngineSettings) -> Self {
        self.engine = settings;
        self
    }

    /// Begins at every switch as a standby, which changes nothing there, instead of as equal. A
    /// switch comes up when [`Controller::set_role`] makes this controller its master or equal.
    pub fn standby(self) -> Self {
        self.change(|settings| settings.worker.session.first_role = FirstRole::Standby)
    }

    /// Makes this controller a node of a cluster: it begins as a standby at every switch, and is
    /// master of those that are its own (feature `cluster`).
    #[cfg(feature = "cluster")]
    pub fn cluster(mut self, settings: ClusterSettings) -> Self {
        self.cluster = Some(settings);
        self.standby()
    }

    /// Settings of discovery, host tracking and paths, and which of them run if no app needs them.
    pub fn services(mut self, settings: ServiceSettings) -> Self {
        self.services = settings;
        self
    }

    /// The memory budget that the tables of the apps share, for `bellrock status` (feature
    /// `control`).
    #[cfg(feature = "control")]
    pub fn tables(mut self, tables: &Budget) -> Self {
        self.tables = Some(tables.clone());
        self
    }

    /// Lets operators give orders to an app, and ask what it keeps, by this handle of it (feature
    /// `control`). [`AppOrders`] lists the handles.
    #[cfg(feature = "control")]
    pub fn orders(mut self, app: &(impl AppOrders + Clone + 'static)) -> Self {
        self.handles.apps.push(Arc::new(app.clone()));
        self
    }

    /// Lets operators set static flows, groups and meters, by this handle of the app `static`
    /// (feature `control`). Those of a file come back after a restart
    /// ([`open_static_file`](crate::settings::open_static_file)).
    #[cfg(feature = "control")]
    pub fn static_entries(mut self, entries: &StaticEntries) -> Self {
        self.handles.static_entries = Some(entries.clone());
        self
    }

    /// Names of switches and hosts, which operators may write and read in place of datapath ids and
    /// addresses (feature `control`).
    #[cfg(feature = "control")]
    pub fn names(self, names: Names) -> Self {
        self.names.set(names);
        self
    }

    /// Replaces these names while the controller runs (feature `control`).
    #[cfg(feature = "control")]
    pub fn names_handle(&self) -> NamesHandle {
        self.names.clone()
    }

    /// Changes limits while the controller runs.
    pub fn limits_handle(&self) -> LimitsHandle {
        self.limits.clone()
    }

    /// Lets operators reload the configuration of this program: `bellrock reload` calls `reload`
    /// (feature `control`).
    #[cfg(feature = "control")]
    pub fn reload(mut self, reload: ReloadFn) -> Self {
        self.handles.reload = Some(reload);
        self
    }

    /// Lets operators read and change the configuration that the nodes of a cluster share (feature
    /// `control`).
    #[cfg(feature = "control")]
    pub fn shared_config(mut self, handle: Arc<dyn SharedConfigHandle>) -> Self {
        self.handles.shared_config = Some(handle);
        self
    }

    /// Answers `bellrock status`, `switches`, `counters`, `tasks` and similar commands, at the path
    /// where they look by default (feature `control`). Commands such as `bellrock reserve` need the
    /// handle of their app too ([`orders`](Self::orders)).
    #[cfg(feature = "control")]
    pub fn control_socket(mut self) -> Self {
        self.control = Some(ControlPlace::Default);
        self
    }

    /// The same, with the socket at this path, which the command takes as `--control`.
    #[cfg(feature = "control")]
    pub fn control_socket_at(mut self, path: impl Into<PathBuf>) -> Self {
        self.control = Some(ControlPlace::At(path.into()));
        self
    }

    /// Answers REST, with these addresses, certificate and tokens (feature `http`).
    #[cfg(feature = "http")]
    pub fn http(mut self, settings: HttpSettings) -> Self {
        self.http = Some(settings);
        self
    }

    /// The same without the feature `control`: a compile error that names the feature.
    #[cfg(not(feature = "control"))]
    pub fn control_socket(self) -> Self
    where
        for<'f> Self: ControlFeature<'f>,
    {
        self
    }

    /// The same without the feature `control`: a compile error that names the feature.
    #[cfg(not(feature = "control"))]
    pub fn control_socket_at(self, _path: impl Into<std::path::PathBuf>) -> Self
    where
        for<'f> Self: ControlFeature<'f>,
    {
        self
    }

    fn change(mut self, change: impl FnOnce(&mut EngineSettings) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// The settings of the engine, with all changes.
    fn take_settings(&mut self) -> EngineSettings {
        let mut settings = mem::take(&mut self.engine);
        mem::take(&mut self.changes).into_iter().for_each(|change| change(&mut settings));
        if !self.listen.is_empty() {
            settings.listen = mem::take(&mut self.listen);
        }
        settings
    }

    /// What the apps of the chain forward and need, in order.
    #[must_use]
    pub fn chain_roles(&self) -> Vec<AppRole<'_>> {
        self.apps.iter().map(|app| AppRole::of(app.as_ref())).collect()
    }

    /// What is doubtful about the order of the apps. [`run`](Self::run) logs it.
    #[must_use]
    pub fn chain_warnings(&self) -> Vec<String> {
        let doubts = self.chain_problems().filter(|problem| !problem.is_error);
        doubts.map(|doubt| doubt.to_string()).collect()
    }

    pub(crate) fn chain_problems(&self) -> impl Iterator<Item = ChainProblem> + use<> {
        // With a raw owner there is no chain.
        let has_chain = self.raw.is_none();
        has_chain.then(|| check(&self.chain_roles())).into_iter().flatten()
    }

    /// Runs the controller until the process gets SIGTERM, SIGINT or SIGHUP. Then it sends what is
    /// already written and closes all connections. A second signal ends the process at once.
    ///
    /// Everything logged at level info and above goes to standard error, unless the program has
    /// installed its own `tracing` subscriber.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(self) -> Result {
        log_to_stderr();
        // Before any thread starts, and before anything that a signal would leave half done.
        let mut signals = Signals::watch().map_err(RunError::Signals)?;
        for doubt in self.chain_warnings() {
            tracing::warn!("{doubt}");
        }
        let controller = self.start()?;
        let signal = signals.wait(&controller);
        controller.stop();
        signal.map(|_| ()).ok_or(RunError::Failed)
    }

    /// Starts the controller and returns. The controller runs until [`Controller::stop`].
    ///
    /// # Errors
    /// [`RunError`].
    pub fn start(mut self) -> Result<Controller> {
        // Before the engine takes them.
        #[cfg(any(feature = "control", feature = "cluster"))]
        let apps: Vec<String> = self.apps.iter().map(|app| app.name().to_owned()).collect();
        if let Some(problem) = self.chain_problems().find(|problem| problem.is_error) {
            return Err(RunError::Chain(problem.to_string()));
        }
        self.keep_once()?;
        let settings = self.take_settings();
        let engine = self.start_engine(&settings)?;
        let network = engine.monitor().network();
        // It is set once: here.
        let _ = self.limits.0.set(engine.monitor());
        #[cfg(feature = "control")]
        {
            log_events(&network, self.names.0.watch().clone());
            watch_ports(&network, self.names.0.watch().clone());
        }
        #[cfg(not(feature = "control"))]
        log_events(&network, crate::event_log::no_names());
        #[cfg(feature = "tls")]
        {
            let files = OwnFiles {
                switches: self.tls.take().map(|tls| tls.server),
                #[cfg(feature = "cluster")]
                nodes: self.cluster.as_ref().and_then(|settings| settings.tls.clone()),
            };
            log_expiry(&network, files);
        }
        #[cfg(feature = "control")]
        log_tables(&network, &self.app_tables);
        #[cfg(feature = "cluster")]
        let cluster = self.cluster.take().map(|settings| {
            start_cluster(ClusterSettings { apps: apps.clone(), ..settings }, &network)
        });
        #[cfg(feature = "cluster")]
        let cluster = cluster.transpose()?.map(Arc::new);
        #[cfg(all(feature = "cluster", feature = "control"))]
        if let Some(cluster) = &cluster {
            self.handles.cluster = Some(Arc::new(ClusterNode(Arc::clone(cluster))));
        }
        let all = settings.worker.session.versions;
        for address in engine.plain_addresses() {
            let versions = engine.versions_at(*address).unwrap_or(all);
            tracing::info!("listening on {address} for switches that speak OpenFlow {versions}");
        }
        for address in engine.tls_addresses() {
            let versions = engine.versions_at(*address).unwrap_or(all);
            tracing::info!(
                "listening on {address} by TLS for switches that speak OpenFlow {versions}"
            );
        }
        #[cfg(feature = "control")]
        let names = self.names;
        #[cfg(feature = "control")]
        let operator: Arc<dyn Operator> = Arc::new(ControllerOperator {
            monitor: engine.monitor(),
            network,
            listen: engine.plain_addresses().to_vec(),
            listen_tls: engine.tls_addresses().to_vec(),
            apps,
            tables: self.tables,
            app_tables: self.app_tables,
            handles: self.handles,
            names: names.0.watch().clone(),
            run: Run::starting(),
        });
        #[cfg(feature = "http")]
        let http_counters = HttpCounters::default();
        #[cfg(feature = "http")]
        let operator = match &self.http {
            Some(_) => bellrock_northbound::counted(operator, &http_counters),
            None => operator,
        };
        #[cfg(feature = "http")]
        let http = self.http.map(|settings| serve_http(&settings, &operator, &http_counters));
        Ok(Controller {
            #[cfg(feature = "cluster")]
            cluster,
            #[cfg(feature = "http")]
            http: http.transpose()?,
            #[cfg(feature = "control")]
            control: self.control.map(|place| place.open(&operator)).transpose()?,
            #[cfg(feature = "control")]
            operator,
            #[cfg(feature = "control")]
            names,
            engine,
        })
    }
}

/// A running controller, in its own threads.
#[must_use = "it is to be stopped"]
pub struct Controller {
    #[cfg(feature = "cluster")]
    cluster: Option<Arc<Cluster>>,
    #[cfg(feature = "http")]
    http: Option<bellrock_northbound::Server>,
    #[cfg(feature = "control")]
    control: Option<Server>,
    #[cfg(feature = "control")]
    names: NamesHandle,
    #[cfg(feature = "control")]
    operator: Arc<dyn Operator>,
    engine: Engine,
}

impl Controller {
    /// A controller without apps that is to be started.
    pub fn builder() -> ControllerBuilder {
        ControllerBuilder::default()
    }

    /// Addresses on which it listens: those without TLS, then those with it.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.engine.addresses()
    }

    /// Addresses on which it listens without TLS.
    #[must_use]
    pub fn plain_addresses(&self) -> &[SocketAddr] {
        self.engine.plain_addresses()
    }

    /// Numbers of the cores to which workers are pinned; none if they are not.
    #[must_use]
    pub fn worker_cores(&self) -> &[usize] {
        self.engine.worker_cores()
    }

    /// The network, for code outside of apps: snapshots, events, tasks.
    #[must_use]
    pub fn network(&self) -> Network {
        self.engine.monitor().network()
    }

    /// Answers the requests of operators, as the control socket does, for faces in this process
    /// (feature `control`): `controller.operator().ask(ListHosts::default())`.
    #[cfg(feature = "control")]
    #[must_use]
    pub fn operator(&self) -> Arc<dyn Operator> {
        Arc::clone(&self.operator)
    }

    /// Orders a role at a switch that is up or stands by (1.3.5 §6.3.4), and returns the future of
    /// its outcome. The order is sent at once, whether or not somebody waits. [`Network::spawn`]
    /// runs a task that waits.
    ///
    /// Master and equal bring a standby up, as after a connect. Slave takes a switch down for the
    /// apps; its flows stay. The order holds until the next one, also on the next connection of the
    /// switch: a slave stands by, and a master requests its role again with the same generation
    /// id. An order for slave at a switch that is not connected fails, and replaces such an order
    /// all the same.
    pub fn set_role(&self, dpid: Dpid, order: RoleOrder) -> RoleOrderFuture {
        self.network().set_role(dpid, order)
    }

    /// The switches at which this controller stands by.
    #[must_use]
    pub fn standbys(&self) -> Snapshot<Switches> {
        self.network().standbys().load()
    }

    /// This node of the cluster, if it is one (feature `cluster`).
    #[cfg(feature = "cluster")]
    #[must_use]
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_deref()
    }

    /// Replaces the names of switches and hosts (feature `control`).
    #[cfg(feature = "control")]
    pub fn set_names(&self, names: Names) {
        self.names.set(names);
    }

    /// Addresses on which the HTTP server listens (feature `http`).
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http_addresses(&self) -> &[SocketAddr] {
        self.http.as_ref().map_or(&[], bellrock_northbound::Server::addresses)
    }

    /// Checks from any thread that the controller works, for a watchdog.
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        Liveness(self.engine.monitor())
    }

    /// Gives an app its events again after too many panics disabled it: for runtimes that replace
    /// its code. A switch that came up meanwhile has no handler of it until it connects again.
    /// `false`: there is no such app.
    pub fn enable_app(&self, name: &str) -> bool {
        self.engine.monitor().enable_app(name)
    }

    /// Whether a thread of the engine has failed. Then the others were stopped.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.engine.has_failed()
    }

    /// Stops the controller: sends what is already written, closes all connections, and waits for
    /// all threads to end.
    pub fn stop(self) {
        // First, so that no further client comes. One that is being answered may get an error.
        #[cfg(feature = "http")]
        drop(self.http);
        #[cfg(feature = "control")]
        drop(self.control);
        // It orders no more roles. The other nodes take over when the connections end.
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &self.cluster {
            cluster.stop();
        }
        self.engine.stop();
    }
}
