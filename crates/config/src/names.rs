//! The names of switches and hosts: `switches` and `hosts`.

use std::collections::BTreeMap;

use bellrock_api::{Dpid, MacAddr, NameError, Names};

use super::Config;
use super::form::{Change, Form, MapForm, Packed, Setting};
use super::items::Item;
use super::read::Reading;
use super::settings::put;
use super::values::Read;
use super::yaml::{Entry, Place, word};

/// The settings that other settings may refer to, so that they are read first.
pub(crate) const KEYS: &[&str] = &["switches", "hosts"];

pub(crate) const NAMES: &[Setting<Config>] = &[
    Setting {
        key: "switches",
        value: "NAME=DPID",
        about: "Names of switches: a map from each name to a datapath id, in hexadecimal. Example: \
                {core-1: 00000000000000a1}.",
        change: Change::Live,
        form: Form::Map(MapForm {
            example: "{core-1: 00000000000000a1}",
            set: |config, entries, reading| {
                let named = read_named("switches", entries, SWITCH, reading, Names::add_switch);
                let hosts = config.names.hosts().map(|(name, mac)| (name.to_owned(), mac));
                config.names = with(named, hosts.collect(), Names::add_host);
            },
            entries: |config| shown(config.names.switches()),
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
                let named = read_named("hosts", entries, HOST, reading, Names::add_host);
                let switches = config.names.switches().map(|(name, dpid)| (name.to_owned(), dpid));
                config.names = with(named, switches.collect(), Names::add_switch);
            },
            entries: |config| shown(config.names.hosts()),
            unpack: pair,
        }),
    },
];

/// The settings of a named switch. `None`: not given.
const SWITCH: &[Setting<Option<Dpid>>] = &[Setting {
    key: "dpid",
    value: "DPID",
    about: "The datapath id.",
    change: Change::Restart,
    form: Form::One {
        set: |to, text| put(to, dpid(text).map(Some)),
        show: |of| of.map_or_else(String::new, |dpid| dpid.to_string()),
    },
}];

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

/// Adds a name.
type Add<T> = fn(&mut Names, &str, T) -> Result<(), NameError>;

/// Reads a map from names to what they name: its identifier, or a map with its settings.
fn read_named<T: Copy + 'static>(
    section: &str,
    entries: &[Entry],
    settings: &'static [Setting<Option<T>>],
    reading: &mut Reading,
    add: Add<T>,
) -> Names {
    let mut names = Names::default();
    let mut places = BTreeMap::new();
    for entry in entries {
        let name = &entry.key;
        let first = settings.first().map_or("", |setting| setting.key);
        let (mut id, before) = (None, reading.problems.len());
        let item = Item {
            settings,
            what: format!("setting of {name:?}"),
            path: format!("{section}.{name}."),
            takes: format!("takes one value, or `{{{first}: VALUE}}`"),
        };
        item.read(entry, &mut id, reading);
        if id.is_none() && reading.problems.len() == before {
            reading.add(entry.place, format!("`{name}` needs a `{first}`"));
        }
        match id.map(|id| add(&mut names, name, id)) {
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

/// These names and those. They are of different kinds, so they exclude none.
fn with<T>(mut names: Names, others: Vec<(String, T)>, add: Add<T>) -> Names {
    for (name, id) in others {
        let _ = add(&mut names, &name, id);
    }
    names
}

fn shown<'n, T: ToString>(named: impl Iterator<Item = (&'n str, T)>) -> Vec<(String, String)> {
    named.map(|(name, id)| (word(name), word(&id.to_string()))).collect()
}

/// `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Option<Packed> {
    let (key, value) = text.split_once('=')?;
    Some((key.trim().to_owned(), vec![value.trim().to_owned()]))
}
