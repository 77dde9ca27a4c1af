//! Starting and stopping it all.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use bellrock_api::{DynApp, Network};
use bellrock_worker::{Limits, Mailbox, Shared, SharedParts, Wake};
use core_affinity::CoreId;
use crossbeam_queue::ArrayQueue;
use mio::{Poll, Waker};
use tracing::{error, warn};

use crate::acceptor::{Acceptor, INBOX, listen};
use crate::monitor::Monitor;
use crate::settings::{MAX_WORKERS, Pinning, Settings, StartError};
use crate::thread::{Inbox, Start, WAKE, run};

/// The most apps: transaction ids have eight bits for their owner, and one is the session's.
const MAX_APPS: usize = 255;

/// A running controller. Dropping it stops it.
pub struct Engine {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    monitor: Monitor,
    stop: Arc<AtomicBool>,
    inboxes: Vec<Arc<Inbox>>,
    acceptor_waker: Waker,
    threads: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Binds the listeners, tells the apps that the controller starts, and starts the threads.
    /// `apps` is the chain, in order.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind then.
    pub fn start(settings: &Settings, apps: Vec<Box<dyn DynApp>>) -> Result<Engine, StartError> {
        check(settings, &apps)?;
        let listeners = settings
            .listen
            .iter()
            .map(|address| listen(*address))
            .collect::<Result<Vec<_>, _>>()?;
        let cores = cores(settings)?;
        raise_file_limit(&settings.worker.limits);

        let system = |what| move |error| StartError::System { what, error };
        let addresses = listeners
            .iter()
            .map(|listener| listener.local_addr())
            .collect::<io::Result<Vec<_>>>()
            .map_err(system("a listener"))?;
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
        let shared = Shared::new(SharedParts { apps, mailboxes: mailboxes.collect() });
        let stop = Arc::new(AtomicBool::new(false));
        let poll = Poll::new().map_err(system("a poller"))?;
        let acceptor_waker = Waker::new(poll.registry(), WAKE).map_err(system("a wake-up"))?;
        let epoch = Instant::now();
        let counts = Arc::default();
        let monitor =
            Monitor::new(Arc::clone(&shared), inboxes.clone(), Arc::clone(&counts), epoch);
        // From here on, dropping `engine` stops and joins what was started.
        let mut engine = Engine {
            addresses,
            shared: Arc::clone(&shared),
            monitor,
            stop: Arc::clone(&stop),
            inboxes: inboxes.clone(),
            acceptor_waker,
            threads: Vec::new(),
        };
        for (index, (core, poll)) in cores.into_iter().zip(polls).enumerate() {
            let start = Start {
                index,
                core,
                settings: settings.worker,
                shared: Arc::clone(&shared),
                poll,
                inbox: Arc::clone(&inboxes[index]),
                stop: Arc::clone(&stop),
                epoch,
            };
            engine.spawn(format!("worker-{index}"), move || run(start))?;
        }
        let mut acceptor = Acceptor {
            listeners: listeners.into_iter().map(mio::net::TcpListener::from_std).collect(),
            poll,
            inboxes,
            limits: settings.worker.limits,
            counts,
            stop,
        };
        acceptor.register().map_err(system("the acceptor"))?;
        engine.spawn("acceptor".into(), move || acceptor.run())?;
        Ok(engine)
    }

    fn spawn(
        &mut self,
        name: String,
        body: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), StartError> {
        let label = name.clone();
        let body = move || {
            if let Err(error) = body() {
                error!(thread = label, %error, "a thread of the engine failed");
            }
        };
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(body)
            .map_err(|error| StartError::System { what: "a thread", error })?;
        self.threads.push(thread);
        Ok(())
    }

    /// The addresses that it listens on, with the ports that it really got.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> Network {
        self.shared.network()
    }

    /// A handle for watching it.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Stops: no connection is accepted any more, what is written still goes out, connections are
    /// closed, threads end.
    pub fn stop(self) {}
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for inbox in &self.inboxes {
            inbox.sleeper.wake();
        }
        if let Err(error) = self.acceptor_waker.wake() {
            error!(%error, "the acceptor could not be woken");
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                error!("a thread of the engine had panicked");
            }
        }
    }
}

fn poll_and_inbox() -> io::Result<(Poll, Arc<Inbox>)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKE)?;
    let inbox = Inbox {
        streams: ArrayQueue::new(INBOX),
        load: AtomicUsize::new(0),
        sleeper: crate::waker::Sleeper::new(waker),
    };
    Ok((poll, Arc::new(inbox)))
}

fn check(settings: &Settings, apps: &[Box<dyn DynApp>]) -> Result<(), StartError> {
    if settings.listen.is_empty() {
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
    let limits = &settings.worker.limits;
    for (name, limit) in [
        ("connections", limits.connections),
        ("switches_per_worker", limits.switches_per_worker),
        ("bytes_per_turn", limits.bytes_per_turn),
        ("high_water_bytes", limits.high_water_bytes),
    ] {
        if limit == 0 {
            return Err(StartError::ZeroLimit(name));
        }
    }
    Ok(())
}

/// The core of each worker, or `None` where it is not pinned.
fn cores(settings: &Settings) -> Result<Vec<Option<CoreId>>, StartError> {
    let usable = core_affinity::get_core_ids().unwrap_or_default();
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = if settings.workers == 0 { available } else { settings.workers };
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

/// A connection takes a file descriptor. The soft limit is often 1,024: it is raised as far as the
/// hard limit lets it, and what is missing is said.
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
