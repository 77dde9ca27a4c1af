//! The lines of a table of one size, and the rule that assigns two of them to each key.
//!
//! This is cuckoo hashing with buckets of four (Dietzfelbinger and Weidling 2007). An entry is in
//! its first line or, if that was full, in its second. When both are full, one of their entries is
//! moved to *its* other line. Time, bounds and sizes belong to the table.

use std::hint::{cold_path, select_unpredictable};

use crate::budget::{Budget, MemoryReservation};
use crate::chunk::Chunk;
use crate::line::{Entry, LINE_BYTES, Line, SLOTS_PER_LINE};
use crate::memory::{HUGE_PAGE_BYTES, Memory};
use crate::prefetch;
use crate::preparer::{OrderState, Ordered};
use crate::seed::{Hashed, Seed};
use crate::slab::MIN_SLOT_BYTES;

/// Lines in which a key may be.
const LINES_PER_KEY: usize = 2;

/// Slots in which a key may be. A look-up reads all of them before it reports a miss; twice as many
/// while the table is being resized.
pub const MAX_PROBE_SLOTS: usize = LINES_PER_KEY * SLOTS_PER_LINE;

/// Maximum number of lines touched to free a slot for one entry: its own two, the other lines of
/// their entries, the other lines of the entries in those, and two moves. At three entries a line
/// the search fails less than once in the life of a table; the entry is then not placed.
pub(crate) const MAX_ROOM_LINES: usize =
    LINES_PER_KEY * (3 + SLOTS_PER_LINE + SLOTS_PER_LINE * (1 + SLOTS_PER_LINE)) + 4;

/// The place of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryPosition {
    pub(crate) line: usize,
    pub(crate) slot: usize,
}

/// Maximum number of lines of one allocation: those of a huge page. So few are cleared or freed
/// without a noticeable pause, even as 512 small pages at some 150 ns each.
pub(crate) const CHUNK_LINES: usize = HUGE_PAGE_BYTES / LINE_BYTES;

/// Maximum number of steps that a resize waits for the memory of one chunk, if it is not urgent.
/// The steps of a busy switch take a second or more; the other thread, also one that hardly gets a
/// core, takes milliseconds.
pub(crate) const MAX_WAIT_STEPS: u32 = 1 << 14;

/// Lines in chunks, charged to a budget.
pub(crate) struct Lines<V> {
    /// The chunk of a table that needs only one, as most do: found without a list. Declared before
    /// the reservation, so that the bytes are freed before the budget counts them as free.
    only: Chunk<Line<V>>,
    /// All chunks of a larger table, so that no branch depends on the chunk of a key. All but the
    /// last have [`CHUNK_LINES`] lines, once they are cleared.
    chunks: Vec<Chunk<Line<V>>>,
    /// Number of cleared lines.
    count: usize,
    /// Number of lines when all are cleared.
    target: usize,
    /// Lines before this one are empty, and their chunks are freed.
    drained: usize,
    /// The memory of the next chunk, while another thread prepares it.
    ordered: Option<Ordered>,
    /// Number of steps that have waited for this memory.
    waited_steps: u32,
    reservation: Option<MemoryReservation>,
}

/// The allocator refused.
pub(crate) struct OutOfMemory;

impl<V> Default for Lines<V> {
    fn default() -> Self {
        let (only, chunks) = (Chunk::empty(), Vec::new());
        let (ordered, reservation) = (None, None);
        Self {
            only,
            chunks,
            count: 0,
            target: 0,
            drained: 0,
            ordered,
            waited_steps: 0,
            reservation,
        }
    }
}

impl<V: Copy + Default + PartialEq> Lines<V> {
    /// Reserves `target` lines without clearing them; [`Lines::clear_some`] clears them step by
    /// step. `None` if the budget or the allocator refuses.
    pub(crate) fn reserve(target: usize, budget: &Budget) -> Option<Self> {
        let reservation = budget.reserve(target.checked_mul(size_of::<Line<V>>())?)?;
        let mut chunks = Vec::new();
        if target > CHUNK_LINES {
            chunks.try_reserve_exact(target.div_ceil(CHUNK_LINES)).ok()?;
        }
        Some(Self { chunks, target, reservation: Some(reservation), ..Self::default() })
    }

    /// Clears up to `count` more lines, within one chunk; returns true when all are cleared. With
    /// `may_wait` it clears none while another thread prepares their memory, for at most
    /// [`MAX_WAIT_STEPS`] calls.
    pub(crate) fn clear_some(&mut self, count: usize, may_wait: bool) -> Result<bool, OutOfMemory> {
        let left = self.target - self.count;
        let filled = self.count % CHUNK_LINES;
        if filled == 0 && left > 0 {
            let lines = left.min(CHUNK_LINES);
            let Some(memory) = self.next_memory(lines, may_wait)? else { return Ok(false) };
            let budget =
                self.reservation.as_ref().map(MemoryReservation::budget).ok_or(OutOfMemory)?;
            let chunk = Chunk::new(lines, memory, budget);
            // Within what was reserved, so this never allocates.
            if self.target > CHUNK_LINES { self.chunks.push(chunk) } else { self.only = chunk }
        }
        let count = count.min(left).min(CHUNK_LINES - filled);
        #[cfg(test)]
        crate::work::touched(count);
        self.chunks.last_mut().unwrap_or(&mut self.only).fill(count, Line::empty());
        self.count += count;
        Ok(self.count == self.target)
    }

    /// Memory for the next chunk; `None` while another thread prepares it, with `may_wait`.
    fn next_memory(&mut self, lines: usize, may_wait: bool) -> Result<Option<Memory>, OutOfMemory> {
        let layout = Chunk::<Line<V>>::layout(lines).ok_or(OutOfMemory)?;
        if self.ordered.is_none() && layout.size() >= MIN_SLOT_BYTES {
            self.ordered = Ordered::place(layout);
            self.waited_steps = 0;
        }
        let may_wait = may_wait && self.waited_steps < MAX_WAIT_STEPS;
        let memory = match self.ordered.as_ref().map(Ordered::state) {
            None => Memory::allocate(layout),
            Some(OrderState::Waiting) if may_wait => {
                self.waited_steps += 1;
                return Ok(None);
            }
            Some(OrderState::Done(memory)) => memory,
            // This thread must not touch a huge page. If the memory is still being prepared, the
            // other thread frees it.
            Some(OrderState::Waiting | OrderState::Lost) => Memory::allocate_small_pages(layout),
        };
        self.ordered = None;
        memory.map(Some).ok_or(OutOfMemory)
    }

    /// Number of lines reserved, cleared or not.
    pub(crate) fn target(&self) -> usize {
        self.target
    }

    /// Number of bytes charged to the budget.
    pub(crate) fn bytes(&self) -> usize {
        self.reservation.as_ref().map_or(0, MemoryReservation::bytes)
    }

    /// The next line that a resize drains. Lines before it may not be read any more.
    pub(crate) fn drained(&self) -> usize {
        self.drained
    }

    /// Number of lines that may hold entries, once all are cleared.
    pub(crate) fn undrained(&self) -> usize {
        self.target - self.drained
    }

    /// Records that the line [`Lines::drained`] is empty, and frees its chunk if it was the last
    /// line there. Returns true for the very last line.
    pub(crate) fn line_drained(&mut self) -> bool {
        self.drained += 1;
        if self.drained.is_multiple_of(CHUNK_LINES) {
            // An empty chunk stays, so that the other chunks keep their index.
            *self.chunk_mut(self.drained / CHUNK_LINES - 1) = Chunk::empty();
            if let Some(reservation) = &mut self.reservation {
                reservation.give_back(CHUNK_LINES * size_of::<Line<V>>());
            }
        }
        self.drained >= self.count
    }

    #[inline]
    pub(crate) fn line(&self, index: usize) -> &Line<V> {
        #[cfg(test)]
        crate::work::touched(1);
        &self.chunk(index / CHUNK_LINES)[index % CHUNK_LINES]
    }

    #[inline]
    pub(crate) fn line_mut(&mut self, index: usize) -> &mut Line<V> {
        #[cfg(test)]
        crate::work::touched(1);
        &mut self.chunk_mut(index / CHUNK_LINES)[index % CHUNK_LINES]
    }

    #[inline]
    fn chunk(&self, nth: usize) -> &Chunk<Line<V>> {
        if self.chunks.is_empty() { &self.only } else { &self.chunks[nth] }
    }

    #[inline]
    fn chunk_mut(&mut self, nth: usize) -> &mut Chunk<Line<V>> {
        if self.chunks.is_empty() { &mut self.only } else { &mut self.chunks[nth] }
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry<V>> + use<'_, V> {
        std::iter::once(&self.only)
            .chain(&self.chunks)
            .flat_map(|chunk| chunk.iter())
            .flat_map(|line| line.entries().map(|(_, entry)| entry))
    }

    /// The two lines of a hash. They differ, unless there is only one line. Needs at least one.
    #[inline]
    pub(crate) fn homes(&self, at: Hashed) -> [usize; LINES_PER_KEY] {
        [self.first_home(at), self.second_home(at)]
    }

    /// The first line of a hash, from its upper bits.
    #[inline(always)]
    fn first_home(&self, at: Hashed) -> usize {
        spread(at.hash, self.count)
    }

    /// The second line of a hash, from its lower half.
    #[inline]
    fn second_home(&self, at: Hashed) -> usize {
        let second = spread(at.hash << 32, self.count);
        let second = second + usize::from(second == self.first_home(at));
        if second < self.count { second } else { 0 }
    }

    /// Starts to load the first line of a hash into the cache. Seven of eight hits need no other.
    #[inline]
    pub(crate) fn prefetch(&self, at: Hashed) {
        if let Some(line) = self.first_line(at) {
            prefetch::read(line);
        }
    }

    /// Starts to load the second line of a key that is not in its first line, which is in the cache
    /// by now. Uses no branch on this condition, since no predictor could guess it.
    #[inline]
    pub(crate) fn prefetch_second(&self, at: Hashed) {
        if let (Some(first), Some(second)) = (self.first_line(at), self.second_line(at)) {
            prefetch::read(select_unpredictable(first.may_have(at.key), first, second));
        }
    }

    /// The first line of a hash: seven of eight keys are there. `None` if there are no lines. Like
    /// the three functions below, only for a table that is not being drained.
    #[inline(always)]
    pub(crate) fn first_line(&self, at: Hashed) -> Option<&Line<V>> {
        self.line_if_any(self.first_home(at))
    }

    /// The first line of a hash, mutable.
    #[inline(always)]
    pub(crate) fn first_line_mut(&mut self, at: Hashed) -> Option<&mut Line<V>> {
        self.line_if_any_mut(self.first_home(at))
    }

    /// The second line of a hash. `None` if there are no lines.
    #[inline(always)]
    pub(crate) fn second_line(&self, at: Hashed) -> Option<&Line<V>> {
        self.line_if_any(self.second_home(at))
    }

    /// The second line of a hash, mutable.
    #[inline(always)]
    pub(crate) fn second_line_mut(&mut self, at: Hashed) -> Option<&mut Line<V>> {
        self.line_if_any_mut(self.second_home(at))
    }

    #[inline(always)]
    fn line_if_any(&self, index: usize) -> Option<&Line<V>> {
        #[cfg(test)]
        crate::work::touched(1);
        if let Some(line) = self.only.get(index) {
            return Some(line);
        }
        cold_path();
        self.chunks.get(index / CHUNK_LINES)?.get(index % CHUNK_LINES)
    }

    #[inline(always)]
    fn line_if_any_mut(&mut self, index: usize) -> Option<&mut Line<V>> {
        #[cfg(test)]
        crate::work::touched(1);
        if let Some(line) = self.only.get_mut(index) {
            return Some(line);
        }
        cold_path();
        self.chunks.get_mut(index / CHUNK_LINES)?.get_mut(index % CHUNK_LINES)
    }

    /// Finds the place of a key.
    pub(crate) fn find(&self, at: Hashed) -> Option<EntryPosition> {
        if self.count == 0 {
            return None;
        }
        let [first, second] = self.homes(at);
        self.find_in(first, at.key).or_else(|| self.find_in(second, at.key))
    }

    fn find_in(&self, line: usize, key: u64) -> Option<EntryPosition> {
        if line < self.drained {
            return None;
        }
        self.line(line).find(key).map(|slot| EntryPosition { line, slot })
    }

    /// Returns a free slot for the hash, if moving at most two entries frees one.
    pub(crate) fn make_room(&mut self, at: Hashed, seed: &Seed) -> Option<EntryPosition> {
        if self.count == 0 {
            return None;
        }
        let homes = self.homes(at);
        // The first line first, so that most look-ups end there.
        homes
            .into_iter()
            .find_map(|line| self.free_in(line))
            .or_else(|| homes.into_iter().find_map(|line| self.free_by_one_move(line, seed)))
            .or_else(|| homes.into_iter().find_map(|line| self.free_by_two_moves(line, seed)))
    }

    fn free_in(&self, line: usize) -> Option<EntryPosition> {
        self.line(line).free().map(|slot| EntryPosition { line, slot })
    }

    /// Moves an entry of a full line to its other line, if that has a free slot.
    fn free_by_one_move(&mut self, line: usize, seed: &Seed) -> Option<EntryPosition> {
        let full = *self.line(line);
        full.entries().find_map(|(slot, entry)| {
            let room = self.free_in(self.other_line(entry.key, line, seed))?;
            Some(self.shift(EntryPosition { line, slot }, room))
        })
    }

    /// Moves an entry of a full line to its other line, after moving an entry of that line on.
    fn free_by_two_moves(&mut self, line: usize, seed: &Seed) -> Option<EntryPosition> {
        let full = *self.line(line);
        full.entries().find_map(|(slot, entry)| {
            let room = self.free_by_one_move(self.other_line(entry.key, line, seed), seed)?;
            Some(self.shift(EntryPosition { line, slot }, room))
        })
    }

    /// Moves the entry at `from` to the free slot `to`; the freed slot is `from`.
    fn shift(&mut self, from: EntryPosition, to: EntryPosition) -> EntryPosition {
        let entry = self.line_mut(from.line).take(from.slot);
        self.line_mut(to.line).put(to.slot, entry);
        from
    }

    /// The other possible line of a key that is in `line`.
    fn other_line(&self, key: u64, line: usize, seed: &Seed) -> usize {
        let [first, second] = self.homes(seed.hash(key));
        if line == first { second } else { first }
    }
}

/// Spreads bits evenly over any number of lines, which need not be a power of two: the upper half
/// of a product (Lemire 2019).
#[inline(always)]
fn spread(bits: u64, count: usize) -> usize {
    ((u128::from(bits) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drained_chunk_is_given_back_before_the_last_line_is_drained() {
        let budget = Budget::unlimited();
        let mut lines = Lines::<u32>::reserve(CHUNK_LINES + 10, &budget).unwrap();
        assert!(
            lines.clear_some(usize::MAX, false).is_ok_and(|all| !all),
            "a step stays in its chunk"
        );
        assert!(lines.clear_some(usize::MAX, false).is_ok_and(|all| all));
        assert_eq!(budget.used(), (CHUNK_LINES + 10) * 64);
        for _ in 0..CHUNK_LINES {
            assert!(!lines.line_drained());
        }
        assert_eq!(lines.bytes(), 10 * 64);
        assert_eq!(budget.used(), 10 * 64);
        assert_eq!(lines.undrained(), 10);
        assert_eq!(lines.iter().count(), 0);
    }
}
