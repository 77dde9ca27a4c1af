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

/// Pages name files as `CRATE/src/...`.
#[test]
fn the_files_that_the_manual_names_exist() {
    let mut names = 0;
    for name in ["internals/crates.md", "internals/operators.md", "reference/limits.md"] {
        let text = page(name);
        let quoted = text.split('`').skip(1).step_by(2);
        for file in quoted.filter(|word| word.contains("/src/") && !word.contains(' ')) {
            assert!(root().join("crates").join(file).exists(), "{name}: there is no {file}");
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
    for folder in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap()) {
        if !folder.path().join("Cargo.toml").exists() {
            continue;
        }
        let name = folder.file_name().into_string().unwrap();
        assert!(readme.contains(&format!("(crates/{name})")), "README.md does not lead to {name}");
    }
    assert!(readme.lines().count() <= 60, "README.md is one screen");
}
