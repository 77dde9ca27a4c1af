//! Takes a token out of its file.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::tokens::{TokenError, parse, read_text};

/// Removes the token of this name from a file. Other lines and comments stay.
///
/// # Errors
/// No token has the name, or the file is wrong, or cannot be written.
pub fn remove(path: &Path, name: &str) -> Result<(), TokenError> {
    let failed = |error| TokenError::File { path: path.into(), error };
    let text = read_text(path).map_err(failed)?;
    if parse(path, &text)?.iter().all(|entry| entry.name != name) {
        return Err(TokenError::Unknown { name: name.to_owned(), path: path.into() });
    }
    let is_kept = |line: &&str| line.split_whitespace().next() != Some(name);
    let kept: String = text.split_inclusive('\n').filter(is_kept).collect();
    // As a whole: nobody reads a file without its other tokens.
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let write = || {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&new)?;
        let old = fs::metadata(path)?;
        fs::set_permissions(&new, old.permissions())?;
        // Only root can give a file away.
        let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
        file.write_all(kept.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&new);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::tokens::{Scope, TokenEntry};

    #[test]
    fn a_removed_token_leaves_the_others_and_the_comments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        fs::write(&path, "# of the office\n").unwrap();
        for name in ["a", "ab"] {
            TokenEntry::make(name, Scope::Read, None).unwrap().0.add_to(&path).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        remove(&path, "a").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# of the office\nab read "), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        let error = remove(&path, "a").unwrap_err().to_string();
        assert!(error.contains("has no token called a;"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
