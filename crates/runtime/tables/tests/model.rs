//! Compares the table with a `HashMap` that follows every eviction: no other entry may be lost.

use bellrock_tables::{Budget, FlatTable, Insert, Seed};
use proptest::prelude::*;
use std::collections::HashMap;

const MAX_AGE: u32 = 8;

#[derive(Clone, Debug)]
enum Op {
    Insert(u64, u32),
    /// A first key and a number of consecutive keys, so that tables grow.
    InsertRun(u64, u64),
    Touch(u64),
    Remove(u64),
    RemoveWhere(u32),
    Age(usize),
    ContinueResize(usize),
    Tick(u32),
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..400u64;
    prop_oneof![
        20 => (key.clone(), 0..6u32).prop_map(|(key, port)| Op::Insert(key, port)),
        4 => (key.clone(), 1..120u64).prop_map(|(first, count)| Op::InsertRun(first, count)),
        4 => key.clone().prop_map(Op::Touch),
        6 => key.prop_map(Op::Remove),
        1 => (0..6u32).prop_map(Op::RemoveWhere),
        3 => (0..40usize).prop_map(Op::Age),
        2 => (1..20usize).prop_map(Op::ContinueResize),
        3 => (1..6u32).prop_map(Op::Tick),
        1 => Just(Op::Clear),
    ]
}

struct Checked {
    table: FlatTable<u32>,
    /// Value and tick of each key.
    model: HashMap<u64, (u32, u32)>,
    evictions: u64,
    now: u32,
}

impl Checked {
    fn insert(&mut self, key: u64, value: u32) {
        let known = self.model.get(&key).map(|&(value, _)| value);
        match self.table.insert(key, value, self.now) {
            Insert::Inserted => assert_eq!(known, None),
            Insert::Updated { old } => assert_eq!(known, Some(old)),
            Insert::Evicted { key: victim, value } => {
                assert_eq!(known, None);
                assert_ne!(victim, key);
                assert_eq!(self.model.remove(&victim).map(|(value, _)| value), Some(value));
                self.evictions += 1;
            }
            Insert::Refused => {
                assert_eq!(known, None);
                assert_eq!(self.table.memory(), 0, "a table with memory makes room");
                return;
            }
        }
        self.model.insert(key, (value, self.now));
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Insert(key, value) => self.insert(key, value),
            Op::InsertRun(first, count) => {
                (first..first + count).for_each(|key| self.insert(key, (key % 6) as u32));
            }
            Op::Touch(key) => {
                let known = self.model.get_mut(&key).map(|entry| {
                    entry.1 = self.now;
                    entry.0
                });
                assert_eq!(self.table.touch(key, self.now), known);
            }
            Op::Remove(key) => {
                assert_eq!(self.table.remove(key), self.model.remove(&key).map(|entry| entry.0));
            }
            Op::RemoveWhere(port) => {
                let model = &mut self.model;
                self.table.remove_where(
                    |_, value| value == port,
                    |key, value| assert_eq!(model.remove(&key).map(|entry| entry.0), Some(value)),
                );
                assert!(model.values().all(|&(value, _)| value != port));
            }
            Op::Age(steps) => self.age(steps),
            Op::ContinueResize(steps) => self.table.continue_resize(steps),
            Op::Tick(ticks) => self.now = self.now.wrapping_add(ticks),
            Op::Clear => {
                self.table.clear();
                self.model.clear();
                assert_eq!(self.table.memory(), 0);
            }
        }
    }

    fn age(&mut self, steps: usize) {
        let (now, model) = (self.now, &mut self.model);
        self.table.age(now, MAX_AGE, steps, |key, value| {
            let known = model.remove(&key);
            let old =
                |&(known, tick): &(u32, u32)| known == value && now.wrapping_sub(tick) > MAX_AGE;
            assert!(known.as_ref().is_some_and(old), "{key}: {value} aged out at {now}: {known:?}");
        });
    }

    fn check(&self, budget: &Budget) {
        assert_eq!(self.table.len(), self.model.len());
        assert!(self.table.len() <= self.table.bound());
        assert_eq!(self.table.memory(), budget.used());
        assert!(budget.used() <= budget.limit());
        assert_eq!(self.table.stats().evicted, self.evictions);
    }

    fn check_entries(&self) {
        let entries: HashMap<u64, u32> = self.table.iter().collect();
        let expected: HashMap<u64, u32> = self.model.iter().map(|(&k, &(v, _))| (k, v)).collect();
        assert_eq!(entries, expected);
        for key in 0..600 {
            let known = self.model.get(&key);
            assert_eq!(self.table.lookup(key), known.map(|entry| entry.0));
            let fresh = known.filter(|entry| self.now.wrapping_sub(entry.1) <= MAX_AGE);
            let found = self.table.lookup_fresh(key, self.now, MAX_AGE);
            assert_eq!(found, fresh.map(|entry| entry.0));
        }
    }
}

fn config() -> ProptestConfig {
    if cfg!(miri) {
        ProptestConfig { cases: 3, failure_persistence: None, ..ProptestConfig::default() }
    } else {
        ProptestConfig::with_cases(400)
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn behaves_like_a_map_that_evicts(
        bound in prop_oneof![0..20usize, 20..500usize],
        bytes in prop_oneof![Just(usize::MAX), 0..16_384usize],
        seed in any::<u64>(),
        // Starts near the wrap of the clock.
        start in prop_oneof![Just(0u32), Just(u32::MAX - 20), Just((1 << 31) - 20)],
        ops in prop::collection::vec(op(), 1..if cfg!(miri) { 20 } else { 200 }),
    ) {
        let budget = Budget::new(bytes);
        let table = FlatTable::with_seed(bound, &budget, Seed::from_number(seed));
        let mut checked = Checked { table, model: HashMap::new(), evictions: 0, now: start };
        for op in ops {
            checked.apply(op);
            checked.check(&budget);
        }
        checked.check_entries();

        // Sweeps remove every old entry, whatever resizes run meanwhile.
        checked.now = checked.now.wrapping_add(MAX_AGE + 1);
        for _ in 0..32 {
            checked.age(usize::MAX);
        }
        prop_assert!(checked.table.is_empty());
        prop_assert!(checked.model.is_empty());
        prop_assert_eq!(budget.used(), 0);
    }
}
