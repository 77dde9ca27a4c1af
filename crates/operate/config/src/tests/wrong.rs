//! Files with mistakes: each is refused, with its place and what would be right.

use super::*;

/// An invalid file and its problems: line, column, message. APPS is the list of all apps, YAML
/// what to look for.
type Bad = (&'static str, &'static [(u64, u64, &'static str)]);

const BAD: &[Bad] = &[
    // Keys.
    (
        "write: coalesce\nlisen: 127.0.0.1:1\n",
        &[(2, 1, "\"lisen\" is no setting; did you mean `listen`?")],
    ),
    (
        "learning:\n  idle_timeout: 3\n",
        &[(
            1,
            1,
            "\"learning\" is an app; write `apps: [learning]`, or its settings in `apps: [learning: {KEY: VALUE}]`",
        )],
    ),
    (
        "apps:\n  - learning:\n      idle_timout: 3\n",
        &[(
            3,
            7,
            "\"idle_timout\" is no setting of the app \"learning\"; did you mean `idle_timeout`?",
        )],
    ),
    (
        "apps: [learning: {colour: red}]",
        &[(
            1,
            19,
            "\"colour\" is no setting of the app \"learning\"; there are: match, idle_timeout, \
             hard_timeout, priority, max_entries, max_macs_per_port, max_age",
        )],
    ),
    ("apps: [hub: {x: 1}]", &[(1, 14, "\"x\" is no setting of the app \"hub\"; it has none")]),
    (
        "write: coalesce\nwrite: immediate\n",
        &[(2, 1, "`write` stands here twice; the first is at line 1, column 1")],
    ),
    // Words.
    (
        "write: imediate",
        &[(
            1,
            8,
            "`write` cannot be \"imediate\"; give one of coalesce, immediate (did you mean immediate?)",
        )],
    ),
    (
        "log_level: 5",
        &[(1, 12, "`log_level` cannot be \"5\"; give one of error, warn, info, debug, trace")],
    ),
    ("log_format: xml", &[(1, 13, "`log_format` cannot be \"xml\"; give one of human, json")]),
    ("versions: [1.0, 1.1]", &[(1, 17, "`versions` cannot be \"1.1\"; give one of 1.0, 1.3")]),
    (
        "allow: {hub: {switches: [a1, core]}}",
        &[(
            1,
            30,
            "`switches` cannot be \"core\"; give a name of `switches`, or a datapath id: 1 to 16 hexadecimal digits, \
             such as 00000000000000a1",
        )],
    ),
    ("allow: {hub: [own]}", &[(1, 14, "`hub` is all, own, none, or a map such as {write: own}")]),
    (
        "allow: {hub: {tasks: -1, table_memory_bytes: 9}}",
        &[
            (1, 22, "`tasks` cannot be \"-1\"; give a whole number from 0 to 65536"),
            (
                1,
                46,
                "`table_memory_bytes` cannot be \"9\"; give a number of bytes from 1 MiB to 1024 GiB, in B, KiB, MiB \
                 or GiB",
            ),
        ],
    ),
    ("versions: 1", &[(1, 11, "`versions` cannot be \"1\"; give one of 1.0, 1.3")]),
    (
        "apps: [learning: {match: l3}]",
        &[(1, 26, "`match` cannot be \"l3\"; give one of l2, exact")],
    ),
    // Numbers, bytes and times.
    (
        "workers: 0",
        &[(1, 10, "`workers` cannot be \"0\"; give auto, or a whole number from 1 to 1024")],
    ),
    (
        "max_connections: 1.5",
        &[(1, 18, "`max_connections` cannot be \"1.5\"; give a whole number from 1 to 1000000")],
    ),
    (
        "max_requests: -1",
        &[(1, 15, "`max_requests` cannot be \"-1\"; give a whole number from 32 to 65535")],
    ),
    (
        "packet_ins_per_second: none",
        &[(
            1,
            24,
            "`packet_ins_per_second` cannot be \"none\"; give off, or a whole number from 1 to 10000000",
        )],
    ),
    (
        "apps: [learning: {idle_timeout: 65536}]",
        &[(
            1,
            33,
            "`idle_timeout` cannot be \"65536\"; give a time in whole seconds from 0 s to 65535 s, such as \
             10 s or 2 min",
        )],
    ),
    (
        "apps: [routing: {idle_timeout: 500 ms}]",
        &[(
            1,
            32,
            "`idle_timeout` cannot be \"500 ms\"; give a time in whole seconds from 0 s to 65535 s, such as \
             10 s or 2 min",
        )],
    ),
    (
        "services: [none, hosts]",
        &[(1, 12, "`services` cannot be \"none\"; give none alone, or services without it")],
    ),
    (
        "high_water_bytes: 1 MB",
        &[(
            1,
            19,
            "`high_water_bytes` cannot be \"1 MB\"; give a number of bytes from 64 KiB to 1 GiB, in B, \
             KiB, MiB or GiB",
        )],
    ),
    (
        "echo_after: 2 hours",
        &[(
            1,
            13,
            "`echo_after` cannot be \"2 hours\"; give a time from 100 ms to 3600 s, in ms, s, min or h",
        )],
    ),
    // Addresses and cores.
    (
        "listen: [127.0.0.1:6653@1.0, 127.0.0.1:6654@1.1]",
        &[(
            1,
            30,
            "`listen` cannot be \"127.0.0.1:6654@1.1\"; give OpenFlow versions behind the @, such as 127.0.0.1:6654@1.0 \
             or 127.0.0.1:6654@1.0+1.3",
        )],
    ),
    (
        "listen:\n  - 127.0.0.1:6653\n  - localhost\n",
        &[(
            3,
            5,
            "`listen` cannot be \"localhost\"; give an address and a port, such as 127.0.0.1:6653 or [::1]:6653, \
             or tls:0.0.0.0:6653 for TLS",
        )],
    ),
    (
        "pin: [0, many]",
        &[(
            1,
            10,
            "`pin` cannot be \"many\"; give auto, none, or cores: each a whole number from 0 to 4095",
        )],
    ),
    // Names.
    (
        "switches: {a1: 1, s1: {dpid: 2}, s2: {dpd: 2}, s3: 2, s4: {}, s5: x, s6: [1], s 7: 3}",
        &[
            (
                1,
                12,
                "\"a1\" reads as a datapath id, so it cannot be a name; give another, such as s-a1",
            ),
            (1, 39, "\"dpd\" is no setting of \"s2\"; did you mean `dpid`?"),
            (
                1,
                48,
                "0000000000000002 has the name \"s1\" already; give it only one (the first is at line 1, column 19)",
            ),
            (1, 55, "`s4` needs a `dpid`"),
            (
                1,
                67,
                "`s5` cannot be \"x\"; give a datapath id: 1 to 16 hexadecimal digits, such as \
                 00000000000000a1",
            ),
            (1, 74, "`s6` takes one value, or `{dpid: VALUE}`"),
            (1, 79, "\"s 7\" is no name; give 1 to 64 letters, digits, -, _ and ., such as core-1"),
        ],
    ),
    (
        "hosts:\n  10.0.0.1: 02:00:00:00:00:01\n  web: 02:00:00:00:00\n",
        &[
            (
                2,
                3,
                "\"10.0.0.1\" reads as an IP address, so it cannot be a name; give another, such as h-10.0.0.1",
            ),
            (
                3,
                8,
                "`web` cannot be \"02:00:00:00:00\"; give an Ethernet address, such as 00:1b:21:3c:9d:f8",
            ),
        ],
    ),
    (
        "switches:\n  s1: 1\n  s1: 2\n",
        &[(3, 3, "`s1` stands here twice; the first is at line 2, column 3")],
    ),
    (
        "switches: [core-1]",
        &[(1, 12, "`switches` is a map, such as {core-1: 00000000000000a1}, or none")],
    ),
    // Maps of apps.
    (
        "switches: {s1: 1}\napps:\n- provisioning:\n    circuits:\n      blue: [s1:4, s2:1]\n      red: [1:4, 3:1]\n      green: 5:1\n      grey: {ends: [1:1]}\n      'a b': [7:1, 7:2]\n      x: [[7:3], 7:4]\n      y: {}\n",
        &[
            (
                5,
                20,
                "\"s2:1\" is not an endpoint; give SWITCH:PORT or SWITCH:PORT:VLAN (datapath id or configured \
                 name, VLAN 1 to 4094), or a host (Ethernet address or configured name), such as a1:4, a1:4:100 or \
                 00:1b:21:3c:9d:f8",
            ),
            (
                6,
                7,
                "0000000000000001:4 is an endpoint of \"blue\" and of \"red\"; use each endpoint only once",
            ),
            (7, 14, "the circuit \"green\" needs 2 to 64 endpoints, but has 1"),
            (8, 14, "\"ends\" is no setting of the circuit \"grey\"; there are: endpoints"),
            (9, 7, "\"a b\" is no name of a circuit; give one without spaces"),
            (10, 11, "an endpoint is a single value, such as a1:4"),
            (11, 10, "`y` takes a list of endpoints, such as [a1:4, a2:3:100]"),
        ],
    ),
    (
        "apps: [bandwidth: {lines: {a1: 10M, a1:4: 10, a2:4: [1M]}, queues: {go-ld: 1, gold: x}}]",
        &[
            (
                1,
                28,
                "\"a1\" is no key here; give a port: SWITCH:PORT with the name of the switch or its datapath id \
                 in hexadecimal, such as a1:4",
            ),
            (1, 43, "`a1:4` cannot be \"10\"; give a rate with k, M or G, such as 100M"),
            (1, 53, "`a2:4` takes one value"),
            (1, 69, "\"go-ld\" is no key here; give a name of letters, digits and _, such as gold"),
            (1, 85, "`gold` cannot be \"x\"; give a whole number from 0 to 4294967295"),
        ],
    ),
    (
        "apps: [bandwidth: {queues: [gold], lines: [{a1:4: 1M}]}]",
        &[
            (1, 29, "`queues` is a map, such as {gold: 1}, or none"),
            (1, 44, "`lines` is a map, such as {a1:4: 10M}, or none"),
        ],
    ),
    // Shapes.
    ("write: [coalesce]", &[(1, 8, "`write` takes one value")]),
    ("listen: {a: 1}", &[(1, 9, "`listen` takes one value, or a list of them")]),
    ("listen: [[a]]", &[(1, 10, "`listen` takes a list of single values")]),
    ("listen: []", &[(1, 9, "`listen` takes one value, or a list of them")]),
    ("workers:\n", &[(1, 1, "`workers` has no value; leave the line out for the default")]),
    ("- write\n", &[(1, 1, "a configuration is `key: value`, one a line")]),
    ("control: ''", &[(1, 10, "`control` cannot be \"\"; give auto, none, or a path")]),
    (
        "apps: hub",
        &[(
            1,
            7,
            "`apps` is a list of apps, each a name or a name with settings, such as [hub] or \
             [learning: {match: l2}]",
        )],
    ),
    (
        "apps: hubb",
        &[(
            1,
            7,
            "there is no app \"hubb\"; `apps` is a list, each one of APPS (did you mean hub?), or a Python file, such as \
             ./my_app.py",
        )],
    ),
    ("apps: []", &[(1, 7, "`apps` is empty; give at least one of APPS")]),
    ("apps: [learning: fast]", &[(1, 18, "the settings of \"learning\" are `{key: value}`")]),
    ("apps: [hub, hub]", &[(1, 13, "the app \"hub\" is in the list already")]),
    // YAML itself.
    ("write: [coalesce\nlisten: x\n", &[(2, 7, "illegal placement of ':' indicator; YAML")]),
    ("write: *nowhere", &[(1, 8, "reference to unknown value; YAML")]),
    // All at once, in order.
    (
        "workers: 0\nwrit: x\napps: [hubb]\n",
        &[
            (1, 10, "`workers` cannot be \"0\"; give auto, or a whole number from 1 to 1024"),
            (2, 1, "\"writ\" is no setting; did you mean `write`?"),
            (
                3,
                8,
                "there is no app \"hubb\"; give one of APPS (did you mean hub?), or a Python file, such as ./my_app.py",
            ),
        ],
    ),
];

#[test]
fn a_wrong_file_is_refused_with_the_place_and_what_would_be_right() {
    for (text, expected) in BAD {
        let problems = Config::from_yaml(text).expect_err(text);
        let expected: Vec<Problem> = expected
            .iter()
            .map(|&(line, column, message)| Problem {
                place: Place { line, column },
                message: message.replace("APPS", &all_apps()).replace("YAML", yaml::ADVICE),
            })
            .collect();
        assert_eq!(problems, expected, "in {text:?}");
    }
}

#[test]
fn an_error_lists_the_first_problems_and_the_number_of_the_others() {
    let names: String = (0..1000).map(|n| format!("  s{n}: none\n")).collect();
    let problems = Config::from_yaml(&format!("switches:\n{names}")).unwrap_err();
    assert_eq!(problems.len(), 1000);
    let text = FileError::Wrong { path: "file".into(), problems }.to_string();
    assert_eq!(text.lines().count(), MAX_PROBLEMS_SHOWN + 1);
    assert_eq!(text.lines().last(), Some("file: 980 more problems"));
}

#[test]
fn files_that_are_no_configuration_are_refused() {
    let directory = test_directory("config");
    let path = directory.join("bellrock.yaml");
    let error = |contents: &[u8]| {
        std::fs::write(&path, contents).unwrap();
        let error = Sources::file(&path).check().unwrap_err().to_string();
        error.strip_prefix(&path.display().to_string()).unwrap().to_owned()
    };
    assert_eq!(error(b"write: \xff"), ": not UTF-8 text");
    let large = vec![b'#'; MAX_FILE_BYTES as usize + 1];
    assert_eq!(error(&large), ": larger than 1024 KiB, so hardly a configuration file");
    let two = error(b"workers: x\nwrit: x");
    assert!(
        two.starts_with(":1:10: `workers` cannot be") && two.contains("bellrock.yaml:2:1: "),
        "{two}"
    );
    std::fs::remove_dir_all(&directory).unwrap();
    let missing = Sources::file(&path).check().unwrap_err().to_string();
    assert!(
        missing.ends_with("bellrock.yaml: No such file or directory (os error 2)"),
        "{missing}"
    );
}
