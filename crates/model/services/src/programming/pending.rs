//! Programs that switches have yet to confirm.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use bellrock_api::{ChangeOutcome, ProgramFuture};

/// Any number of programs under way, each with a value that identifies it. None waits for another:
/// they end in the order in which the switches confirm.
pub struct PendingPrograms<T> {
    programs: Vec<(T, ProgramFuture)>,
    finished: Vec<(T, Vec<ChangeOutcome>)>,
}

impl<T> Default for PendingPrograms<T> {
    fn default() -> Self {
        PendingPrograms { programs: Vec::new(), finished: Vec::new() }
    }
}

impl<T> PendingPrograms<T> {
    /// Adds a program.
    pub fn push(&mut self, key: T, program: ProgramFuture) {
        self.programs.push((key, program));
    }

    /// Waits until at least one program has ended; forever if there are none. Safe to drop.
    pub fn any_finished(&mut self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| {
            self.poll_all(context);
            if self.finished.is_empty() { Poll::Pending } else { Poll::Ready(()) }
        })
    }

    /// Returns the programs that have ended, with the outcomes of their changes.
    pub fn take_finished(&mut self) -> Vec<(T, Vec<ChangeOutcome>)> {
        std::mem::take(&mut self.finished)
    }

    fn poll_all(&mut self, context: &mut Context<'_>) {
        let mut outcomes = Vec::new();
        let is_over = |(_, program): &mut (T, ProgramFuture)| {
            let Poll::Ready(result) = Pin::new(program).poll(context) else { return false };
            outcomes.push(result);
            true
        };
        let finished: Vec<(T, ProgramFuture)> = self.programs.extract_if(.., is_over).collect();
        self.finished.extend(finished.into_iter().map(|(key, _)| key).zip(outcomes));
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use bellrock_api::runtime::promise;

    use super::*;

    #[test]
    fn whoever_ends_first_is_heard_first() {
        let mut context = Context::from_waker(Waker::noop());
        let mut under_way = PendingPrograms::default();
        let (first, answer) = promise();
        under_way.push("first", ProgramFuture::in_parts([(1, answer)]));
        let (second, answer) = promise();
        under_way.push("second", ProgramFuture::in_parts([(1, answer)]));
        assert!(pin!(under_way.any_finished()).poll(&mut context).is_pending());
        second.resolve(vec![ChangeOutcome::Installed]);
        assert!(pin!(under_way.any_finished()).poll(&mut context).is_ready());
        assert!(pin!(under_way.any_finished()).poll(&mut context).is_ready(), "nothing is lost");
        assert_eq!(under_way.take_finished(), [("second", vec![ChangeOutcome::Installed])]);
        assert!(pin!(under_way.any_finished()).poll(&mut context).is_pending());
        first.resolve(vec![ChangeOutcome::Withheld]);
        assert!(pin!(under_way.any_finished()).poll(&mut context).is_ready());
        assert_eq!(under_way.take_finished(), [("first", vec![ChangeOutcome::Withheld])]);
        assert!(pin!(under_way.any_finished()).poll(&mut context).is_pending());
    }
}
