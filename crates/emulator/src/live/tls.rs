//! The switch's end of TLS.

use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{self, CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// The certificate of emulated switches, and the authority of controllers. As Open vSwitch does, all
/// switches have the same certificate, and the name in the controller's does not matter.
#[derive(Clone, Debug)]
pub struct SwitchTls(Arc<ClientConfig>);

/// Why a file of TLS cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct SwitchTlsError {
    path: PathBuf,
    why: String,
}

impl SwitchTls {
    /// Reads PEM files: the switches' certificate with those of its authorities, its key, and the
    /// authorities of controllers.
    ///
    /// # Errors
    /// A file cannot be read, or does not have what it should have.
    pub fn read(
        certificate: &Path,
        key: &Path,
        authorities: &Path,
    ) -> Result<Self, SwitchTlsError> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for root in certificates(authorities)? {
            roots.add(root).map_err(|error| wrong(authorities, &error))?;
        }
        let verifier = AnyName { roots, algorithms: provider.signature_verification_algorithms };
        let private =
            PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| wrong(key, &error))?;
        let config = client_config(provider, verifier)
            .with_client_auth_cert(certificates(certificate)?, private)
            .map_err(|error| wrong(certificate, &error))?;
        Ok(SwitchTls(Arc::new(config)))
    }
}

fn client_config(
    provider: Arc<CryptoProvider>,
    verifier: AnyName,
) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    // Its versions are known at compile time to be those of this provider.
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.unwrap_or_else(|error| unreachable!("{error}"));
    builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SwitchTlsError> {
    let pem = read(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let all = all.map_err(|error| wrong(path, &error))?;
    match all.is_empty() {
        true => Err(wrong(path, &"it has no certificate in PEM (BEGIN CERTIFICATE)")),
        false => Ok(all),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SwitchTlsError> {
    fs::read(path).map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, why: &dyn fmt::Display) -> SwitchTlsError {
    SwitchTlsError { path: path.into(), why: why.to_string() }
}

/// Accepts every certificate that an authority has signed, whatever its name.
#[derive(Debug)]
struct AnyName {
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let own = ParsedCertificate::try_from(own)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&own, &self.roots, others, now, algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// A TLS session over a TCP connection that does not block.
pub(super) struct SwitchSession(Box<ClientConnection>);

impl SwitchSession {
    pub(super) fn new(tls: &SwitchTls) -> io::Result<Self> {
        // It is neither sent nor checked.
        let name = ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let session = ClientConnection::new(Arc::clone(&tls.0), name).map_err(io::Error::other)?;
        Ok(SwitchSession(Box::new(session)))
    }

    /// Continues the handshake. `true`: it is finished.
    pub(super) fn handshake(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        loop {
            if !self.flush(stream)? {
                return Ok(false);
            }
            if !self.0.is_handshaking() {
                return Ok(true);
            }
            match self.receive(stream) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads decrypted bytes, as many as there are at once; 0 at the end.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there are none now.
    pub(super) fn read(&mut self, stream: &mut TcpStream, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A close without close_notify is a close too: switches end like this.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            self.receive(stream)?;
        }
    }

    /// Reads from the kernel once, and decrypts.
    fn receive(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        let received = self.0.read_tls(stream)?;
        if let Err(error) = self.0.process_new_packets() {
            // The alert explains it to the controller.
            let _ = self.flush(stream);
            return Err(io::Error::other(error));
        }
        self.flush(stream)?;
        Ok(received)
    }

    /// Encrypts bytes. Returns the number of those that were taken: none while earlier ones wait.
    pub(super) fn write(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
        if !self.flush(stream)? || bytes.is_empty() {
            return Ok(0);
        }
        let taken = self.0.writer().write(bytes)?;
        self.flush(stream)?;
        Ok(taken)
    }

    /// Gives what is encrypted to the kernel. `false`: it does not take all of it now.
    fn flush(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        while self.0.wants_write() {
            match self.0.write_tls(stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
