//! The way of messages from the send buffer to the transport.

use std::sync::atomic::Ordering;

use bellrock_api::openflow::{Out, frame};

use super::{Connection, User, WorkerOf};
use crate::settings::WriteMode;
use crate::transport::{ConnectionKey, Transport};

impl<U: User> WorkerOf<U> {
    /// Passes the send buffer to the transport.
    pub(crate) fn flush<T: Transport>(&mut self, key: ConnectionKey, transport: &mut T) {
        if self.out.is_empty() {
            return;
        }
        let out = std::mem::replace(&mut self.out, Out::with_capacity(0));
        match self.settings.write {
            WriteMode::Coalesce => U::send(self, key, out.as_slice(), transport),
            WriteMode::Immediate => {
                let mut rest = out.as_slice();
                while let Ok(Some(message)) = frame(rest) {
                    U::send(self, key, message.bytes, transport);
                    rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
                }
            }
        }
        self.out = out;
        self.out.clear();
    }

    /// Passes the send buffer to the transport, then returns it for a connection that writes more.
    pub(crate) fn flushed<T: Transport>(
        &mut self,
        key: ConnectionKey,
        transport: &mut T,
    ) -> Option<(&mut Connection<U>, &mut Out)> {
        self.flush(key, transport);
        Some((self.connections.get_mut(key)?, &mut self.out))
    }

    /// Sends bytes as they are.
    pub(crate) fn send<T: Transport>(
        &mut self,
        key: ConnectionKey,
        bytes: &[u8],
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get(key) else { return };
        self.counters.writes.add(1);
        self.counters.bytes_out.add(bytes.len() as u64);
        connection.note_queued(&self.user, transport.send(key, bytes));
    }
}

impl<U: User> Connection<U> {
    /// Notes the number of bytes that wait to be written.
    pub(crate) fn note_queued(&self, user: &U, bytes: usize) {
        self.counts.backlog.store(bytes, Ordering::Relaxed);
        user.queued(&self.stage, bytes);
    }
}
