//! Files with apps in Python, as apps of the chain.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::apps::PythonFile;

fn python(path: &str) -> AppChoice {
    AppChoice::Python(PythonFile::named(path).unwrap())
}

#[test]
fn a_name_that_ends_in_py_is_a_file_with_apps() {
    let config = read("apps: [quarantine, ./my_app.py, {dir/other.py: }, learning]");
    assert_eq!(config.apps[1..3], [python("./my_app.py"), python("dir/other.py")]);
    let paths: Vec<_> = config.python_files().map(PythonFile::path).collect();
    assert_eq!(paths, [Path::new("./my_app.py"), Path::new("dir/other.py")]);
    let mut config = read("apps: [{learning: {priority: 7}}]");
    config.choose_apps(&["/a/b.py".to_owned(), "learning".to_owned()]).unwrap();
    let names: Vec<_> = config.apps.iter().map(AppChoice::name).collect();
    assert_eq!(names, ["/a/b.py", "learning"]);
    for no_file in ["my_app", ".py", "a.pyc", "a/py", "learning"] {
        assert_eq!(PythonFile::named(no_file), None, "{no_file}");
    }
}

#[test]
fn a_file_stands_once_in_a_chain_and_has_no_settings() {
    let wrong = |text: &str| {
        let problems = Config::from_yaml(text).unwrap_err();
        problems.into_iter().map(|one| one.message).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(wrong("apps: [./a.py, ./a.py]"), "the app \"./a.py\" is in the list already");
    let settings = wrong("apps: [./a.py: {colour: red}]");
    assert_eq!(settings, "\"colour\" is no setting of the app \"./a.py\"; it has none");
    let twice = Config::default().choose_apps(&["a.py".to_owned(), "a.py".to_owned()]);
    assert_eq!(twice.unwrap_err(), "the app \"a.py\" is named twice");
}

/// Their names, needs and places in the chain are known when Python has read them.
#[test]
fn a_python_file_in_the_chain_is_no_contradiction() {
    let said = |text: &str| {
        let all = read(text).contradictions();
        all.into_iter().map(|one| one.text).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(said("{apps: [./a.py], allow: {Firewall: own}, max_hosts: 7}"), "");
    assert_eq!(said("apps: [hub, ./a.py]"), "");
    assert!(said("{apps: [hub], max_hosts: 7}").contains("`max_hosts` has no effect"));
    let unknown = said("{apps: [hub], allow: {Firewall: own}}");
    assert!(
        unknown.starts_with("there is no app \"Firewall\"; give one of learning, "),
        "{unknown}"
    );
    let absent = said("{apps: [hub], allow: {learning: own}}");
    assert!(
        absent.contains("`allow` has the app \"learning\", which is not in `apps`"),
        "{absent}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_at_its_place() {
    let place = test_directory("python-file");
    let (file, app) = (place.join("bellrock.yaml"), place.join("my_app.py"));
    let (file_name, app_name) = (file.display(), app.display());
    fs::write(&file, format!("write: coalesce\napps:\n  - {app_name}\n")).unwrap();
    let errors = |sources: Sources| sources.check().unwrap().errors;
    let missing = "No such file or directory (os error 2); make it, or correct its path";
    assert_eq!(
        errors(Sources::file(&file)),
        [format!("{file_name}:3:5: apps: {app_name}: {missing}")]
    );
    // A flag has no place in the file, also for a file that is in both.
    let flag = |apps: &[&PathBuf]| Sources {
        apps: apps.iter().map(|path| path.display().to_string()).collect(),
        ..Sources::file(&file)
    };
    assert_eq!(errors(flag(&[&app])), [format!("--app: {app_name}: {missing}")]);
    fs::write(&app, "").unwrap();
    assert_eq!(errors(Sources::file(&file)), [""; 0]);
    let folder = place.join("folder.py");
    fs::create_dir(&folder).unwrap();
    let is_folder = errors(flag(&[&app, &folder])).join("; ");
    assert!(
        is_folder.ends_with("folder.py: Is a directory (os error 21); name a file in it"),
        "{is_folder}"
    );
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn another_file_needs_a_restart() {
    let difference = Difference::between(&read("apps: [./a.py]"), &read("apps: [./b.py, hub]"));
    assert_eq!(difference.to_string(), "apps: [./a.py] -> [./b.py, hub] (restart)\n");
}
