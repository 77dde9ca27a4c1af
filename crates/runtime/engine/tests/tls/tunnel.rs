//! A tunnel from plain TCP to TLS, so that a test can play switches without TLS of their own.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use super::pki::CONTROLLER;

/// Encrypted bytes are all sent.
const FREE: u8 = 0;
/// Of the next encrypted bytes, half are sent.
const HALF: u8 = 1;
/// They are.
const HELD: u8 = 2;
/// In the next encrypted bytes, the last one is changed.
const CHANGE: u8 = 3;

pub struct Tunnel {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    hold: Arc<AtomicU8>,
    resumed: Arc<AtomicUsize>,
}

impl Tunnel {
    pub fn start(to: SocketAddr, config: Arc<ClientConfig>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, hold) = (Arc::<AtomicBool>::default(), Arc::<AtomicU8>::default());
        let (stopped, held) = (Arc::clone(&stop), Arc::clone(&hold));
        let resumed = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&resumed);
        std::thread::spawn(move || {
            let mut connections: Vec<Connection> = Vec::new();
            listener.set_nonblocking(true).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                let mut is_idle = true;
                while let Ok((plain, _)) = listener.accept() {
                    connections.push(Connection::new(plain, to, &config));
                    is_idle = false;
                }
                connections.retain_mut(|connection| match connection.advance(&held, &counted) {
                    Ok(is_busy) => {
                        is_idle &= !is_busy;
                        true
                    }
                    Err(_) => false,
                });
                if is_idle {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        });
        Tunnel { address, stop, hold, resumed }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of sessions that were resumed.
    pub fn resumed(&self) -> usize {
        self.resumed.load(Ordering::Relaxed)
    }

    /// Sends only half of the next encrypted bytes, until [`Self::release`].
    pub fn hold_half_a_record(&self) {
        self.hold.store(HALF, Ordering::Relaxed);
    }

    pub fn holds(&self) -> bool {
        self.hold.load(Ordering::Relaxed) == HELD
    }

    /// Changes a byte of the next record on its way.
    pub fn change_a_record(&self) {
        self.hold.store(CHANGE, Ordering::Relaxed);
    }

    pub fn release(&self) {
        self.hold.store(FREE, Ordering::Relaxed);
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Connection {
    plain: TcpStream,
    tls: TcpStream,
    session: ClientConnection,
    /// Whether the kind of its handshake is counted.
    is_counted: bool,
    /// Encrypted bytes to be sent.
    outgoing: Vec<u8>,
    /// Decrypted bytes to be sent.
    incoming: Vec<u8>,
}

/// Maximum number of bytes that wait in one direction.
const WAITING_BYTES: usize = 256 << 10;

impl Connection {
    fn new(plain: TcpStream, to: SocketAddr, config: &Arc<ClientConfig>) -> Self {
        let tls = TcpStream::connect(to).unwrap();
        plain.set_nonblocking(true).unwrap();
        tls.set_nonblocking(true).unwrap();
        tls.set_nodelay(true).unwrap();
        let name = ServerName::try_from(CONTROLLER).unwrap();
        let session = ClientConnection::new(Arc::clone(config), name).unwrap();
        Connection {
            plain,
            tls,
            session,
            is_counted: false,
            outgoing: Vec::new(),
            incoming: Vec::new(),
        }
    }

    /// Moves bytes in both directions. Returns whether there were any.
    fn advance(&mut self, hold: &AtomicU8, resumed: &AtomicUsize) -> io::Result<bool> {
        let mut is_busy = false;
        if !self.is_counted && !self.session.is_handshaking() {
            self.is_counted = true;
            let is_resumed = self.session.handshake_kind() == Some(HandshakeKind::Resumed);
            resumed.fetch_add(usize::from(is_resumed), Ordering::Relaxed);
        }
        let mut bytes = [0; 32 << 10];
        if self.outgoing.len() < WAITING_BYTES
            && !self.session.is_handshaking()
            && let Some(n) = ready(self.plain.read(&mut bytes))?
        {
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.session.writer().write_all(&bytes[..n])?;
            is_busy = true;
        }
        while self.session.wants_write() {
            self.session.write_tls(&mut self.outgoing)?;
        }
        if let Some(last) = self.outgoing.last_mut()
            && hold.compare_exchange(CHANGE, FREE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            *last ^= 1;
        }
        let end = match hold.load(Ordering::Relaxed) {
            HELD => 0,
            HALF => self.outgoing.len() / 2,
            _ => self.outgoing.len(),
        };
        if end > 0
            && let Some(n) = ready(self.tls.write(&self.outgoing[..end]))?
        {
            self.outgoing.drain(..n);
            let _ = hold.compare_exchange(HALF, HELD, Ordering::Relaxed, Ordering::Relaxed);
            is_busy = true;
        }
        if self.incoming.len() < WAITING_BYTES
            && let Some(n) = ready(self.session.read_tls(&mut self.tls))?
        {
            let outcome = self.session.process_new_packets();
            if let Err(error) = outcome {
                let _ = self.session.write_tls(&mut self.tls);
                return Err(io::Error::other(error));
            }
            while let Some(n) = ready(self.session.reader().read(&mut bytes))? {
                if n == 0 {
                    break;
                }
                self.incoming.extend_from_slice(&bytes[..n]);
            }
            if n == 0 {
                let _ = self.plain.write_all(&self.incoming);
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            is_busy = true;
        }
        if !self.incoming.is_empty()
            && let Some(n) = ready(self.plain.write(&self.incoming))?
        {
            self.incoming.drain(..n);
            is_busy = true;
        }
        Ok(is_busy)
    }
}

/// `None`: nothing can be done now.
fn ready<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
