//! A reservation as it is stored, and what is reserved by all of them.
//!
//! Each reservation is an entry of the store: hosts, rate, route, and the lines that count as
//! reserved. All bandwidth is reserved here: an order that takes lines is checked against all
//! entries, and stored only if none has changed since ([`EntryBook`]). So concurrent requests,
//! also at several controllers, never reserve more on a line than its capacity.

use std::collections::{BTreeMap, BTreeSet};

use bellrock_api::{Dpid, HostId, SwitchPort};
use bellrock_book::{BookModel, Draft, EntryBook, Words};

use super::errors::NotReserved;
use super::ledger::{Ledger, LinkDirection};
use super::names::Kbps;
use super::reservation::{MAX_RESERVATIONS, Reservation, ReservationState};
use super::route::{CandidateRoute, HostRoute};

/// The reservations of the store.
pub(super) type Bookings = EntryBook<BookedModel>;

/// A stored reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Booking {
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) rate: Kbps,
    /// Name and number of its queue.
    pub(super) queue: Option<(String, u32)>,
    /// The controller that is at work on it, besides the leader.
    pub(super) work: Option<Work>,
    pub(super) status: Status,
    /// Its flows are wanted in the switches of this route.
    pub(super) route: Option<HostRoute>,
    /// The lines of these routes count as reserved. A route stays here until its flows are gone.
    pub(super) holds: Vec<HostRoute>,
    /// A switch that refuses its part, as the switch's master has found, with the reason.
    pub(super) refused: Option<(Dpid, String)>,
}

/// What the controller of this name does with a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// It has the order, and waits until the flows are confirmed.
    Installing(String),
    /// It waits until the flows are gone.
    Releasing(String),
}

/// Whether a stored reservation carries packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Its flows were confirmed. Packets leave switches by these ports.
    Installed(Vec<SwitchPort>),
    /// With the reason.
    Unknown(String),
    /// With the reason.
    Lost(String),
}

impl Booking {
    /// The lines that it holds.
    pub(super) fn lines(&self) -> BTreeSet<LinkDirection> {
        self.holds.iter().flat_map(HostRoute::lines).collect()
    }

    /// The reservation, as operators see it.
    pub(super) fn shown(&self, id: u32) -> Reservation {
        let state = match (&self.work, &self.status) {
            (Some(Work::Installing(_)), _) => ReservationState::Pending,
            (_, Status::Installed(ports)) => ReservationState::Installed(ports.clone()),
            (_, Status::Unknown(why)) => ReservationState::Unknown(why.clone()),
            (_, Status::Lost(why)) => ReservationState::Lost(why.clone()),
        };
        let Booking { from, to, rate, .. } = *self;
        let queue = self.queue.as_ref().map(|(name, _)| name.clone());
        Reservation { id, from, to, rate, queue, state }
    }

    /// Whether the controller `node` decides about it; `is_leader`: whether it leads.
    pub(super) fn is_decided_by(
        &self,
        node: &str,
        is_leader: bool,
        is_alive: impl Fn(&str) -> bool,
    ) -> bool {
        match &self.work {
            Some(Work::Installing(by) | Work::Releasing(by)) if is_alive(by) => by == node,
            _ => is_leader,
        }
    }
}

/// Name of a reservation in the store.
pub(super) fn name(id: u32) -> String {
    format!("reservation/{id}")
}

pub(super) fn id(name: &str) -> Option<u32> {
    name.strip_prefix("reservation/")?.parse().ok()
}

/// What is known of all stored reservations.
#[derive(Debug, Default)]
pub(super) struct BookedModel {
    ledger: Ledger,
    pairs: BTreeMap<(HostId, HostId), u32>,
    ids: BTreeSet<u32>,
    /// Reservations that have changed since the last [`BookedModel::take_changed`].
    changed: BTreeSet<u32>,
    /// Whether one was removed since.
    has_removed: bool,
}

impl BookedModel {
    /// Reserved rate of a line, in kbit/s.
    pub(super) fn reserved(&self, line: LinkDirection) -> u64 {
        self.ledger.reserved(line)
    }

    /// The reservations that have changed since the last call, and whether one was removed.
    pub(super) fn take_changed(&mut self) -> (BTreeSet<u32>, bool) {
        (std::mem::take(&mut self.changed), std::mem::take(&mut self.has_removed))
    }
}

impl BookModel for BookedModel {
    type Value = Booking;

    fn read(_: &str, value: &str) -> Result<Booking, String> {
        let words = Words::parse(value)?;
        let host = |mac: &str, vlan| Ok::<_, String>(HostId::new(words.read(mac)?, vlan));
        let vlan = words.read_some("vlan")?;
        let (from, to) = (host("from", vlan)?, host("to", vlan)?);
        let route = |text: &str| {
            HostRoute::parse([from, to], text).ok_or_else(|| format!("{text} is not a route"))
        };
        let queue = words.text("queue").map(|name| {
            let number = words.read("queue_number")?;
            Ok::<_, String>((name.to_owned(), number))
        });
        let refused = words
            .text("refused")
            .map(|why| Ok::<_, String>((words.read("refused_by")?, why.to_owned())));
        let by = |key: &str| words.text(key).map(str::to_owned);
        let work = match (by("installing"), by("releasing")) {
            (_, Some(by)) => Some(Work::Releasing(by)),
            (by, None) => by.map(Work::Installing),
        };
        let status = match (words.text("lost"), words.text("unknown")) {
            (Some(why), _) => Status::Lost(why.to_owned()),
            (None, Some(why)) => Status::Unknown(why.to_owned()),
            (None, None) => {
                let port = |text: &str| text.parse().map_err(|_| format!("{text} is not a port"));
                Status::Installed(words.all("port").map(port).collect::<Result<_, String>>()?)
            }
        };
        Ok(Booking {
            from,
            to,
            rate: Kbps(words.read("kbps")?),
            queue: queue.transpose()?,
            work,
            status,
            route: words.text("route").map(route).transpose()?,
            holds: words.all("holds").map(route).collect::<Result<_, _>>()?,
            refused: refused.transpose()?,
        })
    }

    fn show(booking: &Booking) -> String {
        let (lost, unknown) = match &booking.status {
            Status::Installed(_) => (None, None),
            Status::Unknown(why) => (None, Some(why)),
            Status::Lost(why) => (Some(why), None),
        };
        let (installing, releasing) = match &booking.work {
            Some(Work::Installing(by)) => (Some(by), None),
            Some(Work::Releasing(by)) => (None, Some(by)),
            None => (None, None),
        };
        let words = Words::default()
            .with("from", booking.from.mac)
            .with("to", booking.to.mac)
            .with_some("vlan", booking.from.vlan)
            .with("kbps", booking.rate.0)
            .with_some("queue", booking.queue.as_ref().map(|(name, _)| name))
            .with_some("queue_number", booking.queue.as_ref().map(|(_, number)| number))
            .with_some("installing", installing)
            .with_some("releasing", releasing)
            .with_some("lost", lost)
            .with_some("unknown", unknown)
            .with_some("refused", booking.refused.as_ref().map(|(_, why)| why))
            .with_some("refused_by", booking.refused.as_ref().map(|(dpid, _)| dpid))
            .with_some("route", booking.route.as_ref().map(HostRoute::text));
        let ports = match &booking.status {
            Status::Installed(ports) => &ports[..],
            _ => &[],
        };
        let words = ports.iter().fold(words, |words, port| words.with("port", port));
        let holds = booking.holds.iter();
        holds.fold(words, |words, route| words.with("holds", route.text())).show()
    }

    fn change(&mut self, name: &str, before: Option<&Booking>, after: Option<&Booking>) {
        let Some(id) = id(name) else { return };
        self.changed.insert(id);
        self.has_removed |= after.is_none();
        if let Some(before) = before {
            before.lines().into_iter().for_each(|line| self.ledger.subtract(line, before.rate.0));
            self.pairs.remove(&(before.from, before.to));
            self.ids.remove(&id);
        }
        if let Some(after) = after {
            after.lines().into_iter().for_each(|line| self.ledger.add(line, after.rate.0));
            self.pairs.insert((after.from, after.to), id);
            self.ids.insert(id);
        }
    }
}

/// Reserved rate of a line, with the changes of a draft, in kbit/s.
pub(super) fn reserved(draft: &Draft<'_, BookedModel>, line: LinkDirection) -> u64 {
    let mut kbps = draft.model().reserved(line);
    let of = |booking: Option<&Booking>| {
        let holds = |booking: &&Booking| {
            booking.holds.iter().any(|route| route.lines().any(|held| held == line))
        };
        booking.filter(holds).map_or(0, |booking| booking.rate.0)
    };
    for (_, before, after) in draft.changes() {
        kbps = (kbps + of(after)).saturating_sub(of(before));
    }
    kbps
}

/// The number for a new reservation between two hosts.
pub(super) fn free_id(
    draft: &Draft<'_, BookedModel>,
    from: HostId,
    to: HostId,
) -> Result<u32, NotReserved> {
    let model = draft.model();
    let mut changed = BTreeMap::new();
    for (name, _, after) in draft.changes() {
        if let Some(id) = id(name) {
            changed.insert(id, after);
        }
    }
    let stored = model.pairs.get(&(from, to)).copied().filter(|id| !changed.contains_key(id));
    let drafted = changed.iter().find(|(_, booking)| {
        booking.is_some_and(|booking| (booking.from, booking.to) == (from, to))
    });
    if let Some(id) = stored.or(drafted.map(|(id, _)| *id)) {
        return Err(NotReserved::Reserved { from, to, id });
    }
    let is_free = |id: &u32| match changed.get(id) {
        Some(changed) => changed.is_none(),
        None => !model.ids.contains(id),
    };
    (1..=MAX_RESERVATIONS).find(is_free).ok_or(NotReserved::TooMany)
}

/// Takes the lines of the first of these routes that are all free, besides those that `holds` has.
/// Each route has the capacity of its lines, in kbit/s. Returns the index of the route.
pub(super) fn take(
    draft: &Draft<'_, BookedModel>,
    routes: &[CandidateRoute],
    holds: &[HostRoute],
    rate: Kbps,
) -> Option<usize> {
    let held: BTreeSet<_> = holds.iter().flat_map(HostRoute::lines).collect();
    let fits = |(line, capacity): &(LinkDirection, u64)| {
        held.contains(line) || reserved(draft, *line).saturating_add(rate.0) <= *capacity
    };
    routes.iter().position(|(_, lines)| lines.iter().all(fits))
}

/// The error when other reservations use the missing bandwidth.
pub(super) fn taken(
    draft: &Draft<'_, BookedModel>,
    routes: &[CandidateRoute],
    [from, to]: [HostId; 2],
    rate: Kbps,
) -> NotReserved {
    let free = |(line, capacity): (LinkDirection, u64)| {
        (capacity.saturating_sub(reserved(draft, line)), line, capacity)
    };
    let lines = routes.first().into_iter().flat_map(|(_, lines)| lines.iter().copied());
    match lines.map(free).min() {
        Some((free, line, capacity)) => {
            NotReserved::Taken { rate, line, free: Kbps(free), capacity: Kbps(capacity) }
        }
        None => NotReserved::NoPath { from, to },
    }
}
