//! The manual's page about published attacks and the tests agree: each named test is there, each
//! case of DELTA has a row, and each test of a case is in the row of that case.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/book/src/reference/attacks.md";
const SYSTEM: &str = "tests/system";

/// The cases of DELTA that concern a controller.
const DELTA: &[&str] = &[
    "2.1.010", "2.1.020", "2.1.030", "2.1.040", "2.1.050", "2.1.060", "2.1.070", "2.1.071",
    "2.1.072", "2.1.073", "2.1.080", "3.1.001", "3.1.002", "3.1.010", "3.1.020", "3.1.030",
    "3.1.040", "3.1.050", "3.1.060", "3.1.070", "3.1.080", "3.1.090", "3.1.100", "3.1.110",
    "3.1.120", "3.1.130", "3.1.140", "3.1.150", "3.1.160", "3.1.170", "3.1.180", "3.1.190",
    "3.1.200", "3.1.210", "3.1.220", "3.1.230", "3.1.240", "3.1.250",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A row of a table: its first cell, and the tests in its last one.
struct Row {
    case: String,
    tests: Vec<String>,
}

/// The rows of the tables whose last column is "Tests".
fn rows() -> Vec<Row> {
    let text = read(PAGE);
    let mut rows = Vec::new();
    let mut in_table = false;
    for line in text.lines() {
        if !line.starts_with("| ") {
            in_table &= line.starts_with("|-");
            continue;
        }
        let cells: Vec<_> = line.trim_matches(['|', ' ']).split(" | ").collect();
        let last = *cells.last().unwrap();
        if last == "Tests" {
            in_table = true;
        } else if in_table {
            let quoted = last.split('`').skip(1).step_by(2);
            rows.push(Row {
                case: cells[0].to_owned(),
                tests: quoted.map(str::to_owned).collect(),
            });
        }
    }
    rows
}

/// The folder of a crate: in `crates/`, or in one of its wings.
fn folder(krate: &str) -> PathBuf {
    let crates = root().join("crates");
    let wings = fs::read_dir(&crates).unwrap().map(|wing| wing.unwrap().path());
    let mut folders = [crates.clone()].into_iter().chain(wings).map(|wing| wing.join(krate));
    let found = folders.find(|folder| folder.join("Cargo.toml").exists());
    found.unwrap_or_else(|| panic!("no crate {krate}"))
}

/// The text of tests of a crate: of a program with its modules, or of a module.
fn program(krate: &str, name: &str) -> String {
    let tests = folder(krate).join("tests");
    let file = format!("{name}.rs");
    let folders = fs::read_dir(&tests).unwrap().map(|entry| entry.unwrap().path());
    let mut places = [tests.clone()].into_iter().chain(folders.filter(|path| path.is_dir()));
    if let Some(one) = places.find(|folder| folder.join(&file).exists()) {
        return fs::read_to_string(one.join(file)).unwrap();
    }
    let modules = fs::read_dir(tests.join(name)).unwrap_or_else(|_| panic!("no {krate}/{name}"));
    modules.map(|module| fs::read_to_string(module.unwrap().path()).unwrap()).collect()
}

/// Whether a test that the page names is there.
fn is_there(test: &str) -> bool {
    if let Some((file, "compile_fail")) = test.split_once("::") {
        let (krate, file) = file.split_once('/').unwrap_or_else(|| panic!("no crate in {test}"));
        let text = fs::read_to_string(folder(krate).join(file)).unwrap();
        return text.contains("```compile_fail");
    }
    if let Some((file, function)) = test.split_once("::") {
        let (krate, file) = file.split_once('/').unwrap_or_else(|| panic!("no crate in {test}"));
        return program(krate, file).contains(&format!("#[test]\nfn {function}("));
    }
    let [file, class, method] = test.split('.').collect::<Vec<_>>()[..] else {
        panic!("not a test: {test}")
    };
    let text = read(&format!("{SYSTEM}/{file}.py"));
    let Some((_, class)) = text.split_once(&format!("\nclass {class}(")) else { return false };
    let class = class.split("\nclass ").next().unwrap();
    class.contains(&format!("    def {method}(self"))
}

/// The tests of a file of system tests whose description begins with cases: (test, cases).
fn described(file: &str) -> Vec<(String, Vec<String>)> {
    let text = read(&format!("{SYSTEM}/{file}.py"));
    let (mut class, mut method, mut found) = ("", "", Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("class ") {
            class = rest.split('(').next().unwrap();
        } else if let Some(rest) = line.strip_prefix("    def ") {
            method = rest.split('(').next().unwrap();
        } else if let Some(text) = line.strip_prefix("        \"\"\"")
            && text.starts_with(|c: char| c.is_ascii_digit())
        {
            let numbers = text.split([':', ' ', ',']);
            let cases = numbers.filter(|word| DELTA.contains(word)).map(str::to_owned).collect();
            found.push((format!("{file}.{class}.{method}"), cases));
        }
    }
    found
}

#[test]
fn every_case_of_delta_has_a_row_with_tests_that_exist() {
    let rows = rows();
    let cases: Vec<_> = rows.iter().map(|row| row.case.as_str()).collect();
    for case in DELTA {
        assert_eq!(cases.iter().filter(|row| row == &case).count(), 1, "rows of {case}");
    }
    for row in &rows {
        assert!(!row.tests.is_empty(), "{} has no test", row.case);
        for test in &row.tests {
            assert!(is_there(test), "{}: there is no test {test}", row.case);
        }
    }
}

#[test]
fn every_test_of_a_case_is_in_its_row() {
    let rows = rows();
    let files = ["test_delta", "test_delta_channel", "test_delta_flows"];
    let tests: Vec<_> = files.iter().flat_map(|file| described(file)).collect();
    assert!(tests.len() > 20, "the descriptions were read: {}", tests.len());
    for (test, cases) in tests {
        assert!(!cases.is_empty(), "{test} has an unknown number");
        for case in cases {
            let row = rows.iter().find(|row| row.case == case).unwrap();
            assert!(row.tests.contains(&test), "{PAGE}: the row of {case} lacks {test}");
        }
    }
}
