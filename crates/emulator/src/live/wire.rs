//! One TCP connection, read and written without waiting.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

/// What one read takes, before it is the next connection's turn.
pub(super) const READ_BYTES: usize = 64 << 10;

/// A TCP connection on a poller that tells of changes only (edge-triggered).
pub(super) struct Wire {
    stream: TcpStream,
    readable: bool,
    writable: bool,
    /// The other end sends no more: there is always something to read, at last the end.
    ending: bool,
}

/// What a read has brought.
pub(super) enum Got {
    /// So many bytes.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// The other end has closed.
    End,
}

impl Wire {
    /// Begins to connect. [`established`](Self::established) tells how that went.
    pub(super) fn connect(
        address: SocketAddr,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Wire { stream, readable: false, writable: false, ending: false })
    }

    /// The poller has news.
    pub(super) fn ready(&mut self, event: &Event) {
        self.readable |= event.is_readable();
        self.writable |= event.is_writable();
        self.ending |= event.is_read_closed() || event.is_error();
    }

    /// Whether the connection stands, once it can be written to.
    pub(super) fn established(&self) -> io::Result<bool> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        if !self.writable {
            return Ok(false);
        }
        match self.stream.peer_addr() {
            // Where nobody listens at a port of the kernel's own choice, TCP may connect to itself.
            Ok(peer) if self.stream.local_addr()? == peer => {
                Err(io::ErrorKind::ConnectionRefused.into())
            }
            Ok(_) => {
                self.stream.set_nodelay(true)?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a read may bring something.
    pub(super) fn is_readable(&self) -> bool {
        self.readable
    }

    /// Reads once.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<Got> {
        loop {
            match self.stream.read(into) {
                Ok(0) => return Ok(Got::End),
                Ok(len) => {
                    // A short read has emptied the socket; the poller tells of what comes after.
                    self.readable = len == into.len() || self.ending;
                    return Ok(Got::Bytes(len));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Ok(Got::Nothing);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes as much as the kernel takes, and says how much that was.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while self.writable && written < bytes.len() {
            match self.stream.write(&bytes[written..]) {
                Ok(n) => written += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    /// Takes the connection off the poller and closes it.
    pub(super) fn close(mut self, registry: &Registry) {
        // What fails here has been closed already.
        let _ = registry.deregister(&mut self.stream);
    }
}
