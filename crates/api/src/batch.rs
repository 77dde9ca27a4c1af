//! Packets that arrived together.

use arrayvec::ArrayVec;
use bellrock_openflow::{PacketInView, Version};

use crate::{Error, Handler, PacketIn, Result, Switch, Verdict};

/// Most packets in a batch: enough prefetches in flight, and a consumed bit each in one word.
pub const BATCH_PACKETS: usize = 64;

/// Consecutive packet-ins of one read from one switch, in order.
///
/// Each app of the chain sees those that the apps before it passed on. What is kept of a packet is
/// where it starts; it is read when an app looks at it.
pub struct Batch<'b> {
    /// What the switch sent.
    stream: &'b [u8],
    version: Version,
    /// Where in the stream each packet-in starts.
    starts: ArrayVec<u32, BATCH_PACKETS>,
    /// A bit for each packet that is dealt with.
    consumed: u64,
    /// The first packet that [`Batch::each`] has not given out yet; the one before it is being
    /// handled.
    next: usize,
    /// Length of the send buffer before the current packet was handled.
    mark: usize,
    /// Errors of handlers, and the last of them.
    errors: u64,
    last_error: Option<Error>,
}

impl<'b> Batch<'b> {
    /// An empty batch for packets in `stream`, at most 4 GiB.
    #[must_use]
    #[inline]
    pub fn new(stream: &'b [u8]) -> Self {
        Batch {
            stream,
            version: Version::V1_3,
            starts: ArrayVec::new_const(),
            consumed: 0,
            next: 0,
            mark: 0,
            errors: 0,
            last_error: None,
        }
    }

    /// The packets to come are of this version.
    #[inline]
    pub fn begin(&mut self, version: Version) {
        debug_assert!(self.is_empty(), "all packets of a batch are of one version");
        self.version = version;
    }

    /// Adds the packet_ins that the stream has from `start` on, up to the first message that is
    /// something else, or a packet_in out of the common ([`PacketInView::common`]); where that is.
    /// Adds no more when they have more than `max_bytes`.
    #[inline]
    pub fn fill(&mut self, start: usize, max_bytes: usize) -> usize {
        let mut at = start;
        while !self.starts.is_full()
            && at - start <= max_bytes
            && let Some(rest) = self.stream.get(at..)
            && let Some(packet) = PacketInView::common(self.version, rest)
        {
            self.push(at);
            at += packet.message_len();
        }
        at
    }

    /// Adds the packet_in that starts at `start`. Only while [`Batch::is_full`] is false: one more
    /// is lost.
    #[inline]
    pub fn push(&mut self, start: usize) {
        let pushed = self.starts.try_push(start as u32);
        debug_assert!(pushed.is_ok(), "the caller asks is_full first");
    }

    /// Whether no more packets fit.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.starts.is_full()
    }

    /// How many packets there are, those that are dealt with too.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// All packets, those that are dealt with too.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = PacketIn<'b>> {
        self.starts.iter().filter_map(|start| self.packet(*start))
    }

    #[inline(always)]
    fn packet(&self, start: u32) -> Option<PacketIn<'b>> {
        let rest = self.stream.get(start as usize..)?;
        let common = PacketInView::common(self.version, rest);
        common.or_else(|| PacketInView::of_any_form(rest)).map(PacketIn::new)
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

    /// Calls [`Handler::packet_in`] with each packet that is not dealt with, in order. After an error,
    /// what was written for that packet is taken back.
    #[inline(always)]
    pub fn each<H: Handler + ?Sized>(&mut self, switch: &mut Switch<'_>, handler: &mut H) {
        while let Some(start) = self.starts.get(self.next) {
            // What a panic needs, see `abandon_current`.
            let at = self.next;
            self.next += 1;
            self.mark = switch.mark();
            if self.consumed >> at & 1 != 0 {
                continue;
            }
            let Some(rest) = self.stream.get(*start as usize..) else { continue };
            // Two calls, so that in the common one, where the handler is inlined, nothing of the packet
            // has to be in memory.
            let verdict = match PacketInView::common(self.version, rest) {
                Some(packet) => handler.packet_in(switch, &PacketIn::new(packet)),
                None => out_of_the_common(rest, switch, handler),
            };
            match verdict {
                Ok(Verdict::Consume) => self.consumed |= 1 << at,
                Ok(Verdict::Pass) => {}
                Err(error) => {
                    switch.undo_to(self.mark);
                    self.errors += 1;
                    self.last_error = Some(error);
                }
            }
        }
    }

    /// Forgets all packets, for the next ones.
    #[inline]
    pub fn clear(&mut self) {
        self.starts.clear();
        (self.consumed, self.next) = (0, 0);
        (self.errors, self.last_error) = (0, None);
    }

    /// The next handler of the chain starts from the first packet.
    pub fn rewind(&mut self) {
        self.next = 0;
    }

    /// The handler panicked over the packet that [`Batch::each`] gave last: what was written for
    /// it is taken back, and no other handler sees it.
    pub fn abandon_current(&mut self, switch: &mut Switch<'_>) {
        switch.undo_to(self.mark);
        self.consumed |= 1 << self.next.saturating_sub(1);
    }
}

#[cold]
fn out_of_the_common<H: Handler + ?Sized>(
    rest: &[u8],
    switch: &mut Switch<'_>,
    handler: &mut H,
) -> Result<Verdict> {
    // Only packet_ins are pushed.
    PacketInView::of_any_form(rest)
        .map_or(Ok(Verdict::Pass), |packet| handler.packet_in(switch, &PacketIn::new(packet)))
}
