//! What handlers tell the task that installs flows, and what wakes it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_channel::{Receiver, Sender};
use bellrock_api::{Dpid, Network, Port};
use bellrock_services::paths::paths;

use super::flows::{Pair, Traffic};

/// News that wait at most. What handlers have to say beyond that is not said; their packets are
/// delivered all the same.
const MAX_NEWS: usize = 1 << 14;

/// What the task is told.
pub(super) enum News {
    /// Paths, hosts or switches are not what they were.
    Changed,
    /// A packet of these came to the controller: they have no flows, or not all.
    Talking(Pair),
    /// A flow between these has gone, since they were silent.
    Silent(Pair, Dpid),
    /// The flows of the app that it has: the ports that they send to.
    Found(Dpid, Vec<(Traffic, Port)>),
}

/// The way to the task. There is one of each controller.
pub(super) struct Inbox {
    sender: Sender<News>,
    pub(super) receiver: Receiver<News>,
    /// Switches that have come up since the task looked here. What flows they have is not known. The flows that each
    /// is sent are counted there.
    up: Mutex<BTreeMap<Dpid, Arc<AtomicU64>>>,
}

impl Default for Inbox {
    fn default() -> Self {
        let (sender, receiver) = async_channel::bounded(MAX_NEWS);
        Inbox { sender, receiver, up: Mutex::default() }
    }
}

impl Inbox {
    /// Tells it, for handlers. `false`: too much waits already.
    pub(super) fn tell(&self, news: News) -> bool {
        self.sender.try_send(news).is_ok()
    }

    /// Tells it that a switch is up. However much waits, this is not lost: if there is no room to wake the task,
    /// what waits does.
    pub(super) fn switch_up(&self, dpid: Dpid, flow_mods: Arc<AtomicU64>) {
        self.up().insert(dpid, flow_mods);
        self.tell(News::Changed);
    }

    /// The switches that have come up since the last call.
    pub(super) fn take_up(&self) -> BTreeMap<Dpid, Arc<AtomicU64>> {
        std::mem::take(&mut self.up())
    }

    /// A panic under this lock leaves the map whole: each change is one call.
    fn up(&self) -> MutexGuard<'_, BTreeMap<Dpid, Arc<AtomicU64>>> {
        self.up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells it when there is room.
    pub(super) async fn tell_in_time(&self, news: News) {
        // It is open as long as there is somebody to tell.
        let _ = self.sender.send(news).await;
    }
}

/// Tells the task, from now on, when paths or hosts change.
pub(super) fn tell_of_changes(network: &Network) {
    let (inbox, paths) = (network.extension::<Inbox>(), paths(network));
    network.spawn("watch paths", async move {
        let mut seen = 0;
        loop {
            seen = paths.changed(seen).await.version();
            inbox.tell_in_time(News::Changed).await;
        }
    });
    let (inbox, hosts) = (network.extension::<Inbox>(), network.hosts().clone());
    network.spawn("watch hosts", async move {
        let mut seen = 0;
        loop {
            seen = hosts.changed(seen).await.version();
            inbox.tell_in_time(News::Changed).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use bellrock_api::{HostId, MacAddr};

    use super::*;

    #[test]
    fn however_much_hosts_have_to_say_no_switch_is_overlooked() {
        let inbox = Inbox::default();
        let host = HostId::new(MacAddr([2, 0, 0, 0, 0, 1]), None);
        while inbox.tell(News::Talking(Pair { from: host, to: host })) {}
        inbox.switch_up(Dpid(7), Arc::default());
        assert!(inbox.receiver.is_full(), "something wakes the task");
        assert_eq!(inbox.take_up().into_keys().collect::<Vec<_>>(), [Dpid(7)]);
        assert!(inbox.take_up().is_empty());
    }
}
