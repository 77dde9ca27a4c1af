//! What operators do with a running controller: they reload it, follow its events, and read what
//! its counters mean.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use crate::fake_switch::FakeSwitch;
use crate::running::{Controller, PATIENCE, Place, bellrock, output, until};
use bellrock_engine::session::SwitchDescription;
use serde_json::Value;

/// The names of the switches that are configured and not connected.
fn missing(controller: &Controller) -> Vec<String> {
    let status = controller.ask("status");
    let rows = status["missing_switches"].as_array().unwrap().iter();
    rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_reload_applies_all_changes_or_none() {
    let place = Place::new("reload");
    let file = place.file("bellrock.yaml");
    let write = |text: &str| fs::write(&file, text).unwrap();
    write("switches: {core: a1}\nlog_level: info\n");
    let controller = Controller::start(&place, &["--config", &file]);
    let reload = |arguments: &[&str]| output(controller.command("reload").args(arguments));
    assert_eq!(missing(&controller), ["core"]);
    assert_eq!(reload(&[]).1, "no setting has changed\n");

    write("switches: {edge: a1, spare: a2}\nlog_level: debug\n");
    let (status, text, _) = reload(&["--dry-run"]);
    assert!(status == 0 && text.ends_with("changes: 4; nothing was changed\n"), "{text}");
    assert_eq!(missing(&controller), ["core"]);
    let (status, text, _) = reload(&[]);
    assert_eq!(status, 0);
    for line in [
        "switches.core: removed 00000000000000a1",
        "switches.edge: added 00000000000000a1",
        "log_level: info -> debug",
        "changes in force: 4",
    ] {
        assert!(text.lines().any(|one| one == line), "no {line} in {text}");
    }
    assert_eq!(missing(&controller), ["edge", "spare"]);

    // One thing is wrong, or cannot change now: then the other does not change either.
    for (text, part) in [
        ("switches: {core: a1}\nlog_level: loud\n", "bellrock.yaml:2:"),
        ("max_connections: 9\nswitches: {core: a1}\n", "max_connections: 20000 -> 9 (restart)"),
        ("switches: {core: a1}\napps: [hub]\n", "apps: [learning] -> [hub] (restart)"),
    ] {
        write(text);
        let (status, _, error) = reload(&[]);
        assert!(status == 1 && error.contains(part), "{error}");
        assert_eq!(missing(&controller), ["edge", "spare"]);
        // A script can tell a mistake from a change that only needs a restart.
        let needs_restart = part.ends_with("(restart)");
        assert_eq!(reload(&["--dry-run"]).0, if needs_restart { 3 } else { 1 });
        assert_eq!(reload(&["--dry-run", "--json"]).0, if needs_restart { 3 } else { 1 });
    }
    write("switches: {edge: a1, spare: a2}\nlog_level: debug\nhost_max_age: 60 s\n");
    let (_, text, _) = reload(&["--dry-run"]);
    assert_eq!(text.matches("warning:").count(), 1, "{text}");
    fs::remove_file(&file).unwrap();
    let (status, _, error) = reload(&[]);
    assert!(status == 1 && error.contains("bellrock.yaml"), "{error}");

    write("switches: {again: a1}\n");
    controller.signal("HUP");
    until("SIGHUP reloads", || missing(&controller) == ["again"]);
    let log = controller.stop();
    assert!(log.contains("configuration: switches.again: added"), "{log}");
}

#[test]
fn a_reload_says_that_another_store_does_not_have_what_is_kept() {
    let place = Place::new("store");
    let file = place.file("bellrock.yaml");
    fs::write(&file, "apps: [static, learning]\n").unwrap();
    let controller = Controller::start(&place, &["--config", &file]);
    fs::write(&file, "apps: [static: {store: s.json}, learning]\n").unwrap();
    let part = "apps.static.store: what is kept now does not move to the new store";
    let (status, _, error) = output(&mut controller.command("reload"));
    assert!(status == 1 && error.contains(part), "{error}");
    let (status, text, _) = output(controller.command("reload").arg("--dry-run"));
    assert!(status == 3 && text.contains(part), "{text}");
}

#[test]
fn a_file_that_changes_is_read_again_if_asked_for() {
    let place = Place::new("watch");
    let file = place.file("bellrock.yaml");
    fs::write(&file, "switches: {core: a1}\n").unwrap();
    let controller = Controller::start(&place, &["--config", &file, "--watch-config"]);
    fs::write(&file, "switches: {edge: a1}\n").unwrap();
    until("the change is seen", || missing(&controller) == ["edge"]);
    // As editors do it.
    let next = place.file("next.yaml");
    fs::write(&next, "switches: {last: a1}\n").unwrap();
    fs::rename(&next, &file).unwrap();
    until("the new file is seen", || missing(&controller) == ["last"]);
    let without_file = output(&mut bellrock(&["run", "--watch-config"]));
    assert_eq!(without_file.0, 2, "{without_file:?}");
}

#[test]
fn a_controller_without_a_file_has_nothing_to_reload() {
    let place = Place::new("no-file");
    let controller = Controller::start(&place, &[]);
    let (status, _, error) = output(&mut controller.command("reload"));
    assert!(status == 1 && error.contains("start it with --config FILE"), "{error}");
}

#[test]
fn events_are_followed_until_the_controller_ends() {
    let place = Place::new("follow");
    let controller = Controller::start(&place, &[]);
    let mut command = controller.command("events");
    command.args(["--follow", "--json"]);
    let mut following =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let (send, lines) = mpsc::channel();
    let stdout = BufReader::new(following.stdout.take().unwrap());
    let reader = thread::spawn(move || {
        stdout.lines().for_each(|line| drop(send.send(line.unwrap())));
    });
    for dpid in [0xa1, 0xa2] {
        let mut switch =
            FakeSwitch::connect(&controller.address.to_string(), SwitchDescription::new(dpid));
        let is_up = |rows: &Value| {
            rows.as_array().unwrap().iter().any(|row| row["dpid"] == format!("{dpid:016x}"))
        };
        switch.serve_until(PATIENCE, || is_up(&controller.ask("switches")));
        // Events of other kinds may be between them.
        let row = loop {
            let line = lines.recv_timeout(PATIENCE).unwrap();
            let row: Value = serde_json::from_str(&line).unwrap();
            if row["event"] == "switch_up" {
                break row;
            }
        };
        assert!(row["text"].as_str().unwrap().contains(&format!("{dpid:016x}")), "{row}");
    }
    controller.stop();
    // It reports that the controller is gone.
    reader.join().unwrap();
    assert_eq!(following.wait().unwrap().code(), Some(1));
}

#[test]
fn every_counter_has_a_meaning() {
    for (app, services) in [("learning", 0), ("routing", 2)] {
        let place = Place::new(&format!("meanings-{app}"));
        let controller = Controller::start(&place, &["--app", app]);
        let address = controller.address.to_string();
        let mut switch = FakeSwitch::connect(&address, SwitchDescription::new(0xa1));
        switch.serve_until(PATIENCE, || controller.ask("switches") != serde_json::json!([]));
        let meanings = || {
            let mut command = controller.command("counters");
            command.arg("--meanings");
            command
        };
        let (status, text, _) = output(meanings().arg("--json"));
        assert_eq!(status, 0);
        let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
        let is_known = |part: &str, app: Option<&str>, name: &str| {
            let is_it = |row: &&Value| row["part"] == part && row["name"] == name;
            rows.iter().filter(is_it).any(|row| row["app"].as_str() == app)
        };
        let counters = controller.ask("counters");
        let workers = counters["workers"][0].as_object().unwrap();
        assert!(workers.keys().all(|name| is_known("workers", None, name)), "{rows:?}");
        let apps = counters["apps"].as_object().unwrap();
        assert_eq!(apps.len(), 1 + services, "{apps:?}");
        for (app, counters) in apps {
            for name in counters.as_object().unwrap().keys() {
                assert!(is_known("apps", Some(app), name), "{app} {name}");
            }
        }
        let (_, text, _) = output(&mut meanings());
        assert!(text.contains("\ntasks ") && text.contains(&format!("\n{app} ")), "{text}");
    }
}

#[test]
fn orders_are_in_the_log_at_any_level() {
    let place = Place::new("audit");
    let controller =
        Controller::start(&place, &["--app", "quarantine,learning", "--log-level", "error"]);
    let order = |words: &[&str]| {
        let command = [&["quarantine"], words, &["--control", &controller.control]].concat();
        output(&mut bellrock(&command)).0
    };
    assert_eq!((order(&["add", "10.0.0.66"]), order(&["remove", "10.0.0.67"])), (0, 1));
    assert_eq!(order(&["list"]), 0);
    let log = controller.stop();
    let lines: Vec<_> = log.lines().collect();
    let [added, removed] = lines[..] else { panic!("{log}") };
    assert!(added.ends_with(r#" ordered block {"host":"10.0.0.66"}: done"#), "{log}");
    assert!(removed.ends_with(r#" ordered unblock {"host":"10.0.0.67"}: not_found"#), "{log}");
    let user = format!(" user {} (process ", rustix::process::getuid().as_raw());
    assert!(lines.iter().all(|line| line.contains(&user)), "{log}");
}

#[test]
fn events_are_listed_by_kind_and_alarms_alone() {
    let place = Place::new("filters");
    let controller = Controller::start(&place, &[]);
    let address = controller.address.to_string();
    let mut switch = FakeSwitch::connect(&address, SwitchDescription::new(0xa1));
    switch.serve_until(PATIENCE, || !controller.ask("switches").as_array().unwrap().is_empty());
    drop(switch);
    let events = |arguments: &[&str]| -> Vec<String> {
        let asked = output(controller.command("events").arg("--json").args(arguments));
        let rows: Value = serde_json::from_str(&asked.1).unwrap();
        rows.as_array().unwrap().iter().map(|row| row["event"].as_str().unwrap().into()).collect()
    };
    until("the end of the connection is an event", || events(&[]).len() > 1);
    assert_eq!(events(&["--kind", "switch_up"]), ["switch_up"]);
    assert!(events(&["--alarms"]).len() < events(&[]).len());
    let (status, _, error) = output(controller.command("events").args(["--kind", "switch_upp"]));
    assert!(status == 1 && error.contains("switch_up, switch_down"), "{error}");
    let (status, _, error) = output(controller.command("hosts").args(["--switch", "core"]));
    assert!(status == 1 && error.contains("core"), "{error}");
    assert_eq!(output(controller.command("hosts").args(["--switch", "a1"])).0, 0);
}

#[test]
fn a_missing_switch_is_listed_and_a_duplicate_is_refused() {
    let place = Place::new("missing");
    let file = place.file("bellrock.yaml");
    fs::write(&file, "switches: {core: a1, spare: a2}\napps: [static, learning]\n").unwrap();
    let controller = Controller::start(&place, &["--config", &file]);
    let text = |words: &[&str]| output(controller.command(words[0]).args(&words[1..])).1;
    assert_eq!(text(&["links"]), "no link is known: no switch is connected\n");
    let address = controller.address.to_string();
    let mut switch = FakeSwitch::connect(&address, SwitchDescription::new(0xa1));
    switch.serve_until(PATIENCE, || missing(&controller) == ["spare"]);
    let missing_rows = |text: &str| {
        let (_, below) = text.split_once("\nNot connected:\n").unwrap();
        below.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let rows = missing_rows(&text(&["switches"]));
    assert_eq!(rows, ["spare  00000000000000a2  not seen since the controller started"]);
    assert!(text(&["links"]).contains("nothing looks for links"));

    // Another switch has the same datapath id. It is closed when the first one answers.
    let second = thread::spawn(move || {
        let mut second = FakeSwitch::connect(&address, SwitchDescription::new(0xa1));
        second.serve_until(PATIENCE, || false);
    });
    let refused = || controller.ask("status")["duplicates_refused"].as_u64().unwrap();
    switch.serve_until(PATIENCE, || refused() == 1);
    assert!(second.join().is_err(), "the second one is closed");
    let status = text(&["status"]);
    let part = "(1 accepted, 1 refused, 1 of them because their datapath id is connected already)";
    assert!(status.contains(part), "{status}");

    let add = ["static", "add", "web", "core", "--match", "ip_src=nobody", "--actions", "drop"];
    let mut add = bellrock(&[&add[..], &["--control", &controller.control]].concat());
    let mut asked = None;
    thread::scope(|scope| {
        let adding = scope.spawn(|| output(&mut add));
        switch.serve_until(PATIENCE, || adding.is_finished());
        asked = adding.join().ok();
    });
    let (status, _, error) = asked.unwrap();
    assert_eq!(status, 1, "{error}");
    assert!(
        error.starts_with("bellrock: --match: \"nobody\" is not a value of ipv4_src"),
        "{error}"
    );

    drop(switch);
    until("the switch is lost", || missing(&controller) == ["core", "spare"]);
    let rows = missing_rows(&text(&["switches"]));
    assert!(
        rows[0].starts_with("core   00000000000000a1  ") && rows[0].ends_with("s ago"),
        "{rows:?}"
    );
}

#[test]
fn a_flag_in_front_of_an_order_is_refused_with_the_place_where_it_belongs() {
    let order = ["cluster", "--control", "/nowhere.sock", "drain"];
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_bellrock")).args(order).output();
    let done = done.unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(error.contains("write --control <PATH> behind the command"), "{error}");
}
