//! What a worker does now, for a watchdog in another thread.
//!
//! A worker notes each call of a handler with two stores, for a whole batch of packets at once. The
//! watchdog sees a call that has not ended, however long it lasts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bellrock_api::Dpid;
use crossbeam_utils::CachePadded;

/// An event that a handler is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// `packet_in`.
    PacketIn,
    /// `port_status`.
    PortStatus,
    /// `flow_removed`.
    FlowRemoved,
    /// An answer, an error, or a missing answer of the switch.
    Answer,
    /// `tick`.
    Tick,
    /// `switch_up` of the app or of its handler.
    SwitchUp,
    /// `adopt`.
    Adopt,
    /// `switch_down`, or the drop of the handler.
    SwitchDown,
    /// `resume`.
    Resume,
}

const KINDS: [(EventKind, &str); 9] = [
    (EventKind::PacketIn, "packet_in"),
    (EventKind::PortStatus, "port_status"),
    (EventKind::FlowRemoved, "flow_removed"),
    (EventKind::Answer, "the answer to a message"),
    (EventKind::Tick, "tick"),
    (EventKind::SwitchUp, "switch_up"),
    (EventKind::Adopt, "adopt"),
    (EventKind::SwitchDown, "switch_down"),
    (EventKind::Resume, "resume"),
];

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KINDS.get(*self as usize).map_or("an event", |(_, name)| name))
    }
}

/// The present call of a worker. The worker writes it, any thread reads it.
#[derive(Debug, Default)]
pub struct Activity {
    /// Number of the call, place of the app plus one, and event; 0 between calls.
    call: AtomicU64,
    dpid: AtomicU64,
}

/// A call of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerCall {
    /// Its number, to tell it from the next one.
    pub number: u64,
    /// Place of the app in the chain.
    pub place: usize,
    /// The event.
    pub event: EventKind,
    /// The switch.
    pub dpid: Dpid,
}

const EVENT_BITS: u32 = 4;
const PLACE_BITS: u32 = 8;

impl Activity {
    /// The present call; `None` between calls, or at the moment of a change.
    #[must_use]
    pub fn current(&self) -> Option<HandlerCall> {
        let call = self.call.load(Ordering::Acquire);
        let dpid = Dpid(self.dpid.load(Ordering::Acquire));
        if call != self.call.load(Ordering::Acquire) {
            return None;
        }
        let place = (call >> EVENT_BITS & ((1 << PLACE_BITS) - 1)).checked_sub(1)? as usize;
        let (event, _) = *KINDS.get((call & ((1 << EVENT_BITS) - 1)) as usize)?;
        Some(HandlerCall { number: call >> (EVENT_BITS + PLACE_BITS), place, event, dpid })
    }
}

/// The worker's end.
pub(crate) struct Calls {
    activity: Arc<CachePadded<Activity>>,
    number: u64,
}

impl Calls {
    pub(crate) fn new(activity: Arc<CachePadded<Activity>>) -> Self {
        Calls { activity, number: 0 }
    }

    /// Notes that the handler at this place is about to be called.
    #[inline]
    pub(crate) fn begin(&mut self, place: usize, event: EventKind, dpid: Dpid) {
        self.number += 1;
        let place = (place as u64 + 1) << EVENT_BITS;
        let call = self.number << (EVENT_BITS + PLACE_BITS) | place | event as u64;
        self.activity.dpid.store(dpid.0, Ordering::Release);
        self.activity.call.store(call, Ordering::Release);
    }

    /// Notes that the last handler has returned.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.activity.call.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_seen_until_it_ends_and_each_has_another_number() {
        let activity = Arc::default();
        let mut calls = Calls::new(Arc::clone(&activity));
        assert_eq!(activity.current(), None);
        let mut numbers = Vec::new();
        for (place, (event, name)) in KINDS.into_iter().enumerate() {
            calls.begin(place, event, Dpid(u64::MAX));
            let call = activity.current().unwrap();
            assert_eq!((call.place, call.event, call.dpid), (place, event, Dpid(u64::MAX)));
            assert_eq!(call.event.to_string(), name);
            numbers.push(call.number);
        }
        assert!(numbers.is_sorted_by(|one, next| one < next));
        calls.end();
        assert_eq!(activity.current(), None);
    }
}
