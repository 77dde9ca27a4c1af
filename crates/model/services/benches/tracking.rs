//! Measures what discovery and host tracking add to a packet-in of the learning app.
//!
//! `valgrind --tool=callgrind --toggle-collect='*hot_loop*' PROGRAM ARGUMENTS` counts instructions.
//! `learning|services 1.0|1.3 exact|l2 [PACKETS]` handles `PACKETS` packets, without services
//! (`learning`) or with both (`services`). `announcements [SWITCHES] [PORTS]` measures the time of
//! announcements; each port receives those of another.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a benchmark, not a library")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bellrock_api::openflow::{
    Bytes, FixedStr, FromSwitch, List, MatchView, MultipartReply, Out, PacketInMessage,
    PacketInReason, ToSwitch, frame,
};
use bellrock_api::runtime::Chain;
use bellrock_api::{MacAddr, Needs, Port, PortDesc, ReplyBody, Version};
use bellrock_apps::{Learning, LearningSettings, MatchKind};
use bellrock_services::chain::{ServiceSettings, chain};
use bellrock_session::{SwitchDescription, Versions, switch};
use bellrock_tables::Budget;
use bellrock_worker::{
    ConnectionKey, Drive, Mailbox, ReadOutcome, SharedParts, SharedState, TaskWorker, Transport,
    Wake, Worker, WorkerSettings,
};

/// Hosts of the switch. All are known before the measurement.
const HOSTS: u32 = 1000;

/// Ports of the switch.
const PORTS: u32 = 4;

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
        buffer[..n].copy_from_slice(&rest[..n]);
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

fn mac(n: u32) -> [u8; 6] {
    let [a, b, c, d] = n.to_be_bytes();
    [2, 0, a, b, c, d]
}

/// Writes a TCP packet of 64 bytes, as the packet-ins of the studies' benchmarks carry.
fn packet(version: Version, source: u32, destination: [u8; 6], out: &mut Out) {
    let mut data = [0; 64];
    data[..6].copy_from_slice(&destination);
    data[6..12].copy_from_slice(&mac(source));
    data[12..34].copy_from_slice(&[
        0x08, 0x00, 0x45, 0, 0, 50, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    data[34..38].copy_from_slice(&[0x12, 0x34, 0, 80]);
    data[46] = 0x50;
    packet_in(version, 1 + source % PORTS, Some(source + 1), &data, out);
}

fn packet_in(version: Version, port: u32, buffer_id: Option<u32>, data: &[u8], out: &mut Out) {
    let packet = PacketInMessage {
        buffer_id,
        total_len: data.len() as u16,
        reason: PacketInReason::NoMatch,
        table: 0,
        cookie: if version.packet_in_has_cookie() { 0 } else { PacketInMessage::NO_COOKIE },
        matching: MatchView::port(Port(port)),
        data: Bytes(data),
    };
    FromSwitch::PacketIn(packet).encode(version, 0, out).unwrap();
}

fn port(number: u32) -> PortDesc {
    PortDesc::new(Port(number), MacAddr(mac(0xff00_0000 + number)), FixedStr::new("port"))
}

/// A controller with one worker and its own clock.
struct Controller {
    worker: Worker,
    tasks: TaskWorker,
    shared: Arc<SharedState>,
    clock: Arc<AtomicU64>,
}

impl Controller {
    fn new(chain: Chain) -> Self {
        let clock = Arc::new(AtomicU64::new(1000));
        let read = Arc::clone(&clock);
        let shared = SharedState::seeded(
            SharedParts {
                chain,
                mailboxes: vec![Mailbox::new(Box::new(Awake))],
                clock: Box::new(move || Duration::from_millis(read.load(Ordering::Relaxed))),
                wake_tasks: Box::new(Awake),
                admission: None,
            },
            1,
        );
        let tasks = shared.task_worker();
        let worker = Worker::new(0, WorkerSettings::default(), Arc::clone(&shared));
        Controller { worker, tasks, shared, clock }
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.clock.load(Ordering::Relaxed))
    }

    /// Advances the clock, and runs all tasks.
    fn pass(&mut self, time: Duration) {
        self.clock.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
        while self.tasks.run() {}
    }

    fn bring_up(
        &mut self,
        dpid: u64,
        ports: u32,
        version: Version,
        wire: &mut Wire,
    ) -> ConnectionKey {
        let (key, now) = (self.worker.next_key(), self.now());
        wire.keep = true;
        self.worker.open(SocketAddr::from(([127, 0, 0, 1], 1)), now, wire);
        let mut out = Out::with_capacity(1 << 16);
        let description = SwitchDescription {
            ports: (1..=ports).map(port).collect(),
            ..SwitchDescription::new(dpid)
        };
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
            let incoming = out.as_slice().to_vec();
            *wire = Wire { incoming, keep: true, ..Wire::default() };
            out.clear();
            while self.worker.read(key, now, wire) {}
        }
        wire.keep = false;
        key
    }

    fn read(&mut self, key: ConnectionKey, wire: &mut Wire) {
        let now = self.now();
        while self.worker.read(key, now, wire) {}
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["announcements", sizes @ ..] => {
            let size = |at: usize, or: u32| sizes.get(at).map_or(or, |text| text.parse().unwrap());
            announcements(size(0, 1000), size(1, 48));
        }
        [chain, version, matching, rest @ ..] => {
            let packets = rest.first().map_or(100_000, |text| text.parse().unwrap());
            let version = if *version == "1.0" { Version::V1_0 } else { Version::V1_3 };
            let matching = if *matching == "l2" { MatchKind::L2 } else { MatchKind::Exact };
            packet_ins(*chain == "services", version, matching, packets);
        }
        _ => eprintln!(
            "learning|services 1.0|1.3 exact|l2 [PACKETS], or announcements [SWITCHES] [PORTS]"
        ),
    }
}

fn packet_ins(services: bool, version: Version, matching: MatchKind, packets: u32) {
    let settings = LearningSettings { matching, ..LearningSettings::default() };
    let app = Learning::new(settings, &Budget::new(1 << 30)).with_seed(1);
    let always = if services { Needs::HOSTS } else { Needs::empty() };
    let chain =
        chain(vec![Box::new(app)], &ServiceSettings { always, ..ServiceSettings::default() });
    let mut controller = Controller::new(chain.unwrap());
    let mut wire = Wire::default();
    let key = controller.bring_up(7, PORTS, version, &mut wire);
    controller.pass(Duration::ZERO);
    controller.pass(Duration::from_secs(10));

    // Each host is learnt by a broadcast.
    let mut out = Out::with_capacity(256 * HOSTS as usize);
    for host in 0..HOSTS {
        packet(version, host, [0xff; 6], &mut out);
    }
    wire = Wire { incoming: out.as_slice().to_vec(), ..Wire::default() };
    controller.read(key, &mut wire);
    controller.pass(Duration::ZERO);
    if services {
        assert_eq!(controller.shared.network().hosts().load().len(), HOSTS as usize);
    }
    out.clear();
    (0..HOSTS).for_each(|host| packet(version, host, mac((host + 1) % HOSTS), &mut out));
    wire = Wire { incoming: out.as_slice().to_vec(), ..Wire::default() };
    // Runs once before, so that the measurement is of the steady state.
    controller.read(key, &mut wire);
    controller.pass(Duration::ZERO);

    let (start, rounds) = (Instant::now(), packets / HOSTS);
    hot_loop(&mut controller, key, rounds, &mut wire);
    let each = start.elapsed().as_nanos() as f64 / f64::from(rounds * HOSTS);
    println!("OpenFlow {version}, {matching:?}, services {services}: {each:.1} ns a packet-in");
}

/// The measured loop. Not inlined, so that callgrind can select it.
#[inline(never)]
fn hot_loop(controller: &mut Controller, key: ConnectionKey, rounds: u32, wire: &mut Wire) {
    for _ in 0..rounds {
        wire.at = 0;
        controller.read(key, wire);
    }
}

/// Measures five seconds of discovery: each port sends an announcement once, and receives one.
fn announcements(switches: u32, ports: u32) {
    let always = Needs::TOPOLOGY;
    let chain = chain(Vec::new(), &ServiceSettings { always, ..ServiceSettings::default() });
    let mut controller = Controller::new(chain.unwrap());
    let mut wires: Vec<(ConnectionKey, Wire)> = (1..=switches)
        .map(|dpid| {
            let mut wire = Wire::default();
            (controller.bring_up(dpid.into(), ports, Version::V1_3, &mut wire), wire)
        })
        .collect();
    controller.pass(Duration::ZERO);
    // The announcements at start are over.
    (0..5).for_each(|_| second(&mut controller, &mut wires));
    let links = controller.shared.network().topology().load().links.len();
    let start = Instant::now();
    (0..5).for_each(|_| second(&mut controller, &mut wires));
    let time = start.elapsed();
    println!(
        "{switches} switches with {ports} ports, {links} links: {:.1} ms a second",
        time.as_secs_f64() * 1000.0 / 5.0
    );
}

/// The time of switches and hosts is included, and small.
#[inline(never)]
fn second(controller: &mut Controller, wires: &mut [(ConnectionKey, Wire)]) {
    controller.pass(Duration::from_secs(1));
    let now = controller.now();
    for (_, wire) in wires.iter_mut() {
        (wire.keep, wire.at) = (true, 0);
        wire.incoming.clear();
        wire.kept.clear();
    }
    // One transport serves all timers. Its key selects the switch.
    let mut all = Switchboard { sent: vec![Vec::new(); wires.len()] };
    controller.worker.timers(now, &mut all);
    let mut out = Out::with_capacity(1 << 20);
    for (index, sent) in all.sent.iter().enumerate() {
        let next = (index + 1) % wires.len();
        let mut rest = sent.as_slice();
        while let Ok(Some(message)) = frame(rest) {
            rest = &rest[message.bytes.len()..];
            if let Ok(decoded) = ToSwitch::decode(message.bytes)
                && let ToSwitch::PacketOut(packet) = decoded.body
            {
                let port = u32::from_be_bytes(*packet.data.0[77..].first_chunk().unwrap());
                packet_in(Version::V1_3, port, None, packet.data.0, &mut out);
            }
        }
        wires[next].1.incoming.extend_from_slice(out.as_slice());
        out.clear();
    }
    for (key, wire) in wires.iter_mut() {
        while controller.worker.read(*key, now, wire) {}
    }
    controller.pass(Duration::ZERO);
}

struct Switchboard {
    sent: Vec<Vec<u8>>,
}

impl Transport for Switchboard {
    fn read(&mut self, _: ConnectionKey, _: &mut [u8]) -> ReadOutcome {
        ReadOutcome::Empty
    }
    fn send(&mut self, key: ConnectionKey, bytes: &[u8]) -> usize {
        self.sent[key].extend_from_slice(bytes);
        0
    }
    fn close(&mut self, _: ConnectionKey) {
        panic!("closed");
    }
}
