//! Runs a controller from its configuration, until a signal ends it.

use std::env;
use std::io::{self, ErrorKind, IsTerminal, stderr};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bellrock::http::{Certificate, HttpSettings, StatisticsSettings, TlsError, TlsFiles};
use bellrock::{
    Controller, ControllerBuilder, RunError, Signal, Signals, StartError, StaticStore,
    StaticStoreError,
};
use bellrock_apps::bandwidth::{Bandwidth, MAX_RESERVATIONS, Reservations};
use bellrock_apps::global_learning::{InMutex, InTransactions};
use bellrock_apps::provisioning::{Circuits, Conflict, Provisioning};
use bellrock_apps::quarantine::{BlockLists, Quarantine};
use bellrock_apps::static_entries::{Static, StaticEntries};
use bellrock_apps::{GlobalLearning, Hub, Learning, Routing};
use bellrock_config::apps::{AppChoice, StaticSettings};
use bellrock_config::files::KeyFileError;
use bellrock_config::{Config, Control, HttpConfig, Sources};
use bellrock_tables::{Budget, SharedTable};
use tracing::info;

use super::block_list::{BlockListFile, BlockListFileError};
use super::log::LogLevel;
use super::reload::{Parts, Reloader};
use super::service;
use super::switch_tls::{self, SwitchTlsError};

/// Why the controller did not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRun {
    #[error(transparent)]
    Run(RunError),
    #[error("{error}; choose another port, such as --listen {other}")]
    PortTaken { error: Box<RunError>, other: SocketAddr },
    #[error(transparent)]
    Circuits(#[from] Conflict),
    #[error(transparent)]
    BlockList(#[from] BlockListFileError),
    #[error(transparent)]
    StaticStore(#[from] StaticStoreError),
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    #[error(transparent)]
    Certificate(#[from] TlsError),
    #[error(transparent)]
    SwitchTls(#[from] SwitchTlsError),
    #[error("the configuration file cannot be watched: {0}")]
    Watch(io::Error),
}

impl From<RunError> for NotRun {
    fn from(error: RunError) -> Self {
        match &error {
            RunError::Start(StartError::Listen { address, error: why })
                if why.kind() == ErrorKind::AddrInUse =>
            {
                let port = address.port().checked_add(1).unwrap_or(FREE_PORT);
                NotRun::PortTaken {
                    other: SocketAddr::new(address.ip(), port),
                    error: Box::new(error),
                }
            }
            _ => NotRun::Run(error),
        }
    }
}

/// Port number that lets the system choose a port.
const FREE_PORT: u16 = 0;

/// Implementation of the table that all switches of `global_learning` share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SharedTableKind {
    /// Without locks.
    #[default]
    LockFree,
    /// With a mutex.
    Mutex,
    /// In transactions.
    Stm,
}

/// How to run, beside the configuration.
pub(super) struct RunOptions {
    pub(super) shared_table: SharedTableKind,
    /// Where the configuration came from, to read it again.
    pub(super) sources: Sources,
    /// Whether to read it again when its file changes.
    pub(super) watch_config: bool,
    pub(super) log_level: LogLevel,
}

/// Runs the controller until SIGTERM or SIGINT.
///
/// SIGHUP reloads the configuration of a service. It ends a controller without a file, or at a
/// terminal: the terminal has been closed then.
pub(super) fn run(config: Config, options: RunOptions) -> Result<(), NotRun> {
    let RunOptions { shared_table, sources, watch_config, log_level } = options;
    // Before any thread starts, and before anything that a signal would leave half done.
    let reloads = sources.file.is_some() && !stderr().is_terminal();
    let signals = if reloads { Signals::watch_with_reload() } else { Signals::watch() };
    let mut signals = signals.map_err(RunError::Signals)?;
    let (builder, parts) = builder(&config, shared_table)?;
    let reloader = Reloader::new(sources, config.clone(), log_level, parts);
    let by_operator = Arc::clone(&reloader);
    let controller = builder.reload(Arc::new(move |order| by_operator.reload(order))).start()?;
    if watch_config {
        reloader.watch_file().map_err(NotRun::Watch)?;
    }
    announce(&config, &controller);
    service::ready(&controller);
    let signal = loop {
        match signals.wait(&controller).ok_or(RunError::Failed)? {
            Signal::Stop(signal) => break signal,
            Signal::Reload => reloader.reload_and_log(),
        }
    };
    service::stopping();
    info!("{signal}: writing what waits, closing connections (a second signal ends at once)");
    controller.stop();
    drop(reloader);
    info!("stopped");
    Ok(())
}

/// The controller of a configuration, and the parts of it that take changes.
fn builder(config: &Config, shared: SharedTableKind) -> Result<(ControllerBuilder, Parts), NotRun> {
    let tables = Budget::new(config.table_memory_bytes);
    let services = config.services.settings()?;
    let mut builder =
        Controller::builder().engine(config.engine()).services(services).tables(&tables);
    builder = builder.names(config.names.clone());
    builder = match &config.control {
        Control::None => builder,
        Control::Auto => builder.control_socket(),
        Control::Path(path) => builder.control_socket_at(path),
    };
    let certificate = tls_files(&config.http).map(|files| Certificate::read(&files)).transpose()?;
    if let Some(settings) = http(&config.http, certificate.clone()) {
        builder = builder.http(settings);
    }
    if let Some(tls) = switch_tls::settings(&config.tls)? {
        builder = builder.tls(tls);
    }
    let mut parts = Parts {
        names: builder.names_handle(),
        limits: builder.limits_handle(),
        circuits: None,
        reservations: None,
        block_lists: None,
        block_list: None,
        certificate,
        switch_tls: builder.tls_handle(),
    };
    for choice in &config.apps {
        let tables = tables.share(config.table_memory_of(choice.name()));
        if choice.has_tables() {
            builder = builder.app_tables(choice.name(), &tables);
        }
        builder = match choice {
            AppChoice::Hub => builder.app(Hub),
            AppChoice::Learning(settings) => builder.app(Learning::new(*settings, &tables)),
            AppChoice::GlobalLearning(settings) => match shared {
                SharedTableKind::LockFree => {
                    builder.app(GlobalLearning::<SharedTable>::new(*settings, &tables))
                }
                SharedTableKind::Mutex => {
                    builder.app(GlobalLearning::<InMutex>::new(*settings, &tables))
                }
                SharedTableKind::Stm => {
                    builder.app(GlobalLearning::<InTransactions>::new(*settings, &tables))
                }
            },
            AppChoice::Bandwidth(settings) => {
                let reservations = Reservations::new(settings.clone());
                parts.reservations = Some(reservations.clone());
                builder.app(Bandwidth::new(&reservations)).reservations(&reservations)
            }
            AppChoice::Provisioning(settings) => {
                let circuits = Circuits::new(settings.clone())?;
                parts.circuits = Some(circuits.clone());
                builder.app(Provisioning::new(&circuits)).circuits(&circuits)
            }
            AppChoice::Quarantine(settings) => {
                let lists = BlockLists::default();
                if let Some(file) = &settings.file {
                    parts.block_list = Some(BlockListFile::watch(file, lists.clone())?);
                }
                parts.block_lists = Some(lists.clone());
                builder.app(Quarantine::new(&lists)).block_lists(&lists)
            }
            AppChoice::Routing(settings) => builder.app(Routing::new(*settings)),
            AppChoice::Static(settings) => {
                let entries = static_entries(config);
                let store = static_store(settings, &entries)?;
                builder.app(Static::new(&entries)).static_entries(&entries, store)
            }
        };
    }
    for (app, limits) in &config.allow {
        builder = builder.allow(app, limits.allowance.clone());
    }
    Ok((builder, parts))
}

/// The static entries, whose meters are none of the app `bandwidth`.
pub(super) fn static_entries(config: &Config) -> StaticEntries {
    let entries = StaticEntries::default();
    if config.apps.iter().any(|app| matches!(app, AppChoice::Bandwidth(_))) {
        entries.reserve_meters(MAX_RESERVATIONS);
    }
    entries
}

/// Name of the file of static entries in the state directory.
const STATIC_STORE_NAME: &str = "static.json";

/// The path of the file of static entries, if there is to be one.
pub(super) fn static_store_path(settings: &StaticSettings) -> Option<PathBuf> {
    let directory = env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    settings.store.path(directory.as_deref(), STATIC_STORE_NAME)
}

/// The file of the static entries, if there is to be one.
fn static_store(
    settings: &StaticSettings,
    entries: &StaticEntries,
) -> Result<Option<StaticStore>, StaticStoreError> {
    let Some(path) = static_store_path(settings) else {
        info!(
            "static entries are kept in memory only; the setting `store` of the app names a file"
        );
        return Ok(None);
    };
    let store = StaticStore::open(path, entries)?;
    info!("static entries: {}", store.path().display());
    Ok(Some(store))
}

/// The settings of the HTTP server, if there is to be one.
fn http(config: &HttpConfig, tls: Option<Certificate>) -> Option<HttpSettings> {
    let HttpConfig { listen, ryu, tokens, poll_ports, poll_flows, .. } = config.clone();
    let statistics = StatisticsSettings { ports: poll_ports, flows: poll_flows };
    let is_served = !listen.is_empty() || !ryu.is_empty();
    is_served.then_some(HttpSettings { listen, ryu, tls, tokens, statistics })
}

/// The files of the HTTP server's certificate, if the server runs and has one.
pub(super) fn tls_files(config: &HttpConfig) -> Option<TlsFiles> {
    let HttpConfig { listen, certificate, key, .. } = config;
    let files = certificate.clone().zip(key.clone()).filter(|_| !listen.is_empty());
    files.map(|(certificate, key)| TlsFiles { certificate, key })
}

/// Logs which apps run, and what to do next.
fn announce(config: &Config, controller: &Controller) {
    let apps: Vec<_> = config.apps.iter().map(AppChoice::name).collect();
    let version = env!("CARGO_PKG_VERSION");
    info!("bellrock {version} runs the apps: {} (--app chooses others)", apps.join(", "));
    let plain = controller.plain_addresses().first();
    let is_plain = plain.is_some();
    if controller.addresses().iter().all(|address| address.ip().is_loopback()) {
        let prefix = if is_plain { "" } else { "tls:" };
        info!(
            "only switches on this machine can connect; for others: --listen {prefix}0.0.0.0:6653"
        );
    }
    if let Some(address) = plain.or(controller.addresses().first()) {
        let host = match address.ip() {
            ip if ip.is_unspecified() => "ADDRESS-OF-THIS-MACHINE".to_owned(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
            ip => ip.to_string(),
        };
        let port = address.port();
        let (scheme, options) = match is_plain {
            true => ("tcp", ""),
            false => ("ssl", " --tls-certificate FILE --tls-key FILE --tls-ca FILE"),
        };
        info!(
            "to attach a bridge of Open vSwitch: ovs-vsctl set-controller br0 {scheme}:{host}:{port}"
        );
        info!("to try it without switches: bellrock emulate --controller {host}:{port}{options}");
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
            let (builder, _) = builder(&config, SharedTableKind::default()).unwrap();
            let [role] = &builder.chain_roles()[..] else { panic!("one app") };
            assert_eq!(role.name, known.name);
            assert_eq!((role.forwards, role.needs), (choice.forwards(), choice.needs()));
        }
    }
}
