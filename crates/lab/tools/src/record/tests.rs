//! The recorder between two sockets of this machine.

use std::net::Ipv4Addr;

use super::*;
use crate::decode::{CaptureProblem, Sink, StreamMessage, read_capture};

#[derive(Default)]
struct Seen {
    messages: Vec<Vec<u8>>,
    problems: Vec<CaptureProblem>,
}

impl Sink for Seen {
    fn message(&mut self, message: StreamMessage<'_>) {
        self.messages.push(message.bytes.to_vec());
    }
    fn problem(&mut self, problem: CaptureProblem) {
        self.problems.push(problem);
    }
}

fn message(kind: u8, length: u16) -> Vec<u8> {
    let mut message = vec![kind; length.into()];
    message[0] = 4;
    message[2..4].copy_from_slice(&length.to_be_bytes());
    message
}

fn read(stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut all = vec![0; bytes];
    stream.read_exact(&mut all).unwrap();
    all
}

#[test]
fn both_directions_pass_unchanged_and_are_in_the_file_in_order() {
    let upstream = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (controller, address) = (upstream.local_addr().unwrap(), listener.local_addr().unwrap());
    let (sender, heard) = sync_channel(QUEUE);
    thread::spawn(move || accept(&listener, controller, &sender));
    let mut switch = TcpStream::connect(address).unwrap();
    let (mut server, _) = upstream.accept().unwrap();
    let up = [message(0, 16), message(10, 60_000), message(6, 32)];
    let down = [message(0, 8), message(14, 80)];
    // Cut in the middle of messages.
    let all = up.concat();
    for part in all.chunks(7_001) {
        switch.write_all(part).unwrap();
        assert_eq!(read(&mut server, part.len()), part);
    }
    server.write_all(&down.concat()).unwrap();
    assert_eq!(read(&mut switch, 88), down.concat());
    // Each end is closed by itself.
    switch.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
    server.write_all(&message(20, 8)).unwrap();
    assert_eq!(read(&mut switch, 8), message(20, 8));
    drop(server);
    assert_eq!(switch.read(&mut [0]).unwrap(), 0);

    let path = crate::test_directory("record-pass").join("r.pcapng");
    let comment = String::new();
    let target =
        Target { path: Some(path.clone()), force: true, max_bytes: 1 << 20, keep: 0, comment };
    let mut writer = Writer {
        recording: Recording::create(target).unwrap(),
        connections: BTreeMap::new(),
        messages: 0,
        flushed_messages: 0,
        bar: ProgressBar::hidden(),
        last_flush: Instant::now(),
    };
    let mut ended = 0;
    while ended < 2 {
        let event = heard.recv_timeout(Duration::from_secs(60)).unwrap();
        ended += usize::from(matches!(event, Heard::Ended { .. }));
        writer.handle(event);
    }
    assert_eq!(writer.recording.flush(), Written::Yes);
    assert_eq!((writer.messages, writer.connections.len()), (6, 0));
    let mut seen = Seen::default();
    let file = std::fs::File::open(&path).unwrap();
    read_capture(file, &[], &mut seen).unwrap();
    assert_eq!(seen.problems, []);
    assert!(seen.messages == [&up[..], &down, &[message(20, 8)]].concat());
}

#[test]
fn a_controller_that_is_away_is_reported_and_its_switch_let_go() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let controller = free.local_addr().unwrap();
    drop(free);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, heard) = sync_channel(QUEUE);
    thread::spawn(move || accept(&listener, controller, &sender));
    let mut switch = TcpStream::connect(address).unwrap();
    assert_eq!(switch.read(&mut [0]).unwrap(), 0);
    let Heard::Problem(text) = heard.recv_timeout(Duration::from_secs(60)).unwrap() else {
        panic!()
    };
    assert!(text.contains(&format!("cannot connect to the controller {controller}")), "{text}");
}

#[test]
fn tls_passes_and_is_recorded_as_bytes() {
    let path = crate::test_directory("record-tls").join("r.pcapng");
    let comment = String::new();
    let target =
        Target { path: Some(path.clone()), force: true, max_bytes: 1 << 20, keep: 0, comment };
    let mut writer = Writer {
        recording: Recording::create(target).unwrap(),
        connections: BTreeMap::new(),
        messages: 0,
        flushed_messages: 0,
        bar: ProgressBar::hidden(),
        last_flush: Instant::now(),
    };
    let (switch, at) = (([127, 0, 0, 1], 4000).into(), ([127, 0, 0, 1], 6653).into());
    writer.handle(Heard::Opened { id: 1, switch, at });
    let hello = [&[0x16, 3, 1, 2, 0, 1, 0][..], &[7; 600]].concat();
    for part in hello.chunks(100) {
        let (id, from, time, bytes) = (1, Sender::Switch, Duration::from_secs(9), part.to_vec());
        writer.handle(Heard::Bytes { id, from, time, bytes });
    }
    assert_eq!(writer.recording.flush(), Written::Yes);
    assert_eq!(writer.messages, 0);
    let file = std::fs::read(&path).unwrap();
    assert!(file.windows(100).any(|bytes| bytes == [7; 100]));
}
