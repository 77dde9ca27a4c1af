//! What the server is started with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::Certificate;
use crate::guest::Guest;
use crate::tokens::GivenTokens;

/// Settings of the server.
#[derive(Clone, Debug, Default)]
pub struct HttpSettings {
    /// Addresses to listen on. One that is not of the loopback needs `tls` and `tokens`.
    pub listen: Vec<SocketAddr>,
    /// The certificate. `None`: plain HTTP.
    pub tls: Option<Certificate>,
    /// The file of the tokens. It is read again when it has changed. `None`: nobody may change
    /// anything.
    pub tokens: Option<PathBuf>,
    /// Tokens beside those of the file, now or later.
    pub given_tokens: Option<GivenTokens>,
    /// Interfaces of other controllers, on addresses of their own and without tokens.
    pub guests: Vec<Guest>,
    /// What switches are asked for, for the metrics.
    pub statistics: StatisticsSettings,
}

/// How often switches are asked for statistics. The requests are spread over each interval, so a
/// network of 1,000 switches that are asked every 15 s gets a request every 15 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatisticsSettings {
    /// Time between two requests to a switch for the counters of its ports. `None`: never.
    pub ports: Option<Duration>,
    /// Time between two requests to a switch for its flows, which are counted by app. `None`:
    /// never.
    pub flows: Option<Duration>,
}

/// Files of a certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those of the authorities between it and the root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl HttpSettings {
    /// The first address that others than this machine can reach, if TLS or tokens are missing.
    #[must_use]
    pub fn unprotected(&self) -> Option<SocketAddr> {
        let has_tokens = self.tokens.is_some() || self.given_tokens.is_some();
        let is_protected = self.tls.is_some() && has_tokens;
        let is_open = |address: &&SocketAddr| !address.ip().is_loopback() && !is_protected;
        self.listen.iter().find(is_open).copied()
    }
}
