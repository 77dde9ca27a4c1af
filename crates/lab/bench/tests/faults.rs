//! Controllers with one fault each. The right counter or error reports it.
#![allow(clippy::unwrap_used, reason = "a test fails so")]

mod faulty;

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bellrock_bench::{
    AnswerTally, BenchError, Destinations, HostOrder, Load, LoadMode, MeasuredProcess, Report, run,
};
use bellrock_openflow::{Bytes, ErrorCode, ErrorMessage, Out, ToSwitch, Version};
use faulty::{controller, serve};

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

/// A window of eight: something is always in flight, but little.
fn load(target: SocketAddr, version: Version, buffered: bool) -> Load {
    Load {
        target,
        version,
        buffered,
        switches: 2,
        macs: 1000,
        order: HostOrder::Random,
        destinations: Destinations::Uniform,
        mode: LoadMode::Window(8),
        warm_up: Duration::ZERO,
        duration: Duration::from_millis(150),
        runs: 1,
        answer_timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(20),
        ..Load::default()
    }
}

fn test(load: &Load) -> Result<Report, BenchError> {
    run(load, &MeasuredProcess::default(), &mut |_| {})
}

fn tally(load: &Load) -> AnswerTally {
    let report = test(load).unwrap();
    assert!(report.failure.is_none(), "{:?}", report.failure);
    assert!(report.summary.tally.sent > 20, "{:?}", report.summary.tally);
    report.summary.tally
}

/// Runs all kinds of load against a controller that changes every tenth answer.
fn every_tenth(
    change: impl Fn(Vec<Vec<u8>>) -> Vec<Vec<u8>> + Copy + Send + Sync + 'static,
) -> Vec<(Version, bool, AnswerTally)> {
    let address = controller(move |count, answers| {
        Some(if count % 10 == 3 { change(answers) } else { answers })
    });
    let kinds = VERSIONS.into_iter().flat_map(|version| [(version, true), (version, false)]);
    kinds
        .map(|(version, buffered)| (version, buffered, tally(&load(address, version, buffered))))
        .collect()
}

/// Offset of the last byte of the output port in a flow_mod.
fn out_port_at(flow_mod: &[u8]) -> usize {
    if flow_mod[0] == 1 { 77 } else { 151 }
}

fn buffer_at(flow_mod: &[u8]) -> usize {
    if flow_mod[0] == 1 { 64 } else { 32 }
}

#[test]
fn without_a_change_nothing_is_wrong() {
    for (version, buffered, tally) in every_tenth(|answers| answers) {
        assert!(tally.is_clean(), "{version} {buffered} {tally:?}");
        assert_eq!(tally.sent, tally.verified);
    }
}

#[test]
fn a_wrong_port_is_a_wrong_output() {
    let tallies = every_tenth(|mut answers| {
        let at = out_port_at(&answers[0]);
        answers[0][at] = answers[0][at] % 4 + 1;
        answers
    });
    for (version, buffered, tally) in tallies {
        let case = format!("{version} {buffered} {tally:?}");
        assert!(tally.wrong_output > 0, "{case}");
        assert_eq!(tally.wrong(), tally.wrong_output, "{case}");
        assert_eq!(tally.sent, tally.verified + tally.spoilt, "{case}");
        assert_eq!(tally.extra + tally.unanswered(), 0, "{case}");
    }
}

#[test]
fn a_wrong_address_is_a_wrong_match() {
    let tallies = every_tenth(|mut answers| {
        // The last byte of the source address.
        let at = if answers[0][0] == 1 { 19 } else { 79 };
        answers[0][at] ^= 0x55;
        answers
    });
    for (version, buffered, tally) in tallies {
        let case = format!("{version} {buffered} {tally:?}");
        assert!(tally.wrong_match > 0, "{case}");
        assert_eq!(tally.wrong(), tally.wrong_match, "{case}");
        assert_eq!(tally.sent, tally.verified + tally.spoilt, "{case}");
    }
}

#[test]
fn a_wrong_buffer_id_is_known_as_such_and_the_packet_is_missing() {
    let address = controller(|count, mut answers| {
        if count == 3 {
            let at = buffer_at(&answers[0]);
            answers[0][at] = 0x70;
        }
        Some(answers)
    });
    for version in VERSIONS {
        let answer_timeout = Duration::from_millis(1500);
        let tally = tally(&Load { answer_timeout, ..load(address, version, true) });
        let AnswerTally { sent, matched, .. } = tally;
        let expected = AnswerTally { sent, verified: sent - 2, matched, ..AnswerTally::default() };
        assert_eq!(tally, AnswerTally { wrong_buffer: 2, missing: 2, ..expected }, "{version}");
    }
}

#[test]
fn a_second_answer_is_extra() {
    for (version, buffered, tally) in every_tenth(|answers| [answers.clone(), answers].concat()) {
        let case = format!("{version} {buffered} {tally:?}");
        let per_packet = if buffered { 1 } else { 2 };
        assert!(tally.extra > 0, "{case}");
        // The last answer of each connection may not have been read.
        assert!(tally.extra >= tally.sent / 10 * per_packet - 4, "{case}");
        assert_eq!(tally.wrong() + tally.unanswered() + tally.spoilt, 0, "{case}");
        assert_eq!(tally.sent, tally.verified, "{case}");
    }
}

#[test]
fn no_answer_is_a_missing_one_and_half_an_answer_has_a_name() {
    for (keep, buffered) in [(0..0, true), (0..0, false), (0..1, false), (1..2, false)] {
        let kept = keep.clone();
        let address = controller(move |count, answers| {
            Some(if count == 5 { answers[kept.clone()].to_vec() } else { answers })
        });
        for version in VERSIONS {
            let answer_timeout = Duration::from_millis(1500);
            let tally = tally(&Load { answer_timeout, ..load(address, version, buffered) });
            let AnswerTally { sent, matched, .. } = tally;
            let base = AnswerTally { sent, verified: sent - 2, matched, ..AnswerTally::default() };
            let expected = match keep {
                std::ops::Range { start: 0, end: 0 } => AnswerTally { missing: 2, ..base },
                std::ops::Range { start: 0, .. } => AnswerTally { without_packet: 2, ..base },
                _ => AnswerTally { without_flow: 2, ..base },
            };
            assert_eq!(tally, expected, "{version} {buffered} {keep:?}");
        }
    }
}

#[test]
fn another_frame_is_a_wrong_frame() {
    for (version, buffered, tally) in every_tenth(|mut answers| {
        if let Some(byte) = answers.get_mut(1).and_then(|packet_out| packet_out.last_mut()) {
            *byte ^= 1;
        }
        answers
    }) {
        let case = format!("{version} {buffered} {tally:?}");
        assert_eq!(tally.wrong_frame > 0, !buffered, "{case}");
        assert_eq!(tally.wrong(), tally.wrong_frame, "{case}");
        assert_eq!(tally.sent, tally.verified + tally.spoilt, "{case}");
    }
}

#[test]
fn a_controller_that_only_floods_sets_up_no_flow() {
    let tallies = every_tenth(|answers| answers);
    assert!(tallies.iter().all(|(_, _, tally)| tally.verified > 0));
    let address = controller(|_, mut answers| {
        let packet_out = answers.pop()?;
        // The flood port: all ports but the ingress port, like a hub.
        let (version, flood) = match packet_out[0] {
            1 => (1, [0xff, 0xfb].to_vec()),
            _ => (4, [0xff, 0xff, 0xff, 0xfb].to_vec()),
        };
        let mut packet_out = packet_out;
        let at = if version == 1 { 20 } else { 28 };
        packet_out[at..at + flood.len()].copy_from_slice(&flood);
        Some(vec![packet_out])
    });
    for version in VERSIONS {
        let answer_timeout = Duration::from_millis(100);
        let tally = tally_of_few(&Load { answer_timeout, ..load(address, version, false) });
        assert_eq!(tally.verified, 0, "{tally:?}");
        assert_eq!(tally.wrong_output, tally.sent, "{tally:?}");
        assert_eq!(tally.without_flow, tally.sent, "{tally:?}");
    }
}

fn tally_of_few(load: &Load) -> AnswerTally {
    test(load).unwrap().summary.tally
}

#[test]
fn errors_are_counted() {
    let address = controller(|count, mut answers| {
        if count == 2 {
            let version = if answers[0][0] == 1 { Version::V1_0 } else { Version::V1_3 };
            let (code, data) = (ErrorCode::RequestBadType, Bytes(&[0; 8]));
            let error = ToSwitch::Error(ErrorMessage::Standard { code, data });
            let mut out = Out::with_capacity(100);
            error.encode(version, 7, &mut out).unwrap();
            answers.push(out.as_slice().to_vec());
        }
        Some(answers)
    });
    for version in VERSIONS {
        let tally = tally(&load(address, version, true));
        assert_eq!((tally.errors, tally.sent - tally.verified), (2, 0), "{tally:?}");
    }
}

#[test]
fn bytes_that_are_no_message_are_unreadable() {
    let tallies = every_tenth(|mut answers| {
        let extra = [answers[0][0], 14, 0, 12, 0, 0, 0, 0, 1, 2, 3, 4];
        answers.push(extra.to_vec());
        answers
    });
    for (version, buffered, tally) in tallies {
        assert!(tally.unreadable > 0, "{version} {buffered} {tally:?}");
        assert_eq!(tally.sent, tally.verified, "{version} {buffered} {tally:?}");
    }
}

#[test]
fn a_connection_that_is_closed_ends_the_test_with_what_was_measured() {
    /// Longer than the load runs before the measurement, even on a busy machine.
    const OPEN: Duration = Duration::from_secs(3);
    for version in VERSIONS {
        let first = OnceLock::new();
        let address = controller(move |_, answers| {
            let open = first.get_or_init(Instant::now).elapsed() < OPEN;
            open.then_some(answers)
        });
        let duration = Duration::from_secs(60);
        let report = test(&Load { duration, runs: 3, ..load(address, version, true) }).unwrap();
        let failure = report.failure.unwrap();
        assert!(failure.contains("closed the connection of switch"), "{failure}");
        assert!(failure.contains("in the middle of a run"), "{failure}");
        assert_eq!(report.runs.len(), 1);
        assert!(!report.runs[0].complete);
        assert!(report.summary.tally.verified > 0, "{:?}", report.summary.tally);
    }
}

#[test]
fn a_controller_of_another_version_is_known_by_its_hello() {
    for (ours, theirs) in [(Version::V1_0, Version::V1_3), (Version::V1_3, Version::V1_0)] {
        let address = serve(move |mut stream| {
            let mut out = Out::with_capacity(64);
            bellrock_openflow::Hello::write(theirs, 0, &mut out).unwrap();
            std::io::Write::write_all(&mut stream, out.as_slice()).unwrap();
            std::thread::sleep(Duration::from_secs(60));
        });
        let error = test(&load(address, ours, true)).unwrap_err();
        assert!(matches!(error, BenchError::Protocol { .. }), "{error}");
        assert!(error.to_string().contains("--of"), "{error}");
    }
    let web = serve(|mut stream| {
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        std::thread::sleep(Duration::from_secs(60));
    });
    let error = test(&load(web, Version::V1_0, true)).unwrap_err();
    assert!(error.to_string().contains("does not speak OpenFlow"), "{error}");
}

#[test]
fn a_controller_that_never_answers_is_given_up() {
    let address = serve(|_stream| std::thread::sleep(Duration::from_secs(60)));
    let connect_timeout = Duration::from_millis(200);
    let error = test(&Load { connect_timeout, ..load(address, Version::V1_0, true) }).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("ask for the features of a switch"), "{text}");
    assert!(text.contains("0 of 2 switches"), "{text}");
}

#[test]
fn a_controller_that_answers_nothing_is_not_waited_for_for_ever() {
    let address = controller(|_, _| Some(Vec::new()));
    let answer_timeout = Duration::from_millis(100);
    let report = test(&Load { answer_timeout, ..load(address, Version::V1_0, true) }).unwrap();
    let tally = report.summary.tally;
    assert_eq!((tally.verified, tally.missing), (0, tally.sent), "{tally:?}");
    assert!(tally.sent >= 16, "{tally:?}");
    assert_eq!(report.summary.rate.median, 0.0);
}
