//! Settings of a controller's network services.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bellrock_services::chain::ServiceSettings;
use bellrock_services::discovery::{DiscoverySettings, Key, ParseKeyError};

use super::config::services::ServiceConfig;

/// Maximum number of bytes read from a key file.
const MAX_KEY_FILE_BYTES: u64 = 4096;

/// Why the key of discovery cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyFileError {
    #[error("discovery_key_file {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("discovery_key_file {}: {error}", path.display())]
    NoKey { path: PathBuf, error: ParseKeyError },
}

/// The settings of the services, with the key from its file.
pub(super) fn settings(config: &ServiceConfig) -> Result<ServiceSettings, KeyFileError> {
    Ok(ServiceSettings {
        always: config.always,
        discovery: DiscoverySettings {
            interval: config.interval,
            key: config.key_file.as_deref().map(read_key).transpose()?,
            refuse_slow_links: config.refuse_slow_links,
            trusted_ports: config.trusted_ports.clone(),
        },
        hosts: config.hosts,
    })
}

fn read_key(path: &Path) -> Result<Key, KeyFileError> {
    let unreadable = |error| KeyFileError::Unreadable { path: path.to_owned(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_KEY_FILE_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    Key::from_hex(&text).map_err(|error| KeyFileError::NoKey { path: path.to_owned(), error })
}
