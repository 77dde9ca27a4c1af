//! Transactions are atomic under concurrent changes, and tasks can wait in them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use bellrock_transactions::{
    ATTEMPTS_PER_POLL, Abort, Interrupt, MAX_ATTEMPTS, TVar, Transaction, TransactionError,
    atomically, transaction, try_atomically, try_transaction,
};
use proptest::prelude::*;

/// Counts how often a task is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Woken {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn poll<T>(future: Pin<&mut impl Future<Output = T>>, woken: &Arc<Woken>) -> Poll<T> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(woken))))
}

/// Runs a future on this thread, which sleeps while the future waits.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

fn take(tx: &mut Transaction<'_>, from: &TVar<u32>, amount: u32) -> Result<(), Interrupt> {
    tx.require(tx.read(from)? >= amount)?;
    tx.modify(from, |have| have - amount)
}

fn give(tx: &mut Transaction<'_>, to: &TVar<u32>, amount: u32) -> Result<(), Interrupt> {
    tx.modify(to, |have| have + amount)
}

#[test]
fn a_transaction_reads_what_it_wrote() {
    let variable = TVar::new(1);
    let read = atomically(|tx| {
        tx.modify(&variable, |one| one + 1)?;
        tx.write(&variable, tx.read(&variable)? * 10)?;
        tx.read(&variable)
    });
    assert_eq!((read, variable.load()), (Ok(20), 20));
}

#[test]
fn a_retry_in_a_handler_is_an_error_and_changes_nothing() {
    let (a, b) = (TVar::new(0), TVar::new(0));
    let result = atomically(|tx| {
        give(tx, &a, 5)?;
        take(tx, &b, 5)
    });
    assert_eq!(result, Err(TransactionError::WouldWait));
    assert_eq!((a.load(), b.load()), (0, 0));
}

#[test]
fn an_error_aborts_and_changes_nothing() {
    let a = TVar::new(7);
    let result: Result<(), _> = try_atomically(|tx| {
        tx.write(&a, 8)?;
        tx.abort("no")
    });
    assert_eq!(result, Err(TransactionError::Aborted("no")));
    assert_eq!(a.load(), 7);
}

#[test]
fn an_error_goes_through_or_else() {
    let a = TVar::new(7);
    let second = |_: &mut Transaction<'_>| -> Result<(), Abort<&str>> { panic!("not tried") };
    let first = |tx: &mut Transaction<'_>| tx.abort("no");
    let result = try_atomically(|tx| {
        tx.write(&a, 8)?;
        tx.or_else(first, second)
    });
    assert_eq!(result, Err(TransactionError::Aborted("no")));
    assert_eq!(a.load(), 7);
}

#[test]
fn a_panic_changes_nothing_and_spoils_nothing() {
    let a = TVar::new(7);
    let result = catch_unwind(AssertUnwindSafe(|| {
        atomically(|tx| -> Result<(), Interrupt> {
            tx.write(&a, 8)?;
            panic!("an app's mistake")
        })
    }));
    assert!(result.is_err());
    assert_eq!(a.load(), 7);
    assert_eq!(atomically(|tx| tx.modify(&a, |a| a + 1)), Ok(()));
    assert_eq!(a.load(), 8);
}

#[test]
fn or_else_takes_back_what_the_first_wrote_only() {
    let (a, b, c) = (TVar::new(0), TVar::new(0), TVar::new(1));
    let done = atomically(|tx| {
        give(tx, &a, 1)?;
        tx.or_else(
            |tx| {
                give(tx, &a, 10)?;
                give(tx, &b, 10)?;
                take(tx, &c, 2)
            },
            |tx| {
                assert_eq!((tx.read(&a)?, tx.read(&b)?), (1, 0));
                take(tx, &c, 1)
            },
        )
    });
    assert_eq!((done, a.load(), b.load(), c.load()), (Ok(()), 1, 0, 0));
}

#[test]
fn or_else_nests_on_both_sides() {
    let pots = [TVar::new(0), TVar::new(0), TVar::new(0), TVar::new(4)];
    let [a, b, c, d] = &pots;
    let any = |tx: &mut Transaction<'_>| {
        tx.or_else(
            |tx| tx.or_else(|tx| take(tx, a, 2), |tx| take(tx, b, 2)),
            |tx| tx.or_else(|tx| take(tx, c, 2), |tx| take(tx, d, 2)),
        )
    };
    assert_eq!([atomically(any), atomically(any)], [Ok(()); 2]);
    assert_eq!(atomically(any), Err(TransactionError::WouldWait));
    assert_eq!(pots.map(|pot| pot.load()), [0; 4]);
}

#[test]
fn the_second_way_is_taken_only_if_the_first_waits_at_the_commit() {
    let (a, b) = (TVar::new(0), TVar::new(9));
    let runs = Cell::new(0);
    let result = atomically(|tx| {
        runs.set(runs.get() + 1);
        tx.or_else(
            |tx| take(tx, &a, 1).map(|()| "first"),
            |tx| {
                if runs.get() == 1 {
                    let other = a.clone();
                    // Another thread makes the first branch possible before the second commits.
                    let other = move || atomically(|tx| give(tx, &other, 1));
                    assert!(matches!(thread::spawn(other).join(), Ok(Ok(()))));
                }
                take(tx, &b, 1).map(|()| "second")
            },
        )
    });
    assert_eq!((result, runs.get(), b.load()), (Ok("first"), 2, 9));
}

#[test]
fn an_error_over_what_never_was_at_one_moment_does_not_count() {
    let (a, b) = (TVar::new(1), TVar::new(1));
    let runs = Cell::new(0);
    let result = try_atomically(|tx| {
        runs.set(runs.get() + 1);
        let first = tx.read(&a)?;
        if runs.get() == 1 {
            let (a, b) = (a.clone(), b.clone());
            let both = move |tx: &mut Transaction<'_>| {
                tx.write(&a, 2)?;
                tx.write(&b, 2)
            };
            assert!(matches!(thread::spawn(|| atomically(both)).join(), Ok(Ok(()))));
        }
        let second = tx.read(&b)?;
        if first == second { Ok(first) } else { tx.abort("the two differ") }
    });
    assert_eq!((result, runs.get()), (Ok(2), 2));
}

#[test]
fn a_transaction_that_is_always_overtaken_gives_up_in_a_handler() {
    let a = TVar::new(0);
    let runs = Cell::new(0);
    let result = atomically(|tx| {
        runs.set(runs.get() + 1);
        let seen = tx.read(&a)?;
        let other = a.clone();
        let other = move || atomically(|tx| tx.modify(&other, |a| a + 1));
        assert!(matches!(thread::spawn(other).join(), Ok(Ok(()))));
        tx.write(&a, seen)
    });
    assert_eq!(
        (result, runs.get(), a.load()),
        (Err(TransactionError::Contended), MAX_ATTEMPTS, MAX_ATTEMPTS)
    );
}

#[test]
fn a_task_sleeps_until_a_variable_that_it_read_has_changed() {
    let (a, b, other) = (TVar::new(0), TVar::new(0), TVar::new(0));
    let woken = Arc::default();
    let both = |tx: &mut Transaction<'_>| {
        take(tx, &a, 1)?;
        take(tx, &b, 1)
    };
    let mut task = pin!(transaction(both));
    assert!(poll(task.as_mut(), &woken).is_pending());
    assert_eq!(atomically(|tx| give(tx, &other, 1)), Ok(()));
    // The task has not read b.
    assert_eq!(atomically(|tx| give(tx, &b, 1)), Ok(()));
    assert_eq!(woken.count(), 0);
    assert_eq!(atomically(|tx| give(tx, &a, 1)), Ok(()));
    assert_eq!(woken.count(), 1);
    assert!(poll(task.as_mut(), &woken).is_ready());
    assert_eq!((a.load(), b.load()), (0, 0));
}

#[test]
fn an_error_ends_the_transaction_of_a_task() {
    let a = TVar::new(7);
    let result: Result<(), &str> = block_on(try_transaction(|tx| {
        tx.write(&a, 8)?;
        tx.abort("no")
    }));
    assert_eq!((result, a.load()), (Err("no"), 7));
}

#[test]
fn a_task_that_goes_neither_way_waits_for_both() {
    let pots = [TVar::new(0), TVar::new(0)];
    for pot in &pots {
        let woken = Arc::default();
        let mut task = pin!(transaction(|tx| {
            tx.or_else(|tx| take(tx, &pots[0], 1), |tx| take(tx, &pots[1], 1))
        }));
        assert!(poll(task.as_mut(), &woken).is_pending());
        assert_eq!(atomically(|tx| give(tx, pot, 1)), Ok(()));
        assert_eq!(woken.count(), 1);
        assert!(poll(task, &woken).is_ready());
    }
}

#[test]
fn a_task_that_is_dropped_waits_no_longer() {
    let a = TVar::new(0);
    let woken = Arc::<Woken>::default();
    for _ in 0..3 {
        let mut task = Box::pin(transaction(|tx| take(tx, &a, 1)));
        assert!(poll(task.as_mut(), &woken).is_pending());
        assert!(poll(task.as_mut(), &woken).is_pending());
    }
    assert_eq!(Arc::strong_count(&woken), 1);
}

#[test]
fn a_task_that_is_overtaken_lets_the_others_run() {
    let a = TVar::new(0);
    let (runs, woken) = (Cell::new(0), Arc::default());
    let mut task = pin!(transaction(|tx| {
        runs.set(runs.get() + 1);
        let seen = tx.read(&a)?;
        if runs.get() <= ATTEMPTS_PER_POLL {
            let other = a.clone();
            let other = move || atomically(|tx| tx.modify(&other, |a| a + 1));
            assert!(matches!(thread::spawn(other).join(), Ok(Ok(()))));
        }
        tx.write(&a, seen + 1)
    }));
    assert!(poll(task.as_mut(), &woken).is_pending());
    assert_eq!((runs.get(), woken.count()), (ATTEMPTS_PER_POLL, 1));
    assert!(poll(task, &woken).is_ready());
}

#[test]
fn no_wake_up_is_lost_between_threads() {
    const ROUNDS: u32 = 2_000;
    let (ping, pong) = (TVar::new(0), TVar::new(0));
    thread::scope(|scope| {
        let (mine, theirs) = (&ping, &pong);
        scope.spawn(move || {
            (0..ROUNDS).for_each(|_| {
                block_on(transaction(|tx| take(tx, mine, 1)));
                block_on(transaction(|tx| give(tx, theirs, 1)));
            });
        });
        (0..ROUNDS).for_each(|_| {
            block_on(transaction(|tx| give(tx, &ping, 1)));
            block_on(transaction(|tx| take(tx, &pong, 1)));
        });
    });
    assert_eq!((ping.load(), pong.load()), (0, 0));
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    from: [usize; 2],
    to: usize,
    amount: u32,
}

const ACCOUNTS: usize = 4;
const START: u32 = 20;

fn any_transfer() -> impl Strategy<Value = Transfer> {
    let account = || 0..ACCOUNTS;
    ([account(), account()], account(), 1_u32..=START).prop_map(|(from, to, amount)| Transfer {
        from,
        to,
        amount,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Several threads transfer at once, from one account or, if its balance is too low, from
    /// another. The sum stays the same, no account is overdrawn (that would panic), and each read
    /// finds the whole sum.
    #[test]
    fn transfers_keep_the_sum(lists in prop::collection::vec(prop::collection::vec(any_transfer(), 0..100), 4)) {
        let accounts: [TVar<u32>; ACCOUNTS] = std::array::from_fn(|_| TVar::new(START));
        let sum = || atomically(|tx| accounts.iter().try_fold(0, |sum, one| Ok(sum + tx.read(one)?)));
        let transfer = |Transfer { from: [a, b], to, amount }: Transfer| {
            let done = atomically(|tx| {
                tx.or_else(|tx| take(tx, &accounts[a], amount), |tx| take(tx, &accounts[b], amount))?;
                give(tx, &accounts[to], amount)
            });
            assert!(matches!(done, Ok(()) | Err(TransactionError::WouldWait)), "{done:?}");
            assert_eq!(sum(), Ok(START * ACCOUNTS as u32));
        };
        thread::scope(|scope| {
            for list in lists {
                scope.spawn(move || list.into_iter().for_each(transfer));
            }
        });
        prop_assert_eq!(sum(), Ok(START * ACCOUNTS as u32));
    }

    /// Transfers one after the other give the same result as plain numbers.
    #[test]
    fn transfers_do_what_plain_numbers_do(list in prop::collection::vec(any_transfer(), 0..200)) {
        let accounts: [TVar<u32>; ACCOUNTS] = std::array::from_fn(|_| TVar::new(START));
        let mut plain = [START; ACCOUNTS];
        for Transfer { from: [a, b], to, amount } in list {
            let done = atomically(|tx| {
                give(tx, &accounts[to], amount)?;
                tx.or_else(|tx| take(tx, &accounts[a], amount), |tx| take(tx, &accounts[b], amount))
            });
            let mut next = plain;
            next[to] += amount;
            let from = [a, b].into_iter().find(|from| next[*from] >= amount);
            if let Some(from) = from {
                next[from] -= amount;
                plain = next;
            }
            prop_assert_eq!(done.is_ok(), from.is_some());
            prop_assert_eq!(accounts.each_ref().map(TVar::load), plain);
        }
    }
}
