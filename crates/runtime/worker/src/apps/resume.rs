//! Apps that work in threads of their own: their handlers are resumed when there is something to
//! send, and the packets that they pass on go to the rest of the chain.

use std::time::Duration;

use bellrock_api::Batch;
use bellrock_api::openflow::frame;
use bellrock_api::runtime::BatchControl;

use crate::activity::EventKind;
use crate::apps::Worker;
use crate::mailbox::ConnectionId;
use crate::transport::{ConnectionKey, Transport};

impl Worker {
    /// Resumes the handler of the app at this place of the chain.
    pub(crate) fn resume<T: Transport>(
        &mut self,
        at: ConnectionId,
        place: usize,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(key) = self.local_up_key(at) else {
            self.counters.mail_undeliverable.add(1);
            return;
        };
        self.counters.mail_in.add(1);
        let mut passed = Vec::new();
        self.call_handler_at(key, place, (EventKind::Resume, now), |_, handler, switch| {
            handler.resume(switch, &mut passed)
        });
        self.flush(key, transport);
        self.pass_on(key, place + 1, &passed, now, transport);
    }

    /// Passes packet_ins to the apps from this place on.
    fn pass_on<T: Transport>(
        &mut self,
        key: ConnectionKey,
        place: usize,
        messages: &[u8],
        now: Duration,
        transport: &mut T,
    ) {
        let mut rest = messages;
        while !rest.is_empty() {
            let Some(connection) = self.connections.get(key) else { return };
            let mut batch = Batch::new(messages);
            batch.begin(connection.session.version());
            while !batch.is_full()
                && let Ok(Some(message)) = frame(rest)
            {
                batch.push(message.bytes);
                rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
            }
            if batch.is_empty() {
                // Not whole messages: an error of the app.
                return;
            }
            self.packets_from(place, key, &mut batch, now);
            self.flush(key, transport);
        }
    }
}
