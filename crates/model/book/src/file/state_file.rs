//! Files that outlast a restart of the controller.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tracing::{error, warn};

/// Replaces a file as a whole: writes a new one beside it, which then takes its name. So it has all
/// of before or all of after, whatever happens meanwhile. After an error it has all of before, and
/// the new one is gone, which may have filled the disk.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&beside)))?;
    // The file is the new one from here on, for this process and the next one: that is no error any
    // more.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let synced = File::open(directory.unwrap_or(Path::new("."))).and_then(|it| it.sync_all());
    if let Err(error) = synced {
        warn!(
            "{}: its directory cannot be synced ({error}): a power failure may undo its last change",
            path.display()
        );
    }
    Ok(())
}

/// Brings a file up to date when the controller starts: writes it only if it is not so already.
/// With a full disk the controller goes on, since its switches need it; the log says so, and orders
/// are refused.
///
/// # Errors
/// The directory cannot be written for another reason, which is found out now rather than at the
/// first change.
pub fn bring_up_to_date(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let is_up_to_date = fs::read(path).is_ok_and(|before| before == bytes);
    let tried = match is_up_to_date {
        true => try_directory(path),
        false => replace(path, bytes),
    };
    match tried {
        Err(error) if is_full(&error) => {
            error!(
                "{}: {error}; the controller goes on, and refuses changes of it until its disk has space",
                path.display()
            );
            Ok(())
        }
        tried => tried,
    }
}

/// Whether a file could be made beside this one.
fn try_directory(path: &Path) -> io::Result<()> {
    let beside = beside(path);
    File::create(&beside)?;
    fs::remove_file(&beside)
}

fn beside(path: &Path) -> PathBuf {
    let mut beside = OsString::from(path);
    beside.push(".new");
    beside.into()
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_up_to_date_is_not_written_and_an_error_leaves_nothing_behind() {
        let place =
            std::env::temp_dir().join(format!("bellrock-state-file-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let path = place.join("orders.json");
        bring_up_to_date(&path, b"one").unwrap();
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        bring_up_to_date(&path, b"one").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
        assert!(!beside(&path).exists());
        bring_up_to_date(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        // A directory cannot be replaced by a file.
        let directory = place.join("directory");
        fs::create_dir_all(directory.join("x")).unwrap();
        replace(&directory, b"three").unwrap_err();
        assert!(!beside(&directory).exists());
        bring_up_to_date(&place.join("nowhere/orders.json"), b"one").unwrap_err();
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_full_disk_is_no_reason_not_to_start() {
        let place = std::env::temp_dir().join(format!("bellrock-full-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let path = place.join("orders.json");
        replace(&path, b"one").unwrap();
        // Whatever is written there ends with "no space left on device".
        std::os::unix::fs::symlink("/dev/full", beside(&path)).unwrap();
        let error = replace(&path, b"two").unwrap_err();
        assert!(is_full(&error), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert!(!beside(&path).is_symlink(), "the new file is gone");
        std::os::unix::fs::symlink("/dev/full", beside(&path)).unwrap();
        bring_up_to_date(&path, b"two").unwrap();
        fs::remove_dir_all(&place).unwrap();
    }
}
