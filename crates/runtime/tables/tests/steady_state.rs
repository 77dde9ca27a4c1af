//! Hits, updates and insertions at the bound allocate nothing.

use bellrock_tables::{Budget, FlatTable, Insert};

#[test]
fn the_steady_state_allocates_nothing() {
    const BOUND: u64 = if cfg!(miri) { 200 } else { 50_000 };
    let mut table = FlatTable::<u32>::new(BOUND as usize, &Budget::unlimited());
    for key in 0..BOUND {
        assert_eq!(table.insert(key, 1, 0), Insert::Inserted);
    }
    let mut sum = 0;
    let counted = allocation_counter::measure(|| {
        for key in 0..4 * BOUND {
            sum += table.lookup(key).unwrap_or(0);
            let _ = table.insert(key, 2, (key / 100) as u32);
            table.touch(key / 2, (key / 100) as u32);
            table.age((key / 100) as u32, u32::MAX, 1, |_, _| ());
        }
    });
    assert!(sum > 0);
    assert!(table.stats().evicted >= 3 * BOUND);
    assert_eq!(counted.count_total, 0);
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(counted.count_total, 1, "the counter counts");
}
