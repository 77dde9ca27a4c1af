//! An order that waits for the store, and its answer.

use std::collections::BTreeSet;
use std::fmt;

use bellrock_api::runtime::Promise;

use super::{BookModel, Draft, NotStored, StoreChange};

/// Why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOrdered<E> {
    /// The order itself refuses.
    Refused(E),
    /// The store cannot be used. Nothing has changed.
    Unavailable(String),
    /// The answer was lost: it was carried out, or not.
    Unknown(String),
    /// The order is larger than a commit of the store, and only its first changes are stored.
    Partly {
        /// Number of changes that are stored.
        stored: usize,
        /// Number of all changes of the order.
        of: usize,
        /// Why the others are not.
        why: Box<NotOrdered<E>>,
    },
}

// `thiserror` does not find out that a type which has itself can be shown.
impl<E: fmt::Display> fmt::Display for NotOrdered<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOrdered::Refused(why) => write!(f, "{why}"),
            NotOrdered::Unavailable(why) => write!(f, "nothing has changed: {why}"),
            NotOrdered::Unknown(why) => write!(
                f,
                "whether this was carried out is not known, as the answer of the store was lost: {why}"
            ),
            NotOrdered::Partly { stored, of, why } => write!(
                f,
                "{stored} of {of} changes were carried out, and the others were not: {why}; \
                 the same order again carries out the rest"
            ),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for NotOrdered<E> {}

/// An order of any type.
pub(super) type AnyJob<M> = Box<dyn Job<M>>;

/// An order that waits.
pub(super) trait Job<M: BookModel>: Send {
    /// Changes the draft. Returns whether it did not refuse.
    fn plan(&mut self, draft: &mut Draft<'_, M>) -> bool;

    /// Answers. `parts`: what is stored of an order that is larger than a commit.
    fn finish(self: Box<Self>, stored: Result<(), NotStored>, parts: &Parts);
}

/// What is stored of an order, whatever becomes of the rest.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Names of the changed entries.
    pub(super) stored: BTreeSet<String>,
    /// Number of all changes of the order.
    of: usize,
}

impl Parts {
    /// Notes how many changes are left to store.
    pub(super) fn expect(&mut self, left: usize) {
        self.of = self.stored.len() + left;
    }

    /// Notes changes that are stored.
    pub(super) fn add(&mut self, part: &[StoreChange]) {
        self.stored.extend(part.iter().map(|change| change.name().to_owned()));
    }
}

/// An order whose plan is `F`.
pub(super) struct Order<F, R, E> {
    plan: F,
    planned: Option<Result<R, E>>,
    answer: Promise<Result<R, NotOrdered<E>>>,
}

impl<F, R, E> Order<F, R, E> {
    pub(super) fn new(plan: F, answer: Promise<Result<R, NotOrdered<E>>>) -> Self {
        Order { plan, planned: None, answer }
    }
}

impl<M, F, R, E> Job<M> for Order<F, R, E>
where
    M: BookModel,
    F: FnMut(&mut Draft<'_, M>) -> Result<R, E> + Send,
    R: Send + 'static,
    E: Send + 'static,
{
    fn plan(&mut self, draft: &mut Draft<'_, M>) -> bool {
        let planned = (self.plan)(draft);
        let is_accepted = planned.is_ok();
        self.planned = Some(planned);
        is_accepted
    }

    fn finish(self: Box<Self>, stored: Result<(), NotStored>, parts: &Parts) {
        let result = match (self.planned, stored) {
            (Some(Ok(value)), Ok(())) => Ok(value),
            (_, Err(NotStored::Unknown(why))) => Err(NotOrdered::Unknown(why)),
            (_, Err(error)) => Err(NotOrdered::Unavailable(error.to_string())),
            (Some(Err(error)), Ok(())) => Err(NotOrdered::Refused(error)),
            (None, Ok(())) => Err(NotOrdered::Unavailable("the order was not checked".into())),
        };
        let (stored, of) = (parts.stored.len(), parts.of);
        self.answer.resolve(match result {
            Err(why) if stored > 0 => Err(NotOrdered::Partly { stored, of, why: Box::new(why) }),
            result => result,
        });
    }
}
