//! The load generator by TLS, against this controller. Every answer is verified, in every mode.

use crate::running::{Place, bellrock, free_address, output};
use serde_json::Value;

/// Short runs with long time limits: the tests check results, not times.
const SHORT: [&str; 12] = [
    "--runs",
    "2",
    "--duration",
    "0.15",
    "--warm-up",
    "0.02",
    "--answer-timeout",
    "20",
    "--connect-timeout",
    "30",
    "--switches",
    "4",
];

/// An authority, and certificates of a controller and of switches.
fn certificates(place: &Place) {
    let dir = ["--dir", &place.file("")];
    for order in [&["init"][..], &["controller"], &["switch", "load"]] {
        let (status, _, error) = output(&mut bellrock(&[&["pki"], order, &dir[..]].concat()));
        assert_eq!(status, 0, "{error}");
    }
}

/// The flags of one end.
fn flags(place: &Place, name: &str) -> Vec<String> {
    let file = |name: &str| place.file(name);
    vec![
        "--tls-certificate".to_owned(),
        file(&format!("{name}-cert.pem")),
        "--tls-key".to_owned(),
        file(&format!("{name}-key.pem")),
        "--tls-ca".to_owned(),
        file("ca-cert.pem"),
    ]
}

/// Runs the generator against a controller that it starts, and that has TLS.
fn bench(place: &Place, arguments: &[&str]) -> (i32, String, String) {
    let address = free_address().to_string();
    let command = env!("CARGO_BIN_EXE_bellrock");
    let controller = format!(
        "{command} run --app learning --listen tls:{address} --control none --log-level error {}",
        flags(place, "controller").join(" ")
    );
    let fixed = ["bench", "--controller", &controller, "--connect", &address];
    output(&mut bellrock(&[&fixed, &SHORT[..], arguments].concat()))
}

fn report(place: &Place, arguments: &[&str]) -> Value {
    let flags = flags(place, "load");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let (status, out, error) = bench(place, &[&flags, arguments, &["--json"]].concat());
    assert_eq!(status, 0, "{arguments:?}: {out}\n{error}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["load"]["tls"], true, "{report}");
    report
}

#[test]
fn every_answer_is_right_in_every_mode() {
    let place = Place::new("bench-tls");
    certificates(&place);
    let modes: [&[&str]; 4] = [
        &["--mode", "throughput"],
        &["--mode", "latency"],
        &["--mode", "window", "--in-flight", "5"],
        &["--mode", "rate", "--rate", "300"],
    ];
    for mode in modes {
        for kind in [&["--of", "1.0"][..], &["--of", "1.3", "--unbuffered"]] {
            let report = report(&place, &[mode, kind].concat());
            let tally = &report["summary"]["tally"];
            assert!(tally["verified"].as_u64() > Some(50), "{mode:?} {kind:?}: {tally}");
            assert_eq!(tally["verified"], tally["sent"], "{mode:?} {kind:?}: {tally}");
        }
    }
    for mode in ["connect", "storm"] {
        let report = report(&place, &["--mode", mode]);
        let done = report["runs"][0]["done"].as_u64();
        assert!(done >= Some(if mode == "storm" { 4 } else { 1 }), "{report}");
    }
}

#[test]
fn a_failed_tls_connection_names_its_fault() {
    let (place, other) = (Place::new("bench-tls-wrong"), Place::new("bench-tls-other"));
    certificates(&place);
    certificates(&other);
    let wrong = |flags: Vec<String>| {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let (status, _, error) = bench(&place, &flags);
        (status, error)
    };
    let (status, error) = wrong(flags(&other, "load"));
    assert!(status == 1 && error.contains("TLS: invalid peer certificate"), "{error}");
    let mut stranger = flags(&other, "load");
    stranger.truncate(5);
    stranger.push(place.file("ca-cert.pem"));
    let (status, error) = wrong(stranger);
    assert!(status == 1 && error.contains("TLS: received fatal alert"), "{error}");
    let mut none = flags(&place, "load");
    none[1] = place.file("none.pem");
    let (status, error) = wrong(none);
    assert!(status == 2 && error.contains("none.pem: No such file"), "{error}");
    let (status, error) = wrong(vec!["--tls-key".to_owned(), place.file("load-key.pem")]);
    assert!(status == 2 && error.contains("--tls-certificate"), "{error}");
}
