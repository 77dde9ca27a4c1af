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
mod tests {
    use super::*;

    fn read(text: &str) -> Config {
        Config::from_yaml(text).unwrap()
    }

    const BEFORE: &str = "\
switches: {core-1: a1, core-2: a2}
log_level: info
listen: 127.0.0.1:6653
apps:
  - quarantine: {file: /etc/blocked}
  - provisioning: {circuits: {blue: [a1:4, a2:3], red: [a1:5, a2:5]}}
  - bandwidth: {lines: {a1:4: 10M}}
  - learning: {idle_timeout: 10 s}
";

    #[test]
    fn each_changed_setting_and_entry_is_a_line() {
        let after = "\
switches: {core-1: a1, edge: a2}
log_level: debug
listen: [127.0.0.1:6653, '[::1]:6653']
apps:
  - quarantine: {file: none}
  - provisioning: {circuits: {blue: [a1:4, a2:3, a3:1], green: [a1:6, a2:6]}}
  - bandwidth: {lines: {a1:4: 20M}}
  - learning: {idle_timeout: 20 s}
";
        let (before, after) = (read(BEFORE), read(after));
        let difference = Difference::between(&before, &after);
        let expected = "\
listen: 127.0.0.1:6653 -> [127.0.0.1:6653, \"[::1]:6653\"] (restart)
switches.core-2: removed 00000000000000a2 (live)
switches.edge: added 00000000000000a2 (live)
log_level: info -> debug (live)
apps.learning.idle_timeout: 10 s -> 20 s (restart)
apps.quarantine.file: /etc/blocked -> none (live)
apps.provisioning.circuits.blue: [core-1:4, core-2:3] -> [core-1:4, edge:3, 00000000000000a3:1] (live)
apps.provisioning.circuits.green: added [core-1:6, edge:6] (live)
apps.provisioning.circuits.red: removed [core-1:5, core-2:5] (live)
apps.bandwidth.lines.core-1:4: 10M -> 20M (live)
";
        assert_eq!(difference.to_string(), expected);
        assert_eq!(difference.at(Change::Live).count(), 8);
        assert!(Difference::between(&after, &after).is_empty());
        assert_eq!(Difference::between(&after, &before).changes.len(), difference.changes.len());
    }

    #[test]
    fn another_chain_needs_a_restart() {
        let after = read("apps: [learning]");
        let difference = Difference::between(&read("apps: [quarantine, learning]"), &after);
        assert_eq!(
            difference.to_string(),
            "apps: [quarantine, learning] -> [learning] (restart)\n"
        );
    }

    /// A setting that is live without a part that takes it would be a promise that nobody keeps.
    #[test]
    fn these_settings_are_live() {
        let mut live: Vec<String> = settings::all()
            .filter(|setting| setting.change == Change::Live)
            .map(|setting| setting.key.to_owned())
            .collect();
        for known in apps::KNOWN {
            let of_app = known.settings.iter().filter(|setting| setting.change == Change::Live);
            live.extend(of_app.map(|setting| format!("{}.{}", known.name, setting.key)));
        }
        let expected = [
            "tls.certificate",
            "tls.key",
            "tls.ca",
            "tls.crl",
            "tls.identity",
            "tls.identities",
            "switches",
            "hosts",
            "log_level",
            "http.certificate",
            "http.key",
            "http.token_hashes",
            "cluster.tls.certificate",
            "cluster.tls.key",
            "cluster.tls.ca",
            "cluster.tls.crl",
            "packet_ins_per_second",
            "quarantine.file",
            "provisioning.circuits",
            "bandwidth.rate",
            "bandwidth.lines",
            "bandwidth.queues",
        ];
        assert_eq!(live, expected);
    }
}
