//! The app `bandwidth`.

use std::collections::BTreeMap;

use bellrock_api::{Forwards, Names, Needs, SwitchPort, Version};
use bellrock_apps::bandwidth::{BandwidthSettings, Kbps};

use super::{AppChoice, Known, Stored};
use crate::Config;
use crate::contradictions::{Contradiction, warning};
use crate::form::{Change, Form, MapForm, Setting};
use crate::names::pair;
use crate::read::Reading;
use crate::store::StorePlace;
use crate::values::{self, Read, Wrong};
use crate::yaml::{Entry, Value, word};

pub(super) const BANDWIDTH: Known = Known {
    name: "bandwidth",
    about: "Reserves bandwidth between hosts on request, on every line of a path or on none, and \
            moves it when a link fails.",
    choice: || AppChoice::Bandwidth(BandwidthSettings::default(), StorePlace::default()),
    settings: SETTINGS,
    shared: &["rate", "lines", "queues"],
    forwards: Forwards::Selected,
    needs: Needs::TOPOLOGY.union(Needs::HOSTS).union(Needs::PATHS),
    stored: Some(Stored {
        what: "reservations",
        file: "reservations.json",
        shared: "reservations",
    }),
    idle: |_| Some("nobody can request bandwidth"),
    contradictions: |choice, config| no_rate(choice, config).into_iter().collect(),
    ..Known::PLAIN
};

const SETTINGS: &[Setting<AppChoice>] = &[
    Setting {
        key: "rate",
        value: "RATE",
        about: "Bandwidth of every line, such as 100M or 10G. auto: the speed that its port \
                reports.",
        change: Change::Live,
        form: Form::One {
            set: |choice, text| {
                let rate = match text {
                    "auto" => None,
                    text => Some(rate(text)?),
                };
                bandwidth(choice, |settings| settings.rate = rate)
            },
            show: |choice| match settings_of(choice).and_then(|settings| settings.rate) {
                Some(rate) => rate.to_string(),
                None => "auto".to_owned(),
            },
        },
    },
    Setting {
        key: "lines",
        value: "MAP",
        about: "Bandwidth of single lines, each named by a port at one end; it overrides all other \
                values. Example: {a1:4: 10M}.",
        change: Change::Live,
        form: Form::Map(MapForm {
            example: "{a1:4: 10M}",
            set: |choice, entries, reading| {
                let lines = read_pairs(entries, reading, port, rate);
                if let AppChoice::Bandwidth(settings, _) = choice {
                    settings.lines = lines;
                }
            },
            entries: |choice| pairs(settings_of(choice).map(|settings| &settings.lines)),
            unpack: pair,
        }),
    },
    Setting {
        key: "queues",
        value: "MAP",
        about: "Queues that are set up in all switches, for requests that name one: the number of \
                each. Example: {gold: 1}.",
        change: Change::Live,
        form: Form::Map(MapForm {
            example: "{gold: 1}",
            set: |choice, entries, reading| {
                let queues = read_pairs(entries, reading, |name, _| queue(name), queue_number);
                if let AppChoice::Bandwidth(settings, _) = choice {
                    settings.queues = queues;
                }
            },
            entries: |choice| pairs(settings_of(choice).map(|settings| &settings.queues)),
            unpack: pair,
        }),
    },
    store_setting!("the reservations", "reservations.json"),
];

/// Nothing keeps packets to a rate.
fn no_rate(choice: &AppChoice, config: &Config) -> Option<Contradiction> {
    let versions = config.session.versions;
    let has_meters = versions.iter().any(Version::has_meters);
    (!has_meters && settings_of(choice)?.queues.is_empty()).then(|| {
        let text = format!(
            "the app \"bandwidth\" cannot keep a rate: OpenFlow {versions} has no meters, and no queue is set; add {} \
             to `versions`, or name queues",
            Version::HIGHEST,
        );
        warning(&["versions", "apps.bandwidth"], text)
    })
}

fn bandwidth(
    choice: &mut AppChoice,
    set: impl FnOnce(&mut BandwidthSettings),
) -> Result<(), Wrong> {
    if let AppChoice::Bandwidth(settings, _) = choice {
        set(settings);
    }
    Ok(())
}

fn settings_of(choice: &AppChoice) -> Option<&BandwidthSettings> {
    match choice {
        AppChoice::Bandwidth(settings, _) => Some(settings),
        _ => None,
    }
}

fn rate(text: &str) -> Read<Kbps> {
    text.parse().map_err(|_| "a rate with k, M or G, such as 100M".to_owned())
}

/// A port, by the name of its switch or its datapath id.
fn port(text: &str, names: &Names) -> Read<SwitchPort> {
    names.identify(text).parse().map_err(|_| {
        "a port: SWITCH:PORT with the name of the switch or its datapath id in hexadecimal, such as a1:4"
            .to_owned()
    })
}

fn queue(name: &str) -> Read<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = name.starts_with(char::is_alphabetic) && name.chars().all(is_word);
    let right = || "a name of letters, digits and _, such as gold".to_owned();
    fits.then(|| name.to_owned()).ok_or_else(right)
}

fn queue_number(text: &str) -> Read<u32> {
    values::number(text, 0..=u64::from(u32::MAX))
}

/// Reads a map from keys to single values.
fn read_pairs<K: Ord, V>(
    entries: &[Entry],
    reading: &mut Reading,
    key: impl Fn(&str, &Names) -> Read<K>,
    value: impl Fn(&str) -> Read<V>,
) -> BTreeMap<K, V> {
    let mut pairs = BTreeMap::new();
    for entry in entries {
        let key = key(&entry.key, &reading.names).map_err(|right| {
            reading.add(entry.place, format!("{:?} is no key here; give {right}", entry.key));
        });
        let place = entry.value.place;
        let Value::Scalar(text) = &entry.value.value else {
            reading.add(place, format!("`{}` takes one value", entry.key));
            continue;
        };
        let value = value(text).map_err(|right| {
            reading.add(place, format!("`{}` cannot be {text:?}; give {right}", entry.key));
        });
        if let (Ok(key), Ok(value)) = (key, value)
            && pairs.insert(key, value).is_some()
        {
            reading.add(entry.place, format!("`{}` stands here twice", entry.key));
        }
    }
    pairs
}

fn pairs<K: ToString, V: ToString>(pairs: Option<&BTreeMap<K, V>>) -> Vec<(String, String)> {
    let pairs = pairs.into_iter().flatten();
    pairs.map(|(key, value)| (word(&key.to_string()), word(&value.to_string()))).collect()
}
