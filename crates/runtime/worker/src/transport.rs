//! The interface that carries bytes between a worker and its switches.

use std::any::Any;
use std::sync::Arc;

use bellrock_api::SwitchIdentity;

/// Key of a connection in its worker. Keys are used again after a connection is closed.
pub type ConnectionKey = usize;

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// Bytes came, at least one.
    Bytes {
        /// Number of bytes.
        n: usize,
        /// Whether there may be more at once: the buffer was filled, or the transport has bytes
        /// that no event reports.
        has_more: bool,
    },
    /// No bytes are available now.
    Empty,
    /// The peer closed its end, or the connection failed.
    Closed,
    /// What came is not what the peer has encrypted: it was changed on the way, or one end is
    /// wrong.
    Corrupt,
}

/// Carries bytes. The engine implements it with sockets, tests with memory.
pub trait Transport {
    /// Reads the available bytes into `buffer`, once.
    fn read(&mut self, key: ConnectionKey, buffer: &mut [u8]) -> ReadOutcome;

    /// Takes all of `bytes`: sends as many as the peer takes now, and queues the rest. Returns the
    /// number of bytes queued afterwards.
    fn send(&mut self, key: ConnectionKey, bytes: &[u8]) -> usize;

    /// Closes the connection, after an attempt to send what is queued. The worker has already
    /// removed the key.
    fn close(&mut self, key: ConnectionKey);

    /// Whether bytes of the peer are known to wait. They count as a sign of life.
    fn has_unread(&self, key: ConnectionKey) -> bool {
        let _ = key;
        false
    }

    /// Reads the connection again, after its worker left bytes unread on purpose.
    fn resume(&mut self, key: ConnectionKey) {
        let _ = key;
    }

    /// What the peer has proved by TLS. `None`: the connection is plain.
    fn identity(&self, key: ConnectionKey) -> Option<Arc<SwitchIdentity>> {
        let _ = key;
        None
    }

    /// Detaches a connection, with all its queued bytes, for the transport of another worker.
    /// `None` if that is impossible.
    fn detach(&mut self, key: ConnectionKey) -> Option<Box<dyn Any + Send>> {
        let _ = key;
        None
    }

    /// Attaches a connection that [`Transport::detach`] of any worker's transport returned, with a
    /// new key. If that fails, the worker gets a call of [`closed`](crate::Drive::closed).
    fn attach(&mut self, key: ConnectionKey, channel: Box<dyn Any + Send>) {
        let _ = (key, channel);
    }
}
