//! The files that settings name: the key of discovery, the password of etcd, apps in Python. Those
//! of an app are in its module of [`apps`](crate::apps). Those of other crates are read by
//! [`Sources::check_with`](crate::Sources::check_with).

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bellrock_services::discovery::{DiscoveryKey, ParseKeyError};

use super::Config;

/// Maximum number of bytes read from a key file.
const MAX_KEY_FILE_BYTES: u64 = 4096;

/// Maximum number of bytes read from the file of a password.
const MAX_PASSWORD_FILE_BYTES: u64 = 4096;

/// Why the key of discovery cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("discovery_key_file {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Its text is no key.
    #[error("discovery_key_file {}: {error}", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ParseKeyError,
    },
}

/// Why the password of etcd's user cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PasswordFileError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It has no password, or more than one.
    #[error("{}: it has no single line with a password", .0.display())]
    NoPassword(PathBuf),
}

/// Reads the password of etcd's user: the only line of a file.
///
/// # Errors
/// [`PasswordFileError`].
pub fn read_password(path: &Path) -> Result<String, PasswordFileError> {
    let unreadable = |error| PasswordFileError::Unreadable { path: path.to_owned(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_PASSWORD_FILE_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    let is_whole = text.len() as u64 <= MAX_PASSWORD_FILE_BYTES;
    let mut lines = text.lines();
    match (lines.next(), lines.next()) {
        (Some(password), None) if !password.is_empty() && is_whole => Ok(password.to_owned()),
        _ => Err(PasswordFileError::NoPassword(path.to_owned())),
    }
}

/// Reads the key of discovery.
pub(crate) fn read_key(path: &Path) -> Result<DiscoveryKey, KeyFileError> {
    let unreadable = |error| KeyFileError::Unreadable { path: path.to_owned(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_KEY_FILE_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    DiscoveryKey::from_hex(&text)
        .map_err(|error| KeyFileError::NoKey { path: path.to_owned(), error })
}

/// Whether a file with apps in Python can be read. Python finds out what is in it.
fn read_python(path: &Path) -> io::Result<()> {
    // A directory can be opened, and a byte of it not read.
    File::open(path)?.read(&mut [0]).map(|_| ())
}

/// A file that the configuration names and that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongFile {
    /// The setting that names it, such as `discovery_key_file`. `None`: `text` has places in the
    /// file itself, so the setting is right.
    pub setting: Option<String>,
    /// What is wrong, and what would be right.
    pub text: String,
}

/// What to do about an error of the system, for the end of its text. Empty: there is no advice.
#[must_use]
pub fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; make it, or correct its path",
        io::ErrorKind::PermissionDenied => "; let the user of the controller read it",
        io::ErrorKind::IsADirectory => "; name a file in it",
        _ => "",
    }
}

/// What is wrong with the files that a configuration names and that this crate reads. `of_apps` is
/// the name of the setting or flag that has the chain.
pub(crate) fn wrong_files(config: &Config, of_apps: &str) -> impl Iterator<Item = WrongFile> {
    let apps = config.apps.iter().filter_map(|app| Some((app, app.known()?)));
    let of_settings = apps.flat_map(|(app, known)| (known.wrong_files)(app));
    let key = config.services.key_file.as_deref().and_then(|file| read_key(file).err());
    let key = key.map(|error| {
        let remedy = match &error {
            KeyFileError::Unreadable { error, .. } => remedy(error),
            KeyFileError::NoKey { .. } => "",
        };
        WrongFile {
            setting: Some("discovery_key_file".to_owned()),
            text: format!("{error}{remedy}"),
        }
    });
    let password = config.cluster.etcd.password_file.as_deref();
    let password = password.and_then(|file| read_password(file).err()).map(|error| {
        let remedy = match &error {
            PasswordFileError::Unreadable { error, .. } => remedy(error),
            PasswordFileError::NoPassword(_) => "; write the password alone into it",
        };
        let setting = "cluster.etcd.password_file";
        let text = format!("{setting}: {error}{remedy}");
        WrongFile { setting: Some(setting.to_owned()), text }
    });
    let python = config.python_files().filter_map(move |file| {
        let error = read_python(file.path()).err()?;
        let name = file.path().display();
        let remedy = remedy(&error);
        let text = format!("{of_apps}: {name}: {error}{remedy}");
        Some(WrongFile { setting: Some(format!("apps.{name}")), text })
    });
    of_settings.chain(key).chain(password).chain(python)
}
