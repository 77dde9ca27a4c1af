//! Connections as a worker of the lab sees them: bytes in memory.

use std::any::Any;

use bellrock_worker::{Key, ReadOutcome, Transport};

use crate::topology::SwitchId;

/// A connection of a switch, told apart from all that were before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct WireId {
    pub(super) switch: SwitchId,
    /// Counted up for each switch.
    pub(super) number: u32,
}

/// What a worker has done to a connection.
#[derive(Debug)]
pub(super) enum Sent {
    Bytes(Vec<u8>),
    Closed,
}

/// The connections of one worker.
#[derive(Default)]
pub(super) struct Wires {
    /// By their keys, which workers give anew as soon as they are free, the lowest first.
    wires: Vec<Option<Wire>>,
    /// What has gone out since it was last asked for.
    pub(super) sent: Vec<(WireId, Sent)>,
    /// Connections that came from another worker since it was last asked for.
    pub(super) attached: Vec<(WireId, Key)>,
}

struct Wire {
    id: WireId,
    inbox: Vec<u8>,
    /// Bytes of `inbox` that were read.
    read: usize,
}

impl Wires {
    pub(super) fn insert(&mut self, key: Key, id: WireId) {
        self.put(key, Wire { id, inbox: Vec::new(), read: 0 });
    }

    /// Bytes have arrived for the worker to read.
    pub(super) fn arrived(&mut self, key: Key, bytes: &[u8]) {
        if let Some(wire) = self.at(key) {
            wire.inbox.extend_from_slice(bytes);
        }
    }

    fn put(&mut self, key: Key, wire: Wire) {
        if self.wires.len() <= key {
            self.wires.resize_with(key + 1, || None);
        }
        if let Some(place) = self.wires.get_mut(key) {
            *place = Some(wire);
        }
    }

    fn at(&mut self, key: Key) -> Option<&mut Wire> {
        self.wires.get_mut(key)?.as_mut()
    }
}

impl Transport for Wires {
    fn read(&mut self, key: Key, buffer: &mut [u8]) -> ReadOutcome {
        let Some(wire) = self.at(key) else { return ReadOutcome::Empty };
        let waiting = wire.inbox.get(wire.read..).unwrap_or(&[]);
        let n = waiting.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..n), waiting.get(..n)) {
            to.copy_from_slice(from);
        }
        wire.read += n;
        if wire.read == wire.inbox.len() {
            wire.inbox.clear();
            wire.read = 0;
        }
        match n {
            0 => ReadOutcome::Empty,
            n => ReadOutcome::Bytes { n, more: n == buffer.len() },
        }
    }

    /// A connection of the lab takes everything at once.
    fn send(&mut self, key: Key, bytes: &[u8]) -> usize {
        if let Some(id) = self.at(key).map(|wire| wire.id) {
            self.sent.push((id, Sent::Bytes(bytes.to_vec())));
        }
        0
    }

    fn close(&mut self, key: Key) {
        if let Some(wire) = self.wires.get_mut(key).and_then(Option::take) {
            self.sent.push((wire.id, Sent::Closed));
        }
    }

    fn detach(&mut self, key: Key) -> Option<Box<dyn Any + Send>> {
        let wire = self.wires.get_mut(key)?.take()?;
        Some(Box::new(wire))
    }

    fn attach(&mut self, key: Key, channel: Box<dyn Any + Send>) {
        if let Ok(wire) = channel.downcast::<Wire>() {
            self.attached.push((wire.id, key));
            self.put(key, *wire);
        }
    }
}
