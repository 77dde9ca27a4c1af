//! The apps that `bellrock run` offers, and their settings.
//!
//! In a file an app is a name (`- hub`), or a name with settings (`- learning: {match: l2}`). A
//! name that ends in `.py` is the path of a file with apps in Python.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellrock_api::{Forwards, PriorityBand};
use bellrock_apps::bandwidth::BandwidthSettings;
use bellrock_apps::provisioning::ProvisioningSettings;
use bellrock_apps::{LearningSettings, MatchKind, RoutingMode, RoutingSettings};

use super::form::{Change, Form, Setting};
use super::store::StorePlace;
use super::values;

/// An app of the chain, with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppChoice {
    /// `hub`.
    Hub,
    /// `learning`.
    Learning(LearningSettings),
    /// `global_learning`.
    GlobalLearning(LearningSettings),
    /// `bandwidth`, and the file that keeps its reservations.
    Bandwidth(BandwidthSettings, StorePlace),
    /// `provisioning`.
    Provisioning(ProvisioningSettings, StorePlace),
    /// `quarantine`.
    Quarantine(QuarantineSettings),
    /// `routing`.
    Routing(RoutingSettings),
    /// `static`.
    Static(StaticSettings),
    /// The apps of a file of Python.
    Python(PythonFile),
}

/// A file with apps in Python. They are known when Python has read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonFile(String);

impl PythonFile {
    /// The file that an app's name is the path of, if it ends in `.py`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let is_python = Path::new(name).extension().is_some_and(|extension| extension == "py");
        is_python.then(|| PythonFile(name.to_owned()))
    }

    /// Its path. A relative one begins at the working directory of the controller, as those of all
    /// settings.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// Settings of the app `static`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticSettings {
    /// The file that keeps the entries.
    pub store: StorePlace,
}

/// Settings of the app `quarantine`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuarantineSettings {
    /// The block list file that it watches.
    pub file: Option<PathBuf>,
    /// The file that keeps what operators have blocked.
    pub store: StorePlace,
}

/// An app that can be chosen.
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one or two sentences.
    pub about: &'static str,
    /// The app with its default settings.
    pub choice: fn() -> AppChoice,
    /// Its settings, in order.
    pub settings: &'static [Setting<AppChoice>],
}

impl AppChoice {
    /// Name of the app, as operators write it: of a file, its path.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            AppChoice::Hub => "hub",
            AppChoice::Learning(_) => "learning",
            AppChoice::GlobalLearning(_) => "global_learning",
            AppChoice::Bandwidth(..) => "bandwidth",
            AppChoice::Provisioning(..) => "provisioning",
            AppChoice::Quarantine(_) => "quarantine",
            AppChoice::Routing(_) => "routing",
            AppChoice::Static(_) => "static",
            AppChoice::Python(file) => &file.0,
        }
    }

    /// Whether it has tables that take their memory out of `table_memory_bytes`.
    #[must_use]
    pub fn has_tables(&self) -> bool {
        self.learning().is_some()
    }

    /// The settings of a learning switch of either kind.
    fn learning(&self) -> Option<&LearningSettings> {
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

    fn routing(&self) -> Option<&RoutingSettings> {
        match self {
            AppChoice::Routing(settings) => Some(settings),
            _ => None,
        }
    }

    fn routing_mut(&mut self) -> Option<&mut RoutingSettings> {
        match self {
            AppChoice::Routing(settings) => Some(settings),
            _ => None,
        }
    }
}

/// All apps that can be chosen.
pub const KNOWN: &[Known] = &[
    Known {
        name: "learning",
        about: "A learning switch: learns the port of each host, and installs flows between hosts.",
        choice: || AppChoice::Learning(LearningSettings::default()),
        settings: &LEARNING,
    },
    Known {
        name: "global_learning",
        about: "A learning switch with one table of all hosts for all switches. Its settings are \
                those of learning.",
        choice: || AppChoice::GlobalLearning(LearningSettings::default()),
        settings: &LEARNING,
    },
    Known {
        name: "routing",
        about: "Shortest paths between hosts in any topology, spread over paths of equal length \
                and around failures.",
        choice: || AppChoice::Routing(RoutingSettings::default()),
        settings: ROUTING,
    },
    Known {
        name: "hub",
        about: "Sends each packet to all ports except the one that it came from. For tests and \
                measurements.",
        choice: || AppChoice::Hub,
        settings: &[],
    },
    Known {
        name: "quarantine",
        about: "Drops all packets of listed hosts at every switch, within milliseconds. It stands \
                first in the chain.",
        choice: || AppChoice::Quarantine(QuarantineSettings::default()),
        settings: QUARANTINE,
    },
    Known {
        name: "static",
        about: "Keeps flows, groups and meters that operators name, over restarts of switches and \
                of the controller.",
        choice: || AppChoice::Static(StaticSettings::default()),
        settings: STATIC,
    },
    Known {
        name: "provisioning",
        about: "Keeps named circuits between ports and hosts, with detours around links that fail.",
        choice: || AppChoice::Provisioning(ProvisioningSettings::default(), StorePlace::default()),
        settings: super::traffic::PROVISIONING,
    },
    Known {
        name: "bandwidth",
        about: "Reserves bandwidth between hosts on request, on every line of a path or on none, \
                and moves it when a link fails.",
        choice: || AppChoice::Bandwidth(BandwidthSettings::default(), StorePlace::default()),
        settings: super::traffic::BANDWIDTH,
    },
];

/// Whether an app forwards every packet that reaches it. Apps behind it then get no packets.
pub(crate) fn carries_all(known: &Known) -> bool {
    (known.choice)().forwards() == Forwards::All
}

/// Finds the app of Bellrock's own with this name.
///
/// # Errors
/// The names of all apps, as the end of a sentence that begins with "give".
pub fn known(name: &str) -> Result<&'static Known, String> {
    KNOWN.iter().find(|known| known.name == name).ok_or_else(|| {
        let names: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
        format!("{}, or a Python file, such as ./my_app.py", values::one_of(name, &names))
    })
}

/// Makes the app with this name, with its default settings.
///
/// # Errors
/// As [`known`].
pub(crate) fn choose(name: &str) -> Result<AppChoice, String> {
    match PythonFile::named(name) {
        Some(file) => Ok(AppChoice::Python(file)),
        None => Ok((known(name)?.choice)()),
    }
}

/// Defines a setting of apps. `$of` returns the settings of an app, `$of_mut` returns them for a
/// change. `$field` is the setting's field, and `$read` reads its value from `$text`.
macro_rules! setting {
    ($of:ident, $of_mut:ident, $key:literal, $value:literal, $about:literal, $field:ident, |$text:ident| $read:expr, $show:expr) => {
        Setting {
            key: $key,
            value: $value,
            about: $about,
            change: Change::Restart,
            form: Form::One {
                set: |choice, $text| {
                    if let Some(settings) = choice.$of_mut() {
                        settings.$field = $read?;
                    }
                    Ok(())
                },
                show: |choice| choice.$of().map_or_else(String::new, |its| $show(&its.$field)),
            },
        }
    };
}

const LEARNING: [Setting<AppChoice>; 7] = [
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

const ROUTING: &[Setting<AppChoice>] = &[
    setting!(
        routing,
        routing_mut,
        "mode",
        "MODE",
        "When flows are installed. reactive: between two hosts, when they communicate. proactive: \
         to a host at every switch, when it is found.",
        mode,
        |text| values::choice(text, ROUTING_MODES),
        |mode| values::show_choice(mode, ROUTING_MODES)
    ),
    setting!(
        routing,
        routing_mut,
        "idle_timeout",
        "TIME",
        "Whole seconds without a packet after which a switch removes a flow between two hosts; 0 \
         for never. Only in reactive mode.",
        idle_timeout_s,
        |text| values::whole_seconds(text, SECONDS),
        |seconds: &u16| show_seconds((*seconds).into())
    ),
    setting!(
        routing,
        routing_mut,
        "floods_per_s",
        "N",
        "Maximum number of packets of each switch that are flooded per second, each to all ports \
         for hosts in the network. Further ones are dropped (floods_over_limit).",
        floods_per_s,
        |text| values::number(text, FLOODS),
        u32::to_string
    ),
];

const QUARANTINE: &[Setting<AppChoice>] = &[
    Setting {
        key: "file",
        value: "PATH",
        about: "The block list, a watched file: one Ethernet address, or IPv4 or IPv6 address or \
            prefix, per line; # begins a comment. none: only `bellrock quarantine add` blocks.",
        change: Change::Live,
        form: Form::One {
            set: |choice, text| {
                if let AppChoice::Quarantine(settings) = choice {
                    settings.file = match text {
                        "" => {
                            return Err(values::Wrong::from(
                                "none, or the path of a file".to_owned(),
                            ));
                        }
                        "none" => None,
                        path => Some(path.into()),
                    };
                }
                Ok(())
            },
            show: |choice| match choice {
                AppChoice::Quarantine(QuarantineSettings { file: Some(file), .. }) => {
                    file.display().to_string()
                }
                _ => "none".to_owned(),
            },
        },
    },
    Setting {
        key: "store",
        value: "PATH",
        about: "The file that keeps what `bellrock quarantine add` has blocked over a restart of \
                the controller. auto: blocked.json in the state directory of the service, or \
                nowhere without one. none: nowhere. A cluster keeps it in its etcd.",
        change: Change::Restart,
        form: Form::One {
            set: |choice, text| {
                if let AppChoice::Quarantine(settings) = choice {
                    settings.store = StorePlace::read(text)?;
                }
                Ok(())
            },
            show: |choice| match choice {
                AppChoice::Quarantine(settings) => settings.store.show(),
                _ => StorePlace::default().show(),
            },
        },
    },
];

const STATIC: &[Setting<AppChoice>] = &[Setting {
    key: "store",
    value: "PATH",
    about: "The file that keeps the entries over a restart of the controller. auto: static.json in \
            the state directory of the service, or nowhere without one. none: nowhere. A cluster \
            keeps them in its etcd.",
    change: Change::Restart,
    form: Form::One {
        set: |choice, text| {
            if let AppChoice::Static(settings) = choice {
                settings.store = StorePlace::read(text)?;
            }
            Ok(())
        },
        show: |choice| match choice {
            AppChoice::Static(settings) => settings.store.show(),
            _ => StorePlace::default().show(),
        },
    },
}];

fn show_seconds(seconds: u64) -> String {
    values::show_time(Duration::from_secs(seconds))
}

const MATCH_KINDS: &[(&str, MatchKind)] = &[("l2", MatchKind::L2), ("exact", MatchKind::Exact)];
const ROUTING_MODES: &[(&str, RoutingMode)] =
    &[("reactive", RoutingMode::Reactive), ("proactive", RoutingMode::Proactive)];
const SECONDS: RangeInclusive<u64> = 0..=65535;
const FLOODS: RangeInclusive<u64> = 1..=1_000_000;
/// Priorities that an app can give to its flows.
const PRIORITY: RangeInclusive<u64> = 0..=(PriorityBand::PRIORITIES as u64 - 1);
const HOSTS: RangeInclusive<u64> = 1..=16_777_216;
const HOSTS_PER_PORT: RangeInclusive<u64> = 0..=16_777_216;
const AGE: RangeInclusive<u64> = 0..=604_800;
