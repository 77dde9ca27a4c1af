//! The configuration of the controller, and its changes while it runs.

use serde::{Deserialize, Serialize};

/// Reads the configuration again, and applies what has changed. If anything is wrong, or needs a
/// restart, nothing changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reload {
    /// Only list what would change.
    pub dry_run: bool,
}

/// What a reload has changed, or would change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
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
