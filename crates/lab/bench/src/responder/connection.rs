//! One switch at the responder: its socket, and the handshake of a controller.

use std::io::{self, Write};
use std::net::TcpStream;

use bellrock_openflow::{
    ConfigFlags, EncodeError, FromSwitch, Hello, Message, MessageFrame, MessageKind, Out,
    SwitchConfig, ToSwitch, Version, Versions, frame,
};

use super::agreed;
use super::answer::Answerer;

/// Maximum length of an incomplete message, in bytes. A longer one closes the connection. The
/// longest message from a switch of the load is its description.
const MAX_CARRY: usize = super::CARRY_LEN;

/// State of a connection after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponderTurn {
    /// There may be more to read or to write at once.
    More,
    /// Nothing to do until the poller reports the socket.
    Idle,
    /// The connection has ended.
    Closed,
}

pub(super) struct ResponderConnection {
    stream: TcpStream,
    /// The version in its hello.
    version: Option<Version>,
    readable: bool,
    writable: bool,
    /// Waits for its turn in the queue.
    pub(super) queued: bool,
    /// The beginning of an incomplete message.
    carry: Vec<u8>,
    /// Answers that the kernel did not take yet. Nothing is read until it takes them.
    pending: Vec<u8>,
}

impl ResponderConnection {
    /// Takes an accepted connection and sends hello.
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let mut out = Out::with_capacity(64);
        Hello::write(Versions::ALL, 0, &mut out).map_err(io::Error::other)?;
        Ok(ResponderConnection {
            stream,
            version: None,
            readable: true,
            writable: true,
            queued: false,
            carry: Vec::new(),
            pending: out.as_slice().to_vec(),
        })
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
    }

    /// Writes pending answers, reads once, and answers the messages read.
    pub(super) fn turn(&mut self, input: &mut [u8], answerer: &mut Answerer) -> ResponderTurn {
        match self.try_turn(input, answerer) {
            Ok(state) => state,
            Err(_) => ResponderTurn::Closed,
        }
    }

    fn try_turn(&mut self, input: &mut [u8], answerer: &mut Answerer) -> io::Result<ResponderTurn> {
        self.flush()?;
        if !self.readable || !self.pending.is_empty() {
            return Ok(ResponderTurn::Idle);
        }
        let carried = self.carry.len();
        input[..carried].copy_from_slice(&self.carry);
        let room = &mut input[carried..carried + super::READ_LEN];
        // read(2), not recv(2): `/proc/PID/io` counts only read(2).
        let read = match rustix::io::read(&self.stream, room).map_err(io::Error::from) {
            Ok(0) => return Ok(ResponderTurn::Closed),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                return Ok(ResponderTurn::Idle);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Ok(ResponderTurn::More);
            }
            Err(error) => return Err(error),
        };
        // A short read has emptied the socket. The poller reports later data.
        self.readable = read == super::READ_LEN;
        let mut rest = &input[..carried + read];
        while !rest.is_empty() {
            let (used, answers) = answerer.answer(rest);
            if used > 0 {
                self.write(answers)?;
                rest = &rest[used..];
                continue;
            }
            let Some(message) = frame(rest).map_err(io::Error::other)? else { break };
            self.control(message)?;
            rest = &rest[message.bytes.len()..];
        }
        if rest.len() > MAX_CARRY {
            return Ok(ResponderTurn::Closed);
        }
        self.carry.clear();
        self.carry.extend_from_slice(rest);
        let more = self.readable && self.pending.is_empty();
        Ok(if more { ResponderTurn::More } else { ResponderTurn::Idle })
    }

    /// Answers any other message that is a request.
    fn control(&mut self, message: MessageFrame<'_>) -> io::Result<()> {
        let mut out = Out::with_capacity(message.bytes.len() + 64);
        self.control_to(message, &mut out).map_err(io::Error::other)?;
        self.write(out.as_slice())
    }

    fn control_to(&mut self, message: MessageFrame<'_>, out: &mut Out) -> Result<(), EncodeError> {
        let Some(version) = self.version else {
            // The first message is a hello.
            let version = agreed(message.header.version);
            self.version = Some(version);
            ToSwitch::FeaturesRequest.encode(version, message.header.xid, out)?;
            let config = SwitchConfig { flags: ConfigFlags::empty(), miss_send_len: 0xffff };
            return ToSwitch::SetConfig(config).encode(version, message.header.xid, out);
        };
        let kind = MessageKind::from_wire(version, message.header.kind);
        if kind != Some(MessageKind::EchoRequest) {
            return Ok(());
        }
        if let Ok(Message { body: FromSwitch::EchoRequest(payload), xid, .. }) =
            FromSwitch::decode(message.bytes)
        {
            ToSwitch::EchoReply(payload).encode(version, xid, out)?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while self.pending.is_empty() && self.writable && written < bytes.len() {
            match self.stream.write(&bytes[written..]) {
                Ok(n) => written += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.pending.extend_from_slice(&bytes[written..]);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.write(&pending)
    }
}
