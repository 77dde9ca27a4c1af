//! Changes from one configuration to another.

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
    assert_eq!(difference.to_string(), "apps: [quarantine, learning] -> [learning] (restart)\n");
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
