//! The guard around all code of apps: a panic ends that call, and nothing else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tracing::error;

use crate::counters::WorkerCounters;
use crate::log_budget::LogBudget;
use crate::worker_app::WorkerApp;

/// Calls code of an app. `None`: it panicked. After that, only the app itself uses what it was
/// changing.
// Inlined into the loop over packets.
#[inline(always)]
pub(crate) fn guarded<R>(call: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => Some(value),
        Err(panic) => {
            drop_payload(panic);
            None
        }
    }
}

/// Drops a panic's payload. It belongs to the app, and its `Drop` may panic too.
#[cold]
#[inline(never)]
pub(crate) fn drop_payload(panic: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // This could go on for ever, so the payload leaks.
        std::mem::forget(another);
    }
}

impl WorkerApp {
    /// Calls code of the app that writes nothing to switches. `None`: it panicked, which is counted
    /// and logged.
    pub(crate) fn call<R>(
        &self,
        what: &'static str,
        (now, counters, log): (Duration, &WorkerCounters, &mut LogBudget),
        call: impl FnOnce() -> R,
    ) -> Option<R> {
        let result = guarded(call);
        if result.is_none() {
            self.panicked(now, counters);
            if log.allows(now, counters) {
                error!(app = self.name, what, "an app panicked");
            }
        }
        result
    }
}
