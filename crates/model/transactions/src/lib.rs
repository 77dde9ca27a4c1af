//! Transactions: atomic changes of several shared variables.
//!
//! State that handlers and tasks share, and that must change together, belongs in [`TVar`]s.
//! Transactions change it, and are composed of smaller ones. (McNettle's Fig. 6: reserve bandwidth
//! on every link of a path, or change nothing.)
//!
//! ```
//! use bellrock_transactions::{Interrupt, TVar, Transaction, atomically};
//!
//! /// Takes `rate` from each link of a path, or waits until all of them have so much.
//! fn reserve(tx: &mut Transaction, path: &[TVar<u64>], rate: u64) -> Result<(), Interrupt> {
//!     for free in path {
//!         tx.require(tx.read(free)? >= rate)?;
//!         tx.modify(free, |free| free - rate)?;
//!     }
//!     Ok(())
//! }
//!
//! let short = [TVar::new(10), TVar::new(2)];
//! let long = [TVar::new(8), TVar::new(8), TVar::new(8)];
//! let any = |tx: &mut Transaction| {
//!     tx.or_else(|tx| reserve(tx, &short, 5), |tx| reserve(tx, &long, 5))
//! };
//! assert!(atomically(any).is_ok());
//! assert_eq!((short[0].load(), long[2].load()), (10, 3));
//! // Neither path has so much any more. A handler cannot wait, so this is an error there.
//! assert!(atomically(any).is_err());
//! ```
//!
//! # Where
//! - [`atomically`] and [`try_atomically`] never wait: they are for handlers.
//! - [`transaction`] and [`try_transaction`] are for tasks: [`Transaction::retry`] suspends the
//!   task until a variable that was read has changed.
//!
//! # What a transaction sees
//! The result is as if transactions ran one after the other. Values that were read are still
//! current at the commit. Values that made a transaction wait or abort were all current at one
//! moment. `or_else` takes its second branch only if the first one still waits at the moment of the
//! commit.
//!
//! # Limits
//! - The closure may run several times, and runs of several transactions overlap. It must change
//!   only variables, send nothing, and log nothing. Act on its result afterwards.
//! - One run may read two variables at two moments. Then it does not commit, and its errors and
//!   waits are ignored; but it must end. So it must not loop until two variables agree, and must
//!   not panic if they do not.
//! - A transaction inside a transaction panics. A smaller one is a function that takes
//!   `&mut Transaction`.
//! - Transactions are optimistic: one that another overtakes starts again. One of them always makes
//!   progress, but short transactions can overtake a long one for as long as they keep coming. A
//!   handler gives up after [`MAX_ATTEMPTS`] with [`TransactionError::Contended`]; a task yields to
//!   other tasks after every [`ATTEMPTS_PER_POLL`]. So keep transactions short, and keep a value
//!   that changes often and independently in its own variable.
//! - A read costs some 130 ns, a change 250 ns: look-ups, a short lock of the variable, and an
//!   allocation for a write. That fits what must change together. For data that is read for every
//!   packet, use a value that is replaced as a whole (`bellrock_api::Watch`), or a table without
//!   locks.
//!
//! # What it is not
//! Part of the packet path, or of the interface for apps. It knows no switch, no network and no
//! other crate of Bellrock: apps and tasks use it, and nothing calls it for them.

mod log;
mod variable;

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use fast_stm as stm;

use log::{TransactionLog, WaitSet};
pub use variable::TVar;

/// Maximum number of runs of a transaction in a handler, before it gives up.
pub const MAX_ATTEMPTS: usize = 1_000;

/// Number of runs of a transaction in a task, before other tasks get their turn.
pub const ATTEMPTS_PER_POLL: usize = 64;

/// Changes variables atomically.
///
/// # Errors
/// [`TransactionError::WouldWait`] if the transaction [retries](Transaction::retry), since a
/// handler cannot wait; [`TransactionError::Contended`]. Nothing has changed then.
///
/// # Panics
/// Inside another transaction.
pub fn atomically<T>(
    body: impl Fn(&mut Transaction<'_>) -> Result<T, Interrupt>,
) -> Result<T, TransactionError> {
    try_atomically(|tx| body(tx).map_err(Abort::Interrupt))
}

/// Changes variables atomically, or fails with an error of the caller's.
///
/// ```
/// use bellrock_transactions::{TVar, TransactionError, try_atomically};
///
/// let (from, to) = (TVar::new(3_u32), TVar::new(0_u32));
/// let moved = try_atomically(|tx| {
///     tx.modify(&to, |to| to + 5)?;
///     let Some(rest) = tx.read(&from)?.checked_sub(5) else { return tx.abort("too little") };
///     tx.write(&from, rest)?;
///     Ok(rest)
/// });
/// assert_eq!(moved, Err(TransactionError::Aborted("too little")));
/// assert_eq!(to.load(), 0);
/// ```
///
/// # Errors
/// [`TransactionError`]. Nothing has changed then.
///
/// # Panics
/// Inside another transaction.
pub fn try_atomically<T, E>(
    body: impl Fn(&mut Transaction<'_>) -> Result<T, Abort<E>>,
) -> Result<T, TransactionError<E>> {
    match run(MAX_ATTEMPTS, body) {
        RunOutcome::Done(value) => Ok(value),
        RunOutcome::Waits(_) => Err(TransactionError::WouldWait),
        RunOutcome::Contended => Err(TransactionError::Contended),
        RunOutcome::Aborted(error) => Err(TransactionError::Aborted(error)),
    }
}

/// Changes variables atomically, for tasks: [`Transaction::retry`] suspends the task until a
/// variable that was read has changed.
///
/// A retry that has read nothing waits for ever.
///
/// # Panics
/// Inside another transaction.
pub async fn transaction<T>(body: impl Fn(&mut Transaction<'_>) -> Result<T, Interrupt>) -> T {
    match try_transaction(|tx| body(tx).map_err(Abort::<Infallible>::Interrupt)).await {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

/// Like [`transaction`](fn@transaction), for a body that may fail with an error of the caller's.
///
/// # Errors
/// The error of the [abort](Transaction::abort). Nothing has changed then.
///
/// # Panics
/// Inside another transaction.
pub async fn try_transaction<T, E>(
    body: impl Fn(&mut Transaction<'_>) -> Result<T, Abort<E>>,
) -> Result<T, E> {
    let mut waits = WaitSet::default();
    poll_fn(|context| {
        let again = match run(ATTEMPTS_PER_POLL, &body) {
            RunOutcome::Done(value) => return Poll::Ready(Ok(value)),
            RunOutcome::Aborted(error) => return Poll::Ready(Err(error)),
            RunOutcome::Contended => true,
            // In this order: a change after the check finds the waker registered.
            RunOutcome::Waits(log) => {
                waits.wait_for(&log, context.waker());
                !log.is_current()
            }
        };
        if again {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await
}

/// Why a transaction failed. Nothing has changed. `E` is the error that it may be aborted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError<E = Infallible> {
    /// It retries, but a handler cannot wait.
    #[error("the transaction waits for another change, and a handler cannot wait")]
    WouldWait,
    /// Other transactions have overtaken it [`MAX_ATTEMPTS`] times.
    #[error("other transactions overtook this one {MAX_ATTEMPTS} times")]
    Contended,
    /// It was [aborted](Transaction::abort) with this error.
    #[error("{0}")]
    Aborted(E),
}

/// Ends a run of a transaction's body: it retries, or was overtaken. Pass it on with `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt(InterruptCause);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InterruptCause {
    Retry,
    Overtaken,
}

/// Ends a run of a body that may fail: it cannot go on, or aborts. Pass it on with `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort<E> {
    /// It retries, or was overtaken.
    Interrupt(Interrupt),
    /// It aborts, and changes nothing.
    Error(E),
}

impl<E> From<Interrupt> for Abort<E> {
    fn from(interrupt: Interrupt) -> Self {
        Abort::Interrupt(interrupt)
    }
}

/// The error of a transaction's body: [`Interrupt`] or [`Abort`].
pub trait Early: sealed::Early {}
impl Early for Interrupt {}
impl<E> Early for Abort<E> {}

mod sealed {
    use super::{Abort, Interrupt};

    pub trait Early: From<Interrupt> {
        fn interrupt(&self) -> Option<Interrupt>;
    }

    impl Early for Interrupt {
        fn interrupt(&self) -> Option<Interrupt> {
            Some(*self)
        }
    }

    impl<E> Early for Abort<E> {
        fn interrupt(&self) -> Option<Interrupt> {
            match self {
                Abort::Interrupt(interrupt) => Some(*interrupt),
                Abort::Error(_) => None,
            }
        }
    }
}

impl From<stm::StmError> for Interrupt {
    fn from(error: stm::StmError) -> Self {
        Interrupt(match error {
            stm::StmError::Retry => InterruptCause::Retry,
            stm::StmError::Failure => InterruptCause::Overtaken,
        })
    }
}

impl From<Interrupt> for stm::StmError {
    fn from(interrupt: Interrupt) -> Self {
        match interrupt.0 {
            InterruptCause::Retry => stm::StmError::Retry,
            InterruptCause::Overtaken => stm::StmError::Failure,
        }
    }
}

/// One run of a transaction's body. Its writes are invisible to others before the commit.
pub struct Transaction<'a> {
    stm: RefCell<&'a mut stm::Transaction>,
    log: &'a RefCell<TransactionLog>,
}

impl<'a> Transaction<'a> {
    fn new(stm: &'a mut stm::Transaction, log: &'a RefCell<TransactionLog>) -> Self {
        Transaction { stm: RefCell::new(stm), log }
    }

    /// Reads a variable: the value that this transaction wrote, or the published one.
    ///
    /// # Errors
    /// [`Interrupt`]: pass it on.
    pub fn read<T: Clone + Send + Sync + 'static>(
        &self,
        variable: &TVar<T>,
    ) -> Result<T, Interrupt> {
        Ok(T::clone(&*self.read_shared(variable)?))
    }

    /// Like [`Transaction::read`], without a copy of the value.
    ///
    /// # Errors
    /// [`Interrupt`]: pass it on.
    pub fn read_shared<T: Send + Sync + 'static>(
        &self,
        variable: &TVar<T>,
    ) -> Result<Arc<T>, Interrupt> {
        let value = self.stm.borrow_mut().read(variable.stm())?;
        self.log.borrow_mut().read(variable.slot(), &value);
        Ok(TVar::typed(value))
    }

    /// Writes a variable.
    ///
    /// # Errors
    /// [`Interrupt`]: pass it on.
    pub fn write<T: Send + Sync + 'static>(
        &self,
        variable: &TVar<T>,
        value: T,
    ) -> Result<(), Interrupt> {
        self.stm.borrow_mut().write(variable.stm(), Arc::new(value))?;
        self.log.borrow_mut().wrote(variable.slot());
        Ok(())
    }

    /// Sets a variable to `next` of its current value.
    ///
    /// # Errors
    /// [`Interrupt`]: pass it on.
    pub fn modify<T: Clone + Send + Sync + 'static>(
        &self,
        variable: &TVar<T>,
        next: impl FnOnce(T) -> T,
    ) -> Result<(), Interrupt> {
        let value = self.read(variable)?;
        self.write(variable, next(value))
    }

    /// Discards the transaction's writes and waits until a variable that it read has changed.
    /// Inside [`or_else`](Transaction::or_else), the other branch runs instead.
    ///
    /// # Errors
    /// Always [`Interrupt`]: pass it on.
    pub fn retry<T>(&self) -> Result<T, Interrupt> {
        Err(Interrupt(InterruptCause::Retry))
    }

    /// [Retries](Transaction::retry) unless `condition` holds.
    ///
    /// # Errors
    /// [`Interrupt`]: pass it on.
    pub fn require(&self, condition: bool) -> Result<(), Interrupt> {
        if condition { Ok(()) } else { self.retry() }
    }

    /// Aborts the transaction with this error. It changes nothing.
    ///
    /// # Errors
    /// Always [`Abort::Error`]: pass it on.
    pub fn abort<T, E>(&self, error: E) -> Result<T, Abort<E>> {
        Err(Abort::Error(error))
    }

    /// Runs `first`. If that retries, discards its writes and runs `second`. If both retry, the
    /// transaction waits until a variable that either of them read has changed.
    ///
    /// # Errors
    /// [`Interrupt`] or [`Abort`]: pass it on.
    pub fn or_else<T, E: Early>(
        &mut self,
        first: impl Fn(&mut Transaction<'_>) -> Result<T, E>,
        second: impl Fn(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        /// Converts only interrupts to errors of the `stm` crate.
        fn way<T, E: Early>(result: Result<T, E>) -> Result<Result<T, E>, stm::StmError> {
            match result.as_ref().err().and_then(sealed::Early::interrupt) {
                Some(interrupt) => Err(interrupt.into()),
                None => Ok(result),
            }
        }
        let log = self.log;
        let written = log.borrow().written();
        let done = self.stm.get_mut().or(
            |stm| way(first(&mut Transaction::new(stm, log))),
            |stm| {
                log.borrow_mut().take_back(&written);
                // The reason for the first retry must still hold when `second` commits.
                log.borrow().depend(stm)?;
                way(second(&mut Transaction::new(stm, log)))
            },
        );
        done.map_err(|error| E::from(Interrupt::from(error)))?
    }
}

/// The outcome of some runs of a transaction.
enum RunOutcome<T, E> {
    Done(T),
    Aborted(E),
    /// It waits for a change of what it has read.
    Waits(TransactionLog),
    /// Every run was overtaken.
    Contended,
}

/// Runs a transaction until it has an outcome, at most `attempts` times.
fn run<T, E>(
    attempts: usize,
    body: impl Fn(&mut Transaction<'_>) -> Result<T, Abort<E>>,
) -> RunOutcome<T, E> {
    use stm::{StmError, TransactionControl, TransactionError, TransactionResult};

    let log = RefCell::new(TransactionLog::default());
    let left = Cell::new(attempts);
    let outcome = stm::Transaction::with_control_and_err(
        // Never blocks the thread: a retry returns to the caller, which may be able to wait.
        |error| match error {
            StmError::Failure if left.get() > 0 => TransactionControl::Retry,
            StmError::Failure | StmError::Retry => TransactionControl::Abort,
        },
        |stm| {
            let Some(fewer) = left.get().checked_sub(1) else {
                return Err(StmError::Failure.into());
            };
            left.set(fewer);
            log.take();
            let error = match body(&mut Transaction::new(stm, &log)) {
                Ok(value) => return Ok(value),
                Err(Abort::Error(error)) => TransactionError::Abort(error),
                Err(Abort::Interrupt(interrupt)) => TransactionError::Stm(interrupt.into()),
            };
            // The values that it read may never have been current together. Then its result does
            // not count.
            let counts = log.borrow().is_current();
            Err(if counts { error } else { StmError::Failure.into() })
        },
    );
    let log = log.into_inner();
    match outcome {
        TransactionResult::Validated(value) => {
            log.wake();
            RunOutcome::Done(value)
        }
        TransactionResult::Cancelled(error) => RunOutcome::Aborted(error),
        TransactionResult::Abandoned if left.get() == 0 => RunOutcome::Contended,
        TransactionResult::Abandoned => RunOutcome::Waits(log),
    }
}
