//! `bellrock bench suite` as a command: short runs on loopback, its files, and its errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

const BELLROCK: &str = env!("CARGO_BIN_EXE_bellrock");

/// Very short runs: the tests check that there are results, not their values.
const SHORT: [&str; 7] = ["--quick", "--duration", "0.1", "--warm-up", "0.05", "--runs", "2"];

/// The path of a new folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Folder(std::env::temp_dir().join(format!("bellrock-suite-{process}-{next}")))
    }

    fn text(&self, file: &str) -> String {
        let path = self.0.join(file);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn raw(&self, experiment: &str) -> Value {
        serde_json::from_str(&self.text(&format!("{experiment}/raw.json"))).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Exit status, standard output and standard error of a command of `bellrock bench`.
fn bench(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(BELLROCK);
    // No peers except those of the test.
    command.arg("bench").args(arguments).env("BELLROCK_PEERS", "/nowhere").env("PATH", "/bin");
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn suite(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    bench(&[&["suite", "--out", folder.to_str().unwrap()], arguments].concat())
}

#[test]
fn an_experiment_leaves_raw_data_plots_and_a_report() {
    let folder = Folder::new();
    let peer = format!("second={BELLROCK} bench responder --listen {{address}}");
    let arguments = [&SHORT[..], &["latency", "--of", "1.3", "--peer", &peer]].concat();
    let (status, out, error) = suite(&folder.0, &arguments);
    assert_eq!(status, 0, "{out}{error}");
    assert!(out.trim().ends_with("report.html") && Path::new(out.trim()).is_file(), "{out}");

    let raw = folder.raw("latency");
    let names = |raw: &Value| -> Vec<String> {
        let all = raw["contestants"].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&raw), ["bellrock", "responder", "second"]);
    let outcomes = raw["outcomes"].as_array().unwrap();
    assert!(outcomes.len() >= 9 && outcomes.len().is_multiple_of(3), "{}", outcomes.len());
    for outcome in outcomes {
        assert_eq!(outcome["failure"], Value::Null, "{outcome}");
        assert_eq!(outcome["figures"]["rates"].as_array().unwrap().len(), 2, "two rounds");
        assert!(outcome["figures"]["verified"].as_u64() > Some(0), "{outcome}");
        assert_eq!(outcome["figures"]["not_right"], 0, "{outcome}");
        assert_eq!(outcome["report"]["load"]["version"], "1.3");
    }

    let svg = folder.text("latency/cdf-1.svg");
    for name in ["bellrock", "canned responder", "second", "Primetime 2016"] {
        assert!(svg.contains(name), "{name} is not in the plot");
    }
    let png = fs::read(folder.0.join("latency/cdf-1.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n"), "it is a PNG");
    assert!(fs::read(folder.0.join("latency/cdf-1.pdf")).unwrap().starts_with(b"%PDF-"));
    let csv = folder.text("latency/cdf-1.csv");
    assert!(csv.lines().any(|line| line.contains("bellrock ")), "{csv}");
    for report in ["report.html", "latency/report.html"] {
        let text = folder.text(report);
        assert_loads_nothing(&text);
        for part in ["<svg", "bellrock", "canned responder", "second", "McNettle 2012", "Opteron"] {
            assert!(text.contains(part), "no {part} in {report}");
        }
    }
    assert!(folder.text("bellrock.yaml").contains("match: exact"), "what was run is told");

    redrawing_gives_the_same(&folder);
}

/// Asserts that a report loads nothing. SVG's namespace is an address, but is never fetched.
fn assert_loads_nothing(text: &str) {
    let rest = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for word in ["http://", "https://", "src=", "<link", "<script", "@import", "url("] {
        assert!(!rest.contains(word), "{word} in a report");
    }
    let places = rest.split("href=\"").skip(1).all(|place| place.starts_with('#'));
    assert!(places, "links go to places in the report");
}

fn redrawing_gives_the_same(folder: &Folder) {
    let files = ["report.html", "latency/report.html", "latency/cdf-1.svg", "latency/p99.svg"];
    let before = files.map(|file| folder.text(file));
    for file in files {
        fs::remove_file(folder.0.join(file)).unwrap();
    }
    let (status, out, error) = bench(&["report", folder.0.to_str().unwrap()]);
    assert_eq!((status, out.trim().ends_with("report.html")), (0, true), "{out}{error}");
    for (file, before) in files.iter().zip(before) {
        assert!(folder.text(file) == before, "{file} changed: it does not follow from raw.json");
    }
    let part = folder.0.join("latency");
    assert_eq!(bench(&["report", part.to_str().unwrap()]).0, 0, "that of one experiment");

    fs::write(part.join("raw.json"), "{}").unwrap();
    let (status, _, error) = bench(&["report", folder.0.to_str().unwrap()]);
    assert_eq!(status, 1);
    assert!(error.contains("raw.json (missing field"), "{error}");
}

#[test]
fn rates_are_drawn_and_cores_that_are_shared_are_told() {
    let folder = Folder::new();
    // One round: on shared cores a run may take its whole time to drain.
    let once = ["--quick", "--duration", "0.1", "--warm-up", "0.05", "threads", "energy"];
    let (status, out, error) = suite(&folder.0, &once);
    assert_eq!(status, 0, "{out}{error}");
    let raw = folder.raw("threads");
    let cores = raw["machine"]["cores"].as_u64().unwrap();
    let threads = raw["outcomes"].as_array().unwrap().iter().map(|one| one["x"].as_f64().unwrap());
    assert_eq!(threads.fold(0.0, f64::max), cores as f64, "as many as there are cores, no more");
    assert!(raw["notes"].to_string().contains("shares cores"), "{}", raw["notes"]);
    assert!(folder.text("threads/rate.svg").contains("NUST 2013"));
    // Energy can be measured on some machines only. The report must say which is the case.
    let measured = folder.0.join("energy/per-joule.svg").is_file();
    let told = folder.text("energy/report.html").contains("Energy was not measured");
    assert!(measured != told, "either measured or told");
}

#[test]
fn a_peer_that_dies_is_told_and_the_others_go_on() {
    let folder = Folder::new();
    let peer =
        format!("mortal=timeout -s KILL 0.4 {BELLROCK} bench responder --listen {{address}}");
    let arguments = ["macs", "--quick", "--duration", "0.6", "--warm-up", "0", "--peer", &peer];
    let (status, _, error) = suite(&folder.0, &arguments);
    assert_eq!(status, 0, "{error}");
    assert!(error.contains("mortal: the controller closed the connection"), "{error}");
    let raw = folder.raw("macs");
    for outcome in raw["outcomes"].as_array().unwrap() {
        let dies = outcome["contestant"] == 2;
        assert_eq!(outcome["failure"].is_string(), dies, "{outcome}");
    }
    assert!(folder.text("report.html").contains("the controller closed the connection"));
}

#[test]
fn a_controller_that_learns_too_late_is_not_tried_with_more_macs() {
    let folder = Folder::new();
    let once = ["--quick", "--duration", "0.1", "--warm-up", "0", "--learn-timeout", "0.001"];
    let (status, _, error) = suite(&folder.0, &[&["macs"], &once[..]].concat());
    assert_eq!(status, 1, "nobody reads 10^5 ARPs in a moment: {error}");
    assert!(error.contains("10^5 MACs, bellrock: "), "it is told of: {error}");
    let raw = folder.raw("macs");
    for contestant in [0, 1] {
        let outcomes = raw["outcomes"].as_array().unwrap().iter();
        let its = outcomes.filter(|outcome| outcome["contestant"] == contestant);
        let failures: Vec<&str> = its.map(|one| one["failure"].as_str().unwrap_or("")).collect();
        assert_eq!(failures.len(), 3, "each point is there: {failures:?}");
        let first = failures.iter().position(|failure| failure.contains("did not learn"));
        let Some(first) = first else { continue };
        let more = &failures[first + 1..];
        assert!(more.iter().all(|failure| failure.starts_with("not tried: ")), "{failures:?}");
    }
    assert!(folder.text("report.html").contains("did not learn"));
}

#[test]
fn bad_use_is_told_before_anything_is_measured() {
    let folder = Folder::new();
    let full = Folder::new();
    fs::create_dir(&full.0).unwrap();
    fs::write(full.0.join("thesis.txt"), "mine").unwrap();
    let cases: [(&Folder, &[&str], i32, &str); 11] = [
        (
            &folder,
            &["batches"],
            2,
            "no experiment \"batches\"; there are threads, switches, macs, latency, window, \
             fairness, batch, energy, shared-state, hostile",
        ),
        (&full, &["macs"], 2, "is not empty; name another one with --out"),
        (&folder, &["--peer", "nox"], 2, "built-in peer: ovs-testcontroller, os-ken"),
        (&folder, &["--peer", "a=x", "--peer", "a=y"], 2, "each name once"),
        (&folder, &["--peer", "os-ken"], 1, "run `scripts/tools install peers`"),
        (&folder, &["--runs", "0"], 2, "runs cannot be 0; give 1 to 1000"),
        (&folder, &["--workers", "0"], 2, "workers cannot be 0; give 1 to"),
        (&folder, &["--workers", "100000"], 2, "workers cannot be 100000; give 1 to"),
        (&folder, &["--tdp-watts", "0"], 2, "give watts"),
        (&folder, &["--connect", "x"], 2, "give HOST:PORT"),
        (&folder, &["macs", "--peer", "dead=false {port}"], 1, "dead: the controller `false"),
    ];
    for (folder, arguments, expected, text) in cases {
        let (status, out, error) = suite(&folder.0, arguments);
        assert_eq!((status, out.as_str()), (expected, ""), "{arguments:?}: {error}");
        assert!(error.contains(text), "{arguments:?}: {error}");
        assert!(folder.0 == full.0 || !folder.0.exists(), "{arguments:?} left a folder behind");
    }
    assert_eq!(fs::read_dir(&full.0).unwrap().count(), 1, "what was there is left alone");
    let (status, _, error) = bench(&["report", full.0.to_str().unwrap()]);
    assert_eq!(status, 1);
    assert!(error.contains("there is no raw.json in"), "{error}");
}

#[test]
fn the_help_names_every_experiment() {
    let (status, help, _) = bench(&["suite", "--help"]);
    assert_eq!(status, 0);
    for experiment in bellrock_studies::suite::EXPERIMENTS {
        assert!(help.contains(experiment.name), "no {} in the help", experiment.name);
    }
}
