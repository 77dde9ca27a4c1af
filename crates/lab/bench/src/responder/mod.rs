//! The canned responder: the minimum work that answers the load and passes its verification.
//!
//! One thread, no learning, no tables. It reads at least 64 KiB at a time into one buffer. It
//! answers each packet_in with a prepared flow_mod from another buffer; only `xid`, `buffer_id`,
//! match and output are patched ([`answer`]). Its rate is the limit that the kernel's loopback TCP
//! sets on a machine. A controller's figures are given relative to it.
//!
//! For idle switches, which send no packet_ins, there is an even simpler loop (`echo`).
//!
//! It is not a controller: it reads a destination's port from its address, which works only with
//! the addresses of [`crate::packet::MacNumber`].

pub mod answer;
mod connection;
mod echo;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bellrock_openflow::{Version, Versions};

use crate::error::BenchError;
use crate::poller::Poller;
use crate::threads::pin;
use answer::Answerer;
use connection::{ResponderConnection, ResponderTurn};
use echo::EchoLoop;

/// Maximum number of bytes per read. These and their answers stay in the second-level cache.
pub const READ_LEN: usize = 64 * 1024;

/// Length of the longest OpenFlow message. The carried beginning of one is placed before the data
/// read.
const CARRY_LEN: usize = 1 << 16;

/// Interval of checks whether it has to stop.
const STOP_CHECK: Duration = Duration::from_millis(50);

/// Token of the listener; connections have higher tokens.
const LISTENER: usize = 0;

/// Returns the version to use with a switch whose hello has this wire version: the highest that is
/// not above it (1.3.5 §6.3.1).
fn agreed(wire: u8) -> Version {
    Versions::ALL.highest_up_to(wire).unwrap_or(Versions::ALL.lowest())
}

/// How the responder waits for packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponderIdle {
    /// Sleeps until something comes.
    #[default]
    Sleep,
    /// Polls without sleep: less delay, but a whole core.
    Spin,
}

/// Settings of a responder.
#[derive(Clone, Copy, Debug)]
pub struct ResponderSettings {
    /// Address to listen on. Port 0 takes a free port.
    pub listen: SocketAddr,
    /// How to wait for packets.
    pub idle: ResponderIdle,
    /// Core to stay on; `None` leaves it to the scheduler.
    pub core: Option<usize>,
    /// Answers only echo requests, in a bare loop around epoll.
    pub echo_only: bool,
}

/// A running responder. Dropping it stops it.
#[derive(Debug)]
pub struct Responder {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), BenchError>>>,
}

impl Responder {
    /// Starts a responder.
    ///
    /// # Errors
    /// It cannot listen on the address, or the core does not exist.
    pub fn start(settings: &ResponderSettings) -> Result<Self, BenchError> {
        let listener = TcpListener::bind(settings.listen)
            .map_err(|error| BenchError::Listen { address: settings.listen, error })?;
        listener.set_nonblocking(true).map_err(BenchError::system("listen"))?;
        let address = listener.local_addr().map_err(BenchError::system("listen"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let core = settings.core;
        let body = body(listener, *settings, Arc::clone(&stop))?;
        let thread = std::thread::Builder::new()
            .name("responder".into())
            .spawn(move || {
                core.map_or(Ok(()), pin)?;
                body()
            })
            .map_err(BenchError::system("start the responder's thread"))?;
        Ok(Responder { address, stop, thread: Some(thread) })
    }

    /// Returns the address with its actual port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the responder ends. It ends only if a system call fails.
    ///
    /// # Errors
    /// The failed system call.
    pub fn wait(mut self) -> Result<(), BenchError> {
        self.join()
    }

    fn join(&mut self) -> Result<(), BenchError> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(BenchError::System {
                what: "run the responder",
                error: io::Error::other("its thread panicked"),
            }),
            None => Ok(()),
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Nothing waits for the result any more.
        let _ = self.join();
    }
}

type Body = Box<dyn FnOnce() -> Result<(), BenchError> + Send>;

fn body(
    listener: TcpListener,
    settings: ResponderSettings,
    stop: Arc<AtomicBool>,
) -> Result<Body, BenchError> {
    let wait = match settings.idle {
        ResponderIdle::Sleep => STOP_CHECK,
        ResponderIdle::Spin => Duration::ZERO,
    };
    if settings.echo_only {
        let echo = EchoLoop::new(listener, stop)?;
        return Ok(Box::new(move || echo.run(wait)));
    }
    let worker = ResponderThread::new(listener, stop)?;
    Ok(Box::new(move || worker.run(wait)))
}

/// State of the thread.
struct ResponderThread {
    listener: TcpListener,
    stop: Arc<AtomicBool>,
    poller: Poller,
    /// Connections by token minus one. A new connection takes the place of a closed one.
    connections: Vec<Option<ResponderConnection>>,
    /// Data read, after the beginning of a message from an earlier read.
    input: Vec<u8>,
    answerer: Answerer,
}

impl ResponderThread {
    fn new(listener: TcpListener, stop: Arc<AtomicBool>) -> Result<Self, BenchError> {
        let poller = Poller::new().map_err(BenchError::system("create a poller"))?;
        poller.add(&listener, LISTENER).map_err(BenchError::system("watch the listener"))?;
        let input = vec![0; CARRY_LEN + READ_LEN];
        let connections = Vec::new();
        let answerer = Answerer::new()?;
        Ok(ResponderThread { listener, stop, poller, connections, input, answerer })
    }

    fn run(mut self, wait: Duration) -> Result<(), BenchError> {
        let mut ready = Vec::new();
        let mut again: Vec<usize> = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let wait = if again.is_empty() { wait } else { Duration::ZERO };
            self.poller.wait(wait, &mut ready).map_err(BenchError::system("wait"))?;
            for event in &ready {
                if event.token == LISTENER {
                    self.accept()?;
                } else if let Some(Some(connection)) = self.connections.get_mut(event.token - 1) {
                    connection.ready(event.readable, event.writable);
                    if !std::mem::replace(&mut connection.queued, true) {
                        again.push(event.token);
                    }
                }
            }
            // A turn of each is one read and one write.
            again.retain(|token| {
                let Some(place) = self.connections.get_mut(*token - 1) else { return false };
                let Some(connection) = place else { return false };
                match connection.turn(&mut self.input, &mut self.answerer) {
                    ResponderTurn::More => true,
                    ResponderTurn::Idle => {
                        connection.queued = false;
                        false
                    }
                    ResponderTurn::Closed => {
                        *place = None;
                        false
                    }
                }
            });
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), BenchError> {
        loop {
            let (stream, _) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The connection ended before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(BenchError::System { what: "accept a switch", error }),
            };
            let place = self.connections.iter().position(Option::is_none);
            let place = place.unwrap_or(self.connections.len());
            let connection = ResponderConnection::new(stream).and_then(|connection| {
                self.poller.add(connection.socket(), place + 1)?;
                Ok(connection)
            });
            let connection = connection.map_err(BenchError::system("take a switch"))?;
            match self.connections.get_mut(place) {
                Some(free) => *free = Some(connection),
                None => self.connections.push(Some(connection)),
            }
        }
    }
}
