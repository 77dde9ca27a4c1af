//! The settings of the apps that carry traffic on request.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use bellrock_api::{Names, SwitchPort};
use bellrock_apps::bandwidth::{BandwidthSettings, Kbps};
use bellrock_apps::provisioning::{
    Circuit, Endpoint, MAX_ENDPOINTS, NoCircuit, ProvisioningSettings, VLANS_PER_CIRCUIT, conflicts,
};

use super::apps::AppChoice;
use super::form::{Change, Form, MapForm, Setting};
use super::names::pair;
use super::read::Reading;
use super::store::StorePlace;
use super::values::{self, Read, Wrong};
use super::yaml::{Entry, Value, word};

pub(crate) const BANDWIDTH: &[Setting<AppChoice>] = &[
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
    Setting {
        key: "store",
        value: "PATH",
        about: "The file that keeps the reservations over a restart of the controller. auto: \
                reservations.json in the state directory of the service, or nowhere without one. \
                none: nowhere. A cluster keeps them in its etcd.",
        change: Change::Restart,
        form: Form::One {
            set: |choice, text| {
                if let AppChoice::Bandwidth(_, store) = choice {
                    *store = StorePlace::read(text)?;
                }
                Ok(())
            },
            show: |choice| match choice {
                AppChoice::Bandwidth(_, store) => store.show(),
                _ => StorePlace::default().show(),
            },
        },
    },
];

pub(crate) const PROVISIONING: &[Setting<AppChoice>] = &[
    Setting {
        key: "circuits",
        value: "MAP",
        about: "The circuits: a map from each name to two or more endpoints, which are SWITCH:PORT, \
                SWITCH:PORT:VLAN, or a host (its name or Ethernet address). Example: {blue: [a1:4, \
                a2:3:100]}.",
        change: Change::Live,
        form: Form::Map(MapForm {
            example: "{blue: [a1:4, a2:3:100]}",
            set: |choice, entries, reading| {
                let circuits = read_circuits(entries, reading);
                if let AppChoice::Provisioning(settings, _) = choice {
                    settings.circuits = circuits;
                }
            },
            entries: |choice| {
                let AppChoice::Provisioning(settings, _) = choice else { return Vec::new() };
                let shown = |circuit: &Circuit| {
                    let endpoints = circuit.endpoints.iter().map(|end| word(&end.to_string()));
                    let endpoints: Vec<_> = endpoints.collect();
                    (word(&circuit.name), format!("[{}]", endpoints.join(", ")))
                };
                settings.circuits.iter().map(shown).collect()
            },
            unpack: |text| {
                let mut words = text.split_whitespace().map(str::to_owned);
                Some((words.next()?, words.collect()))
            },
        }),
    },
    Setting {
        key: "vlans",
        value: "FIRST-LAST",
        about: "VLANs for frames of circuits between switches. Nothing else may use them.",
        change: Change::Restart,
        form: Form::One {
            set: |choice, text| {
                let read = text.split_once('-').and_then(|(first, last)| {
                    let range: RangeInclusive<u16> = first.parse().ok()?..=last.parse().ok()?;
                    (1..=4094).contains(range.start()).then_some(())?;
                    (*range.end() <= 4094 && range.start() < range.end()).then_some(range)
                });
                let vlans =
                    read.ok_or_else(|| "two VLANs from 1 to 4094, such as 2000-3999".to_owned())?;
                provisioning(choice, |settings| settings.vlans = vlans)
            },
            show: |choice| match choice {
                AppChoice::Provisioning(settings, _) => {
                    format!("{}-{}", settings.vlans.start(), settings.vlans.end())
                }
                _ => String::new(),
            },
        },
    },
    Setting {
        key: "vlans_per_circuit",
        value: "8|4|2",
        about: "Number of VLANs of each circuit. Half of them are for its present path: one for \
                the path, the others for detours around its links.",
        change: Change::Restart,
        form: Form::One {
            set: |choice, text| {
                let read = text.parse().ok().filter(|vlans| VLANS_PER_CIRCUIT.contains(vlans));
                let vlans = read.ok_or_else(|| "8, 4 or 2".to_owned())?;
                provisioning(choice, |settings| settings.vlans_per_circuit = vlans)
            },
            show: |choice| match choice {
                AppChoice::Provisioning(settings, _) => settings.vlans_per_circuit.to_string(),
                _ => String::new(),
            },
        },
    },
    Setting {
        key: "store",
        value: "PATH",
        about: "The file that keeps the numbers and paths of circuits over a restart of the \
                controller. auto: circuits.json in the state directory of the service, or nowhere \
                without one. none: nowhere. A cluster keeps them in its etcd.",
        change: Change::Restart,
        form: Form::One {
            set: |choice, text| {
                if let AppChoice::Provisioning(_, store) = choice {
                    *store = StorePlace::read(text)?;
                }
                Ok(())
            },
            show: |choice| match choice {
                AppChoice::Provisioning(_, store) => store.show(),
                _ => StorePlace::default().show(),
            },
        },
    },
];

fn provisioning(
    choice: &mut AppChoice,
    set: impl FnOnce(&mut ProvisioningSettings),
) -> Result<(), Wrong> {
    if let AppChoice::Provisioning(settings, _) = choice {
        set(settings);
    }
    Ok(())
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

/// Reads a map from the names of circuits to their endpoints: a list, or a map with this list.
fn read_circuits(entries: &[Entry], reading: &mut Reading) -> Vec<Circuit> {
    let (mut circuits, mut places) = (Vec::new(), Vec::new());
    for entry in entries {
        let name = &entry.key;
        let is_word = name.chars().all(|c| !c.is_whitespace() && !c.is_control());
        if name.is_empty() || !is_word {
            let text = format!("{name:?} is no name of a circuit; give one without spaces");
            reading.add(entry.place, text);
        }
        let node = match &entry.value.value {
            Value::Map(fields) => match &fields[..] {
                [field] if field.key == ENDPOINTS => &field.value,
                [] => &entry.value,
                [first, ..] => {
                    let wrong = fields.iter().find(|field| field.key != ENDPOINTS);
                    let what = format!("setting of the circuit {name:?}");
                    reading.unknown_key(wrong.unwrap_or(first), &what, &[ENDPOINTS]);
                    continue;
                }
            },
            _ => &entry.value,
        };
        let Some(items) = node.items() else {
            let text = format!("`{name}` takes a list of endpoints, such as [a1:4, a2:3:100]");
            reading.add(node.place, text);
            continue;
        };
        let (have, mut endpoints) = (items.len(), Vec::new());
        for item in items {
            let Value::Scalar(text) = &item.value else {
                reading.add(item.place, "an endpoint is a single value, such as a1:4".to_owned());
                continue;
            };
            match reading.names.identify(text).parse::<Endpoint>() {
                Ok(endpoint) => endpoints.push(endpoint),
                Err(error) => reading.add(item.place, error.to_string()),
            }
        }
        if !(2..=MAX_ENDPOINTS).contains(&have) {
            let error = NoCircuit::Endpoints { name: name.clone(), have };
            reading.add(node.place, error.to_string());
        }
        circuits.push(Circuit { name: name.clone(), endpoints });
        places.push(entry.place);
    }
    for (index, conflict) in conflicts(&circuits) {
        reading.add(places[index], conflict.to_string());
    }
    circuits
}

/// The key of a circuit's endpoints, if the circuit is a map.
const ENDPOINTS: &str = "endpoints";
