//! For runtimes and for programs that put a controller together. Apps need nothing of it.

use std::fmt;

use crate::{DynApp, Hosts, Topology, Watch};

/// The chain of a controller: its services and apps, and what the services publish of the network.
///
/// A chain is made before the runtime starts. Its maker gives the [`Publisher`](crate::Publisher)s
/// to the services, so no app can reach them.
pub struct Chain {
    /// Services and apps, in order.
    pub apps: Vec<Box<dyn DynApp>>,
    /// Switches and links. Discovery publishes them.
    pub topology: Watch<Topology>,
    /// Hosts. Host tracking publishes them.
    pub hosts: Watch<Hosts>,
}

impl Chain {
    /// A chain of only this app, without services.
    #[must_use]
    pub fn of_app(app: impl DynApp) -> Self {
        Chain::from(vec![Box::new(app) as Box<dyn DynApp>])
    }
}

/// A chain without services: topology and hosts stay empty.
impl From<Vec<Box<dyn DynApp>>> for Chain {
    fn from(apps: Vec<Box<dyn DynApp>>) -> Self {
        Chain { apps, topology: Watch::default(), hosts: Watch::default() }
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.apps.iter().map(|app| app.name())).finish()
    }
}
