//! Cost of a packet-in at a worker with the learning app, without sockets: decode, decide, encode
//! the flow_mod.
//!
//! `cargo bench -p bellrock-worker --bench packet_in -- 1.3 exact 100000` prints nanoseconds.
//! Instructions per packet: run the same binary under `valgrind --tool=callgrind` with 100000 and
//! with 200000 packets, and divide the difference. `exact@lock_free`, `exact@mutex` and `exact@stm`
//! select global learning, with that kind of table. `exact+scraped` reads all counters after each
//! thousand packets, as a scrape of the metrics does. A fourth argument sets the number of workers,
//! each in its own thread, that share sixteen switches with that many packets each;
//! `scripts/hot-loop` compares their costs.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a benchmark, not a library")]

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bellrock_api::openflow::{
    Bytes, FromSwitch, List, MatchView, MultipartReply, Out, PacketInMessage, PacketInReason,
    ToSwitch,
};
use bellrock_api::runtime::DynApp;
use bellrock_api::{Port, ReplyBody, Version};
use bellrock_apps::global_learning::{GlobalLearning, GlobalTable};
use bellrock_apps::{Learning, LearningSettings, MatchKind};
use bellrock_session::{SwitchDescription, Versions, switch};
use bellrock_sharing::{InMutex, InTransactions};
use bellrock_tables::{Budget, SharedTable};
use bellrock_worker::{
    ConnectionKey, Drive, Mailbox, ReadOutcome, SharedParts, SharedState, Transport, Wake, Worker,
    WorkerQuery, WorkerSettings,
};

/// Number of hosts of a switch. All are learnt before the measurement.
const HOSTS: u32 = 1000;

/// Number of switches that workers share, if there are several workers. A constant: the positions
/// of hosts in a table are random, which makes some switches cheaper than others.
const SHARED_SWITCHES: usize = 16;

struct Awake;
impl Wake for Awake {
    fn wake(&self) {}
}

#[derive(Default)]
struct Wire {
    incoming: Vec<u8>,
    at: usize,
    sent: usize,
    kept: Vec<u8>,
    keep: bool,
}

impl Transport for Wire {
    fn read(&mut self, _: ConnectionKey, buffer: &mut [u8]) -> ReadOutcome {
        let rest = &self.incoming[self.at..];
        let n = rest.len().min(buffer.len());
        the_kernels_copy(&rest[..n], &mut buffer[..n]);
        self.at += n;
        if n == 0 { ReadOutcome::Empty } else { ReadOutcome::Bytes { n, has_more: true } }
    }
    fn send(&mut self, _: ConnectionKey, bytes: &[u8]) -> usize {
        self.sent += bytes.len();
        if self.keep {
            self.kept.extend(bytes);
        }
        0
    }
    fn close(&mut self, _: ConnectionKey) {
        panic!("closed");
    }
}

/// Stands for the kernel's copy. A named function, so that its cost can be left out. It copies in
/// registers, because callgrind counts each byte of memcpy's `rep movsb` as an instruction.
#[inline(never)]
fn the_kernels_copy(from: &[u8], to: &mut [u8]) {
    let (from, from_end) = from.as_chunks::<64>();
    let (to, to_end) = to.as_chunks_mut::<64>();
    for (from, to) in from.iter().zip(to) {
        *to = *std::hint::black_box(from);
    }
    to_end.copy_from_slice(from_end);
}

/// Address of a host of a switch, counted from 0.
fn mac(switch: u64, n: u32) -> [u8; 6] {
    let [a, b, c, d] = n.to_be_bytes();
    [2, switch as u8, a, b, c, d]
}

/// The datapath id of the first switch.
const FIRST_DPID: u64 = 7;

/// Makes the app: local learning, or global learning with this table.
fn app(table: Option<&str>, settings: LearningSettings) -> Box<dyn DynApp> {
    fn global<T: GlobalTable>(settings: LearningSettings, budget: &Budget) -> Box<dyn DynApp> {
        Box::new(GlobalLearning::<T>::new(settings, budget).with_seed(1))
    }
    let budget = Budget::new(1 << 30);
    match table {
        None => Box::new(Learning::new(settings, &budget).with_seed(1)),
        Some("lock_free") => global::<SharedTable>(settings, &budget),
        Some("mutex") => global::<InMutex>(settings, &budget),
        Some("stm") => global::<InTransactions>(settings, &budget),
        Some(other) => panic!("{other} is no way to keep a table"),
    }
}

/// A TCP packet in 64 bytes, as in the packet-ins of published benchmarks.
fn packet(version: Version, switch: u64, source: u32, destination: [u8; 6], out: &mut Out) {
    let mut data = [0; 64];
    data[..6].copy_from_slice(&destination);
    data[6..12].copy_from_slice(&mac(switch, source));
    data[12..34].copy_from_slice(&[
        0x08, 0x00, 0x45, 0, 0, 50, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    data[34..38].copy_from_slice(&[0x12, 0x34, 0, 80]);
    data[46] = 0x50;
    let packet = PacketInMessage {
        buffer_id: Some(source + 1),
        total_len: 64,
        reason: PacketInReason::NoMatch,
        table: 0,
        cookie: if version.packet_in_has_cookie() { 0 } else { PacketInMessage::NO_COOKIE },
        matching: MatchView::port(Port(1 + source % 4)),
        data: Bytes(&data),
    };
    FromSwitch::PacketIn(packet).encode(version, 0, out).unwrap();
}

fn bring_up(worker: &mut Worker, dpid: u64, version: Version, wire: &mut Wire) -> ConnectionKey {
    let (key, now) = (worker.next_key(), Duration::from_secs(1));
    wire.keep = true;
    worker.open(SocketAddr::from(([127, 0, 0, 1], 1)), now, wire);
    let mut out = Out::with_capacity(1 << 16);
    let description = SwitchDescription::new(dpid);
    let mut session =
        switch::SwitchSession::new(description, Versions::only(version), &mut out).unwrap();
    for _ in 0..10 {
        let heard = std::mem::take(&mut wire.kept);
        let mut rest = heard.as_slice();
        while let Some((n, event)) = session.next(rest, &mut out).unwrap() {
            if let switch::SwitchSessionEvent::Message {
                xid,
                body: ToSwitch::MultipartRequest(_),
            } = event
            {
                let flows = MultipartReply::of(ReplyBody::Flow(List::empty()));
                FromSwitch::MultipartReply(flows).encode(version, xid, &mut out).unwrap();
            }
            rest = &rest[n..];
        }
        *wire = Wire { incoming: out.as_slice().to_vec(), keep: true, ..Wire::default() };
        out.clear();
        while worker.read(key, now, wire) {}
    }
    assert!(worker.counters().switches_up.get() > 0);
    wire.keep = false;
    key
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let version = match arguments.first().map(String::as_str) {
        Some("1.0") => Version::V1_0,
        _ => Version::V1_3,
    };
    let kind = arguments.get(1).map_or("exact", String::as_str);
    let (kind, is_scraped) = match kind.strip_suffix("+scraped") {
        Some(kind) => (kind, true),
        None => (kind, false),
    };
    let (kind, table) = match kind.split_once('@') {
        Some((kind, table)) => (kind, Some(table)),
        None => (kind, None),
    };
    let matching = if kind == "l2" { MatchKind::L2 } else { MatchKind::Exact };
    let packets: u32 = arguments.get(2).map_or(Ok(100_000), |text| text.parse()).unwrap();
    let workers: usize = arguments.get(3).map_or(Ok(1), |text| text.parse()).unwrap();
    let switches = if arguments.len() > 3 { SHARED_SWITCHES } else { 1 };

    let settings = LearningSettings { matching, ..LearningSettings::default() };
    let apps = vec![app(table, settings)];
    let mailboxes = (0..workers).map(|_| Mailbox::new(Box::new(Awake))).collect();
    let shared = SharedState::new(SharedParts {
        chain: apps.into(),
        mailboxes,
        clock: Box::new(|| Duration::ZERO),
        wake_tasks: Box::new(Awake),
        admission: None,
    });
    let (each, sent) = std::thread::scope(|scope| {
        let run = |index| {
            let shared = Arc::clone(&shared);
            let its: Vec<u64> =
                (index..switches).step_by(workers).map(|n| FIRST_DPID + n as u64).collect();
            let scraped = is_scraped.then(|| Arc::clone(&shared));
            scope.spawn(move || {
                one_worker(index, shared, scraped.as_deref(), (version, packets), &its)
            })
        };
        let threads: Vec<_> = (0..workers).map(run).collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.fold((0.0, 0), |sum: (f64, usize), its| (sum.0.max(its.0), sum.1 + its.1))
    });
    println!("OpenFlow {version}, {matching:?}: {each:.1} ns a packet-in, {sent} bytes sent");
}

/// Returns the nanoseconds for each packet-in of one worker, and the number of bytes that it
/// answers.
fn one_worker(
    index: usize,
    shared: Arc<SharedState>,
    scraped: Option<&SharedState>,
    (version, packets): (Version, u32),
    dpids: &[u64],
) -> (f64, usize) {
    let mut worker = Worker::new(index, WorkerSettings::default(), shared);
    let results =
        dpids.iter().map(|dpid| one_switch(&mut worker, scraped, (version, packets), *dpid));
    let sum = results.fold((0.0, 0), |sum, its| (sum.0 + its.0, sum.1 + its.1));
    (sum.0 / dpids.len() as f64, sum.1)
}

fn one_switch(
    worker: &mut Worker,
    scraped: Option<&SharedState>,
    (version, packets): (Version, u32),
    dpid: u64,
) -> (f64, usize) {
    let mut wire = Wire::default();
    let key = bring_up(worker, dpid, version, &mut wire);

    // Each host is learnt by a broadcast. Then each packet goes to a known host.
    let mut out = Out::with_capacity(256 * HOSTS as usize);
    let switch = dpid - FIRST_DPID;
    (0..HOSTS).for_each(|host| packet(version, switch, host, [0xff; 6], &mut out));
    wire = Wire { incoming: out.as_slice().to_vec(), ..Wire::default() };
    let now = Duration::from_secs(2);
    while worker.read(key, now, &mut wire) {}
    out.clear();
    (0..HOSTS).for_each(|host| {
        packet(version, switch, host, mac(switch, (host + 1) % HOSTS), &mut out);
    });
    wire = Wire { incoming: out.as_slice().to_vec(), ..Wire::default() };

    // Not measured: the first flows of each host, after which global learning has cached them.
    for _ in 0..2 {
        wire.at = 0;
        while worker.read(key, now, &mut wire) {}
    }

    let start = Instant::now();
    match scraped {
        None => hot_loop(worker, key, packets / HOSTS, &mut wire),
        Some(shared) => {
            for _ in 0..packets / HOSTS {
                hot_loop(worker, key, 1, &mut wire);
                left_out_scrape(worker, shared, &mut wire);
            }
        }
    }
    let time = start.elapsed();
    (time.as_nanos() as f64 / f64::from(packets / HOSTS * HOSTS), wire.sent)
}

/// Reads the counters as a scrape of the metrics does, most of which is done outside the worker.
/// Its name keeps its own cost out of the count.
#[inline(never)]
fn left_out_scrape(worker: &mut Worker, shared: &SharedState, wire: &mut Wire) {
    let (reply, answers) = mpsc::sync_channel(1);
    shared.query(|| WorkerQuery::AppCounters(reply.clone()));
    while worker.mail(Duration::from_secs(2), wire) {}
    let of_apps = answers.recv().unwrap();
    let of_workers: Vec<_> = shared.counters().iter().flat_map(|its| its.iter()).collect();
    let of_switches = shared.switch_counters();
    assert!(!of_workers.is_empty() && !of_switches.is_empty());
    std::hint::black_box((of_apps, of_workers, of_switches));
}

/// The measured loop. Not inlined, so that callgrind can be limited to it.
#[inline(never)]
fn hot_loop(worker: &mut Worker, key: ConnectionKey, rounds: u32, wire: &mut Wire) {
    let now = Duration::from_secs(2);
    for _ in 0..rounds {
        wire.at = 0;
        while worker.read(key, now, wire) {}
    }
}
