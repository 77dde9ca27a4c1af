//! Connections of the lab's workers: bytes in memory.

use std::any::Any;

use bellrock_worker::{ConnectionKey, ReadOutcome, Transport};

use crate::topology::SwitchIndex;

/// Id of a connection of a switch; different for each of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct WireId {
    pub(super) switch: SwitchIndex,
    /// Counts the connections of each switch.
    pub(super) number: u32,
}

/// Output of a worker for a connection.
#[derive(Debug)]
pub(super) enum WorkerOutput {
    Bytes(Vec<u8>),
    Closed,
}

/// The connections of one worker.
#[derive(Default)]
pub(super) struct WorkerWires {
    /// By their keys. Workers reuse a free key at once, the lowest first.
    wires: Vec<Option<WorkerWire>>,
    /// Output since it was last taken.
    pub(super) sent: Vec<(WireId, WorkerOutput)>,
    /// Connections that came from another worker since they were last taken.
    pub(super) attached: Vec<(WireId, ConnectionKey)>,
}

struct WorkerWire {
    id: WireId,
    inbox: Vec<u8>,
    /// Number of bytes of `inbox` that were read.
    read: usize,
}

impl WorkerWires {
    pub(super) fn insert(&mut self, key: ConnectionKey, id: WireId) {
        self.put(key, WorkerWire { id, inbox: Vec::new(), read: 0 });
    }

    /// Appends arrived bytes for the worker to read.
    pub(super) fn arrived(&mut self, key: ConnectionKey, bytes: &[u8]) {
        if let Some(wire) = self.at(key) {
            wire.inbox.extend_from_slice(bytes);
        }
    }

    fn put(&mut self, key: ConnectionKey, wire: WorkerWire) {
        if self.wires.len() <= key {
            self.wires.resize_with(key + 1, || None);
        }
        if let Some(place) = self.wires.get_mut(key) {
            *place = Some(wire);
        }
    }

    fn at(&mut self, key: ConnectionKey) -> Option<&mut WorkerWire> {
        self.wires.get_mut(key)?.as_mut()
    }
}

impl Transport for WorkerWires {
    fn read(&mut self, key: ConnectionKey, buffer: &mut [u8]) -> ReadOutcome {
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
            n => ReadOutcome::Bytes { n, has_more: n == buffer.len() },
        }
    }

    /// Takes all bytes at once.
    fn send(&mut self, key: ConnectionKey, bytes: &[u8]) -> usize {
        if let Some(id) = self.at(key).map(|wire| wire.id) {
            self.sent.push((id, WorkerOutput::Bytes(bytes.to_vec())));
        }
        0
    }

    fn close(&mut self, key: ConnectionKey) {
        if let Some(wire) = self.wires.get_mut(key).and_then(Option::take) {
            self.sent.push((wire.id, WorkerOutput::Closed));
        }
    }

    fn detach(&mut self, key: ConnectionKey) -> Option<Box<dyn Any + Send>> {
        let wire = self.wires.get_mut(key)?.take()?;
        Some(Box::new(wire))
    }

    fn attach(&mut self, key: ConnectionKey, channel: Box<dyn Any + Send>) {
        if let Ok(wire) = channel.downcast::<WorkerWire>() {
            self.attached.push((wire.id, key));
            self.put(key, *wire);
        }
    }
}
