//! Start and stop of the engine.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use bellrock_api::Network;
use bellrock_api::runtime::{Chain, DynApp, RawPort};
use bellrock_session::Versions;
use bellrock_tables::{Preparer, preparer};
use bellrock_worker::{Admission, Limits, MAX_APPS, Mailbox, SharedParts, SharedState, Wake};
use core_affinity::CoreId;
use crossbeam_utils::sync::{Parker, Unparker};
use mio::{Poll, Waker};
use tracing::{error, warn};

use crate::acceptor::{Acceptor, handshake_lines};
use crate::channel::ChannelKind;
use crate::halt::Halt;
use crate::listener::{Listener, VersionsAt};
use crate::monitor::Monitor;
use crate::priority::let_workers_go_first;
use crate::refusals::Refusals;
use crate::settings::{EngineSettings, MAX_WORKERS, Pinning, StartError};
use crate::tasks::{self, WakeTasks};
use crate::thread::{ConnectionInbox, ThreadStart, WAKE, run};
#[cfg(feature = "tls")]
use crate::tls::{
    TlsServer,
    handshake::{self, Handshakes, PendingHandshakes},
};
use crate::waker::Sleeper;
use crate::watchdog::Watchdog;

/// It exists on machines whose cores have memory of their own.
const SECOND_MEMORY_NODE: &str = "/sys/devices/system/node/node1";

/// A running controller. Dropping it stops it.
pub struct Engine {
    versions: VersionsAt,
    addresses: Vec<SocketAddr>,
    /// Number of addresses without TLS, which come first.
    plain: usize,
    shared: Arc<SharedState>,
    monitor: Monitor,
    halt: Arc<Halt>,
    inboxes: Vec<Arc<ConnectionInbox>>,
    /// Numbers of the cores to which workers are pinned.
    worker_cores: Vec<usize>,
    threads: Vec<JoinHandle<()>>,
    /// The thread of the tasks.
    tasks: Option<JoinHandle<()>>,
    /// Wakes the watchdog.
    watchdog: Option<Unparker>,
}

impl Engine {
    /// Binds the listeners, starts the apps, and starts the threads. A list of apps is a chain
    /// without services.
    ///
    /// # Errors
    /// [`StartError`]. Nothing keeps running then.
    pub fn start(settings: &EngineSettings, chain: impl Into<Chain>) -> Result<Engine, StartError> {
        Engine::start_with(settings, chain.into(), ChannelKind::Plain, None)
    }

    /// Starts it without apps: all messages of all switches belong to the owner at the other end of
    /// this port.
    ///
    /// # Errors
    /// [`StartError`]. Nothing keeps running then.
    pub fn start_raw(settings: &EngineSettings, owner: RawPort) -> Result<Engine, StartError> {
        let no_apps = Chain::from(Vec::new());
        Engine::start_with(settings, no_apps, ChannelKind::Plain, Some(owner))
    }

    /// [`Engine::start`], with channels of this kind.
    pub(crate) fn start_with(
        settings: &EngineSettings,
        chain: Chain,
        kind: ChannelKind,
        owner: Option<RawPort>,
    ) -> Result<Engine, StartError> {
        check(settings, &chain.apps)?;
        let listeners = listeners(settings, kind)?;
        let cores = cores(settings)?;
        raise_file_limit(&settings.worker.limits);

        let system = |what| move |error| StartError::System { what, error };
        let addresses = listeners.iter().map(Listener::address).collect();
        let versions = versions_at(settings, &listeners);
        let (polls, inboxes): (Vec<_>, Vec<_>) = cores
            .iter()
            .map(|_| poll_and_inbox())
            .collect::<io::Result<Vec<_>>>()
            .map_err(system("a poller"))?
            .into_iter()
            .unzip();
        let mailboxes = inboxes
            .iter()
            .map(|inbox| Mailbox::new(Box::new(inbox.sleeper.clone()) as Box<dyn Wake>));
        let (epoch, parker) = (Instant::now(), Parker::new());
        let wake_tasks = WakeTasks(parker.unparker().clone());
        let shared = SharedState::new(SharedParts {
            chain,
            mailboxes: mailboxes.collect(),
            clock: Box::new(move || epoch.elapsed()),
            wake_tasks: Box::new(wake_tasks.clone()),
            admission: admission(settings),
        });
        let task_worker = shared.task_worker();
        let poll = Poll::new().map_err(system("a poller"))?;
        let acceptor_waker = Waker::new(poll.registry(), WAKE).map_err(system("a wake-up"))?;
        let acceptor_waker = Arc::new(acceptor_waker);
        let halt = Halt::new(inboxes.clone(), Arc::clone(&acceptor_waker), wake_tasks);
        let counts = Arc::default();
        let monitor =
            Monitor::new(Arc::clone(&shared), inboxes.clone(), Arc::clone(&counts), epoch);
        // From here on, dropping `engine` stops and joins all started threads.
        let mut engine = Engine {
            addresses,
            versions: Arc::clone(&versions),
            plain: settings.listen.len(),
            shared: Arc::clone(&shared),
            monitor,
            halt: Arc::clone(&halt),
            inboxes: inboxes.clone(),
            worker_cores: cores.iter().flatten().map(|core| core.id).collect(),
            threads: Vec::new(),
            tasks: None,
            watchdog: None,
        };
        for (index, (core, poll)) in cores.into_iter().zip(polls).enumerate() {
            let (tables, preparer) = preparer();
            let start = ThreadStart {
                index,
                core,
                tables,
                settings: settings.worker,
                idle: settings.idle,
                shared: Arc::clone(&shared),
                poll,
                inbox: Arc::clone(&inboxes[index]),
                halt: Arc::clone(&halt),
                epoch,
                owner: owner.clone(),
                versions: Arc::clone(&versions),
            };
            let thread = engine.spawn(format!("worker-{index}"), move || run(start))?;
            engine.threads.push(thread);
            let body = move || prepare_tables(preparer, core);
            engine.threads.push(engine.spawn(format!("tables-{index}"), body)?);
        }
        let stop = Arc::clone(&halt);
        let body = move || {
            let_workers_go_first();
            tasks::run(task_worker, &parker, &stop, epoch)
        };
        engine.tasks = Some(engine.spawn("tasks".into(), body)?);
        #[cfg(feature = "tls")]
        let handshakes = match &settings.tls {
            Some(tls) => Some(engine.start_handshakes(&tls.server, acceptor_waker)?),
            None => None,
        };
        let dog = Watchdog {
            shared: Arc::clone(&shared),
            inboxes: inboxes.clone(),
            halt: Arc::clone(&halt),
            limit: settings.worker.limits.handler_time,
        };
        let watch = Parker::new();
        engine.watchdog = Some(watch.unparker().clone());
        let thread = engine.spawn("watchdog".into(), move || dog.run(&watch))?;
        engine.threads.push(thread);
        let mut acceptor = Acceptor {
            listeners,
            poll,
            inboxes,
            limits: settings.worker.limits,
            counts,
            halt,
            said_out_of_files: None,
            handshake_lines: handshake_lines(),
            refusals: Refusals::default(),
            network: shared.network(),
            #[cfg(feature = "tls")]
            handshakes,
        };
        acceptor.register().map_err(system("the acceptor"))?;
        let thread = engine.spawn("acceptor".into(), move || acceptor.run())?;
        engine.threads.push(thread);
        Ok(engine)
    }

    /// Starts the threads of TLS handshakes.
    #[cfg(feature = "tls")]
    fn start_handshakes(
        &mut self,
        server: &TlsServer,
        acceptor: Arc<Waker>,
    ) -> Result<PendingHandshakes, StartError> {
        let system = |error| StartError::System { what: "the threads of TLS handshakes", error };
        let (queues, polls) = Handshakes::new(acceptor).map_err(system)?;
        self.halt.include(&queues);
        for (index, poll) in polls.into_iter().enumerate() {
            let (queues, server) = (Arc::clone(&queues), server.clone());
            let halt = Arc::clone(&self.halt);
            let body = move || handshake::run(&queues, index, poll, &server, &halt);
            let thread = self.spawn(format!("tls-{index}"), body)?;
            self.threads.push(thread);
        }
        Ok(PendingHandshakes::new(queues))
    }

    fn spawn(
        &self,
        name: String,
        body: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<JoinHandle<()>, StartError> {
        let (label, halt) = (name.clone(), Arc::clone(&self.halt));
        let body = move || {
            let failed = match catch_unwind(AssertUnwindSafe(body)) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it panicked".into(),
            };
            error!(thread = label, failed, "a thread of the engine failed: the engine stops");
            halt.fail();
        };
        std::thread::Builder::new()
            .name(name)
            .spawn(body)
            .map_err(|error| StartError::System { what: "a thread", error })
    }

    /// The versions that are spoken at one of its addresses, if they are not those of the sessions.
    #[must_use]
    pub fn versions_at(&self, address: SocketAddr) -> Option<Versions> {
        let own = self.versions.iter().find(|(other, _)| *other == address);
        own.map(|(_, versions)| *versions)
    }

    /// Addresses that it listens on, with the actual ports: those without TLS, then those with it.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The addresses without TLS.
    #[must_use]
    pub fn plain_addresses(&self) -> &[SocketAddr] {
        self.addresses.split_at(self.plain).0
    }

    /// The addresses with TLS.
    #[must_use]
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        self.addresses.split_at(self.plain).1
    }

    /// Numbers of the cores to which workers are pinned; none if they are not. Another thread that
    /// works much should run elsewhere.
    #[must_use]
    pub fn worker_cores(&self) -> &[usize] {
        &self.worker_cores
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> Network {
        self.shared.network()
    }

    /// A handle to monitor it.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Whether one of its threads has failed, which was logged. The engine has then stopped, and
    /// has closed all connections. Start a new one.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.halt.has_failed()
    }

    /// Stops. It accepts no more connections, sends the accepted messages, closes connections, and
    /// ends tasks where they wait, then threads. Switches have two seconds to read what waits for
    /// them; a task has two seconds to reach an `await`.
    pub fn stop(self) {}
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.halt.stop();
        if let Some(watchdog) = &self.watchdog {
            watchdog.unpark();
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                error!("a thread of the engine had panicked");
            }
        }
        if let Some(thread) = self.tasks.take() {
            tasks::join(thread, &self.shared);
        }
        // Close what the acceptor left there, even if a monitor stays.
        for inbox in &self.inboxes {
            inbox.clear();
        }
    }
}

/// Body of the thread that prepares memory for a worker's tables. It ends after the worker.
fn prepare_tables(preparer: Preparer, core: Option<CoreId>) -> io::Result<()> {
    // Memory is near to the core that touches it first. Elsewhere any idle core is better than the
    // worker's own.
    if let Some(core) = core
        && Path::new(SECOND_MEMORY_NODE).exists()
    {
        // The worker reports the same failure.
        core_affinity::set_for_current(core);
    }
    let_workers_go_first();
    preparer.run();
    Ok(())
}

/// Addresses to listen on, in the order of the listeners.
fn addresses(settings: &EngineSettings) -> impl Iterator<Item = &SocketAddr> {
    #[cfg(feature = "tls")]
    let tls = settings.tls.iter().flat_map(|tls| &tls.listen);
    #[cfg(not(feature = "tls"))]
    let tls = std::iter::empty();
    settings.listen.iter().chain(tls)
}

/// Returns the versions of the addresses that have their own, with the actual ports.
fn versions_at(settings: &EngineSettings, listeners: &[Listener]) -> VersionsAt {
    let own = addresses(settings).zip(listeners).filter_map(|(address, listener)| {
        let versions = settings.listen_versions.get(address)?;
        Some((listener.address(), *versions))
    });
    own.collect()
}

/// Listens on all addresses: those without TLS first.
fn listeners(settings: &EngineSettings, kind: ChannelKind) -> Result<Vec<Listener>, StartError> {
    let plain = settings.listen.iter().map(|address| Listener::bind(*address, kind));
    #[cfg(feature = "tls")]
    let plain = plain.chain(
        (settings.tls.iter())
            .flat_map(|tls| &tls.listen)
            .map(|address| Listener::bind(*address, ChannelKind::Tls)),
    );
    plain.collect()
}

/// The rules for certificates and datapath ids.
fn admission(settings: &EngineSettings) -> Option<Arc<dyn Admission>> {
    #[cfg(feature = "tls")]
    if let Some(tls) = &settings.tls {
        return Some(Arc::new(tls.identities.clone()));
    }
    let _ = settings;
    None
}

fn poll_and_inbox() -> io::Result<(Poll, Arc<ConnectionInbox>)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKE)?;
    Ok((poll, Arc::new(ConnectionInbox::new(Sleeper::new(waker)))))
}

fn check(settings: &EngineSettings, apps: &[Box<dyn DynApp>]) -> Result<(), StartError> {
    #[cfg(feature = "tls")]
    let has_tls = settings.tls.as_ref().is_some_and(|tls| !tls.listen.is_empty());
    #[cfg(not(feature = "tls"))]
    let has_tls = false;
    if settings.listen.is_empty() && !has_tls {
        return Err(StartError::NoAddress);
    }
    if settings.workers > MAX_WORKERS {
        return Err(StartError::TooManyWorkers(settings.workers));
    }
    if apps.len() > MAX_APPS {
        return Err(StartError::TooManyApps(apps.len()));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = apps.iter().map(|app| app.name()).find(|name| !names.insert(*name)) {
        return Err(StartError::DuplicateApp(twice));
    }
    Ok(settings.worker.check()?)
}

/// Core of each worker, or `None` if it is not pinned.
fn cores(settings: &EngineSettings) -> Result<Vec<Option<CoreId>>, StartError> {
    let usable = core_affinity::get_core_ids().unwrap_or_default();
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = match settings.workers {
        0 => available.saturating_sub(settings.spared_cores).max(1),
        workers => workers,
    };
    match &settings.pin {
        Pinning::None => Ok(vec![None; workers]),
        Pinning::Auto if workers > usable.len() => {
            warn!(workers, cores = usable.len(), "more workers than cores: none is pinned");
            Ok(vec![None; workers])
        }
        Pinning::Auto => Ok(usable.into_iter().take(workers).map(Some).collect()),
        Pinning::Cores(cores) if cores.len() != workers => {
            Err(StartError::PinCount { cores: cores.len(), workers })
        }
        Pinning::Cores(cores) => cores
            .iter()
            .map(|core| {
                let found = usable.iter().find(|usable| usable.id == *core);
                let usable = || usable.iter().map(|usable| usable.id).collect();
                found
                    .map(|core| Some(*core))
                    .ok_or_else(|| StartError::NoSuchCore { core: *core, usable: usable() })
            })
            .collect(),
    }
}

/// Raises the soft limit of file descriptors, often 1,024, to the hard limit: each connection needs
/// one. Warns if that is still too low.
fn raise_file_limit(limits: &Limits) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            warn!(%error, "the limit of open files could not be raised");
        }
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if files < limits.connections as u64 {
        warn!(
            files,
            connections = limits.connections,
            "fewer open files are allowed than limits.connections; raise the hard limit (ulimit -Hn)"
        );
    }
}
