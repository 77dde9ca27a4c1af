//! One connection to a switch, with all that depends on its transport: reads, writes, what the peer
//! has acknowledged, the kernel's buffers, and the close.
//!
//! The poller, the queues and the worker know a connection only as a [`Channel`]. A transport is a
//! variant of it, and keeps these rules:
//!
//! - **Reads.** [`Channel::read`] returns an answer to "is there more to read?" with the bytes. It
//!   is "yes" if the kernel may have more, or if the channel has bytes of its own: no readiness
//!   event reports those. A channel that is moved to another worker asks
//!   [`Channel::buffered_bytes`].
//! - **Writes.** What `write` reports as taken, the kernel has taken. The next write begins with
//!   the bytes that were not taken. So the queue of the connection is the only place of unsent
//!   bytes, and the high-water mark and the check for stalled peers count all of them.
//! - **Handshakes** below OpenFlow's are over before there is a channel.
//!
//! It is an enum, not a trait object: with one variant, a call compiles to the call of the socket.

#[cfg(test)]
pub(crate) mod read_ahead;
mod unacknowledged;

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;

use bellrock_api::SwitchIdentity;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use socket2::Socket;

use unacknowledged::unacknowledged_bytes;

#[cfg(feature = "tls")]
use crate::tls::session::TlsSession;

/// Kernel buffer for bytes of one connection that are not read yet. The kernel doubles it, and
/// slows the switch when it is full. The default is up to the maximum of `tcp_rmem`, megabytes for
/// each switch: packets would wait longer, and be out of the CPU cache by then.
const RECEIVE_BUFFER_BYTES: usize = 128 * 1024;

/// Kernel buffer for bytes written to one connection, until the peer acknowledges them. The kernel
/// doubles it. The default is up to the maximum of `tcp_wmem`, megabytes for each slow switch. It
/// also bounds the bytes in flight: 256 KiB and 10 ms allow some 100,000 flow_mods a second.
const SEND_BUFFER_BYTES: usize = 128 * 1024;

/// Transport of the connections of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelKind {
    /// TCP.
    Plain,
    /// TLS.
    #[cfg(feature = "tls")]
    Tls,
    /// TCP that is read ahead, see [`read_ahead`].
    #[cfg(test)]
    ReadAhead,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) enum Channel {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(TlsSession),
    #[cfg(test)]
    ReadAhead(read_ahead::ReadAhead),
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Number of bytes; 0 at the end of the stream.
    pub(crate) bytes: usize,
    /// Whether there may be more to read at once, in the kernel or in the channel.
    pub(crate) has_more: bool,
}

impl Channel {
    fn stream(&self) -> &TcpStream {
        match self {
            Channel::Plain(stream) => stream,
            #[cfg(feature = "tls")]
            Channel::Tls(session) => session.stream(),
            #[cfg(test)]
            Channel::ReadAhead(channel) => channel.stream(),
        }
    }

    fn stream_mut(&mut self) -> &mut TcpStream {
        match self {
            Channel::Plain(stream) => stream,
            #[cfg(feature = "tls")]
            Channel::Tls(session) => session.stream_mut(),
            #[cfg(test)]
            Channel::ReadAhead(channel) => channel.stream_mut(),
        }
    }

    /// Address of the peer.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn peer(&self) -> io::Result<SocketAddr> {
        self.stream().peer_addr()
    }

    /// The address that its peer connected to.
    pub(crate) fn local(&self) -> io::Result<SocketAddr> {
        self.stream().local_addr()
    }

    /// Sends each write at once. Answers are small, and a late one is useless: the kernel must not
    /// delay them to collect more data.
    pub(crate) fn send_at_once(&self) -> io::Result<()> {
        self.stream().set_nodelay(true)
    }

    /// Registers it with a poller, which reports at once what the kernel already has.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(self.stream_mut(), token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Removes it from its poller.
    pub(crate) fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(self.stream_mut())
    }

    /// Reads the available bytes into `buffer`, once.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there are none; else the connection has failed.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        match self {
            Channel::Plain(stream) => {
                // read(2); the standard library uses recv(2). The system shows the bytes per
                // read(2) of a process, and so how well it batches.
                let bytes = rustix::io::read(&*stream, &mut *buffer)?;
                Ok(Received { bytes, has_more: bytes == buffer.len() })
            }
            #[cfg(feature = "tls")]
            Channel::Tls(session) => session.read(buffer),
            #[cfg(test)]
            Channel::ReadAhead(channel) => channel.read(buffer),
        }
    }

    /// Number of bytes that the channel has read from the kernel, and has not returned yet. No
    /// readiness event reports them.
    pub(crate) fn buffered_bytes(&self) -> usize {
        match self {
            Channel::Plain(_) => 0,
            #[cfg(feature = "tls")]
            Channel::Tls(session) => session.buffered_bytes(),
            #[cfg(test)]
            Channel::ReadAhead(channel) => channel.buffered_bytes(),
        }
    }

    /// What the peer has proved by TLS.
    pub(crate) fn identity(&self) -> Option<Arc<SwitchIdentity>> {
        match self {
            #[cfg(feature = "tls")]
            Channel::Tls(session) => Some(Arc::clone(session.identity())),
            _ => None,
        }
    }

    /// Number of bytes that the kernel has taken and the peer has not acknowledged, as the kernel
    /// counts them.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) fn unacknowledged_bytes(&self) -> io::Result<usize> {
        unacknowledged_bytes(self.stream())
    }

    /// Ends the writing side: the peer reads an end of the stream after the last byte.
    pub(crate) fn finish_writing(&mut self) -> io::Result<()> {
        match self {
            #[cfg(feature = "tls")]
            Channel::Tls(session) => session.finish_writing(),
            _ => self.stream().shutdown(Shutdown::Write),
        }
    }
}

/// Writes as the module's rules say.
impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            #[cfg(feature = "tls")]
            Channel::Tls(session) => session.write(bytes),
            _ => self.stream_mut().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bounds the kernel's buffers of the connections that a listening socket will accept. It must not
/// listen yet: they have the bounds from their first segment then.
pub(crate) fn bound_buffers(socket: &Socket) -> io::Result<()> {
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use std::net::TcpStream as Peer;

    use socket2::SockRef;

    use super::*;
    use crate::listener::Listener;

    #[test]
    fn socket_buffers_of_a_connection_are_bounded_in_both_directions() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), ChannelKind::Plain).unwrap();
        let _peer = Peer::connect(listener.address()).unwrap();
        let channel = listener.wait();
        let socket = SockRef::from(channel.stream());
        // The kernel doubles the value; less if `wmem_max` and `rmem_max` are smaller.
        let (send, receive) =
            (socket.send_buffer_size().unwrap(), socket.recv_buffer_size().unwrap());
        assert!(send <= 2 * SEND_BUFFER_BYTES, "{send} bytes to be sent");
        assert!(receive <= 2 * RECEIVE_BUFFER_BYTES, "{receive} bytes received");
    }
}
