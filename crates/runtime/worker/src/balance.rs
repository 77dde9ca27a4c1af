//! Decides when to hand switches over, which ones, and to which worker. (Maestro's case: all busy
//! switches belong to one worker while another is idle.)
//!
//! Each worker decides for itself, from its own load and the loads that the others publish: one
//! word each, written once a window and never for a packet. `hand_over` carries the decision out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::settings::{HAND_OVER_SWITCHES, HAND_OVER_WINDOWS, IDLE_PERMILLE, OVERLOADED_PERMILLE};
use crate::transport::ConnectionKey;

/// A share of time, in thousandths.
pub(crate) type Permille = u16;

/// The load that a worker publishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerLoad {
    /// Share of the last window in which it was busy.
    pub(crate) busy: Permille,
    /// Number of its connections.
    pub(crate) connections: usize,
}

/// The published loads of all workers.
#[derive(Debug)]
pub(crate) struct WorkerLoads(Box<[CachePadded<AtomicU64>]>);

impl WorkerLoads {
    pub(crate) fn of(workers: usize) -> Self {
        WorkerLoads((0..workers).map(|_| CachePadded::default()).collect())
    }

    pub(crate) fn publish(&self, worker: usize, load: WorkerLoad) {
        if let Some(word) = self.0.get(worker) {
            word.store(to_word(load), Ordering::Relaxed);
        }
    }

    /// The worker with the lowest load, if it is idle enough and can take another connection.
    pub(crate) fn idlest(
        &self,
        excluded: usize,
        max_connections: usize,
    ) -> Option<(usize, WorkerLoad)> {
        let loads = self.0.iter().map(|word| from_word(word.load(Ordering::Relaxed)));
        let is_suitable =
            |load: &WorkerLoad| load.busy <= IDLE_PERMILLE && load.connections < max_connections;
        let others =
            loads.enumerate().filter(|(worker, load)| *worker != excluded && is_suitable(load));
        others.min_by_key(|(_, load)| (load.busy, load.connections))
    }

    /// Reserves time of a worker for the switches that it is about to get, visible to other
    /// workers. `false`: another worker was faster, or a new load was published meanwhile.
    pub(crate) fn reserve(&self, worker: usize, current: WorkerLoad, expected: WorkerLoad) -> bool {
        let (seen, expected) = (to_word(current), to_word(expected));
        self.0.get(worker).is_some_and(|word| {
            word.compare_exchange(seen, expected, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        })
    }
}

fn to_word(load: WorkerLoad) -> u64 {
    (load.connections as u64) << 16 | u64::from(load.busy)
}

fn from_word(word: u64) -> WorkerLoad {
    WorkerLoad { busy: word as Permille, connections: (word >> 16) as usize }
}

/// Share of a window that was busy.
pub(crate) fn permille(busy: Duration, window: Duration) -> Permille {
    let share = busy.as_nanos() * 1000 / window.as_nanos().max(1);
    share.min(1000) as Permille
}

/// Number of windows for which a worker has been overloaded.
#[derive(Debug, Default)]
pub(crate) struct OverloadWindows {
    windows: u32,
    /// Number of this period of overload. Loads of switches are counted anew in each.
    period: u32,
}

impl OverloadWindows {
    /// Ends a window. `true`: the worker has been overloaded long enough to hand switches over.
    pub(crate) fn end_window(&mut self, busy: Permille) -> bool {
        if busy < OVERLOADED_PERMILLE {
            self.windows = 0;
            return false;
        }
        if self.windows == 0 {
            self.period = self.period.wrapping_add(1);
        }
        self.windows += 1;
        // The first window begins before the count does.
        self.windows > HAND_OVER_WINDOWS
    }

    /// Restarts the count, after switches were handed over.
    pub(crate) fn restart(&mut self) {
        self.windows = 0;
    }
}

/// The load that a switch causes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SwitchLoad {
    period: u32,
    bytes: u64,
    /// Until this time the switch stays at its worker.
    pinned_until: Duration,
}

impl SwitchLoad {
    /// Counts bytes from the switch. Bytes approximate the work that they cause, without a look at
    /// the clock for every read.
    #[inline]
    pub(crate) fn add(&mut self, overload: &OverloadWindows, bytes: usize) {
        if self.period != overload.period {
            (self.period, self.bytes) = (overload.period, 0);
        }
        self.bytes += bytes as u64;
    }

    /// Bytes from the switch in this period of overload.
    pub(crate) fn bytes(&self, overload: &OverloadWindows) -> u64 {
        if self.period == overload.period { self.bytes } else { 0 }
    }

    pub(crate) fn is_pinned(&self, now: Duration) -> bool {
        now < self.pinned_until
    }

    /// For a switch that has moved to another worker: it stays there until `pinned_until`.
    pub(crate) fn pinned(rest_until: Duration) -> Self {
        SwitchLoad { pinned_until: rest_until, ..SwitchLoad::default() }
    }
}

/// Picks the switches to hand over. Returns them with the load that they will cause at the other
/// worker. `bytes` has the counts of the movable switches, `total` the count of all.
///
/// Picks the largest first, as long as neither worker crosses the middle between their loads. So
/// the other worker never becomes the busier one, and a switch that is the only load stays.
pub(crate) fn pick(
    mut bytes: Vec<(u64, ConnectionKey)>,
    total: u64,
    own_load: Permille,
    other_load: Permille,
    max_switches: usize,
) -> (Vec<ConnectionKey>, Permille) {
    bytes.sort_unstable_by(|one, other| other.cmp(one));
    let half = u64::from(own_load.saturating_sub(other_load)) / 2;
    let (mut keys, mut moved) = (Vec::new(), 0);
    for (bytes, key) in bytes {
        if keys.len() >= max_switches.min(HAND_OVER_SWITCHES) || bytes == 0 {
            break;
        }
        let share = bytes.saturating_mul(u64::from(own_load)) / total.max(1);
        if moved + share <= half {
            moved += share;
            keys.push(key);
        }
    }
    (keys, moved as Permille)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(bytes: &[u64], mine: Permille, theirs: Permille) -> Vec<ConnectionKey> {
        let of = bytes.iter().copied().zip(0..).collect();
        let (mut keys, moved) = pick(of, bytes.iter().sum(), mine, theirs, usize::MAX);
        assert!(moved <= (mine - theirs) / 2, "{moved} of {mine} to {theirs}");
        keys.sort_unstable();
        keys
    }

    #[test]
    fn half_of_the_difference_goes_and_never_more() {
        assert_eq!(picked(&[10; 16], 1000, 0).len(), 8);
        assert_eq!(picked(&[10; 16], 1000, 500).len(), 4);
        assert_eq!(picked(&[10; 3], 1000, 0).len(), 1);
        assert_eq!(picked(&[10, 10], 1000, 0).len(), 1);
        assert_eq!(picked(&[600, 400], 1000, 0), [1]);
        assert_eq!(picked(&[900, 60, 40], 1000, 0), [1, 2]);
        assert_eq!(picked(&[450, 300, 200, 50], 1000, 0), [0, 3]);
    }

    #[test]
    fn a_switch_stays_when_its_move_would_not_balance_the_load() {
        assert_eq!(picked(&[10], 1000, 0), []);
        assert_eq!(picked(&[10, 0, 0], 1000, 0), []);
        assert_eq!(picked(&[10; 4], 950, 950), []);
    }

    #[test]
    fn no_more_go_than_there_is_room_for() {
        let many: Vec<_> = (0..1000).map(|key| (1, key)).collect();
        assert_eq!(pick(many.clone(), 1000, 1000, 0, 3).0.len(), 3);
        assert_eq!(pick(many, 1000, 1000, 0, usize::MAX).0.len(), HAND_OVER_SWITCHES);
    }

    #[test]
    fn a_worker_is_overloaded_when_it_was_so_for_some_windows_without_a_break() {
        let mut strain = OverloadWindows::default();
        for _ in 0..HAND_OVER_WINDOWS {
            assert!(!strain.end_window(1000));
        }
        assert!(strain.end_window(OVERLOADED_PERMILLE));
        assert!(!strain.end_window(OVERLOADED_PERMILLE - 1));
        assert!(!strain.end_window(1000));
    }

    #[test]
    fn the_load_of_earlier_windows_does_not_count() {
        let (mut strain, mut burden) = (OverloadWindows::default(), SwitchLoad::default());
        burden.add(&strain, 100);
        strain.end_window(1000);
        assert_eq!(burden.bytes(&strain), 0);
        burden.add(&strain, 7);
        strain.end_window(1000);
        burden.add(&strain, 8);
        assert_eq!(burden.bytes(&strain), 15);
    }

    #[test]
    fn the_idlest_other_worker_is_found_and_can_be_reserved_once() {
        let loads = WorkerLoads::of(4);
        let load = |busy, connections| WorkerLoad { busy, connections };
        for (worker, its) in
            [load(990, 5), load(300, 5), load(200, 9), load(100, 10)].into_iter().enumerate()
        {
            loads.publish(worker, its);
        }
        assert_eq!(loads.idlest(0, 100), Some((3, load(100, 10))));
        assert_eq!(loads.idlest(0, 10), Some((2, load(200, 9))));
        assert_eq!(loads.idlest(3, 6), Some((1, load(300, 5))));
        assert_eq!(loads.idlest(1, 5), None);
        assert!(loads.reserve(3, load(100, 10), load(550, 14)));
        assert!(!loads.reserve(3, load(100, 10), load(550, 14)));
        assert_eq!(loads.idlest(0, 100), Some((2, load(200, 9))));
    }

    #[test]
    fn shares_of_a_window_are_thousandths() {
        let ms = Duration::from_millis;
        assert_eq!(permille(ms(0), ms(100)), 0);
        assert_eq!(permille(ms(25), ms(100)), 250);
        assert_eq!(permille(ms(101), ms(100)), 1000);
        assert_eq!(permille(ms(1), ms(0)), 1000);
    }
}
