//! No heap allocation per packet-in in the steady state, checked by a counting allocator.
//!
//! The mix: hits, floods, new hosts, evictions of old ones, hosts that move, messages split between
//! two reads, buffered packets, and unbuffered ones that are sent on whole.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bellrock_api::openflow::{
    Bytes, FromSwitch, MatchView, Out, PacketInMessage, PacketInReason, ToSwitch,
};
use bellrock_api::runtime::DynApp;
use bellrock_api::{Dpid, Port, Switches, Version};
use bellrock_apps::{Hub, Learning, LearningSettings, MatchKind};
use bellrock_session::{SwitchDescription, Versions, switch};
use bellrock_tables::Budget;
use bellrock_worker::{
    ConnectionKey, Drive, Mailbox, ReadOutcome, SharedParts, SharedState, Transport, Wake, Worker,
    WorkerQuery, WorkerSettings,
};

struct Awake;
impl Wake for Awake {
    fn wake(&self) {}
}

/// One connection. Its input is read in pieces of a fixed size; its output is counted, and kept
/// during the handshake.
struct OneWire<'a> {
    incoming: &'a [u8],
    read_bytes: usize,
    sent: usize,
    kept: Option<Vec<u8>>,
}

impl Transport for OneWire<'_> {
    fn read(&mut self, _: ConnectionKey, buffer: &mut [u8]) -> ReadOutcome {
        let n = self.read_bytes.min(self.incoming.len()).min(buffer.len());
        if n == 0 {
            return ReadOutcome::Empty;
        }
        let (now, later) = self.incoming.split_at(n);
        buffer[..n].copy_from_slice(now);
        self.incoming = later;
        ReadOutcome::Bytes { n, has_more: true }
    }
    fn send(&mut self, _: ConnectionKey, bytes: &[u8]) -> usize {
        self.sent += bytes.len();
        if let Some(kept) = &mut self.kept {
            kept.extend(bytes);
        }
        0
    }
    fn close(&mut self, _: ConnectionKey) {
        panic!("closed");
    }
}

/// Maximum number of hosts in the table. The mix has twice as many, so that old ones are evicted.
const HOSTS: usize = 256;

/// The packet-ins of the mix, `rounds` times.
fn mix(version: Version, rounds: usize) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut out = Out::with_capacity(1 << 17);
    let mut n = 0_u32;
    for _ in 0..rounds {
        for i in 0..1000_u32 {
            n += 1;
            let source = i % (HOSTS as u32 * 2);
            let destination = match i % 5 {
                0 => [0xff; 6],
                1 => mac(1_000_000 + i),
                _ => mac((i * 7) % (HOSTS as u32 * 2)),
            };
            // Every 97th packet of a host comes from another port: the host has moved.
            let port = 1 + source % 4 + u32::from(n.is_multiple_of(97));
            let payload = [n as u8; 1200];
            let mut data = vec![];
            data.extend(destination);
            data.extend(mac(source));
            data.extend([
                0x08, 0x00, 0x45, 0, 0, 60, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ]);
            data.extend([0x12, 0x34, 0, 53, 0, 40, 0, 0]);
            data.extend(&payload[..if i % 3 == 0 { 1200 } else { 40 }]);
            let buffer_id = (i % 2 == 0).then_some(n);
            let packet = PacketInMessage {
                buffer_id,
                total_len: data.len() as u16,
                reason: PacketInReason::NoMatch,
                table: 0,
                cookie: if version.packet_in_has_cookie() { 0 } else { PacketInMessage::NO_COOKIE },
                matching: MatchView::port(Port(port)),
                data: Bytes(&data),
            };
            out.clear();
            FromSwitch::PacketIn(packet).encode(version, 0, &mut out).unwrap();
            stream.extend(out.as_slice());
        }
    }
    stream
}

fn mac(n: u32) -> [u8; 6] {
    let [a, b, c, d] = n.to_be_bytes();
    [2, 0, a, b, c, d]
}

/// Plays the handshake, until the switch is up.
fn bring_up(worker: &mut Worker, version: Version) -> ConnectionKey {
    let mut wire = OneWire { incoming: &[], read_bytes: 4096, sent: 0, kept: Some(Vec::new()) };
    let key = worker.next_key();
    let now = Duration::from_secs(1);
    worker.open(SocketAddr::from(([127, 0, 0, 1], 1)), now, &mut wire);
    let mut out = Out::with_capacity(1 << 16);
    let description = SwitchDescription::new(7);
    let mut session =
        switch::SwitchSession::new(description, Versions::only(version), &mut out).unwrap();
    for _ in 0..10 {
        let heard = wire.kept.replace(Vec::new()).unwrap();
        let mut rest = heard.as_slice();
        while let Some((n, event)) = session.next(rest, &mut out).unwrap() {
            if let switch::SwitchSessionEvent::Message {
                xid,
                body: ToSwitch::MultipartRequest(_),
            } = event
            {
                // No flows of an earlier run.
                let flows = bellrock_api::openflow::MultipartReply::of(
                    bellrock_api::ReplyBody::Flow(bellrock_api::openflow::List::empty()),
                );
                FromSwitch::MultipartReply(flows).encode(version, xid, &mut out).unwrap();
            }
            rest = &rest[n..];
        }
        let said = out.as_slice().to_vec();
        out.clear();
        let kept = Some(Vec::new());
        let mut turn = OneWire { incoming: &said, read_bytes: 4096, sent: 0, kept };
        while worker.read(key, now, &mut turn) {}
        wire.kept = turn.kept;
    }
    assert_eq!(worker.counters().switches_up.get(), 1);
    key
}

/// A worker and its shared state.
fn worker(app: impl DynApp) -> (Worker, Arc<SharedState>) {
    let apps: Vec<Box<dyn DynApp>> = vec![Box::new(app)];
    let mailboxes = vec![Mailbox::new(Box::new(Awake))];
    let shared = SharedState::new(SharedParts {
        chain: apps.into(),
        mailboxes,
        clock: Box::new(|| Duration::ZERO),
        wake_tasks: Box::new(Awake),
        admission: None,
    });
    (Worker::new(0, WorkerSettings::default(), Arc::clone(&shared)), shared)
}

fn allocations_per_packet(version: Version, matching: MatchKind) {
    let settings = LearningSettings { matching, max_entries: HOSTS, ..Default::default() };
    let learning = Learning::new(settings, &Budget::new(1 << 30));
    let (mut worker, shared) = worker(learning);
    let key = bring_up(&mut worker, version);
    let stream = mix(version, 3);

    // The first rounds grow the table and the carry buffer.
    let now = Duration::from_secs(2);
    // A size that splits messages at varying positions.
    let mut wire = OneWire { incoming: &stream, read_bytes: 10_007, sent: 0, kept: None };
    while worker.read(key, now, &mut wire) {}
    let before = worker.counters().packet_ins.get();
    wire.incoming = &stream;
    let counted = allocation_counter::measure(|| while worker.read(key, now, &mut wire) {});
    let packets = worker.counters().packet_ins.get() - before;
    assert_eq!(packets, 3000);
    assert_eq!(counted.count_total, 0, "{version} {matching:?}");
    // The mix contained what it promises.
    assert!(wire.sent > 100 * 3000);
    let (reply, answer) = sync_channel(1);
    assert!(shared.mailbox(0).unwrap().query(WorkerQuery::AppCounters(reply)));
    worker.mail(now, &mut wire);
    let counters = answer.try_recv().unwrap();
    for wanted in ["flow_mods", "packet_outs", "floods", "evicted", "moves"] {
        let counted = counters.iter().find(|(_, name, _)| *name == wanted);
        assert!(counted.is_some_and(|(_, _, n)| *n > 10), "{wanted}: {counters:?}");
    }
}

#[test]
fn a_packet_in_allocates_nothing() {
    for version in Version::ALL {
        for matching in [MatchKind::L2, MatchKind::Exact] {
            allocations_per_packet(version, matching);
        }
    }
}

/// Each time that a switch comes up or changes a port, a new version of all switches is published.
#[test]
fn a_switch_that_comes_up_among_ten_thousand_copies_few_of_them() {
    const SWITCHES: u64 = 10_000;
    let (mut worker, shared) = worker(Hub);
    bring_up(&mut worker, Version::V1_3);
    let one = shared.network().switches().iter().next().unwrap().clone();
    let infos: Vec<_> = (0..SWITCHES)
        .map(|n| {
            let mut info = (*one).clone();
            info.dpid = Dpid(n.reverse_bits());
            Arc::new(info)
        })
        .collect();
    let mut switches = Switches::default();
    let counted = allocation_counter::measure(|| {
        for info in &infos {
            switches = switches.with(Arc::clone(info));
        }
    });
    assert_eq!(switches.len(), infos.len());
    // A path from the root: the tree is some 14 high, and balancing adds a few nodes.
    let each = counted.count_total / SWITCHES;
    assert!((1..64).contains(&each), "{each} allocations for each of {SWITCHES} switches");
    let bytes = counted.bytes_total / SWITCHES;
    assert!(bytes < 8 * 1024, "{bytes} bytes for each of {SWITCHES} switches");
}

#[test]
fn the_count_would_show_an_allocation() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(7))));
    assert_eq!(counted.count_total, 1);
}
