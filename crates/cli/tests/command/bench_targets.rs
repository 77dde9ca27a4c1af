//! `bellrock bench targets`: rows are measured in separate processes, and a row that cannot be
//! measured says why. The tests do not check the figures.

use std::process::{Command, Output, Stdio};

/// Exit status, standard output, standard error.
fn targets(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellrock"));
    // One core is enough for this test.
    command.args(["bench", "targets", "--controller-core", "0"]);
    if !arguments.contains(&"--core") {
        command.args(["--core", "0"]);
    }
    let Output { status, stdout, stderr } =
        command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn a_row_is_measured_in_pairs_and_written_to_a_page() {
    let name = format!("bellrock-targets-test-{}.md", std::process::id());
    let file = std::env::temp_dir().join(name);
    let out = ["--out", file.to_str().unwrap(), "--commit", "abc1234"];
    let (status, page, error) = targets(&[&out[..], &["learning-1.3"]].concat());
    assert_eq!(status, 0, "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), page);
    std::fs::remove_file(&file).unwrap();
    assert!(error.contains("[1/1, some "), "how long it takes is told: {error}");
    for part in [
        "- Commit: abc1234",
        "CPU at most 1.5 of the responder's | CPU ",
        "| learning-1.3 | ours | ",
    ] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
    assert!(page.contains("| met |") || page.contains("| MISSED |"), "{page}");
    assert!(!page.contains("NOT ALL ANSWERS WERE RIGHT"), "{page}");
}

#[test]
fn uneven_load_is_what_its_command_says() {
    let uneven = |command| targets(&["uneven", "--uneven-bench", command]);
    let (status, page, _) = uneven("echo measuring; echo 1.7 times");
    assert!(status == 0 && page.contains("| 1.7 times | met |"), "{page}");
    let (status, page, _) = uneven("echo 1.2 times the rate");
    assert!(status == 0 && page.contains("| 1.2 times the rate | MISSED |"), "{page}");
    let (_, page, _) = uneven("echo 1.7 times; exit 1");
    assert!(page.contains("| 1.7 times | MISSED |"), "something was lost:\n{page}");
    let (_, page, _) = uneven("echo no core free >&2; exit 1");
    assert!(page.contains("not measured") && page.contains("no core free"), "{page}");
}

#[test]
fn full_tables_and_workers_are_what_their_commands_say() {
    let row = |row, flag, command| targets(&[row, flag, command]).1;
    let bytes = |command| row("bytes-per-entry", "--capacity-bench", command);
    let page = bytes("echo 21.4 bytes for each entry");
    assert!(page.contains("| 21.4 bytes for each entry | met |"), "{page}");
    assert!(bytes("echo 24.1 bytes").contains("| 24.1 bytes | MISSED |"));
    let workers = |command| row("workers-instructions", "--workers-bench", command);
    assert!(workers("echo 0.02 percent, 0 locked").contains("| 0.02 percent, 0 locked | met |"));
    let page = workers("echo 0.02 percent, 3 locked; exit 1");
    assert!(page.contains("| 0.02 percent, 3 locked | MISSED |"), "{page}");
    let (_, page, _) = targets(&["workers-instructions"]);
    assert!(page.contains("with --workers-bench, as `make bench` does"), "{page}");
    // The command gets the number of pairs.
    let (_, page, _) = targets(&["uneven", "--uneven-bench", "echo 1.7 times in {pairs} pairs"]);
    assert!(page.contains("| 1.7 times in 3 pairs | met |"), "{page}");
}

#[test]
fn a_failed_measurement_reports_its_reason_and_the_others_go_on() {
    let rows = ["instructions-1.0", "uneven", "--uneven-bench", "echo 1.7 times"];
    let (status, page, error) = targets(&rows);
    assert_eq!(status, 0, "{error}");
    assert!(
        page.contains("not measured: give the worker's benchmark with --packet-in-bench"),
        "{page}"
    );
    assert!(page.contains("| met |"), "{page}");
    let (_, page, _) =
        targets(&["learning-1.0", "--controller", "sh -c 'echo no such thing >&2; exit 3'"]);
    assert!(page.contains("not measured: the controller"), "{page}");
    assert!(page.contains("it said: no such thing"), "{page}");
}

#[test]
fn rows_are_listed_and_others_refused() {
    let (status, list, _) = targets(&["--list"]);
    assert!(status == 0 && list.contains("\nmacs-1e7 "), "{list}");
    let (status, _, error) = targets(&["learning"]);
    assert_eq!(status, 2);
    assert!(error.contains("there is no row \"learning\"; there are learning-1.0"), "{error}");
    let (status, _, error) = targets(&["learning-1.0", "--core", "100000"]);
    assert_eq!(status, 2);
    assert!(error.contains("core 100000"), "{error}");
}
