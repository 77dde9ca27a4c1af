//! Properties that are invisible from outside: work per operation, and tables under a broken hash.

use super::*;
use crate::line::LINE_BYTES;
use crate::work;
use std::collections::HashSet;

const LARGE: usize = if cfg!(miri) { 300 } else { 100_000 };

fn table(bound: usize, number: u64) -> FlatTable<u32> {
    FlatTable::with_seed(bound, &Budget::unlimited(), Seed::from_number(number))
}

fn broken_table(bound: usize) -> FlatTable<u32> {
    FlatTable::with_seed(bound, &Budget::unlimited(), Seed::all_collide())
}

/// Inserts `keys` and returns the maximum and the mean of the lines that an insertion touched.
fn lines_touched(table: &mut FlatTable<u32>, keys: std::ops::Range<u64>) -> (usize, usize) {
    let count = (keys.end - keys.start) as usize;
    let (mut most, mut sum) = (0, 0);
    for key in keys {
        work::take();
        assert_ne!(table.insert(key, 1, 0), Insert::Refused);
        let lines = work::take();
        most = most.max(lines);
        sum += lines;
    }
    (most, sum / count)
}

#[test]
fn no_insertion_does_more_than_its_share_of_growth() {
    let mut table = table(LARGE, 1);
    let (most, mean) = lines_touched(&mut table, 0..LARGE as u64);
    assert!(most <= MAX_LINES_PER_INSERT, "{most}");
    // Usual insertions are far below the bound, which only collisions reach.
    assert!(most <= 200, "{most}");
    assert!(mean <= 30, "{mean}");
    let (most, mean) = lines_touched(&mut table, LARGE as u64..2 * LARGE as u64);
    assert!(most <= 100, "at the bound: {most}");
    assert!(mean <= 20, "at the bound: {mean}");
}

#[test]
fn work_is_bounded_when_all_keys_collide() {
    const COUNT: u64 = if cfg!(miri) { 40 } else { 1_000 };
    let mut table = broken_table(LARGE);
    let (most, _) = lines_touched(&mut table, 0..COUNT);
    assert!(most <= MAX_LINES_PER_INSERT, "{most}");
    // Those in `main`, and those in `old` that found no slot in `main`.
    assert!((MAX_PROBE_SLOTS..=2 * MAX_PROBE_SLOTS).contains(&table.len()));
    assert_eq!(table.stats().crowded_out, COUNT - table.len() as u64);
    assert!(table.memory() <= 1024, "collisions took {} bytes", table.memory());
}

#[test]
fn a_lookup_reads_two_lines_and_four_while_the_table_is_resized() {
    let mut table = table(LARGE, 2);
    for key in 0..LARGE as u64 {
        assert_eq!(table.insert(key, key as u32, 0), Insert::Inserted);
        if key % 16 == 0 {
            work::take();
            assert_eq!(table.lookup(u64::MAX), None);
            let allowed = if table.old.target() > 0 { 4 } else { 2 };
            assert!(work::take() <= allowed);
            assert_eq!(table.lookup(key / 2), Some((key / 2) as u32));
        }
    }
}

#[test]
fn a_step_of_a_sweep_is_bounded() {
    let mut table = table(LARGE, 3);
    for key in 0..LARGE as u64 {
        let _ = table.insert(key, 1, 0);
    }
    // Enough sweeps to finish the resizes that they cause.
    for _ in 0..4 * table.lines() {
        work::take();
        table.age(100, 10, 1, |_, _| ());
        // The line, its four removals, a step of a resize, and the start of another.
        assert!(work::take() <= 2 + SLOTS_PER_LINE + resize::MAX_STEP_LINES + 64);
    }
    assert!(table.is_empty());
    assert_eq!(table.memory(), 0);
}

/// A table whose last insertion has started to drain its old lines, and the number of its keys.
fn half_resized(number: u64) -> (FlatTable<u32>, u64) {
    let mut table = table(LARGE, number);
    let keys = LARGE as u64 / 2;
    let last = (0..LARGE as u64).find(|&key| {
        assert_eq!(table.insert(key, key as u32, 0), Insert::Inserted);
        key >= keys && table.old.target() > 0
    });
    (table, last.expect("a table that fills is resized") + 1)
}

fn assert_holds(table: &FlatTable<u32>, keys: u64) {
    assert_eq!(table.len() as u64, keys);
    assert_eq!((0..keys).find(|&key| table.lookup(key) != Some(key as u32)), None);
}

#[test]
fn touches_alone_end_a_resize_and_then_read_two_lines() {
    let (mut table, keys) = half_resized(11);
    let old_lines = table.old.target() as u64;
    // Half of the lines are drained by as many touches of entries there.
    let mut touches = 0;
    for key in (0..keys).cycle() {
        work::take();
        assert_eq!(table.touch(key, 1), Some(key as u32));
        assert!(work::take() <= MAX_LINES_PER_INSERT);
        touches += 1;
        if !table.is_resizing() {
            break;
        }
        assert!(touches <= 2 * keys, "not ended after {touches} touches of {keys} keys");
    }
    assert!(touches >= old_lines / 2, "{touches} touches for {old_lines} lines");
    assert_holds(&table, keys);
    for key in 0..keys {
        work::take();
        assert_eq!(table.touch(key, 2), Some(key as u32));
        assert!(work::take() <= 2, "key {key}");
    }
}

#[test]
fn updates_alone_end_a_resize() {
    let (mut table, keys) = half_resized(12);
    let updates = table.old.target() as u64;
    for key in 0..updates {
        assert_eq!(table.insert(key, key as u32, 1), Insert::Updated { old: key as u32 });
    }
    assert!(!table.is_resizing());
    assert_holds(&table, keys);
}

#[test]
fn the_steps_of_its_owner_alone_end_a_resize() {
    let mut table = table(LARGE, 13);
    let mut keys = 0;
    // The memory is ordered, and nothing of it is cleared.
    while keys < LARGE as u64 / 2 || table.next.target() == 0 {
        assert_eq!(table.insert(keys, keys as u32, 0), Insert::Inserted);
        keys += 1;
    }
    let lines = table.next.target();
    for steps in 1.. {
        assert!(table.is_resizing());
        work::take();
        table.continue_resize(1);
        assert!(work::take() <= resize::MAX_STEP_LINES);
        if steps % 64 == 0 {
            assert_eq!(table.lookup(0), Some(0));
        }
        if !table.is_resizing() {
            break;
        }
        assert!(steps <= lines, "not ended after {steps} steps for {lines} lines");
    }
    assert_holds(&table, keys);
    assert_eq!(table.memory(), lines * LINE_BYTES);
}

/// A resize whose entries do not fit: they stay in `old`, and look-ups still find all of them.
#[test]
fn a_resize_that_cannot_finish_loses_nothing() {
    let mut table = broken_table(LARGE);
    for key in 0..8 {
        assert_eq!(table.insert(key, key as u32, 0), Insert::Inserted);
    }
    assert!(table.resize_to(64), "the budget is unlimited");
    for key in 8..16 {
        let at = table.hash(key);
        let place = table.main.make_room(at, &table.seed).expect("nothing was drained yet");
        table
            .main
            .line_mut(place.line)
            .put(place.slot, Entry { key, value: key as u32, stamp: stamp(1) });
        table.len += 1;
    }
    for key in 16..24 {
        let result = table.insert(key, key as u32, 2);
        assert!(matches!(result, Insert::Evicted { .. }), "{result:?}");
    }
    assert!(table.old.target() > 0, "the test means to hold the resize up");
    assert_eq!(table.len(), 16);
    let found: HashSet<u64> = table.iter().map(|(key, _)| key).collect();
    assert_eq!(found.len(), table.len());
    for &key in &found {
        assert_eq!(table.lookup(key), Some(key as u32));
    }
    // When slots are free again, the resize continues and ends.
    table.remove_where(|key, _| key % 2 == 0, |_, _| ());
    for _ in 0..4 {
        table.step_resize();
    }
    assert_eq!(table.old.target(), 0);
    assert!(table.iter().all(|(key, value)| found.contains(&key) && key as u32 == value));
}

#[test]
fn keys_that_an_enemy_would_choose_fill_the_table_to_its_bound() {
    const COUNT: u64 = if cfg!(miri) { 60 } else { 20_000 };
    type Pattern = (&'static str, fn(u64) -> u64);
    let patterns: [Pattern; 6] = [
        ("counted", |index| index),
        ("equal low 32 bits", |index| index << 32 | 0xdead_beef),
        ("equal low 20 bits", |index| index << 20 | 0xabcde),
        ("equal high bits, stride of a page", |index| 0xfff0_0000_0000_0000 | index << 12),
        ("bits reversed", |index| index.reverse_bits()),
        ("a VLAN each for one MAC", |index| (index & 0xfff) << 48 | 0x0200_0000_0000 | index >> 12),
    ];
    for (name, key) in patterns {
        for number in 0..4 {
            let mut table = table(COUNT as usize, number);
            for index in 0..COUNT {
                let result = table.insert(key(index), index as u32, 0);
                assert_eq!(result, Insert::Inserted, "{name}, seed {number}, key {index}");
            }
            let wrong = (0..COUNT).find(|&index| table.lookup(key(index)) != Some(index as u32));
            assert_eq!(wrong, None, "{name}, seed {number}");
        }
    }
}

/// Seven of eight entries of a full table are in the line that was prefetched.
#[test]
fn most_entries_lie_in_their_first_line() {
    const COUNT: u64 = if cfg!(miri) { 300 } else { 30_000 };
    let mut table = table(COUNT as usize, 5);
    for key in 0..COUNT {
        let _ = table.insert(key, 0, 0);
    }
    let in_first = (0..COUNT).filter(|&key| {
        let at = table.hash(key);
        table.main.find(at).is_some_and(|place| place.line == table.main.homes(at)[0])
    });
    let share = in_first.count() as f64 / COUNT as f64;
    assert!(share > 0.8, "{share}");
    assert_eq!(table.stats(), Stats::default());
}

#[test]
fn a_replaced_value_leaves_the_age() {
    let mut table = table(LARGE, 9);
    assert_eq!(table.insert(7, 1, 100), Insert::Inserted);
    assert_eq!(table.replace_hashed(table.hash(7), 2), Some(1));
    assert_eq!(table.replace_hashed(table.hash(8), 2), None);
    assert_eq!(table.iter_ages(130).collect::<Vec<_>>(), [(7, 2, 30)]);
}

#[test]
fn where_there_is_no_room_nothing_goes_for_a_new_entry() {
    const COUNT: u64 = 300;
    let tight = Budget::new(2048);
    let budgeted = FlatTable::with_seed(LARGE, &tight, Seed::from_number(1));
    for mut table in [table(100, 1), budgeted, table(0, 1)] {
        let bound = table.bound();
        let taken: Vec<u64> = (0..COUNT)
            .filter(|key| table.insert_if_room(table.hash(*key), *key as u32, 5))
            .collect();
        assert!(taken.len() <= bound && taken.len() < COUNT as usize, "{}", taken.len());
        assert_eq!((table.len(), table.stats().evicted), (taken.len(), 0));
        for key in taken {
            assert_eq!(table.lookup_fresh(key, 6, 1), Some(key as u32));
            assert!(!table.insert_if_room(table.hash(key), 0, 7), "it is there");
            assert_eq!(table.lookup_fresh(key, 6, 1), Some(key as u32));
        }
    }
}
