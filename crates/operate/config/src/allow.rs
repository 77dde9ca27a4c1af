//! What apps may do: `allow`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use bellrock_api::{Allowance, AllowedWrites, Dpid, Names};

use super::Config;
use super::form::{Change, Form, MapForm, Setting};
use super::items::{self, Item};
use super::names::{pair, switch};
use super::read::Reading;
use super::settings::{TABLES, put};
use super::values;
use super::yaml::{Entry, word};

/// Range of messages a second.
const MESSAGES: RangeInclusive<u64> = 1..=10_000_000;

/// Range of tasks.
const TASKS: RangeInclusive<u64> = 0..=65_536;

/// What an app may do, and how much memory its tables may take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppLimits {
    /// What it may do.
    pub allowance: Allowance,
    /// Maximum bytes of its tables. `None`: those of all tables together.
    pub table_memory_bytes: Option<usize>,
}

impl Config {
    /// Maximum bytes of the tables of an app.
    #[must_use]
    pub fn table_memory_of(&self, app: &str) -> usize {
        let own = self.allow.get(app).and_then(|limits| limits.table_memory_bytes);
        own.unwrap_or(self.table_memory_bytes).min(self.table_memory_bytes)
    }
}

pub(crate) const ALLOW: &[Setting<Config>] = &[Setting {
    key: "allow",
    value: "APP=WRITE",
    about: "What apps may do: a map from an app to write (all, own, or none), switches (a list), \
            messages_per_second, tasks and table_memory_bytes. An app that is not in it may do \
            everything. Example: {learning: {write: own, switches: [core-1]}}.",
    change: Change::Restart,
    form: Form::Map(MapForm {
        example: "{learning: {write: own, switches: [00000000000000a1]}}",
        set,
        entries: |config| {
            let shown = |(app, limits): (&String, &AppLimits)| {
                let item = AppItem { limits: limits.clone(), ..AppItem::default() };
                (word(app), items::show(OF_APP, &item, &AppItem::default()))
            };
            config.allow.iter().map(shown).collect()
        },
        unpack: pair,
    }),
}];

const WRITES: &[(&str, AllowedWrites)] =
    &[("all", AllowedWrites::All), ("own", AllowedWrites::Own), ("none", AllowedWrites::None)];

/// The limits of an app while they are read.
#[derive(Default)]
struct AppItem {
    limits: AppLimits,
    /// The names of switches in the configuration.
    names: Names,
}

const OF_APP: &[Setting<AppItem>] = &[
    Setting {
        key: "write",
        value: "WRITE",
        about: "Which messages it may send. own: flows with its own cookies, packets, and questions. \
                none: questions only.",
        change: Change::Restart,
        form: Form::One {
            set: |to, text| put(&mut to.limits.allowance.write, values::choice(text, WRITES)),
            show: |of| values::show_choice(&of.limits.allowance.write, WRITES),
        },
    },
    Setting {
        key: "switches",
        value: "SWITCH",
        about: "Its switches, by name or datapath id. It gets no events of others.",
        change: Change::Restart,
        form: Form::Many {
            set: |to, texts| {
                let dpids = values::each(texts, |text| switch(&to.names, text))?;
                to.limits.allowance.switches = Some(dpids.into_iter().collect());
                Ok(())
            },
            show: |of| {
                let dpids: Option<&BTreeSet<Dpid>> = of.limits.allowance.switches.as_ref();
                dpids.into_iter().flatten().map(Dpid::to_string).collect::<Vec<_>>().join(",")
            },
        },
    },
    Setting {
        key: "messages_per_second",
        value: "N",
        about: "Messages that change switches or send packets.",
        change: Change::Restart,
        form: Form::One {
            set: |to, text| {
                let read = values::number(text, MESSAGES).map(Some);
                put(&mut to.limits.allowance.messages_per_second, read)
            },
            show: |of| show_number(of.limits.allowance.messages_per_second),
        },
    },
    Setting {
        key: "tasks",
        value: "N",
        about: "Tasks that have not ended.",
        change: Change::Restart,
        form: Form::One {
            set: |to, text| {
                put(&mut to.limits.allowance.tasks, values::number(text, TASKS).map(Some))
            },
            show: |of| show_number(of.limits.allowance.tasks),
        },
    },
    Setting {
        key: "table_memory_bytes",
        value: "BYTES",
        about: "Memory of its tables, out of that of all tables.",
        change: Change::Restart,
        form: Form::One {
            set: |to, text| {
                put(&mut to.limits.table_memory_bytes, values::bytes(text, TABLES).map(Some))
            },
            show: |of| {
                let bytes = of.limits.table_memory_bytes.map(|bytes| bytes as u64);
                bytes.map_or_else(String::new, values::show_bytes)
            },
        },
    },
];

fn show_number<T: ToString>(number: Option<T>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

fn set(config: &mut Config, entries: &[Entry], reading: &mut Reading) {
    let mut allow = BTreeMap::new();
    for entry in entries {
        let app = &entry.key;
        let mut item = AppItem { names: reading.names.clone(), ..AppItem::default() };
        let form = Item {
            settings: OF_APP,
            what: format!("part of what {app:?} is allowed"),
            path: format!("allow.{app}."),
            takes: "is all, own, none, or a map such as {write: own}".to_owned(),
        };
        form.read(entry, &mut item, reading);
        allow.insert(app.clone(), item.limits);
    }
    config.allow = allow;
}
