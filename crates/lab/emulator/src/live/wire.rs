//! One connection over TCP, with or without TLS, without blocking.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

#[cfg(feature = "tls")]
use super::tls::{SwitchSession, SwitchTls};

/// Maximum bytes of one read, before the next connection is served.
pub(super) const READ_BYTES: usize = 64 << 10;

/// A TCP connection on an edge-triggered poller.
pub(super) struct TcpWire {
    stream: TcpStream,
    #[cfg(feature = "tls")]
    session: Option<SwitchSession>,
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
        Ok(TcpWire {
            stream,
            #[cfg(feature = "tls")]
            session: None,
            readable: false,
            writable: false,
            ending: false,
        })
    }

    /// Speaks TLS. Call it right after [`connect`](Self::connect).
    #[cfg(feature = "tls")]
    pub(super) fn with_tls(mut self, tls: &SwitchTls) -> io::Result<Self> {
        self.session = Some(SwitchSession::new(tls)?);
        Ok(self)
    }

    /// Handles an event of the poller.
    pub(super) fn ready(&mut self, event: &Event) {
        self.readable |= event.is_readable();
        self.writable |= event.is_writable();
        self.ending |= event.is_read_closed() || event.is_error();
    }

    /// Whether the connection is established, with the handshake of TLS, and can be written to.
    pub(super) fn established(&mut self) -> io::Result<bool> {
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
                self.handshake()
            }
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    #[cfg(feature = "tls")]
    fn handshake(&mut self) -> io::Result<bool> {
        let is_finished = match &mut self.session {
            Some(session) => session.handshake(&mut self.stream)?,
            None => return Ok(true),
        };
        // The controller's hello may have come with the end of the handshake.
        self.readable |= is_finished;
        Ok(is_finished)
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with TLS")]
    fn handshake(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// Whether a read may return bytes.
    pub(super) fn is_readable(&self) -> bool {
        self.readable
    }

    /// Reads once.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<WireRead> {
        loop {
            let (received, is_plain) = self.receive(into);
            match received {
                Ok(0) => return Ok(WireRead::End),
                Ok(len) => {
                    // A short read has emptied the socket; the poller reports later bytes. A
                    // session of TLS may have more.
                    self.readable = len == into.len() || self.ending || !is_plain;
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

    /// Reads once, and returns whether without TLS.
    fn receive(&mut self, into: &mut [u8]) -> (io::Result<usize>, bool) {
        #[cfg(feature = "tls")]
        if let Some(session) = &mut self.session {
            return (session.read(&mut self.stream, into), false);
        }
        (self.stream.read(into), true)
    }

    /// Writes as many bytes as the kernel takes, and returns their number.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(session) = &mut self.session {
            return session.write(&mut self.stream, bytes);
        }
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
