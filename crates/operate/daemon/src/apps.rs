//! The apps of a configuration: how each is made, and which of them take changes and orders.
//!
//! What is the same for all is elsewhere: the settings in [`bellrock_config::apps`], where an app
//! stores in `stores`, when a change is put in force in `reload`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bellrock_api::runtime::DynApp;
use bellrock_apps::bandwidth::{Bandwidth, MAX_RESERVATIONS, Reservations};
use bellrock_apps::orders::AppOrders;
use bellrock_apps::provisioning::{Circuits, Provisioning};
use bellrock_apps::quarantine::{BlockList, BlockLists, Quarantine};
use bellrock_apps::static_entries::{Static, StaticEntries};
use bellrock_apps::{GlobalLearning, Hub, Learning, Routing};
use bellrock_config::Config;
use bellrock_config::apps::{AppChoice, read_block_list};
use bellrock_operator::{open_static_file, unix_time};
use bellrock_tables::Budget;
use tracing::warn;

use super::followed_file::{FollowedFile, Follower};
use super::not_run::NotRun;
use super::stores::{Keeping, open_orders};
use super::upgraded_store::UpgradedStore;

/// An app of the chain.
pub(super) struct MadeApp {
    pub(super) app: Box<dyn DynApp>,
    /// Takes orders, if it does.
    pub(super) orders: Option<Arc<dyn AppOrders>>,
    /// Takes changes of its settings, if it does.
    pub(super) live: Option<Box<dyn LiveApp>>,
    /// The entries of the app `static`.
    pub(super) static_entries: Option<StaticEntries>,
}

/// An app that takes changes of its settings while it runs.
pub(super) trait LiveApp: Send + Sync {
    /// Prepares the change to these settings, and changes nothing yet.
    ///
    /// # Errors
    /// What is wrong with them.
    fn prepare(&self, settings: &AppChoice) -> Result<PutInForce, String>;

    /// Is called when what the nodes of a cluster share is in force here.
    fn shared_is_known(&self) {}
}

/// Puts a change in force that is prepared.
pub(super) type PutInForce = Box<dyn FnOnce()>;

/// Makes an app.
///
/// # Errors
/// [`NotRun`]: what it has stored cannot be read, or its settings are impossible; or Python has to
/// make it.
pub(super) fn make(
    config: &Config,
    choice: &AppChoice,
    keeping: Keeping,
    tables: &Budget,
) -> Result<MadeApp, NotRun> {
    Ok(match choice {
        AppChoice::Hub => Hub.boxed().into(),
        AppChoice::Learning(settings) => Learning::new(*settings, tables).boxed().into(),
        AppChoice::GlobalLearning(settings) => {
            <GlobalLearning>::new(*settings, tables).boxed().into()
        }
        AppChoice::Routing(settings) => Routing::new(*settings).boxed().into(),
        AppChoice::Bandwidth(settings, _) => {
            let settings = settings.clone();
            let reservations = match keeping {
                Keeping::Memory => Reservations::new(settings),
                Keeping::File(path) => Reservations::stored(settings, open_orders(path)?),
                Keeping::Shared(store, node) => Reservations::shared(settings, store, node),
            };
            let app = Bandwidth::new(&reservations).boxed();
            MadeApp::of(app, reservations.clone(), reservations)
        }
        AppChoice::Provisioning(settings, _) => {
            let settings = settings.clone();
            let circuits = match keeping {
                Keeping::Memory => Circuits::new(settings)?,
                Keeping::File(path) => Circuits::stored(settings, open_orders(path)?)?,
                Keeping::Shared(store, node) => {
                    let circuits = Circuits::shared(settings, store, node)?;
                    // The nodes may share some.
                    circuits.hold();
                    circuits
                }
            };
            MadeApp::of(Provisioning::new(&circuits).boxed(), circuits.clone(), circuits)
        }
        AppChoice::Quarantine(settings) => {
            let lists = match keeping {
                Keeping::Memory => BlockLists::default(),
                Keeping::File(path) => BlockLists::stored(open_orders(path)?),
                Keeping::Shared(store, node) => BlockLists::shared(store, node),
            };
            let file = settings.file.as_deref();
            let file = file.map(|path| FollowedFile::open(path, lists.clone())).transpose()?;
            let file = Arc::new(Mutex::new(file.map(FollowedFile::follow)));
            let live = FollowedBlocks { lists: lists.clone(), file };
            MadeApp::of(Quarantine::new(&lists).boxed(), lists, live)
        }
        AppChoice::Static(_) => {
            let reserved = reserved_meters(config);
            let entries = match keeping {
                Keeping::Memory => StaticEntries::default(),
                Keeping::File(path) => open_static_file(path, reserved)?,
                Keeping::Shared(store, node) => {
                    StaticEntries::shared(Arc::new(UpgradedStore(store)), node, unix_time)
                }
            };
            entries.reserve_meters(reserved);
            let app = MadeApp::from(Static::new(&entries).boxed());
            MadeApp { static_entries: Some(entries), ..app }
        }
        AppChoice::Python(file) => {
            return Err(NotRun::Python(file.path().display().to_string()));
        }
    })
}

/// Number of meters, from 1, that belong to the app `bandwidth`: no static entry can be one of
/// them.
pub(super) fn reserved_meters(config: &Config) -> u32 {
    let has_bandwidth = config.apps.iter().any(|app| matches!(app, AppChoice::Bandwidth(..)));
    if has_bandwidth { MAX_RESERVATIONS } else { 0 }
}

impl From<Box<dyn DynApp>> for MadeApp {
    fn from(app: Box<dyn DynApp>) -> Self {
        MadeApp { app, orders: None, live: None, static_entries: None }
    }
}

impl MadeApp {
    fn of(
        app: Box<dyn DynApp>,
        orders: impl AppOrders + 'static,
        live: impl LiveApp + 'static,
    ) -> Self {
        MadeApp { orders: Some(Arc::new(orders)), live: Some(Box::new(live)), ..app.into() }
    }
}

impl LiveApp for Reservations {
    fn prepare(&self, settings: &AppChoice) -> Result<PutInForce, String> {
        let AppChoice::Bandwidth(settings, _) = settings else { return Ok(Box::new(|| {})) };
        let (reservations, settings) = (self.clone(), settings.clone());
        Ok(Box::new(move || reservations.change(settings)))
    }
}

impl LiveApp for Circuits {
    fn prepare(&self, settings: &AppChoice) -> Result<PutInForce, String> {
        let AppChoice::Provisioning(settings, _) = settings else { return Ok(Box::new(|| {})) };
        settings.check().map_err(|error| error.to_string())?;
        let (circuits, settings) = (self.clone(), settings.clone());
        Ok(Box::new(move || {
            if let Err(error) = circuits.change(settings.circuits) {
                // They were checked.
                warn!("circuits: {error}");
            }
        }))
    }

    fn shared_is_known(&self) {
        self.release();
    }
}

/// The blocked hosts, and the file of the block list, which is followed.
struct FollowedBlocks {
    lists: BlockLists,
    file: Arc<Mutex<Option<FollowedFile<BlockLists>>>>,
}

impl LiveApp for FollowedBlocks {
    fn prepare(&self, settings: &AppChoice) -> Result<PutInForce, String> {
        let AppChoice::Quarantine(settings) = settings else { return Ok(Box::new(|| {})) };
        let (lists, file) = (self.lists.clone(), Arc::clone(&self.file));
        let next = settings.file.as_deref();
        let next = next.map(|path| FollowedFile::open(path, lists.clone())).transpose();
        let next = next.map_err(|error| error.to_string())?;
        Ok(Box::new(move || {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            // The earlier file is not followed any more.
            *file = None;
            match next {
                Some(next) => *file = Some(next.follow()),
                None => lists.set_file(BlockList::default()),
            }
        }))
    }
}

impl Follower for BlockLists {
    type Content = BlockList;

    fn read(&self, path: &Path) -> Result<BlockList, String> {
        read_block_list(path).map_err(|error| error.to_string())
    }

    fn check(&self, list: &BlockList) -> Result<(), String> {
        self.check_file(list).map_err(|error| error.to_string())
    }

    fn put(&self, list: BlockList) -> Result<String, String> {
        let blocked = list.len();
        self.set_file(list);
        match self.file_problem() {
            None => Ok(format!("blocked hosts and prefixes: {blocked}")),
            Some(problem) => Err(problem),
        }
    }

    fn reject(&self, why: String) {
        self.reject_file(why);
    }
}
