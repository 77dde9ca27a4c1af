//! Packets that arrived together.

use std::hint::cold_path;

use bellrock_openflow::{PacketInView, Version};

use crate::{AppId, Handler, HandlerError, PacketIn, Result, Switch, Verdict};

/// Most packets in a batch: enough prefetches in flight, and a bit each in one word.
pub const BATCH_PACKETS: usize = 64;

/// Consecutive packet-ins of one read from one switch, in order.
///
/// Each app of the chain sees those that the apps before it passed on. What is kept of a packet is
/// where its message is; it is read when an app looks at it.
pub struct Batch<'b> {
    /// What the switch sent.
    stream: &'b [u8],
    version: Version,
    messages: [&'b [u8]; BATCH_PACKETS],
    len: usize,
    /// The packets that the current handler is not done with, a bit each: it is given the lowest.
    waiting: u64,
    /// Whether it is given one just now.
    in_each: bool,
    /// The packets that the current handler has passed on. Those in neither are dealt with.
    passed: u64,
    /// Length of the send buffer before the current packet was handled.
    mark: usize,
    /// Errors of handlers, and the last of them.
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
            version: Version::V1_3,
            messages: [&[]; BATCH_PACKETS],
            len: 0,
            waiting: 0,
            in_each: false,
            passed: 0,
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
    /// something else, or a packet_in out of the common ([`PacketInView::common`]), or does not end within
    /// `max_bytes`; where that is.
    #[inline]
    pub fn fill(&mut self, start: usize, max_bytes: usize) -> usize {
        // The version is a constant in each of the two.
        match self.version {
            Version::V1_0 => self.fill_of(Version::V1_0, start, max_bytes),
            Version::V1_3 => self.fill_of(Version::V1_3, start, max_bytes),
        }
    }

    #[inline(always)]
    fn fill_of(&mut self, version: Version, start: usize, max_bytes: usize) -> usize {
        let rest = self.stream.get(start..).unwrap_or(&[]);
        let mut rest = rest.get(..max_bytes).unwrap_or(rest);
        let end = start + rest.len();
        let mut len = self.len;
        for slot in self.messages.iter_mut().skip(len) {
            let Some((message, behind)) = PacketInView::split_common(version, rest) else { break };
            *slot = message;
            rest = behind;
            len += 1;
        }
        self.added(len);
        end - rest.len()
    }

    /// Adds one message, a packet_in of this batch's version, of any form. Only while [`Batch::is_full`] is false:
    /// one more is lost.
    #[inline]
    pub fn push(&mut self, message: &'b [u8]) {
        debug_assert!(!self.is_full(), "the caller asks is_full first");
        if let Some(slot) = self.messages.get_mut(self.len) {
            *slot = message;
            self.added(self.len + 1);
        }
    }

    /// There are so many messages now; the new ones wait.
    #[inline]
    fn added(&mut self, len: usize) {
        self.waiting |= first(len) & !first(self.len);
        self.len = len;
    }

    /// Whether no more packets fit.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len == BATCH_PACKETS
    }

    /// How many packets there are, those that are dealt with too.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All packets, those that are dealt with too.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = PacketIn<'b>> {
        let messages = self.messages.iter().take(self.len);
        messages.filter_map(|message| {
            let common = PacketInView::common(self.version, message);
            common.or_else(|| PacketInView::of_any_form(message)).map(PacketIn::new)
        })
    }

    /// Whether the packet at `index` is dealt with.
    #[must_use]
    #[inline]
    pub fn is_consumed(&self, index: usize) -> bool {
        index < self.len && (self.waiting | self.passed) >> index & 1 == 0
    }

    /// How many packets are dealt with.
    #[must_use]
    pub fn consumed(&self) -> u32 {
        self.len as u32 - (self.waiting | self.passed).count_ones()
    }

    /// Whether all packets are dealt with.
    #[must_use]
    #[inline]
    pub fn is_done(&self) -> bool {
        self.waiting | self.passed == 0
    }

    /// Errors that handlers returned, and the last of them with the app that it is of.
    #[must_use]
    pub fn errors(&self) -> (u64, Option<(AppId, &HandlerError)>) {
        (self.errors, self.last_error.as_ref().map(|(app, error)| (*app, error)))
    }

    /// Calls [`Handler::packet_in`] with each packet that is not dealt with, in order. After an error,
    /// what was written for that packet is taken back.
    #[inline(always)]
    pub fn each<H: Handler + ?Sized>(&mut self, switch: &mut Switch<'_>, handler: &mut H) {
        // The version is a constant in each of the two, and with it the place of each field where the
        // handler is inlined.
        match self.version {
            Version::V1_0 => self.each_of(Version::V1_0, switch, handler),
            Version::V1_3 => self.each_of(Version::V1_3, switch, handler),
        }
    }

    #[inline(always)]
    fn each_of<H: Handler + ?Sized>(
        &mut self,
        version: Version,
        switch: &mut Switch<'_>,
        handler: &mut H,
    ) {
        self.in_each = true;
        while self.waiting != 0 {
            // What a panic needs, see `abandon_current`.
            self.mark = switch.mark();
            let message = self.messages[self.current()];
            // Two calls, so that in the common one, where the handler is inlined, nothing of the packet
            // has to be in memory.
            if let Some(packet) = PacketInView::common(version, message) {
                match handler.packet_in(switch, &PacketIn::new(packet)) {
                    Ok(Verdict::Consume) => {}
                    Ok(Verdict::Pass) => self.pass(),
                    Err(error) => self.failed(switch, error),
                }
            } else {
                cold_path();
                match out_of_the_common(message, switch, handler) {
                    Ok(Verdict::Consume) => {}
                    Ok(Verdict::Pass) => self.pass(),
                    Err(error) => self.failed(switch, error),
                }
            }
            self.waiting &= self.waiting - 1;
        }
        self.in_each = false;
        self.mark = switch.mark();
    }

    /// The same for those of the packets that the handler wants; the others are passed on, which costs a
    /// few instructions each.
    ///
    /// The handler is asked about all packets before it gets the first.
    #[inline(always)]
    pub fn each_wanted<H: Wants>(&mut self, switch: &mut Switch<'_>, handler: &mut H) {
        // As in `each`.
        let wanted = match self.version {
            Version::V1_0 => self.wanted_of(Version::V1_0, handler),
            Version::V1_3 => self.wanted_of(Version::V1_3, handler),
        };
        self.passed |= self.waiting & !wanted;
        self.waiting = wanted;
        if wanted != 0 {
            cold_path();
            self.each(switch, handler);
        }
    }

    /// The packets of those that wait that are wanted, a bit each. Those out of the common are.
    #[inline(always)]
    fn wanted_of<H: Wants>(&self, version: Version, handler: &H) -> u64 {
        let mut wanted = 0;
        // Nearly always all of them wait: to go from one to the next costs less than to ask which is.
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
        wanted & self.waiting
    }

    /// The packet that the handler is given: the lowest of those that wait. Only while some wait.
    #[inline(always)]
    fn current(&self) -> usize {
        self.waiting.trailing_zeros() as usize % BATCH_PACKETS
    }

    #[inline]
    fn pass(&mut self) {
        self.passed |= 1 << self.current();
    }

    #[cold]
    fn failed(&mut self, switch: &mut Switch<'_>, error: HandlerError) {
        self.pass();
        switch.undo_to(self.mark);
        self.errors += 1;
        self.last_error = Some((switch.app(), error));
    }

    /// Forgets all packets, for the next ones.
    #[inline]
    pub fn clear(&mut self) {
        (self.len, self.waiting, self.passed) = (0, 0, 0);
        (self.errors, self.last_error) = (0, None);
    }

    /// The next handler of the chain starts, from the first packet that was passed on to it.
    pub fn rewind(&mut self, switch: &Switch<'_>) {
        self.waiting |= std::mem::take(&mut self.passed);
        self.mark = switch.mark();
    }

    /// The handler panicked over the packet that [`Batch::each`] gave it last: what was written for it
    /// is taken back, and no other handler sees it.
    pub fn abandon_current(&mut self, switch: &mut Switch<'_>) {
        switch.undo_to(self.mark);
        if std::mem::take(&mut self.in_each) {
            self.waiting &= self.waiting.wrapping_sub(1);
        }
    }
}

/// A handler that has nothing to do with most packets, and can tell by a look: see [`Batch::each_wanted`].
///
/// It is a trait, and not a closure, so that the look can be made part of the loop (`#[inline(always)]`).
pub trait Wants: Handler {
    /// Whether it is to be given this packet.
    fn wants(&self, packet: &PacketIn<'_>) -> bool;
}

/// The lowest bits, so many of them.
fn first(bits: usize) -> u64 {
    if bits < BATCH_PACKETS { (1 << bits) - 1 } else { u64::MAX }
}

#[cold]
fn out_of_the_common<H: Handler + ?Sized>(
    message: &[u8],
    switch: &mut Switch<'_>,
    handler: &mut H,
) -> Result<Verdict> {
    // Only packet_ins are pushed.
    PacketInView::of_any_form(message)
        .map_or(Ok(Verdict::Pass), |packet| handler.packet_in(switch, &PacketIn::new(packet)))
}
