//! Settings of the client: addresses, files of TLS, user, prefix and deadlines.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use hyper::Uri;

use super::limits::{ATTEMPT, DEFAULT_PORT, MAX_ENDPOINTS, MAX_PREFIX_BYTES, TOTAL};

/// Settings of a [`super::Client`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Addresses of etcd's members, as URLs: `https://etcd1.example:2379`. They are tried in this
    /// order.
    pub endpoints: Vec<String>,
    /// Files for addresses with `https`.
    pub tls: Option<TlsFiles>,
    /// User, if etcd has authentication enabled.
    pub user: Option<User>,
    /// Beginning of every key of this cluster, with `/` at its end. Keys of the client's methods do
    /// not contain it.
    pub prefix: String,
    /// Allows `http` to an address that is not this machine: keys, values and passwords can then be
    /// read and changed on the way.
    pub allow_plain: bool,
    /// Time limit of one attempt at one address.
    pub attempt: Duration,
    /// Time limit of an operation with all its attempts.
    pub total: Duration,
}

impl Settings {
    /// Settings with the default deadlines, without TLS and user.
    #[must_use]
    pub fn new(endpoints: Vec<String>, prefix: impl Into<String>) -> Self {
        Settings {
            endpoints,
            tls: None,
            user: None,
            prefix: prefix.into(),
            allow_plain: false,
            attempt: ATTEMPT,
            total: TOTAL,
        }
    }

    /// Checks everything but the files, and returns the addresses.
    pub(super) fn addresses(&self) -> Result<Vec<Address>, SettingsError> {
        let named = self.prefix.len() > 1 && self.prefix.ends_with('/');
        if !named || self.prefix.len() > MAX_PREFIX_BYTES {
            return Err(SettingsError::Prefix(self.prefix.clone()));
        }
        if self.attempt.is_zero() || self.total < self.attempt {
            return Err(SettingsError::Deadlines);
        }
        if self.endpoints.is_empty() || self.endpoints.len() > MAX_ENDPOINTS {
            return Err(SettingsError::Endpoints(self.endpoints.len()));
        }
        let mut addresses = Vec::<Address>::new();
        for url in &self.endpoints {
            let address = Address::parse(url)?;
            if address.tls && self.tls.is_none() {
                return Err(SettingsError::NoAuthorities(url.clone()));
            }
            if !address.tls && !address.is_loopback() && !self.allow_plain {
                return Err(SettingsError::Plain(url.clone()));
            }
            if addresses.contains(&address) {
                return Err(SettingsError::Twice(url.clone()));
            }
            addresses.push(address);
        }
        Ok(addresses)
    }
}

/// Files in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Authorities that may have signed etcd's certificates.
    pub authorities: PathBuf,
    /// Certificate of this client with its chain, and its key, for etcd with `--client-cert-auth`.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// A user of etcd. (etcd's JSON gateway does not accept the name in a client's certificate as
/// user.)
#[derive(Clone)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its password.
    pub password: String,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a client cannot be made of its settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// None, or too many.
    #[error(
        "etcd has {0} endpoints: give 1 to {MAX_ENDPOINTS}, for example https://etcd1.example:2379"
    )]
    Endpoints(usize),
    /// It is not an address.
    #[error("etcd endpoint {url:?}: {why}, for example https://etcd1.example:2379")]
    Url {
        /// As given.
        url: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The same address again.
    #[error("etcd endpoint {0:?} is there twice: remove one")]
    Twice(String),
    /// Plain HTTP over a network.
    #[error(
        "etcd endpoint {0:?} is not encrypted, and not on this machine: use https, or allow plain \
         connections"
    )]
    Plain(String),
    /// HTTPS without authorities.
    #[error(
        "etcd endpoint {0:?} needs TLS: give the file with the authorities of etcd's certificates"
    )]
    NoAuthorities(String),
    /// Empty, too long, or without `/` at the end.
    #[error(
        "etcd prefix {0:?}: give up to {MAX_PREFIX_BYTES} bytes that end with /, for example /bellrock/lab/"
    )]
    Prefix(String),
    /// They contradict each other.
    #[error(
        "etcd deadlines: an attempt needs some time, and the whole at least that of an attempt"
    )]
    Deadlines,
    /// A file of TLS.
    #[error(transparent)]
    File(#[from] bellrock_tls::TlsFileError),
    /// Certificate and key do not fit, or have an unknown kind.
    #[error("{}: the certificate cannot be used with its key: {error}", path.display())]
    Pair {
        /// File of the certificate.
        path: PathBuf,
        /// Why.
        error: rustls::Error,
    },
}

/// Where a member of etcd listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) tls: bool,
    /// Name or IP address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    fn parse(url: &str) -> Result<Self, SettingsError> {
        let wrong = |why| SettingsError::Url { url: url.into(), why };
        let uri: Uri = url.parse().map_err(|_| wrong("it is not a URL"))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("it does not begin with https:// or http://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it has a user: give user and password by themselves"));
        }
        if uri.path() != "/" || uri.query().is_some() {
            return Err(wrong("it has more than host and port"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        // A port that is not a number is no port to `Uri`.
        let given = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        let port = match given.strip_prefix(':') {
            None => DEFAULT_PORT,
            Some(port) => match port.parse::<u16>() {
                Ok(port) if port > 0 => port,
                _ => return Err(wrong("its port is not 1 to 65535")),
            },
        };
        Ok(Address { tls, host, port })
    }

    /// Whether packets to it stay on this machine. (A name other than `localhost` may lead
    /// anywhere.)
    fn is_loopback(&self) -> bool {
        let ip = self.host.parse::<IpAddr>();
        ip.map_or(self.host == "localhost", |ip| ip.is_loopback())
    }
}

/// Writes host and port, as in the header `Host`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(urls: &[&str]) -> Settings {
        let endpoints = urls.iter().map(|url| String::from(*url)).collect();
        Settings::new(endpoints, "/bellrock/lab/")
    }

    fn why(settings: &Settings) -> String {
        settings.addresses().unwrap_err().to_string()
    }

    #[test]
    fn addresses_have_a_scheme_a_host_and_a_port() {
        let mut asked = settings(&[
            "http://127.0.0.1",
            "http://localhost:1",
            "http://[::1]:3",
            "https://a.b:4",
        ]);
        let authorities = PathBuf::from("ca.pem");
        asked.tls = Some(TlsFiles { authorities, certificate: None });
        let addresses = asked.addresses().unwrap();
        let written: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        assert_eq!(written, ["127.0.0.1:2379", "localhost:1", "[::1]:3", "a.b:4"]);
        assert_eq!(addresses[2].host, "::1");
        assert!(addresses[3].tls && !addresses[0].tls);
        for (url, expected) in [
            ("127.0.0.1:2379", "it does not begin with https:// or http://"),
            ("etcd1", "it does not begin with https:// or http://"),
            ("ftp://a", "it does not begin with https:// or http://"),
            ("http://", "it is not a URL"),
            ("http://a b", "it is not a URL"),
            ("https://u:p@a:1", "it has a user"),
            ("http://127.0.0.1:1/v3", "it has more than host and port"),
            ("http://127.0.0.1:1?x=1", "it has more than host and port"),
            ("http://127.0.0.1:0", "its port is not 1 to 65535"),
            ("http://127.0.0.1:70000", "its port is not 1 to 65535"),
        ] {
            let why = why(&settings(&[url]));
            assert!(why.contains(expected) && why.contains(url), "{url}: {why}");
        }
    }

    #[test]
    fn unsafe_endpoints_are_refused_unless_allowed() {
        let mut remote = settings(&["http://192.0.2.1:2379"]);
        assert!(why(&remote).contains("is not encrypted"));
        remote.allow_plain = true;
        assert_eq!(remote.addresses().unwrap().len(), 1);
        assert!(why(&settings(&["http://localhost.example"])).contains("is not encrypted"));
        assert!(why(&settings(&["https://192.0.2.1"])).contains("authorities"));
        assert!(why(&settings(&["http://[::1]", "http://[::1]:2379"])).contains("is there twice"));
        assert!(why(&settings(&[])).contains("etcd has 0 endpoints"));
    }

    #[test]
    fn prefix_and_deadlines_are_checked() {
        for prefix in ["", "/", "/bellrock", &format!("/{}/", "x".repeat(MAX_PREFIX_BYTES))] {
            let mut asked = settings(&["http://[::1]"]);
            asked.prefix = prefix.into();
            assert!(why(&asked).contains("that end with /"), "{prefix}");
        }
        let mut asked = settings(&["http://[::1]"]);
        asked.total = asked.attempt / 2;
        assert!(why(&asked).starts_with("etcd deadlines"));
    }

    #[test]
    fn a_password_is_not_printed() {
        let user = User { name: "bellrock".into(), password: "secret".into() };
        assert_eq!(format!("{user:?}"), "User { name: \"bellrock\", .. }");
    }
}
