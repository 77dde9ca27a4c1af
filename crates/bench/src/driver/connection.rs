//! One switch of the load: its socket, its session, its packets in flight.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use bellrock_openflow::{Bytes, EncodeError, FromSwitch, MacAddr, Port, PortDesc, Version};
use bellrock_session::{CloseReason, SwitchDescription, SwitchSession, Versions};
use socket2::{Domain, Protocol, Socket, Type};

use super::desk::{CARRY_LEN, Desk, READ_LEN};
use crate::control::RunPhase;
use crate::load::LoadMode;
use crate::packet::UPLINK_PORT;
use crate::window::Window;

/// Size of the send buffer of a switch; the kernel doubles it. The default allows some megabytes.
/// The buffers of all switches then exceed the CPU cache, and the test would measure memory speed
/// instead of the controller.
const SEND_BUFFER_BYTES: usize = 32 * 1024;

/// Number of packet buffers that a buffering switch reports.
const N_BUFFERS: u32 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DriverStage {
    Closed,
    /// TCP connects.
    Connecting,
    /// The switch has sent its hello. The controller has to ask for the features.
    Greeting,
    /// The features reply is sent, followed by an echo request. The echo reply shows that the
    /// controller has read the features.
    Asked,
    /// The controller knows the switch.
    Up,
    /// The controller knows the destinations: it has answered the echo request behind their ARPs.
    Learnt,
}

/// State of a connection after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriverTurn {
    /// There may be more to read or to write at once.
    More,
    /// Nothing to do until the poller reports the socket.
    Idle,
}

/// Why a connection ended.
#[derive(Debug)]
pub(crate) enum ConnectionTrouble {
    /// TCP did not connect.
    Connect(io::Error),
    /// The controller closed the connection, or it broke.
    Closed(String),
    /// The controller violated the protocol.
    Protocol(CloseReason),
    /// A message could not be encoded.
    Encode(EncodeError),
}

impl From<EncodeError> for ConnectionTrouble {
    fn from(error: EncodeError) -> Self {
        ConnectionTrouble::Encode(error)
    }
}

pub(crate) struct DriverConnection {
    pub(crate) dpid: u32,
    pub(crate) stage: DriverStage,
    /// Time of the start of the connection, in nanoseconds.
    pub(crate) since_ns: u64,
    /// Waits for its turn in the queue.
    pub(crate) queued: bool,
    /// Number of flow set-ups or connections since the measurement began.
    pub(crate) done: u64,
    pub(crate) window: Window,
    /// Packets due in the current schedule, and how many of them (`scheduled`) were sent.
    pub(crate) due: u64,
    scheduled: u64,
    /// Index among the switches of its thread.
    place: usize,
    version: Version,
    buffered: bool,
    socket: Option<Socket>,
    session: Option<SwitchSession>,
    readable: bool,
    writable: bool,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// xid of the echo request that has no reply yet.
    echo: Option<u32>,
    /// Number of destinations announced.
    learnt: u32,
}

impl DriverConnection {
    pub(crate) fn new(
        dpid: u32,
        place: usize,
        version: Version,
        buffered: bool,
        in_flight: u32,
    ) -> Self {
        DriverConnection {
            dpid,
            stage: DriverStage::Closed,
            since_ns: 0,
            queued: false,
            done: 0,
            window: Window::new(in_flight),
            due: 0,
            scheduled: 0,
            place,
            version,
            buffered,
            socket: None,
            session: None,
            readable: false,
            writable: false,
            inbox: Vec::new(),
            outbox: Vec::new(),
            echo: None,
            learnt: 0,
        }
    }

    /// Starts to connect. The caller then watches the socket.
    pub(crate) fn connect(&mut self, target: SocketAddr, now_ns: u64) -> io::Result<&Socket> {
        let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
        match socket.connect(&target.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(IN_PROGRESS) => {}
            Err(error) => return Err(error),
        }
        self.stage = DriverStage::Connecting;
        self.since_ns = now_ns;
        Ok(self.socket.insert(socket))
    }

    /// Resets the connection, so that its port is free at once.
    pub(crate) fn reset(&mut self) {
        if let Some(socket) = self.socket.take() {
            // If it fails, the port is free a minute later.
            let _ = socket.set_linger(Some(Duration::ZERO));
        }
        self.stage = DriverStage::Closed;
        self.session = None;
        (self.readable, self.writable) = (false, false);
        self.inbox.clear();
        self.outbox.clear();
        self.echo = None;
    }

    pub(crate) fn ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
    }

    /// Starts a new schedule, of which no packet is sent yet.
    pub(crate) fn reschedule(&mut self) {
        (self.due, self.scheduled) = (0, 0);
    }

    /// Reads once and writes once.
    pub(crate) fn turn(
        &mut self,
        desk: &mut Desk,
        now_ns: u64,
    ) -> Result<DriverTurn, ConnectionTrouble> {
        match self.stage {
            DriverStage::Closed => return Ok(DriverTurn::Idle),
            DriverStage::Connecting if !self.writable => return Ok(DriverTurn::Idle),
            DriverStage::Connecting => self.connected(desk)?,
            _ => {}
        }
        if self.readable {
            self.read(desk, now_ns)?;
        }
        let more = self.write(desk, now_ns)?;
        Ok(if more || self.readable { DriverTurn::More } else { DriverTurn::Idle })
    }

    /// Sends hello if TCP is connected, or returns the error of the connect.
    fn connected(&mut self, desk: &mut Desk) -> Result<(), ConnectionTrouble> {
        if let Some(socket) = &self.socket
            && let Some(error) = socket.take_error().map_err(ConnectionTrouble::Connect)?
        {
            return Err(ConnectionTrouble::Connect(error));
        }
        let description = describe(self.dpid, self.version, self.buffered);
        let versions = Versions::only(self.version);
        desk.out.clear();
        self.session = Some(SwitchSession::new(description, versions, &mut desk.out)?);
        self.spill(desk);
        self.stage = DriverStage::Greeting;
        Ok(())
    }

    fn read(&mut self, desk: &mut Desk, now_ns: u64) -> Result<(), ConnectionTrouble> {
        let Some(socket) = &mut self.socket else { return Ok(()) };
        let carried = self.inbox.len();
        let mut receive = std::mem::take(&mut desk.receive);
        receive[..carried].copy_from_slice(&self.inbox);
        let read = socket.read(&mut receive[carried..carried + READ_LEN]);
        let result = match read {
            Ok(0) => Err(ConnectionTrouble::Closed(String::new())),
            Ok(read) => {
                // A short read has emptied the socket. The poller reports later data.
                self.readable = read == READ_LEN;
                desk.heard_ns = now_ns;
                desk.reads.calls += 1;
                desk.reads.bytes += read as u64;
                self.received(&receive[..carried + read], desk, now_ns)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(ConnectionTrouble::Closed(format!(" ({error})"))),
        };
        desk.receive = receive;
        result
    }

    /// Handles all whole messages, and keeps the rest.
    fn received(
        &mut self,
        bytes: &[u8],
        desk: &mut Desk,
        now_ns: u64,
    ) -> Result<(), ConnectionTrouble> {
        let used = self.messages(bytes, desk, now_ns)?;
        self.spill(desk);
        self.inbox.clear();
        self.inbox.extend_from_slice(&bytes[used..]);
        if self.inbox.len() >= CARRY_LEN {
            // The longest message fits, so the session would have taken one.
            return Err(ConnectionTrouble::Closed(String::from(" (a message that never ends)")));
        }
        Ok(())
    }

    /// Moves the session's output to the outbox, for the next write.
    pub(super) fn spill(&mut self, desk: &mut Desk) {
        self.outbox.extend_from_slice(desk.out.as_slice());
        desk.out.clear();
    }

    /// Returns the session. [`super::reply`] uses it.
    pub(super) fn session(&mut self) -> Option<&mut SwitchSession> {
        self.session.as_mut()
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Asks for an echo after the features reply. Its reply shows that the controller has read the
    /// features.
    pub(super) fn told_features(&mut self, desk: &mut Desk) -> Result<(), ConnectionTrouble> {
        if self.stage != DriverStage::Greeting {
            return Ok(());
        }
        self.stage = DriverStage::Asked;
        if desk.as_cbench {
            self.tell_destinations_at_once(desk);
        }
        self.ask_echo(desk)
    }

    fn ask_echo(&mut self, desk: &mut Desk) -> Result<(), ConnectionTrouble> {
        if let Some(session) = &mut self.session {
            let xid = session.next_xid();
            session.send(xid, &FromSwitch::EchoRequest(Bytes(&[])), &mut desk.out)?;
            self.echo = Some(xid);
        }
        Ok(())
    }

    pub(super) fn echo_came(&mut self, xid: u32) {
        if self.echo == Some(xid) {
            self.echo = None;
            self.stage = if self.stage == DriverStage::Asked {
                DriverStage::Up
            } else {
                DriverStage::Learnt
            };
        }
    }

    /// Writes the outbox, then the messages of the phase. Returns whether there is more to write at
    /// once.
    fn write(&mut self, desk: &mut Desk, now_ns: u64) -> Result<bool, ConnectionTrouble> {
        if !self.outbox.is_empty() {
            let outbox = std::mem::take(&mut self.outbox);
            let written = self.write_bytes(&outbox)?;
            self.outbox = outbox;
            self.outbox.drain(..written);
        }
        if !self.writable || !self.outbox.is_empty() {
            return Ok(false);
        }
        match desk.phase {
            RunPhase::Learn if self.stage == DriverStage::Up && self.echo.is_none() => {
                self.tell_destinations(desk)
            }
            RunPhase::Load | RunPhase::Measure if self.stage == DriverStage::Learnt => {
                self.send_packets(desk, now_ns)
            }
            _ => Ok(false),
        }
    }

    /// Queues an ARP from each destination directly behind the features, as cbench's switches do.
    /// They arrive before the controller has set the switch up, and it must not lose them.
    fn tell_destinations_at_once(&mut self, desk: &mut Desk) {
        self.spill(desk);
        let len = desk.template.arp().len();
        let Some(arp) = desk.arps.get_mut(..len) else { return };
        for index in self.learnt..desk.pattern.destinations() {
            let (port, mac) = desk.pattern.learnt(self.dpid, index);
            desk.template.patch_arp(arp, port, mac);
            self.outbox.extend_from_slice(arp);
        }
        self.learnt = desk.pattern.destinations();
    }

    /// Sends an ARP from each destination, followed by an echo request.
    fn tell_destinations(&mut self, desk: &mut Desk) -> Result<bool, ConnectionTrouble> {
        let len = desk.template.arp().len();
        let left = desk.pattern.destinations() - self.learnt;
        let burst = (left as usize).min(desk.arps.len() / len);
        for (index, arp) in (self.learnt..).zip(desk.arps.chunks_exact_mut(len)).take(burst) {
            let (port, mac) = desk.pattern.learnt(self.dpid, index);
            desk.template.patch_arp(arp, port, mac);
        }
        let sent = self.write_messages(&desk.arps[..burst * len], len)?;
        self.learnt += sent as u32;
        if self.learnt < desk.pattern.destinations() {
            return Ok(self.writable);
        }
        self.ask_echo(desk)?;
        self.spill(desk);
        Ok(self.writable)
    }

    fn send_packets(&mut self, desk: &mut Desk, now_ns: u64) -> Result<bool, ConnectionTrouble> {
        let room = match desk.mode {
            LoadMode::Rate(_) => self.window.room().min(self.due - self.scheduled),
            _ => self.window.room(),
        };
        let least = if desk.mode == LoadMode::Throughput { desk.least_burst } else { 1 };
        if room < least {
            return Ok(false);
        }
        let len = desk.template.len();
        let burst = (room as usize).min(desk.burst.len() / len);
        let first = self.window.next();
        let messages = &mut desk.burst[..burst * len];
        match desk.pattern.in_turn(self.dpid, first) {
            Some(packets) => desk.template.patch_all(messages, packets),
            None => {
                let packets = desk.pattern.packets(self.dpid, first..first + burst as u64);
                desk.template.patch_all(messages, packets);
            }
        }
        let sent = self.write_messages(&desk.burst[..burst * len], len)? as u64;
        desk.tally.sent += sent;
        if let LoadMode::Rate(_) = desk.mode {
            for index in self.scheduled..self.scheduled + sent {
                let due_ns = desk.schedule.packet_ns(self.place, index);
                desk.lateness.add(now_ns.saturating_sub(due_ns));
                self.window.sent(1, due_ns);
            }
            self.scheduled += sent;
        } else {
            self.window.sent(sent, now_ns);
        }
        Ok(self.writable && room - sent >= least)
    }

    /// Writes messages of equal length, as many as the kernel takes. The rest of the last one waits
    /// in the outbox. Returns how many were taken.
    fn write_messages(&mut self, messages: &[u8], len: usize) -> Result<usize, ConnectionTrouble> {
        let written = self.write_bytes(messages)?;
        let whole = written.div_ceil(len);
        self.outbox.extend_from_slice(&messages[written..whole * len]);
        Ok(whole)
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<usize, ConnectionTrouble> {
        let Some(socket) = &mut self.socket else { return Ok(0) };
        let mut written = 0;
        while self.writable && written < bytes.len() {
            match socket.write(&bytes[written..]) {
                Ok(n) => written += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ConnectionTrouble::Closed(format!(" ({error})"))),
            }
        }
        Ok(written)
    }
}

/// `EINPROGRESS`: the poller reports the connection when it is established.
const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

/// Description of a switch of the load.
fn describe(dpid: u32, version: Version, buffered: bool) -> SwitchDescription {
    let port = |number: u32| {
        PortDesc::new(
            Port(number),
            MacAddr([0x0e, 0, number as u8, 0, (dpid >> 8) as u8, dpid as u8]),
            bellrock_openflow::FixedStr::new(&format!("eth{number}")),
        )
    };
    SwitchDescription {
        version,
        n_buffers: if buffered { N_BUFFERS } else { 0 },
        // 1.0: bit 0 is output, the only action that the load's flows need.
        actions: 1,
        manufacturer: "Bellrock load generator".into(),
        ports: (1..=UPLINK_PORT).map(port).collect(),
        ..SwitchDescription::new(dpid.into())
    }
}
