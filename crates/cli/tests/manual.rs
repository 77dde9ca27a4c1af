//! The manual is complete: every setting, every counter, every command. Its links lead to a target.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of a test fail it by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bellrock_config::apps::KNOWN;
use bellrock_config::{Config, Setting, settings};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn page(name: &str) -> String {
    let path = root().join("docs/book/src").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bellrock")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Keys and values of the default configuration: global ones, and those of the learning switch.
fn settings() -> [Vec<(String, String)>; 2] {
    let text = help(&["config"]);
    let keys = |indent: &str| -> Vec<(String, String)> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(indent));
        let keys = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
        let keys = keys.filter_map(|line| line.split_once(": "));
        keys.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let [global, learning] = [keys(""), keys("      ")];
    assert!(global.len() > 15 && learning.len() > 5, "the configuration was read");
    [global, learning]
}

#[test]
fn the_help_has_every_setting_as_flag_variable_and_default() {
    let [global, learning] = settings();
    let help = help(&["run", "--help"]);
    for (key, _) in &global {
        let flag = format!("--{} <", key.replace('_', "-"));
        let variable = format!("[env: BELLROCK_{}]", key.to_uppercase());
        assert!(help.contains(&flag), "no {flag} in the help");
        assert!(help.contains(&variable), "no {variable} in the help");
    }
    for part in ["--config <FILE>", "--app <NAME>", "  hub ", "  learning "] {
        assert!(help.contains(part), "no {part} in the help");
    }
    for (key, _) in &learning {
        assert!(help.contains(&format!("  {key}: ")), "no {key} of learning in the help");
    }
}

/// The text files of the project, and their paths from its root.
fn text_files(folder: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let shown = path.strip_prefix(root()).unwrap().to_path_buf();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_symlink() || name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            files.extend(text_files(&shown.to_string_lossy()));
        } else if let Ok(text) = fs::read_to_string(&path) {
            files.push((shown, text));
        }
    }
    files
}

/// Whether a line tells to install this package from an index.
fn installs_a_stranger(line: &str) -> bool {
    let Some((_, packages)) = line.split_once("pip install") else { return false };
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
    let mut words = packages.split([' ', '\'', '"', '`', '(', ')']);
    words.any(|word| word.strip_prefix("bellrock").is_some_and(is_end))
}

#[test]
fn nothing_tells_to_install_a_package_that_is_not_ours() {
    for line in
        ["pip install bellrock", "pip install 'bellrock[osken]'", "-m pip install x bellrock==1"]
    {
        assert!(installs_a_stranger(line), "{line}");
    }
    assert!(!installs_a_stranger("pip install target/wheels/release/bellrock-*.whl"));
    let own = Path::new("crates/cli/tests/manual.rs");
    let files = text_files("");
    assert!(files.len() > 500, "the project was read");
    for (path, text) in files.iter().filter(|(path, _)| path != own) {
        for (number, line) in text.lines().enumerate() {
            let at = format!("{}:{}: {line}", path.display(), number + 1);
            assert!(!installs_a_stranger(line), "no index has our package: {at}");
        }
    }
}

/// Whether what a row of the table "What is not there yet" names is missing.
fn is_missing(kind: &str, name: &str) -> bool {
    match kind {
        "app" => KNOWN.iter().all(|known| known.name != name),
        "setting" => settings::all().all(|setting| setting.key != name),
        "command" => !help(&["--help"]).contains(&format!("\n  {name} ")),
        "file" => !root().join(name).exists(),
        "version" => {
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("version-{name}.yaml"));
            fs::write(&file, format!("versions: [{name:?}]\n")).unwrap();
            let mut check = Command::new(env!("CARGO_BIN_EXE_bellrock"));
            !check.arg("check").arg(&file).output().unwrap().status.success()
        }
        _ => panic!("a row names an app, a setting, a command, a file or a version, not {kind:?}"),
    }
}

#[test]
fn features_that_the_manual_lists_as_missing_are_missing() {
    let page = page("guide/operate.md");
    let table = page.split("## What is not there yet").nth(1).expect("the section is there");
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let rows: Vec<_> = rows.map(|row| row.split('|').collect::<Vec<_>>()).collect();
    assert!(rows.len() > 3, "the table was read");
    for row in rows {
        let [_, what, missing, ..] = row[..] else { panic!("{row:?}") };
        for item in missing.split(", ") {
            let (kind, name) =
                item.trim().split_once(' ').unwrap_or_else(|| panic!("{what}: {item}"));
            let name = name.trim_matches('`');
            assert!(is_missing(kind, name), "the manual says that there is no {kind} {name}");
        }
    }
    // The check can fail.
    for (kind, name) in [
        ("app", "learning"),
        ("setting", "listen"),
        ("command", "cluster"),
        ("file", "Cargo.toml"),
        ("version", "1.3"),
    ] {
        assert!(!is_missing(kind, name), "{kind} {name}");
    }
}

#[test]
fn every_command_has_a_help_and_a_place_in_the_manual() {
    let general = help(&["--help"]);
    let page = page("reference/command-line.md");
    let commands = general.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = commands.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names.filter(|name| *name != "help").collect();
    assert!(names.contains(&"run") && names.contains(&"counters"), "{names:?}");
    for name in names {
        assert!(help(&[name, "--help"]).contains(&format!("Usage: bellrock {name}")));
        assert!(page.contains(&format!("## `bellrock {name}")), "{name} is not in the manual");
    }
}

/// The row of a setting in the manual, up to its meaning.
fn row<T>(setting: &Setting<T>, of: &T) -> String {
    format!("| `{}` | `{}` | {} |", setting.key, setting.yaml(of), setting.change.word())
}

#[test]
fn the_manual_has_every_setting_with_its_default_and_when_a_change_takes_effect() {
    let page = page("reference/configuration.md");
    let rows = settings::all().map(|setting| row(setting, &Config::default()));
    let of_apps = KNOWN
        .iter()
        .flat_map(|known| known.settings.iter().map(|setting| row(setting, &(known.choice)())));
    let rows: Vec<_> = rows.chain(of_apps).collect();
    assert!(rows.len() > 50, "{rows:?}");
    for row in rows {
        assert!(page.contains(&row), "the manual has no {row}");
    }
}

#[test]
fn the_manual_has_every_counter_with_its_meaning() {
    let page = page("reference/counters.md");
    let of_engine = bellrock_engine::COUNTERS.iter().chain(bellrock_engine::TASK_COUNTERS);
    let all =
        of_engine.chain(bellrock_engine::SWITCH_COUNTERS).chain(bellrock::http::HTTP_COUNTERS);
    for (name, meaning) in all {
        let row = format!("| `{name}` | {} |", meaning.trim());
        assert!(page.contains(&row), "the manual has no {row}");
    }
}

#[test]
fn links_lead_somewhere() {
    let root = root();
    let mut pages = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    let mut directories = vec![root.join("docs")];
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    let mut links = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = page.parent().unwrap().join(target);
            assert!(path.exists(), "{}: nothing at {target}", page.display());
            links += 1;
        }
    }
    assert!(links > 20, "the links were found");
}

/// Folders of all crates, below `crates/`.
fn crates() -> Vec<PathBuf> {
    let folders = |folder: &Path| {
        let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let all = folders(&root().join("crates")).into_iter();
    let all =
        all.flat_map(|one| if one.join("Cargo.toml").exists() { vec![one] } else { folders(&one) });
    all.collect()
}

/// Pages name files as `CRATE/src/...`.
#[test]
fn the_files_that_the_manual_names_exist() {
    let (crates, mut names) = (crates(), 0);
    for name in ["internals/crates.md", "internals/operators.md", "reference/limits.md"] {
        let text = page(name);
        let quoted = text.split('`').skip(1).step_by(2);
        for file in quoted.filter(|word| word.contains("/src/") && !word.contains(' ')) {
            let (of, rest) = file.split_once('/').unwrap();
            let is_there = |folder: &PathBuf| folder.ends_with(of) && folder.join(rest).exists();
            assert!(crates.iter().any(is_there), "{name}: there is no {file}");
            names += 1;
        }
    }
    assert!(names > 60, "the names were found: {names}");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = page("SUMMARY.md");
    let source = root().join("docs/book/src");
    let mut directories = vec![source.clone()];
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(&source).unwrap().display().to_string();
            if path.is_dir() {
                directories.push(path);
            } else if name.ends_with(".md") && name != "SUMMARY.md" {
                assert!(summary.contains(&format!("]({name})")), "{name} is not in SUMMARY.md");
            }
        }
    }
}

#[test]
fn the_readme_leads_to_every_crate() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for folder in crates() {
        let name = folder.strip_prefix(root()).unwrap().display().to_string();
        assert!(readme.contains(&format!("({name})")), "README.md does not lead to {name}");
    }
    assert!(readme.lines().count() <= 60, "README.md is one screen");
}
