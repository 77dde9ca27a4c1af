//! One TCP connection, without blocking.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

/// Maximum bytes of one read, before the next connection is served.
pub(super) const READ_BYTES: usize = 64 << 10;

/// A TCP connection on an edge-triggered poller.
pub(super) struct TcpWire {
    stream: TcpStream,
    readable: bool,
    writable: bool,
    /// The other end sends no more: reads return data, and finally the end.
    ending: bool,
}

/// Result of a read.
pub(super) enum WireRead {
    /// This many bytes.
    Bytes(usize),
    /// No bytes now.
    Nothing,
    /// The other end has closed.
    End,
}

impl TcpWire {
    /// Starts to connect. [`established`](Self::established) reports the result.
    pub(super) fn connect(
        address: SocketAddr,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(TcpWire { stream, readable: false, writable: false, ending: false })
    }

    /// Handles an event of the poller.
    pub(super) fn ready(&mut self, event: &Event) {
        self.readable |= event.is_readable();
        self.writable |= event.is_writable();
        self.ending |= event.is_read_closed() || event.is_error();
    }

    /// Whether the connection is established and can be written to.
    pub(super) fn established(&self) -> io::Result<bool> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        if !self.writable {
            return Ok(false);
        }
        match self.stream.peer_addr() {
            // If the port is free and in the kernel's own range, TCP may connect to itself.
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

    /// Whether a read may return bytes.
    pub(super) fn is_readable(&self) -> bool {
        self.readable
    }

    /// Reads once.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<WireRead> {
        loop {
            match self.stream.read(into) {
                Ok(0) => return Ok(WireRead::End),
                Ok(len) => {
                    // A short read has emptied the socket; the poller reports later bytes.
                    self.readable = len == into.len() || self.ending;
                    return Ok(WireRead::Bytes(len));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Ok(WireRead::Nothing);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes as many bytes as the kernel takes, and returns their number.
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

    /// Removes the connection from the poller and closes it.
    pub(super) fn close(mut self, registry: &Registry) {
        // On failure it is closed already.
        let _ = registry.deregister(&mut self.stream);
    }
}
