//! Compiler errors for two likely first mistakes, and the packages that the control socket adds.
//!
//! The tests compile wrong programs against the library without features, as authors get it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The library without features, and the folder of its dependencies.
fn library() -> (PathBuf, PathBuf) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["check", "-p", "bellrock", "--lib", "--no-default-features", "--locked", "--quiet"])
        .args(["--message-format", "json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the library is not compiled");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let files = lines.filter(|line| line["target"]["name"] == "bellrock").flat_map(|line| {
        let files = line["filenames"].as_array().cloned().unwrap_or_default();
        files.into_iter().filter_map(|file| file.as_str().map(PathBuf::from))
    });
    let mut libraries = files.filter(|file| file.extension().is_some_and(|it| it == "rmeta"));
    let library = libraries.next().unwrap();
    let dependencies = library.parent().unwrap().to_owned();
    (library, dependencies)
}

/// The errors of the compiler for a program; empty if there are none.
fn errors_of(program: &str) -> String {
    let (library, dependencies) = library();
    let name =
        format!("{:?}", std::thread::current().id()).replace(|c: char| !c.is_ascii_digit(), "");
    let source =
        std::env::temp_dir().join(format!("bellrock-mistake-{}-{name}.rs", std::process::id()));
    std::fs::write(&source, program).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    // Not /dev/null: as root, the compiler would replace the device by a file.
    let output_file = source.with_extension("rmeta");
    let output = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "bin", "--emit", "metadata", "-o"])
        .arg(&output_file)
        .arg("--extern")
        .arg(format!("bellrock={}", library.display()))
        .arg("-L")
        .arg(format!("dependency={}", dependencies.display()))
        .arg(&source)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .output()
        .unwrap();
    std::fs::remove_file(source).unwrap();
    // The file does not exist if the program has errors.
    let _ = std::fs::remove_file(output_file);
    let said = String::from_utf8(output.stderr).unwrap();
    if output.status.success() { String::new() } else { said }
}

const HUB: &str = "
    use bellrock::prelude::*;
    struct Hub;
    impl Handler for Hub {
        fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) -> Result<Verdict> {
            let headers = packet.headers()?;
            if headers.net.is_none() {
                return Err(std::io::Error::other(\"no network layer\"))?;
            }
            switch.packet_out(packet, Port::FLOOD)?;
            Ok(Verdict::Consume)
        }
    }
";

#[test]
fn a_handler_that_is_run_as_an_app_leads_to_per_switch() {
    let right = "fn main() -> bellrock::Result { bellrock::run(per_switch(\"hub\", |_| Hub)) }";
    assert_eq!(errors_of(&format!("{HUB}{right}")), "");
    let wrong = "fn main() -> bellrock::Result { bellrock::run(Hub) }";
    let said = errors_of(&format!("{HUB}{wrong}"));
    assert!(said.contains("`Hub` is no app: it does not implement `App`"), "{said}");
    assert!(said.contains("bellrock::run(per_switch(\"hub\", |_| Hub))"), "{said}");
}

#[test]
fn a_control_socket_without_its_feature_names_the_feature() {
    let main = |call: &str| {
        format!(
            "{HUB}fn main() -> bellrock::Result {{
                 bellrock::Controller::builder().app(per_switch(\"hub\", |_| Hub)){call}.run()
             }}"
        )
    };
    assert_eq!(errors_of(&main("")), "");
    for call in [".control_socket()", ".control_socket_at(\"/run/hub.sock\")"] {
        let said = errors_of(&main(call));
        let says = "a control socket needs the feature `control` of the crate `bellrock`";
        assert!(said.contains(says) && said.contains("features = [\"control\"]"), "{said}");
    }
}

/// Names of the packages of a feature.
fn packages(feature: &str) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "-p", "bellrock", "--no-default-features", "--features", feature])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{p}", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<_> =
        text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn a_control_socket_brings_few_packages_and_no_screens() {
    /// Maximum number of packages that the socket may add.
    const MOST_MORE: usize = 13;
    let (without, with) = (packages(""), packages("control"));
    let more: Vec<_> = with.iter().filter(|name| !without.contains(name)).collect();
    assert!(more.len() <= MOST_MORE, "{more:?}");
    for name in ["clap", "ratatui", "crossterm", "rustyline", "plotters", "bellrock-bench"] {
        assert!(!with.iter().any(|package| package == name), "{name}");
    }
}
