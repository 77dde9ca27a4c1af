//! The way of messages from the send buffer to the transport.

use std::sync::atomic::Ordering;

use bellrock_api::openflow::Out;

use crate::flood;
use crate::settings::WriteMode;
use crate::transport::{ConnectionKey, Transport};
use crate::worker::Worker;

impl Worker {
    /// Passes the send buffer to the transport.
    pub(crate) fn flush<T: Transport>(&mut self, key: ConnectionKey, transport: &mut T) {
        if self.out.is_empty() {
            return;
        }
        let out = std::mem::replace(&mut self.out, Out::with_capacity(0));
        match self.settings.write {
            WriteMode::Coalesce => self.send_messages(key, out.as_slice(), transport),
            WriteMode::Immediate => {
                let mut rest = out.as_slice();
                while let Ok(Some(message)) = bellrock_api::openflow::frame(rest) {
                    self.send_messages(key, message.bytes, transport);
                    rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
                }
            }
        }
        self.out = out;
        self.out.clear();
    }

    /// Sends whole messages.
    pub(crate) fn send_messages<T: Transport>(
        &mut self,
        key: ConnectionKey,
        bytes: &[u8],
        transport: &mut T,
    ) {
        if self.connections.get(key).is_some_and(|connection| connection.uses_all_for_flood) {
            let mut bytes = bytes.to_vec();
            flood::use_all(&mut bytes);
            return self.send(key, &bytes, transport);
        }
        self.send(key, bytes, transport);
    }

    pub(crate) fn send<T: Transport>(
        &mut self,
        key: ConnectionKey,
        bytes: &[u8],
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get(key) else { return };
        self.counters.writes.add(1);
        self.counters.bytes_out.add(bytes.len() as u64);
        let queued = transport.send(key, bytes);
        connection.counts.backlog.store(queued, Ordering::Relaxed);
    }
}
