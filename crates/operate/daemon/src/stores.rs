//! What must outlast a controller: where it is stored, and what an earlier run has left there.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bellrock_book::EntryStore;
use bellrock_book::file::{self, FileStore, NamedValues};
use bellrock_cluster::SharedStores;
use bellrock_config::Config;
use bellrock_config::apps::AppChoice;
use tracing::info;

use super::not_run::NotRun;

/// Name of the store of the configuration that nodes share, in the etcd of a cluster.
pub(super) const SHARED_CONFIG_NAME: &str = "configuration";

/// Returns the path of the file that keeps what an app stores, if there is to be one. A node of a
/// cluster has none.
#[must_use]
pub fn store_path(config: &Config, app: &AppChoice) -> Option<PathBuf> {
    if config.cluster.name.is_some() {
        return None;
    }
    let directory = env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    app.store()?.path(directory.as_deref(), app.known()?.stored?.file)
}

/// Where an app keeps what must outlast the controller.
pub(super) enum Keeping {
    /// Nowhere.
    Memory,
    /// In a file of this controller.
    File(PathBuf),
    /// In a store that the nodes of a cluster share. This one has this name.
    Shared(Arc<dyn EntryStore>, String),
}

impl Keeping {
    /// Where this app keeps it. `cluster`: the stores of a cluster, and the name of this node.
    pub(super) fn of(
        config: &Config,
        app: &AppChoice,
        cluster: Option<(&SharedStores, &str)>,
    ) -> Self {
        let Some(stored) = app.known().and_then(|known| known.stored) else {
            return Keeping::Memory;
        };
        let what = stored.what;
        if let Some((stores, node)) = cluster {
            info!("{what} are kept in the etcd of the cluster");
            return Keeping::Shared(Arc::new(stores.open(stored.shared)), node.to_owned());
        }
        match store_path(config, app) {
            Some(path) => {
                info!("{what} are kept in {}", path.display());
                Keeping::File(path)
            }
            None => {
                let name = app.name();
                info!(
                    "{what} are kept in memory only; the setting `store` of the app {name} names a \
                     file"
                );
                Keeping::Memory
            }
        }
    }
}

/// Opens a file of orders.
///
/// # Errors
/// [`NotRun::Orders`].
pub(super) fn open_orders(path: PathBuf) -> Result<Arc<dyn EntryStore>, NotRun> {
    let values = read_orders(&path)?;
    // One of the entries is the number of commits.
    info!("{}: entries: {}", path.display(), values.len().saturating_sub(1));
    Ok(Arc::new(FileStore::create(path, values).map_err(NotRun::Orders)?))
}

/// Reads a file of orders, of which there is no first version.
///
/// # Errors
/// [`NotRun::Orders`].
pub(super) fn read_orders(path: &Path) -> Result<NamedValues, NotRun> {
    let none = |_: &[u8]| Err(serde::de::Error::custom("there never was such a form"));
    file::read(path, none).map_err(NotRun::Orders)
}
