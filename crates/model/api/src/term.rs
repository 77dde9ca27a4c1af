//! Terms: how long one node of a cluster is the leader of an app that runs once
//! ([`Scope::Once`](crate::Scope::Once)), and the tasks of that time.
//!
//! A term has a lease: a function that answers whether it still lasts. It is asked before each turn
//! of a task, so no task of the term begins a turn after the end, also if nobody has noticed the
//! end yet. What ends the term ([`TermControl::end`]) drops the tasks that wait.
//!
//! # What it is not
//! It decides nothing about who leads, and knows no clock: its maker does. A turn that runs is not
//! interrupted, and threads of an app are the app's own: they ask [`Term::is_over`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use crate::task::{TaskFuture, TaskHandle, TaskWork};

/// Minimum number of tasks of a term before those that have ended are forgotten.
const FORGET_FROM: usize = 16;

/// A time in which one node of a cluster is the leader of an app. Clones are of the same term.
#[derive(Clone)]
pub struct Term(Arc<TermState>);

struct TermState {
    number: u64,
    lasts: Box<dyn Fn() -> bool + Send + Sync>,
    is_over: AtomicBool,
    tasks: Mutex<TermTasks>,
}

/// The tasks of a term.
struct TermTasks {
    handles: Vec<TaskHandle>,
    /// Number of handles at which those of tasks that have ended are forgotten.
    forget_at: usize,
}

/// What a runtime does with a [`Term`].
pub trait TermControl: Sized {
    /// Makes a term. `lasts` is called before each turn of a task, in any thread: it must be fast,
    /// and must return false before another node may begin the next term.
    fn begin(number: u64, lasts: impl Fn() -> bool + Send + Sync + 'static) -> Self;

    /// Ends the term, and its tasks. Another call has no effect.
    fn end(&self);

    /// Whether tasks of the term have not been dropped yet.
    fn has_tasks(&self) -> bool;
}

impl Term {
    /// Number of the term. Each one of the cluster has a larger number than those before it.
    ///
    /// An app that stores something stores this too, and refuses what it finds to be of a later
    /// term. So a leader that was stopped in the middle of its work, and goes on after its term,
    /// changes nothing.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// Whether another node may lead now. A term that is over stays so.
    #[must_use]
    pub fn is_over(&self) -> bool {
        if self.0.is_over.load(Ordering::SeqCst) {
            return true;
        }
        let is_over = !(self.0.lasts)();
        if is_over {
            self.0.is_over.store(true, Ordering::SeqCst);
        }
        is_over
    }

    /// Returns the work, which ends with the term.
    pub(crate) fn bind(&self, work: TaskWork) -> TaskWork {
        let term = self.clone();
        match work {
            TaskWork::Once(future) => TaskWork::Once(Box::pin(InTerm::new(term, future))),
            TaskWork::Again(mut make) => TaskWork::Again(Box::new(move || {
                let future = if term.is_over() { Box::pin(async {}) } else { make() };
                Box::pin(InTerm::new(term.clone(), future))
            })),
        }
    }

    /// Adds a task, which ends with the term.
    pub(crate) fn add(&self, task: &TaskHandle) {
        let mut tasks = self.tasks();
        if tasks.handles.len() >= tasks.forget_at {
            tasks.handles.retain(|task| !task.is_over());
            tasks.forget_at = (tasks.handles.len() * 2).max(FORGET_FROM);
        }
        tasks.handles.push(task.clone());
        drop(tasks);
        // What ends the term may have come before.
        if self.0.is_over.load(Ordering::SeqCst) {
            task.cancel();
        }
    }

    fn tasks(&self) -> MutexGuard<'_, TermTasks> {
        // Each change of the list is one call.
        self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TermControl for Term {
    fn begin(number: u64, lasts: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        let tasks = Mutex::new(TermTasks { handles: Vec::new(), forget_at: FORGET_FROM });
        let (lasts, is_over) = (Box::new(lasts), AtomicBool::new(false));
        Term(Arc::new(TermState { number, lasts, is_over, tasks }))
    }

    fn end(&self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        let handles = self.tasks().handles.clone();
        handles.iter().for_each(TaskHandle::cancel);
    }

    fn has_tasks(&self) -> bool {
        self.tasks().handles.iter().any(|task| !task.is_over())
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_over() { "over" } else { "lasts" };
        write!(f, "Term({}, {state})", self.number())
    }
}

/// A future of a term. It is not polled after the end of the term.
struct InTerm {
    term: Term,
    /// `None`: it has ended.
    future: Option<TaskFuture>,
}

impl InTerm {
    fn new(term: Term, future: TaskFuture) -> Self {
        InTerm { term, future: Some(future) }
    }
}

impl Future for InTerm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.term.is_over() {
            self.future = None;
        }
        match &mut self.future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Ready(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::task::RunningTask;

    #[derive(Default)]
    struct Task(AtomicBool);

    impl RunningTask for Task {
        fn is_over(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }

        fn cancel(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    fn term() -> (Term, Arc<AtomicBool>) {
        let lasts = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&lasts);
        (Term::begin(3, move || asked.load(Ordering::SeqCst)), lasts)
    }

    fn poll(future: &mut TaskFuture) -> Poll<()> {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_task_begins_no_turn_after_the_term() {
        let (term, lasts) = term();
        let turns = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&turns);
        let work: TaskFuture = Box::pin(std::future::poll_fn(move |_| {
            *counted.lock().unwrap() += 1;
            Poll::Pending
        }));
        let TaskWork::Once(mut future) = term.bind(TaskWork::Once(work)) else {
            panic!("it runs once")
        };
        assert!(poll(&mut future).is_pending() && !term.is_over());
        lasts.store(false, Ordering::SeqCst);
        assert!(poll(&mut future).is_ready());
        assert_eq!((*turns.lock().unwrap(), Arc::strong_count(&turns)), (1, 1), "it is dropped");
        // A lease that is there again is not this term's.
        lasts.store(true, Ordering::SeqCst);
        assert!(term.is_over() && term.number() == 3);
    }

    #[test]
    fn a_task_that_starts_again_is_not_made_after_the_term() {
        let (term, lasts) = term();
        let made = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&made);
        let make = Box::new(move || -> TaskFuture {
            *counted.lock().unwrap() += 1;
            Box::pin(std::future::pending())
        });
        let TaskWork::Again(mut make) = term.bind(TaskWork::Again(make)) else {
            panic!("it starts again")
        };
        assert!(poll(&mut make()).is_pending());
        lasts.store(false, Ordering::SeqCst);
        assert!(poll(&mut make()).is_ready());
        assert_eq!(*made.lock().unwrap(), 1);
    }

    #[test]
    fn the_end_of_a_term_ends_its_tasks_also_late_ones_and_the_list_stays_small() {
        let (term, _) = term();
        let start = || {
            let task = Arc::new(Task::default());
            term.add(&TaskHandle::new(Arc::<Task>::clone(&task)));
            task
        };
        let waiting = start();
        for _ in 0..1000 {
            start().cancel();
        }
        assert!(term.tasks().handles.len() <= FORGET_FROM, "{}", term.tasks().handles.len());
        assert!(term.has_tasks() && !waiting.is_over());
        term.end();
        assert!(waiting.is_over() && !term.has_tasks());
        assert!(start().is_over(), "a task that comes late ends too");
    }
}
