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

/// The settings of apps that nodes share: app and setting.
pub const SHARED_OF_APPS: &[(&str, &str)] = &[
    ("provisioning", "circuits"),
    ("bandwidth", "rate"),
    ("bandwidth", "lines"),
    ("bandwidth", "queues"),
];

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
    let mut names: Vec<_> = SHARED_OF_APPS.iter().map(|(app, _)| *app).collect();
    names.dedup();
    names
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
    let is_shared = |key: &str| SHARED_OF_APPS.contains(&(&**name, key));
    let of_app = apps::KNOWN.iter().filter(|known| known.name == name);
    let settings = of_app.flat_map(|known| known.settings).filter(|it| is_shared(it.key)).collect();
    let what = format!("setting of {name:?} that nodes share");
    read_app_settings(app, value, settings, what, reading);
}

#[cfg(test)]
mod tests {
    use super::super::apps::AppChoice;
    use super::super::form::Change;
    use super::super::{Checked, Sources};
    use super::*;

    fn check(file: &str, shared: &str) -> Result<Checked, String> {
        let (text, shared) = (Some(file.to_owned()), Some(shared.to_owned()));
        let sources = Sources { text, shared, ..Sources::file("bellrock.yaml") };
        sources.check().map_err(|error| error.to_string())
    }

    const FILE: &str = "\
switches: {old: a1, core-2: a2}
packet_ins_per_second: 100
apps:
  - provisioning: {circuits: {red: [a1:5, a2:5]}}
  - learning
";

    #[test]
    fn shared_settings_replace_those_of_the_file_and_leave_the_others() {
        let shared = "\
switches: {core-1: a1, core-2: a2}
log_level: debug
http: {token_hashes: {grafana: read 12ab}}
apps:
  - provisioning: {circuits: {blue: [core-1:4, core-2:3]}}
";
        let Checked { config, errors, .. } = check(FILE, shared).unwrap();
        assert_eq!(errors, Vec::<String>::new());
        let names: Vec<_> = config.names.switches().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["core-1", "core-2"]);
        assert_eq!(config.log_level, tracing::Level::DEBUG);
        assert_eq!(config.limits.packet_ins_per_second, Some(100));
        assert_eq!(config.http.token_hashes["grafana"], "read 12ab");
        let [AppChoice::Provisioning(settings, _), AppChoice::Learning(_)] = &config.apps[..]
        else {
            panic!("{:?}", config.apps)
        };
        let circuits: Vec<_> = settings.circuits.iter().map(ToString::to_string).collect();
        assert_eq!(circuits, ["blue 00000000000000a1:4 00000000000000a2:3"]);
        // Nothing shared.
        let own = check(FILE, "").unwrap().config;
        assert_eq!(own, check(FILE, "# nothing\n").unwrap().config);
        assert_eq!(own.names.switch("old").unwrap().to_string(), "00000000000000a1");
    }

    #[test]
    fn names_that_are_shared_hold_in_the_file_too() {
        let file = "apps: [provisioning: {circuits: {red: [edge:5, core:5]}}, learning]\n";
        assert!(check(file, "").unwrap_err().contains("\"edge:5\" is not an endpoint"));
        assert_eq!(
            check(file, "switches: {edge: a1, core: a2}").unwrap().errors,
            Vec::<String>::new()
        );
    }

    #[test]
    fn settings_of_one_machine_are_refused_with_their_place() {
        let error = |shared: &str| check(FILE, shared).unwrap_err();
        for (shared, said) in [
            (
                "listen: 0.0.0.0:6653",
                "1:1: \"listen\" is no setting that nodes share; there are: switches",
            ),
            ("\nhttp: {tokens: /x}", "2:8: \"tokens\" is no setting that nodes share in `http`"),
            ("apps: [learning]", "1:8: `apps` is here a list of apps with settings"),
            (
                "apps: [learning: {priority: 1}]",
                "\"learning\" is no app with settings that nodes share",
            ),
            ("apps: [bandwidth: {rate: 1G}]", "\"bandwidth\" is not in the chain of this node"),
            (
                "apps: [provisioning: {vlans: 2-9}]",
                "\"vlans\" is no setting of \"provisioning\" that nodes share",
            ),
            ("switches: {a: zz}", "1:15: `a` cannot be \"zz\""),
            ("- x", "a configuration is `key: value`"),
            ("a: [", "look here and just above"),
        ] {
            let error = error(shared);
            assert!(error.starts_with("shared configuration:") && error.contains(said), "{error}");
        }
        let long = format!("# {}", "x".repeat(MAX_SHARED_BYTES));
        assert!(error(&long).contains("nodes share at most 256 KiB"), "{}", error(&long));
    }

    #[test]
    fn a_running_controller_takes_all_that_is_shared() {
        let live: Vec<_> =
            settings::all().filter(|it| it.change == Change::Live).map(|it| it.key).collect();
        assert!(SHARED_SETTINGS.iter().all(|key| live.contains(key)), "{live:?}");
        for (app, key) in SHARED_OF_APPS {
            let known = apps::known(app).unwrap();
            let setting = known.settings.iter().find(|setting| setting.key == *key).unwrap();
            assert_eq!(setting.change, Change::Live, "{app}.{key}");
        }
    }
}
