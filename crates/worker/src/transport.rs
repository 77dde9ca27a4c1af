//! What carries bytes between a worker and its switches.

use std::any::Any;

/// A connection, by its place in the worker. Places are used again after a connection is closed.
pub type Key = usize;

/// What became of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// So many bytes came (at least one). `more` tells that the buffer was filled: there may be
    /// more at once.
    Bytes {
        /// Bytes that came.
        n: usize,
        /// The buffer was filled.
        more: bool,
    },
    /// Nothing is there now.
    Empty,
    /// The peer closed its end, or the connection failed.
    Closed,
}

/// Carries bytes. Implemented by the engine over sockets, and by tests over memory.
pub trait Transport {
    /// Reads what is there into `buffer`, in one go.
    fn read(&mut self, key: Key, buffer: &mut [u8]) -> ReadOutcome;

    /// Takes all of `bytes`: passes on what the peer takes now and queues the rest. Returns how
    /// many bytes are queued afterwards.
    fn send(&mut self, key: Key, bytes: &[u8]) -> usize;

    /// Closes the connection, after what is queued has had its chance to go out. The worker has
    /// forgotten the key already.
    fn close(&mut self, key: Key);

    /// Takes a connection out, with all that waits in it, for the transport of another worker;
    /// `None` if it cannot leave.
    fn detach(&mut self, key: Key) -> Option<Box<dyn Any + Send>> {
        let _ = key;
        None
    }

    /// Takes in what the transport of another worker, or this one, has given away by
    /// [`Transport::detach`], under a new key. If that fails, the worker is told that the
    /// connection was [closed](crate::Worker::closed).
    fn attach(&mut self, key: Key, channel: Box<dyn Any + Send>) {
        let _ = (key, channel);
    }
}
