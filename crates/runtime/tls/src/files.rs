//! Files in PEM.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use x509_parser::prelude::FromDer as _;
use x509_parser::revocation_list::CertificateRevocationList;

/// Maximum size of a file of certificates, of a key or of revocations, in bytes.
pub const MAX_PEM_BYTES: u64 = 16 << 20;

/// Why a file cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFileError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It does not have what it should have.
    #[error("{}: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl TlsFileError {
    /// The file does not have what it should have.
    pub fn content(path: &Path, why: impl Into<String>) -> Self {
        TlsFileError::Content { path: path.into(), why: why.into() }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            TlsFileError::Unreadable { path, .. } | TlsFileError::Content { path, .. } => path,
        }
    }
}

/// Reads one certificate or more, in order.
///
/// # Errors
/// [`TlsFileError`].
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    all(path, "certificate in PEM (BEGIN CERTIFICATE)")
}

/// Reads one list of revoked certificates or more.
///
/// # Errors
/// [`TlsFileError`].
pub fn revocations(
    path: &Path,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsFileError> {
    all(path, "list of revocations in PEM (BEGIN X509 CRL)")
}

/// When the first of these lists of revoked certificates should be replaced (`nextUpdate`), in
/// seconds since
/// 1970. `None`: they do not say, or cannot be read.
///
/// A list stays in force after that: without it, revoked certificates would be accepted again, and
/// refusing all would end the network. But what its authority has revoked since is accepted.
#[must_use]
pub fn revocations_end(lists: &[CertificateRevocationListDer<'_>]) -> Option<i64> {
    lists.iter().filter_map(|list| next_update(list)).min()
}

fn next_update(list: &CertificateRevocationListDer<'_>) -> Option<i64> {
    let (_, list) = CertificateRevocationList::from_der(list).ok()?;
    list.next_update().map(|time| time.timestamp())
}

/// Reads a private key.
///
/// # Errors
/// [`TlsFileError`].
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|_| {
        TlsFileError::content(path, "it has no private key in PEM (BEGIN PRIVATE KEY)")
    })
}

/// Makes a store of these authorities, which were read of `path`.
///
/// # Errors
/// One of them is none.
pub fn root_store(
    path: &Path,
    authorities: Vec<CertificateDer<'static>>,
) -> Result<RootCertStore, TlsFileError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots
            .add(authority)
            .map_err(|error| TlsFileError::content(path, format!("it is no authority: {error}")))?;
    }
    Ok(roots)
}

/// Reads all items of a kind: at least one.
fn all<T: PemObject>(path: &Path, what: &str) -> Result<Vec<T>, TlsFileError> {
    let pem = read(path)?;
    let all = T::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| TlsFileError::content(path, format!("not PEM: {error}")))?;
    if all.is_empty() {
        return Err(TlsFileError::content(path, format!("it has no {what}")));
    }
    Ok(all)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    let unreadable = |error| TlsFileError::Unreadable { path: path.into(), error };
    if fs::metadata(path).map_err(unreadable)?.len() > MAX_PEM_BYTES {
        let why = format!("it has more than {} MiB", MAX_PEM_BYTES >> 20);
        return Err(TlsFileError::content(path, why));
    }
    fs::read(path).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_what_it_should_have_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let made = rcgen::generate_simple_self_signed([String::from("x")]).unwrap();
        let (certificate, key) = (
            write("certificate.pem", &made.cert.pem()),
            write("key.pem", &made.signing_key.serialize_pem()),
        );
        assert_eq!(certificates(&certificate).unwrap(), [made.cert.der().clone()]);
        assert_eq!(private_key(&key).unwrap().secret_der(), made.signing_key.serialized_der());
        let store = root_store(&certificate, certificates(&certificate).unwrap()).unwrap();
        assert_eq!(store.len(), 1);
        let nothing = write("nothing.pem", "");
        let cut = write("cut.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
        let why = |error: TlsFileError| {
            assert!(error.to_string().starts_with(&error.path().display().to_string()));
            error.to_string()
        };
        for (error, expected) in [
            (why(certificates(&key).unwrap_err()), "it has no certificate in PEM"),
            (why(certificates(&nothing).unwrap_err()), "(BEGIN CERTIFICATE)"),
            (why(certificates(&cut).unwrap_err()), "not PEM: "),
            (why(private_key(&certificate).unwrap_err()), "it has no private key in PEM"),
            (why(revocations(&certificate).unwrap_err()), "it has no list of revocations in PEM"),
            (why(certificates(&dir.path().join("none")).unwrap_err()), "No such file"),
        ] {
            assert!(error.contains(expected), "{error}");
        }
        let broken = vec![CertificateDer::from(vec![0; 9])];
        assert!(why(root_store(&key, broken).unwrap_err()).contains("it is no authority: "));
    }

    #[test]
    fn the_end_of_lists_of_revoked_certificates_is_that_of_the_first() {
        let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![rcgen::KeyUsagePurpose::CrlSign];
        let key = rcgen::KeyPair::generate().unwrap();
        let issuer = rcgen::CertifiedIssuer::self_signed(params, key).unwrap();
        let list = |year| {
            let list = rcgen::CertificateRevocationListParams {
                this_update: rcgen::date_time_ymd(2000, 1, 1),
                next_update: rcgen::date_time_ymd(year, 9, 9),
                crl_number: rcgen::SerialNumber::from(1),
                issuing_distribution_point: None,
                revoked_certs: Vec::new(),
                key_identifier_method: rcgen::KeyIdMethod::Sha256,
            };
            list.signed_by(&issuer).unwrap().der().clone()
        };
        assert_eq!(revocations_end(&[list(2030), list(2001)]), Some(999_993_600));
        assert_eq!(revocations_end(&[CertificateRevocationListDer::from(vec![1, 2])]), None);
        assert_eq!(revocations_end(&[]), None);
    }
}
