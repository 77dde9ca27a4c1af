//! Answers about events: the latest ones, and those after a known one.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bellrock_api::{
    AlarmState as State, EVENTS_KEPT, Event, EventRecord, Names, Network, OPEN_ALARMS_KEPT,
    SubscriptionItem,
};
use bellrock_query::{
    AlarmState, EventRow, EventsAfter, FollowEvents, ListEvents, MAX_EVENTS_AT_ONCE,
    MAX_EVENTS_WAIT_MS, QueryError, Rows,
};

use super::wait::wait_until;

/// The page counts from the newest event; its rows are ordered by time.
///
/// # Errors
/// No event is of that kind.
pub(super) fn list(
    network: &Network,
    names: &Names,
    run: Run,
    query: &ListEvents,
) -> Result<Rows<EventRow>, QueryError> {
    let kind = query.kind.as_deref();
    if let Some(kind) = kind.filter(|kind| !Event::NAMES.contains(kind)) {
        let why = format!("no event is called {kind:?}; give one of {}", Event::NAMES.join(", "));
        return Err(QueryError::invalid("kind", why));
    }
    let clock = Clock::read(network);
    let is_wanted = |record: &EventRecord| {
        kind.is_none_or(|kind| record.event.name() == kind)
            && (!query.alarming || record.event.is_alarming())
            && (!query.open || record.state == Some(State::Open))
    };
    let mut newest_first = network.events().latest(EVENTS_KEPT + OPEN_ALARMS_KEPT);
    newest_first.retain(is_wanted);
    newest_first.reverse();
    let mut events =
        Rows::of(newest_first, query.page).map(|record| event_row(&record, names, run, clock));
    events.rows.reverse();
    Ok(events)
}

/// Waits for the events after a known one.
///
/// # Errors
/// `after` is no id of an event, or the wait is too long.
pub(super) fn follow(
    network: &Network,
    names: &Names,
    run: Run,
    query: &FollowEvents,
) -> Result<EventsAfter, QueryError> {
    if query.wait_ms > MAX_EVENTS_WAIT_MS {
        let why = format!("`wait_ms` is at most {MAX_EVENTS_WAIT_MS}");
        return Err(QueryError::invalid("wait_ms", why));
    }
    let known = query.after.as_deref().map(|id| parse_id(id).ok_or_else(|| not_an_id(id)));
    let count = network.events().count();
    let (next, restarted) = match known.transpose()? {
        None => (count, false),
        // An id that no event has yet would hide the next ones.
        Some((of, number)) if of == run => {
            (number.map_or(0, |number| number.saturating_add(1)).min(count), false)
        }
        Some(_) => (0, true),
    };
    let mut subscription = network.events().subscribe_from(next);
    let deadline = Instant::now() + Duration::from_millis(query.wait_ms);
    let first = subscription.take().or_else(|| wait_until(deadline, subscription.next()));
    let clock = Clock::read(network);
    let mut answer = EventsAfter {
        restarted,
        missed: 0,
        events: Vec::new(),
        last: id(run, next.checked_sub(1)),
    };
    let mut item = first;
    while let Some(one) = item {
        match one {
            SubscriptionItem::Missed(n) => answer.missed += n,
            SubscriptionItem::Event(record) => {
                answer.events.push(event_row(&record, names, run, clock));
            }
        }
        if answer.events.len() == MAX_EVENTS_AT_ONCE {
            break;
        }
        item = subscription.take();
    }
    if let Some(row) = answer.events.last() {
        answer.last.clone_from(&row.id);
    }
    Ok(answer)
}

/// A run of the controller, which numbers its events from 0: the time of its start, in milliseconds
/// since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run(u64);

impl Run {
    /// The run that starts now.
    pub fn starting() -> Self {
        Run(unix_ms())
    }
}

/// The place of an event: its run and number. The place before the first event is `RUN-start`.
fn id(Run(run): Run, number: Option<u64>) -> String {
    match number {
        Some(number) => format!("{run:x}-{number}"),
        None => format!("{run:x}-{BEFORE_FIRST}"),
    }
}

const BEFORE_FIRST: &str = "start";

/// The run of a place, and the number of its event. `None` for the place before the first event.
fn parse_id(id: &str) -> Option<(Run, Option<u64>)> {
    let (run, number) = id.split_once('-')?;
    let run = Run(u64::from_str_radix(run, 16).ok()?);
    match number {
        BEFORE_FIRST => Some((run, None)),
        number => Some((run, Some(number.parse().ok()?))),
    }
}

fn not_an_id(id: &str) -> QueryError {
    let why = format!("{id:?} is not the id of an event, such as \"19a8f3c2b10-42\"");
    QueryError::invalid("after", why)
}

/// Two clocks at one moment: the controller's, and that of the calendar.
#[derive(Clone, Copy)]
struct Clock {
    now: Duration,
    unix_ms: u64,
}

impl Clock {
    fn read(network: &Network) -> Self {
        Clock { now: network.now(), unix_ms: unix_ms() }
    }

    /// A time of the controller's clock in that of the calendar.
    fn unix_ms_of(self, time: Duration) -> u64 {
        let age = self.now.saturating_sub(time);
        self.unix_ms.saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
    }
}

fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn event_row(record: &EventRecord, names: &Names, run: Run, clock: Clock) -> EventRow {
    let event = &record.event;
    let (state, ended) = match record.state {
        None => (None, None),
        Some(State::Open) => (Some(AlarmState::Open), None),
        Some(State::Over { at }) => (Some(AlarmState::Over), Some(at)),
    };
    EventRow {
        id: id(run, Some(record.number)),
        seconds_ago: clock.now.saturating_sub(record.time).as_secs(),
        unix_ms: clock.unix_ms_of(record.time),
        event: event.name().to_owned(),
        text: names.in_text(&event.to_string()),
        alarming: event.is_alarming(),
        reason: event.connection_end().map(|why| why.reason.name().to_owned()),
        state,
        ended_unix_ms: ended.map(|at| clock.unix_ms_of(at)),
        ends: record.ends.map(|number| id(run, Some(number))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        let run = Run(0x019a_8f3c_2b10);
        for number in [None, Some(0), Some(u64::MAX)] {
            assert_eq!(parse_id(&id(run, number)), Some((run, number)));
        }
        assert_eq!(id(run, Some(42)), "19a8f3c2b10-42");
        for wrong in ["", "42", "-", "x-1", "1-x", "1--1", "1-1-1", "1-18446744073709551616"] {
            assert_eq!(parse_id(wrong), None, "{wrong}");
        }
    }
}
