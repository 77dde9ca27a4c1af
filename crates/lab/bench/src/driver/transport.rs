//! The bytes of a switch: TCP, with or without TLS.
//!
//! With TLS, bytes are encrypted in records as large as TLS allows, and a read decrypts all records
//! that it got. Nothing is allocated per message.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use bellrock_tls::unbuffered::{MAX_CARRY_BYTES, RECORD_BYTES, go_on};
use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use socket2::{Domain, Protocol, Socket, Type};

use super::desk::READ_LEN;
use crate::tls::LoadTls;

/// Size of the send buffer of a switch; the kernel doubles it. The default allows some megabytes.
/// The buffers of all switches then exceed the CPU cache, and the test would measure memory speed
/// instead of the controller.
const SEND_BUFFER_BYTES: usize = 32 * 1024;

/// Maximum number of plain bytes that are encrypted before the kernel takes them.
const SEAL_BYTES: usize = 2 * RECORD_BYTES;

/// Maximum number of bytes that one read returns: those of a carry and of a read of the kernel.
pub(super) const MAX_READ_BYTES: usize = READ_LEN + MAX_CARRY_BYTES;

/// Length of the buffer for encrypted bytes, which all switches of a thread share.
pub(super) const SCRATCH_LEN: usize = MAX_READ_BYTES;

/// `EINPROGRESS`: the poller reports the connection when it is established.
const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

/// A connection that does not block.
pub(super) struct Transport {
    socket: Socket,
    session: Option<TlsSession>,
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    /// Number of bytes returned. None may have come although the connection is open: those of TLS
    /// itself.
    pub(super) bytes: usize,
    /// Whether the kernel may have more.
    pub(super) has_more: bool,
    /// Whether the peer has ended the connection.
    pub(super) is_end: bool,
}

impl Transport {
    /// Starts to connect. The poller reports when TCP is established.
    pub(super) fn connect(target: SocketAddr, tls: Option<&LoadTls>) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
        match socket.connect(&target.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(IN_PROGRESS) => {}
            Err(error) => return Err(error),
        }
        let session = tls.map(TlsSession::new).transpose()?;
        Ok(Transport { socket, session })
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Resets the connection, so that its port is free at once.
    pub(super) fn reset(self) {
        // If it fails, the port is free a minute later.
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }

    /// Whether messages can be sent: TLS has finished its handshake, or there is none.
    pub(super) fn is_established(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.is_established)
    }

    /// Begins the handshake of TLS, if there is one. TCP must be established.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        match &mut self.session {
            Some(session) => session.decrypt(&mut self.socket, &mut [], &mut []).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Reads once. `into` has [`READ_LEN`] bytes, or [`MAX_READ_BYTES`] with TLS.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there are no bytes now; else the connection has failed.
    pub(super) fn read(&mut self, scratch: &mut [u8], into: &mut [u8]) -> io::Result<Received> {
        if let Some(session) = &mut self.session {
            return session.read(&mut self.socket, scratch, into);
        }
        let room = into.get_mut(..READ_LEN).unwrap_or_default();
        let bytes = self.socket.read(room)?;
        Ok(Received { bytes, has_more: bytes == READ_LEN, is_end: bytes == 0 })
    }

    /// Writes bytes. Returns how many were taken. Fewer than all: the kernel takes no more now.
    pub(super) fn write(&mut self, scratch: &mut [u8], bytes: &[u8]) -> io::Result<usize> {
        match &mut self.session {
            Some(session) => session.write(&mut self.socket, scratch, bytes),
            None => write_all(&mut self.socket, bytes),
        }
    }

    /// Gives encrypted bytes that wait to the kernel. `false`: it does not take all of them now.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        self.session.as_mut().map_or(Ok(true), |session| session.flush(&mut self.socket))
    }
}

/// The switch's end of TLS.
struct TlsSession {
    session: Box<UnbufferedClientConnection>,
    /// Received bytes that are not used yet.
    carry: Vec<u8>,
    /// Encrypted bytes that the kernel has not taken.
    unsent: Vec<u8>,
    is_established: bool,
    is_ended: bool,
}

impl TlsSession {
    fn new(tls: &LoadTls) -> io::Result<Self> {
        Ok(TlsSession {
            session: Box::new(tls.session().map_err(io::Error::other)?),
            carry: Vec::new(),
            unsent: Vec::new(),
            is_established: false,
            is_ended: false,
        })
    }

    fn read(
        &mut self,
        socket: &mut Socket,
        scratch: &mut [u8],
        into: &mut [u8],
    ) -> io::Result<Received> {
        let carried = self.carry.len();
        if carried > MAX_CARRY_BYTES {
            return Err(io::Error::other("a record of TLS that never ends"));
        }
        let room = scratch.get_mut(carried..carried + READ_LEN).unwrap_or_default();
        let received = socket.read(room)?;
        let incoming = scratch.get_mut(..carried + received).unwrap_or_default();
        incoming.get_mut(..carried).unwrap_or_default().copy_from_slice(&self.carry);
        let (used, bytes) = self.decrypt(socket, incoming, into)?;
        self.carry.clear();
        self.carry.extend_from_slice(incoming.get(used..).unwrap_or_default());
        let is_end = received == 0 || (self.is_ended && bytes == 0);
        Ok(Received { bytes, has_more: received == READ_LEN || self.is_ended, is_end })
    }

    /// Processes all whole records, and sends what TLS itself has to send. Returns the number of
    /// bytes that the records take up, and that of the decrypted ones.
    fn decrypt(
        &mut self,
        socket: &mut Socket,
        incoming: &mut [u8],
        into: &mut [u8],
    ) -> io::Result<(usize, usize)> {
        let (mut used, mut filled, mut goes_on) = (0, 0, true);
        while goes_on {
            let rest = incoming.get_mut(used..).unwrap_or_default();
            let UnbufferedStatus { mut discard, state } = self.session.process_tls_records(rest);
            match state.map_err(failed)? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(failed)?;
                        discard += record.discard;
                        let end = filled + record.payload.len();
                        let place = into.get_mut(filled..end);
                        // A record is shorter than its encrypted bytes, which fit.
                        place.ok_or_else(too_long)?.copy_from_slice(record.payload);
                        filled = end;
                    }
                }
                ConnectionState::PeerClosed => self.is_ended = true,
                ConnectionState::WriteTraffic(_) => {
                    (self.is_established, goes_on) = (true, false);
                }
                state => goes_on = go_on(state, &mut self.unsent)?,
            }
            used += discard;
        }
        self.flush(socket)?;
        Ok((used, filled))
    }

    fn flush(&mut self, socket: &mut Socket) -> io::Result<bool> {
        let written = write_all(socket, &self.unsent)?;
        self.unsent.drain(..written);
        Ok(self.unsent.is_empty())
    }

    fn write(
        &mut self,
        socket: &mut Socket,
        scratch: &mut [u8],
        bytes: &[u8],
    ) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() && self.flush(socket)? {
            let end = bytes.len().min(taken + SEAL_BYTES);
            let plain = bytes.get(taken..end).unwrap_or_default();
            // Reads have used all whole records, so that it can write at once.
            let UnbufferedStatus { discard, state } =
                self.session.process_tls_records(&mut self.carry);
            let ConnectionState::WriteTraffic(mut traffic) = state.map_err(failed)? else {
                return Err(io::Error::other("the session of TLS is closed"));
            };
            let len = traffic.encrypt(plain, scratch).map_err(io::Error::other)?;
            self.carry.drain(..discard);
            let sealed = scratch.get(..len).unwrap_or_default();
            let sent = write_all(socket, sealed)?;
            self.unsent.extend_from_slice(sealed.get(sent..).unwrap_or_default());
            taken = end;
        }
        Ok(taken)
    }
}

fn failed(error: rustls::Error) -> io::Error {
    io::Error::other(format!("TLS: {error}"))
}

fn too_long() -> io::Error {
    io::Error::other("a record of TLS that is too long")
}

/// Writes bytes until the kernel takes no more. Returns how many it has taken.
fn write_all(socket: &mut Socket, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match socket.write(bytes.get(written..).unwrap_or_default()) {
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}
