//! From the tree of a file to settings: every problem with its place.

use std::collections::BTreeMap;

use bellrock_api::Names;

use super::apps::PythonFile;
use super::form::Setting;
use super::values::{Wrong, nearest};
use super::yaml::{Entry, Node, Place, Problem, Value};

/// The result of reading a file, so far.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    pub(crate) places: Places,
    /// The names of switches and hosts, known before all other settings.
    pub(crate) names: Names,
}

impl Reading {
    /// One without problems, in which the same names are known.
    pub(crate) fn beside(&self) -> Reading {
        Reading { names: self.names.clone(), ..Reading::default() }
    }

    pub(crate) fn add(&mut self, place: Place, message: String) {
        self.problems.push(Problem { place, message });
    }

    pub(crate) fn warn(&mut self, place: Place, message: String) {
        self.warnings.push(Problem { place, message });
    }

    /// Adds what is wrong with values, each with its node.
    pub(crate) fn add_wrong(
        &mut self,
        key: &str,
        wrong: Result<(), Wrong>,
        values: &[(&Node, &str)],
    ) {
        for wrong in wrong.err().map(|wrong| wrong.0).into_iter().flatten() {
            let Some((node, text)) = values.get(wrong.item).or(values.first()) else { continue };
            let text = format!("`{key}` cannot be {text:?}; give {}", wrong.expected);
            self.add(node.place, text);
        }
    }

    pub(crate) fn unknown_key(&mut self, entry: &Entry, what: &str, keys: &[&str]) {
        let key = &entry.key;
        let hint = match (nearest(key, keys), keys) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, []) => "it has none".to_owned(),
            (None, keys) => format!("there are: {}", keys.join(", ")),
        };
        self.add(entry.place, format!("{key:?} is no {what}; {hint}"));
    }
}

/// A table of settings, and where its entries stand in a file.
pub(crate) struct Table<'t, T: 'static> {
    pub(crate) settings: Vec<&'t Setting<T>>,
    /// What an entry is, for errors.
    pub(crate) what: String,
    /// Begins the keys of [`Places`].
    pub(crate) path: String,
    /// Keys that are read elsewhere, for errors.
    pub(crate) others: &'t [&'t str],
}

impl<T> Table<'_, T> {
    /// Reads the entries of a map into `to`.
    pub(crate) fn read(&self, entries: &[Entry], to: &mut T, reading: &mut Reading) {
        self.read_section("", entries, to, reading);
    }

    /// Reads the entries of a section. `section` is empty, or ends with a point.
    fn read_section(&self, section: &str, entries: &[Entry], to: &mut T, reading: &mut Reading) {
        for entry in entries {
            let key = format!("{section}{}", entry.key);
            reading.places.add(&format!("{}{key}", self.path), entry.place);
            if let Some(setting) = self.settings.iter().find(|setting| setting.key == key) {
                setting.read(to, entry, reading);
                continue;
            }
            let inner = format!("{key}.");
            if !self.settings.iter().any(|setting| setting.key.starts_with(&inner)) {
                self.unknown(section, entry, reading);
            } else if let Value::Map(entries) = &entry.value.value {
                self.read_section(&inner, entries, to, reading);
            } else {
                let text = format!("`{}` is a section: `{{KEY: VALUE}}`", entry.key);
                reading.add(entry.value.place, text);
            }
        }
    }

    fn unknown(&self, section: &str, entry: &Entry, reading: &mut Reading) {
        let keys = self.settings.iter().filter_map(|setting| setting.key.strip_prefix(section));
        let mut keys: Vec<&str> = keys.map(|key| key.split('.').next().unwrap_or(key)).collect();
        keys.dedup();
        let what = match section.strip_suffix('.') {
            Some(section) => format!("{} in `{section}`", self.what),
            None => {
                keys.extend(self.others);
                self.what.clone()
            }
        };
        reading.unknown_key(entry, &what, &keys);
    }
}

/// The place of each setting in a file. Keys are those of
/// [`Contradiction`](super::contradictions::Contradiction).
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(BTreeMap<String, Place>);

impl Places {
    pub(crate) fn add(&mut self, key: &str, place: Place) {
        self.0.insert(key.to_owned(), place);
    }

    /// Removes a key, since a flag or the environment overrides it.
    pub(crate) fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// Removes a key and those below it, since another layer overrides them.
    pub(crate) fn forget_all(&mut self, key: &str) {
        let below = format!("{key}.");
        self.0.retain(|other, _| other != key && !other.starts_with(&below));
    }

    /// Removes the chain, since a flag or the environment overrides it.
    pub(crate) fn forget_chain(&mut self) {
        self.0.retain(|key, _| {
            let parts = key.split('.').count();
            let is_app = parts == 2 || PythonFile::named(key).is_some();
            key != "apps" && !(key.starts_with("apps.") && is_app)
        });
    }

    /// The last place where one of these keys is set.
    pub(crate) fn last_of(&self, keys: &[String]) -> Option<Place> {
        keys.iter().filter_map(|key| self.0.get(key)).max().copied()
    }
}
