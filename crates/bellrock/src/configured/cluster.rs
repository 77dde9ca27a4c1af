//! From the section `cluster` to the settings of a node.

use bellrock_cluster::ClusterSettings;
use bellrock_cluster::etcd::{Settings as EtcdSettings, TlsFiles as EtcdFiles, User};
use bellrock_cluster::link::TlsFiles;
use bellrock_config::files::{PasswordFileError, read_password};
use bellrock_config::{ClusterConfig, EtcdConfig};

/// The settings of a node. `None`: the controller is alone. The check of the configuration demands
/// that the section is complete.
pub(super) fn settings(
    config: &ClusterConfig,
) -> Result<Option<ClusterSettings>, PasswordFileError> {
    let (Some(name), Some(node)) = (&config.name, &config.node) else { return Ok(None) };
    let peers = config.peers.iter().map(|(name, address)| (name.clone(), *address));
    let tls = config.tls.clone();
    let tls = match (tls.certificate, tls.key, tls.ca) {
        (Some(certificate), Some(key), Some(authorities)) => {
            Some(TlsFiles { certificate, key, authorities })
        }
        _ => None,
    };
    Ok(Some(ClusterSettings {
        name: name.clone(),
        node: node.clone(),
        listen: config.listen,
        peers: peers.collect(),
        tls,
        etcd: etcd(&config.etcd)?,
    }))
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
