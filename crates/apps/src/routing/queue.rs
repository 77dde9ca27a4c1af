//! News for the task that installs flows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_channel::{Receiver, Sender};
use bellrock_api::{Dpid, Port, SharedCounter};

use super::flows::{FlowTraffic, HostPair};

/// Maximum length of the queue. Further news of handlers are dropped; packets still get delivered.
const MAX_NEWS: usize = 1 << 14;

/// An event for the task.
pub(super) enum RoutingEvent {
    /// A switch has connected: [`RoutingQueue::take_up`] returns it.
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
        let (sender, receiver) = async_channel::bounded(MAX_NEWS);
        RoutingQueue { sender, receiver, up: Mutex::default() }
    }
}

impl RoutingQueue {
    /// Sends news, for handlers. Returns `false` if the queue is full.
    pub(super) fn tell(&self, news: RoutingEvent) -> bool {
        self.sender.try_send(news).is_ok()
    }

    /// Reports a connected switch. Never lost: if the queue is full, its items wake the task.
    pub(super) fn switch_up(&self, dpid: Dpid, flow_mods: Arc<SharedCounter>) {
        self.up().insert(dpid, flow_mods);
        self.tell(RoutingEvent::SwitchUp);
    }

    /// Returns the switches that have connected since the last call.
    pub(super) fn take_up(&self) -> BTreeMap<Dpid, Arc<SharedCounter>> {
        std::mem::take(&mut self.up())
    }

    /// A panic under this lock leaves the map whole: each change is one call.
    fn up(&self) -> MutexGuard<'_, BTreeMap<Dpid, Arc<SharedCounter>>> {
        self.up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends news, waiting for space in the queue.
    pub(super) async fn tell_in_time(&self, news: RoutingEvent) {
        // The queue stays open as long as the receiver exists.
        let _ = self.sender.send(news).await;
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
        while inbox.tell(RoutingEvent::Talking(HostPair { from: host, to: host })) {}
        inbox.switch_up(Dpid(7), Arc::default());
        assert!(inbox.receiver.is_full(), "something wakes the task");
        assert_eq!(inbox.take_up().into_keys().collect::<Vec<_>>(), [Dpid(7)]);
        assert!(inbox.take_up().is_empty());
    }
}
