//! The files that a configuration names: certificates, keys, tokens, static entries, and those that
//! `bellrock_config` reads itself.
//!
//! Every check of a configuration (`check`, `doctor`, `reload`) goes through [`check`], which reads
//! them with the functions of the start. So a configuration that is right also starts, as far as
//! files decide it. It changes nothing.

use std::io;
use std::path::Path;

use bellrock::settings::{FileStoreError, StaticFileError};
use bellrock::tls::TlsServer;
use bellrock_config::apps::AppChoice;
use bellrock_config::files::{WrongFile, remedy};
use bellrock_config::{Checked, Config, FileError, HttpConfig, Sources};
use bellrock_northbound::{LoadedCertificate, TlsError, TlsFileError, TlsFiles, tokens};
use bellrock_operator::check_static_file;
use rustix::fs::{Access, access};

use super::apps::reserved_meters;
use super::stores::{read_orders, store_path};
use super::{cluster_files, switch_tls};

/// Whether the files of what apps store are to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// They are read, and their directories must be writable.
    Free,
    /// The running controller asks, and it owns the files: they do not change with a reload.
    InUse,
}

/// Checks settings with all files that they name.
///
/// # Errors
/// The configuration file cannot be used. Other errors are in [`Checked`], each with the place of
/// the setting that names the file.
pub fn check(sources: &Sources, store: Store) -> Result<Checked, FileError> {
    sources.check_with(|config| {
        let mut wrong: Vec<_> = [
            certificate(config),
            tokens_file(config),
            given_tokens(config),
            switch_certificate(config),
        ]
        .into_iter()
        .chain(cluster_files::wrong(config))
        .flatten()
        .collect();
        if store == Store::Free {
            wrong.extend(config.apps.iter().filter_map(|app| store_file(config, app)));
        }
        wrong
    })
}

fn certificate(config: &Config) -> Option<WrongFile> {
    let files = tls_files(&config.http)?;
    let error = LoadedCertificate::read(&files).err()?;
    let setting = match &error {
        TlsError::File(error) if error.path() == files.key => "http.key",
        _ => "http.certificate",
    };
    let remedy = match &error {
        TlsError::File(TlsFileError::Unreadable { error, .. }) => remedy(error),
        TlsError::Pair(_) => "; http.key must be the key that the certificate was made for",
        _ => "",
    };
    Some(wrong(setting, &error, remedy))
}

fn tokens_file(config: &Config) -> Option<WrongFile> {
    let is_served = !config.http.listen.is_empty() || !config.http.ryu.is_empty();
    let path = config.http.tokens.as_deref().filter(|_| is_served)?;
    let error = tokens::read(path).err()?;
    let remedy = match &error {
        tokens::TokenError::File { error, .. } if error.kind() == io::ErrorKind::NotFound => {
            "; make it with bellrock token, or correct its path"
        }
        tokens::TokenError::File { error, .. } => remedy(error),
        _ => "",
    };
    Some(wrong("http.tokens", &error, remedy))
}

fn given_tokens(config: &Config) -> Option<WrongFile> {
    let setting = "http.token_hashes";
    let why = tokens::of_settings(&config.http.token_hashes).err()?;
    Some(wrong(setting, &why, ""))
}

fn switch_certificate(config: &Config) -> Option<WrongFile> {
    let files = switch_tls::files(&config.tls)?;
    let error = TlsServer::read(&files).err()?;
    let remedy = match &error {
        TlsFileError::Unreadable { error, .. } => remedy(error),
        _ => "",
    };
    let setting = match error.path() {
        path if path == files.key => "tls.key",
        path if path == files.authorities => "tls.ca",
        path if Some(path) == files.revocations.as_deref() => "tls.crl",
        _ => "tls.certificate",
    };
    Some(wrong(setting, &error, remedy))
}

/// The file that keeps what an app stores.
fn store_file(config: &Config, app: &AppChoice) -> Option<WrongFile> {
    let path = store_path(config, app)?;
    let setting = &format!("apps.{}.store", app.name());
    let (error, remedy) = match app {
        AppChoice::Static(_) => match check_static_file(&path, reserved_meters(config)) {
            Ok(()) => return unwritable(setting, &path),
            Err(error) => {
                let remedy = match &error {
                    StaticFileError::File(FileStoreError::Io { error, .. }) => remedy(error),
                    _ => "",
                };
                (error.to_string(), remedy)
            }
        },
        _ => match read_orders(&path) {
            Ok(_) => return unwritable(setting, &path),
            Err(error) => (error.to_string(), ""),
        },
    };
    Some(wrong(setting, &error, remedy))
}

/// Whether the file cannot be replaced: as a whole, by a new file beside it.
fn unwritable(setting: &str, path: &Path) -> Option<WrongFile> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let error = io::Error::from(access(directory, Access::WRITE_OK | Access::EXEC_OK).err()?);
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "; make the directory, or name another file",
        _ => "; let the user of the controller write to the directory, or name another file",
    };
    Some(wrong(setting, &format!("{}: {error}", directory.display()), remedy))
}

pub(super) fn wrong(setting: &str, error: &dyn std::fmt::Display, remedy: &str) -> WrongFile {
    WrongFile { setting: Some(setting.to_owned()), text: format!("{setting}: {error}{remedy}") }
}

/// The files of the HTTP server's certificate, if the server runs and has one.
pub(super) fn tls_files(config: &HttpConfig) -> Option<TlsFiles> {
    let HttpConfig { listen, certificate, key, .. } = config;
    let files = certificate.clone().zip(key.clone()).filter(|_| !listen.is_empty());
    files.map(|(certificate, key)| TlsFiles { certificate, key })
}
