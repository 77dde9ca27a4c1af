//! The keyed hash of the tables.
//!
//! Hosts choose their MAC addresses. With a public hash, one host could crowd the entries of
//! another out of the table. Each table therefore mixes its keys with 192 secret bits.
//!
//! It has two rounds of "multiply to 128 bits, fold the halves together": every bit of the key
//! reaches every bit of both halves of the result, in about ten processor cycles. The input of the
//! second round is secret already, so only the first adds a word to it. It need not be a
//! cryptographic hash. Hash values never leave the table, and an attacker who guessed them would
//! gain an early eviction, not more work (an entry has two possible lines).

use std::hash::{BuildHasher, RandomState};

/// The secret that keys the hash of one table.
#[derive(Clone)]
pub struct Seed {
    words: [u64; 3],
}

/// A key and its hash under the seed of one table. Created by
/// [`FlatTable::hash`](crate::FlatTable::hash), and valid for that table only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashed {
    pub(crate) key: u64,
    pub(crate) hash: u64,
}

impl Hashed {
    /// The key that was hashed.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Its hash, for another table with the same seed.
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

impl Seed {
    /// Creates a seed from the operating system's randomness.
    pub fn random() -> Self {
        // The keys of `RandomState` are secret, but the second pair made by a thread is the first
        // plus one. SipHash of a counter under such a key is still unpredictable.
        let state = RandomState::new();
        Self::from_words(std::array::from_fn(|index| state.hash_one(index)))
    }

    /// Creates the same seed for the same number: for simulations that must repeat, never for a
    /// table that strangers fill.
    pub fn from_number(number: u64) -> Self {
        // SplitMix64 (Steele, Lea, Flood 2014) spreads the number over the words.
        let mut state = number;
        Self::from_words(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }))
    }

    /// Makes both multipliers odd, since a zero would lose the key.
    fn from_words([a, b, c]: [u64; 3]) -> Self {
        Self { words: [a, b | 1, c | 1] }
    }

    /// The worst possible seed: every key has the hash 0.
    #[cfg(test)]
    pub(crate) fn all_collide() -> Self {
        Self { words: [0; 3] }
    }

    /// Hashes a key for the tables with this seed.
    #[inline(always)]
    pub fn hash(&self, key: u64) -> Hashed {
        let [a, b, c] = self.words;
        Hashed { key, hash: fold(fold(key ^ a, b), c) }
    }
}

impl std::fmt::Debug for Seed {
    /// Prints no secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(..)")
    }
}

#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_and_numbers_repeat() {
        assert_ne!(Seed::random().hash(1).hash, Seed::random().hash(1).hash);
        assert_ne!(Seed::from_number(1).hash(1).hash, Seed::from_number(2).hash(1).hash);
        assert_eq!(Seed::from_number(1).hash(1), Seed::from_number(1).hash(1));
    }

    /// One bit of the key flips each bit of the hash about half of the time.
    #[test]
    #[cfg_attr(
        miri,
        ignore = "statistics over safe arithmetic: Miri takes minutes and sees nothing"
    )]
    fn every_key_bit_reaches_every_hash_bit() {
        const ROUNDS: u32 = 2_000;
        for key_bit in 0..64 {
            let mut flips = [0u32; 64];
            for round in 0..ROUNDS {
                let seed = Seed::from_number(u64::from(round));
                let key = u64::from(round) * 0x0100_0000;
                let difference = seed.hash(key).hash ^ seed.hash(key ^ (1 << key_bit)).hash;
                for (hash_bit, count) in flips.iter_mut().enumerate() {
                    *count += u32::from(difference >> hash_bit & 1 == 1);
                }
            }
            for (hash_bit, &count) in flips.iter().enumerate() {
                assert!(
                    (ROUNDS / 4..=ROUNDS * 3 / 4).contains(&count),
                    "key bit {key_bit} flips hash bit {hash_bit} {count} times of {ROUNDS}"
                );
            }
        }
    }
}
