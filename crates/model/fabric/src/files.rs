//! Where the texts of files come from.

use std::io;
use std::path::{Component, Path, PathBuf};

/// Files, as the reader asks for them. The crate itself does no I/O.
pub trait Files {
    /// The text of a file.
    ///
    /// # Errors
    /// It is absent, cannot be read, or is not UTF-8.
    fn text(&self, path: &Path) -> io::Result<String>;

    /// The path without symbolic links. Relative includes begin at its folder, and two paths are
    /// the same file if these are equal. Without a file system: without `.` and `..`.
    fn real_path(&self, path: &Path) -> PathBuf {
        let mut real = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir if real.file_name().is_some() => {
                    real.pop();
                }
                part => real.push(part),
            }
        }
        real
    }
}

/// A function from paths to texts.
impl<F: Fn(&Path) -> io::Result<String>> Files for F {
    fn text(&self, path: &Path) -> io::Result<String> {
        self(path)
    }
}
