//! The table of the cluster's settings.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::{EtcdEndpoint, MAX_CLUSTER_NAME_BYTES, MAX_ETCD_ENDPOINTS};
use crate::Config;
use crate::form::{Change, Form, MapForm, NONE, Setting};
use crate::http::{path, show_path};
use crate::names::pair;
use crate::read::Reading;
use crate::settings::{BOOLS, join, put};
use crate::values::{self, Read, Wrong, WrongItem};
use crate::yaml::{Entry, Value, word};

/// Reads the name of a cluster or node.
fn name(text: &str) -> Read<String> {
    let known = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let is_name = (1..=MAX_CLUSTER_NAME_BYTES).contains(&text.len()) && text.bytes().all(known);
    is_name.then(|| text.to_owned()).ok_or_else(|| {
        format!("a name of 1 to {MAX_CLUSTER_NAME_BYTES} lower-case letters, digits and -")
    })
}

fn name_or_none(text: &str) -> Result<Option<String>, Wrong> {
    match text {
        NONE => Ok(None),
        text => Ok(Some(name(text).map_err(|right| format!("{NONE}, or {right}"))?)),
    }
}

fn show_or_none(value: Option<&String>) -> String {
    value.cloned().unwrap_or_else(|| NONE.to_owned())
}

/// A setting with the path of a file, or `none`.
macro_rules! file {
    ($key:literal, $section:ident.$field:ident, $change:ident, $about:literal) => {
        Setting {
            key: $key,
            value: "PATH",
            about: $about,
            change: Change::$change,
            form: Form::One {
                set: |config, text| {
                    config.cluster.$section.$field = path(text)?;
                    Ok(())
                },
                show: |config| show_path(config.cluster.$section.$field.as_ref()),
            },
        }
    };
}

pub(crate) const CLUSTER: &[Setting<Config>] = &[
    Setting {
        key: "cluster.name",
        value: "NAME",
        about: "Name of the cluster, the same at all nodes. Its keys in etcd begin with \
                /bellrock/NAME/. none: this controller is alone.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                config.cluster.name = name_or_none(text)?;
                Ok(())
            },
            show: |config| show_or_none(config.cluster.name.as_ref()),
        },
    },
    Setting {
        key: "cluster.node",
        value: "NAME",
        about: "Name of this node, another one at each node.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                config.cluster.node = name_or_none(text)?;
                Ok(())
            },
            show: |config| show_or_none(config.cluster.node.as_ref()),
        },
    },
    Setting {
        key: "cluster.listen",
        value: "ADDR:PORT",
        about: "Address where the other nodes connect. One that other machines reach needs \
                cluster.tls.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| put(&mut config.cluster.listen, listen(text)),
            show: |config| config.cluster.listen.to_string(),
        },
    },
    Setting {
        key: "cluster.peers",
        value: "NAME=ADDR:PORT",
        about: "The other nodes: a map from the name of each to the address where it listens. There \
                are 2, 4, 6 or 8, so that a majority exists. Example: {b: 192.0.2.2:6640, c: \
                192.0.2.3:6640}.",
        change: Change::Restart,
        form: Form::Map(MapForm {
            example: "{b: 192.0.2.2:6640, c: 192.0.2.3:6640}",
            set: set_peers,
            entries: |config| {
                let peers = config.cluster.peers.iter();
                peers.map(|(name, address)| (word(name), word(&address.to_string()))).collect()
            },
            unpack: pair,
        }),
    },
    Setting {
        key: "cluster.etcd.endpoints",
        value: "URL",
        about: "Members of etcd, such as https://192.0.2.1:2379; several times for several. One is \
                enough, but it may be the one that fails.",
        change: Change::Restart,
        form: Form::Many {
            set: |config, texts| {
                config.cluster.etcd.endpoints = endpoints(texts)?;
                Ok(())
            },
            show: |config| match &*config.cluster.etcd.endpoints {
                [] => NONE.to_owned(),
                endpoints => join(endpoints),
            },
        },
    },
    Setting {
        key: "cluster.etcd.user",
        value: "NAME",
        about: "User of etcd, with cluster.etcd.password_file. none: etcd has no users.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                config.cluster.etcd.user = match text {
                    "" => return Err("none, or the name of a user".to_owned().into()),
                    NONE => None,
                    user => Some(user.to_owned()),
                };
                Ok(())
            },
            show: |config| show_or_none(config.cluster.etcd.user.as_ref()),
        },
    },
    file!(
        "cluster.etcd.password_file",
        etcd.password_file,
        Restart,
        "File with the password of that user, alone in its first line."
    ),
    file!(
        "cluster.etcd.certificate",
        etcd.certificate,
        Restart,
        "File with the certificate that this node shows to etcd, in PEM. none: it shows none."
    ),
    file!(
        "cluster.etcd.key",
        etcd.key,
        Restart,
        "File with the private key of that certificate, in PEM."
    ),
    file!(
        "cluster.etcd.ca",
        etcd.ca,
        Restart,
        "File with the authorities that sign the certificates of etcd, in PEM. Addresses with \
         https: need it."
    ),
    Setting {
        key: "cluster.etcd.allow_plain",
        value: "BOOL",
        about: "Whether etcd on another machine is reached without TLS: true or false. Who can \
                change packets on the way is master of all switches then.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.cluster.etcd.allow_plain, values::choice(text, BOOLS))
            },
            show: |config| values::show_choice(&config.cluster.etcd.allow_plain, BOOLS),
        },
    },
    file!(
        "cluster.tls.certificate",
        tls.certificate,
        Live,
        "File with this node's certificate and those of its authorities, in PEM. none: without TLS, \
         on the loopback only."
    ),
    file!(
        "cluster.tls.key",
        tls.key,
        Live,
        "File with the private key of that certificate, in PEM."
    ),
    file!(
        "cluster.tls.ca",
        tls.ca,
        Live,
        "File with the authorities that sign the certificates of the nodes, in PEM. A node without \
         such a certificate is refused."
    ),
    file!(
        "cluster.tls.crl",
        tls.crl,
        Live,
        "File with lists of revoked certificates of nodes, in PEM; each authority needs a list there. \
         After a reload, connections of revoked certificates are closed."
    ),
];

/// The address where other nodes connect. They know its port from their configuration.
fn listen(text: &str) -> Read<SocketAddr> {
    let address = values::address(text).ok().filter(|address| address.port() != 0);
    address.ok_or_else(|| {
        "an address and a port, such as 127.0.0.1:6640, 0.0.0.0:6640 or [::]:6640".to_owned()
    })
}

/// The address of another node.
fn peer(text: &str) -> Read<SocketAddr> {
    let is_one = |address: &SocketAddr| address.port() != 0 && !address.ip().is_unspecified();
    values::address(text).ok().filter(is_one).ok_or_else(|| {
        "the address and port where that node listens, such as 192.0.2.2:6640 or \
         [2001:db8::2]:6640"
            .to_owned()
    })
}

fn endpoints(texts: &[&str]) -> Result<Vec<EtcdEndpoint>, Wrong> {
    if texts == [NONE] {
        return Ok(Vec::new());
    }
    let wrong = |item, expected: String| Wrong(vec![WrongItem { item, expected }]);
    if texts.len() > MAX_ETCD_ENDPOINTS {
        let expected = format!("at most {MAX_ETCD_ENDPOINTS} members of etcd");
        return Err(wrong(MAX_ETCD_ENDPOINTS, expected));
    }
    let endpoints = values::each(texts, |text| {
        text.parse::<EtcdEndpoint>().map_err(|right| format!("{NONE}, or {right}"))
    })?;
    for (item, endpoint) in endpoints.iter().enumerate() {
        if endpoints.iter().take(item).any(|other| other == endpoint) {
            return Err(wrong(item, "each member of etcd once".to_owned()));
        }
    }
    Ok(endpoints)
}

fn set_peers(config: &mut Config, entries: &[Entry], reading: &mut Reading) {
    let mut peers = BTreeMap::<String, SocketAddr>::new();
    for entry in entries {
        let key = &entry.key;
        if let Err(right) = name(key) {
            reading.add(entry.place, format!("{key:?} cannot be a node; give {right}"));
            continue;
        }
        let address = match &entry.value.value {
            Value::Scalar(text) => {
                peer(text).map_err(|right| format!("`{key}` cannot be at {text:?}; give {right}"))
            }
            _ => Err(format!("`{key}` takes one address, such as 192.0.2.2:6640")),
        };
        let place = entry.value.place;
        match address {
            Err(text) => reading.add(place, text),
            Ok(address) => match peers.iter().find(|(_, other)| **other == address) {
                Some((other, _)) => {
                    let text = format!(
                        "{address} is the address of {other:?} already; give `{key}` its own"
                    );
                    reading.add(place, text);
                }
                // A flag may name a node twice; a file cannot.
                None if peers.contains_key(key) => {
                    reading.add(place, format!("`{key}` stands here twice; leave one out"));
                }
                None => _ = peers.insert(key.clone(), address),
            },
        }
    }
    config.cluster.peers = peers;
}
