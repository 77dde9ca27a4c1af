//! The files of a cluster: TLS between its nodes, and towards etcd.

use std::path::Path;

use bellrock::tls::{TlsFiles, TlsServer};
use bellrock_config::Config;
use bellrock_config::files::{WrongFile, remedy};
use bellrock_northbound::{LoadedCertificate, TlsError, TlsFiles as PairFiles};
use bellrock_tls::{TlsFileError, files};

use super::named_files::wrong as wrong_file;

/// What is wrong with them. The check of the configuration demands that they are complete.
pub(super) fn wrong(config: &Config) -> [Option<WrongFile>; 3] {
    [between_nodes(config), certificate_for_etcd(config), authorities_of_etcd(config)]
}

fn between_nodes(config: &Config) -> Option<WrongFile> {
    let tls = config.cluster.tls.clone();
    let files = TlsFiles {
        certificate: tls.certificate?,
        key: tls.key?,
        authorities: tls.ca?,
        revocations: tls.crl,
    };
    let Err(error) = TlsServer::read(&files) else { return name_of_node(config, files) };
    let setting = match error.path() {
        path if path == files.key => "cluster.tls.key",
        path if path == files.authorities => "cluster.tls.ca",
        path if Some(path) == files.revocations.as_deref() => "cluster.tls.crl",
        _ => "cluster.tls.certificate",
    };
    Some(wrong_file(setting, &error, advice(&error)))
}

/// Whether the other nodes would know this one by its certificate.
fn name_of_node(config: &Config, files: TlsFiles) -> Option<WrongFile> {
    let TlsFiles { certificate, key, authorities, revocations } = files;
    let files = bellrock_cluster::link::TlsFiles { certificate, key, authorities, revocations };
    let error = files.check(config.cluster.node.as_deref()?).err()?;
    Some(wrong_file("cluster.tls.certificate", &error, ""))
}

fn certificate_for_etcd(config: &Config) -> Option<WrongFile> {
    let etcd = config.cluster.etcd.clone();
    let files = PairFiles { certificate: etcd.certificate?, key: etcd.key? };
    let error = LoadedCertificate::read(&files).err()?;
    let setting = match &error {
        TlsError::File(error) if error.path() == files.key => "cluster.etcd.key",
        _ => "cluster.etcd.certificate",
    };
    let remedy = match &error {
        TlsError::File(error) => advice(error),
        _ => "; cluster.etcd.key must be the key that the certificate was made for",
    };
    Some(wrong_file(setting, &error, remedy))
}

fn authorities_of_etcd(config: &Config) -> Option<WrongFile> {
    let read = |path: &Path| files::root_store(path, files::certificates(path)?);
    let error = read(config.cluster.etcd.ca.as_deref()?).err()?;
    Some(wrong_file("cluster.etcd.ca", &error, advice(&error)))
}

fn advice(error: &TlsFileError) -> &'static str {
    match error {
        TlsFileError::Unreadable { error, .. } => remedy(error),
        _ => "",
    }
}
