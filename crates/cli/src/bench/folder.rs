//! A folder for files that controllers need while they are measured.

use std::path::{Path, PathBuf};

use super::super::Failure;

/// A temporary folder, removed when it is dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("bellrock-bench-{}", std::process::id()));
        std::fs::create_dir(&folder)
            .map_err(|error| Failure::Failed(format!("{}: {error}", folder.display())))?;
        Ok(Folder(folder))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The folder is in the system's temporary directory, which is cleaned up anyway.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
