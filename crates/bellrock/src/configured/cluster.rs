//! From the section `cluster` to the settings of a node.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bellrock_cluster::ClusterSettings;
use bellrock_cluster::etcd::{Settings as EtcdSettings, TlsFiles as EtcdFiles, User};
use bellrock_cluster::link::TlsFiles;
use bellrock_config::{ClusterConfig, EtcdConfig};

/// Why the settings of a node cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cluster.etcd.password_file: {path} cannot be read: {error}")]
pub struct PasswordFileError {
    path: PathBuf,
    error: io::Error,
}

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
        (Some(name), Some(path)) => Some(User { name: name.clone(), password: password(path)? }),
        _ => None,
    };
    // The prefix is that of the cluster.
    let settings = EtcdSettings::new(endpoints, "/");
    Ok(EtcdSettings { tls, user, allow_plain: config.allow_plain, ..settings })
}

/// The password in a file: its first line.
fn password(path: &Path) -> Result<String, PasswordFileError> {
    let text =
        fs::read_to_string(path).map_err(|error| PasswordFileError { path: path.into(), error })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
