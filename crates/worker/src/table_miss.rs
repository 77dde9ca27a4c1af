//! The table-miss entry: the one flow of the controller itself, which brings what matches no other (1.3).

use std::time::Duration;

use bellrock_api::{Cookie, FlowRemoved, FlowRemovedReason};
use tracing::warn;

use crate::connection::{Stage, Up};
use crate::transport::{Key, Transport};
use crate::worker::Worker;

impl Worker {
    /// Puts it back when somebody else has removed it: without it, no further packet would come.
    pub(crate) fn keep_table_miss<T: Transport>(
        &mut self,
        key: Key,
        removed: &FlowRemoved<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        let was_deleted = removed.reason == FlowRemovedReason::Delete;
        let cookie = Cookie::CONTROLLER;
        if !was_deleted || !cookie.owns(removed.cookie) || !self.wants_packet_ins() {
            return;
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Stage::Up(Up { info, .. }) = &connection.stage else { return };
        if self.log.allows(now, &self.counters) {
            warn!(dpid = %info.dpid, "somebody else removed the table-miss entry: it is put back");
        }
        if connection.session.table_miss(cookie.with(0), &mut self.out).is_err() {
            self.flush(key, transport);
            let Some(connection) = self.connections.get_mut(key) else { return };
            let _ = connection.session.table_miss(cookie.with(0), &mut self.out);
        }
    }
}
