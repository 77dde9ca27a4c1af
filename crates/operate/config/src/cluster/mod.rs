//! The settings of a cluster: several controllers as one.
//!
//! They are data only. What connects to other nodes and to etcd is elsewhere, and gets them from
//! here.

mod checks;
mod endpoint;
mod settings;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

pub use endpoint::EtcdEndpoint;
pub(crate) use settings::CLUSTER;

/// Number of nodes of a cluster. It is odd: an even number survives no more losses than one node
/// less.
pub const CLUSTER_NODES: RangeInclusive<usize> = 3..=9;

/// Maximum length of the name of a cluster or node, in bytes.
pub const MAX_CLUSTER_NAME_BYTES: usize = 64;

/// Maximum number of etcd's members that are named.
pub const MAX_ETCD_ENDPOINTS: usize = 16;

/// The port for other nodes, unless another one is set.
const PORT: u16 = 6640;

/// Settings of a cluster. Unless one of them is set, the controller is alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Name of the cluster. Its keys in etcd begin with `/bellrock/NAME/`.
    pub name: Option<String>,
    /// Name of this node.
    pub node: Option<String>,
    /// Address where the other nodes connect.
    pub listen: SocketAddr,
    /// Addresses of the other nodes, by name.
    pub peers: BTreeMap<String, SocketAddr>,
    /// How etcd is reached.
    pub etcd: EtcdConfig,
    /// TLS between the nodes.
    pub tls: ClusterTlsConfig,
}

/// How etcd is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdConfig {
    /// Its members.
    pub endpoints: Vec<EtcdEndpoint>,
    /// The user. `None`: etcd has no users.
    pub user: Option<String>,
    /// File of the user's password.
    pub password_file: Option<PathBuf>,
    /// File of the certificate that this node shows.
    pub certificate: Option<PathBuf>,
    /// File of its private key.
    pub key: Option<PathBuf>,
    /// File of the authorities of etcd's certificates. Members with TLS need it.
    pub ca: Option<PathBuf>,
    /// Whether members on other machines are reached without TLS.
    pub allow_plain: bool,
}

/// TLS between the nodes. All of the first three files, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterTlsConfig {
    /// File of this node's certificate.
    pub certificate: Option<PathBuf>,
    /// File of its private key.
    pub key: Option<PathBuf>,
    /// File of the authorities of the nodes.
    pub ca: Option<PathBuf>,
    /// File of revoked certificates of nodes. It may be missing.
    pub crl: Option<PathBuf>,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        ClusterConfig {
            name: None,
            node: None,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            peers: BTreeMap::new(),
            etcd: EtcdConfig::default(),
            tls: ClusterTlsConfig::default(),
        }
    }
}

impl ClusterConfig {
    /// Whether the controller is a node of a cluster: any of these settings is set.
    #[must_use]
    pub fn is_on(&self) -> bool {
        *self != ClusterConfig::default()
    }

    /// All nodes with their addresses, by name. This node's own address is the one that it listens
    /// on.
    #[must_use]
    pub fn nodes(&self) -> BTreeMap<&str, SocketAddr> {
        let peers = self.peers.iter().map(|(name, address)| (&**name, *address));
        peers.chain(self.node.as_deref().map(|name| (name, self.listen))).collect()
    }

    /// Whether all nodes are on this machine.
    fn is_local(&self) -> bool {
        let mut all = self.peers.values().chain([&self.listen]);
        all.all(|address| address.ip().is_loopback())
    }
}
