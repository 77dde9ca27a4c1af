//! From files, flags and the environment to the settings of a controller, with the place of each
//! problem.
//!
//! - [`Sources`] names a file, flags and variables, and checks them together. Flags override the
//!   environment, the environment overrides the file, and the file overrides the defaults.
//! - [`Config`] has all settings.
//! - [`settings`] is the table of all settings, and [`apps`] the table of the apps and their
//!   settings. The command makes its flags and its help from them.
//! - [`values`] reads single values; `yaml` makes a tree of a file.
//! - `contradictions` checks settings against each other.
//! - [`default_yaml`] makes a file of the defaults.
//! - [`files`] reads the files that settings name.
//!
//! # What it is not
//! It starts nothing, and knows no flag by its syntax: the command line belongs to the command,
//! which with the library's face is the only user of this crate.

pub mod apps;
mod contradictions;
pub mod files;
mod layers;
mod print;
mod services;
pub mod settings;
mod traffic;
pub mod values;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bellrock_engine::session::SessionSettings;
use bellrock_engine::{IdleMode, Limits, Pinning, WorkerSettings, WriteMode};

use apps::AppChoice;
use settings::Setting;
use values::nearest;
use yaml::{Entry, Node, Value};

pub use layers::{Checked, Override, Sources, misspelled_variables, variable};
pub use print::default_yaml;
pub use services::ServiceConfig;
pub use tracing::Level as LogLevel;
pub use yaml::{Place, Problem};

/// Maximum size of a configuration file, in bytes. A larger file is probably something else.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// All settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Addresses on which switches connect.
    pub listen: Vec<SocketAddr>,
    /// The chain of apps, in order.
    pub apps: Vec<AppChoice>,
    /// Number of workers. `None`: one for each core.
    pub workers: Option<usize>,
    /// Cores of the workers.
    pub pin: Pinning,
    /// How an idle worker waits.
    pub idle: IdleMode,
    /// Whether a worker that stays overloaded hands switches over.
    pub hand_over: bool,
    /// When answers are written.
    pub write: WriteMode,
    /// Lowest level of logged lines.
    pub log_level: LogLevel,
    /// Format of the log.
    pub log_format: LogFormat,
    /// Place of the control socket.
    pub control: Control,
    /// Network services.
    pub services: ServiceConfig,
    /// Limits of connections, reads and waiting bytes.
    pub limits: Limits,
    /// Memory limit of all tables together, in bytes.
    pub table_memory_bytes: usize,
    /// OpenFlow sessions: versions, times, limits.
    pub session: SessionSettings,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text, in colours on a terminal.
    Human,
    /// A JSON object a line.
    Json,
}

/// Where the control socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// At the place where the command looks by default.
    Auto,
    /// Nowhere.
    None,
    /// At this path.
    Path(PathBuf),
}

impl Default for Config {
    fn default() -> Self {
        let engine = bellrock_engine::EngineSettings::default();
        Config {
            listen: engine.listen,
            apps: vec![AppChoice::Learning(Default::default())],
            workers: None,
            pin: engine.pin,
            idle: engine.idle,
            hand_over: engine.worker.hand_over,
            write: engine.worker.write,
            log_level: LogLevel::INFO,
            log_format: LogFormat::Human,
            control: Control::Auto,
            services: ServiceConfig::default(),
            limits: engine.worker.limits,
            table_memory_bytes: 1 << 30,
            session: engine.worker.session,
        }
    }
}

/// A file that cannot be used, with all problems in it.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// It is larger than [`MAX_FILE_BYTES`].
    #[error("{}: larger than {} KiB, so hardly a configuration file", path.display(), MAX_FILE_BYTES >> 10)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not UTF-8 text.
    #[error("{}: not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// It has problems: one line for each.
    #[error("{}", Located { path, problems })]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The problems, in order.
        problems: Vec<Problem>,
    },
}

/// Problems as `FILE:LINE:COLUMN: message`, one a line, as editors understand it.
struct Located<'p> {
    path: &'p Path,
    problems: &'p [Problem],
}

impl fmt::Display for Located<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Problem { place, message }) in self.problems.iter().enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            write!(
                f,
                "{separator}{}:{}:{}: {message}",
                self.path.display(),
                place.line,
                place.column
            )?;
        }
        Ok(())
    }
}

impl Config {
    /// The settings of the engine.
    #[must_use]
    pub fn engine(&self) -> bellrock_engine::EngineSettings {
        bellrock_engine::EngineSettings {
            listen: self.listen.clone(),
            workers: self.workers.unwrap_or(match &self.pin {
                Pinning::Cores(cores) => cores.len(),
                // For the engine, 0 means one for each core.
                Pinning::Auto | Pinning::None => 0,
            }),
            pin: self.pin.clone(),
            idle: self.idle,
            worker: WorkerSettings {
                limits: self.limits,
                write: self.write,
                hand_over: self.hand_over,
                session: self.session,
            },
        }
    }

    /// Reads a file over the defaults. Also returns the place of each setting in the file.
    pub(crate) fn from_file(path: &Path) -> Result<(Self, Places), FileError> {
        let unreadable = |error| FileError::Unreadable { path: path.into(), error };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(FileError::TooLarge { path: path.into() });
        }
        let text =
            String::from_utf8(bytes).map_err(|_| FileError::NotText { path: path.into() })?;
        Config::read_yaml(&text)
            .map_err(|problems| FileError::Wrong { path: path.into(), problems })
    }

    /// Reads a text likewise, or returns all problems in it, in order.
    pub(crate) fn read_yaml(text: &str) -> Result<(Self, Places), Vec<Problem>> {
        let root = yaml::parse(text).map_err(|problem| vec![problem])?;
        let mut config = Config::default();
        let mut reading = Reading::default();
        config.apply(&root, &mut reading);
        let Reading { mut problems, places } = reading;
        problems.sort_by_key(|problem| problem.place);
        if problems.is_empty() { Ok((config, places)) } else { Err(problems) }
    }

    /// The same without the places.
    #[cfg(test)]
    pub(crate) fn from_yaml(text: &str) -> Result<Self, Vec<Problem>> {
        Ok(Config::read_yaml(text)?.0)
    }

    fn apply(&mut self, root: &Node, problems: &mut Reading) {
        let entries = match &root.value {
            Value::Nothing => return,
            Value::Map(entries) => entries,
            _ => {
                return problems
                    .add(root.place, "a configuration is `key: value`, one a line".into());
            }
        };
        for entry in entries {
            problems.places.add(&entry.key, entry.place);
            if entry.key == "apps" {
                self.apply_apps(&entry.value, problems);
            } else if let Some(setting) = settings::all().find(|setting| setting.key == entry.key) {
                apply_setting(setting, self, entry, problems);
            } else if apps::KNOWN.iter().any(|app| app.name == entry.key) {
                let name = &entry.key;
                let text = format!(
                    "{name:?} is an app; write `apps: [{name}]`, or its settings in \
                                    `apps: [{name}: {{KEY: VALUE}}]`"
                );
                problems.add(entry.place, text);
            } else {
                let keys: Vec<_> =
                    settings::all().map(|setting| setting.key).chain(["apps"]).collect();
                problems.unknown_key(entry, "setting", &keys);
            }
        }
    }

    fn apply_apps(&mut self, node: &Node, problems: &mut Reading) {
        let right = "`apps` is a list of apps, each a name or a name with settings, such as [hub] or \
                     [learning: {match: l2}]";
        let Value::List(items) = &node.value else { return problems.add(node.place, right.into()) };
        if items.is_empty() {
            return problems.add(node.place, format!("`apps` is empty; {}", values_of_apps()));
        }
        self.apps.clear();
        for item in items {
            let nothing = Node { place: item.place, value: Value::Nothing };
            let (place, name, own) = match &item.value {
                Value::Scalar(name) => (item.place, name, &nothing),
                Value::Map(entries) if entries.len() == 1 => {
                    (entries[0].place, &entries[0].key, &entries[0].value)
                }
                _ => {
                    problems.add(item.place, right.into());
                    continue;
                }
            };
            match apps::known(name) {
                Err(right) => {
                    problems.add(place, format!("there is no app {name:?}; give {right}"));
                }
                Ok(known) if self.apps.iter().any(|app| app.name() == known.name) => {
                    problems.add(place, format!("the app {name:?} is in the list already"));
                }
                Ok(known) => {
                    problems.places.add(&format!("apps.{}", known.name), place);
                    self.apps.push(configure(known, own, problems));
                }
            }
        }
    }

    /// Replaces the chain with these apps. An app that is in the chain already keeps its settings.
    pub(crate) fn choose_apps(&mut self, names: &[String]) -> Result<(), String> {
        let mut chosen: Vec<AppChoice> = Vec::new();
        for name in names {
            let known = apps::known(name)
                .map_err(|right| format!("there is no app {name:?}; give {right}"))?;
            if chosen.iter().any(|app| app.name() == known.name) {
                return Err(format!("the app {name:?} is named twice"));
            }
            let configured = self.apps.iter().find(|app| app.name() == known.name);
            chosen.push(configured.cloned().unwrap_or_else(known.choice));
        }
        self.apps = chosen;
        Ok(())
    }
}

fn values_of_apps() -> String {
    let names: Vec<_> = apps::KNOWN.iter().map(|known| known.name).collect();
    format!("give at least one of {}", names.join(", "))
}

/// Makes an app with its settings from a file.
fn configure(known: &apps::Known, node: &Node, problems: &mut Reading) -> AppChoice {
    let mut choice = (known.choice)();
    let entries = match &node.value {
        Value::Nothing => return choice,
        Value::Map(entries) => entries,
        _ => {
            problems
                .add(node.place, format!("the settings of {:?} are `{{key: value}}`", known.name));
            return choice;
        }
    };
    for entry in entries {
        problems.places.add(&format!("apps.{}.{}", known.name, entry.key), entry.place);
        match known.settings.iter().find(|setting| setting.key == entry.key) {
            Some(setting) => apply_setting(setting, &mut choice, entry, problems),
            None => {
                let keys: Vec<_> = known.settings.iter().map(|setting| setting.key).collect();
                problems.unknown_key(entry, &format!("setting of the app {:?}", known.name), &keys);
            }
        }
    }
    choice
}

fn apply_setting<T>(setting: &Setting<T>, to: &mut T, entry: &Entry, problems: &mut Reading) {
    let key = setting.key;
    let items: Vec<&Node> = match &entry.value.value {
        Value::List(items) if setting.many && !items.is_empty() => items.iter().collect(),
        Value::Scalar(_) => vec![&entry.value],
        Value::Nothing => {
            let place = entry.place;
            return problems
                .add(place, format!("`{key}` has no value; leave the line out for the default"));
        }
        _ => {
            let right = if setting.many { "one value, or a list of them" } else { "one value" };
            return problems.add(entry.value.place, format!("`{key}` takes {right}"));
        }
    };
    let mut texts = Vec::with_capacity(items.len());
    for item in &items {
        match &item.value {
            Value::Scalar(text) => texts.push(text.as_str()),
            _ => return problems.add(item.place, format!("`{key}` takes a list of single values")),
        }
    }
    // A file may write "0,1" as the command line does.
    let split: Vec<&str> = match texts[..] {
        [text] if setting.many => text.split(',').map(str::trim).collect(),
        _ => texts,
    };
    let wrong = (setting.set)(to, &split).err().map(|wrong| wrong.0);
    for wrong in wrong.into_iter().flatten() {
        let place = items.get(wrong.item).unwrap_or(&items[0]).place;
        problems.add(place, wrong_value(key, split.get(wrong.item).copied(), &wrong.expected));
    }
}

/// "`key` cannot be "value"; give ..."
fn wrong_value(key: &str, value: Option<&str>, expected: &str) -> String {
    format!("`{key}` cannot be {:?}; give {expected}", value.unwrap_or_default())
}

/// The place of each setting in a file. Keys are those of
/// [`Contradiction`](contradictions::Contradiction).
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(BTreeMap<String, Place>);

impl Places {
    fn add(&mut self, key: &str, place: Place) {
        self.0.insert(key.to_owned(), place);
    }

    /// Removes a key, since a flag or the environment overrides it.
    pub(crate) fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// Removes the chain, since a flag or the environment overrides it.
    pub(crate) fn forget_chain(&mut self) {
        self.0.retain(|key, _| key != "apps" && key.split('.').count() != 2);
    }

    /// The last place where one of these keys is set.
    fn last_of(&self, keys: &[String]) -> Option<Place> {
        keys.iter().filter_map(|key| self.0.get(key)).max().copied()
    }
}

/// Result of reading a file, so far.
#[derive(Default)]
struct Reading {
    /// Problems found.
    problems: Vec<Problem>,
    places: Places,
}

impl Reading {
    fn add(&mut self, place: Place, message: String) {
        self.problems.push(Problem { place, message });
    }

    fn unknown_key(&mut self, entry: &Entry, what: &str, keys: &[&str]) {
        let key = &entry.key;
        let hint = match (nearest(key, keys), keys) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, []) => "it has none".to_owned(),
            (None, keys) => format!("there are: {}", keys.join(", ")),
        };
        self.add(entry.place, format!("{key:?} is no {what}; {hint}"));
    }
}

/// A new directory for a test.
#[cfg(test)]
fn test_directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("bellrock-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[cfg(test)]
mod tests;
