//! Where a part of the controller keeps what outlasts a restart.

use std::path::{Path, PathBuf};

use super::form::NONE;
use super::values::Wrong;

/// Where something is kept over a restart of the controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StorePlace {
    /// In the state directory of the service, if systemd gives one; else only in memory.
    #[default]
    Auto,
    /// Only in memory.
    None,
    /// In this file.
    Path(PathBuf),
}

impl StorePlace {
    /// The file, if there is one. `state_directory`: the variable `STATE_DIRECTORY`, which systemd
    /// sets. `name`: the file's name there.
    #[must_use]
    pub fn path(&self, state_directory: Option<&Path>, name: &str) -> Option<PathBuf> {
        match self {
            StorePlace::Auto => state_directory.map(|place| place.join(name)),
            StorePlace::None => None,
            StorePlace::Path(path) => Some(path.clone()),
        }
    }

    pub(crate) fn read(text: &str) -> Result<Self, Wrong> {
        match text {
            "" => Err(Wrong::from("auto, none, or the path of a file".to_owned())),
            "auto" => Ok(StorePlace::Auto),
            NONE => Ok(StorePlace::None),
            path => Ok(StorePlace::Path(path.into())),
        }
    }

    pub(crate) fn show(&self) -> String {
        match self {
            StorePlace::Auto => "auto".to_owned(),
            StorePlace::None => NONE.to_owned(),
            StorePlace::Path(path) => path.display().to_string(),
        }
    }
}
