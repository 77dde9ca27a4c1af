//! Maps from names to items with settings of their own: `switches`, `hosts` and `allow`.
//!
//! The value of a name is a map of the item's settings, or the value of the first of them alone.

use super::form::Setting;
use super::read::{Reading, Table};
use super::yaml::{Entry, Value};

/// How an item is read.
pub(crate) struct Item<T: 'static> {
    /// Its settings. The first can stand alone.
    pub(crate) settings: &'static [Setting<T>],
    /// What an entry of its map is, for errors.
    pub(crate) what: String,
    /// Begins the keys of [`Places`](super::read::Places).
    pub(crate) path: String,
    /// What a value takes, for errors: the end of a sentence that begins with its name.
    pub(crate) takes: String,
}

impl<T> Item<T> {
    /// Reads the item of `entry` into `to`.
    pub(crate) fn read(self, entry: &Entry, to: &mut T, reading: &mut Reading) {
        match &entry.value.value {
            Value::Scalar(_) => {
                if let Some(first) = self.settings.first() {
                    first.read(to, entry, reading);
                }
            }
            Value::Map(fields) => {
                let Item { settings, what, path, .. } = self;
                let settings = settings.iter().collect();
                Table { settings, what, path, others: &[] }.read(fields, to, reading);
            }
            _ => reading.add(entry.value.place, format!("`{}` {}", entry.key, self.takes)),
        }
    }
}

/// Shows an item as a map in one line of YAML: its first setting, and the others that are not as in
/// `default`.
pub(crate) fn show<T>(settings: &[Setting<T>], item: &T, default: &T) -> String {
    let shown = settings.iter().enumerate().filter_map(|(place, setting)| {
        let value = setting.yaml(item);
        let is_shown = place == 0 || value != setting.yaml(default);
        is_shown.then(|| format!("{}: {value}", setting.key))
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
}
