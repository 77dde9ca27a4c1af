//! The app `provisioning`.

use std::ops::RangeInclusive;

use bellrock_api::{Forwards, Needs};
use bellrock_apps::provisioning::{
    Circuit, Endpoint, MAX_ENDPOINTS, NoCircuit, ProvisioningSettings, VLANS_PER_CIRCUIT, conflicts,
};

use super::{AppChoice, Known, Stored};
use crate::Config;
use crate::contradictions::{Contradiction, error, warning};
use crate::form::{Change, Form, MapForm, Setting};
use crate::read::Reading;
use crate::store::StorePlace;
use crate::values::Wrong;
use crate::yaml::{Entry, Value, word};

pub(super) const PROVISIONING: Known = Known {
    name: "provisioning",
    about: "Keeps named circuits between ports and hosts, with detours around links that fail.",
    choice: || AppChoice::Provisioning(ProvisioningSettings::default(), StorePlace::default()),
    settings: SETTINGS,
    shared: &["circuits"],
    forwards: Forwards::Selected,
    needs: Needs::TOPOLOGY.union(Needs::HOSTS).union(Needs::PATHS),
    stored: Some(Stored { what: "circuits", file: "circuits.json", shared: "circuits" }),
    contradictions: |choice, config| contradiction(choice, config).into_iter().collect(),
    ..Known::PLAIN
};

const SETTINGS: &[Setting<AppChoice>] = &[
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
    store_setting!("the numbers and paths of circuits", "circuits.json"),
];

fn contradiction(choice: &AppChoice, config: &Config) -> Option<Contradiction> {
    let AppChoice::Provisioning(settings, _) = choice else { return None };
    let about = ["apps.provisioning.circuits", "apps.provisioning.vlans"];
    if settings.circuits.is_empty() {
        // Nodes of a cluster may share circuits that no file has.
        if config.cluster.name.is_some() {
            return None;
        }
        let text = "the app \"provisioning\" has no circuit to keep; name some under `circuits`, or leave it out";
        return Some(warning(&["apps.provisioning"], text.to_owned()));
    }
    let conflict = settings.check().err()?;
    Some(error(&about, format!("the app \"provisioning\": {conflict}")))
}

fn provisioning(
    choice: &mut AppChoice,
    set: impl FnOnce(&mut ProvisioningSettings),
) -> Result<(), Wrong> {
    if let AppChoice::Provisioning(settings, _) = choice {
        set(settings);
    }
    Ok(())
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
