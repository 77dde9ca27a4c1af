//! The configuration of the controller, and its changes while it runs.

use serde::{Deserialize, Serialize};

use crate::{ErrorKind, QueryError};

/// Reads the configuration again, and applies what has changed. If anything is wrong, or needs a
/// restart, nothing changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reload {
    /// Only list what would change.
    pub dry_run: bool,
}

/// What a reload has changed, or would change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReloadAnswer {
    /// Whether the changes are in force now.
    pub applied: bool,
    /// The changes.
    pub changes: Vec<SettingChangeRow>,
    /// Files with other content than before, under the same settings.
    #[serde(default)]
    pub renewed: Vec<RenewedFileRow>,
    /// What is probably not meant.
    pub warnings: Vec<String>,
    /// What to know besides the result: the node that was asked does not serve, so that other nodes
    /// of the cluster carry the order out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// A file that has other content than when it was last read, such as a renewed certificate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RenewedFileRow {
    /// The setting that names it, such as `http.certificate`.
    pub setting: String,
    /// Its path.
    pub path: String,
}

/// A change of a setting, or of one entry of a map.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SettingChangeRow {
    /// The setting: its key in the file, with points between the levels.
    pub setting: String,
    /// The value before, as a file has it. `None`: the entry is new.
    pub before: Option<String>,
    /// The value after. `None`: the entry is gone.
    pub after: Option<String>,
    /// Whether it needs a restart.
    pub needs_restart: bool,
}

/// Asks for the configuration that the nodes of a cluster share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GetSharedConfig {}

/// The configuration that the nodes of a cluster share, as a node knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SharedConfig {
    /// Number of its changes. 0: nothing was ever shared, or this node does not know it yet.
    pub generation: u64,
    /// The text, in the form of a configuration file. Empty: nothing is shared.
    pub text: String,
    /// The node that had the order for its last change.
    pub node: Option<String>,
    /// Time of its last change, in seconds since 1970.
    pub changed_at: Option<u64>,
    /// Why this node does not apply it, or does not know the newest one. `None`: it is in force
    /// here.
    pub trouble: Option<String>,
}

/// Replaces the configuration that the nodes of a cluster share. Each node applies it at once. If
/// anything is wrong with it at the node that is asked, nothing changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SetSharedConfig {
    /// The new text, in the form of a configuration file. Empty: nothing is shared any more.
    pub text: String,
    /// The generation that it replaces, if it must be that one.
    #[serde(default)]
    pub generation: Option<u64>,
    /// Only list what would change at this node.
    #[serde(default)]
    pub dry_run: bool,
}

/// Asks for the configuration that nodes share, and changes it. It is called in a thread that may
/// wait for seconds.
pub trait SharedConfigHandle: Send + Sync {
    /// The configuration, as this node knows it.
    fn get(&self) -> SharedConfig;

    /// Replaces it. Returns what has changed at this node, or would.
    ///
    /// # Errors
    /// The text is wrong, another one was faster, or etcd does not answer.
    fn set(&self, order: &SetSharedConfig) -> Result<ReloadAnswer, QueryError>;
}

impl QueryError {
    /// The controller shares no configuration.
    #[must_use]
    pub fn no_shared_config() -> Self {
        let why =
            "only nodes of a cluster share a configuration; this controller has only its file";
        QueryError::new(ErrorKind::NoCluster, why)
    }
}
