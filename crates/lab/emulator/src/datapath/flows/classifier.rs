//! Look-up of a packet's flow: tuple space search.
//!
//! Flows whose matches have the same mask form one [`MaskGroup`]: a hash map by the masked words of
//! a key. A look-up searches the groups in order, the one with the highest priority first. It stops
//! when no remaining group can have a better flow. So it costs one hash for each mask, for any
//! number of flows; tables with thousands of flows have few masks.
//!
//! A flow is only a number here; the table holds the flow itself.

use std::collections::BTreeMap;

use hashbrown::HashTable;

use crate::packet::{KEY_WORDS, KeyPattern};

/// A key, or the values or masks of a pattern, word by word.
pub(super) type KeyWords = [u64; KEY_WORDS];

/// No entry: the end of a chain.
const NONE: u32 = u32::MAX;

/// All flows of a table, by their matches.
#[derive(Clone, Debug, Default)]
pub(super) struct Classifier {
    /// Sorted by their highest rank, the highest first.
    groups: Vec<MaskGroup>,
}

impl Classifier {
    /// The flow with the highest rank that matches a key. If several have that rank (the
    /// specification leaves this open), the choice stays the same while the flows stay the same.
    pub(super) fn lookup(&self, key: &KeyWords) -> Option<u32> {
        let mut best: Option<&ClassifierEntry> = None;
        for group in &self.groups {
            if best.is_some_and(|best| best.rank >= group.top) {
                break;
            }
            if let Some(found) = group.lookup(key)
                && best.is_none_or(|best| found.rank > best.rank)
            {
                best = Some(found);
            }
        }
        best.map(|entry| entry.flow)
    }

    /// The flow with exactly this pattern and rank.
    pub(super) fn find(&self, pattern: &KeyPattern, rank: u32) -> Option<u32> {
        let group = self.group(pattern)?;
        group.chain(pattern.value()).find(|entry| entry.rank == rank).map(|entry| entry.flow)
    }

    /// Adds a flow. No flow with the same pattern and rank may exist.
    pub(super) fn insert(&mut self, pattern: &KeyPattern, rank: u32, flow: u32) {
        let known = self.groups.iter().position(|group| *group.mask == *pattern.mask());
        let place = known.unwrap_or_else(|| {
            self.groups.push(MaskGroup::new(pattern.mask()));
            self.groups.len() - 1
        });
        let group = &mut self.groups[place];
        let top = group.top;
        group.insert(pattern.value(), rank, flow);
        if known.is_none() || group.top != top {
            self.sort();
        }
    }

    /// Removes the flow with exactly this pattern and rank.
    pub(super) fn remove(&mut self, pattern: &KeyPattern, rank: u32) {
        let Some(place) = self.groups.iter().position(|group| *group.mask == *pattern.mask())
        else {
            return;
        };
        let group = &mut self.groups[place];
        let top = group.top;
        group.remove(pattern.value(), rank);
        if group.ranks.is_empty() {
            self.groups.remove(place);
        } else if group.top != top {
            self.sort();
        }
    }

    /// Whether a flow of this rank and `pattern` can both match one packet.
    pub(super) fn overlaps(&self, pattern: &KeyPattern, rank: u32) -> bool {
        let groups = self.groups.iter().filter(|group| group.ranks.contains_key(&rank));
        groups.into_iter().any(|group| group.overlaps(pattern, rank))
    }

    /// Calls `each` for every flow that matches only packets that `pattern` matches, in no order.
    pub(super) fn covered(&self, pattern: &KeyPattern, mut each: impl FnMut(u32)) {
        for group in &self.groups {
            if *group.mask == *pattern.mask() {
                group.chain(pattern.value()).for_each(|entry| each(entry.flow));
            } else if is_subset(pattern.mask(), &group.mask) {
                group.covered(pattern, &mut each);
            }
        }
    }

    fn group(&self, pattern: &KeyPattern) -> Option<&MaskGroup> {
        self.groups.iter().find(|group| *group.mask == *pattern.mask())
    }

    fn sort(&mut self) {
        // Stable, and usually nearly sorted: one group has moved a few positions.
        self.groups.sort_by_key(|group| std::cmp::Reverse(group.top));
    }
}

/// Whether every bit of `part` is in `whole`.
fn is_subset(part: &KeyWords, whole: &KeyWords) -> bool {
    part.iter().zip(whole).all(|(part, whole)| part & !whole == 0)
}

/// One word of a mask that is not zero.
#[derive(Clone, Copy, Debug)]
struct Touched {
    word: u8,
    mask: u64,
}

/// A flow in its group.
#[derive(Clone, Copy, Debug)]
struct ClassifierEntry {
    rank: u32,
    flow: u32,
    /// The next entry with the same values and a lower rank. In a free entry: the next free entry.
    next: u32,
}

/// The flows with one mask.
#[derive(Clone, Debug)]
struct MaskGroup {
    mask: Box<KeyWords>,
    touched: Box<[Touched]>,
    /// The highest rank.
    top: u32,
    /// Number of flows of each rank.
    ranks: BTreeMap<u32, u32>,
    /// The first entry of each chain, by its values.
    heads: HashTable<u32>,
    entries: Vec<ClassifierEntry>,
    /// The values of each entry, as many as touched words.
    values: Vec<u64>,
    free: u32,
}

impl MaskGroup {
    fn new(mask: &KeyWords) -> Self {
        let words = mask.iter().enumerate().filter(|(_, mask)| **mask != 0);
        let touched = words.map(|(word, mask)| Touched { word: word as u8, mask: *mask }).collect();
        MaskGroup {
            mask: Box::new(*mask),
            touched,
            top: 0,
            ranks: BTreeMap::new(),
            heads: HashTable::new(),
            entries: Vec::new(),
            values: Vec::new(),
            free: NONE,
        }
    }

    #[inline]
    fn lookup(&self, key: &KeyWords) -> Option<&ClassifierEntry> {
        let hash = hash(self.touched.iter().map(|t| key[usize::from(t.word)] & t.mask));
        let head = self.heads.find(hash, |head| {
            let values = self.values_of(*head).iter().zip(&self.touched);
            values.into_iter().all(|(value, t)| key[usize::from(t.word)] & t.mask == *value)
        })?;
        Some(&self.entries[*head as usize])
    }

    /// The flows with these values, the highest rank first.
    fn chain(&self, value: &KeyWords) -> impl Iterator<Item = &ClassifierEntry> {
        let mut next = self.head(value).unwrap_or(NONE);
        std::iter::from_fn(move || {
            let entry = self.entries.get(next as usize)?;
            next = entry.next;
            Some(entry)
        })
    }

    /// All entries, with their numbers.
    fn all(&self) -> impl Iterator<Item = (u32, &ClassifierEntry)> {
        self.heads.iter().flat_map(move |head| {
            let mut next = *head;
            std::iter::from_fn(move || {
                let (number, entry) = (next, self.entries.get(next as usize)?);
                next = entry.next;
                Some((number, entry))
            })
        })
    }

    fn overlaps(&self, pattern: &KeyPattern, rank: u32) -> bool {
        self.all().filter(|(_, entry)| entry.rank == rank).any(|(number, _)| {
            self.values_of(number).iter().zip(&self.touched).all(|(value, t)| {
                let word = usize::from(t.word);
                (value ^ pattern.value()[word]) & t.mask & pattern.mask()[word] == 0
            })
        })
    }

    /// The flows whose values agree with `pattern`. Its mask must be part of the group's mask.
    fn covered(&self, pattern: &KeyPattern, each: &mut impl FnMut(u32)) {
        for (number, entry) in self.all() {
            let agrees = self.values_of(number).iter().zip(&self.touched).all(|(value, t)| {
                let word = usize::from(t.word);
                value & pattern.mask()[word] == pattern.value()[word]
            });
            if agrees {
                each(entry.flow);
            }
        }
    }

    fn insert(&mut self, value: &KeyWords, rank: u32, flow: u32) {
        *self.ranks.entry(rank).or_default() += 1;
        self.top = self.top.max(rank);
        let entry = ClassifierEntry { rank, flow, next: NONE };
        let head = self.head(value);
        let number = self.store(entry, value);
        let Some(head) = head else {
            let (values, width) = (&self.values, self.touched.len());
            let hash_of = |entry: &u32| hash(values_of(values, width, *entry).iter().copied());
            self.heads.insert_unique(hash_of(&number), number, hash_of);
            return;
        };
        if self.entries[head as usize].rank < rank {
            self.entries[number as usize].next = head;
            self.replace_head(value, number);
            return;
        }
        let mut before = head;
        loop {
            let next = self.entries[before as usize].next;
            if self.entries.get(next as usize).is_none_or(|entry| entry.rank < rank) {
                self.entries[number as usize].next = next;
                self.entries[before as usize].next = number;
                return;
            }
            before = next;
        }
    }

    fn remove(&mut self, value: &KeyWords, rank: u32) {
        let Some(head) = self.head(value) else { return };
        let (mut before, mut number) = (NONE, head);
        while self.entries.get(number as usize).is_some_and(|entry| entry.rank != rank) {
            (before, number) = (number, self.entries[number as usize].next);
        }
        let Some(entry) = self.entries.get(number as usize).copied() else { return };
        match (self.entries.get_mut(before as usize), entry.next) {
            (Some(before), next) => before.next = next,
            (None, NONE) => self.remove_head(value),
            (None, next) => self.replace_head(value, next),
        }
        self.entries[number as usize].next = self.free;
        self.free = number;
        if let Some(count) = self.ranks.get_mut(&rank) {
            *count -= 1;
            if *count == 0 {
                self.ranks.remove(&rank);
                self.top = self.ranks.last_key_value().map_or(0, |(rank, _)| *rank);
            }
        }
    }

    /// The first entry of the chain with these values.
    fn head(&self, value: &KeyWords) -> Option<u32> {
        self.heads.find(self.hash(value), |head| self.has_values(*head, value)).copied()
    }

    fn replace_head(&mut self, value: &KeyWords, new: u32) {
        let hash = self.hash(value);
        let (values, touched) = (&self.values, &self.touched);
        let head = self.heads.find_mut(hash, |head| has_values(values, touched, *head, value));
        if let Some(head) = head {
            *head = new;
        }
    }

    fn remove_head(&mut self, value: &KeyWords) {
        let hash = self.hash(value);
        let (values, touched) = (&self.values, &self.touched);
        let entry = self.heads.find_entry(hash, |head| has_values(values, touched, *head, value));
        if let Ok(entry) = entry {
            entry.remove();
        }
    }

    /// Stores an entry and its values in a free slot.
    fn store(&mut self, entry: ClassifierEntry, value: &KeyWords) -> u32 {
        let values = self.touched.iter().map(|t| value[usize::from(t.word)]);
        let Some(place) = self.entries.get_mut(self.free as usize) else {
            self.entries.push(entry);
            self.values.extend(values);
            return (self.entries.len() - 1) as u32;
        };
        let number = std::mem::replace(&mut self.free, place.next);
        *place = entry;
        let start = number as usize * self.touched.len();
        self.values[start..].iter_mut().zip(values).for_each(|(to, value)| *to = value);
        number
    }

    fn hash(&self, value: &KeyWords) -> u64 {
        hash(self.touched.iter().map(|t| value[usize::from(t.word)]))
    }

    #[inline]
    fn values_of(&self, entry: u32) -> &[u64] {
        values_of(&self.values, self.touched.len(), entry)
    }

    fn has_values(&self, entry: u32, value: &KeyWords) -> bool {
        has_values(&self.values, &self.touched, entry, value)
    }
}

#[inline]
fn values_of(values: &[u64], width: usize, entry: u32) -> &[u64] {
    let start = entry as usize * width;
    &values[start..start + width]
}

fn has_values(values: &[u64], touched: &[Touched], entry: u32, wanted: &KeyWords) -> bool {
    let values = values_of(values, touched.len(), entry);
    values.iter().zip(touched).all(|(value, t)| *value == wanted[usize::from(t.word)])
}

/// A folded multiplication for each word. It has no secret, so that runs repeat: a controller that
/// picks colliding flows slows only its own switch.
#[inline]
fn hash(words: impl Iterator<Item = u64>) -> u64 {
    const SEED: u64 = 0x243f_6a88_85a3_08d3;
    const FACTOR: u128 = 0x9e37_79b9_7f4a_7c15;
    words.fold(SEED, |hash, word| {
        let product = u128::from(hash ^ word) * FACTOR;
        (product as u64) ^ ((product >> 64) as u64)
    })
}
