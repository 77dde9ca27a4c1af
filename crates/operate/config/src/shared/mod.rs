//! The settings that the nodes of a cluster share: a text in the form of a configuration file,
//! which has some of the settings only. Each of them replaces that of a node's own file.
//!
//! They are those of the network, which a running controller takes. What belongs to a machine stays
//! in its file: addresses, paths, threads, keys. So does what must be known before the first switch
//! connects, also while etcd is away: the chain of apps, and which certificate speaks for which
//! switch.

use std::path::PathBuf;

use super::apps;
use super::read::{Reading, Table};
use super::yaml::{self, Entry, Node, Place, Problem, Value};
use super::{Config, FileError, names, read_app_settings, settings};

/// The name of the text, which stands in errors where a file has its path.
pub const SHARED_NAME: &str = "shared configuration";

/// Maximum size of the text, in bytes: an entry of etcd holds it.
pub const MAX_SHARED_BYTES: usize = 256 << 10;

/// The settings that nodes share, beside those of apps.
pub const SHARED_SETTINGS: &[&str] =
    &["switches", "hosts", "log_level", "http.token_hashes", "packet_ins_per_second"];

/// A text that is being read, a part after another one: other layers come between.
#[derive(Default)]
pub(crate) struct SharedSettings {
    entries: Vec<Entry>,
    reading: Reading,
}

impl SharedSettings {
    /// Reads the tree of a text.
    ///
    /// # Errors
    /// It is too long, is no YAML, or is no map.
    pub(crate) fn parse(text: &str) -> Result<Self, FileError> {
        if text.len() > MAX_SHARED_BYTES {
            let limit = MAX_SHARED_BYTES >> 10;
            let message = format!("it has {} bytes; nodes share at most {limit} KiB", text.len());
            return Err(wrong(vec![Problem { place: Place { line: 1, column: 1 }, message }]));
        }
        let root = yaml::parse(text).map_err(|problem| wrong(vec![problem]))?;
        match root.value {
            Value::Nothing => Ok(SharedSettings::default()),
            Value::Map(entries) => Ok(SharedSettings { entries, reading: Reading::default() }),
            _ => {
                let message = "a configuration is `key: value`, one a line".to_owned();
                Err(wrong(vec![Problem { place: root.place, message }]))
            }
        }
    }

    /// Reads the names, which other settings refer to, also those of the file.
    pub(crate) fn read_names(&mut self, config: &mut Config, of_file: &mut Reading) {
        let (entries, mut reading) = self.take();
        for entry in entries.iter().filter(|entry| names::KEYS.contains(&&*entry.key)) {
            of_file.places.forget_all(&entry.key);
            table().read(std::slice::from_ref(entry), config, &mut reading);
        }
        (self.entries, self.reading) = (entries, reading);
    }

    /// Reads what is neither names nor of apps.
    pub(crate) fn read_settings(&mut self, config: &mut Config, of_file: &mut Reading) {
        let (entries, mut reading) = self.take();
        reading.names = config.names.clone();
        let is_other = |entry: &&Entry| !names::KEYS.contains(&&*entry.key) && entry.key != "apps";
        for entry in entries.iter().filter(is_other) {
            of_file.places.forget_all(&entry.key);
            table().read(std::slice::from_ref(entry), config, &mut reading);
        }
        (self.entries, self.reading) = (entries, reading);
    }

    /// Reads the settings of apps, when the chain is known.
    pub(crate) fn read_apps(&mut self, config: &mut Config, of_file: &mut Reading) {
        let (entries, mut reading) = self.take();
        for entry in entries.iter().filter(|entry| entry.key == "apps") {
            read_apps(&entry.value, config, &mut reading, of_file);
        }
        (self.entries, self.reading) = (entries, reading);
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// All problems, in order.
    pub(crate) fn finish(mut self) -> Result<(), FileError> {
        self.reading.problems.sort_by_key(|problem| problem.place);
        if self.reading.problems.is_empty() { Ok(()) } else { Err(wrong(self.reading.problems)) }
    }

    fn take(&mut self) -> (Vec<Entry>, Reading) {
        (std::mem::take(&mut self.entries), std::mem::take(&mut self.reading))
    }
}

fn wrong(problems: Vec<Problem>) -> FileError {
    FileError::Wrong { path: PathBuf::from(SHARED_NAME), problems }
}

/// The settings that are shared, beside those of apps.
fn table() -> Table<'static, Config> {
    let is_shared = |key: &str| SHARED_SETTINGS.contains(&key);
    Table {
        settings: settings::all().filter(|setting| is_shared(setting.key)).collect(),
        what: "setting that nodes share".into(),
        path: String::new(),
        others: &["apps"],
    }
}

/// The apps that have settings which nodes share.
fn apps_with_shared() -> Vec<&'static str> {
    let known = apps::KNOWN.iter().filter(|known| !known.shared.is_empty());
    known.map(|known| known.name).collect()
}

fn read_apps(node: &Node, config: &mut Config, reading: &mut Reading, of_file: &mut Reading) {
    let right = "`apps` is here a list of apps with settings that nodes share, such as [provisioning: \
                 {circuits: {blue: [a1:4, a2:3]}}]; the chain is in the file of each node";
    let Value::List(items) = &node.value else { return reading.add(node.place, right.into()) };
    for item in items {
        match &item.value {
            Value::Map(entries) => {
                entries.iter().for_each(|entry| read_app(entry, config, reading, of_file));
            }
            _ => reading.add(item.place, right.into()),
        }
    }
}

/// Reads the settings of one app.
fn read_app(entry: &Entry, config: &mut Config, reading: &mut Reading, of_file: &mut Reading) {
    let Entry { place, key: name, value } = entry;
    if !apps_with_shared().contains(&&**name) {
        return reading.unknown_key(
            entry,
            "app with settings that nodes share",
            &apps_with_shared(),
        );
    }
    let Some(app) = config.apps.iter_mut().find(|app| app.name() == name) else {
        let text =
            format!("{name:?} is not in the chain of this node; `apps` in its file has the chain");
        return reading.add(*place, text);
    };
    if let Value::Map(settings) = &value.value {
        for setting in settings {
            of_file.places.forget_all(&format!("apps.{name}.{}", setting.key));
        }
    }
    let known = app.known().into_iter();
    let settings = known.flat_map(|known| known.shared_settings()).collect();
    let what = format!("setting of {name:?} that nodes share");
    read_app_settings(app, value, settings, what, reading);
}

#[cfg(test)]
mod tests;
