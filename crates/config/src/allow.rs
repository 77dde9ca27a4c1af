//! What apps may do: `allow`.

use std::collections::{BTreeMap, BTreeSet};

use bellrock_api::{Allowance, AllowedWrites, Dpid};

use super::Config;
use super::apps;
use super::form::{Change, Form, MapForm, Setting};
use super::names::pair;
use super::read::{Reading, Table};
use super::settings::put;
use super::values::{self, Read};
use super::yaml::{Entry, Value, word};

/// Range of messages a second.
const MESSAGES: std::ops::RangeInclusive<u64> = 1..=10_000_000;

/// Range of tasks.
const TASKS: std::ops::RangeInclusive<u64> = 0..=65_536;

pub(crate) const ALLOW: &[Setting<Config>] = &[Setting {
    key: "allow",
    value: "APP=WRITE",
    about: "What apps may do: a map from an app to write (all, own, or none), switches (a list), \
            messages_per_second and tasks. An app that is not in it may do everything. Example: \
            {learning: {write: own, switches: [00000000000000a1]}}.",
    change: Change::Restart,
    form: Form::Map(MapForm {
        example: "{learning: {write: own, switches: [00000000000000a1]}}",
        set,
        entries: |config| {
            config.allow.iter().map(|(app, allowance)| (word(app), shown(allowance))).collect()
        },
        unpack: pair,
    }),
}];

const WRITES: &[(&str, AllowedWrites)] =
    &[("all", AllowedWrites::All), ("own", AllowedWrites::Own), ("none", AllowedWrites::None)];

/// What is set of an app. Names of switches are those of the configuration.
const OF_APP: &[Setting<Allowance>] = &[
    Setting {
        key: "write",
        value: "WRITE",
        about: "Which messages it may send. own: flows with its own cookies, packets, and questions. \
                none: questions only.",
        change: Change::Restart,
        form: Form::One {
            set: |to, text| put(&mut to.write, values::choice(text, WRITES)),
            show: |of| values::show_choice(&of.write, WRITES),
        },
    },
    Setting {
        key: "switches",
        value: "DPID",
        about: "Its switches. It gets no events of others.",
        change: Change::Restart,
        form: Form::Many {
            set: |to, texts| {
                let dpids: Read<BTreeSet<Dpid>> = texts.iter().map(|text| dpid(text)).collect();
                put(&mut to.switches, dpids.map(Some))
            },
            show: |of| dpids(of).join(","),
        },
    },
    Setting {
        key: "messages_per_second",
        value: "N",
        about: "Messages that change switches or send packets.",
        change: Change::Restart,
        form: Form::One {
            set: |to, text| {
                put(&mut to.messages_per_second, values::number(text, MESSAGES).map(Some))
            },
            show: |of| of.messages_per_second.map_or_else(String::new, |n| n.to_string()),
        },
    },
    Setting {
        key: "tasks",
        value: "N",
        about: "Tasks that have not ended.",
        change: Change::Restart,
        form: Form::One {
            set: |to, text| put(&mut to.tasks, values::number(text, TASKS).map(Some)),
            show: |of| of.tasks.map_or_else(String::new, |n| n.to_string()),
        },
    },
];

fn dpid(text: &str) -> Read<Dpid> {
    text.parse().map_err(|_| {
        "datapath ids: each 1 to 16 hexadecimal digits, such as 00000000000000a1".to_owned()
    })
}

fn dpids(allowance: &Allowance) -> Vec<String> {
    allowance.switches.iter().flatten().map(|dpid| word(&dpid.to_string())).collect()
}

fn shown(allowance: &Allowance) -> String {
    let mut parts = vec![format!("write: {}", values::show_choice(&allowance.write, WRITES))];
    if allowance.switches.is_some() {
        parts.push(format!("switches: [{}]", dpids(allowance).join(", ")));
    }
    parts.extend(allowance.messages_per_second.map(|n| format!("messages_per_second: {n}")));
    parts.extend(allowance.tasks.map(|n| format!("tasks: {n}")));
    format!("{{{}}}", parts.join(", "))
}

fn set(config: &mut Config, entries: &[Entry], reading: &mut Reading) {
    let mut allow = BTreeMap::new();
    for entry in entries {
        let app = &entry.key;
        if let Err(right) = apps::known(app) {
            reading.add(entry.place, format!("there is no app {app:?}; give {right}"));
            continue;
        }
        let mut allowance = Allowance::default();
        match &entry.value.value {
            // A flag has the first part only.
            Value::Scalar(text) => match values::choice(text, WRITES) {
                Ok(write) => allowance.write = write,
                Err(right) => {
                    let text = format!("`{app}` cannot be {text:?}; give {right}");
                    reading.add(entry.value.place, text);
                }
            },
            Value::Map(fields) => {
                let table = Table {
                    settings: OF_APP.iter().collect(),
                    what: format!("part of what {app:?} is allowed"),
                    path: format!("allow.{app}."),
                    others: &[],
                };
                table.read(fields, &mut allowance, reading);
            }
            _ => {
                let text = format!("`{app}` is all, own, none, or a map such as {{write: own}}");
                reading.add(entry.value.place, text);
            }
        }
        allow.insert(app.clone(), allowance);
    }
    config.allow = allow;
}
