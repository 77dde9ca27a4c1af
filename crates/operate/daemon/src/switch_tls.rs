//! TLS towards switches: from the settings to the engine, and changes while it runs.

use std::env;
use std::path::PathBuf;

use bellrock_config::{PINS_NAME, TlsConfig};
use tracing::info;

use bellrock::tls::{
    Identities, PinFileError, Pins, TlsFileError, TlsFiles, TlsServer, TlsSettings,
    identities_with_file,
};

/// Why TLS towards switches cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SwitchTlsError {
    /// A certificate, its key, the authorities or the revocations cannot be used.
    #[error("TLS towards switches: {0}")]
    Files(#[from] TlsFileError),
    /// The file of pinned certificates cannot be used.
    #[error("TLS towards switches: {0}")]
    Pins(#[from] PinFileError),
}

/// Reads the files. `None`: no address has TLS.
pub(super) fn settings(config: &TlsConfig) -> Result<Option<TlsSettings>, SwitchTlsError> {
    let Some(files) = files(config) else { return Ok(None) };
    let server = TlsServer::read(&files)?;
    let (unnamed, map) = (config.identity, config.identities.clone());
    let directory = env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    let identities = match config.pins.path(directory.as_deref(), PINS_NAME) {
        Some(path) => {
            info!("which certificate speaks for which switch is kept in {}", path.display());
            identities_with_file(&path, &server, unnamed, map)?
        }
        None => {
            info!(
                "which certificate speaks for which switch is kept in memory only; tls.pins names a file"
            );
            Identities::new(&server, unnamed, map, Pins::new(), None)
        }
    };
    Ok(Some(TlsSettings { listen: config.listen.clone(), server, identities }))
}

/// The files of TLS towards switches, if there is an address for it. The check of the configuration
/// demands all three.
pub(super) fn files(config: &TlsConfig) -> Option<TlsFiles> {
    let TlsConfig { listen, certificate, key, ca, crl, .. } = config;
    if listen.is_empty() {
        return None;
    }
    Some(TlsFiles {
        certificate: certificate.clone()?,
        key: key.clone()?,
        authorities: ca.clone()?,
        revocations: crl.clone(),
    })
}
