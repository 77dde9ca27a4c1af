//! Packets that arrived together.

use arrayvec::ArrayVec;

use crate::{Error, PacketIn, Result, Switch, Verdict};

/// Most packets in a batch: enough prefetches in flight, and a consumed bit each in one word.
pub const BATCH_PACKETS: usize = 64;

/// Consecutive packet-ins of one read from one switch, in order.
///
/// Each app of the chain sees those that the apps before it passed on.
pub struct Batch<'b> {
    packets: ArrayVec<PacketIn<'b>, BATCH_PACKETS>,
    /// A bit for each packet that is dealt with.
    consumed: u64,
    /// The packet that is being handled.
    current: usize,
    /// The first packet that [`Batch::next`] has not given out yet.
    next: usize,
    /// Length of the send buffer before the current packet was handled.
    mark: usize,
    /// Errors of handlers, and the last of them.
    errors: u64,
    last_error: Option<Error>,
}

impl<'b> Batch<'b> {
    /// An empty batch.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        Batch {
            packets: ArrayVec::new(),
            consumed: 0,
            current: 0,
            next: 0,
            mark: 0,
            errors: 0,
            last_error: None,
        }
    }

    /// Adds a packet. Only while [`Batch::is_full`] is false: one more is lost.
    #[inline]
    pub fn push(&mut self, packet: PacketIn<'b>) {
        let pushed = self.packets.try_push(packet);
        debug_assert!(pushed.is_ok(), "the caller asks is_full first");
    }

    /// Whether no more packets fit.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.packets.is_full()
    }

    /// All packets, those that are dealt with too.
    #[must_use]
    #[inline]
    pub fn packets(&self) -> &[PacketIn<'b>] {
        &self.packets
    }

    /// Whether the packet at `index` is dealt with.
    #[must_use]
    #[inline]
    pub fn is_consumed(&self, index: usize) -> bool {
        self.consumed >> index & 1 != 0
    }

    /// How many packets are dealt with.
    #[must_use]
    pub fn consumed(&self) -> u32 {
        self.consumed.count_ones()
    }

    /// Errors that handlers returned, and the last of them.
    #[must_use]
    pub fn errors(&self) -> (u64, Option<Error>) {
        (self.errors, self.last_error)
    }

    /// The next packet that is not dealt with. It has to be [`Batch::settle`]d before the one
    /// after it is taken.
    #[inline]
    pub fn next(&mut self, switch: &Switch<'_>) -> Option<&PacketIn<'b>> {
        while self.next < self.packets.len() && self.is_consumed(self.next) {
            self.next += 1;
        }
        self.current = self.next;
        self.next += 1;
        self.mark = switch.mark();
        self.packets.get(self.current)
    }

    /// The place of the packet that [`Batch::next`] gave last.
    #[must_use]
    #[inline]
    pub fn current(&self) -> usize {
        self.current
    }

    /// What became of the packet that [`Batch::next`] gave last. After an error, what was written
    /// for it is taken back.
    #[inline]
    pub fn settle(&mut self, switch: &mut Switch<'_>, verdict: Result<Verdict>) {
        match verdict {
            Ok(Verdict::Consume) => self.consumed |= 1 << self.current,
            Ok(Verdict::Pass) => {}
            Err(error) => {
                switch.undo_to(self.mark);
                self.errors += 1;
                self.last_error = Some(error);
            }
        }
    }

    /// The next handler of the chain starts from the first packet.
    pub fn rewind(&mut self) {
        self.next = 0;
    }

    /// The handler panicked over the packet that [`Batch::next`] gave last: what was written for
    /// it is taken back, and no other handler sees it.
    pub fn abandon_current(&mut self, switch: &mut Switch<'_>) {
        switch.undo_to(self.mark);
        self.consumed |= 1 << self.current;
    }
}

impl Default for Batch<'_> {
    fn default() -> Self {
        Batch::new()
    }
}
