//! A worker of raw connections, with wires in memory and a virtual clock.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{Out, ToSwitch, frame};
use bellrock_api::runtime::{OWNER_GONE, raw_owner};
use bellrock_api::{
    Dpid, EndReason, MAX_OWNER_BYTES, RawConnection, RawEvent, RawOwner, RawSendError, RawUp,
    SwitchIdentity, Version,
};
use bellrock_session::{SwitchDescription, SwitchSession, Versions};
use bellrock_worker::{
    Admission, AdmissionError, ConnectionKey, Drive, MAX_EARLY_BYTES, Mailbox, RawWorker,
    ReadOutcome, SharedParts, SharedState, Transport, Wake, WorkerSettings,
};

struct Awake;
impl Wake for Awake {
    fn wake(&self) {}
}

#[derive(Default)]
struct Wire {
    to_worker: VecDeque<u8>,
    to_switch: Vec<u8>,
    queued: usize,
    is_stuck: bool,
    is_closed: bool,
    hung_up: bool,
    resumed: usize,
}

#[derive(Default)]
struct Wires(BTreeMap<ConnectionKey, Wire>);

impl Transport for Wires {
    fn read(&mut self, key: ConnectionKey, buffer: &mut [u8]) -> ReadOutcome {
        let wire = self.0.get_mut(&key).unwrap();
        let n = buffer.len().min(wire.to_worker.len());
        buffer.iter_mut().zip(wire.to_worker.drain(..n)).for_each(|(to, from)| *to = from);
        match n {
            0 if wire.hung_up => ReadOutcome::Closed,
            0 => ReadOutcome::Empty,
            n => ReadOutcome::Bytes { n, has_more: n == buffer.len() },
        }
    }
    fn send(&mut self, key: ConnectionKey, bytes: &[u8]) -> usize {
        let wire = self.0.get_mut(&key).unwrap();
        wire.to_switch.extend(bytes);
        if wire.is_stuck {
            wire.queued += bytes.len();
        }
        wire.queued
    }
    fn close(&mut self, key: ConnectionKey) {
        self.0.get_mut(&key).unwrap().is_closed = true;
    }
    fn resume(&mut self, key: ConnectionKey) {
        self.0.get_mut(&key).unwrap().resumed += 1;
    }
}

/// A datapath id that nobody may speak for.
const FORBIDDEN: u64 = 0xbad;

struct NoBad;
impl Admission for NoBad {
    fn check(&self, dpid: Dpid, _: Option<&SwitchIdentity>) -> Result<(), AdmissionError> {
        if dpid == Dpid(FORBIDDEN) { Err(AdmissionError("it is bad".into())) } else { Ok(()) }
    }
    fn admit(&self, dpid: Dpid, identity: Option<&SwitchIdentity>) -> Result<(), AdmissionError> {
        self.check(dpid, identity)
    }
}

struct Lab {
    worker: RawWorker,
    wires: Wires,
    shared: Arc<SharedState>,
    owner: Option<RawOwner>,
    now: Duration,
    sessions: BTreeMap<ConnectionKey, (SwitchSession, Out)>,
}

impl Lab {
    fn new() -> Lab {
        let shared = SharedState::new(SharedParts {
            chain: Vec::new().into(),
            mailboxes: vec![Mailbox::new(Box::new(Awake))],
            clock: Box::new(|| Duration::ZERO),
            wake_tasks: Box::new(Awake),
            admission: Some(Arc::new(NoBad)),
        });
        let (owner, port) = raw_owner();
        let worker = RawWorker::new(0, WorkerSettings::default(), Arc::clone(&shared), port);
        let (wires, sessions) = (Wires::default(), BTreeMap::new());
        let (owner, now) = (Some(owner), Duration::from_secs(1));
        Lab { worker, wires, shared, owner, now, sessions }
    }

    fn connect(&mut self, version: Version, dpid: u64) -> ConnectionKey {
        let key = self.worker.next_key();
        self.wires.0.insert(key, Wire::default());
        self.worker.open(SocketAddr::from(([127, 0, 0, 1], 4000)), self.now, &mut self.wires);
        let mut out = Out::with_capacity(1 << 17);
        let session =
            SwitchSession::new(SwitchDescription::new(dpid), Versions::only(version), &mut out);
        self.sessions.insert(key, (session.unwrap(), out));
        key
    }

    fn wire(&mut self, key: ConnectionKey) -> &mut Wire {
        self.wires.0.get_mut(&key).unwrap()
    }

    /// The switch's session processes what came, and its answers go back.
    fn answer(&mut self, key: ConnectionKey) {
        let wire = self.wires.0.get_mut(&key).unwrap();
        let (session, out) = self.sessions.get_mut(&key).unwrap();
        let bytes = std::mem::take(&mut wire.to_switch);
        let mut rest = &bytes[..];
        while let Some((used, _)) = session.next(rest, out).unwrap() {
            rest = &rest[used..];
        }
        assert!(rest.is_empty());
        wire.to_worker.extend(out.as_slice());
        out.clear();
    }

    fn read(&mut self, key: ConnectionKey) {
        while self.worker.read(key, self.now, &mut self.wires) {}
    }

    fn up(&mut self, version: Version, dpid: u64) -> (ConnectionKey, RawUp) {
        let key = self.connect(version, dpid);
        self.handshake(key);
        let mut events = self.events();
        let Some(RawEvent::Up(up)) = events.pop() else { panic!("{events:?}") };
        assert!(events.is_empty());
        (key, up)
    }

    fn handshake(&mut self, key: ConnectionKey) {
        self.answer(key);
        self.read(key);
        self.answer(key);
        self.read(key);
    }

    fn send(&mut self, key: ConnectionKey, bytes: &[u8]) {
        self.wire(key).to_worker.extend(bytes);
        self.read(key);
    }

    fn events(&self) -> Vec<RawEvent> {
        self.owner.as_ref().unwrap().take(usize::MAX)
    }

    fn mail(&mut self) {
        while self.worker.mail(self.now, &mut self.wires) {}
    }

    fn sent(&mut self, key: ConnectionKey) -> Vec<u8> {
        std::mem::take(&mut self.wire(key).to_switch)
    }

    fn tick(&mut self, time: Duration) {
        self.now += time;
        self.worker.timers(self.now, &mut self.wires);
    }

    fn counter(&self, name: &str) -> u64 {
        self.worker.counters().iter().find(|(its, _)| *its == name).unwrap().1
    }
}

fn message(version: u8, kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    [&[version, kind][..], &length.to_be_bytes(), &xid.to_be_bytes(), body].concat()
}

fn bytes_of(events: &[RawEvent]) -> Vec<u8> {
    let bytes = events.iter().map(|event| match event {
        RawEvent::Messages { bytes, .. } => bytes.to_vec(),
        other => panic!("{other:?}"),
    });
    bytes.collect::<Vec<_>>().concat()
}

#[test]
fn the_owner_gets_hello_features_and_every_message_as_it_came() {
    for version in Version::ALL {
        let mut lab = Lab::new();
        let (key, up) = lab.up(version, 7);
        assert_eq!((up.switch.dpid, up.switch.version), (Dpid(7), version));
        assert_eq!((up.hello[1], up.features[1]), (0, 6));
        assert!(lab.sent(key).is_empty(), "no configuration, no table-miss entry, no question");
        // Messages of any type and version, some broken inside, cut at every byte.
        let wire = version.wire();
        let all = [
            message(wire, 10, 0, &[0xff; 3]),
            message(wire, 99, 5, &[1]),
            message(9, 2, 5, &[]),
            message(wire, 3, 0xdead_beef, b"mine"),
            message(wire, 10, 0, &vec![7; 60_000]),
        ]
        .concat();
        for cut in [1, 7, 8, 20, 500] {
            all.chunks(cut).for_each(|part| lab.send(key, part));
            assert_eq!(bytes_of(&lab.events()), all);
        }
        let sum = lab.shared.switch_counters();
        assert_eq!(sum[0].1.packet_ins, 10);
        assert_eq!(lab.shared.network().switches().iter().count(), 1, "operators see it");
        // Echoes are the session's.
        lab.send(key, &[message(wire, 2, 9, b"you?"), message(wire, 12, 0, &[])].concat());
        assert_eq!(bytes_of(&lab.events()), message(wire, 12, 0, &[]));
        assert_eq!(lab.sent(key), message(wire, 3, 9, b"you?"));
    }
}

#[test]
fn messages_of_the_owner_go_out_unchanged_and_in_order() {
    let mut lab = Lab::new();
    let (key, up) = lab.up(Version::V1_3, 7);
    let connection = up.connection;
    let batches: Vec<_> = (0..500_u32)
        .map(|n| [message(4, 14, n, &[1; 48]), message(4, 20, n << 24, &[])].concat())
        .collect();
    batches.iter().for_each(|batch| connection.send(batch).unwrap());
    assert!(connection.unsent() > 0);
    lab.mail();
    assert_eq!(lab.sent(key), batches.concat());
    assert_eq!(connection.unsent(), 0);
    assert_eq!(lab.shared.switch_counters()[0].1.flowmsgs_sent, 1000);
    assert_eq!(lab.counter("mail_in"), 500);
}

#[test]
fn nobody_else_writes_to_a_switch_of_an_owner() {
    let mut lab = Lab::new();
    let (key, _) = lab.up(Version::V1_3, 7);
    let refused = lab.shared.network().send(Dpid(7), &ToSwitch::BarrierRequest);
    assert!(matches!(refused, Err(bellrock_api::Error::UnknownSwitch(Dpid(7)))), "{refused:?}");
    lab.mail();
    assert!(lab.sent(key).is_empty());
}

#[test]
fn a_slow_owner_leaves_the_switch_unread_and_alive() {
    let mut lab = Lab::new();
    let (key, _up) = lab.up(Version::V1_3, 7);
    let (other, _up) = lab.up(Version::V1_3, 8);
    let flood = message(4, 10, 0, &[1; 1000]).repeat(4000);
    lab.send(key, &flood);
    let left = lab.wire(key).to_worker.len();
    assert!(left > flood.len() - MAX_OWNER_BYTES - 200_000, "{left}");
    assert!(lab.counter("pauses") > 0);
    // For minutes; the other one is dead by then.
    for _ in 0..300 {
        lab.tick(Duration::from_secs(1));
    }
    assert!(!lab.wire(key).is_closed && lab.wire(other).is_closed);
    let mut got = Vec::new();
    loop {
        let events = lab.events();
        let events: Vec<_> =
            events.into_iter().filter(|event| event.connection().dpid() == Dpid(7)).collect();
        if events.is_empty() {
            break;
        }
        got.extend(bytes_of(&events));
        let resumed = lab.wire(key).resumed;
        lab.mail();
        if lab.wire(key).resumed > resumed {
            lab.read(key);
        }
    }
    assert_eq!(got, flood);
}

#[test]
fn a_switch_that_takes_nothing_fills_up_for_its_owner_only() {
    let mut lab = Lab::new();
    let (key, up) = lab.up(Version::V1_3, 7);
    lab.wire(key).is_stuck = true;
    let big = message(4, 14, 1, &[0; 60_000]);
    let mut sent = 0;
    let refused = loop {
        match up.connection.send(&big) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        lab.mail();
    };
    assert!(matches!(refused, RawSendError::Full { dpid: Dpid(7), .. }), "{refused}");
    assert!(sent > 60, "{sent}");
    assert!(lab.events().is_empty());
    lab.wire(key).queued = 0;
    lab.wire(key).is_stuck = false;
    lab.worker.drained(key, 0, lab.now);
    assert!(matches!(&lab.events()[..], [RawEvent::Writable(_)]));
    up.connection.send(&big).unwrap();
}

#[test]
fn the_end_of_a_connection_is_its_last_event_and_that_of_the_owner_ends_all() {
    let mut lab = Lab::new();
    let (key, up) = lab.up(Version::V1_3, 7);
    lab.wire(key).to_worker.extend(message(4, 10, 0, &[]));
    lab.wire(key).hung_up = true;
    lab.read(key);
    lab.read(key);
    let events = lab.events();
    let [RawEvent::Messages { .. }, RawEvent::Down { why, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(why.reason, EndReason::ClosedByPeer);
    assert_eq!(up.connection.send(&[]), Err(RawSendError::Closed(Dpid(7))));
    // By order of the owner, behind what it sent.
    let (key, up) = lab.up(Version::V1_0, 7);
    up.connection.send(&message(1, 18, 5, &[])).unwrap();
    up.connection.close("enough of it").unwrap();
    lab.mail();
    assert_eq!(lab.sent(key), message(1, 18, 5, &[]));
    assert!(lab.wire(key).is_closed);
    assert!(
        matches!(&lab.events()[..], [RawEvent::Down { why, .. }] if &*why.text == "enough of it")
    );
    // The owner ends.
    let (key, _) = lab.up(Version::V1_3, 7);
    lab.owner = None;
    lab.mail();
    assert!(lab.wire(key).is_closed);
    let key = lab.connect(Version::V1_3, 8);
    lab.handshake(key);
    assert!(lab.wire(key).is_closed, "{OWNER_GONE}");
}

#[test]
fn datapath_ids_are_checked_and_claimed_before_the_owner_sees_a_switch() {
    let mut lab = Lab::new();
    let key = lab.connect(Version::V1_3, FORBIDDEN);
    lab.handshake(key);
    assert!(lab.wire(key).is_closed && lab.events().is_empty());
    assert_eq!(lab.counter("identity_refusals"), 1);
    // Another connection with the same id: the old one answers.
    let (old, _) = lab.up(Version::V1_3, 7);
    let new = lab.connect(Version::V1_3, 7);
    lab.handshake(new);
    lab.mail();
    lab.answer(old);
    lab.read(old);
    lab.mail();
    assert!(lab.wire(new).is_closed && !lab.wire(old).is_closed);
    assert!(lab.events().is_empty(), "the owner sees nothing of it");
    // It does not: it is replaced, and early messages of the new one are kept.
    let new = lab.connect(Version::V1_3, 7);
    lab.handshake(new);
    lab.mail();
    lab.send(new, &message(4, 10, 3, &[]));
    lab.tick(Duration::from_millis(1100));
    lab.mail();
    assert!(lab.wire(old).is_closed && !lab.wire(new).is_closed);
    let events = lab.events();
    let [RawEvent::Down { why, .. }, RawEvent::Up(_), RawEvent::Messages { bytes, .. }] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((why.reason, bytes.len()), (EndReason::Replaced, 8));
}

#[test]
fn messages_before_the_features_are_kept_and_bounded() {
    let mut lab = Lab::new();
    let key = lab.connect(Version::V1_3, 7);
    lab.answer(key);
    lab.read(key);
    let early = message(4, 10, 0, &[3; 1000]);
    lab.send(key, &early);
    lab.answer(key);
    lab.read(key);
    let events = lab.events();
    let [RawEvent::Up(_), RawEvent::Messages { bytes, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(&bytes[..], early);
    let key = lab.connect(Version::V1_3, 8);
    lab.answer(key);
    lab.read(key);
    lab.send(key, &early.repeat(MAX_EARLY_BYTES / early.len() + 1));
    assert!(lab.wire(key).is_closed);
    assert_eq!(lab.counter("protocol_closes"), 1);
}

#[test]
fn silence_is_asked_for_life_and_a_stop_sends_what_was_accepted() {
    let mut lab = Lab::new();
    let (key, up) = lab.up(Version::V1_3, 7);
    lab.tick(Duration::from_secs(16));
    let echo = lab.sent(key);
    assert_eq!(frame(&echo).unwrap().unwrap().header.kind, 2);
    let mut reply = echo;
    reply[1] = 3;
    lab.send(key, &reply);
    assert!(lab.events().is_empty(), "the owner sees no echo of the session");
    let connection: RawConnection = up.connection;
    connection.send(&message(4, 20, 1, &[])).unwrap();
    lab.worker.stop(lab.now, &mut lab.wires);
    assert_eq!(lab.sent(key), message(4, 20, 1, &[]));
    assert!(
        matches!(&lab.events()[..], [RawEvent::Down { why, .. }] if why.reason == EndReason::Stopped)
    );
    let Lab { worker, owner, .. } = lab;
    drop(worker);
    assert!(owner.unwrap().is_over());
}
