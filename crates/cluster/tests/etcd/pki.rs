//! Authorities, with certificates of etcd and its clients.

use std::fs;

use bellrock_cluster::etcd::TlsFiles;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use tempfile::TempDir;

pub struct Pki {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Pki {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Pki { issuer, folder: tempfile::tempdir().unwrap() }
    }

    /// Files of this name, with a certificate for these hosts. (etcd's gateway is a client of its
    /// own etcd, with etcd's certificate.)
    pub fn files(&self, name: &str, hosts: &[&str]) -> TlsFiles {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let write = |kind: &str, text: String| {
            let path = self.folder.path().join(format!("{name}-{kind}.pem"));
            fs::write(&path, text).unwrap();
            path
        };
        TlsFiles {
            authorities: write("authority", self.issuer.pem()),
            certificate: Some((
                write("certificate", certificate.pem()),
                write("key", key.serialize_pem()),
            )),
        }
    }
}
