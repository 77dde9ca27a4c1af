//! What handlers tell the task that installs flows, and what wakes it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_channel::{Receiver, Sender};
use bellrock_api::{Dpid, Network, Port};
use bellrock_services::paths::paths;

use super::flows::{Pair, Traffic};

/// News that wait at most. What handlers have to say beyond that is not said; their packets are
/// delivered all the same.
const MAX_NEWS: usize = 1 << 14;

/// What the task is told.
pub(super) enum News {
    /// Paths or hosts are not what they were.
    Changed,
    /// A packet of these came to the controller: they have no flows, or not all.
    Talking(Pair),
    /// A flow between these has gone, since they were silent.
    Silent(Pair, Dpid),
    /// A switch is up. What flows it has is not known. The flows that it is sent are counted there.
    SwitchUp(Dpid, Arc<AtomicU64>),
    /// The flows of the app that it has: the ports that they send to.
    Found(Dpid, Vec<(Traffic, Port)>),
}

/// The way to the task. There is one of each controller.
pub(super) struct Inbox {
    sender: Sender<News>,
    pub(super) receiver: Receiver<News>,
}

impl Default for Inbox {
    fn default() -> Self {
        let (sender, receiver) = async_channel::bounded(MAX_NEWS);
        Inbox { sender, receiver }
    }
}

impl Inbox {
    /// Tells it, for handlers. `false`: too much waits already.
    pub(super) fn tell(&self, news: News) -> bool {
        self.sender.try_send(news).is_ok()
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
