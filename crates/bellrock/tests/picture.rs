//! The picture of the crates in the book is what cargo knows of them.
//! `BLESS=1 cargo test -p bellrock --test picture` draws it anew.

#![allow(clippy::expect_used, reason = "the helpers of a test fail it by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use layout::backends::svg::SVGWriter;
use layout::gv::{DotParser, GraphBuilder};
use serde_json::Value;

const PICTURE: &str = "../../docs/book/src/internals/crates.svg";

/// The crates that each crate uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Colours of the wings. Crates outside wings have the last one.
const COLOURS: [(&str, &str); 7] = [
    ("protocol", "#f7e8e8"),
    ("runtime", "#f7f2dc"),
    ("model", "#e5f2e2"),
    ("operate", "#e2eef7"),
    ("lab", "#efe6f5"),
    ("compat", "#e0f2f0"),
    ("", "#eeeeee"),
];

#[test]
fn the_picture_shows_the_crates_as_cargo_knows_them() {
    let (uses, wings) = read();
    let drawn = draw(&without_detours(&uses), &wings);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(PICTURE);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &drawn).expect("the picture is written");
    }
    let current = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        current == drawn,
        "the picture is not that of the crates any more; BLESS=1 cargo test -p bellrock --test picture draws it",
    );
}

#[test]
fn a_crate_that_is_used_through_another_one_has_no_arrow() {
    let uses = |crates: &[&str]| crates.iter().map(|name| (*name).to_owned()).collect();
    let all = Uses::from([
        ("leaf".to_owned(), BTreeSet::new()),
        ("middle".to_owned(), uses(&["leaf"])),
        ("top".to_owned(), uses(&["leaf", "middle"])),
    ]);
    let arrows = without_detours(&all);
    assert_eq!(arrows["top"], uses(&["middle"]));
    assert_eq!(arrows["middle"], uses(&["leaf"]));
}

/// Reads which of our crates each crate uses, tests apart, and the wing of each crate.
fn read() -> (Uses, BTreeMap<String, String>) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let uses = packages.iter().map(|package| {
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        // A dependency of our own has a path. Kind null is a normal dependency.
        let ours = dependencies.iter().filter(|it| !it["path"].is_null() && it["kind"].is_null());
        (folder(&package["name"]), ours.map(|it| folder(&it["name"])).collect())
    });
    let wings = packages.iter().map(|package| {
        let manifest = package["manifest_path"].as_str().expect("a path");
        let parts: Vec<&str> = manifest.rsplit('/').collect();
        // crates/WING/CRATE/Cargo.toml, or crates/CRATE/Cargo.toml.
        let wing = if parts[3] == "crates" { parts[2] } else { "" };
        (folder(&package["name"]), wing.to_owned())
    });
    (uses.collect(), wings.collect())
}

fn folder(name: &Value) -> String {
    name.as_str().expect("a name").trim_start_matches("bellrock-").to_owned()
}

/// Leaves out the arrows to crates that are also used through another crate.
fn without_detours(uses: &Uses) -> Uses {
    let reachable = |from: &str| {
        let (mut found, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(name) = next.pop() {
            for used in &uses[name] {
                if found.insert(used.clone()) {
                    next.push(used);
                }
            }
        }
        found
    };
    let direct = |used: &BTreeSet<String>| {
        let is_detour = |one: &&String| used.iter().any(|other| reachable(other).contains(*one));
        used.iter().filter(|one| !is_detour(one)).cloned().collect()
    };
    uses.iter().map(|(name, used)| (name.clone(), direct(used))).collect()
}

/// Draws the crates as SVG.
fn draw(arrows: &Uses, wings: &BTreeMap<String, String>) -> String {
    let mut dot = "digraph {\n".to_owned();
    for name in arrows.keys() {
        let wing = &wings[name];
        let colour = COLOURS.iter().find(|(of, _)| of == wing).map(|(_, colour)| colour);
        let colour = colour.expect("each wing has a colour");
        // Two lines of text: the crate, and its wing.
        let label = if wing.is_empty() { name.clone() } else { format!("{name}\\n({wing})") };
        let _ = writeln!(
            dot,
            "{name} [shape=box, style=filled, fillcolor=\"{colour}\", label=\"{label}\"];"
        );
    }
    for (name, used) in arrows {
        for used in used {
            let _ = writeln!(dot, "{name} -> {used};");
        }
    }
    dot.push_str("}\n");
    let graph = DotParser::new(&dot).process().expect("the graph is parsed");
    let mut builder = GraphBuilder::new();
    builder.visit_graph(&graph);
    let mut svg = SVGWriter::new();
    builder.get().do_it(false, false, false, &mut svg);
    // Black lines need it where pages are dark.
    let background = "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>";
    let mut text = svg.finalize().replacen("</style>", background, 1);
    text.push('\n');
    text
}
