//! Publishes and keeps the events of the network, and gives them to subscribers.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use crate::Event;
use crate::waiting::{WakerList, wake};

/// Number of events kept. A slower subscriber misses the oldest ones, and gets the number missed.
pub const EVENTS_KEPT: usize = 4096;

/// Number of alarms kept ([`Event::is_alarming`]). They have their own space: thousands of other
/// events do not evict them.
const ALARMS_KEPT: usize = EVENTS_KEPT / 4;

/// Number of connection events kept ([`Event::is_about_connection`]), alarming or not. They have
/// their own space too: a peer that reconnects endlessly evicts no other events.
const CONNECTIONS_KEPT: usize = EVENTS_KEPT / 4;

/// Number of events of apps' own kept, alarming or not. An app that publishes endlessly evicts no
/// other events.
const APP_EVENTS_KEPT: usize = EVENTS_KEPT / 4;

/// Number of all other events kept.
const OTHERS_KEPT: usize = EVENTS_KEPT - ALARMS_KEPT - CONNECTIONS_KEPT - APP_EVENTS_KEPT;

/// Number of [open](AlarmState::Open) alarms kept. No other event evicts them. Above it, the oldest
/// one is kept as any other alarm, and its end is not noticed.
pub const OPEN_ALARMS_KEPT: usize = 1024;

/// Number of open alarms of apps' own kept, of all apps together. Above it, the oldest of them is
/// kept as any other event of an app, and its end is not noticed.
pub const OPEN_APP_ALARMS_KEPT: usize = 256;

/// An event, and its time on the controller's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventRecord {
    /// Number of events published before it.
    pub number: u64,
    /// Time of the event.
    pub time: Duration,
    /// The event.
    pub event: Event,
    /// For an alarm with an end ([`Event::has_end`]): whether it has ended.
    pub state: Option<AlarmState>,
    /// Number of the alarm that this event ended. `None`: it ended none. It may have ended several
    /// (both directions of a link, for example); this is the latest.
    pub ends: Option<u64>,
}

/// State of an alarm with an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmState {
    /// What it reports still lasts.
    Open,
    /// It ended.
    Over {
        /// Time of the end.
        at: Duration,
    },
}

/// The events of the network, with subscriptions. All clones share one state.
///
/// Events are rare: alarms come every few seconds at most, and host tracking bounds the events of
/// hosts. Publishing holds a lock only to append to a list, and never waits for subscribers.
#[derive(Clone, Debug, Default)]
pub struct Events(Arc<Mutex<EventLog>>);

#[derive(Debug, Default)]
struct EventLog {
    /// The latest alarms.
    alarms: VecDeque<EventRecord>,
    /// The latest events of connections.
    connections: VecDeque<EventRecord>,
    /// The latest events of apps' own.
    apps: VecDeque<EventRecord>,
    /// The latest of all other events.
    others: VecDeque<EventRecord>,
    /// The open alarms, by number. Those that end move to their list.
    open: BTreeMap<u64, EventRecord>,
    /// Number of events published.
    count: u64,
    wakers: WakerList,
}

/// What a subscription returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionItem {
    /// An event.
    Event(EventRecord),
    /// Number of events missed, because the subscriber was too slow.
    Missed(u64),
}

/// Returns the events published since the subscription began.
#[derive(Debug)]
pub struct Subscription {
    events: Events,
    /// Number of events published before the next one to return.
    next: u64,
}

impl Events {
    pub(crate) fn record(&self, at: Duration, event: Event) {
        let mut log = self.lock();
        let number = log.count;
        log.count += 1;
        let ends = log.end_alarms(&event, at);
        if event.has_end() {
            if let Some(oldest) = log.open_too_many(&event) {
                log.keep(oldest);
            }
            let state = Some(AlarmState::Open);
            log.open.insert(number, EventRecord { number, time: at, event, state, ends });
        } else {
            log.keep(EventRecord { number, time: at, event, state: None, ends });
        }
        let woken_tasks = log.wakers.take();
        drop(log);
        woken_tasks.for_each(wake);
    }

    /// Subscribes to all later events.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.subscribe_from(self.count())
    }

    /// Subscribes to the event with this [number](EventRecord::number) and all later ones. Those
    /// that are not kept any more are reported as missed.
    #[must_use]
    pub fn subscribe_from(&self, number: u64) -> Subscription {
        Subscription { events: self.clone(), next: number }
    }

    /// The last events, at most this many, oldest first.
    #[must_use]
    pub fn latest(&self, maximum: usize) -> Vec<EventRecord> {
        let log = self.lock();
        let all = [&log.alarms, &log.connections, &log.apps, &log.others];
        let mut all: Vec<&EventRecord> =
            all.into_iter().flatten().chain(log.open.values()).collect();
        all.sort_unstable_by_key(|record| record.number);
        let skipped = all.len().saturating_sub(maximum);
        all.into_iter().skip(skipped).cloned().collect()
    }

    /// The open alarms, oldest first.
    #[must_use]
    pub fn open_alarms(&self) -> Vec<EventRecord> {
        self.lock().open.values().cloned().collect()
    }

    /// Whether an alarm is open that `event` would end.
    #[must_use]
    pub fn would_end(&self, event: &Event) -> bool {
        self.lock().open.values().any(|record| event.ends(&record.event))
    }

    /// Number of events published.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// A panic under this lock leaves the lists consistent: each change is one call.
    fn lock(&self) -> MutexGuard<'_, EventLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    /// Waits for the next event.
    pub async fn next(&mut self) -> SubscriptionItem {
        let Subscription { events, next } = self;
        let mut wait = EventWait { events, number: None };
        poll_fn(|context| {
            let mut log = wait.events.lock();
            if let Some(item) = log.after(next) {
                return Poll::Ready(item);
            }
            log.wakers.wait(&mut wait.number, context.waker());
            Poll::Pending
        })
        .await
    }

    /// Returns the next event, if there is one already.
    pub fn take(&mut self) -> Option<SubscriptionItem> {
        self.events.lock().after(&mut self.next)
    }
}

impl EventLog {
    /// Keeps an event that is no open alarm in its list, in the order of the numbers.
    fn keep(&mut self, record: EventRecord) {
        let (ring, maximum) = match &record.event {
            Event::App { .. } => (&mut self.apps, APP_EVENTS_KEPT),
            event if event.is_about_connection() => (&mut self.connections, CONNECTIONS_KEPT),
            event if event.is_alarming() => (&mut self.alarms, ALARMS_KEPT),
            _ => (&mut self.others, OTHERS_KEPT),
        };
        let place = ring.partition_point(|other| other.number < record.number);
        ring.insert(place, record);
        if ring.len() > maximum {
            ring.pop_front();
        }
    }

    /// Takes out the open alarm that another one leaves no space for.
    fn open_too_many(&mut self, event: &Event) -> Option<EventRecord> {
        let is_of_app = |record: &EventRecord| matches!(record.event, Event::App { .. });
        if matches!(event, Event::App { .. }) {
            let of_apps = || self.open.values().filter(|record| is_of_app(record));
            if of_apps().count() >= OPEN_APP_ALARMS_KEPT {
                let oldest = of_apps().next()?.number;
                return self.open.remove(&oldest);
            }
        }
        if self.open.len() < OPEN_ALARMS_KEPT {
            return None;
        }
        self.open.pop_first().map(|(_, oldest)| oldest)
    }

    /// Ends the open alarms that an event ends or repeats. Returns the number of the last one that
    /// it ends.
    fn end_alarms(&mut self, event: &Event, at: Duration) -> Option<u64> {
        let mut ends = None;
        let ended =
            |record: &EventRecord| event.ends(&record.event) || event.repeats(&record.event);
        let numbers: Vec<u64> =
            self.open.values().filter(|it| ended(it)).map(|it| it.number).collect();
        for number in numbers {
            let Some(mut record) = self.open.remove(&number) else { continue };
            if event.ends(&record.event) {
                ends = Some(number);
            }
            record.state = Some(AlarmState::Over { at });
            self.keep(record);
        }
        ends
    }

    /// The next item for a subscriber that has received `received` events.
    fn after(&self, received: &mut u64) -> Option<SubscriptionItem> {
        let rings = [&self.alarms, &self.connections, &self.apps, &self.others];
        let firsts = rings.into_iter().filter_map(|ring| first_from(ring, *received));
        let open = self.open.range(*received..).next().map(|(_, record)| record);
        let record = firsts.chain(open).min_by_key(|record| record.number)?;
        if record.number > *received {
            let missed = record.number - *received;
            *received = record.number;
            return Some(SubscriptionItem::Missed(missed));
        }
        *received += 1;
        Some(SubscriptionItem::Event(record.clone()))
    }
}

/// The first event of a list with at least this number.
fn first_from(ring: &VecDeque<EventRecord>, number: u64) -> Option<&EventRecord> {
    ring.get(ring.partition_point(|other| other.number < number))
}

/// A waiting subscriber. When dropped early, it removes its waker.
struct EventWait<'a> {
    events: &'a Events,
    number: Option<u64>,
}

impl Drop for EventWait<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.events.lock().wakers.forget(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::task::Waker;

    use bellrock_openflow::{MacAddr, Port};

    use super::*;
    use crate::{
        AppEvent, ConnectionEnd, Dpid, EndReason, HostId, Link, LinkDown, MAX_APP_EVENT_TEXT_BYTES,
        SwitchPort,
    };

    fn event(n: u32) -> Event {
        Event::ForgedAnnouncement { at: SwitchPort::new(Dpid(1), Port(n)) }
    }

    fn publish(events: &Events, n: u32) {
        events.record(Duration::from_secs(n.into()), event(n));
    }

    #[test]
    fn a_subscriber_hears_what_came_after_it_and_what_it_missed() {
        let events = Events::default();
        publish(&events, 0);
        let mut heard = events.subscribe();
        assert_eq!(heard.take(), None);
        (1..=ALARMS_KEPT as u32 + 3).for_each(|n| publish(&events, n));
        assert_eq!(heard.take(), Some(SubscriptionItem::Missed(3)));
        let Some(SubscriptionItem::Event(next)) = heard.take() else { panic!("there is one") };
        assert_eq!((next.time, next.event), (Duration::from_secs(4), event(4)));
        assert_eq!(events.count(), ALARMS_KEPT as u64 + 4);
        let latest = events.latest(2);
        assert_eq!(latest.last().map(|it| it.event.clone()), Some(event(ALARMS_KEPT as u32 + 3)));
        assert_eq!(latest.len(), 2);
    }

    #[test]
    fn others_put_no_alarm_out() {
        let events = Events::default();
        let mut heard = events.subscribe();
        publish(&events, 0);
        let at = SwitchPort::new(Dpid(1), Port(1));
        let host = HostId::new(MacAddr([2, 0, 0, 0, 0, 1]), None);
        for _ in 0..2 * EVENTS_KEPT {
            events.record(Duration::ZERO, Event::HostSeen { host, at });
        }
        publish(&events, 1);
        let latest = events.latest(usize::MAX);
        assert_eq!(latest.len(), OTHERS_KEPT + 2);
        assert_eq!(latest.first().map(|it| it.event.clone()), Some(event(0)));
        assert_eq!(latest.last().map(|it| it.event.clone()), Some(event(1)));
        assert!(matches!(heard.take(), Some(SubscriptionItem::Event(it)) if it.event == event(0)));
        let missed = (2 * EVENTS_KEPT - OTHERS_KEPT) as u64;
        assert_eq!(heard.take(), Some(SubscriptionItem::Missed(missed)));
        let rest = std::iter::from_fn(|| heard.take());
        assert_eq!(
            rest.filter(|it| matches!(it, SubscriptionItem::Event(_))).count(),
            latest.len() - 1
        );
    }

    #[test]
    fn connections_put_nothing_else_out() {
        let events = Events::default();
        publish(&events, 0);
        let why = ConnectionEnd { reason: EndReason::Malformed, text: "no OpenFlow".into() };
        for times in 1..=2 * EVENTS_KEPT as u64 {
            let from = Some(IpAddr::from([192, 0, 2, 1]));
            let ended = Event::ConnectionEnded { from, why: why.clone(), times };
            assert!(ended.is_alarming());
            events.record(Duration::ZERO, ended);
        }
        let latest = events.latest(usize::MAX);
        assert_eq!(latest.len(), CONNECTIONS_KEPT + 1);
        assert_eq!(latest.first().map(|it| it.event.clone()), Some(event(0)));
        let last = latest.last().map(|it| it.event.to_string());
        let text = "a connection from 192.0.2.1 ended: no OpenFlow (8192 times)";
        assert_eq!(last.as_deref(), Some(text));
    }

    #[test]
    fn events_of_an_app_put_nothing_else_out() {
        let network = crate::runtime::EmptyNetwork::network();
        network.events().record(Duration::ZERO, event(0));
        let long = "s\u{1b}e\n".repeat(MAX_APP_EVENT_TEXT_BYTES);
        for _ in 0..2 * EVENTS_KEPT {
            network.publish(AppEvent::new("seen", &long).alarming());
        }
        let latest = network.events().latest(usize::MAX);
        assert_eq!(latest.len(), APP_EVENTS_KEPT + 1);
        assert_eq!(latest.first().map(|it| it.event.clone()), Some(event(0)));
        let Some(last) = latest.last() else { panic!("there is one") };
        assert_eq!((last.event.name(), last.event.is_alarming()), ("app_event", true));
        let text = last.event.to_string();
        assert!(text.starts_with("controller reports seen: s e s e "), "{text}");
        assert_eq!(text.len(), "controller reports seen: ".len() + MAX_APP_EVENT_TEXT_BYTES);
    }

    fn lost(from: u32, to: u32) -> Event {
        Event::LinkDown { link: link(from, to), why: LinkDown::Port }
    }

    fn link(from: u32, to: u32) -> Link {
        let [from, to] = [from, to].map(|port| SwitchPort::new(Dpid(1), Port(port)));
        Link { from, to, rate_kbps: None, since: Duration::ZERO }
    }

    fn states(events: &Events) -> Vec<Option<AlarmState>> {
        events.latest(usize::MAX).into_iter().map(|it| it.state).collect()
    }

    #[test]
    fn an_alarm_is_open_until_it_ends() {
        let events = Events::default();
        let mut heard = events.subscribe();
        let over = |s| Some(AlarmState::Over { at: Duration::from_secs(s) });
        events.record(Duration::from_secs(1), lost(1, 2));
        events.record(Duration::from_secs(2), lost(3, 4));
        assert_eq!(states(&events), [Some(AlarmState::Open); 2]);
        assert_eq!(events.open_alarms().len(), 2);
        events.record(Duration::from_secs(3), Event::LinkUp(link(1, 2)));
        assert_eq!(states(&events), [over(3), Some(AlarmState::Open), None]);
        assert_eq!(events.latest(1)[0].ends, Some(0));
        // Both ends of the other one have new cables.
        events.record(Duration::from_secs(4), Event::LinkUp(link(3, 9)));
        assert_eq!(states(&events)[1], over(4));
        assert_eq!(events.open_alarms(), []);
        let numbers = std::iter::from_fn(|| heard.take()).map(|item| match item {
            SubscriptionItem::Event(record) => record.number,
            SubscriptionItem::Missed(n) => panic!("{n} missed"),
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_repeated_alarm_is_open_once() {
        let events = Events::default();
        events.record(Duration::from_secs(1), lost(1, 2));
        events.record(Duration::from_secs(2), lost(1, 2));
        let over = Some(AlarmState::Over { at: Duration::from_secs(2) });
        assert_eq!(states(&events), [over, Some(AlarmState::Open)]);
        assert_eq!(events.latest(1)[0].ends, None);
    }

    #[test]
    fn an_alarm_of_an_app_is_open_until_the_app_ends_it() {
        let network = crate::runtime::EmptyNetwork::network();
        let full = |port| AppEvent::new("link_full", "full").alarming_until_ended(port);
        network.publish(full("s1:1"));
        network.publish(full("s1:2"));
        network.publish(full("s1:1"));
        let events = network.events();
        assert_eq!(events.open_alarms().len(), 2, "one of each port");
        network.publish(AppEvent::new("link_free", "free").ending("link_empty", "s1:1"));
        network.publish(AppEvent::new("link_free", "free").ending("link_full", "s1:3"));
        let other = Event::App {
            app: "other",
            event: AppEvent::new("link_free", "free").ending("link_full", "s1:1"),
        };
        events.record(Duration::ZERO, other);
        assert_eq!(events.open_alarms().len(), 2, "they are of another name, subject and app");
        network.publish(AppEvent::new("link_free", "free").ending("link_full", "s1:1"));
        assert_eq!(events.latest(1)[0].ends, Some(2));
        assert_eq!(events.open_alarms().iter().map(|it| it.number).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn open_alarms_of_apps_put_no_other_out() {
        let network = crate::runtime::EmptyNetwork::network();
        let events = network.events();
        events.record(Duration::ZERO, lost(1, 2));
        for n in 0..2 * OPEN_ALARMS_KEPT {
            let alarm = AppEvent::new("full", "full").alarming_until_ended(&n.to_string());
            network.publish(alarm);
        }
        let open = events.open_alarms();
        assert_eq!(open.len(), OPEN_APP_ALARMS_KEPT + 1);
        assert_eq!(open[0].event, lost(1, 2));
    }

    #[test]
    fn nothing_puts_an_open_alarm_out() {
        let events = Events::default();
        events.record(Duration::ZERO, lost(1, 2));
        (0..2 * ALARMS_KEPT as u32).for_each(|n| publish(&events, n));
        assert_eq!(events.latest(usize::MAX)[0].state, Some(AlarmState::Open));
        for n in 0..OPEN_ALARMS_KEPT as u32 {
            events.record(Duration::ZERO, lost(3 + 2 * n, 4 + 2 * n));
        }
        assert_eq!(events.open_alarms().len(), OPEN_ALARMS_KEPT);
    }

    #[test]
    fn a_task_that_waits_is_woken() {
        let events = Events::default();
        let mut heard = events.subscribe();
        let mut context = std::task::Context::from_waker(Waker::noop());
        let mut next = std::pin::pin!(heard.next());
        assert!(Future::poll(next.as_mut(), &mut context).is_pending());
        publish(&events, 7);
        let polled = Future::poll(next.as_mut(), &mut context);
        let Poll::Ready(SubscriptionItem::Event(it)) = polled else { panic!("it is there") };
        assert_eq!(it.event.to_string(), "a forged announcement came in at 0000000000000001:7");
    }

    #[test]
    fn a_task_that_waits_no_longer_leaves_nothing_behind() {
        struct Count;
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {}
        }
        let (events, count) = (Events::default(), Arc::new(Count));
        let mut heard = events.subscribe();
        for _ in 0..3 {
            let waker = Waker::from(Arc::clone(&count));
            let mut next = Box::pin(heard.next());
            let mut context = std::task::Context::from_waker(&waker);
            assert!(Future::poll(next.as_mut(), &mut context).is_pending());
        }
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
