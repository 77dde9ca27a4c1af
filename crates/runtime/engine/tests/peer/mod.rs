//! Switches that a test plays over real sockets, and helpers of the tests.
//!
//! A [`Peer`] is the switch's end of a session over a blocking socket. If an awaited message does
//! not come within [`PATIENCE`], the test fails.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "shared by tests that each use a part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bellrock_api::openflow::{
    Bytes, FromSwitch, List, MatchView, Message, MultipartReply, Out,
    PacketInMessage as WirePacketIn, PacketInReason, ReplyBody, RequestBody, ToSwitch,
};
use bellrock_api::runtime::DynApp;
use bellrock_api::{
    App, Dpid, Handler, Network, PacketIn, Port, Result, Switch, SwitchInfo, Verdict, Version,
};
use bellrock_engine::session::{SwitchDescription, Versions, switch};
use bellrock_engine::{Engine, EngineSettings, Pinning};

/// Time limit of every wait, far more than needed on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Receive buffer of a narrow peer.
const NARROW_BYTES: usize = 8 * 1024;

/// Maximum time of one read of a socket, before other work is checked.
const READ_WAIT: Duration = Duration::from_millis(20);

/// Answers each packet with a packet_out of the same bytes.
pub struct Answer;

impl App for Answer {
    type Handler = Answer;

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Answer {
        Answer
    }
}

impl Handler for Answer {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        switch.packet_out(packet, Port::FLOOD)?;
        Ok(Verdict::Consume)
    }
}

/// Starts an engine on a free port of 127.0.0.1, with an app that answers packets. Its threads are
/// not pinned: many tests run at a time.
pub fn start(workers: usize, change: impl FnOnce(&mut EngineSettings)) -> Engine {
    start_with(workers, vec![Box::new(Answer)], change)
}

pub fn start_with(
    workers: usize,
    apps: Vec<Box<dyn DynApp>>,
    change: impl FnOnce(&mut EngineSettings),
) -> Engine {
    let mut settings = EngineSettings {
        listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        workers,
        pin: Pinning::None,
        ..EngineSettings::default()
    };
    change(&mut settings);
    Engine::start(&settings, apps).unwrap()
}

/// Waits until `done`.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sum of a counter of all workers.
pub fn counter(engine: &Engine, name: &str) -> u64 {
    counters(engine, name).iter().sum()
}

/// A counter of each worker.
pub fn counters(engine: &Engine, name: &str) -> Vec<u64> {
    let of = |counters: Vec<(&'static str, u64)>| {
        counters.iter().find(|(its, _)| *its == name).unwrap_or_else(|| panic!("no {name}")).1
    };
    engine.monitor().worker_counters().into_iter().map(of).collect()
}

/// A switch.
pub struct Peer {
    pub stream: TcpStream,
    pub version: Version,
    session: switch::SwitchSession,
    out: Out,
    inbox: Vec<u8>,
    /// Messages that the session leaves to the switch.
    messages: VecDeque<Vec<u8>>,
    /// Whether the controller has closed the connection.
    pub closed: bool,
}

impl Peer {
    /// Connects and sends a hello. Reads nothing yet.
    pub fn connect(address: SocketAddr, version: Version, dpid: u64) -> Peer {
        Peer::greet(TcpStream::connect(address).unwrap(), version, dpid)
    }

    /// The same with a small receive buffer, so that few bytes are in flight when it does not read.
    pub fn connect_narrow(address: SocketAddr, version: Version, dpid: u64) -> Peer {
        Peer::connect_buffered(NARROW_BYTES, address, version, dpid)
    }

    /// The same with a receive buffer of `bytes`.
    pub fn connect_buffered(
        bytes: usize,
        address: SocketAddr,
        version: Version,
        dpid: u64,
    ) -> Peer {
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(address),
            socket2::Type::STREAM,
            None,
        )
        .unwrap();
        socket.set_recv_buffer_size(bytes).unwrap();
        socket.connect(&address.into()).unwrap();
        Peer::greet(socket.into(), version, dpid)
    }

    fn greet(stream: TcpStream, version: Version, dpid: u64) -> Peer {
        stream.set_read_timeout(Some(READ_WAIT)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut out = Out::with_capacity(1 << 20);
        let description = SwitchDescription::new(dpid);
        let session =
            switch::SwitchSession::new(description, Versions::only(version), &mut out).unwrap();
        let mut peer = Peer {
            stream,
            version,
            session,
            out,
            inbox: Vec::new(),
            messages: VecDeque::new(),
            closed: false,
        };
        peer.flush();
        peer
    }

    /// Connects, and comes up.
    pub fn up(engine: &Engine, version: Version, dpid: u64) -> Peer {
        Peer::connect(engine.addresses()[0], version, dpid).come_up(engine)
    }

    pub fn come_up(mut self, engine: &Engine) -> Peer {
        let dpid = Dpid(self.session.description().datapath_id);
        until("a switch comes up", || {
            self.turn();
            let info = engine.network().switch(dpid);
            info.is_some_and(|info| info.peer == self.stream.local_addr().unwrap())
        });
        // First messages to the switch come before those that the test waits for.
        self.settle();
        self
    }

    /// Waits for the answer to a packet, and discards everything before it.
    fn settle(&mut self) {
        let mark = u64::MAX;
        self.packet_in(mark, 64);
        while self.sequence() != mark {}
    }

    /// Reads available bytes, and sends the session's answers. `false`: there was nothing.
    pub fn turn(&mut self) -> bool {
        let mut bytes = [0; 64 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.closed = true,
            Ok(n) => {
                self.inbox.extend_from_slice(&bytes[..n]);
                self.deal();
                return true;
            }
            Err(error) if is_wait(&error) => {}
            Err(_) => self.closed = true,
        }
        false
    }

    fn deal(&mut self) {
        let inbox = std::mem::take(&mut self.inbox);
        let mut used = 0;
        while let Some((n, event)) = self.session.next(&inbox[used..], &mut self.out).unwrap() {
            match event {
                switch::SwitchSessionEvent::OutFull => self.flush(),
                switch::SwitchSessionEvent::Malformed { error, .. } => {
                    panic!("the controller sent {error}")
                }
                switch::SwitchSessionEvent::Message {
                    xid,
                    body: ToSwitch::MultipartRequest(request),
                } if matches!(request.body, RequestBody::Flow(_)) => {
                    let reply = MultipartReply::of(ReplyBody::Flow(List::empty()));
                    let reply = FromSwitch::MultipartReply(reply);
                    self.session.send(xid, &reply, &mut self.out).unwrap();
                }
                switch::SwitchSessionEvent::Message { .. } => {
                    self.messages.push_back(inbox[used..used + n].to_vec());
                }
                _ => {}
            }
            used += n;
        }
        self.inbox = inbox[used..].to_vec();
        self.flush();
    }

    fn flush(&mut self) {
        // The controller has closed the connection.
        if self.stream.write_all(self.out.as_slice()).is_err() {
            self.closed = true;
        }
        self.out.clear();
    }

    /// The next message that the session leaves to the switch; `None` if the controller has closed
    /// the connection.
    pub fn message(&mut self) -> Option<Vec<u8>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            if self.closed {
                return None;
            }
            assert!(Instant::now() < deadline, "no message within {PATIENCE:?}");
            self.turn();
        }
    }

    /// The sequence number of the next packet_out; skips other messages.
    pub fn sequence(&mut self) -> u64 {
        loop {
            let message = self.message().unwrap_or_else(|| panic!("closed by the controller"));
            if let Some(sequence) = sequence_of(&message) {
                return sequence;
            }
        }
    }

    pub fn packet_in(&mut self, sequence: u64, len: usize) {
        let bytes = packet_in(self.version, sequence, len);
        self.stream.write_all(&bytes).unwrap();
    }

    /// Sends a packet_in and waits for its answer.
    pub fn ping(&mut self, sequence: u64) {
        self.packet_in(sequence, 64);
        assert_eq!(self.sequence(), sequence);
    }

    /// Waits until the controller closes the connection. Discards all messages until then.
    pub fn wait_closed(&mut self) {
        while self.message().is_some() {}
    }
}

/// Runs a switch's session in its own thread, until it is stopped.
pub struct Background {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Peer>,
}

impl Background {
    pub fn run(mut peer: Peer) -> Background {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) && !peer.closed {
                peer.turn();
            }
            peer
        });
        Background { stop, thread }
    }

    pub fn stop(self) -> Peer {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

pub fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A frame of `len` bytes, with a sequence number behind its Ethernet header.
pub fn frame(sequence: u64, len: usize) -> Vec<u8> {
    let mut frame = vec![0xa5; len];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    frame[14..22].copy_from_slice(&sequence.to_be_bytes());
    frame
}

/// An unbuffered packet_in with such a frame.
pub fn packet_in(version: Version, sequence: u64, len: usize) -> Vec<u8> {
    let frame = frame(sequence, len);
    let packet = WirePacketIn {
        buffer_id: None,
        total_len: len as u16,
        reason: PacketInReason::NoMatch,
        table: 0,
        cookie: if version.packet_in_has_cookie() { 0 } else { WirePacketIn::NO_COOKIE },
        matching: MatchView::port(Port(1)),
        data: Bytes(&frame),
    };
    let mut out = Out::with_capacity(len + 256);
    FromSwitch::PacketIn(packet).encode(version, 0, &mut out).unwrap();
    out.as_slice().to_vec()
}

/// The sequence number in a packet_out; `None` for other messages.
pub fn sequence_of(message: &[u8]) -> Option<u64> {
    match ToSwitch::decode(message).unwrap() {
        Message { body: ToSwitch::PacketOut(packet), .. } => {
            let frame = packet.data;
            assert!(frame[22..].iter().all(|byte| *byte == 0xa5), "a packet came back changed");
            Some(u64::from_be_bytes(frame[14..22].try_into().unwrap()))
        }
        _ => None,
    }
}
