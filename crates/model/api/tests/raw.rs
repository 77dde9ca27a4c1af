//! The queue of a raw owner, and the checks of what it sends.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellrock_api::runtime::{RawLink, RawPort, raw_owner};
use bellrock_api::{
    ConnectionEnd, Dpid, EndReason, MAX_OWNER_BYTES, MAX_OWNER_BYTES_OF_ALL, MAX_UNSENT_BYTES,
    RawConnection, RawEvent, RawOwner, RawSendError, SwitchInfo, Version,
};

/// A worker that only notes.
#[derive(Clone, Default)]
struct Notes {
    posted: Arc<Mutex<Vec<u8>>>,
    resumed: Arc<AtomicUsize>,
    closed: Arc<Mutex<Vec<Box<str>>>>,
    is_full: Arc<AtomicUsize>,
}

impl RawLink for Notes {
    fn post(&self, messages: Box<[u8]>) -> bool {
        let fits = self.is_full.load(Ordering::Relaxed) == 0;
        if fits {
            self.posted.lock().unwrap().extend_from_slice(&messages);
        }
        fits
    }
    fn resume(&self) {
        self.resumed.fetch_add(1, Ordering::Relaxed);
    }
    fn close(&self, why: Box<str>) -> bool {
        self.closed.lock().unwrap().push(why);
        self.is_full.load(Ordering::Relaxed) == 0
    }
}

fn connect(port: &RawPort, dpid: u64, version: Version) -> (RawConnection, Notes) {
    let notes = Notes::default();
    let info = SwitchInfo::new(Dpid(dpid), version, ([127, 0, 0, 1], 4000).into());
    let connection = port.connection(dpid, &info, Box::new(notes.clone()));
    port.up(&connection, Arc::new(info), [0; 8].into(), [0; 32].into());
    (connection, notes)
}

fn message(version: u8, kind: u8, length: u16) -> Vec<u8> {
    let mut message = vec![0; usize::from(length).max(8)];
    (message[0], message[1]) = (version, kind);
    message[2..4].copy_from_slice(&length.to_be_bytes());
    message
}

fn take_all(owner: &RawOwner) -> Vec<RawEvent> {
    owner.take(usize::MAX)
}

#[test]
fn only_headers_are_checked_and_a_wrong_one_sends_nothing() {
    let (_owner, port) = raw_owner();
    let (connection, notes) = connect(&port, 1, Version::V1_3);
    let good = [message(4, 14, 9), message(4, 20, 8)].concat();
    connection.send(&good).unwrap();
    connection.send(&[]).unwrap();
    let after = |bad: Vec<u8>| connection.send(&[good.clone(), bad].concat()).unwrap_err();
    let offset = good.len();
    assert!(
        matches!(after(message(4, 14, 7)), RawSendError::Length { offset: o, .. } if o == offset)
    );
    assert_eq!(after(message(4, 14, 90)[..50].to_vec()), RawSendError::Unfinished { offset });
    assert_eq!(after(vec![4, 2, 0]), RawSendError::Unfinished { offset });
    let version = Version::V1_3;
    assert_eq!(after(message(1, 14, 8)), RawSendError::Version { offset, found: 1, version });
    for kind in [6, 8, 10, 11, 12, 19, 21, 23, 25, 27, 30, 255] {
        assert_eq!(after(message(4, kind, 8)), RawSendError::Kind { offset, kind, version });
    }
    for kind in [0, 1, 2, 3, 4, 5, 7, 9, 13, 14, 15, 16, 17, 18, 20, 22, 24, 26, 28, 29] {
        connection.send(&message(4, kind, 8)).unwrap();
    }
    let text = after(message(4, 10, 8)).to_string();
    assert!(text.contains("type 10, which no controller sends in 1.3"), "{text}");
    assert_eq!(notes.posted.lock().unwrap().len(), offset + 20 * 8);
    // The numbers of 1.0 are others.
    let (old, _) = connect(&port, 2, Version::V1_0);
    old.send(&message(1, 18, 8)).unwrap();
    assert!(matches!(old.send(&message(1, 19, 8)), Err(RawSendError::Kind { .. })));
}

#[test]
fn a_switch_that_takes_nothing_is_full_and_later_writable() {
    let (owner, port) = raw_owner();
    let (connection, notes) = connect(&port, 1, Version::V1_3);
    let big = message(4, 14, 65_535);
    let fits = MAX_UNSENT_BYTES / big.len();
    for _ in 0..fits {
        connection.send(&big).unwrap();
    }
    let unsent = fits * big.len();
    assert_eq!(connection.send(&big), Err(RawSendError::Full { dpid: Dpid(1), unsent }));
    let too_long = big.repeat(fits + 1);
    assert_eq!(connection.send(&too_long), Err(RawSendError::TooLong(too_long.len())));
    let _ = take_all(&owner);
    port.taken(&connection, unsent);
    port.backlog(&connection, unsent);
    assert!(take_all(&owner).is_empty(), "the kernel takes none");
    port.backlog(&connection, MAX_UNSENT_BYTES / 2);
    let events = take_all(&owner);
    assert!(matches!(&events[..], [RawEvent::Writable(of)] if of.id() == 1), "{events:?}");
    connection.send(&big).unwrap();
    // A full mailbox is the same to the owner.
    notes.is_full.store(1, Ordering::Relaxed);
    assert!(matches!(connection.send(&big), Err(RawSendError::Full { .. })));
    assert!(matches!(connection.close("why"), Err(RawSendError::Full { .. })));
    port.taken(&connection, big.len());
    port.backlog(&connection, 0);
    assert!(matches!(&take_all(&owner)[..], [RawEvent::Writable(_)]));
}

#[test]
fn a_slow_owner_pauses_one_switch_and_many_waiting_bytes_pause_all() {
    let (owner, port) = raw_owner();
    let (fast, fast_notes) = connect(&port, 1, Version::V1_3);
    let (quiet, quiet_notes) = connect(&port, 2, Version::V1_3);
    let _ = take_all(&owner);
    let chunk = vec![0_u8; 64 * 1024];
    let mut read = 0;
    while port.may_read(&fast) {
        port.messages(&fast, chunk.clone().into());
        read += chunk.len();
    }
    assert_eq!(read, MAX_OWNER_BYTES + chunk.len());
    assert!(!port.may_read(&fast) && port.may_read(&quiet));
    let mut left = read;
    while left > MAX_OWNER_BYTES / 2 {
        assert_eq!(fast_notes.resumed.load(Ordering::Relaxed), 0, "{left}");
        assert!(owner.next().is_some());
        left -= chunk.len();
    }
    assert_eq!(fast_notes.resumed.load(Ordering::Relaxed), 1);
    assert!(port.may_read(&fast));
    let _ = take_all(&owner);
    // Many switches together.
    let others: Vec<_> = (10..400).map(|dpid| connect(&port, dpid, Version::V1_3)).collect();
    for (other, _) in &others {
        while port.may_read(other) {
            port.messages(other, chunk.clone().into());
        }
    }
    assert!(!port.may_read(&quiet), "all wait: {MAX_OWNER_BYTES_OF_ALL}");
    let _ = take_all(&owner);
    assert_eq!(quiet_notes.resumed.load(Ordering::Relaxed), 1);
    assert!(others.iter().all(|(other, _)| port.may_read(other)));
}

#[test]
fn an_owner_pauses_a_switch_and_the_worker_hears_of_the_end_once() {
    let (owner, port) = raw_owner();
    let (connection, notes) = connect(&port, 1, Version::V1_3);
    let (other, _) = connect(&port, 2, Version::V1_3);
    connection.pause();
    connection.pause();
    assert!(!port.may_read(&connection) && port.may_read(&other));
    // Events that are taken do not end it.
    port.messages(&connection, message(4, 10, 100).into());
    assert_eq!(take_all(&owner).len(), 3);
    assert!(!port.may_read(&connection));
    assert_eq!(notes.resumed.load(Ordering::Relaxed), 0);
    connection.resume();
    connection.resume();
    assert!(port.may_read(&connection));
    assert_eq!(notes.resumed.load(Ordering::Relaxed), 1);
}

#[test]
fn an_owner_waits_or_is_rung_and_sees_the_end() {
    let (owner, port) = raw_owner();
    assert!(owner.next_within(Duration::from_millis(1)).is_none() && !owner.is_over());
    let rung = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&rung);
    owner.on_event(move || _ = counted.fetch_add(1, Ordering::Relaxed));
    let (connection, _) = connect(&port, 1, Version::V1_3);
    port.messages(&connection, [0; 8].into());
    assert_eq!(rung.load(Ordering::Relaxed), 1, "once while events wait");
    let up = owner.next_within(Duration::from_secs(60)).unwrap();
    assert!(matches!(&up, RawEvent::Up(up) if up.hello.len() == 8 && up.features.len() == 32));
    assert!(matches!(owner.next(), Some(RawEvent::Messages { bytes, .. }) if bytes.len() == 8));
    let waiting = std::thread::spawn(move || {
        let last = owner.next();
        (last, owner.next().is_none(), owner.is_over())
    });
    let workers = (port.clone(), port);
    let why = ConnectionEnd { reason: EndReason::ClosedByPeer, text: "gone".into() };
    workers.0.down(&connection, why);
    assert_eq!(connection.send(&[]), Err(RawSendError::Closed(Dpid(1))));
    assert!(connection.is_closed());
    drop(workers);
    let (last, ended, over) = waiting.join().unwrap();
    assert!(matches!(last, Some(RawEvent::Down { why, .. }) if &*why.text == "gone"));
    assert!(ended && over);
    assert_eq!(rung.load(Ordering::Relaxed), 3, "for the end of the connection and of the workers");
}

#[test]
fn the_end_of_the_owner_closes_its_connections() {
    let (owner, port) = raw_owner();
    let (connection, notes) = connect(&port, 1, Version::V1_3);
    let (ended, ended_notes) = connect(&port, 2, Version::V1_3);
    let why = ConnectionEnd { reason: EndReason::ClosedByPeer, text: "gone".into() };
    port.down(&ended, why);
    drop(owner);
    assert_eq!(notes.closed.lock().unwrap().len(), 1);
    assert!(ended_notes.closed.lock().unwrap().is_empty());
    assert!(!port.has_owner());
    // Nothing is kept any more.
    port.messages(&connection, vec![0; MAX_OWNER_BYTES + 1].into());
    assert!(port.may_read(&connection));
}
