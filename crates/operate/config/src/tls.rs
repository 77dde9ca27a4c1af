//! The settings of TLS towards switches.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use bellrock_api::{Dpid, Fingerprint, SwitchIdentity, Version};
use bellrock_engine::session::Versions;
use bellrock_engine::{IdentityMap, UnnamedIdentity};

use super::Config;
use super::form::{Change, Form, MapForm, Packed, Setting};
use super::http::{path, show_path};
use super::names::switch;
use super::read::Reading;
use super::settings::{join, put};
use super::store::StorePlace;
use super::values::{self, Wrong, WrongItem};
use super::yaml::{Entry, Value, word};

/// What begins an address for switches that connect by TLS.
const PREFIX: &str = "tls:";

/// Name of the file of pins in the state directory.
pub const PINS_NAME: &str = "identities";

/// Settings of TLS towards switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// Addresses to listen on with TLS.
    pub listen: Vec<SocketAddr>,
    /// File of the controller's certificate.
    pub certificate: Option<PathBuf>,
    /// File of its private key.
    pub key: Option<PathBuf>,
    /// File of the authorities of switches.
    pub ca: Option<PathBuf>,
    /// File of revoked certificates.
    pub crl: Option<PathBuf>,
    /// What happens with certificates that have no datapath id.
    pub identity: UnnamedIdentity,
    /// Datapath ids of certificates.
    pub identities: IdentityMap,
    /// Where pins are kept.
    pub pins: StorePlace,
}

/// Reads the addresses for switches, plain ones and those with TLS.
pub(crate) fn set_listen(config: &mut Config, texts: &[&str]) -> Result<(), Wrong> {
    let (mut plain, mut tls, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let mut versions = BTreeMap::new();
    for (item, text) in texts.iter().enumerate() {
        let (to, rest) = match text.strip_prefix(PREFIX) {
            Some(rest) => (&mut tls, rest),
            None => (&mut plain, *text),
        };
        let (address, chosen) = match rest.split_once(AT) {
            Some((address, chosen)) => (address, Some(chosen)),
            None => (rest, None),
        };
        let chosen = chosen.map(versions_of).transpose();
        match (values::address(address), chosen) {
            (Ok(address), Ok(chosen)) => {
                to.push(address);
                versions.extend(chosen.map(|chosen| (address, chosen)));
            }
            (Err(_), _) => wrong.push(WrongItem {
                item,
                expected: "an address and a port, such as 127.0.0.1:6653 or [::1]:6653, or \
                           tls:0.0.0.0:6653 for TLS"
                    .to_owned(),
            }),
            (_, Err(())) => wrong.push(WrongItem {
                item,
                expected: format!(
                    "OpenFlow versions behind the {AT}, such as {address}{AT}{} or {address}{AT}{}",
                    Versions::ALL.lowest(),
                    Version::ALL.map(Version::name).join("+"),
                ),
            }),
        }
    }
    if !wrong.is_empty() {
        return Err(Wrong(wrong));
    }
    (config.listen, config.tls.listen) = (plain, tls);
    config.listen_versions = versions;
    Ok(())
}

/// Separates an address from the versions that are spoken there, and those from each other.
const AT: char = '@';
const AND: char = '+';

fn versions_of(text: &str) -> Result<Versions, ()> {
    let chosen = text
        .split(AND)
        .map(|name| Versions::ALL.iter().find(|version| version.name() == name.trim()).ok_or(()));
    Versions::of(chosen.collect::<Result<Vec<_>, ()>>()?).ok_or(())
}

pub(crate) fn show_listen(config: &Config) -> String {
    let shown = |address: &SocketAddr| match config.listen_versions.get(address) {
        Some(versions) => {
            let names: Vec<_> = versions.iter().map(Version::name).collect();
            format!("{address}{AT}{}", names.join(&AND.to_string()))
        }
        None => address.to_string(),
    };
    let tls = config.tls.listen.iter().map(|address| format!("{PREFIX}{}", shown(address)));
    join(&config.listen.iter().map(shown).chain(tls).collect::<Vec<_>>())
}

/// A setting with the path of a file, or `none`.
macro_rules! file {
    ($key:literal, $field:ident, $about:literal) => {
        Setting {
            key: $key,
            value: "PATH",
            about: $about,
            change: Change::Live,
            form: Form::One {
                set: |config, text| {
                    config.tls.$field = path(text)?;
                    Ok(())
                },
                show: |config| show_path(config.tls.$field.as_ref()),
            },
        }
    };
}

pub(crate) const TLS: &[Setting<Config>] = &[
    file!(
        "tls.certificate",
        certificate,
        "File with the controller's certificate and those of its authorities, in PEM. Switches that \
         take their authority from it (ovs-vsctl --bootstrap) need its self-signed authority too."
    ),
    file!("tls.key", key, "File with the private key of that certificate, in PEM."),
    file!(
        "tls.ca",
        ca,
        "File with the authorities that sign the certificates of switches, in PEM. A switch without \
         such a certificate is refused."
    ),
    file!(
        "tls.crl",
        crl,
        "File with lists of revoked certificates of switches, in PEM; each authority of a switch \
         needs a list there. After a reload, connections of revoked certificates are closed."
    ),
    Setting {
        key: "tls.identity",
        value: "MODE",
        about: "What a certificate may do that names no datapath id. pin: it speaks for those that it \
                connects with first, and nobody else does. strict: nothing. any: it speaks for every \
                one that has no certificate.",
        change: Change::Live,
        form: Form::One {
            set: |config, text| put(&mut config.tls.identity, values::choice(text, IDENTITIES)),
            show: |config| values::show_choice(&config.tls.identity, IDENTITIES),
        },
    },
    Setting {
        key: "tls.identities",
        value: "NAME=SWITCH/SWITCH",
        about: "Switches of certificates that name none, by name or datapath id: a map from the common \
                name, or from the fingerprint (sha256:HEX) of the certificate or its key. Example: \
                {access-1: [00000000000000a1]}.",
        change: Change::Live,
        form: Form::Map(MapForm {
            example: "{access-1: [00000000000000a1]}",
            set: set_identities,
            entries: |config| {
                let entry = |(name, dpids): (&String, &Vec<Dpid>)| {
                    let dpids: Vec<_> = dpids.iter().map(|dpid| word(&dpid.to_string())).collect();
                    (name.clone(), format!("[{}]", dpids.join(", ")))
                };
                config.tls.identities.iter().map(entry).collect()
            },
            unpack: |text| {
                let (name, dpids) = text.rsplit_once('=')?;
                let packed: Packed =
                    (name.to_owned(), dpids.split('/').map(str::to_owned).collect());
                (!name.is_empty()).then_some(packed)
            },
        }),
    },
    Setting {
        key: "tls.pins",
        value: "PATH",
        about: "The file that keeps which certificate speaks for which datapath id. auto: identities \
                in the state directory of the service, or nowhere without one. none: nowhere.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                config.tls.pins = StorePlace::read(text)?;
                Ok(())
            },
            show: |config| config.tls.pins.show(),
        },
    },
];

const IDENTITIES: &[(&str, UnnamedIdentity)] = &[
    ("pin", UnnamedIdentity::Pin),
    ("strict", UnnamedIdentity::Strict),
    ("any", UnnamedIdentity::Any),
];

fn set_identities(config: &mut Config, entries: &[Entry], reading: &mut Reading) {
    let mut map = IdentityMap::new();
    let mut owners = BTreeMap::<Dpid, &str>::new();
    for entry in entries {
        let name = &*entry.key;
        if name.starts_with("sha256:")
            && let Err(error) = name.parse::<Fingerprint>()
        {
            reading.add(entry.place, format!("`tls.identities` has {name:?}; {error}"));
            continue;
        }
        if SwitchIdentity::dpid_of_name(name).is_some() {
            let text = format!(
                "`tls.identities` has {name:?}, which speaks for itself: a common name of 16 \
                 hexadecimal digits is a datapath id; leave it out"
            );
            reading.add(entry.place, text);
            continue;
        }
        let single = std::slice::from_ref(&entry.value);
        let items = match &entry.value.value {
            Value::List(items) => items.as_slice(),
            _ => single,
        };
        let mut dpids = Vec::new();
        for item in items {
            let dpid = match &item.value {
                Value::Scalar(text) => switch(&reading.names, text),
                _ => Err("a list of switches, such as [core-1, 00000000000000a2]".to_owned()),
            };
            let dpid = match dpid {
                Ok(dpid) => dpid,
                Err(right) => {
                    let text = match &item.value {
                        Value::Scalar(text) => {
                            format!("`{name}` cannot have {text:?}; give {right}")
                        }
                        _ => format!("`{name}` takes {right}"),
                    };
                    reading.add(item.place, text);
                    continue;
                }
            };
            match owners.insert(dpid, name) {
                Some(other) if other != name => {
                    let text = format!("datapath id {dpid} has {other:?} already; give it to one");
                    reading.add(item.place, text);
                }
                _ => dpids.push(dpid),
            }
        }
        // The place of its fingerprint in lower case and without colons, as it is looked up.
        let key = name.parse::<Fingerprint>().map_or_else(|_| name.to_owned(), |it| it.to_string());
        map.insert(key, dpids);
    }
    config.tls.identities = map;
}
