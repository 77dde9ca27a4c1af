//! What is said about configurations that cannot work, and about usual ones.

use super::*;

/// All contradictions of a file, with their places.
fn said(text: &str) -> Vec<String> {
    let (config, reading) = Config::read_yaml(text).unwrap();
    config.contradictions().iter().map(|one| one.located("f", &reading.places)).collect()
}

#[test]
fn every_contradiction_has_its_line_and_says_what_would_be_right() {
    for (text, starts) in [
        ("apps: [hub, learning]", &["f:1:13: the app \"learning\" stands behind \"hub\", "][..]),
        (
            "apps:\n- hub\n- quarantine\n",
            &["f:3:3: the app \"quarantine\" stands behind \"hub\", "],
        ),
        ("apps: [learning, bandwidth]", &["f:1:18: the app \"bandwidth\" stands behind "]),
        ("apps: [quarantine]", &["f:1:1: warning: no app forwards packets, "]),
        (
            "apps: [provisioning]",
            &[
                "f:1:1: warning: only packets selected by \"provisioning\" ",
                "f:1:8: warning: the app \"provisioning\" has no circuit",
            ],
        ),
        ("workers: 3\npin: [0, 1]\n", &["f:2:1: `pin` names 2 cores for 3 workers; "]),
        ("pin: [1, 1]\n", &["f:1:1: warning: `pin` names core 1 twice, "]),
        (
            "listen: [127.0.0.1:6653, '0.0.0.0:6653']\n",
            &["f:1:1: `listen` has 127.0.0.1:6653, and `listen` 0.0.0.0:6653: the same "],
        ),
        (
            "apps: [quarantine, bandwidth, learning]\ncontrol: none\n",
            &[
                "f:2:1: warning: the app \"quarantine\" can do nothing: ",
                "f:2:1: warning: the app \"bandwidth\" can do nothing: ",
            ],
        ),
        (
            "versions: 1.0\napps: [bandwidth, learning]\n",
            &["f:2:8: warning: the app \"bandwidth\" cannot keep a rate: "],
        ),
        ("versions: 1.3\nmiss_send_len: 9\n", &["f:2:1: warning: `miss_send_len` has no effect, "]),
        ("host_max_age: 60 s", &["f:1:1: warning: `host_max_age` has no effect, "]),
        ("discovery_interval: 9", &["f:1:1: warning: `discovery_interval` has no effect, "]),
        (
            "services: hosts\nmax_hosts: 9\nmax_hosts_per_port: 10\n",
            &["f:3:1: warning: `max_hosts_per_port` 10 is more than `max_hosts` 9, "],
        ),
        (
            "apps:\n- learning:\n    max_entries: 5\n    max_macs_per_port: 6\n",
            &["f:4:5: warning: `max_macs_per_port` 6 is more than `max_entries` 5, "],
        ),
        (
            "apps: [learning: {idle_timeout: 10 s, hard_timeout: 10 s}]",
            &["f:1:39: warning: `idle_timeout` 10 s has no effect, "],
        ),
        (
            "apps: [routing: {mode: proactive, idle_timeout: 5}]",
            &["f:1:35: warning: `idle_timeout` has no effect in proactive mode, "],
        ),
        (
            "apps: [global_learning]\nallow: {global_learning: {table_memory_bytes: 1 MiB}}\n",
            &["f:2:27: warning: `max_entries` 1048576 needs 29 MiB, "],
        ),
        (
            "apps: [hub]\nallow: {hub: {table_memory_bytes: 1 MiB}}\n",
            &["f:2:15: warning: `table_memory_bytes` of \"hub\" in `allow` has no effect, "],
        ),
        ("allow: {hub: own}\n", &["f:1:1: `allow` has the app \"hub\", which is not in `apps`; "]),
        (
            "table_memory_bytes: 1 MiB\napps: [global_learning]\n",
            &["f:1:1: warning: `max_entries` 1048576 needs 29 MiB, "],
        ),
    ] {
        let said = said(text);
        assert_eq!(said.len(), starts.len(), "{text}: {said:?}");
        for (said, start) in said.iter().zip(starts) {
            assert!(said.starts_with(start) && said.contains("; "), "{text}: {said}");
        }
    }
}

#[test]
fn usual_configurations_get_no_warning() {
    for text in [
        "",
        "listen: [127.0.0.1:6653, '[::1]:6653', 127.0.0.2:6653, 127.0.0.1:6654]",
        "listen: [127.0.0.1:0, 127.0.0.1:0]",
        "apps: [{quarantine: {file: /dev/null}}, learning]\ncontrol: none\n",
        "apps: [routing]\nhost_max_age: 60 s\ndiscovery_interval: 9 s\n",
        "apps: [learning: {max_entries: 5}]",
        "apps: [learning: {hard_timeout: 10}]",
        "max_hosts: 9\nservices: hosts\n",
    ] {
        assert_eq!(said(text), [""; 0], "{text}");
    }
}
