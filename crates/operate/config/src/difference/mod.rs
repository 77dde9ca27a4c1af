//! The difference of two configurations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::apps::{self, AppChoice};
use super::form::{Change, Form, Setting};
use super::{Config, names, settings};

/// What changes from one configuration to another. It prints one line for each change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The changes: those of the controller, of the chain, then of the apps.
    pub changes: Vec<SettingChange>,
}

/// A change of one setting, or of one entry of a map.
///
/// ```text
/// log_level: info -> debug (live)
/// apps.provisioning.circuits.red: added [core-1:4, core-2:3] (live)
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// The setting: its key in the file, with points between the levels.
    pub path: String,
    /// The value before, as a file has it. `None`: the entry is new.
    pub before: Option<String>,
    /// The value after. `None`: the entry is gone.
    pub after: Option<String>,
    /// When the change takes effect.
    pub change: Change,
}

impl Difference {
    /// Compares two configurations.
    #[must_use]
    pub fn between(before: &Config, after: &Config) -> Self {
        let mut changes = Vec::new();
        for setting in settings::all() {
            compare(setting, "", before, after, &mut changes);
        }
        let chain = |config: &Config| {
            let names: Vec<_> = config.apps.iter().map(AppChoice::name).collect();
            format!("[{}]", names.join(", "))
        };
        let (chain_before, chain_after) = (chain(before), chain(after));
        if chain_before != chain_after {
            changes.push(SettingChange {
                path: "apps".to_owned(),
                before: Some(chain_before),
                after: Some(chain_after),
                change: Change::Restart,
            });
        }
        for known in apps::KNOWN {
            let of =
                |config: &Config| config.apps.iter().find(|app| app.name() == known.name).cloned();
            if let (Some(before), Some(after)) = (of(before), of(after)) {
                let path = format!("apps.{}.", known.name);
                for setting in known.settings {
                    compare(setting, &path, &before, &after, &mut changes);
                }
            }
        }
        let is_about_names = |path: &str| {
            path.split('.').next().is_some_and(|section| names::KEYS.contains(&section))
        };
        for it in changes.iter_mut().filter(|it| !is_about_names(&it.path)) {
            it.path = after.names.in_text(&it.path);
            it.before = it.before.as_deref().map(|text| before.names.in_text(text));
            it.after = it.after.as_deref().map(|text| after.names.in_text(text));
        }
        Difference { changes }
    }

    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The changes that take effect at this time.
    pub fn at(&self, change: Change) -> impl Iterator<Item = &SettingChange> {
        self.changes.iter().filter(move |it| it.change == change)
    }
}

/// Adds the changes of a setting. `path` is empty, or ends with a point.
fn compare<T>(
    setting: &Setting<T>,
    path: &str,
    before: &T,
    after: &T,
    changes: &mut Vec<SettingChange>,
) {
    let path = format!("{path}{}", setting.key);
    let change = setting.change;
    if let Form::Map(map) = &setting.form {
        let of = |config: &T| (map.entries)(config).into_iter().collect::<BTreeMap<_, _>>();
        let (before, after) = (of(before), of(after));
        let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let changed = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
        changes.extend(changed.map(|key| SettingChange {
            path: format!("{path}.{key}"),
            before: before.get(key).cloned(),
            after: after.get(key).cloned(),
            change,
        }));
        return;
    }
    let (before, after) = (setting.yaml(before), setting.yaml(after));
    if before != after {
        changes.push(SettingChange { path, before: Some(before), after: Some(after), change });
    }
}

impl fmt::Display for SettingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, word) = (&self.path, self.change.word());
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => write!(f, "{path}: {before} -> {after} ({word})"),
            (None, Some(after)) => write!(f, "{path}: added {after} ({word})"),
            (Some(before), None) => write!(f, "{path}: removed {before} ({word})"),
            (None, None) => write!(f, "{path}: no change"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.changes.iter().try_for_each(|change| writeln!(f, "{change}"))
    }
}

#[cfg(test)]
mod tests;
