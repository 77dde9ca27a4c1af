//! Settings that nodes share, above those of a file.

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
    let [AppChoice::Provisioning(settings, _), AppChoice::Learning(_)] = &config.apps[..] else {
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
    assert_eq!(check(file, "switches: {edge: a1, core: a2}").unwrap().errors, Vec::<String>::new());
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
    for known in apps::KNOWN {
        assert_eq!(known.shared_settings().count(), known.shared.len(), "{}", known.name);
        for setting in known.shared_settings() {
            assert_eq!(setting.change, Change::Live, "{}.{}", known.name, setting.key);
        }
    }
}
