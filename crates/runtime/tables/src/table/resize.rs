//! Resizing in small steps.
//!
//! A resize has two stages:
//! 1. *Clearing*: `next` is charged to the budget. Its lines are allocated chunk by chunk, if
//!    possible by another thread, and cleared a few at a time. (An allocator asked for cleared
//!    memory may clear all of it at once: megabytes in one insertion.)
//! 2. *Draining*: `next` has become `main`, and the former `main` is `old`. The entries of `old`
//!    are moved a few lines at a time; a drained chunk is freed. Meanwhile a look-up searches both.
//!
//! Each insertion, update, removal and sweep step continues it, and so does a touch that finds its
//! entry in `old`. These may all end before the resize: then every look-up would search both parts,
//! for as long as the owner has no new key. So the owner continues it as well
//! ([`FlatTable::continue_resize`]).
//!
//! Sizes are the largest one and its halves (rounded up). The largest size is what the bound needs,
//! not the next power of two.

use super::{ENTRIES_PER_LINE, FlatTable};
use crate::line::{LINE_BYTES, SLOTS_PER_LINE};
use crate::lines::{Lines, MAX_ROOM_LINES, OutOfMemory};

/// Lines cleared by one step: one page of 4 KiB, so that a step causes at most one page fault. A
/// growing table is cleared after less than a twentieth of the insertions that would fill it.
pub(super) const CLEAR_LINES_PER_STEP: usize = 64;

/// A table that grows waits for its memory until it holds so many entries a line, in quarters. In
/// lines of four slots, a new entry then still finds a free slot by moving at most two others; at
/// 15 quarters it would not.
const MAX_WAIT_QUARTERS: usize = 13;

/// Lines drained by one step. A grown table has taken over all entries long before it is full:
/// after new entries for half a line in each old line.
const DRAIN_LINES_PER_STEP: usize = 2;

/// Maximum number of cache lines that one step touches: those cleared, or those drained with a
/// search for a free slot for each entry.
pub(super) const MAX_STEP_LINES: usize = {
    let drain = DRAIN_LINES_PER_STEP * (1 + SLOTS_PER_LINE * (MAX_ROOM_LINES + 2));
    if drain > CLEAR_LINES_PER_STEP { drain } else { CLEAR_LINES_PER_STEP }
};

/// Lines of the smallest allocation (256 bytes), if the bound does not need fewer.
const MIN_LINES: usize = 4;

/// A table shrinks when it holds less than this part of the entries that its lines can hold. At
/// half the size it is then a quarter full, so it does not grow again at once.
const SHRINK_BELOW_PART: usize = 8;

/// Insertions at the bound before a refused table asks the budget again. All workers share the
/// budget, and asking writes to it.
const GROWTH_PAUSE_INSERTS: u32 = 1024;

/// While all tables of a budget together use at most this many bytes (half of a core's own cache on
/// current processors), they grow as soon as they are half full. One key in fifty is then in its
/// second line, instead of one in eight. The maximum size stays what the bound needs.
const ROOMY_BYTES: usize = 1024 * 1024;
const ROOMY_ENTRIES_PER_LINE: usize = SLOTS_PER_LINE / 2;

impl<V: Copy + Default + PartialEq> FlatTable<V> {
    /// Number of entries that the table may hold without a larger allocation.
    pub(super) fn room(&self) -> usize {
        let lines = self.main.target().max(self.next.target());
        self.bound.min(lines * ENTRIES_PER_LINE)
    }

    /// Starts to grow before the table is full, while it fits the cache ([`ROOMY_BYTES`]).
    pub(super) fn grow_early(&mut self) {
        let lines = self.main.target();
        let most = ROOMY_BYTES.min(self.budget.limit());
        if self.len >= lines * ROOMY_ENTRIES_PER_LINE
            && self.budget.used() + 2 * lines * LINE_BYTES <= most
        {
            self.grow();
        }
    }

    /// Starts to grow, if the table may; returns false if the size stays.
    pub(super) fn grow(&mut self) -> bool {
        if self.is_resizing() || self.main.target() >= self.largest() {
            return false;
        }
        if self.growth_pause > 0 {
            self.growth_pause -= 1;
            return false;
        }
        let Some(lines) = self.sizes().take_while(|&size| size > self.main.target()).last() else {
            return false;
        };
        let started = self.resize_to(lines);
        if !started {
            self.growth_pause = GROWTH_PAUSE_INSERTS;
            self.stats.growth_refused += 1;
        }
        started
    }

    /// Starts to shrink by half, if the table holds far too few entries. If the budget has no bytes
    /// for the smaller allocation, the next sweep tries again.
    pub(super) fn shrink(&mut self) {
        let lines = self.main.target();
        if self.is_resizing() || self.len * SHRINK_BELOW_PART > lines * ENTRIES_PER_LINE {
            return;
        }
        if let Some(smaller) = self.sizes().find(|&size| size < lines) {
            self.resize_to(smaller);
        }
    }

    /// Number of lines that the bound needs.
    fn largest(&self) -> usize {
        self.bound.div_ceil(ENTRIES_PER_LINE)
    }

    /// The possible sizes of the table in lines, largest first.
    fn sizes(&self) -> impl Iterator<Item = usize> + use<V> {
        let mut size = self.largest();
        std::iter::from_fn(move || {
            if size == 0 {
                return None;
            }
            let this = size;
            let half = size.div_ceil(2);
            size = if half >= MIN_LINES && half < size { half } else { 0 };
            Some(this)
        })
    }

    /// Returns whether a resize is running: its memory is being prepared, or some entries are still
    /// where they were before.
    #[inline]
    pub fn is_resizing(&self) -> bool {
        self.next.target() > 0 || self.old.target() > 0
    }

    /// Starts a resize; returns false if the budget or the allocator refuses.
    pub(super) fn resize_to(&mut self, lines: usize) -> bool {
        let Some(next) = Lines::reserve(lines, &self.budget) else { return false };
        self.next = next;
        self.clear_next()
    }

    /// Continues a resize by up to `steps` small steps, if one is running. A step clears or drains
    /// a few lines, or sees that the second thread is still preparing their memory.
    ///
    /// The owner calls it regularly (for each batch of packets, and each second), since a resize
    /// may begin with the last insertion. It ends after a number of steps that is proportional to
    /// the lines of the table.
    #[inline]
    pub fn continue_resize(&mut self, steps: usize) {
        if self.is_resizing() {
            self.continue_running(steps);
        }
    }

    #[cold]
    #[inline(never)]
    fn continue_running(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step_resize();
            if !self.is_resizing() {
                break;
            }
        }
    }

    /// Continues a resize, if one is running.
    #[inline]
    pub(super) fn step_resize(&mut self) {
        if self.next.target() > 0 {
            let _given_up_is_fine = self.clear_next();
        } else if self.old.target() > 0 {
            self.drain_old();
        }
    }

    /// Clears some lines of `next`; once all are cleared, makes it `main`. Returns false if the
    /// allocator refused: the resize is cancelled, and a full table asks again after a pause.
    fn clear_next(&mut self) -> bool {
        let may_wait = self.len * 4 < self.main.target() * MAX_WAIT_QUARTERS;
        match self.next.clear_some(CLEAR_LINES_PER_STEP, may_wait) {
            Ok(false) => {}
            Ok(true) => {
                self.old = std::mem::replace(&mut self.main, std::mem::take(&mut self.next));
            }
            Err(OutOfMemory) => {
                self.next = Lines::default();
                self.growth_pause = GROWTH_PAUSE_INSERTS;
                return false;
            }
        }
        true
    }

    /// Moves entries to `main`. An entry without a free slot there stays in `old`, where look-ups
    /// and sweeps find it, and the next step tries again. Only a broken hash can cause this.
    fn drain_old(&mut self) {
        for _ in 0..DRAIN_LINES_PER_STEP {
            let index = self.old.drained();
            let line = *self.old.line(index);
            for (slot, entry) in line.entries() {
                let at = self.seed.hash(entry.key);
                let Some(place) = self.main.make_room(at, &self.seed) else { return };
                self.main.line_mut(place.line).put(place.slot, entry);
                self.old.line_mut(index).take(slot);
            }
            if self.old.line_drained() {
                self.old = Lines::default();
                return;
            }
        }
    }
}
