//! Decrypts the TLS connections of a capture with a log of their keys.
//!
//! [`Decryptor`] stands between the reassembled streams and the framer. A connection that begins with
//! a handshake of TLS is decrypted; all others pass. The hello messages name the session and its
//! cipher suite. A handshake must be in the capture from its beginning, and without gaps: the keys of
//! a record depend on the number of records before it.

mod keys;
mod records;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) use keys::KeyLog;
use records::{Session, TlsConnection};

use super::tcp::{Gap, ReceiveStep, Receiver};
use super::{CaptureProblem, Framer, Sink, StreamId, TLS_HANDSHAKE};

/// Maximum number of connections that are decrypted at a time. Above it, the others are not.
const MAX_CONNECTIONS: usize = 16 * 1024;

/// Why a connection cannot be decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TlsProblem {
    /// The log lacks them.
    #[error(
        "the key log has no keys of this session; the controller must write it (SSLKEYLOGFILE) from its start"
    )]
    NoKeys,
    /// An older version, or a suite without authenticated encryption.
    #[error("it is neither TLS 1.2 nor 1.3 with AES-GCM or ChaCha20-Poly1305")]
    Unsupported,
    /// It has no hello messages where they should be.
    #[error("its handshake is not as it should be")]
    Handshake,
    /// The keys do not fit.
    #[error("a record does not fit the keys of the log")]
    Record,
    /// A gap.
    #[error("what follows a gap of TLS stays encrypted")]
    Gap,
    /// See [`MAX_CONNECTIONS`].
    #[error("there are more connections by TLS than {MAX_CONNECTIONS}")]
    TooMany,
}

/// Both ends of a connection, the lower one first.
type Ends = (SocketAddr, SocketAddr);

/// See the [module](self).
pub(super) struct Decryptor<'k, 's, S> {
    pub(super) framer: Framer<'s, S>,
    keys: Option<&'k KeyLog>,
    connections: HashMap<Ends, Connection>,
}

enum Connection {
    Open(Box<TlsConnection>),
    /// A problem was reported. The rest is skipped.
    Failed,
}

impl<'k, 's, S: Sink> Decryptor<'k, 's, S> {
    /// Without keys, everything passes.
    pub(super) fn new(framer: Framer<'s, S>, keys: Option<&'k KeyLog>) -> Self {
        Decryptor { framer, keys, connections: HashMap::new() }
    }

    fn fail(&mut self, stream: StreamId, offset: u64, why: TlsProblem) {
        self.connections.insert(ends(stream), Connection::Failed);
        self.framer.sink.problem(CaptureProblem::Encrypted { stream, offset, why });
    }
}

fn ends(stream: StreamId) -> Ends {
    (stream.src.min(stream.dst), stream.src.max(stream.dst))
}

impl<S: Sink> Receiver for Decryptor<'_, '_, S> {
    fn bytes(
        &mut self,
        stream: StreamId,
        time: Duration,
        offset: u64,
        bytes: &[u8],
    ) -> ReceiveStep {
        let Some(keys) = self.keys else { return self.framer.bytes(stream, time, offset, bytes) };
        let begins = offset == 0 && bytes.starts_with(&TLS_HANDSHAKE);
        if begins && !self.connections.contains_key(&ends(stream)) {
            if self.connections.len() >= MAX_CONNECTIONS {
                let why = TlsProblem::TooMany;
                self.framer.sink.problem(CaptureProblem::Encrypted { stream, offset, why });
                return ReceiveStep::Kept;
            }
            let new = TlsConnection::new(stream.src);
            self.connections.insert(ends(stream), Connection::Open(Box::new(new)));
        }
        let connection = match self.connections.get_mut(&ends(stream)) {
            None => return self.framer.bytes(stream, time, offset, bytes),
            Some(Connection::Failed) => return ReceiveStep::Kept,
            Some(Connection::Open(connection)) => connection,
        };
        connection.add(stream, bytes);
        let find = |random: &_, suite, server: &_, is_13| {
            Session::new(keys.of(random)?, suite, random, server, is_13)
        };
        let (framer, back) = (&mut self.framer, StreamId { src: stream.dst, dst: stream.src });
        let is_from_client = stream.src == connection.client();
        let outcome = connection.advance(find, |by_client, offset, plain| {
            let stream = if by_client == is_from_client { stream } else { back };
            // What is no OpenFlow was reported, and the next record is tried again.
            let _ = framer.bytes(stream, time, offset, plain);
        });
        if let Err(why) = outcome {
            self.fail(stream, offset, why);
        }
        ReceiveStep::Kept
    }

    fn gap(&mut self, stream: StreamId, offset: u64, bytes: u64, cause: Gap) {
        self.framer.gap(stream, offset, bytes, cause);
        if let Some(Connection::Open(_)) = self.connections.get(&ends(stream)) {
            self.fail(stream, offset, TlsProblem::Gap);
        }
    }

    fn joined(&mut self, stream: StreamId) {
        self.framer.joined(stream);
    }

    fn skipped(&mut self, stream: StreamId, offset: u64, bytes: u64) {
        if !self.connections.contains_key(&ends(stream)) {
            self.framer.skipped(stream, offset, bytes);
        }
    }

    fn end(&mut self, stream: StreamId) {
        // The same ports may carry another connection, when both streams have ended.
        if let Some(connection) = self.connections.get_mut(&ends(stream))
            && let Connection::Open(open) = connection
            && open.end(stream.src)
        {
            self.connections.remove(&ends(stream));
        }
        self.framer.end(stream);
    }

    fn forgotten(&mut self, stream: StreamId) {
        self.connections.remove(&ends(stream));
        self.framer.forgotten(stream);
    }
}
