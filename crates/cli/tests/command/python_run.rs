//! A chain with apps in Python: the command leaves the run to an interpreter.
//!
//! The interpreters here are shell scripts. What the package does is tested in
//! python/tests/test_command.py, and both together in tests/system/test_python.py.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::running::{Place, bellrock, output};

/// Makes a program `python3` of this text in a folder of its own, and returns the folder.
fn interpreter(place: &Place, text: &str) -> String {
    let folder = place.file("bin");
    fs::create_dir(&folder).unwrap();
    let program = format!("{folder}/python3");
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn the_interpreter_takes_the_place_of_the_command_and_gets_its_sources() {
    let place = Place::new("python-run");
    // Its own process id, its options, and what it is to run with.
    let folder = interpreter(&place, "#!/bin/sh\necho $$ \"$1\"\nprintf %s \"$3\"\nexit 7\n");
    let (app, file) = (place.file("my_app.py"), place.file("bellrock.yaml"));
    fs::write(&app, "").unwrap();
    fs::write(&file, format!("apps: [{app}]\n")).unwrap();
    let arguments =
        ["run", "--config", &file, "--watch-config", "--reload", "--listen", "127.0.0.1:1,[::1]:2"];
    let mut command = bellrock(&arguments);
    command.env("PATH", &folder).env("BELLROCK_WORKERS", "2").env("BELLROCK_LOG_LEVL", "x");
    command.stdout(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let id = child.id();
    let (status, text, _) = crate::running::told(child.wait_with_output().unwrap());
    assert_eq!(status, 7);
    let (first, run) = text.split_once('\n').unwrap();
    assert_eq!(first, format!("{id} -c"), "the same process");
    let run: Value = serde_json::from_str(run).unwrap();
    let overrides = json!([
        {"key": "listen", "origin": "--listen", "values": ["127.0.0.1:1", "[::1]:2"]},
        {"key": "workers", "origin": "BELLROCK_WORKERS", "values": ["2"]},
    ]);
    let expected = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "options": {
            "sources": {"file": file, "overrides": overrides, "apps": []},
            "watch_config": true,
            "reload_apps": true,
        },
        "warnings": ["BELLROCK_LOG_LEVL is no setting; did you mean BELLROCK_LOG_LEVEL?"],
    });
    assert_eq!(run, expected);
}

#[test]
fn an_interpreter_that_is_missing_is_an_error_that_says_what_to_do() {
    let place = Place::new("python-missing");
    let app = place.file("my_app.py");
    fs::write(&app, "").unwrap();
    let mut command = bellrock(&["run", "--app", &app]);
    let (status, _, error) = output(command.env("PATH", place.file("nowhere")));
    assert_eq!(status, 1);
    let expected = format!(
        "bellrock: {app} needs python3, which is not in PATH; install Python 3.10 or later, or set BELLROCK_PYTHON\n"
    );
    assert_eq!(error, expected);
    let (status, _, error) = output(command.env("BELLROCK_PYTHON", "/nowhere/python"));
    assert_eq!(status, 1);
    assert_eq!(
        error,
        "bellrock: BELLROCK_PYTHON: /nowhere/python: No such file or directory (os error 2)\n"
    );
}

#[test]
fn a_file_that_is_missing_is_an_error_before_python_starts() {
    let place = Place::new("python-no-file");
    let app = place.file("my_app.py");
    let (status, _, error) = output(&mut bellrock(&["run", "--app", &app]));
    assert_eq!(status, 2);
    assert!(error.starts_with(&format!("bellrock: --app: {app}: No such file")), "{error}");
    let file = place.file("bellrock.yaml");
    fs::write(&file, format!("apps: [{app}]\n")).unwrap();
    let (status, _, error) = output(&mut bellrock(&["check", &file]));
    assert_eq!(status, 2);
    assert!(
        error.starts_with(&format!("bellrock: {file}:1:8: apps: {app}: No such file")),
        "{error}"
    );
    fs::write(&app, "").unwrap();
    let (status, text, _) = output(&mut bellrock(&["check", &file]));
    assert_eq!((status, text), (0, format!("{file}: all right\n")));
}

#[test]
fn programs_of_os_ken_get_all_arguments_as_they_are() {
    let place = Place::new("osken-run");
    let folder = interpreter(&place, "#!/bin/sh\nshift 2\nprintf '%s,' \"$@\"\nexit 7\n");
    let given = ["osken-manager", "--verbose", "my_app.py", "--ofp-tcp-listen-port", "6633", "-h"];
    let (status, text, _) = output(bellrock(&given).env("PATH", &folder));
    assert_eq!((status, &*text), (7, "--verbose,my_app.py,--ofp-tcp-listen-port,6633,-h,"));
    let mut help = bellrock(&["osken-manager", "--", "--help"]);
    assert_eq!(output(help.env("PATH", &folder)).1, "--help,");
    let mut missing = bellrock(&["osken-manager", "my_app.py"]);
    let (status, _, error) = output(missing.env("PATH", place.file("nowhere")));
    assert_eq!(status, 1);
    assert!(error.contains("osken-manager needs python3, which is not in PATH"), "{error}");
}
