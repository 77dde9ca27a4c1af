//! The default path.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const NAME: &str = "bellrock.sock";

/// The socket of a controller that root runs.
pub(crate) const OF_ROOT: &str = "/run/bellrock.sock";

/// The socket of a controller that the systemd unit of `packaging/` runs.
pub(crate) const OF_UNIT: &str = "/run/bellrock/bellrock.sock";

/// Returns `/run/bellrock.sock` for root. Other users get `$XDG_RUNTIME_DIR/bellrock.sock`, or
/// `/tmp/bellrock-UID/bellrock.sock` in a directory of their own if there is no such directory.
///
/// # Errors
/// The directory in /tmp cannot be made, or belongs to somebody else.
pub fn default_path() -> io::Result<PathBuf> {
    // The owner of our entry in /proc is our effective user.
    let user = fs::metadata("/proc/self")?.uid();
    if user == 0 {
        return Ok(OF_ROOT.into());
    }
    if let Some(runtime) = runtime_directory(std::env::var_os("XDG_RUNTIME_DIR")) {
        return Ok(runtime.join(NAME));
    }
    let directory = PathBuf::from(format!("/tmp/bellrock-{user}"));
    own_directory(&directory, user)?;
    Ok(directory.join(NAME))
}

/// Returns the directory that the variable names. It stays set where the directory is gone, e.g. in
/// `su`, in containers and after the user's last session.
fn runtime_directory(variable: Option<OsString>) -> Option<PathBuf> {
    variable.map(PathBuf::from).filter(|directory| directory.is_dir())
}

/// Makes sure that `directory` exists, belongs to `user`, and is closed to other users. Any user
/// can write to /tmp, and may have put something else there.
fn own_directory(directory: &Path, user: u32) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(directory)?;
    if found.is_dir() && found.uid() == user && found.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{} is not a directory that only you can open; remove it, or choose another place with --control",
        directory.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_directory_that_is_gone_is_not_used() {
        let base = crate::test_directory("runtime");
        assert_eq!(runtime_directory(Some(base.clone().into())), Some(base.clone()));
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(runtime_directory(Some(base.into())), None);
        assert_eq!(runtime_directory(Some(OsString::new())), None);
        assert_eq!(runtime_directory(None), None);
    }

    #[test]
    fn a_directory_of_somebody_else_is_not_used() {
        let base = crate::test_directory("path");
        let user = fs::metadata(&base).unwrap().uid();
        let (new, open, link) = (base.join("new"), base.join("open"), base.join("link"));
        own_directory(&new, user).unwrap();
        own_directory(&new, user).unwrap();
        assert_eq!(fs::metadata(&new).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(own_directory(&new, user + 1).is_err(), "of another user");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(own_directory(&open, user).is_err(), "open to others");
        std::os::unix::fs::symlink(&new, &link).unwrap();
        assert!(own_directory(&link, user).is_err(), "a link");
        fs::remove_dir_all(base).unwrap();
    }
}
