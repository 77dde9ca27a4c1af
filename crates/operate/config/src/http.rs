//! The settings of the HTTP server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::Config;
use super::form::{Change, Form, MapForm, NONE, Setting};
use super::names::pair;
use super::settings::join;
use super::values::{self, Wrong, WrongItem};
use super::yaml::{Entry, Value, word};

/// Settings of the HTTP server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpConfig {
    /// Addresses to listen on. Empty: there is no server.
    pub listen: Vec<SocketAddr>,
    /// Addresses of the loopback for the REST interface of Ryu.
    pub ryu: Vec<SocketAddr>,
    /// File of the certificate.
    pub certificate: Option<PathBuf>,
    /// File of its private key.
    pub key: Option<PathBuf>,
    /// File of the tokens.
    pub tokens: Option<PathBuf>,
    /// Tokens beside those of the file, by name: what follows the name in a line of the file.
    pub token_hashes: BTreeMap<String, String>,
    /// Time between two requests to a switch for the counters of its ports. `None`: never.
    pub poll_ports: Option<Duration>,
    /// Time between two requests to a switch for its flows. `None`: never.
    pub poll_flows: Option<Duration>,
}

const POLL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);

fn interval(text: &str) -> Result<Option<Duration>, Wrong> {
    match text {
        NONE => Ok(None),
        text => {
            let interval = values::time(text, POLL).map_err(|right| format!("none, or {right}"))?;
            Ok(Some(interval))
        }
    }
}

fn show_interval(interval: Option<Duration>) -> String {
    interval.map_or_else(|| NONE.to_owned(), values::show_time)
}

/// Reads addresses, or `none`.
fn addresses(texts: &[&str]) -> Result<Vec<SocketAddr>, Wrong> {
    if texts == [NONE] {
        return Ok(Vec::new());
    }
    if let Some(item) = texts.iter().position(|text| *text == NONE) {
        let expected = "none alone, or addresses without it".to_owned();
        return Err(Wrong(vec![WrongItem { item, expected }]));
    }
    values::each(texts, |text| {
        let right = "none, or an address and a port, such as 127.0.0.1:8080";
        values::address(text).map_err(|_| right.to_owned())
    })
}

fn show_addresses(addresses: &[SocketAddr]) -> String {
    if addresses.is_empty() { NONE.to_owned() } else { join(addresses) }
}

/// Reads a path, or `none`.
pub(crate) fn path(text: &str) -> Result<Option<PathBuf>, Wrong> {
    match text {
        "" => Err("none, or a path".to_owned().into()),
        NONE => Ok(None),
        path => Ok(Some(path.into())),
    }
}

pub(crate) fn show_path(path: Option<&PathBuf>) -> String {
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
                config.http.listen = addresses(texts)?;
                Ok(())
            },
            show: |config| show_addresses(&config.http.listen),
        },
    },
    Setting {
        key: "http.ryu",
        value: "ADDR:PORT",
        about: "Address of a server with the REST interface of Ryu, for its scripts; several times \
                for several. It has no tokens, so it is of the loopback. none: no such server.",
        change: Change::Restart,
        form: Form::Many {
            set: |config, texts| {
                config.http.ryu = addresses(texts)?;
                Ok(())
            },
            show: |config| show_addresses(&config.http.ryu),
        },
    },
    Setting {
        key: "http.certificate",
        value: "PATH",
        about: "File with the certificate of the HTTP server and those of its authorities, in PEM. \
                none: plain HTTP, on the loopback only.",
        change: Change::Live,
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
        change: Change::Live,
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
    Setting {
        key: "http.token_hashes",
        value: "NAME=TOKEN",
        about: "Tokens beside those of the file: a map from each name to scope, SHA-256 and perhaps \
                the end, as bellrock token prints it without a file. Example: {grafana: read \
                5e88489...}.",
        change: Change::Live,
        form: Form::Map(MapForm {
            example: "{grafana: read 5e88489...}",
            set: |config, entries, reading| {
                let mut hashes = BTreeMap::new();
                for Entry { key, value, .. } in entries {
                    if let Value::Scalar(text) = &value.value {
                        hashes.insert(key.clone(), text.clone());
                    } else {
                        let text =
                            format!("`{key}` takes one text: SCOPE HASH, or SCOPE HASH EXPIRES");
                        reading.add(value.place, text);
                    }
                }
                config.http.token_hashes = hashes;
            },
            entries: |config| {
                let hashes = config.http.token_hashes.iter();
                hashes.map(|(name, rest)| (word(name), word(rest))).collect()
            },
            unpack: pair,
        }),
    },
    Setting {
        key: "http.poll_ports",
        value: "TIME",
        about: "Time between two requests to a switch for the counters of its ports, for the \
                metrics. none: switches are not asked.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                config.http.poll_ports = interval(text)?;
                Ok(())
            },
            show: |config| show_interval(config.http.poll_ports),
        },
    },
    Setting {
        key: "http.poll_flows",
        value: "TIME",
        about: "Time between two requests to a switch for its flows, whose number the metrics \
                report for each app. none: switches are not asked.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                config.http.poll_flows = interval(text)?;
                Ok(())
            },
            show: |config| show_interval(config.http.poll_flows),
        },
    },
];
