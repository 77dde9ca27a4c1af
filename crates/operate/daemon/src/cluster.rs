//! From the section `cluster` to the settings of a node.

use bellrock_cluster::ClusterSettings;
use bellrock_cluster::etcd::{Settings as EtcdSettings, TlsFiles as EtcdFiles, User};
use bellrock_cluster::link::{LinkTls, TlsError, TlsFiles};
use bellrock_config::files::{PasswordFileError, read_password};
use bellrock_config::{ClusterConfig, ClusterTlsConfig, EtcdConfig};
use tracing::warn;

/// Why a file of the section cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClusterFileError {
    /// The password for etcd.
    #[error(transparent)]
    Password(#[from] PasswordFileError),
    /// The certificate of the node, its key or its authorities.
    #[error("TLS between nodes: {0}")]
    Tls(#[from] TlsError),
}

/// The settings of a node. `None`: the controller is alone. The check of the configuration demands
/// that the section is complete.
pub(super) fn settings(
    config: &ClusterConfig,
) -> Result<Option<ClusterSettings>, ClusterFileError> {
    let (Some(name), Some(node)) = (&config.name, &config.node) else { return Ok(None) };
    let tls = tls(config)?;
    if tls.is_none() {
        warn!(
            "the nodes have no `cluster.tls`: every user of this machine can speak as a node, and so change what \
             switches do; `bellrock pki` makes certificates"
        );
    }
    let peers = config.peers.iter().map(|(name, address)| (name.clone(), *address));
    Ok(Some(ClusterSettings {
        name: name.clone(),
        node: node.clone(),
        listen: config.listen,
        peers: peers.collect(),
        apps: Vec::new(),
        tls,
        etcd: etcd(&config.etcd)?,
    }))
}

/// TLS of the node, from its files. `None`: it has none. All three are there, or none.
pub(super) fn tls(config: &ClusterConfig) -> Result<Option<LinkTls>, TlsError> {
    let ClusterTlsConfig { certificate, key, ca, crl: revocations } = config.tls.clone();
    let (Some(node), Some(certificate), Some(key), Some(authorities)) =
        (&config.node, certificate, key, ca)
    else {
        return Ok(None);
    };
    LinkTls::read(&TlsFiles { certificate, key, authorities, revocations }, node).map(Some)
}

fn etcd(config: &EtcdConfig) -> Result<EtcdSettings, PasswordFileError> {
    let endpoints = config.endpoints.iter().map(ToString::to_string).collect();
    let certificate = config.certificate.clone().zip(config.key.clone());
    let tls = config.ca.clone().map(|authorities| EtcdFiles { authorities, certificate });
    let user = match (&config.user, &config.password_file) {
        (Some(name), Some(path)) => {
            Some(User { name: name.clone(), password: read_password(path)? })
        }
        _ => None,
    };
    // The prefix is that of the cluster.
    let settings = EtcdSettings::new(endpoints, "/");
    Ok(EtcdSettings { tls, user, allow_plain: config.allow_plain, ..settings })
}
