//! What must outlast a controller: where it is stored, and what an earlier run has left there.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bellrock::settings::{StaticFileError, open_static_file};
use bellrock_apps::bandwidth::{BandwidthSettings, MAX_RESERVATIONS, Reservations};
use bellrock_apps::provisioning::{Circuits, ProvisioningSettings};
use bellrock_apps::quarantine::BlockLists;
use bellrock_apps::static_entries::StaticEntries;
use bellrock_book::EntryStore;
use bellrock_book::file::{self, FileStore, NamedValues};
use bellrock_config::apps::{AppChoice, StaticSettings};
use bellrock_config::{Config, StorePlace};
use tracing::info;

use super::not_run::NotRun;

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
pub(super) const STATIC_SHARED_NAME: &str = "static";

/// Returns the path of the file of static entries, if there is to be one. A node of a cluster has
/// none.
#[must_use]
pub fn static_store_path(config: &Config, settings: &StaticSettings) -> Option<PathBuf> {
    store_path(config, &settings.store, STATIC_STORE_NAME)
}

/// Name of the file of reservations in the state directory.
const RESERVATIONS_STORE_NAME: &str = "reservations.json";

/// Name of the store of reservations in the etcd of a cluster.
pub(super) const RESERVATIONS_SHARED_NAME: &str = "reservations";

/// Returns the path of the file of reservations, if there is to be one. A node of a cluster has
/// none.
#[must_use]
pub fn reservations_store_path(config: &Config, place: &StorePlace) -> Option<PathBuf> {
    store_path(config, place, RESERVATIONS_STORE_NAME)
}

/// The reservations of a controller that is alone, with those of an earlier run.
pub(super) fn stored_reservations(
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
pub(super) const SHARED_CONFIG_NAME: &str = "configuration";

/// Name of the store of circuits in the etcd of a cluster.
pub(super) const CIRCUITS_SHARED_NAME: &str = "circuits";

/// Returns the path of the file of circuits, if there is to be one. A node of a cluster has none.
#[must_use]
pub fn circuits_store_path(config: &Config, place: &StorePlace) -> Option<PathBuf> {
    store_path(config, place, CIRCUITS_STORE_NAME)
}

/// The circuits of a controller that is alone, with the numbers and paths of an earlier run.
pub(super) fn stored_circuits(
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
pub(super) const BLOCKS_SHARED_NAME: &str = "blocked";

/// Returns the path of the file of what operators have blocked, if there is to be one. A node of a
/// cluster has none.
#[must_use]
pub fn blocks_store_path(config: &Config, place: &StorePlace) -> Option<PathBuf> {
    store_path(config, place, BLOCKS_STORE_NAME)
}

/// The lists of a controller that is alone, with what was blocked in an earlier run.
pub(super) fn stored_blocks(config: &Config, place: &StorePlace) -> Result<BlockLists, NotRun> {
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
pub(super) fn stored_static_entries(
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
