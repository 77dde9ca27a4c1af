//! Addresses of etcd's members.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Maximum length of the name of a machine, in bytes (RFC 1035 §2.3.4).
const MAX_HOST_BYTES: usize = 253;

/// Where a member of etcd is reached: `https://HOST:PORT`, or `http://HOST:PORT` without TLS.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtcdEndpoint {
    /// Whether it is reached by TLS.
    pub tls: bool,
    /// Name or address of the machine, without the brackets of IPv6.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A text is no address of a member of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("http:// or https://, a machine and a port, such as https://192.0.2.1:2379")]
pub struct ParseEndpointError;

impl EtcdEndpoint {
    /// Whether the member is on this machine, as far as its address says so.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

impl FromStr for EtcdEndpoint {
    type Err = ParseEndpointError;

    fn from_str(text: &str) -> Result<Self, ParseEndpointError> {
        let (scheme, rest) = text.split_once("://").ok_or(ParseEndpointError)?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(ParseEndpointError),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':').ok_or(ParseEndpointError)?;
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| is_number && *port != 0);
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(v6) => v6.parse::<std::net::Ipv6Addr>().ok().map(|ip| ip.to_string()),
            None => is_name(host).then(|| host.to_ascii_lowercase()),
        };
        let (Some(host), Some(port)) = (host, port) else { return Err(ParseEndpointError) };
        Ok(EtcdEndpoint { tls, host, port })
    }
}

/// Whether a text can be the name of a machine, or an IPv4 address.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.bytes().all(known)
    };
    let mut labels = text.split('.');
    text.len() <= MAX_HOST_BYTES && labels.all(is_label) && (!is_numeric(text) || is_v4(text))
}

/// Whether a text looks like an IPv4 address.
fn is_numeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn is_v4(text: &str) -> bool {
    text.parse::<std::net::Ipv4Addr>().is_ok()
}

impl fmt::Display for EtcdEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EtcdEndpoint { tls, host, port } = self;
        let scheme = if *tls { "https" } else { "http" };
        match host.contains(':') {
            true => write!(f, "{scheme}://[{host}]:{port}"),
            false => write!(f, "{scheme}://{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_scheme_a_machine_and_a_port() {
        for (text, shown) in [
            ("https://192.0.2.1:2379", "https://192.0.2.1:2379"),
            ("http://localhost:2379/", "http://localhost:2379"),
            ("HTTPS://Etcd-1.example.net:1", "https://etcd-1.example.net:1"),
            ("http://[::1]:2379", "http://[::1]:2379"),
            ("https://[2001:db8:0::1]:2379", "https://[2001:db8::1]:2379"),
        ] {
            let endpoint: EtcdEndpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), shown);
            assert_eq!(shown.parse(), Ok(endpoint));
        }
        for text in [
            "",
            "192.0.2.1:2379",
            "ftp://192.0.2.1:2379",
            "https://192.0.2.1",
            "https://192.0.2.1:",
            "https://192.0.2.1:0",
            "https://192.0.2.1:+1",
            "https://192.0.2.1:65536",
            "https://192.0.2.300:2379",
            "https://:2379",
            "https://a..b:2379",
            "https://user:word@a:2379",
            "https://::1:2379",
            "https://[::1:2379",
            "https://a:2379/v3",
            "https://a:2379?x",
            "https://a b:2379",
        ] {
            assert_eq!(text.parse::<EtcdEndpoint>(), Err(ParseEndpointError), "{text}");
        }
        assert!(format!("http://{}:1", "a".repeat(254)).parse::<EtcdEndpoint>().is_err());
    }

    #[test]
    fn members_on_this_machine_are_told_from_others() {
        let is_loopback = |text: &str| text.parse::<EtcdEndpoint>().unwrap().is_loopback();
        for here in ["http://localhost:1", "http://127.9.0.1:1", "http://[::1]:1"] {
            assert!(is_loopback(here), "{here}");
        }
        for there in ["http://192.0.2.1:1", "http://localhost.example.net:1", "http://[::2]:1"] {
            assert!(!is_loopback(there), "{there}");
        }
    }
}
