//! The table of all settings: the name of each, its meaning, and how it is read and shown.
//!
//! A key of the file, a flag and an environment variable are three spellings of one setting
//! (`write`, `--write`, `BELLROCK_WRITE`), so one row defines them. A test checks the manual.

use std::ops::RangeInclusive;
use std::time::Duration;

use bellrock_api::Version;
use bellrock_engine::session::Versions;
use bellrock_engine::{IdleMode, Limits, MAX_WORKERS, Pinning, WriteMode};

use super::allow::ALLOW;
use super::cluster::CLUSTER;
use super::form::{Change, Form, Setting};
use super::http::HTTP;
use super::names::NAMES;
use super::services::SERVICES;
use super::tls::{TLS, set_listen, show_listen};
use super::values::{self, Read, Wrong};
use super::{Config, Control, LogFormat, LogLevel};

/// Settings under a heading.
pub struct Group {
    /// The heading.
    pub heading: &'static str,
    /// Its settings, in order.
    pub settings: &'static [Setting<Config>],
}

/// All settings except the apps, which have their own settings.
pub fn all() -> impl Iterator<Item = &'static Setting<Config>> {
    GROUPS.iter().flat_map(|group| group.settings)
}

/// All settings except the apps, in the order of the manual.
pub const GROUPS: &[Group] = &[
    Group { heading: "Network", settings: NETWORK },
    Group { heading: "TLS towards switches", settings: TLS },
    Group { heading: "Names", settings: NAMES },
    Group { heading: "What apps may do", settings: ALLOW },
    Group { heading: "Threads and writing", settings: THREADS },
    Group { heading: "Log and control", settings: OPERATION },
    Group { heading: "HTTP", settings: HTTP },
    Group { heading: "Cluster", settings: CLUSTER },
    Group { heading: "Network services", settings: SERVICES },
    Group { heading: "Limits", settings: LIMITS },
    Group { heading: "OpenFlow sessions", settings: SESSIONS },
];

const NETWORK: &[Setting<Config>] = &[
    Setting {
        key: "listen",
        value: "[tls:]ADDR:PORT[@VERSION]",
        about: "Address on which switches connect, IPv4 or IPv6; several times for several. Anyone \
                who reaches an address without tls: can claim to be a switch, so the default is the \
                loopback. One with tls: needs tls.certificate, tls.key and tls.ca. With @1.0 only \
                that version is spoken there.",
        change: Change::Restart,
        form: Form::Many { set: set_listen, show: show_listen },
    },
    Setting {
        key: "versions",
        value: "VERSION",
        about: "OpenFlow versions that are spoken. A switch that supports several of them uses the \
                highest.",
        change: Change::Restart,
        form: Form::Many {
            set: |config, texts| {
                let chosen = values::each(texts, |text| values::choice(text, VERSIONS))?;
                config.session.versions = Versions::of(chosen).unwrap_or_default();
                Ok(())
            },
            show: |config| {
                config.session.versions.iter().map(Version::name).collect::<Vec<_>>().join(",")
            },
        },
    },
];

const VERSIONS: &[(&str, Version)] = &{
    let mut all = [(Version::ALL[0].name(), Version::ALL[0]); Version::ALL.len()];
    let mut place = 1;
    while place < all.len() {
        all[place] = (Version::ALL[place].name(), Version::ALL[place]);
        place += 1;
    }
    all
};

const THREADS: &[Setting<Config>] = &[
    Setting {
        key: "workers",
        value: "N",
        about: "Number of worker threads; each serves a set of switches. auto: one for each core, \
                or for each core in pin; apps in Python have one core without a worker.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(
                    &mut config.workers,
                    or_word(text, "auto", |text| values::number(text, WORKERS)),
                )
            },
            show: |config| show_or_word(config.workers.as_ref(), "auto"),
        },
    },
    Setting {
        key: "pin",
        value: "CORES",
        about: "Cores to which workers are pinned: auto (one core each, if there are enough), \
                none, or one core number for each worker, such as 0,1.",
        change: Change::Restart,
        form: Form::Many {
            set: |config, texts| {
                config.pin = match texts {
                    ["auto"] => Pinning::Auto,
                    ["none"] => Pinning::None,
                    cores => Pinning::Cores(values::each(cores, |core| {
                        values::number(core, CORES)
                            .map_err(|right| format!("auto, none, or cores: each {right}"))
                    })?),
                };
                Ok(())
            },
            show: |config| match &config.pin {
                Pinning::Auto => "auto".to_owned(),
                Pinning::None => "none".to_owned(),
                Pinning::Cores(cores) => join(cores),
            },
        },
    },
    Setting {
        key: "idle",
        value: "MODE",
        about: "How an idle worker waits. adaptive: it polls for up to 100 microseconds if that \
                helped lately, then sleeps. sleep: it sleeps at once. spin: it never sleeps, which \
                takes a whole core for each worker.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| put(&mut config.idle, values::choice(text, IDLE_MODES)),
            show: |config| values::show_choice(&config.idle, IDLE_MODES),
        },
    },
    Setting {
        key: "hand_over",
        value: "BOOL",
        about: "Whether a worker that stays overloaded hands switches over to an idle one \
                (switches_handed_over): true or false.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| put(&mut config.hand_over, values::choice(text, BOOLS)),
            show: |config| values::show_choice(&config.hand_over, BOOLS),
        },
    },
    Setting {
        key: "write",
        value: "MODE",
        about: "When answers are written. coalesce: one write for all answers to one read. \
                immediate: one write for each answer, which costs system calls and only makes the \
                first of many faster.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| put(&mut config.write, values::choice(text, WRITE_MODES)),
            show: |config| values::show_choice(&config.write, WRITE_MODES),
        },
    },
];

const WORKERS: RangeInclusive<u64> = 1..=MAX_WORKERS as u64;
const CORES: RangeInclusive<u64> = 0..=4095;
const IDLE_MODES: &[(&str, IdleMode)] =
    &[("adaptive", IdleMode::Adaptive), ("sleep", IdleMode::Sleep), ("spin", IdleMode::Spin)];
pub(crate) const BOOLS: &[(&str, bool)] = &[("true", true), ("false", false)];
const WRITE_MODES: &[(&str, WriteMode)] =
    &[("coalesce", WriteMode::Coalesce), ("immediate", WriteMode::Immediate)];

const OPERATION: &[Setting<Config>] = &[
    Setting {
        key: "log_level",
        value: "LEVEL",
        about: "Lowest level of logged lines: error, warn, info, debug or trace.",
        change: Change::Live,
        form: Form::One {
            set: |config, text| put(&mut config.log_level, values::choice(text, LOG_LEVELS)),
            show: |config| values::show_choice(&config.log_level, LOG_LEVELS),
        },
    },
    Setting {
        key: "log_format",
        value: "FORMAT",
        about: "Format of the log on standard error: human, or json with one object per line.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| put(&mut config.log_format, values::choice(text, LOG_FORMATS)),
            show: |config| values::show_choice(&config.log_format, LOG_FORMATS),
        },
    },
    Setting {
        key: "control",
        value: "PATH",
        about: "Unix socket for status, switches, hosts and similar commands; only its owner can \
                open it. auto: /run/bellrock.sock for root, else $XDG_RUNTIME_DIR/bellrock.sock or \
                /tmp/bellrock-UID/bellrock.sock. none: no socket.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                config.control = match text {
                    "" => return Err(Wrong::from("auto, none, or a path".to_owned())),
                    "auto" => Control::Auto,
                    "none" => Control::None,
                    path => Control::Path(path.into()),
                };
                Ok(())
            },
            show: |config| match &config.control {
                Control::Auto => "auto".to_owned(),
                Control::None => "none".to_owned(),
                Control::Path(path) => path.display().to_string(),
            },
        },
    },
];

const LOG_LEVELS: &[(&str, LogLevel)] = &[
    ("error", LogLevel::ERROR),
    ("warn", LogLevel::WARN),
    ("info", LogLevel::INFO),
    ("debug", LogLevel::DEBUG),
    ("trace", LogLevel::TRACE),
];
const LOG_FORMATS: &[(&str, LogFormat)] = &[("human", LogFormat::Human), ("json", LogFormat::Json)];

const LIMITS: &[Setting<Config>] = &[
    Setting {
        key: "max_connections",
        value: "N",
        about: "Maximum number of TCP connections, with or without a finished handshake. A further \
                one is closed at once.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.limits.connections, values::number(text, Limits::CONNECTIONS))
            },
            show: |config| config.limits.connections.to_string(),
        },
    },
    Setting {
        key: "max_switches_per_worker",
        value: "N",
        about: "Maximum number of connections of one worker. When all workers are full, a further \
                one is closed at once.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(
                    &mut config.limits.switches_per_worker,
                    values::number(text, Limits::CONNECTIONS),
                )
            },
            show: |config| config.limits.switches_per_worker.to_string(),
        },
    },
    Setting {
        key: "bytes_per_turn",
        value: "BYTES",
        about: "Maximum number of bytes that one read takes from a switch, before the next switch \
                has its turn.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.limits.bytes_per_turn, values::bytes(text, Limits::BYTES_PER_TURN))
            },
            show: |config| show_bytes(config.limits.bytes_per_turn),
        },
    },
    Setting {
        key: "packet_ins_per_second",
        value: "N",
        about: "Maximum number of packet-ins per second from one switch; further ones are dropped \
                and counted (packet_ins_over_limit). off: no limit.",
        change: Change::Live,
        form: Form::One {
            set: |config, text| {
                let read = |text: &str| values::number(text, Limits::PACKET_INS_PER_SECOND);
                put(&mut config.limits.packet_ins_per_second, or_word(text, "off", read))
            },
            show: |config| show_or_word(config.limits.packet_ins_per_second.as_ref(), "off"),
        },
    },
    Setting {
        key: "controller_meter",
        value: "N",
        about: "Packet-ins a second of one switch, by a meter in the switch (OpenFlow 1.3): it drops \
                further ones itself. A switch without meters is named. off: no meter.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                let read = |text: &str| values::number(text, Limits::PACKET_INS_PER_SECOND);
                put(&mut config.limits.controller_meter, or_word(text, "off", read))
            },
            show: |config| show_or_word(config.limits.controller_meter.as_ref(), "off"),
        },
    },
    Setting {
        key: "table_memory_bytes",
        value: "BYTES",
        about: "Memory limit for the tables of all apps and switches together. At the limit a \
                table does not grow, but forgets an old entry for each new one.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| put(&mut config.table_memory_bytes, values::bytes(text, TABLES)),
            show: |config| show_bytes(config.table_memory_bytes),
        },
    },
    Setting {
        key: "high_water_bytes",
        value: "BYTES",
        about: "Bytes that may wait to be written to a switch. Above this, nothing is read from \
                that switch until they are written; nothing is dropped.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(
                    &mut config.limits.high_water_bytes,
                    values::bytes(text, Limits::HIGH_WATER_BYTES),
                )
            },
            show: |config| show_bytes(config.limits.high_water_bytes),
        },
    },
    Setting {
        key: "stalled_timeout",
        value: "TIME",
        about: "Time for which a switch may take none of the bytes that wait for it. Then it is \
                closed (stalled_closes).",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.limits.stalled, values::time(text, Limits::STALLED))
            },
            show: |config| values::show_time(config.limits.stalled),
        },
    },
    Setting {
        key: "handler_time",
        value: "TIME",
        about: "Time for one event of an app's handler. One that takes longer is named in the log and \
                by an event, while it lasts, and counted (handlers_blocked).",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.limits.handler_time, values::time(text, Limits::HANDLER_TIME))
            },
            show: |config| values::show_time(config.limits.handler_time),
        },
    },
];

/// Range of the memory of tables.
pub(crate) const TABLES: RangeInclusive<u64> = 1 << 20..=1 << 40;

const SESSIONS: &[Setting<Config>] = &[
    Setting {
        key: "handshake_timeout",
        value: "TIME",
        about: "Maximum time from the start of a connection to the end of its handshake. A slower \
                switch is closed (handshake_timeouts).",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.session.handshake_timeout, values::time(text, TIMEOUT))
            },
            show: |config| values::show_time(config.session.handshake_timeout),
        },
    },
    Setting {
        key: "echo_after",
        value: "TIME",
        about: "Silence of a switch after which the controller sends an echo request.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| put(&mut config.session.echo_after, values::time(text, TIMEOUT)),
            show: |config| values::show_time(config.session.echo_after),
        },
    },
    Setting {
        key: "dead_after",
        value: "TIME",
        about: "Further silence after that echo request. Then the switch is closed (dead_closes).",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| put(&mut config.session.dead_after, values::time(text, TIMEOUT)),
            show: |config| values::show_time(config.session.dead_after),
        },
    },
    Setting {
        key: "miss_send_len",
        value: "BYTES",
        about: "Bytes of a buffered packet that a 1.0 switch sends on a table miss; 65535: the \
                whole packet, without a buffer.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.session.miss_send_len, values::number(text, MISS_SEND_LEN))
            },
            show: |config| config.session.miss_send_len.to_string(),
        },
    },
    Setting {
        key: "max_multipart_bytes",
        value: "BYTES",
        about: "Maximum size of all unfinished multipart replies of a switch together. A reply \
                beyond it is dropped (multipart_overflows), and its requester gets an error.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.session.max_multipart_bytes, values::bytes(text, MULTIPART))
            },
            show: |config| show_bytes(config.session.max_multipart_bytes),
        },
    },
    Setting {
        key: "max_errors_per_second",
        value: "N",
        about: "Maximum number of OpenFlow errors per second sent to a switch for wrong messages; \
                further ones are only counted (errors_suppressed).",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.session.max_errors_per_second, values::number(text, ERRORS))
            },
            show: |config| config.session.max_errors_per_second.to_string(),
        },
    },
    Setting {
        key: "max_requests",
        value: "N",
        about: "Maximum number of unanswered requests to a switch; an app that sends more gets an \
                error. Tasks of the controller use up to 24 of them.",
        change: Change::Restart,
        form: Form::One {
            set: |config, text| {
                put(&mut config.session.max_requests, values::number(text, REQUESTS))
            },
            show: |config| config.session.max_requests.to_string(),
        },
    },
];

const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);
const MISS_SEND_LEN: RangeInclusive<u64> = 0..=65535;
const MULTIPART: RangeInclusive<u64> = 64 << 10..=1 << 30;
const ERRORS: RangeInclusive<u64> = 0..=65535;
const REQUESTS: RangeInclusive<u64> = bellrock_engine::MIN_REQUESTS as u64..=65535;

/// Stores a value that could be read.
pub(crate) fn put<T>(place: &mut T, read: Read<T>) -> Result<(), Wrong> {
    *place = read?;
    Ok(())
}

/// Reads a value, or a word that means no value.
fn or_word<T>(text: &str, word: &str, read: impl Fn(&str) -> Read<T>) -> Read<Option<T>> {
    if text == word {
        return Ok(None);
    }
    read(text).map(Some).map_err(|right| format!("{word}, or {right}"))
}

fn show_or_word<T: ToString>(value: Option<&T>, word: &str) -> String {
    value.map_or_else(|| word.to_owned(), T::to_string)
}

fn show_bytes(bytes: usize) -> String {
    values::show_bytes(bytes as u64)
}

pub(crate) fn join<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}
