//! Memory, budget and the order of evictions, as a user of the crate sees them.

use bellrock_tables::{Budget, FlatTable, Insert, Seed};

const LARGE: usize = if cfg!(miri) { 400 } else { 200_000 };

fn table(bound: usize, budget: &Budget) -> FlatTable<u32> {
    FlatTable::with_seed(bound, budget, Seed::from_number(bound as u64))
}

fn fill(table: &mut FlatTable<u32>, keys: std::ops::Range<u64>) {
    for key in keys {
        assert_ne!(table.insert(key, (key % 48) as u32, 0), Insert::Refused);
    }
}

#[test]
fn an_entry_costs_at_most_24_bytes_at_the_bound() {
    let bounds: &[usize] = if cfg!(miri) {
        &[16, 17, 100, 256]
    } else {
        &[16, 17, 31, 64, 100, 1_000, 1_024, 1_100, 65_536, 70_001, 1 << 20, 1_100_000]
    };
    for &bound in bounds {
        let mut table = table(bound, &Budget::unlimited());
        fill(&mut table, 0..2 * bound as u64);
        assert_eq!(table.len(), bound);
        let bytes = table.memory() as f64 / bound as f64;
        assert!(bytes <= 24.0, "{bytes} bytes an entry at a bound of {bound}");
        if bound > 64 {
            assert!(bytes < 22.0, "{bytes} bytes an entry at a bound of {bound}");
        }
    }
}

#[test]
fn a_full_table_has_lost_nothing_before_it_was_full() {
    let mut table = table(LARGE, &Budget::unlimited());
    for key in 0..LARGE as u64 {
        assert_eq!(table.insert(key << 16, key as u32, 0), Insert::Inserted);
    }
    for key in LARGE as u64..6 * LARGE as u64 {
        assert!(matches!(table.insert(key << 16, key as u32, 0), Insert::Evicted { .. }));
    }
    assert_eq!(table.len(), LARGE);
    assert_eq!(table.stats().evicted, 5 * LARGE as u64);
    assert_eq!(table.stats().crowded_out, 0);
}

#[test]
fn an_idle_table_allocates_nothing() {
    let budget = Budget::new(0);
    let mut table = table(1 << 20, &budget);
    assert_eq!(table.memory(), 0);
    assert_eq!(table.lookup(1), None);
    assert_eq!(table.remove(1), None);
    assert_eq!(table.age(9, 1, 10, |_, _| ()), 0);
    table.prefetch(table.hash(1));
    assert_eq!(table.insert(1, 1, 0), Insert::Refused);
    assert_eq!(table.stats().refused, 1);
    assert_eq!(table.stats().growth_refused, 1);
}

#[test]
fn the_first_allocation_is_small() {
    let mut table = table(1 << 20, &Budget::unlimited());
    assert_eq!(table.insert(1, 1, 0), Insert::Inserted);
    assert!(table.memory() <= 448, "{}", table.memory());
}

#[test]
fn roughly_the_oldest_entries_go() {
    let count = LARGE as u64 / 2;
    let mut table = table(count as usize, &Budget::unlimited());
    for key in 0..count {
        assert_eq!(table.insert(key, 0, key as u32), Insert::Inserted);
    }
    // A twentieth of the entries is evicted. Ideally these are the keys below `count / 20`.
    let mut sum = 0;
    let newcomers = count / 20;
    for key in count..count + newcomers {
        let Insert::Evicted { key, .. } = table.insert(key, 0, key as u32) else {
            panic!("a full table evicts");
        };
        assert!(key < count / 2, "{key} was among the younger half of {count}");
        sum += key;
    }
    let mean = sum as f64 / newcomers as f64 / count as f64;
    assert!(mean < 0.1, "the mean victim was {mean} of the way from the oldest to the youngest");
}

#[test]
fn touched_entries_outlive_the_others() {
    let mut table = table(LARGE, &Budget::unlimited());
    fill(&mut table, 0..LARGE as u64);
    for key in (0..LARGE as u64).step_by(10) {
        assert_eq!(table.touch(key, 50), Some((key % 48) as u32));
    }
    for key in 0..LARGE as u64 / 2 {
        let _ = table.insert(1 << 40 | key, 0, 60);
    }
    let kept = (0..LARGE as u64).step_by(10).filter(|&key| table.lookup(key).is_some()).count();
    // Nearly all: an eviction compares only a sample.
    assert!(kept >= LARGE / 10 * 999 / 1000, "{kept}");
}

#[test]
fn tables_share_a_budget() {
    let budget = Budget::new(LARGE * 24);
    let mut tables: Vec<_> = (0..4).map(|_| table(LARGE, &budget)).collect();
    // Each table wants the whole budget.
    for (number, table) in tables.iter_mut().enumerate() {
        fill(table, 0..LARGE as u64 / 4 * (number as u64 + 1));
    }
    let held: usize = tables.iter().map(FlatTable::memory).sum();
    assert_eq!(budget.used(), held);
    assert!(held <= budget.limit());
    let last = &tables[3];
    assert!(last.stats().growth_refused > 0);
    assert!(last.stats().evicted > 0, "a table that may not grow evicts");
    assert_eq!(last.stats().crowded_out, 0, "and is not filled beyond what it is made for");
    assert!(last.len() < LARGE);

    // The last table takes the bytes that the others return, after its pause.
    let before = tables[3].len();
    tables[0].clear();
    tables.drain(0..3);
    assert_eq!(budget.used(), tables[0].memory());
    fill(&mut tables[0], LARGE as u64..3 * LARGE as u64);
    assert!(tables[0].len() > before || cfg!(miri));
    tables.clear();
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_refused_table_asks_seldom() {
    let budget = Budget::new(4096);
    let mut table = table(LARGE, &budget);
    fill(&mut table, 0..if cfg!(miri) { 4_000 } else { 50_000 });
    let asked = table.stats().growth_refused;
    assert!((2..=60).contains(&asked), "asked {asked} times");
}

#[test]
fn memory_comes_back_after_a_mass_removal() {
    let budget = Budget::unlimited();
    let mut table = table(LARGE, &budget);
    fill(&mut table, 0..LARGE as u64);
    let full = table.memory();
    let mut gone = 0;
    table.remove_where(|key, _| key % 64 != 0, |_, _| gone += 1);
    assert_eq!(gone + table.len(), LARGE);
    assert_eq!(table.memory(), full, "a removal itself moves nothing");
    for _ in 0..40 {
        table.age(0, 100, usize::MAX, |_, _| panic!("nothing is old"));
    }
    assert!(table.memory() <= full / 8, "{} of {full}", table.memory());
    assert!((0..LARGE as u64).step_by(64).all(|key| table.lookup(key).is_some()));
    table.remove_where(|_, _| true, |_, _| ());
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_port_that_goes_down_takes_its_entries_with_it() {
    let mut table = table(LARGE, &Budget::unlimited());
    fill(&mut table, 0..LARGE as u64);
    let mut gone = Vec::new();
    table.remove_where(|_, port| port == 7, |key, port| gone.push((key, port)));
    gone.sort_unstable();
    let expected: Vec<_> = (0..LARGE as u64).filter(|key| key % 48 == 7).map(|k| (k, 7)).collect();
    assert_eq!(gone, expected);
    assert_eq!(table.lookup(7), None);
    assert_eq!(table.lookup(8), Some(8));
}

#[test]
fn sweeps_go_on_where_the_last_one_stopped() {
    let mut table = table(LARGE, &Budget::unlimited());
    fill(&mut table, 0..LARGE as u64);
    for key in 0..LARGE as u64 / 2 {
        table.touch(key, 100);
    }
    let steps = table.lines() / 10 + 1;
    let mut gone = 0;
    for _ in 0..10 {
        gone += table.age(120, 50, steps, |key, _| assert!(key >= LARGE as u64 / 2));
    }
    assert_eq!(gone, LARGE / 2);
    assert_eq!(table.stats().aged_out, gone as u64);
    assert_eq!(table.len(), LARGE / 2);
}

#[test]
fn small_values_of_other_types_fit() {
    let mut table = FlatTable::<u16>::new(10, &Budget::unlimited());
    assert_eq!(table.insert(0, 3, 0), Insert::Inserted);
    assert_eq!(table.insert(u64::MAX, 4, 0), Insert::Inserted);
    assert_eq!((table.lookup(0), table.lookup(u64::MAX)), (Some(3), Some(4)));
}
