//! The trait that answers requests.

use crate::{Answer, ErrorKind, Query, QueryError, Request};

/// Answers requests about a controller, and carries out orders.
///
/// A call may take seconds, because some answers come from switches. It is made from a thread of
/// the face that asks, never from a worker.
pub trait Operator: Send + Sync {
    /// Answers any request. Use [`ask`](trait.Operator.html#method.ask) for the typed answer.
    ///
    /// # Errors
    /// Why there is no answer. Then an order has changed nothing, unless the error says otherwise.
    fn answer(&self, request: Request) -> Result<Answer, QueryError>;
}

impl dyn Operator + '_ {
    /// Answers a request with the type of its answer.
    ///
    /// # Errors
    /// As [`Operator::answer`].
    pub fn ask<Q: Query>(&self, query: Q) -> Result<Q::Answer, QueryError> {
        let answer = self.answer(query.into())?;
        Q::from_answer(answer).ok_or_else(|| {
            QueryError::new(
                ErrorKind::Internal,
                format!("the answer to {} is for another request", Q::NAME),
            )
        })
    }
}
