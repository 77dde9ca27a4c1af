//! The files that a configuration names, as `check`, `doctor` and `reload` read them, and what
//! `doctor` finds beside a running controller.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::running::{Controller, Place, bellrock, free_address, output};
use serde_json::{Value, json};

/// Makes a certificate of its own, and its key. Returns their paths.
fn certificate(place: &Place, name: &str) -> (String, String) {
    let (certificate, key) =
        (place.file(&format!("{name}.pem")), place.file(&format!("{name}.key")));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    openssl.args(["-nodes", "-subj", "/CN=localhost", "-days", "2"]);
    // Nodes of a cluster are known by their DNS names.
    openssl.args(["-addext", "subjectAltName=DNS:localhost,DNS:a"]);
    let made = openssl.args(["-keyout", &key, "-out", &certificate]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    (certificate, key)
}

fn tokens(place: &Place) -> String {
    let file = place.file("tokens");
    let made = output(&mut bellrock(&["token", "a", "--scope", "read", "--file", &file]));
    assert_eq!(made.0, 0, "{made:?}");
    file
}

/// The findings of `doctor` on a topic: each with its verdict, what was found, and the advice.
fn findings(command: &mut Command, topic: &str) -> Vec<(String, String, String)> {
    let (_, text, error) = output(command.arg("--json"));
    assert_eq!(error, "");
    let all: Value = serde_json::from_str(&text).unwrap();
    let of_topic = all.as_array().unwrap().iter().filter(|it| it["topic"] == topic);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of_topic.map(|it| (text(&it["verdict"]), text(&it["found"]), text(&it["advice"]))).collect()
}

/// A cluster, without the files that it names.
const CLUSTER: &str = "\
cluster.name: lab
cluster.node: a
cluster.peers: {b: 127.0.0.1:6641, c: 127.0.0.1:6642}
cluster.etcd.endpoints: https://localhost:2379
cluster.etcd.user: bellrock
";

/// The setting of the file of static entries.
const STORE: &str = "apps.static.store";

/// A configuration with every kind of file, and one of its values replaced.
struct Files {
    place: Place,
    values: Vec<(&'static str, String)>,
}

impl Files {
    fn new(name: &str) -> Self {
        let place = Place::new(name);
        let (node, node_key) = certificate(&place, "node");
        let (certificate, key) = certificate(&place, "http");
        let password = place.write("password", "word\n");
        fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
        let values = vec![
            ("http.certificate", certificate),
            ("http.key", key),
            ("http.tokens", tokens(&place)),
            ("discovery_key_file", place.write("discovery.key", &"0f".repeat(32))),
            ("apps.quarantine.file", place.write("blocked", "10.0.0.7\n")),
            (STORE, place.file("static.json")),
            ("cluster.tls.certificate", node.clone()),
            ("cluster.tls.key", node_key.clone()),
            ("cluster.tls.ca", node.clone()),
            ("cluster.etcd.certificate", node.clone()),
            ("cluster.etcd.key", node_key),
            ("cluster.etcd.ca", node),
            ("cluster.etcd.password_file", password),
        ];
        Files { place, values }
    }

    /// Writes it to `bellrock.yaml`, and returns the line of `changed`. A cluster has no file of
    /// static entries, so the file has only one of them.
    fn write(&self, changed: &str, to: &str) -> usize {
        let has_cluster = changed != STORE;
        let value = |key: &str| {
            let of_key = self.values.iter().find(|(name, _)| *name == key);
            if key == changed { to } else { &of_key.unwrap().1 }
        };
        let (entries, cluster) = if has_cluster {
            ("static".to_owned(), CLUSTER)
        } else {
            (format!("static:\n    store: {}", value(STORE)), "")
        };
        let text = format!(
            "http.listen: 127.0.0.1:0\nhttp.certificate: {}\nhttp.key: {}\nhttp.tokens: {}\n\
             discovery_key_file: {}\nservices: topology\nswitches: {{core: a1}}\napps:\n- quarantine:\n    file: {}\n\
             - {entries}\n- learning\n{cluster}",
            value("http.certificate"),
            value("http.key"),
            value("http.tokens"),
            value("discovery_key_file"),
            value("apps.quarantine.file"),
        );
        let of_cluster = ["tls.certificate", "tls.key", "tls.ca", "etcd.certificate", "etcd.key"];
        let of_cluster = of_cluster.iter().chain(&["etcd.ca", "etcd.password_file"]);
        let of_cluster = of_cluster.filter(|_| has_cluster);
        let of_cluster = of_cluster.map(|name| {
            let key = format!("cluster.{name}");
            format!("{key}: {}\n", value(&key))
        });
        let text: String = [text].into_iter().chain(of_cluster).collect();
        self.place.write("bellrock.yaml", &text);
        1 + text.lines().position(|line| !to.is_empty() && line.ends_with(to)).unwrap_or(0)
    }
}

#[test]
fn a_file_that_the_start_cannot_use_is_found_before_with_its_place() {
    let files = Files::new("named-files");
    let path = files.place.file("bellrock.yaml");
    files.write("", "");
    assert_eq!(output(&mut bellrock(&["check", &path])).0, 0);
    let doctor = || {
        let mut command = bellrock(&["doctor", "--config", &path]);
        command.args(["--listen", "127.0.0.1:0", "--control", "none"]);
        command
    };
    let well = findings(&mut doctor(), "configuration");
    assert_eq!((well.len(), &*well[0].0), (1, "good"), "{well:?}");

    let (_, other_key) = certificate(&files.place, "other");
    let nonsense = files.place.write("nonsense", "nonsense\n");
    let missing = files.place.file("missing");
    let nowhere = files.place.file("nowhere/static.json");
    for (setting, value, part) in [
        ("http.certificate", &missing, "No such file or directory (os error 2); make it, or"),
        ("http.certificate", &nonsense, "it has no certificate in PEM"),
        ("http.key", &missing, "No such file"),
        ("http.key", &nonsense, "it has no private key in PEM"),
        ("http.tokens", &missing, "make it with bellrock token"),
        ("http.tokens", &nonsense, "nonsense:1: 1 words; a line is NAME SCOPE HASH"),
        ("discovery_key_file", &missing, "No such file"),
        ("apps.quarantine.file", &missing, "No such file"),
        (STORE, &nonsense, "mend it, or move it away"),
        ("cluster.tls.certificate", &missing, "No such file or directory (os error 2); make it"),
        ("cluster.tls.certificate", &nonsense, "it has no certificate in PEM"),
        ("cluster.tls.key", &nonsense, "it has no private key in PEM"),
        ("cluster.tls.ca", &missing, "No such file"),
        ("cluster.etcd.certificate", &missing, "No such file"),
        ("cluster.etcd.key", &nonsense, "it has no private key in PEM"),
        ("cluster.etcd.ca", &nonsense, "it has no certificate in PEM"),
        ("cluster.etcd.password_file", &missing, "No such file"),
        (STORE, &nowhere, "make the directory, or name another file"),
    ] {
        let line = files.write(setting, value);
        let expected = format!("{path}:{line}:");
        let (status, text, error) = output(&mut bellrock(&["check", &path]));
        assert_eq!((status, &*text), (2, ""), "{setting}: {value}");
        assert!(error.contains(&expected) && error.contains(part), "{part:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        let (verdict, found, _) = findings(&mut doctor(), "configuration").remove(0);
        assert!(
            verdict == "problem" && found.contains(&expected) && found.contains(part),
            "{found}"
        );
        assert_eq!(output(&mut doctor()).0, 1);
        // Nobody has a different opinion.
        let mut run = bellrock(&["run", "--config", &path, "--listen", "127.0.0.1:0"]);
        let (status, _, _) = output(run.args(["--control", &files.place.file("control.sock")]));
        assert!(status == 1 || status == 2, "it starts with {setting}: {value}");
    }
    // The certificate is right, and so is the key.
    files.write("http.key", &other_key);
    let (status, _, error) = output(&mut bellrock(&["check", &path]));
    let part = "the certificate cannot be used with its key";
    assert!(status == 2 && error.contains(":2:") && error.contains(part), "{error}");
}

#[test]
fn a_dry_run_refuses_what_the_reload_would_refuse() {
    let files = Files::new("dry-run");
    files.write("", "");
    let controller =
        Controller::start(&files.place, &["--config", &files.place.file("bellrock.yaml")]);
    let reload = |arguments: &[&str]| output(controller.command("reload").args(arguments));
    let well = reload(&["--dry-run"]);
    assert!(well.0 == 0 && well.1.starts_with("no setting"), "{well:?}");
    let nonsense = files.place.write("nonsense", "nonsense\n");
    for setting in ["http.certificate", "http.key", "http.tokens", "discovery_key_file"] {
        let line = files.write(setting, &nonsense);
        let (tried, done) = (reload(&["--dry-run"]), reload(&[]));
        assert_eq!(tried, done);
        assert!(tried.0 == 1 && tried.2.contains(&format!("bellrock.yaml:{line}:")), "{tried:?}");
    }
    files.write("", "");
    assert_eq!(reload(&[]).0, 0);
}

#[test]
fn a_reload_names_the_files_that_were_renewed() {
    let files = Files::new("renewed");
    files.write("", "");
    let controller =
        Controller::start(&files.place, &["--config", &files.place.file("bellrock.yaml")]);
    let reload = |arguments: &[&str]| output(controller.command("reload").args(arguments));
    let line = |setting: &str| {
        let (_, path) = files.values.iter().find(|(name, _)| *name == setting).unwrap();
        format!("{setting}: {path} is renewed\n")
    };
    let pair = line("http.certificate") + &line("http.key");
    // Others have the same names.
    certificate(&files.place, "http");
    let (status, text, _) = reload(&["--dry-run"]);
    assert_eq!(
        (status, text),
        (0, format!("{pair}changes: 0; renewed files: 2; nothing was changed\n"))
    );
    let (status, text, _) = reload(&[]);
    assert_eq!((status, text), (0, format!("{pair}no setting has changed; renewed files: 2\n")));
    assert_eq!(reload(&[]).1, "no setting has changed\n");
    let tokens = files.place.file("tokens");
    fs::write(&tokens, fs::read_to_string(&tokens).unwrap() + "# none is added\n").unwrap();
    let text = reload(&["--json"]).1;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["renewed"], json!([{"setting": "http.tokens", "path": tokens}]), "{text}");
    let log = controller.stop();
    assert!(log.contains(line("http.key").trim_end()), "{log}");
}

#[test]
fn doctor_tells_the_running_controller_from_others_by_its_socket() {
    let place = Place::new("doctor-running");
    let http = free_address().to_string();
    let controller = Controller::start(&place, &["--http", &http]);
    let own = controller.address.to_string();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let doctor = |listen: &[&str], control: &str| {
        let mut command = bellrock(&["doctor", "--http", &http, "--control", control]);
        for address in listen {
            command.args(["--listen", address]);
        }
        command
    };
    // Its own addresses are no problem, and a foreign one stays one.
    let ports = findings(&mut doctor(&[&own, &taken], &controller.control), "ports");
    let verdicts: Vec<_> = ports.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(verdicts, ["good", "problem", "good"], "{ports:?}");
    assert!(ports[1].1.contains("not by the running controller"), "{ports:?}");
    assert_eq!(output(&mut doctor(&[&own], &controller.control)).0, 0);
    // The variable does what the flag does.
    let mut by_variable = bellrock(&["doctor", "--listen", &own]);
    by_variable.env("BELLROCK_CONTROL", &controller.control);
    assert_eq!(findings(&mut by_variable, "ports")[0].0, "good");
    let answers = findings(&mut doctor(&[&own], &controller.control), "control socket");
    assert!(answers[0].0 == "good" && answers[0].1.contains("answers at"), "{answers:?}");
    // Without the socket nobody knows who has the addresses.
    let ports = findings(&mut doctor(&[&own], &place.file("none.sock")), "ports");
    assert!(ports.iter().all(|it| it.0 == "problem"), "{ports:?}");

    let foreign = findings(&mut doctor(&["192.0.2.1:6653"], &controller.control), "ports");
    assert_eq!(foreign[0].0, "problem");
    assert!(foreign[0].2.contains("give an address of this machine"), "{foreign:?}");
}

#[test]
fn doctor_names_files_that_others_can_read_or_write_and_a_place_without_a_directory() {
    let files = Files::new("doctor-files");
    files.write("", "");
    let path = files.place.file("bellrock.yaml");
    let control = files.place.file("nowhere/control.sock");
    let doctor = |control: &str| {
        let mut command = bellrock(&["doctor", "--config", &path, "--listen", "127.0.0.1:0"]);
        command.args(["--control", control]);
        command
    };
    let mode = |setting: &str, mode: u32| {
        let (_, path) = files.values.iter().find(|(name, _)| *name == setting).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("discovery_key_file", 0o640);
    let verdicts = || -> Vec<_> {
        let found = findings(&mut doctor("none"), "permissions");
        found.into_iter().map(|(verdict, _, advice)| (verdict, advice)).collect()
    };
    assert!(verdicts().iter().all(|it| it.0 == "good"), "{:?}", verdicts());
    assert_eq!(verdicts().len(), 6);
    mode("http.key", 0o644);
    mode("discovery_key_file", 0o640);
    mode("http.tokens", 0o664);
    let found = verdicts();
    let notes: Vec<_> = found.iter().filter(|it| it.0 == "note").map(|it| it.1.as_str()).collect();
    let [key, tokens] = notes[..] else { panic!("{found:?}") };
    assert!(key.starts_with("chmod 600 ") && key.ends_with("http.key"), "{found:?}");
    assert!(tokens.starts_with("chmod go-w ") && tokens.ends_with("tokens"), "{found:?}");
    // They are notes: the controller runs.
    assert_eq!(output(&mut doctor("none")).0, 0);

    let socket = findings(&mut doctor(&control), "control socket");
    assert!(socket[0].0 == "problem" && socket[0].1.contains("No such file"), "{socket:?}");
    // It always has an answer about the clock, whatever that is.
    assert_eq!(findings(&mut doctor("none"), "time of day").len(), 1);
}

/// Makes a package `bellrock` of these modules in a folder of its own. Returns the folder.
fn package(place: &Place, folder: &str, init: &str) -> String {
    let path = place.file(folder);
    fs::create_dir_all(format!("{path}/bellrock")).unwrap();
    fs::write(format!("{path}/bellrock/__init__.py"), init).unwrap();
    fs::write(format!("{path}/bellrock/_command.py"), "").unwrap();
    path
}

/// Finds an interpreter without any package `bellrock`: that of the machine, in an environment of
/// its own.
fn interpreter(place: &Place) -> String {
    let environment = place.file("environment");
    let mut make = Command::new("python3");
    let made = make.args(["-m", "venv", "--without-pip", &environment]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    format!("{environment}/bin/python3")
}

#[test]
fn doctor_asks_the_interpreter_of_apps_in_python_for_its_package() {
    let place = Place::new("doctor-python");
    let app = place.write("my_app.py", "raise SystemExit('doctor does not load it')");
    let python = interpreter(&place);
    let doctor = |chain: &str, python: &str, packages: &str| {
        let mut command = bellrock(&["doctor", "--app", chain, "--listen", "127.0.0.1:0"]);
        command.args(["--control", "none"]).env("BELLROCK_PYTHON", python);
        command.env("PYTHONPATH", packages);
        command
    };
    let own = env!("CARGO_PKG_VERSION");
    let right = package(&place, "right", &format!("print('loaded')\n__version__ = '{own}'"));
    let found = findings(&mut doctor(&app, &python, &right), "python");
    assert_eq!((found.len(), &*found[0].0), (1, "good"), "{found:?}");
    assert!(found[0].1.contains(&format!("has the package bellrock {own}")), "{found:?}");
    assert!(found[0].1.starts_with(&python), "{found:?}");
    // A chain without such apps needs no Python.
    assert!(findings(&mut doctor("learning", "/nowhere/python", ""), "python").is_empty());
    // The file of a configuration counts, and `python3` of PATH is the interpreter.
    let file = place.write("bellrock.yaml", &format!("apps: [{app}]\nlisten: 127.0.0.1:0\n"));
    let mut by_file = bellrock(&["doctor", "--config", &file, "--control", "none"]);
    by_file.env("PATH", place.file("environment/bin")).env_remove("BELLROCK_PYTHON");
    by_file.env("PYTHONPATH", &right);
    assert_eq!(findings(&mut by_file, "python")[0].0, "good");

    let nowhere = place.file("nowhere");
    let old = package(&place, "old", "");
    let other = package(&place, "other", "__version__ = '0.0.1'");
    let broken = package(&place, "broken", "import no_such_module");
    let ends = package(&place, "ends", "raise SystemExit('it ends')");
    let script = place.write(
        "old-python",
        "#!/bin/sh\necho '{\"executable\": \"/old\", \"python\": [3, 9, 2], \
         \"package\": null, \"error\": \"syntax\", \"is_missing\": false}'\n",
    );
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    // The wheel that is there, or the one to build.
    let install = format!("bellrock-{own}-");
    for (python, packages, part, advice) in [
        ("/nowhere/python", &right, "/nowhere/python: No such file", "install Python 3.10"),
        (&*python, &nowhere, "has no package bellrock", &*install),
        (&python, &other, "has the package bellrock 0.0.1, not", &install),
        (&python, &old, "bellrock of an unknown version, not", &install),
        (&python, &broken, "cannot load its package: No module named 'no_such_module'", &install),
        (&python, &ends, "exit status: 1: it ends", "set BELLROCK_PYTHON"),
        ("/bin/true", &right, "exit status: 0: it reports nothing", "set BELLROCK_PYTHON"),
        (&script, &right, "/old (Python 3.9.2) is too old", "set BELLROCK_PYTHON"),
    ] {
        let found = findings(&mut doctor(&app, python, packages), "python").remove(0);
        assert!(found.0 == "problem" && found.1.contains(part), "{part}: {found:?}");
        assert!(found.2.contains(advice), "{advice}: {found:?}");
        assert_eq!(output(&mut doctor(&app, python, packages)).0, 1);
    }
}
