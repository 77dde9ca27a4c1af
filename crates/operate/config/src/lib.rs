//! From files, flags and the environment to the settings of a controller, with the place of each
//! problem.
//!
//! - [`Sources`] names a file, flags and variables, and checks them together. Flags override the
//!   environment, the environment overrides the file, and the file overrides the defaults.
//! - [`Config`] has all settings.
//! - [`settings`] is the table of all settings, and [`apps`] the table of the apps and their
//!   settings. The command makes its flags and its help from them.
//! - [`values`] reads single values; `yaml` makes a tree of a file, and `read` settings of the
//!   tree.
//! - `shared` reads the settings that the nodes of a cluster share.
//! - [`Difference`] is what changes from one configuration to another, and when.
//! - `contradictions` checks settings against each other.
//! - [`default_yaml`] makes a file of the defaults.
//! - [`files`] reads the files that settings name.
//!
//! # What it is not
//! It starts nothing: `bellrock_daemon` makes controllers of a [`Config`]. It knows no flag by
//! its syntax: the command line belongs to the command.

mod allow;
pub mod apps;
mod cluster;
mod contradictions;
mod difference;
pub mod files;
mod form;
mod http;
mod items;
mod layers;
mod names;
mod print;
mod read;
mod services;
pub mod settings;
mod shared;
mod store;
mod tls;
pub mod values;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bellrock_api::Names;
use bellrock_engine::session::{SessionSettings, Versions};
use bellrock_engine::{IdleMode, Limits, Pinning, WorkerSettings, WriteMode};

use apps::AppChoice;
use read::{Reading, Table};
use yaml::{Entry, Node, Value};

pub use allow::AppLimits;
pub use cluster::{
    CLUSTER_NODES, ClusterConfig, ClusterTlsConfig, EtcdConfig, EtcdEndpoint,
    MAX_CLUSTER_NAME_BYTES, MAX_ETCD_ENDPOINTS,
};
pub use difference::{Difference, SettingChange};
pub use form::{Change, Form, MapForm, Setting};
pub use http::HttpConfig;
pub use layers::{Checked, Override, Sources, misspelled_variables, variable};
pub use print::default_yaml;
pub use services::ServiceConfig;
pub use shared::{MAX_SHARED_BYTES, SHARED_NAME, SHARED_SETTINGS};
pub use store::StorePlace;
pub use tls::{PINS_NAME, TlsConfig};
pub use tracing::Level as LogLevel;
pub use yaml::{Place, Problem};

/// Maximum size of a configuration file, in bytes. A larger file is probably something else.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// All settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Names of switches and hosts.
    pub names: Names,
    /// Addresses on which switches connect without TLS.
    pub listen: Vec<SocketAddr>,
    /// Versions that are spoken at addresses of `listen` and `tls.listen`, if not all of
    /// `session.versions`.
    pub listen_versions: BTreeMap<SocketAddr, Versions>,
    /// TLS towards switches.
    pub tls: TlsConfig,
    /// The chain of apps, in order.
    pub apps: Vec<AppChoice>,
    /// What apps may do that may not do everything, by name.
    pub allow: BTreeMap<String, AppLimits>,
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
    /// The HTTP server.
    pub http: HttpConfig,
    /// The cluster that this controller is a node of.
    pub cluster: ClusterConfig,
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
            names: Names::default(),
            listen: engine.listen,
            listen_versions: engine.listen_versions,
            tls: TlsConfig::default(),
            apps: vec![AppChoice::Learning(Default::default())],
            allow: BTreeMap::new(),
            workers: None,
            pin: engine.pin,
            idle: engine.idle,
            hand_over: engine.worker.hand_over,
            write: engine.worker.write,
            log_level: LogLevel::INFO,
            log_format: LogFormat::Human,
            control: Control::Auto,
            http: HttpConfig::default(),
            cluster: ClusterConfig::default(),
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
    /// It has problems: one line for each, up to [`MAX_PROBLEMS_SHOWN`].
    #[error("{}", Located { path, problems })]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The problems, in order.
        problems: Vec<Problem>,
    },
}

/// Maximum number of problems of a file that its error lists. One mistake in a long list would fill
/// the screen.
pub const MAX_PROBLEMS_SHOWN: usize = 20;

/// Problems as `FILE:LINE:COLUMN: message`, one a line, as editors understand it.
struct Located<'p> {
    path: &'p Path,
    problems: &'p [Problem],
}

impl fmt::Display for Located<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.problems.iter().take(MAX_PROBLEMS_SHOWN);
        for (i, Problem { place, message }) in shown.enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            write!(
                f,
                "{separator}{}:{}:{}: {message}",
                self.path.display(),
                place.line,
                place.column
            )?;
        }
        match self.problems.len().saturating_sub(MAX_PROBLEMS_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n{}: {more} more problems", self.path.display()),
        }
    }
}

/// Reads the text of a file.
fn read_file(path: &Path) -> Result<String, FileError> {
    let unreadable = |error| FileError::Unreadable { path: path.into(), error };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(FileError::TooLarge { path: path.into() });
    }
    String::from_utf8(bytes).map_err(|_| FileError::NotText { path: path.into() })
}

/// The tree of a file with this text.
fn parse_file(path: &Path, text: &str) -> Result<Node, FileError> {
    yaml::parse(text)
        .map_err(|problem| FileError::Wrong { path: path.into(), problems: vec![problem] })
}

impl Config {
    /// The files with apps in Python, in the order of the chain.
    pub fn python_files(&self) -> impl Iterator<Item = &apps::PythonFile> {
        self.apps.iter().filter_map(|app| match app {
            AppChoice::Python(file) => Some(file),
            _ => None,
        })
    }

    /// The settings of the engine.
    #[must_use]
    pub fn engine(&self) -> bellrock_engine::EngineSettings {
        bellrock_engine::EngineSettings {
            listen: self.listen.clone(),
            listen_versions: self.listen_versions.clone(),
            workers: self.workers.unwrap_or(match &self.pin {
                Pinning::Cores(cores) => cores.len(),
                // For the engine, 0 means one for each core.
                Pinning::Auto | Pinning::None => 0,
            }),
            spared_cores: 0,
            pin: self.pin.clone(),
            idle: self.idle,
            // Its files are read by who starts the engine.
            tls: None,
            worker: WorkerSettings {
                limits: self.limits,
                write: self.write,
                hand_over: self.hand_over,
                session: self.session,
            },
        }
    }

    /// Reads a text, compares the outcome with the defaults, and prints it; for the fuzz target
    /// `configuration`.
    #[cfg(fuzzing)]
    pub fn fuzz(text: &str) {
        let Ok(root) = yaml::parse(text) else { return };
        let (mut config, mut reading) = (Config::default(), Reading::default());
        config.read(&root, &mut reading, |_, _| {});
        let _ = (config.contradictions(), Difference::between(&Config::default(), &config));
    }

    /// Reads a text over the defaults, or returns all problems in it, in order.
    #[cfg(test)]
    pub(crate) fn read_yaml(text: &str) -> Result<(Self, Reading), Vec<Problem>> {
        let root = yaml::parse(text).map_err(|problem| vec![problem])?;
        let mut config = Config::default();
        let mut reading = Reading::default();
        config.read(&root, &mut reading, |_, _| {});
        if reading.problems.is_empty() { Ok((config, reading)) } else { Err(reading.problems) }
    }

    /// The same without the places.
    #[cfg(test)]
    pub(crate) fn from_yaml(text: &str) -> Result<Self, Vec<Problem>> {
        Ok(Config::read_yaml(text)?.0)
    }

    /// Reads the tree of a file. Problems are in order. `override_names` overrides the names of
    /// switches and hosts, which other settings may use.
    pub(crate) fn read(
        &mut self,
        root: &Node,
        reading: &mut Reading,
        override_names: impl FnOnce(&mut Config, &mut Reading),
    ) {
        let entries: &[Entry] = match &root.value {
            Value::Nothing => &[],
            Value::Map(entries) => entries,
            _ => {
                reading.add(root.place, "a configuration is `key: value`, one a line".into());
                &[]
            }
        };
        let table = Table {
            settings: settings::all().collect(),
            what: "setting".into(),
            path: String::new(),
            others: &["apps"],
        };
        let is_of_names = |entry: &&Entry| names::KEYS.contains(&&*entry.key);
        for entry in entries.iter().filter(is_of_names) {
            table.read(std::slice::from_ref(entry), self, reading);
        }
        override_names(self, reading);
        reading.names = self.names.clone();
        for entry in entries.iter().filter(|entry| !is_of_names(entry)) {
            if entry.key == "apps" {
                reading.places.add(&entry.key, entry.place);
                self.read_apps(&entry.value, reading);
            } else if apps::KNOWN.iter().any(|app| app.name == entry.key) {
                let name = &entry.key;
                let text = format!(
                    "{name:?} is an app; write `apps: [{name}]`, or its settings in \
                                    `apps: [{name}: {{KEY: VALUE}}]`"
                );
                reading.add(entry.place, text);
            } else {
                table.read(std::slice::from_ref(entry), self, reading);
            }
        }
        reading.problems.sort_by_key(|problem| problem.place);
        reading.warnings.sort_by_key(|problem| problem.place);
    }

    fn read_apps(&mut self, node: &Node, reading: &mut Reading) {
        let right = "`apps` is a list of apps, each a name or a name with settings, such as [hub] or \
                     [learning: {match: l2}]";
        let Value::List(items) = &node.value else {
            // A wrong name would be wrong in a list too.
            let wrong = match &node.value {
                Value::Scalar(name) => apps::known(name).err().map(|right| (name, right)),
                _ => None,
            };
            let text = wrong.map_or(right.to_owned(), |(name, names)| {
                format!("there is no app {name:?}; `apps` is a list, each {names}")
            });
            return reading.add(node.place, text);
        };
        if items.is_empty() {
            return reading.add(node.place, format!("`apps` is empty; {}", values_of_apps()));
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
                    reading.add(item.place, right.into());
                    continue;
                }
            };
            match apps::choose(name) {
                Err(right) => {
                    reading.add(place, format!("there is no app {name:?}; give {right}"));
                }
                Ok(choice) if self.apps.iter().any(|app| app.name() == choice.name()) => {
                    reading.add(place, format!("the app {name:?} is in the list already"));
                }
                Ok(choice) => {
                    reading.places.add(&format!("apps.{name}"), place);
                    self.apps.push(read_app(choice, own, reading));
                }
            }
        }
    }

    /// Replaces the chain with these apps. An app that is in the chain already keeps its settings.
    pub(crate) fn choose_apps(&mut self, names: &[String]) -> Result<(), String> {
        let mut chosen: Vec<AppChoice> = Vec::new();
        for name in names {
            let choice = apps::choose(name)
                .map_err(|right| format!("there is no app {name:?}; give {right}"))?;
            if chosen.iter().any(|app| app.name() == name) {
                return Err(format!("the app {name:?} is named twice"));
            }
            let configured = self.apps.iter().find(|app| app.name() == name);
            chosen.push(configured.cloned().unwrap_or(choice));
        }
        self.apps = chosen;
        Ok(())
    }
}

fn values_of_apps() -> String {
    let names: Vec<_> = apps::KNOWN.iter().map(|known| known.name).collect();
    format!("give at least one of {}", names.join(", "))
}

/// Reads the settings of an app from a file.
fn read_app(mut choice: AppChoice, node: &Node, reading: &mut Reading) -> AppChoice {
    let settings = choice.known().map_or(&[][..], |known| known.settings).iter().collect();
    let what = format!("setting of the app {:?}", choice.name());
    read_app_settings(&mut choice, node, settings, what, reading);
    choice
}

/// Reads these settings of an app. `what`: what they are, for errors.
fn read_app_settings(
    choice: &mut AppChoice,
    node: &Node,
    settings: Vec<&'static Setting<AppChoice>>,
    what: String,
    reading: &mut Reading,
) {
    let name = choice.name().to_owned();
    match &node.value {
        Value::Nothing => {}
        Value::Map(entries) => {
            let table = Table { settings, what, path: format!("apps.{name}."), others: &[] };
            table.read(entries, choice, reading);
        }
        _ => reading.add(node.place, format!("the settings of {name:?} are `{{key: value}}`")),
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
