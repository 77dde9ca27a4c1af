//! House rules that the compiler does not check: the wing and the dependencies of each crate, where
//! `unsafe` may be, licences, the form of modules, the length of files, and names of tests.
//! docs/adr/0002 gives the reasons.
//!
//! The tests read the manifests, `cargo metadata` and `cargo tree` (both offline), and the sources.
//! A new crate needs a row here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of a test fail it by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Our crates that each crate may use (normal and build dependencies), directly or indirectly.
/// [`FACE`] may use all of them, those [`ABOVE_FACE`] the face too, and [`TOPS`] all others: no
/// crate uses those.
const MAY_USE: &[(&str, &[&str])] = &[
    ("openflow", &[]),
    ("pace", &[]),
    ("tables", &[]),
    ("tls", &[]),
    ("session", &["openflow", "pace"]),
    ("api", &["openflow", "pace"]),
    ("transactions", &[]),
    ("services", &["openflow", "api", "tables"]),
    ("book", &["openflow", "api"]),
    ("apps", &["openflow", "api", "tables", "services", "book", "query"]),
    ("detached", &["openflow", "api"]),
    ("fabric", &["openflow", "api", "services"]),
    ("worker", &["openflow", "session", "api", "tables"]),
    ("engine", &["openflow", "pace", "session", "api", "tables", "tls", "worker"]),
    ("emulator", &["openflow", "session", "api", "tables", "tls", "worker", "services", "book"]),
    ("bench", &["openflow", "session", "tls"]),
    ("studies", &["openflow", "session", "tls", "bench"]),
    ("sharing", &["openflow", "api", "tables", "transactions", "services", "book", "apps"]),
    ("osken", &["openflow", "api"]),
    ("ryu", &["openflow", "pace", "api", "query", "tls", "northbound"]),
    ("config", &["openflow", "session", "api", "tables", "worker", "services", "apps", "engine"]),
    ("query", &["openflow", "api"]),
    ("operator", &["openflow", "api", "tables", "services", "book", "apps", "engine", "query"]),
    ("control", &["openflow", "api", "query"]),
    ("northbound", &["openflow", "pace", "api", "query", "tls"]),
    ("cluster", &["openflow", "api", "pace", "tables", "services", "book", "tls"]),
];
/// The folder of `crates/` that each crate is in. All others are in `crates/` itself.
const WINGS: &[(&str, &[&str])] = &[
    ("protocol", &["openflow", "session"]),
    ("runtime", &["engine", "pace", "tables", "tls", "worker"]),
    ("model", &["api", "apps", "book", "detached", "fabric", "services", "transactions"]),
    ("operate", &["config", "control", "daemon", "northbound", "operator", "query"]),
    ("lab", &["bench", "emulator", "sharing", "studies", "tools"]),
    ("compat", &["osken", "ryu"]),
];

const FACE: &str = "bellrock";
/// What the command and the Python package run, and the tools that have a controller in them.
const ABOVE_FACE: &[&str] = &["daemon", "tools"];
const TOPS: &[&str] = &["cli", "python"];

const ASYNC: &[&str] = &["tokio", "async-std", "smol", "async-executor", "async-io"];
const SOCKETS: &[&str] = &["mio", "socket2", "polling"];
const LOGGERS: &[&str] = &["tracing", "log", "slog"];
const CLOCKS: &[&str] = &["chrono", "time", "quanta"];
const HTTP: &[&str] = &["hyper", "axum", "reqwest", "tiny_http", "http"];
const STORES: &[&str] = &["etcd-client", "tonic"];
const PYTHON: &[&str] = &["pyo3"];
const COMMAND: &[&str] =
    &["clap", "serde-saphyr", "serde_json", "pcap-parser", "tracing-subscriber"];
const COMMAND_LINE: &[&str] = &["clap", "serde-saphyr", "ratatui", "rustyline", "indicatif"];
const PLOTS: &[&str] = &["plotters"];

/// External crates that each crate may not use, directly or indirectly.
const NEVER: &[(&str, &[&[&str]])] = &[
    ("openflow", &[ASYNC, SOCKETS, LOGGERS, CLOCKS, HTTP, COMMAND]),
    ("session", &[ASYNC, SOCKETS, LOGGERS, CLOCKS, HTTP, COMMAND]),
    ("pace", &[ASYNC, SOCKETS, LOGGERS, CLOCKS, HTTP, COMMAND]),
    ("tables", &[ASYNC, SOCKETS, LOGGERS, CLOCKS, HTTP, COMMAND]),
    // rustls has a logger.
    ("tls", &[ASYNC, SOCKETS, HTTP, STORES, PYTHON, COMMAND]),
    ("api", &[ASYNC, SOCKETS, HTTP, STORES, PYTHON, COMMAND]),
    ("transactions", &[ASYNC, SOCKETS, LOGGERS, CLOCKS, HTTP, STORES, PYTHON, COMMAND]),
    ("services", &[ASYNC, SOCKETS, HTTP, STORES, PYTHON, COMMAND]),
    ("book", &[ASYNC, SOCKETS, HTTP, STORES, PYTHON, COMMAND_LINE]),
    // Its feature `orders` has the types of `query`, which are written as JSON.
    ("apps", &[ASYNC, SOCKETS, HTTP, STORES, PYTHON, COMMAND_LINE]),
    ("detached", &[ASYNC, SOCKETS, LOGGERS, HTTP, STORES, PYTHON, COMMAND]),
    ("fabric", &[ASYNC, SOCKETS, LOGGERS, CLOCKS, HTTP, STORES, PYTHON, COMMAND]),
    ("worker", &[&["tokio", "async-std", "smol"], SOCKETS, HTTP, STORES, PYTHON, COMMAND]),
    ("engine", &[ASYNC, HTTP, STORES, PYTHON, COMMAND]),
    ("emulator", &[&["tokio", "async-std", "smol"], HTTP, STORES, PYTHON, COMMAND]),
    ("bench", &[HTTP, STORES, PYTHON, PLOTS]),
    ("studies", &[HTTP, STORES, PYTHON]),
    ("sharing", &[ASYNC, SOCKETS, HTTP, STORES, PYTHON, COMMAND]),
    // It is Python's, by its purpose.
    ("osken", &[ASYNC, SOCKETS, LOGGERS, CLOCKS, HTTP, STORES, COMMAND]),
    ("tools", &[PYTHON, PLOTS]),
    ("config", &[ASYNC, HTTP, STORES, PYTHON, &["clap", "tracing-subscriber"], PLOTS]),
    ("operator", &[ASYNC, HTTP, STORES, PYTHON, COMMAND_LINE, PLOTS]),
    ("daemon", &[PYTHON, PLOTS, &["clap", "ratatui", "rustyline", "indicatif"]]),
    // Both write orders as JSON for the audit log.
    ("query", &[ASYNC, SOCKETS, LOGGERS, CLOCKS, HTTP, STORES, PYTHON, COMMAND_LINE]),
    ("control", &[ASYNC, CLOCKS, HTTP, STORES, PYTHON, COMMAND_LINE, PLOTS]),
    ("northbound", &[STORES, PYTHON]),
    ("ryu", &[STORES, PYTHON]),
    ("cluster", &[PYTHON]),
    ("cli", &[PYTHON]),
    // Its default features, which every author of an app compiles.
    ("bellrock", &[ASYNC, HTTP, STORES, PYTHON, COMMAND, PLOTS]),
];

/// Crates that run an async runtime, each in a thread of its own, never in a worker's.
const RUNTIME: &[&str] = &["northbound", "cluster"];
/// Crates with routes for the server of `northbound`.
const ROUTES: &[&str] = &["ryu"];

/// Words for I/O, threads, clocks and printing, forbidden in these crates.
const PURE: &[&str] = &[
    "openflow",
    "session",
    "pace",
    "tables",
    "api",
    "transactions",
    "services",
    "book",
    "apps",
    "detached",
    "fabric",
    "worker",
];
/// Parts of these crates that do I/O, each behind a feature.
const PARTS_WITH_IO: &[&str] = &["book/src/file"];
const IMPURE_WORDS: &[&str] = &[
    "std::thread",
    "Instant::now",
    "SystemTime",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "std::fs",
    "println!",
    "eprintln!",
    "dbg!",
];

/// Apps that take orders: the folder of each in the crate `apps`, and its words.
const ORDERED_APPS: [(&str, &[&str]); 3] = [
    ("quarantine", &["quarantine", "Quarantine", "BlockLists"]),
    ("bandwidth", &["reservations", "Reservations"]),
    ("provisioning", &["circuits", "Circuits"]),
];

/// Maximum number of source files outside its folder that name such an app.
const MAX_FILES_OF_AN_APP: usize = 8;

/// Folders of unit tests, which may use threads and print.
const TEST_FOLDERS: &[&str] = &["tests", "simulation"];

/// Beginnings of a test's name that put its subject into a clause.
const NO_SUBJECT: &[&str] = &["what_", "who_"];

/// Crates whose sources may contain `unsafe`.
const UNSAFE: &[&str] = &["engine", "tables", "python"];

/// Maximum length of a source file, in lines. From some 600 on it is usually two things.
const MAX_FILE_LINES: usize = 650;

/// Maximum number of characters of a line with a comment: the width that rustfmt keeps for code.
const MAX_COMMENT: usize = 100;

#[test]
fn every_crate_is_in_its_wing() {
    let house = House::read();
    let crates = house.root.join("crates");
    for name in house.crates.keys() {
        let wing = WINGS.iter().find(|(_, names)| names.contains(&name.as_str()));
        let wing = wing.map_or(crates.clone(), |(wing, _)| crates.join(wing));
        assert_eq!(house.folder(name), wing.join(name), "the folder of crate `{name}`");
    }
    let in_wings = WINGS.iter().flat_map(|(_, names)| *names);
    for name in in_wings {
        assert!(house.crates.contains_key(*name), "a wing has crate `{name}`, which is not there");
    }
}

#[test]
fn crates_use_only_what_lies_under_them() {
    let house = House::read();
    for (name, manifest) in &house.crates {
        let allowed = may_use(name, &house);
        for dependency in manifest.ours(&["normal", "build"]) {
            assert!(
                allowed.contains(&dependency),
                "crate `{name}` uses `{dependency}`; it may use only {allowed:?}",
            );
        }
        for dependency in manifest.ours(&["dev"]) {
            let above = [&[FACE], ABOVE_FACE, TOPS].concat();
            let is_above = above.contains(&&*dependency) && !TOPS.contains(&name.as_str());
            assert!(!is_above, "tests of `{name}` use `{dependency}`");
        }
    }
}

fn may_use(name: &str, house: &House) -> Vec<String> {
    let above = match name {
        FACE => [&[FACE], ABOVE_FACE].concat(),
        _ if ABOVE_FACE.contains(&name) => ABOVE_FACE.to_vec(),
        _ => Vec::new(),
    };
    if !above.is_empty() || TOPS.contains(&name) {
        let is_below = |other: &&String| !TOPS.contains(&&***other) && !above.contains(&&***other);
        return house.crates.keys().filter(is_below).cloned().collect();
    }
    let row = MAY_USE.iter().find(|(known, _)| *known == name);
    let (_, allowed) = row.unwrap_or_else(|| panic!("crate `{name}` has no row in MAY_USE"));
    allowed.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn crates_stay_free_of_what_is_not_their_business() {
    let house = House::read();
    for name in house.crates.keys().filter(|name| *name != "python") {
        let row = NEVER.iter().find(|(known, _)| known == name);
        let (_, never) = row.unwrap_or_else(|| panic!("crate `{name}` has no row in NEVER"));
        // Schemas of `query` are for faces that publish a document.
        let is_split = [FACE, "query"].contains(&name.as_str());
        let features = if is_split { "--no-default-features" } else { "--all-features" };
        let tree = packages(&package_name(name), &["-e", "normal,build", features]);
        assert!(
            tree.len() > 1 || ["pace", "tables"].contains(&name.as_str()),
            "the tree of `{name}` was read"
        );
        for forbidden in never.iter().copied().flatten() {
            assert!(!tree.contains_key(*forbidden), "crate `{name}` depends on `{forbidden}`");
        }
    }
    let bellrock = house.manifest(FACE);
    assert_eq!(bellrock["features"]["default"], serde_json::json!([]), "features are asked for");
    let with_socket = packages(FACE, &["-e", "normal,build", "--features", "control"]);
    assert!(with_socket.contains_key("bellrock-control"), "the tree with the socket was read");
    for forbidden in [ASYNC, HTTP, STORES, COMMAND_LINE, PLOTS].into_iter().flatten() {
        assert!(!with_socket.contains_key(*forbidden), "a control socket compiles `{forbidden}`");
    }
}

#[test]
fn an_async_runtime_belongs_to_the_crates_with_a_thread_for_it() {
    let house = House::read();
    for name in house.crates.keys().filter(|name| !RUNTIME.contains(&name.as_str())) {
        let manifest = house.manifest(name);
        let dependencies = manifest["dependencies"].as_array().into_iter().flatten();
        for dependency in dependencies.filter(|dependency| dependency["kind"].is_null()) {
            let used = dependency["name"].as_str().unwrap_or_default();
            assert!(
                !["tokio", "async-std", "smol"].contains(&used),
                "crate `{name}` uses `{used}`"
            );
            let is_http = HTTP.contains(&used) && !ROUTES.contains(&name.as_str());
            assert!(!is_http, "crate `{name}` uses `{used}`");
        }
    }
}

#[test]
fn pure_crates_do_no_io_and_read_no_clock() {
    let house = House::read();
    for name in PURE.iter().filter(|name| house.crates.contains_key(**name)) {
        let is_test =
            |path: &Path| path.iter().any(|part| TEST_FOLDERS.iter().any(|folder| part == *folder));
        let all = sources(&house.folder(name).join("src"));
        let has_io = |path: &Path| {
            PARTS_WITH_IO.iter().any(|part| path.display().to_string().contains(part))
        };
        for (path, text) in all.into_iter().filter(|(path, _)| !is_test(path) && !has_io(path)) {
            for (number, line) in code_lines(&text) {
                let word = IMPURE_WORDS.iter().find(|word| line.contains(**word));
                assert!(word.is_none(), "{}:{number}: {word:?} in `{name}`", path.display());
            }
        }
    }
}

#[test]
fn unsafe_is_where_it_may_be_and_says_why() {
    let house = House::read();
    for name in house.crates.keys() {
        for (path, text) in sources(&house.folder(name).join("src")) {
            let lines: Vec<&str> = text.lines().collect();
            for (number, _) in code_lines(&text).filter(|(_, line)| is_unsafe(line)) {
                let place = format!("{}:{number}", path.display());
                assert!(UNSAFE.contains(&name.as_str()), "{place}: `unsafe` in crate `{name}`");
                let above = &lines[number.saturating_sub(8)..number - 1];
                let reason = above.iter().any(|line| line.contains("// SAFETY:"));
                assert!(reason, "{place}: no `// SAFETY:` above this `unsafe`");
            }
        }
    }
}

/// Whether a line of code has the keyword `unsafe`. (`unsafe_code` is the name of the lint.)
fn is_unsafe(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
}

#[test]
fn every_crate_keeps_the_lints_of_the_workspace_and_its_licence() {
    let house = House::read();
    for name in house.crates.keys() {
        let manifest = fs::read_to_string(house.folder(name).join("Cargo.toml"));
        let manifest = manifest.expect("every crate has a manifest");
        assert!(manifest.contains("[lints]\nworkspace = true"), "crate `{name}`: workspace lints");
        let package = house.manifest(name);
        assert_eq!(package["license"], "Apache-2.0", "crate `{name}`");
        assert_eq!(package["publish"], serde_json::json!([]), "crate `{name}` is not published");
        let described = package["description"].as_str().is_some_and(|text| text.len() > 10);
        assert!(described, "crate `{name}` says what it is");
    }
}

#[test]
fn licences_of_others_are_on_the_list() {
    let house = House::read();
    let text = fs::read_to_string(house.root.join("deny.toml")).expect("deny.toml is there");
    let list = text.split("allow = [").nth(1).and_then(|rest| rest.split(']').next());
    let allowed: Vec<&str> =
        list.expect("deny.toml has a list").split('"').skip(1).step_by(2).collect();
    assert!(allowed.contains(&"Apache-2.0"), "the list was read: {allowed:?}");
    let mut seen = 0;
    for (package, licence) in
        packages("bellrock-cli", &["-e", "normal,build,dev", "--all-features"])
    {
        assert!(licence_allowed(&licence, &allowed), "{package}: {licence:?} is not in deny.toml");
        seen += 1;
    }
    assert!(seen > 20, "the tree was read");
}

/// Evaluates an SPDX expression. `A OR B` needs one allowed licence, `A AND B` needs both. `/` is
/// an old way to write OR. Parentheses group.
fn licence_allowed(expression: &str, allowed: &[&str]) -> bool {
    let expression = expression.trim();
    if let Some((left, right)) = split_outside(expression, &[" OR ", "/"]) {
        return licence_allowed(left, allowed) || licence_allowed(right, allowed);
    }
    if let Some((left, right)) = split_outside(expression, &[" AND "]) {
        return licence_allowed(left, allowed) && licence_allowed(right, allowed);
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => licence_allowed(inner, allowed),
        None => allowed.contains(&expression),
    }
}

/// Splits at the first separator that is not in parentheses.
fn split_outside<'t>(text: &'t str, separators: &[&str]) -> Option<(&'t str, &'t str)> {
    let mut depth = 0;
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        let found = separators.iter().find(|separator| text[at..].starts_with(**separator));
        if let Some(separator) = found.filter(|_| depth == 0) {
            return Some((&text[..at], &text[at + separator.len()..]));
        }
    }
    None
}

#[test]
fn licence_expressions_are_understood() {
    let allowed = ["MIT", "Unicode-3.0", "Apache-2.0"];
    for (expression, right) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT/GPL-3.0", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("(MIT OR Apache-2.0) AND GPL-3.0", false),
        ("", false),
    ] {
        assert_eq!(licence_allowed(expression, &allowed), right, "{expression}");
    }
}

#[test]
fn files_are_of_a_size_that_can_be_read() {
    let house = House::read();
    let mut files = sources(&house.root.join("crates"));
    files.extend(sources(&house.root.join("examples")));
    assert!(files.len() > 50, "the sources were found");
    for (path, text) in files {
        let path = path.display();
        let lines = text.lines().count();
        assert!(lines <= MAX_FILE_LINES, "{path} has {lines} lines: it is two files");
        for (number, line) in text.lines().enumerate() {
            assert!(line.trim_end() == line, "{path}:{}: space at the end", number + 1);
            assert!(!line.contains('\t'), "{path}:{}: a tab", number + 1);
        }
        assert!(text.starts_with("//!"), "{path} does not begin by saying what it is");
    }
}

/// docs/adr/0048 has the places. One more is a part of the house that knows one app by name, where
/// it should go through all of them.
#[test]
fn an_app_that_takes_orders_is_named_in_few_files() {
    let house = House::read();
    let apps = house.folder("apps").join("src");
    let is_test = |path: &Path| {
        let is_in_folder =
            path.iter().any(|part| TEST_FOLDERS.iter().chain(&["benches"]).any(|it| part == *it));
        is_in_folder || path.ends_with("tests.rs")
    };
    let mut files = sources(&house.root.join("crates"));
    files.retain(|(path, _)| !is_test(path));
    for (folder, words) in ORDERED_APPS {
        let own = apps.join(folder);
        let names_it = |text: &str| {
            let mut lines = code_lines(text);
            let is_word = |word: &str| words.contains(&word);
            lines.any(|(_, line)| {
                line.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_word)
            })
        };
        let named: Vec<_> = files.iter().filter(|(_, text)| names_it(text)).collect();
        let (inside, outside): (Vec<_>, Vec<_>) =
            named.into_iter().map(|(path, _)| path).partition(|path| path.starts_with(&own));
        assert!(!inside.is_empty() && outside.len() > 3, "the files of `{folder}` were found");
        assert!(
            outside.len() <= MAX_FILES_OF_AN_APP,
            "`{folder}` is named in {} files outside of its folder: {outside:#?}",
            outside.len()
        );
    }
}

#[test]
fn comments_keep_to_the_width_of_the_formatter() {
    let house = House::read();
    let mut files = sources(&house.root.join("crates"));
    files.extend(sources(&house.root.join("examples")));
    for (path, text) in files {
        let mut is_code = false;
        for (number, line) in text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let comment = comment.trim_start_matches(['/', '!']);
            is_code ^= comment.trim_start().starts_with("```");
            // Code, tables and pictures cannot be broken, nor can a single long word.
            let is_prose = !is_code && !comment.starts_with("  ") && !comment.starts_with(" |");
            let can_break = comment.trim().contains(' ');
            assert!(
                !is_prose || !can_break || line.chars().count() <= MAX_COMMENT,
                "{}:{}: a comment wider than {MAX_COMMENT} characters, which rustfmt leaves so",
                path.display(),
                number + 1
            );
        }
    }
}

/// A module with modules below it is `x/mod.rs`, so that it stands in the folder that it is about.
#[test]
fn a_module_with_modules_below_it_is_in_their_folder() {
    let house = House::read();
    let mut folders = 0;
    for (path, _) in sources(&house.root.join("crates")) {
        folders += usize::from(path.ends_with("mod.rs"));
        let folder = path.with_extension("");
        assert!(
            !folder.is_dir(),
            "{} stands beside its folder: move it to {}",
            path.display(),
            folder.join("mod.rs").display()
        );
    }
    assert!(folders > 50, "the modules were found");
}

#[test]
fn names_of_tests_begin_with_their_subject() {
    let crates = House::read().root.join("crates");
    let mut seen = 0;
    for (path, text) in sources(&crates) {
        let path = path.strip_prefix(&crates).expect("a source of a crate").with_extension("");
        let is_test = path.iter().any(|part| TEST_FOLDERS.iter().any(|folder| part == *folder));
        let product_lines = if is_test { 0 } else { code_lines(&text).count() };
        for (number, line) in text.lines().enumerate().skip(product_lines) {
            let Some(name) = function(line) else { continue };
            seen += 1;
            assert!(
                !NO_SUBJECT.iter().any(|start| name.starts_with(start)),
                "{}.rs:{}: `{name}`; the subject first: an_unusual_chain_is_a_warning",
                path.display(),
                number + 1
            );
        }
    }
    assert!(seen > 1000, "the tests were found");
    assert_eq!(function("    async fn what_is_no_name() {"), Some("what_is_no_name"));
    assert_eq!(function("    // A fn what_is_no_function()"), None);
}

/// The name of the function that a line declares.
fn function(line: &str) -> Option<&str> {
    let (before, name) = line.split_once("fn ")?;
    let is_keyword = |word: &str| word.starts_with("pub") || ["async", "const"].contains(&word);
    before.split_whitespace().all(is_keyword).then(|| name.split(['(', '<']).next())?
}

#[test]
fn a_whole_controller_has_less_than_15_lines() {
    let house = House::read();
    let hub = fs::read_to_string(house.root.join("examples/hub.rs")).expect("the example is there");
    assert!(hub.contains("fn main"), "it is a whole program");
    assert!(hub.lines().count() < 15, "{} lines", hub.lines().count());
}

/// The workspace, as cargo describes it.
struct House {
    root: PathBuf,
    /// Manifests by the name of the folder.
    crates: BTreeMap<String, Manifest>,
}

/// The manifest of a crate, in cargo's JSON.
struct Manifest(Value);

impl House {
    fn read() -> Self {
        let text = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
        let metadata: Value = serde_json::from_str(&text).expect("cargo metadata is JSON");
        let root = PathBuf::from(metadata["workspace_root"].as_str().expect("a root"));
        let packages = metadata["packages"].as_array().expect("packages");
        let crates: BTreeMap<_, _> = packages
            .iter()
            .map(|package| {
                let name = package["name"].as_str().expect("a name");
                (folder(name).to_owned(), Manifest(package.clone()))
            })
            .collect();
        assert!(crates.contains_key("bellrock") && crates.contains_key("openflow"));
        House { root, crates }
    }

    /// The folder that has the manifest of a crate.
    fn folder(&self, name: &str) -> PathBuf {
        let manifest = self.manifest(name)["manifest_path"].as_str().expect("a path");
        Path::new(manifest).parent().expect("a folder").to_owned()
    }

    fn manifest(&self, name: &str) -> &Value {
        &self.crates[name].0
    }
}

impl Manifest {
    /// Direct dependencies of these kinds on our crates, by folder.
    fn ours(&self, kinds: &[&str]) -> BTreeSet<String> {
        let dependencies = self.0["dependencies"].as_array().expect("dependencies");
        let wanted = |dependency: &&Value| {
            let kind = dependency["kind"].as_str().unwrap_or("normal");
            kinds.contains(&kind) && !dependency["path"].is_null()
        };
        let name =
            |dependency: &Value| folder(dependency["name"].as_str().expect("a name")).to_owned();
        dependencies.iter().filter(wanted).map(name).collect()
    }
}

/// The folder of a package.
fn folder(package: &str) -> &str {
    package.strip_prefix("bellrock-").unwrap_or(package)
}

fn package_name(folder: &str) -> String {
    if folder == "bellrock" { folder.to_owned() } else { format!("bellrock-{folder}") }
}

/// All packages that a package depends on, with their licences.
fn packages(package: &str, arguments: &[&str]) -> BTreeMap<String, String> {
    let mut all = vec!["tree", "-p", package, "--prefix", "none", "--format", "{p}|{l}"];
    all.extend(arguments);
    let text = cargo(&all);
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (package, licence) = line.split_once('|').expect("the format that was asked for");
            let name = package.split(' ').next().expect("a name");
            // A package that was listed before has a mark after it.
            (name.to_owned(), licence.trim_end_matches(" (*)").to_owned())
        })
        .collect()
}

fn cargo(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).args(["--offline", "--locked"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().expect("cargo runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

/// All Rust files under a directory, with their text.
fn sources(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries =
            fs::read_dir(&directory).unwrap_or_else(|error| panic!("{directory:?}: {error}"));
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("sources are UTF-8");
                found.push((path, text));
            }
        }
    }
    found
}

/// The lines of a source with their numbers, without comments, up to its unit tests.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().take_while(|(_, line)| *line != "#[cfg(test)]");
    lines.map(|(number, line)| (number + 1, line.split("//").next().unwrap_or_default()))
}
