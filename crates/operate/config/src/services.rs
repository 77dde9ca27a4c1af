//! The settings of the network services: what they discover, how often, and how much they keep.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use bellrock_api::{Needs, SwitchPort};
use bellrock_services::chain::ServiceSettings;
use bellrock_services::discovery::DiscoverySettings;
use bellrock_services::hosts::HostTrackingSettings;

use super::Config;
use super::files::{KeyFileError, read_key};
use super::form::{Change, Form, Setting};
use super::settings::put;
use super::values;

/// Settings of the services.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceConfig {
    /// Services that run even if no app needs them.
    pub always: Needs,
    /// Time between two announcements at a port.
    pub interval: Duration,
    /// File with the key of announcements. `None`: a key is made at start.
    pub key_file: Option<PathBuf>,
    /// Whether a new link that is much slower than all others stays down.
    pub refuse_slow_links: bool,
    /// Ports that lead to other switches.
    pub trusted_ports: BTreeSet<SwitchPort>,
    /// Host tracking.
    pub hosts: HostTrackingSettings,
}

impl ServiceConfig {
    /// The settings of the services, with the key from its file.
    ///
    /// # Errors
    /// The file has no key.
    pub fn settings(&self) -> Result<ServiceSettings, KeyFileError> {
        Ok(ServiceSettings {
            always: self.always,
            discovery: DiscoverySettings {
                interval: self.interval,
                key: self.key_file.as_deref().map(read_key).transpose()?,
                refuse_slow_links: self.refuse_slow_links,
                trusted_ports: self.trusted_ports.clone(),
            },
            hosts: self.hosts,
        })
    }
}

impl Default for ServiceConfig {
    fn default() -> Self {
        let discovery = DiscoverySettings::default();
        ServiceConfig {
            always: Needs::empty(),
            interval: discovery.interval,
            key_file: discovery.key.map(|_| PathBuf::new()),
            refuse_slow_links: discovery.refuse_slow_links,
            trusted_ports: discovery.trusted_ports,
            hosts: HostTrackingSettings::default(),
        }
    }
}

pub(crate) const SERVICES: &[Setting<Config>] = &[
    Setting {
        key: "services",
        value: "SERVICE",
        about: "Network services that run even if no app needs them: none, topology, or hosts \
                (which includes topology). Services that an app needs always run.",
        change: Change::Restart,
        form: Form::Many {
            set: |config, texts| {
                let chosen = values::each(texts, |text| values::choice(text, CHOICES))?;
                if let (Some(item), true) =
                    (texts.iter().position(|text| *text == "none"), texts.len() > 1)
                {
                    let expected = "none alone, or services without it".to_owned();
                    return Err(values::Wrong(vec![values::WrongItem { item, expected }]));
                }
                config.services.always =
                    chosen.into_iter().fold(Needs::empty(), |all, one| all | one);
                Ok(())
            },
            show: |config| {
                let shown =
                    CHOICES.iter().filter(|(_, needs)| config.services.always.contains(*needs));
                let shown: Vec<_> = shown.map(|(word, _)| *word).collect();
                if shown.len() > 1 { shown[1..].join(",") } else { shown.concat() }
            },
        },
    },
    Setting {
        key: "discovery_interval",
        value: "TIME",
        about: "Time between two announcements at each port of a switch, in whole seconds. A link \
                without one for 3.5 times as long is down.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                let range = INTERVAL.start().as_secs()..=INTERVAL.end().as_secs();
                let read = values::whole_seconds(text, range).map(Duration::from_secs);
                put(&mut config.services.interval, read)
            },
            show: |config| values::show_time(config.services.interval),
        },
    },
    Setting {
        key: "discovery_key_file",
        value: "PATH",
        about: "File with the secret that signs announcements, in at least 32 hexadecimal digits; \
                for several controllers of one network. none: a new secret at each start.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                config.services.key_file = match text {
                    "" => return Err("none, or a path".to_owned().into()),
                    "none" => None,
                    path => Some(path.into()),
                };
                Ok(())
            },
            show: |config| {
                let path = config.services.key_file.as_ref();
                path.map_or_else(|| "none".to_owned(), |path| path.display().to_string())
            },
        },
    },
    Setting {
        key: "discovery_slow_links",
        value: "CHOICE",
        about: "State of a new link that is much slower than all others, as a relay between two \
                hosts would be: up, or down. It is reported in either case.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.services.refuse_slow_links, values::choice(text, SLOW_LINKS))
            },
            show: |config| values::show_choice(&config.services.refuse_slow_links, SLOW_LINKS),
        },
    },
    Setting {
        key: "discovery_trusted_ports",
        value: "SWITCH:PORT",
        about: "Ports that lead to other switches. A link between two of them never counts as a \
                relay between hosts. none, or for example a1:3.",
        change: Change::Restart,
        form: Form::Many {
            set: |config, texts| {
                let names = &config.names;
                let read = |text: &str| {
                    let id = names.identify(text);
                    id.parse::<SwitchPort>()
                        .map_err(|_| "none, or SWITCH:PORT such as a1:3".to_owned())
                };
                let ports = if texts == ["none"] { Vec::new() } else { values::each(texts, read)? };
                config.services.trusted_ports = ports.into_iter().collect();
                Ok(())
            },
            show: |config| match config.services.trusted_ports.len() {
                0 => "none".to_owned(),
                _ => {
                    let ports = config.services.trusted_ports.iter();
                    ports.map(ToString::to_string).collect::<Vec<_>>().join(",")
                }
            },
        },
    },
    Setting {
        key: "host_max_age",
        value: "TIME",
        about: "Silence of a host after which it is probed. If it does not answer, it is \
                forgotten.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| put(&mut config.services.hosts.max_age, values::time(text, AGE)),
            show: |config| values::show_time(config.services.hosts.max_age),
        },
    },
    Setting {
        key: "max_hosts",
        value: "N",
        about: "Maximum number of hosts in the network. Above it, hosts at ports with the most \
                hosts are forgotten first.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.services.hosts.max_hosts, values::number(text, HOSTS))
            },
            show: |config| config.services.hosts.max_hosts.to_string(),
        },
    },
    Setting {
        key: "max_hosts_per_port",
        value: "N",
        about: "Maximum number of hosts at one port; further ones are not remembered \
                (over_port_limit).",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.services.hosts.max_hosts_per_port, values::number(text, HOSTS))
            },
            show: |config| config.services.hosts.max_hosts_per_port.to_string(),
        },
    },
];

const CHOICES: &[(&str, Needs)] =
    &[("none", Needs::empty()), ("topology", Needs::TOPOLOGY), ("hosts", Needs::HOSTS)];
const SLOW_LINKS: &[(&str, bool)] = &[("up", false), ("down", true)];
const INTERVAL: RangeInclusive<Duration> =
    DiscoverySettings::INTERVALS[0]..=DiscoverySettings::INTERVALS[1];
const AGE: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(86_400);
const HOSTS: RangeInclusive<u64> = 1..=10_000_000;
