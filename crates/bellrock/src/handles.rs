//! Handles that change parts of a controller while it runs, or check it.

use std::sync::{Arc, OnceLock};

#[cfg(feature = "control")]
use bellrock_api::{Names, Publisher, Watch};
use bellrock_engine::Monitor;
#[cfg(feature = "tls")]
use bellrock_engine::{IdentityMap, TlsServer, TlsSettings, UnnamedIdentity};
#[cfg(feature = "control")]
use bellrock_query::ClusterHandle;

#[cfg(feature = "control")]
use crate::controller::ControllerBuilder;

/// Replaces the names of switches and hosts while the controller runs (feature `control`). All
/// clones are of one controller.
#[cfg(feature = "control")]
#[derive(Clone, Default)]
pub struct NamesHandle(pub(crate) Arc<Publisher<Names>>);

#[cfg(feature = "control")]
impl NamesHandle {
    /// Returns the names, also those to come.
    pub fn watch(&self) -> &Watch<Names> {
        self.0.watch()
    }

    /// Replaces all names.
    pub fn set(&self, names: Names) {
        self.0.publish(names);
    }
}

#[cfg(feature = "control")]
impl ControllerBuilder {
    /// Lets operators ask a cluster that is run elsewhere in this program, and move its switches
    /// (feature `control`). One of [`ControllerBuilder::cluster`] takes its place.
    pub fn cluster_handle(mut self, cluster: Arc<dyn ClusterHandle>) -> Self {
        self.handles.cluster = Some(cluster);
        self
    }
}

/// Changes limits of a controller while it runs. All clones are of one controller.
#[derive(Clone, Default)]
pub struct LimitsHandle(pub(crate) Arc<OnceLock<Monitor>>);

impl LimitsHandle {
    /// Replaces the maximum number of packet_ins of a switch per second, also for the switches that
    /// are connected. `false`: the controller does not run, or a worker is too busy to hear of it.
    #[must_use]
    pub fn set_packet_ins_per_second(&self, limit: Option<u32>) -> bool {
        self.0.get().is_some_and(|monitor| monitor.limit_packet_ins(limit))
    }
}

/// Changes TLS towards switches while a controller runs (feature `tls`). All clones are of one
/// controller.
#[cfg(feature = "tls")]
#[derive(Clone)]
pub struct TlsHandle {
    pub(crate) tls: TlsSettings,
    pub(crate) monitor: Arc<OnceLock<Monitor>>,
}

#[cfg(feature = "tls")]
impl TlsHandle {
    /// Replaces the certificate of the controller, and which certificates of switches it accepts
    /// and for which datapath ids. Connections go on, except those of revoked certificates. Returns
    /// the number of those.
    pub fn replace(&self, server: TlsServer, unnamed: UnnamedIdentity, map: IdentityMap) -> usize {
        self.tls.server.replace(server);
        self.tls.identities.replace(unnamed, map);
        self.monitor.get().map_or(0, |monitor| monitor.close_revoked(&self.tls.server))
    }
}

/// Checks that a controller works.
#[derive(Clone)]
pub struct Liveness(pub(crate) Monitor);

impl Liveness {
    /// Whether every worker answers within seconds. A worker that does not is stuck in a handler.
    #[must_use]
    pub fn workers_answer(&self) -> bool {
        self.0.all_workers_answer()
    }
}
