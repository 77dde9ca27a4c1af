//! A shared table as one thread sees it, and its behaviour at its bounds.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

fn table(bound: usize) -> SharedTable {
    SharedTable::with_seed(bound, &Budget::unlimited(), Seed::from_number(1))
}

#[test]
fn an_inserted_entry_is_found_until_it_is_removed_or_too_old() {
    let table = table(100);
    for key in [0, 1, u64::MAX] {
        let at = table.hash(key);
        assert_eq!(table.lookup(at), None);
        assert_eq!(table.insert(at, key ^ 9, 10), SharedInsert::Inserted);
        assert_eq!(table.insert(at, 5, 11), SharedInsert::There { value: key ^ 9 });
        assert_eq!(table.lookup_age(at, 12), Some((key ^ 9, 2)), "a refused value is not seen");
        assert_eq!(table.lookup_fresh(at, 12, 2), Some(key ^ 9));
        assert_eq!(table.lookup_fresh(at, 13, 2), None);
        assert_eq!(table.touch_if(at, 13, |value| value != key ^ 9), None);
        assert_eq!(table.lookup_age(at, 13), Some((key ^ 9, 3)));
        assert_eq!(table.touch_if(at, 13, |value| value == key ^ 9), Some(key ^ 9));
        assert_eq!(table.lookup_age(at, 13), Some((key ^ 9, 0)));
        assert_eq!(table.replace(at, 1, 2, 14), Err(NotReplaced::Is(key ^ 9)));
        assert_eq!(table.replace_unseen(at, key ^ 9, 7), Ok(()));
        assert_eq!(table.lookup_age(at, 14), Some((7, 1)));
        assert_eq!(table.replace(at, 7, 8, 14), Ok(()));
        assert_eq!(table.lookup_age(at, 14), Some((8, 0)));
        assert_eq!(table.remove(at, 7), Err(NotReplaced::Is(8)));
        assert_eq!((table.remove(at, 8), table.lookup(at)), (Ok(()), None));
        assert_eq!(table.remove(at, 8), Err(NotReplaced::Absent));
        assert!(table.is_empty());
    }
}

#[test]
fn a_full_table_forgets_old_entries_and_never_holds_more_than_its_bound() {
    let (table, bound) = (table(1000), 1000_u64);
    for key in 0..bound {
        assert_eq!(table.insert(table.hash(key), key, key as u32), SharedInsert::Inserted);
    }
    assert_eq!((table.len(), table.stats().crowded_out), (1000, 0));
    let mut gone = HashSet::new();
    for key in bound..bound + 300 {
        let SharedInsert::Evicted { key: old, value } =
            table.insert(table.hash(key), key, key as u32)
        else {
            panic!("full")
        };
        assert_eq!(old, value);
        assert!(gone.insert(old));
        assert_eq!((table.len(), table.iter_ages(0).count()), (1000, 1000));
        assert_eq!(
            (table.lookup(table.hash(key)), table.lookup(table.hash(old))),
            (Some(key), None)
        );
    }
    // The mean of randomly chosen victims would be about 650.
    assert!(gone.iter().sum::<u64>() / 300 < 300, "old ones went");
    assert_eq!(table.stats().evicted, 300);
}

#[test]
fn a_table_takes_all_that_its_bound_says() {
    let bound = if cfg!(miri) { 500 } else { 300_000 };
    let table = SharedTable::new(bound, &Budget::unlimited());
    for key in 0..bound as u64 {
        assert_eq!(table.insert(table.hash(key << 20), key, 1), SharedInsert::Inserted);
    }
    assert!((0..bound as u64).all(|key| table.lookup(table.hash(key << 20)) == Some(key)));
    assert!(table.memory() <= bound * 29 + 64, "{} bytes", table.memory());
}

#[test]
fn keys_that_all_collide_crowd_each_other_out_and_do_no_more() {
    let table = SharedTable::with_seed(100, &Budget::unlimited(), Seed::all_collide());
    for key in 0..50_u64 {
        let inserted = table.insert(table.hash(key), key, key as u32);
        match key {
            0..6 => assert_eq!(inserted, SharedInsert::Inserted),
            _ => assert_eq!(inserted, SharedInsert::Evicted { key: key - 6, value: key - 6 }),
        }
    }
    assert_eq!((table.len(), table.stats().crowded_out), (6, 44));
}

#[test]
fn a_budget_that_has_too_little_halves_the_bound_and_gets_its_bytes_back() {
    let budget = Budget::new(10_000);
    let first = SharedTable::new(1000, &budget);
    assert_eq!((first.bound(), first.memory()), (250, 7168));
    assert_eq!(budget.used(), first.memory());
    let second = SharedTable::new(1000, &budget);
    assert_eq!(second.bound(), 62);
    drop(first);
    assert_eq!(budget.used(), second.memory());
    let none = SharedTable::new(1000, &Budget::new(10));
    assert_eq!(none.insert(none.hash(1), 1, 1), SharedInsert::Busy);
    assert_eq!((none.lookup(none.hash(1)), none.lines(), none.bound()), (None, 0, 0));
    none.age(1, 1, 10, |_, _| panic!("empty"));
}

#[test]
fn a_sweep_sees_each_line_once_and_removes_what_is_old() {
    let table = table(1000);
    for key in 0..600_u64 {
        let _ = table.insert(table.hash(key), key, if key % 3 == 0 { 10 } else { 100 });
    }
    let mut gone = Vec::new();
    for _ in 0..table.lines().div_ceil(7) {
        table.age(110, 50, 7, |key, _| gone.push(key));
    }
    gone.sort_unstable();
    assert_eq!(gone, (0..600).filter(|key| key % 3 == 0).collect::<Vec<_>>());
    assert_eq!((table.len(), table.stats().aged_out), (400, 200));
    table.remove_where(|_, value| value % 3 == 1, |key, _| assert_eq!(key % 3, 1));
    assert_eq!(table.len(), 200);
}

/// Runs `others` while this thread is stopped in the middle of a change of a line.
fn while_held<R>(table: &SharedTable, line: usize, others: impl FnOnce() -> R) -> R {
    let line = table.lines.get(line).and_then(SharedLine::snapshot);
    let held = line.and_then(|line| line.take());
    assert!(held.is_some(), "nobody else is here");
    crate::work::by_another(others)
}

#[test]
fn a_line_that_somebody_keeps_delays_nobody() {
    let table = table(2);
    let at = table.hash(5);
    let _ = table.insert(at, 6, 1);
    while_held(&table, 0, || {
        assert_eq!((table.lookup(at), table.touch_if(at, 2, |_| true)), (None, None));
        assert_eq!(table.insert(table.hash(6), 6, 1), SharedInsert::Busy);
        assert_eq!(table.replace(at, 6, 7, 1), Err(NotReplaced::Busy));
        table.remove_where(|_, _| true, |_, _| panic!("it is kept"));
    });
    assert!(table.stats().busy >= 4);
    assert_eq!(table.lookup(at), Some(6));
}

#[test]
fn an_entry_is_at_hand_while_somebody_keeps_the_other_line_of_its_key() {
    // All keys have the same two lines: three are in the first, and three in the second.
    let table = SharedTable::with_seed(100, &Budget::unlimited(), Seed::all_collide());
    (0..6)
        .for_each(|key| assert_eq!(table.insert(table.hash(key), key, 1), SharedInsert::Inserted));
    let lines = table.lines.homes(table.hash(0));
    for (kept, keys) in [(lines[1], 0..3), (lines[0], 3..6)] {
        while_held(&table, kept, || {
            for at in keys.map(|key| table.hash(key)) {
                assert_eq!(table.lookup(at), Some(at.key()));
                assert_eq!(table.touch_if(at, 2, |_| true), Some(at.key()));
                assert_eq!(table.replace_unseen(at, at.key(), 10), Ok(()));
                assert_eq!(table.insert(at, 7, 1), SharedInsert::There { value: 10 });
                assert_eq!(table.remove(at, 10), Ok(()));
            }
        });
    }
    assert_eq!((table.len(), table.stats().busy), (0, 0));
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u64),
    Replace(u64, u64, u64),
    Remove(u64, u64),
    Touch(u64),
    Age(u32),
    Pass(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (key, value) = (0..24_u64, 0..3_u64);
    let step = prop_oneof![
        (key.clone(), value.clone()).prop_map(|(key, value)| Step::Insert(key, value)),
        (key.clone(), value.clone(), value.clone()).prop_map(|(k, a, b)| Step::Replace(k, a, b)),
        (key.clone(), value).prop_map(|(key, value)| Step::Remove(key, value)),
        key.prop_map(Step::Touch),
        (0..20_u32).prop_map(Step::Age),
        (0..5_u32).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..if cfg!(miri) { 30 } else { 300 })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The table does the same as a map with ages; only evictions are its own choice.
    #[test]
    fn one_thread_sees_a_map(steps in steps(), bound in 1_usize..30, seed: u64) {
        let table = SharedTable::with_seed(bound, &Budget::unlimited(), Seed::from_number(seed));
        let mut model: HashMap<u64, (u64, u32)> = HashMap::new();
        let mut now = u32::MAX - 20;
        for step in steps {
            match step {
                Step::Insert(key, value) => match table.insert(table.hash(key), value, now) {
                    SharedInsert::There { value } => prop_assert_eq!(model.get(&key).map(|its| its.0), Some(value)),
                    SharedInsert::Inserted => prop_assert_eq!(model.insert(key, (value, now)), None),
                    SharedInsert::Evicted { key: old, value: its } => {
                        prop_assert_eq!(model.remove(&old).map(|its| its.0), Some(its));
                        prop_assert_eq!(model.insert(key, (value, now)), None);
                    }
                    SharedInsert::Busy => prop_assert!(false, "nobody else is here"),
                },
                Step::Replace(key, expected, value) => {
                    let replaced = table.replace(table.hash(key), expected, value, now);
                    match model.get_mut(&key) {
                        None => prop_assert_eq!(replaced, Err(NotReplaced::Absent)),
                        Some(its) if its.0 == expected => {
                            prop_assert_eq!(replaced, Ok(()));
                            *its = (value, now);
                        }
                        Some(its) => prop_assert_eq!(replaced, Err(NotReplaced::Is(its.0))),
                    }
                }
                Step::Remove(key, expected) => {
                    let removed = table.remove(table.hash(key), expected);
                    prop_assert_eq!(removed.is_ok(), model.get(&key).is_some_and(|its| its.0 == expected));
                    if removed.is_ok() {
                        model.remove(&key);
                    }
                }
                Step::Touch(key) => {
                    let touched = table.touch_if(table.hash(key), now, |_| true);
                    prop_assert_eq!(touched, model.get(&key).map(|its| its.0));
                    model.entry(key).and_modify(|its| its.1 = now);
                }
                Step::Age(max_age) => table.age(now, max_age, table.lines(), |key, value| {
                    let (its, seen) = model.remove(&key).unwrap();
                    assert!(its == value && now.wrapping_sub(seen) > max_age);
                }),
                Step::Pass(ticks) => now = now.wrapping_add(ticks),
            }
            prop_assert!(table.len() == model.len() && model.len() <= bound);
            for (key, (value, seen)) in &model {
                let found = table.lookup_age(table.hash(*key), now);
                prop_assert_eq!(found, Some((*value, now.wrapping_sub(*seen))));
            }
            prop_assert_eq!(table.iter_ages(now).count(), model.len());
        }
    }
}
