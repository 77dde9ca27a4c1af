//! The settings of a cluster: what is read of a file, and what is wrong in it.

use std::net::SocketAddr;

use super::*;

/// A node of a cluster of three machines, as the manual has it.
const CAMPUS: &str = "\
cluster:
  name: campus
  node: b
  listen: 0.0.0.0:6640
  peers:
    a: 192.0.2.1:6640
    c: \"[2001:db8::3]:6640\"
  etcd:
    endpoints: [https://192.0.2.1:2379, https://etcd-2.example.net:2379]
    user: bellrock
    password_file: /etc/bellrock/etcd-password
    certificate: /etc/bellrock/etcd.pem
    key: /etc/bellrock/etcd.key
    ca: /etc/bellrock/etcd-ca.pem
  tls:
    certificate: /etc/bellrock/node.pem
    key: /etc/bellrock/node.key
    ca: /etc/bellrock/nodes.pem
";

/// A node of three on one machine.
const LOCAL: &str = "\
cluster:
  name: lab
  node: a
  peers: {b: 127.0.0.1:6641, c: '[::1]:6642'}
  etcd: {endpoints: http://localhost:2379}
";

/// The contradictions of a file, with their places.
fn said(text: &str) -> Vec<String> {
    let (config, reading) = Config::read_yaml(text).unwrap();
    config.contradictions().iter().map(|one| one.located("f", &reading.places)).collect()
}

#[test]
fn a_cluster_is_read_with_all_its_parts() {
    let config = read(CAMPUS);
    let cluster = &config.cluster;
    assert!(cluster.is_on() && !Config::default().cluster.is_on());
    assert_eq!(cluster.name.as_deref(), Some("campus"));
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let nodes: Vec<_> = cluster.nodes().into_iter().collect();
    let expected = [
        ("a", address("192.0.2.1:6640")),
        ("b", address("0.0.0.0:6640")),
        ("c", address("[2001:db8::3]:6640")),
    ];
    assert_eq!(nodes, expected, "all nodes, by name");
    let endpoints: Vec<_> = cluster.etcd.endpoints.iter().map(ToString::to_string).collect();
    assert_eq!(endpoints, ["https://192.0.2.1:2379", "https://etcd-2.example.net:2379"]);
    assert_eq!(cluster.etcd.password_file, Some("/etc/bellrock/etcd-password".into()));
    assert_eq!(cluster.tls.ca, Some("/etc/bellrock/nodes.pem".into()));
    assert_eq!(said(CAMPUS), [""; 0]);
    assert_eq!(said(LOCAL), [""; 0]);
    assert_eq!(read(LOCAL).cluster.listen, address("127.0.0.1:6640"), "the default");
}

#[test]
fn every_wrong_value_of_a_cluster_has_its_place() {
    let long = "x".repeat(65);
    let long = format!("cluster: {{name: {long}}}");
    let name = "give none, or a name of 1 to 64 lower-case letters, digits and -";
    let url =
        "give none, or http:// or https://, a machine and a port, such as https://192.0.2.1:2379";
    for (text, column, message) in [
        (&*long, 17, format!("`name` cannot be \"{}\"; {name}", "x".repeat(65))),
        ("cluster: {name: ''}", 17, format!("`name` cannot be \"\"; {name}")),
        ("cluster: {node: A_1}", 17, format!("`node` cannot be \"A_1\"; {name}")),
        (
            "cluster: {listen: 127.0.0.1:0}",
            19,
            "`listen` cannot be \"127.0.0.1:0\"; give an address and a port, such as \
             127.0.0.1:6640, 0.0.0.0:6640 or [::]:6640"
                .to_owned(),
        ),
        (
            "cluster: {peers: {B: 192.0.2.2:1}}",
            19,
            "\"B\" cannot be a node; give a name of 1 to 64 lower-case letters, digits and -"
                .to_owned(),
        ),
        (
            "cluster: {peers: {b: 192.0.2.2}}",
            22,
            "`b` cannot be at \"192.0.2.2\"; give the address and port where that node listens, \
             such as 192.0.2.2:6640 or [2001:db8::2]:6640"
                .to_owned(),
        ),
        (
            "cluster: {peers: {b: [192.0.2.2:1]}}",
            22,
            "`b` takes one address, such as 192.0.2.2:6640".to_owned(),
        ),
        (
            "cluster: {peers: {b: '192.0.2.2:1', c: '192.0.2.2:1'}}",
            40,
            "192.0.2.2:1 is the address of \"b\" already; give `c` its own".to_owned(),
        ),
        (
            "cluster: {peers: b}",
            18,
            "`peers` is a map, such as {b: 192.0.2.2:6640, c: 192.0.2.3:6640}, or none".to_owned(),
        ),
        (
            "cluster: {etcd: {endpoints: ['http://[::1]:1', 'ftp://a:1']}}",
            48,
            format!("`endpoints` cannot be \"ftp://a:1\"; {url}"),
        ),
        (
            "cluster: {etcd: {endpoints: ['http://a:1', 'http://A:1/']}}",
            44,
            "`endpoints` cannot be \"http://A:1/\"; give each member of etcd once".to_owned(),
        ),
        (
            "cluster: {etcd: {allow_plain: maybe}}",
            31,
            "`allow_plain` cannot be \"maybe\"; give one of true, false".to_owned(),
        ),
        (
            "cluster: {etcd: {password: x}}",
            18,
            "\"password\" is no setting in `cluster.etcd`; did you mean `password_file`?"
                .to_owned(),
        ),
        ("cluster: on", 10, "`cluster` is a section: `{KEY: VALUE}`".to_owned()),
    ] {
        let problems = Config::from_yaml(text).expect_err(text);
        let place = Place { line: 1, column };
        assert_eq!(problems, [Problem { place, message }], "in {text:?}");
    }
    let many: Vec<_> = (0..=MAX_ETCD_ENDPOINTS).map(|n| format!("http://e{n}:1")).collect();
    let text = format!("cluster: {{etcd: {{endpoints: [{}]}}}}", many.join(", "));
    let problems = Config::from_yaml(&text).unwrap_err();
    assert!(problems[0].message.ends_with("give at most 16 members of etcd"), "{problems:?}");
}

/// A file with one part replaced by another.
fn with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

#[test]
fn every_contradiction_of_a_cluster_has_its_line_and_says_what_would_be_right() {
    let peers = |names: &[&str]| {
        let entry = |(n, name): (usize, &&str)| format!("{name}: '127.0.0.1:{}'", 7000 + n);
        let entries: Vec<_> = names.iter().enumerate().map(entry).collect();
        with(LOCAL, "{b: 127.0.0.1:6641, c: '[::1]:6642'}", &format!("{{{}}}", entries.join(", ")))
    };
    for (text, said_of_it) in [
        (
            "log_level: info\ncluster: {name: campus}\n".to_owned(),
            "f:2:1: `cluster` lacks `cluster.node`, `cluster.peers`, `cluster.etcd.endpoints`; ",
        ),
        (
            with(LOCAL, "  name: lab\n", ""),
            "f:1:1: `cluster` lacks `cluster.name`; set all of them, or leave `cluster` out ",
        ),
        (
            peers(&["b"]),
            "f:4:3: `cluster.peers` has 1, so the cluster has 2 nodes; name 2, 4, 6 or 8 ",
        ),
        (peers(&["b", "c", "d"]), "f:4:3: `cluster.peers` has 3, so the cluster has 4 nodes; "),
        (
            peers(&["b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]),
            "f:4:3: `cluster.peers` has 10, so the cluster has 11 nodes; ",
        ),
        (
            with(LOCAL, "node: a", "node: b"),
            "f:4:3: `cluster.peers` has \"b\", which is this node (`cluster.node`); name only ",
        ),
        (
            with(LOCAL, "127.0.0.1:6641", "127.0.0.1:6640"),
            "f:4:3: `cluster.listen` 127.0.0.1:6640 and the peer \"b\" at 127.0.0.1:6640 have ",
        ),
        (
            format!("{LOCAL}listen: 127.0.0.1:6640\n"),
            "f:6:1: `listen` has 127.0.0.1:6640, and `cluster.listen` 127.0.0.1:6640: the same ",
        ),
        (
            with(CAMPUS, "    key: /etc/bellrock/node.key\n", ""),
            "f:17:5: `cluster.tls` needs a certificate, its key, and the authorities of the nodes; \
             set `cluster.tls.key`",
        ),
        (
            format!("{LOCAL}  tls: {{crl: /etc/bellrock/revoked.pem}}\n"),
            "f:6:9: `cluster.tls` needs a certificate, its key, and the authorities of the nodes; \
             set `cluster.tls.certificate`, `cluster.tls.key`, `cluster.tls.ca`",
        ),
        (
            with(LOCAL, "  node: a\n", "  node: a\n  listen: 192.0.2.1:6640\n"),
            "f:4:3: `cluster.listen` 192.0.2.1:6640 is not of the loopback, so the nodes need TLS; \
             set `cluster.tls.certificate`, `cluster.tls.key`, `cluster.tls.ca` (`bellrock pki` ",
        ),
        (
            with(CAMPUS, "0.0.0.0:6640", "127.0.0.1:6640"),
            "f:5:3: warning: `cluster.listen` 127.0.0.1:6640 is of the loopback, where the peer \
             \"a\" at 192.0.2.1:6640 cannot connect; listen on an address of the network, such as ",
        ),
        (
            with(CAMPUS, "    password_file: /etc/bellrock/etcd-password\n", ""),
            "f:10:5: `cluster.etcd.user` needs `cluster.etcd.password_file` too; set both",
        ),
        (
            with(CAMPUS, "    certificate: /etc/bellrock/etcd.pem\n", ""),
            "f:12:5: `cluster.etcd.key` needs `cluster.etcd.certificate` too; set both",
        ),
        (
            with(CAMPUS, "https://etcd-2.example.net:2379", "http://etcd-2.example.net:2379"),
            "f:9:5: `cluster.etcd.endpoints` has http://etcd-2.example.net:2379 of another machine \
             without TLS; give https://, or set `cluster.etcd.allow_plain: true` ",
        ),
        (
            with(CAMPUS, "    ca: /etc/bellrock/etcd-ca.pem\n", ""),
            "f:9:5: `cluster.etcd.endpoints` has https:// without the authorities of etcd; set ",
        ),
        (
            with(LOCAL, "2379}", "2379, ca: /a}"),
            "f:5:44: warning: the files of `cluster.etcd` have no effect, ",
        ),
        (
            format!("{LOCAL}apps: [{{static: {{store: /var/lib/static.json}}}}, learning]\n"),
            "f:6:18: warning: `apps.static.store` has no effect, since a cluster keeps static ",
        ),
    ] {
        let said = said(&text);
        assert_eq!(said.len(), 1, "{text}: {said:?}");
        assert!(said[0].starts_with(said_of_it), "{text}: {said:?}");
    }
    // A peer on another machine needs TLS too, and this node must be reachable.
    let away = said(&with(LOCAL, "127.0.0.1:6641", "192.0.2.2:6640"));
    assert!(
        away[0].contains("the peer \"b\" at 192.0.2.2:6640 is not of the loopback"),
        "{away:?}"
    );
    assert!(away[1].contains("cannot connect"), "{away:?}");
    // A peer of this machine behind an address for all.
    let all = with(LOCAL, "  node: a\n", "  node: a\n  listen: 0.0.0.0:6641\n");
    assert!(said(&all).iter().any(|one| one.contains("have one address")), "{:?}", said(&all));
}

#[test]
fn plain_etcd_on_another_machine_is_a_decision() {
    let plain = with(LOCAL, "http://localhost:2379", "http://192.0.2.9:2379, allow_plain: true");
    assert_eq!(said(&plain), [""; 0]);
}

#[test]
fn a_change_of_a_cluster_needs_a_restart() {
    let after = with(LOCAL, "b: 127.0.0.1:6641", "d: 127.0.0.1:6643");
    let difference = Difference::between(&read(LOCAL), &read(&after)).to_string();
    let expected = "\
cluster.peers.b: removed 127.0.0.1:6641 (restart)
cluster.peers.d: added 127.0.0.1:6643 (restart)
";
    assert_eq!(difference, expected);
    let all = Difference::between(&Config::default(), &read(CAMPUS));
    assert!(all.changes.len() > 10, "{all}");
    // Certificates are renewed while the node runs.
    let live: Vec<&str> = all.at(Change::Live).map(|change| change.path.as_str()).collect();
    assert_eq!(live, ["cluster.tls.certificate", "cluster.tls.key", "cluster.tls.ca"]);
}

#[test]
fn the_password_of_etcd_is_the_only_line_of_its_file() {
    let directory = test_directory("password");
    let path = directory.join("password");
    let read = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        files::read_password(&path).map_err(|error| error.to_string())
    };
    assert_eq!(read(b"s3cret word\n"), Ok("s3cret word".to_owned()));
    assert_eq!(read(b"s3cret"), Ok("s3cret".to_owned()));
    for wrong in [&b""[..], b"\n", b"\nlate\n", b"one\ntwo\n", &[b'x'; 5000]] {
        let error = read(wrong).unwrap_err();
        assert!(error.ends_with("password: it has no single line with a password"), "{error}");
    }
    assert!(read(b"\xff\n").is_err());
    // The check of a configuration reads it.
    let file = directory.join("bellrock.yaml");
    let etcd =
        format!("endpoints: http://localhost:2379, user: u, password_file: {}", path.display());
    std::fs::write(&file, with(LOCAL, "endpoints: http://localhost:2379", &etcd)).unwrap();
    std::fs::write(&path, "").unwrap();
    let errors = Sources::file(&file).check().unwrap().errors;
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("bellrock.yaml:5:"), "{errors:?}");
    assert!(errors[0].contains("cluster.etcd.password_file: "), "{errors:?}");
    std::fs::remove_file(&path).unwrap();
    let errors = Sources::file(&file).check().unwrap().errors;
    assert!(errors[0].ends_with("; make it, or correct its path"), "{errors:?}");
    std::fs::write(&path, "word").unwrap();
    assert_eq!(Sources::file(&file).check().unwrap().errors, [""; 0]);
    std::fs::remove_dir_all(&directory).unwrap();
}
