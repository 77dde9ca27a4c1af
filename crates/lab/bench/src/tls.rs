//! What the switches of a load show to a controller that demands TLS, and what they accept.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bellrock_tls::{TlsFileError, controller_name, switch_config};
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::{CipherSuite, ClientConfig, Error};

/// The certificate of all switches of a load, and the authorities of controllers. The name in the
/// controller's certificate does not matter, as with Open vSwitch.
///
/// The switches prefer TLS 1.3 with AES-128-GCM, and resume no sessions: each connection is a whole
/// handshake.
#[derive(Clone)]
pub struct LoadTls(Arc<ClientConfig>);

impl fmt::Debug for LoadTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadTls").finish_non_exhaustive()
    }
}

impl LoadTls {
    /// Reads PEM files: the switches' certificate with those of its authorities, its key, and the
    /// authorities of controllers.
    ///
    /// # Errors
    /// A file cannot be read, or does not have what it should have.
    pub fn read(certificate: &Path, key: &Path, authorities: &Path) -> Result<Self, TlsFileError> {
        let first = CipherSuite::TLS13_AES_128_GCM_SHA256;
        let mut config = switch_config(certificate, key, authorities, Some(first))?;
        config.resumption = Resumption::disabled();
        Ok(LoadTls(Arc::new(config)))
    }

    /// Makes a session that has not begun.
    pub(crate) fn session(&self) -> Result<UnbufferedClientConnection, Error> {
        UnbufferedClientConnection::new(Arc::clone(&self.0), controller_name())
    }
}
