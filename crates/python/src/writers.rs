//! What apps write to switches during one event, so that an event that fails can be undone.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bellrock::openflow::xid::XidSource;
use bellrock::{Error, Network, Result, Switch, SwitchInfo};
use bellrock_detached::{Mark, SwitchLink, Writer};

/// Maximum number of writers that are kept for later events: each has a buffer.
const MAX_FREE: usize = 8;

/// The writers of an event: one for each switch that the app writes to, which is rarely more than
/// the one of the event.
#[derive(Default)]
pub(crate) struct Writers {
    used: Vec<SwitchWriter>,
    free: Vec<Writer>,
    /// Whether an event is being handled: what is written is sent after it.
    is_in_event: bool,
}

struct SwitchWriter {
    link: Arc<SwitchLink>,
    network: Network,
    writer: Writer,
    /// What was written before the current event.
    mark: Mark,
}

impl Writers {
    /// Writes to a switch.
    ///
    /// # Errors
    /// Those of [`Writer::write`].
    pub(crate) fn write<T>(
        &mut self,
        (link, network): (&Arc<SwitchLink>, &Network),
        info: &SwitchInfo,
        clock: (&mut XidSource, Duration),
        write: impl FnOnce(&mut Switch<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let is_in_event = self.is_in_event;
        let result = self.of(link, network).writer.write(link, info, clock, write);
        if !is_in_event {
            self.post();
        }
        result
    }

    /// Passes a packet_in of this switch on to the rest of the chain.
    pub(crate) fn pass(&mut self, link: &Arc<SwitchLink>, network: &Network, message: &[u8]) {
        self.of(link, network).writer.pass(message);
    }

    /// Begins an event.
    pub(crate) fn begin(&mut self) {
        self.is_in_event = true;
        for used in &mut self.used {
            used.mark = used.writer.mark();
        }
    }

    /// Discards what was written during the event.
    pub(crate) fn undo(&mut self) {
        for used in &mut self.used {
            used.writer.undo_to(used.mark);
        }
    }

    /// Ends the event, and sends everything.
    pub(crate) fn post(&mut self) {
        self.is_in_event = false;
        for mut used in mem::take(&mut self.used) {
            used.writer.post(&used.link, &used.network);
            if self.free.len() < MAX_FREE {
                self.free.push(used.writer);
            }
        }
    }

    /// Reports that the app failed at an event of this switch.
    pub(crate) fn fault(&mut self, link: &Arc<SwitchLink>, network: &Network, why: &str) {
        self.of(link, network).writer.fault(link, network, why);
    }

    fn of(&mut self, link: &Arc<SwitchLink>, network: &Network) -> &mut SwitchWriter {
        let number = link.number();
        let at = self.used.iter().position(|used| used.link.number() == number);
        let at = at.unwrap_or_else(|| {
            let writer = self.free.pop().unwrap_or_default();
            let (link, network, mark) = (Arc::clone(link), network.clone(), writer.mark());
            self.used.push(SwitchWriter { link, network, writer, mark });
            self.used.len() - 1
        });
        &mut self.used[at]
    }
}
