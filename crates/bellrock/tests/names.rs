//! The names that authors of apps see: few at the root, all others in modules by subject, and links
//! to pages of the book that exist.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Maximum number of names at the root, modules included.
const MAX_ROOT_NAMES: usize = 90;

/// What only runtimes and services use, and bounds of the inside: no name of the library.
const INSIDE: &[&str] = &[
    "APP_MESSAGES_PER_PACKET_IN",
    "APP_MESSAGES_PER_SECOND",
    "APP_TASKS",
    "AppGuard",
    "Backoff",
    "CHANGES_PER_SECOND",
    "LATENCY_BOUNDS",
    "Latencies",
    "LatencyCounts",
    "LatencyHistogram",
    "MAX_ALLOWED",
    "OWN_FLOW_REPORTED_EVERY",
    "OwnFlow",
    "RateLimit",
    "RefusedFlows",
    "Repeats",
];

/// In `openflow` and in `packet`, which are exported whole.
const IN_WHOLE_MODULES: &[&str] = &["EncodeError", "VlanTag"];

fn source(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names that a file exports by `pub use`.
fn exported(text: &str) -> BTreeSet<&str> {
    let uses = text.split("pub use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let lists = uses.map(|(tree, _)| match tree.split_once('{') {
        Some((_, list)) => list.trim_end_matches('}'),
        None => tree.rsplit("::").next().unwrap_or(tree),
    });
    let names = lists.flat_map(|list| list.split(','));
    let names = names.map(|name| name.rsplit(" as ").next().unwrap_or(name).trim());
    names.filter(|name| !name.is_empty() && *name != "*").collect()
}

#[test]
fn the_root_has_what_most_apps_name_and_modules() {
    let (root, modules) = (source("src/lib.rs"), source("src/modules.rs"));
    let common = modules.split("pub mod app").next().unwrap();
    let (root, common) = (exported(&root), exported(common));
    let all: BTreeSet<_> = root.union(&common).collect();
    assert!(common.contains("Flow") && root.contains("raw"), "{all:?}");
    assert!(all.len() <= MAX_ROOT_NAMES, "{}: {all:?}", all.len());
}

#[test]
fn every_name_for_apps_is_in_a_module() {
    let (api, root) = (source("../model/api/src/lib.rs"), source("src/lib.rs"));
    let modules = source("src/modules.rs");
    let face: BTreeSet<_> = exported(&root).union(&exported(&modules)).copied().collect();
    let inside: BTreeSet<_> = INSIDE.iter().chain(IN_WHOLE_MODULES).copied().collect();
    let missing: BTreeSet<_> = exported(&api).difference(&face).copied().collect();
    assert_eq!(missing, inside, "export a new name in a module of src/modules.rs, or list it here");
}

#[test]
fn the_pages_that_the_documentation_links_to_exist() {
    let mut pages = 0;
    for file in ["src/lib.rs", "src/modules.rs"] {
        let text = source(file);
        let links = text.lines().filter_map(|line| {
            let line = line.trim();
            let page =
                line.strip_prefix("#[doc = book!(").or(line.strip_prefix("#![doc = concat!("))?;
            page.split('"').find(|part| part.contains(".md"))
        });
        for link in links {
            let page = link.split(".md").next().unwrap().rsplit("book/src/").next().unwrap();
            let text = source(&format!("../../docs/book/src/{page}.md"));
            if let Some((_, anchor)) = link.split_once('#') {
                let anchor = anchor.split(')').next().unwrap().replace('-', " ");
                let is_there =
                    |line: &str| line.starts_with('#') && line.to_lowercase().ends_with(&anchor);
                assert!(text.lines().any(is_there), "{page} has no heading {anchor:?}");
            }
            pages += 1;
        }
    }
    assert!(pages > 10, "{pages}");
}
