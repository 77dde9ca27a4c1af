//! From a configuration to the builder of its controller.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bellrock_apps::bandwidth::{Bandwidth, BandwidthSettings, MAX_RESERVATIONS, Reservations};
use bellrock_apps::global_learning::{InMutex, InTransactions};
use bellrock_apps::provisioning::{Circuits, Provisioning, ProvisioningSettings};
use bellrock_apps::quarantine::{BlockLists, Quarantine};
use bellrock_apps::static_entries::{Static, StaticEntries};
use bellrock_apps::{GlobalLearning, Hub, Learning, Routing};
use bellrock_book::EntryStore;
use bellrock_cluster::SharedStores;
use bellrock_config::apps::{AppChoice, PythonFile, StaticSettings};
use bellrock_config::{Config, Control, HttpConfig, StorePlace};
use bellrock_northbound::tokens::{self, GivenTokens};
use bellrock_northbound::{Certificate, HttpSettings, StatisticsSettings, TlsFiles};
use bellrock_tables::{Budget, SharedTable};
use tracing::info;

use super::block_list::BlockListFile;
use super::cluster;
use super::reload::Parts;
use super::switch_tls;
use super::upgraded_store::UpgradedStore;
use super::{NotRun, SharedTableKind};
use bellrock::settings::{StaticFileError, open_static_file};
use bellrock::{Controller, ControllerBuilder};
use bellrock_book::file::{self, FileStore, NamedValues};
use bellrock_operator::unix_time;

/// Adds the apps of a file of Python to the end of the chain.
pub(super) type AddPython<'a> =
    dyn FnMut(ControllerBuilder, &PythonFile) -> Result<ControllerBuilder, NotRun> + 'a;

/// The controller of a configuration, and the parts of it that take changes.
pub(super) fn builder(
    config: &Config,
    shared: SharedTableKind,
    add_python: &mut AddPython<'_>,
) -> Result<(ControllerBuilder, Parts), NotRun> {
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
    let tokens = GivenTokens::default();
    tokens.replace(tokens::of_settings(&config.http.token_hashes).map_err(NotRun::Tokens)?);
    if let Some(settings) = http(&config.http, certificate.clone(), tokens.clone()) {
        builder = builder.http(settings);
    }
    let cluster = cluster::settings(&config.cluster);
    let cluster = cluster.map_err(|error| NotRun::Cluster(error.to_string()))?;
    let shared_stores = cluster.as_ref().map(SharedStores::start).transpose();
    let shared_stores = shared_stores.map_err(|error| NotRun::Cluster(error.to_string()))?;
    let node_tls = cluster.as_ref().and_then(|settings| settings.tls.clone());
    let node = cluster.as_ref().map(|settings| settings.node.clone());
    if let Some(settings) = cluster {
        builder = builder.cluster(settings);
    }
    if let Some(stores) = &shared_stores {
        builder = builder.shared_stores(stores);
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
        tokens,
        switch_tls: builder.tls_handle(),
        node_tls,
        shared_config: shared_stores.as_ref().zip(node.clone()).map(|(stores, node)| {
            let store: Arc<dyn EntryStore> = Arc::new(stores.open(SHARED_CONFIG_NAME));
            (store, node)
        }),
    };
    for choice in &config.apps {
        let tables = tables.share(config.table_memory_of(choice.name()));
        if choice.has_tables() {
            builder = builder.app_tables(choice.name(), &tables);
        }
        builder = match choice {
            AppChoice::Hub => builder.boxed_app(Hub.boxed()),
            AppChoice::Learning(settings) => {
                builder.boxed_app(Learning::new(*settings, &tables).boxed())
            }
            AppChoice::GlobalLearning(settings) => match shared {
                SharedTableKind::LockFree => builder
                    .boxed_app(GlobalLearning::<SharedTable>::new(*settings, &tables).boxed()),
                SharedTableKind::Mutex => {
                    builder.boxed_app(GlobalLearning::<InMutex>::new(*settings, &tables).boxed())
                }
                SharedTableKind::Stm => builder
                    .boxed_app(GlobalLearning::<InTransactions>::new(*settings, &tables).boxed()),
            },
            AppChoice::Bandwidth(settings, place) => {
                let settings = settings.clone();
                let reservations = match shared_stores.as_ref().zip(node.clone()) {
                    Some((stores, node)) => {
                        info!("reservations are in the etcd of the cluster");
                        let store = Arc::new(stores.open(RESERVATIONS_SHARED_NAME));
                        Reservations::shared(settings, store, node)
                    }
                    None => stored_reservations(config, settings, place)?,
                };
                parts.reservations = Some(reservations.clone());
                builder.boxed_app(Bandwidth::new(&reservations).boxed()).reservations(&reservations)
            }
            AppChoice::Provisioning(settings, place) => {
                let settings = settings.clone();
                let circuits = match shared_stores.as_ref().zip(node.clone()) {
                    Some((stores, node)) => {
                        let store = Arc::new(stores.open(CIRCUITS_SHARED_NAME));
                        let circuits = Circuits::shared(settings, store, node)?;
                        // The nodes may share some.
                        circuits.hold();
                        circuits
                    }
                    None => stored_circuits(config, settings, place)?,
                };
                parts.circuits = Some(circuits.clone());
                builder.boxed_app(Provisioning::new(&circuits).boxed()).circuits(&circuits)
            }
            AppChoice::Quarantine(settings) => {
                let lists = match shared_stores.as_ref().zip(node.clone()) {
                    Some((stores, node)) => {
                        BlockLists::shared(Arc::new(stores.open(BLOCKS_SHARED_NAME)), node)
                    }
                    None => stored_blocks(config, &settings.store)?,
                };
                if let Some(file) = &settings.file {
                    parts.block_list = Some(BlockListFile::watch(file, lists.clone())?);
                }
                parts.block_lists = Some(lists.clone());
                builder.boxed_app(Quarantine::new(&lists).boxed()).block_lists(&lists)
            }
            AppChoice::Routing(settings) => builder.boxed_app(Routing::new(*settings).boxed()),
            AppChoice::Static(settings) => {
                let entries = match shared_stores.as_ref().zip(node.clone()) {
                    Some((stores, node)) => {
                        let store = Arc::new(UpgradedStore(stores.open(STATIC_SHARED_NAME)));
                        info!("static entries are in the etcd of the cluster");
                        StaticEntries::shared(store, node, unix_time)
                    }
                    None => stored_static_entries(config, settings)?,
                };
                entries.reserve_meters(reserved_meters(config));
                builder.boxed_app(Static::new(&entries).boxed()).static_entries(&entries)
            }
            AppChoice::Python(file) => add_python(builder, file)?,
        };
    }
    for (app, limits) in &config.allow {
        builder = builder.allow(app, limits.allowance.clone());
    }
    Ok((builder, parts))
}

/// Number of meters, from 1, that belong to the app `bandwidth`: no static entry can be one of
/// them.
pub(super) fn reserved_meters(config: &Config) -> u32 {
    let has_bandwidth = config.apps.iter().any(|app| matches!(app, AppChoice::Bandwidth(..)));
    if has_bandwidth { MAX_RESERVATIONS } else { 0 }
}

/// Returns the path of a file in the state directory, or elsewhere, that keeps what must outlast
/// the controller, if there is to be one. A node of a cluster has none.
fn store_path(config: &Config, place: &StorePlace, name: &str) -> Option<PathBuf> {
    if config.cluster.name.is_some() {
        return None;
    }
    let directory = env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    place.path(directory.as_deref(), name)
}

/// Opens such a file. `what`: what it keeps, for the log.
fn open_store(path: PathBuf, what: &str) -> Result<Arc<dyn EntryStore>, NotRun> {
    let values = read_orders(&path)?;
    // One of the entries is the number of commits.
    info!("{what}: {} in {}", values.len().saturating_sub(1), path.display());
    Ok(Arc::new(FileStore::create(path, values).map_err(NotRun::Orders)?))
}

/// Name of the file of static entries in the state directory.
const STATIC_STORE_NAME: &str = "static.json";

/// Name of the store of static entries in the etcd of a cluster.
const STATIC_SHARED_NAME: &str = "static";

/// Returns the path of the file of static entries, if there is to be one. A node of a cluster has
/// none.
#[must_use]
pub fn static_store_path(config: &Config, settings: &StaticSettings) -> Option<PathBuf> {
    store_path(config, &settings.store, STATIC_STORE_NAME)
}

/// Name of the file of reservations in the state directory.
const RESERVATIONS_STORE_NAME: &str = "reservations.json";

/// Name of the store of reservations in the etcd of a cluster.
const RESERVATIONS_SHARED_NAME: &str = "reservations";

/// Returns the path of the file of reservations, if there is to be one. A node of a cluster has
/// none.
#[must_use]
pub fn reservations_store_path(config: &Config, place: &StorePlace) -> Option<PathBuf> {
    store_path(config, place, RESERVATIONS_STORE_NAME)
}

/// The reservations of a controller that is alone, with those of an earlier run.
fn stored_reservations(
    config: &Config,
    settings: BandwidthSettings,
    place: &StorePlace,
) -> Result<Reservations, NotRun> {
    let Some(path) = reservations_store_path(config, place) else {
        info!("reservations end with the controller; the setting `store` of the app names a file");
        return Ok(Reservations::new(settings));
    };
    Ok(Reservations::stored(settings, open_store(path, "reservations")?))
}

/// Name of the file of the circuits' numbers and paths, in the state directory.
const CIRCUITS_STORE_NAME: &str = "circuits.json";

/// Name of the store of the configuration that nodes share, in the etcd of a cluster.
const SHARED_CONFIG_NAME: &str = "configuration";

/// Name of the store of circuits in the etcd of a cluster.
const CIRCUITS_SHARED_NAME: &str = "circuits";

/// Returns the path of the file of circuits, if there is to be one. A node of a cluster has none.
#[must_use]
pub fn circuits_store_path(config: &Config, place: &StorePlace) -> Option<PathBuf> {
    store_path(config, place, CIRCUITS_STORE_NAME)
}

/// The circuits of a controller that is alone, with the numbers and paths of an earlier run.
fn stored_circuits(
    config: &Config,
    settings: ProvisioningSettings,
    place: &StorePlace,
) -> Result<Circuits, NotRun> {
    let Some(path) = circuits_store_path(config, place) else {
        return Ok(Circuits::new(settings)?);
    };
    Ok(Circuits::stored(settings, open_store(path, "circuits")?)?)
}

/// Name of the file of what operators have blocked, in the state directory.
const BLOCKS_STORE_NAME: &str = "blocked.json";

/// Name of the store of what operators have blocked, in the etcd of a cluster.
const BLOCKS_SHARED_NAME: &str = "blocked";

/// Returns the path of the file of what operators have blocked, if there is to be one. A node of a
/// cluster has none.
#[must_use]
pub fn blocks_store_path(config: &Config, place: &StorePlace) -> Option<PathBuf> {
    store_path(config, place, BLOCKS_STORE_NAME)
}

/// The lists of a controller that is alone, with what was blocked in an earlier run.
fn stored_blocks(config: &Config, place: &StorePlace) -> Result<BlockLists, NotRun> {
    let Some(path) = blocks_store_path(config, place) else { return Ok(BlockLists::default()) };
    Ok(BlockLists::stored(open_store(path, "blocked hosts")?))
}

/// Reads a file of orders, of which there is no first version.
///
/// # Errors
/// [`NotRun::Orders`].
pub(super) fn read_orders(path: &Path) -> Result<NamedValues, NotRun> {
    let none = |_: &[u8]| Err(serde::de::Error::custom("there never was such a form"));
    file::read(path, none).map_err(NotRun::Orders)
}

/// The static entries of a controller that is alone, with those of an earlier run.
fn stored_static_entries(
    config: &Config,
    settings: &StaticSettings,
) -> Result<StaticEntries, StaticFileError> {
    let Some(path) = static_store_path(config, settings) else {
        info!(
            "static entries are kept in memory only; the setting `store` of the app names a file"
        );
        return Ok(StaticEntries::default());
    };
    info!("static entries: {}", path.display());
    open_static_file(path, reserved_meters(config))
}

/// The settings of the HTTP server, if there is to be one.
fn http(config: &HttpConfig, tls: Option<Certificate>, given: GivenTokens) -> Option<HttpSettings> {
    let HttpConfig { listen, ryu, tokens, poll_ports, poll_flows, .. } = config.clone();
    let statistics = StatisticsSettings { ports: poll_ports, flows: poll_flows };
    let is_served = !listen.is_empty() || !ryu.is_empty();
    let given_tokens = Some(given);
    is_served.then_some(HttpSettings { listen, ryu, tls, tokens, given_tokens, statistics })
}

/// The files of the HTTP server's certificate, if the server runs and has one.
pub(super) fn tls_files(config: &HttpConfig) -> Option<TlsFiles> {
    let HttpConfig { listen, certificate, key, .. } = config;
    let files = certificate.clone().zip(key.clone()).filter(|_| !listen.is_empty());
    files.map(|(certificate, key)| TlsFiles { certificate, key })
}

#[cfg(test)]
mod tests {
    use bellrock_config::apps::KNOWN;

    use super::*;

    #[test]
    fn an_app_forwards_and_needs_what_the_check_of_its_settings_takes_for_granted() {
        assert!(KNOWN.iter().map(|known| known.name).eq(bellrock_apps::NAMES));
        for known in KNOWN {
            let choice = (known.choice)();
            let config = Config { apps: vec![choice.clone()], ..Config::default() };
            let (builder, _) =
                builder(&config, SharedTableKind::default(), &mut |builder, _| Ok(builder))
                    .unwrap();
            let [role] = &builder.chain_roles()[..] else { panic!("one app") };
            assert_eq!(role.name, known.name);
            assert_eq!((role.forwards, role.needs), (choice.forwards(), choice.needs()));
        }
    }
}
