//! The channel over an established TLS session.
//!
//! Reads take as much from the kernel as plain ones do, and decrypt all whole records of it. Each
//! write is encrypted as a whole and given to the kernel in one call, in records as large as TLS
//! allows.
//!
//! It keeps the rules of [`channel`](crate::channel):
//!
//! - Bytes that it has decrypted and not returned are in `decrypted`; an unfinished record is in
//!   `carry`. Both are empty for an idle switch.
//! - Encrypted bytes cannot be encrypted again, so those that the kernel did not take wait in
//!   `unsent`. Their plain bytes are not reported as taken until the kernel has them. The next
//!   write begins with these plain bytes, and skips them.
//! - The session finds parts of messages of TLS by their places in the received bytes. So each call
//!   gets all bytes that are not used, also a call before a write.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write as _};
use std::sync::Arc;

use bellrock_api::SwitchIdentity;
use bellrock_tls::unbuffered::{MAX_CARRY_BYTES, RECORD_BYTES, RECORD_OVERHEAD_BYTES, go_on};
use mio::net::TcpStream;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, ReadTraffic, UnbufferedStatus, WriteTraffic};

use crate::channel::Received;

/// Maximum number of plain bytes that are encrypted before the kernel takes them.
const SEAL_BYTES: usize = 4 * RECORD_BYTES;

/// Maximum number of bytes read from the kernel at once.
const READ_BYTES: usize = 128 << 10;

/// Maximum capacity that an empty buffer of a session keeps.
const KEEP_BYTES: usize = 512;

thread_local! {
    /// Encrypted bytes, while a thread decrypts or encrypts them. Its sessions take turns with it.
    static SCRATCH: RefCell<Box<[u8]>> =
        RefCell::new(vec![0; MAX_CARRY_BYTES + READ_BYTES].into_boxed_slice());
}

/// See the [module](self).
pub(crate) struct TlsSession {
    stream: TcpStream,
    session: Box<UnbufferedServerConnection>,
    identity: Arc<SwitchIdentity>,
    /// Received bytes that are not decrypted.
    carry: Vec<u8>,
    /// Whether `carry` may have whole records.
    has_records: bool,
    /// Decrypted bytes that no read has returned.
    decrypted: Vec<u8>,
    /// Encrypted bytes that the kernel has not taken.
    unsent: Vec<u8>,
    /// Number of plain bytes in `unsent`, which no write has reported as taken.
    sealed: usize,
    /// The peer has ended its side.
    is_ended: bool,
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSession").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl TlsSession {
    /// `carry` and `decrypted` came behind the handshake: bytes as received, and those before them
    /// that are decrypted already.
    pub(crate) fn new(
        stream: TcpStream,
        session: Box<UnbufferedServerConnection>,
        identity: Arc<SwitchIdentity>,
        carry: Vec<u8>,
        decrypted: Vec<u8>,
    ) -> Self {
        let has_records = !carry.is_empty();
        TlsSession {
            stream,
            session,
            identity,
            carry,
            has_records,
            decrypted,
            unsent: Vec::new(),
            sealed: 0,
            is_ended: false,
        }
    }

    /// What the peer has proved.
    pub(crate) fn identity(&self) -> &Arc<SwitchIdentity> {
        &self.identity
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn stream_mut(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// See [`Channel::buffered_bytes`](crate::channel::Channel::buffered_bytes).
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.decrypted.len() + if self.has_records { self.carry.len() } else { 0 }
    }

    /// See [`Channel::read`](crate::channel::Channel::read).
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            if !self.decrypted.is_empty() {
                let bytes = self.decrypted.len().min(buffer.len());
                let (now, _) = self.decrypted.split_at(bytes);
                buffer.get_mut(..bytes).unwrap_or_default().copy_from_slice(now);
                self.decrypted.drain(..bytes);
                release(&mut self.decrypted);
                return Ok(Received { bytes, has_more: true });
            }
            if self.is_ended {
                return Ok(Received { bytes: 0, has_more: false });
            }
            let (bytes, has_more) =
                SCRATCH.with_borrow_mut(|scratch| self.fill(scratch, buffer))?;
            // A part of a record, or a message of TLS itself, gives no bytes.
            if bytes > 0 {
                return Ok(Received { bytes, has_more });
            }
            if !has_more && !self.is_ended {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    /// Reads from the kernel once, and decrypts. Returns the number of bytes in `buffer`, and
    /// whether there may be more; what does not fit goes to `decrypted`.
    fn fill(&mut self, scratch: &mut [u8], buffer: &mut [u8]) -> io::Result<(usize, bool)> {
        let (start, room) = scratch.split_at_mut_checked(self.carry.len()).unwrap_or_default();
        if room.len() < READ_BYTES {
            return Err(io::Error::other("a record of TLS has no end"));
        }
        let room = room.get_mut(..READ_BYTES).unwrap_or_default();
        let received = match rustix::io::read(&self.stream, room) {
            Ok(received) => {
                self.is_ended = received == 0;
                received
            }
            Err(rustix::io::Errno::WOULDBLOCK) if self.has_records => 0,
            Err(error) => return Err(error.into()),
        };
        start.copy_from_slice(&self.carry);
        let end = self.carry.len() + received;
        self.carry.clear();
        self.has_records = false;
        let incoming = scratch.get_mut(..end).unwrap_or_default();
        let mut filled = 0;
        let used = self.decrypt(incoming, buffer, &mut filled)?;
        self.carry.extend_from_slice(incoming.get(used..).unwrap_or_default());
        release(&mut self.carry);
        self.send_unsent()?;
        let is_full = received == READ_BYTES;
        Ok((filled, is_full || self.is_ended || !self.decrypted.is_empty()))
    }

    /// Decrypts all whole records. Returns the number of bytes that they take up.
    fn decrypt(
        &mut self,
        incoming: &mut [u8],
        buffer: &mut [u8],
        filled: &mut usize,
    ) -> io::Result<usize> {
        let (mut used, mut goes_on) = (0, true);
        while goes_on {
            let rest = incoming.get_mut(used..).unwrap_or_default();
            let UnbufferedStatus { mut discard, state } = self.session.process_tls_records(rest);
            match state {
                Ok(ConnectionState::ReadTraffic(traffic)) => {
                    discard += take_records(traffic, |bytes| {
                        let place = buffer.get_mut(*filled..).unwrap_or_default();
                        // In order: nothing goes to the buffer behind what did not fit.
                        let fits = match self.decrypted.is_empty() {
                            true => place.len().min(bytes.len()),
                            false => 0,
                        };
                        let (now, later) = bytes.split_at(fits);
                        place.get_mut(..fits).unwrap_or_default().copy_from_slice(now);
                        *filled += fits;
                        self.decrypted.extend_from_slice(later);
                    })
                    .map_err(undecipherable)?;
                }
                Ok(ConnectionState::PeerClosed) => self.is_ended = true,
                Ok(state) => goes_on = go_on(state, &mut self.unsent)?,
                Err(error) => {
                    let rest = incoming.get_mut(used + discard..).unwrap_or_default();
                    encode_alert(&mut self.session, rest, &mut self.unsent);
                    let _ = self.send_unsent();
                    return Err(undecipherable(error));
                }
            }
            used += discard;
        }
        Ok(used)
    }

    /// Gives encrypted bytes to the kernel. `false`: it does not take all of them now.
    fn send_unsent(&mut self) -> io::Result<bool> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => drop(self.unsent.drain(..taken)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        release(&mut self.unsent);
        Ok(true)
    }

    /// Writes bytes. Returns the number of those that the kernel has taken, encrypted. See
    /// [`channel`](crate::channel).
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if it takes none; else the connection has failed.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() {
            if !self.send_unsent()? {
                break;
            }
            if self.sealed > 0 {
                taken += std::mem::take(&mut self.sealed);
                continue;
            }
            let rest = bytes.get(taken..).unwrap_or_default();
            let plain = rest.get(..SEAL_BYTES).unwrap_or(rest);
            SCRATCH.with_borrow_mut(|scratch| self.seal(plain, scratch))?;
        }
        if taken == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    /// Encrypts bytes, and gives them to the kernel. What it does not take waits in `unsent`.
    fn seal(&mut self, plain: &[u8], scratch: &mut [u8]) -> io::Result<()> {
        let encrypt = |mut traffic: WriteTraffic<'_, ServerConnectionData>| {
            traffic.encrypt(plain, scratch).map_err(io::Error::other)
        };
        let Some(bytes) = self.with_traffic(encrypt)? else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let sealed = scratch.get(..bytes).unwrap_or_default();
        self.sealed = plain.len();
        let taken = match self.unsent.is_empty() {
            true => match self.stream.write(sealed) {
                Ok(taken) => taken,
                Err(error) if is_temporary(&error) => 0,
                Err(error) => return Err(error),
            },
            // Messages of TLS itself, such as an update of keys, come first.
            false => 0,
        };
        self.unsent.extend_from_slice(sealed.get(taken..).unwrap_or_default());
        Ok(())
    }

    /// Calls `act` in the state in which bytes can be sent. `None`: the session is closed.
    fn with_traffic<T>(
        &mut self,
        act: impl FnOnce(WriteTraffic<'_, ServerConnectionData>) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.session.process_tls_records(&mut self.carry);
            match state.map_err(io::Error::other)? {
                ConnectionState::WriteTraffic(traffic) => {
                    let outcome = act(traffic);
                    self.carry.drain(..discard);
                    return outcome.map(Some);
                }
                ConnectionState::ReadTraffic(traffic) => {
                    discard += take_records(traffic, |bytes| {
                        self.decrypted.extend_from_slice(bytes);
                    })
                    .map_err(io::Error::other)?;
                }
                ConnectionState::PeerClosed => self.is_ended = true,
                state => {
                    if !go_on(state, &mut self.unsent)? {
                        return Ok(None);
                    }
                }
            }
            self.carry.drain(..discard);
        }
    }

    /// Tells the peer that no more bytes come (`close_notify`, RFC 8446 §6.1).
    pub(crate) fn finish_writing(&mut self) -> io::Result<()> {
        let mut notice = [0; RECORD_OVERHEAD_BYTES];
        let notify = |mut traffic: WriteTraffic<'_, ServerConnectionData>| {
            traffic.queue_close_notify(&mut notice).map_err(io::Error::other)
        };
        if let Some(bytes) = self.with_traffic(notify)? {
            self.unsent.extend_from_slice(notice.get(..bytes).unwrap_or_default());
        }
        self.send_unsent()?;
        self.stream.shutdown(std::net::Shutdown::Write)
    }
}

/// Encodes what explains a failed session to the peer. `incoming`: the received bytes that are not
/// used.
pub(crate) fn encode_alert(
    session: &mut UnbufferedServerConnection,
    incoming: &mut [u8],
    unsent: &mut Vec<u8>,
) {
    // The alert is the next that the failed session gives.
    if let Ok(state) = session.process_tls_records(incoming).state {
        let _ = go_on(state, unsent);
    }
}

/// Takes decrypted records, in order. Returns the number of received bytes to discard for them.
pub(crate) fn take_records(
    mut traffic: ReadTraffic<'_, '_, ServerConnectionData>,
    mut take: impl FnMut(&[u8]),
) -> Result<usize, rustls::Error> {
    let mut discard = 0;
    while let Some(record) = traffic.next_record() {
        let record = record?;
        discard += record.discard;
        take(record.payload);
    }
    Ok(discard)
}

/// The error of a session whose records cannot be decrypted. An alert is the peer's own end.
fn undecipherable(error: rustls::Error) -> io::Error {
    let kind = match error {
        rustls::Error::AlertReceived(_) => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Gives the memory of an empty buffer back, if it is large.
fn release(buffer: &mut Vec<u8>) {
    if buffer.is_empty() && buffer.capacity() > KEEP_BYTES {
        *buffer = Vec::new();
    }
}
