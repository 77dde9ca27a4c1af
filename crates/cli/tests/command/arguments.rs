//! The command as a process, with its standard streams and its exit status.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::fake_switch::FakeSwitch;
use bellrock_engine::session::SwitchDescription;
use serde_json::Value;

/// Time limit of every wait of a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command, without our settings in its environment.
fn bellrock(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellrock"));
    let ours =
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BELLROCK_"));
    for (name, _) in ours {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

fn output(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().expect("it exits by itself"), text(stdout), text(stderr))
}

/// A directory for a test, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bellrock-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running controller on a free port, which ends with the test.
struct Controller {
    process: Child,
    control: String,
}

impl Controller {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        Controller::start_by(place, bellrock(&["run"]), arguments)
    }

    /// Starts `bellrock run` through another command, which becomes that process.
    fn start_by(place: &Place, mut command: Command, arguments: &[&str]) -> Self {
        let control = place.file("control.sock");
        command.args(["--listen", "127.0.0.1:0", "--control", &control]).args(arguments);
        command.stderr(Stdio::piped()).stdout(Stdio::piped());
        let mut controller = Controller { process: command.spawn().unwrap(), control };
        let began = Instant::now();
        while !Path::new(&controller.control).exists() {
            assert!(began.elapsed() < PATIENCE, "no control socket");
            if let Some(status) = controller.process.try_wait().unwrap() {
                panic!("ended at once: {status}: {}", controller.log());
            }
            thread::sleep(Duration::from_millis(10));
        }
        controller
    }

    fn ask(&self, question: &str) -> Value {
        let arguments = [question, "--json", "--control", &self.control];
        let (status, text, error) = output(&mut bellrock(&arguments));
        assert_eq!((status, error.as_str()), (0, ""), "{question}");
        serde_json::from_str(&text).unwrap()
    }

    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    fn exit_status(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its log. Only after its end.
    fn log(&mut self) -> String {
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn it_runs_answers_and_stops_on_either_signal() {
    for signal in ["TERM", "INT", "HUP"] {
        let place = Place::new(&format!("run-{signal}"));
        let mut controller = Controller::start_by(
            &place,
            // The tests may have been started with this signal ignored.
            with_signals("--default-signal"),
            &["--workers", "2", "--pin", "none"],
        );
        let status = controller.ask("status");
        assert_eq!(status["workers"], 2);
        assert_eq!(status["apps"], serde_json::json!(["learning"]));
        assert_eq!(status["pid"], controller.process.id());
        let address = status["listen"][0].as_str().unwrap().to_owned();
        let connection = TcpStream::connect(&address).unwrap();
        controller.signal(signal);
        assert_eq!(controller.exit_status(), Some(0), "SIG{signal}");
        drop(connection);
        assert!(!Path::new(&controller.control).exists(), "the control socket goes");
        let log = controller.log();
        assert!(log.contains(&format!("listening on {address}")), "{log}");
        let port = address.rsplit(':').next().unwrap();
        assert!(
            log.contains(&format!("ovs-vsctl set-controller br0 tcp:127.0.0.1:{port}")),
            "{log}"
        );
        assert!(!log.contains("ERROR") && !log.contains("panicked"), "{log}");
    }
}

#[test]
fn signals_ignored_by_nohup_stay_without_effect() {
    let place = Place::new("nohup");
    let mut controller = Controller::start_by(&place, with_signals("--ignore-signal"), &[]);
    controller.signal("HUP");
    controller.signal("TERM");
    assert_eq!(controller.exit_status(), Some(0), "SIGHUP was no first signal");
    assert!(controller.log().contains("SIGTERM: writing what waits"));
}

/// `bellrock run`, with SIGHUP as `env` sets it.
fn with_signals(option: &str) -> Command {
    let bellrock = bellrock(&["run"]);
    let mut command = Command::new("env");
    command.arg(format!("{option}=HUP")).arg(bellrock.get_program()).args(bellrock.get_args());
    for (name, value) in bellrock.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[test]
fn every_question_has_a_table_and_exact_data() {
    let place = Place::new("questions");
    let controller = Controller::start(&place, &["--workers", "1"]);
    assert_eq!(controller.ask("switches"), serde_json::json!([]));
    assert_eq!(controller.ask("hosts"), serde_json::json!([]));
    assert_eq!(controller.ask("tasks")[0]["name"], "log of events");
    assert_eq!(controller.ask("counters")["workers"][0]["packet_ins"], 0);
    assert_eq!(controller.ask("counters")["tasks"]["tasks_panicked"], 0);
    for (question, part) in [
        ("status", "switches      0"),
        ("switches", "no switch is connected"),
        ("hosts", "no host has been seen"),
        ("tasks", "log of events "),
        ("counters", "packet_ins "),
    ] {
        let arguments = [question, "--control", &controller.control];
        let (status, text, _) = output(&mut bellrock(&arguments));
        assert!(status == 0 && text.contains(part), "{question}: {text}");
    }
}

#[test]
fn a_switch_and_its_hosts_are_told_and_cannot_command_the_terminal() {
    let place = Place::new("switch");
    let mut controller = Controller::start(&place, &["--workers", "1"]);
    let address = controller.ask("status")["listen"][0].as_str().unwrap().to_owned();
    let description = SwitchDescription {
        software: "2.17\x1b[2J\u{202e}".into(),
        datapath: "the one in the cellar".into(),
        ..SwitchDescription::new(0xa1)
    };
    let mut switch = FakeSwitch::connect(&address, description);
    switch.serve_until(PATIENCE, || controller.ask("switches") != serde_json::json!([]));
    // A broadcast from a host behind port 7, in VLAN 5.
    let mut packet = b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x81\0\0\x05\x88\xb5".to_vec();
    packet.resize(64, 0);
    switch.packet_in(7, &packet);
    switch.serve_until(PATIENCE, || controller.ask("hosts") != serde_json::json!([]));

    let rows = controller.ask("switches");
    assert_eq!(rows[0]["dpid"], "00000000000000a1");
    assert_eq!(rows[0]["version"], "1.3");
    assert_eq!(rows[0]["description"], "the one in the cellar");
    let hosts = controller.ask("hosts");
    assert_eq!(hosts[0]["mac"], "02:00:00:00:00:01");
    assert_eq!((&hosts[0]["vlan"], &hosts[0]["port"]), (&5.into(), &"7".into()));
    assert_eq!(controller.ask("counters")["workers"][0]["packet_ins"], 1);
    assert_eq!(controller.ask("counters")["apps"]["learning"]["floods"], 1);
    for (question, part) in [
        ("switches", "the one in the cellar"),
        ("hosts", "02:00:00:00:00:01  5     00000000000000a1  7 "),
        ("counters", "LEARNING "),
    ] {
        for json in [&[][..], &["--json"]] {
            let mut command = bellrock(&[question, "--control", &controller.control]);
            let (status, text, _) = output(command.args(json));
            assert!(status == 0 && (text.contains(part) || !json.is_empty()), "{text}");
            let plain = text.chars().all(|char| char == '\n' || (' '..='~').contains(&char));
            assert!(plain, "{question} {json:?}: {text:?}");
        }
    }
    controller.signal("TERM");
    assert_eq!(controller.exit_status(), Some(0));
}

#[test]
fn the_log_is_json_when_asked_for() {
    let place = Place::new("json-log");
    let mut controller = Controller::start(&place, &["--log-format", "json"]);
    controller.signal("TERM");
    assert_eq!(controller.exit_status(), Some(0));
    let log = controller.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |line: &Value| {
        line["message"].as_str().is_some_and(|text| text.starts_with("listening on"))
    };
    assert!(lines.iter().any(said), "{log}");
}

#[test]
fn a_second_controller_is_told_of_the_first() {
    let place = Place::new("second");
    let first = Controller::start(&place, &[]);
    let address = first.ask("status")["listen"][0].as_str().unwrap().to_owned();
    let same_socket = ["run", "--listen", "127.0.0.1:0", "--control", &first.control];
    let (status, _, error) = output(&mut bellrock(&same_socket));
    assert_eq!(status, 1);
    assert!(error.contains("bellrock: a controller runs already"), "{error}");
    let (status, _, error) =
        output(&mut bellrock(&["run", "--listen", &address, "--control", "none"]));
    assert_eq!(status, 1);
    assert!(error.contains(&format!("cannot listen on {address}")), "{error}");
    assert!(error.contains("another controller may be running there"), "{error}");
    assert!(error.contains("; choose another port, such as --listen 127.0.0.1:"), "{error}");
    assert_eq!(first.ask("status")["pid"], first.process.id(), "the first goes on");
}

#[test]
fn a_flag_beats_the_environment_and_that_beats_the_file() {
    let place = Place::new("layers");
    let file = place.file("bellrock.yaml");
    fs::write(&file, "workers: 1\nlisten: 127.0.0.1:1\napps: [hub]\npin: none\nlog_level: error\n")
        .unwrap();
    let control = place.file("control.sock");
    let mut command = bellrock(&["run", "--listen", "127.0.0.1:0"]);
    command.env("BELLROCK_CONFIG", &file).env("BELLROCK_LISTEN", "127.0.0.1:2");
    command
        .env("BELLROCK_WORKERS", "2")
        .env("BELLROCK_CONTROL", &control)
        .env("BELLROCK_WRITE", "");
    let process = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut controller = Controller { process, control };
    let began = Instant::now();
    while !Path::new(&controller.control).exists() {
        assert!(began.elapsed() < PATIENCE, "the control socket is where the environment says");
        thread::sleep(Duration::from_millis(10));
    }
    let status = controller.ask("status");
    assert_eq!(status["apps"], serde_json::json!(["hub"]), "the file");
    assert_eq!(status["workers"], 2, "the environment");
    let port = status["listen"][0].as_str().unwrap().rsplit(':').next().unwrap();
    assert!(!["1", "2"].contains(&port), "the flag, so a free port");
    controller.signal("TERM");
    assert_eq!(controller.exit_status(), Some(0));
    assert_eq!(controller.log(), "", "log_level: error");
}

#[test]
fn a_misspelled_variable_is_named() {
    let place = Place::new("misspelled");
    let control = place.file("control.sock");
    let mut command = bellrock(&["run", "--listen", "127.0.0.1:0", "--control", &control]);
    command.env("BELLROCK_LOG_LEVL", "debug").env("BELLROCK_OF_A_STRANGER", "1");
    let process = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut controller = Controller { process, control };
    let began = Instant::now();
    while !Path::new(&controller.control).exists() {
        assert!(began.elapsed() < PATIENCE, "it starts");
        thread::sleep(Duration::from_millis(10));
    }
    controller.signal("TERM");
    assert_eq!(controller.exit_status(), Some(0));
    let log = controller.log();
    let warning = "BELLROCK_LOG_LEVL is no setting; did you mean BELLROCK_LOG_LEVEL?";
    assert!(log.contains(warning), "{log}");
    assert!(!log.contains("STRANGER"), "{log}");
}

#[test]
fn wrong_settings_are_errors_with_their_source() {
    let place = Place::new("wrong");
    let file = place.file("bad.yaml");
    fs::write(&file, "write: coalesce\nworkes: 3\n").unwrap();
    for command in [&["check", &file][..], &["run", "--config", &file]] {
        let (status, text, error) = output(&mut bellrock(command));
        assert_eq!((status, text.as_str()), (2, ""));
        let expected =
            format!("bellrock: {file}:2:1: \"workes\" is no setting; did you mean `workers`?\n");
        assert_eq!(error, expected);
    }
    let mut command = bellrock(&["run", "--write", "x", "--app", "nono"]);
    let (status, _, error) = output(command.env("BELLROCK_WORKERS", "0"));
    assert_eq!(status, 2);
    let expected = "bellrock: BELLROCK_WORKERS cannot be \"0\"; give auto, or a whole number from 1 to 1024\n\
         bellrock: --write cannot be \"x\"; give one of coalesce, immediate\n\
         bellrock: there is no app \"nono\"; give one of learning, ";
    assert!(error.starts_with(expected), "{error}");
    fs::write(&file, "pin: [0, 1]\nworkers: 3\n").unwrap();
    for command in [&["check", &file][..], &["run", "--config", &file]] {
        let (status, _, error) = output(&mut bellrock(command));
        assert!(status == 2 && error.contains("`pin` names 2 cores for 3 workers"), "{error}");
    }
}

#[test]
fn a_wrong_command_line_is_an_error_of_ours_in_two_lines_at_most() {
    for words in [
        &[][..],
        &["rnu"],
        &["run", "--wrkers", "1"],
        &["run", "--workers"],
        &["run", "stray"],
        &["check"],
        &["check", "a", "b"],
        &["reserve", "a:1", "a:2"],
        &["quarantine"],
        &["decode", "--port", "x"],
        &["bench", "--mode", "fast"],
        &["bench", "--pid", "1", "--controller", "x"],
        &["emulate", "--wait", "soon"],
        &["help", "nothing"],
    ] {
        let (status, text, error) = output(&mut bellrock(words));
        assert_eq!((status, text.as_str()), (2, ""), "{words:?}: {error}");
        let lines: Vec<_> = error.lines().collect();
        assert!((1..=2).contains(&lines.len()), "{words:?}: {error}");
        assert!(lines.iter().all(|line| line.starts_with("bellrock: ")), "{words:?}: {error}");
        assert!(!error.contains("error:"), "{words:?}: {error}");
    }
    for words in [&["--help"][..], &["help"], &["run", "-h"], &["--version"]] {
        let (status, text, error) = output(&mut bellrock(words));
        assert!(status == 0 && !text.is_empty() && error.is_empty(), "{words:?}: {error}");
    }
}

#[test]
fn an_unusual_chain_is_a_warning() {
    let place = Place::new("warnings");
    let file = place.file("bellrock.yaml");
    fs::write(&file, "apps: [quarantine]\nhost_max_age: 60s\n").unwrap();
    let (status, text, error) = output(&mut bellrock(&["check", &file]));
    assert_eq!((status, text), (0, format!("{file}: it can be used; warnings: 2\n")));
    let lines: Vec<_> = error.lines().collect();
    let starts = [
        format!("bellrock: {file}:1:1: warning: no app forwards packets, "),
        format!("bellrock: {file}:2:1: warning: `host_max_age` has no effect, "),
    ];
    assert_eq!(lines.len(), 2, "{error}");
    assert!(lines.iter().zip(&starts).all(|(line, start)| line.starts_with(start)), "{error}");

    let mut controller = Controller::start(&place, &["--config", &file]);
    controller.signal("TERM");
    assert_eq!(controller.exit_status(), Some(0));
    let log = controller.log();
    assert!(log.contains("WARN") && log.contains("no app forwards packets, "), "{log}");
    // Flags that solve the problem.
    let cured = ["--config", &file, "--app", "learning", "--services", "hosts"];
    let mut controller = Controller::start(&place, &cured);
    controller.signal("TERM");
    assert_eq!(controller.exit_status(), Some(0));
    assert!(!controller.log().contains("WARN"));

    let (status, _, error) = output(&mut bellrock(&["run", "--app", "hub", "--app", "learning"]));
    assert_eq!(status, 2);
    let expected = "bellrock: the app \"learning\" stands behind \"hub\", which forwards all packets, so it would get \
                    none; leave one of the two out\n";
    assert_eq!(error, expected);
}

#[test]
fn the_first_lines_of_the_log_say_what_runs_where_and_what_to_do_next() {
    let place = Place::new("first-lines");
    let mut controller = Controller::start(&place, &["--app", "routing"]);
    let address = controller.ask("status")["listen"][0].as_str().unwrap().to_owned();
    controller.signal("TERM");
    assert_eq!(controller.exit_status(), Some(0));
    let log = controller.log();
    for part in [
        "runs the apps: routing (",
        &format!("listening on {address} for switches that speak OpenFlow "),
        "only switches on this machine can connect; for others: --listen 0.0.0.0:6653",
        &format!("bellrock emulate --controller {address}"),
        "to ask it: bellrock status, ",
    ] {
        assert!(log.contains(part), "no {part:?} in {log}");
    }
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let place = Place::new("all-wrong");
    let (file, key) = (place.file("bad.yaml"), place.file("no.key"));
    let said = |text: &str, expected: &[&str]| {
        fs::write(&file, text).unwrap();
        for command in [&["check", &file][..], &["run", "--config", &file]] {
            let (status, _, error) = output(&mut bellrock(command));
            let lines: Vec<_> = error.lines().collect();
            assert_eq!((status, lines.len()), (2, expected.len()), "{error}");
            for (line, expected) in lines.iter().zip(expected) {
                assert!(line.contains(expected), "{expected:?} is not in {line}");
            }
        }
    };
    let circuits = "apps:\n- provisioning:\n    circuits:\n";
    said(
        &format!("{circuits}    - red 2:1\n    - blue 1:1 4:2\n    - green 1:4095:1 3:x\n"),
        &[
            ":4:7: the circuit \"red\" needs 2 to 64 endpoints, but has 1",
            ":6:7: \"3:x\" is not an endpoint",
        ],
    );
    said(
        &format!("{circuits}    - blue 1:1 4:2\n    - green 3:1 1:1\n    - blue 5:1 5:2\n"),
        &[
            ":5:7: 0000000000000001:1 is an endpoint of \"blue\" and of \"green\"",
            ":6:7: two circuits have the name \"blue\"",
        ],
    );
    said(
        &format!(
            "apps: [learning, quarantine, bandwidth]\ndiscovery_key_file: {key}\npin: [0]\nworkers: 2\n"
        ),
        &[
            "\"quarantine\" stands behind",
            "\"bandwidth\" stands behind",
            "names 1 cores",
            "no.key: ",
        ],
    );
}

#[test]
fn check_and_config_agree() {
    let place = Place::new("check");
    let file = place.file("bellrock.yaml");
    let (status, text, _) = output(&mut bellrock(&["config"]));
    assert_eq!(status, 0);
    fs::write(&file, text).unwrap();
    let (status, text, error) = output(&mut bellrock(&["check", &file]));
    assert_eq!((status, text, error), (0, format!("{file}: all right\n"), String::new()));
}

#[test]
fn asking_nobody_says_what_to_do() {
    let place = Place::new("nobody");
    let control = place.file("control.sock");
    let (status, text, error) = output(&mut bellrock(&["status", "--control", &control]));
    assert_eq!((status, text.as_str()), (1, ""));
    let expected =
        format!("bellrock: no controller answers at {control}; start one with `bellrock run`");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut process =
        bellrock(&["config"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::with_capacity(1, process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let Output { status, stderr, .. } = process.wait_with_output().unwrap();
    assert!(status.success() && stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
}

#[test]
fn a_check_lists_what_changes_from_another_file() {
    let place = Place::new("difference");
    let write = |name: &str, text: &str| {
        fs::write(place.file(name), text).unwrap();
        place.file(name)
    };
    let old = write("old.yaml", "switches: {s1: 1}\nmax_hosts: 10\nmax_hosts_per_port: 5\n");
    let new = write("new.yaml", "switches: {s1: 1, s2: 2}\nmax_hosts: 20\nmax_hosts_per_port: 5\n");
    let (status, text, _) = output(&mut bellrock(&["check", &new, "--diff", &old]));
    let expected = format!(
        "changes from {old}: 2\nswitches.s2: added 0000000000000002 (live)\nmax_hosts: 10 -> 20 (restart)\n"
    );
    assert_eq!((status, text.ends_with(&expected)), (3, true), "{text}");
    let (status, text, _) = output(&mut bellrock(&["check", &new, "--diff", &new]));
    assert_eq!(status, 0);
    let live = write("live.yaml", "switches: {s2: 2}\nmax_hosts: 20\nmax_hosts_per_port: 5\n");
    assert_eq!(output(&mut bellrock(&["check", &live, "--diff", &new])).0, 0);
    assert!(text.ends_with(&format!("no setting changes from {new}\n")), "{text}");
    let wrong = write("wrong.yaml", "max_hosts: many\n");
    let (status, text, error) = output(&mut bellrock(&["check", &new, "--diff", &wrong]));
    assert_eq!((status, text.as_str()), (2, ""));
    assert!(error.contains("wrong.yaml:1:12: "), "{error}");
}
