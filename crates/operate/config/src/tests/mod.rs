//! Valid files, invalid files, and the messages about them.

use std::path::Path;
use std::time::Duration;

use bellrock_api::Dpid;
use bellrock_apps::{LearningSettings, MatchKind};
use bellrock_engine::{Pinning, WriteMode};

use super::apps::{AppChoice, KNOWN};
use super::yaml::Place;
use super::*;

mod cluster;
mod python;
mod wrong;

fn read(text: &str) -> Config {
    Config::from_yaml(text).unwrap_or_else(|problems| {
        panic!("{}", FileError::Wrong { path: Path::new("file").into(), problems })
    })
}

#[test]
fn the_default_file_says_what_the_code_does() {
    assert_eq!(read(&default_yaml()), Config::default());
    assert_eq!(read(""), Config::default());
    assert_eq!(read("# nothing yet\n"), Config::default());
    let longest = default_yaml().lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(110), "{longest:?}");
}

/// The default file with the settings of these apps in use, and of no other app.
fn file_with(apps: &[&str]) -> String {
    let mut is_chosen = None;
    let file = default_yaml();
    let lines = file.lines().map(|line| {
        let text = line.trim_start();
        let indent = &line[..line.len() - text.len()];
        let (text, was_off) = match text.strip_prefix('#') {
            Some(off) if !off.is_empty() && !off.starts_with([' ', '#']) => (off, true),
            _ => (text, false),
        };
        if let Some(app) = text.strip_prefix("- ") {
            is_chosen = Some(apps.contains(&app.trim_end_matches(':')));
        } else if indent.len() < 6 && !text.starts_with('#') && !text.is_empty() {
            is_chosen = None;
        }
        match is_chosen {
            _ if text.starts_with('#') || text.is_empty() => line.to_owned(),
            Some(true) => format!("{indent}{text}"),
            Some(false) => format!("{indent}#{text}"),
            None => {
                assert!(!was_off, "a setting that is not an app's is in use: {line}");
                line.to_owned()
            }
        }
    });
    lines.map(|line| line + "\n").collect()
}

#[test]
fn the_default_file_has_every_setting_of_every_app_ready_to_be_used() {
    let names: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
    // Everything at once can be read, although such a chain cannot run.
    let (all, Reading { places, .. }) = Config::read_yaml(&file_with(&names)).unwrap();
    assert_eq!(all.apps.len(), KNOWN.len());
    for known in KNOWN {
        assert!(all.apps.contains(&(known.choice)()), "{} has its defaults", known.name);
        for setting in known.settings {
            let key = format!("apps.{}.{}", known.name, setting.key);
            assert!(places.last_of(std::slice::from_ref(&key)).is_some(), "no {key}");
        }
    }
    for setting in settings::all() {
        assert!(places.last_of(&[setting.key.to_owned()]).is_some(), "no {}", setting.key);
    }
    assert_eq!(Config { apps: Config::default().apps, ..all }, Config::default());
    // The apps form a chain in the order of the file.
    for last in ["learning", "global_learning", "routing", "hub"] {
        let config = read(&file_with(&["quarantine", "static", "provisioning", "bandwidth", last]));
        let chain: Vec<_> = config.apps.iter().map(AppChoice::name).collect();
        assert_eq!(chain, ["quarantine", "static", "provisioning", "bandwidth", last]);
        assert!(config.contradictions().iter().all(|one| !one.is_error));
    }
}

#[test]
fn a_setting_of_an_app_reads_back_as_it_is_shown() {
    for known in KNOWN {
        for setting in known.settings {
            let (default, mut copy) = ((known.choice)(), (known.choice)());
            let file = format!(
                "apps: [{{{}: {{{}: {}}}}}]",
                known.name,
                setting.key,
                setting.yaml(&default)
            );
            copy.clone_from(&read(&file).apps[0]);
            assert_eq!(copy, default, "{} of {}", setting.key, known.name);
        }
    }
    let file = "apps: [{bandwidth: {lines: {a1:4: 10M}, queues: {gold: 1}}}, provisioning: {circuits: {x: [a:1, b:2]}}]";
    let none = "apps: [{bandwidth: {lines: none, queues: none}}, provisioning: {circuits: none}]";
    assert_ne!(read(file).apps, read("apps: [bandwidth, provisioning]").apps);
    assert_eq!(read(none).apps, read("apps: [bandwidth, provisioning]").apps);
}

#[test]
fn an_app_that_stores_has_a_setting_that_names_its_file() {
    for known in KNOWN {
        let setting = known.settings.iter().find(|setting| setting.key == "store");
        let file = known.stored.map(|stored| stored.file);
        assert_eq!(setting.is_some(), file.is_some(), "{}", known.name);
        assert_eq!((known.choice)().store().is_some(), file.is_some(), "{}", known.name);
        let is_named = setting.zip(file).is_none_or(|(setting, file)| setting.about.contains(file));
        assert!(is_named, "{}: {file:?}", known.name);
    }
}

/// A file with the maps of apps.
const MAPS: &str = "\
switches: {core-1: a1}
hosts: {web: 02:00:00:00:00:01}
discovery_trusted_ports: core-1:9
apps:
  - bandwidth:
      lines: {core-1:4: 10M, b2:LOCAL: 1G}
      queues: {gold: 1, best_effort: 0}
  - provisioning:
      circuits:
        blue: [core-1:4, a2:3:100]
        red:
          endpoints:
            - web
            - b2:1
";

#[test]
fn structures_are_maps_and_names_stand_for_what_they_name() {
    let config = read(MAPS);
    let [AppChoice::Bandwidth(bandwidth, _), AppChoice::Provisioning(provisioning, _)] =
        &config.apps[..]
    else {
        panic!("two apps")
    };
    let lines: Vec<_> = bandwidth.lines.iter().map(|(at, rate)| format!("{at} {rate}")).collect();
    assert_eq!(lines, ["00000000000000a1:4 10M", "00000000000000b2:LOCAL 1G"]);
    assert_eq!(
        bandwidth.queues.clone().into_iter().collect::<Vec<_>>(),
        [("best_effort".to_owned(), 0), ("gold".to_owned(), 1)]
    );
    let circuits: Vec<_> = provisioning.circuits.iter().map(ToString::to_string).collect();
    assert_eq!(
        circuits,
        [
            "blue 00000000000000a1:4 00000000000000a2:3:100",
            "red 02:00:00:00:00:01 00000000000000b2:1",
        ]
    );
    let trusted: Vec<_> = config.services.trusted_ports.iter().map(ToString::to_string).collect();
    assert_eq!(trusted, ["00000000000000a1:9"]);
    // What is printed is a map, and reads back.
    for (app, choice) in [("bandwidth", &config.apps[0]), ("provisioning", &config.apps[1])] {
        let known = apps::known(app).unwrap();
        let settings = known.settings.iter();
        let settings = settings.map(|it| format!("{}: {}", it.key, it.yaml(choice)));
        let file = format!("apps: [{app}: {{{}}}]", settings.collect::<Vec<_>>().join(", "));
        assert_eq!(&read(&file).apps[0], choice, "{file}");
    }
    let circuits = &apps::known("provisioning").unwrap().settings[0];
    assert!(circuits.yaml(&config.apps[1]).starts_with("{blue: [00000000000000a1:4, "));
}

#[test]
fn packed_texts_are_read_with_a_warning_that_shows_the_map() {
    let packed = "\
apps:
  - bandwidth:
      lines: [a1:4=10M, b2:LOCAL=1G]
      queues: gold=1,silver=2
  - provisioning:
      circuits:
        - blue a1:4 a2:3:100
        - red 02:00:00:00:00:01 b2:1
";
    let (config, reading) = Config::read_yaml(packed).unwrap();
    let warnings: Vec<_> = reading.warnings.iter().map(|it| (it.place, &*it.message)).collect();
    let at = |line, column| Place { line, column };
    assert_eq!(
        warnings,
        [
            (at(3, 14), "`lines` is a map now; write `lines: {a1:4: 10M, b2:LOCAL: 1G}`"),
            (at(4, 15), "`queues` is a map now; write `queues: {gold: 1, silver: 2}`"),
            (
                at(7, 9),
                "`circuits` is a map now; write `circuits: {blue: [a1:4, a2:3:100], \
             red: [02:00:00:00:00:01, b2:1]}`"
            ),
        ]
    );
    let maps = "\
apps:
  - bandwidth: {lines: {a1:4: 10M, b2:LOCAL: 1G}, queues: {gold: 1, silver: 2}}
  - provisioning: {circuits: {blue: [a1:4, a2:3:100], red: [02:00:00:00:00:01, b2:1]}}
";
    let (same, reading) = Config::read_yaml(maps).unwrap();
    assert_eq!((same, reading.warnings.len()), (config, 0));
    // The command prints the warning with its place.
    let directory = test_directory("packed");
    let path = directory.join("bellrock.yaml");
    std::fs::write(&path, packed).unwrap();
    let warnings = Sources::file(&path).check().unwrap().warnings;
    assert!(warnings[0].contains("bellrock.yaml:3:14: warning: `lines` is a map"), "{warnings:?}");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn times_of_apps_have_units_or_are_seconds() {
    for text in ["10", "10s", "10 s", "10000 ms"] {
        let file = format!(
            "apps: [{{learning: {{idle_timeout: {text}, hard_timeout: {text}, max_age: {text}}}}}, \
             routing: {{idle_timeout: {text}}}]"
        );
        let [AppChoice::Learning(learning), AppChoice::Routing(routing)] = &read(&file).apps[..]
        else {
            panic!("two apps")
        };
        assert_eq!(
            (learning.idle_timeout_s, learning.hard_timeout_s, learning.max_age_s),
            (10, 10, 10)
        );
        assert_eq!(routing.idle_timeout_s, 10);
    }
}

#[test]
fn every_setting_reads_back_as_it_is_shown() {
    // A configuration where no setting has its default.
    let text = "\
switches: {core-1: 0000000000000010, s.2: {dpid: 1e5}}
hosts: {web: 02:00:00:00:00:01}
listen: [0.0.0.0:1, '[::]:2@1.0', 'tls:0.0.0.0:3@1.0+1.3', 'tls:[::]:4']
tls: {certificate: /c, key: /k, ca: /a, crl: /r, identity: strict, identities: {access 1: [a1, a2]}, pins: /p}
versions: 1.0
workers: 3
pin: [0, 2, 4]
idle: spin
hand_over: false
write: immediate
log_level: trace
log_format: json
control: /a/b
http: {listen: ['127.0.0.1:1', '[::]:2'], ryu: 127.0.0.1:3, certificate: /c, key: /k, tokens: /t, token_hashes: {grafana: read 12ab}, poll_ports: 15 s, poll_flows: 60 s}
cluster:
  name: campus
  node: a
  listen: 0.0.0.0:6641
  peers: {b: 192.0.2.2:6640, c: '[2001:db8::3]:6640'}
  etcd: {endpoints: ['https://192.0.2.1:2379', 'http://[::1]:2379'], user: u, password_file: /p, certificate: /c, key: /k, ca: /a, allow_plain: true}
  tls: {certificate: /c, key: /k, ca: /a, crl: /r}
max_connections: 1
max_switches_per_worker: 2
bytes_per_turn: 8 KiB
packet_ins_per_second: 5
controller_meter: 6
table_memory_bytes: 2 MiB
high_water_bytes: 65537
stalled_timeout: 1500 ms
handler_time: 300 ms
allow: {hub: {write: own, switches: [core-1, b2], messages_per_second: 4, tasks: 2, table_memory_bytes: 1 MiB}}
handshake_timeout: 1
echo_after: 2 s
dead_after: 2 min
miss_send_len: 128
max_multipart_bytes: 1 MiB
max_errors_per_second: 0
max_requests: 32
services: hosts
discovery_interval: 2 s
discovery_key_file: /k
discovery_slow_links: down
discovery_trusted_ports: [a1:3, b2:4]
host_max_age: 60 s
max_hosts: 7
max_hosts_per_port: 3
";
    let (config, default) = (read(text), Config::default());
    let mut copy = Config::default();
    for setting in settings::all() {
        let shown = setting.show(&config);
        assert_ne!(shown, setting.show(&default), "{} is still at its default", setting.key);
        let file = format!("{}: {}", setting.key, setting.yaml(&config));
        let root = yaml::parse(&file).unwrap();
        let Value::Map(entries) = &root.value else { panic!("{file}") };
        setting.read(&mut copy, &entries[0], &mut Reading::default());
        if let Form::One { .. } | Form::Many { .. } = setting.form {
            let texts: Vec<&str> =
                if setting.takes_many() { shown.split(',').collect() } else { vec![&shown] };
            assert_eq!(setting.set(&mut copy, &texts, "", &Reading::default()), [""; 0]);
        }
    }
    assert_eq!(copy, config);
    assert_eq!(config.pin, Pinning::Cores(vec![0, 2, 4]));
    assert_eq!(config.write, WriteMode::Immediate);
    assert_eq!(config.session.dead_after, Duration::from_secs(120));
}

#[test]
fn http_is_safe_or_an_error() {
    let wrong = |text: &str| {
        let all = read(text).contradictions();
        let errors: Vec<_> = all.iter().filter(|one| one.is_error).map(|one| &*one.text).collect();
        errors.join("\n")
    };
    for good in [
        "http: {listen: 127.0.0.1:8080}",
        "http: {listen: '[::1]:8080', tokens: /t}",
        "http: {listen: 0.0.0.0:8443, certificate: /c, key: /k, tokens: /t}",
    ] {
        assert_eq!(wrong(good), "", "{good}");
    }
    let open = "can be reached by other machines, which needs a certificate and tokens";
    for bad in [
        "http: {listen: 0.0.0.0:8443}",
        "http: {listen: [127.0.0.1:8080, 10.0.0.1:8443], tokens: /t}",
        "http: {listen: 10.0.0.1:8443, certificate: /c, key: /k}",
    ] {
        assert!(wrong(bad).contains(open), "{bad}");
    }
    assert!(wrong("http: {listen: 127.0.0.1:1, certificate: /c}").contains("set `http.key`"));
    assert!(wrong("http: {listen: 127.0.0.1:1, key: /k}").contains("set `http.certificate`"));
    assert!(wrong("http: {ryu: 0.0.0.0:8081}").contains("the interface of Ryu has no tokens"));
    assert_eq!(wrong("http: {ryu: 127.0.0.1:8081}"), "");
    let idle = read("http: {tokens: /t}").contradictions();
    assert!(idle.iter().any(|one| one.text.contains("no effect without `http.listen`")));
}

#[test]
fn tls_towards_switches_needs_its_files_and_each_datapath_id_has_one_certificate() {
    let wrong = |text: &str| {
        let all = read(text).contradictions();
        all.into_iter().map(|one| one.text).collect::<Vec<_>>().join("; ")
    };
    let files = "certificate: /c, key: /k, ca: /a";
    assert_eq!(wrong(&format!("{{listen: 'tls:0.0.0.0:6653', tls: {{{files}}}}}")), "");
    let bare = wrong("listen: ['127.0.0.1:6653', 'tls:0.0.0.0:6654']");
    assert!(
        bare.contains("set `tls.certificate`, `tls.key`, `tls.ca` (`bellrock pki` makes them)"),
        "{bare}"
    );
    let same = wrong(&format!("{{listen: ['127.0.0.1:1', 'tls:127.0.0.1:1'], tls: {{{files}}}}}"));
    assert!(same.contains("the same port of the same address"), "{same}");
    let web = wrong("{listen: 127.0.0.1:6700, http: {listen: 127.0.0.1:6700}}");
    assert!(web.contains("`listen` has 127.0.0.1:6700, and `http.listen` 127.0.0.1:6700"), "{web}");
    let idle = wrong(&format!("tls: {{{files}}}"));
    assert!(idle.contains("no effect without an address with tls:"), "{idle}");
    let key = format!("sha256:{}", "AB:".repeat(31) + "CD");
    let map = read(&format!("tls: {{identities: {{s 1: a1, '{key}': [a2, a3]}}}}")).tls.identities;
    let expected = format!("sha256:{}cd", "ab".repeat(31));
    assert_eq!(map.get("s 1"), Some(&vec![Dpid(0xa1)]));
    assert_eq!(map.get(&*expected), Some(&vec![Dpid(0xa2), Dpid(0xa3)]));
    for (text, expected) in [
        ("tls: {identities: {a: [a1], b: [a1]}}", "datapath id 00000000000000a1 has \"a\" already"),
        ("tls: {identities: {a: [s1]}}", "`a` cannot have \"s1\"; give a name of `switches`, or"),
        ("tls: {identities: {a: [[s1]]}}", "`a` takes a list of switches"),
        (
            "tls: {identities: {sha256:00: [a1]}}",
            "a fingerprint is sha256: and 64 hexadecimal digits",
        ),
        ("tls: {identities: {00000000000000a1: [a1]}}", "which speaks for itself"),
        ("tls: {identity: pinned}", "`identity` cannot be \"pinned\""),
    ] {
        let problems = Config::from_yaml(text).unwrap_err();
        assert!(problems.iter().any(|one| one.message.contains(expected)), "{text}: {problems:?}");
    }
}

#[test]
fn switches_have_their_names_wherever_a_setting_refers_to_one() {
    // The names may stand behind what uses them.
    let config = read(
        "allow: {hub: {switches: [core-1, b2]}}\ntls: {identities: {left: core-1, right: [edge]}}\n\
         discovery_trusted_ports: core-1:3\nswitches: {core-1: a1, edge: {dpid: a2}}\n",
    );
    let allowed = &config.allow["hub"].allowance.switches;
    assert_eq!(*allowed, Some([Dpid(0xa1), Dpid(0xb2)].into()));
    let expected = [("left", vec![Dpid(0xa1)]), ("right", vec![Dpid(0xa2)])];
    let expected = expected.map(|(name, dpids)| (name.to_owned(), dpids));
    assert_eq!(config.tls.identities, BTreeMap::from(expected));
    assert_eq!(config.services.trusted_ports.first().unwrap().dpid, Dpid(0xa1));
    let shown = yaml_of("allow", &config);
    assert_eq!(shown, "{hub: {write: all, switches: [00000000000000a1, 00000000000000b2]}}");
    // Another switch behind a name changes what an app may do.
    let text =
        |dpid| format!("apps: [hub]\nswitches: {{s: {dpid}}}\nallow: {{hub: {{switches: s}}}}");
    let difference = Difference::between(&read(&text("a1")), &read(&text("a2")));
    assert_eq!(difference.at(Change::Restart).count(), 1);
}

/// The value of a setting, as a file has it.
fn yaml_of(key: &str, config: &Config) -> String {
    settings::all().find(|setting| setting.key == key).unwrap().yaml(config)
}

#[test]
fn apps_have_settings_or_not() {
    let expected = LearningSettings {
        matching: MatchKind::Exact,
        hard_timeout_s: 2,
        ..LearningSettings::default()
    };
    let both = vec![AppChoice::Learning(expected), AppChoice::Hub];
    assert_eq!(read("apps: [{learning: {match: exact, hard_timeout: 2}}, hub]").apps, both);
    let json = r#"{"apps": [{"learning": {"match": "exact", "hard_timeout": 2}}, {"hub": null}]}"#;
    assert_eq!(read(json).apps, both, "JSON is YAML");
    let plain = vec![AppChoice::Learning(LearningSettings::default())];
    assert_eq!(read("apps:\n- learning:\n").apps, plain);
}

#[test]
fn apps_of_flags_replace_the_chain_and_keep_their_settings() {
    let mut config = read("apps: [{learning: {priority: 7}}]");
    config.choose_apps(&["hub".to_owned(), "learning".to_owned()]).unwrap();
    let learning = LearningSettings { priority: 7, ..LearningSettings::default() };
    assert_eq!(config.apps, [AppChoice::Hub, AppChoice::Learning(learning)]);
    let twice = config.choose_apps(&["hub".to_owned(), "hub".to_owned()]).unwrap_err();
    assert_eq!(twice, "the app \"hub\" is named twice");
    let unknown = config.choose_apps(&["lerning".to_owned()]).unwrap_err();
    assert_eq!(
        unknown,
        format!(
            "there is no app \"lerning\"; give one of {} (did you mean learning?), or a Python file, such as ./my_app.py",
            all_apps()
        )
    );
}

fn all_apps() -> String {
    KNOWN.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
}
