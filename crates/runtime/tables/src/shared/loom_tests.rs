//! All interleavings of a few operations of two or three threads, in all orders that the memory
//! model allows (as far as loom supports it).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p bellrock-tables --lib --release loom_tests`

use loom::sync::Arc;
use loom::thread;

use super::*;

/// A table of one or two lines, in which every key has the same lines.
fn table(lines: usize) -> Arc<SharedTable> {
    let bound = lines * ENTRIES_PER_FOUR_LINES / 4;
    let seed = Seed::all_collide();
    let table = SharedTable::with_seed(bound, &Budget::unlimited(), seed);
    assert_eq!(table.lines(), lines);
    Arc::new(table)
}

fn insert(table: &SharedTable, key: u64, value: u64) -> SharedInsert {
    table.insert(table.hash(key), value, 1)
}

/// A reader sees a key with its own value, while another thread reuses its slot for another key.
#[test]
fn a_value_belongs_to_its_key() {
    loom::model(|| {
        let table = table(1);
        let _ = (insert(&table, 1, 10), insert(&table, 2, 20));
        let writer = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let _ = table.remove(table.hash(1), 10);
                let _ = insert(&table, 3, 30);
            })
        };
        for (key, value) in [(1, 10), (3, 30)] {
            let at = table.hash(key);
            let found = table.lookup_fresh(at, 1, 1);
            assert!(found.is_none_or(|its| its == value), "{key}: {found:?}");
        }
        // No thread changes this key; a reader that was disturbed too often may miss it.
        assert!(table.lookup(table.hash(2)).is_none_or(|its| its == 20));
        writer.join().unwrap();
        assert_eq!(table.lookup(table.hash(3)), Some(30));
        assert_eq!(table.lookup(table.hash(2)), Some(20));
    });
}

/// If two threads insert the same key, one succeeds and the other is refused. Each reads two whole
/// lines before it writes, so there are too many interleavings to try. The test tries those with at
/// most three preemptions of a thread.
#[test]
fn a_key_is_inserted_once() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let table = table(2);
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || insert(&table, 7, 1))
        };
        let mine = insert(&table, 7, 2);
        let theirs = other.join().unwrap();
        match (mine, theirs) {
            (SharedInsert::Inserted, SharedInsert::There { value: 2 })
            | (SharedInsert::There { value: 1 }, SharedInsert::Inserted)
            | (SharedInsert::Inserted, SharedInsert::Busy)
            | (SharedInsert::Busy, SharedInsert::Inserted)
            | (SharedInsert::Busy, SharedInsert::Busy) => {}
            both => panic!("{both:?}"),
        }
        assert!(table.iter_ages(1).count() <= 1 && table.iter_ages(1).count() == table.len());
    });
}

/// If two threads replace the same value, one succeeds.
#[test]
fn a_value_is_replaced_once() {
    loom::model(|| {
        let table = table(1);
        let _ = insert(&table, 7, 0);
        let replace = |table: &SharedTable, value| table.replace(table.hash(7), 0, value, 2);
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || replace(&table, 1))
        };
        let (mine, theirs) = (replace(&table, 2), other.join().unwrap());
        assert!(mine.is_err() || theirs.is_err());
        let found = table.lookup(table.hash(7));
        match (mine, theirs) {
            (Ok(()), _) => assert_eq!(found, Some(2)),
            (_, Ok(())) => assert_eq!(found, Some(1)),
            _ => assert_eq!((mine, theirs), (Err(NotReplaced::Busy), Err(NotReplaced::Busy))),
        }
    });
}

/// Recording that an entry was seen never restores a removed entry, and changes no other.
#[test]
fn a_touch_brings_nothing_back() {
    loom::model(|| {
        let table = table(1);
        let _ = insert(&table, 1, 10);
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let removed = table.remove(table.hash(1), 10);
                (removed, insert(&table, 2, 20))
            })
        };
        let touched = table.touch_if(table.hash(1), 5, |value| value == 10);
        assert!(touched.is_none_or(|value| value == 10));
        let (removed, inserted) = other.join().unwrap();
        assert_eq!((removed, inserted), (Ok(()), SharedInsert::Inserted));
        assert_eq!(table.lookup(table.hash(1)), None);
        let all: Vec<_> = table.iter_ages(5).collect();
        assert!(matches!(all[..], [(2, 20, _)]), "{all:?}");
    });
}

/// A table of two lines with four keys: three in the first line, the fourth in the second. A thread
/// moves the fourth to the first line, as an insertion does, and returns whether it moved.
fn with_the_fourth_on_its_way() -> (Arc<SharedTable>, thread::JoinHandle<bool>) {
    let table = table(2);
    for key in 1..=4 {
        let _ = insert(&table, key, key);
    }
    let mover = {
        let table = Arc::clone(&table);
        thread::spawn(move || {
            let [first, second] = table.lines.homes(table.hash(4));
            assert_eq!(table.remove(table.hash(1), 1), Ok(()));
            table.move_entry(4, second, first).is_some()
        })
    };
    (table, mover)
}

/// A reader finds an entry that is being moved from one of its lines to the other.
#[test]
fn an_entry_is_found_while_it_is_moved() {
    loom::model(|| {
        let (table, mover) = with_the_fourth_on_its_way();
        // A reader may be disturbed too often; otherwise it finds the key.
        let busy = table.stats().busy;
        let found = table.lookup(table.hash(4));
        assert!(found == Some(4) || (found.is_none() && table.stats().busy > busy), "{found:?}");
        assert!(mover.join().unwrap(), "nobody else writes");
        assert_eq!(table.lookup(table.hash(4)), Some(4));
    });
}

/// A change of an entry that is being moved moves with it, or is reported as not made.
#[test]
fn a_change_is_not_lost_by_a_move() {
    loom::model(|| {
        let (table, mover) = with_the_fourth_on_its_way();
        let changed = table.replace_unseen(table.hash(4), 4, 40);
        assert!(matches!(changed, Ok(()) | Err(NotReplaced::Busy)), "{changed:?}");
        let moved = mover.join().unwrap();
        assert!(moved || changed.is_ok(), "one of them was first");
        let value = if changed.is_ok() { 40 } else { 4 };
        assert_eq!(table.lookup(table.hash(4)), Some(value));
        let mut keys: Vec<_> = table.iter_ages(1).map(|(key, ..)| key).collect();
        keys.sort_unstable();
        assert_eq!(keys, [2, 3, 4]);
    });
}
