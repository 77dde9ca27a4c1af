//! Hosts that need no action: known hosts at their ports, and hosts whose packets pass through.
//!
//! Every packet looks into it, so it is flat and small, and is cleared rather than updated. A host
//! at a port is one word. A cache line of eight is compared at once, without branches to predict.

use std::hint::cold_path;

use bellrock_api::{HostId, Port};

/// Maximum number of hosts. When it is full it is cleared, and each host is looked at again.
const MAX_HOSTS: usize = 1 << 13;

/// Initial number of lines.
const MIN_LINES: usize = 1 << 3;

/// Maximum number of lines. Half hold [`MAX_HOSTS`]; the rest is for hosts whose two lines were
/// full.
const MAX_LINES: usize = 4 * MAX_HOSTS / TAGS_PER_LINE;

const TAGS_PER_LINE: usize = 8;

/// A host as one word: its VLAN in bits 48 to 59, and its address below, the first byte lowest, as
/// a processor reads it from the packet. Zero is no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheKey(u64);

const VLAN_SHIFT: u32 = 48;

impl CacheKey {
    /// Returns the key of the sender of an untagged packet, from the packet's first bytes.
    #[inline(always)]
    pub(super) fn untagged(header: &[u8; 14]) -> Self {
        // Reads eight bytes: two of the destination, and the six of the source.
        let source = header.get(4..12).and_then(<[u8]>::first_chunk).unwrap_or(&[0; 8]);
        CacheKey(u64::from_le_bytes(*source) >> 16)
    }

    pub(super) fn of(host: HostId) -> Self {
        let [a, b, c, d, e, f] = host.mac.0;
        let vlan = u64::from(host.vlan.unwrap_or(0));
        CacheKey(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) | vlan << VLAN_SHIFT)
    }
}

/// A host at a port, as one word that is never zero.
///
/// A host has a different tag at each port. A secret is part of the tag, so whatever addresses are
/// chosen, two hosts at two ports share a tag with a chance of 1 in 2^63. One is then reported
/// later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag(u64);

const IS_TAG: u64 = 1 << 63;

/// Eight tags, split into halves: one instruction compares four halves. Zeros are no tag.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct TagLine {
    low: [u32; TAGS_PER_LINE],
    high: [u32; TAGS_PER_LINE],
}

const _: () = assert!(size_of::<TagLine>() == 64);

impl TagLine {
    #[inline(always)]
    fn has(&self, tag: Tag) -> bool {
        let (low, high) = (tag.0 as u32, (tag.0 >> 32) as u32);
        let differ = |nth: usize| self.low[nth] ^ low | self.high[nth] ^ high;
        (0..TAGS_PER_LINE).fold(false, |same, nth| same | (differ(nth) == 0))
    }

    /// Puts a tag into a free slot. Returns whether there is one.
    fn put(&mut self, tag: Tag) -> bool {
        let (low, high) = (tag.0 as u32, (tag.0 >> 32) as u32);
        let free = self.high.iter().position(|high| *high == 0);
        let slot = free.and_then(|free| self.low.get_mut(free).zip(self.high.get_mut(free)));
        slot.map(|halves| (*halves.0, *halves.1) = (low, high)).is_some()
    }

    fn tags(&self) -> impl Iterator<Item = Tag> {
        let halves = self.low.into_iter().zip(self.high);
        let tags = halves.map(|(low, high)| Tag(u64::from(high) << 32 | u64::from(low)));
        tags.filter(|tag| tag.0 != 0)
    }
}

/// A set of hosts at ports. A host that passes through may be at several. A tag is in the first of
/// its two lines, or in the second if the first was full. At most half of the slots are used.
pub(super) struct HostPortCache {
    /// Their number is a power of two.
    lines: Box<[TagLine]>,
    len: usize,
    /// Odd and secret, so that nobody can choose addresses for their line or their tag.
    multiplier: u64,
}

impl HostPortCache {
    pub(super) fn new(multiplier: u64) -> Self {
        let lines = vec![TagLine::default(); MIN_LINES].into();
        HostPortCache { lines, len: 0, multiplier: multiplier | 1 }
    }

    #[inline(always)]
    fn tag(&self, CacheKey(host): CacheKey, port: Port) -> Tag {
        Tag((host ^ u64::from(port.0).wrapping_mul(self.multiplier)) | IS_TAG)
    }

    /// Returns both lines of a tag, which may be the same.
    #[inline(always)]
    fn lines_of(&self, Tag(tag): Tag) -> [usize; 2] {
        // Folded, so that each bit of the address counts in both.
        let product = u128::from(tag) * u128::from(self.multiplier);
        let hash = (product as u64) ^ ((product >> 64) as u64);
        let mask = self.lines.len() - 1;
        [hash as usize & mask, (hash >> 32) as usize & mask]
    }

    /// Whether the host is in the cache at this port.
    #[inline(always)]
    pub(super) fn has(&self, key: CacheKey, port: Port) -> bool {
        let tag = self.tag(key, port);
        let [first, _] = self.lines_of(tag);
        if self.lines[first].has(tag) {
            return true;
        }
        cold_path();
        self.has_second(tag)
    }

    #[inline(never)]
    fn has_second(&self, tag: Tag) -> bool {
        let [_, second] = self.lines_of(tag);
        self.lines[second].has(tag)
    }

    /// Adds a host at a port.
    pub(super) fn insert(&mut self, key: CacheKey, port: Port) {
        if self.has(key, port) {
            return;
        }
        if self.len >= MAX_HOSTS {
            self.clear();
        }
        let tag = self.tag(key, port);
        while self.len * 2 >= self.lines.len() * TAGS_PER_LINE || !self.put(tag) {
            if !self.grow() {
                self.clear();
            }
        }
        self.len += 1;
    }

    /// Puts a tag into one of its lines. Returns whether one has a free slot.
    fn put(&mut self, tag: Tag) -> bool {
        self.lines_of(tag).into_iter().any(|line| self.lines[line].put(tag))
    }

    /// Doubles the lines and keeps the tags. Returns `false` at [`MAX_LINES`], or if they do not
    /// fit.
    fn grow(&mut self) -> bool {
        let lines = self.lines.len() * 2;
        if lines > MAX_LINES {
            return false;
        }
        let before = std::mem::replace(&mut self.lines, vec![TagLine::default(); lines].into());
        before.iter().flat_map(TagLine::tags).all(|tag| self.put(tag))
    }

    /// Removes all tags.
    pub(super) fn clear(&mut self) {
        if self.len > 0 {
            self.lines.fill(TagLine::default());
            self.len = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bellrock_api::MacAddr;

    use super::*;

    #[test]
    fn keys_are_what_a_processor_reads() {
        let mac = MacAddr([2, 3, 4, 5, 6, 7]);
        let header = [9, 9, 9, 9, 9, 9, 2, 3, 4, 5, 6, 7, 8, 0];
        assert_eq!(CacheKey::untagged(&header), CacheKey::of(HostId::new(mac, None)));
        assert_ne!(CacheKey::untagged(&header), CacheKey::of(HostId::new(mac, Some(1))));
    }

    #[test]
    fn it_knows_what_was_put_in_and_nothing_else() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut cache = HostPortCache::new(random.u64(..));
        let (mut known, mut inserted) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..4 * MAX_HOSTS {
            let host = HostId::new(MacAddr::from_u64(random.u64(0..30_000)), None);
            let port = random.u32(1..4);
            cache.insert(CacheKey::of(host), Port(port));
            known.insert(host);
            inserted.insert((host, port));
            assert!(cache.has(CacheKey::of(host), Port(port)));
            assert!(cache.len * 2 <= cache.lines.len() * TAGS_PER_LINE);
            assert!(cache.len <= MAX_HOSTS && cache.lines.len() <= MAX_LINES);
        }
        for host in &known {
            for port in 1..8 {
                assert!(
                    !cache.has(CacheKey::of(*host), Port(port))
                        || inserted.contains(&(*host, port))
                );
            }
        }
        let count = cache.lines.iter().flat_map(TagLine::tags).count();
        assert_eq!(count, cache.len);
        cache.clear();
        assert!(inserted.iter().all(|(host, port)| !cache.has(CacheKey::of(*host), Port(*port))));
    }

    #[test]
    fn most_are_in_their_first_line() {
        let mut cache = HostPortCache::new(fastrand::Rng::with_seed(2).u64(..));
        let host = |n| CacheKey::of(HostId::new(MacAddr::from_u64(n), None));
        (0..MAX_HOSTS as u64).for_each(|n| cache.insert(host(n), Port(1)));
        assert!((0..MAX_HOSTS as u64).all(|n| cache.has(host(n), Port(1))), "none was in the way");
        let in_second = |n: &u64| {
            let tag = cache.tag(host(*n), Port(1));
            !cache.lines[cache.lines_of(tag)[0]].has(tag)
        };
        let second = (0..MAX_HOSTS as u64).filter(in_second).count();
        assert!(second < MAX_HOSTS / 20, "{second} of {MAX_HOSTS} in their second line");
    }
}
