//! The bare echo loop: the minimum work of a program for idle switches.
//!
//! It has an epoll instance, a read, a write. It sends hello and asks for the features, so that the
//! switch takes it for a controller. It turns each echo request into its reply in the read buffer.
//! It ignores all other messages. A controller's cost of idle switches is compared with it.

use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellrock_openflow::{HEADER_LEN, Hello, Out, ToSwitch, Version};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::agreed;
use crate::error::BenchError;

/// Maximum number of bytes per read, and of a message.
const READ_LEN: usize = 64 * 1024;

/// Maximum number of sockets that one wait reports.
const EVENTS: usize = 256;

/// Token of the listener; switches have higher tokens.
const LISTENER: u64 = 0;

/// Message types in the header (1.0 §5.1, 1.3.5 §A.1).
const HELLO: u8 = 0;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;

pub(super) struct EchoLoop {
    listener: TcpListener,
    epoll: OwnedFd,
    stop: Arc<AtomicBool>,
    /// Switches by token minus one. A new switch takes the place of a closed one.
    switches: Vec<Option<EchoConnection>>,
    input: Vec<u8>,
}

struct EchoConnection {
    stream: TcpStream,
    /// The beginning of an incomplete message; almost always empty.
    carry: Vec<u8>,
}

impl EchoLoop {
    pub(super) fn new(listener: TcpListener, stop: Arc<AtomicBool>) -> Result<Self, BenchError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC);
        let epoll = epoll.map_err(BenchError::system("create a poller"))?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)
            .map_err(BenchError::system("watch the listener"))?;
        Ok(EchoLoop { listener, epoll, stop, switches: Vec::new(), input: vec![0; READ_LEN] })
    }

    /// Runs until it is stopped. A wait takes at most `wait`.
    pub(super) fn run(mut self, wait: Duration) -> Result<(), BenchError> {
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        while !self.stop.load(Ordering::Relaxed) {
            let ready: &[Event] = match epoll::wait(&self.epoll, &mut events, Some(&wait)) {
                Ok((ready, _)) => ready,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(BenchError::system("wait")(error)),
            };
            for event in ready {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    token => self.turn(token as usize - 1),
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), BenchError> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The connection ended before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(BenchError::System { what: "accept a switch", error }),
            };
            let place = self.switches.iter().position(Option::is_none);
            let place = place.unwrap_or(self.switches.len());
            self.watch(&stream, place).map_err(BenchError::system("take a switch"))?;
            let switch = Some(EchoConnection { stream, carry: Vec::new() });
            match self.switches.get_mut(place) {
                Some(free) => *free = switch,
                None => self.switches.push(switch),
            }
        }
    }

    fn watch(&self, stream: &TcpStream, place: usize) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let token = EventData::new_u64(place as u64 + 1);
        Ok(epoll::add(&self.epoll, stream, token, EventFlags::IN)?)
    }

    /// Reads once, and writes all replies with one write.
    fn turn(&mut self, place: usize) {
        let Some(free) = self.switches.get_mut(place) else { return };
        let Some(switch) = free else { return };
        match switch.turn(&mut self.input) {
            Ok(()) => {}
            // Later events for it in this batch find no switch.
            Err(_) => *free = None,
        }
    }
}

impl EchoConnection {
    /// Returns an error if the connection ends or breaks, or if the switch does not read its
    /// replies.
    fn turn(&mut self, input: &mut [u8]) -> io::Result<()> {
        let carried = self.carry.len();
        input[..carried].copy_from_slice(&self.carry);
        // read(2), not recv(2): `/proc/PID/io` counts only read(2).
        let read = rustix::io::read(&self.stream, &mut input[carried..]).map_err(io::Error::from);
        let read = match read {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        let bytes = &mut input[..carried + read];
        // Moves replies to the front of the buffer, over messages that are done.
        let (mut at, mut replies) = (0, 0);
        while let Some(&[version, kind, high, low, ..]) = bytes.get(at..) {
            let len = usize::from(u16::from_be_bytes([high, low]));
            if len < HEADER_LEN {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if bytes.len() - at < len {
                break;
            }
            match kind {
                ECHO_REQUEST => {
                    bytes[at + 1] = ECHO_REPLY;
                    bytes.copy_within(at..at + len, replies);
                    replies += len;
                }
                HELLO => self.stream.write_all(&greeting(agreed(version))?)?,
                _ => {}
            }
            at += len;
        }
        self.carry.clear();
        self.carry.extend_from_slice(&bytes[at..]);
        self.stream.write_all(&bytes[..replies])
    }
}

/// Returns a hello and a features request.
fn greeting(version: Version) -> io::Result<Vec<u8>> {
    let mut out = Out::with_capacity(64);
    Hello::write(version, 0, &mut out).map_err(io::Error::other)?;
    ToSwitch::FeaturesRequest.encode(version, 1, &mut out).map_err(io::Error::other)?;
    Ok(out.as_slice().to_vec())
}
