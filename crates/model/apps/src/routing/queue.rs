//! News for the task that installs flows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_channel::{Receiver, Sender};
use bellrock_api::{Dpid, Port, SharedCounter};

use super::flows::{FlowTraffic, HostPair};

/// Maximum length of the queue. Further events of handlers are dropped; packets still get
/// delivered.
const MAX_EVENTS: usize = 1 << 14;

/// An event for the task.
pub(super) enum RoutingEvent {
    /// A switch has connected: [`RoutingQueue::take_connected`] returns it.
    SwitchUp,
    /// A packet of this pair came to the controller: some or all of its flows are missing.
    Talking(HostPair),
    /// An idle flow of this pair was removed.
    Silent(HostPair, Dpid),
    /// The app's flows of a switch, and their output ports.
    Found(Dpid, Vec<(FlowTraffic, Port)>),
}

/// The task's queue. There is one for each controller.
pub(super) struct RoutingQueue {
    sender: Sender<RoutingEvent>,
    pub(super) receiver: Receiver<RoutingEvent>,
    /// Switches that have connected since the task last read this map. Their flows are unknown. The
    /// value counts the flows sent to the switch.
    up: Mutex<BTreeMap<Dpid, Arc<SharedCounter>>>,
}

impl Default for RoutingQueue {
    fn default() -> Self {
        let (sender, receiver) = async_channel::bounded(MAX_EVENTS);
        RoutingQueue { sender, receiver, up: Mutex::default() }
    }
}

impl RoutingQueue {
    /// Sends an event, for handlers. Returns `false` if the queue is full.
    pub(super) fn send(&self, event: RoutingEvent) -> bool {
        self.sender.try_send(event).is_ok()
    }

    /// Reports a connected switch. Never lost: if the queue is full, its items wake the task.
    pub(super) fn switch_up(&self, dpid: Dpid, flow_mods: Arc<SharedCounter>) {
        self.connected().insert(dpid, flow_mods);
        self.send(RoutingEvent::SwitchUp);
    }

    /// Returns the switches that have connected since the last call.
    pub(super) fn take_connected(&self) -> BTreeMap<Dpid, Arc<SharedCounter>> {
        std::mem::take(&mut self.connected())
    }

    /// A panic under this lock leaves the map whole: each change is one call.
    fn connected(&self) -> MutexGuard<'_, BTreeMap<Dpid, Arc<SharedCounter>>> {
        self.up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event, waiting for space in the queue.
    pub(super) async fn send_wait(&self, event: RoutingEvent) {
        // The queue stays open as long as the receiver exists.
        let _ = self.sender.send(event).await;
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::{HostId, MacAddr};

    use super::*;

    #[test]
    fn however_much_hosts_have_to_say_no_switch_is_overlooked() {
        let inbox = RoutingQueue::default();
        let host = HostId::new(MacAddr([2, 0, 0, 0, 0, 1]), None);
        while inbox.send(RoutingEvent::Talking(HostPair { from: host, to: host })) {}
        inbox.switch_up(Dpid(7), Arc::default());
        assert!(inbox.receiver.is_full(), "something wakes the task");
        assert_eq!(inbox.take_connected().into_keys().collect::<Vec<_>>(), [Dpid(7)]);
        assert!(inbox.take_connected().is_empty());
    }
}
