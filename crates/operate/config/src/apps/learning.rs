//! The apps `learning` and `global_learning`, which have the same settings.

use std::ops::RangeInclusive;
use std::time::Duration;

use bellrock_api::{Forwards, PriorityBand};
use bellrock_apps::{LearningSettings, MatchKind};

use super::{AppChoice, Known};
use crate::Config;
use crate::contradictions::{Contradiction, warning};
use crate::form::{Change, Form, Setting};
use crate::values;

/// Bytes that `global_learning` takes for each host of its shared table (28.4), rounded up.
const SHARED_BYTES_PER_HOST: usize = 29;

pub(super) const LEARNING: Known = Known {
    name: "learning",
    about: "A learning switch: learns the port of each host, and installs flows between hosts.",
    choice: || AppChoice::Learning(LearningSettings::default()),
    settings: SETTINGS,
    forwards: Forwards::All,
    contradictions: |choice, _| contradictions(choice),
    ..Known::PLAIN
};

pub(super) const GLOBAL_LEARNING: Known = Known {
    name: "global_learning",
    about: "A learning switch with one table of all hosts for all switches. Its settings are those \
            of learning.",
    choice: || AppChoice::GlobalLearning(LearningSettings::default()),
    contradictions: |choice, config| {
        let memory = table_memory(choice, config);
        contradictions(choice).into_iter().chain(memory).collect()
    },
    ..LEARNING
};

impl AppChoice {
    /// The settings of a learning switch of either kind.
    pub(super) fn learning(&self) -> Option<&LearningSettings> {
        match self {
            AppChoice::Learning(settings) | AppChoice::GlobalLearning(settings) => Some(settings),
            _ => None,
        }
    }

    fn learning_mut(&mut self) -> Option<&mut LearningSettings> {
        match self {
            AppChoice::Learning(settings) | AppChoice::GlobalLearning(settings) => Some(settings),
            _ => None,
        }
    }
}

const SETTINGS: &[Setting<AppChoice>] = &[
    setting!(
        learning,
        learning_mut,
        "match",
        "KIND",
        "Fields that its flows match. l2: ingress port, VLAN, Ethernet source and destination; one \
         flow for each pair of hosts. exact: all fields of the packet (on 1.0 without VLAN \
         priority, DSCP and ARP operation); one flow for each connection.",
        matching,
        |text| values::choice(text, MATCH_KINDS),
        |kind| values::show_choice(kind, MATCH_KINDS)
    ),
    setting!(
        learning,
        learning_mut,
        "idle_timeout",
        "TIME",
        "Whole seconds without a packet after which a switch removes a flow; 0 for never.",
        idle_timeout_s,
        |text| values::whole_seconds(text, SECONDS),
        |seconds: &u16| show_seconds((*seconds).into())
    ),
    setting!(
        learning,
        learning_mut,
        "hard_timeout",
        "TIME",
        "Whole seconds after which a switch removes a flow in any case; 0 for never. It limits the \
         time that a flow leads to a place that its host has left.",
        hard_timeout_s,
        |text| values::whole_seconds(text, SECONDS),
        |seconds: &u16| show_seconds((*seconds).into())
    ),
    setting!(
        learning,
        learning_mut,
        "priority",
        "N",
        "The priority of its flows, within the app's own: 0 to 4095.",
        priority,
        |text| values::number(text, PRIORITY),
        u16::to_string
    ),
    setting!(
        learning,
        learning_mut,
        "max_entries",
        "N",
        "Maximum number of hosts remembered per switch, or by global_learning for all switches. \
         Above it, an old one is forgotten for each new one (evicted).",
        max_entries,
        |text| values::number(text, HOSTS),
        usize::to_string
    ),
    setting!(
        learning,
        learning_mut,
        "max_macs_per_port",
        "N",
        "Maximum number of hosts (MAC addresses in a VLAN) remembered behind one port; 0 for no \
         limit. A further one is not learnt (over_port_limit), but its packets are forwarded.",
        max_macs_per_port,
        |text| values::number(text, HOSTS_PER_PORT),
        u32::to_string
    ),
    setting!(
        learning,
        learning_mut,
        "max_age",
        "TIME",
        "Whole seconds without a packet at the controller after which a host is forgotten and its \
         flows removed; 0 for never. Packets that use flows do not reach the controller.",
        max_age_s,
        |text| values::whole_seconds(text, AGE),
        |seconds: &u32| show_seconds((*seconds).into())
    ),
];

fn contradictions(choice: &AppChoice) -> Vec<Contradiction> {
    let Some(settings) = choice.learning() else { return Vec::new() };
    let usual = LearningSettings::default();
    let key = |key: &str| format!("apps.{}.{key}", choice.name());
    let mut all = Vec::new();
    let per_port = settings.max_macs_per_port;
    if per_port != usual.max_macs_per_port && per_port as usize > settings.max_entries {
        let text = format!(
            "`max_macs_per_port` {per_port} is more than `max_entries` {}, so it is never reached; raise `max_entries`",
            settings.max_entries
        );
        all.push(warning(&[&key("max_macs_per_port"), &key("max_entries")], text));
    }
    let (idle, hard) = (settings.idle_timeout_s, settings.hard_timeout_s);
    if idle != usual.idle_timeout_s && hard != 0 && hard <= idle {
        let text = format!(
            "`idle_timeout` {idle} s has no effect, since `hard_timeout` removes each flow after {hard} s; give a \
             shorter `idle_timeout`"
        );
        all.push(warning(&[&key("idle_timeout"), &key("hard_timeout")], text));
    }
    all
}

/// The shared table, if there is not enough memory for its hosts.
fn table_memory(choice: &AppChoice, config: &Config) -> Option<Contradiction> {
    let settings = choice.learning()?;
    let needed = settings.max_entries.saturating_mul(SHARED_BYTES_PER_HOST);
    (needed > config.table_memory_of(choice.name())).then(|| {
        let text = format!(
            "`max_entries` {} needs {} MiB, which is more than `table_memory_bytes`, so fewer hosts are remembered; \
             raise `table_memory_bytes`",
            settings.max_entries,
            needed >> 20
        );
        let about = [
            "apps.global_learning.max_entries",
            "table_memory_bytes",
            "allow.global_learning.table_memory_bytes",
        ];
        warning(&about, text)
    })
}

fn show_seconds(seconds: u64) -> String {
    values::show_time(Duration::from_secs(seconds))
}

const MATCH_KINDS: &[(&str, MatchKind)] = &[("l2", MatchKind::L2), ("exact", MatchKind::Exact)];
const SECONDS: RangeInclusive<u64> = 0..=65535;
/// Priorities that an app can give to its flows.
const PRIORITY: RangeInclusive<u64> = 0..=(PriorityBand::PRIORITIES as u64 - 1);
const HOSTS: RangeInclusive<u64> = 1..=16_777_216;
const HOSTS_PER_PORT: RangeInclusive<u64> = 0..=16_777_216;
const AGE: RangeInclusive<u64> = 0..=604_800;
