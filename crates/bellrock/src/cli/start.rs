//! Runs a controller from its configuration, until a signal ends it.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bellrock_api::DynApp;
use bellrock_apps::bandwidth::{Bandwidth, BandwidthSettings, Reservations};
use bellrock_apps::global_learning::{InMutex, InTransactions};
use bellrock_apps::provisioning::{Circuits, Conflict, Provisioning, ProvisioningSettings};
use bellrock_apps::quarantine::{BlockLists, Quarantine};
use bellrock_apps::{GlobalLearning, Hub, Learning, LearningSettings, Routing};
use bellrock_config::apps::{AppChoice, QuarantineSettings, TableKind};
use bellrock_config::files::KeyFileError;
use bellrock_config::{Config, Control};
use bellrock_engine::{Engine, StartError};
use bellrock_services::chain::chain;
use bellrock_services::discovery::NoRandomness;
use bellrock_tables::{Budget, SharedTable};
use tracing::info;

use super::answers::Answers;
use super::control::{Server, ServerError, default_path};
use super::operate::block_list::{BlockListFile, BlockListFileError};
use super::operate::kept::{Kept, log_changes};
use super::operate::{self, Commands};
use crate::event_log::log_events;
use crate::signals::Signals;

/// Why the controller did not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("{0}")]
    Start(StartError),
    #[error("{error}; choose another port, such as --listen {other}")]
    PortTaken { error: StartError, other: SocketAddr },
    #[error(transparent)]
    Control(#[from] ServerError),
    #[error(transparent)]
    Circuits(#[from] Conflict),
    #[error(transparent)]
    BlockList(#[from] BlockListFileError),
    #[error(transparent)]
    Services(#[from] NoRandomness),
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    #[error("there is no place for the control socket: {0}; choose one with --control")]
    ControlPlace(std::io::Error),
    #[error("signals cannot be handled: {0}")]
    Signals(std::io::Error),
    #[error("the controller has failed; its log says why")]
    Failed,
}

impl RunError {
    fn of_start(error: StartError) -> Self {
        match &error {
            StartError::Listen { address, error: why } if why.kind() == ErrorKind::AddrInUse => {
                let port = address.port().checked_add(1).unwrap_or(FREE_PORT);
                RunError::PortTaken { other: SocketAddr::new(address.ip(), port), error }
            }
            _ => RunError::Start(error),
        }
    }
}

/// Port number that lets the system choose a port.
const FREE_PORT: u16 = 0;

/// Runs the controller until SIGTERM, SIGINT or SIGHUP.
pub(super) fn run(config: &Config) -> Result<(), RunError> {
    // Before any thread starts, and before anything that a signal would leave half done.
    let signals = Signals::watch().map_err(RunError::Signals)?;
    let tables = Budget::new(config.table_memory_bytes);
    let parts = Chain::of(config, &tables)?;
    let chain = chain(parts.apps, &config.services.settings()?)?;
    let engine = Engine::start(&config.engine(), chain).map_err(RunError::of_start)?;
    log_events(&engine.monitor().network());
    log_changes(&engine.monitor().network(), parts.kept);
    let control = control(config, &engine, tables, parts.commands)?;
    announce(config, &engine);
    let signal = signals.wait(&engine).ok_or(RunError::Failed)?;
    info!("{signal}: writing what waits, closing connections (a second signal ends at once)");
    // First, so that no client asks a half-stopped engine.
    drop((control, parts.block_list));
    engine.stop();
    info!("stopped");
    Ok(())
}

/// The apps, with their commands and the file of the block list.
#[derive(Default)]
struct Chain {
    apps: Vec<Box<dyn DynApp>>,
    commands: Commands,
    /// Circuits and reservations whose changes are logged.
    kept: Vec<Kept>,
    /// Watched as long as the controller runs.
    block_list: Option<BlockListFile>,
}

impl Chain {
    fn of(config: &Config, tables: &Budget) -> Result<Self, RunError> {
        let mut chain = Chain::default();
        for choice in &config.apps {
            let app: Box<dyn DynApp> = match choice {
                AppChoice::Hub => Box::new(Hub),
                AppChoice::Learning(settings) => Box::new(Learning::new(*settings, tables)),
                AppChoice::GlobalLearning(settings, table) => {
                    global_learning(*settings, *table, tables)
                }
                AppChoice::Bandwidth(settings) => Box::new(chain.bandwidth(settings)),
                AppChoice::Provisioning(settings) => Box::new(chain.provisioning(settings)?),
                AppChoice::Quarantine(settings) => Box::new(chain.quarantine(settings)?),
                AppChoice::Routing(settings) => Box::new(Routing::new(*settings)),
            };
            chain.apps.push(app);
        }
        Ok(chain)
    }

    fn bandwidth(&mut self, settings: &BandwidthSettings) -> Bandwidth {
        let book = Reservations::new(settings.clone());
        let app = Bandwidth::new(&book);
        let (reserve, release, kept) = (book.clone(), book.clone(), book.clone());
        self.kept.push(Box::new(move || operate::bandwidth::kept(&kept)));
        self.commands.add("reserve", move |network, words| {
            operate::bandwidth::reserve(&reserve, network, words)
        });
        self.commands.add("release", move |_, words| operate::bandwidth::release(&release, words));
        self.commands.add("reservations", move |_, words| operate::bandwidth::list(&book, words));
        app
    }

    fn provisioning(&mut self, settings: &ProvisioningSettings) -> Result<Provisioning, RunError> {
        let circuits = Circuits::new(settings.clone())?;
        let app = Provisioning::new(&circuits);
        let kept = circuits.clone();
        self.kept.push(Box::new(move || operate::provisioning::kept(&kept)));
        self.commands
            .add("circuits", move |_, words| operate::provisioning::list(&circuits, words));
        Ok(app)
    }

    fn quarantine(&mut self, settings: &QuarantineSettings) -> Result<Quarantine, RunError> {
        let lists = BlockLists::default();
        if let Some(file) = &settings.file {
            self.block_list = Some(BlockListFile::watch(file, lists.clone())?);
        }
        let app = Quarantine::new(&lists);
        self.commands.add("quarantine", move |_, words| operate::quarantine::call(&lists, words));
        Ok(app)
    }
}

fn global_learning(
    settings: LearningSettings,
    table: TableKind,
    tables: &Budget,
) -> Box<dyn DynApp> {
    match table {
        TableKind::LockFree => Box::new(GlobalLearning::<SharedTable>::new(settings, tables)),
        TableKind::Mutex => Box::new(GlobalLearning::<InMutex>::new(settings, tables)),
        TableKind::Stm => Box::new(GlobalLearning::<InTransactions>::new(settings, tables)),
    }
}

fn control(
    config: &Config,
    engine: &Engine,
    tables: Budget,
    commands: Commands,
) -> Result<Option<Server>, RunError> {
    let path: PathBuf = match &config.control {
        Control::None => return Ok(None),
        Control::Path(path) => path.clone(),
        Control::Auto => default_path().map_err(RunError::ControlPlace)?,
    };
    let answers = Arc::new(Answers {
        monitor: engine.monitor(),
        network: engine.monitor().network(),
        listen: engine.addresses().to_vec(),
        apps: config.apps.iter().map(|app| app.name().to_owned()).collect(),
        tables: Some(tables),
        commands,
    });
    let server = Server::start(&path, move |question| answers.to(question))?;
    info!("control socket: {}", path.display());
    Ok(Some(server))
}

/// Logs which apps run, where switches can connect, and what to do next.
fn announce(config: &Config, engine: &Engine) {
    let apps: Vec<_> = config.apps.iter().map(AppChoice::name).collect();
    let version = env!("CARGO_PKG_VERSION");
    info!("bellrock {version} runs the apps: {} (--app chooses others)", apps.join(", "));
    let versions = config.session.versions.as_slice().iter().map(ToString::to_string);
    let versions = versions.collect::<Vec<_>>().join(" and ");
    for address in engine.addresses() {
        info!("listening on {address} for switches that speak OpenFlow {versions}");
    }
    if engine.addresses().iter().all(|address| address.ip().is_loopback()) {
        info!("only switches on this machine can connect; for others: --listen 0.0.0.0:6653");
    }
    if let Some(address) = engine.addresses().first() {
        let host = match address.ip() {
            ip if ip.is_unspecified() => "ADDRESS-OF-THIS-MACHINE".to_owned(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
            ip => ip.to_string(),
        };
        let port = address.port();
        info!("to attach a bridge of Open vSwitch: ovs-vsctl set-controller br0 tcp:{host}:{port}");
        info!("to try it without switches: bellrock emulate --controller {host}:{port}");
    }
    if config.control != Control::None {
        info!(
            "to ask it: bellrock status, switches, hosts, flows, events (bellrock --help lists all)"
        );
    }
}

#[cfg(test)]
mod tests {
    use bellrock_config::apps::KNOWN;

    use super::*;

    #[test]
    fn an_app_forwards_and_needs_what_the_check_of_its_settings_takes_for_granted() {
        for known in KNOWN {
            let choice = (known.choice)();
            let config = Config { apps: vec![choice.clone()], ..Config::default() };
            let chain = Chain::of(&config, &Budget::new(1 << 20)).unwrap();
            let [app] = &chain.apps[..] else { panic!("one app") };
            assert_eq!(app.name(), known.name);
            assert_eq!((app.forwards(), app.needs()), (choice.forwards(), choice.needs()));
        }
    }
}
