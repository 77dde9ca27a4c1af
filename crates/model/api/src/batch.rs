//! Batches of packets that arrived together.

use std::hint::cold_path;

use bellrock_openflow::{PacketInView, Version, Versions, by_constant_version};

use crate::runtime::{BatchControl, SwitchControl};
use crate::{AppId, Handler, HandlerError, PacketIn, Port, Result, Switch, Verdict};

/// Maximum number of packets in a batch: enough prefetches in flight, and one bit each in a word.
pub const BATCH_PACKETS: usize = 64;

/// Consecutive packet-ins of one read from one switch, in order.
///
/// Each app of the chain sees the packets that the apps before it passed on. The batch keeps only
/// where each message is; the message is decoded when an app reads it.
pub struct Batch<'b> {
    /// Bytes from the switch.
    stream: &'b [u8],
    version: Version,
    messages: [&'b [u8]; BATCH_PACKETS],
    len: usize,
    /// Packets that the current handler has not finished, one bit each. The lowest is next.
    pending: u64,
    /// Whether a packet is with the handler now.
    is_iterating: bool,
    /// Packets that the current handler has passed on. Packets in neither set are consumed.
    passed: u64,
    /// Length of the send buffer before the current packet was handled.
    mark: usize,
    /// Number of handler errors, and the last one.
    errors: u64,
    last_error: Option<(AppId, HandlerError)>,
}

impl<'b> Batch<'b> {
    /// An empty batch for packets in `stream`.
    #[must_use]
    #[inline]
    pub fn new(stream: &'b [u8]) -> Self {
        Batch {
            stream,
            version: Versions::ALL.highest(),
            messages: [&[]; BATCH_PACKETS],
            len: 0,
            pending: 0,
            is_iterating: false,
            passed: 0,
            mark: 0,
            errors: 0,
            last_error: None,
        }
    }

    #[inline(always)]
    fn fill_of(&mut self, version: Version, start: usize, max_bytes: usize) -> usize {
        let rest = self.stream.get(start..).unwrap_or(&[]);
        let mut rest = rest.get(..max_bytes).unwrap_or(rest);
        let end = start + rest.len();
        let mut len = self.len;
        for slot in self.messages.iter_mut().skip(len) {
            let Some((message, remaining)) = PacketInView::split_common(version, rest) else {
                break;
            };
            *slot = message;
            rest = remaining;
            len += 1;
        }
        self.set_len(len);
        end - rest.len()
    }

    /// Sets the number of messages. The new ones wait.
    #[inline]
    fn set_len(&mut self, len: usize) {
        self.pending |= low_bits(len) & !low_bits(self.len);
        self.len = len;
    }

    /// Whether no more packets fit.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len == BATCH_PACKETS
    }

    /// Number of packets, also consumed ones.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the batch has no packets.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All packets, also consumed ones.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = PacketIn<'b>> {
        let messages = self.messages.iter().take(self.len);
        messages.filter_map(|message| {
            let common = PacketInView::common(self.version, message);
            common.or_else(|| PacketInView::of_any_form(message)).map(PacketIn::new)
        })
    }

    /// Ingress port of the packet at `index`, also of a consumed one.
    #[must_use]
    #[inline]
    pub fn in_port(&self, index: usize) -> Option<Port> {
        let message = self.messages.get(..self.len)?.get(index)?;
        let common = PacketInView::common(self.version, message);
        common.or_else(|| PacketInView::of_any_form(message)).map(|packet| packet.in_port())
    }

    /// Whether the packet at `index` is consumed.
    #[must_use]
    #[inline]
    pub fn is_consumed(&self, index: usize) -> bool {
        index < self.len && (self.pending | self.passed) >> index & 1 == 0
    }

    /// Number of consumed packets.
    #[must_use]
    pub fn consumed(&self) -> u32 {
        self.len as u32 - (self.pending | self.passed).count_ones()
    }

    /// Whether all packets are consumed.
    #[must_use]
    #[inline]
    pub fn is_done(&self) -> bool {
        self.pending | self.passed == 0
    }

    /// Number of errors that handlers returned, and the last one with its app.
    #[must_use]
    pub fn errors(&self) -> (u64, Option<(AppId, &HandlerError)>) {
        (self.errors, self.last_error.as_ref().map(|(app, error)| (*app, error)))
    }

    /// Calls [`Handler::packet_in`] for each packet that is not consumed, in order. After an error,
    /// discards the messages written for that packet.
    #[inline(always)]
    pub fn for_each<H: Handler + ?Sized>(&mut self, switch: &mut Switch<'_>, handler: &mut H) {
        // The version is a constant in each call. So is the place of each field where the handler
        // is inlined.
        by_constant_version!(self.version, VERSION => self.for_each_of(VERSION, switch, handler));
    }

    #[inline(always)]
    fn for_each_of<H: Handler + ?Sized>(
        &mut self,
        version: Version,
        switch: &mut Switch<'_>,
        handler: &mut H,
    ) {
        self.is_iterating = true;
        while self.pending != 0 {
            // `abandon_current` needs it after a panic.
            self.mark = switch.mark();
            let message = self.messages[self.current()];
            // Two calls: in the common one, where the handler is inlined, no field of the packet
            // has to be in memory.
            if let Some(packet) = PacketInView::common(version, message) {
                match handler.packet_in(switch, &PacketIn::new(packet)) {
                    Ok(Verdict::Consume) => {}
                    Ok(Verdict::Pass) => self.pass(),
                    Err(error) => self.record_error(switch, error),
                }
            } else {
                cold_path();
                match handle_uncommon(message, switch, handler) {
                    Ok(Verdict::Consume) => {}
                    Ok(Verdict::Pass) => self.pass(),
                    Err(error) => self.record_error(switch, error),
                }
            }
            self.pending &= self.pending - 1;
        }
        self.is_iterating = false;
        self.mark = switch.mark();
    }

    /// Like [`Batch::for_each`], but only with packets that the handler wants. The others are
    /// passed on, at a few instructions each.
    ///
    /// [`PacketFilter::wants`] is called for all packets before the handler gets the first.
    #[inline(always)]
    pub fn for_each_wanted<H: PacketFilter>(&mut self, switch: &mut Switch<'_>, handler: &mut H) {
        // As in `for_each`.
        let wanted =
            by_constant_version!(self.version, VERSION => self.wanted_of(VERSION, handler));
        self.passed |= self.pending & !wanted;
        self.pending = wanted;
        if wanted != 0 {
            cold_path();
            self.for_each(switch, handler);
        }
    }

    /// The waiting packets that the handler wants, one bit each. Packets of an uncommon form always
    /// count as wanted.
    #[inline(always)]
    fn wanted_of<H: PacketFilter>(&self, version: Version, handler: &H) -> u64 {
        let mut wanted = 0;
        // Nearly always all of them wait: visiting each costs less than finding which ones wait.
        for (index, message) in self.messages.iter().take(self.len).enumerate() {
            let is_wanted = match PacketInView::common(version, message) {
                Some(packet) => handler.wants(&PacketIn::new(packet)),
                None => true,
            };
            if is_wanted {
                cold_path();
                wanted |= 1 << index;
            }
        }
        wanted & self.pending
    }

    /// Index of the packet that is next: the lowest waiting one. Only valid while some wait.
    #[inline(always)]
    fn current(&self) -> usize {
        self.pending.trailing_zeros() as usize % BATCH_PACKETS
    }

    #[inline]
    fn pass(&mut self) {
        self.passed |= 1 << self.current();
    }

    #[cold]
    fn record_error(&mut self, switch: &mut Switch<'_>, error: HandlerError) {
        self.pass();
        switch.undo_to(self.mark);
        self.errors += 1;
        self.last_error = Some((switch.app(), error));
    }
}

impl<'b> BatchControl<'b> for Batch<'b> {
    #[inline]
    fn begin(&mut self, version: Version) {
        debug_assert!(self.is_empty(), "all packets of a batch are of one version");
        self.version = version;
    }

    #[inline]
    fn fill(&mut self, start: usize, max_bytes: usize) -> usize {
        // The version is a constant in each call.
        by_constant_version!(self.version, VERSION => self.fill_of(VERSION, start, max_bytes))
    }

    #[inline]
    fn push(&mut self, message: &'b [u8]) {
        debug_assert!(!self.is_full(), "the caller asks is_full first");
        if let Some(slot) = self.messages.get_mut(self.len) {
            *slot = message;
            self.set_len(self.len + 1);
        }
    }

    #[inline]
    fn clear(&mut self) {
        (self.len, self.pending, self.passed) = (0, 0, 0);
        (self.errors, self.last_error) = (0, None);
    }

    fn rewind(&mut self, switch: &Switch<'_>) {
        self.pending |= std::mem::take(&mut self.passed);
        self.mark = switch.mark();
    }

    fn abandon_current(&mut self, switch: &mut Switch<'_>) {
        switch.undo_to(self.mark);
        if std::mem::take(&mut self.is_iterating) {
            self.pending &= self.pending.wrapping_sub(1);
        }
    }
}

/// A handler that ignores most packets, and can decide quickly which: see
/// [`Batch::for_each_wanted`].
///
/// It is a trait, not a closure, so that the check can be inlined into the loop
/// (`#[inline(always)]`).
pub trait PacketFilter: Handler {
    /// Whether the handler wants this packet.
    fn wants(&self, packet: &PacketIn<'_>) -> bool;
}

/// A mask of the lowest `bits` bits.
fn low_bits(bits: usize) -> u64 {
    if bits < BATCH_PACKETS { (1 << bits) - 1 } else { u64::MAX }
}

#[cold]
fn handle_uncommon<H: Handler + ?Sized>(
    message: &[u8],
    switch: &mut Switch<'_>,
    handler: &mut H,
) -> Result<Verdict> {
    // Only packet_ins are pushed.
    PacketInView::of_any_form(message)
        .map_or(Ok(Verdict::Pass), |packet| handler.packet_in(switch, &PacketIn::new(packet)))
}
