//! Apps that run once in a cluster: which controller is their leader.

use std::mem;
#[cfg(feature = "cluster")]
use std::sync::Arc;

#[cfg(feature = "cluster")]
use bellrock_api::Scope;
use bellrock_book::leadership::Leadership;
#[cfg(feature = "cluster")]
use bellrock_cluster::SharedStores;

use crate::controller::ControllerBuilder;
use crate::run_error::Result;

/// Name of the store of the leader, in the etcd of a cluster.
#[cfg(feature = "cluster")]
const ONCE_SHARED_NAME: &str = "once";

/// What decides where apps of [`Scope::Once`](bellrock_api::Scope::Once) run.
#[derive(Default)]
pub(crate) struct Once {
    leadership: Option<Leadership>,
    /// The stores of the cluster, if something uses them already.
    #[cfg(feature = "cluster")]
    stores: Option<SharedStores>,
}

impl ControllerBuilder {
    /// Starts apps of [`Scope::Once`](bellrock_api::Scope::Once) only while this controller is the
    /// leader by `leadership`, in a store that several controllers share. A node of a
    /// cluster ([`cluster`](Self::cluster)) has that without this call: in the cluster's etcd.
    pub fn leadership(mut self, leadership: Leadership) -> Self {
        self.once.leadership = Some(leadership);
        self
    }

    /// Uses these stores of the cluster, whose thread runs already (feature `cluster`).
    #[cfg(feature = "cluster")]
    pub fn shared_stores(mut self, stores: &SharedStores) -> Self {
        self.once.stores = Some(stores.clone());
        self
    }

    /// Leaves the start of apps of [`Scope::Once`](bellrock_api::Scope::Once) to the leadership, if
    /// other controllers share it.
    pub(crate) fn keep_once(&mut self) -> Result<()> {
        #[cfg(feature = "cluster")]
        self.lead_in_cluster()?;
        let Some(leadership) = &self.once.leadership else { return Ok(()) };
        let apps = mem::take(&mut self.apps);
        self.apps = apps.into_iter().map(|app| leadership.keep(app)).collect();
        #[cfg(feature = "control")]
        {
            self.handles.leadership = Some(leadership.clone());
        }
        Ok(())
    }

    /// Makes the leadership of a node of a cluster, if an app needs it.
    #[cfg(feature = "cluster")]
    fn lead_in_cluster(&mut self) -> Result<()> {
        let has_app = self.apps.iter().any(|app| app.scope() == Scope::Once);
        let Some(settings) = self.cluster.as_ref().filter(|_| has_app) else { return Ok(()) };
        if self.once.leadership.is_some() {
            return Ok(());
        }
        let stores = match self.once.stores.take() {
            Some(stores) => stores,
            None => SharedStores::start(settings)?,
        };
        let store = Arc::new(stores.open(ONCE_SHARED_NAME));
        self.once.leadership = Some(Leadership::shared(store, settings.node.clone()));
        Ok(())
    }
}
