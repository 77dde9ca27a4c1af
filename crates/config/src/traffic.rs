//! The settings of the apps that carry traffic on request.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use bellrock_api::SwitchPort;
use bellrock_apps::bandwidth::{BandwidthSettings, HostName, Kbps};
use bellrock_apps::provisioning::{Circuit, ProvisioningSettings, conflicts};

use super::apps::AppChoice;
use super::form::{Change, Form, Setting};
use super::values::{self, Read, Wrong, WrongItem};

pub(crate) const BANDWIDTH: &[Setting<AppChoice>] = &[
    Setting {
        key: "rate",
        value: "RATE",
        about: "Bandwidth of every line, such as 100M or 10G. auto: the speed that its port \
                reports.",
        change: Change::Restart,
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
        value: "SWITCH:PORT=RATE",
        about: "Bandwidth of single lines, each named by a port at one end; it overrides all other \
                values. A list, or none. Example: a1:4=10M.",
        change: Change::Restart,
        form: Form::Many {
            set: |choice, texts| {
                let lines = values::each(but_none(texts), line)?;
                bandwidth(choice, |settings| settings.lines = lines.into_iter().collect())
            },
            show: |choice| show_pairs(settings_of(choice).map(|settings| &settings.lines)),
        },
    },
    Setting {
        key: "queues",
        value: "NAME=NUMBER",
        about: "Queues that are set up in all switches, for requests that name one. A list, or \
                none. Example: gold=1.",
        change: Change::Restart,
        form: Form::Many {
            set: |choice, texts| {
                let queues = values::each(but_none(texts), queue)?;
                bandwidth(choice, |settings| settings.queues = queues.into_iter().collect())
            },
            show: |choice| show_pairs(settings_of(choice).map(|settings| &settings.queues)),
        },
    },
];

pub(crate) const PROVISIONING: &[Setting<AppChoice>] = &[
    Setting {
        key: "circuits",
        value: "CIRCUIT",
        about: "The circuits, each with a name and two or more endpoints: SWITCH:PORT, \
                SWITCH:PORT:VLAN, or the Ethernet address of a host. A list, or none. Example: \
                \"blue a1:4 a2:3:100\".",
        change: Change::Restart,
        form: Form::Many {
            set: |choice, texts| {
                let right = |text: &str| {
                    text.parse::<Circuit>().map_err(|error| format!("a circuit: {error}"))
                };
                let circuits = values::each(but_none(texts), right)?;
                let conflicts =
                    conflicts(&circuits).into_iter().map(|(item, conflict)| WrongItem {
                        item,
                        expected: format!("circuits that can be together: {conflict}"),
                    });
                let conflicts: Vec<_> = conflicts.collect();
                if !conflicts.is_empty() {
                    return Err(Wrong(conflicts));
                }
                provisioning(choice, |settings| settings.circuits = circuits)
            },
            show: |choice| {
                let AppChoice::Provisioning(settings) = choice else { return String::new() };
                or_none(settings.circuits.iter().map(ToString::to_string).collect())
            },
        },
    },
    Setting {
        key: "vlans",
        value: "FIRST-LAST",
        about: "VLANs for frames of circuits between switches, eight for each circuit. Nothing \
                else may use them.",
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
                AppChoice::Provisioning(settings) => {
                    format!("{}-{}", settings.vlans.start(), settings.vlans.end())
                }
                _ => String::new(),
            },
        },
    },
];

/// The values of a list. `none` is the empty list.
fn but_none<'a, 't>(texts: &'a [&'t str]) -> &'a [&'t str] {
    if *texts == ["none"] { &[] } else { texts }
}

fn or_none(shown: Vec<String>) -> String {
    if shown.is_empty() { "none".to_owned() } else { shown.join(",") }
}

fn provisioning(
    choice: &mut AppChoice,
    set: impl FnOnce(&mut ProvisioningSettings),
) -> Result<(), Wrong> {
    if let AppChoice::Provisioning(settings) = choice {
        set(settings);
    }
    Ok(())
}

fn bandwidth(
    choice: &mut AppChoice,
    set: impl FnOnce(&mut BandwidthSettings),
) -> Result<(), Wrong> {
    if let AppChoice::Bandwidth(settings) = choice {
        set(settings);
    }
    Ok(())
}

fn settings_of(choice: &AppChoice) -> Option<&BandwidthSettings> {
    match choice {
        AppChoice::Bandwidth(settings) => Some(settings),
        _ => None,
    }
}

fn rate(text: &str) -> Read<Kbps> {
    text.parse().map_err(|_| "a rate with k, M or G, such as 100M".to_owned())
}

fn line(text: &str) -> Read<(SwitchPort, Kbps)> {
    let right = || {
        "a port and what its line carries, such as a1:4=10M for port 4 of the switch whose datapath id is \
         a1 in hexadecimal"
            .to_owned()
    };
    let (port, kbps) = text.split_once('=').ok_or_else(right)?;
    match port.parse() {
        Ok(HostName::At(at)) => Ok((at, rate(kbps)?)),
        _ => Err(right()),
    }
}

fn queue(text: &str) -> Read<(String, u32)> {
    let read = text.split_once('=').and_then(|(name, number)| {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let fits = name.starts_with(char::is_alphabetic) && name.chars().all(is_word);
        fits.then_some((name.to_owned(), number.parse().ok()?))
    });
    read.ok_or_else(|| "a name and the number of the queue, such as gold=1".to_owned())
}

fn show_pairs<K: ToString, V: ToString>(pairs: Option<&BTreeMap<K, V>>) -> String {
    let pairs = pairs.into_iter().flatten();
    let shown = pairs.map(|(key, value)| format!("{}={}", key.to_string(), value.to_string()));
    or_none(shown.collect())
}
