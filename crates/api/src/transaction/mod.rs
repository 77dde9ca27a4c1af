//! Transactions: changes of several shared variables that happen as one, or not at all.
//!
//! What several handlers and tasks share, and what must change together, is kept in [`TVar`]s and
//! changed in transactions, which can be put together from smaller ones. (McNettle's Fig. 6: reserve
//! bandwidth on every link of a path, or change nothing.)
//!
//! ```
//! use bellrock_api::{Interrupt, TVar, Transaction, atomically};
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
//! - [`crate::Network::transaction`] and [`crate::Network::try_transaction`] are for tasks:
//!   [`Transaction::retry`] suspends the task until a variable that was read has changed.
//!
//! # What a transaction sees
//! The outcome is as if transactions ran one after the other: what was read is still so when it
//! commits; what made it wait or abort was so at one moment; and `or_else` takes its second way only if the
//! first one waits at the moment of the commit.
//!
//! # Limits
//! - The closure may run several times, and more than one may run at once: it changes nothing but variables,
//!   sends nothing, and logs nothing. What it returns is acted upon after it.
//! - One run may read two variables at two moments. It is not committed then, and neither its errors
//!   nor its waiting count; but it must end, so it must not loop until two variables agree, and it must
//!   not panic if they do not.
//! - A transaction inside a transaction panics. A smaller one is a function that takes
//!   `&mut Transaction`.
//! - It is optimistic: one that others overtake starts again. Somebody always gets ahead, but a long
//!   transaction can be overtaken by short ones for as long as they keep coming. In a handler it
//!   gives up after [`MAX_ATTEMPTS`] with [`Error::Contended`]; in a task it lets the other tasks run
//!   after every [`ATTEMPTS_PER_POLL`]. So keep them short, and what changes often and on its own
//!   in a variable of its own.
//! - A read costs some 130 ns, a change 250 ns: look-ups, a lock of that variable for a moment, an
//!   allocation for a write. That is for what must change together. What is read for every packet is
//!   better a [`crate::Watch`] or a table without locks.

mod log;
mod variable;

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use fast_stm as stm;

use crate::{Error, Result};
use log::{Log, Waits};
pub use variable::TVar;

/// Runs of a transaction in a handler after which it gives up, because others keep overtaking it.
pub const MAX_ATTEMPTS: usize = 1_000;

/// Runs of a transaction in a task after which other tasks have their turn.
pub const ATTEMPTS_PER_POLL: usize = 64;

/// Changes variables as one.
///
/// # Errors
/// [`Error::WouldWait`] if the transaction is to [retry](Transaction::retry), which nobody can wait
/// for here; [`Error::Contended`]. Nothing has changed then.
///
/// # Panics
/// Inside another transaction.
pub fn atomically<T>(
    body: impl Fn(&mut Transaction<'_>) -> Result<T, Interrupt>,
) -> Result<T, Error> {
    match run(MAX_ATTEMPTS, |tx| body(tx).map_err(Abort::<Infallible>::Interrupt)) {
        Outcome::Done(value) => Ok(value),
        Outcome::Waits(_) => Err(Error::WouldWait),
        Outcome::Contended => Err(Error::Contended),
        Outcome::Aborted(never) => match never {},
    }
}

/// Changes variables as one, or fails by an error of the caller's.
///
/// ```
/// use bellrock_api::{TVar, TransactionError, try_atomically};
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
        Outcome::Done(value) => Ok(value),
        Outcome::Waits(_) => Err(TransactionError::WouldWait),
        Outcome::Contended => Err(TransactionError::Contended),
        Outcome::Aborted(error) => Err(TransactionError::Aborted(error)),
    }
}

/// See [`crate::Network::transaction`].
pub(crate) async fn transaction<T>(
    body: impl Fn(&mut Transaction<'_>) -> Result<T, Interrupt>,
) -> T {
    match try_transaction(|tx| body(tx).map_err(Abort::<Infallible>::Interrupt)).await {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

/// See [`crate::Network::try_transaction`].
pub(crate) async fn try_transaction<T, E>(
    body: impl Fn(&mut Transaction<'_>) -> Result<T, Abort<E>>,
) -> Result<T, E> {
    let mut waits = Waits::default();
    poll_fn(|context| {
        let again = match run(ATTEMPTS_PER_POLL, &body) {
            Outcome::Done(value) => return Poll::Ready(Ok(value)),
            Outcome::Aborted(error) => return Poll::Ready(Err(error)),
            Outcome::Contended => true,
            // In this order: who changes a variable after the look at it finds the waker there.
            Outcome::Waits(log) => {
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

/// Why a transaction that may fail has not happened. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError<E> {
    /// It is to retry, and nobody can wait for that here.
    #[error("the transaction waits for another change, and a handler cannot wait")]
    WouldWait,
    /// Others have overtaken it [`MAX_ATTEMPTS`] times.
    #[error("the transaction was overtaken by others {MAX_ATTEMPTS} times")]
    Contended,
    /// It was [aborted](Transaction::abort) with this.
    #[error("{0}")]
    Aborted(E),
}

/// The body of a transaction cannot go on: it retries, or was overtaken. Hand it on by `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt(Why);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Retry,
    Overtaken,
}

/// The body of a transaction that may fail cannot go on, or is given up. Hand it on by `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort<E> {
    /// It cannot go on.
    Interrupt(Interrupt),
    /// It is given up, and changes nothing.
    Error(E),
}

impl<E> From<Interrupt> for Abort<E> {
    fn from(interrupt: Interrupt) -> Self {
        Abort::Interrupt(interrupt)
    }
}

/// What ends the body of a transaction early: [`Interrupt`] or [`Abort`].
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
            stm::StmError::Retry => Why::Retry,
            stm::StmError::Failure => Why::Overtaken,
        })
    }
}

impl From<Interrupt> for stm::StmError {
    fn from(interrupt: Interrupt) -> Self {
        match interrupt.0 {
            Why::Retry => stm::StmError::Retry,
            Why::Overtaken => stm::StmError::Failure,
        }
    }
}

/// One run of a transaction's body: what it reads and writes. Nobody sees what it writes before it has
/// committed.
pub struct Transaction<'a> {
    stm: RefCell<&'a mut stm::Transaction>,
    log: &'a RefCell<Log>,
}

impl<'a> Transaction<'a> {
    fn new(stm: &'a mut stm::Transaction, log: &'a RefCell<Log>) -> Self {
        Transaction { stm: RefCell::new(stm), log }
    }

    /// The value of a variable: what this transaction wrote, or what is published.
    ///
    /// # Errors
    /// [`Interrupt`]: hand it on.
    pub fn read<T: Clone + Send + Sync + 'static>(
        &self,
        variable: &TVar<T>,
    ) -> Result<T, Interrupt> {
        Ok(T::clone(&*self.read_shared(variable)?))
    }

    /// The same without a copy of the value.
    ///
    /// # Errors
    /// [`Interrupt`]: hand it on.
    pub fn read_shared<T: Send + Sync + 'static>(
        &self,
        variable: &TVar<T>,
    ) -> Result<Arc<T>, Interrupt> {
        let value = self.stm.borrow_mut().read(variable.stm())?;
        self.log.borrow_mut().read(variable.slot(), &value);
        Ok(TVar::typed(value))
    }

    /// Gives a variable a new value.
    ///
    /// # Errors
    /// [`Interrupt`]: hand it on.
    pub fn write<T: Send + Sync + 'static>(
        &self,
        variable: &TVar<T>,
        value: T,
    ) -> Result<(), Interrupt> {
        self.stm.borrow_mut().write(variable.stm(), Arc::new(value))?;
        self.log.borrow_mut().wrote(variable.slot());
        Ok(())
    }

    /// Gives a variable the value that `next` makes of the present one.
    ///
    /// # Errors
    /// [`Interrupt`]: hand it on.
    pub fn modify<T: Clone + Send + Sync + 'static>(
        &self,
        variable: &TVar<T>,
        next: impl FnOnce(T) -> T,
    ) -> Result<(), Interrupt> {
        let value = self.read(variable)?;
        self.write(variable, next(value))
    }

    /// The transaction cannot happen as things are: it takes back what it wrote and waits until a variable
    /// that it read has changed, or [`or_else`](Transaction::or_else) goes another way.
    ///
    /// # Errors
    /// Always [`Interrupt`]: hand it on.
    pub fn retry<T>(&self) -> Result<T, Interrupt> {
        Err(Interrupt(Why::Retry))
    }

    /// [Retries](Transaction::retry) unless `condition` holds.
    ///
    /// # Errors
    /// [`Interrupt`]: hand it on.
    pub fn require(&self, condition: bool) -> Result<(), Interrupt> {
        if condition { Ok(()) } else { self.retry() }
    }

    /// Gives the transaction up: it changes nothing and fails by this error.
    ///
    /// # Errors
    /// Always [`Abort::Error`]: hand it on.
    pub fn abort<T, E>(&self, error: E) -> Result<T, Abort<E>> {
        Err(Abort::Error(error))
    }

    /// Does `first`; if that retries, takes back what it wrote and does `second` instead. If both
    /// retry, the transaction waits until something has changed that either of them read.
    ///
    /// # Errors
    /// [`Interrupt`] or [`Abort`]: hand it on.
    pub fn or_else<T, E: Early>(
        &mut self,
        first: impl Fn(&mut Transaction<'_>) -> Result<T, E>,
        second: impl Fn(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        /// Only what concerns the way through the transaction is an error to the crate below.
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
                // What made the first one retry has to be so still when the second one commits.
                log.borrow().depend(stm)?;
                way(second(&mut Transaction::new(stm, log)))
            },
        );
        done.map_err(|error| E::from(Interrupt::from(error)))?
    }
}

/// What came of some runs of a transaction.
enum Outcome<T, E> {
    Done(T),
    Aborted(E),
    /// It retries for what it has read.
    Waits(Log),
    /// Overtaken each time.
    Contended,
}

/// Runs a transaction until it has an outcome, at most so many times.
fn run<T, E>(
    attempts: usize,
    body: impl Fn(&mut Transaction<'_>) -> Result<T, Abort<E>>,
) -> Outcome<T, E> {
    use stm::{StmError, TransactionControl, TransactionError, TransactionResult};

    let log = RefCell::new(Log::default());
    let left = Cell::new(attempts);
    let outcome = stm::Transaction::with_control_and_err(
        // Never has the thread wait: a retry goes back to whoever can.
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
            // What it saw may never have been so at one moment. Then it says nothing.
            let counts = log.borrow().is_current();
            Err(if counts { error } else { StmError::Failure.into() })
        },
    );
    let log = log.into_inner();
    match outcome {
        TransactionResult::Validated(value) => {
            log.wake();
            Outcome::Done(value)
        }
        TransactionResult::Cancelled(error) => Outcome::Aborted(error),
        TransactionResult::Abandoned if left.get() == 0 => Outcome::Contended,
        TransactionResult::Abandoned => Outcome::Waits(log),
    }
}
