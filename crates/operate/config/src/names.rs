//! The names of switches and hosts: `switches` and `hosts`.

use std::collections::BTreeMap;

use bellrock_api::{Dpid, MacAddr, NameError, Names, Port, SwitchPort};

use super::Config;
use super::form::{Change, Form, MapForm, Packed, Setting};
use super::items::Item;
use super::read::Reading;
use super::settings::put;
use super::values::Read;
use super::yaml::{Entry, Place, Value, word};

/// The settings that other settings may refer to, so that they are read first.
pub(crate) const KEYS: &[&str] = &["switches", "hosts"];

pub(crate) const NAMES: &[Setting<Config>] = &[
    Setting {
        key: "switches",
        value: "NAME=DPID",
        about: "Names of switches: a map from each name to a datapath id, in hexadecimal, or to \
                {dpid: DPID, ports: {NAME: PORT}}. A named port that is down is an alarm. Example: \
                {core-1: 00000000000000a1}.",
        change: Change::Live,
        form: Form::Map(MapForm {
            example: "{core-1: 00000000000000a1}",
            set: |config, entries, reading| {
                let named = read_named("switches", entries, SWITCH, reading, add_switch);
                config.names.set_switches(named);
            },
            entries: |config| shown_switches(&config.names),
            unpack: pair,
        }),
    },
    Setting {
        key: "hosts",
        value: "NAME=ADDRESS",
        about: "Names of hosts: a map from each name to an Ethernet address. Example: {web: \
                00:1b:21:3c:9d:f8}.",
        change: Change::Live,
        form: Form::Map(MapForm {
            example: "{web: 00:1b:21:3c:9d:f8}",
            set: |config, entries, reading| {
                let named = read_named("hosts", entries, HOST, reading, add_host);
                config.names.set_hosts(named);
            },
            entries: |config| shown(config.names.hosts()),
            unpack: pair,
        }),
    },
];

/// A switch that is named.
#[derive(Default)]
struct NamedSwitch {
    /// `None`: not given.
    dpid: Option<Dpid>,
    ports: Vec<(Place, String, Port)>,
}

/// The settings of a named switch.
const SWITCH: &[Setting<NamedSwitch>] = &[
    Setting {
        key: "dpid",
        value: "DPID",
        about: "The datapath id.",
        change: Change::Restart,
        form: Form::One {
            set: |to, text| put(&mut to.dpid, dpid(text).map(Some)),
            show: |of| of.dpid.map_or_else(String::new, |dpid| dpid.to_string()),
        },
    },
    Setting {
        key: "ports",
        value: "NAME=PORT",
        about: "Names of ports: a map from each name to the number of a port.",
        change: Change::Restart,
        form: Form::Map(MapForm {
            example: "{uplink: 3}",
            set: |to, entries, reading| to.ports = read_ports(entries, reading),
            entries: |of| shown(of.ports.iter().map(|(_, name, port)| (&**name, *port))),
            unpack: pair,
        }),
    },
];

fn read_ports(entries: &[Entry], reading: &mut Reading) -> Vec<(Place, String, Port)> {
    let read = |entry: &Entry| {
        let Value::Scalar(text) = &entry.value.value else { return None };
        Some((entry.place, entry.key.clone(), Port(text.parse().ok()?)))
    };
    let mut ports = Vec::new();
    for entry in entries {
        match read(entry) {
            Some(port) => ports.push(port),
            None => {
                let wrong = format!("`{}` takes the number of a port, such as 3", entry.key);
                reading.add(entry.value.place, wrong);
            }
        }
    }
    ports
}

fn add_switch(
    names: &mut Names,
    name: &str,
    item: &NamedSwitch,
    reading: &mut Reading,
) -> Option<Result<(), NameError>> {
    let dpid = item.dpid?;
    let added = names.add_switch(name, dpid);
    if added.is_ok() {
        for (place, name, port) in &item.ports {
            if let Err(error) = names.add_port(name, SwitchPort::new(dpid, *port)) {
                reading.add(*place, error.to_string());
            }
        }
    }
    Some(added)
}

fn add_host(
    names: &mut Names,
    name: &str,
    mac: &Option<MacAddr>,
    _: &mut Reading,
) -> Option<Result<(), NameError>> {
    mac.map(|mac| names.add_host(name, mac))
}

/// The settings of a named host.
const HOST: &[Setting<Option<MacAddr>>] = &[Setting {
    key: "mac",
    value: "ADDRESS",
    about: "The Ethernet address.",
    change: Change::Restart,
    form: Form::One {
        set: |to, text| put(to, mac(text).map(Some)),
        show: |of| of.map_or_else(String::new, |mac| mac.to_string()),
    },
}];

fn dpid(text: &str) -> Read<Dpid> {
    text.parse().map_err(|_| {
        "a datapath id: 1 to 16 hexadecimal digits, such as 00000000000000a1".to_owned()
    })
}

/// Reads a switch where a setting refers to one: its name in the configuration, or a datapath id.
pub(crate) fn switch(names: &Names, text: &str) -> Read<Dpid> {
    names.switch(text).or_else(|| text.parse().ok()).ok_or_else(|| {
        "a name of `switches`, or a datapath id: 1 to 16 hexadecimal digits, such as \
         00000000000000a1"
            .to_owned()
    })
}

fn mac(text: &str) -> Read<MacAddr> {
    text.parse().map_err(|_| "an Ethernet address, such as 00:1b:21:3c:9d:f8".to_owned())
}

/// Adds a name, if its item has the identifier.
type Add<T> = fn(&mut Names, &str, &T, &mut Reading) -> Option<Result<(), NameError>>;

/// Reads a map from names to what they name: its identifier, or a map with its settings.
fn read_named<T: Default + 'static>(
    section: &str,
    entries: &[Entry],
    settings: &'static [Setting<T>],
    reading: &mut Reading,
    add: Add<T>,
) -> Names {
    let mut names = Names::default();
    let mut places = BTreeMap::new();
    for entry in entries {
        let name = &entry.key;
        let first = settings.first().map_or("", |setting| setting.key);
        let (mut named, before) = (T::default(), reading.problems.len());
        let item = Item {
            settings,
            what: format!("setting of {name:?}"),
            path: format!("{section}.{name}."),
            takes: format!("takes one value, or `{{{first}: VALUE}}`"),
        };
        item.read(entry, &mut named, reading);
        match add(&mut names, name, &named, reading) {
            None if reading.problems.len() == before => {
                reading.add(entry.place, format!("`{name}` needs a `{first}`"));
            }
            None => {}
            Some(Ok(())) => _ = places.insert(name, entry.place),
            Some(Err(error)) => {
                let first = match &error {
                    NameError::Second { name, .. } | NameError::Taken { name, .. } => {
                        places.get(name)
                    }
                    _ => None,
                };
                // What is given by a flag has no place.
                let first = first.filter(|place| **place != Place::default());
                let first = first.map(|place| format!(" (the first is at {place})"));
                reading.add(entry.place, format!("{error}{}", first.unwrap_or_default()));
            }
        }
    }
    names
}

/// The switches as a file has them.
fn shown_switches(names: &Names) -> Vec<(String, String)> {
    let shown = names.switches().map(|(name, dpid)| {
        let ports = names.ports().filter(|(at, _)| at.dpid == dpid);
        let ports: Vec<_> =
            ports.map(|(at, name)| format!("{}: {}", word(name), at.port)).collect();
        let dpid = word(&dpid.to_string());
        let item = match ports.is_empty() {
            true => dpid,
            false => format!("{{dpid: {dpid}, ports: {{{}}}}}", ports.join(", ")),
        };
        (word(name), item)
    });
    shown.collect()
}

fn shown<'n, T: ToString>(named: impl Iterator<Item = (&'n str, T)>) -> Vec<(String, String)> {
    named.map(|(name, id)| (word(name), word(&id.to_string()))).collect()
}

/// `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Option<Packed> {
    let (key, value) = text.split_once('=')?;
    Some((key.trim().to_owned(), vec![value.trim().to_owned()]))
}
