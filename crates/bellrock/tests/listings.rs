//! Checks the numbers of lines on the manual's page of listings, and that no program has many.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::fs;
use std::path::Path;

/// Maximum number of lines of logic.
const MOST: usize = 40;

/// File of a program, and the anchor of its counted part. `None`: all of it.
const PROGRAMS: &[(&str, Option<&str>)] = &[
    ("examples/hub.rs", None),
    ("examples/learning_switch.rs", Some("app")),
    ("crates/bellrock/tests/reserve.rs", Some("reserve")),
    ("examples/quarantine.rs", Some("app")),
    ("examples/routing.rs", Some("app")),
    ("examples/circuit.rs", Some("app")),
];

/// Lines of logic: without comments, imports, and lines that only close blocks.
fn logic(text: &str) -> usize {
    let lines = text.lines().map(str::trim).filter(|line| {
        let closes = line.chars().all(|c| "{}()[];,".contains(c));
        !closes && !line.starts_with("//") && !line.starts_with("use ")
    });
    lines.count()
}

fn part<'t>(text: &'t str, anchor: Option<&str>) -> &'t str {
    let Some(anchor) = anchor else { return text };
    let rest = text.split(&format!("// ANCHOR: {anchor}\n")).nth(1).unwrap();
    rest.split(&format!("// ANCHOR_END: {anchor}\n")).next().unwrap()
}

#[test]
fn the_manual_counts_the_lines_of_the_programs_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/book/src/guide/listings.md")).unwrap();
    for (program, anchor) in PROGRAMS {
        let text = fs::read_to_string(root.join(program)).unwrap();
        let lines = logic(part(&text, *anchor));
        assert!((1..MOST).contains(&lines), "{program} has {lines} lines of logic");
        let cell = format!("(../../../../{program}) | {lines} |");
        assert!(page.contains(&cell), "{program} has {lines} lines, and the page says otherwise");
    }
}
