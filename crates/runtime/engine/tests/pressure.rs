//! Switches that flood, do not read, or read slowly, and their effect on others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bellrock_api::Version;
use bellrock_api::openflow::{ErrorCode, ErrorMessage, Message, ToSwitch, frame};
use bellrock_engine::WriteMode;
use peer::{PATIENCE, Peer, counter, is_wait, packet_in, sequence_of, start, until};

/// Sends packet_ins without pause, and reads and counts the answers, until it is stopped.
struct Flooder {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    stream: TcpStream,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Flooder {
    fn start(peer: Peer, reads: bool) -> Flooder {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let chunk: Vec<u8> =
            (0..64).flat_map(|sequence| packet_in(peer.version, sequence, 256)).collect();
        let mut writing = peer.stream.try_clone().unwrap();
        let stopped = Arc::clone(&stop);
        let writer = std::thread::spawn(move || {
            // Fails when the controller or the test has closed the connection.
            while !stopped.load(Ordering::Relaxed) && writing.write_all(&chunk).is_ok() {}
        });
        let mut threads = vec![writer];
        let stream = peer.stream.try_clone().unwrap();
        if reads {
            let (stopped, answers) = (Arc::clone(&stop), Arc::clone(&answered));
            let mut peer = peer;
            threads.push(std::thread::spawn(move || {
                while let Some(message) = peer.message() {
                    if sequence_of(&message).is_some() {
                        answers.fetch_add(1, Ordering::Relaxed);
                    }
                    if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                }
                // The test shuts the connection down first.
                assert!(stopped.load(Ordering::Relaxed), "closed by the controller");
            }));
        }
        Flooder { stop, answered, stream, threads }
    }

    fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.stream.shutdown(Shutdown::Write);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_flooding_switch_leaves_another_of_its_worker_its_turns() {
    let engine = start(1, |_| {});
    let mut quiet = Peer::up(&engine, Version::V1_3, 1);
    let flooder = Flooder::start(Peer::up(&engine, Version::V1_3, 2), true);
    until("the flood runs", || flooder.answered() > 1000);
    let before = flooder.answered();
    let pings = 500;
    for sequence in 0..pings {
        quiet.ping(sequence);
    }
    // The number of reads of each depends on the scheduler. That both progress does not.
    let answered = flooder.answered() - before;
    assert!(answered > pings, "the flooder got {answered} answers meanwhile");
    flooder.stop();
}

#[test]
fn two_flooding_switches_get_on_alike() {
    let engine = start(1, |_| {});
    let peers: Vec<Peer> = (1..=2).map(|dpid| Peer::up(&engine, Version::V1_0, dpid)).collect();
    let flooders: Vec<Flooder> = peers.into_iter().map(|peer| Flooder::start(peer, true)).collect();
    until("both flood", || flooders.iter().all(|flooder| flooder.answered() > 2000));
    let before: Vec<u64> = flooders.iter().map(Flooder::answered).collect();
    let answered = |place: usize| flooders[place].answered() - before[place];
    until("much is answered", || answered(0) + answered(1) > 50_000);
    let (one, other) = (answered(0), answered(1));
    assert!(one.min(other) > (one + other) / 20, "{one} answers for one, {other} for the other");
    flooders.into_iter().for_each(Flooder::stop);
}

#[test]
fn a_switch_that_takes_no_bytes_is_closed_and_others_go_on() {
    let engine = start(1, |settings| {
        settings.worker.limits.stalled = Duration::from_millis(300);
        settings.worker.limits.high_water_bytes = 64 * 1024;
    });
    let mut quiet = Peer::up(&engine, Version::V1_3, 1);
    let stuck = Peer::connect_narrow(engine.addresses()[0], Version::V1_3, 2).come_up(&engine);
    let flooder = Flooder::start(stuck, false);
    let mut pings = 0;
    until("the stalled switch is closed", || {
        pings += 1;
        quiet.ping(pings);
        counter(&engine, "stalled_closes") == 1
    });
    assert!(counter(&engine, "pauses") > 0, "it was not read while much waited for it");
    assert!(pings > 1);
    quiet.ping(0);
    let status = engine.monitor().status();
    assert_eq!((status.connections, status.switches), (1, 1));
    // It is cut off although it still reads nothing: its writer fails.
    for thread in flooder.threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_switch_that_takes_few_bytes_is_slow_and_not_stalled() {
    // The reader would have to be delayed for all of this time to look stalled.
    let limit = Duration::from_secs(3);
    let engine = start(1, |settings| {
        settings.worker.limits.stalled = limit;
        settings.worker.limits.high_water_bytes = 64 * 1024;
    });
    let peer = Peer::connect_narrow(engine.addresses()[0], Version::V1_3, 1).come_up(&engine);
    let mut reading = peer.stream.try_clone().unwrap();
    let flooder = Flooder::start(peer, false);
    until("it is paused", || counter(&engine, "pauses") > 0);
    // Twice the limit without a byte, but with far fewer bytes than wait for it. So few that the
    // kernel never reports the socket as writable.
    let mut bytes = [0; 512];
    let start = Instant::now();
    while start.elapsed() < 2 * limit {
        if let Err(error) = reading.read(&mut bytes) {
            assert!(is_wait(&error), "{error}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(counter(&engine, "stalled_closes"), 0);
    assert_eq!(engine.monitor().status().switches, 1);
    let _ = reading.shutdown(Shutdown::Both);
    flooder.stop();
}

#[test]
fn the_error_of_a_failed_hello_arrives_whatever_else_is_on_its_way() {
    let engine = start(1, |_| {});
    for _ in 0..30 {
        let mut stream = TcpStream::connect(engine.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        // A hello with a bitmap of 1.4 only, and many useless bytes behind it.
        let mut bytes = vec![5, 0, 0, 16, 0, 0, 0, 9, 0, 1, 0, 8, 0, 0, 0, 1 << 5];
        bytes.resize(128 * 1024, 0x55);
        stream.write_all(&bytes).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        let (mut rest, mut errors) = (&received[..], 0);
        while let Some(message) = frame(rest).unwrap() {
            rest = &rest[message.bytes.len()..];
            if let Ok(Message { xid, body: ToSwitch::Error(error), .. }) =
                ToSwitch::decode(message.bytes)
            {
                let ErrorMessage::Standard { code, data } = error else { panic!("{error:?}") };
                assert_eq!((xid, code), (9, ErrorCode::HelloIncompatible));
                assert_eq!(&*data, b"OpenFlow 1.0 and 1.3 are spoken here");
                errors += 1;
            }
        }
        assert_eq!((errors, rest.len()), (1, 0));
    }
    until("all are counted", || counter(&engine, "protocol_closes") == 30);
}

#[test]
fn answers_are_written_together_or_each_for_itself() {
    let writes_of = |mode| {
        let engine = start(1, |settings| settings.worker.write = mode);
        let mut peer = Peer::up(&engine, Version::V1_3, 1);
        let before = counter(&engine, "writes");
        let batch: Vec<u8> =
            (0..100).flat_map(|sequence| packet_in(peer.version, sequence, 64)).collect();
        peer.stream.write_all(&batch).unwrap();
        for sequence in 0..100 {
            assert_eq!(peer.sequence(), sequence);
        }
        counter(&engine, "writes") - before
    };
    assert_eq!(writes_of(WriteMode::Immediate), 100);
    // One, unless the kernel delivered them in pieces.
    let together = writes_of(WriteMode::Coalesce);
    assert!(together <= 20, "{together} writes");
}

#[test]
fn garbage_and_silence_from_many_leave_a_switch_its_answers() {
    let engine = start(2, |settings| {
        // The real switch must come up within this, also on a busy machine.
        settings.worker.session.handshake_timeout = Duration::from_secs(5);
    });
    let mut quiet = Peer::up(&engine, Version::V1_3, 1);
    let address = engine.addresses()[0];
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
    for round in 0..200_u64 {
        let mut stream = TcpStream::connect(address).unwrap();
        let garbage: Vec<u8> = (0..512).map(|i| (round * 31 + i * 7) as u8 | 2).collect();
        let _ = stream.write_all(&garbage);
        quiet.ping(round);
    }
    until("the silent ones are closed", || {
        quiet.ping(0);
        counter(&engine, "handshake_timeouts") == 200
    });
    until("the others are closed", || engine.monitor().status().connections == 1);
    assert_eq!(counter(&engine, "protocol_closes"), 200);
    quiet.ping(1);
    drop(silent);
}
