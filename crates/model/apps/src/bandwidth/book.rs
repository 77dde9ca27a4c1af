//! The book of a controller: the stored reservations, and the orders for the task of each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use bellrock_api::runtime::Promise;
use bellrock_api::{Dpid, Network, Publisher};

use super::booking::{self, Booking, Bookings};
use super::errors::{NotReleased, NotReserved};
use super::reservation::{BandwidthSettings, Reservation, ReservationState};

/// What the handle, the app and the tasks of reservations share.
pub(super) struct ReservationBook {
    pub(super) settings: Publisher<BandwidthSettings>,
    /// Set when the app starts.
    pub(super) network: OnceLock<Network>,
    pub(super) bookings: Bookings,
    /// The tasks of reservations.
    pub(super) tasks: Mutex<BTreeMap<u32, Orders>>,
    ordering: Mutex<Ordering>,
    /// Reservations of an earlier run that were not checked yet.
    pub(super) unverified: Mutex<BTreeSet<u32>>,
}

/// Requests that are being stored, each with the number that its reservation would get. It gets its
/// task from them.
#[derive(Default)]
struct Ordering {
    last: u64,
    ids: BTreeMap<u64, Option<u32>>,
}

/// An order for the task of a reservation.
pub(super) enum ReservationOrder {
    /// The network has changed: check the path.
    Check,
    /// The stored reservation has changed.
    Changed,
    /// Release the bandwidth, and end.
    Release(Promise<Result<(), NotReleased>>),
}

/// The orders of one reservation.
pub(super) type Orders = Arc<Mutex<(VecDeque<ReservationOrder>, Option<Waker>)>>;

impl ReservationBook {
    pub(super) fn new(settings: BandwidthSettings, bookings: Bookings) -> Arc<Self> {
        Arc::new(ReservationBook {
            settings: Publisher::new(settings),
            network: OnceLock::new(),
            bookings,
            tasks: Mutex::default(),
            ordering: Mutex::default(),
            unverified: Mutex::default(),
        })
    }

    /// Lists all reservations, by number.
    pub(super) fn list(&self) -> Vec<Reservation> {
        let unverified = lock(&self.unverified).clone();
        let shown = |(id, booking): (u32, Arc<Booking>)| {
            let mut reservation = booking.shown(id);
            if unverified.contains(&id) && !matches!(reservation.state, ReservationState::Lost(_)) {
                let why = "the controller has restarted, and has not checked it yet";
                reservation.state = ReservationState::Unknown(why.to_owned());
            }
            reservation
        };
        self.stored_reservations().into_iter().map(shown).collect()
    }

    /// The stored reservations, by number.
    pub(super) fn stored_reservations(&self) -> BTreeMap<u32, Arc<Booking>> {
        let all = self.bookings.values().into_iter();
        all.filter_map(|(name, booking)| Some((booking::id(&name)?, booking))).collect()
    }

    /// The name of this controller.
    pub(super) fn node(&self) -> &str {
        self.bookings.node()
    }

    /// Begins to store a request. Returns a number for [`ReservationBook::note_order`].
    pub(super) fn begin_order(&self) -> u64 {
        let mut ordering = lock(&self.ordering);
        ordering.last += 1;
        let number = ordering.last;
        ordering.ids.insert(number, None);
        number
    }

    /// Notes which reservation a request is about to become.
    pub(super) fn note_order(&self, order: u64, id: u32) {
        lock(&self.ordering).ids.insert(order, Some(id));
    }

    /// Ends what [`ReservationBook::begin_order`] has begun. Returns the reservation that the
    /// request may have become.
    pub(super) fn end_order(&self, order: u64) -> Option<u32> {
        lock(&self.ordering).ids.remove(&order).flatten()
    }

    /// Whether a request that is being stored is about to become this reservation.
    pub(super) fn is_ordered(&self, id: u32) -> bool {
        lock(&self.ordering).ids.values().any(|ordered| *ordered == Some(id))
    }

    pub(super) fn add_task(&self, id: u32, orders: &Orders) {
        lock(&self.tasks).insert(id, Arc::clone(orders));
    }

    pub(super) fn is_unverified(&self, id: u32) -> bool {
        lock(&self.unverified).contains(&id)
    }

    pub(super) fn set_verified(&self, id: u32) {
        lock(&self.unverified).remove(&id);
    }

    pub(super) fn queue(&self, name: &str) -> Result<u32, NotReserved> {
        let settings = self.settings.watch().load();
        let queues = &settings.queues;
        queues.get(name).copied().ok_or_else(|| NotReserved::UnknownQueue {
            name: name.to_owned(),
            queues: queues.keys().cloned().collect(),
        })
    }

    /// Ends the task of a reservation. Waiting releases fail, as it no longer exists.
    pub(super) fn close(&self, id: u32) {
        let closed = lock(&self.tasks).remove(&id);
        self.set_verified(id);
        let Some(orders) = closed else { return };
        let waiting = std::mem::take(&mut lock(&orders).0);
        for order in waiting {
            if let ReservationOrder::Release(answer) = order {
                answer.resolve(Err(NotReleased::Unknown(id)));
            }
        }
    }

    /// Makes every lost reservation look for a path: bandwidth was released.
    pub(super) fn retry_lost(&self) {
        let tasks = lock(&self.tasks);
        for (id, booking) in self.stored_reservations() {
            if matches!(booking.status, booking::Status::Lost(_))
                && let Some(orders) = tasks.get(&id)
            {
                send_order(orders, ReservationOrder::Check);
            }
        }
    }

    /// Makes all reservations check their path.
    pub(super) fn check_all(&self) {
        lock(&self.tasks).values().for_each(|orders| send_order(orders, ReservationOrder::Check));
    }

    /// Makes the reservations that pass one of these switches check their path. Not the lost ones:
    /// their own refusals would make them retry.
    pub(super) fn check_switches(&self, switches: &BTreeSet<Dpid>) {
        if switches.is_empty() {
            return;
        }
        let tasks = lock(&self.tasks);
        for (id, booking) in self.stored_reservations() {
            if matches!(booking.status, booking::Status::Installed(_))
                && let Some(route) = &booking.route
                && route.switches().any(|dpid| switches.contains(&dpid))
                && let Some(orders) = tasks.get(&id)
            {
                send_order(orders, ReservationOrder::Check);
            }
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change of what is locked is one insertion, removal or assignment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Queues an order. Several waiting orders to look become one.
pub(super) fn send_order(orders: &Orders, order: ReservationOrder) {
    let mut orders = lock(orders);
    let (waiting, waker) = &mut *orders;
    let waits = match &order {
        ReservationOrder::Check => {
            waiting.iter().any(|order| matches!(order, ReservationOrder::Check))
        }
        ReservationOrder::Changed => {
            waiting.iter().any(|order| matches!(order, ReservationOrder::Changed))
        }
        ReservationOrder::Release(_) => false,
    };
    if !waits {
        waiting.push_back(order);
    }
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// Waits for the next order.
pub(super) async fn next_order(orders: &Orders) -> ReservationOrder {
    std::future::poll_fn(|context| {
        let mut orders = lock(orders);
        match orders.0.pop_front() {
            Some(order) => Poll::Ready(order),
            None => {
                orders.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}
