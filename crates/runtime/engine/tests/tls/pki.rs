//! An authority with the certificates of a controller and of switches.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use bellrock_engine::TlsFiles;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SanType, SerialNumber, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

/// Name of the controller in its certificate.
pub const CONTROLLER: &str = "controller.example";

pub struct Pki {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Pki {
    pub fn new() -> Self {
        Pki::named("an authority")
    }

    /// An authority with this name.
    pub fn named(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let pki = Pki { issuer, folder: tempfile::tempdir().unwrap() };
        let (certificate, key) = pki.issue(CONTROLLER, |params| {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        });
        pki.write("controller.pem", &certificate.pem());
        pki.write("controller-key.pem", &key.serialize_pem());
        pki.write("authority.pem", &pki.issuer.pem());
        pki
    }

    /// The same, whose files stay.
    pub fn keep(self) -> Self {
        let Pki { issuer, mut folder } = self;
        folder.disable_cleanup(true);
        Pki { issuer, folder }
    }

    pub fn files(&self) -> TlsFiles {
        let path = |name: &str| self.folder.path().join(name);
        TlsFiles {
            certificate: path("controller.pem"),
            key: path("controller-key.pem"),
            authorities: path("authority.pem"),
            revocations: None,
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn issue(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.serial_number = Some(serial_number(name));
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn config(
        &self,
        versions: &[&'static SupportedProtocolVersion],
    ) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        builder.with_protocol_versions(versions).unwrap().with_root_certificates(roots)
    }

    /// The side of a switch with this name.
    pub fn client(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        name: &str,
    ) -> Arc<ClientConfig> {
        let (certificate, key) = self.issue(name, |_| ());
        self.with_certificate(versions, certificate.der().clone(), &key)
    }

    /// A switch whose certificate names datapath ids by URIs.
    pub fn client_of(&self, name: &str, uris: &[&str]) -> Arc<ClientConfig> {
        let (certificate, key) = self.issue(name, |params| {
            let uri = |uri: &&str| SanType::URI((*uri).try_into().unwrap());
            params.subject_alt_names.extend(uris.iter().map(uri));
        });
        self.with_certificate(rustls::DEFAULT_VERSIONS, certificate.der().clone(), &key)
    }

    fn with_certificate(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        certificate: CertificateDer<'static>,
        key: &KeyPair,
    ) -> Arc<ClientConfig> {
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        Arc::new(self.config(versions).with_client_auth_cert(vec![certificate], key).unwrap())
    }

    /// A switch without a certificate.
    pub fn anonymous(&self) -> Arc<ClientConfig> {
        Arc::new(self.config(rustls::DEFAULT_VERSIONS).with_no_client_auth())
    }

    /// A switch with a certificate of another authority.
    pub fn stranger(&self, other: &Pki) -> Arc<ClientConfig> {
        let (certificate, key) = other.issue("switch", |_| ());
        self.with_certificate(rustls::DEFAULT_VERSIONS, certificate.der().clone(), &key)
    }

    /// A switch whose certificate ends then.
    pub fn ending(&self, name: &str, end: SystemTime) -> Arc<ClientConfig> {
        let (certificate, key) = self.issue(name, |params| params.not_after = end.into());
        self.with_certificate(rustls::DEFAULT_VERSIONS, certificate.der().clone(), &key)
    }

    /// A switch whose certificate has ended.
    pub fn expired(&self) -> Arc<ClientConfig> {
        let (certificate, key) = self.issue("switch", |params| {
            params.not_before = date_time_ymd(2000, 1, 1);
            params.not_after = date_time_ymd(2001, 1, 1);
        });
        self.with_certificate(rustls::DEFAULT_VERSIONS, certificate.der().clone(), &key)
    }

    /// A file that revokes the certificates of a switch.
    pub fn revoke(&self, name: &str) -> PathBuf {
        let revoked = RevokedCertParams {
            serial_number: serial_number(name),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2100, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        self.write("revoked.pem", &list.signed_by(&self.issuer).unwrap().pem().unwrap())
    }
}

/// All certificates of a name have the same number.
fn serial_number(name: &str) -> SerialNumber {
    SerialNumber::from_slice(name.as_bytes().get(..8).unwrap_or(name.as_bytes()))
}
