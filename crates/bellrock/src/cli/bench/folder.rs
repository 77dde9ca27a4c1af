//! A folder for files that controllers need while they are measured.

use std::path::{Path, PathBuf};

use super::super::Failure;

/// A folder of our own, removed when it is dropped.
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
        // It is in the folder for such files, where others clean up too.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
