//! `bellrock new`: whole projects, or nothing. `scripts/new-project` runs the tests of the
//! projects.

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

/// The sources of this test.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What Cargo understands of a project: its package.
fn package(manifest: &str) -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--no-deps", "--format-version", "1"]);
    let done = cargo.args(["--manifest-path", manifest]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let metadata: Value = serde_json::from_slice(&done.stdout).unwrap();
    metadata["packages"][0].clone()
}

#[test]
fn a_project_in_rust_is_one_for_cargo_and_finds_the_library() {
    let place = Place::new("new-rust");
    let folder = place.file("");
    fs::create_dir(place.file("my-app")).unwrap();
    // As an author has them: beside each other.
    std::os::unix::fs::symlink(SOURCES, place.file("bellrock")).unwrap();
    for (arguments, project) in [
        (["new", "my-app", "--rust", "--sources", SOURCES], "my-app"),
        (["new", "apps/new/my-app", "--rust", "--sources", "bellrock"], "apps/new/my-app"),
        // A word of the templates.
        (["new", "LIBRARY", "--rust", "--sources", SOURCES], "LIBRARY"),
    ] {
        let (status, text, error) = run(&folder, &arguments);
        assert_eq!((status, &*error), (0, ""), "an empty folder may be there");
        let said = format!("{project}: a project in Rust; `cargo run` runs it");
        assert!(text.starts_with(&said), "{text}");
        let package = package(&place.file(&format!("{project}/Cargo.toml")));
        assert_eq!(package["name"], project.rsplit('/').next().unwrap());
        let dependencies = package["dependencies"].as_array().unwrap();
        assert_eq!(dependencies.len(), 2, "for the program and for its tests");
        for dependency in dependencies {
            let path = Path::new(dependency["path"].as_str().unwrap());
            let is_library = path.ends_with("crates/bellrock") && path.join("Cargo.toml").is_file();
            assert!(is_library, "{path:?}");
        }
        let versions = fs::read_to_string(place.file(&format!("{project}/Cargo.lock"))).unwrap();
        let tested = fs::read_to_string(format!("{SOURCES}/Cargo.lock")).unwrap();
        assert!(versions == tested, "the versions are those of Bellrock's tests");
    }
    let manifest = fs::read_to_string(place.file("apps/new/my-app/Cargo.toml")).unwrap();
    assert!(manifest.contains("path = \"../../../bellrock/crates/bellrock\""), "{manifest}");
}

#[test]
fn a_project_in_rust_can_name_a_repository() {
    let place = Place::new("new-git");
    let url = "https://git.example.com/bellrock.git";
    let (status, _, error) = run(&place.file(""), &["new", "my-app", "--rust", "--git", url]);
    assert_eq!((status, &*error), (0, ""));
    let package = package(&place.file("my-app/Cargo.toml"));
    for dependency in package["dependencies"].as_array().unwrap() {
        assert_eq!(dependency["source"], format!("git+{url}"));
    }
    let manifest = fs::read_to_string(place.file("my-app/Cargo.toml")).unwrap();
    assert!(!manifest.contains(env!("CARGO_MANIFEST_DIR")), "{manifest}");
    assert!(
        manifest.contains("# Bellrock is not on crates.io. This is a repository"),
        "{manifest}"
    );
}

#[test]
fn a_project_can_be_made_in_another_folder() {
    let place = Place::new("new-elsewhere");
    let (status, text, error) = run(&place.file(""), &["new", "apps/mine/my_app/"]);
    assert_eq!((status, &*error), (0, ""));
    assert!(text.starts_with("apps/mine/my_app/: a project in Python"), "{text}");
    assert_eq!(entries(&place.file("apps/mine")), ["my_app"]);
    assert!(Path::new(&place.file("apps/mine/my_app/my_app.py")).is_file());
}

#[test]
fn a_project_with_an_error_leaves_no_files() {
    let place = Place::new("new-wrong");
    let folder = place.file("");
    for (arguments, status, why) in [
        (&["new", "my-app"][..], 2, "\"my-app\" is no name of a project; give up to 64 letters"),
        (&["new", "sub/my-app"], 2, "\"my-app\" is no name of a project; give up to 64 letters"),
        (&["new", ".."], 2, "\"..\" is no name of a project"),
        (&["new", "app", "--rust", "--git", "a b"], 2, "--git: \"a b\" is no repository; give its"),
        (&["new", "app", "--git", "https://x"], 2, "--rust"),
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
    let (status, _, error) = run(&folder, &["new", "file/app"]);
    assert_eq!((status, &*error), (1, "bellrock: file/app: Not a directory (os error 20)\n"));
    assert_eq!(fs::read_to_string(kept).unwrap() + &fs::read_to_string(file).unwrap(), "minemine");
    assert_eq!(entries(&folder), ["app", "file"]);
}
