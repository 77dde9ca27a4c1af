//! `bellrock new`: whole projects, or nothing. `scripts/new-project` runs the tests of the projects.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::running::{Place, bellrock, output};

/// What lies in a folder, in order.
fn entries(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs the command in a folder.
fn run(folder: &str, arguments: &[&str]) -> (i32, String, String) {
    output(bellrock(arguments).current_dir(folder))
}

#[test]
fn a_project_in_python_has_an_app_a_test_and_a_readme() {
    let place = Place::new("new-python");
    let folder = place.file("");
    let (status, text, error) = run(&folder, &["new", "my_app"]);
    assert_eq!((status, &*error), (0, ""));
    assert!(text.starts_with("my_app: a project in Python; README.md has the commands"), "{text}");
    assert_eq!(entries(&folder), ["my_app"]);
    let project = place.file("my_app");
    let files = [".gitignore", "README.md", "my_app.py", "pyproject.toml", "test_my_app.py"];
    assert_eq!(entries(&project), files);
    let readme = fs::read_to_string(place.file("my_app/README.md")).unwrap();
    for command in ["`pytest`", "`bellrock run --app ./my_app.py`", "`bellrock emulate "] {
        assert!(readme.contains(command), "{command}: {readme}");
    }
    let test = fs::read_to_string(place.file("my_app/test_my_app.py")).unwrap();
    assert!(test.contains("from my_app import Learning"), "{test}");
    let (status, text, _) = run(&project, &["run", "--app", "./my_app.py", "--listen", "x"]);
    assert_eq!((status, &*text), (2, ""), "the file is there, and only the address is wrong");
}

#[test]
fn a_project_in_rust_is_one_for_cargo_and_finds_the_library() {
    let place = Place::new("new-rust");
    let folder = place.file("");
    fs::create_dir(place.file("my-app")).unwrap();
    let (status, text, error) = run(&folder, &["new", "my-app", "--rust"]);
    assert_eq!((status, &*error), (0, ""), "an empty folder may be there");
    assert!(text.starts_with("my-app: a project in Rust; `cargo run` runs it"), "{text}");
    let manifest = place.file("my-app/Cargo.toml");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--no-deps", "--format-version", "1"]);
    let done = cargo.args(["--manifest-path", &manifest]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let metadata: Value = serde_json::from_slice(&done.stdout).unwrap();
    let package = &metadata["packages"][0];
    assert_eq!(package["name"], "my-app");
    let dependencies = package["dependencies"].as_array().unwrap();
    assert_eq!(dependencies.len(), 2, "for the program and for its tests");
    for dependency in dependencies {
        let path = Path::new(dependency["path"].as_str().unwrap());
        assert!(path.ends_with("crates/bellrock") && path.join("Cargo.toml").is_file(), "{path:?}");
    }
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let place = Place::new("new-wrong");
    let folder = place.file("");
    for (arguments, status, why) in [
        (&["new", "my-app"][..], 2, "\"my-app\" is no name of a project; give up to 64 letters"),
        (&["new", "../app"], 2, "\"../app\" is no name of a project"),
        (&["new", "signal"], 2, "\"signal\" is a module that Python or the project uses"),
        (&["new", "std", "--rust"], 2, "\"std\" is a crate or a folder that Rust uses"),
        (&["new", "app", "--rust", "--sources", "/nowhere"], 2, "--sources: /nowhere has no"),
        (&["new", "app", "--rust", "--python"], 2, "takes --rust or --python, and not both"),
        (&["new", "app", "--sources", "/"], 2, "--rust"),
    ] {
        let (found, _, error) = run(&folder, arguments);
        assert_eq!(found, status, "{arguments:?}: {error}");
        assert!(error.starts_with("bellrock: ") && error.contains(why), "{arguments:?}: {error}");
        assert_eq!(entries(&folder), [""; 0], "{arguments:?}");
    }
    fs::create_dir(place.file("app")).unwrap();
    let kept = place.write("app/kept", "mine");
    let (status, _, error) = run(&folder, &["new", "app"]);
    assert_eq!((status, &*error), (1, "bellrock: app is there already, and not empty\n"));
    let file = place.write("file", "mine");
    let (status, _, error) = run(&folder, &["new", "file"]);
    assert_eq!((status, &*error), (1, "bellrock: file: Not a directory (os error 20)\n"));
    assert_eq!(fs::read_to_string(kept).unwrap() + &fs::read_to_string(file).unwrap(), "minemine");
    assert_eq!(entries(&folder), ["app", "file"]);
}
