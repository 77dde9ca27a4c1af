//! `bellrock pki`: certificates for controllers, nodes and switches, for those who have no
//! authority.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bellrock_api::Dpid;
use clap::{Args, Subcommand};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateRevocationListParams,
    DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SanType, SerialNumber,
};

use super::{Failure, print};

/// Make certificates for TLS between the controller, switches and the nodes of a cluster
///
/// Makes an authority, and certificates that it signs, as PEM files in one directory. Keep the
/// authority's key away from the controller: who has it can pose as any switch.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct PkiArgs {
    #[command(subcommand)]
    order: Order,

    /// The directory of the files
    #[arg(long, value_name = "DIR", default_value = "pki", global = true)]
    dir: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Make an authority: ca-cert.pem and ca-key.pem
    Init {
        /// Its name
        #[arg(long, default_value = "Bellrock authority")]
        name: String,
    },
    /// Make a certificate of a controller: NAME-cert.pem, with its authority, and NAME-key.pem
    Controller {
        /// Its name, such as that of its machine
        #[arg(default_value = "controller")]
        name: String,
        #[command(flatten)]
        end: End,
    },
    /// Make a certificate of a node of a cluster: NAME-cert.pem and NAME-key.pem
    Node {
        /// Its name: cluster.node of its configuration
        name: String,
        #[command(flatten)]
        end: End,
    },
    /// Make a certificate of a switch: NAME-cert.pem and NAME-key.pem
    Switch {
        /// Its name, such as that of its machine
        name: String,
        /// The datapath ids that it speaks for, of all its bridges; without, it is pinned to those
        /// that it connects with first
        #[arg(long, value_name = "DPID", value_delimiter = ',')]
        dpid: Vec<Dpid>,
        #[command(flatten)]
        end: End,
    },
    /// Revoke the certificates of switches: adds them to crl.pem
    Revoke {
        /// Their files
        #[arg(required = true)]
        certificates: Vec<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct End {
    /// Days until it expires
    #[arg(long, default_value_t = 825, value_parser = clap::value_parser!(u32).range(1..=MAX_DAYS))]
    days: u32,
}

const EXAMPLES: &str = "\
Examples:
  bellrock pki init
  bellrock pki controller
  bellrock pki switch access-1 --dpid a1,a2
  bellrock pki node a --dir nodes-pki
  bellrock run --listen tls:0.0.0.0:6653 --tls-certificate pki/controller-cert.pem \\
      --tls-key pki/controller-key.pem --tls-ca pki/ca-cert.pem
  ovs-vsctl set-ssl $PWD/access-1-key.pem $PWD/access-1-cert.pem $PWD/ca-cert.pem
  ovs-vsctl set-controller br0 ssl:192.0.2.1:6653";

/// Maximum number of days until a certificate expires: ten years.
const MAX_DAYS: i64 = 3650;

/// Days until an authority expires: ten years.
const AUTHORITY_DAYS: u32 = 3650;

/// Days until a list of revocations must be made anew. Until then it is the newest.
const REVOCATIONS_DAYS: u32 = 3650;

const SECONDS_PER_DAY: u64 = 86_400;

/// A certificate is valid from an hour ago on: clocks of switches differ.
const BEFORE: Duration = Duration::from_secs(3600);

/// Maximum size of a file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Maximum length of a common name (RFC 5280, `ub-common-name`).
const MAX_NAME_CHARS: usize = 64;

pub(super) fn run(args: &PkiArgs) -> Result<(), Failure> {
    let PkiArgs { order, dir } = args;
    let place = Place(dir);
    let text = match order {
        Order::Init { name } => place.make_authority(name),
        Order::Controller { name, end } => place.make_controller(name, end.days),
        Order::Node { name, end } => place.make_node(name, end.days),
        Order::Switch { name, dpid, end } => place.make_switch(name, dpid, end.days),
        Order::Revoke { certificates } => place.revoke(certificates),
    };
    print(&text.map_err(|error| Failure::Failed(error.to_string()))?)
}

/// Makes an authority in a directory, and the certificates `controller` and `switches`: enough for
/// one measurement.
pub(super) fn make_pair(dir: &Path) -> Result<(), Failure> {
    const DAYS: u32 = 1;
    let place = Place(dir);
    let made = place
        .make_authority("Bellrock measurement")
        .and_then(|_| place.make_controller("controller", DAYS))
        .and_then(|_| place.make_switch("switches", &[], DAYS));
    made.map(drop).map_err(|error| Failure::Failed(error.to_string()))
}

/// Why no certificate was made.
#[derive(Debug, thiserror::Error)]
enum PkiError {
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{} is there already; move it away to make another", .0.display())]
    Exists(PathBuf),
    #[error("{}: there is no authority; make one: bellrock pki init --dir {}", path.display(), dir.display())]
    NoAuthority { path: PathBuf, dir: PathBuf },
    #[error("{}: {why}", path.display())]
    Content { path: PathBuf, why: String },
    #[error(
        "{0:?} cannot be the name of a certificate; give 1 to {MAX_NAME_CHARS} letters, digits, `-`, `_` and `.`"
    )]
    Name(String),
    #[error("the certificate cannot be made: {0}")]
    Rcgen(#[from] rcgen::Error),
}

/// The directory of the files.
struct Place<'p>(&'p Path);

impl Place<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn make_authority(&self, name: &str) -> Result<String, PkiError> {
        let mut params = params(name, AUTHORITY_DAYS);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        fs::create_dir_all(self.0).map_err(|error| failed(self.0, error))?;
        let (certificate_path, key_path) = (self.path("ca-cert.pem"), self.path("ca-key.pem"));
        self.write_pair(&certificate_path, &certificate.pem(), &key_path, &key)?;
        Ok(format!(
            "the authority is {}; keep {} in a safe place, away from the controller\n",
            certificate_path.display(),
            key_path.display()
        ))
    }

    fn make_controller(&self, name: &str, days: u32) -> Result<String, PkiError> {
        let usages = [ExtendedKeyUsagePurpose::ServerAuth];
        let (certificate, key) = self.sign(name, days, &usages, &[])?;
        // Switches that start without an authority take it from there.
        let chain = certificate.pem() + &read(&self.path("ca-cert.pem"))?;
        let (certificate, key) = self.write(name, &chain, &key)?;
        Ok(format!(
            "for the controller:\n\
             tls:\n  certificate: {}\n  key: {}\n  ca: {}\n",
            absolute(&certificate),
            absolute(&key),
            absolute(&self.path("ca-cert.pem"))
        ))
    }

    /// Nodes connect to each other, so each one is both ends.
    fn make_node(&self, name: &str, days: u32) -> Result<String, PkiError> {
        let usages = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let (certificate, key) = self.sign(name, days, &usages, &[])?;
        let (certificate, key) = self.write(name, &certificate.pem(), &key)?;
        Ok(format!(
            "for the node {name}:\n\
             cluster:\n  node: {name}\n  tls:\n    certificate: {}\n    key: {}\n    ca: {}\n",
            absolute(&certificate),
            absolute(&key),
            absolute(&self.path("ca-cert.pem"))
        ))
    }

    fn make_switch(&self, name: &str, dpids: &[Dpid], days: u32) -> Result<String, PkiError> {
        let usages = [ExtendedKeyUsagePurpose::ClientAuth];
        let (certificate, key) = self.sign(name, days, &usages, dpids)?;
        let (certificate, key) = self.write(name, &certificate.pem(), &key)?;
        let dpids: Vec<_> = dpids.iter().map(Dpid::to_string).collect();
        let of = match dpids.is_empty() {
            true => "the datapath ids that it connects with first".to_owned(),
            false => dpids.join(", "),
        };
        Ok(format!(
            "for {of}; with Open vSwitch:\novs-vsctl set-ssl {} {} {}\n",
            absolute(&key),
            absolute(&certificate),
            absolute(&self.path("ca-cert.pem"))
        ))
    }

    /// Signs a new key.
    fn sign(
        &self,
        name: &str,
        days: u32,
        usages: &[ExtendedKeyUsagePurpose],
        dpids: &[Dpid],
    ) -> Result<(Certificate, KeyPair), PkiError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_name = (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(allowed);
        // `ca` is the authority itself.
        if !is_name || name.starts_with('.') || name == "ca" {
            return Err(PkiError::Name(name.to_owned()));
        }
        let issuer = self.authority()?;
        let mut params = params(name, days);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = usages.to_vec();
        params.subject_alt_names.push(SanType::DnsName(name.try_into()?));
        for dpid in dpids {
            params.subject_alt_names.push(SanType::URI(format!("of:{dpid}").try_into()?));
        }
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &issuer)?, key))
    }

    fn authority(&self) -> Result<Issuer<'static, KeyPair>, PkiError> {
        let (certificate, key) = (self.path("ca-cert.pem"), self.path("ca-key.pem"));
        if !certificate.exists() {
            return Err(PkiError::NoAuthority { path: certificate, dir: self.0.into() });
        }
        let key = KeyPair::from_pem(&read(&key)?)
            .map_err(|error| PkiError::Content { path: key, why: error.to_string() })?;
        Issuer::from_ca_cert_pem(&read(&certificate)?, key)
            .map_err(|error| PkiError::Content { path: certificate, why: error.to_string() })
    }

    fn write(
        &self,
        name: &str,
        certificate: &str,
        key: &KeyPair,
    ) -> Result<(PathBuf, PathBuf), PkiError> {
        let certificate_path = self.path(&format!("{name}-cert.pem"));
        let key_path = self.path(&format!("{name}-key.pem"));
        self.write_pair(&certificate_path, certificate, &key_path, key)?;
        Ok((certificate_path, key_path))
    }

    fn write_pair(
        &self,
        certificate_path: &Path,
        certificate: &str,
        key_path: &Path,
        key: &KeyPair,
    ) -> Result<(), PkiError> {
        if certificate_path.exists() {
            return Err(PkiError::Exists(certificate_path.into()));
        }
        write_new(key_path, key.serialize_pem().as_bytes(), 0o600)?;
        write_new(certificate_path, certificate.as_bytes(), 0o644)
    }

    /// Writes a list of all revoked certificates: those of the present one, and these.
    fn revoke(&self, certificates: &[PathBuf]) -> Result<String, PkiError> {
        let issuer = self.authority()?;
        let path = self.path("crl.pem");
        let mut revoked = match path.exists() {
            true => revoked_in(&path)?,
            false => Vec::new(),
        };
        let before = revoked.len();
        let own = subject_of(&self.path("ca-cert.pem"))?;
        for certificate in certificates {
            let (serial, signer) = serial_of(certificate)?;
            if signer != own {
                let why = "another authority has signed it, which has to revoke it".to_owned();
                return Err(PkiError::Content { path: certificate.clone(), why });
            }
            if revoked.iter().all(|one| one.serial_number.to_bytes() != serial) {
                revoked.push(RevokedCertParams {
                    serial_number: SerialNumber::from_slice(&serial),
                    revocation_time: SystemTime::now().into(),
                    reason_code: None,
                    invalidity_date: None,
                });
            }
        }
        let (new, all) = (revoked.len() - before, revoked.len());
        let list = CertificateRevocationListParams {
            this_update: (SystemTime::now() - BEFORE).into(),
            next_update: after(REVOCATIONS_DAYS).into(),
            crl_number: SerialNumber::from(all as u64),
            issuing_distribution_point: None,
            revoked_certs: revoked,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let pem = list.signed_by(&issuer)?.pem()?;
        let beside = self.path("crl.pem.new");
        fs::write(&beside, pem).map_err(|error| failed(&beside, error))?;
        fs::rename(&beside, &path).map_err(|error| failed(&path, error))?;
        Ok(format!(
            "revoked now: {new}; {} has {all}; set it as tls.crl, and run `bellrock reload`\n",
            absolute(&path)
        ))
    }
}

fn params(name: &str, days: u32) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = (SystemTime::now() - BEFORE).into();
    params.not_after = after(days).into();
    params
}

fn after(days: u32) -> SystemTime {
    SystemTime::now() + Duration::from_secs(u64::from(days) * SECONDS_PER_DAY)
}

/// The serial number of a certificate, and the name of its authority (DER).
fn serial_of(path: &Path) -> Result<(Vec<u8>, Vec<u8>), PkiError> {
    let wrong = |why: String| PkiError::Content { path: path.into(), why };
    let text = read(path)?;
    let (_, pem) = x509_parser::pem::parse_x509_pem(text.as_bytes())
        .map_err(|_| wrong("it has no certificate in PEM (BEGIN CERTIFICATE)".to_owned()))?;
    let certificate = pem.parse_x509().map_err(|error| wrong(error.to_string()))?;
    Ok((certificate.raw_serial().to_vec(), certificate.issuer().as_raw().to_vec()))
}

fn subject_of(path: &Path) -> Result<Vec<u8>, PkiError> {
    // An authority signs itself.
    serial_of(path).map(|(_, issuer)| issuer)
}

/// The certificates that a list revokes.
fn revoked_in(path: &Path) -> Result<Vec<RevokedCertParams>, PkiError> {
    let wrong = |why: String| PkiError::Content { path: path.into(), why };
    let text = read(path)?;
    let (_, pem) = x509_parser::pem::parse_x509_pem(text.as_bytes())
        .map_err(|_| wrong("it has no list of revocations in PEM (BEGIN X509 CRL)".to_owned()))?;
    let (_, list) =
        x509_parser::parse_x509_crl(&pem.contents).map_err(|error| wrong(error.to_string()))?;
    let revoked = list.iter_revoked_certificates().map(|one| RevokedCertParams {
        serial_number: SerialNumber::from_slice(one.raw_serial()),
        revocation_time: one.revocation_date.to_datetime(),
        reason_code: None,
        invalidity_date: None,
    });
    Ok(revoked.collect())
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.into()).display().to_string()
}

fn failed(path: &Path, error: io::Error) -> PkiError {
    PkiError::File { path: path.into(), error }
}

fn read(path: &Path) -> Result<String, PkiError> {
    if fs::metadata(path).map_err(|error| failed(path, error))?.len() > MAX_FILE_BYTES {
        let why = format!("it has more than {MAX_FILE_BYTES} bytes");
        return Err(PkiError::Content { path: path.into(), why });
    }
    fs::read_to_string(path).map_err(|error| failed(path, error))
}

/// Writes a file that must not exist, with these permissions from the start.
fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), PkiError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => PkiError::Exists(path.into()),
        _ => failed(path, error),
    })
}
