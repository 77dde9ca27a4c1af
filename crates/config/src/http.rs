//! The settings of the HTTP server.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::Config;
use super::form::{Change, Form, NONE, Setting};
use super::settings::join;
use super::values::{self, Wrong, WrongItem};

/// Settings of the HTTP server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpConfig {
    /// Addresses to listen on. Empty: there is no server.
    pub listen: Vec<SocketAddr>,
    /// File of the certificate.
    pub certificate: Option<PathBuf>,
    /// File of its private key.
    pub key: Option<PathBuf>,
    /// File of the tokens.
    pub tokens: Option<PathBuf>,
}

/// Reads a path, or `none`.
fn path(text: &str) -> Result<Option<PathBuf>, Wrong> {
    match text {
        "" => Err("none, or a path".to_owned().into()),
        NONE => Ok(None),
        path => Ok(Some(path.into())),
    }
}

fn show_path(path: Option<&PathBuf>) -> String {
    path.map_or_else(|| NONE.to_owned(), |path| path.display().to_string())
}

pub(crate) const HTTP: &[Setting<Config>] = &[
    Setting {
        key: "http.listen",
        value: "ADDR:PORT",
        about: "Address of the HTTP server, for REST; several times for several. An address that \
                other machines reach needs a certificate and tokens. none: no server.",
        change: Change::Restart,
        form: Form::Many {
            set: |config, texts| {
                config.http.listen = match texts {
                    [NONE] => Vec::new(),
                    texts => {
                        if let Some(item) = texts.iter().position(|text| *text == NONE) {
                            let expected = "none alone, or addresses without it".to_owned();
                            return Err(Wrong(vec![WrongItem { item, expected }]));
                        }
                        values::each(texts, |text| {
                            let right = "none, or an address and a port, such as 127.0.0.1:8080";
                            values::address(text).map_err(|_| right.to_owned())
                        })?
                    }
                };
                Ok(())
            },
            show: |config| match &config.http.listen[..] {
                [] => NONE.to_owned(),
                addresses => join(addresses),
            },
        },
    },
    Setting {
        key: "http.certificate",
        value: "PATH",
        about: "File with the certificate of the HTTP server and those of its authorities, in PEM. \
                none: plain HTTP, on the loopback only.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                config.http.certificate = path(text)?;
                Ok(())
            },
            show: |config| show_path(config.http.certificate.as_ref()),
        },
    },
    Setting {
        key: "http.key",
        value: "PATH",
        about: "File with the private key of that certificate, in PEM.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                config.http.key = path(text)?;
                Ok(())
            },
            show: |config| show_path(config.http.key.as_ref()),
        },
    },
    Setting {
        key: "http.tokens",
        value: "PATH",
        about: "File of the tokens, made by bellrock token; it is read again when it changes. \
                none: nobody can change anything by HTTP.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                config.http.tokens = path(text)?;
                Ok(())
            },
            show: |config| show_path(config.http.tokens.as_ref()),
        },
    },
];
