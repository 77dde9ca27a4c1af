//! A recording that is played at both ends over sockets of this machine.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread;

use super::*;
use crate::decode::peers::Sender;
use crate::record::pcapng::{Flow, PcapngWriter};

const PATIENCE: Duration = Duration::from_secs(60);

fn message(kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    [&[4, kind][..], &length.to_be_bytes(), &xid.to_be_bytes(), body].concat()
}

fn features(dpid: u64) -> Vec<u8> {
    [&dpid.to_be_bytes()[..], &[0; 16]].concat()
}

/// A flow_mod that only has to be the same.
fn flow_mod(xid: u32, priority: u8) -> Vec<u8> {
    let mut body = vec![0; 48];
    body[23] = priority;
    body[40..44].copy_from_slice(&[0, 1, 0, 4]);
    message(14, xid, &body)
}

/// What passes in the recording, in order.
fn conversation() -> Vec<(Sender, Vec<u8>)> {
    vec![
        (Sender::Switch, message(0, 1, &[])),
        (Sender::Controller, message(0, 1, &[])),
        (Sender::Controller, message(5, 2, &[])),
        (Sender::Switch, message(6, 2, &features(0xa1))),
        (Sender::Controller, message(18, 3, &[0, 13, 0, 0, 0, 0, 0, 0])),
        (Sender::Switch, message(19, 3, &[0, 13, 0, 0, 0, 0, 0, 0])),
        (Sender::Switch, message(10, 0, &[7; 40])),
        (Sender::Controller, flow_mod(4, 9)),
        (Sender::Switch, message(1, 4, &[0, 5, 0, 1])),
        (Sender::Switch, message(2, 8, b"alive")),
        (Sender::Controller, message(3, 8, b"alive")),
    ]
}

fn recording(name: &str, conversation: &[(Sender, Vec<u8>)]) -> PathBuf {
    let path = crate::test_directory(name).join("r.pcapng");
    let mut file = PcapngWriter::new(Vec::new(), "").unwrap();
    let mut flow = Flow::new(([192, 0, 2, 7], 40_000).into(), ([192, 0, 2, 1], 6653).into());
    let at = |n: usize| Duration::from_millis(1_000_000 + 10 * n as u64);
    file.open(&mut flow, at(0)).unwrap();
    for (n, (from, bytes)) in conversation.iter().enumerate() {
        file.bytes(&mut flow, at(n), *from, bytes).unwrap();
    }
    file.close(&mut flow, at(99), Sender::Switch).unwrap();
    std::fs::write(&path, file.into_inner()).unwrap();
    path
}

fn args(file: &Path) -> ReplayArgs {
    ReplayArgs {
        file: file.to_owned(),
        controller: None,
        listen: None,
        switches: Vec::new(),
        fast: false,
        check: true,
    }
}

/// The next message of the peer.
fn next(stream: &mut TcpStream) -> Vec<u8> {
    let mut message = vec![0; 8];
    stream.read_exact(&mut message).unwrap();
    message.resize(u16::from_be_bytes([message[2], message[3]]).into(), 0);
    stream.read_exact(&mut message[8..]).unwrap();
    message
}

/// The other end of a replay: sends `say` before it expects `hear`, step by step.
fn talk(mut stream: TcpStream, steps: Vec<(Vec<u8>, Option<Vec<u8>>)>) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for (say, hear) in steps {
        stream.write_all(&say).unwrap();
        if let Some(hear) = hear {
            assert_eq!(next(&mut stream), hear);
        }
    }
    // Until the replay closes the connection.
    while stream.read(&mut [0; 64]).is_ok_and(|n| n > 0) {}
}

#[test]
fn the_recording_is_read_with_its_senders_and_times() {
    let path = recording("replay-load", &conversation());
    let recorded = load(&path).unwrap();
    assert_eq!(recorded.problems, Vec::<String>::new());
    let [connection] = &recorded.connections[..] else { panic!() };
    assert_eq!(connection.dpid, Some(0xa1));
    let expected = conversation().into_iter().enumerate().map(|(n, (from, bytes))| {
        let sender = if from == Sender::Switch { Sender::Switch } else { Sender::Controller };
        load::RecordedMessage {
            time: Duration::from_millis(10 * n as u64),
            sender,
            bytes: bytes.into(),
        }
    });
    assert_eq!(connection.messages, expected.collect::<Vec<_>>());
    for (content, part) in [(&b""[..], "empty"), (b"nonsense of some length", "neither a pcap")] {
        std::fs::write(&path, content).unwrap();
        let error = load(&path).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
    assert!(load(Path::new("/no/such/file")).is_err());
}

#[test]
fn a_second_connection_between_the_same_ports_is_another_one() {
    let twice = [conversation(), conversation()].concat();
    let recorded = load(&recording("replay-twice", &twice)).unwrap();
    let lengths: Vec<_> = recorded.connections.iter().map(|one| one.messages.len()).collect();
    assert_eq!(lengths, [conversation().len(), conversation().len()]);
}

#[test]
fn a_switch_answers_a_controller_with_other_xids_as_it_did_before() {
    let path = recording("replay-switch", &conversation());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let controller = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let port_desc = [0, 13, 0, 0, 0, 0, 0, 0];
        talk(
            stream,
            vec![
                (message(0, 70, &[]), Some(message(0, 1, &[]))),
                (message(5, 71, &[]), Some(message(6, 71, &features(0xa1)))),
                // What comes unasked.
                (Vec::new(), Some(message(10, 0, &[7; 40]))),
                (message(18, 72, &port_desc), Some(message(19, 72, &port_desc))),
                // The refused flow is refused again.
                (flow_mod(73, 9), Some(message(1, 73, &[0, 5, 0, 1]))),
                // What the recording does not have.
                (message(2, 74, b"echo"), Some(message(3, 74, b"echo"))),
                (message(20, 75, &[]), Some(message(21, 75, &[]))),
                (
                    message(7, 76, &[]),
                    Some(message(1, 76, &[&[0, 1, 0, 1][..], &message(7, 76, &[])].concat())),
                ),
                // A request again.
                (message(18, 77, &port_desc), Some(message(19, 77, &port_desc))),
            ],
        );
    });
    let args = args(&path);
    let recorded = load(&path).unwrap().connections;
    let ending = Ending::default();
    let plays = play_switches(&args, &address.to_string(), recorded, &ending).unwrap();
    controller.join().unwrap();
    let [play] = &plays[..] else { panic!() };
    assert_eq!((play.failed.as_deref(), play.progress()), (None, (1, 1)));
    let Part::Switch(script, _) = &play.part else { panic!() };
    assert_eq!(script.refused, 1);
    let report = script.comparison.report();
    let rows: Vec<Vec<&str>> =
        report.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        vec!["features_request", "1", "1", "1"],
        vec!["flow_mod", "1", "1", "1"],
        vec!["barrier_request", "0", "1", "0"],
        vec!["multipart_request", "port_desc", "1", "2", "1"],
    ] {
        assert!(rows.contains(&row), "{row:?} in {report}");
    }
    let outcome = super::report(&args, &plays).unwrap();
    assert_eq!(outcome, ReplayOutcome { is_whole: true, differs: true });
}

#[test]
fn a_controller_plays_at_a_switch_and_its_answers_are_compared() {
    let path = recording("replay-controller", &conversation());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let switch = thread::spawn(move || {
        let stream = loop {
            match TcpStream::connect(address) {
                Ok(stream) => break stream,
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        };
        let port_desc = [0, 13, 0, 0, 0, 0, 0, 0];
        talk(
            stream,
            vec![
                (message(0, 1, &[]), Some(message(0, 1, &[]))),
                // The features request of the replay itself.
                (Vec::new(), Some(message(5, u32::MAX - 1, &[]))),
                (message(6, u32::MAX - 1, &features(0xa1)), Some(message(5, 2, &[]))),
                (message(6, 2, &features(0xa1)), Some(message(18, 3, &port_desc))),
                (message(19, 3, &port_desc), Some(flow_mod(4, 9))),
                (message(2, 9, b"you?"), Some(message(3, 9, b"you?"))),
                (message(1, 4, &[0, 5, 0, 1]), None),
                (message(10, 0, &[7; 40]), None),
            ],
        );
    });
    let args = args(&path);
    let recorded = load(&path).unwrap().connections;
    let plays = play_controller(&args, address, recorded, &Ending::default()).unwrap();
    switch.join().unwrap();
    let outcome = report(&args, &plays).unwrap();
    assert_eq!(outcome, ReplayOutcome { is_whole: true, differs: false });
}

#[test]
fn a_controller_that_is_not_there_or_leaves_is_reported() {
    let path = recording("replay-gone", &conversation());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let leaving = thread::spawn(move || drop(listener.accept().unwrap()));
    let args = args(&path);
    let play = || {
        let recorded = load(&path).unwrap().connections;
        play_switches(&args, &address.to_string(), recorded, &Ending::default()).unwrap()
    };
    let left = play();
    leaving.join().unwrap();
    assert!(left[0].failed.is_some());
    let away = play();
    let why = away[0].failed.clone().unwrap();
    assert!(why.starts_with(&format!("cannot connect to {address}: ")), "{why}");
    let outcome = report(&args, &away).unwrap();
    assert!(!outcome.is_success());
}
