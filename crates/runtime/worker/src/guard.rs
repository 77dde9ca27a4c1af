//! The guard around all code of apps: a panic ends that call, and nothing else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
