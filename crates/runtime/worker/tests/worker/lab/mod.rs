//! Workers, with switches played by the tests, wires in memory, and a virtual clock.
#![allow(missing_docs, unreachable_pub, reason = "a test program has no interface")]
#![allow(clippy::unwrap_used, reason = "a test fails so")]

mod roles;

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellrock_api::openflow::{
    Bytes, FlowCommand, FlowStats, FromSwitch, Instructions, List, MatchView, Message, MessageKind,
    MultipartKind, MultipartReply, Out, PacketInMessage, PacketInReason, ReplyBody, RequestBody,
    ToSwitch, frame,
};
use bellrock_api::runtime::DynApp;
use bellrock_api::{
    Cookie, ErrorCode, ErrorMessage, FlowFlags, FlowRemoved, FlowRemovedReason, Match, Port,
    Version,
};
use bellrock_session::{SwitchDescription, Versions, switch};
use bellrock_worker::{
    ConnectionKey, Drive, LOAD_WINDOW, Mailbox, ReadOutcome, SharedParts, SharedState, TaskWorker,
    Transport, Wake, Worker, WorkerSettings,
};

pub use roles::FakeRoles;

/// What an app or a task has seen, in order. All clones share one list.
#[derive(Clone, Default)]
pub struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub fn note(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    /// Takes all notes since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Silences the messages of expected panics.
pub fn quietly<T>(body: impl FnOnce() -> T) -> T {
    static SILENCE: Mutex<()> = Mutex::new(());
    let _one_at_a_time = SILENCE.lock().unwrap();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let value = body();
    std::panic::set_hook(hook);
    value
}

/// Workers never sleep here.
struct Awake;
impl Wake for Awake {
    fn wake(&self) {}
}

#[derive(Default)]
struct Wire {
    switch: SwitchId,
    to_worker: VecDeque<u8>,
    to_switch: VecDeque<u8>,
    /// Number of bytes that wait because the switch reads none.
    queued: usize,
    stuck: bool,
    /// Whether the worker has closed it.
    closed: bool,
    /// Whether the switch has closed it.
    hung_up: bool,
    /// Length of each call of `send`.
    writes: Vec<usize>,
}

#[derive(Default)]
pub struct Wires(BTreeMap<ConnectionKey, Wire>, Vec<(SwitchId, ConnectionKey)>);

impl Transport for Wires {
    fn read(&mut self, key: ConnectionKey, buffer: &mut [u8]) -> ReadOutcome {
        let wire = self.0.get_mut(&key).unwrap();
        let n = buffer.len().min(wire.to_worker.len());
        for (byte, taken) in buffer.iter_mut().zip(wire.to_worker.drain(..n)) {
            *byte = taken;
        }
        match n {
            0 if wire.hung_up => ReadOutcome::Closed,
            0 => ReadOutcome::Empty,
            n => ReadOutcome::Bytes { n, has_more: n == buffer.len() },
        }
    }

    fn send(&mut self, key: ConnectionKey, bytes: &[u8]) -> usize {
        let wire = self.0.get_mut(&key).unwrap();
        wire.to_switch.extend(bytes);
        wire.writes.push(bytes.len());
        if wire.stuck {
            wire.queued += bytes.len();
        }
        wire.queued
    }

    fn close(&mut self, key: ConnectionKey) {
        self.0.get_mut(&key).unwrap().closed = true;
    }

    fn detach(&mut self, key: ConnectionKey) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(self.0.remove(&key).unwrap()))
    }

    fn attach(&mut self, key: ConnectionKey, channel: Box<dyn Any + Send>) {
        let wire = *channel.downcast::<Wire>().unwrap();
        self.1.push((wire.switch, key));
        self.0.insert(key, wire);
    }
}

/// A switch played by a test.
pub struct FakeSwitch {
    pub worker: usize,
    pub key: ConnectionKey,
    session: switch::SwitchSession,
    out: Out,
    /// Bytes from the worker that are not yet a whole message.
    inbox: Vec<u8>,
    /// Messages that the session left to the switch.
    pub received: Vec<Vec<u8>>,
    /// Whether it reads and answers nothing.
    pub silent: bool,
    /// Whether another connection has its key.
    gone: bool,
    /// Answer to a flow stats request; `None`: it delays the answer and the barrier behind it.
    pub flows: Option<Vec<u8>>,
    /// Kinds of requests that it ignores.
    pub ignored: Vec<MultipartKind>,
    /// The xids of those requests.
    pub ignored_xids: Vec<u32>,
    /// Packet-ins that it sends before it answers the first request after the features.
    early: Vec<u8>,
    /// Whether the next barrier is behind an unanswered request.
    holds_barrier: bool,
    /// The xid of the flow stats request.
    pub asked_for_flows: Option<u32>,
    /// The cookie in that request, and its mask.
    pub asked_for_cookie: (u64, u64),
    /// If set, it answers no barrier, and this lists the xids of those that came.
    pub ignored_barriers: Option<Vec<u32>>,
    /// It refuses flows that have one of these in the lower half of their cookies.
    pub refused: Vec<u64>,
    /// How it handles requests for roles.
    pub roles: FakeRoles,
}

pub struct Lab {
    pub now: Duration,
    pub workers: Vec<(Worker, Wires)>,
    pub shared: Arc<SharedState>,
    pub tasks: TaskWorker,
    clock: Arc<AtomicU64>,
    pub switches: Vec<FakeSwitch>,
}

pub type SwitchId = usize;

impl Lab {
    pub fn new(workers: usize, settings: WorkerSettings, apps: Vec<Box<dyn DynApp>>) -> Lab {
        let mailboxes = (0..workers).map(|_| Mailbox::new(Box::new(Awake))).collect();
        let now = Duration::from_secs(1);
        let clock = Arc::new(AtomicU64::new(now.as_nanos() as u64));
        let read = Arc::clone(&clock);
        let shared = SharedState::new(SharedParts {
            chain: apps.into(),
            mailboxes,
            clock: Box::new(move || Duration::from_nanos(read.load(Ordering::Relaxed))),
            wake_tasks: Box::new(Awake),
            admission: None,
        });
        let tasks = shared.task_worker();
        let make = |index| (Worker::new(index, settings, Arc::clone(&shared)), Wires::default());
        let workers = (0..workers).map(make).collect();
        Lab { now, workers, shared, tasks, clock, switches: Vec::new() }
    }

    /// One worker with the default settings.
    pub fn with_app(app: impl DynApp) -> Lab {
        Lab::new(1, WorkerSettings::default(), vec![Box::new(app)])
    }

    /// Connects a switch. No messages are exchanged yet.
    pub fn connect(
        &mut self,
        worker: usize,
        version: Version,
        switch: SwitchDescription,
    ) -> SwitchId {
        let (owner, wires) = &mut self.workers[worker];
        let key = owner.next_key();
        wires.0.insert(key, Wire { switch: self.switches.len(), ..Wire::default() });
        for old in self.switches.iter_mut().filter(|old| (old.worker, old.key) == (worker, key)) {
            old.gone = true;
        }
        let peer = SocketAddr::from(([127, 0, 0, 1], 40_000 + self.switches.len() as u16));
        owner.open(peer, self.now, wires);
        let mut out = Out::with_capacity(1 << 20);
        let session =
            switch::SwitchSession::new(switch, Versions::only(version), &mut out).unwrap();
        self.switches.push(FakeSwitch {
            worker,
            key,
            session,
            out,
            inbox: Vec::new(),
            received: Vec::new(),
            silent: false,
            gone: false,
            flows: Some(Vec::new()),
            ignored: Vec::new(),
            ignored_xids: Vec::new(),
            early: Vec::new(),
            holds_barrier: false,
            asked_for_flows: None,
            asked_for_cookie: (0, 0),
            ignored_barriers: None,
            refused: Vec::new(),
            roles: FakeRoles::default(),
        });
        self.switches.len() - 1
    }

    /// Whether the worker has configured the switch.
    pub fn is_configured(&self, id: SwitchId) -> bool {
        self.switches[id].session.config().miss_send_len == 0xffff
    }

    /// Connects a switch, and brings it up.
    pub fn up(&mut self, version: Version, dpid: u64) -> SwitchId {
        let id = self.connect(0, version, SwitchDescription::new(dpid));
        self.run();
        self.switches[id].received.clear();
        id
    }

    fn wire(&mut self, id: SwitchId) -> Option<&mut Wire> {
        let switch = &mut self.switches[id];
        let wire = self.workers[switch.worker].1.0.get_mut(&switch.key)?;
        (!switch.gone).then_some(wire)
    }

    /// Whether the worker has closed the connection.
    pub fn is_closed(&mut self, id: SwitchId) -> bool {
        self.wire(id).is_none_or(|wire| wire.closed)
    }

    /// Sets whether the switch stops reading.
    pub fn stuck(&mut self, id: SwitchId, stuck: bool) {
        let wire = self.wire(id).unwrap();
        wire.stuck = stuck;
    }

    pub fn hang_up(&mut self, id: SwitchId) {
        self.wire(id).unwrap().hung_up = true;
    }

    /// Length of each write to the switch since the last call.
    pub fn writes(&mut self, id: SwitchId) -> Vec<usize> {
        std::mem::take(&mut self.wire(id).unwrap().writes)
    }

    /// Takes the messages that a silent switch has not read: the kind and the xid of each.
    pub fn unread(&mut self, id: SwitchId) -> Vec<(MessageKind, u32)> {
        let unread: Vec<u8> = self.wire(id).unwrap().to_switch.drain(..).collect();
        let (mut rest, mut messages) = (unread.as_slice(), Vec::new());
        while let Some(message) = frame(rest).unwrap() {
            let decoded = ToSwitch::decode(message.bytes).unwrap();
            messages.push((decoded.body.kind(), decoded.xid));
            rest = &rest[message.bytes.len()..];
        }
        messages
    }

    /// The switch sends raw bytes.
    pub fn send_bytes(&mut self, id: SwitchId, bytes: &[u8]) {
        self.wire(id).unwrap().to_worker.extend(bytes);
    }

    /// The switch sends a message.
    pub fn send(&mut self, id: SwitchId, message: &FromSwitch<'_>) {
        let switch = &mut self.switches[id];
        let version = switch.session.version();
        let mut out = Out::with_capacity(1 << 17);
        message.encode(version, switch.session.next_xid(), &mut out).unwrap();
        let bytes = out.as_slice().to_vec();
        self.send_bytes(id, &bytes);
    }

    /// Sends the hello of a switch that is otherwise silent.
    pub fn hello(&mut self, id: SwitchId) {
        let hello = self.switches[id].out.as_slice().to_vec();
        self.switches[id].out.clear();
        self.send_bytes(id, &hello);
    }

    /// The switch reports these flows, as requested.
    pub fn report(&mut self, id: SwitchId, version: Version, flows: &[u8]) {
        let body = ReplyBody::decode_parts(version, MultipartKind::Flow, flows).unwrap();
        let xid = self.switches[id].asked_for_flows.unwrap();
        let mut out = Out::with_capacity(1 << 17);
        let reply = FromSwitch::MultipartReply(MultipartReply::of(body));
        reply.encode(version, xid, &mut out).unwrap();
        self.send_bytes(id, out.as_slice());
    }

    /// The switch sends a packet_in.
    pub fn packet_in(&mut self, id: SwitchId, port: u32, buffer_id: Option<u32>, data: &[u8]) {
        let packet = packet_in(port, buffer_id, data, &self.switches[id].session.version());
        self.send(id, &FromSwitch::PacketIn(packet));
    }

    /// The switch sends a packet_in right behind its features.
    pub fn early_packet_in(&mut self, id: SwitchId, port: u32, data: &[u8]) {
        let packet = packet_in(port, None, data, &self.switches[id].session.version());
        self.early_message(id, &FromSwitch::PacketIn(packet));
    }

    /// The same with any message.
    pub fn early_message(&mut self, id: SwitchId, message: &FromSwitch<'_>) {
        let switch = &mut self.switches[id];
        let mut out = Out::with_capacity(1 << 17);
        message.encode(switch.session.version(), 0, &mut out).unwrap();
        switch.early.extend(out.as_slice());
    }

    /// Runs until nothing more happens at this time.
    pub fn run(&mut self) {
        self.clock.store(self.now.as_nanos() as u64, Ordering::Relaxed);
        // Each step moves bytes. Conversations here end after a few.
        for _ in 0..50 {
            for id in 0..self.switches.len() {
                self.step_switch(id);
            }
            for (worker, wires) in &mut self.workers {
                let keys: Vec<ConnectionKey> = wires.0.keys().copied().collect();
                for key in keys {
                    let wire = &wires.0[&key];
                    if !wire.closed && (wire.hung_up || !wire.to_worker.is_empty()) {
                        while worker.read(key, self.now, wires) {}
                    }
                }
                while worker.mail(self.now, wires) {}
                worker.timers(self.now, wires);
            }
            self.tasks.run();
            self.follow();
        }
    }

    /// Updates the worker and key of each switch.
    fn follow(&mut self) {
        for (worker, (_, wires)) in self.workers.iter_mut().enumerate() {
            for (switch, key) in wires.1.drain(..) {
                (self.switches[switch].worker, self.switches[switch].key) = (worker, key);
            }
        }
    }

    /// Ends a window of time in which each worker was this busy, in thousandths.
    pub fn window(&mut self, busy: &[u32]) {
        self.now += LOAD_WINDOW;
        for ((worker, wires), busy) in self.workers.iter_mut().zip(busy) {
            worker.window(LOAD_WINDOW * *busy / 1000, LOAD_WINDOW, self.now, wires);
        }
        self.run();
    }

    /// A counter of each worker.
    pub fn counters(&self, name: &str) -> Vec<u64> {
        let of = |(worker, _): &(Worker, Wires)| {
            worker.counters().iter().find(|(its, _)| *its == name).unwrap().1
        };
        self.workers.iter().map(of).collect()
    }

    /// Advances the time in small steps, and runs after each.
    pub fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = end.min(self.now + Duration::from_millis(50));
            self.run();
        }
    }

    /// Takes the flow_mods that a switch received: command, cookie and priority.
    pub fn flow_mods(&mut self, id: SwitchId) -> Vec<(FlowCommand, u64, u16)> {
        let received = std::mem::take(&mut self.switches[id].received);
        let flow = |message: &Vec<u8>| match ToSwitch::decode(message).unwrap().body {
            ToSwitch::FlowMod(flow) => Some((flow.command, flow.cookie, flow.priority)),
            _ => None,
        };
        received.iter().filter_map(flow).collect()
    }

    fn step_switch(&mut self, id: SwitchId) {
        let switch = &mut self.switches[id];
        let Some(wire) = self.workers[switch.worker].1.0.get_mut(&switch.key) else { return };
        if switch.silent || switch.gone || wire.stuck {
            return;
        }
        wire.queued = 0;
        let came = !wire.to_switch.is_empty();
        switch.inbox.extend(wire.to_switch.drain(..));
        if came {
            self.workers[switch.worker].0.drained(switch.key, 0, self.now);
        }
        switch.read();
        let wire = self.workers[switch.worker].1.0.get_mut(&switch.key).unwrap();
        wire.to_worker.extend(switch.out.as_slice());
        switch.out.clear();
    }
}

impl FakeSwitch {
    fn read(&mut self) {
        let inbox = std::mem::take(&mut self.inbox);
        let mut used = 0;
        loop {
            if let Some(ignored) = &mut self.ignored_barriers
                && let Ok(Some(message)) = frame(&inbox[used..])
                && let Ok(Message { xid, body: ToSwitch::BarrierRequest, .. }) =
                    ToSwitch::decode(message.bytes)
            {
                ignored.push(xid);
                used += message.bytes.len();
                continue;
            }
            if let Ok(Some(message)) = frame(&inbox[used..])
                && let Ok(Message { xid, body, .. }) = ToSwitch::decode(message.bytes)
            {
                if let ToSwitch::MultipartRequest(_) = body {
                    self.out.append(&std::mem::take(&mut self.early)).unwrap();
                }
                let is_held = matches!(body, ToSwitch::BarrierRequest)
                    && std::mem::take(&mut self.holds_barrier);
                let is_ignored = matches!(body, ToSwitch::MultipartRequest(asked)
                    if self.ignored.contains(&asked.body.kind()));
                if is_ignored {
                    self.ignored_xids.push(xid);
                }
                if is_held || is_ignored {
                    used += message.bytes.len();
                    continue;
                }
            }
            let Ok(Some((n, event))) = self.session.next(&inbox[used..], &mut self.out) else {
                break;
            };
            if let switch::SwitchSessionEvent::Message { xid, body } = event {
                self.roles.answer(self.session.version(), xid, &body, &mut self.out);
                if let ToSwitch::FlowMod(flow) = body
                    && self.refused.contains(&(flow.cookie & !Cookie::MASK))
                {
                    let code = ErrorCode::FlowModTableFull;
                    let error = ErrorMessage::Standard { code, data: Bytes(&[]) };
                    let version = self.session.version();
                    FromSwitch::Error(error).encode(version, xid, &mut self.out).unwrap();
                }
                if let ToSwitch::MultipartRequest(request) = body
                    && let RequestBody::Flow(request) = request.body
                {
                    let version = self.session.version();
                    self.asked_for_flows = Some(xid);
                    self.asked_for_cookie = (request.cookie, request.cookie_mask);
                    self.holds_barrier = self.flows.is_none();
                    if let Some(flows) = &self.flows {
                        let body = ReplyBody::decode_parts(version, MultipartKind::Flow, flows);
                        let reply = FromSwitch::MultipartReply(MultipartReply::of(body.unwrap()));
                        reply.encode(version, xid, &mut self.out).unwrap();
                    }
                } else {
                    self.received.push(inbox[used..used + n].to_vec());
                }
            }
            used += n;
        }
        self.inbox = inbox[used..].to_vec();
    }

    /// Takes the received messages, as text.
    pub fn take(&mut self) -> Vec<String> {
        let received = std::mem::take(&mut self.received);
        received.iter().map(|message| describe(message)).collect()
    }
}

/// A flow_removed of a flow that was one second old.
pub fn flow_removed(cookie: u64, priority: u16, reason: FlowRemovedReason) -> FlowRemoved<'static> {
    FlowRemoved {
        cookie,
        priority,
        reason,
        table: 0,
        duration_sec: 1,
        duration_nsec: 0,
        idle_timeout: 0,
        hard_timeout: 0,
        packet_count: 0,
        byte_count: 0,
        matching: MatchView::port(Port(1)),
    }
}

/// An encoded report of flows: cookie, priority, and output port.
pub fn told(version: Version, flows: &[(u64, u16, Port)]) -> Vec<u8> {
    let matching = Match::any().in_port(Port(1));
    let actions: Vec<_> =
        flows.iter().map(|(_, _, port)| [bellrock_api::Action::output(*port)]).collect();
    let stats: Vec<_> = flows
        .iter()
        .zip(&actions)
        .map(|((cookie, priority, _), actions)| FlowStats {
            table: 0,
            duration_sec: 1,
            duration_nsec: 0,
            priority: *priority,
            idle_timeout: 0,
            hard_timeout: 0,
            flags: FlowFlags::empty(),
            cookie: *cookie,
            packet_count: 0,
            byte_count: 0,
            matching: (&matching).into(),
            instructions: Instructions::apply(actions),
        })
        .collect();
    let reply = MultipartReply::of(ReplyBody::Flow(List::of(&stats)));
    let mut out = Out::with_capacity(1 << 16);
    FromSwitch::MultipartReply(reply).encode(version, 0, &mut out).unwrap();
    MultipartReply::split(version, out.as_slice()).unwrap().2.to_vec()
}

/// A message, as text.
pub fn describe(message: &[u8]) -> String {
    match ToSwitch::decode(message) {
        Ok(Message { body: ToSwitch::FlowMod(flow), .. }) => {
            format!("flow_mod {:?} {} cookie={:x}", flow.command, flow.matching, flow.cookie)
        }
        Ok(Message { body: ToSwitch::PacketOut(packet), .. }) => {
            let outputs: Vec<String> =
                packet.actions.iter().map(|action| format!("{action:?}")).collect();
            format!(
                "packet_out buffer={:?} data={} {}",
                packet.buffer_id,
                packet.data.len(),
                outputs.join(",")
            )
        }
        Ok(Message { body, .. }) => format!("{:?}", body.kind()),
        Err(error) => format!("{error}"),
    }
}

pub fn packet_in<'a>(
    port: u32,
    buffer_id: Option<u32>,
    data: &'a [u8],
    version: &Version,
) -> PacketInMessage<'a> {
    PacketInMessage {
        buffer_id,
        total_len: data.len() as u16,
        reason: PacketInReason::NoMatch,
        table: 0,
        cookie: if *version == Version::V1_0 { PacketInMessage::NO_COOKIE } else { 0 },
        matching: MatchView::port(Port(port)),
        data: Bytes(data),
    }
}
