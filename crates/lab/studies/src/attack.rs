//! Hostile switches beside an honest load: what a controller must not let the others feel.
//!
//! An attack has a thread of its own, which plays all of its switches. It ends with the value that
//! [`Attack::start`] returned. It sends as much as the controller takes; its own socket buffers are
//! the only bound, as for a real switch with a loop behind it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bellrock_openflow::{
    Bytes, EncodeError, FixedStr, FromSwitch, List, MacAddr, MatchView, MultipartReply, Out,
    PacketInMessage, PacketInReason, Port, PortDesc, PortReason, PortState, PortStatus, ReplyBody,
    RequestBody, ToSwitch, Version, Versions,
};
use bellrock_session::SwitchDescription;
use bellrock_session::switch::{SwitchSession, SwitchSessionEvent};

use bellrock_bench::threads::lower_priority;

/// Datapath id of the first hostile switch, far above those of the load.
const FIRST_DPID: u64 = 0x10_0000;

/// Ports of each hostile switch.
const PORTS: u32 = 8;

/// Number of messages that are built anew at a time.
const MESSAGES: u32 = 512;

/// Pause after a round in which no socket took or brought a byte.
const PAUSE: Duration = Duration::from_micros(500);

/// Bytes of answers that wait for a controller that does not read. Above it, a switch reads no
/// more.
const MAX_WAITING_BYTES: usize = 4 << 20;

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// An attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// None: for comparison.
    None,
    /// A loop: the same broadcast frames again and again, from all ports.
    Storm,
    /// Each frame is of a host that nobody has seen.
    Hosts,
    /// Announcements (LLDP) of switches that do not exist.
    Lldp,
    /// Ports that go up and down.
    Flaps,
    /// Thousands of switches with ports that the controller announces itself to.
    Announcements,
}

impl Attack {
    /// All of them, in the order of the experiment.
    pub const ALL: [Attack; 6] = [
        Attack::None,
        Attack::Storm,
        Attack::Hosts,
        Attack::Lldp,
        Attack::Flaps,
        Attack::Announcements,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Attack::None => "no attack",
            Attack::Storm => "broadcast storm",
            Attack::Hosts => "new hosts",
            Attack::Lldp => "LLDP flood",
            Attack::Flaps => "port flaps",
            Attack::Announcements => "announcements",
        }
    }

    /// Number of its switches.
    #[must_use]
    pub const fn switches(self, quick: bool) -> u32 {
        match (self, quick) {
            (Attack::None, _) => 0,
            (Attack::Announcements, false) => 2000,
            (Attack::Announcements, true) => 500,
            (_, false) => 16,
            (_, true) => 4,
        }
    }

    /// Starts it, and waits until its switches are connected.
    ///
    /// # Errors
    /// A connection that fails, or that is not ready in time.
    pub fn start(
        self,
        target: SocketAddr,
        version: Version,
        switches: u32,
        patience: Duration,
    ) -> io::Result<RunningAttack> {
        let mut all = Vec::new();
        for i in 0..u64::from(switches) {
            all.push(HostileSwitch::connect(target, version, FIRST_DPID + i)?);
        }
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopping, counted) = (Arc::clone(&stop), Arc::clone(&sent));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let body = move || {
            lower_priority();
            let mut buffer = vec![0; READ_BYTES];
            let mut is_ready = Some(ready);
            let mut round = 0;
            while !stopping.load(Ordering::Relaxed) {
                let mut moved = 0;
                for switch in &mut all {
                    moved += switch.turn(&mut buffer)?;
                    if switch.session.is_ready() && switch.waiting.is_empty() {
                        switch.fill(self, round, version).map_err(io::Error::other)?;
                        counted.fetch_add(u64::from(switch.messages), Ordering::Relaxed);
                    }
                }
                round += 1;
                if all.iter().all(|switch| switch.session.is_ready())
                    && let Some(ready) = is_ready.take()
                {
                    let _ = ready.send(());
                }
                if moved == 0 {
                    std::thread::sleep(PAUSE);
                }
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().name(self.name().to_owned()).spawn(body)?;
        let running = RunningAttack { stop, sent, thread: Some(thread) };
        match is_ready.recv_timeout(patience) {
            Ok(()) => Ok(running),
            Err(_) => Err(running.end().err().unwrap_or_else(|| {
                io::Error::new(ErrorKind::TimedOut, "the hostile switches were not ready in time")
            })),
        }
    }
}

/// An attack that runs. Dropping it ends it.
#[derive(Debug)]
pub struct RunningAttack {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl RunningAttack {
    /// Number of its messages that were handed to sockets.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Ends it.
    ///
    /// # Errors
    /// Why it ended before: the controller closed a connection, or sent what no switch accepts.
    pub fn end(mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => Err(io::Error::other("the attack panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for RunningAttack {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct HostileSwitch {
    stream: TcpStream,
    session: SwitchSession,
    dpid: u64,
    out: Out,
    /// Received bytes that are no whole message yet.
    inbox: Vec<u8>,
    /// Bytes to write, from `written` on.
    waiting: Vec<u8>,
    written: usize,
    /// Number of messages in the last filling.
    messages: u32,
}

impl HostileSwitch {
    fn connect(target: SocketAddr, version: Version, dpid: u64) -> io::Result<Self> {
        let stream = TcpStream::connect(target)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut out = Out::with_capacity(128 << 10);
        let mut description = SwitchDescription::new(dpid);
        description.ports = (1..=PORTS).map(|number| port(dpid, number)).collect();
        let session = SwitchSession::new(description, Versions::only(version), &mut out)
            .map_err(io::Error::other)?;
        let (waiting, inbox) = (out.as_slice().to_vec(), Vec::new());
        out.clear();
        Ok(HostileSwitch { stream, session, dpid, out, inbox, waiting, written: 0, messages: 0 })
    }

    /// Reads, answers and writes what the socket allows. Returns the number of bytes moved.
    fn turn(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut moved = 0;
        if self.waiting.len() - self.written < MAX_WAITING_BYTES {
            match self.stream.read(buffer) {
                Ok(0) => {
                    let what = format!("the controller closed hostile switch {:x}", self.dpid);
                    return Err(io::Error::new(ErrorKind::UnexpectedEof, what));
                }
                Ok(n) => {
                    moved += n;
                    self.inbox.extend_from_slice(buffer.get(..n).unwrap_or(&[]));
                    self.answer()?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        match self.stream.write(self.waiting.get(self.written..).unwrap_or(&[])) {
            Ok(n) => {
                moved += n;
                self.written += n;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if self.written == self.waiting.len() {
            self.waiting.clear();
            self.written = 0;
        }
        Ok(moved)
    }

    /// Processes what was received.
    fn answer(&mut self) -> io::Result<()> {
        let inbox = std::mem::take(&mut self.inbox);
        let mut used = 0;
        loop {
            let rest = inbox.get(used..).unwrap_or(&[]);
            let next = self.session.next(rest, &mut self.out).map_err(io::Error::other)?;
            let Some((n, event)) = next else { break };
            used += n;
            match event {
                // Its tables are empty.
                SwitchSessionEvent::Message { xid, body: ToSwitch::MultipartRequest(request) }
                    if matches!(request.body, RequestBody::Flow(_)) =>
                {
                    let reply = MultipartReply::of(ReplyBody::Flow(List::empty()));
                    let reply = FromSwitch::MultipartReply(reply);
                    self.session.send(xid, &reply, &mut self.out).map_err(io::Error::other)?;
                }
                _ => {}
            }
            self.waiting.extend_from_slice(self.out.as_slice());
            self.out.clear();
        }
        self.inbox = inbox.get(used..).unwrap_or(&[]).to_vec();
        Ok(())
    }

    /// Appends the next messages of the attack.
    fn fill(&mut self, attack: Attack, round: u32, version: Version) -> Result<(), EncodeError> {
        self.messages = 0;
        if matches!(attack, Attack::None | Attack::Announcements) {
            return Ok(());
        }
        for i in 0..MESSAGES {
            let number = round.wrapping_mul(MESSAGES) + i;
            let port_number = 1 + i % PORTS;
            if attack == Attack::Flaps {
                let mut desc = port(self.dpid, port_number);
                if (number / PORTS).is_multiple_of(2) {
                    desc.state = PortState::LINK_DOWN;
                }
                let status = PortStatus { reason: PortReason::Modify, desc };
                FromSwitch::PortStatus(status).encode(version, 0, &mut self.out)?;
            } else {
                let frame = frame(attack, self.dpid, number);
                packet_in(version, port_number, &frame, &mut self.out)?;
            }
            self.waiting.extend_from_slice(self.out.as_slice());
            self.out.clear();
        }
        self.messages = MESSAGES;
        Ok(())
    }
}

fn port(dpid: u64, number: u32) -> PortDesc {
    let address = MacAddr::from_u64(0x0a00_0000_0000 | dpid << 8 | u64::from(number));
    PortDesc::new(Port(number), address, FixedStr::new("hostile"))
}

/// The frame with this number.
fn frame(attack: Attack, dpid: u64, number: u32) -> Vec<u8> {
    let host = match attack {
        Attack::Hosts => number,
        _ => number % PORTS,
    };
    let source = MacAddr::from_u64(0x0e00_0000_0000 | (dpid & 0xff) << 32 | u64::from(host)).0;
    let mut frame = Vec::with_capacity(64);
    match attack {
        Attack::Lldp => {
            frame.extend([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]);
            frame.extend(source);
            frame.extend([0x88, 0xcc]);
            // Chassis id (a MAC address), port id (text), time to live, end.
            frame.extend([0x02, 0x07, 0x04]);
            frame.extend(source);
            frame.extend([0x04, 0x05, 0x05]);
            frame.extend((number % 10_000).to_be_bytes());
            frame.extend([0x06, 0x02, 0x00, 0x78, 0x00, 0x00]);
        }
        _ => {
            frame.extend([0xff; 6]);
            frame.extend(source);
            frame.extend([0x08, 0x00]);
        }
    }
    frame.resize(64, 0);
    frame
}

fn packet_in(version: Version, port: u32, frame: &[u8], out: &mut Out) -> Result<(), EncodeError> {
    let packet = PacketInMessage {
        buffer_id: None,
        total_len: frame.len() as u16,
        reason: PacketInReason::NoMatch,
        table: 0,
        cookie: if version.packet_in_has_cookie() { 0 } else { PacketInMessage::NO_COOKIE },
        matching: MatchView::port(Port(port)),
        data: Bytes(frame),
    };
    FromSwitch::PacketIn(packet).encode(version, 0, out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use super::*;
    use bellrock_bench::{Responder, ResponderIdle, ResponderSettings};

    #[test]
    fn every_attack_connects_its_switches_and_sends_what_it_says() {
        for version in Version::ALL {
            for attack in Attack::ALL {
                let settings = ResponderSettings {
                    listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                    idle: ResponderIdle::Sleep,
                    core: None,
                    echo_only: false,
                };
                let responder = Responder::start(&settings).unwrap();
                let patience = Duration::from_secs(60);
                let running = attack.start(responder.address(), version, 3, patience).unwrap();
                let sends = !matches!(attack, Attack::None | Attack::Announcements);
                while sends && running.sent() < 10_000 {
                    std::thread::sleep(PAUSE);
                }
                running.end().unwrap();
            }
        }
    }

    #[test]
    fn hosts_are_new_in_each_frame_and_a_storm_repeats_its_own() {
        let sources = |attack| -> std::collections::BTreeSet<Vec<u8>> {
            (0..1000).map(|number| frame(attack, FIRST_DPID, number)[6..12].to_vec()).collect()
        };
        assert_eq!(sources(Attack::Hosts).len(), 1000);
        assert_eq!(sources(Attack::Storm).len(), PORTS as usize);
        assert_eq!(frame(Attack::Lldp, FIRST_DPID, 1)[12..14], [0x88, 0xcc]);
    }
}
