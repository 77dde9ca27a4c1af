//! Counts the panics of an app at all switches, and disables the app after too many.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellrock_api::HandlerError;

/// Number of panics within [`PANIC_WINDOW`], at all switches together, that disable an app: one
/// that fails at every packet costs more than it is worth.
pub const MAX_PANICS: usize = 10;

/// Time in which these panics must come. Older ones are forgotten.
pub const PANIC_WINDOW: Duration = Duration::from_secs(60);

/// Maximum bytes that are kept of an error's text, for each app.
const MAX_ERROR_BYTES: usize = 512;

/// The health of one app, shared by all workers.
#[derive(Debug, Default)]
pub(crate) struct Health {
    panics: AtomicU64,
    disabled: AtomicBool,
    /// Times of the last panics, oldest first.
    recent: Mutex<VecDeque<Duration>>,
    errors: AtomicU64,
    /// Events that took longer than the limit.
    blocked: AtomicU64,
    /// Text of the last logged error, or empty. Its memory is reused: errors can come with every
    /// packet.
    last_error: Mutex<String>,
}

impl Health {
    /// Counts a panic. `true`: it disables the app.
    pub(crate) fn panicked(&self, now: Duration) -> bool {
        self.panics.fetch_add(1, Ordering::Relaxed);
        // A panic here would leave a valid list of times.
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_back(now);
        while recent.front().is_some_and(|first| now.saturating_sub(*first) > PANIC_WINDOW) {
            recent.pop_front();
        }
        if recent.len() < MAX_PANICS {
            return false;
        }
        recent.clear();
        !self.disabled.swap(true, Ordering::Relaxed)
    }

    /// Gives a disabled app its events again. Its panics are forgiven.
    pub(crate) fn enable(&self) {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.disabled.store(false, Ordering::Relaxed);
    }

    /// Counts an event that takes longer than the limit.
    pub(crate) fn blocked(&self) {
        self.blocked.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of events that took longer than the limit.
    pub(crate) fn times_blocked(&self) -> u64 {
        self.blocked.load(Ordering::Relaxed)
    }

    /// Counts errors of its handlers.
    pub(crate) fn failed(&self, errors: u64) {
        self.errors.fetch_add(errors, Ordering::Relaxed);
    }

    /// Keeps the text and type of a logged error. Not for every error, since it takes a lock.
    pub(crate) fn keep_error(&self, error: &HandlerError) {
        let mut text = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        text.clear();
        // Only the app's own `Display` can fail; the text is then incomplete.
        let _ = write!(text, "{error}");
        let cut = text.floor_char_boundary(MAX_ERROR_BYTES);
        text.truncate(cut);
        if !error.type_name().is_empty() {
            let _ = write!(text, " ({})", error.type_name());
        }
    }

    /// Number of errors of its handlers, and the last one that was kept.
    pub(crate) fn errors(&self) -> (u64, Option<String>) {
        let last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (self.errors.load(Ordering::Relaxed), (!last.is_empty()).then_some(last))
    }

    /// Number of panics of its handlers.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Whether it is disabled.
    #[inline]
    pub(crate) fn is_disabled(&self) -> bool {
        self.disabled.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_that_are_far_apart_are_forgiven_and_the_last_of_many_disables_once() {
        let health = Health::default();
        let s = Duration::from_secs;
        for i in 0..100 {
            assert!(!health.panicked(s(7 * i)));
        }
        assert!(!health.is_disabled());
        let disabled: Vec<_> = (0..20).filter(|_| health.panicked(s(2000))).collect();
        assert_eq!(disabled.len(), 1);
        assert!(health.is_disabled());
        assert_eq!(health.panics(), 120);
        health.enable();
        assert!(!health.is_disabled() && !health.panicked(s(2000)), "it begins anew");
    }
}
