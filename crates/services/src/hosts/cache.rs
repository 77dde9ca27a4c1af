//! What a handler remembers of hosts that it has nothing to do with: known hosts at their places, and
//! hosts that are only passing through.
//!
//! It is asked for every packet, so it is flat and small, and is emptied rather than kept up to date.

use bellrock_api::{HostId, Port};

/// Hosts that are remembered at most. With more it is emptied, and each is looked at again.
const MAX_HOSTS: usize = 1 << 13;

/// Room at first.
const MIN_SLOTS: usize = 1 << 6;

/// A host as one word: its VLAN in bits 48 to 59, and its address below, the first byte lowest, as a
/// processor reads it from the packet. Zero is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u64);

const VLAN_SHIFT: u32 = 48;

impl Key {
    /// The key of the sender of a packet without a VLAN tag, by the first bytes of the packet.
    #[inline(always)]
    pub(super) fn untagged(header: &[u8; 14]) -> Self {
        // Eight bytes are read for six, with two of the destination before them.
        let source = header.get(4..12).and_then(<[u8]>::first_chunk).unwrap_or(&[0; 8]);
        Key(u64::from_le_bytes(*source) >> 16)
    }

    pub(super) fn of(host: HostId) -> Self {
        let [a, b, c, d, e, f] = host.mac.0;
        let vlan = u64::from(host.vlan.unwrap_or(0));
        Key(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) | vlan << VLAN_SHIFT)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    key: u64,
    port: u32,
}

/// A set of hosts, each at a port. Open addressing, at most half full.
pub(super) struct Cache {
    /// A power of two.
    slots: Box<[Slot]>,
    len: usize,
    /// Odd and secret: who chooses addresses cannot choose where they lie.
    multiplier: u64,
    shift: u32,
}

impl Cache {
    pub(super) fn new(multiplier: u64) -> Self {
        let mut cache =
            Cache { slots: Box::default(), len: 0, multiplier: multiplier | 1, shift: 0 };
        cache.resize(MIN_SLOTS);
        cache
    }

    fn resize(&mut self, slots: usize) {
        let before = std::mem::replace(&mut self.slots, vec![Slot::default(); slots].into());
        self.shift = u64::BITS - slots.trailing_zeros();
        self.len = 0;
        for slot in before.iter().filter(|slot| slot.key != 0) {
            self.put(*slot);
        }
    }

    /// Whether the host is remembered at this port.
    #[inline(always)]
    pub(super) fn has(&self, key: Key, port: Port) -> bool {
        let mask = self.slots.len() - 1;
        let mut at = (key.0.wrapping_mul(self.multiplier) >> self.shift) as usize;
        // Ends: half of the slots are empty.
        loop {
            let slot = self.slots[at & mask];
            if slot.key == key.0 {
                return slot.port == port.0;
            }
            if slot.key == 0 {
                return false;
            }
            at += 1;
        }
    }

    /// Remembers a host at a port, and at no other.
    pub(super) fn insert(&mut self, key: Key, port: Port) {
        if key.0 == 0 {
            return;
        }
        if self.len * 2 >= self.slots.len() {
            match self.len < MAX_HOSTS {
                true => self.resize(self.slots.len() * 2),
                false => self.clear(),
            }
        }
        self.put(Slot { key: key.0, port: port.0 });
    }

    fn put(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = (slot.key.wrapping_mul(self.multiplier) >> self.shift) as usize;
        loop {
            let here = &mut self.slots[at & mask];
            if here.key == 0 || here.key == slot.key {
                self.len += usize::from(here.key == 0);
                *here = slot;
                return;
            }
            at += 1;
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        if self.len > 0 {
            self.slots.fill(Slot::default());
            self.len = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bellrock_api::MacAddr;

    use super::*;

    #[test]
    fn keys_are_what_a_processor_reads() {
        let mac = MacAddr([2, 3, 4, 5, 6, 7]);
        let header = [9, 9, 9, 9, 9, 9, 2, 3, 4, 5, 6, 7, 8, 0];
        assert_eq!(Key::untagged(&header), Key::of(HostId::new(mac, None)));
        assert_ne!(Key::untagged(&header), Key::of(HostId::new(mac, Some(1))));
    }

    #[test]
    fn it_knows_what_was_put_in_and_nothing_else() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut cache = Cache::new(random.u64(..));
        let mut known = BTreeMap::new();
        for _ in 0..4 * MAX_HOSTS {
            let host = HostId::new(MacAddr::from_u64(random.u64(1..30_000)), None);
            let port = random.u32(1..4);
            cache.insert(Key::of(host), Port(port));
            known.insert(host, port);
            assert!(cache.has(Key::of(host), Port(port)));
            assert!(cache.len * 2 <= cache.slots.len() && cache.len <= MAX_HOSTS + 1);
        }
        for (host, port) in &known {
            let wrong = (1..4).filter(|other| other != port);
            assert!(wrong.into_iter().all(|other| !cache.has(Key::of(*host), Port(other))));
        }
        cache.clear();
        assert!(known.iter().all(|(host, port)| !cache.has(Key::of(*host), Port(*port))));
    }
}
