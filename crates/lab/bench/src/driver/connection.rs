//! One switch of the load: its transport, its session, its packets in flight.

use std::io;
use std::net::SocketAddr;

use bellrock_openflow::{Bytes, EncodeError, FromSwitch, MacAddr, Port, PortDesc, Version};
use bellrock_session::{CloseReason, SwitchDescription, SwitchSession, Versions};
use socket2::Socket;

use super::desk::{CARRY_LEN, Desk};
use super::transport::{Received, Transport};
use crate::control::RunPhase;
use crate::load::LoadMode;
use crate::packet::UPLINK_PORT;
use crate::tls::LoadTls;
use crate::window::Window;

/// Number of packet buffers that a buffering switch reports.
const N_BUFFERS: u32 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DriverStage {
    Closed,
    /// TCP connects.
    Connecting,
    /// TLS does its handshake.
    Securing,
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
    transport: Option<Transport>,
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
            transport: None,
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
    pub(crate) fn connect(
        &mut self,
        target: SocketAddr,
        tls: Option<&LoadTls>,
        now_ns: u64,
    ) -> io::Result<&Socket> {
        let transport = Transport::connect(target, tls)?;
        self.stage = DriverStage::Connecting;
        self.since_ns = now_ns;
        Ok(self.transport.insert(transport).socket())
    }

    /// Resets the connection, so that its port is free at once.
    pub(crate) fn reset(&mut self) {
        if let Some(transport) = self.transport.take() {
            transport.reset();
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

    /// Goes on if TCP is connected, or returns the error of the connect.
    fn connected(&mut self, desk: &mut Desk) -> Result<(), ConnectionTrouble> {
        let Some(transport) = &mut self.transport else { return Ok(()) };
        if let Some(error) = transport.socket().take_error().map_err(ConnectionTrouble::Connect)? {
            return Err(ConnectionTrouble::Connect(error));
        }
        transport.begin().map_err(broken)?;
        self.stage = DriverStage::Securing;
        self.greet(desk)
    }

    /// Sends hello, if TLS has finished its handshake or there is none.
    fn greet(&mut self, desk: &mut Desk) -> Result<(), ConnectionTrouble> {
        let is_established = self.transport.as_ref().is_some_and(Transport::is_established);
        if self.stage != DriverStage::Securing || !is_established {
            return Ok(());
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
        let Some(transport) = &mut self.transport else { return Ok(()) };
        let carried = self.inbox.len();
        let mut receive = std::mem::take(&mut desk.receive);
        receive[..carried].copy_from_slice(&self.inbox);
        let read = transport.read(&mut desk.scratch, &mut receive[carried..]);
        let result = match read {
            Ok(Received { is_end: true, .. }) => Err(ConnectionTrouble::Closed(String::new())),
            Ok(Received { bytes, has_more, .. }) => {
                self.readable = has_more;
                desk.heard_ns = now_ns;
                desk.reads.calls += 1;
                desk.reads.bytes += bytes as u64;
                self.greet(desk)
                    .and_then(|()| self.received(&receive[..carried + bytes], desk, now_ns))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(broken(error)),
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
        if let Some(transport) = &mut self.transport
            && self.writable
        {
            self.writable = transport.flush().map_err(broken)?;
        }
        if !self.outbox.is_empty() {
            let outbox = std::mem::take(&mut self.outbox);
            let written = self.write_bytes(&mut desk.scratch, &outbox)?;
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
        let sent = self.write_messages(&mut desk.scratch, &desk.arps[..burst * len], len)?;
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
        let messages = &desk.burst[..burst * len];
        let sent = self.write_messages(&mut desk.scratch, messages, len)? as u64;
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
    fn write_messages(
        &mut self,
        scratch: &mut [u8],
        messages: &[u8],
        len: usize,
    ) -> Result<usize, ConnectionTrouble> {
        let written = self.write_bytes(scratch, messages)?;
        let whole = written.div_ceil(len);
        self.outbox.extend_from_slice(&messages[written..whole * len]);
        Ok(whole)
    }

    fn write_bytes(
        &mut self,
        scratch: &mut [u8],
        bytes: &[u8],
    ) -> Result<usize, ConnectionTrouble> {
        let Some(transport) = &mut self.transport else { return Ok(0) };
        if !self.writable {
            return Ok(0);
        }
        let written = transport.write(scratch, bytes).map_err(broken)?;
        self.writable = written == bytes.len();
        Ok(written)
    }
}

fn broken(error: io::Error) -> ConnectionTrouble {
    ConnectionTrouble::Closed(format!(" ({error})"))
}

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
