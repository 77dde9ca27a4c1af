//! Compares the code in the manual with the examples, each of which a page shows or names. The
//! pages contain the code, so that they can be read anywhere. `BLESS=1 cargo test -p bellrock
//! --test pages` writes the code into the pages.
//!
//! A comment above a block names its example: `<!-- code: examples/hub.rs -->`, or `<!-- code:
//! examples/routing.rs:app -->` for the part between `// ANCHOR: app` and `// ANCHOR_END: app`.
//! Examples in Python are shown whole: `<!-- code: python/examples/hub.py -->`.
//!
//! Also compares the lists of OpenFlow's versions in texts with those that are spoken.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::fs;
use std::path::{Path, PathBuf};

use bellrock::Version;

const MARK: &str = "<!-- code: ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All pages of the manual, and the README.
fn pages() -> Vec<PathBuf> {
    let mut pages = files("docs/book/src", &["md"]);
    pages.push(root().join("README.md"));
    pages
}

/// The files of a folder with these extensions, without tests.
fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                let name = path.file_name().unwrap().to_string_lossy();
                folders.extend((!name.contains("tests")).then_some(path));
            } else if path
                .extension()
                .is_some_and(|it| extensions.contains(&&*it.to_string_lossy()))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The lists of two and more versions in a text, such as "OpenFlow 1.0 and 1.3".
fn lists_of_versions(text: &str) -> Vec<Vec<&str>> {
    let starts = ["OpenFlow ", "speak ", "speaks ", "Literal["];
    let rests = starts.iter().flat_map(|start| text.split(start).skip(1));
    let lists = rests.map(|rest| {
        let mut versions = Vec::new();
        for word in rest.split_whitespace() {
            // What is in brackets is about something else.
            if word.starts_with('(') {
                break;
            }
            let number = word.trim_matches(|letter: char| !letter.is_ascii_digit());
            match number.get(..3) {
                Some(version) if version.starts_with("1.") => versions.push(version),
                // A line of a comment may end within a list.
                _ if ["and", "or", "///", "//!", "//", "#"].contains(&word) => {}
                _ => break,
            }
            if word.ends_with(['.', ';', ')', ']']) {
                break;
            }
        }
        versions
    });
    lists.filter(|versions| versions.len() > 1).collect()
}

/// The code that a comment names: a file without its anchors, or an unindented part.
fn code(named: &str) -> String {
    let (file, part) = named.split_once(':').unwrap_or((named, ""));
    let text =
        fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let text = match part {
        "" => text,
        part => {
            let end = format!("ANCHOR_END: {part}\n");
            let rest = text.split_once(&format!("// ANCHOR: {part}\n"));
            let inside = rest.and_then(|(_, rest)| rest.split_once(&end));
            inside.unwrap_or_else(|| panic!("{file} has no part {part:?}")).0.to_owned()
        }
    };
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().starts_with("// ANCHOR")).collect();
    // Removes the rest of the line with the end anchor too.
    let lines = match lines.split_last() {
        Some((last, rest)) if last.trim() == "//" => rest,
        _ => &lines[..],
    };
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let least = lines.iter().filter(|line| !line.is_empty()).map(indent).min().unwrap_or(0);
    let lines = lines.iter().map(|line| line.get(least..).unwrap_or("").to_owned() + "\n");
    lines.collect::<String>().trim_matches('\n').to_owned()
}

/// The page with the current code, and the number of its comments.
fn fresh(page: &str) -> (String, usize) {
    let (mut fresh, mut count) = (String::new(), 0);
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        fresh += line;
        fresh.push('\n');
        let Some(named) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        count += 1;
        let fence = if named.contains(".py") { "```python" } else { "```rust" };
        assert_eq!(lines.next(), Some(fence), "a block of this language is right under {line}");
        let old = lines.by_ref().take_while(|line| *line != "```").count();
        assert!(old < 1000, "the block under {line} ends");
        fresh += &format!("{fence}\n{}\n```\n", code(named));
    }
    (fresh, count)
}

#[test]
fn the_code_in_the_pages_is_that_of_the_examples() {
    let (bless, mut count) = (std::env::var_os("BLESS").is_some(), 0);
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let (fresh, named) = fresh(&text);
        count += named;
        if bless && fresh != text {
            fs::write(&page, fresh).unwrap();
            continue;
        }
        assert!(
            fresh == text,
            "{} has code that is not the example's any more; BLESS=1 cargo test -p bellrock --test pages writes it",
            page.display()
        );
        assert!(
            !text.contains("{{#include"),
            "{}: shows nothing as plain Markdown",
            page.display()
        );
    }
    assert!(count > 15, "{count} blocks are compared");
}

#[test]
fn lists_of_versions_are_all_that_are_spoken_or_none() {
    let spoken = Version::ALL.map(Version::name);
    let sources =
        ["crates", "examples", "python"].map(|folder| files(folder, &["rs", "py", "pyi"]));
    let mut count = 0;
    for path in pages().into_iter().chain(sources.into_iter().flatten()) {
        let text = fs::read_to_string(&path).unwrap();
        for listed in lists_of_versions(&text) {
            let is_none = listed.iter().all(|version| !spoken.contains(version));
            assert!(is_none || listed == spoken, "{}: {listed:?}; {spoken:?} are", path.display());
            count += 1;
        }
    }
    assert!(count > 15, "{count} lists are compared");
}

#[test]
fn every_example_is_in_the_manual() {
    let manual: String = pages().iter().map(|page| fs::read_to_string(page).unwrap()).collect();
    let mut count = 0;
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(manual.contains(&format!("/examples/{name})")), "no page links to {name}");
        count += 1;
    }
    assert!(count > 10, "the examples were found");
}
