//! Listens on one address, and accepts channels of one kind.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bellrock_session::Versions;
use mio::net::TcpListener;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};

#[cfg(test)]
use crate::channel::read_ahead::ReadAhead;
use crate::channel::{Channel, ChannelKind, bound_buffers};
use crate::settings::StartError;

/// Maximum number of connections that the kernel queues for the acceptor.
const BACKLOG: i32 = 4096;

/// Addresses with versions of their own.
pub(crate) type VersionsAt = Arc<[(SocketAddr, Versions)]>;

/// A connection that was accepted.
#[derive(Debug)]
pub(crate) enum Accepted {
    Channel(Channel),
    /// Its handshake is to come.
    #[cfg(feature = "tls")]
    Tls(mio::net::TcpStream),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    kind: ChannelKind,
}

impl Listener {
    /// Listens on an address. An IPv6 address takes IPv6 only, so that `[::]` and `0.0.0.0` can be
    /// used together.
    ///
    /// # Errors
    /// [`StartError::Listen`].
    pub(crate) fn bind(address: SocketAddr, kind: ChannelKind) -> Result<Listener, StartError> {
        let bind = || -> io::Result<Listener> {
            let domain = Domain::for_address(address);
            let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
            if address.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            socket.set_reuse_address(true)?;
            socket.set_nonblocking(true)?;
            bound_buffers(&socket)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            let listener = TcpListener::from_std(socket.into());
            let address = listener.local_addr()?;
            Ok(Listener { listener, address, kind })
        };
        bind().map_err(|error| StartError::Listen { address, error })
    }

    /// Address that it listens on, with the actual port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Registers it with a poller, which reports waiting connections.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.listener, token, Interest::READABLE)
    }

    /// Accepts a connection. Returns it with the address of its peer.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if none waits, or the system's error.
    pub(crate) fn accept(&self) -> io::Result<(Accepted, SocketAddr)> {
        let (stream, peer) = self.listener.accept()?;
        let accepted = match self.kind {
            ChannelKind::Plain => Accepted::Channel(Channel::Plain(stream)),
            #[cfg(feature = "tls")]
            ChannelKind::Tls => Accepted::Tls(stream),
            #[cfg(test)]
            ChannelKind::ReadAhead => Accepted::Channel(Channel::ReadAhead(ReadAhead::new(stream))),
        };
        Ok((accepted, peer))
    }

    /// Waits for a connection.
    #[cfg(test)]
    pub(crate) fn wait(&self) -> Channel {
        loop {
            match self.accept() {
                Ok((Accepted::Channel(channel), _)) => return channel,
                #[cfg(feature = "tls")]
                Ok((Accepted::Tls(_), _)) => unreachable!("no listener of TLS"),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::yield_now();
                }
                Err(error) => unreachable!("{error}"),
            }
        }
    }
}
