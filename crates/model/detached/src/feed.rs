//! The queue of events for the thread of the apps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use crossbeam_queue::SegQueue;

use crate::event::{Delivery, DetachedEvent};
use crate::link::SwitchLink;

/// Maximum number of bytes of packet_ins that wait for the thread of the apps.
pub const MAX_PACKET_BYTES: usize = 16 << 20;

/// Maximum number of bytes of all other events that wait.
pub const MAX_EVENT_BYTES: usize = 64 << 20;

/// Events of all switches and detached apps of a controller, for one thread. Workers add to it
/// without a lock.
pub struct Feed {
    queue: SegQueue<Delivery>,
    packet_bytes: AtomicUsize,
    event_bytes: AtomicUsize,
    /// Number of links so far.
    links: AtomicU64,
    /// Whether the thread sleeps, so that the next event must wake it.
    is_asleep: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Feed {
    /// Makes an empty feed. `wake` wakes the thread that takes the events: it is called once for
    /// each [`sleep`](Self::sleep), by the thread that adds the next event, and must not block.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Feed {
            queue: SegQueue::new(),
            packet_bytes: AtomicUsize::new(0),
            event_bytes: AtomicUsize::new(0),
            links: AtomicU64::new(0),
            is_asleep: AtomicBool::new(false),
            wake: Box::new(wake),
        }
    }

    /// Takes the next event.
    pub fn pop(&self) -> Option<Delivery> {
        let delivery = self.queue.pop()?;
        let bytes = delivery.event.bytes();
        if let DetachedEvent::PacketIns(_) = delivery.event {
            self.packet_bytes.fetch_sub(bytes, Ordering::Relaxed);
            delivery.link.packet_bytes.fetch_sub(bytes, Ordering::Relaxed);
        } else {
            self.event_bytes.fetch_sub(bytes, Ordering::Relaxed);
            if let DetachedEvent::Tick = delivery.event {
                delivery.link.has_tick.store(false, Ordering::Relaxed);
            }
        }
        Some(delivery)
    }

    /// Whether no event waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Asks to be woken by the next event. `false`: one waits already, and nobody wakes.
    #[must_use]
    pub fn sleep(&self) -> bool {
        self.is_asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.queue.is_empty() || !self.is_asleep.swap(false, Ordering::SeqCst)
    }

    /// Wakes the thread if it sleeps.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::Relaxed) && self.is_asleep.swap(false, Ordering::SeqCst) {
            (self.wake)();
        }
    }

    /// Returns the number of the next link.
    pub(crate) fn next_link(&self) -> u64 {
        self.links.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds packet_ins, unless too many wait. Returns whether they were added.
    pub(crate) fn push_packets(&self, link: &Arc<SwitchLink>, messages: &[u8]) -> bool {
        let event = DetachedEvent::PacketIns(messages.to_vec());
        let bytes = event.bytes();
        let waiting = self.packet_bytes.load(Ordering::Relaxed);
        let free = MAX_PACKET_BYTES.saturating_sub(waiting);
        // A switch may have as much as is still free: what one floods with takes no more than half,
        // and each further one leaves space too.
        let own = link.packet_bytes.load(Ordering::Relaxed);
        if own + bytes > free {
            return false;
        }
        self.packet_bytes.fetch_add(bytes, Ordering::Relaxed);
        link.packet_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.push(link, event);
        true
    }

    /// Adds another event, unless too many wait. Returns whether it was added.
    pub(crate) fn push_event(&self, link: &Arc<SwitchLink>, event: DetachedEvent) -> bool {
        let bytes = event.bytes();
        if self.event_bytes.load(Ordering::Relaxed) + bytes > MAX_EVENT_BYTES {
            return false;
        }
        self.push_last(link, event);
        true
    }

    /// Adds an event in any case: for the one that ends a link. There is one for each link.
    pub(crate) fn push_last(&self, link: &Arc<SwitchLink>, event: DetachedEvent) {
        self.event_bytes.fetch_add(event.bytes(), Ordering::Relaxed);
        self.push(link, event);
    }

    /// Whether at most half of the space for events is used.
    pub(crate) fn has_space(&self) -> bool {
        self.event_bytes.load(Ordering::Relaxed) <= MAX_EVENT_BYTES / 2
    }

    fn push(&self, link: &Arc<SwitchLink>, event: DetachedEvent) {
        self.queue.push(Delivery { link: Arc::clone(link), event });
        self.wake();
    }
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Feed({} events wait)", self.queue.len())
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::runtime::EmptyNetwork;
    use bellrock_api::{AppId, Dpid, Version};

    use super::*;
    use crate::link::AppCounts;

    fn link() -> Arc<SwitchLink> {
        let Some(app) = AppId::new(0, "test") else { unreachable!("there is a first place") };
        let (place, counts) = ((app, EmptyNetwork::network()), Arc::new(AppCounts::new(&[])));
        Arc::new(SwitchLink::new(0, Dpid(1), Version::V1_3, place, counts))
    }

    #[test]
    fn a_switch_that_floods_leaves_half_of_the_space_to_others() {
        let feed = Feed::new(|| {});
        let (flood, other) = (link(), link());
        let packets = vec![0; 64 * 1024];
        let taken = (0..1000).take_while(|_| feed.push_packets(&flood, &packets)).count();
        let half = MAX_PACKET_BYTES / packets.len() / 2;
        assert!((half - 2..=half).contains(&taken), "{taken} of {half}");
        assert!(feed.push_packets(&other, &packets));
        while feed.pop().is_some() {}
        assert!(feed.push_packets(&flood, &packets), "what was taken frees its space");
    }

    #[test]
    fn other_events_have_space_of_their_own() {
        let feed = Feed::new(|| {});
        let link = link();
        while feed.push_packets(&link, &[0; 4096]) {}
        assert!(feed.push_event(&link, DetachedEvent::Barrier(1)));
        let error = || DetachedEvent::Error(vec![0; 1 << 20]);
        let taken = (0..1000).take_while(|_| feed.push_event(&link, error())).count();
        assert!((60..=64).contains(&taken), "{taken}");
        feed.push_last(&link, DetachedEvent::SwitchDown);
        let mut last = None;
        while let Some(delivery) = feed.pop() {
            last = Some(delivery.event);
        }
        assert!(matches!(last, Some(DetachedEvent::SwitchDown)));
    }

    #[test]
    fn the_next_event_after_a_sleep_wakes_once() {
        let woken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&woken);
        let feed = Feed::new(move || _ = counted.fetch_add(1, Ordering::Relaxed));
        let link = link();
        assert!(feed.push_event(&link, DetachedEvent::Barrier(1)));
        assert_eq!(woken.load(Ordering::Relaxed), 0, "it does not sleep");
        assert!(!feed.is_empty() && !feed.sleep(), "an event waits");
        assert!(feed.pop().is_some());
        assert!(feed.sleep());
        for _ in 0..3 {
            assert!(feed.push_event(&link, DetachedEvent::Barrier(1)));
        }
        assert_eq!(woken.load(Ordering::Relaxed), 1);
    }
}
